/* MLPs over blocks of at most GR_MGN_ROWS rows. A block stays in the caches of a processor from the first product of an
 * MLP to its last. Each thread works on a block of its own.
 *
 * products.c   dense products         blocks.c     buffers of threads, an MLP over a block
 * mlp_loops.h  passes over rows       mlp.h        where the weights are
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
    void       *state;                   /* of the dense module */
    char       *block, *kept_block;      /* buffer: GR_MGN_ROWS rows of each of two, or of all, linear layers */
    char       *rows[GR_MLP_LINEAR_MAX]; /* outputs of the linear layers of an MLP; see gr_nn_use_rows() */
    char       *padded[2];               /* a padded block of x and of y, if blocks are whole */
    char       *back[2];                 /* gradients of two of them */
    char       *rstd;                    /* [GR_MGN_ROWS] */
    int32_t     rc;                      /* status of the first failed product of a pass */
    graft_error error;
};

/** What the MLPs of a network have in common. */
struct gr_nn_form {
    int32_t linear, is_elu;
    int64_t widest;    /* columns of a result of a linear layer */
    int64_t widest_in; /* columns of any operand */
    int     is_whole;  /* every product has GR_MGN_ROWS rows, so that the bits of a row do not depend on their number */
};

struct gr_nn_blocks {
    graft_context             *context;
    const struct gr_module    *dense;
    const struct gr_mlp_loops *loops;
    graft_dtype                dtype;
    int64_t                    element; /* bytes */
    struct gr_nn_form          form;
    struct gr_nn_thread       *thread;
    int                        n_threads, n_states;
    atomic_flag                lock;    /* of the dense module, if it has one state only */
    const char                *weights; /* of the present pass */
};

/** Element i of an array. */
static inline void *gr_nn_element(const struct gr_nn_blocks *b, const void *array, int64_t i)
{
    return (char *)(uintptr_t)array + i * b->element;
}

/** Set the form and the buffers of threads, from the pool; then the module must be chosen. \return OK; ERR_NOMEM. */
int32_t gr_nn_blocks_init(struct gr_nn_blocks *b, graft_context *context, graft_dtype dtype,
                          const struct gr_nn_form *form, struct gr_pool *pool, graft_error *error);
/** The buffers of backward passes. \return OK; ERR_NOMEM. */
int32_t gr_nn_blocks_reserve(struct gr_nn_blocks *b, struct gr_pool *pool, graft_error *error);
/** End the states of the module. May be called again. */
void    gr_nn_blocks_fini(struct gr_nn_blocks *b);

/* -- products.c --------------------------------------------------------------------------------------------------- */

/** Use the module of option dense.module; or this one. With a state for each thread if the module allows several.
 *  \return OK; ERR_NOMEM; ERR_UNSUPPORTED; the error of the module. */
int32_t gr_nn_choose_module(struct gr_nn_blocks *b, graft_error *error);
int32_t gr_nn_use_module(struct gr_nn_blocks *b, const struct gr_module *module, graft_error *error);

/** Columns of a matrix of weights [out x stride] from element `at` on. */
struct gr_nn_matrix {
    const void *at;
    int64_t     stride, out, in;
};

/** y[n x out] = x[n x in] W^T, added to y if `adds`. A failure is noted in the thread, whose products then do
 *  nothing. */
void gr_nn_multiply(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *x, int adds,
                    void *y);
/** Its adjoint: x[n x in] = y[n x out] W. */
void gr_nn_multiply_back(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *y, int adds,
                         void *x);
/** Add to the gradient of the weights: W += y^T x. */
void gr_nn_multiply_weights(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *x,
                            const void *y);

/** The first failure of a thread since the last call. \return OK; the error of the module. */
int32_t gr_nn_products_status(struct gr_nn_blocks *b, graft_error *error);

/* -- blocks.c ----------------------------------------------------------------------------------------------------- */

/** `in` columns of the first matrix of an MLP, from `column` on, of the weights of the pass. */
struct gr_nn_matrix gr_nn_first(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t column, int64_t in);
/** The same columns of a gradient that begins with this matrix. */
struct gr_nn_matrix gr_nn_first_gradient(const struct gr_nn_blocks *b, const struct gr_mlp *mlp, int64_t column,
                                         int64_t in, const void *gradient);

/** Set the buffers of a thread: for the output of every linear layer of an MLP, for a backward pass; or of the last two
 *  layers only, to use less cache; or arrays, `stride` elements apart. */
void gr_nn_use_rows(struct gr_nn_blocks *b, int thread, int keeps_all);
void gr_nn_use_arrays(struct gr_nn_blocks *b, int thread, void *first, int64_t stride);

/** An MLP from after its first product, n rows of the thread, to before its end: the last product, without bias. */
struct gr_nn_norm gr_nn_forward(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n);

/** The backward pass for n rows whose first product, or with has_all every product, the thread has: from u, the
 *  gradient of the result, which it overwrites. Adds to the gradients of the weights after the first product in
 *  `gradient`, which begins with the first weight of the MLP. \return the gradient of the first product with its bias:
 *  first[n] or, if that is NULL, rows of the thread. */
void *gr_nn_backward(struct gr_nn_blocks *b, int thread, const struct gr_mlp *mlp, int64_t n, int has_all, void *u,
                     void *gradient, void *first);
