/* What the strategies over ranks share. Each rank owns some of the vertices, and has all columns of their rows. Weights
 * are the same on all ranks.
 *
 * partition.c  strategy `partition`: sums are products over ranks (spmm/); attention and extrema exchange the rows of
 *              the halo (halo/)
 * columns.h    strategies `feature` and `grid`: a group of ranks shares the columns of the sums
 * plans.c      the plans of products, and their buffers      ranks.c    what a step begins and ends with
 * renew.c      options of messages that change               sums.c     sums and exchanges of boundary rows
 * traffic.c    counters of rows and bytes                    explain.c  tables of them
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "dgraph/part.h"
#include "halo/halo.h"
#include "halo/options.h"
#include "model/kind.h"
#include "model/product.h"
#include "spmm/plan.h"

/** Possible numbers of bits of an element of a row: 2^0 to 2^5. */
enum { GR_BITS = 6 };

/** The exchanges of a layer in one direction in the last step. */
struct gr_sent {
    const struct gr_flow       *flow; /* [n_ranks] of one exchange, forward; NULL: no exchange */
    int64_t                     exchanges;
    int64_t                     alike[GR_BITS]; /* exchanges whose rows all had 2^i bits */
    int64_t                     row_bytes;      /* of one row, summed over these exchanges */
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

/** Counters of rows and bytes. */
struct gr_traffic {
    struct gr_sent           *sent;   /* [n_layers x GR_DIRECTIONS], and one for features that are aggregated once */
    struct gr_send_stats     *pairs;  /* [n_layers x GR_DIRECTIONS x n_ranks] from this rank to each other in the last
                                       * step; quantization errors: since the trainer was made */
    struct gr_transpose_flow *turned; /* [n_layers x GR_DIRECTIONS x n_ranks]; NULL: ranks share no columns */
    int64_t oldest[GR_DIRECTIONS * GR_LAYERS_MAX]; /* gr_history.oldest of messages that were replaced */
};

/** The rows that a layer computes in a step, if not all. */
struct gr_masked_rows {
    struct gr_made_part part;
    graft_plan         *plan; /* NULL: it computes all rows, or the same as the layer before it */
};

/** The products over ranks. */
struct gr_plans {
    const struct gr_part *part;  /* the summed graph: of this rank, or the edges from other groups to its group */
    graft_plan           *whole; /* of all rows; NULL for attention, and extrema without shared columns */
    struct gr_masked_rows masked[GR_LAYERS_MAX];
    graft_plan           *step[GR_LAYERS_MAX];    /* the plan of each layer in a step, one of the above */
    int64_t               columns[GR_LAYERS_MAX]; /* of a layer in a step, summed by this rank */
    int64_t               widest[GR_LAYERS_MAX];  /* columns of a layer in its widest pass */
};

/** Stale rows. */
struct gr_staleness {
    int     is_on;
    int64_t sync_every;    /* 0: no step but the first waits for fresh rows */
    int     synchronous;   /* the current step waits for fresh rows */
    int64_t n_synchronous; /* steps that waited for fresh rows since the trainer was made */
    double  polled;        /* when poll() last looked */
};

/** Adaptive widths. */
struct gr_adaptation {
    int64_t every;      /* steps between assignments; 0: there is one */
    int64_t traced;     /* steps since widths were assigned */
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
    int                      exchanges_rows; /* of the halo (of the group), instead of sums */
    struct gr_plans          plans;
    struct gr_halo_rows      halo_rows;
    struct gr_columns       *columns; /* shared by a group of ranks; NULL: they are not */
    struct gr_traffic        traffic;
    struct gr_staleness      stale;
    struct gr_adaptation     adapt;
    struct gr_halo_options   options;                         /* for which the messages are made */
    int64_t                  charged_messages, charged_graph; /* bytes in the budget */
    double                   begin;                           /* when the current sum began */
    struct gr_messages      *moving; /* of a sum that has begun, while recorded products are executed; NULL: none */
};

static inline struct gr_ranks *gr_parallel_of(struct gr_strategy *strategy)
{
    return (struct gr_ranks *)strategy;
}

static inline const struct gr_config *gr_parallel_config(const struct gr_ranks *r)
{
    return gr_run_config(r->wish.run);
}

/* -- ranks.c: creation, and the functions of a step that all strategies have --------------------------------------- */

/** Not collective. Always call gr_parallel_fini(). \return OK; ERR_NOMEM. */
int32_t gr_parallel_init(struct gr_ranks *r, const struct gr_strategy_ops *ops, const struct gr_strategy_wish *wish,
                         graft_error *error);
void    gr_parallel_fini(struct gr_ranks *r);
/** Send lists and messages for the halo of a part; layer l has width[l] columns. Collective. */
int32_t gr_parallel_exchange_rows(struct gr_ranks *r, const struct gr_halo *halo, const int64_t *width,
                                  graft_error *error);
/** Values of edges have changed: forget stale rows and adaptive widths. */
void    gr_parallel_reset(struct gr_ranks *r);
/** Space for sums over all ranks. Not collective. \return OK; ERR_NOMEM. */
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

/** Columns of the labels that layer l sums in addition to its input. */
int64_t gr_parallel_plans_label_columns(const struct gr_ranks *r, int32_t layer);
/** All columns of the widest sum. */
int64_t gr_parallel_plans_widest_sum(const struct gr_ranks *r);
/** Make the plan of all rows of `part`. Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_plans_init(struct gr_ranks *r, const struct gr_part *part, graft_error *error);
/** Make the plans of the layers in a step, if it trains, which determine its messages. rows[l]: rows of the summed
 *  graph before layer l, [n_layers + 1]. Collective. \return as above. */
int32_t gr_parallel_plans_init_steps(struct gr_ranks *r, const int64_t *rows, graft_error *error);
void    gr_parallel_plans_fini(struct gr_ranks *r);
/** The columns of this rank in the messages of each layer: slice(r, width) of a sum of `width` columns. */
void    gr_parallel_plans_find_widths(struct gr_ranks *r, int64_t (*slice)(const struct gr_ranks *r, int64_t width));
/** Bytes of messages that are not allocated yet; and allocate them. Not collective. */
double  gr_parallel_plans_need(const struct gr_ranks *r);
int32_t gr_parallel_plans_reserve(struct gr_ranks *r, graft_error *error);
/** Cut the matrices of all sums for sparse workers. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_plans_cut(struct gr_ranks *r, graft_error *error);
/** Charge the budget with the bytes that the strategy has now. */
void    gr_parallel_charge(struct gr_ranks *r);

/** History and widths of a layer and direction in a step; NULL if no option asks for them. */
struct gr_halo_layer        *gr_parallel_plans_layer(const struct gr_ranks *r, int32_t layer, int32_t direction);
const struct gr_halo_layers *gr_parallel_plans_layers(const struct gr_ranks *r, int32_t layer);
/** The number of exchanges in a step: of boundary rows, layer by layer in each direction, then of transposes in the
 *  same order. And the data that are stored for exchange i, or NULL. */
int32_t                      gr_parallel_plans_count_exchanges(const struct gr_ranks *r);
struct gr_halo_layer        *gr_parallel_plans_exchange(const struct gr_ranks *r, int32_t i);
/** List the layers of all plans, halo rows and transposes, [GR_LAYERS_MAX + 3]. \return Their number. */
int32_t                      gr_parallel_plans_list_layers(struct gr_ranks *r, struct gr_halo_layers **list);

/** New values of the plans. */
struct gr_new_plans {
    struct gr_plan_values whole, masked[GR_LAYERS_MAX];
};
/** As values_begin() and values_end() of a strategy, for the plans of this part. */
int32_t gr_parallel_plans_values_begin(struct gr_ranks *r, const struct gr_part *part, struct gr_new_plans *values,
                                       graft_error *error);
void    gr_parallel_plans_values_end(struct gr_ranks *r, struct gr_new_plans *values, int takes);

/* -- renew.c ------------------------------------------------------------------------------------------------------- */

/** Adopt options of messages that have changed, to the same values on all ranks. If they need other messages, the next
 *  step is like the first step: it waits for fresh rows, and adaptive bits are assigned anew. Collective if so.
 *  \return OK; ERR_NOMEM: on all ranks, and nothing has changed; ERR_PEER. */
int32_t gr_parallel_renew(struct gr_ranks *r, graft_error *error);
