/* A model from a file, which rank 0 reads. The header goes to all ranks, so that all find the same in it; then the
 * arrays. Memory for arrays is allocated after their shapes were found in the file, whose length has them all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/crc.h"
#include "base/file.h"
#include "comm/collective.h"
#include "snapshot/checksum.h"
#include "snapshot/snapshot.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READ_BYTES = 1 << 18 }; /* what was read is still in a cache when its checksum is computed */
_Static_assert(GR_CHECKSUM_BLOCK % READ_BYTES == 0, "no part is of two blocks");

/* The length of the header. */
static int32_t read_prefix(const struct gr_file *file, int64_t *bytes, graft_error *error)
{
    unsigned char prefix[GR_TENSOR_PREFIX];
    int32_t       rc = GRAFT_OK;

    if (file->size < (int64_t)sizeof prefix)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends at byte %lld, expected 8 bytes with the length of a header",
                       file->name, (long long)file->size);
    GR_TRY(gr_file_read(file, 0, prefix, sizeof prefix, error));
    rc = gr_tensors_prefix(prefix, file->size, file->name, bytes, error);
done:
    return rc;
}

int32_t gr_snapshot_read_header(graft_context *context, const struct gr_file *file, struct gr_tensors *header,
                                graft_error *error)
{
    int32_t rc = GRAFT_OK;

    header->context = context;
    GR_TRY(read_prefix(file, &header->header_bytes, error));
    header->data_bytes = file->size - GR_TENSOR_PREFIX - header->header_bytes;
    GR_TRY(GR_NEW(context, header->text, header->header_bytes, error));
    GR_TRY(gr_file_read(file, GR_TENSOR_PREFIX, header->text, header->header_bytes, error));
    GR_TRY(gr_tensors_parse(header, file->name, error));
    rc = gr_checksum_check(header, file->name, error);
done:
    return rc;
}

/* A file on rank 0, and the model that is made of it on all. */
struct loading {
    graft_context  *context;
    struct gr_comm *comm;
    struct gr_file  file; /* open on rank 0 */
    graft_model    *model;
    int64_t         data; /* byte of the file where the data begin */
};

/* The header as rank 0 has it, before it is taken apart. */
static int32_t share_header(struct loading *l, const char *path, struct gr_tensors *header, graft_error *error)
{
    char      shown[GR_FILE_NAME];
    int64_t   bytes[2] = { 0 };
    const int first = l->comm->rank == 0;
    int32_t   rc = GRAFT_OK;

    gr_file_show_path(shown, path != NULL ? path : "");
    gr_file_show_path(l->file.name, shown);
    if (first) rc = gr_file_open(&l->file, AT_FDCWD, path, shown, error);
    if (first && rc == GRAFT_OK) rc = read_prefix(&l->file, &bytes[0], error);
    GR_TRY(gr_comm_agree(l->comm, rc, error));
    if (first) bytes[1] = l->file.size - GR_TENSOR_PREFIX - bytes[0];
    GR_TRY(gr_comm_broadcast(l->comm, 0, bytes, sizeof bytes, error));
    header->context = l->context;
    header->header_bytes = bytes[0];
    header->data_bytes = bytes[1];
    l->data = GR_TENSOR_PREFIX + bytes[0];
    rc = GR_NEW(l->context, header->text, bytes[0], error);
    if (first && rc == GRAFT_OK) rc = gr_file_read(&l->file, GR_TENSOR_PREFIX, header->text, bytes[0], error);
    GR_TRY(gr_comm_agree(l->comm, rc, error));
    rc = gr_comm_broadcast(l->comm, 0, header->text, (uint64_t)bytes[0], error);
done:
    return rc;
}

static void shape_text(char text[64], const struct gr_tensor *t)
{
    int used = snprintf(text, 64, "%s [", gr_tensor_type_name(t->dtype));

    for (int32_t d = 0; d < t->n_dims && used < 56; d++)
        used += snprintf(text + used, 64 - (size_t)used, "%s%lld", d > 0 ? ", " : "", (long long)t->shape[d]);
    if (used < 63) snprintf(text + used, 64 - (size_t)used, "]");
}

/* The tensor that an item of the state has in the file; error if it has none of this shape. */
static int32_t find_tensor(const struct loading *l, const graft_state_item *item, const struct gr_tensor **found,
                           graft_error *error)
{
    const struct gr_tensor *t = *found = gr_tensors_find(&l->model->header, item->name);
    struct gr_tensor        expected = { .dtype = item->dtype, .n_dims = item->n_dims };
    char                    is[64], should[64];

    memcpy(expected.shape, item->shape, sizeof expected.shape);
    shape_text(should, &expected);
    if (t == NULL)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has no tensor '%.64s', expected %s: its options say so",
                       l->file.name, item->name, should);
    if (t->dtype == item->dtype && t->n_dims == item->n_dims && t->shape[0] == item->shape[0] &&
        (t->n_dims < 2 || t->shape[1] == item->shape[1]))
        return GRAFT_OK;
    shape_text(is, t);
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "'%s': tensor '%.64s', at byte %lld of the header, is %s, expected %s: its options say so",
                   l->file.name, t->name, (long long)t->at, is, should);
}

