/* A strategy: the way in which the vertices and features of a model are distributed over processes. Layers, setup and
 * trainer access other ranks only through it. Its functions are collective unless they say otherwise: each rank calls
 * them in the same order.
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

/** An operation on the rows of a product: either on blocks of rows, by the thread that has computed them, while they
 *  are in cache; or on all rows after the product. */
struct gr_epilogue {
    void (*some)(void *arg, int64_t begin, int64_t end); /* processes rows begin to end - 1 */
    void (*all)(struct gr_run *run, void *arg); /* processes all rows; NULL: the caller does so unless is_done */
    void          *arg;
    const uint8_t *bits;    /* [rows x ceil(width / 8)] 0: the product may set this element to 0; NULL: it must not */
    int            is_done; /* set by a product that has called some() for all its rows */
};

/** The operand of a sum over neighbours: rows of the layer in this pass; labels that are input besides features; or
 *  constant features, which are sent unquantized, and whose sum is computed once and cached until update(). */
enum gr_sum_kind { GR_SUM_ROWS, GR_SUM_LABELS, GR_SUM_CONSTANT };

/** A sum over neighbours: forward out[n_dst x width] = diag(scale) A x, for x of n_src rows; backward
 *  out[n_src x width] = diag(scale) A^T x, for x of n_dst rows. It is added to out if `add`. */
struct gr_sum {
    const struct gr_block *block;
    enum gr_direction      direction;
    enum gr_sum_kind       kind;
    const float           *scale; /* NULL: 1 */
    const void            *x;
    graft_dtype x_type;        /* GRAFT_F32; or GRAFT_BF16, to which gr_model_aggregate() rounds with model.type=bf16 */
    int64_t     stride, width; /* elements from row to row of x; columns */
    int         add;
    float      *out;
    struct gr_epilogue *epilogue; /* epilogue for the rows of out, which the strategy may execute; NULL: none */
};

/** Rows x[n_seen x width] of a block with a halo. Forward, the rows of the halo are received from their owners;
 *  backward, they are sent to their owners, which add them to their rows. */
struct gr_boundary {
    const struct gr_block *block;
    enum gr_direction      direction;
    float                 *x;
    int64_t                width;
    double                 begin;       /* begin of the current phase of the profile, in seconds */
    int                    is_constant; /* rows of constant features, as in gr_sum_kind */
};

/** The arguments with which a strategy is created. */
struct gr_strategy_wish {
    struct gr_run    *run;    /* the model, and later the widths of its layers; outlives the strategy */
    graft_graph      *over;   /* the graph over ranks, which outlives the strategy; NULL: one process */
    struct gr_budget *budget; /* budget of its memory; outlives the strategy */
    int               trains; /* there are steps, not only predictions */
    int has_batches;          /* steps are on batches: the strategy serves evaluations and the creation of batches */
};

/** The graph as the model needs it. It outlives the strategy. */
struct gr_strategy_graph {
    const struct gr_part  *part;         /* the part of this rank; NULL: one process */
    const struct gr_share *share;        /* [n_ranks] sizes of the parts of all ranks; NULL: one process */
    const int64_t         *reach;        /* [n_layers + 1] number of rows of this rank before each layer in a step */
    const int64_t         *reach_of_all; /* [n_layers + 1] sum of `reach` over ranks; NULL: one process */
    int64_t                n_vertices;   /* number of vertices of all ranks */
    int32_t                first_masked; /* the first layer whose graph may have fewer rows in a step */
    struct gr_block       *whole, *step; /* block of all rows, and [n_layers] those of a step; sets of_strategy */
};

/** The functions of a strategy from its creation to the first step. As in the structs below, a function may be NULL if
 *  there is nothing to do, except create() and destroy(). */
struct gr_strategy_making {
    /** Create a strategy. Not collective. \return OK; ERR_NOMEM; ERR_OPTION (options that it does not support). If
     *  *strategy is set, also after a failure, call destroy() after the pools of its budget have been freed. */
    int32_t (*create)(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error);
    void (*destroy)(struct gr_strategy *strategy);
    /** Create all data that depend on the graph. The widths of layers are known, but their arrays do not exist yet. */
    int32_t (*graph)(struct gr_strategy *strategy, const struct gr_strategy_graph *graph, graft_error *error);
    /** Compute the bytes that hold() and reserve() will allocate in this variant. Not collective. */
    double (*need)(const struct gr_strategy *strategy, int variant);
    /** Choose this variant, and complete the graph for it. */
    int32_t (*hold)(struct gr_strategy *strategy, int variant, graft_error *error);
    /** Allocate memory for all exchanges, after the arrays of the run exist. Not collective. */
    int32_t (*reserve)(struct gr_strategy *strategy, graft_error *error);

