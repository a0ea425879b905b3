/* Sparse products: the matrix object, the checks of a product, and the choice of a kernel.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"
#include "base/loan.h"
#include "base/semiring.h"
#include "base/team.h"
#include "graft_module.h"

/** The plain loops; built in. */
extern const graft_module_table gr_kernel_reference;

/** The data that one kernel prepared for one matrix. */
struct gr_prepared {
    int32_t             module; /* index of the kernel in the context */
    void               *data;
    int64_t             bytes;
    struct gr_prepared *next;
};

/** What another room derives from a matrix, freed with it. */
struct gr_attached {
    void *data; /* NULL: nothing */
    void (*destroy)(graft_context *context, void *data);
    int64_t bytes;
};

/** A block of rows begin .. end-1 of a matrix, as matrix `a`. `first` and `last` are the smallest and the largest
 *  column of its entries. */
struct gr_row_block {
    graft_matrix *a;
    int64_t       begin, end, first, last;
};

enum { GR_OWNED_ROWS, GR_OWNED_COLUMNS, GR_OWNED_VALUES, GR_OWNED };

struct graft_matrix {
    struct gr_handle    handle;
    graft_context      *context;
    graft_csr           csr;
    void               *owned[GR_OWNED]; /* arrays to free with the matrix, or NULL */
    int64_t             owned_bytes;
    struct gr_loans     loans;
    struct gr_prepared *prepared;
    struct gr_attached  attached;

    struct gr_row_block *blocks; /* [n_blocks] blocks of block_rows rows each; or NULL */
    int64_t              n_blocks, block_rows;
};

/** Wrap a checked CSR, whose arrays the caller keeps. \return OK; ERR_NOMEM */
int32_t gr_matrix_create(graft_context *context, const graft_csr *csr, graft_matrix **matrix, graft_error *error);

/** Check a matrix that the host passes to a call in `context`, as gr_handle_check() does, and with check=full its
 *  borrowed arrays. Without `values`, changed values are accepted. \return as gr_handle_check() and gr_loans_check() */
int32_t gr_matrix_check(const graft_context *context, const graft_matrix *matrix, const char *name, int values,
                        graft_error *error);

/** With check=full, lend() computes the digests of the borrowed arrays of `csr`, the host's, and lend_values() updates
 *  the digest of changed values. */
void gr_matrix_lend(graft_matrix *matrix, const graft_csr *csr);
void gr_matrix_lend_values(graft_matrix *matrix);

/** Pass row pointers, allocated by gr_new(), to the matrix, which uses and frees them; NULL: no change. */
void gr_matrix_adopt_rows(graft_matrix *matrix, int64_t *row_ptr);

/** Pass the arrays of the CSR, allocated by gr_new(), to the matrix, which frees them. */
void gr_matrix_adopt(graft_matrix *matrix);

/** Replace the values by values that the caller keeps; or swap *values with the values that the matrix owns. Both free
 *  the data prepared by kernels. */
void gr_matrix_set_values(graft_matrix *matrix, const void *values);
void gr_matrix_swap_values(graft_matrix *matrix, void **values);

int64_t gr_matrix_bytes(const graft_matrix *matrix);
/** Bytes of the arrays that the matrix owns and of attached data, without blocks and data prepared by kernels. */
int64_t gr_matrix_own_bytes(const graft_matrix *matrix);
void    gr_matrix_destroy(graft_matrix *matrix);

/** Free data prepared by kernels. Required after a change of values in place, because kernels may hold copies; the next
 *  product prepares them again. The map of the edge operators remains, because it has no values. */
void gr_matrix_unprepare(graft_matrix *matrix);

/** Divide the matrix into blocks of `rows` rows, unless this was done before. They share its columns and values, and
 *  are freed with the data prepared by kernels. \return OK; ERR_NOMEM */
int32_t gr_matrix_cut(graft_matrix *matrix, int64_t rows, graft_error *error);
/** Bytes of the blocks, without data prepared by kernels. */
int64_t gr_matrix_blocks_bytes(const graft_matrix *matrix);

/** Get the data that kernel `module` prepared for the matrix; the first call prepares them. \return OK; ERR_NOMEM;
 *  errors of the kernel */
int32_t gr_matrix_prepare(graft_matrix *matrix, int32_t module, void **data, graft_error *error);

/** Check type, sizes and pointer; `name` is how the message calls the matrix. \return OK; ERR_ARG */
int32_t gr_kernel_dense_check(const graft_dense *dense, const char *name, graft_error *error);

int gr_kernel_dense_overlaps(const graft_dense *x, const graft_dense *y);

/** Convert between float and bfloat16. \return OK; ERR_ARG (other types, different shapes, overlap). [starts-openmp] */
int32_t gr_kernel_dense_convert(const graft_dense *from, const graft_dense *to, struct gr_team team,
                                graft_error *error);

/** Check that the arguments agree with each other. \return OK; ERR_ARG, for the cases that graft_mxm_api.run() lists */
int32_t gr_mxm_check(const graft_mxm_args *args, graft_error *error);

/** Run a product whose arguments are complete and checked. [starts-openmp] */
int32_t gr_mxm_run(graft_context *context, const graft_mxm_args *args, graft_error *error);

/** Choose the kernel for a product whose arguments are complete and checked, and prepare the matrix for it, so that
 *  gr_mxm_run() may be called in a thread of a team. *concurrent becomes 0 if the kernel serves one thread at a time.
 *  [starts-openmp] */
int32_t gr_mxm_prepare(graft_context *context, const graft_mxm_args *args, int *concurrent, graft_error *error);

/** Option check=full places the outputs of a product between guard zones in memory of the library. begin() sets
 *  `inside` to the arguments for the kernel; for other values of the option they are the host's, and *guard is
 *  unchanged. check() returns ERR_MODULE if a kernel wrote elsewhere, and finish() copies the results to the host.
 *  end() accepts NULL. */
struct gr_guard;
int32_t gr_mxm_guard_begin(graft_context *context, const graft_mxm_args *args, graft_mxm_args *inside,
                           struct gr_guard **guard, graft_error *error);
int32_t gr_mxm_guard_check(const struct gr_guard *guard, const char *kernel, graft_error *error);
void    gr_mxm_guard_finish(const struct gr_guard *guard);
void    gr_mxm_guard_end(struct gr_guard *guard);

/** Option mxm.verify compares products with the reference kernel. begin() samples rows and saves what their comparison
 *  needs; *verify is NULL if the option is 0 and check is not full. compare() repeats these rows after the product and
 *  returns ERR_MODULE if one differs. end() accepts NULL. */
struct gr_verify;
/** Whether products are compared. Then rows_done must not change the rows. */
int     gr_mxm_verifies(const graft_context *context);
int32_t gr_mxm_verify_begin(graft_context *context, const graft_mxm_args *args, struct gr_verify **verify,
                            graft_error *error);
int32_t gr_mxm_verify_compare(const struct gr_verify *verify, const char *kernel, graft_error *error);
void    gr_mxm_verify_end(struct gr_verify *verify);

/** Write the name of the kernel that would run `args`, or, for NULL, of the kernel that ran last. */
int32_t gr_mxm_explain(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                       graft_error *error);
