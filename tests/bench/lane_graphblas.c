/* Measures GrB_mxm as a program without Graft calls it, in four variants with the same B.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "lane.h"

#include <GraphBLAS.h>
#include <dlfcn.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/** One variant of the product. The variants are C += A*H, C = A*H, C<M> = A*H, and C<M> = Z after Z = 0 and Z += A*H.
 *  Each variant has its own C, and uses the faster of two semirings. plus_second and plus_times are equivalent here,
 *  because all values of A are 1. */
struct way {
    const struct bench_grb *grb;
    GrB_Matrix              c, mask, z;
    GrB_BinaryOp            accumulate;
    GrB_Semiring            semiring;
};

enum { ACCUMULATE, ASSIGN, MASKED, MASKED_APART, WAYS };

struct bench_grb {
    const struct bench_inputs *inputs;
    GrB_Matrix                 a, h, mask;
    struct way                 ways[WAYS];
};

static void need(GrB_Info info, const char *call)
{
    if (info != GrB_SUCCESS) bench_die("GraphBLAS: %s failed with code %d", call, (int)info);
}
#define NEED(call) need(call, #call)

/** Print the version of GraphBLAS. LD_PRELOAD may have loaded another version than the linked one. */
static void print_library(void)
{
    Dl_info of_library;

    if (dladdr((void *)(uintptr_t)GrB_mxm, &of_library) != 0) printf("GrB_mxm is that of %s\n", of_library.dli_fname);
}

static size_t elements(const struct bench_inputs *inputs)
{
    return (size_t)inputs->graph->n * (size_t)inputs->width;
}

/** Create the matrix of the graph. All its values are 1, so GraphBLAS stores the value once (an iso-valued matrix). */
static GrB_Matrix make_graph(const struct bench_inputs *inputs)
{
    const struct bench_graph *graph = inputs->graph;
    const size_t              n = (size_t)graph->n, nnz = (size_t)graph->nnz;
    GrB_Index                *row_ptr = bench_new(n + 1, sizeof *row_ptr, inputs->threads);
    GrB_Index                *columns = bench_new(nnz, sizeof *columns, inputs->threads);
    float                    *one = bench_new(1, sizeof *one, 1);
    GrB_Matrix                a = NULL;

    for (size_t i = 0; i <= n; i++) row_ptr[i] = (GrB_Index)graph->row_ptr[i];
    for (size_t e = 0; e < nnz; e++) columns[e] = (GrB_Index)graph->col_idx[e];
    *one = 1;
    NEED(GrB_Matrix_new(&a, GrB_FP32, n, n));
    NEED(GxB_Matrix_pack_CSR(a, &row_ptr, &columns, (void **)&one, (n + 1) * sizeof *row_ptr, nnz * sizeof *columns,
                             sizeof *one, true, true, NULL));
    NEED(GrB_Matrix_wait(a, GrB_MATERIALIZE)); /* sorts the rows if necessary */
    return a;
}

/** Returns a copy of B whose rows are contiguous. */
static float *copy_b(const struct bench_inputs *inputs)
{
    float *copy = bench_new(elements(inputs), sizeof *copy, inputs->threads);

    for (int64_t row = 0; row < inputs->graph->n; row++) {
        memcpy(copy + row * inputs->width, inputs->b + row * inputs->stride, (size_t)inputs->width * sizeof *copy);
    }
    return copy;
}

static GrB_Matrix make_full(const struct bench_inputs *inputs, float *values)
{
    const GrB_Index n = (GrB_Index)inputs->graph->n, columns = (GrB_Index)inputs->width;
    GrB_Matrix      full = NULL;

    NEED(GrB_Matrix_new(&full, GrB_FP32, n, columns));
    NEED(GxB_Matrix_pack_FullR(full, (void **)&values, elements(inputs) * sizeof *values, false, NULL));
    return full;
}

/** Create a bitmap matrix from the mask bits of the inputs. */
static GrB_Matrix make_mask(const struct bench_inputs *inputs)
{
    const int64_t n = inputs->graph->n, width = inputs->width;
    int8_t       *present = bench_new(elements(inputs), 1, inputs->threads);
    bool         *one = bench_new(1, sizeof *one, 1);
    GrB_Index     count = 0;
    GrB_Matrix    mask = NULL;

#pragma omp parallel for num_threads(inputs->threads) reduction(+ : count)
    for (int64_t row = 0; row < n; row++) {
        for (int64_t j = 0; j < width; j++) {
            const int bit = inputs->bits[row * inputs->bits_stride + j / 8] >> j % 8 & 1;
            present[row * width + j] = (int8_t)bit;
            count += (GrB_Index)bit;
        }
    }
    *one = true;
    NEED(GrB_Matrix_new(&mask, GrB_BOOL, (GrB_Index)n, (GrB_Index)width));
    NEED(GxB_Matrix_pack_BitmapR(mask, &present, (void **)&one, elements(inputs), sizeof *one, true, count, NULL));
    return mask;
}

