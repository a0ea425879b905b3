/* Passes over rows of edges and nodes, of floats or of doubles: one table for each type and instruction set. All arrays
 * are without gaps between rows of `width` elements, and of one type.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "mgn/mgn.h"
#include "nn/mlp_loops.h"

/** The values summed at the targets of edges, see graft_network.h. */
struct gr_mgn_sums {
    enum gr_mgn_sum sum;
    const int32_t  *target; /* [n] ascending */
    const int32_t  *ranks;  /* [n] number of ranks that have each edge, whose weight is 1 / ranks; NULL: one */
};

struct gr_mgn_loops {
    /** z[r] = a[from[r]] + b[to[r]] */
    void (*gather)(int64_t n, int64_t width, const void *a, const int32_t *from, const void *b, const int32_t *to,
                   void *z);
    /** With u = norm(z): next = e + u unless next is NULL, and m[target] += weight times the summed value. next may be
     *  e. Overwrites z. */
    void (*end_edges)(const struct gr_nn_norm *norm, const struct gr_mgn_sums *sums, const void *e, void *next,
                      void *m);

    /** With gm = weight gradient_m[target]: u receives the gradient of norm(z). The gradient of e is added to `e`,
     *  which has the gradient of next before if is_carried. */
    void (*end_edges_back)(int64_t n, int64_t width, const struct gr_mgn_sums *sums, const void *gradient_m,
                           int is_carried, void *e, void *u);
    /** out[to[r]] += x[r] */
    void (*scatter)(int64_t n, int64_t width, const void *x, const int32_t *to, void *out);
    /** out[v] = the sum of x[edge[k]] for k from ptr[v] to ptr[v + 1] - 1, for v from begin to end - 1. */
    void (*collect)(int64_t begin, int64_t end, int64_t width, const int32_t *ptr, const int32_t *edge, const void *x,
                    void *out);
    /** out += x, of n elements. */
    void (*add)(int64_t n, const void *x, void *out);
    /** Row node[i] of x becomes the sum of its copies in `halo` and itself in the order of ranks, for copies i from
     *  begin to end - 1. */
    void (*add_copies)(const struct gr_mesh_copies *copies, int64_t begin, int64_t end, int64_t width, const void *halo,
                       void *x);
};

/** The tables of an instruction set: of floats and of doubles. */
extern const struct gr_mgn_loops gr_mgn_loops_generic[2], gr_mgn_loops_avx2[2], gr_mgn_loops_avx512[2],
    gr_mgn_loops_sve256[2], gr_mgn_loops_sve512[2];
