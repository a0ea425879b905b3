/* Data and functions that all strategies over ranks share. Each rank owns some of the vertices, and has all columns of
 * their rows. Weights are the same on all ranks.
 *
 * partition.c  strategy `partition`: sums are products over ranks (spmm/); attention and extrema exchange the rows of
 *              the halo (halo/)
 * columns.h    strategies `feature` and `grid`: a group of ranks shares the columns of the sums
 * plans.c      the plans of products, and their buffers      ranks.c    begins and ends steps
 * renew.c      adopts changed options of messages            sums.c     sums and exchanges of boundary rows
 * traffic.c    counts rows and bytes                         explain.c  prints tables of these counts
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "dgraph/part.h"
#include "halo/halo.h"
#include "halo/options.h"
#include "model/kind.h"
#include "model/product.h"
#include "spmm/plan.h"

/** The number of possible widths of an element: 2^0 to 2^5 bits. */
enum { GR_BITS = 6 };

/** The exchanges of one layer in one direction in the last step. */
struct gr_sent {
    const struct gr_flow       *flow; /* [n_ranks] rows of one exchange, forward; NULL: no exchange */
    int64_t                     exchanges;
    int64_t                     alike[GR_BITS]; /* exchanges whose rows all had 2^i bits */
    int64_t                     row_bytes;      /* sum over these exchanges of the bytes of one row */
    const struct gr_halo_layer *adapted;        /* the layer with the adaptive widths of the other exchanges */
    int32_t                     code, rounding; /* of the last quantized exchange of any step; 0: none */
};

/** Rows that a rank sent and received in the transposes of a layer in one direction in the last step. Here a row is a
 *  record (transpose.h). */
struct gr_transpose_flow {
    int64_t exchanges, rows[GR_SIDES], bytes[GR_SIDES], messages[GR_SIDES];
    int64_t bits;  /* bits of an element */
    int64_t edges; /* received bytes of edges (feature.graph); also included in `bytes` */
};

/** Counts of rows and bytes in the last step. Quantization errors are summed since the trainer was created. */
struct gr_traffic {
    struct gr_sent           *sent;   /* [n_layers x GR_DIRECTIONS + 1] last: features aggregated once */
    struct gr_send_stats     *pairs;  /* [n_layers x GR_DIRECTIONS x n_ranks] rows sent to each rank */
    struct gr_transpose_flow *turned; /* [n_layers x GR_DIRECTIONS x n_ranks] transposes; or NULL */
    int64_t                   oldest[GR_DIRECTIONS * GR_LAYERS_MAX]; /* gr_history.oldest of replaced messages */
};

/** The rows that a layer computes in a step, if it does not compute all. */
struct gr_masked_rows {
    struct gr_made_part part;
    graft_plan         *plan; /* NULL: the layer computes all rows, or the same rows as the layer before it */
};

/** The plans of products over ranks. */
struct gr_plans {
    const struct gr_part *part;  /* the summed graph: this rank's part, or the edges from other groups to its group */
    graft_plan           *whole; /* plan of all rows; NULL: attention, or extrema without shared columns */
    struct gr_masked_rows masked[GR_LAYERS_MAX];  /* rows of each layer in a step, if not all */
    graft_plan           *step[GR_LAYERS_MAX];    /* plan of each layer in a step: `whole`, or one of `masked` */
    int64_t               columns[GR_LAYERS_MAX]; /* number of columns of a layer that this rank sums in a step */
    int64_t               widest[GR_LAYERS_MAX];  /* number of columns of a layer in its widest pass */
};

/** Options and counts of stale rows. */
struct gr_staleness {
    int     is_on;
    int64_t sync_every;    /* steps from one wait for fresh rows to the next; 0: only the first step waits */
    int     synchronous;   /* the current step waits for fresh rows */
    int64_t n_synchronous; /* number of steps that waited for fresh rows since create() */
    double  polled;        /* time of the last poll of stale rows */
};

/** Options and counts of adaptive widths. */
struct gr_adaptation {
    int64_t every;      /* steps between assignments; 0: widths are assigned once */
    int64_t traced;     /* number of steps since widths were assigned */
    int     is_adapted; /* widths were assigned */
};

struct gr_ranks {
    struct gr_strategy       base;
    struct gr_strategy_wish  wish;
    struct gr_strategy_graph graph;
    graft_context           *context;
    struct gr_comm          *comm;
    int32_t                  n_layers;
    int32_t                  gathers_from;   /* the first layer that exchanges rows; n_layers: none does */
    int                      exchanges_rows; /* layers exchange rows of the halo (of the group), not sums */
    struct gr_plans          plans;
    struct gr_halo_rows      halo_rows;
    struct gr_columns       *columns; /* data of ranks that share columns; NULL: they do not */
    struct gr_traffic        traffic;
    struct gr_staleness      stale;
    struct gr_adaptation     adapt;
    struct gr_halo_options   options;                         /* options for which the messages were created */
    int64_t                  charged_messages, charged_graph; /* bytes charged to the budget */
    double                   begin;                           /* time when the current sum began */
    struct gr_messages      *moving; /* messages in flight while recorded products are executed; or NULL */
};

static inline struct gr_ranks *gr_parallel_of(struct gr_strategy *strategy)
{
    return (struct gr_ranks *)strategy;
}

