/* Strategy `partition`: each rank owns some of the vertices, and has all columns of their rows. Sums over neighbours
 * are products over ranks (spmm/); attention and extrema exchange the rows of the halo (halo/). Weights are the same on
 * all ranks.
 *
 * With parallel=feature or grid, a group of ranks shares the columns of the sums: see grid.h.
 *
 * partition.c  the strategy, and its state in a step      traffic.c    counters of rows and bytes
 * renew.c      options of messages that change               transpose.c  from rows to slices of columns, and back
 * grid.c       groups of ranks                           edges.c      the edges of one group, in blocks
 * columns.c    sums of slices of columns                 stream.c     sums block by block
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARALLEL_PARTITION_H
#define GR_PARALLEL_PARTITION_H

#include "base/budget.h"
#include "dgraph/part.h"
#include "halo/halo.h"
#include "halo/options.h"
#include "model/kind.h"
#include "model/workers.h"
#include "parallel/stream.h"
#include "parallel/transpose.h"
#include "spmm/plan.h"

/** Possible numbers of bits of an element of a row: 2^0 to 2^5. */
enum { GR_BITS = 6 };

/** The exchanges of a layer in one direction in the last step. */
struct gr_sent {
    const struct gr_flow       *flow; /* [n_ranks] of one exchange, forward; NULL: no exchange */
    int64_t                     exchanges;
    int64_t                     alike[GR_BITS]; /* exchanges whose rows all had 2^i bits, and: */
    int64_t                     row_bytes;      /* of one row in the sum of these exchanges */
    const struct gr_halo_layer *adapted;        /* with the adaptive widths of rows in the other exchanges */
    int32_t                     code, rounding; /* of the last quantized exchange, also of earlier steps; else 0 */
};

/** Rows that a rank sent and received in the transposes of a layer in one direction in the last step. A row is a
 *  record. */
struct gr_transpose_flow {
    int64_t exchanges, rows[GR_SIDES], bytes[GR_SIDES], messages[GR_SIDES];
    int64_t bits;  /* of an element */
    int64_t edges; /* received bytes of edges (feature.graph), which `bytes` include */
};

/** The data of a rank that shares columns with others. */
struct gr_shared_columns {
    struct gr_grid            grid;
    struct gr_transpose       transpose;
    struct gr_blocks          blocks;
    struct gr_transpose_flow *turned;                /* [n_layers x GR_DIRECTIONS x n_ranks] */
    int32_t                  *winner[GR_LAYERS_MAX]; /* of extrema in a step, as in gr_block_sum; NULL: no extrema */
};

/** The rows that a layer computes in a step, if not all. */
struct gr_masked_rows {
    struct gr_made_part part;
    graft_plan         *plan; /* NULL: it computes all rows, or the same as the layer before it */
};

struct gr_partition {
    struct gr_strategy        base;
    graft_context            *context;
    graft_graph              *over;
    struct gr_comm           *comm;
    struct gr_budget         *budget;
    int32_t                   n_layers;
    int32_t                   gathers_from; /* the first layer that exchanges rows; n_layers: none does */
    graft_semiring            extremum;     /* as in the configuration */
    int                       needs_rows;   /* it exchanges rows of the halo (of the group) instead of sums */
    const struct gr_part     *part;         /* the graph as the model needs it */
    const struct gr_share    *share;        /* [n_ranks] the sizes of the part on each rank */
    int32_t                   columns;      /* ranks that share the columns of sums; 1: none do */
    struct gr_shared_columns *shared;       /* NULL: columns are not shared */
    graft_plan               *plan;         /* of all rows; NULL for attention, and extrema without shared columns */
    struct gr_halo_rows       halo_rows;

    struct gr_masked_rows masked[GR_LAYERS_MAX];
    graft_plan           *step_plan[GR_LAYERS_MAX];  /* the plan of each layer in a step, one of the above */
    int64_t               columns_of[GR_LAYERS_MAX]; /* of a layer in a step, summed by this rank; the most in any
                                                      * pass: */
    int64_t               widest[GR_LAYERS_MAX];

    struct gr_sent       *sent;  /* [n_layers x GR_DIRECTIONS], and one for features that are aggregated once */
    struct gr_send_stats *pairs; /* [n_layers x GR_DIRECTIONS x n_ranks] from this rank to each other in the last step;
                                   quantization errors: since the trainer was made */
    int64_t               charged_messages, charged_graph; /* bytes in the budget */
    double                begin;                           /* when the current sum began */
    struct gr_messages   *moving; /* of a sum that has begun, while recorded products are executed; NULL: none */
    double                polled; /* when poll() last looked */

    struct gr_halo_options options; /* for which the messages are made */

    /* Stale rows: */
    int     is_stale;
    int     evaluates_exact; /* evaluations and predictions are not quantized */
    int64_t sync_every;      /* 0: no step but the first waits for fresh rows */
    double  drift_limit;     /* likewise */
    int     synchronous;     /* the current step waits for fresh rows */
    double  drift;           /* |new - old| / |new| for the rows of the last step */
    int     was_synchronous; /* the last step waited for fresh rows though rows may be stale; and: */
    int64_t n_synchronous;   /* the number of these steps since the trainer was made */
    int64_t oldest[GR_DIRECTIONS * GR_LAYERS_MAX]; /* gr_history.oldest of messages that were replaced */

    /* Adaptive bits: */
    int64_t adapt_every; /* 0: once */
    int64_t traced;      /* steps since widths were assigned, and: */
    int     is_adapted;  /* whether they were */
    int64_t label_bytes; /* of rows of labels in a step, on all ranks */
};

