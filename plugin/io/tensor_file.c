/* Reads files of tensors with checksums, by one process alone, or by rank 0 for all. Rank 0 sends the header to all
 * ranks, so that all return the same.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/tensor_file.h"

#include "base/crc.h"
#include "io/checksum.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { READ_BYTES = 1 << 18 }; /* bytes read at once: still in a cache when their checksum is computed */
_Static_assert(GR_CHECKSUM_BLOCK % READ_BYTES == 0, "no part is of two blocks");

/* Read the length of the header. */
static int32_t read_prefix(const struct gr_file *file, int64_t *bytes, graft_error *error)
{
    unsigned char prefix[GR_TENSOR_PREFIX];

    if (file->size < (int64_t)sizeof prefix)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends at byte %lld, expected 8 bytes with the length of a header",
                       file->name, (long long)file->size);
    GR_TRY(gr_file_read(file, 0, prefix, sizeof prefix, error));
    return gr_io_tensors_prefix(prefix, file->size, file->name, bytes, error);
}

/* Parse the header, and check its checksum. */
static int32_t check_header(struct gr_tensor_file *f, graft_error *error)
{
    GR_TRY(gr_io_tensors_parse(&f->header, f->file.name, error));
    return gr_io_checksum_check(&f->header, f->file.name, error);
}

static int32_t read_header(struct gr_tensor_file *f, graft_error *error)
{
    struct gr_tensors *header = &f->header;

    header->context = f->context;
    GR_TRY(read_prefix(&f->file, &header->header_bytes, error));
    header->data_bytes = f->file.size - GR_TENSOR_PREFIX - header->header_bytes;
    GR_TRY(GR_NEW(f->context, header->text, header->header_bytes, error));
    GR_TRY(gr_file_read(&f->file, GR_TENSOR_PREFIX, header->text, header->header_bytes, error));
    return check_header(f, error);
}

/* Read the header on rank 0, and send its text to all ranks. */
static int32_t share_header(struct gr_tensor_file *f, const char *path, graft_error *error)
{
    struct gr_tensors *header = &f->header;
    const int          first = f->comm->rank == 0;
    char               shown[GR_FILE_NAME];
    int64_t            bytes[2] = { 0 };
    int32_t            rc = GRAFT_OK;

    memcpy(shown, f->file.name, sizeof shown);
    if (first) rc = gr_file_open(&f->file, AT_FDCWD, path, shown, error);
    if (first && rc == GRAFT_OK) rc = read_prefix(&f->file, &bytes[0], error);
    GR_TRY(gr_comm_agree(f->comm, rc, error));
    if (first) bytes[1] = f->file.size - GR_TENSOR_PREFIX - bytes[0];
    GR_TRY(gr_comm_broadcast(f->comm, 0, bytes, sizeof bytes, error));
    header->context = f->context;
    header->header_bytes = bytes[0];
    header->data_bytes = bytes[1];
    rc = GR_NEW(f->context, header->text, bytes[0], error);
    if (first && rc == GRAFT_OK) rc = gr_file_read(&f->file, GR_TENSOR_PREFIX, header->text, bytes[0], error);
    GR_TRY(gr_comm_agree(f->comm, rc, error));
    return gr_comm_broadcast(f->comm, 0, header->text, (uint64_t)bytes[0], error);
}

int32_t gr_io_tensor_file_open(graft_context *context, struct gr_comm *comm, const char *path,
                               struct gr_tensor_file *file, graft_error *error)
{
    char shown[GR_FILE_NAME];

    *file = (struct gr_tensor_file){ .context = context, .comm = comm, .file = { .fd = -1 } };
    gr_file_show_path(shown, path != NULL ? path : "");
    gr_file_show_path(file->file.name, shown);
    if (comm != NULL) {
        GR_TRY(share_header(file, path, error));
        GR_TRY(gr_comm_agree(comm, check_header(file, error), error));
    } else {
        GR_TRY(gr_file_open(&file->file, AT_FDCWD, path, shown, error));
        GR_TRY(read_header(file, error));
    }
    file->data = GR_TENSOR_PREFIX + file->header.header_bytes;
    return GRAFT_OK;
}

