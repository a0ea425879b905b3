/* Trains several times over the same graph and ranks, and keeps the losses, states and traffic of each trainer. Tests
 * of stale rows compare such runs bitwise.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TRAIN_RUNS_H
#define TEST_TRAIN_RUNS_H

#include "harness/hosts.h"
#include "harness/state_items.h"
#include "oracle/sample.h"

enum { EPOCHS = 8, HALF = 4, N = 90, FEATURES = 7, CLASSES = 3, RUNS_MOST = 12 };

/* The results of a trainer on one rank. */
struct outcome {
    double            loss[EPOCHS], drift[EPOCHS];
    int               waited[EPOCHS];
    graft_traffic     traffic; /* traffic over all ranks */
    struct kept_state first, half, last;
};

/* One trainer, described by what happens between its create() and destroy(). */
struct run {
    const char *settings;   /* options separated by blanks, which are set after the options of all runs */
    int         evaluates;  /* whether it evaluates between epochs, and makes predictions at the end */
    int         sets_state; /* whether it sets its own state after half of the epochs */
    int         from;       /* number of the run whose state after half of the epochs is the initial state of this
                             * trainer; 0 for none */
    /* Number of epochs after which it is destroyed while messages are in flight; 0 for none. */
    int         gives_up;
    int         forgets; /* which rank's caches are left out of the state: the rank plus 1, or 0 for none */
};

/* A data set, and the runs over the graph of this data set. */
struct job {
    struct sample_dataset set;
    enum slices           way;
    int32_t               owner[N];
    int                   n_runs;
    struct run            run[RUNS_MOST];
    struct outcome        at[RUNS_MOST][HOSTS_MOST];
};

/** The options with which ranks divide the graph, and those with which they divide the columns. */
extern const char *train_runs_shared, *train_runs_columns;

/** Compare two states bitwise. same_state() leaves out the caches, which differ between ranks; same_caches() compares
 * only them. */
int  same_state(const struct kept_state *a, const struct kept_state *b);
int  same_caches(const struct kept_state *a, const struct kept_state *b);
void train_runs_add(struct job *job, struct run run);

/** Run all trainers. The return value is NULL or an error in words. */
const char *train_runs_play(struct job *job, int32_t n_ranks, const char *partition, const char *cover);

/** Free a job allocated with calloc(), with its data set and states. */
void train_runs_free(struct job *job);

#endif
