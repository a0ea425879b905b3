/* Checks of modules that implement kernels or dense products. Results are compared with the oracle, and the module must
 * leave the process unchanged. Unit tests and graft-check share this code, which uses only abi/ and the oracle. Checks
 * are printed as TAP.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_H
#define JUDGE_H

#include "graft_mxm.h"
#include "oracle/product.h"

/** The library whose kernels are judged. */
struct judge {
    const graft_api     *api;
    const graft_mxm_api *mxm;
    graft_context       *context;
    int                  strict;    /* whether no other kernel replaces this one, so that it may refuse a product */
    int                  by_kernel; /* number of products that the kernel computed itself */
    /* The step between those combinations of mask, flags and epilogue that are tried; 0 or 1 tries all. */
    int                  case_step;
};
extern struct judge judge;

/** Judge a kernel by small products: all types, semirings, masks and flags, special numbers, and matrices without
 * rows. */
void judge_kernel(const char *kernel);

/** Judge a kernel by products that are large enough to be shared among threads. */
void judge_kernel_large(const char *kernel);

/** Judge a kernel by epilogues, and by rows in bfloat16. */
void judge_epilogue(const char *kernel);

/** Judge a dense module, given as the path of its file. No library is needed. */
void judge_dense(const char *path);

/* Parts of these checks that other tests also use. */

/** Make a random product and its graft_matrix. judge_product_close() frees both. */
void          judge_product_open(struct product *product, struct sample *sample, const struct product_shape *shape);
void          judge_product_close(struct product *product);
graft_matrix *judge_matrix(const graft_csr *csr);
void          judge_masks(struct product *p, const char *kernel, graft_semiring semiring, struct sample *sample,
                          struct tally *tally);

enum { JUDGE_M = 37, JUDGE_K = 29, JUDGE_WIDTH_MAX = 300, JUDGE_VERTEX_SHIFT = 1000 };

/** A product with all parts of an epilogue, and its expected result. All combinations share its arrays. */
struct judge_scene {
    struct sample_csr a;
    graft_matrix     *matrix;
    int64_t           n, vertex[JUDGE_M];
    int               refused; /* number of products that were refused, with judge.strict */
    graft_dense       b, c, residual;
    graft_mask        mask;
    graft_epilogue    epilogue;
    graft_mxm_args    args;
    double            expected[JUDGE_M * JUDGE_WIDTH_MAX];
    uint8_t           expected_bits[JUDGE_M * (JUDGE_WIDTH_MAX / 8 + 1)];
};

graft_dense judge_dense_view(void *data, graft_dtype dtype, int64_t n_rows, int64_t n_cols);
void        judge_scene_init(struct judge_scene *s, struct sample *sample, int64_t n);
void        judge_scene_fini(struct judge_scene *s);
/** Run the product. The result is whether it is right, or was refused where that is legal. */
int         judge_scene_right(struct judge_scene *s, double tolerance);

#endif
