/* Training over ranks compared with training in one process: data sets, models and settings, and the comparison of
 * losses, weights, predictions and metrics. Shared by tests of the ways in which ranks divide the work.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TRAIN_CASES_H
#define TEST_TRAIN_CASES_H

#include "harness/hosts.h"
#include "oracle/sample.h"

enum { EPOCHS = 10, CLASSES = 4, FEATURES = 13, WEIGHTS_MOST = 8000 };

/* The results of a trainer, on one rank or in one process. */
struct outcome {
    double        loss[EPOCHS];
    graft_metrics metrics;
    graft_traffic traffic; /* over ranks, of all ranks */
    int64_t       n_weights;
    float         weights[WEIGHTS_MOST];
    char          explained[8192];
};

/* A data set, its training, and the results. */
struct job {
    struct sample_dataset set;
    float                *values; /* of the edges, or NULL */
    enum slices           way;
    struct outcome        one, at[HOSTS_MOST];
    float                *logits[2]; /* [n x CLASSES] of one process, and of ranks */
    int32_t              *labels[2];
};

/* Properties of data sets: sparse features; several classes for each vertex; edges with values; few training vertices,
 * without the vertex that gathers from all; rows with a repeated column; vertices with equal features; every fourth
 * vertex without edges other than loops. */
enum { SPARSE = 1, SEVERAL = 2, WEIGHTED = 4, FEW = 8, REPEATS = 16, ALIKE = 32, LONE = 64 };

struct shape {
    int64_t n;
    int     is;
};

/* One way to train: settings separated by blanks, and its data set. */
struct setup {
    const char  *settings;
    struct shape shape;
};

enum { TRAIN_SETUPS = 15, TRAIN_PREPARED = 15 };

/** Ways to train; and ways with a changed graph, or with few training vertices. */
extern const struct setup train_setups[TRAIN_SETUPS], train_prepared[TRAIN_PREPARED];

/** Settings of all cases: the division of work among ranks. */
extern const char *train_shared;

/* All settings of a case; later settings replace earlier settings. */
struct settings {
    const char *at[HOST_SETTINGS];
    char        text[1024];
};

void        train_job_init(struct job *job, struct sample *sample, const struct shape *shape);
void        train_job_fini(struct job *job);
void        train_settings_init(struct settings *s, const char *model, const char *partition, const char *cover,
                                const char *more);
/** Train in one process. */
void        train_one_process(struct job *job, const char *const *settings);
/** Train on a rank; for hosts_run(). */
int32_t     train_job_body(struct host *host);
/** All weights of a trainer, one after the other, as o->weights. */
void        train_keep_weights(const graft_train *train, graft_trainer *trainer, struct outcome *o);
/** Train in one process and over ranks. \return An error of the training over ranks in words, or NULL. */
const char *train_run_case(struct job *job, int32_t n_ranks, const struct settings *settings);
/** The relative distance of two numbers, 0 if both are NaN. */
double      train_off(double a, double b);
/** The largest distance of the results of ranks from the results of one process; NaN is not a distance. */
double      train_worst_of(const struct job *job);

/** One check: case `number`, which determines partition, cover and slices. */
void train_test_case(int number, const char *model, int32_t n_ranks, const struct setup *setup);
/** Checks of several models in each of n ways, on two or three of ranks[5]. */
void train_test_all(const char *const *models, int n_models, const struct setup *setup, int n, const int32_t *ranks);
/** Checks of sums over neighbours instead of means, and of models whose layers sum several times, on ranks[5]. */
void train_test_sums(const int32_t *ranks);
/** Maxima ("max") or minima ("min") over neighbours. \param[in] ranks  [4] */
void train_test_extrema(const char *aggregator, const int32_t *ranks);

#endif
