/* An MLP over a block of rows, which stay in the caches of a processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/inside.h"

struct gr_mgn_matrix gr_mlp_matrix(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t i, const void *weights)
{
    const int64_t in = i == 0 ? mlp->in : mlp->width;

    return (struct gr_mgn_matrix){ gr_mgn_at(g, weights, mlp->weight[i]), in,
                                   i == mlp->linear - 1 ? mlp->out : mlp->width, in };
}

struct gr_mgn_matrix gr_mlp_first(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t column, int64_t in,
                                  const void *weights)
{
    return (struct gr_mgn_matrix){ gr_mgn_at(g, weights, mlp->weight[0] + column), mlp->in,
                                   mlp->linear == 1 ? mlp->out : mlp->width, in };
}

void gr_mlp_use_rows(struct gr_mgn *g, int keeps_all)
{
    for (int t = 0; t < g->n_threads; t++) {
        struct gr_mgn_thread *thread = &g->thread[t];

        for (int64_t i = 0; i < g->shape->options.linear; i++)
            thread->rows[i] = gr_mgn_at(g, thread->block, (keeps_all ? i : i % 2) * GR_MGN_ROWS * g->row_elements);
    }
}

void *gr_mlp_forward(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n)
{
    struct gr_mgn_thread *t = &g->thread[thread];

    for (int64_t i = 0; i + 1 < mlp->linear; i++) {
        g->loops->activate(n, mlp->width, gr_mgn_at(g, g->weights, mlp->bias[i]), g->shape->options.is_elu, t->rows[i]);
        gr_mgn_multiply(g, thread, gr_mlp_matrix(g, mlp, i + 1, g->weights), n, t->rows[i], 0, t->rows[i + 1]);
    }
    return t->rows[mlp->linear - 1];
}

struct gr_mgn_norm gr_mlp_norm(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t n, void *z)
{
    struct gr_mgn_norm norm = {
        .n = n, .width = mlp->out, .z = z, .bias = gr_mgn_at(g, g->weights, mlp->bias[mlp->linear - 1])
    };

    if (!mlp->has_norm) return norm;
    norm.gain = gr_mgn_at(g, g->weights, mlp->gain);
    norm.shift = gr_mgn_at(g, g->weights, mlp->shift);
    return norm;
}
