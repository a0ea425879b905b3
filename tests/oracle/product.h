/* A masked product for tests: random operands in arrays with canaries around them and in the gaps of their strides, and
 * the comparison with the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PRODUCT_H
#define PRODUCT_H

#include "oracle.h"
#include "sample.h"

/** An array between canaries, and a copy of the original bytes. */
struct block {
    uint64_t       bytes; /* of the array and both canaries */
    unsigned char *memory, *before;
    void          *data; /* the array */
};

/** An array of `bytes` bytes, to be filled, and then kept unchanged. */
void block_init(struct block *block, uint64_t array_bytes);
void block_keep(struct block *block);
void block_fini(struct block *block);

/** Whether no byte has changed; or only the elements of an [m x n] matrix in rows of `stride` elements. */
int block_is_untouched(const struct block *block);
int block_gaps_are_untouched(const struct block *block, int64_t m, int64_t n, int64_t stride, uint64_t element);

struct product {
    struct sample_csr a;
    int64_t           n;
    graft_dtype       dtype;
    int               rough;
    int               may_refuse, refused; /* ERR_UNSUPPORTED is legal; whether the last try was refused */
    struct block      b, c, winner, scale, present, values;
    graft_dense       b_view, c_view;
    graft_mask        mask;
    graft_mxm_args    args;             /* complete except for `a`, the graft_matrix */
    double           *expect_c, *bound; /* [m x n] from the oracle */
    int64_t          *expect_winner;
};

/** The numbers of a product: any numbers, compared within rounding errors; numbers without rounding errors, compared
 *  for equality; or numbers with infinities, and perhaps NaN, in B and C. */
enum product_numbers { PRODUCT_ROUGH, PRODUCT_EXACT, PRODUCT_INFINITE, PRODUCT_SPECIAL };

/** The parameters of a random product. */
struct product_shape {
    int64_t              m, k, n;
    graft_dtype          index_type, dtype;
    int                  weighted;
    int                  repeats; /* columns may come more than once in a row */
    enum product_numbers numbers;
};

/** The number of masks of product_set_mask(). */
enum { PRODUCT_MASKS = 25 };

void product_init(struct product *product, struct sample *sample, const struct product_shape *shape);
void product_fini(struct product *product);

/** Make mask number 0 .. PRODUCT_MASKS-1 the mask of args: no mask, then every kind with every combination of flags and
 *  of missing arrays. */
void product_set_mask(struct product *product, int number);

/** Turn row scale and winner on or off. */
void product_set_extras(struct product *product, int scale, int winner);

/** Restore C and winner as they were before the first run. */
void product_restore(struct product *product);

/** Compute the expected result; args must be complete, and C restored. */
void product_expect(struct product *product);

/** NULL if C and winner are as expected and no other byte of any array has changed; else a sentence, in static memory,
 *  that describes the difference. */
const char *product_differs(struct product *product);

/** Run args on one thread and compare with the oracle; then, if `threads` is more than 1, on `threads` threads, for the
 *  same bits; and again with rows_done, which must see every row once, in its final state. NULL if all is right, else a
 *  sentence in static memory. */
const char *product_try(struct product *product, const graft_mxm *mxm, graft_context *context, int threads);

/** The results of many products: numbers of differing products and of products by the requested kernel, and the first
 *  fault. */
struct tally {
    int  runs, faults, by_kernel, refused;
    char first[512];
};

/** product_try(), counted. */
void product_tally(struct product *product, const graft_mxm *mxm, graft_context *context, const char *kernel,
                   int threads, struct tally *tally);

/** Whether this kernel ran last, according to explain(). */
int product_ran_by(const graft_mxm *mxm, graft_context *context, const char *kernel);

/** Whether no byte of any array has changed. */
int product_is_untouched(const struct product *product);

#endif
