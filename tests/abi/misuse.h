/* A context with one object of each type, and calls on them, for tests that pass a wrong handle or make a call at a
 * wrong time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MISUSE_H
#define MISUSE_H

#include "graft.h"
#include "harness/strict_host.h"
#include "oracle/sample.h"

enum misuse_kind { MATRIX, TRAINER, GRAPH, PLAN, DATA, HALO, MODEL, SAMPLER, CONTEXT, MISUSE_KINDS };

enum { MISUSE_N = 37, MISUSE_WIDTH = 5, MISUSE_LOG = 2048 };

struct misuse {
    struct strict_host strict; /* the first member, so that the log finds the struct by its host pointer */
    char               log[MISUSE_LOG];
    void (*at_log)(struct misuse *m); /* a function that the log calls, unless it is NULL */
    const graft_api           *api;
    graft_context             *context;
    const graft_mxm_api       *mxm;
    const graft_edge_api      *edge;
    const graft_train_api     *train;
    const graft_report_api    *report;
    const graft_group_api     *groups;
    const graft_graph_api     *graphs;
    const graft_aggregate_api *aggregate;
    const graft_halo_api      *halos;
    const graft_model_api     *models;
    const graft_sample_api    *samples;
    const graft_transport_api *transports;
    const graft_data_api      *data;
    void                      *handle[CONTEXT];
    graft_error                error;

    float          b[MISUSE_N * MISUSE_WIDTH], c[MISUSE_N * MISUSE_WIDTH];
    graft_dense    dense_b, dense_c;
    graft_mxm_args args; /* arguments of a product with the matrix, with one thread */
};

/** A call on a handle of one type. */
struct misuse_call {
    const char      *name;
    enum misuse_kind kind;
    int32_t (*make)(struct misuse *m, void *handle);
};
extern const struct misuse_call misuse_calls[];
extern const int                misuse_n_calls;

/** If the last call made an object in one of two contexts, destroy it. */
void misuse_drop_made(struct misuse *m, struct misuse *other);

/** Call misuse_init() before all other functions, and misuse_fini() at the end. */
void misuse_init(void);
void misuse_fini(void);

/** The graph of all objects, with 32-bit columns and no values. */
const graft_csr *misuse_graph(void);

/** Make all objects. The result is NULL or what is wrong. */
const char *misuse_open(struct misuse *m);

/** Destroy all objects that are left, close the context, and check that no memory is left allocated. */
const char *misuse_close(struct misuse *m);

void *misuse_handle(struct misuse *m, enum misuse_kind kind);
void  misuse_destroy(struct misuse *m, void *handle, enum misuse_kind kind);

/** Check that an object still works. The result is NULL or what is wrong. */
const char *misuse_works(struct misuse *m, enum misuse_kind kind);

/** Create a trainer over a graph. */
int32_t misuse_train_over(struct misuse *m, void *graph);

const char *misuse_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
