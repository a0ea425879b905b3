/* Passes of an MLP over rows of floats or of doubles, except products: one table for each type and instruction set. All
 * arrays are without gaps between rows of `width` elements, and of one type.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"

#include <stdint.h>

/** The end of an MLP for n rows: norm(z + bias), LayerNorm of PyTorch (eps 1e-5) or, if gain is NULL, z + bias. */
struct gr_nn_norm {
    int64_t     n, width;
    void       *z;
    const void *bias, *gain, *shift;
};

struct gr_mlp_loops {
    /** z = activation(z + bias) */
    void (*activate)(int64_t n, int64_t width, const void *bias, int is_elu, void *z);
    /** out = base + norm(z), base NULL: 0. Overwrites z. out may be base. */
    void (*end)(const struct gr_nn_norm *norm, const void *base, void *out);
    /** z becomes the normalised z + bias; rstd[n] receives 1 / deviation. */
    void (*normalise)(const struct gr_nn_norm *norm, void *rstd);
    /** Turn g from the gradient of norm(z) into the gradient of z + bias, for z and rstd of normalise(); add to the
     *  gradients of bias, gain and shift. Without norm z, rstd, gain and shift are NULL. */
    void (*end_back)(const struct gr_nn_norm *norm, const void *rstd, void *g, void *bias, void *gain, void *shift);
    /** Turn g from the gradient of a = activation(z) into the gradient of z, and add it to the gradient of bias. */
    void (*activate_back)(int64_t n, int64_t width, const void *a, int is_elu, void *g, void *bias);
};

/** The tables of an instruction set: of floats and of doubles. */
extern const struct gr_mlp_loops gr_mlp_loops_generic[2], gr_mlp_loops_avx2[2], gr_mlp_loops_avx512[2],
    gr_mlp_loops_sve256[2], gr_mlp_loops_sve512[2];
