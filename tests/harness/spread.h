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
    const char        *x; /* [n x x_width], of which a pass takes the first columns */
    int64_t            x_width;
    int                halves; /* passes read x, of floats that can be, as bfloat16 */
    const char        *scale;  /* [n] */
    enum slicing       slicing;
    const char        *partition, *cover, *threads;
    const int32_t     *owner;      /* [n], or NULL */
    const uint8_t     *train_mask; /* [n], or NULL */
    const char *const *settings;   /* more options: key, value, ..., NULL; or NULL */
    int                n_passes;
    struct spread_pass pass[PASSES_MOST];
    int32_t            pass_threads; /* that passes ask for; 0: as the option says */
    int                forward_only, weighs, starved;
    int                progresses;                   /* 1: progress() alone brings in all messages of a pass */
    int64_t            fail_at;                      /* starved: the allocation, behind the setup, that fails */
    int64_t            plan_peak, plan_stays;        /* weighs: bytes that the plan needs on all ranks */
    int64_t            reserved;                     /* columns that the plan is made for */
    int32_t            found[4096];                  /* the owner of each vertex in the result */
    int64_t            rows[RANKS_MOST][RANKS_MOST]; /* that go from one rank to another */
    graft_graph_info   graph_info[RANKS_MOST + 1];   /* as rank 0 sees them; the last one is that of all */
    graft_plan_info    plan_info[RANKS_MOST + 1];
    char               explained[4096]; /* the graph, as the last rank sees it */
};

/** Rows first to end - 1 are those of the slice of a rank. */
void spread_slice(enum slicing slicing, int64_t n, int32_t n_ranks, int32_t rank, int64_t *first, int64_t *end);

/** Make the kernels known to the context of a rank, and set its options. */
int32_t spread_setup(struct rank *rank, const struct spread *spread);

/** The graph of a rank from its slice. */
int32_t spread_graph(struct rank *rank, const struct spread *spread, graft_graph **graph);

/** Make the plan; with spread->weighs, measure how much memory all ranks together take for it. */
int32_t spread_plan(struct rank *rank, struct spread *spread, graft_graph *graph, const graft_plan_args *args,
                    graft_plan **plan);

/** A body for ranks_init() whose arg is a spread: all passes. */
int32_t spread_body(struct rank *rank);

/** Run all passes while allocation spread->fail_at of one rank fails. 1: it did, and all ranks said so; 0: there are no
 *  more; -1: something is wrong. */
int spread_starve(struct spread *spread, int32_t n_ranks, int32_t rank, char fault[512]);

/** Make a graph of n vertices, its transpose, x [n x width], and `want` [2 x n x width]: the sums over neighbours,
 *  forward and transposed, without rounding errors. */
void spread_make_sums(uint64_t seed, int64_t n, int64_t width, struct sample_csr *graph, struct sample_csr *transposed,
                      float *x, float *want);

#endif