extern const struct gr_strategy_ops gr_partition_ops;

/** Read the options of messages. */
void    gr_partition_init(struct gr_partition *p, graft_context *context, graft_graph *over,
                          const struct gr_config *config, struct gr_budget *budget);
/** Check that the model and these options allow ranks to share columns; NULL: there are no steps, and options are not
 *  checked. \return OK; ERR_OPTION. */
int32_t gr_partition_check(const struct gr_partition *p, const struct gr_halo_options *halo, graft_error *error);
/** Free all but the graph over ranks. */
void    gr_partition_fini(struct gr_partition *p);

/** Forget stale rows and adaptive widths of all plans, because the values of edges have changed. */
void gr_partition_reset(struct gr_partition *p);

/** Adopt options of messages that have changed, to the same values on all ranks. If they need other messages, the next
 *  step is like the first step: it waits for fresh rows, and adaptive bits are assigned anew. Collective if so.
 *  \return OK; ERR_NOMEM, ERR_OPTION (gr_partition_check): on all ranks, and nothing has changed; ERR_PEER. */
int32_t gr_partition_renew(struct gr_partition *p, graft_error *error);

/** The graph of the plans: the graph of this rank, or the edges from other groups to its group. */
static inline const struct gr_part *gr_partition_summed(const struct gr_partition *p)
{
    return p->columns > 1 ? &p->shared->grid.made.part : p->part;
}

/** The rows that a sum of a layer reads forward, or the rows that it computes, as a prefix of the grid. */
static inline int32_t gr_partition_prefix(const struct gr_partition *p, const graft_plan *plan, int32_t layer,
                                          int sources)
{
    return plan == p->plan ? p->shared->grid.n_levels : p->n_layers - layer + (sources ? 1 : 0);
}

/** Whether sums of slices of columns add rows of other groups, over a graph of the rows of the group. */
static inline int gr_partition_has_remote(const struct gr_partition *p)
{
    return p->columns > 1 && p->columns < p->comm->n_ranks && p->extremum == 0;
}

/** Whether the parts of a sum are recorded for workers. Slices of columns are summed at once. */
static inline int gr_partition_records(const struct gr_partition *p, const struct gr_run *run)
{
    return p->columns == 1 && gr_workers_are_recording(run);
}

/** Columns of a sum that this rank computes. */
static inline int64_t gr_partition_slice(const struct gr_partition *p, int64_t width)
{
    return p->columns > 1 ? gr_transpose_columns(&p->shared->transpose, width) : width;
}

/** History and widths of a layer and direction in a step; NULL if no option asks for them. */
struct gr_halo_layer        *gr_partition_layer(const struct gr_partition *p, int32_t layer, int32_t direction);
const struct gr_halo_layers *gr_partition_layers(const struct gr_partition *p, int32_t layer);

/** Message buffers of one plan, `width` columns wide; and buffers of a layer, if `layer` is not -1. need(): the bytes
 *  that are not allocated yet. */
double  gr_partition_need(const graft_plan *plan, int32_t layer, int64_t width);
int32_t gr_partition_reserve(struct gr_partition *p, struct gr_budget *budget, graft_plan *plan, int32_t layer,
                             int64_t width, graft_error *error);
/** Memory for transposes of rows of `width` columns. */
int32_t gr_partition_reserve_transpose(struct gr_partition *p, struct gr_budget *budget, int64_t width,
                                       graft_error *error);
/** Charge the budget with the bytes that its graph (beside the graph over ranks), send lists and messages take now. */
void    gr_partition_charge(struct gr_partition *p, struct gr_budget *budget);

/* -- counts of sent rows; not collective -------------------------------------------------------------------------- */

void gr_traffic_begin(struct gr_partition *p);
/** Count the rows that the current layer has sent in one direction, if it is part of a step.
 *  \param[in] flow  [n_ranks] rows of this exchange, forward. */
void gr_traffic_count(struct gr_partition *p, const struct gr_run *run, const struct gr_exchange *pass,
                      const struct gr_flow *flow, enum gr_direction direction);
/** The same for a transpose of `what`, to rows or to columns. */
void gr_traffic_count_transpose(struct gr_partition *p, const struct gr_run *run, const struct gr_transposed *what,
                                int to_rows);
/** The same for the blocks of edges received in the last sum. */
void gr_traffic_count_blocks(struct gr_partition *p, const struct gr_run *run);
/** The same for the exchange between groups, whose ranks have slices of several widths. */
void gr_traffic_count_columns(struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum, int exact);
/** [n_ranks] rows of an exchange for all vertices, forward; NULL: no exchange. */
const struct gr_flow   *gr_traffic_whole(const struct gr_partition *p);
/** Of one rank, or with -1 of all ranks: rows of one exchange, and the flow of a layer in adaptive bits. NULL: no
 *  flow. */
struct gr_flow          gr_traffic_flow(const struct gr_partition *p, const struct gr_flow *flow, int32_t rank);
struct gr_row_bits_flow gr_traffic_adapted(const struct gr_partition *p, const struct gr_halo_layer *layer,
                                           int32_t rank);
/** As graft_train.traffic() and its n_layers * GR_DIRECTIONS items. */
int32_t gr_traffic_of(const struct gr_partition *p, int32_t rank, graft_traffic *traffic, graft_error *error);
int32_t gr_traffic_item(const struct gr_partition *p, int32_t rank, int32_t index, graft_traffic_item *item,
                        graft_error *error);
int32_t gr_traffic_pair(const struct gr_partition *p, int32_t peer, int32_t index, graft_traffic_pair *pair,
                        graft_error *error);

#endif
