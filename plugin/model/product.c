/* The products of layers, and their gradients with respect to both operands.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/product.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/parallel.h"
#include "model/labels.h"
#include "model/rows.h"
#include "model/workers.h"

static void scale_all(struct gr_run *run, void *arg)
{
    const struct gr_rows_scaling *s = arg;

    gr_model_layer_scale(run, gr_dense_operand(s->x, s->x_stride, s->n), s->scale, 0, s->out, s->width);
}

/* Describe the scaling of n rows in place. */
static struct gr_rows_scaling in_place(const float *scale, float *x, int64_t n, int64_t width)
{
    return (struct gr_rows_scaling){ .n = n, .width = width, .x_stride = width, .x = x, .scale = scale, .out = x };
}

/* Make an epilogue that scales rows. Returns NULL if there is no scale. */
static struct gr_epilogue *scaling_epilogue(struct gr_epilogue *epilogue, struct gr_rows_scaling *scaling)
{
    *epilogue = (struct gr_epilogue){ .some = gr_nn_rows_scale_part, .all = scale_all, .arg = scaling };
    return scaling->scale != NULL ? epilogue : NULL;
}

void gr_model_epilogue_end(struct gr_run *run, struct gr_epilogue *epilogue)
{
    if (epilogue == NULL || epilogue->is_done || epilogue->all == NULL) return;
    epilogue->all(run, epilogue->arg);
    epilogue->is_done = 1;
}

static int32_t gemm(struct gr_run *run, const graft_gemm *shape, struct gr_epilogue *epilogue, graft_error *error)
{
    const int    knows = run->dense->table->dense->gemm_size >= sizeof *shape; /* the newer fields */
    const double begin = gr_profile_begin(&run->profile);
    graft_gemm   g = *shape;
    int32_t      rc;

    if (gr_model_workers_gemm(run, shape, epilogue)) return GRAFT_OK;
    g.size = sizeof g;
    g.threads = gr_threads_worth(run->threads, g.m * g.n * g.k / 16);
    g.alpha = 1;
    if (knows) {
        g.type = run->dense_type;
        g.times = run->profile.times;
    }
    if (epilogue != NULL && knows && !gr_dense_verifies(run->context)) {
        g.rows_done = epilogue->some;
        g.rows_arg = epilogue->arg;
        epilogue->is_done = 1;
    }
    rc = gr_dense_run(run->context, run->dense, &g, error);
    gr_strategy_poll(run->strategy);
    gr_profile_end(&run->profile, "update", begin,
                   4 * ((double)g.m * (double)g.k + (double)g.k * (double)g.n + (double)g.m * (double)g.n),
                   2 * (double)g.m * (double)g.n * (double)g.k);
    if (rc == GRAFT_OK) gr_model_epilogue_end(run, epilogue);
    return rc;
}

/* Select the part of sparse features that has as many rows as the operand. */
static const struct gr_sparse_part *sparse_part_of(struct gr_operand x)
{
    GR_ASSERT(x.rows <= x.sparse->rows);
    return &x.sparse[x.rows != x.sparse->rows];
}

static void sparse_rows_done(void *epilogue, int32_t thread, int64_t begin, int64_t end)
{
    const struct gr_epilogue *e = epilogue;

    (void)thread;
    e->some(e->arg, begin, end);
}

/* Call graft.mxm on all threads. */
static int32_t run_call(struct gr_run *run, const struct gr_sparse_product *p, struct gr_sparse_call *call,
                        graft_error *error)
{
    const graft_csr *csr = &p->a->csr;
    const double     entries = (double)csr->row_ptr[csr->n_rows], begin = gr_profile_begin(&run->profile);
    const int        operations = csr->values != NULL ? 2 : 1; /* for an entry and a column */
    int32_t          rc;

    GR_ASSERT(csr->n_cols == p->x.rows && p->x.stride >= p->width);
    call->args.threads = run->threads;
    call->args.times = run->profile.times;
    if (p->epilogue != NULL && !gr_mxm_verifies(run->context)) {
        call->args.rows_done = sparse_rows_done;
        call->args.rows_arg = p->epilogue;
        p->epilogue->is_done = 1;
    }
    rc = gr_mxm_run(run->context, &call->args, error);
    /* Bytes are, for each entry, a row of x, a column index and perhaps a value; and the result. */
    gr_profile_end(&run->profile, p->phase, begin,
                   entries * (double)p->width * gr_dtype_bytes(call->from.dtype) +
                       4 * (entries * operations + (double)csr->n_rows * (double)p->width),
                   operations * entries * (double)p->width);
    if (rc == GRAFT_OK) gr_model_epilogue_end(run, p->epilogue);
    return rc;
}

