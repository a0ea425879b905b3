/* A strategy: how the vertices and features of a model are spread over processes. Layers, setup and trainer call it,
 * and access ranks only through it. Functions are collective unless they say otherwise: each rank calls them in the
 * same order.
 *
 * Strategies live in parallel/; each begins with a struct gr_strategy, and has a row in the table of parallel/choose.c.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "base/memory.h"
#include "graft_graph.h"
#include "graft_report.h"
#include "model/block.h"

struct gr_budget;
struct gr_part;
struct gr_run;
struct gr_share;
struct gr_strategy;
struct gr_text;

/** An operation on the rows of a product: block by block, by the thread that completes them, while they are in cache;
 *  or on all rows after the product. */
struct gr_epilogue {
    void (*some)(void *arg, int64_t begin, int64_t end);
    void (*all)(struct gr_run *run, void *arg); /* NULL: the caller does it unless is_done */
    void          *arg;
    const uint8_t *bits;    /* [rows x ceil(width / 8)] elements whose bit is 0 may be made 0; NULL: all count */
    int            is_done; /* set by a product that has called some() for all its rows */
};

/** The operand of a sum over neighbours: the rows of the layer in this pass; labels that are input besides features; or
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
    graft_dtype            x_type; /* GRAFT_F32; GRAFT_BF16 from gr_model_aggregate(), with option model.type=bf16 */
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

/** What a strategy serves. */
struct gr_strategy_wish {
    struct gr_run    *run;    /* the model, and later the widths of its layers */
    graft_graph      *over;   /* the graph over ranks; NULL: one process */
    struct gr_budget *budget; /* of its memory; these three outlive the strategy */
    int               trains; /* there are steps, not only predictions */
    int has_batches;          /* steps are of batches: the strategy serves evaluations and the creation of batches */
};

/** The graph as the model needs it, which outlives the strategy. */
struct gr_strategy_graph {
    const struct gr_part  *part;         /* over ranks: of this rank, else NULL; and: */
    const struct gr_share *share;        /* [n_ranks] the sizes of the parts of all ranks */
    const int64_t         *reach;        /* [n_layers + 1] rows of this rank before each layer in a step */
    const int64_t         *reach_of_all; /* [n_layers + 1] the same of all ranks */
    int64_t                n_vertices;   /* of all ranks */
    int32_t                first_masked; /* the first layer whose graph may have fewer rows in a step */
    struct gr_block       *whole, *step; /* of all rows, and [n_layers] of a step: of_strategy may be set */
};

/** The functions of a strategy from its creation to the first step. They may be NULL if it has nothing to do, like the
 *  functions below, except create() and destroy(). */
struct gr_strategy_making {
    /** Not collective. \return OK; ERR_NOMEM; ERR_OPTION (the options do not suit it). A made strategy is destroyed,
     *  also after a failure, when the pools of its budget have been freed. */
    int32_t (*create)(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error);
    void (*destroy)(struct gr_strategy *strategy);
    /** Make all that depends on the graph, before the layers have memory; their widths are known. */
    int32_t (*graph)(struct gr_strategy *strategy, const struct gr_strategy_graph *graph, graft_error *error);
    /** Bytes that hold() and reserve() will allocate, in this variant. Not collective. */
    double (*need)(const struct gr_strategy *strategy, int variant);
    /** Complete the graph in this variant. */
    int32_t (*hold)(struct gr_strategy *strategy, int variant, graft_error *error);
    /** Allocate memory for all exchanges. The run has its arrays. Not collective. */
    int32_t (*reserve)(struct gr_strategy *strategy, graft_error *error);

    /** Derive its data from a part with other values of the edges; nothing changes yet. end() is due, also after a
     *  failure: with `takes`, which cannot fail, the data come into use, after the part of the strategy has the values;
     *  they are freed. Stale rows and adaptive widths are forgotten. */
    int32_t (*values_begin)(struct gr_strategy *strategy, const struct gr_part *part, void **values,
                            graft_error *error);
    void (*values_end)(struct gr_strategy *strategy, void *values, int takes);
};

/** Reports of the last step; not collective. */
struct gr_strategy_reports {
    int32_t (*traffic)(const struct gr_strategy *strategy, int32_t rank, graft_traffic *traffic, graft_error *error);
    int32_t (*traffic_item)(const struct gr_strategy *strategy, int32_t rank, int32_t index, graft_traffic_item *item,
                            graft_error *error);
    int32_t (*traffic_pair)(const struct gr_strategy *strategy, int32_t peer, int32_t index, graft_traffic_pair *pair,
                            graft_error *error);
    /** Tables of what ranks send. `seconds`: of the last step; 0: there was none. */
    void (*explain)(const struct gr_strategy *strategy, double seconds, struct gr_text *text);
};

