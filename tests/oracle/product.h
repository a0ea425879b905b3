/* A masked product for tests of kernels. Its random operands are in arrays with canaries around them and in the gaps
 * between rows, and its result is compared with the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PRODUCT_H
#define PRODUCT_H

#include "oracle.h"
#include "sample.h"

/** An array between two canaries, and a copy of its original bytes. */
struct block {
    uint64_t       bytes; /* size of the array and its canaries */
    unsigned char *memory, *before;
    void          *data; /* start of the array */
};

/** Allocate an array of `bytes` bytes. The caller fills it and calls block_keep(), after which it must not change. */
void block_init(struct block *block, uint64_t array_bytes);
void block_keep(struct block *block);
void block_fini(struct block *block);

/** Whether no byte has changed. The second function ignores the elements of an [m x n] matrix with rows of `stride`
 * elements. */
int block_is_untouched(const struct block *block);
int block_gaps_are_untouched(const struct block *block, int64_t m, int64_t n, int64_t stride, uint64_t element);

struct product {
    struct sample_csr a;
    int64_t           n;
    graft_dtype       dtype;
    int               rough;
    /* whether ERR_UNSUPPORTED is legal, and whether the last run was refused */
    int               may_refuse, refused;
    struct block      b, c, winner, scale, present, values;
    graft_dense       b_view, c_view;
    graft_mask        mask;
    graft_mxm_args    args;             /* complete arguments, except for `a`, the graft_matrix */
    double           *expect_c, *bound; /* [m x n] result of the oracle, and bounds of rounding errors */
    int64_t          *expect_winner;
};

/** The numbers in a product: with rounding errors; without rounding errors, so that results must be equal; or with
 * infinities, and perhaps NaN, in B and C. */
enum product_numbers { PRODUCT_ROUGH, PRODUCT_EXACT, PRODUCT_INFINITE, PRODUCT_SPECIAL };

/** The parameters of a random product. */
struct product_shape {
    int64_t              m, k, n;
    graft_dtype          index_type, dtype;
    int                  weighted;
    int                  repeats; /* whether a column may occur more than once in a row */
    enum product_numbers numbers;
};

/** The number of masks that product_set_mask() knows. */
enum { PRODUCT_MASKS = 25 };

void product_init(struct product *product, struct sample *sample, const struct product_shape *shape);
void product_fini(struct product *product);

/** Set mask number 0 to PRODUCT_MASKS-1 in args. Number 0 is no mask. The others are masks of every kind with every
 * combination of flags and of missing arrays. */
void product_set_mask(struct product *product, int number);

/** Turn row scale and winner on or off. */
void product_set_extras(struct product *product, int scale, int winner);

/** Restore C and winner as they were before the first run. */
void product_restore(struct product *product);

/** Compute the expected result. args must be complete, and C restored. */
void product_expect(struct product *product);

/** Compare C and winner with the expected result, and all other bytes of all arrays with their copies. The result is
 * NULL or a sentence in static memory. */
const char *product_differs(struct product *product);

/** Run the product on one thread and compare it with the oracle. If `threads` is more than 1, also run it on that many
 * threads, which must give bitwise identical results, and again with rows_done, which must report every row once, in
 * its final state. The result is NULL or a sentence in static memory. */
const char *product_try(struct product *product, const graft_mxm_api *mxm, graft_context *context, int threads);

/** Counts over many products: the number of wrong ones and of those that the requested kernel computed itself, and the
 * first fault. */
struct tally {
    int  runs, faults, by_kernel, refused;
    char first[512];
};

/** Call product_try() and count its result. */
void product_tally(struct product *product, const graft_mxm_api *mxm, graft_context *context, const char *kernel,
                   int threads, struct tally *tally);

/** Whether explain() says that this kernel ran last. */
int product_ran_by(const graft_mxm_api *mxm, graft_context *context, const char *kernel);

/** Whether no byte of any array has changed. */
int product_is_untouched(const struct product *product);

#endif
