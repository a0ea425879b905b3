/* A setup is a model combined with a data set, ready to run. A trainer has a setup, and so has a prediction with a
 * saved model.
 *
 * setup.c    from the host's arrays to a run      outputs.c  from its logits back
 * choices.c  what options decide                  update.c   arrays that change
 * input.h    the input of the model               memory.h   plan of the memory, arrays of the layers, evaluations
 * ranks.c    over ranks
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/options.h"
#include "derived/derived.h"
#include "model/kind.h"

/** The outputs of a prediction for all vertices of the host, or for a list of vertices. Arrays may be NULL. */
struct gr_outputs {
    const int64_t     *vertices; /* [n] global indices of vertices of this host, may repeat; NULL: all of them */
    int64_t            n;        /* length of the list */
    int32_t           *labels;
    const graft_dense *logits, *probabilities;
};

/** An existing model with which a setup predicts. A setup without it trains a model that options of the context
 *  define. */
struct gr_given_model {
    const struct gr_options *options; /* options of the model; all others are those of the context */
    const struct gr_model   *model;
    int                      best; /* 1: its best weights; 0: its last weights */
    const struct gr_outputs *outputs;
};

struct gr_setup {
    graft_context               *context;
    const struct gr_given_model *given;    /* NULL: the setup trains, so it has gradients and transposes */
    const struct gr_options     *options;  /* options of the context, or of `given` */
    int64_t                      followed; /* value of options.changes when options were last read */
    struct gr_budget             budget;
    struct gr_deferral           deferral; /* deferral of the limit, until gr_setup_check_memory() */
    struct gr_batch_arrays      *arrays;   /* NULL: arrays of layers are in the setup's budget */
    struct gr_dataset            data;
    struct gr_derived            derived;
    struct gr_model              model;
    struct gr_run                run;
    struct gr_strategy          *strategy; /* for evaluations, and for steps over all vertices */
    int                          by_rows;  /* with `given`: the pass may run (once decided: runs) in blocks of rows */
    int widens_rows; /* 1: rows of other types become floats when they are read. Stored, because options may change */
};

/** Combine a data set with a model: with `given`, which is borrowed until fini(), or with NULL for a model to train.
 *  After a failure, only gr_setup_fini() may be called. Collective. */
int32_t gr_setup_init(struct gr_setup *setup, graft_context *context, const graft_dataset *dataset,
                      const struct gr_given_model *given, graft_error *error);
void    gr_setup_fini(struct gr_setup *setup);
/** Use the number of threads that the context has for a call now. */
void    gr_setup_set_threads(struct gr_setup *setup);
/** If options have changed, use the new values of live options, and warn once of each option without effect. Over ranks
 *  only rank 0 warns. */
void    gr_setup_follow_options(struct gr_setup *setup);

/* -- passes ------------------------------------------------------------------------------------------------------- */

/** Run a forward pass without dropout over all vertices, or over the vertices of the list to predict. The logits are
 *  valid until gr_setup_arrays_fini(). Collective. \return OK; ERR_NOMEM; ERR_FORMAT (in features that create() did not
 *  read); ERR_IO. */
int32_t gr_setup_forward(struct gr_setup *setup, graft_error *error);
/** Check that outputs have the right shapes and suit the model, which has no classes if it learns float targets. */
int32_t gr_setup_check_outputs(const struct gr_setup *setup, const struct gr_outputs *outputs, graft_error *error);
/** Compute the outputs from the logits of the last forward pass. Collective. */
int32_t gr_setup_give(struct gr_setup *setup, const struct gr_outputs *outputs, graft_error *error);

/* -- arrays of the host that change ------------------------------------------------------------------------------- */

/** With check=full, check that no array of the data set has changed, except for arrays in `what` (GRAFT_UPDATE_...).
 *  Collective. */
int32_t gr_setup_check_loans(struct gr_setup *setup, uint32_t what, graft_error *error);

/** State outside of the setup that depends on arrays which update() replaces. prepare() makes the new state from the
 *  new targets and edges (NULL: unchanged) before anything is replaced, and is collective. The update may still fail
 *  after it. */
struct gr_update_dependent {
    int32_t (*prepare)(void *arg, const struct gr_targets *targets, const struct gr_new_edges *edges,
                       graft_error *error);
    void *arg;
};
/** Replace arrays of the data set as described for graft_train_api.update(). `dependent` may be NULL. Collective. */
int32_t gr_setup_update(struct gr_setup *setup, uint32_t what, const graft_dataset *dataset,
                        const struct gr_update_dependent *dependent, graft_error *error);

/* -- what options decide: choices.c ------------------------------------------------------------------------------- */

/** The set of option tables (a bit for each) that a setup reads from the context. */
uint32_t               gr_setup_groups(const struct gr_setup *setup);
/** Whether the setup trains by minibatch, and whether its batches read rows of earlier batches (option history). */
int                    gr_setup_has_batches(const struct gr_setup *setup);
int                    gr_setup_has_history(const struct gr_setup *setup);
/** Whether vertices have another order than the host's or, before it is known, certainly will have. */
int                    gr_setup_is_ordered(const struct gr_setup *setup);
/** Whether a step or a prediction may compute only some of the rows. */
int                    gr_setup_masks_rows(const struct gr_setup *setup);
/** The first layer whose graph may have fewer rows in a step. An input that is aggregated only once needs all rows. */
int32_t                gr_setup_first_masked(const struct gr_setup *setup);
/** What the model requires of the derived graph. Known once the strategy was chosen. */
struct gr_derived_wish gr_setup_wish(struct gr_setup *setup);
/** Whether dense features are copied. If not, they are read in place, and rows of other types are converted to floats
 *  then. Before the vertices are ordered, it is unknown whether training will require an order; then the result may
 *  change to 1. */
int                    gr_setup_copies_features(const struct gr_setup *setup);
/** Whether batches read rows of the host's dense features in place, and check these rows, because the array may be a
 *  mapped file that is larger than memory. The first pass over all vertices then checks all rows. */
int                    gr_setup_reads_rows(const struct gr_setup *setup);
/** Whether evaluations and predictions may run in blocks of rows. */
int                    gr_setup_can_go_by_rows(const struct gr_setup *setup);

/* -- over ranks: ranks.c ------------------------------------------------------------------------------------------ */

/** Notify the other ranks if `rc` is a failure of only this rank, while they wait for it. This counts as a collective
 *  call. */
int32_t gr_setup_ranks_fail(struct gr_setup *setup, int32_t rc, graft_error *error);

/** Check that all ranks have the same options. Collective. */
int32_t gr_setup_compare_options(const struct gr_setup *setup, graft_error *error);
/** Check that all ranks have data sets of the same kind. With loss=auto, determine the loss. Collective. */
int32_t gr_setup_compare_data(struct gr_setup *setup, graft_error *error);

/** Apply the limit of the budget, which was deferred: refuse it if it is too low on some rank, and say what would fit.
 *  Called before the model has memory, when the features and the graph of the steps exist; if ranks share columns, each
 *  has only its own edges then. Collective.
 *  \param[out] variant  The variant of the strategy, by option feature.graph, or because the first does not fit on some
 *  rank.
 *  \return OK; ERR_NOMEM, with the same sentence on all ranks. */
int32_t gr_setup_check_memory(struct gr_setup *setup, int *variant, graft_error *error);
