/* The products that layers are made of, each forward, and backward by one operand and the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "model/labels.h"

/* What is done with rows of a product when they are there: a pass of rows.c, with its argument. */
struct after {
    void (*rows)(void *arg, int64_t begin, int64_t end); /* NULL: nothing */
    void *arg;
};

/* The same for all rows, where the product could not do it block by block. */
static void finish_rows(const graft_trainer *t, const struct after *after)
{
    struct gr_rows_scaling *scaling = after->arg;

    if (after->rows == gr_rows_forward_part) gr_layer_rows_forward(t, after->arg);
    if (after->rows == gr_rows_scale_part)
        gr_layer_scale(t, gr_dense_operand(scaling->x, scaling->x_stride, scaling->n), scaling->scale, 0, scaling->out,
                       scaling->width);
}

/* Scaling of a product of n rows in place. */
static struct gr_rows_scaling in_place(const float *scale, float *x, int64_t n, int64_t width)
{
    return (struct gr_rows_scaling){ .n = n, .width = width, .x_stride = width, .x = x, .scale = scale, .out = x };
}

static int32_t gemm(const graft_trainer *t, const graft_gemm *shape, const struct after *after, graft_error *error)
{
    const graft_dense_ops *ops = t->dense->table->dense;
    const int              knows = ops->gemm_size >= sizeof *shape;
    const double           begin = gr_profile_begin(t);
    graft_gemm             g = *shape;
    int32_t                rc;

    g.size = sizeof g;
    g.threads = gr_threads_worth(t->threads, g.m * g.n * g.k / 16);
    g.alpha = 1;
    if (knows) {
        g.type = t->dense_type;
        g.times = gr_profile_team(t).times;
        g.rows_done = after->rows;
        g.rows_arg = after->arg;
    }
    rc = ops->gemm(t->dense->state, &g, error);
    gr_ranks_poll((void *)(uintptr_t)t);
    gr_profile_end(t, "update", begin,
                   4 * ((double)g.m * (double)g.k + (double)g.k * (double)g.n + (double)g.m * (double)g.n),
                   2 * (double)g.m * (double)g.n * (double)g.k);
    if (rc == GRAFT_OK && !knows) finish_rows(t, after);
    return rc;
}

/* The part of sparse features that has as many rows as the operand. */
static const struct gr_sparse_part *part_of(struct gr_operand x)
{
    return &x.sparse[x.rows != x.sparse->rows];
}

/* out[rows of a x width] = diag(scale) a b, added to out if `add`. */
static int32_t mxm(const graft_trainer *t, const char *phase, graft_matrix *a, const float *scale, struct gr_operand b,
                   int64_t width, int add, float *out, graft_error *error)
{
    const graft_dense from = { .size = sizeof from,
                               .dtype = GRAFT_F32,
                               .n_rows = b.rows,
                               .n_cols = width,
                               .stride = b.stride,
                               .data = (void *)(uintptr_t)b.data };
    const graft_dense to = {
        .size = sizeof to, .dtype = GRAFT_F32, .n_rows = a->csr.n_rows, .n_cols = width, .stride = width, .data = out
    };
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = GRAFT_PLUS_TIMES,
                                  .flags = add ? GRAFT_MXM_ACCUMULATE : 0,
                                  .threads = t->threads,
                                  .a = a,
                                  .b = &from,
                                  .c = &to,
                                  .row_scale = scale,
                                  .times = gr_profile_team(t).times };
    const double         entries = (double)a->csr.row_ptr[a->csr.n_rows], begin = gr_profile_begin(t);
    const int            operations = a->csr.values != NULL ? 2 : 1; /* with each column of an entry */
    const int32_t        rc = gr_mxm_run(t->context, &args, error);

    /* A row of B, a column and perhaps a value for each entry, and C. */
    gr_profile_end(t, phase, begin,
                   4 * (entries * (double)width + entries * operations + (double)to.n_rows * (double)width),
                   operations * entries * (double)width);
    return rc;
}

