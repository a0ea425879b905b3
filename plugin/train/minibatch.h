/* Training by minibatch: common declarations.
 *
 * minibatches.c  creation, and the sampler                                   batch_update.c  data that change
 * minibatch.c    a batch of training vertices, with features and targets     batch_block.c   its blocks
 * batch_ranks.c  batches over ranks, which read caches of rows of the halo   batch_fetch.c   option hec.miss=fetch
 * batch_halo.c   what they need of the halo
 * batch_history.c  batches that read rows of earlier ones (history)
 * batch_state.c  tables of rows in the state, and what identifies batches
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

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

    const struct gr_sampled_layer *from;      /* all drawn edges, some of which the block may leave out */
    const int64_t                 *row;       /* [n_dst] row of each destination in it; NULL: the same */
    struct gr_cached_layer        *cached;    /* NULL: no cache */
    int64_t                        row_width; /* floats of the space of a row of the cache */
    int                            is_shared; /* the block of the layer below is also that of this layer */
};

/** How the seeds of all ranks are dealt to batches. */
struct gr_batch_deal {
    int64_t n_seeds, most_seeds, n_all; /* seeds of this rank, the most on any rank, and the sum over all ranks */
    int64_t n_batches;                  /* over ranks; 0 in one process, where option batch_size decides */
    double *weight;                     /* [n_batches] of the loss, on all ranks, in the present epoch; or NULL */
};

/** The edges of batches over ranks. */
struct gr_batch_edges {
    int64_t n;    /* of this rank, since the present epoch began */
    double  all;  /* of all ranks, in the last epoch */
    int64_t most; /* of any rank, in the last epoch */
};

/** Data of the vertices of the halo. */
struct gr_batch_halo {
    int64_t *name;  /* [halo] global vertices */
    char    *x;     /* [halo x width] features, of the type of the input of the trainer */
    float   *right; /* [halo] or NULL */
};

/** The data of a trainer over ranks for its batches. */
struct gr_batch_ranks {
    struct gr_csr   joined; /* for sums: the rows of this rank, whose columns are owned vertices and then the halo */
    struct gr_links links;
    int64_t        *degree; /* [halo] in-neighbours, with sample.weights=degree; else NULL */
    int32_t        *shift;  /* of entries to the order of global vertices; NULL: all neighbours are drawn */

    struct gr_extension    extension; /* with hec.miss=fetch; it uses the next two fields */
    struct gr_setup       *setup;
    struct gr_minibatches *batches;

    /* Of the present batch: */
    int64_t  n_halo;
    int64_t  owned[GR_LAYERS_MAX]; /* of the sources of each layer */
    int64_t  halo[GR_LAYERS_MAX];  /* of the sources of each layer */
    int32_t *place;  /* [vertices of the batch] its number among the owned vertices, or ~ its number in the halo */
    int64_t *vertex; /* [vertices of the batch] on this rank, owned vertices first */
    int64_t *names;  /* [vertices of the batch] global */
};

/** An array of the state with rows of earlier batches, in words of 8 bytes. */
struct gr_state_table {
    char     name[32];
    int64_t  words;
    int64_t *data;
    int      is_set; /* in a trainer: the host has replaced the array since the last epoch */
};

/** The tables of a trainer. */
struct gr_state_tables {
    int64_t                layout; /* a checksum of graph, order and codec, over ranks also of the rank */
    struct gr_state_table *table;  /* [count]; NULL: the state has no rows of earlier batches */
    int32_t                count;
};

/** Identifies the batches of a trainer; item "progress.batches" of the state. It is equal if all ranks deal the same
 *  training vertices to the same batches in the same epochs. Neighbours may be drawn in other ways. */
struct gr_batches_id {
    int64_t n_batches; /* of an epoch; 0: an epoch is one step on the whole graph */
    int64_t batch_size, n_ranks;
    int64_t checksum; /* of the seeds in the order of epoch 0, and of options: a sum over ranks */
};

/** The parts of the run that a batch replaces during a step. */
struct gr_batch_whole {
    struct gr_input     input;
    struct gr_targets   targets;
    struct gr_strategy *strategy;
};

/** The memory of data that last as long as the batches of the trainer. */
struct gr_batch_memory {
    struct gr_budget budget;
    int64_t          charged[GR_USES]; /* of it in the budget of the trainer */
};

/** The present batch. */
struct gr_batch_now {
    struct gr_budget        budget;
    const int64_t          *vertex;              /* [n_vertices] on this rank */
    const int64_t          *names;               /* [n_vertices] global */
    int64_t                 n_vertices, n_owned; /* n_owned: the first ones, which are not in the halo */
    struct gr_block        *block;               /* [layers] */
    const struct gr_block **block_of;            /* [layers] */
};

struct gr_batch_mode;

