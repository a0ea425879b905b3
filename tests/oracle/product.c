/* Makes random masked products and compares their results with the oracle, see oracle/product.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CANARY_BYTES = 64, CANARY = 0xC3, MASK_GAP = 3, THREADS_MOST = 8 };

void block_init(struct block *block, uint64_t array_bytes)
{
    block->bytes = array_bytes + 2 * CANARY_BYTES;
    block->memory = oracle_new((int64_t)block->bytes, 1);
    block->before = oracle_new((int64_t)block->bytes, 1);
    memset(block->memory, CANARY, block->bytes);
    block->data = block->memory + CANARY_BYTES;
}

void block_keep(struct block *block)
{
    memcpy(block->before, block->memory, block->bytes);
}

int block_is_untouched(const struct block *block)
{
    return memcmp(block->memory, block->before, block->bytes) == 0;
}

void block_fini(struct block *block)
{
    free(block->memory);
    free(block->before);
}

static double product_draw(struct sample *sample, enum product_numbers numbers)
{
    if (numbers == PRODUCT_ROUGH) return sample_real(sample, -3, 3);
    if (numbers != PRODUCT_EXACT && sample_below(sample, 12) == 0) {
        const double special[] = { INFINITY, -INFINITY, -0.0, NAN };
        return special[sample_below(sample, numbers == PRODUCT_INFINITE ? 3 : 4)];
    }
    return sample_exact(sample, 24, 8);
}

static graft_dense init_dense(struct block *block, struct sample *sample, int64_t rows, int64_t cols,
                              const struct product_shape *shape)
{
    const graft_dtype dtype = shape->dtype;
    graft_dense       dense = GRAFT_INIT(graft_dense);

    dense.dtype = dtype;
    dense.n_rows = rows;
    dense.n_cols = cols;
    dense.stride = cols + sample_below(sample, 4);
    block_init(block, (uint64_t)(rows * dense.stride) * sample_bytes(dtype));
    dense.data = block->data;
    for (int64_t at = 0; at < rows * cols; at++)
        sample_put(dense.data, dtype, at / cols * dense.stride + at % cols, product_draw(sample, shape->numbers));
    block_keep(block);
    return dense;
}

/** Fill a byte mask with many zeros, some ones, and some other values, which also count as true. */
static void init_bytes(struct block *block, struct sample *sample, int64_t count)
{
    block_init(block, (uint64_t)count);
    for (int64_t at = 0; at < count; at++)
        ((uint8_t *)block->data)[at] = (uint8_t)(sample_below(sample, 5) < 2 ? 0 : sample_below(sample, 256));
    block_keep(block);
}

static void init_scale_and_winner(struct product *product, struct sample *sample)
{
    const graft_csr *a = &product->a.csr;
    const int64_t    stride = product->n + sample_below(sample, 3);

    block_init(&product->scale, (uint64_t)a->n_rows * sample_bytes(product->dtype));
    for (int64_t i = 0; i < a->n_rows; i++) {
        double value = product->rough ? sample_real(sample, -1, 2) : sample_exact(sample, 8, 4);

        if (a->row_ptr[i] == a->row_ptr[i + 1]) value = INFINITY; /* 1 / degree, which turns the sum into a mean */
        sample_put(product->scale.data, product->dtype, i, value);
    }
    block_keep(&product->scale);
    block_init(&product->winner, (uint64_t)(a->n_rows * stride) * sample_bytes(a->index_type));
    for (int64_t at = 0; at < a->n_rows * product->n; at++)
        sample_put(product->winner.data, a->index_type, at / product->n * stride + at % product->n,
                   (double)(at + 1000));
    block_keep(&product->winner);
    product->args.winner_stride = stride;
}

void product_init(struct product *product, struct sample *sample, const struct product_shape *shape)
{
    const int64_t                 m = shape->m, n = shape->n;
    const struct sample_csr_shape sparse = { m,
                                             shape->k,
                                             shape->index_type,
                                             shape->weighted ? shape->dtype : 0,
                                             shape->repeats,
                                             shape->numbers != PRODUCT_ROUGH };

    memset(product, 0, sizeof *product);
    product->n = n;
    product->dtype = shape->dtype;
    product->rough = shape->numbers == PRODUCT_ROUGH;
    sample_csr_init_shape(&product->a, sample, &sparse);
    product->b_view = init_dense(&product->b, sample, shape->k, n, shape);
    product->c_view = init_dense(&product->c, sample, m, n, shape);
    product->args = GRAFT_INIT(graft_mxm_args);
    init_scale_and_winner(product, sample);
    init_bytes(&product->present, sample, m * (n + MASK_GAP));
    init_bytes(&product->values, sample, m * (n + MASK_GAP));
    product->args.semiring = GRAFT_PLUS_TIMES;
    product->args.threads = 1;
    product->args.b = &product->b_view;
    product->args.c = &product->c_view;
    product->expect_c = oracle_new(m * n, sizeof *product->expect_c);
    product->bound = oracle_new(m * n, sizeof *product->bound);
    product->expect_winner = oracle_new(m * n, sizeof *product->expect_winner);
}

