/* Training by minibatch: common declarations.
 *
 * minibatch.c    a batch of training vertices, with features and targets     batch_block.c  its blocks
 * batch_ranks.c  over ranks: the halo, and caches of its rows            batch_history.c  option history
 * batch_fetch.c  option hec.miss=fetch                                  batch_update.c  data that change
 * batch_state.c  tables of rows in the state, and what identifies batches
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_TRAIN_MINIBATCH_H
#define GR_TRAIN_MINIBATCH_H

#include "parallel/cached.h"
#include "run/input.h"
#include "run/memory.h"
#include "run/ranks.h"
#include "sample/sample.h"

/** The edges of a layer in its block. Without ranks these are the drawn edges. */
struct gr_batch_layer {
    int64_t        n_dst, n_src, n_seen, n_edges; /* n_seen: with the rows of its cache */
    const int64_t *row_ptr;                       /* [n_dst + 1] */
    const int32_t *col;                           /* [n_edges] */
    const int64_t *entry;                         /* [n_edges] of the graph */
    const float   *weight;                        /* [n_edges] for estimates of sums over all edges; NULL: 1 */
    int            normalizes; /* the weights of a row are scaled to add up to the number of its neighbours */

    const struct gr_sampled_layer *from;   /* all drawn edges, some of which may be left out, and: */
    const int64_t                 *row;    /* [n_dst] row of each destination in it; NULL: the same */
    struct gr_cached_layer        *cached; /* NULL: no cache */
};

/** How the training vertices of all ranks are dealt to batches. */
struct gr_batch_deal {
    int64_t n_seeds, most_seeds, n_all; /* of this rank, the most of any rank, and of all ranks */
    int64_t n_batches;
    double *weight; /* [n_batches] of the loss, on all ranks, in the present epoch */
};

/** The data of a trainer over ranks for its batches. */
struct gr_batch_ranks {
    struct gr_budget budget;           /* of all that lasts */
    int64_t          charged[GR_USES]; /* of it in the budget of the trainer */
    struct gr_csr    joined; /* for sums: the rows of this rank, whose columns are owned vertices and then the halo */
    struct gr_links  links;
    int64_t         *name;   /* [halo] global vertices */
    char            *x;      /* [halo x width] features, of the type of the input of the trainer */
    float           *right;  /* [halo] or NULL */
    int64_t         *degree; /* [halo] in-neighbours, with sample.weights=degree; else NULL */
    int32_t         *shift;  /* of entries to the order of global vertices; NULL: all neighbours are drawn */
    struct gr_cached cached;

    struct gr_batch_deal deal;
    int64_t              n_edges;   /* of the batches since the present epoch began; of the last epoch: */
    double               all_edges; /* of all ranks, and the most of any rank */
    int64_t              most_edges;

    struct gr_extension    extension; /* with hec.miss=fetch, for: */
    struct gr_setup       *setup;
    struct gr_minibatches *batches;

    /* Of the present batch: */
    int64_t  n_owned, n_halo;                           /* of its vertices, and of the sources of each layer: */
    int64_t  owned[GR_LAYERS_MAX], halo[GR_LAYERS_MAX]; /* */
    int32_t *place;  /* [vertices of the batch] its number among the owned vertices, or ~ its number in the halo */
    int64_t *vertex; /* [the same] on this rank, owned vertices first */
    int64_t *names;  /* [the same] global */
};

/** The data of a trainer in one process for option history. All layers of a batch have the same sampled layer. */
struct gr_batch_history {
    struct gr_budget budget;           /* of all that lasts */
    int64_t          charged[GR_USES]; /* of it in the budget of the trainer */
    struct gr_cached cached;
    int64_t          idle;   /* batches without a training vertex since the last step */
    int32_t         *vertex; /* [vertices of the present batch] */
};

/** An array of the state with rows of earlier batches, in words of 8 bytes. */
struct gr_state_table {
    char     name[32];
    int64_t  words;
    int64_t *data;
    int      is_set; /* in a trainer: the host has replaced the array since the last epoch */
};

