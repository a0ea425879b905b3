/* A network as an object of the host: the arithmetic of mgn/ with statistics, noise, loss, optimiser and files.
 *
 * network.c     creates a network                    fields.h      access to arrays of the host
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

/** The data of training; pointers are NULL before the first step. The gradients in `parameters` are sums over the pairs
 *  of a step. */
struct gr_network_training {
    int32_t              has_moments;         /* moments are items: a step was done, or they were set or loaded */
    void                *gradient;            /* [n_weights] gradient of one pair */
    double              *input, *target;      /* [n_nodes x in], [n_nodes x out] the current pair, with noise */
    double              *sums;                /* sums over ranks for statistics */
    int64_t              staged;              /* number of pairs for which `stage` has space */
    double              *stage;               /* [staged x n_nodes x (in + out)] copies of pairs of the host */
    int32_t              has_gradient;        /* gradient() has been called since the last change of weights */
    struct gr_statistics next[GR_STATISTICS]; /* new statistics of a step, until it has succeeded */
};

/** The numbers of columns of nodes: of the host's state, of results, of constant inputs, and of all inputs; and the
 *  number of columns of edges. */
struct gr_network_columns {
    int32_t adds_input; /* 1: outputs are added to the first inputs */
    int64_t in, out, constant, node_in, edge_in;
};

/** What the host has specified for each node, [n_nodes]. */
struct gr_network_nodes {
    uint8_t *is_free;
    double  *loss_weight; /* weight of each column of the node; the sum over columns and nodes of all ranks is 1 */
    double  *free_weight; /* weight in statistics of outputs; statistics of inputs use the weights of the mesh */
};

struct gr_network_arrays {
    void   *nodes, *edges; /* [n_nodes x node_in], [n_edges x edge_in] standardised inputs, in the network's type */
    void   *output;        /* [n_nodes x out] outputs, in the network's type */
    double *values;        /* [n_nodes x out] first inputs, then results, in units of the data */
};

/** The functions whose last call is measured with option profile, in seconds. */
enum gr_network_phase { GR_PHASE_BEGIN, GR_PHASE_END, GR_PHASE_STEP, GR_PHASES };

struct gr_network_phases {
    int32_t is_measured;
    double  seconds[GR_PHASES];
};

struct gr_network_use {
    int32_t count;
    int     begun, is_streamed; /* whether an inference has begun and not ended; whether a stream trains the network */
};

struct gr_network_checks {
    int refuses_nonfinite; /* rows that are sent must be finite, see gr_mgn_refuses_nonfinite() */
    int compares;          /* every call compares copies of shared nodes (option check=full) */
};

struct gr_network_progress {
    int64_t  steps;
    uint32_t digest; /* checksum of the items set by state_set(); they must be the same on all ranks */
};

struct graft_network {
    struct gr_handle      handle;
    graft_context        *context;
    graft_mesh           *mesh;
    struct gr_network_use use;
    int64_t               number; /* index among the networks of the mesh, the same on all ranks */

    graft_predicts            predicts;
    struct gr_network_columns columns;
    struct gr_network_options options; /* values at creation, for options that are not live */
    int64_t                   seed;
    struct gr_network_checks  checks;

    struct gr_budget     budget;
    struct gr_mgn_shape  shape;
    struct gr_parameters parameters; /* values of all parameters are one array, as mgn.h requires; so are gradients */
    struct gr_mgn       *mgn;

    struct gr_network_nodes    of_node;
    struct gr_network_arrays   arrays;
    struct gr_statistics       statistics[GR_STATISTICS];
    struct gr_network_training training;
    struct gr_network_progress progress;
    struct gr_network_phases   times;
};

/** Rows of nodes to compare: data [n_nodes x columns], rows being `stride` elements apart; only free nodes if
 * only_free. */
struct gr_network_rows {
    const void *data;
    graft_dtype dtype;
    int64_t     columns, stride;
    int         only_free;
};

/** Check that the copies of each shared node have the same row on all ranks. Collective. \return OK; ERR_FORMAT,
 *  ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_network_compare_copies(graft_network *n, const struct gr_network_rows *rows, const char *name,
                                  graft_error *error);

/** Check copies of shared nodes in a state of the host, or with is_target in targets of free nodes. First all ranks
 *  agree on a status; each passes its own, `rc`. \return as gr_network_compare_copies(), or the status on which they
 *  agreed. */
int32_t gr_network_compare_field(graft_network *n, int32_t rc, const graft_field *field, const char *name,
                                 int is_target, graft_error *error);

/** Read or write element i of an array in the type of the network. */
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

/** The host's row of a node, counted as the host counts rows. */
static inline long long gr_network_row(const graft_network *n, int64_t node)
{
    return (long long)n->mesh->row_of[node] + n->mesh->index_base;
}

/** Create a network. `args` has all fields of this library's version, but the structs to which it points may not. `rc`
 *  is the status of its check on this rank. Collective. \return as graft_network_api.create(). */
int32_t gr_network_create(graft_mesh *mesh, int32_t rc, const graft_network_args *args, graft_network **network,
                          graft_error *error);

/** Add a use; each needs its gr_network_destroy(), and the last one frees the network. */
graft_network *gr_network_use(graft_network *network);
void           gr_network_destroy(graft_network *network);

