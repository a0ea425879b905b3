/* Training by minibatch: common declarations.
 *
 * minibatches.c  the sampler and other data that all batches share, and their updates
 * minibatch.c    a batch of training vertices, with features and targets     batch_block.c    blocks of a batch
 * batch_modes.c  what differs with option history, and over ranks            batch_halo.c     data of halo vertices
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/links.h"
#include "parallel/batches.h"
#include "run/input.h"
#include "run/memory.h"
#include "run/setup.h"
#include "sample/sample.h"

/** The division of the seeds of all ranks among batches. Seeds are the vertices for which a batch computes outputs. */
struct gr_batch_deal {
    int64_t n_seeds, most_seeds, n_all; /* seeds of this rank, the most on any rank, and the sum over all ranks */
    int64_t n_batches;                  /* batches of an epoch over ranks; 0: one process, option batch_size decides */
    double *weight;                     /* [n_batches] weight of each batch in the loss, sum over ranks; or NULL */
};

/** Numbers of edges of batches over ranks. */
struct gr_batch_edges {
    int64_t n;    /* on this rank, since the current epoch began */
    double  all;  /* on all ranks, in the last completed epoch */
    int64_t most; /* the most on any rank, in the last completed epoch */
};

/** Data of the vertices of the halo, fetched from their owners. */
struct gr_batch_halo {
    int64_t *name;  /* [halo] global index of each vertex */
    char    *x;     /* [halo x width] features, of the type of the input of the trainer */
    float   *right; /* [halo] factors of symmetric normalization, or NULL */
};

/** Data that the batches of a trainer over ranks share. */
struct gr_batch_ranks {
    struct gr_csr   joined; /* for sums: rows of this rank; columns are owned vertices, then the halo */
    struct gr_links links;  /* send lists of the halo */
    int64_t        *degree; /* [halo] numbers of in-neighbours, with sample.weights=degree; else NULL */
    int32_t        *shift;  /* [entries] offset of entry i in the order of global columns; or NULL */
};

/** Identifies the batches of a trainer; item "progress.batches" of the state. It is equal if all ranks deal the same
 *  training vertices to the same batches in the same epochs. The draws of neighbours may differ. */
struct gr_batches_id {
    int64_t n_batches; /* batches of an epoch; 0: an epoch is one step on the whole graph */
    int64_t batch_size, n_ranks;
    int64_t checksum; /* sum over ranks of checksums of options, and of seeds in the order of epoch 0 */
};

/** The parts of the run that a batch replaces during a step. */
struct gr_batch_whole {
    struct gr_input     input;
    struct gr_targets   targets;
    struct gr_strategy *strategy;
};

/** The memory of data that all batches share. */
struct gr_batch_memory {
    struct gr_budget budget;
    int64_t          charged[GR_USES]; /* bytes of `budget` and the sampler in the trainer's budget */
};

/** The current batch. */
struct gr_batch_now {
    struct gr_budget        budget;
    const int64_t          *vertex;              /* [n_vertices] index of each vertex on this rank */
    const int64_t          *names;               /* [n_vertices] global index of each vertex */
    int64_t                 n_vertices, n_owned; /* n_owned: the first vertices, owned by this rank */
    struct gr_block        *block;               /* [layers] block of each layer */
    const struct gr_block **block_of;            /* [layers] pointers to them */
};

struct gr_batch_mode;

/** The batches of a trainer. */
struct gr_minibatches {
    const struct gr_batch_mode *mode;
    graft_sampler              *sampler;
    struct gr_batches_id        id;
    struct gr_batch_deal        deal;
    struct gr_batch_edges       edges;
    struct gr_batch_whole       whole;    /* fields of the run that a batch replaces during a step */
    const graft_csr            *graph;    /* graph from which batches are drawn */
    graft_csr                   no_edges; /* `graph` of models that use no edges */
    struct gr_batch_memory      lasting;
    struct gr_batch_strategy   *strategy; /* strategy of steps of batches; NULL: the trainer's strategy */

    int64_t                idle;  /* number of batches without training vertices since the last step */
    struct gr_batch_ranks *ranks; /* NULL: one process */
    struct gr_batch_halo   halo;

    struct gr_batch_now now;
};

/** The differences between batches in one process, with option history, and over ranks. Functions that a mode does not
 *  need are NULL. Unless stated otherwise, \return OK; ERR_NOMEM on this rank only. */
struct gr_batch_mode {
    const char *seeds;   /* text: what batches consist of */
    const char *refills; /* text: what happens if rows of earlier batches cannot be used */
    int         renews;  /* all vertices are seeds; a batch without training vertices makes no step */

