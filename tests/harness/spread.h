/* A graph and matrices of the test, distributed over ranks: each rank takes its slice, passes are made through the
 * tables of graft.graph/1 and graft.aggregate/1, and the results are joined again.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SPREAD_H
#define SPREAD_H

#include "entry/entry.h"
#include "harness/ranks.h"
#include "oracle/sample.h"
#include "spmm/plan.h"

enum slicing { SLICE_EVEN, SLICE_FIRST, SLICE_LAST, SLICE_ODD, SLICINGS };

enum { PASSES_MOST = 16 };

/** One pass over the whole graph. */
struct spread_pass {
    graft_semiring semiring;
    uint32_t       flags;
    int64_t        width;
    int            scaled;
    char          *out; /* [n x width] before, and after */
};

struct spread {
    const graft_csr   *graph;
    graft_dtype        dtype;
    const char        *x; /* [n x x_width]; a pass uses the first columns */
    int64_t            x_width;
    int                halves; /* passes read x, of floats without lower halves, as bfloat16 */
    const char        *scale;  /* [n] */
    enum slicing       slicing;
    const char        *partition, *cover, *threads;
    const int32_t     *owner;      /* [n], or NULL */
    const uint8_t     *train_mask; /* [n], or NULL */
    const char *const *settings;   /* more options: key, value, ..., NULL; or NULL */
    int                n_passes;
    struct spread_pass pass[PASSES_MOST];
    int32_t            pass_threads; /* requested by passes; 0: from the option */
    int                forward_only, weighs, starved;
    int                progresses;                   /* 1: progress() receives all messages of a pass */
    int64_t            fail_at;                      /* starved: the allocation after the setup that fails */
    int64_t            plan_peak, plan_stays;        /* weighs: bytes that the plan needs on all ranks */
    int64_t            reserved;                     /* columns reserved by the plan */
    int32_t            found[4096];                  /* the owner of each vertex in the result */
    int64_t            rows[RANKS_MOST][RANKS_MOST]; /* from one rank to another */
    graft_graph_info   graph_info[RANKS_MOST + 1];   /* from rank 0; the last is the sum of all ranks */
    graft_plan_info    plan_info[RANKS_MOST + 1];
    char               explained[4096]; /* the description of the graph by the last rank */
};

/** The slice of a rank: rows first to end - 1. */
void spread_slice(enum slicing slicing, int64_t n, int32_t n_ranks, int32_t rank, int64_t *first, int64_t *end);

/** Make the kernels known to the context of a rank, and set its options. */
int32_t spread_setup(struct rank *rank, const struct spread *spread);

/** The graph of a rank from its slice. */
int32_t spread_graph(struct rank *rank, const struct spread *spread, graft_graph **graph);

/** Make the plan; with spread->weighs, measure its memory on all ranks. */
int32_t spread_plan(struct rank *rank, struct spread *spread, graft_graph *graph, const graft_plan_args *args,
                    graft_plan **plan);

/** A body for ranks_init() whose arg is a spread: all passes. */
int32_t spread_body(struct rank *rank);

/** Run all passes while allocation spread->fail_at of one rank fails. 1: it failed, and all ranks reported it; 0: there
 *  are no more allocations; -1: an error. */
int spread_starve(struct spread *spread, int32_t n_ranks, int32_t rank, char fault[512]);

/** Make a graph of n vertices, its transpose, x [n x width], and `want` [2 x n x width]: the sums over neighbours,
 *  forward and transposed, without rounding errors. */
void spread_make_sums(uint64_t seed, int64_t n, int64_t width, struct sample_csr *graph, struct sample_csr *transposed,
                      float *x, float *want);

#endif