void product_fini(struct product *product)
{
    sample_csr_fini(&product->a);
    block_fini(&product->b);
    block_fini(&product->c);
    block_fini(&product->winner);
    block_fini(&product->scale);
    block_fini(&product->present);
    block_fini(&product->values);
    free(product->expect_c);
    free(product->bound);
    free(product->expect_winner);
}

void product_set_mask(struct product *product, int number)
{
    /* The masks are masks of rows, of bits, and of bytes; with arrays `present` or `values`, both, or neither. */
    const int variant = (number - 1) / 4;

    product->args.mask = NULL;
    if (number == 0) return;
    product->mask = GRAFT_INIT(graft_mask);
    product->mask.kind = variant == 0 ? GRAFT_MASK_ROWS : variant == 1 ? GRAFT_MASK_BITS : GRAFT_MASK_BYTES;
    product->mask.flags = (uint32_t)((number - 1) % 4);
    product->mask.stride = variant == 1 ? (product->n + 7) / 8 + MASK_GAP - 2 : product->n + MASK_GAP;
    product->mask.present = variant != 3 && variant != 5 ? product->present.data : NULL;
    product->mask.values = variant == 3 || variant == 4 ? product->values.data : NULL;
    product->args.mask = &product->mask;
}

void product_set_extras(struct product *product, int scale, int winner)
{
    product->args.row_scale = scale ? product->scale.data : NULL;
    product->args.winner = winner ? product->winner.data : NULL;
}

void product_restore(struct product *product)
{
    memcpy(product->c.memory, product->c.before, product->c.bytes);
    memcpy(product->winner.memory, product->winner.before, product->winner.bytes);
}

void product_expect(struct product *product)
{
    oracle_mxm(&product->a.csr, &product->args, product->expect_c, product->expect_winner, product->bound);
}

int product_is_untouched(const struct product *product)
{
    return block_is_untouched(&product->c) && block_is_untouched(&product->winner) && block_is_untouched(&product->b) &&
           block_is_untouched(&product->scale) && block_is_untouched(&product->present) &&
           block_is_untouched(&product->values);
}

/** Whether an element is right. Numbers that are rounded may differ by the rounding errors of the additions. */
static int product_agrees(const struct product *product, double found, int64_t at)
{
    const graft_csr *a = &product->a.csr;
    const int64_t    row = at / product->n;
    const double     expected = product->expect_c[at];
    const double     unit = product->dtype == GRAFT_F32 ? FLT_EPSILON : DBL_EPSILON;
    const int64_t    roundings = a->row_ptr[row + 1] - a->row_ptr[row] + 3;

    if (found == expected || (isnan(found) && isnan(expected))) return 1;
    return product->rough && fabs(found - expected) <= unit * (double)roundings * product->bound[at];
}

int block_gaps_are_untouched(const struct block *block, int64_t m, int64_t n, int64_t stride, uint64_t element)
{
    unsigned char *masked = oracle_new((int64_t)block->bytes, 1);
    int            equal = 0;

    memcpy(masked, block->memory, block->bytes);
    for (int64_t i = 0; i < m && n > 0; i++) {
        const uint64_t from = CANARY_BYTES + (uint64_t)(i * stride) * element;
        memcpy(masked + from, block->before + from, (uint64_t)n * element);
    }
    equal = memcmp(masked, block->before, block->bytes) == 0;
    free(masked);
    return equal;
}

const char *product_differs(struct product *product)
{
    static char    text[256];
    const int64_t  m = product->a.csr.n_rows, n = product->n, stride = product->args.winner_stride;
    const uint64_t index = sample_bytes(product->a.csr.index_type);

    for (int64_t at = 0; at < m * n; at++) {
        const int64_t place = at / n * product->c_view.stride + at % n;
        const double  found = product->dtype == GRAFT_F32 ? (double)((float *)product->c.data)[place]
                                                          : ((double *)product->c.data)[place];
        const int64_t place_w = at / n * stride + at % n;
        const int64_t winner =
            index == 4 ? ((int32_t *)product->winner.data)[place_w] : ((int64_t *)product->winner.data)[place_w];

        if (!product_agrees(product, found, at)) {
            snprintf(text, sizeof text, "C(%lld,%lld) is %.17g, expected %.17g", (long long)(at / n),
                     (long long)(at % n), found, product->expect_c[at]);
            return text;
        }
        if (product->args.winner != NULL && winner != product->expect_winner[at]) {
            snprintf(text, sizeof text, "winner(%lld,%lld) is %lld, expected %lld", (long long)(at / n),
                     (long long)(at % n), (long long)winner, (long long)product->expect_winner[at]);
            return text;
        }
    }
    if (!block_gaps_are_untouched(&product->c, m, n, product->c_view.stride, sample_bytes(product->dtype)))
        return "bytes around or between the rows of C have changed";
    if (product->args.winner != NULL ? !block_gaps_are_untouched(&product->winner, m, n, stride, index)
                                     : !block_is_untouched(&product->winner))
        return "bytes around or between the rows of winner have changed";
    if (!block_is_untouched(&product->b) || !block_is_untouched(&product->scale) ||
        !block_is_untouched(&product->present) || !block_is_untouched(&product->values))
        return "an operand has changed";
    return NULL;
}

