/* Buffers of threads, and an MLP over a block of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/blocks.h"

#include <string.h>

static int32_t new_rows(const struct gr_nn_blocks *b, struct gr_pool *pool, char **rows, int64_t n, int64_t elements,
                        graft_error *error)
{
    *rows = gr_pool_new(b->context, pool, n * elements, (uint64_t)b->element, "rows of a block", error);
    return *rows != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
}

int32_t gr_nn_blocks_init(struct gr_nn_blocks *b, graft_context *context, graft_dtype dtype,
                          const struct gr_nn_form *form, struct gr_pool *pool, graft_error *error)
{
    b->context = context;
    b->dtype = dtype;
    b->element = gr_nn_bytes(dtype);
    b->loops = &GR_FOR_ISA(gr_mlp_loops, gr_processor_isa())[dtype == GRAFT_F64];
    b->form = *form;
    b->n_threads = gr_context_threads(context, 0);
    atomic_flag_clear(&b->lock);
    GR_TRY(GR_POOL_NEW(context, pool, b->thread, b->n_threads, error));
    for (int t = 0; t < b->n_threads; t++) {
        GR_TRY(new_rows(b, pool, &b->thread[t].block, 2 * GR_MGN_ROWS, form->widest, error));
        gr_nn_use_rows(b, t, 0);
        for (int i = 0; i < 2 && form->is_whole; i++)
            GR_TRY(new_rows(b, pool, &b->thread[t].padded[i], GR_MGN_ROWS, form->widest_in, error));
    }
    return GRAFT_OK;
}

int32_t gr_nn_blocks_reserve(struct gr_nn_blocks *b, struct gr_pool *pool, graft_error *error)
{
    const int64_t linear = b->form.linear, elements = GR_MGN_ROWS * b->form.widest;

    for (int t = 0; t < b->n_threads; t++) {
        struct gr_nn_thread *thread = &b->thread[t];

        GR_TRY(new_rows(b, pool, &thread->kept_block, linear + 2, elements, error));
        GR_TRY(new_rows(b, pool, &thread->rstd, GR_MGN_ROWS, 1, error));
        for (int i = 0; i < 2; i++) thread->back[i] = gr_nn_element(b, thread->kept_block, (linear + i) * elements);
    }
    return GRAFT_OK;
}

static struct gr_nn_matrix matrix_of(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t i,
                                     const void *weights)
{
    const int64_t in = i == 0 ? mlp->in : mlp->width;

    return (struct gr_nn_matrix){ gr_nn_element(b, weights, mlp->weight[i]), in,
                                  i == mlp->linear - 1 ? mlp->out : mlp->width, in };
}

static struct gr_nn_matrix columns_of(const struct gr_nn_blocks *b, struct gr_nn_matrix matrix, int64_t column,
                                      int64_t in)
{
    matrix.at = gr_nn_element(b, matrix.at, column);
    matrix.in = in;
    return matrix;
}

struct gr_nn_matrix gr_nn_first(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t column, int64_t in)
{
    return columns_of(b, matrix_of(b, mlp, 0, b->weights), column, in);
}

void gr_nn_use_rows(struct gr_nn_blocks *b, int thread, int keeps_all)
{
    struct gr_nn_thread *t = &b->thread[thread];

    for (int64_t i = 0; i < b->form.linear; i++)
        t->rows[i] = gr_nn_element(b, keeps_all ? t->kept_block : t->block,
                                   (keeps_all ? i : i % 2) * GR_MGN_ROWS * b->form.widest);
}

void gr_nn_use_arrays(struct gr_nn_blocks *b, int thread, void *first, int64_t stride)
{
    for (int64_t i = 0; i < b->form.linear; i++) b->thread[thread].rows[i] = gr_nn_element(b, first, i * stride);
}

/* Compute the activations of all layers but the last, and the products of layers 1 to end - 1. */
static void apply_layers(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n, int64_t end)
{
    struct gr_nn_thread *t = &b->thread[thread];

    for (int64_t i = 0; i + 1 < mlp->linear; i++) {
        b->loops->activate(n, mlp->width, gr_nn_element(b, b->weights, mlp->bias[i]), b->form.is_elu, t->rows[i]);
        if (i + 1 < end)
            gr_nn_multiply(b, thread, matrix_of(b, mlp, i + 1, b->weights), n, t->rows[i], 0, t->rows[i + 1]);
    }
}

static struct gr_nn_norm norm_of(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t n, void *z)
{
    struct gr_nn_norm norm = {
        .n = n, .width = mlp->out, .z = z, .bias = gr_nn_element(b, b->weights, mlp->bias[mlp->linear - 1])
    };

    if (!mlp->has_norm) return norm;
    norm.gain = gr_nn_element(b, b->weights, mlp->gain);
    norm.shift = gr_nn_element(b, b->weights, mlp->shift);
    return norm;
}

struct gr_nn_norm gr_nn_forward(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n)
{
    apply_layers(b, thread, mlp, n, mlp->linear);
    return norm_of(b, mlp, n, b->thread[thread].rows[mlp->linear - 1]);
}

/* The MLP with offsets for an array that begins with its first weight. */
static struct gr_mlp alone_of(const struct gr_mlp *mlp)
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

struct gr_nn_matrix gr_nn_first_gradient(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t column,
                                         int64_t in, const void *gradient)
{
    const struct gr_mlp alone = alone_of(mlp);

    return columns_of(b, matrix_of(b, &alone, 0, gradient), column, in);
}

/* Replace u, the gradient of the result, by the gradient of the last product with its bias. */
static void pass_end_back(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n, void *u,
                          void *gradient)
{
    const struct gr_mlp  alone = alone_of(mlp);
    const int64_t        last = mlp->linear - 1;
    struct gr_nn_thread *t = &b->thread[thread];
    struct gr_nn_norm    norm = norm_of(b, mlp, n, t->rows[last]);

    if (mlp->has_norm) b->loops->normalise(&norm, t->rstd);
    b->loops->end_back(&norm, t->rstd, u, gr_nn_element(b, gradient, alone.bias[last]),
                       gr_nn_element(b, gradient, alone.gain), gr_nn_element(b, gradient, alone.shift));
}

void *gr_nn_backward(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n, int has_all, void *u,
                     void *gradient, void *first)
{
    const struct gr_mlp  alone = alone_of(mlp);
    struct gr_nn_thread *t = &b->thread[thread];

    if (!has_all) apply_layers(b, thread, mlp, n, mlp->has_norm ? mlp->linear : mlp->linear - 1);
    pass_end_back(b, thread, mlp, n, u, gradient);
    for (int64_t i = mlp->linear - 1; i > 0; i--) {
        void *before = i == 1 && first != NULL ? first : t->back[u == t->back[0]];

        gr_nn_multiply_weights(b, thread, matrix_of(b, &alone, i, gradient), n, t->rows[i - 1], u);
        gr_nn_multiply_back(b, thread, matrix_of(b, mlp, i, b->weights), n, u, 0, before);
        u = before;
        b->loops->activate_back(n, mlp->width, t->rows[i - 1], b->form.is_elu, u,
                                gr_nn_element(b, gradient, alone.bias[i - 1]));
    }
    if (mlp->linear == 1 && first != NULL) u = memcpy(first, u, (uint64_t)(n * mlp->out * b->element));
    return u;
}
