/* The safetensors format: 8 bytes with the length of a header, little-endian; the header, a JSON object; then the data
 * of the tensors, without gaps. The header maps the name of each tensor to its type, its shape and its byte range in
 * the data, and "__metadata__" to an object of texts. https://github.com/huggingface/safetensors
 *
 * gr_io_tensor_file_write() and the packages of the format write the compact form of a header: no spaces except at the
 * end, to pad the length to a multiple of 8; no unnecessary escapes; short escapes where they exist (\n), and small
 * letters in other escapes (\u001f). The entries have any order.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"

enum { GR_TENSOR_DIMS = 4, GR_TENSORS_MAX = 2048, GR_TENSOR_PAIRS_MAX = 256, GR_TENSOR_PREFIX = 8 };

struct gr_tensor {
    const char *name;
    graft_dtype dtype; /* type: GRAFT_F32, GRAFT_F64 or GRAFT_I64 */
    int32_t     n_dims;
    int64_t     shape[GR_TENSOR_DIMS];
    int64_t     begin, end; /* range of bytes in the data */
    int64_t     at;         /* byte of the file at which the header has its name, for error messages */
};

struct gr_tensor_pair {
    const char *key, *value;
};

/** A parsed header. A zeroed struct is an empty header. */
struct gr_tensors {
    graft_context         *context;
    char                  *text; /* text of the header, to which names, keys and values point */
    int64_t                header_bytes, data_bytes;
    struct gr_tensor      *tensors; /* tensors in the order of their data */
    int32_t                n_tensors;
    struct gr_tensor_pair *pairs; /* pairs of the metadata */
    int32_t                n_pairs;
    int64_t not_canonical; /* byte of the file at which the header first differs from canonical JSON; 0: nowhere */
};

/** Read the length of the header from the first bytes of a file with `file_bytes`. `shown` is the name of the file in
 *  error messages. \return OK; ERR_FORMAT. */
int32_t gr_io_tensors_prefix(const unsigned char prefix[GR_TENSOR_PREFIX], int64_t file_bytes, const char *shown,
                             int64_t *header_bytes, graft_error *error);

/** Parse a header. The caller has set tensors->context, text (which is changed), header_bytes and data_bytes. Checked
 *  is all that does not depend on the use of the tensors: that the header is JSON of this form, that no key of the
 *  metadata is repeated, that types and shapes agree with byte ranges, and that these fill the data without gap or
 *  overlap.
 *  \return OK; ERR_FORMAT (with the byte of the file); ERR_NOMEM. */
int32_t gr_io_tensors_parse(struct gr_tensors *tensors, const char *shown, graft_error *error);
void    gr_io_tensors_fini(struct gr_tensors *tensors);

/** Find the value of a key in the metadata; NULL: there is none. */
const char             *gr_io_tensors_value(const struct gr_tensors *tensors, const char *key);
const struct gr_tensor *gr_io_tensors_find(const struct gr_tensors *tensors, const char *name);

/** The name of a type in a header, and its bytes. NULL or 0: files of this kind do not have the type. */
const char *gr_io_tensor_type_name(graft_dtype dtype);
int64_t     gr_io_tensor_type_bytes(graft_dtype dtype);
