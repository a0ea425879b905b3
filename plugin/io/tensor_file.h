/* Files of tensors with checksums. They are written so that they appear complete or not at all, and read by one process
 * alone, or by rank 0 for all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/file.h"
#include "base/output.h"
#include "comm/collective.h"
#include "io/safetensors.h"

/** A tensor to write. */
struct gr_tensor_data {
    const char        *name;
    graft_dtype        dtype;
    int32_t            n_dims;
    int64_t            shape[GR_TENSOR_DIMS];
    const void        *data;
    const void *const *slices; /* [shape[0]] address of each slice of the first dimension; NULL: see `data` */
};

/** Write tensors and the pairs of the metadata, with the checksums of both. Then the caller calls gr_output_end(), or
 *  gr_output_abort(), also after a failure. \return OK; ERR_IO; ERR_UNSUPPORTED (too many tensors); ERR_NOMEM. */
int32_t gr_io_tensor_file_write(const graft_context *context, const struct gr_tensor_data *data, int32_t n_data,
                                const struct gr_tensor_pair *pairs, int32_t n_pairs, const char *path,
                                struct gr_output *output, graft_error *error);

/** A file that is being read. A zeroed struct with fd = -1 has no file. */
struct gr_tensor_file {
    graft_context    *context;
    struct gr_comm   *comm; /* ranks for which rank 0 reads; NULL: this process reads alone */
    struct gr_file    file; /* open on rank 0; all ranks have its name */
    struct gr_tensors header;
    int64_t           data; /* offset of the data in the file */
};

/** Open a file, and parse and check its header. With a comm rank 0 reads for all. Always call
 *  gr_io_tensor_file_close(), also after a failure. \return OK; ERR_NOT_FOUND; ERR_IO; ERR_FORMAT; ERR_NOMEM; ERR_PEER:
 *  the same on all ranks. */
int32_t gr_io_tensor_file_open(graft_context *context, struct gr_comm *comm, const char *path,
                               struct gr_tensor_file *file, graft_error *error);
void    gr_io_tensor_file_close(struct gr_tensor_file *file);

/** Find the tensor with the name of `expected`, and check that it has its type and shape. `why` ends the sentence of
 *  the error.
 *  \return OK; ERR_FORMAT. */
int32_t gr_io_tensor_file_find(const struct gr_file *file, const struct gr_tensors *header,
                               const struct gr_tensor *expected, const char *why, const struct gr_tensor **found,
                               graft_error *error);

/** Read a tensor on the rank with the open file, and compare it with its checksums, if the file has any. `data` is the
 *  offset of the data in the file. \return OK; ERR_IO; ERR_FORMAT. */
int32_t gr_io_tensor_file_read(const struct gr_file *file, const struct gr_tensors *header, int64_t data,
                               const struct gr_tensor *tensor, void *to, graft_error *error);
