/* Tells which semirings are sums and which are maxima; the others are minima.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_matrix.h"

static inline int gr_semiring_is_sum(graft_semiring semiring)
{
    return semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_PLUS_SECOND;
}

static inline int gr_semiring_is_max(graft_semiring semiring)
{
    return semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MAX_SECOND;
}
