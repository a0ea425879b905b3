/* Trainers one after the other over the same graph and ranks, with their losses, states and traffic. Shared by tests of
 * stale rows.
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
    graft_traffic     traffic; /* of all ranks */
    struct kept_state first, half, last;
};

/* One trainer, from create() to destroy(). */
struct run {
    const char *settings;   /* separated by blanks, after the settings of all runs */
    int         evaluates;  /* between epochs, and predicts */
    int         sets_state; /* sets its own state half-way */
    int         from;       /* begins with the state of this run half-way; 0: no run */
    int         gives_up;   /* destroyed after this number of epochs, with messages in flight; 0: never */
    int         forgets;    /* 1 + the rank that leaves out caches of the state; 0: none */
};

/* A data set, and trainers one after the other, over the same graph. */
struct job {
    struct sample_dataset set;
    enum slices           way;
    int32_t               owner[N];
    int                   n_runs;
    struct run            run[RUNS_MOST];
    struct outcome        at[RUNS_MOST][HOSTS_MOST];
};

/** Options by which ranks share columns. */
extern const char *train_runs_shared, *train_runs_columns;

/** same_state(): without caches, which differ between ranks; same_caches(): with caches. */
int  same_state(const struct kept_state *a, const struct kept_state *b);
int  same_caches(const struct kept_state *a, const struct kept_state *b);
void train_runs_add(struct job *job, struct run run);

/** Run all trainers. Returns an error in words, or NULL. */
const char *train_runs_play(struct job *job, int32_t n_ranks, const char *partition, const char *cover);

/** Free a job from calloc(), with its data set and states. */
void train_runs_free(struct job *job);

#endif
