/* A GraphBLAS program that does not use Graft. It computes products of a graph and a dense matrix in the forms that are
 * common in such programs. dropin.py measures it with and without the drop-in library.
 *
 *     grb_program GRAPH WIDTH RUNS THREADS [cpu]
 *
 * prints for each form the median seconds and a checksum of C. With `cpu` the seconds are the processor time per
 * thread, which other programs disturb less than wall time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"

#include "graft_load.h"

#include <GraphBLAS.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST_RUNS = 99 };

static void need_info(GrB_Info info, const char *call)
{
    if (info != GrB_SUCCESS) bench_die("GraphBLAS: %s failed with code %d", call, (int)info);
}
#define NEED(call) need_info(call, #call)

/* The numbers of two options since version 8, for a library that is newer than the header of this program. */
enum { SPARSITY_SINCE_8 = 7036, THREADS_SINCE_8 = 7086 };

struct inputs {
    GrB_Matrix a, h, bits, some, wide;
    GrB_Index  n, width;
};

static GrB_Matrix import_graph(const struct bench_graph *graph)
{
    const GrB_Index n = (GrB_Index)graph->n;
    GrB_Index      *row_ptr = bench_new((size_t)n + 1, sizeof *row_ptr, 1);
    GrB_Index      *columns = bench_new((size_t)graph->nnz, sizeof *columns, 1);
    float          *values = bench_new((size_t)graph->nnz, sizeof *values, 1);
    GrB_Matrix      a = NULL;

    for (int64_t i = 0; i <= graph->n; i++) row_ptr[i] = (GrB_Index)graph->row_ptr[i];
    for (int64_t e = 0; e < graph->nnz; e++) {
        columns[e] = (GrB_Index)graph->col_idx[e];
        values[e] = (float)(1 + bench_mix((uint64_t)e) % 4) / 4;
    }
    NEED(GrB_Matrix_import_FP32(&a, GrB_FP32, n, n, row_ptr, columns, values, n + 1, (GrB_Index)graph->nnz,
                                (GrB_Index)graph->nnz, GrB_CSR_FORMAT));
    free(row_ptr);
    free(columns);
    free(values);
    return a;
}

/* Create a matrix in which each element is present with a probability of `percent` percent. */
static GrB_Matrix make_dense(GrB_Index n, GrB_Index width, int percent, int32_t form)
{
    float     *values = bench_new((size_t)(n * width), sizeof *values, 1);
    int8_t    *present = bench_new((size_t)(n * width), 1, 1);
    GrB_Index  count = 0;
    GrB_Matrix matrix = NULL;

    for (GrB_Index i = 0; i < n * width; i++) {
        const uint64_t draw = bench_mix(i + 77);

        values[i] = (float)(draw % 16) / 8 + 1;
        present[i] = (int)(draw >> 32 & 0xffff) % 100 < percent;
        count += (GrB_Index)present[i];
    }
    NEED(GrB_Matrix_new(&matrix, GrB_FP32, n, width));
    if (percent == 100) {
        NEED(GxB_Matrix_pack_FullR(matrix, (void **)&values, n * width * sizeof *values, false, NULL));
        free(present);
    } else {
        NEED(GxB_Matrix_pack_BitmapR(matrix, &present, (void **)&values, n * width, n * width * sizeof *values, false,
                                     count, NULL));
    }
    if (GxB_Matrix_Option_set(matrix, GxB_SPARSITY_CONTROL, form) != GrB_SUCCESS)
        NEED(GxB_Matrix_Option_set(matrix, (GxB_Option_Field)SPARSITY_SINCE_8, form));
    NEED(GrB_Matrix_wait(matrix, GrB_MATERIALIZE));
    return matrix;
}

/* The forms of the product:
 *
 *     ASSIGN, ACCUMULATE             C = A H and C += A H
 *     BITMAP_MASK, BITMAP_MASK_FULL  C<M> = A H with a bitmap mask, into an empty C and into a full C
 *     SPARSE_MASK                    C<M> = A H with a sparse mask
 *     MAXIMUM, COUNT                 maxima of products, and counts of entries (plus_pair)
 *     PROPAGATE                      C = A C in STEPS steps, as in label propagation
 *     WIDE                           C = W A, where W has few rows, which are stored by row */
