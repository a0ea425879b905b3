/* A trainer of the library and an oracle for it, with the same data set, options and weights.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAINING_H
#define TRAINING_H

#include "graft_train.h"
#include "oracle.h"
#include "sample.h"

/** The orders of entries in sparse features: ascending columns; descending columns, where every other one occurs twice;
 * and the latter without values and with 64-bit columns. */
enum training_entries { TRAINING_PLAIN, TRAINING_REPEATED, TRAINING_ONES };

/** One way to train. All zeros is the simplest case. */
struct training_case {
    enum oracle_kind        kind;
    int32_t                 layers;
    const char             *aggregator; /* value of option aggregator, for sage; NULL for the mean */
    int64_t                 heads;      /* number of heads, for gat; 0 for one head */
    int64_t                 n;          /* number of vertices; 0 for 23 */
    int                     growing;    /* whether hidden widths are larger than the number of features */
    enum oracle_norm        norm;
    int                     several; /* whether vertices have several classes, so that the loss is the sigmoid loss */
    /* "sigmoid" for one class, "softmax" for labels that are given beside targets, "mse", "mae" or "huber" for float
     * targets; NULL for auto. */
    const char             *loss;
    int                     regression; /* whether targets are floats, with loss=auto */
    int                     sparse;     /* order of the entries of sparse features */
    int                     weighted;   /* whether the graph has values */
    int                     prepare;    /* whether symmetrize, self_loops and normalize_features are set */
    double                  dropout, input_dropout, label_rate;
    double                  attention_dropout; /* option attention_dropout, for gat */
    int                     edge_features;     /* whether edge_features=values, for gat on a graph with values */
    int                     edge_array;        /* whether edge_features=array, for gat */
    int                     inner_relu;        /* whether attention_input=relu, for gat */
    int                     elu;               /* whether activation=elu */
    int                     drops_first;       /* whether norm_order=after_dropout */
    /* Whether there are residual connections. Then all hidden layers have the same width. */
    int                     residual;
    const char             *jumping;   /* "cat", or "max", which needs hidden layers of the same width; NULL for no
                                        * jumping knowledge */
    int                     balanced;  /* whether loss=softmax:balanced */
    double                  smoothing; /* label smoothing of loss=softmax */
    struct oracle_optimizer optimizer;
    const char             *kernel;   /* name of the kernel for sparse products; NULL for auto */
    const char             *order;    /* option for the order of the vertices; NULL for given */
    const char             *dense;    /* name of the dense module; NULL for auto */
    int                     unmasked; /* whether training computes all rows (row_masks=no) */
    int                     anew;     /* whether features are aggregated again in every pass (reuse_input=no) */
    int                     recompute;
    const char             *sparse_input; /* option sparse_input; NULL for auto */
    enum training_entries   entries;
    /* Whether there are few training vertices, so that a step needs only some of the rows of every layer. */
    int                     scarce;
    int                     threads; /* number of threads; 0 for 2 */
};

struct training {
    const graft_api       *api;
    const graft_train_api *train;
    graft_trainer         *trainer;
    struct sample_dataset  set;
    struct oracle_model    model;
    /* gradients of the oracle in epochs 0 and 1 */
    double                *gradient[2][ORACLE_TENSORS_MAX];
    double                *m[ORACLE_TENSORS_MAX], *v[ORACLE_TENSORS_MAX]; /* moments of the oracle's optimiser */
};

/** A description of the case, such as "gin, 3 layers", in static memory. */
const char *training_name(const struct training_case *what);

/** Whether epochs draw random numbers, so that two epochs with the same weights differ. */
int training_is_drawn(const struct training_case *what);

/** Make the data set, the oracle and the weights from `seed`, or from the first seed after it for which the gradient is
 * far from points where the derivative jumps, and above 1e-3 somewhere in each tensor. That holds for epoch 0 and, with
 * random draws, also for epoch 1 with the same weights. training_open() makes the trainer. */
void training_init(struct training *training, const struct training_case *what, uint64_t seed);
void training_fini(struct training *training);

/** Make the trainer with the options of the case, and give it the weights of the oracle. The result is its status. */
int32_t training_open(struct training *training, const graft_api *api, const struct training_case *what,
                      graft_error *error);

/** Set the weights of the oracle in the trainer, as floats. */
int32_t training_push(struct training *training, graft_error *error);

/** Read state item PREFIX + NAME of tensor t into `value`. The result is 0 if it is missing or has another shape. */
int training_pull(struct training *training, const char *prefix, int32_t t, double *value);

/** Whether the tensor is a bias that BatchNorm cancels, so that its gradient is 0. */
int training_is_idle(const struct training *training, int32_t t);

/** Compute the gradient of the oracle for epoch 0 or 1 with its random draws. The result is 0 if a point where the
 *  derivative jumps is too near. */
int training_differentiate(struct training *training, int epoch);

int64_t training_count(const struct oracle_tensor *tensor);

/** The largest magnitude of an array. */
double training_largest(const double *value, int64_t count);

/** The largest difference between two arrays, relative to the largest element of the expected one; infinite if there is
 * a NaN. */
double training_distance(const double *found, const double *expected, int64_t count);

#endif
