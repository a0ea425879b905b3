/* A model into a file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "base/file.h"
#include "base/output.h"
#include "snapshot/checksum.h"
#include "snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* The items with their places in the file, those of 8 bytes first, so that all are aligned. */
struct layout {
    struct gr_tensor *tensors;
    const void      **data;
    int32_t           n;
    int64_t           bytes;
};

static void place_items(const graft_model *m, struct layout *l)
{
    const struct gr_state state = gr_snapshot_state(m);
    graft_state_item      item = { .size = sizeof item };
    graft_error           end = { .size = sizeof end };

    for (int64_t wide = 8; wide >= 4; wide -= 4) {
        for (int32_t i = 0; gr_state_item(&state, i, &item, &end) == GRAFT_OK; i++) {
            struct gr_tensor *t = &l->tensors[l->n];

            if (gr_tensor_type_bytes(item.dtype) != wide) continue;
            *t = (struct gr_tensor){ .name = item.name, .dtype = item.dtype, .n_dims = item.n_dims, .begin = l->bytes };
            memcpy(t->shape, item.shape, sizeof t->shape);
            t->end = l->bytes += gr_state_bytes(&item);
            l->data[l->n++] = item.data;
        }
    }
}

/* Write the checksums of all blocks of all tensors. */
static void write_checksums(const struct layout *l, char *text)
{
    for (int32_t i = 0; i < l->n; i++) {
        const struct gr_tensor *t = &l->tensors[i];
        const int64_t           bytes = t->end - t->begin;
        char                   *to = text + gr_checksum_place(l->tensors, l->n, t->name);

        for (int64_t at = 0; at < bytes; at += GR_CHECKSUM_BLOCK, to += GR_CHECKSUM_DIGITS) {
            const int64_t some = bytes - at < GR_CHECKSUM_BLOCK ? bytes - at : GR_CHECKSUM_BLOCK;

            gr_checksum_write(to, gr_crc(0, (const char *)l->data[i] + at, (uint64_t)some));
        }
    }
}

/* The texts of the model, with new checksums. */
static int32_t make_pairs(const graft_model *m, const struct layout *l, const char *of_tensors, char *of_header,
                          struct gr_tensor_pair **pairs, int32_t *n, graft_error *error)
{
    const int32_t rc = GR_NEW(m->context, *pairs, m->header.n_pairs + 2, error);

    *n = 0;
    if (rc < 0) return rc;
    for (int32_t i = 0; i < m->header.n_pairs; i++)
        if (strcmp(m->header.pairs[i].key, GR_CHECKSUM_OF_TENSORS) != 0 &&
            strcmp(m->header.pairs[i].key, GR_CHECKSUM_OF_HEADER) != 0)
            (*pairs)[(*n)++] = m->header.pairs[i];
    (*pairs)[(*n)++] = (struct gr_tensor_pair){ GR_CHECKSUM_OF_TENSORS, of_tensors };
    gr_checksum_write(of_header, gr_checksum_header(l->tensors, l->n, *pairs, *n));
    (*pairs)[(*n)++] = (struct gr_tensor_pair){ GR_CHECKSUM_OF_HEADER, of_header };
    return GRAFT_OK;
}

static int32_t make_header(const graft_model *m, const struct layout *l, char **header, int64_t *bytes,
                           graft_error *error)
{
    struct gr_tensor_pair *pairs = NULL;
    char                  *of_tensors = NULL, of_header[GR_CHECKSUM_DIGITS + 1] = "";
    int32_t                n, rc = GRAFT_OK;

    GR_TRY(GR_NEW(m->context, of_tensors, gr_checksum_place(l->tensors, l->n, NULL) + 1, error));
    write_checksums(l, of_tensors);
    GR_TRY(make_pairs(m, l, of_tensors, of_header, &pairs, &n, error));
    *bytes = gr_tensors_write(l->tensors, l->n, pairs, n, NULL, 0);
    GR_TRY(GR_NEW(m->context, *header, *bytes, error));
    gr_tensors_write(l->tensors, l->n, pairs, n, *header, *bytes);
done:
    gr_free(m->context, pairs);
    gr_free(m->context, of_tensors);
    return rc;
}

static int32_t write_model(const struct layout *l, const char *header, int64_t header_bytes, const char *path,
                           const char *previous, graft_error *error)
{
    struct gr_output output;
    int32_t          rc = GRAFT_OK;

    GR_TRY(gr_output_begin(&output, path, header_bytes + l->bytes, error));
    GR_TRY(gr_output_write(&output, header, header_bytes, error));
    for (int32_t i = 0; i < l->n; i++)
        GR_TRY(gr_output_write(&output, l->data[i], l->tensors[i].end - l->tensors[i].begin, error));
    rc = gr_output_end(&output, previous, error);
done:
    gr_output_abort(&output);
    return rc;
}

int gr_snapshot_is_whole(graft_context *context, const char *path)
{
    struct gr_file    file;
    struct gr_tensors header = { 0 };
    graft_error       error = { .size = sizeof error };
    const int32_t     opened = gr_file_open(&file, AT_FDCWD, path, "", &error);
    const int whole = opened == GRAFT_OK && gr_snapshot_read_header(context, &file, &header, &error) == GRAFT_OK;

    gr_tensors_fini(&header);
    gr_file_close(&file);
    return whole;
}

int32_t gr_snapshot_save(graft_model *m, const char *path, graft_error *error)
{
    const int32_t items = m->model.n_parameters * m->copies + 8; /* with the progress */
    struct layout l = { 0 };
    char         *header = NULL, previous[PATH_MAX];
    int64_t       header_bytes = 0;
    int32_t       rc = GRAFT_OK;

    if (snprintf(previous, sizeof previous, "%s" GR_SNAPSHOT_PREVIOUS, path) >= (int)sizeof previous)
        return gr_output_failed(path, ENAMETOOLONG, error);
    GR_TRY(GR_NEW(m->context, l.tensors, items, error));
    GR_TRY(GR_NEW(m->context, l.data, items, error));
    place_items(m, &l);
    GR_TRY(make_header(m, &l, &header, &header_bytes, error));
    rc = write_model(&l, header, header_bytes, path, gr_snapshot_is_whole(m->context, path) ? previous : NULL, error);
done:
    gr_free(m->context, header);
    gr_free(m->context, l.data);
    gr_free(m->context, l.tensors);
    return rc;
}