    /* Check that batches support the model and the options, also those that may change between epochs.
     * \return OK; ERR_UNSUPPORTED; ERR_OPTION. */
    int32_t (*check)(const struct gr_setup *setup, graft_error *error);
    /* Create the data that all batches share, and complete the arguments of their strategy. NULL: there is no strategy.
     * Always call fini(). Over ranks: collective, and the same errors on all. */
    int32_t (*init)(struct gr_setup *setup, struct gr_minibatches *m, struct gr_batch_wish *wish, graft_error *error);
    void (*fini)(struct gr_setup *setup, struct gr_minibatches *m);
    /* Deal the n_seeds seeds of this rank to batches. The caller frees deal->weight. Over ranks: collective, and the
     * same errors on all. \return OK; ERR_OPTION (batch_size); ERR_PEER. */
    int32_t (*deal)(const struct gr_setup *setup, int64_t n_seeds, struct gr_batch_deal *deal, graft_error *error);
    /* Complete the arguments of the sampler. */
    void (*source)(struct gr_setup *setup, struct gr_minibatches *m, struct gr_sampler_source *source, int64_t *fanout);
    /* Begin or end an epoch. Collective. \return OK; ERR_PEER. */
    int32_t (*begin_epoch)(const struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
    int32_t (*end_epoch)(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
};

const struct gr_batch_mode *gr_train_batch_mode(const struct gr_setup *setup);

struct gr_progress;

/** Create trainer->batches if option batch_size is set; earlier ones are replaced. Collective; failures are the same on
 *  all ranks. */
int32_t gr_train_minibatches_init(graft_trainer *trainer, graft_error *error);
void    gr_train_minibatches_fini(graft_trainer *trainer);
/** Call gr_setup_update() for a trainer with batches, and let the batches use the new data. Collective. */
int32_t gr_train_minibatches_update(graft_trainer *trainer, uint32_t what, const graft_dataset *data,
                                    graft_error *error);
/** restart(): begin the current epoch again, with the batches of the trainer. settle(): call restart() unless the state
 *  is in the middle of an epoch of these batches; warn if it is in the middle of an epoch of others. */
void    gr_train_minibatches_restart(graft_trainer *trainer);
void    gr_train_minibatches_settle(graft_trainer *trainer);
/** Discard rows of earlier batches and of other ranks, which were computed with other weights. */
void    gr_train_minibatches_forget(graft_trainer *trainer);
/** Before an epoch: check that batches support changed options. Collective. \return OK; ERR_OPTION: on all ranks;
 *  ERR_IO (eval.blocks=FOLDER): in one process; ERR_PEER. */
int32_t gr_train_minibatches_prepare(graft_trainer *trainer, graft_error *error);
/** Begin or end an epoch of batches. Collective. \return OK; ERR_PEER. */
int32_t gr_train_minibatches_begin_epoch(graft_trainer *trainer, graft_error *error);
int32_t gr_train_minibatches_end_epoch(graft_trainer *trainer, graft_error *error);
/** Return the number of the current batch, counted from 0 since the beginning of the training. */
int64_t gr_train_minibatch_number(const struct gr_progress *progress);
/** Sample batch progress.batch, and replace the blocks, features and targets of the run by its own until
 *  gr_train_minibatch_end(), which is always required. */
int32_t gr_train_minibatch_begin(graft_trainer *trainer, graft_error *error);
void    gr_train_minibatch_end(graft_trainer *trainer);

/** Whether all tables (rows of earlier batches) were set by the host; without `is_set`, whether they are filled. */
int  gr_train_batch_tables_hold(const struct gr_minibatches *m, int is_set);
/** take(): use the tables if the host has set all of them, otherwise empty them; `now` is the number of the next batch.
 *  unset(): mark all tables as not set by the host. */
void gr_train_batch_tables_take(struct gr_minibatches *m, int64_t now);
void gr_train_batch_tables_unset(struct gr_minibatches *m);

/** Fill the tables of option history by a forward pass over all vertices, without dropout. \return OK; ERR_NOMEM;
 *  ERR_CANCELLED. */
int32_t gr_train_history_fill(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** Charge the memory of the sampler, and of the data that all batches share, to the budget of the trainer. */
void    gr_train_batches_charge(struct gr_setup *setup, struct gr_minibatches *m);

/** Create the block of layer l of the batch. \return OK; ERR_NOMEM. */
int32_t gr_train_batch_block(struct gr_setup *setup, struct gr_minibatches *m, int32_t l,
                             const struct gr_batch_layer *layer, graft_error *error);
void    gr_train_batch_blocks_fini(struct gr_setup *setup, struct gr_minibatches *m);

/** Fetch the data of the halo, and create the other data that batches over ranks share. Collective. \return OK;
 *  ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_train_batch_halo_init(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** An update of a trainer over ranks: prepare() allocates memory; take(), which is collective, puts the new data into
 *  use, and fetches data of the halo again. `what`: GRAFT_UPDATE_... */
struct gr_batch_changes {
    void *values; /* values of the joined graph: new ones before take(), old ones after it; or NULL */
    char *packed; /* scratch memory for the rows that this rank sends */
};
int32_t gr_train_batch_halo_prepare(struct gr_setup *setup, struct gr_minibatches *m, uint32_t what,
                                    const struct gr_new_edges *edges, struct gr_batch_changes *changes,
                                    graft_error *error);
int32_t gr_train_batch_halo_take(struct gr_setup *setup, struct gr_minibatches *m, uint32_t what,
                                 struct gr_batch_changes *changes, graft_error *error);