/** What the calls of rows_done reported: the number of reports of each row, and C and winner at the time of each
 * call. */
struct told {
    const struct product *product;
    _Atomic int          *times; /* [m] number of reports of each row */
    unsigned char        *c, *winner;
    /* Whether each thread is inside a call; and the code of the first error, or 0. */
    _Atomic int           busy[THREADS_MOST], wrong;
};

enum { NO_SUCH_ROWS = 1, NO_SUCH_THREAD, THREAD_IS_BUSY };

/** The bytes of one row of an [m x n] array, as a part of its block. */
struct row {
    uint64_t at, bytes;
};

static struct row row_of(int64_t row, int64_t n, int64_t stride, uint64_t element)
{
    return (struct row){ CANARY_BYTES + (uint64_t)(row * stride) * element, (uint64_t)n * element };
}

static struct row row_of_c(const struct product *p, int64_t row)
{
    return row_of(row, p->n, p->c_view.stride, sample_bytes(p->dtype));
}

static struct row row_of_winner(const struct product *p, int64_t row)
{
    return row_of(row, p->n, p->args.winner_stride, sample_bytes(p->a.csr.index_type));
}

static void product_note_rows(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    struct told          *told = arg;
    const struct product *p = told->product;

    if (begin < 0 || end > p->a.csr.n_rows || begin > end) told->wrong = NO_SUCH_ROWS;
    if (thread < 0 || thread >= p->args.threads) told->wrong = NO_SUCH_THREAD;
    if (told->wrong) return;
    if (atomic_exchange(&told->busy[thread], 1)) told->wrong = THREAD_IS_BUSY;
    for (int64_t row = begin; row < end; row++) {
        const struct row c = row_of_c(p, row), winner = row_of_winner(p, row);

        told->times[row]++;
        memcpy(told->c + c.at, p->c.memory + c.at, c.bytes);
        memcpy(told->winner + winner.at, p->winner.memory + winner.at, winner.bytes);
    }
    told->busy[thread] = 0;
}

static const char *fault_of_told(const struct told *told)
{
    static const char *const words[] = { NULL, "rows_done receives rows that there are not",
                                         "rows_done has the number of a thread that there is not",
                                         "rows_done has the same number for two threads at once" };
    const struct product    *p = told->product;

    if (told->wrong) return words[told->wrong];
    for (int64_t row = 0; row < p->a.csr.n_rows; row++) {
        const struct row c = row_of_c(p, row), winner = row_of_winner(p, row);

        if (told->times[row] != 1)
            return told->times[row] == 0 ? "rows_done does not receive a row" : "rows_done receives a row twice";
        if (memcmp(told->c + c.at, p->c.memory + c.at, c.bytes) != 0 ||
            memcmp(told->winner + winner.at, p->winner.memory + winner.at, winner.bytes) != 0)
            return "rows_done receives a row that changes after that";
    }
    return NULL;
}

/** Run the product on `threads` threads with the callback rows_done, and check its calls. */
static const char *run_told(struct product *product, const graft_mxm_api *mxm, graft_context *context, int threads)
{
    struct told told = { .product = product };
    const char *fault;

    told.times = oracle_new(product->a.csr.n_rows, sizeof *told.times);
    told.c = oracle_new((int64_t)product->c.bytes, 1);
    told.winner = oracle_new((int64_t)product->winner.bytes, 1);
    product->args.threads = threads;
    product->args.rows_done = product_note_rows;
    product->args.rows_arg = &told;
    fault = mxm->run(context, &product->args, NULL) == GRAFT_OK ? fault_of_told(&told) : "refused with rows_done";
    product->args.rows_done = NULL;
    product->args.rows_arg = NULL;
    free(told.times);
    free(told.c);
    free(told.winner);
    return fault;
}

