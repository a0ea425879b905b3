/* Whether a mask allows an element of C.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_matrix.h"

static inline int gr_mask_allows(const graft_mask *mask, int64_t row, int64_t column)
{
    int allowed;

    if (mask == NULL) return 1;
    if (mask->kind == GRAFT_MASK_ROWS) {
        allowed = mask->present[row >> 3] >> (row & 7) & 1;
    } else if (mask->kind == GRAFT_MASK_BITS) {
        allowed = mask->present[row * mask->stride + (column >> 3)] >> (column & 7) & 1;
    } else {
        const int64_t at = row * mask->stride + column;

        allowed = mask->present == NULL || mask->present[at] != 0;
        if (!(mask->flags & GRAFT_MASK_STRUCTURE)) allowed = allowed && (mask->values == NULL || mask->values[at] != 0);
    }
    return allowed != ((mask->flags & GRAFT_MASK_COMPLEMENT) != 0);
}