/** Identifies the batches of a trainer; item "progress.batches" of the state. It is equal if all ranks deal the same
 *  training vertices to the same batches in the same epochs. Neighbours may be drawn in other ways. */
struct gr_batches_id {
    int64_t n_batches; /* of an epoch; 0: an epoch is one step on the whole graph */
    int64_t batch_size, n_ranks;
    int64_t checksum; /* of the seeds in the order of epoch 0, and of options: a sum over ranks */
};

/** The batches of a trainer; keeps the parts of the run that a batch replaces during a step. */
struct gr_minibatches {
    graft_sampler           *sampler; /* NULL: a step is on the whole graph */
    struct gr_batches_id     id;
    int64_t                  charged;  /* its bytes in the budget of the trainer */
    const graft_csr         *graph;    /* from which batches are drawn */
    graft_csr                no_edges; /* the graph for models that use no edges */
    struct gr_budget         budget;   /* of the current batch */
    const int64_t           *vertex;   /* numbers of its sources on this rank, and global: */
    const int64_t           *names;
    int64_t                  n_vertices;
    struct gr_block         *block;    /* [layers] */
    const struct gr_block  **block_of; /* [layers] */
    struct gr_input          input;
    struct gr_targets        targets;
    struct gr_strategy      *strategy;
    struct gr_cached        *cached;  /* rows of earlier batches; NULL: not used */
    struct gr_batch_ranks   *ranks;   /* NULL: one process */
    struct gr_batch_history *history; /* NULL: layers sample deeper */

    int64_t layout; /* of the tables: a checksum of graph, order and codec, over ranks also of the rank */
    struct gr_state_table *tables; /* [n_tables]; NULL: the state has no rows of earlier batches */
    int32_t                n_tables;
};