void gr_io_tensor_file_close(struct gr_tensor_file *file)
{
    gr_file_close(&file->file);
    gr_io_tensors_fini(&file->header);
}

static void shape_text(char text[64], const struct gr_tensor *t)
{
    int used = snprintf(text, 64, "%s [", gr_io_tensor_type_name(t->dtype));

    for (int32_t d = 0; d < t->n_dims && used < 56; d++)
        used += snprintf(text + used, 64 - (size_t)used, "%s%lld", d > 0 ? ", " : "", (long long)t->shape[d]);
    if (used < 63) snprintf(text + used, 64 - (size_t)used, "]");
}

int32_t gr_io_tensor_file_find(const struct gr_file *file, const struct gr_tensors *header,
                               const struct gr_tensor *expected, const char *why, const struct gr_tensor **found,
                               graft_error *error)
{
    const struct gr_tensor *t = *found = gr_io_tensors_find(header, expected->name);
    char                    is[64], should[64];

    shape_text(should, expected);
    if (t == NULL)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has no tensor '%.64s', expected %s: %s", file->name,
                       expected->name, should, why);
    if (t->dtype == expected->dtype && t->n_dims == expected->n_dims &&
        memcmp(t->shape, expected->shape, (size_t)t->n_dims * sizeof *t->shape) == 0)
        return GRAFT_OK;
    shape_text(is, t);
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': tensor '%.64s', at byte %lld of the header, is %s, expected %s: %s",
                   file->name, t->name, (long long)t->at, is, should, why);
}

/* Check the checksum of one block of a tensor. */
static int32_t check_block(const struct gr_file *file, int64_t data, const struct gr_tensor *t, int64_t begin,
                           int64_t end, uint32_t crc, const char *expected, graft_error *error)
{
    char found[GR_CHECKSUM_DIGITS];

    gr_io_checksum_write(found, crc);
    if (memcmp(found, expected, sizeof found) == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "'%s' is damaged: tensor '%.64s', from byte %lld to byte %lld, has CRC32C %.*s, in the metadata it "
                   "is %.*s; a program that writes other weights removes the keys '%s' and '%s'",
                   file->name, t->name, (long long)(data + t->begin + begin), (long long)(data + t->begin + end),
                   GR_CHECKSUM_DIGITS, found, GR_CHECKSUM_DIGITS, expected, GR_CHECKSUM_OF_TENSORS,
                   GR_CHECKSUM_OF_HEADER);
}

int32_t gr_io_tensor_file_read(const struct gr_file *file, const struct gr_tensors *header, int64_t data,
                               const struct gr_tensor *t, void *to, graft_error *error)
{
    const char   *checksums = gr_io_tensors_value(header, GR_CHECKSUM_OF_TENSORS);
    const int64_t bytes = t->end - t->begin;
    uint32_t      crc = 0;

    if (checksums != NULL) checksums += gr_io_checksum_place(header->tensors, header->n_tensors, t->name);
    for (int64_t begin = 0, end; begin < bytes; begin = end) {
        const int64_t block = begin / GR_CHECKSUM_BLOCK;
        char *const   here = (char *)to + begin;

        end = begin + READ_BYTES < bytes ? begin + READ_BYTES : bytes;
        GR_TRY(gr_file_read(file, data + t->begin + begin, here, end - begin, error));
        if (checksums == NULL) continue;
        crc = gr_crc(begin % GR_CHECKSUM_BLOCK == 0 ? 0 : crc, here, (uint64_t)(end - begin));
        if (end % GR_CHECKSUM_BLOCK == 0 || end == bytes)
            GR_TRY(check_block(file, data, t, block * GR_CHECKSUM_BLOCK, end, crc,
                               checksums + GR_CHECKSUM_DIGITS * block, error));
    }
    return GRAFT_OK;
}
