/* Judges kernels of sparse products against the oracle: shapes, types, masks, special numbers, threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "judge.h"

#include "harness/tap.h"
#include "oracle/sample.h"

#include <string.h>

struct judge judge;

static const char *const semiring_name[] = { "",           "plus_times", "plus_second", "max_times",
                                             "max_second", "min_times",  "min_second" };

static int mxm_is_sum(graft_semiring semiring)
{
    return semiring <= GRAFT_PLUS_SECOND;
}

/** Try all masks and flags of one product with one semiring. Row scale, winner and the number of threads vary between
 * runs. Most runs have one thread, because waking a team of threads takes longer than such a small product. */
void judge_masks(struct product *p, const char *kernel, graft_semiring semiring, struct sample *sample,
                 struct tally *tally)
{
    const int threads[] = { 2, 3, 5, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
    const int step = judge.case_step > 1 ? judge.case_step : 1;

    p->args.semiring = semiring;
    for (int which = step > 1 ? (int)sample_below(sample, step) : 0; which < 4 * PRODUCT_MASKS; which += step) {
        product_set_mask(p, which / 4);
        product_set_extras(p, sample_below(sample, 2) == 0, !mxm_is_sum(semiring) && sample_below(sample, 2) == 0);
        p->args.flags = (uint32_t)which % 4;
        product_tally(p, judge.mxm, judge.context, kernel, threads[sample_below(sample, 12)], tally);
    }
}

graft_matrix *judge_matrix(const graft_csr *csr)
{
    graft_error   error = GRAFT_INIT(graft_error);
    graft_matrix *matrix = NULL;

    if (judge.mxm->matrix_create(judge.context, csr, 0, &matrix, &error) == GRAFT_OK) return matrix;
    printf("Bail out! a good matrix is refused: %s\n", error.message);
    exit(1);
}

void judge_product_open(struct product *product, struct sample *sample, const struct product_shape *shape)
{
    product_init(product, sample, shape);
    product->may_refuse = judge.strict;
    product->args.a = judge_matrix(&product->a.csr);
}

void judge_product_close(struct product *product)
{
    judge.mxm->matrix_destroy(product->args.a);
    product_fini(product);
}

static void try_shape(const char *kernel, const struct product_shape *shape, struct tally *tally)
{
    struct sample  sample = { (uint64_t)(shape->m * 1000 + shape->n * 10 + shape->index_type) };
    struct product product;

    judge_product_open(&product, &sample, shape);
    for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++)
        judge_masks(&product, kernel, s, &sample, &tally[s]);
    judge_product_close(&product);
}

/** Print the check for a tally. With `own`, the kernel must have computed some products itself. */
static void mxm_report(const char *kernel, const char *what, const struct tally *tally, int own)
{
    int by_kernel = 0;

    for (int s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++) {
        by_kernel += tally[s].by_kernel;
        if (judge.strict && tally[s].by_kernel == 0 && tally[s].faults == 0)
            skip(1, "%s, %s, %s: not supported", kernel, semiring_name[s], what);
        else if (!ok(tally[s].faults == 0 && tally[s].runs > 0, "%s, %s, %s: %d products, %d differ", kernel,
                     semiring_name[s], what, tally[s].runs, tally[s].faults))
            diag("%s", tally[s].first);
    }
    judge.by_kernel += by_kernel;
    if (own && !judge.strict)
        ok(by_kernel > 0, "kernel %s, and no other one, computed %d of these products", kernel, by_kernel);
}

static void test_mxm_shapes(const char *kernel, graft_dtype dtype)
{
    const int64_t widths[] = { 1, 15, 16, 17, 33 };
    struct tally  tally[7] = { 0 };

    for (int which = 0; which < 40; which++) {
        const struct product_shape shape = { .m = 41,
                                             .k = 29,
                                             .n = widths[which / 8],
                                             .index_type = which & 1 ? GRAFT_I64 : GRAFT_I32,
                                             .dtype = dtype,
                                             .weighted = which >> 1 & 1,
                                             .repeats = which >> 2 & 1,
                                             .numbers = PRODUCT_EXACT };
        try_shape(kernel, &shape, tally);
    }
    mxm_report(kernel, dtype == GRAFT_F32 ? "float" : "double", tally, 1);
}

static void test_odd_shapes(const char *kernel)
{
    const int64_t sizes[][3] = { { 0, 5, 3 }, { 7, 0, 3 }, { 0, 0, 17 }, { 7, 5, 0 }, { 1, 1, 1 }, { 130, 3, 9 } };
    struct tally  tally[7] = { 0 };

    for (int which = 0; which < 12; which++) {
        const struct product_shape shape = { .m = sizes[which / 2][0],
                                             .k = sizes[which / 2][1],
                                             .n = sizes[which / 2][2],
                                             .index_type = GRAFT_I32,
                                             .dtype = which & 1 ? GRAFT_F64 : GRAFT_F32,
                                             .weighted = which & 1,
                                             .numbers = PRODUCT_EXACT };
        try_shape(kernel, &shape, tally);
    }
    mxm_report(kernel, "no rows, no columns, one, many", tally, 1);
}

