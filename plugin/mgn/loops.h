/* Passes over rows of floats or of doubles, except products: one table for each type and instruction set. All arrays
 * are without gaps between rows of `width` elements, and of one type.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MGN_LOOPS_H
#define GR_MGN_LOOPS_H

#include "base/processor.h"
#include "mgn/mgn.h"

/** The end of an MLP: norm(z + bias), LayerNorm of PyTorch (eps 1e-5) or, if gain is NULL, z + bias. */
struct gr_mgn_norm {
    int64_t     n, width;
    void       *z;
    const void *bias, *gain, *shift;
};

/** The values summed at the targets of edges, see graft_network.h. */
struct gr_mgn_sums {
    enum gr_mgn_sum sum;
    const int32_t  *target; /* [n] rises */
    const int32_t  *ranks;  /* [n] number of ranks that have each edge, whose weight is 1 / ranks; NULL: one */
};

struct gr_mgn_loops {
    /** z[r] = a[from[r]] + b[to[r]] */
    void (*gather)(int64_t n, int64_t width, const void *a, const int32_t *from, const void *b, const int32_t *to,
                   void *z);
    /** z = activation(z + bias) */
    void (*activate)(int64_t n, int64_t width, const void *bias, int is_elu, void *z);
    /** out = base + norm(z), base NULL: 0. Overwrites z. out may be base. */
    void (*end)(const struct gr_mgn_norm *norm, const void *base, void *out);
    /** With u = norm(z): next = e + u unless next is NULL, and m[target] += weight times the summed value. next may be
     *  e. Overwrites z. */
    void (*end_edges)(const struct gr_mgn_norm *norm, const struct gr_mgn_sums *sums, const void *e, void *next,
                      void *m);

    /** z becomes the normalised z + bias; rstd[n] receives 1 / deviation. */
    void (*normalise)(const struct gr_mgn_norm *norm, void *rstd);
    /** Turn g from the gradient of norm(z) into the gradient of z + bias, for z and rstd of normalise(); add to the
     *  gradients of bias, gain and shift. Without norm z, rstd, gain and shift are NULL. */
    void (*end_back)(const struct gr_mgn_norm *norm, const void *rstd, void *g, void *bias, void *gain, void *shift);
    /** Turn g from the gradient of a = activation(z) into the gradient of z, and add it to the gradient of bias. */
    void (*activate_back)(int64_t n, int64_t width, const void *a, int is_elu, void *g, void *bias);
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

/** The table of a type for the processor. */
const struct gr_mgn_loops *gr_mgn_loops_for(graft_dtype dtype);

struct gr_mgn_loops_of_types {
    struct gr_mgn_loops f32, f64;
};
extern const struct gr_mgn_loops_of_types gr_mgn_loops_generic, gr_mgn_loops_avx2, gr_mgn_loops_avx512,
    gr_mgn_loops_sve256, gr_mgn_loops_sve512;

#endif