/* out = x w + beta out, and what is done with its rows. */
static int32_t product(const graft_trainer *t, struct gr_operand x, const struct gr_parameter *w, float beta,
                       float *out, const struct after *after, graft_error *error)
{
    const struct gr_operand weights = gr_dense_operand(w->value, w->cols, w->rows);
    int32_t                 rc = GRAFT_OK;

    if (x.labels != GR_LABELS_NONE) {
        GR_TRY(gr_labels_product(t, x, w, beta, out, error));
        beta = 1;
    }
    if (x.sparse == NULL) {
        return gemm(t,
                    &(graft_gemm){ .m = x.rows,
                                   .n = w->cols,
                                   .k = w->rows,
                                   .beta = beta,
                                   .a = x.data,
                                   .lda = x.stride,
                                   .b = w->value,
                                   .ldb = w->cols,
                                   .c = out,
                                   .ldc = w->cols },
                    after, error);
    }
    rc = mxm(t, "update", part_of(x)->x, NULL, weights, w->cols, beta != 0, out, error);
    if (rc == GRAFT_OK) finish_rows(t, after);
done:
    return rc;
}

int32_t gr_product(const graft_trainer *t, struct gr_operand x, const struct gr_parameter *w, float beta,
                   const float *scale, float *out, graft_error *error)
{
    struct gr_rows_scaling scaling = in_place(scale, out, x.rows, w->cols);
    const struct after     after = { scale != NULL ? gr_rows_scale_part : NULL, &scaling };

    return product(t, x, w, beta, out, &after, error);
}

int32_t gr_product_rows(const graft_trainer *t, struct gr_operand x, const struct gr_parameter *w, float beta,
                        struct gr_rows *rows, graft_error *error)
{
    return product(t, x, w, beta, rows->z, &(struct after){ gr_rows_forward_part, rows }, error);
}

/* By x alone, without its labels. */
static int32_t weight_gradient(const graft_trainer *t, struct gr_operand x, const float *g, float beta,
                               struct gr_parameter *w, graft_error *error)
{
    if (x.sparse != NULL) {
        const struct gr_operand gradient = gr_dense_operand(g, w->cols, x.rows);

        return mxm(t, "update", part_of(x)->transpose, NULL, gradient, w->cols, beta != 0, w->gradient, error);
    }
    return gemm(t,
                &(graft_gemm){ .transpose_a = 1,
                               .m = w->rows,
                               .n = w->cols,
                               .k = x.rows,
                               .beta = beta,
                               .a = x.data,
                               .lda = x.stride,
                               .b = g,
                               .ldb = w->cols,
                               .c = w->gradient,
                               .ldc = w->cols },
                &(struct after){ NULL, NULL }, error);
}

int32_t gr_product_weight_gradient(const graft_trainer *t, struct gr_operand x, const float *g, float beta,
                                   struct gr_parameter *w, graft_error *error)
{
    const int32_t rc = weight_gradient(t, x, g, beta, w, error);

    return rc == GRAFT_OK && x.labels != GR_LABELS_NONE ? gr_labels_gradient(t, x, g, w, error) : rc;
}

int32_t gr_product_input_gradient(const graft_trainer *t, const float *g, int64_t rows, const struct gr_parameter *w,
                                  float beta, const float *scale, float *out, graft_error *error)
{
    struct gr_rows_scaling scaling = in_place(scale, out, rows, w->rows);
    const struct after     after = { scale != NULL ? gr_rows_scale_part : NULL, &scaling };

    return gemm(t,
                &(graft_gemm){ .transpose_b = 1,
                               .m = rows,
                               .n = w->rows,
                               .k = w->cols,
                               .beta = beta,
                               .a = g,
                               .lda = w->cols,
                               .b = w->value,
                               .ldb = w->cols,
                               .c = out,
                               .ldc = w->rows },
                &after, error);
}

int32_t gr_product_gather(const graft_trainer *t, const struct gr_layer *layer, const struct gr_sum *sum,
                          graft_error *error)
{
    graft_matrix *const a = sum->way == GR_SCATTER ? layer->a_transpose : sum->way == GR_GATHER_ALL ? t->a : layer->a;

    if (t->over != NULL) return gr_ranks_gather(t, layer, sum, error);
    return mxm(t, "aggregate", a, sum->scale, sum->x, sum->width, sum->add, sum->out, error);
}
