/* Reading a checkpoint: everything is checked before the trainer is changed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"
#include "state.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const uint64_t MAX_HEADER = 100000000; /* as the reference implementation of safetensors */

/** A tensor of the file; item.data is not used. */
struct tensor {
    graft_state_item item;
    uint64_t         begin, end;
};

struct checkpoint {
    char          *path;
    FILE          *stream;
    uint64_t       file_bytes;
    uint64_t       header_bytes;
    json_t        *header;
    struct tensor *tensors;
    int32_t        count;
};

static void checkpoint_fini(struct checkpoint *checkpoint)
{
    free(checkpoint->tensors);
    json_decref(checkpoint->header);
    if (checkpoint->stream != NULL) fclose(checkpoint->stream);
    free(checkpoint->path);
}

static int32_t read_failed(const struct checkpoint *checkpoint, graft_error *error)
{
    if (ferror(checkpoint->stream)) return problem_errno(error, "read", checkpoint->path);
    return problem(error, GRAFT_ERR_FORMAT, "'%s' became shorter while it was read", checkpoint->path);
}

/** Check that the file has the length in its header, `data_bytes` after it. */
static int32_t check_length(const struct checkpoint *checkpoint, uint64_t data_bytes, graft_error *error)
{
    const uint64_t needed = 8 + checkpoint->header_bytes + data_bytes;

    if (checkpoint->file_bytes >= needed) return GRAFT_OK;
    return problem(error, GRAFT_ERR_FORMAT,
                   "'%s' is shorter than its header says: it has %" PRIu64 " bytes, expected %s%" PRIu64,
                   checkpoint->path, checkpoint->file_bytes, data_bytes == 0 ? "at least " : "", needed);
}

/** Open the file and read the length of the header. */
static int32_t open_file(struct checkpoint *checkpoint, const char *folder, graft_error *error)
{
    struct stat   info;
    unsigned char prefix[8];

    checkpoint->path = checkpoint_path(folder);
    if (checkpoint->path == NULL) return problem_memory(error, "the name of the checkpoint");
    checkpoint->stream = fopen(checkpoint->path, "rbe");
    if (checkpoint->stream == NULL || fstat(fileno(checkpoint->stream), &info) != 0) {
        return problem_errno(error, "read", checkpoint->path);
    }
    checkpoint->file_bytes = S_ISREG(info.st_mode) ? (uint64_t)info.st_size : 0;
    if (checkpoint->file_bytes < sizeof prefix) {
        return problem(error, GRAFT_ERR_FORMAT,
                       "'%s' has %" PRIu64 " bytes, expected at least 8: the length of its header", checkpoint->path,
                       checkpoint->file_bytes);
    }
    if (fread(prefix, 1, sizeof prefix, checkpoint->stream) != sizeof prefix) return read_failed(checkpoint, error);
    for (int i = 0; i < 8; i++) checkpoint->header_bytes |= (uint64_t)prefix[i] << (8 * i);
    if (checkpoint->header_bytes > MAX_HEADER) {
        return problem(error, GRAFT_ERR_FORMAT,
                       "'%s' says that its header has %" PRIu64 " bytes, expected at most %" PRIu64, checkpoint->path,
                       checkpoint->header_bytes, MAX_HEADER);
    }
    return check_length(checkpoint, 0, error);
}

static int32_t read_header(struct checkpoint *checkpoint, graft_error *error)
{
    const size_t length = (size_t)checkpoint->header_bytes;
    char        *text = malloc(length + 1);
    json_error_t reason;
    int32_t      rc = GRAFT_OK;

    if (text == NULL) return problem_memory(error, "the header of the checkpoint");
    if (fread(text, 1, length, checkpoint->stream) != length) {
        rc = read_failed(checkpoint, error);
        goto done;
    }
    if (length == 0 || text[0] != '{') {
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' has no JSON object at byte 8, where its header should begin",
                     checkpoint->path);
        goto done;
    }
    checkpoint->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &reason);
    if (checkpoint->header == NULL) {
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' has a header that is not valid JSON at byte %d: %s",
                     checkpoint->path, 8 + reason.position, *reason.text != '\0' ? reason.text : "out of memory");
    }