void    gr_network_info(const graft_network *n, graft_network_info *info);
void    gr_network_explain(const graft_network *n, char *text, uint64_t capacity);
/** Do graft_network_api.times(). */
int32_t gr_network_times(const graft_network *n, int32_t layer, int32_t pass, graft_network_times *times,
                         graft_error *error);

/** Standardise the inputs of edges again, after a change of their statistics. */
void gr_network_set_edges(graft_network *n);

/* infer.c: as in graft_network_api. Fields are complete, and have the right shapes. */
int32_t gr_network_check_idle(const graft_network *n, graft_error *error);
/** Check that a field of the host is finite in the type of the network, at all nodes or, if only_free, at free nodes.
 *  \return OK; ERR_NONFINITE. */
int32_t gr_network_check_finite(const graft_network *n, const graft_field *field, const char *name, int only_free,
                                graft_error *error);
/** Check that an input is finite, if checks.refuses_nonfinite. \return OK; ERR_NONFINITE. */
int32_t gr_network_check_input(const graft_network *n, const graft_field *input, graft_error *error);
/** Begin and end an inference. `status` and `rc` are statuses of this rank; all ranks agree on one, which is returned.
 *  gr_network_end() requires that an inference has begun. */
int32_t gr_network_begin(graft_network *n, int32_t status, const graft_field *input, graft_error *error);
int32_t gr_network_end(graft_network *n, int32_t status, const graft_field *output, graft_error *error);
int32_t gr_network_rollout(graft_network *n, int32_t rc, const graft_rollout *args, graft_error *error);
int32_t gr_network_ensemble(graft_network *const *networks, int32_t count, int32_t rc, const graft_field *input,
                            const graft_field *mean, const graft_field *deviation, graft_error *error);

/** A pair for training, in the order of nodes of the mesh: input [n_nodes x n_in], and target [n_nodes x n_out], whose
 *  rows are `stride` elements apart. */
struct gr_network_pair {
    const void *input, *target;
    int64_t     stride;
    graft_dtype dtype;
};

/** Copy a field of the host to `to`, [n_nodes x field->n_columns] of type `dtype`. */
void    gr_network_copy_field(const graft_network *n, const graft_field *field, graft_dtype dtype, void *to);
/** Copy a pair of the host to pair k of training.stage, which has space for it. It is stored in doubles, because the
 *  change of a value may be below float precision. */
void    gr_network_stage(graft_network *n, const graft_field *input, const graft_field *target, int64_t k,
                         struct gr_network_pair *pair);
/** Allocate the memory of training, with space for `count` pairs in training.stage. A step also needs moments. Not
 *  collective. \return OK; ERR_NOMEM. */
int32_t gr_network_reserve_training(graft_network *n, int64_t count, graft_error *error);
/** Allocate moments of the optimiser, which are 0 initially. They become items of the state when training.has_moments
 *  is set. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_network_reserve_moments(graft_network *n, graft_error *error);

/** Do one training step; compute the mean loss of pairs without noise; or compute the gradient of one pair without
 *  noise. All need the memory of training. `rc` is the status of this rank; first, all ranks agree on a status.
 *  Collective.
 *  \return as graft_network_api.train(). */
int32_t gr_network_train(graft_network *n, int32_t rc, const struct gr_network_pair *pairs, int32_t count,
                         graft_network_step *step, graft_error *error);
int32_t gr_network_loss(graft_network *n, const struct gr_network_pair *pairs, int32_t count, double *loss,
                        graft_error *error);
int32_t gr_network_gradient(graft_network *n, int32_t rc, const struct gr_network_pair *pair, double *loss,
                            graft_error *error);

/** Check that all ranks are at the same step, with the same `count`, live options, and items set by state_set().
 *  Collective. \return rc; the failure of another rank; ERR_ARG; ERR_PEER: the same on all ranks. */
int32_t gr_network_agree(const graft_network *n, int32_t rc, int64_t count, graft_error *error);

/** The settings that a step reads from the options of the context. */
struct gr_network_live {
    struct gr_nn_step step;
    double            clip_norm; /* largest norm of gradients; 0: no clipping */
    double            noise;
};
struct gr_network_live gr_network_live_options(const graft_network *n);

/** The number of first steps, which only gather statistics; and the number of steps after which statistics are
 * frozen. */
static inline int64_t gr_network_gathering_steps(const graft_network *n)
{
    return n->options.statistics.word == GR_GATHERS_FIRST ? (int64_t)n->options.statistics.number[0] : 0;
}
static inline int64_t gr_network_frozen_after(const graft_network *n)
{
    return (int64_t)n->options.statistics.number[n->options.statistics.word == GR_GATHERS_FIRST];
}

/* state.c */
/** Check that the values of an item are legal. \return OK; ERR_FORMAT. */
int32_t gr_network_check_values(const graft_state_item *item, graft_error *error);
/** Recompute values that depend on items, after some were overwritten. */
void    gr_network_state_changed(graft_network *n);
int32_t gr_network_state_item(graft_network *n, int32_t index, graft_state_item *item, graft_error *error);
int32_t gr_network_state_set(graft_network *n, const graft_state_item *item, graft_error *error);

/* file.c */
int32_t gr_network_save(graft_network *n, int32_t rc, const char *path, graft_error *error);
int32_t gr_network_load(graft_network *n, int32_t rc, const char *path, graft_error *error);