static inline const struct gr_config *gr_parallel_config(const struct gr_ranks *r)
{
    return gr_run_config(r->wish.run);
}

/* -- ranks.c: creation, and functions of steps that all strategies use --------------------------------------------- */

/** Initialise `r` without a graph. Not collective. Always call gr_parallel_fini(). \return OK; ERR_NOMEM. */
int32_t gr_parallel_init(struct gr_ranks *r, const struct gr_strategy_ops *ops, const struct gr_strategy_wish *wish,
                         graft_error *error);
void    gr_parallel_fini(struct gr_ranks *r);
/** Create send lists and messages for the halo of a part; layer l has width[l] columns. Collective. */
int32_t gr_parallel_exchange_rows(struct gr_ranks *r, const struct gr_halo *halo, const int64_t *width,
                                  graft_error *error);
/** Discard stale rows and adaptive widths, after values of edges have changed. */
void    gr_parallel_reset(struct gr_ranks *r);
/** Allocate memory for sums over all ranks. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_reserve_sums(struct gr_ranks *r, graft_error *error);

int32_t gr_parallel_prepare_step(struct gr_strategy *strategy, struct gr_run *run, graft_error *error);
void    gr_parallel_begin_step(struct gr_strategy *strategy, int64_t epoch);
int32_t gr_parallel_end_step(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error);
void    gr_parallel_forget(struct gr_strategy *strategy, int undoes);
int32_t gr_parallel_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error);
int32_t gr_parallel_sum_gradients(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error);
int32_t gr_parallel_agree(struct gr_strategy *strategy, int32_t rc, graft_error *error);
void    gr_parallel_poll(void *strategy);

/* -- plans.c ------------------------------------------------------------------------------------------------------- */

/** Return the number of columns of labels that layer l sums in addition to its input. */
int64_t gr_parallel_plans_label_columns(const struct gr_ranks *r, int32_t layer);
/** Return the number of columns of the widest sum, of all slices together. */
int64_t gr_parallel_plans_widest_sum(const struct gr_ranks *r);
/** Create the plan of all rows of `part`. Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_plans_init(struct gr_ranks *r, const struct gr_part *part, graft_error *error);
/** Create the plans of the layers in a step, if the run trains. rows[n_layers + 1]: layer l reads the first rows[l]
 *  rows of the summed graph, and computes the first rows[l + 1]. Collective. \return As gr_parallel_plans_init(). */
int32_t gr_parallel_plans_init_steps(struct gr_ranks *r, const int64_t *rows, graft_error *error);
void    gr_parallel_plans_fini(struct gr_ranks *r);
/** Set the numbers of columns of this rank in the messages of each layer: slice(r, width) for a sum of `width`
 *  columns. */
void    gr_parallel_plans_find_widths(struct gr_ranks *r, int64_t (*slice)(const struct gr_ranks *r, int64_t width));
/** need(): return the bytes of messages that are not allocated yet. reserve(): allocate them. Not collective. */
double  gr_parallel_plans_need(const struct gr_ranks *r);
int32_t gr_parallel_plans_reserve(struct gr_ranks *r, graft_error *error);
/** Cut the matrices of all sums for sparse workers. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_plans_cut(struct gr_ranks *r, graft_error *error);
/** Charge the current bytes of the strategy to the budget. */
void    gr_parallel_charge(struct gr_ranks *r);

/** layer(): return the stored data of a layer and direction in a step, or NULL. layers(): return the struct that
 *  contains it. */
struct gr_halo_layer        *gr_parallel_plans_layer(const struct gr_ranks *r, int32_t layer, int32_t direction);
const struct gr_halo_layers *gr_parallel_plans_layers(const struct gr_ranks *r, int32_t layer);
/** count_exchanges(): return the number of exchanges in a step: of boundary rows, layer by layer in each direction,
 *  then of transposes in the same order. exchange(): return the data that are stored for exchange i, or NULL. */
int32_t                      gr_parallel_plans_count_exchanges(const struct gr_ranks *r);
struct gr_halo_layer        *gr_parallel_plans_exchange(const struct gr_ranks *r, int32_t i);
/** List the layers of all plans, halo rows and transposes, [GR_LAYERS_MAX + 3]. \return Their number. */
int32_t                      gr_parallel_plans_list_layers(struct gr_ranks *r, struct gr_halo_layers **list);

/** New values of the plans. */
struct gr_new_plans {
    struct gr_plan_values whole, masked[GR_LAYERS_MAX];
};
/** Functions values_begin() and values_end() of a strategy, for its plans. */
int32_t gr_parallel_plans_values_begin(struct gr_ranks *r, const struct gr_part *part, struct gr_new_plans *values,
                                       graft_error *error);
void    gr_parallel_plans_values_end(struct gr_ranks *r, struct gr_new_plans *values, int takes);

/* -- renew.c ------------------------------------------------------------------------------------------------------- */

/** Adopt changed options of messages, which are equal on all ranks. If they need other messages, the call is
 *  collective, and the next step is like the first: it waits for fresh rows, and adaptive widths are assigned again.
 *  \return OK; ERR_NOMEM: on all ranks, and the messages are unchanged; ERR_PEER. */
int32_t gr_parallel_renew(struct gr_ranks *r, graft_error *error);