static void test_special_numbers(const char *kernel, enum product_numbers numbers)
{
    struct tally tally[7] = { 0 };

    for (int which = 0; which < 4; which++) {
        const struct product_shape shape = { .m = 31,
                                             .k = 23,
                                             .n = 17,
                                             .index_type = GRAFT_I32,
                                             .dtype = which & 1 ? GRAFT_F64 : GRAFT_F32,
                                             .weighted = which >> 1,
                                             .numbers = numbers };
        try_shape(kernel, &shape, tally);
    }
    mxm_report(kernel, numbers == PRODUCT_INFINITE ? "infinities" : "NaN and infinities", tally, 1);
}

/** Try rows so long that several threads share one, in which ties show which entry wins, and results so large that they
 * are written past the caches. */
static void test_sizes(const char *kernel, const char *what, int variants, struct product_shape shape)
{
    struct sample  sample = { 9 };
    struct product product;
    struct tally   tally[7] = { 0 };

    judge_product_open(&product, &sample, &shape);
    for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++) {
        product.args.semiring = s;
        for (int i = 0; i < variants; i++) {
            product_set_extras(&product, i == 1, !mxm_is_sum(s) && i < 2);
            product_set_mask(&product, 5 * i);
            product.args.flags = i == 1 ? GRAFT_MXM_ACCUMULATE : 0;
            product_tally(&product, judge.mxm, judge.context, kernel, variants > 1 ? i + 1 : 2, &tally[s]);
        }
    }
    mxm_report(kernel, what, tally, !shape.repeats);
    judge_product_close(&product);
}

/** Try products that are large enough to be shared among threads. Their sums have rounding errors, so that a different
 * order of additions would be found. */
static void test_mxm_threads(const char *kernel, graft_dtype dtype)
{
    const struct product_shape shape = { 900, 24000, 33, GRAFT_I32, dtype, 1, 0, PRODUCT_ROUGH };
    const int                  threads[] = { 2, 3, 5 };
    struct sample              sample = { 5 };
    struct product             product;
    struct tally               tally = { 0 };

    judge_product_open(&product, &sample, &shape);
    for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++) {
        product.args.semiring = s;
        for (int i = 0; i < 3; i++) {
            product_set_extras(&product, i == 1, 0);
            product_set_mask(&product, 5 * i);
            product.args.flags = i == 2 ? GRAFT_MXM_ACCUMULATE : 0;
            product_tally(&product, judge.mxm, judge.context, kernel, threads[i], &tally);
        }
    }
    if (!ok(tally.faults == 0, "%s, %s: bitwise identical on 1, 2, 3 and 5 threads, within rounding of the oracle",
            kernel, dtype == GRAFT_F32 ? "float" : "double"))
        diag("%s", tally.first);
    judge_product_close(&product);
}

/** Try products that take long, because they are shared among threads or are written past the caches. */
void judge_kernel_large(const char *kernel)
{
    test_sizes(kernel, "long rows", 3,
               (struct product_shape){ 40, 24000, 17, GRAFT_I32, GRAFT_F32, 1, 0, PRODUCT_EXACT });
    test_sizes(kernel, "long rows with repeats", 3,
               (struct product_shape){ 40, 12000, 17, GRAFT_I32, GRAFT_F64, 1, 1, PRODUCT_EXACT });
    test_sizes(kernel, "long and wide rows", 3,
               (struct product_shape){ 20, 16500, 270, GRAFT_I64, GRAFT_F32, 0, 0, PRODUCT_EXACT });
    test_mxm_threads(kernel, GRAFT_F32);
    test_mxm_threads(kernel, GRAFT_F64);
    if (strncmp(kernel, "simd", 4) != 0) return;
    test_sizes(kernel, "large, float", 1,
               (struct product_shape){ 90000, 9, 101, GRAFT_I32, GRAFT_F32, 0, 0, PRODUCT_EXACT });
    test_sizes(kernel, "large, double", 1,
               (struct product_shape){ 45000, 9, 101, GRAFT_I32, GRAFT_F64, 0, 0, PRODUCT_EXACT });
}

void judge_kernel(const char *kernel)
{
    test_mxm_shapes(kernel, GRAFT_F32);
    test_mxm_shapes(kernel, GRAFT_F64);
    test_odd_shapes(kernel);
    test_special_numbers(kernel, PRODUCT_INFINITE);
    test_special_numbers(kernel, PRODUCT_SPECIAL);
}
