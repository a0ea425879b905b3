/* Training by minibatch: common declarations.
 *
 * minibatches.c  the sampler, and what lasts between batches; data that change
 * minibatch.c    a batch of training vertices, with features and targets     batch_block.c    its blocks
 * batch_modes.c  what differs with option history, and over ranks            batch_halo.c     data of the halo
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/links.h"
#include "parallel/batches.h"
#include "run/input.h"
#include "run/memory.h"
#include "run/setup.h"
#include "sample/sample.h"

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
    int64_t          charged[GR_USES]; /* of it, and of the sampler, in the budget of the trainer */
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
    struct gr_batch_strategy   *strategy; /* of their steps; NULL: that of the trainer */

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
    /* Make the data that all batches share, and complete the arguments of their strategy; NULL: there is none. Always
     * call fini(). Over ranks: collective, and the same errors on all. */
    int32_t (*init)(struct gr_setup *setup, struct gr_minibatches *m, struct gr_batch_wish *wish, graft_error *error);
    void (*fini)(struct gr_setup *setup, struct gr_minibatches *m);
    /* Deal n_seeds seeds of this rank. The caller frees deal->weight. \return OK; ERR_OPTION (batch_size); over ranks
     * collective: ERR_PEER, and ERR_OPTION on all. */
    int32_t (*deal)(const struct gr_setup *setup, int64_t n_seeds, struct gr_batch_deal *deal, graft_error *error);
    /* Complete the arguments of the sampler. */
    void (*source)(struct gr_setup *setup, struct gr_minibatches *m, struct gr_sampler_source *source, int64_t *fanout);
    /* An epoch begins or ends. Collective. \return OK; ERR_PEER. */
    int32_t (*begin_epoch)(const struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
    int32_t (*end_epoch)(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
};

const struct gr_batch_mode *gr_train_batch_mode(const struct gr_setup *setup);

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

/** Whether all tables were set by the host (`is_set`), or are filled. */
int  gr_train_batch_tables_hold(const struct gr_minibatches *m, int is_set);
/** Use the tables if all were set, otherwise empty them. `now` is the number of the next batch. unset(): mark all
 *  tables as not set by the host. */
void gr_train_batch_tables_take(struct gr_minibatches *m, int64_t now);
void gr_train_batch_tables_unset(struct gr_minibatches *m);

/** With option history: fill empty tables by a forward pass over all vertices, without dropout. \return OK; ERR_NOMEM;
 *  ERR_CANCELLED. */
int32_t gr_train_history_fill(struct gr_setup *setup, struct gr_minibatches *m, graft_error *error);
/** The memory of the sampler, and of the data that last, counts as the trainer's. */
void    gr_train_batches_charge(struct gr_setup *setup, struct gr_minibatches *m);

/** The block of layer l of the batch. \return OK; ERR_NOMEM. */
int32_t gr_train_batch_block(struct gr_setup *setup, struct gr_minibatches *m, int32_t l,
                             const struct gr_batch_layer *layer, graft_error *error);
void    gr_train_batch_blocks_fini(struct gr_setup *setup, struct gr_minibatches *m);

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