/** Replace C of one variant by a full matrix of `values`, or of zeros if they are NULL. */
static void put_c(struct way *way, const float *values)
{
    const struct bench_inputs *inputs = way->grb->inputs;
    float                     *copy = bench_new(elements(inputs), sizeof *copy, inputs->threads);

    if (values != NULL) memcpy(copy, values, elements(inputs) * sizeof *copy);
    GrB_Matrix_free(&way->c);
    way->c = make_full(inputs, copy);
}

/** Copy C of one variant to `values`, with 0 for each missing entry. C is empty afterwards. */
static void take_c(struct way *way, float *values)
{
    int8_t   *present = NULL;
    float    *found = NULL;
    GrB_Index present_bytes, found_bytes, count;
    bool      iso;

    NEED(
        GxB_Matrix_unpack_BitmapR(way->c, &present, (void **)&found, &present_bytes, &found_bytes, &iso, &count, NULL));
    for (size_t i = 0; i < elements(way->grb->inputs); i++) values[i] = present[i] ? found[iso ? 0 : i] : 0;
    free(present);
    free(found);
}

static void multiply(struct way *way)
{
    const struct bench_grb *grb = way->grb;

    NEED(GrB_mxm(way->c, way->mask, way->accumulate, way->semiring, grb->a, grb->h,
                 way->mask != NULL ? GrB_DESC_S : NULL));
}

static void multiply_then_mask(struct way *way)
{
    const struct bench_grb    *grb = way->grb;
    const struct bench_inputs *inputs = grb->inputs;
    const GrB_Index            n = (GrB_Index)inputs->graph->n, columns = (GrB_Index)inputs->width;

    NEED(GrB_Matrix_assign_FP32(way->z, NULL, NULL, 0, GrB_ALL, n, GrB_ALL, columns, NULL));
    NEED(GrB_mxm(way->z, NULL, GrB_PLUS_FP32, way->semiring, grb->a, grb->h, NULL));
    NEED(GrB_Matrix_assign(way->c, way->mask, NULL, way->z, GrB_ALL, n, GrB_ALL, columns, GrB_DESC_S));
}

static double run(struct bench_lane *lane, struct bench_output *output, int check)
{
    struct way *way = lane->self;
    double      seconds;

    if (check && way->accumulate != NULL) put_c(way, NULL); /* C begins at 0, so that C += A*H equals A*H */
    if (check && way->mask != NULL) put_c(way, output->c);
    seconds = -bench_seconds();
    if (way->z != NULL) multiply_then_mask(way);
    else multiply(way);
    NEED(GrB_Matrix_wait(way->c, GrB_MATERIALIZE));
    seconds += bench_seconds();
    if (check) take_c(way, output->c);
    if (check && way->accumulate != NULL) put_c(way, NULL);
    if (check && way->mask != NULL) put_c(way, output->c);
    return seconds;
}

struct bench_grb *bench_grb_create(const struct bench_inputs *inputs, struct bench_lanes *lanes)
{
    static const char *const     label[WAYS] = { "plain_accum", "plain", "mask_bits_50", "mask_apart" };
    static const enum bench_form form[WAYS] = { BENCH_PLAIN, BENCH_PLAIN, BENCH_MASK_BITS, BENCH_MASK_BITS };
    const GrB_Index              n = (GrB_Index)inputs->graph->n, columns = (GrB_Index)inputs->width;
    struct bench_grb            *grb = bench_new(1, sizeof *grb, 1);

    omp_set_num_threads(inputs->threads); /* read by GrB_init(); the numbers of options differ between versions */
    NEED(GrB_init(GrB_NONBLOCKING));
    print_library();
    grb->inputs = inputs;
    grb->a = make_graph(inputs);
    grb->h = make_full(inputs, copy_b(inputs));
    grb->mask = make_mask(inputs);
    grb->ways[ACCUMULATE].accumulate = GrB_PLUS_FP32;
    grb->ways[MASKED].mask = grb->ways[MASKED_APART].mask = grb->mask;
    NEED(GrB_Matrix_new(&grb->ways[MASKED_APART].z, GrB_FP32, n, columns));
    for (int i = 0; i < WAYS; i++) {
        grb->ways[i].grb = grb;
        grb->ways[i].semiring = i == MASKED ? GrB_PLUS_TIMES_SEMIRING_FP32 : GxB_PLUS_SECOND_FP32;
        NEED(GrB_Matrix_new(&grb->ways[i].c, GrB_FP32, n, columns));
        bench_lanes_add(
            lanes,
            &(struct bench_lane){
                .kernel = BENCH_GRB_NAME, .label = label[i], .form = form[i], .self = &grb->ways[i], .run = run });
    }
    return grb;
}

void bench_grb_destroy(struct bench_grb *grb)
{
    if (grb == NULL) return;
    GrB_Matrix_free(&grb->h);
    GrB_Matrix_free(&grb->a);
    GrB_Matrix_free(&grb->mask);
    for (int i = 0; i < WAYS; i++) {
        GrB_Matrix_free(&grb->ways[i].c);
        GrB_Matrix_free(&grb->ways[i].z);
    }
    free(grb);
    GrB_finalize();
}
