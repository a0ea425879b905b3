/* A strategy: how the vertices and features of a model are spread over processes. Layers and trainer call it, and
 * access ranks only through it. All functions are collective: each rank calls them in the same order.
 *
 * Strategies live in parallel/; each begins with a struct gr_strategy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MODEL_STRATEGY_H
#define GR_MODEL_STRATEGY_H

#include "base/direction.h"
#include "model/block.h"

struct gr_run;
struct gr_strategy;

/** An operation on the rows of a product: block by block, by the thread that completes them, while they are in cache;
 *  or on all rows after the product. */
struct gr_epilogue {
    void (*some)(void *arg, int64_t begin, int64_t end);
    void (*all)(struct gr_run *run, void *arg); /* NULL: the caller does it unless is_done */
    void          *arg;
    const uint8_t *bits;    /* [rows x ceil(width / 8)] elements whose bit is 0 may be made 0; NULL: all count */
    int            is_done; /* set by a product that has called some() for all its rows */
};

/** The operand of a sum over neighbours: the rows of the layer in this pass; labels that are input beside features; or
 *  constant features, whose sum is computed once, exactly, and cached until update(). */
enum gr_sum_kind { GR_SUM_ROWS, GR_SUM_LABELS, GR_SUM_CONSTANT };

/** out[n_dst x width] = diag(scale) A x (forward), or out[n_src x width] = diag(scale) A^T x (backward); added to out
 *  if `add`. x has the rows of the other side of the block, and `stride` elements from row to row. */
struct gr_sum {
    const struct gr_block *block;
    enum gr_direction      direction;
    enum gr_sum_kind       kind;
    const float           *scale; /* NULL: 1 */
    const void            *x;
    graft_dtype            x_type; /* GRAFT_F32; GRAFT_BF16 from gr_aggregate(), with option model.type=bf16 */
    int64_t                stride, width;
    int                    add;
    float                 *out;
    struct gr_epilogue    *epilogue; /* of out, which the strategy may execute; NULL: none */
};

/** Rows x[n_seen x width] of a block with a halo. Forward, the rows of the halo are filled from their owners; backward,
 *  they are added to their owners' rows. */
struct gr_boundary {
    const struct gr_block *block;
    enum gr_direction      direction;
    float                 *x;
    int64_t                width;
    double                 begin;       /* of the current phase of the profile */
    int                    is_constant; /* rows of constant features, as in gr_sum_kind */
};

/** Functions may be NULL if the strategy has nothing to do. */
struct gr_strategy_ops {
    const char *name;
    int         records; /* its sums first execute the products recorded for workers (workers.h) that they need */

    /** Before a step, to decide how its rows are sent. After an error other than ERR_PEER nothing is changed. */
    int32_t (*prepare_step)(struct gr_strategy *strategy, struct gr_run *run, graft_error *error);
    /** A step begins; and it ends: *loss becomes the sum over all ranks. */
    void (*begin_step)(struct gr_strategy *strategy, int64_t epoch);
    int32_t (*end_step)(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error);
    /** Weights or data were replaced, so data kept from earlier steps are dropped. */
    void (*forget)(struct gr_strategy *strategy);
    /** The same after steps whose weights are undone: records of their exchanges are dropped too. */
    void (*undo_steps)(struct gr_strategy *strategy);

    /** Begin and end a sum over neighbours. Between them x and out must not be touched. */
    int32_t (*aggregate_begin)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                               graft_error *error);
    int32_t (*aggregate_end)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                             graft_error *error);

    /** Whether ranks share the columns of sums and extrema, so that none has rows of a halo; NULL: no. */
    int (*shares_columns)(const struct gr_strategy *strategy);
    /** If so: extrema over neighbours instead of a sum, out[n_dst x width], without scale and epilogue; and backward,
     *  from the gradient of the extrema to the gradient of their rows. */
    int32_t (*extrema)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum, graft_error *error);

    /** For attention and extrema: begin and end an exchange of boundary rows. Until the end the caller may use all rows
     *  except rows of the halo. `local` is when work without other ranks began; 0: when the rows were sent. */
    int32_t (*boundary_begin)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *rows,
                              graft_error *error);
    int32_t (*boundary_end)(struct gr_strategy *strategy, struct gr_run *run, double local, graft_error *error);

    /** Sum over all ranks, in place; the same bits on all of them. */
    int32_t (*sum)(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error);
    int32_t (*sum_gradients)(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error);

    /** Combine the statuses of all ranks into one. Each passes its status, `rc`, and its message in `error`. */
    int32_t (*agree)(struct gr_strategy *strategy, int32_t rc, graft_error *error);

    /** Not collective: let messages move during other computation. */
    void (*poll)(void *strategy);
};

struct gr_strategy {
    const struct gr_strategy_ops *ops;
};

static inline int32_t gr_strategy_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error)
{
    return strategy->ops->sum != NULL ? strategy->ops->sum(strategy, values, count, error) : GRAFT_OK;
}

/** *here becomes 1 if it is not 0 on any rank. */
static inline int32_t gr_strategy_any(struct gr_strategy *strategy, int *here, graft_error *error)
{
    double        count = *here != 0;
    const int32_t rc = gr_strategy_sum(strategy, &count, 1, error);

    if (rc == GRAFT_OK) *here = count > 0;
    return rc;
}

static inline int32_t gr_strategy_prepare_step(struct gr_strategy *strategy, struct gr_run *run, graft_error *error)
{
    return strategy->ops->prepare_step != NULL ? strategy->ops->prepare_step(strategy, run, error) : GRAFT_OK;
}

static inline void gr_strategy_begin_step(struct gr_strategy *strategy, int64_t epoch)
{
    if (strategy->ops->begin_step != NULL) strategy->ops->begin_step(strategy, epoch);
}

static inline int32_t gr_strategy_end_step(struct gr_strategy *strategy, int64_t epoch, double *loss,
                                           graft_error *error)
{
    return strategy->ops->end_step != NULL ? strategy->ops->end_step(strategy, epoch, loss, error) : GRAFT_OK;
}

static inline void gr_strategy_forget(struct gr_strategy *strategy)
{
    if (strategy->ops->forget != NULL) strategy->ops->forget(strategy);
}

static inline void gr_strategy_undo_steps(struct gr_strategy *strategy)
{
    if (strategy->ops->undo_steps != NULL) strategy->ops->undo_steps(strategy);
}

static inline int32_t gr_strategy_sum_gradients(struct gr_strategy *strategy, float *values, int64_t count,
                                                graft_error *error)
{
    return strategy->ops->sum_gradients != NULL ? strategy->ops->sum_gradients(strategy, values, count, error)
                                                : GRAFT_OK;
}

static inline int32_t gr_strategy_agree(struct gr_strategy *strategy, int32_t rc, graft_error *error)
{
    return strategy->ops->agree != NULL ? strategy->ops->agree(strategy, rc, error) : rc;
}

static inline int gr_strategy_shares_columns(const struct gr_strategy *strategy)
{
    return strategy->ops->shares_columns != NULL && strategy->ops->shares_columns(strategy);
}

static inline void gr_strategy_poll(struct gr_strategy *strategy)
{
    if (strategy->ops->poll != NULL) strategy->ops->poll(strategy);
}

#endif
