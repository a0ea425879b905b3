/* A trainer of the library and its oracle, with the same data set, options and weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAINING_H
#define TRAINING_H

#include "graft_train.h"
#include "oracle.h"
#include "sample.h"

/** Entries of sparse features: in the order of columns, each once; from the last column to the first, every other
 *  column twice; and the same without values, with columns in 64 bits. */
enum training_entries { TRAINING_PLAIN, TRAINING_REPEATED, TRAINING_ONES };

/** The training; zeros are the simplest case. */
struct training_case {
    enum oracle_kind        kind;
    int32_t                 layers;
    const char             *aggregator; /* of sage; NULL: mean */
    int64_t                 heads;      /* of gat; 0: 1 */
    int64_t                 n;          /* vertices; 0: 23 */
    int                     growing;    /* hidden widths: 1: larger than the features, 0: smaller */
    enum oracle_norm        norm;
    int                     several; /* 1: several classes, sigmoid; 0: one class, softmax */
    const char             *loss;    /* NULL: auto; "sigmoid" on one class; "softmax" on labels beside targets; "mse",
                                         "mae" or "huber" on float targets */
    int                     regression; /* float targets, with loss auto */
    int                     sparse;     /* of the features */
    int                     weighted;   /* the graph has values */
    int                     prepare;    /* 1: symmetrize, self_loops, normalize_features and gin_eps */
    double                  dropout, input_dropout, label_rate;
    double                  attention_dropout; /* of gat */
    int                     edge_features;     /* of gat, with a weighted graph: edge_features=values */
    int                     edge_array;        /* of gat: edge_features=array */
    int                     inner_relu;        /* of gat: attention_input=relu */
    int                     elu;               /* activation=elu */
    int                     drops_first;       /* norm_order=after_dropout */
    int                     residual;          /* all hidden layers have equal widths */
    const char             *jumping;           /* NULL: none; with "max" all hidden layers have equal widths */
    int                     balanced;          /* class_weights=balanced */
    double                  smoothing;         /* label_smoothing */
    struct oracle_optimizer optimizer;
    const char             *kernel;   /* NULL: auto */
    const char             *order;    /* NULL: given */
    const char             *dense;    /* NULL: auto */
    int                     unmasked; /* all rows in training */
    int                     anew;     /* features are aggregated in every pass */
    int                     recompute;
    const char             *sparse_input; /* NULL: auto */
    enum training_entries   entries;
    int                     scarce;  /* few training vertices, so that a step needs some rows of every layer */
    int                     threads; /* 0: 2 */
};

struct training {
    const graft_api      *api;
    const graft_train    *train;
    graft_trainer        *trainer;
    struct sample_dataset set;
    struct oracle_model   model;
    double               *gradient[2][ORACLE_TENSORS_MAX];               /* of the oracle in epochs 0 and 1 */
    double               *m[ORACLE_TENSORS_MAX], *v[ORACLE_TENSORS_MAX]; /* moments of the oracle */
};

/** "gin, 3 layers, ...", in static memory. */
const char *training_name(const struct training_case *what);

/** Whether epochs differ by random draws. */
int training_is_drawn(const struct training_case *what);

/** Make data set, oracle and weights, from `seed` or the first seed after it for which the gradient of epoch 0, and
 *  with dropout or labels also of epoch 1 with the same weights, is clear of kinks and above 1e-3 somewhere in each
 *  tensor with a gradient. No trainer yet: training_open(). */
void training_init(struct training *training, const struct training_case *what, uint64_t seed);
void training_fini(struct training *training);

/** Make the trainer with options of the case, and give it the weights of the oracle. Returns its status. */
int32_t training_open(struct training *training, const graft_api *api, const struct training_case *what,
                      graft_error *error);

/** Give the trainer the weights of the oracle, as floats. */
int32_t training_push(struct training *training, graft_error *error);

/** Read the state item PREFIX + NAME of tensor t into `value`. Returns 0 if it is missing, or has another shape. */
int training_pull(struct training *training, const char *prefix, int32_t t, double *value);

/** Whether the tensor is a bias that BatchNorm removes: its gradient is 0. */
int training_is_idle(const struct training *training, int32_t t);

/** The gradient of the oracle for epoch 0 or 1, with its dropout. Returns 0 near a kink. */
int training_differentiate(struct training *training, int epoch);

int64_t training_count(const struct oracle_tensor *tensor);

/** The largest magnitude of an array. */
double training_largest(const double *value, int64_t count);

/** Largest difference of two arrays, over the largest element of the expected array; infinite with a NaN. */
double training_distance(const double *found, const double *expected, int64_t count);

#endif
