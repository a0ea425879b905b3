/* A network as an object of the host: the arithmetic of mgn/ with statistics, noise, loss, optimiser and files.
 *
 * network.c     makes a network                      fields.h      arrays of the host, by node
 * infer.c       begin, end, rollouts, ensembles      train.c       a step: statistics, noise, loss, gradient
 * state.c       the state as items                   options.c     the options that a step reads
 * file.c        save and load                        explain.c
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "draft/graft_network.h"
#include "mgn/mgn.h"
#include "network/options.h"
#include "nn/optimizer.h"
#include "nn/parameter.h"
#include "nn/statistics.h"

#define GR_NETWORK_ARCHITECTURE "graft.mgn/1"

/** Data for training; all NULL before the first step. The gradients of the parameters are sums over the pairs of a
 *  step. */
struct gr_network_training {
    int32_t              has_moments;         /* moments are items: a step was made, or they were set or loaded */
    void                *gradient;            /* [n_weights] of a pair */
    double              *input, *target;      /* [n_nodes x in], [n_nodes x out] of a pair, with noise */
    double              *sums;                /* for statistics over ranks */
    int64_t              staged;              /* pairs of the host that `stage` has space for */
    double              *stage;               /* [staged x n_nodes x (in + out)] */
    int32_t              has_gradient;        /* gradient() has been called since the last change of weights */
    struct gr_statistics next[GR_STATISTICS]; /* new statistics of a step, until it has succeeded */
};

/** Columns of rows of nodes: of the state of the host, of the results, of constant inputs, and of all inputs; and of
 *  inputs of edges. */
struct gr_network_columns {
    int32_t adds_input; /* 1: outputs are added to the first inputs */
    int64_t in, out, constant, node_in, edge_in;
};

/** What the host has said about each node, [n_nodes]. */
struct gr_network_nodes {
    uint8_t *is_free;
    double  *loss_weight; /* of a column of a node; the sum of all ranks and columns is 1 */
    double  *free_weight; /* weights in statistics of outputs; statistics of inputs use the weights of the mesh */
};

struct gr_network_arrays {
    void   *nodes, *edges; /* inputs of the network, standardised, in its type */
    void   *output;        /* [n_nodes x out] of the network, in its type */
    double *values;        /* [n_nodes x out] first inputs, then results, in units of the data */
};

/** Times for option profile: seconds of the last call of each function. */
enum gr_network_phase { GR_PHASE_BEGIN, GR_PHASE_END, GR_PHASE_STEP, GR_PHASES };

struct gr_network_phases {
    int32_t is_measured;
    double  seconds[GR_PHASES];
};

struct gr_network_use {
    int32_t count;
    int     begun, is_streamed; /* an inference has; a stream trains it */
};

struct gr_network_checks {
    int refuses_nonfinite; /* rows that are sent must be finite */
    int compares;          /* every call compares copies of shared nodes (option check=full) */
};

struct gr_network_progress {
    int64_t  steps;
    uint32_t digest; /* checksum of the items set by state_set(), which must be the same on all ranks */
};

struct graft_network {
    struct gr_handle      handle;
    graft_context        *context;
    graft_mesh           *mesh;
    struct gr_network_use use;
    int64_t               number; /* among the networks of the mesh, the same on all ranks */

    graft_predicts            predicts;
    struct gr_network_columns columns;
    struct gr_network_options options; /* options that are not live */
    int64_t                   seed;
    struct gr_network_checks  checks;

    struct gr_budget     budget;
    struct gr_mgn_shape  shape;
    struct gr_parameters parameters; /* each copy of all is one array, as mgn.h describes it */
    struct gr_mgn       *mgn;

    struct gr_network_nodes    of_node;
    struct gr_network_arrays   arrays;
    struct gr_statistics       statistics[GR_STATISTICS];
    struct gr_network_training training;
    struct gr_network_progress progress;
    struct gr_network_phases   times;
};