/** The batches of a trainer. */
struct gr_minibatches {
    const struct gr_batch_mode *mode;
    graft_sampler              *sampler;
    struct gr_batches_id        id;
    struct gr_batch_deal        deal;
    struct gr_batch_edges       edges;
    struct gr_batch_whole       whole;    /* what a batch replaces during a step */
    const graft_csr            *graph;    /* from which batches are drawn */
    graft_csr                   no_edges; /* the graph for models that use no edges */
    struct gr_batch_memory      lasting;
    int                         is_extended; /* sampling is collective */
    int64_t                     charged;     /* bytes of the sampler in the budget of the trainer */

    struct gr_cached       rows;   /* of earlier batches */
    struct gr_cached      *cached; /* the same; NULL: not used */
    struct gr_state_tables tables;
    int64_t                idle;  /* batches without a training vertex since the last step */
    struct gr_batch_ranks *ranks; /* NULL: one process */
    struct gr_batch_halo   halo;

    struct gr_batch_now now;
};

/** What differs between one process, option history, and ranks. Functions that a mode does not need are NULL; \return
 *  OK; ERR_NOMEM on this rank only, unless stated otherwise. */
struct gr_batch_mode {
    const char *seeds;   /* what batches consist of */
    const char *refills; /* what happens to rows of earlier batches that are not used */
    int         renews;  /* batches have all vertices, and make a step only if one of them is a training vertex */

