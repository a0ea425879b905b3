/* A run: its objects and its results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_H
#define RUN_H

#include "arguments.h"
#include "library.h"
#include "profile.h"
#include "progress.h"
#include "ranks.h"

struct run {
    const struct arguments *arguments;
    struct library          library;
    struct ranks            ranks;
    graft_data             *data;
    const graft_dataset    *dataset; /* owned by data, or by ranks */
    graft_trainer          *trainer; /* NULL with model */
    graft_model            *model;   /* that predicts in place of a trainer, or NULL */
    struct progress         progress;
    graft_epoch            *history; /* [n_history] epochs of this run, not those before a resume */
    int64_t                 n_history, capacity;
    int64_t                 epochs;           /* completed epochs, including those before a resume */
    int64_t                 batch, n_batches; /* with batch_size: completed batches of the next epoch, and all of it */
    graft_metrics           best; /* of the weights of the best validation; NaN if there is nothing to measure */
    char                    explained[32768]; /* the trainer's description */
    double                  began;            /* seconds of the steady clock */
    double                  seconds;
    int                     signal;        /* the signal that interrupted training, or 0 */
    int                     stopped_early; /* option patience ended training before the last epoch */
    struct profile          profile;
    int                     saved, predicted, reported, profiled; /* 1 for outputs that have been written */
};

/** Open the data set, create the trainer, and load the checkpoint to resume; or load the model that predicts. `run` has
 *  arguments, library and ranks. */
int32_t run_init(struct run *run, graft_error *error);

/** Train until done or interrupted, and evaluate. An interrupted run is saved first, and `run->signal` is set.
 * \return Also ERR_CANCELLED, without a message: interrupted before there was anything to save. */
int32_t run_train(struct run *run, graft_error *error);

/** All ranks: let signals cancel no call from now on, end requests that no call has heard, and set `run->signal` to the
 *  signal that one of the ranks has received, or 0. */
int32_t run_settle(struct run *run, graft_error *error);

/** Whether the data set has float targets, and no classes. */
int run_is_regression(const struct run *run);

/** Edges of the graph, on all ranks. */
int64_t run_edges(const struct run *run);

/** Seconds of all epochs together. */
double run_seconds(const struct run *run);

/** Free everything except the library. The process ends with `code`. */
void run_fini(struct run *run, int code);

#endif