/** List the tables of option history, or over ranks the arrays of caches, for the state. \return OK; ERR_NOMEM. */
int32_t gr_batch_tables_init(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** Check values for a table, data[table->words]. \return OK; ERR_FORMAT. */
int32_t gr_batch_table_check(const struct gr_minibatches *m, const struct gr_state_table *table, const int64_t *data,
                             graft_error *error);
/** Whether all tables were set by the host (`is_set`), or are filled. */
int     gr_batch_tables_hold(const struct gr_minibatches *m, int is_set);
/** Use the tables if all were set, otherwise empty them. `now` is the number of the next batch. unset(): mark all
 *  tables as not set by the host. */
void    gr_batch_tables_take(struct gr_minibatches *m, int64_t now);
void    gr_batch_tables_unset(struct gr_minibatches *m);

/** Identify the batches of a sampler that has just been created. Collective. \return OK; ERR_PEER. */
int32_t gr_batches_identify(const struct gr_setup *setup, const graft_sampler *sampler, struct gr_batches_id *id,
                            graft_error *error);

/** The training vertices of this rank, or with option history all vertices, in the order of the setup. The caller frees
 *  them.
 *  \return OK; ERR_NOMEM. */
int32_t gr_batch_seeds(const struct gr_setup *setup, const struct gr_targets *targets, int64_t **seeds,
                       int64_t *n_seeds, graft_error *error);
/** A sampler of the graph and the seeds in `from`, to which options of the trainer are added; over ranks the seeds are
 *  dealt by `deal`, else it is NULL. \return OK; ERR_OPTION; ERR_NOMEM: on this rank only. */
int32_t gr_batch_sampler(struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch_deal *deal,
                         const struct gr_sampler_source *from, graft_sampler **sampler, graft_error *error);
/** The memory of the sampler counts as the trainer's. */
void    gr_batch_charge_sampler(struct gr_setup *setup, struct gr_minibatches *m);

/** The block of layer l of the batch. \return OK; ERR_NOMEM. */
int32_t gr_batch_block(struct gr_setup *setup, struct gr_minibatches *m, int32_t l, const struct gr_batch_layer *layer,
                       graft_error *error);
void    gr_batch_blocks_fini(struct gr_setup *setup, struct gr_minibatches *m);

/** Charge the budget of the trainer with the present bytes of `lasting`, or return them. */
void gr_batches_charge(struct gr_setup *setup, const struct gr_budget *lasting, int64_t *charged, int exists);

/** Make the data of option history. fini() is always due. \return OK; ERR_OPTION; ERR_NOMEM. */
int32_t gr_batch_history_init(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
void    gr_batch_history_fini(struct gr_setup *setup, struct gr_minibatches *m);
/** Before batch `number`: a forward pass over all vertices, without dropout, fills the tables if they are empty.
 *  \return OK; ERR_NOMEM; ERR_CANCELLED. */
int32_t gr_batch_history_fill(struct gr_setup *setup, struct gr_minibatches *m, int64_t number, graft_error *error);
/** Begin a batch. \return OK; ERR_NOMEM. */
int32_t gr_batch_history_begin(struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch,
                               int64_t number, graft_error *error);
/** The block of layer l. \return OK; ERR_NOMEM. */
int32_t gr_batch_history_block(struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch,
                               int32_t l, graft_error *error);

/** Whether the model and the options can have batches over ranks. \return OK; ERR_UNSUPPORTED; ERR_OPTION. */
int32_t gr_batch_ranks_check(const struct gr_setup *setup, graft_error *error);
/** Make the data that batches need from other ranks: the features of the halo are fetched. Collective. fini() is always
 *  due.
 *  \return OK; ERR_OPTION, ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_batch_ranks_init(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
void    gr_batch_ranks_fini(struct gr_setup *setup, struct gr_minibatches *m);
/** The number of batches, equal on all ranks, to which each rank deals its n_seeds training vertices. The caller frees
 *  deal->weight. Collective. \return OK; ERR_OPTION (batch_size): on all ranks; ERR_PEER. */
int32_t gr_batch_ranks_deal(const struct gr_setup *setup, int64_t n_seeds, struct gr_batch_deal *deal,
                            graft_error *error);
/** changed_bytes(): bytes of the longest row that refresh() sends for the changed arrays `what` (GRAFT_UPDATE_...).
 *  refresh(): fetch the changed rows of the halo; `packed` is space for all rows sent. Collective. \return OK;
 *  ERR_PEER. */
int64_t gr_batch_ranks_changed_bytes(const struct gr_setup *setup, const struct gr_batch_ranks *r, uint32_t what);
int32_t gr_batch_ranks_refresh(struct gr_setup *setup, struct gr_batch_ranks *r, uint32_t what, void *packed,
                               graft_error *error);
/** An epoch begins: the weights of the losses of its batches. Collective. \return OK; ERR_PEER. */
int32_t gr_batch_ranks_begin_epoch(const struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** An epoch ends: store rows in transit, and count the edges of the batches of each rank. Collective. \return OK;
 *  ERR_PEER. */
int32_t gr_batch_ranks_end_epoch(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** Number the vertices of a batch. \return OK; ERR_NOMEM: on this rank only. */
int32_t gr_batch_ranks_number(const struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch,
                              graft_error *error);
/** The edges of layer l, with the cached rows of the halo. \return OK; ERR_NOMEM: on this rank only. */
int32_t gr_batch_ranks_layer(const struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch,
                             int32_t l, struct gr_batch_layer *layer, graft_error *error);

/** The extension of the sampler with hec.miss=fetch, or NULL. */
const struct gr_extension *gr_batch_fetch_extension(struct gr_setup *setup, struct gr_minibatches *m);
/** Once the vertices of a batch are numbered: the rows that are sent, and space for them. \return OK; ERR_NOMEM: on
 *  this rank alone. */
int32_t                    gr_batch_fetch_number(struct gr_minibatches *m, graft_error *error);

#endif
