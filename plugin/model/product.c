/* The products that layers are made of, each forward, and backward by one operand and the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "dense/dense.h"
#include "model/labels.h"

/* The epilogue of a product: for some rows, by the thread that made them; or for all, where the product cannot do it
 * block by block. Zeros: there is none. */
struct epilogue {
    void (*some)(void *arg, int64_t begin, int64_t end);
    void (*all)(struct gr_run *run, void *arg);
    void *arg;
};

static void activate_all(struct gr_run *run, void *rows)
{
    gr_layer_rows_forward(run, rows);
}

static void scale_all(struct gr_run *run, void *arg)
{
    const struct gr_rows_scaling *s = arg;

    gr_layer_scale(run, gr_dense_operand(s->x, s->x_stride, s->n), s->scale, 0, s->out, s->width);
}

/* Scaling of a product of n rows in place. */
static struct gr_rows_scaling in_place(const float *scale, float *x, int64_t n, int64_t width)
{
    return (struct gr_rows_scaling){ .n = n, .width = width, .x_stride = width, .x = x, .scale = scale, .out = x };
}

static struct epilogue scaling_epilogue(struct gr_rows_scaling *scaling)
{
    return scaling->scale != NULL ? (struct epilogue){ gr_rows_scale_part, scale_all, scaling }
                                  : (struct epilogue){ NULL, NULL, NULL };
}

static int32_t gemm(struct gr_run *run, const graft_gemm *shape, const struct epilogue *epilogue, graft_error *error)
{
    const int    knows = run->dense->table->dense->gemm_size >= sizeof *shape; /* the fields at the tail */
    const int    some = knows && !gr_dense_verifies(run->context);             /* the epilogue is done by blocks */
    const double begin = gr_profile_begin(&run->profile);
    graft_gemm   g = *shape;
    int32_t      rc;

    g.size = sizeof g;
    g.threads = gr_threads_worth(run->threads, g.m * g.n * g.k / 16);
    g.alpha = 1;
    if (knows) {
        g.type = run->dense_type;
        g.times = run->profile.times;
    }
    if (some) {
        g.rows_done = epilogue->some;
        g.rows_arg = epilogue->arg;
    }
    rc = gr_dense_run(run->context, run->dense, &g, error);
    gr_strategy_poll(run->strategy);
    gr_profile_end(&run->profile, "update", begin,
                   4 * ((double)g.m * (double)g.k + (double)g.k * (double)g.n + (double)g.m * (double)g.n),
                   2 * (double)g.m * (double)g.n * (double)g.k);
    if (rc == GRAFT_OK && !some && epilogue->all != NULL) epilogue->all(run, epilogue->arg);
    return rc;
}

/* The part of sparse features that has as many rows as the operand. */
static const struct gr_sparse_part *sparse_part_of(struct gr_operand x)
{
    GR_ASSERT(x.rows <= x.sparse->rows);
    return &x.sparse[x.rows != x.sparse->rows];
}

int32_t gr_product_sparse(struct gr_run *run, const char *phase, graft_matrix *a, const float *scale,
                          struct gr_operand x, int64_t width, int add, float *out, graft_error *error)
{
    const graft_dense from = { .size = sizeof from,
                               .dtype = GRAFT_F32,
                               .n_rows = x.rows,
                               .n_cols = width,
                               .stride = x.stride,
                               .data = (void *)(uintptr_t)x.data };
    const graft_dense to = {
        .size = sizeof to, .dtype = GRAFT_F32, .n_rows = a->csr.n_rows, .n_cols = width, .stride = width, .data = out
    };
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = GRAFT_PLUS_TIMES,
                                  .flags = add ? GRAFT_MXM_ACCUMULATE : 0,
                                  .threads = run->threads,
                                  .a = a,
                                  .b = &from,
                                  .c = &to,
                                  .row_scale = scale,
                                  .times = run->profile.times };
    const double         entries = (double)a->csr.row_ptr[a->csr.n_rows], begin = gr_profile_begin(&run->profile);
    const int            operations = a->csr.values != NULL ? 2 : 1; /* with each column of an entry */
    const int32_t        rc = gr_mxm_run(run->context, &args, error);

    GR_ASSERT(a->csr.n_cols == x.rows && x.stride >= width);
    /* A row of x, a column and perhaps a value for each entry, and the result. */
    gr_profile_end(&run->profile, phase, begin,
                   4 * (entries * (double)width + entries * operations + (double)to.n_rows * (double)width),
                   operations * entries * (double)width);
    return rc;
}

/* out = x w + beta out, and the epilogue. */
static int32_t product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta, float *out,
                       const struct epilogue *epilogue, graft_error *error)
{
    const struct gr_operand weights = gr_dense_operand(w->value, w->cols, w->rows);
    int32_t                 rc = GRAFT_OK;

    if (x.labels != GR_LABELS_NONE) {
        GR_TRY(gr_labels_product(run, x, w, beta, out, error));
        beta = 1;
    }
    if (x.sparse == NULL) {
        return gemm(run,
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
                    epilogue, error);
    }
    rc = gr_product_sparse(run, "update", sparse_part_of(x)->x, NULL, weights, w->cols, beta != 0, out, error);
    if (rc == GRAFT_OK && epilogue->all != NULL) epilogue->all(run, epilogue->arg);
done:
    return rc;
}

int32_t gr_product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                   const float *scale, float *out, graft_error *error)
{
    struct gr_rows_scaling scaling = in_place(scale, out, x.rows, w->cols);
    const struct epilogue  epilogue = scaling_epilogue(&scaling);

    return product(run, x, w, beta, out, &epilogue, error);
}

int32_t gr_product_rows(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                        struct gr_rows *rows, graft_error *error)
{
    return product(run, x, w, beta, rows->z, &(struct epilogue){ gr_rows_forward_part, activate_all, rows }, error);
}

/* By x alone, without its labels. */
static int32_t weight_gradient(struct gr_run *run, struct gr_operand x, const float *g, float beta,
                               struct gr_parameter *w, graft_error *error)
{
    if (x.sparse != NULL) {
        const struct gr_operand gradient = gr_dense_operand(g, w->cols, x.rows);

        return gr_product_sparse(run, "update", sparse_part_of(x)->transpose, NULL, gradient, w->cols, beta != 0,
                                 w->gradient, error);
    }
    return gemm(run,
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
                &(struct epilogue){ NULL, NULL, NULL }, error);
}

int32_t gr_product_weight_gradient(struct gr_run *run, struct gr_operand x, const float *g, float beta,
                                   struct gr_parameter *w, graft_error *error)
{
    const int32_t rc = weight_gradient(run, x, g, beta, w, error);

    return rc == GRAFT_OK && x.labels != GR_LABELS_NONE ? gr_labels_gradient(run, x, g, w, error) : rc;
}

int32_t gr_product_input_gradient(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                  float beta, const float *scale, float *out, graft_error *error)
{
    struct gr_rows_scaling scaling = in_place(scale, out, rows, w->rows);
    const struct epilogue  epilogue = scaling_epilogue(&scaling);

    return gemm(run,
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
                &epilogue, error);
}
