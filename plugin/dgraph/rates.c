/* Measures the speed of sums over neighbours and of dense products.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/clock.h"
#include "base/dense_view.h"
#include "base/memory.h"
#include "dense/dense.h"
#include "dgraph/owner.h"
#include "kernel/kernel.h"

#include <math.h>

/* The assumed speed of one thread: seconds for one element of a sum over neighbours, and operations of dense products
 * per second. */
static const double ELEMENT_SECONDS = 2e-10, OPERATIONS = 5e10;

/* Sizes of the measurement: sums over at most EDGES edges, with SOURCES rows of COLUMNS columns, which exceed the
 * caches; dense products of ROWS x SIDE with SIDE x SIDE matrices; the fastest of TRIES measurements counts. */
enum { EDGES = 1 << 18, SOURCES = 1 << 16, COLUMNS = 32, ROWS = 1024, SIDE = 128, TRIES = 3 };

struct gr_owner_rates gr_graph_rates_assumed(const graft_context *context, double bytes_per_second)
{
    const int32_t threads = gr_context_threads(context, 0);

    return (struct gr_owner_rates){ .bytes_per_second = bytes_per_second,
                                    .element_seconds = ELEMENT_SECONDS / threads,
                                    .operations_per_second = OPERATIONS * threads };
}

struct probe {
    struct gr_pool          pool;
    graft_csr               csr; /* the first rows of the slice */
    int64_t                *row_ptr;
    int32_t                *col_idx;
    graft_matrix           *matrix;
    float                  *x, *out; /* operands of the sum, and of the dense product */
    const struct gr_module *dense;
    graft_dtype             dense_type;
};

static int32_t rates_probe_init(const graft_graph *g, const graft_slice *slice, struct probe *p, graft_error *error)
{
    const graft_csr *rows = slice->rows;
    int64_t          n = 0, entries, sources = g->n_vertices < SOURCES ? g->n_vertices : SOURCES, out;

    while (n < g->n_slice && rows->row_ptr[n + 1] - rows->row_ptr[0] <= EDGES) n++;
    entries = n > 0 ? rows->row_ptr[n] - rows->row_ptr[0] : 0;
    out = n * COLUMNS > (ROWS + SIDE) * SIDE ? n * COLUMNS : (ROWS + SIDE) * SIDE;
    GR_TRY(GR_POOL_NEW(g->context, &p->pool, p->row_ptr, n + 1, error));
    GR_TRY(GR_POOL_NEW(g->context, &p->pool, p->col_idx, entries, error));
    GR_TRY(GR_POOL_NEW(g->context, &p->pool, p->x, sources * COLUMNS > ROWS * SIDE ? sources * COLUMNS : ROWS * SIDE,
                       error));
    GR_TRY(GR_POOL_NEW(g->context, &p->pool, p->out, out, error));
    for (int64_t i = 0; i < n; i++) p->row_ptr[i + 1] = rows->row_ptr[i + 1] - rows->row_ptr[0];
    for (int64_t e = 0; e < entries; e++)
        p->col_idx[e] = (int32_t)(gr_csr_column(rows, rows->row_ptr[0] + e) % sources);
    p->csr = (graft_csr){ sizeof p->csr, GRAFT_I32, 0, 0, n, sources, p->row_ptr, p->col_idx, NULL, NULL };
    GR_TRY(gr_matrix_create(g->context, &p->csr, &p->matrix, error));
    return gr_dense_choose(g->context, &p->dense_type, &p->dense, error);
}

/* Measure the seconds of one sum. */
static int32_t probe_sum(const graft_graph *g, const struct probe *p, double *seconds, graft_error *error)
{
    const graft_dense    x = gr_dense_view(p->x, GRAFT_F32, p->csr.n_cols, COLUMNS, COLUMNS);
    const graft_dense    out = gr_dense_view(p->out, GRAFT_F32, p->csr.n_rows, COLUMNS, COLUMNS);
    const graft_mxm_args args = { .size = sizeof args,
                                  .semiring = GRAFT_PLUS_TIMES,
                                  .threads = gr_context_threads(g->context, 0),
                                  .a = p->matrix,
                                  .b = &x,
                                  .c = &out };
    const double         begin = gr_seconds();
    const int32_t        rc = gr_mxm_run(g->context, &args, error);

    *seconds = gr_seconds() - begin;
    return rc;
}

static int32_t probe_dense(const graft_graph *g, const struct probe *p, double *seconds, graft_error *error)
{
    const graft_gemm gemm = { .size = sizeof gemm,
                              .threads = gr_context_threads(g->context, 0),
                              .m = ROWS,
                              .n = SIDE,
                              .k = SIDE,
                              .alpha = 1,
                              .a = p->x,
                              .lda = SIDE,
                              .b = p->out + ROWS * SIDE,
                              .ldb = SIDE,
                              .c = p->out,
                              .ldc = SIDE,
                              .type = p->dense_type };
    const double     begin = gr_seconds();
    const int32_t    rc = gr_dense_run(g->context, p->dense, &gemm, error);

    *seconds = gr_seconds() - begin;
    return rc;
}

/* Measure the speed of this rank. If it has edges, sums[0] receives the seconds of an element, and sums[1] receives 1;
 * sums[2] receives operations per second. */
static int32_t probe_rates(const graft_graph *g, const struct probe *p, double sums[3], graft_error *error)
{
    const double elements = (double)p->csr.row_ptr[p->csr.n_rows] * COLUMNS;
    double       sum = INFINITY, product = INFINITY, seconds;

    for (int i = 0; i < TRIES; i++) {
        GR_TRY(probe_sum(g, p, &seconds, error));
        sum = fmin(sum, seconds);
        GR_TRY(probe_dense(g, p, &seconds, error));
        product = fmin(product, seconds);
    }
    sums[0] = elements > 0 ? sum / elements : 0;
    sums[1] = elements > 0;
    sums[2] = 2.0 * ROWS * SIDE * SIDE / fmax(product, 1e-9);
    return GRAFT_OK;
}

int32_t gr_graph_rates_measure(const graft_graph *g, const graft_slice *slice, struct gr_owner_rates *rates,
                               graft_error *error)
{
    struct probe p = { .matrix = NULL };
    double       sums[3] = { 0 };
    int32_t      rc = GRAFT_OK;

    GR_TRY_DONE(gr_comm_agree(g->comm, rates_probe_init(g, slice, &p, error), error));
    rc = probe_rates(g, &p, sums, error); /* all ranks measure at the same time, because they may share a machine */
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(gr_comm_sum_f64(g->comm, sums, 3, error));
    if (sums[1] > 0) rates->element_seconds = sums[0] / sums[1];
    rates->operations_per_second = sums[2] / g->comm->n_ranks;
done:
    gr_matrix_destroy(p.matrix);
    gr_pool_fini(g->context, &p.pool);
    return rc;
}
