/* Orders of the vertices that place neighbours close to each other.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"
#include "graph/csr.h"

/* clang-format off */
#define GR_ORDER_LIST(X)                                                                                               \
    X(GR_ORDER_GIVEN, "given")                                                                                         \
    X(GR_ORDER_DEGREE, "degree")                                                                                       \
    X(GR_ORDER_RCM, "rcm")                                                                                             \
    X(GR_ORDER_COMMUNITY, "community")
/* clang-format on */
enum gr_order { GR_ORDER_LIST(GR_CHOICE_CONSTANT) };

extern const char *const gr_order_names[];

/** Fill order[n]: order[i] is the vertex at position i. The matrix is square; the methods follow rows only, so it
 *  should be symmetric. `method` is
 *
 *      degree     by descending degree, so that the rows read most are adjacent
 *      rcm        reverse Cuthill-McKee (1969): breadth first, which gives a banded matrix
 *      community  by label propagation (Raghavan et al. 2007), larger communities first
 *
 *  Deterministic. O(n + entries) time, gr_csr_order_bytes() of memory. \return OK; ERR_NOMEM */
int32_t gr_csr_order_compute(const graft_context *context, const graft_csr *csr, enum gr_order method, int64_t *order,
                             graft_error *error);

/** Find the method with this name. \return OK; ERR_OPTION (no method, or "given"). */
int32_t gr_csr_order_find(const char *name, enum gr_order *method, graft_error *error);

int64_t gr_csr_order_bytes(int64_t n);

/** Compute P A P^T: row i is row order[i] of A, with its entries in the same order and columns renumbered. \return OK;
 *  ERR_ARG (`order` is no permutation); ERR_NOMEM */
int32_t gr_csr_order_apply(const graft_context *context, const graft_csr *csr, const int64_t *order,
                           struct gr_csr *permuted, graft_error *error);
