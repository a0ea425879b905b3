/* The objects and the results of a run.
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
    const graft_dataset    *dataset; /* data set, which data or ranks owns */
    graft_trainer          *trainer; /* trainer, or NULL if model predicts */
    graft_model            *model;   /* saved model that predicts, or NULL */
    struct progress         progress;
    graft_epoch            *history; /* [n_history] epochs of this run, without those before a resume */
    int64_t                 n_history, capacity;
    int64_t                 epochs; /* completed epochs, including those before a resume */
    int64_t batch, n_batches; /* with batch_size: completed batches of the next epoch, and its number of batches */
    graft_metrics  best;      /* scores of the weights with the best validation; NaN if there are none */
    char           explained[32768]; /* description of the trainer by explain() */
    double         began;            /* time of the beginning on the monotonic clock */
    double         seconds;
    int            signal;        /* the signal that interrupted training, or 0 */
    int            stopped_early; /* option patience ended training before the last epoch */
    struct profile profile;
    int            saved, predicted, reported, profiled; /* 1 for outputs that have been written */
};

/** Open the data set. Then create the trainer and load the checkpoint to resume, or load the model that predicts. `run`
 *  must have arguments, library and ranks. */
int32_t run_init(struct run *run, graft_error *error);

/** Train until the end or an interrupt, and evaluate. After an interrupt the state is saved first, and `run->signal` is
 *  set. \return Also ERR_CANCELLED, without a message, after an interrupt before there was a state to save. */
int32_t run_train(struct run *run, graft_error *error);

/** Stop cancelling calls on signals, and clear pending requests for cancellation. Set `run->signal` to the signal that
 *  a rank has received, or to 0. All ranks call this function. */
int32_t run_settle(struct run *run, graft_error *error);

/** Returns whether the data set has float targets instead of classes. */
int run_is_regression(const struct run *run);

/** Returns the number of edges of the graph over all ranks. */
int64_t run_edges(const struct run *run);

/** Returns the sum of the seconds of all epochs. */
double run_seconds(const struct run *run);

/** Free everything except the library. `code` is the exit code if the end of MPI takes too long. */
void run_fini(struct run *run, int code);

#endif
