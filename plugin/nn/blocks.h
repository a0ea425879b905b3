/* MLPs over blocks of at most GR_MGN_ROWS rows. A block stays in the caches of a processor from the first product of an
 * MLP to its last. Each thread works on a block of its own.
 *
 * products.c   dense products         blocks.c     buffers of threads, an MLP over a block
 * mlp_loops.h  passes over rows       mlp.h        offsets of the weights
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/limits.h"
#include "base/memory.h"
#include "dense/dense.h"
#include "nn/mlp.h"
#include "nn/mlp_loops.h"

#include <stdatomic.h>

/** The data of one thread. */
struct gr_nn_thread {
    void       *state;                   /* state of the dense module */
    char       *block, *kept_block;      /* memory of rows[]: two linear layers take turns, or each has its own */
    char       *rows[GR_MLP_LINEAR_MAX]; /* outputs of the linear layers of an MLP; see gr_nn_use_rows() */
    char       *padded[2];               /* buffers for padded blocks of x and of y, with form.is_whole */
    char       *back[2];                 /* buffers for gradients with respect to rows[], used in turn */
    char       *rstd;                    /* [GR_MGN_ROWS] 1 / deviation of each row, for LayerNorm */
    int32_t     rc;                      /* status of the first failed product of a pass */
    graft_error error;
};

/** Properties that all MLPs of a network have in common. */
struct gr_nn_form {
    int32_t linear, is_elu;
    int64_t widest;    /* largest number of columns of a result of a linear layer */
    int64_t widest_in; /* largest number of columns of any operand */
    int     is_whole;  /* forward products are padded to GR_MGN_ROWS rows: a row's result does not depend on n */
};

struct gr_nn_blocks {
    graft_context             *context;
    const struct gr_module    *dense;
    const struct gr_mlp_loops *loops;
    graft_dtype                dtype;
    int64_t                    element; /* bytes of an element */
    struct gr_nn_form          form;
    struct gr_nn_thread       *thread;
    int                        n_threads, n_states;
    atomic_flag                lock;    /* held during a product if the module has only one state */
    const char                *weights; /* weights of the current pass */
};

/** The address of element i of an array. */
static inline void *gr_nn_element(const struct gr_nn_blocks *b, const void *array, int64_t i)
{
    return (char *)(uintptr_t)array + i * b->element;
}

/** Set the form, and allocate the buffers of threads in the pool. Call gr_nn_choose_module() or gr_nn_use_module()
 * next.
 *  \return OK; ERR_NOMEM. */
int32_t gr_nn_blocks_init(struct gr_nn_blocks *b, graft_context *context, graft_dtype dtype,
                          const struct gr_nn_form *form, struct gr_pool *pool, graft_error *error);
/** Allocate the buffers of backward passes. \return OK; ERR_NOMEM. */
int32_t gr_nn_blocks_reserve(struct gr_nn_blocks *b, struct gr_pool *pool, graft_error *error);
/** End the states of the module. May be called again. */
void    gr_nn_blocks_fini(struct gr_nn_blocks *b);

/* -- products.c --------------------------------------------------------------------------------------------------- */

/** Use the module of option dense.module, or a given module, with a state for each thread if the module allows
 *  several. \return OK; ERR_NOMEM; ERR_UNSUPPORTED; the error of the module. */
int32_t gr_nn_choose_module(struct gr_nn_blocks *b, graft_error *error);
int32_t gr_nn_use_module(struct gr_nn_blocks *b, const struct gr_module *module, graft_error *error);

/** `in` adjacent columns of a matrix of weights [out x stride]; `at` is the first element. */
struct gr_nn_matrix {
    const void *at;
    int64_t     stride, out, in;
};

/** y[n x out] = x[n x in] W^T, added to y if `adds`. A failure is recorded in the thread, whose later products do
 *  nothing. */
void gr_nn_multiply(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *x, int adds,
                    void *y);
/** The adjoint of gr_nn_multiply(): x[n x in] = y[n x out] W, added to x if `adds`. */
void gr_nn_multiply_back(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *y, int adds,
                         void *x);
/** Add to the gradient of the weights: W += y^T x. */
void gr_nn_multiply_weights(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *x,
                            const void *y);

/** Report the first failure of a product in any thread since the last call. \return OK; the error of the module. */
int32_t gr_nn_products_status(struct gr_nn_blocks *b, graft_error *error);

/* -- blocks.c ----------------------------------------------------------------------------------------------------- */

/** Select `in` columns, from `column` on, of the first matrix of an MLP in the weights of the pass. */
struct gr_nn_matrix gr_nn_first(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t column, int64_t in);
/** Select the same columns of a gradient, an array whose first element belongs to the first weight of the MLP. */
struct gr_nn_matrix gr_nn_first_gradient(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t column,
                                         int64_t in, const void *gradient);

/** Set where a thread writes the outputs of linear layers. gr_nn_use_rows(): into buffers of the thread, with
 *  `keeps_all` one for each layer, as a backward pass needs; else two in turn, which use less cache.
 *  gr_nn_use_arrays(): into arrays that are `stride` elements apart, of which `first` is the first. */
void gr_nn_use_rows(struct gr_nn_blocks *b, int thread, int keeps_all);
void gr_nn_use_arrays(struct gr_nn_blocks *b, int thread, void *first, int64_t stride);

/** Apply an MLP to n rows of the thread, which contain the first product, up to the last product without its bias.
 *  \return the arguments of the remaining pass, gr_mlp_loops.end. */
struct gr_nn_norm gr_nn_forward(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n);

/** Compute the backward pass of an MLP for n rows from u, the gradient of the result, which is overwritten. The buffers
 *  of the thread contain the first product or, with has_all, every product. Gradients of the weights after the first
 *  product are added to `gradient`, an array that begins with the first weight of the MLP. \return the gradient of the
 *  first product with its bias: in `first` or, if that is NULL, in a buffer of the thread. */
void *gr_nn_backward(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n, int has_all, void *u,
                     void *gradient, void *first);
