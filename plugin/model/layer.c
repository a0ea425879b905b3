/* Layers, forward and backward: Z = H W_self + agg(H) W_neigh + b, of which mlp has the first half and gcn the second,
 * and gin's two products. agg(H) = diag(left) A diag(right) H.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "base/random.h"
#include "model/model.h"

#include <string.h>

/* A matrix of n rows, as an operand. */
struct rows {
    const float *data;
    int64_t      stride;
};

static int32_t gemm(const graft_trainer *t, const graft_gemm *shape, graft_error *error)
{
    graft_gemm g = *shape;

    g.size = sizeof g;
    g.threads = gr_threads_worth(t->threads, g.m * g.n * g.k / 16);
    g.alpha = 1;
    return t->dense->table->dense->gemm(t->dense->state, &g, error);
}

/* out[n x w->cols] = x w + beta out */
static int32_t product(const graft_trainer *t, struct rows x, const struct gr_parameter *w, float beta, float *out,
                       graft_error *error)
{
    return gemm(t,
                &(graft_gemm){ .m = t->n,
                               .n = w->cols,
                               .k = w->rows,
                               .beta = beta,
                               .a = x.data,
                               .lda = x.stride,
                               .b = w->value,
                               .ldb = w->cols,
                               .c = out,
                               .ldc = w->cols },
                error);
}

/* The gradient of w in product(): x^T g. */
static int32_t weight_gradient(const graft_trainer *t, struct rows x, const float *g, struct gr_parameter *w,
                               graft_error *error)
{
    return gemm(t,
                &(graft_gemm){ .transpose_a = 1,
                               .m = w->rows,
                               .n = w->cols,
                               .k = t->n,
                               .a = x.data,
                               .lda = x.stride,
                               .b = g,
                               .ldb = w->cols,
                               .c = w->gradient,
                               .ldc = w->cols },
                error);
}

/* The gradient of x in product(): out[n x w->rows] = g w^T + beta out. */
static int32_t input_gradient(const graft_trainer *t, const float *g, const struct gr_parameter *w, float beta,
                              float *out, graft_error *error)
{
    return gemm(t,
                &(graft_gemm){ .transpose_b = 1,
                               .m = t->n,
                               .n = w->rows,
                               .k = w->cols,
                               .beta = beta,
                               .a = g,
                               .lda = w->cols,
                               .b = w->value,
                               .ldb = w->cols,
                               .c = out,
                               .ldc = w->rows },
                error);
}

/* out = diag(scale) A x, added to out if `add`. */
static int32_t gather(const graft_trainer *t, graft_matrix *a, const float *scale, struct rows x, int64_t width,
                      int add, float *out, graft_error *error)
{
    const graft_dense b = { .size = sizeof b,
                            .dtype = GRAFT_F32,
                            .n_rows = t->n,
                            .n_cols = width,
                            .stride = x.stride,
                            .data = (void *)(uintptr_t)x.data };
    const graft_dense c = {
        .size = sizeof c, .dtype = GRAFT_F32, .n_rows = t->n, .n_cols = width, .stride = width, .data = out
    };
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = GRAFT_PLUS_TIMES,
                                  .flags = add ? GRAFT_MXM_ACCUMULATE : 0,
                                  .threads = t->threads,
                                  .a = a,
                                  .b = &b,
                                  .c = &c,
                                  .row_scale = scale };

    return gr_mxm_run(t->context, &args, error);
}

static void scale_in_place(const graft_trainer *t, const float *scale, float *x, int64_t width)
{
    if (scale != NULL) gr_rows_scale(x, width, scale, 0, x, t->n, width, t->threads);
}

