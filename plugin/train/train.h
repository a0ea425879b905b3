/* A trainer: a setup (run/) and the state of its training. These are the common declarations of this folder.
 *
 * trainer.c    create, evaluate, predict, update     explain.c      a trainer in a few lines
 * epoch.c      one epoch                             ranks_agree.c  over ranks: the same state on all
 * state.c      the state as named arrays
 * minibatch.h  training by minibatch
 * report.c     memory and spans as tables
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "nn/parameter.h"
#include "train/minibatch.h"

struct gr_progress {
    int64_t              epoch, best_epoch;
    double               best_accuracy, best_loss;
    double               rate_factor;  /* of the learning rate: halved by on_nonfinite=restore */
    int64_t              n_batches;    /* of an epoch; 0: an epoch is one step on the whole graph */
    int64_t              batch;        /* completed batches of the present epoch */
    double               loss, weight; /* sums over these batches */
    struct gr_batches_id batches;      /* of the present epoch; after state_set() they may not be the trainer's */
};

struct graft_trainer {
    struct gr_handle       handle;
    struct gr_setup        setup;
    struct gr_progress     progress;
    struct gr_minibatches *batches;      /* NULL: a step is on the whole graph */
    int                    state_is_set; /* by state_set() or apply() since the last epoch; over ranks, since the last
                                          * comparison of all ranks */
    int    has_previous; /* the weights and moments before the last step, whose loss was finite, are kept */
    double seconds_step; /* of the last step; 0: there was none */
    int    is_measured;  /* the losses of the present weights are finite */
    char  *options;      /* options at create(): gr_options_copy() */
};

/** The number of items of progress: of a trainer without batches; with batches, but without "progress.batches", as
 *  older builds wrote it; with all. */
enum { GR_PROGRESS_WHOLE = 5, GR_PROGRESS_UNNAMED = 8, GR_PROGRESS_BATCHES = 9 };

/** A model with the progress of its training; a weight has the first `copies` of GR_STATE_COPIES, a running statistic
 *  no moments. */
struct gr_state {
    const struct gr_model       *model;
    const struct gr_progress    *progress;
    int32_t                      copies;     /* 1: only the weights, without progress and tables */
    int32_t                      n_progress; /* GR_PROGRESS_... */
    int32_t                      n_tables;
    const struct gr_state_table *tables;
};

/** The state of a trainer, with its tables unless they are empty. */
struct gr_state gr_trainer_state(const graft_trainer *trainer);
/** As graft_train_api.state_item(). */
int32_t gr_train_state_item(const struct gr_state *state, int32_t index, graft_state_item *item, graft_error *error);
/** Check values for an item of the model's state. \return OK; ERR_FORMAT. */
int32_t gr_train_state_check(const struct gr_model *model, const graft_state_item *item, graft_error *error);
/** Whether the item is a table. */
int     gr_train_state_is_table(const graft_state_item *item);
/** The item of the trainer with this name and shape; empty tables are found too. \return OK; ERR_NOT_FOUND;
 *  ERR_FORMAT. */
int32_t gr_trainer_state_find(graft_trainer *trainer, const graft_state_item *like, graft_state_item *found,
                              graft_error *error);
/** Check that the values of an item are legal for item `ours` of the trainer. \return OK; ERR_FORMAT. */
int32_t gr_trainer_state_check(const graft_trainer *trainer, const graft_state_item *item, const graft_state_item *ours,
                               graft_error *error);
/** Copy a checked item to item `ours` of the trainer. */
void    gr_trainer_state_copy(graft_trainer *trainer, const graft_state_item *item, const graft_state_item *ours);
/** Whether there are best weights. Their epoch is ahead of the completed ones if it was undone (on_nonfinite). */
int     gr_train_progress_has_best(const struct gr_progress *progress);

/** Check that all ranks have completed the same number of epochs, have the same state after state_set(), and, before an
 *  epoch (`trains`), the same options. `rc`: the earlier status of this rank, on which the ranks agree. */
int32_t               gr_trainer_compare_states(graft_trainer *trainer, int trains, int32_t rc, graft_error *error);
static inline int32_t gr_trainer_compare_state(graft_trainer *trainer, int trains, int32_t rc, graft_error *error)
{
    return trainer->setup.data.over != NULL ? gr_trainer_compare_states(trainer, trains, rc, error) : rc;
}

/** A forward pass without dropout; and the metrics of its outputs. *is_finite: whether the losses of training and
 *  validation vertices are finite. */
int32_t gr_trainer_forward(graft_trainer *trainer, graft_error *error);
void    gr_trainer_forward_end(graft_trainer *trainer); /* ends the use of its outputs; also after a failure */
int32_t gr_trainer_measure(graft_trainer *trainer, graft_metrics *metrics, int *is_finite, graft_error *error);

/* -- graft.train/1 ------------------------------------------------------------------------------------------------ */

/** `found`: the status of the other arguments of the host on this rank, on which the ranks agree. */
int32_t gr_trainer_create(graft_context *context, int32_t found, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error);
void    gr_trainer_destroy(graft_trainer *trainer);
/** `rc`: the status of the structs of the host on this rank, on which the ranks agree. */
int32_t gr_trainer_epoch(graft_trainer *trainer, int32_t rc, graft_epoch *epoch, graft_error *error);
int32_t gr_trainer_update(graft_trainer *trainer, int32_t rc, uint32_t what, const graft_dataset *dataset,
                          graft_error *error);
int32_t gr_trainer_evaluate(graft_trainer *trainer, int32_t rc, int32_t weights, graft_metrics *metrics,
                            graft_error *error);
int32_t gr_trainer_predict(graft_trainer *trainer, int32_t rc, int32_t weights, int32_t *labels,
                           const graft_dense *logits, graft_error *error);
int32_t gr_trainer_state_item(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error);
int32_t gr_trainer_state_set(graft_trainer *trainer, const graft_state_item *item, graft_error *error);
int32_t gr_trainer_memory_item(const graft_trainer *trainer, int32_t index, graft_memory_item *item,
                               graft_error *error);
int32_t gr_trainer_span(const graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error);
int32_t gr_trainer_traffic(const graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error);
int32_t gr_trainer_traffic_item(const graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                                graft_error *error);
int32_t gr_trainer_traffic_pair(const graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                graft_error *error);
int32_t gr_trainer_cache_item(const graft_trainer *trainer, int32_t rank, int32_t index, graft_cache_item *item,
                              graft_error *error);
int32_t gr_trainer_explain(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error);