/** Rows of data [n_nodes x columns], `stride` elements apart; of free nodes only, if only_free. */
struct gr_network_rows {
    const void *data;
    graft_dtype dtype;
    int64_t     columns, stride;
    int         only_free;
};

/** Whether the copies of each shared node have the same row on all ranks. Collective. \return OK; ERR_FORMAT,
 *  ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_network_compare_copies(graft_network *n, const struct gr_network_rows *rows, const char *name,
                                  graft_error *error);

/** The same for a state of the host, or with is_target for the targets of free nodes, after all ranks have agreed on
 *  `rc`: the status of each. \return as above, or the status on which they agreed. */
int32_t gr_network_compare_field(graft_network *n, int32_t rc, const graft_field *field, const char *name,
                                 int is_target, graft_error *error);

/** Element i of an array in the type of the network. */
static inline double gr_network_at(const graft_network *n, const void *array, int64_t i)
{
    return gr_nn_at(n->parameters.dtype, array, i);
}
static inline void gr_network_put(const graft_network *n, void *array, int64_t i, double value)
{
    gr_nn_put(n->parameters.dtype, array, i, value);
}

/** The time now, for gr_network_measure(); 0 without option profile. */
static inline double gr_network_clock(const graft_network *n)
{
    return n->times.is_measured ? gr_seconds() : 0;
}

static inline void gr_network_measure(graft_network *n, enum gr_network_phase phase, double begin)
{
    if (n->times.is_measured) n->times.seconds[phase] = gr_seconds() - begin;
}

struct gr_team gr_network_team(const graft_network *n);

/** The row of a node, as the host numbers them. */
static inline long long gr_network_row(const graft_network *n, int64_t node)
{
    return (long long)n->mesh->row_of[node] + n->mesh->index_base;
}

/** `args` is complete, except for structs to which it points; rc: the status of its check on this rank. Collective.
 *  \return as graft_network_api.create(). */
int32_t gr_network_create(graft_mesh *mesh, int32_t rc, const graft_network_args *args, graft_network **network,
                          graft_error *error);

/** Add a use; each needs its gr_network_destroy(), and the last one frees the network. */
graft_network *gr_network_use(graft_network *network);
void           gr_network_destroy(graft_network *network);

void    gr_network_info(const graft_network *n, graft_network_info *info);
void    gr_network_explain(const graft_network *n, char *text, uint64_t capacity);
/** As graft_network_api.times(). */
int32_t gr_network_times(const graft_network *n, int32_t layer, int32_t pass, graft_network_times *times,
                         graft_error *error);

/** Standardise the edges of the mesh; after a change of their statistics. */
void gr_network_set_edges(graft_network *n);

/* infer.c: as in graft_network_api. Fields are complete, and have the right shapes. */
int32_t gr_network_check_idle(const graft_network *n, graft_error *error);
/** Whether a field of the host is finite, in the type of the network, at the nodes that are read. \return OK;
 *  ERR_NONFINITE. */
int32_t gr_network_check_finite(const graft_network *n, const graft_field *field, const char *name, int only_free,
                                graft_error *error);
/** Whether an input is finite, if non-finite rows would later end all calls on the mesh.
 *  \return OK; ERR_NONFINITE. */
int32_t gr_network_check_input(const graft_network *n, const graft_field *input, graft_error *error);
/** `status`: of this rank, on which all ranks agree. gr_network_end() requires that an inference has begun. */
int32_t gr_network_begin(graft_network *n, int32_t status, const graft_field *input, graft_error *error);
int32_t gr_network_end(graft_network *n, int32_t status, const graft_field *output, graft_error *error);
int32_t gr_network_rollout(graft_network *n, int32_t rc, const graft_rollout *args, graft_error *error);
int32_t gr_network_ensemble(graft_network *const *networks, int32_t count, int32_t rc, const graft_field *input,
                            const graft_field *mean, const graft_field *deviation, graft_error *error);

