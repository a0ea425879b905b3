/* Trainers one after the other over the same graph and ranks, with the losses, states and traffic of each. Tests of
 * stale rows compare such runs bitwise.
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

/* One trainer, described by what happens between create() and destroy(). */
struct run {
    const char *settings;   /* options separated by blanks, which follow the options of all runs */
    int         evaluates;  /* whether it evaluates between epochs, and predicts */
    int         sets_state; /* whether it sets its own state after half of the epochs */
    int         from;       /* number of the run whose state at half-time this trainer begins with; 0 for none */
    /* Number of epochs after which it is destroyed while messages are in flight; 0 for none. */
    int         gives_up;
    int         forgets; /* 1 + the rank whose caches are left out of the state; 0 for none */
};

/* A data set, and the runs over one graph of it. */
struct job {
    struct sample_dataset set;
    enum slices           way;
    int32_t               owner[N];
    int                   n_runs;
    struct run            run[RUNS_MOST];
    struct outcome        at[RUNS_MOST][HOSTS_MOST];
};

/** Options with which ranks share the graph, and with which they share columns. */
extern const char *train_runs_shared, *train_runs_columns;

/** Compare two states bitwise: same_state() without the caches, which differ between ranks, and same_caches() with
 *  them. */
int  same_state(const struct kept_state *a, const struct kept_state *b);
int  same_caches(const struct kept_state *a, const struct kept_state *b);
void train_runs_add(struct job *job, struct run run);

/** Run all trainers. The return value is NULL or an error in words. */
const char *train_runs_play(struct job *job, int32_t n_ranks, const char *partition, const char *cover);

/** Free a job allocated with calloc(), with its data set and states. */
void train_runs_free(struct job *job);

#endif
