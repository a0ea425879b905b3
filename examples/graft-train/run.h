/* A run: what has been opened, what it came to.
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
    graft_trainer          *trainer;
    struct progress         progress;
    graft_epoch            *history; /* [n_history] epochs of this run, not those before a resume */
    int64_t                 n_history, capacity;
    int64_t                 epochs; /* epochs behind, those before a resume included */
    graft_metrics           best;   /* of the weights of the best validation; NaN if nothing can be measured */
    char                    explained[32768]; /* what the trainer says it is */
    double                  began;            /* seconds of the steady clock */
    double                  seconds;
    int                     signal; /* that ended the training early, or 0 */
    struct profile          profile;
    int                     saved, predicted, reported, profiled; /* which outputs have been written */
};

/** Open the data set, make the trainer, and put in the checkpoint to resume. `run` holds arguments, library, ranks. */
int32_t run_init(struct run *run, graft_error *error);

/** Train, until done or interrupted, and measure. */
int32_t run_train(struct run *run, graft_error *error);

/** Edges of the graph, on all ranks. */
int64_t run_edges(const struct run *run);

/** Seconds of all epochs together. */
double run_seconds(const struct run *run);

/** Free everything but the library. */
void run_fini(struct run *run);

#endif