/* Whether the file has the items of the model and nothing else. */
static int32_t check_tensors(const struct loading *l, graft_error *error)
{
    const struct gr_tensors *header = &l->model->header;
    const struct gr_state    state = gr_snapshot_state(l->model);
    const struct gr_tensor  *found;
    graft_state_item         item = { .size = sizeof item };
    graft_error              end = { .size = sizeof end };
    int32_t                  count = 0, rc = GRAFT_OK;

    /* How many batches an epoch has is up to the trainer that gets the state. */
    l->model->progress.n_batches = gr_tensors_find(header, "progress.batch") != NULL;
    for (; gr_state_item(&state, count, &item, &end) == GRAFT_OK; count++) GR_TRY(find_tensor(l, &item, &found, error));
    for (int32_t i = 0; i < header->n_tensors && count < header->n_tensors; i++) {
        const struct gr_tensor *t = &header->tensors[i];
        int                     known = 0;

        for (int32_t j = 0; !known && gr_state_item(&state, j, &item, &end) == GRAFT_OK; j++)
            known = strcmp(item.name, t->name) == 0;
        if (!known || gr_tensors_find(header, t->name) != t)
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "'%s': tensor '%.64s', at byte %lld of the header, is none of the model's, or comes twice",
                           l->file.name, t->name, (long long)t->at);
    }
done:
    return rc;
}

static int32_t describe_loaded(struct loading *l, struct gr_tensors *header, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_tensors_parse(header, l->file.name, error));
    GR_TRY(gr_checksum_check(header, l->file.name, error));
    GR_TRY(gr_snapshot_describe(l->context, header, l->file.name, &l->model, error));
    GR_TRY(check_tensors(l, error));
    rc = gr_model_allocate(&l->model->model, &l->model->budget, l->model->copies, error);
done:
    return rc;
}

/* The array of an item, by the name that the tensor has. */
static void *array_of(const graft_model *m, const char *name, graft_state_item *item)
{
    const struct gr_state state = gr_snapshot_state(m);
    graft_error           end = { .size = sizeof end };

    for (int32_t i = 0; gr_state_item(&state, i, item, &end) == GRAFT_OK; i++)
        if (strcmp(item->name, name) == 0) return (void *)(uintptr_t)item->data;
    GR_ASSERT(0); /* check_tensors() has found it */
    return NULL;
}

/* Whether a block of a tensor has its checksum. */
static int32_t check_block(const struct loading *l, const struct gr_tensor *t, int64_t begin, int64_t end, uint32_t crc,
                           const char *expected, graft_error *error)
{
    char found[GR_CHECKSUM_DIGITS];

    gr_checksum_write(found, crc);
    if (memcmp(found, expected, sizeof found) == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "'%s' is damaged: tensor '%.64s', from byte %lld to byte %lld, has CRC32C %.*s, in the metadata it "
                   "is %.*s; a program that writes other weights removes the keys '%s' and '%s'",
                   l->file.name, t->name, (long long)(l->data + t->begin + begin),
                   (long long)(l->data + t->begin + end), GR_CHECKSUM_DIGITS, found, GR_CHECKSUM_DIGITS, expected,
                   GR_CHECKSUM_OF_TENSORS, GR_CHECKSUM_OF_HEADER);
}

/* One array, whose blocks have these checksums, if there are some. */
static int32_t read_array(const struct loading *l, const struct gr_tensor *t, const char *checksums, char *to,
                          graft_error *error)
{
    const int64_t bytes = t->end - t->begin;
    uint32_t      crc = 0;
    int32_t       rc = GRAFT_OK;

    for (int64_t begin = 0, end; begin < bytes; begin = end) {
        const int64_t block = begin / GR_CHECKSUM_BLOCK;

        end = begin + READ_BYTES < bytes ? begin + READ_BYTES : bytes;
        GR_TRY(gr_file_read(&l->file, l->data + t->begin + begin, to + begin, end - begin, error));
        if (checksums == NULL) continue;
        crc = gr_crc(begin % GR_CHECKSUM_BLOCK == 0 ? 0 : crc, to + begin, (uint64_t)(end - begin));
        if (end % GR_CHECKSUM_BLOCK == 0 || end == bytes)
            GR_TRY(
                check_block(l, t, block * GR_CHECKSUM_BLOCK, end, crc, checksums + GR_CHECKSUM_DIGITS * block, error));
    }
done:
    return rc;
}