    /** Replace the values of edges. begin() computes *values, the data of the strategy for a part with new values, and
     *  changes nothing else. Always call end(), also after a failure of begin(); it cannot fail. With `takes` it puts
     *  the data into use, after the part of the strategy has received the new values, and drops stale rows and adaptive
     *  widths. It frees what is not used. */
    int32_t (*values_begin)(struct gr_strategy *strategy, const struct gr_part *part, void **values,
                            graft_error *error);
    void (*values_end)(struct gr_strategy *strategy, void *values, int takes);
};

/** Reports on the last step. Not collective. */
struct gr_strategy_reports {
    int32_t (*traffic)(const struct gr_strategy *strategy, int32_t rank, graft_traffic *traffic, graft_error *error);
    int32_t (*traffic_item)(const struct gr_strategy *strategy, int32_t rank, int32_t index, graft_traffic_item *item,
                            graft_error *error);
    int32_t (*traffic_pair)(const struct gr_strategy *strategy, int32_t peer, int32_t index, graft_traffic_pair *pair,
                            graft_error *error);
    int32_t (*cache_item)(const struct gr_strategy *strategy, int32_t rank, int32_t index, graft_cache_item *item,
                          graft_error *error);
    /** Append tables of what ranks send. `seconds` is the time of the last step; 0: there was none. */
    void (*explain)(const struct gr_strategy *strategy, double seconds, struct gr_text *text);
};

/** All functions of a strategy, and its properties. */
struct gr_strategy_ops {
    const char        *name;            /* value of option parallel */
    int                records;         /* workers are possible: sums first execute the recorded products they need */
    const char        *refuses_batches; /* the reason why batches over ranks are impossible; NULL: they are possible */
    const char *const *variants;        /* [2] options that select variants of different memory; NULL: one variant */

    struct gr_strategy_making  make;
    struct gr_strategy_reports report;

    /** Adopt changed options before a step, and decide how its rows are sent. An error other than ERR_PEER changes
     *  nothing. */
    int32_t (*prepare_step)(struct gr_strategy *strategy, struct gr_run *run, graft_error *error);
    /** Begin and end a step. The end replaces *loss by its sum over all ranks. */
    void (*begin_step)(struct gr_strategy *strategy, int64_t epoch);
    int32_t (*end_step)(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error);
    /** Drop data of earlier steps, after weights or data were replaced. With `undoes`, steps were undone: drop the
     *  records of their exchanges too. */
    void (*forget)(struct gr_strategy *strategy, int undoes);

    /** Begin and end a sum over neighbours. Between the two calls x and out must not be accessed. */
    int32_t (*aggregate_begin)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                               graft_error *error);
    int32_t (*aggregate_end)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                             graft_error *error);
    /** Compute extrema over neighbours instead of a sum, out[n_dst x width], without scale and epilogue; backward,
     *  compute the gradient of the rows from that of the extrema. The strategy stores the winners. NULL: layers compute
     *  extrema from the rows of a block. */
    int32_t (*extrema)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum, graft_error *error);

    /** Begin and end an exchange of boundary rows, for attention and extrema. Between the two calls the caller may use
     *  all rows except those of the halo. `local` is the time when its local work began; 0: when the rows were sent. */
    int32_t (*boundary_begin)(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *rows,
                              graft_error *error);
    int32_t (*boundary_end)(struct gr_strategy *strategy, struct gr_run *run, double local, graft_error *error);

    /** Sum values over all ranks, in place. The sums are bitwise identical on all ranks. */
    int32_t (*sum)(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error);
    int32_t (*sum_gradients)(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error);
    /** Combine the statuses of all ranks into one. Each rank passes its status, `rc`, and its message in `error`. */
    int32_t (*agree)(struct gr_strategy *strategy, int32_t rc, graft_error *error);
    /** Let messages move during other computation. Not collective. */
    void (*poll)(void *strategy);
};

struct gr_strategy {
    const struct gr_strategy_ops *ops;
    int                           reads_halo; /* layers read rows of other ranks, so blocks have a halo */
    int                           all_rows;   /* every step computes all rows: there are no row masks */
    double                        drift;      /* |new - old| / |new| of rows that were stale in the last step */
    int                           waited;     /* the last step used fresh rows although stale rows are allowed */
};

static inline int32_t gr_strategy_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error)
{
    return strategy->ops->sum != NULL ? strategy->ops->sum(strategy, values, count, error) : GRAFT_OK;
}

/** Set *here to 1 if it is not 0 on at least one rank. */
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