done:
    free(text);
    return rc;
}

/** The metadata may be missing; if it is there it maps texts to texts. */
static int32_t check_metadata(const struct checkpoint *checkpoint, graft_error *error)
{
    json_t     *metadata = json_object_get(checkpoint->header, "__metadata__");
    const char *key;
    json_t     *value;

    if (metadata == NULL) return GRAFT_OK;
    if (!json_is_object(metadata)) {
        return problem(error, GRAFT_ERR_FORMAT, "'%s': __metadata__ is not an object of texts", checkpoint->path);
    }
    json_object_foreach(metadata, key, value)
    {
        if (!json_is_string(value)) {
            return problem(error, GRAFT_ERR_FORMAT, "'%s': '%.64s' of __metadata__ is not a text", checkpoint->path,
                           key);
        }
    }
    return GRAFT_OK;
}

/** Type and shape of an entry. Returns 0 if they are not what the format allows. */
static int parse_shape(json_t *entry, graft_state_item *item)
{
    json_t       *shape = json_object_get(entry, "shape");
    const char   *dtype = json_string_value(json_object_get(entry, "dtype"));
    const int32_t capacity = (int32_t)(sizeof item->shape / sizeof *item->shape);

    if (dtype == NULL || !json_is_array(shape) || json_array_size(shape) > (size_t)capacity) return 0;
    item->dtype = state_dtype(dtype);
    item->n_dims = (int32_t)json_array_size(shape);
    for (int32_t d = 0; d < item->n_dims; d++) {
        json_t *extent = json_array_get(shape, (size_t)d);
        if (!json_is_integer(extent) || json_integer_value(extent) < 0) return 0;
        item->shape[d] = json_integer_value(extent);
    }
    return item->dtype != 0;
}

static int32_t parse_tensor(const struct checkpoint *checkpoint, const char *name, json_t *entry, struct tensor *tensor,
                            graft_error *error)
{
    json_t  *offsets = json_object_get(entry, "data_offsets");
    json_t  *begin = json_array_get(offsets, 0), *end = json_array_get(offsets, 1);
    uint64_t bytes = 0;
    char     shape[96];

    tensor->item = GRAFT_INIT(graft_state_item);
    tensor->item.name = name;
    if (!parse_shape(entry, &tensor->item)) {
        return problem(error, GRAFT_ERR_FORMAT,
                       "'%s': tensor '%.64s' has no proper dtype (F32, F64 or I64) and shape (at most 4 counts)",
                       checkpoint->path, name);
    }
    if (json_array_size(offsets) != 2 || !json_is_integer(begin) || !json_is_integer(end) ||
        json_integer_value(begin) < 0 || json_integer_value(end) < json_integer_value(begin)) {
        return problem(error, GRAFT_ERR_FORMAT, "'%s': data_offsets of tensor '%.64s' are not two counts in order",
                       checkpoint->path, name);
    }
    tensor->begin = (uint64_t)json_integer_value(begin);
    tensor->end = (uint64_t)json_integer_value(end);
    if (!state_item_bytes(&tensor->item, &bytes) || bytes != tensor->end - tensor->begin) {
        state_item_describe(&tensor->item, shape, sizeof shape);
        return problem(error, GRAFT_ERR_FORMAT,
                       "'%s': tensor '%.64s' is %s, but its data_offsets span %" PRIu64 " bytes", checkpoint->path,
                       name, shape, tensor->end - tensor->begin);
    }
    return GRAFT_OK;
}

