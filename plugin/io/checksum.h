/* The checksums in the metadata of a model file; graft_model.h describes them.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "io/safetensors.h"

#define GR_CHECKSUM_OF_TENSORS "crc32c"
#define GR_CHECKSUM_OF_HEADER "crc32c.header"

/** The number of hexadecimal digits of a checksum, and the number of bytes of a tensor's blocks, each of which has a
 *  checksum. */
enum { GR_CHECKSUM_DIGITS = 8, GR_CHECKSUM_BLOCK = 1 << 20 };

/** Where the digits of a tensor begin in the text of all checksums, which are ordered by the names of tensors (strcmp).
 *  With name NULL, the length of this text. */
int64_t gr_io_checksum_place(const struct gr_tensor *tensors, int32_t count, const char *name);
void    gr_io_checksum_write(char digits[GR_CHECKSUM_DIGITS], uint32_t crc);

/** Compute the checksum of a header: of all texts except GR_CHECKSUM_OF_HEADER, and of names, types and shapes, in any
 *  order. */
uint32_t gr_io_checksum_header(const struct gr_tensor *tensors, int32_t n_tensors, const struct gr_tensor_pair *pairs,
                               int32_t n_pairs);

/** Check that a header either has no checksums, or has both and agrees with its own. \return OK; ERR_FORMAT. */
int32_t gr_io_checksum_check(const struct gr_tensors *header, const char *shown, graft_error *error);
