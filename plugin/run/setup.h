/* A setup: a model combined with a data set, ready to run. A trainer has a setup, and so has a prediction with a saved
 * model.
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

/** The outputs of a prediction, for all vertices of the host or for a list. Arrays may be NULL. */
struct gr_outputs {
    const int64_t *vertices; /* [n] of the whole graph, which the host has here; they may repeat. NULL: all of them */
    int64_t        n;        /* only used with a list */
    int32_t       *labels;
    const graft_dense *logits, *probabilities;
};

/** An existing model, for predictions. Without it, the options of the context define a model to train. */
struct gr_given_model {
    const struct gr_options *options; /* of the context, except for the options of the model */
    const struct gr_model   *model;
    int                      best; /* its best weights, not the last */
    const struct gr_outputs *outputs;
};

struct gr_setup {
    graft_context               *context;
    const struct gr_given_model *given;    /* NULL: the setup trains, and has gradients and transposes */
    const struct gr_options     *options;  /* of the context, or given */
    int64_t                      followed; /* options.changes when options were last used */
    struct gr_budget             budget;
    struct gr_deferral           deferral; /* of the budget, until gr_setup_check_memory() */
    struct gr_batch_arrays      *arrays;   /* NULL: the budget has the arrays of the layers */
    struct gr_dataset            data;
    struct gr_derived            derived;
    struct gr_model              model;
    struct gr_run                run;
    struct gr_strategy          *strategy; /* of evaluations, and of steps of all vertices */
    int                          by_rows;  /* with `given`: the pass may run (once decided: runs) in blocks of rows */
    int widens_rows; /* rows of another type become floats when they are read; options that decide it may change
                      * later */
};

/** Combine the data set and a model: the given model, borrowed until fini(), or with NULL a model to train. After a
 *  failure, only call gr_setup_fini(). Collective. */
int32_t gr_setup_init(struct gr_setup *setup, graft_context *context, const graft_dataset *dataset,
                      const struct gr_given_model *given, graft_error *error);
void    gr_setup_fini(struct gr_setup *setup);
/** Use the number of threads that the host grants now. */
void    gr_setup_set_threads(struct gr_setup *setup);
/** When options have changed: use the new values of live ones, and warn once of each option without effect; over ranks
 *  only rank 0 warns. */
void    gr_setup_follow_options(struct gr_setup *setup);

/* -- passes ------------------------------------------------------------------------------------------------------- */

/** A forward pass without dropout over all vertices, or the vertices of the list to predict. Its logits are valid until
 *  gr_setup_arrays_fini(). Collective. \return OK; ERR_NOMEM; ERR_FORMAT (features that create() did not read);
 *  ERR_IO. */
int32_t gr_setup_forward(struct gr_setup *setup, graft_error *error);
/** Check that outputs have the right shapes, and suit the model: no classes if it learns float targets. */
int32_t gr_setup_check_outputs(const struct gr_setup *setup, const struct gr_outputs *outputs, graft_error *error);
/** Compute the outputs from the logits of the last forward pass. Collective. */
int32_t gr_setup_give(struct gr_setup *setup, const struct gr_outputs *outputs, graft_error *error);

/* -- arrays of the host that change ------------------------------------------------------------------------------- */

/** With check=full, check that no array of the data set has changed, except for arrays in `what` (GRAFT_UPDATE_...).
 *  Collective. */
int32_t gr_setup_check_loans(struct gr_setup *setup, uint32_t what, graft_error *error);

/** State outside of the setup that depends on arrays which update() replaces. prepare() builds the new state from the
 *  new targets and edges (NULL: unchanged) before anything is replaced. The update may still fail. Collective. */
struct gr_update_dependent {
    int32_t (*prepare)(void *arg, const struct gr_targets *targets, const struct gr_new_edges *edges,
                       graft_error *error);
    void *arg;
};
/** Replace arrays of the data set, as graft_train_api.update(); `dependent` may be NULL. Collective. */
int32_t gr_setup_update(struct gr_setup *setup, uint32_t what, const graft_dataset *dataset,
                        const struct gr_update_dependent *dependent, graft_error *error);

/* -- what options decide: choices.c ------------------------------------------------------------------------------- */

/** The groups of options (a bit for each) that a setup reads from the context. */
uint32_t               gr_setup_groups(const struct gr_setup *setup);
/** Whether the setup trains by minibatch; and whether its batches read rows of earlier batches (option history). */
int                    gr_setup_has_batches(const struct gr_setup *setup);
int                    gr_setup_has_history(const struct gr_setup *setup);
/** Whether the order of the vertices differs, or is certain to differ, from the host's order. */
int                    gr_setup_is_ordered(const struct gr_setup *setup);
/** Whether a step, or a prediction, may compute fewer than all rows. */
int                    gr_setup_masks_rows(const struct gr_setup *setup);
/** The first layer whose graph may have fewer rows in a step: an input that is aggregated only once is aggregated for
 *  all rows. */
int32_t                gr_setup_first_masked(const struct gr_setup *setup);
/** What the model asks of the derived graph, once the strategy is chosen. */
struct gr_derived_wish gr_setup_wish(struct gr_setup *setup);
/** Whether dense features are read from a copy; else in place, and rows of another type are converted to floats when
 *  they are read. Known before the order is made, except for an order by vertices that training needs. */
int                    gr_setup_copies_features(const struct gr_setup *setup);
/** Whether batches read rows of the host's dense features in place, and check the rows that they read: the array may be
 *  a mapped file that is larger than memory. The first pass over all vertices checks all rows. */
int                    gr_setup_reads_rows(const struct gr_setup *setup);
/** Whether evaluations and predictions may go in blocks of rows. */
int                    gr_setup_can_go_by_rows(const struct gr_setup *setup);

/* -- over ranks: ranks.c ------------------------------------------------------------------------------------------ */

/** Notify the other ranks if `rc` is a failure of only this rank while they wait for it. It counts as a collective
 *  call. */
int32_t gr_setup_ranks_fail(struct gr_setup *setup, int32_t rc, graft_error *error);

/** Check that all ranks have the same options. Collective. */
int32_t gr_setup_compare_options(const struct gr_setup *setup, graft_error *error);
/** Check that all ranks have a data set of one kind; with loss=auto, choose the loss. Collective. */
int32_t gr_setup_compare_data(struct gr_setup *setup, graft_error *error);

/** Enforce the limit, which was deferred: refuse a limit that is too low for some rank, with a sentence on what would
 *  fit, before the model has any memory. The features and the graph of the steps exist; if ranks share columns, each
 *  has only its own edges. Collective.
 *  \param[out] variant  Of the strategy, by option feature.graph, or because the first does not fit on some rank.
 *  \return OK; ERR_NOMEM, with the same sentence on all ranks. */
int32_t gr_setup_check_memory(struct gr_setup *setup, int *variant, graft_error *error);
