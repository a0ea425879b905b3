/* Reads .npy files: versions 1 to 3, little-endian, C order.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/file.h"
#include "graft_matrix.h"

enum { GR_NPY_DIMS = 4, GR_NPY_FORMS = 4 };

/** The contents of the header of an .npy file. */
struct gr_npy {
    graft_dtype dtype;
    int32_t     item_bytes;
    int32_t     n_dims;
    int32_t     reserved;
    int64_t     shape[GR_NPY_DIMS];
    int64_t     count;  /* product of the lengths in `shape` */
    int64_t     offset; /* offset of the first element in the file */
};

/** The legal types and shapes of a file, and a text for error messages that describes them. */
struct gr_npy_form {
    const char *text;
    graft_dtype dtype[GR_NPY_FORMS]; /* types; 0 after the last */
    int32_t     n_dims[GR_NPY_FORMS];
};

/** Read and check the header. \return OK; ERR_FORMAT (also if the file is shorter or longer than type and shape
 *  require); ERR_IO */
int32_t gr_io_npy_begin(const struct gr_file *file, const struct gr_npy_form *form, struct gr_npy *npy,
                        graft_error *error);

/** Read elements first .. first + count - 1. \return OK; ERR_IO */
int32_t gr_io_npy_read(const struct gr_file *file, const struct gr_npy *npy, int64_t first, int64_t count, void *to,
                       graft_error *error);
