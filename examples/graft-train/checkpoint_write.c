/* Writing a checkpoint.
 * SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"
#include "json_text.h"
#include "output_file.h"
#include "state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are written as they lie in memory: little-endian");

char *checkpoint_path(const char *folder)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", folder, CHECKPOINT_FILE) < 0 ? NULL : path;
}

int32_t checkpoint_prepare(const char *folder, graft_error *error)
{
    char   *path = checkpoint_path(folder);
    int32_t rc = GRAFT_OK;

    if (path == NULL) return problem_memory(error, "the name of the checkpoint");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) rc = problem_errno(error, "make the folder", folder);
    else rc = output_check(path, error);
    free(path);
    return rc;
}

/** The metadata: format, version, and every option. NULL when out of memory. */
static json_t *build_metadata(const struct library *library)
{
    json_t *metadata = json_pack("{s:s, s:s}", "format", "graft", "version", library->api->version);

    if (json_add_options(metadata, library, CHECKPOINT_OPTION) == 0) return metadata;
    json_decref(metadata);
    return NULL;
}

/** Entry of one tensor that begins at `begin`; moves `begin` to its end. */
static json_t *build_tensor(const graft_state_item *item, uint64_t *begin)
{
    json_t        *shape = json_array();
    uint64_t       bytes = 0;
    const uint64_t from = *begin;

    for (int32_t d = 0; d < item->n_dims; d++) {
        if (json_array_append_new(shape, json_integer(item->shape[d])) != 0) {
            json_decref(shape);
            return NULL;
        }
    }
    state_item_bytes(item, &bytes); /* state_init() has checked that it can be counted */
    *begin += bytes;
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", state_dtype_name(item->dtype), "shape", shape, "data_offsets",
                     (json_int_t)from, (json_int_t)*begin);
}

/** The header as text, to be freed; NULL when out of memory. */
static char *build_header(const struct library *library, const struct state *state)
{
    json_t  *header = json_object();
    uint64_t begin = 0;
    int      bad = json_object_set_new(header, "__metadata__", build_metadata(library));

    for (int32_t i = 0; i < state->count && !bad; i++) {
        bad = json_object_set_new(header, state->items[i].name, build_tensor(&state->items[i], &begin));
    }
    char *text = bad ? NULL : json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

/** Length of the header rounded up to whole words, then the header, then spaces. */
static void put_header(FILE *stream, const char *text)
{
    const size_t   length = strlen(text);
    const uint64_t padded = (length + 7) / 8 * 8;
    unsigned char  prefix[8];

    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(padded >> (8 * i));
    fwrite(prefix, 1, sizeof prefix, stream);
    fwrite(text, 1, length, stream);
    fwrite("       ", 1, (size_t)(padded - length), stream);
}

int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, const char *folder, graft_error *error)
{
    struct output_file file = { 0 };
    struct state       state = { 0 };
    char              *path = checkpoint_path(folder), *header = NULL;
    uint64_t           bytes = 0;
    int32_t            rc;

    TRY(path != NULL ? GRAFT_OK : problem_memory(error, "the name of the checkpoint"));
    TRY(state_init(&state, library, trainer, error));
    header = build_header(library, &state);
    TRY(header != NULL ? GRAFT_OK : problem_memory(error, "the header of the checkpoint"));
    TRY(output_begin(&file, path, error));
    put_header(file.stream, header);
    for (int32_t i = 0; i < state.count; i++) {
        state_item_bytes(&state.items[i], &bytes);
        fwrite(state.items[i].data, 1, (size_t)bytes, file.stream);
    }
    rc = output_end(&file, error); /* also reports a failed write */
done:
    free(header);
    free(path);
    state_fini(&state);
    return rc;
}