static int32_t conv_forward(graft_trainer *t, struct gr_layer *layer, struct rows x, graft_error *error)
{
    int32_t rc = GRAFT_OK;
    int     add = 0;

    if (layer->self != NULL) {
        GR_TRY(product(t, x, layer->self, 0, layer->z, error));
        add = 1;
    }
    if (layer->neigh == NULL) return rc;
    if (layer->aggregate_first) {
        struct rows from = x;

        if (t->right != NULL) {
            gr_rows_scale(x.data, x.stride, t->right, 0, t->scratch, t->n, layer->in, t->threads);
            from = (struct rows){ t->scratch, layer->in };
        }
        GR_TRY(gather(t, t->a, t->left, from, layer->in, 0, layer->gathered, error));
        rc = product(t, (struct rows){ layer->gathered, layer->in }, layer->neigh, (float)add, layer->z, error);
    } else {
        GR_TRY(product(t, x, layer->neigh, 0, t->scratch, error));
        scale_in_place(t, t->right, t->scratch, layer->out);
        rc = gather(t, t->a, t->left, (struct rows){ t->scratch, layer->out }, layer->out, add, layer->z, error);
    }
done:
    return rc;
}

/* From g, the gradient of z, which it may spoil, to the gradients of the weights and, if dx, of the input. */
static int32_t conv_backward(graft_trainer *t, struct gr_layer *layer, struct rows x, float *g, float *dx,
                             graft_error *error)
{
    int32_t rc = GRAFT_OK;
    int     add = 0;

    if (layer->self != NULL) {
        GR_TRY(weight_gradient(t, x, g, layer->self, error));
        if (dx != NULL) GR_TRY(input_gradient(t, g, layer->self, 0, dx, error));
        add = 1;
    }
    if (layer->neigh == NULL) return rc;
    if (layer->aggregate_first) {
        GR_TRY(weight_gradient(t, (struct rows){ layer->gathered, layer->in }, g, layer->neigh, error));
        if (dx == NULL) return rc;
        GR_TRY(input_gradient(t, g, layer->neigh, 0, t->scratch, error));
        scale_in_place(t, t->left, t->scratch, layer->in);
        rc = gather(t, t->a_transpose, t->right, (struct rows){ t->scratch, layer->in }, layer->in, add, dx, error);
    } else {
        scale_in_place(t, t->left, g, layer->out);
        GR_TRY(gather(t, t->a_transpose, t->right, (struct rows){ g, layer->out }, layer->out, 0, t->scratch, error));
        GR_TRY(weight_gradient(t, x, t->scratch, layer->neigh, error));
        if (dx != NULL) rc = input_gradient(t, t->scratch, layer->neigh, (float)add, dx, error);
    }
done:
    return rc;
}

/* The passes over rows behind gin's first product: bias and ReLU. */
static struct gr_rows gin_inner_rows(const graft_trainer *t, struct gr_layer *layer)
{
    return (struct gr_rows){ .n = t->n,
                             .width = layer->out,
                             .threads = t->threads,
                             .bias = layer->inner_bias->value,
                             .z = layer->inner,
                             .h = layer->inner,
                             .bits = layer->inner_bits };
}

static int32_t gin_forward(graft_trainer *t, struct gr_layer *layer, struct rows x, graft_error *error)
{
    const struct gr_rows rows = gin_inner_rows(t, layer);
    int32_t              rc = GRAFT_OK;

    gr_rows_scale(x.data, x.stride, NULL, (float)(1 + t->config.gin_eps), layer->gathered, t->n, layer->in, t->threads);
    GR_TRY(gather(t, t->a, NULL, x, layer->in, 1, layer->gathered, error));
    GR_TRY(product(t, (struct rows){ layer->gathered, layer->in }, layer->neigh, 0, layer->inner, error));
    gr_rows_forward(&rows);
    rc = product(t, (struct rows){ layer->inner, layer->out }, layer->outer, 0, layer->z, error);
done:
    return rc;
}