/* All arrays, in the order of the file. */
static int32_t read_arrays(struct loading *l, graft_error *error)
{
    const struct gr_tensors *header = &l->model->header;
    const char              *checksums = gr_tensors_value(header, GR_CHECKSUM_OF_TENSORS);
    graft_state_item         item = { .size = sizeof item };
    graft_error              reason = { .size = sizeof reason };
    int32_t                  rc = GRAFT_OK;

    for (int32_t i = 0; i < header->n_tensors; i++) {
        const struct gr_tensor *t = &header->tensors[i];
        const char             *mine = NULL;

        if (checksums != NULL) mine = checksums + gr_checksum_place(header->tensors, header->n_tensors, t->name);
        GR_TRY(read_array(l, t, mine, array_of(l->model, t->name, &item), error));
        if (gr_state_check(&l->model->model, &item, &reason) < 0)
            return gr_fail(error, GRAFT_ERR_FORMAT, "'%s', from byte %lld on: %s", l->file.name,
                           (long long)(l->data + t->begin), reason.message);
    }
    if (checksums == NULL)
        gr_log(l->context, GRAFT_LOG_WARNING, "'%s' has no checksums: damage of its weights is not noticed",
               l->file.name);
done:
    return rc;
}

static int32_t share_arrays(const struct loading *l, graft_error *error)
{
    const struct gr_state state = gr_snapshot_state(l->model);
    graft_state_item      item = { .size = sizeof item };
    graft_error           end = { .size = sizeof end };
    int32_t               rc = GRAFT_OK;

    for (int32_t i = 0; gr_state_item(&state, i, &item, &end) == GRAFT_OK; i++)
        GR_TRY(gr_comm_broadcast(l->comm, 0, (void *)(uintptr_t)item.data, (uint64_t)gr_state_bytes(&item), error));
done:
    return rc;
}

static int32_t load_file(graft_context *context, struct gr_comm *comm, const char *path, graft_model **model,
                         graft_error *error)
{
    struct loading    l = { .context = context, .comm = comm, .file = { .fd = -1 } };
    struct gr_tensors header = { 0 };
    int32_t           rc = GRAFT_OK;

    GR_TRY(share_header(&l, path, &header, error));
    GR_TRY(gr_comm_agree(comm, describe_loaded(&l, &header, error), error));
    if (comm->rank == 0) rc = read_arrays(&l, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(share_arrays(&l, error));
    /* What is kept of the header are the texts. */
    gr_free(context, l.model->header.tensors);
    l.model->header.tensors = NULL;
    l.model->header.n_tensors = 0;
    *model = l.model;
    l.model = NULL;
done:
    gr_file_close(&l.file);
    gr_tensors_fini(&header);
    gr_snapshot_destroy(l.model);
    return rc;
}

/* After a failure that the file is the reason for, say whether the one before it can be used. All ranks take part. */
static int32_t tell_of_previous(graft_context *context, struct gr_comm *comm, const char *path, int32_t rc,
                                graft_error *error)
{
    graft_error  reason = { .size = sizeof reason };
    graft_model *model = NULL;
    char         previous[PATH_MAX] = "", shown[GR_FILE_NAME];
    const char  *verdict = "there, and could not be checked";
    int32_t      then;
    size_t       length;

    if (rc != GRAFT_ERR_FORMAT && rc != GRAFT_ERR_NOT_FOUND && rc != GRAFT_ERR_IO) return rc;
    if (path != NULL) snprintf(previous, sizeof previous, "%s" GR_SNAPSHOT_PREVIOUS, path);
    then = load_file(context, comm, previous, &model, &reason);
    gr_snapshot_destroy(model);
    if (then == GRAFT_ERR_PEER || then == GRAFT_ERR_CANCELLED) {
        *error = reason;
        return then;
    }
    if (then == GRAFT_ERR_NOT_FOUND) return rc;
    gr_file_show_path(shown, path != NULL ? path : "");
    if (then == GRAFT_ERR_FORMAT || then == GRAFT_ERR_IO) verdict = "not good either";
    length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length, "; '%s" GR_SNAPSHOT_PREVIOUS "' is %s", shown,
             then == GRAFT_OK ? "good" : verdict);
    return rc;
}

int32_t gr_snapshot_load(graft_context *context, const graft_transport *transport, const char *path,
                         graft_model **model, graft_error *error)
{
    struct gr_comm *comm = NULL;
    graft_model    *made = NULL;
    int32_t         rc = GRAFT_OK;

    GR_TRY(gr_comm_create(context, transport, context->options.halo.timeout, &comm, error));
    if (model == NULL) rc = gr_fail(error, GRAFT_ERR_ARG, "model is null");
    else if (path == NULL && comm->rank == 0) rc = gr_fail(error, GRAFT_ERR_ARG, "path is null");
    GR_TRY(gr_comm_agree(comm, rc, error));
    rc = load_file(context, comm, path, &made, error);
    GR_TRY(tell_of_previous(context, comm, path, rc, error));
    *model = made;
done:
    gr_comm_destroy(comm);
    return rc;
}
