/* Compares training over ranks with training in one process, by losses, weights, predictions and metrics. The tests of
 * all strategies share these data sets, models and options. Other tests compare one process with the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TRAIN_CASES_H
#define TEST_TRAIN_CASES_H

#include "harness/hosts.h"
#include "oracle/sample.h"

enum { EPOCHS = 10, CLASSES = 4, FEATURES = 13, WEIGHTS_MOST = 8000 };

/* The results of one trainer, on one rank or in one process. */
struct outcome {
    double        loss[EPOCHS];
    graft_metrics metrics;
    graft_traffic traffic; /* traffic over all ranks */
    int64_t       n_weights;
    float         weights[WEIGHTS_MOST];
    char          explained[8192];
};

/* A data set, and the results of training on it. */
struct job {
    struct sample_dataset set;
    float                *values; /* values of the edges, or NULL if they have none */
    enum slices           way;
    struct outcome        one, at[HOSTS_MOST];
    float                *logits[2]; /* [n x CLASSES] predictions of one process, and those of the ranks */
    int32_t              *labels[2];
};

/* Properties of data sets, as bits: sparse features, several classes for each vertex, values on edges, few training
 * vertices (without the vertex that gathers from all), rows with a repeated column, vertices with equal features, and
 * loops as the only edges of every fourth vertex. */
enum { SPARSE = 1, SEVERAL = 2, WEIGHTED = 4, FEW = 8, REPEATS = 16, ALIKE = 32, LONE = 64 };

struct shape {
    int64_t n;
    int     is;
};

/* One way to train: options separated by blanks, and the properties of a data set. */
struct setup {
    const char  *settings;
    struct shape shape;
};

enum { TRAIN_SETUPS = 15, TRAIN_PREPARED = 15 };

/** Ways to train. In the second list the library first changes the graph, or there are few training vertices. */
extern const struct setup train_setups[TRAIN_SETUPS], train_prepared[TRAIN_PREPARED];

/** Options of all cases that divide the work among ranks. */
extern const char *train_shared;
/** What follows the method of option partition in all cases, such as ":2". */
extern const char *train_rounds;

/* All options of a case. If an option is repeated, its last value counts. */
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
/** Train on one rank; a body for hosts_run(). */
int32_t     train_job_body(struct host *host);
/** Copy all weights of a trainer, one after the other, to o->weights. */
void        train_keep_weights(const graft_train_api *train, graft_trainer *trainer, struct outcome *o);
/** Train in one process and over ranks. \return NULL, or an error of the training over ranks in words. */
const char *train_run_case(struct job *job, int32_t n_ranks, const struct settings *settings);
/** The relative distance of two numbers. It is 0 if both are NaN. */
double      train_off(double a, double b);
/** The largest relative distance between the results of the ranks and those of one process; NaN if a result is NaN. */
double      train_worst_of(const struct job *job);

/** Make one check. The number of the case determines the partitioner, the cover and the slices. */
void train_test_case(int number, const char *model, int32_t n_ranks, const struct setup *setup);
/** Check several models in each of n ways to train, on two or three of the five numbers of ranks. */
void train_test_all(const char *const *models, int n_models, const struct setup *setup, int n, const int32_t *ranks);
/** Check sums over neighbours instead of means, and models whose layers propagate several times, on the five numbers of
 * ranks. */
void train_test_sums(const int32_t *ranks);
/** Check the maximum ("max") or minimum ("min") over neighbours. \param[in] ranks Four numbers of ranks. */
void train_test_extrema(const char *aggregator, const int32_t *ranks);

#endif