enum { ASSIGN, ACCUMULATE, BITMAP_MASK, BITMAP_MASK_FULL, SPARSE_MASK, MAXIMUM, COUNT, PROPAGATE, WIDE, FORMS };
static const char *const names[FORMS] = { "plain", "plain_accum", "mask_bitmap", "mask_bitmap_full_c", "mask_sparse",
                                          "max",   "plus_pair",   "propagate",   "wide_by_row" };
enum { STEPS = 5 };

static int cpu_threads; /* 0 means that wall time is measured */

static double read_clock(void)
{
    struct timespec time;

    if (cpu_threads == 0) return bench_seconds();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return ((double)time.tv_sec + 1e-9 * (double)time.tv_nsec) / cpu_threads;
}

static double time_product(const struct inputs *in, int form, GrB_Matrix c)
{
    const GrB_Semiring semiring = form == MAXIMUM ? GrB_MAX_TIMES_SEMIRING_FP32
                                  : form == COUNT ? GxB_PLUS_PAIR_FP32
                                                  : GrB_PLUS_TIMES_SEMIRING_FP32;
    const GrB_Matrix   mask = form == BITMAP_MASK || form == BITMAP_MASK_FULL ? in->bits
                              : form == SPARSE_MASK                           ? in->some
                                                                              : NULL;
    double             seconds = -read_clock();

    for (int step = 0; step < (form == PROPAGATE ? STEPS : 1); step++)
        NEED(GrB_mxm(c, mask, form == ACCUMULATE ? GrB_PLUS_FP32 : NULL, semiring, form == WIDE ? in->wide : in->a,
                     form == PROPAGATE ? c
                     : form == WIDE    ? in->a
                                       : in->h,
                     mask != NULL ? GrB_DESC_S : NULL));
    NEED(GrB_Matrix_wait(c, GrB_MATERIALIZE));
    return seconds + read_clock();
}

static void run_form(const struct inputs *in, int form, int runs)
{
    double     seconds[MOST_RUNS], sum = 0;
    GrB_Matrix c = NULL;

    for (int run = 0; run < runs; run++) {
        GrB_Matrix_free(&c);
        NEED(GrB_Matrix_new(&c, GrB_FP32, form == WIDE ? in->width : in->n, form == WIDE ? in->n : in->width));
        if (form == ACCUMULATE || form == BITMAP_MASK_FULL || form == PROPAGATE)
            NEED(GrB_Matrix_assign(c, NULL, NULL, in->h, GrB_ALL, in->n, GrB_ALL, in->width, NULL));
        seconds[run] = time_product(in, form, c);
    }
    NEED(GrB_Matrix_reduce_FP64(&sum, NULL, GrB_PLUS_MONOID_FP64, c, NULL));
    printf("%s %.6f %.9g\n", names[form], bench_median(seconds, runs), sum);
    fflush(stdout);
    GrB_Matrix_free(&c);
}

int main(int argc, char **argv)
{
    const char        *what = argc > 1 ? argv[1] : "rmat:10:8000";
    struct inputs      in = { .width = (GrB_Index)(argc > 2 ? atoi(argv[2]) : 16) };
    const int          runs = argc > 3 ? atoi(argv[3]) : 3, threads = argc > 4 ? atoi(argv[4]) : 2;
    struct bench_graph graph;

    if (argc > 5) cpu_threads = threads;
    if (runs < 1 || runs > MOST_RUNS) bench_die("RUNS is %d, expected 1 to %d", runs, MOST_RUNS);
    bench_graph_init(&graph, what, NULL, threads);
    NEED(GrB_init(GrB_NONBLOCKING));
    if (GxB_Global_Option_set(GxB_GLOBAL_NTHREADS, threads) != GrB_SUCCESS)
        NEED(GxB_Global_Option_set((GxB_Option_Field)THREADS_SINCE_8, threads));
    in.n = (GrB_Index)graph.n;
    in.a = import_graph(&graph);
    in.h = make_dense(in.n, in.width, 100, GxB_FULL);
    in.bits = make_dense(in.n, in.width, 50, GxB_BITMAP);
    in.some = make_dense(in.n, in.width, 10, GxB_SPARSE);
    in.wide = make_dense(in.width, in.n, 100, GxB_FULL);
    for (int form = 0; form < FORMS; form++) run_form(&in, form, runs);
    GrB_Matrix_free(&in.a);
    GrB_Matrix_free(&in.h);
    GrB_Matrix_free(&in.bits);
    GrB_Matrix_free(&in.some);
    GrB_Matrix_free(&in.wide);
    bench_graph_fini(&graph);
    GrB_finalize();
    return 0;
}
