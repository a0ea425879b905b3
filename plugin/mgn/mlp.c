/* An MLP over a block of rows, which stay in the caches of a processor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/inside.h"

#include <string.h>

struct gr_mgn_matrix gr_mlp_matrix(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t i, const void *weights)
{
    const int64_t in = i == 0 ? mlp->in : mlp->width;

    return (struct gr_mgn_matrix){ gr_mgn_at(g, weights, mlp->weight[i]), in,
                                   i == mlp->linear - 1 ? mlp->out : mlp->width, in };
}

int64_t gr_mlp_first_out(const struct gr_mlp *mlp)
{
    return mlp->linear == 1 ? mlp->out : mlp->width;
}

struct gr_mgn_matrix gr_mlp_first(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t column, int64_t in,
                                  const void *weights)
{
    return (struct gr_mgn_matrix){ gr_mgn_at(g, weights, mlp->weight[0] + column), mlp->in, gr_mlp_first_out(mlp), in };
}

void gr_mlp_use_rows(struct gr_mgn *g, int thread, int keeps_all)
{
    struct gr_mgn_thread *t = &g->thread[thread];

    for (int64_t i = 0; i < g->shape->options.linear; i++)
        t->rows[i] =
            gr_mgn_at(g, keeps_all ? t->kept_block : t->block, (keeps_all ? i : i % 2) * GR_MGN_ROWS * g->row_elements);
}

void gr_mlp_use_products(struct gr_mgn *g, int thread, int64_t l, int64_t begin)
{
    const int64_t linear = g->shape->options.linear;

    for (int64_t i = 0; i < linear; i++)
        g->thread[thread].rows[i] = gr_mgn_row(g, g->products, (l * linear + i) * g->mesh->n_edges + begin);
}

/* Activations, and products of layers 1 to end - 1. */
static void apply_layers(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n, int64_t end)
{
    struct gr_mgn_thread *t = &g->thread[thread];

    for (int64_t i = 0; i + 1 < mlp->linear; i++) {
        g->loops->activate(n, mlp->width, gr_mgn_at(g, g->weights, mlp->bias[i]), g->shape->options.is_elu, t->rows[i]);
        if (i + 1 < end)
            gr_mgn_multiply(g, thread, gr_mlp_matrix(g, mlp, i + 1, g->weights), n, t->rows[i], 0, t->rows[i + 1]);
    }
}

void *gr_mlp_forward(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n)
{
    apply_layers(g, thread, mlp, n, mlp->linear);
    return g->thread[thread].rows[mlp->linear - 1];
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

struct gr_mlp gr_mlp_alone(const struct gr_mlp *mlp)
{
    const int64_t begin = mlp->weight[0];
    struct gr_mlp alone = *mlp;

    for (int64_t i = 0; i < mlp->linear; i++) {
        alone.weight[i] -= begin;
        alone.bias[i] -= begin;
    }
    if (!mlp->has_norm) return alone;
    alone.gain -= begin;
    alone.shift -= begin;
    return alone;
}

/* From u, the gradient of the result, to the gradient of the last product with its bias. */
static void pass_end_back(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n, void *u, void *gradient)
{
    const struct gr_mlp   alone = gr_mlp_alone(mlp);
    const int64_t         last = mlp->linear - 1;
    struct gr_mgn_thread *t = &g->thread[thread];
    struct gr_mgn_norm    norm = gr_mlp_norm(g, mlp, n, t->rows[last]);

    if (mlp->has_norm) g->loops->normalise(&norm, t->rstd);
    g->loops->end_back(&norm, t->rstd, u, gr_mgn_at(g, gradient, alone.bias[last]), gr_mgn_at(g, gradient, alone.gain),
                       gr_mgn_at(g, gradient, alone.shift));
}

void *gr_mlp_backward(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n, int has_all, void *u,
                      void *gradient, void *first)
{
    const struct gr_mlp   alone = gr_mlp_alone(mlp);
    struct gr_mgn_thread *t = &g->thread[thread];

    if (!has_all) apply_layers(g, thread, mlp, n, mlp->has_norm ? mlp->linear : mlp->linear - 1);
    pass_end_back(g, thread, mlp, n, u, gradient);
    for (int64_t i = mlp->linear - 1; i > 0; i--) {
        void *before = i == 1 && first != NULL ? first : t->back[u == t->back[0]];

        gr_mgn_multiply_weights(g, thread, gr_mlp_matrix(g, &alone, i, gradient), n, t->rows[i - 1], u);
        gr_mgn_multiply_back(g, thread, gr_mlp_matrix(g, mlp, i, g->weights), n, u, 0, before);
        u = before;
        g->loops->activate_back(n, mlp->width, t->rows[i - 1], g->shape->options.is_elu, u,
                                gr_mgn_at(g, gradient, alone.bias[i - 1]));
    }
    if (mlp->linear == 1 && first != NULL) u = memcpy(first, u, (uint64_t)(n * mlp->out * g->element));
    return u;
}
