/* Passes of an MLP over rows of floats or of doubles, except products: one table for each type and instruction set. All
 * arrays are of one type, and their rows of `width` elements follow each other without gaps.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"

#include <stdint.h>

/** The end of an MLP for n rows: norm(z + bias) with PyTorch's LayerNorm (eps 1e-5); without norm if gain is NULL. */
struct gr_nn_norm {
    int64_t     n, width;
    void       *z;
    const void *bias, *gain, *shift;
};

struct gr_mlp_loops {
    /** z = activation(z + bias) */
    void (*activate)(int64_t n, int64_t width, const void *bias, int is_elu, void *z);
    /** out = base + norm(z + bias); base NULL: 0. Overwrites z. out may be base. */
    void (*end)(const struct gr_nn_norm *norm, const void *base, void *out);
    /** Replace z by the normalised z + bias; write 1 / deviation of each row to rstd[n]. */
    void (*normalise)(const struct gr_nn_norm *norm, void *rstd);
    /** Replace g, the gradient of norm(z + bias), by that of z, with z and rstd from normalise(); add to the gradients
     *  of bias, gain and shift. Without norm z, rstd, gain and shift are not used. */
    void (*end_back)(const struct gr_nn_norm *norm, const void *rstd, void *g, void *bias, void *gain, void *shift);
    /** Replace g, the gradient of a = activation(z), by that of z, and add it to the gradient of bias. */
    void (*activate_back)(int64_t n, int64_t width, const void *a, int is_elu, void *g, void *bias);
};

/** The tables of each instruction set: [0] for floats, [1] for doubles. */
extern const struct gr_mlp_loops gr_mlp_loops_generic[2], gr_mlp_loops_avx2[2], gr_mlp_loops_avx512[2],
    gr_mlp_loops_sve256[2], gr_mlp_loops_sve512[2];