static int by_offset(const void *left, const void *right)
{
    const struct tensor *a = left, *b = right;

    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/** The tensors must fill what follows the header, without gap or overlap. */
static int32_t check_contiguous(const struct checkpoint *checkpoint, graft_error *error)
{
    const uint64_t data_bytes = checkpoint->file_bytes - 8 - checkpoint->header_bytes;
    uint64_t       expected = 0;

    for (int32_t i = 0; i < checkpoint->count; i++) {
        const struct tensor *tensor = &checkpoint->tensors[i];
        if (tensor->begin != expected) {
            return problem(error, GRAFT_ERR_FORMAT,
                           "'%s': tensor '%.64s' begins at offset %" PRIu64 ", expected %" PRIu64
                           ": tensors follow each other without gap or overlap",
                           checkpoint->path, tensor->item.name, tensor->begin, expected);
        }
        expected = tensor->end;
    }
    if (expected >= data_bytes) return check_length(checkpoint, expected, error);
    return problem(error, GRAFT_ERR_FORMAT,
                   "'%s' has %" PRIu64 " bytes after its header, expected %" PRIu64 ", the end of its last tensor",
                   checkpoint->path, data_bytes, expected);
}

static int32_t parse_tensors(struct checkpoint *checkpoint, graft_error *error)
{
    const char *name;
    json_t     *entry;
    int32_t     rc = GRAFT_OK;

    checkpoint->tensors = calloc(json_object_size(checkpoint->header) + 1, sizeof *checkpoint->tensors);
    if (checkpoint->tensors == NULL) return problem_memory(error, "the list of tensors");
    json_object_foreach(checkpoint->header, name, entry)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        TRY(parse_tensor(checkpoint, name, entry, &checkpoint->tensors[checkpoint->count], error));
        checkpoint->count++;
    }
    qsort(checkpoint->tensors, (size_t)checkpoint->count, sizeof *checkpoint->tensors, by_offset);
    rc = check_contiguous(checkpoint, error);
done:
    return rc;
}

/** Whether another value of this option changes how a run continues. */
static int matters(const char *key)
{
    static const char *const without[] = { "epochs", "recompute", "mxm.kernel", "strict" };

    for (size_t i = 0; i < sizeof without / sizeof without[0]; i++) {
        if (strcmp(key, without[i]) == 0) return 0;
    }
    return 1;
}

/** The options that matter and differ from those with which the file was written. */
static void describe_differences(const struct checkpoint *checkpoint, const struct library *library, char *text,
                                 size_t capacity)
{
    json_t      *metadata = json_object_get(checkpoint->header, "__metadata__");
    graft_error  ignored = GRAFT_INIT(graft_error);
    graft_option option = GRAFT_INIT(graft_option);
    size_t       used = 0;
    char         key[128];

    *text = '\0';
    for (int32_t i = 0; library->api->option_info(library->api->context, i, &option, &ignored) >= 0; i++) {
        snprintf(key, sizeof key, CHECKPOINT_OPTION "%s", option.key);
        const char *then = json_string_value(json_object_get(metadata, key));
        if (then != NULL && option.scope == GRAFT_SCOPE_SAME && matters(option.key) &&
            strcmp(then, option.value) != 0 && used < capacity) {
            used += (size_t)snprintf(text + used, capacity - used, "%s%s=%.32s (now %.32s)", used > 0 ? ", " : "",
                                     option.key, then, option.value);
        }
        option = GRAFT_INIT(graft_option);
    }
}

/** Report a tensor that does not fit the trainer, with the options that may be the reason. */
static int32_t mismatch(const struct checkpoint *checkpoint, const struct library *library, const char *name,
                        const graft_state_item *found, const graft_state_item *expected, graft_error *error)
{
    char differences[256], is[96] = "not there", should[96] = "no such tensor";

    if (found != NULL) state_item_describe(found, is, sizeof is);
    if (expected != NULL) state_item_describe(expected, should, sizeof should);
    describe_differences(checkpoint, library, differences, sizeof differences);
    return problem(error, GRAFT_ERR_FORMAT, "'%s': tensor '%.64s' is %s, expected %s%s%s", checkpoint->path, name, is,
                   should, *differences != '\0' ? "; the checkpoint was made with " : "", differences);
}

