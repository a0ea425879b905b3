/* Sizes of the element types of the contract.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_matrix.h"

/** Bytes of an element; 0 for type 0, the value type of a matrix without values. */
static inline int64_t gr_dtype_bytes(graft_dtype dtype)
{
    switch (dtype) {
    case 0: return 0;
    case GRAFT_U8: return 1;
    case GRAFT_BF16:
    case GRAFT_F16: return 2;
    case GRAFT_F32:
    case GRAFT_I32: return 4;
    default: return 8;
    }
}
