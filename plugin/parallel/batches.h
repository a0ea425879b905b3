/* Strategies of batches: a step on a batch, whose layers also read rows of earlier batches or of other ranks.
 *
 * For each batch a trainer calls begin() and number(); for each layer layer() and block(); then post(). During the step
 * the run has the strategy. After the step, or a failure, the trainer calls end().
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"
#include "sample/sample.h"

struct gr_comm;
struct gr_links;

/** Names of tables begin with one of these: tables of option history, and caches over ranks. */
#define GR_STATE_HISTORY "history."
#define GR_STATE_CACHES "caches."

/** An array of the state with rows of earlier batches, in words of 8 bytes. */
struct gr_state_table {
    char     name[32];
    int64_t  words;
    int64_t *data;
    int      is_set; /* in a trainer: the host has replaced the array since the last epoch */
};

/** The edges of a layer in its block. Without a strategy of batches these are the drawn edges. */
struct gr_batch_layer {
    int64_t        n_dst, n_src, n_seen, n_edges; /* n_seen: with the rows that the strategy reads */
    const int64_t *row_ptr;                       /* [n_dst + 1] */
    const int32_t *col;                           /* [n_edges] */
    const int64_t *entry;                         /* [n_edges] of the graph */
    const float   *weight;                        /* [n_edges] for estimates of sums over all edges; NULL: 1 */
    int            normalizes; /* the weights of a row are scaled to add up to the number of its neighbours */

    const struct gr_sampled_layer *from;      /* all drawn edges, some of which the block may leave out */
    const int64_t                 *row;       /* [n_dst] row of each destination in it; NULL: the same */
    int                            is_shared; /* the block of the layer below is also that of this layer */
};

/** What a strategy of batches serves. All of it outlives the strategy. */
struct gr_batch_wish {
    struct gr_run         *run;    /* with the strategy of its other passes */
    struct gr_comm        *comm;   /* NULL: one process, whose batches read tables of all vertices; else over ranks: */
    const struct gr_links *links;  /* of the halo */
    const int64_t         *halo;   /* [halo] its global vertices */
    const graft_csr       *graph;  /* [owned x (owned + halo)] from which batches are drawn */
    const int64_t         *vertex; /* [owned] global vertices; NULL: the same */
    int64_t                feature_bytes; /* of a row of features */
    struct gr_budget      *lasting;       /* of the memory of the strategy */
    struct gr_budget      *batch;         /* of the memory of the present batch */
};

struct gr_batch_strategy;

/** The functions of a strategy of batches, beside those of gr_strategy_ops. */
struct gr_batch_ops {
    /** A batch begins: use the rows of earlier batches; before it is sampled if the sampler has an extension. `number`
     *  is counted from the beginning of the training. Collective. \return OK; ERR_PEER. */
    int32_t (*begin)(struct gr_batch_strategy *strategy, int64_t number, graft_error *error);
    /** The vertices of the batch on this rank, in an order that has the owned ones first. \return OK; ERR_NOMEM. */
    int32_t (*number)(struct gr_batch_strategy *strategy, const struct gr_batch *batch, const int64_t **vertex,
                      int64_t *n_owned, graft_error *error);
    /** The edges of layer l: `layer` has the drawn ones. \return OK; ERR_NOMEM. */
    int32_t (*layer)(struct gr_batch_strategy *strategy, const struct gr_batch *batch, int32_t l,
                     struct gr_batch_layer *layer, graft_error *error);
    /** Complete the block of these edges, which has the global vertices of its sources. `csr` is the matrix of the
     *  block; with `is_shared` it is NULL, and the block is a copy. \return OK; ERR_NOMEM. */
    int32_t (*block)(struct gr_batch_strategy *strategy, int32_t l, const struct gr_batch_layer *layer, graft_csr *csr,
                     struct gr_block *block, graft_error *error);
    /** All ranks have their blocks: prepare what they send. NULL: nothing. Collective. \return OK; ERR_PEER. */
    int32_t (*post)(struct gr_batch_strategy *strategy, graft_error *error);
    /** The batch ends: drop its data. Not collective. */
    void (*end)(struct gr_batch_strategy *strategy);
    /** The last batch of an epoch is complete. Collective. \return OK; ERR_PEER. */
    int32_t (*settle)(struct gr_batch_strategy *strategy, graft_error *error);

    /** Check values for a table, data[words]; and use tables that the host has set. `now` is the number of the next
     *  batch. Not collective. \return OK; ERR_FORMAT. */
    int32_t (*check_table)(const struct gr_batch_strategy *strategy, int32_t index, const int64_t *data,
                           graft_error *error);
    void (*adopt)(struct gr_batch_strategy *strategy, int64_t now);
};

struct gr_batch_strategy {
    struct gr_strategy         base;
    const struct gr_batch_ops *ops;
    const struct gr_extension *extension; /* of the sampler; NULL: none */
    int64_t                    unfit;     /* rows of the batch that no code of option hec.codec can encode */
    int                        is_filled; /* between batches: no rows are in transit; in one process tables have rows of
                                           * all vertices */
    int32_t                    n_tables;
    struct gr_state_table     *table; /* [n_tables] for the state; the first identifies the graph, order and codec */
};

/** Create the strategy of the batches of a trainer. Collective. A made strategy is destroyed, also after a failure,
 *  before its budgets end. \return OK; ERR_OPTION (hec.rows); ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_create_batches(const struct gr_batch_wish *wish, struct gr_batch_strategy **strategy,
                                   graft_error *error);

/** The transpose of a matrix of a block, checked against a budget. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_block(graft_context *context, const struct gr_budget *budget, const graft_csr *csr,
                                    graft_matrix **transpose, graft_error *error);
