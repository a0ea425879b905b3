/* Passes over rows of edges and nodes, of floats or of doubles: one table for each type and instruction set. All arrays
 * are of one type, and their rows of `width` elements follow each other without gaps.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "mgn/mgn.h"
#include "nn/mlp_loops.h"

/** How values are summed at the targets of edges, see graft_network.h. */
struct gr_mgn_sums {
    enum gr_mgn_sum sum;
    const int32_t  *target; /* [n] target of each edge, ascending */
    const int32_t  *ranks;  /* [n] number of ranks that have each edge, whose weight is 1 / ranks; NULL: 1 */
};

struct gr_mgn_loops {
    /** z[r] = a[from[r]] + b[to[r]] */
    void (*gather)(int64_t n, int64_t width, const void *a, const int32_t *from, const void *b, const int32_t *to,
                   void *z);
    /** Compute u = norm(z + bias); next = e + u unless next is NULL; and m[target] += weight times the summed value,
     *  which is u, e + u or e. next may be e. Overwrites z. */
    void (*end_edges)(const struct gr_nn_norm *norm, const struct gr_mgn_sums *sums, const void *e, void *next,
                      void *m);

    /** Compute u, the gradient of u in end_edges(), and add to `e`, the gradient of e, what is due to the summed value.
     *  gradient_m is the gradient of m. With is_carried `e` is the gradient of `next` before the call. */
    void (*end_edges_back)(int64_t n, int64_t width, const struct gr_mgn_sums *sums, const void *gradient_m,
                           int is_carried, void *e, void *u);
    /** out[to[r]] += x[r] */
    void (*scatter)(int64_t n, int64_t width, const void *x, const int32_t *to, void *out);
    /** out[v] = the sum of x[edge[k]] for k from ptr[v] to ptr[v + 1] - 1, for v from begin to end - 1. */
    void (*collect)(int64_t begin, int64_t end, int64_t width, const int32_t *ptr, const int32_t *edge, const void *x,
                    void *out);
    /** out += x, for n elements. */
    void (*add)(int64_t n, const void *x, void *out);
    /** Add to row node[i] of x its copies in `halo`, for shared nodes i from begin to end - 1. Terms, including the row
     *  itself, are summed in the order of ranks. */
    void (*add_copies)(const struct gr_mesh_copies *copies, int64_t begin, int64_t end, int64_t width, const void *halo,
                       void *x);
};

/** The tables of each instruction set: [0] for floats, [1] for doubles. */
extern const struct gr_mgn_loops gr_mgn_loops_generic[2], gr_mgn_loops_avx2[2], gr_mgn_loops_avx512[2],
    gr_mgn_loops_sve256[2], gr_mgn_loops_sve512[2];
