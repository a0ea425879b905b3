/* Measures the overhead of graft_grb_mxm() for C += A H, and counts the bytes that it copies. The overhead is the time
 * of the call minus the time of the product inside it; the matrix is prepared before that product is timed. The product
 * is compared with the product of a graft_matrix that exists during all calls. The calls alternate, and all times are
 * medians.
 *
 *     bench_grb [WIDTH [THREADS]]
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "graphblas/graft_grb.h"

#include <stdio.h>
#include <stdlib.h>

enum { NEIGHBOURS = 4, MOST_RUNS = 201 };

static void need_success(GrB_Info info, const char *call)
{
    if (info != GrB_SUCCESS) bench_die("GraphBLAS: %s failed with code %d", call, (int)info);
}
#define NEED(call) need_success(call, #call)

struct product {
    const graft_api     *api;
    const graft_mxm_api *mxm;
    graft_grb            grb;
    GrB_Matrix           a, h, c;
    int                  threads;
};

/* Create a matrix with NEIGHBOURS entries in each row. Their columns are far from each other. */
static GrB_Matrix make_sparse(GrB_Index n)
{
    const GrB_Index count = n * NEIGHBOURS;
    GrB_Index      *row_ptr = bench_new((size_t)n + 1, sizeof *row_ptr, 1);
    GrB_Index      *columns = bench_new((size_t)count, sizeof *columns, 1);
    float          *values = bench_new((size_t)count, sizeof *values, 1);
    GrB_Matrix      a = NULL;

    for (GrB_Index i = 0; i <= n; i++) row_ptr[i] = i * NEIGHBOURS;
    for (GrB_Index e = 0; e < count; e++) {
        columns[e] = e % NEIGHBOURS * (n / NEIGHBOURS) + bench_mix(e) % (n / NEIGHBOURS);
        values[e] = (float)(1 + bench_mix(e) % 4) / 4;
    }
    NEED(GrB_Matrix_import_FP32(&a, GrB_FP32, n, n, row_ptr, columns, values, n + 1, count, count, GrB_CSR_FORMAT));
    free(row_ptr);
    free(columns);
    free(values);
    return a;
}

static GrB_Matrix fill_matrix(GrB_Index n, GrB_Index width)
{
    GrB_Matrix full = NULL;

    NEED(GrB_Matrix_new(&full, GrB_FP32, n, width));
    NEED(GrB_Matrix_assign_FP32(full, NULL, NULL, 0.25, GrB_ALL, n, GrB_ALL, width, NULL));
    NEED(GrB_Matrix_setElement_FP32(full, 0.5f, 0, 0)); /* with two values the matrix is not iso-valued */
    NEED(GrB_Matrix_wait(full, GrB_MATERIALIZE));
    return full;
}

static const graft_mxm_api *real;            /* the interface of the library, which the wrapper below calls */
static double               product_seconds; /* duration of the last product in graft_grb_mxm() */

/* Prepare the matrix first, so that the time of the product excludes the preparation. */
static int32_t run_prepared(graft_context *context, const graft_mxm_args *args, graft_error *error)
{
    char    text[1000];
    int32_t rc = real->explain(context, args, text, sizeof text, error);

    product_seconds = -bench_seconds();
    if (rc == GRAFT_OK) rc = real->run(context, args, error);
    product_seconds += bench_seconds();
    return rc;
}

static double time_lent(struct product *p)
{
    const double begin = bench_seconds();

    NEED(graft_grb_mxm(&p->grb, p->c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, p->a, p->h, NULL));
    if (!p->grb.taken) bench_die("the product was left to GraphBLAS: %s", p->grb.why);
    return bench_seconds() - begin;
}

static double time_kept(const struct product *p, const graft_mxm_args *args)
{
    const double begin = bench_seconds();
    graft_error  error = GRAFT_INIT(graft_error);

    if (p->mxm->run(p->api->context, args, &error) < 0) bench_die("%s", error.message);
    return bench_seconds() - begin;
}

static void compare_with_kept(struct product *p, int64_t n, const graft_mxm_args *args)
{
    static double beside[MOST_RUNS], lent[MOST_RUNS], kept[MOST_RUNS];
    const int     runs = n < 100000 ? MOST_RUNS : 21;

    for (int i = -2; i < runs; i++) {
        const int    at = i < 0 ? 0 : i;
        const double whole = time_lent(p);

        beside[at] = whole - product_seconds;
        lent[at] = product_seconds;
        kept[at] = time_kept(p, args);
    }
    printf("%8lld rows: %5.1f us beside a product of %9.1f us, kept %9.1f us, %lld bytes copied\n", (long long)n,
           1e6 * bench_median(beside, runs), 1e6 * bench_median(lent, runs), 1e6 * bench_median(kept, runs),
           (long long)p->grb.copied);
}

static void measure_rows(struct product *p, int64_t n)
{
    graft_grb_loan a, h, c;
    graft_matrix  *matrix = NULL;
    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    graft_error    error = GRAFT_INIT(graft_error);

    NEED(graft_grb_lend_csr(p->a, 0, GrB_FP32, &a));
    NEED(graft_grb_lend_dense(p->h, 0, GrB_FP32, &h));
    NEED(graft_grb_lend_dense(p->c, 0, GrB_FP32, &c));
    if (p->mxm->matrix_create(p->api->context, &a.csr, 1, &matrix, &error) < 0) bench_die("%s", error.message);
    args.semiring = GRAFT_PLUS_TIMES;
    args.flags = GRAFT_MXM_ACCUMULATE;
    args.threads = p->threads;
    args.a = matrix;
    args.b = &h.dense;
    args.c = &c.dense;
    compare_with_kept(p, n, &args);
    p->mxm->matrix_destroy(matrix);
    graft_grb_return(&a);
    graft_grb_return(&h);
    graft_grb_return(&c);
}

int main(int argc, char **argv)
{
    const GrB_Index width = argc > 1 ? (GrB_Index)atoi(argv[1]) : 32;
    struct product  p = { .threads = argc > 2 ? atoi(argv[2]) : 1 };
    graft_error     error = GRAFT_INIT(graft_error);
    graft_mxm_api   prepared;

    if (width < 1 || p.threads < 1) bench_die("usage: bench_grb [WIDTH [THREADS]]");
    NEED(GrB_init(GrB_NONBLOCKING));
    NEED(GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, p.threads));
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &p.api, &error) < 0) bench_die("%s", error.message);
    p.mxm = graft_interface(p.api, GRAFT_MXM_ID, sizeof *p.mxm);
    NEED(graft_grb_begin(&p.grb, p.api));
    p.grb.allocate = malloc;
    real = p.grb.mxm;
    prepared = *real;
    prepared.run = run_prepared;
    p.grb.mxm = &prepared;
    for (GrB_Index n = 1000; n <= 1000000; n *= 10) {
        p.a = make_sparse(n);
        p.h = fill_matrix(n, width);
        p.c = fill_matrix(n, width);
        measure_rows(&p, (int64_t)n);
        GrB_Matrix_free(&p.a);
        GrB_Matrix_free(&p.h);
        GrB_Matrix_free(&p.c);
    }
    p.api->close(p.api->context);
    GrB_finalize();
    return 0;
}
