/* Strategies of batches: a step on a batch, whose layers also read rows of earlier batches or of other ranks.
 *
 * For each batch a trainer calls begin() and number(); for each layer layer() and block(); then post(). During the step
 * the run has the strategy. After the step, or after a failure, the trainer calls end().
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/run.h"
#include "sample/sample.h"

struct gr_comm;
struct gr_links;

/** The names of tables begin with one of these prefixes: tables of option history, or caches over ranks. */
#define GR_STATE_HISTORY "history."
#define GR_STATE_CACHES "caches."

/** An array of the state that contains rows of earlier batches, or data about them, in words of 8 bytes. */
struct gr_state_table {
    char     name[32];
    int64_t  words;
    int64_t *data;
    int      is_set; /* the host has set the array since the last epoch of the trainer */
};

/** The edges of a layer in its block. Without a strategy of batches these are the drawn edges. */
struct gr_batch_layer {
    int64_t        n_dst, n_src, n_seen, n_edges; /* n_seen: n_src plus the rows that the strategy reads */
    const int64_t *row_ptr;                       /* [n_dst + 1] first edge of each destination */
    const int32_t *col;                           /* [n_edges] source of each edge */
    const int64_t *entry;                         /* [n_edges] entry of the graph of each edge */
    const float   *weight;                        /* [n_edges] factors that make sums estimates of all edges; NULL: 1 */
    int            normalizes; /* the weights of a row are scaled to add up to the number of its neighbours */

    const struct gr_sampled_layer *from;      /* all drawn edges, some of which the block may leave out */
    const int64_t                 *row;       /* [n_dst] row of each destination in `from`; NULL: i is row i */
    int                            is_shared; /* this layer uses the block of the layer before it */
};

/** The arguments of a strategy of batches. All of them must outlive the strategy. */
struct gr_batch_wish {
    struct gr_run         *run;           /* run->strategy is that of evaluations */
    struct gr_comm        *comm;          /* NULL: one process, whose batches read tables of all vertices */
    const struct gr_links *links;         /* over ranks: send lists of the halo */
    const int64_t         *halo;          /* over ranks: [halo] global index of each vertex */
    const graft_csr       *graph;         /* [owned x (owned + halo)] graph from which batches are drawn */
    const int64_t         *vertex;        /* [owned] global index of each vertex; NULL: vertex i has index i */
    int64_t                feature_bytes; /* bytes of a row of features */
    struct gr_budget      *lasting;       /* budget of the memory of the strategy */
    struct gr_budget      *batch;         /* budget of the memory of the current batch */
};

struct gr_batch_strategy;

/** The functions of a strategy of batches, besides those of gr_strategy_ops. */
struct gr_batch_ops {
    /** Begin a batch: receive rows of earlier batches, and use them from now on. Called before sampling if the sampler
     *  has an extension. `number` counts batches from the beginning of the training. Collective. \return OK;
     *  ERR_PEER. */
    int32_t (*begin)(struct gr_batch_strategy *strategy, int64_t number, graft_error *error);
    /** Assign indices to the vertices of the batch. *vertex receives the vertices in the order of their indices, owned
     *  ones first. \return OK; ERR_NOMEM. */
    int32_t (*number)(struct gr_batch_strategy *strategy, const struct gr_batch *batch, const int64_t **vertex,
                      int64_t *n_owned, graft_error *error);
    /** Set the edges of layer l. On entry `layer` contains the drawn edges. \return OK; ERR_NOMEM. */
    int32_t (*layer)(struct gr_batch_strategy *strategy, const struct gr_batch *batch, int32_t l,
                     struct gr_batch_layer *layer, graft_error *error);
    /** Complete the block of these edges, whose `vertex` has the global vertices of its sources. `csr` is the matrix of
     *  the block; if layer->is_shared, it is NULL, and the block is a copy. \return OK; ERR_NOMEM. */
    int32_t (*block)(struct gr_batch_strategy *strategy, int32_t l, const struct gr_batch_layer *layer, graft_csr *csr,
                     struct gr_block *block, graft_error *error);
    /** Prepare the messages of the batch, after all ranks have created their blocks. NULL: no messages. Collective.
     *  \return OK; ERR_PEER. */
    int32_t (*post)(struct gr_batch_strategy *strategy, graft_error *error);
    /** End the batch: free its data. Not collective. */
    void (*end)(struct gr_batch_strategy *strategy);
    /** End an epoch, after its last batch: receive and store all rows in transit. Collective. \return OK; ERR_PEER. */
    int32_t (*settle)(struct gr_batch_strategy *strategy, graft_error *error);

    /** check_table(): check values data[words] for a table. adopt(): use the tables that the host has set; `now` is the
     *  number of the next batch. Not collective. \return OK; ERR_FORMAT. */
    int32_t (*check_table)(const struct gr_batch_strategy *strategy, int32_t index, const int64_t *data,
                           graft_error *error);
    void (*adopt)(struct gr_batch_strategy *strategy, int64_t now);
};

struct gr_batch_strategy {
    struct gr_strategy         base;
    const struct gr_batch_ops *ops;
    const struct gr_extension *extension; /* extension of the sampler, or NULL */
    int64_t                    unfit;     /* number of rows of the batch that option hec.codec cannot represent */
    int                        is_filled; /* between batches: tables are complete (no rows in transit, all vertices) */
    int32_t                    n_tables;
    struct gr_state_table     *table; /* [n_tables] tables of the state; the first identifies graph, order and codec */
};

/** Create the strategy of the batches of a trainer. Collective. The caller destroys the strategy before its budgets
 *  end, even if this function fails and *strategy is set. \return OK; ERR_OPTION (hec.rows); ERR_NOMEM: the same on all
 *  ranks; ERR_PEER. */
int32_t gr_parallel_create_batches(const struct gr_batch_wish *wish, struct gr_batch_strategy **strategy,
                                   graft_error *error);

/** Create the transpose of the matrix of a block, if it fits the budget. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_block(graft_context *context, const struct gr_budget *budget, const graft_csr *csr,
                                    graft_matrix **transpose, graft_error *error);
