/* Orders of the vertices, in which neighbours lie closer to one another.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_GRAPH_ORDER_H
#define GR_GRAPH_ORDER_H

#include "base/option.h"
#include "graph/csr.h"

extern const char *const gr_order_names[];

/** Fill order[n]: order[i] is the vertex that comes at place i. The matrix is square; only its rows are followed, so it
 *  should be symmetric. method is
 *
 *      degree     by falling number of entries, so that what is read most lies together
 *      rcm        reverse Cuthill-McKee (1969): breadth first, which makes the matrix a band
 *      community  vertices that label propagation (Raghavan et al. 2007) puts together, the larger groups first
 *
 *  Deterministic. ERR_NOMEM. O(n + entries) time, gr_order_bytes() while it works. */
int32_t gr_order_compute(const graft_context *context, const graft_csr *csr, enum gr_order method, int64_t *order,
                         graft_error *error);

/** The method that has this name. \return OK; ERR_OPTION: none has, or it is "given". */
int32_t gr_order_find(const char *name, enum gr_order *method, graft_error *error);

int64_t gr_order_bytes(int64_t n);

/** P A P^T: place i gets the row of order[i], with its entries in the order they had, and columns by place.
 *  ERR_ARG if `order` is no permutation. */
int32_t gr_order_apply(const graft_context *context, const graft_csr *csr, const int64_t *order,
                       struct gr_csr *permuted, graft_error *error);

#endif