/** A pair in the order of nodes of the mesh: input [n_nodes x n_in], target [n_nodes x n_out], whose rows are `stride`
 *  elements apart. */
struct gr_network_pair {
    const void *input, *target;
    int64_t     stride;
    graft_dtype dtype;
};

/** Copy a field of the host to [n_nodes x field->n_columns]. */
void    gr_network_copy_field(const graft_network *n, const graft_field *field, graft_dtype dtype, void *to);
/** Copy a pair of the host to pair `k` of the stage, which has space for it. The stage has doubles, because the change
 *  of a value may be below float precision. */
void    gr_network_stage(graft_network *n, const graft_field *input, const graft_field *target, int64_t k,
                         struct gr_network_pair *pair);
/** Allocate memory for a gradient, and space for `count` pairs in the stage. A step also needs moments. Not collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_network_reserve_training(graft_network *n, int64_t count, graft_error *error);
/** Allocate moments of the optimiser, initially 0; training.has_moments makes them items of the state. Not collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_network_reserve_moments(graft_network *n, graft_error *error);
/** Whether the arrays of a pair are finite where they are read. \return OK; ERR_NONFINITE. */
int32_t gr_network_check_pair(const graft_network *n, const struct gr_network_pair *pair, int64_t k,
                              graft_error *error);

/** One training step; and the mean loss of pairs without noise and without a step. Both need the memory of training.
 *  `rc`: the status of this rank, on which all ranks agree first. Collective. \return as graft_network_api.train(). */
int32_t gr_network_train(graft_network *n, int32_t rc, const struct gr_network_pair *pairs, int32_t count,
                         graft_network_step *step, graft_error *error);
int32_t gr_network_loss(graft_network *n, const struct gr_network_pair *pairs, int32_t count, double *loss,
                        graft_error *error);
int32_t gr_network_gradient(graft_network *n, int32_t rc, const struct gr_network_pair *pair, double *loss,
                            graft_error *error);

/** Whether all ranks are at the same step, with the same live options and the same items set. Collective.
 *  \return rc; the failure of another rank; ERR_ARG; ERR_PEER: the same on all ranks. */
int32_t gr_network_agree(const graft_network *n, int32_t rc, int64_t count, graft_error *error);

/** What a step reads from the options of the context. */
struct gr_network_live {
    struct gr_nn_step step;
    double            clip_norm; /* 0: none */
    double            noise;
};
struct gr_network_live gr_network_live_options(const graft_network *n);

/** The first steps, which only gather statistics; and the steps after which they no longer change. */
static inline int64_t gr_network_gathering_steps(const graft_network *n)
{
    return n->options.statistics.word == GR_GATHERS_FIRST ? (int64_t)n->options.statistics.number[0] : 0;
}
static inline int64_t gr_network_frozen_after(const graft_network *n)
{
    return (int64_t)n->options.statistics.number[n->options.statistics.word == GR_GATHERS_FIRST];
}

/* state.c */
/** Find an item by its name. \return OK; ERR_NOT_FOUND. */
int32_t gr_network_find(graft_network *n, const char *name, graft_state_item *item, graft_error *error);
/** Whether the values of an item are legal. \return OK; ERR_FORMAT. */
int32_t gr_network_check_values(const graft_state_item *item, graft_error *error);
/** Recompute values that depend on items, after some were overwritten. */
void    gr_network_state_changed(graft_network *n);
int32_t gr_network_state_item(graft_network *n, int32_t index, graft_state_item *item, graft_error *error);
int32_t gr_network_state_set(graft_network *n, const graft_state_item *item, graft_error *error);

/* file.c */
int32_t gr_network_save(graft_network *n, int32_t rc, const char *path, graft_error *error);
int32_t gr_network_load(graft_network *n, int32_t rc, const char *path, graft_error *error);