    /* Whether model and options, also options that may change between epochs, can have such batches.
     * \return OK; ERR_UNSUPPORTED; ERR_OPTION. */
    int32_t (*check)(const struct gr_setup *setup, graft_error *error);
    /* Make the data that all batches share; always call fini(). Over ranks: collective, and the same errors on all. */
    int32_t (*init)(struct gr_setup *setup, struct gr_minibatches *m, struct gr_cached_wish *wish, graft_error *error);
    void (*fini)(struct gr_setup *setup, struct gr_minibatches *m);
    /* Deal n_seeds seeds of this rank. The caller frees deal->weight. \return OK; ERR_OPTION (batch_size); over ranks
     * collective: ERR_PEER, and ERR_OPTION on all. */
    int32_t (*deal)(const struct gr_setup *setup, int64_t n_seeds, struct gr_batch_deal *deal, graft_error *error);
    /* Complete the arguments of the sampler. */
    void (*source)(struct gr_setup *setup, struct gr_minibatches *m, struct gr_sampler_source *source, int64_t *fanout);
    /* An epoch begins or ends. Collective. \return OK; ERR_PEER. */
    int32_t (*begin_epoch)(const struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
    int32_t (*end_epoch)(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);

    /* Before batch `number` is sampled. Over ranks collective. \return Also ERR_CANCELLED; ERR_PEER. */
    int32_t (*before)(struct gr_setup *setup, struct gr_minibatches *m, int64_t number, graft_error *error);
    /* Number the vertices of a batch. NULL: the numbers of the sampler are used. */
    int32_t (*name)(const struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch,
                    graft_error *error);
    /* All ranks have sampled. Over ranks collective. \return Also ERR_PEER. */
    int32_t (*begin)(struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch, int64_t number,
                     graft_error *error);
    /* Change the edges of layer l. */
    int32_t (*layer)(struct gr_setup *setup, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                     struct gr_batch_layer *layer, graft_error *error);
    /* The blocks exist on all ranks. Collective. \return OK; ERR_PEER. */
    int32_t (*end)(struct gr_minibatches *m, graft_error *error);
};

extern const struct gr_batch_mode gr_train_history_batches, gr_train_ranks_batches;

struct gr_progress;

/** Make a sampler of the training vertices, if option batch_size asks for it, which replaces the present sampler.
 *  Collective; failures are the same on all ranks. */
int32_t gr_train_minibatches_init(graft_trainer *trainer, graft_error *error);
void    gr_train_minibatches_fini(graft_trainer *trainer);
/** gr_setup_update() of a trainer with batches, which then use the new data. Collective. */
int32_t gr_train_minibatches_update(graft_trainer *trainer, uint32_t what, const graft_dataset *data,
                                    graft_error *error);
/** restart(): begin the present epoch again, with the batches of the trainer. settle(): do so, with a warning, if the
 *  state is in the middle of an epoch of other batches. */
void    gr_train_minibatches_restart(graft_trainer *trainer);
void    gr_train_minibatches_settle(graft_trainer *trainer);
/** Forget rows of other ranks, which were computed with other weights. */
void    gr_train_minibatches_forget(graft_trainer *trainer);
/** Before an epoch: check that batches support changed options. Collective. \return OK; ERR_OPTION: on all ranks;
 *  ERR_IO (eval.blocks=FOLDER): in one process; ERR_PEER. */
int32_t gr_train_minibatches_prepare(graft_trainer *trainer, graft_error *error);
/** An epoch of batches begins or ends. Collective. \return OK; ERR_PEER. */
int32_t gr_train_minibatches_begin_epoch(graft_trainer *trainer, graft_error *error);
int32_t gr_train_minibatches_end_epoch(graft_trainer *trainer, graft_error *error);
/** The number of the present batch, counted from the beginning of the training. */
int64_t gr_train_minibatch_number(const struct gr_progress *progress);
/** Set the blocks, features and targets of the run to batch progress.batch, until end(), which is always due. */
int32_t gr_train_minibatch_begin(graft_trainer *trainer, graft_error *error);
void    gr_train_minibatch_end(graft_trainer *trainer);

/** List the tables of rows of earlier batches for the state. \return OK; ERR_NOMEM. */
int32_t gr_train_batch_tables_init(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** Check values for a table, data[table->words]. \return OK; ERR_FORMAT. */
int32_t gr_train_batch_table_check(const struct gr_minibatches *m, const struct gr_state_table *table,
                                   const int64_t *data, graft_error *error);
/** Whether all tables were set by the host (`is_set`), or are filled. */
int     gr_train_batch_tables_hold(const struct gr_minibatches *m, int is_set);
/** Use the tables if all were set, otherwise empty them. `now` is the number of the next batch. unset(): mark all
 *  tables as not set by the host. */
void    gr_train_batch_tables_take(struct gr_minibatches *m, int64_t now);
void    gr_train_batch_tables_unset(struct gr_minibatches *m);

/** Identify the batches of a sampler that has just been created. Collective. \return OK; ERR_PEER. */
int32_t gr_train_batches_identify(const struct gr_setup *setup, const graft_sampler *sampler, struct gr_batches_id *id,
                                  graft_error *error);

/** The seeds of this rank in the order of the setup: the training vertices, or all vertices if the mode renews rows.
 *  The caller frees them. \return OK; ERR_NOMEM. */
int32_t gr_train_batch_seeds(const struct gr_setup *setup, const struct gr_minibatches *m,
                             const struct gr_targets *targets, int64_t **seeds, int64_t *n_seeds, graft_error *error);
/** Deal n_seeds seeds of this rank, as in gr_batch_mode. */
int32_t gr_train_batch_deal_seeds(const struct gr_setup *setup, const struct gr_minibatches *m, int64_t n_seeds,
                                  struct gr_batch_deal *deal, graft_error *error);
/** A sampler of the graph and the seeds in `source`, to which options of the trainer are added. \return OK; ERR_OPTION;
 *  ERR_NOMEM: on this rank only. */
int32_t gr_train_batch_sampler(struct gr_setup *setup, struct gr_minibatches *m, struct gr_sampler_source source,
                               const struct gr_batch_deal *deal, graft_sampler **sampler, graft_error *error);
/** The memory of the sampler counts as the trainer's. */
void    gr_train_batch_charge_sampler(struct gr_setup *setup, struct gr_minibatches *m);

/** The block of layer l of the batch. \return OK; ERR_NOMEM. */
int32_t gr_train_batch_block(struct gr_setup *setup, struct gr_minibatches *m, int32_t l,
                             const struct gr_batch_layer *layer, graft_error *error);
void    gr_train_batch_blocks_fini(struct gr_setup *setup, struct gr_minibatches *m);

/** Charge the budget of the trainer with the present bytes of the data that last. */
static inline void gr_train_batches_charge(struct gr_setup *setup, struct gr_minibatches *m)
{
    for (int use = 0; use < GR_USES; use++) {
        const int64_t bytes = gr_budget_bytes(&m->lasting.budget, (enum gr_use)use);

        gr_budget_charge(&setup->budget, (enum gr_use)use, bytes - m->lasting.charged[use]);
        m->lasting.charged[use] = bytes;
    }
}

/** Over ranks: fetch the data of the halo. Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_train_batch_halo_init(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** Data of the trainer that change, over ranks: prepare() allocates space, and take() uses the new data and renews the
 *  halo, which is collective. `what`: GRAFT_UPDATE_... */
struct gr_batch_changes {
    void *values; /* of the joined graph, before take() the new ones, and then the old ones; or NULL */
    char *packed; /* space for the rows that this rank sends */
};
int32_t gr_train_batch_halo_prepare(struct gr_setup *setup, struct gr_minibatches *m, uint32_t what,
                                    const struct gr_new_edges *edges, struct gr_batch_changes *changes,
                                    graft_error *error);
int32_t gr_train_batch_halo_take(struct gr_setup *setup, struct gr_minibatches *m, uint32_t what,
                                 struct gr_batch_changes *changes, graft_error *error);

/** The extension of the sampler with hec.miss=fetch, or NULL. */
const struct gr_extension *gr_train_batch_fetch_extension(struct gr_setup *setup, struct gr_minibatches *m);
/** Once the vertices of a batch are numbered: the rows that are sent, and space for them. */
int32_t                    gr_train_batch_fetch_number(struct gr_minibatches *m, graft_error *error);
