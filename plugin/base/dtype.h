/* Sizes of the element types of the contract.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_DTYPE_H
#define GR_BASE_DTYPE_H

#include "graft_matrix.h"

static inline int64_t gr_dtype_bytes(graft_dtype dtype)
{
    return dtype == GRAFT_U8 ? 1 : dtype == GRAFT_BF16 ? 2 : dtype == GRAFT_F32 || dtype == GRAFT_I32 ? 4 : 8;
}

#endif