static int32_t gin_backward(graft_trainer *t, struct gr_layer *layer, float *g, float *dx, graft_error *error)
{
    const struct gr_rows          rows = gin_inner_rows(t, layer);
    const struct gr_rows_gradient inner = { .g = t->scratch,
                                            .bias = layer->inner_bias->gradient,
                                            .partial = t->partial };
    int32_t                       rc = GRAFT_OK;

    GR_TRY(weight_gradient(t, (struct rows){ layer->inner, layer->out }, g, layer->outer, error));
    GR_TRY(input_gradient(t, g, layer->outer, 0, t->scratch, error));
    gr_rows_backward(&rows, &inner);
    GR_TRY(weight_gradient(t, (struct rows){ layer->gathered, layer->in }, t->scratch, layer->neigh, error));
    if (dx == NULL) return rc;
    GR_TRY(input_gradient(t, t->scratch, layer->neigh, 0, g, error));
    gr_rows_scale(g, layer->in, NULL, (float)(1 + t->config.gin_eps), dx, t->n, layer->in, t->threads);
    rc = gather(t, t->a_transpose, NULL, (struct rows){ g, layer->in }, layer->in, 1, dx, error);
done:
    return rc;
}

/* The passes over rows behind layer l; dropout with the bits of this epoch, none if not training. */
static struct gr_rows rows_behind(const graft_trainer *t, int32_t l, int training)
{
    const struct gr_layer *layer = &t->layers[l];
    struct gr_rows         rows = {
                .n = t->n, .width = layer->out, .threads = t->threads, .bias = layer->bias->value, .z = layer->z
    };

    if (!layer->hidden) return rows;
    rows.h = layer->h;
    rows.bits = layer->bits;
    if (layer->gain != NULL) {
        rows.gain = layer->gain->value;
        rows.shift = layer->shift->value;
        rows.mean = layer->mean;
        rows.rstd = layer->rstd;
    }
    rows.key = gr_random_key(t->config.seed, GR_RANDOM_DROPOUT, (uint64_t)t->progress.epoch, (uint64_t)l + 1);
    rows.threshold = training ? gr_dropout_threshold(t->config.dropout) : 0;
    return rows;
}

static struct rows input_of(const graft_trainer *t, int32_t l, int training)
{
    if (l > 0) return (struct rows){ t->layers[l - 1].h, t->layers[l - 1].out };
    if (training && t->x_dropped != NULL) return (struct rows){ t->x_dropped, t->config.width[0] };
    return (struct rows){ t->x, t->x_stride };
}

int32_t gr_layers_forward(graft_trainer *t, int training, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (training && t->x_dropped != NULL) {
        const uint64_t key = gr_random_key(t->config.seed, GR_RANDOM_DROPOUT, (uint64_t)t->progress.epoch, 0);

        gr_rows_dropout(t->x, t->x_stride, t->x_dropped, t->n, t->config.width[0], key,
                        gr_dropout_threshold(t->config.input_dropout), t->threads);
    }
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        const struct gr_rows rows = rows_behind(t, l, training);
        const struct rows    x = input_of(t, l, training);

        if (t->config.kind == GR_MODEL_GIN) GR_TRY(gin_forward(t, &t->layers[l], x, error));
        else GR_TRY(conv_forward(t, &t->layers[l], x, error));
        gr_rows_forward(&rows);
    }
done:
    return rc;
}

int32_t gr_layers_backward(graft_trainer *t, graft_error *error)
{
    float  *g = t->gradient[0], *dx = t->gradient[1];
    int32_t rc = GRAFT_OK;

    for (int32_t l = t->config.n_layers - 1; l >= 0; l--) {
        struct gr_layer              *layer = &t->layers[l];
        const struct gr_rows          rows = rows_behind(t, l, 1);
        const struct gr_rows_gradient gradient = { .g = g,
                                                   .bias = layer->bias->gradient,
                                                   .partial = t->partial,
                                                   .gain = layer->gain != NULL ? layer->gain->gradient : NULL,
                                                   .shift = layer->shift != NULL ? layer->shift->gradient : NULL };
        float *const                  to = l > 0 ? dx : NULL;

        gr_rows_backward(&rows, &gradient);
        if (t->config.kind == GR_MODEL_GIN) GR_TRY(gin_backward(t, layer, g, to, error));
        else GR_TRY(conv_backward(t, layer, input_of(t, l, 1), g, to, error));
        dx = g;
        g = to;
    }
done:
    return rc;
}