static int same_shape(const graft_state_item *a, const graft_state_item *b)
{
    if (a->dtype != b->dtype || a->n_dims != b->n_dims) return 0;
    for (int32_t d = 0; d < a->n_dims; d++) {
        if (a->shape[d] != b->shape[d]) return 0;
    }
    return 1;
}

static const graft_state_item *find_tensor(const struct checkpoint *checkpoint, const char *name)
{
    for (int32_t i = 0; i < checkpoint->count; i++) {
        if (strcmp(checkpoint->tensors[i].item.name, name) == 0) return &checkpoint->tensors[i].item;
    }
    return NULL;
}

/** Check that the file has exactly the items of the trainer, with their types and shapes. */
static int32_t check_against(const struct checkpoint *checkpoint, const struct library *library,
                             const struct state *state, graft_error *error)
{
    for (int32_t i = 0; i < state->count; i++) {
        const graft_state_item *expected = &state->items[i], *found = find_tensor(checkpoint, expected->name);
        if (found == NULL || !same_shape(found, expected)) {
            return mismatch(checkpoint, library, expected->name, found, expected, error);
        }
    }
    for (int32_t i = 0; i < checkpoint->count; i++) {
        const graft_state_item *found = &checkpoint->tensors[i].item;
        if (state_find(state, found->name) == NULL) {
            return mismatch(checkpoint, library, found->name, found, NULL, error);
        }
    }
    return GRAFT_OK;
}

/** Pass one tensor to the trainer; the file is added to an error. */
static int32_t put_tensor(const struct checkpoint *checkpoint, const struct library *library, graft_trainer *trainer,
                          const graft_state_item *item, graft_error *error)
{
    graft_error   refusal = GRAFT_INIT(graft_error);
    const int32_t rc = library->train->state_set(trainer, item, &refusal);

    return rc < 0 ? problem(error, rc, "'%s': %s", checkpoint->path, refusal.message) : rc;
}

/** Read the tensors, in the order of the list, and pass each to the trainer. */
static int32_t put_tensors(const struct checkpoint *checkpoint, const struct library *library, graft_trainer *trainer,
                           graft_error *error)
{
    int32_t rc = GRAFT_OK;
    void   *buffer = NULL;

    for (int32_t i = 0; i < checkpoint->count; i++) {
        const struct tensor *tensor = &checkpoint->tensors[i];
        const size_t         bytes = (size_t)(tensor->end - tensor->begin);
        graft_state_item     item = tensor->item;

        free(buffer);
        buffer = malloc(bytes + 1);
        TRY(buffer != NULL ? GRAFT_OK : problem_memory(error, "a tensor of the checkpoint"));
        TRY(fread(buffer, 1, bytes, checkpoint->stream) == bytes ? GRAFT_OK : read_failed(checkpoint, error));
        item.data = buffer;
        TRY(put_tensor(checkpoint, library, trainer, &item, error));
    }
done:
    free(buffer);
    return rc;
}

int32_t checkpoint_read(const struct library *library, graft_trainer *trainer, const char *folder, char *warning,
                        size_t capacity, graft_error *error)
{
    struct checkpoint checkpoint = { 0 };
    struct state      state = { 0 };
    int32_t           rc;

    TRY(open_file(&checkpoint, folder, error));
    TRY(read_header(&checkpoint, error));
    TRY(check_metadata(&checkpoint, error));
    TRY(parse_tensors(&checkpoint, error));
    TRY(state_init(&state, library, trainer, error));
    TRY(check_against(&checkpoint, library, &state, error));
    TRY(put_tensors(&checkpoint, library, trainer, error));
    describe_differences(&checkpoint, library, warning, capacity);
done:
    state_fini(&state);
    checkpoint_fini(&checkpoint);
    return rc;
}