static const char *run_plain(struct product *product, const graft_mxm_api *mxm, graft_context *context, int threads)
{
    product->args.threads = threads;
    return mxm->run(context, &product->args, NULL) == GRAFT_OK ? NULL : "refused on more than one thread";
}

/** Run the product again on `threads` threads. All bytes must be the same as in the first run, including canaries. */
static const char *run_again(struct product *product, const graft_mxm_api *mxm, graft_context *context, int threads,
                             const char *(*run)(struct product *, const graft_mxm_api *, graft_context *, int))
{
    unsigned char *c = oracle_new((int64_t)product->c.bytes, 1);
    unsigned char *winner = oracle_new((int64_t)product->winner.bytes, 1);
    const char    *fault = NULL;

    memcpy(c, product->c.memory, product->c.bytes);
    memcpy(winner, product->winner.memory, product->winner.bytes);
    product_restore(product);
    fault = run(product, mxm, context, threads);
    if (fault == NULL && (memcmp(c, product->c.memory, product->c.bytes) != 0 ||
                          memcmp(winner, product->winner.memory, product->winner.bytes) != 0))
        fault = run == run_plain ? "other bits than one thread" : "other bits than without rows_done";
    free(c);
    free(winner);
    return fault;
}

const char *product_try(struct product *product, const graft_mxm_api *mxm, graft_context *context, int threads)
{
    static graft_error error;
    static int         tried;
    const char        *fault = NULL;
    int32_t            rc;

    error = GRAFT_INIT(graft_error);
    product_restore(product);
    product_expect(product);
    product->args.threads = 1;
    rc = mxm->run(context, &product->args, &error);
    product->refused = rc == GRAFT_ERR_UNSUPPORTED && product->may_refuse;
    if (product->refused) return product_is_untouched(product) ? NULL : "refused after it had changed an array";
    if (rc != GRAFT_OK) return error.message;
    fault = product_differs(product);
    if (fault == NULL && threads > 1) fault = run_again(product, mxm, context, threads, run_plain);
    /* To save time, only every third product is run again. */
    return fault == NULL && tried++ % 3 == 0 ? run_again(product, mxm, context, threads, run_told) : fault;
}

static const char *mask_text(const graft_mask *mask)
{
    static const char *const  kinds[] = { "no mask", "mask of rows", "mask of bits", "mask of bytes" };
    static _Thread_local char text[80];

    if (mask->kind < 0 || mask->kind > GRAFT_MASK_BYTES) return "an unknown mask";
    snprintf(text, sizeof text, "%s%s%s", kinds[mask->kind], mask->flags & GRAFT_MASK_STRUCTURE ? ", structure" : "",
             mask->flags & GRAFT_MASK_COMPLEMENT ? ", complement" : "");
    return text;
}

/** Describe the arguments in one line. The line above it names the semiring. */
static void product_describe(const struct product *product, char *text, size_t capacity)
{
    const graft_mxm_args *args = &product->args;
    const graft_csr      *a = &product->a.csr;
    const graft_mask      none = { 0 }, *mask = args->mask != NULL ? args->mask : &none;

    snprintf(text, capacity, "%lld x %lld graph%s with indices of %d bits, %lld columns of %s%s%s, %s%s%s, %d threads",
             (long long)a->n_rows, (long long)a->n_cols, a->values != NULL ? " with values" : "",
             a->index_type == GRAFT_I32 ? 32 : 64, (long long)product->n,
             product->dtype == GRAFT_F32   ? "float"
             : product->dtype == GRAFT_F64 ? "double"
                                           : "bfloat16",
             args->flags & GRAFT_MXM_ACCUMULATE ? ", accumulated" : "",
             args->flags & GRAFT_MXM_REPLACE ? ", replace" : "", mask_text(mask),
             args->row_scale != NULL ? ", row_scale" : "", args->winner != NULL ? ", winner" : "", args->threads);
}

int product_ran_by(const graft_mxm_api *mxm, graft_context *context, const char *kernel)
{
    char text[512] = "";

    if (mxm->explain(context, NULL, text, sizeof text, NULL) != GRAFT_OK) return 0;
    return strncmp(text, kernel, strlen(kernel)) == 0 && text[strlen(kernel)] == ' ';
}

void product_tally(struct product *product, const graft_mxm_api *mxm, graft_context *context, const char *kernel,
                   int threads, struct tally *tally)
{
    const char *fault = product_try(product, mxm, context, threads);

    tally->runs++;
    tally->refused += product->refused;
    tally->by_kernel += !product->refused && product_ran_by(mxm, context, kernel);
    if (fault != NULL && tally->faults++ == 0) {
        product_describe(product, tally->first, sizeof tally->first);
        snprintf(tally->first + strlen(tally->first), sizeof tally->first - strlen(tally->first), ": %s", fault);
    }
}
