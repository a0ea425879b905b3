/* A trainer: a setup (run/) and the state of its training. These are the common declarations of this folder.
 *
 * trainer.c    create, evaluate, predict, update     explain.c      describes a trainer in a few lines
 * epoch.c      one epoch                             ranks_agree.c  compares the state of all ranks
 * state.c      the state as named arrays             report.c       memory and spans as tables
 * minibatch.h  training by minibatch
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "nn/parameter.h"
#include "train/minibatch.h"

struct gr_progress {
    int64_t              epoch, best_epoch;
    double               best_accuracy, best_loss;
    double               rate_factor;  /* factor of the learning rate, which on_nonfinite=restore halves */
    int64_t              n_batches;    /* batches of an epoch; 0: an epoch is one step on the whole graph */
    int64_t              batch;        /* completed batches of the current epoch */
    double               loss, weight; /* sums over these batches: weight times loss, and weight */
    struct gr_batches_id batches;      /* batches of the current epoch; after state_set() maybe not the trainer's */
};

struct graft_trainer {
    struct gr_handle       handle;
    struct gr_setup        setup;
    struct gr_progress     progress;
    struct gr_minibatches *batches;      /* NULL: a step is on the whole graph */
    int                    state_is_set; /* the host has set the state since the last epoch (ranks: comparison) */
    int    has_previous; /* the weights and moments before the last step are stored; their loss was finite */
    double seconds_step; /* time of the last step; 0: no step yet */
    int    is_measured;  /* the current weights were evaluated, and all losses are finite */
    char  *options;      /* options at create(): gr_options_copy() */
};

/** The number of items "progress.*" in a state: of a trainer without batches; with batches, as older builds wrote it,
 *  without "progress.batches"; with batches. */
enum { GR_PROGRESS_WHOLE = 5, GR_PROGRESS_UNNAMED = 8, GR_PROGRESS_BATCHES = 9 };

/** A model with the progress of its training. A weight has `copies` arrays, at most GR_STATE_COPIES; a running
 *  statistic has no moments. */
struct gr_state {
    const struct gr_model       *model;
    const struct gr_progress    *progress;
    int32_t                      copies;     /* 1: only the weights, without progress and tables */
    int32_t                      n_progress; /* number of items "progress.*": GR_PROGRESS_... */
    int32_t                      n_tables;
    const struct gr_state_table *tables;
};

/** Return the state of a trainer, including its tables (rows of earlier batches) unless they are empty. */
struct gr_state gr_trainer_state(const graft_trainer *trainer);
/** Return one item of a state, as graft_train_api.state_item(). */
int32_t gr_train_state_item(const struct gr_state *state, int32_t index, graft_state_item *item, graft_error *error);
/** Check that the values of an item are legal in the state of a model. \return OK; ERR_FORMAT. */
int32_t gr_train_state_check(const struct gr_model *model, const graft_state_item *item, graft_error *error);
/** Whether the item is a table of rows of earlier batches. */
int     gr_train_state_is_table(const graft_state_item *item);
/** Find the item of the trainer that has the name and shape of `like`, even if it is an empty table. \return OK;
 *  ERR_NOT_FOUND; ERR_FORMAT. */
int32_t gr_trainer_state_find(graft_trainer *trainer, const graft_state_item *like, graft_state_item *found,
                              graft_error *error);
/** Check that the values of an item are legal for item `ours` of the trainer. \return OK; ERR_FORMAT. */
int32_t gr_trainer_state_check(const graft_trainer *trainer, const graft_state_item *item, const graft_state_item *ours,
                               graft_error *error);
/** Copy a checked item to item `ours` of the trainer. */
void    gr_trainer_state_copy(graft_trainer *trainer, const graft_state_item *item, const graft_state_item *ours);
/** Whether there are best weights. Their epoch is larger than the completed epochs if it was undone (on_nonfinite). */
int     gr_train_progress_has_best(const struct gr_progress *progress);

/** Check that all ranks have completed the same number of epochs, have the same state after state_set(), and, before an
 *  epoch (`trains`), the same options. `rc`: the status of this rank so far, on which the ranks agree. */
int32_t               gr_trainer_compare_states(graft_trainer *trainer, int trains, int32_t rc, graft_error *error);
static inline int32_t gr_trainer_compare_state(graft_trainer *trainer, int trains, int32_t rc, graft_error *error)
{
    return trainer->setup.data.over != NULL ? gr_trainer_compare_states(trainer, trains, rc, error) : rc;
}

/** forward(): run a forward pass without dropout. measure(): compute the metrics of its outputs; *is_finite receives
 *  whether the losses of training and validation vertices are finite. */
int32_t gr_trainer_forward(graft_trainer *trainer, graft_error *error);
void    gr_trainer_forward_end(graft_trainer *trainer); /* frees the outputs; required even after a failure */
int32_t gr_trainer_measure(graft_trainer *trainer, graft_metrics *metrics, int *is_finite, graft_error *error);

/* -- graft.train/1 ------------------------------------------------------------------------------------------------ */

/** The functions of the table; see graft_train.h. `found`: the status of the host's other arguments on this rank, on
 *  which the ranks agree. */
int32_t gr_trainer_create(graft_context *context, int32_t found, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error);
void    gr_trainer_destroy(graft_trainer *trainer);
/** `rc` in these functions: the status of the host's structs on this rank, on which the ranks agree. */
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
