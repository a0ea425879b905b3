/* Sparse products: matrices that kernels have prepared for, the checks of a product, and the choice of a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_KERNEL_KERNEL_H
#define GR_KERNEL_KERNEL_H

#include "base/context.h"
#include "graft_module.h"

/** The plain loops, built in. */
extern const graft_module_table gr_kernel_reference;

/** What one kernel made for one matrix. */
struct gr_prepared {
    int32_t             module; /* index in the context */
    void               *data;
    int64_t             bytes;
    struct gr_prepared *next;
};

struct graft_matrix {
    graft_context      *context;
    graft_csr           csr;
    void               *owned[3]; /* arrays to free with the matrix, or NULL */
    int64_t             owned_bytes;
    struct gr_prepared *prepared;

    /* What edge operators prepared, freed with the matrix. */
    void *edge_map;
    void (*edge_map_free)(graft_context *context, void *edge_map);
    int64_t edge_map_bytes;
};

/** Wrap a csr that has been checked. */
int32_t gr_matrix_create(graft_context *context, const graft_csr *csr, graft_matrix **matrix, graft_error *error);

/** Let the matrix own the arrays of its csr, which came from gr_new(). */
void gr_matrix_adopt(graft_matrix *matrix);

int64_t gr_matrix_bytes(const graft_matrix *matrix);
/** The same without what kernels prepared. */
int64_t gr_matrix_own_bytes(const graft_matrix *matrix);
void    gr_matrix_destroy(graft_matrix *matrix);

/** Let go of what kernels prepared. Who changes values in place calls it, for kernels may hold copies of them (the
 *  contract lets them); the next product prepares anew, with `simd` by two passes over the row pointers. The map of
 *  edge operators stays: it knows places and no values. */
void gr_matrix_unprepare(graft_matrix *matrix);

/** What the kernel `module` prepared for the matrix, made now if it is not there. */
int32_t gr_matrix_prepare(graft_matrix *matrix, int32_t module, void **data, graft_error *error);

/** Whether a dense matrix can be what it says; `name` is what the message calls it. */
int32_t gr_dense_check(const graft_dense *dense, const char *name, graft_error *error);

int gr_dense_overlap(const graft_dense *x, const graft_dense *y);

/** Copy between float and bfloat16. */
int32_t gr_dense_convert(const graft_dense *from, const graft_dense *to, int threads, graft_error *error);

/** Whether the arguments fit together; see graft_mxm.run() for what is refused. */
int32_t gr_mxm_check(const graft_mxm_args *args, graft_error *error);

/** A product whose arguments are complete and checked. */
int32_t gr_mxm_run(graft_context *context, const graft_mxm_args *args, graft_error *error);

/** Option mxm.verify. begin() keeps what the comparison needs of the rows it samples, and gives NULL if the option is
 *  0; compare() does them again, after the product; end() frees it, and takes NULL. */
struct gr_verify;
int32_t gr_verify_begin(graft_context *context, const graft_mxm_args *args, struct gr_verify **verify,
                        graft_error *error);
int32_t gr_verify_compare(const struct gr_verify *verify, graft_error *error);
void    gr_verify_end(struct gr_verify *verify);

/** Which kernel would run `args`, or, for NULL, which ran last. */
int32_t gr_mxm_explain(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                       graft_error *error);

#endif