/** The functions of a strategy. */
struct gr_strategy_ops {
    const char        *name;            /* as in option parallel */
    int                records;         /* sums first execute the products recorded for workers that they need */
    const char        *refuses_batches; /* the reason why there are no batches over ranks; NULL: there are */
    const char *const *variants;        /* [2] options that decide how much memory it has; NULL: there is one variant */

    struct gr_strategy_making  make;
    struct gr_strategy_reports report;

    /** Before a step, to adopt changed options, and to decide how its rows are sent. After an error other than ERR_PEER
     *  nothing is changed. */
    int32_t (*prepare_step)(struct gr_strategy *strategy, struct gr_run *run, graft_error *error);
    /** A step begins; and it ends: *loss becomes the sum over all ranks. */
    void (*begin_step)(struct gr_strategy *strategy, int64_t epoch);
    int32_t (*end_step)(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error);
    /** Weights or data were replaced, so data kept from earlier steps are dropped. With `undoes`, weights of steps are
     *  undone: records of their exchanges are dropped too. */
    void (*forget)(struct gr_strategy *strategy, int undoes);

    /** Begin and end a sum over neighbours. Between them x and out must not be touched. */
    int32_t (*aggregate_begin)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                               graft_error *error);
    int32_t (*aggregate_end)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                             graft_error *error);
    /** Extrema over neighbours instead of a sum, out[n_dst x width], without scale and epilogue; and backward, from the
     *  gradient of the extrema to the gradient of their rows. The strategy keeps the winners. NULL: layers compute
     *  extrema from the rows of a block. */
    int32_t (*extrema)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum, graft_error *error);

    /** For attention and extrema: begin and end an exchange of boundary rows. Until the end the caller may use all rows
     *  except rows of the halo. `local` is when work without other ranks began; 0: when the rows were sent. */
    int32_t (*boundary_begin)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *rows,
                              graft_error *error);
    int32_t (*boundary_end)(struct gr_strategy *strategy, struct gr_run *run, double local, graft_error *error);

    /** Sum over all ranks, in place; bitwise identical on all of them. */
    int32_t (*sum)(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error);
    int32_t (*sum_gradients)(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error);
    /** Combine the statuses of all ranks into one. Each passes its status, `rc`, and its message in `error`. */
    int32_t (*agree)(struct gr_strategy *strategy, int32_t rc, graft_error *error);
    /** Not collective: let messages move during other computation. */
    void (*poll)(void *strategy);
};

struct gr_strategy {
    const struct gr_strategy_ops *ops;
    int                           reads_halo; /* layers read rows of other ranks: blocks have a halo */
    int                           all_rows;   /* no step computes fewer than all rows */
    double                        drift;      /* |new - old| / |new| for the rows of the last step */
    int                           waited;     /* the last step waited for fresh rows though rows may be stale */
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

static inline void gr_strategy_forget(struct gr_strategy *strategy, int undoes)
{
    if (strategy->ops->forget != NULL) strategy->ops->forget(strategy, undoes);
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

static inline void gr_strategy_poll(struct gr_strategy *strategy)
{
    if (strategy->ops->poll != NULL) strategy->ops->poll(strategy);
}

static inline void gr_strategy_destroy(struct gr_strategy *strategy)
{
    if (strategy != NULL) strategy->ops->make.destroy(strategy);
}

static inline int32_t gr_strategy_graph(struct gr_strategy *strategy, const struct gr_strategy_graph *graph,
                                        graft_error *error)
{
    return strategy->ops->make.graph != NULL ? strategy->ops->make.graph(strategy, graph, error) : GRAFT_OK;
}

static inline double gr_strategy_need(const struct gr_strategy *strategy, int variant)
{
    return strategy->ops->make.need != NULL ? strategy->ops->make.need(strategy, variant) : 0;
}

static inline int32_t gr_strategy_hold(struct gr_strategy *strategy, int variant, graft_error *error)
{
    return strategy->ops->make.hold != NULL ? strategy->ops->make.hold(strategy, variant, error) : GRAFT_OK;
}

static inline int32_t gr_strategy_reserve(struct gr_strategy *strategy, graft_error *error)
{
    return strategy->ops->make.reserve != NULL ? strategy->ops->make.reserve(strategy, error) : GRAFT_OK;
}

static inline int32_t gr_strategy_values_begin(struct gr_strategy *strategy, const struct gr_part *part, void **values,
                                               graft_error *error)
{
    return strategy->ops->make.values_begin != NULL ? strategy->ops->make.values_begin(strategy, part, values, error)
                                                    : GRAFT_OK;
}

static inline void gr_strategy_values_end(struct gr_strategy *strategy, void *values, int takes)
{
    if (strategy->ops->make.values_end != NULL) strategy->ops->make.values_end(strategy, values, takes);
}