int32_t gr_model_product_sparse(struct gr_run *run, const struct gr_sparse_product *p, graft_error *error)
{
    struct gr_sparse_call call;

    if (gr_model_workers_sum(run, p)) return GRAFT_OK;
    gr_sparse_call_init(&call, p, p->a, 0, p->a->csr.n_rows);
    return run_call(run, p, &call, error);
}

int32_t gr_model_product_extrema(struct gr_run *run, graft_matrix *a, struct gr_operand x, int64_t width, void *winner,
                                 float *out, graft_error *error)
{
    const struct gr_sparse_product product = { .phase = "aggregate", .a = a, .x = x, .width = width, .out = out };
    struct gr_sparse_call          call;

    gr_sparse_call_init(&call, &product, a, 0, a->csr.n_rows);
    call.args.semiring = gr_run_config(run)->extremum;
    call.args.winner = winner;
    call.args.winner_stride = width;
    return run_call(run, &product, &call, error);
}

/* out = x w + beta out; then execute the epilogue. */
static int32_t product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta, float *out,
                       struct gr_epilogue *epilogue, graft_error *error)
{
    const struct gr_operand weights = gr_dense_operand(w->value, w->cols, w->rows);

    if (x.labels != GR_LABELS_NONE) {
        gr_model_workers_sync(run);
        GR_TRY(gr_model_labels_product(run, x, w, beta, out, error));
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
    return gr_model_product_sparse(run,
                                   &(struct gr_sparse_product){ .phase = "update",
                                                                .a = sparse_part_of(x)->x,
                                                                .x = weights,
                                                                .width = w->cols,
                                                                .add = beta != 0,
                                                                .out = out,
                                                                .epilogue = epilogue },
                                   error);
}

int32_t gr_model_product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                         const float *scale, float *out, graft_error *error)
{
    struct gr_rows_scaling scaling = in_place(scale, out, x.rows, w->cols);
    struct gr_epilogue     epilogue;

    return product(run, x, w, beta, out, scaling_epilogue(&epilogue, &scaling), error);
}

int32_t gr_model_product_rows(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                              struct gr_rows *rows, graft_error *error)
{
    struct gr_epilogue epilogue = gr_model_layer_rows_epilogue(rows);

    return product(run, x, w, beta, rows->z, &epilogue, error);
}

/* Compute the part of the gradient of w that is due to x, without its labels. */
static int32_t weight_gradient(struct gr_run *run, struct gr_operand x, const float *g, float beta,
                               struct gr_parameter *w, graft_error *error)
{
    if (x.sparse != NULL) {
        const struct gr_operand gradient = gr_dense_operand(g, w->cols, x.rows);

        return gr_model_product_sparse(run,
                                       &(struct gr_sparse_product){ .phase = "update",
                                                                    .a = sparse_part_of(x)->transpose,
                                                                    .x = gradient,
                                                                    .width = w->cols,
                                                                    .add = beta != 0,
                                                                    .out = w->gradient },
                                       error);
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
                NULL, error);
}

int32_t gr_model_weight_gradient(struct gr_run *run, struct gr_operand x, const float *g, float beta,
                                 struct gr_parameter *w, graft_error *error)
{
    const int32_t rc = weight_gradient(run, x, g, beta, w, error);

    return rc == GRAFT_OK && x.labels != GR_LABELS_NONE ? gr_model_labels_gradient(run, x, g, w, error) : rc;
}

int32_t gr_model_input_gradient_with(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                     float beta, float *out, struct gr_epilogue *epilogue, graft_error *error)
{
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
                epilogue, error);
}

int32_t gr_model_input_gradient(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                float beta, const float *scale, float *out, graft_error *error)
{
    struct gr_rows_scaling scaling = in_place(scale, out, rows, w->rows);
    struct gr_epilogue     epilogue;

    return gr_model_input_gradient_with(run, g, rows, w, beta, out, scaling_epilogue(&epilogue, &scaling), error);
}
