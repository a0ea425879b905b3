/* Distributes a graph and feature matrices over ranks. Each rank takes its slice and makes passes through the tables of
 * graft.graph/1 and graft.aggregate/1. Then the results of all ranks are joined.
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
    char          *out; /* [n x width] rows of the output before the pass, and after it */
};

struct spread {
    const graft_csr   *graph;
    graft_dtype        dtype;
    const char        *x; /* [n x x_width] features; a pass uses as many of the first columns as it needs */
    int64_t            x_width;
    int                halves; /* whether passes read x as bfloat16; then the lower halves of its floats are 0 */
    const char        *scale;  /* [n] scale of each vertex */
    enum slicing       slicing;
    const char        *partition, *cover, *threads;
    const int32_t     *owner;      /* [n] owner of each vertex that the host passes, or NULL */
    const uint8_t     *train_mask; /* [n] which vertices are training vertices, or NULL */
    const char *const *settings;   /* further options as an array key, value, ..., NULL; or NULL */
    int                n_passes;
    struct spread_pass pass[PASSES_MOST];
    int32_t            pass_threads; /* number of threads that passes ask for; 0 for the option's number */
    int                forward_only, weighs, starved;
    int                progresses; /* whether progress() receives all messages of a pass before end() */
    /* With spread_starve(): which allocation after the setup fails. */
    int64_t            fail_at;
    /* With `weighs`: bytes that the plan needs while it is made, and bytes that it keeps, over all ranks. */
    int64_t            plan_peak, plan_stays;
    int64_t            reserved;                     /* number of columns for which the plan has reserved memory */
    int32_t            found[4096];                  /* owner of each vertex, as the library reports it */
    int64_t            rows[RANKS_MOST][RANKS_MOST]; /* number of rows that each rank sends to each other rank */
    /* The result of graph_info() for each rank; the last element is the sum over all ranks. */
    graft_graph_info   graph_info[RANKS_MOST + 1];
    graft_plan_info    plan_info[RANKS_MOST + 1];
    char               explained[4096]; /* text of explain() for the graph, on the last rank */
};

/** The slice of a rank, which consists of rows `first` up to end - 1. */
void spread_slice(enum slicing slicing, int64_t n, int32_t n_ranks, int32_t rank, int64_t *first, int64_t *end);

/** Register the kernels with the context of a rank, and set its options. */
int32_t spread_setup(struct rank *rank, const struct spread *spread);

/** Make the distributed graph of a rank from its slice. */
int32_t spread_graph(struct rank *rank, const struct spread *spread, graft_graph **graph);

/** Make the plan. With spread->weighs its memory on all ranks is measured. */
int32_t spread_plan(struct rank *rank, struct spread *spread, graft_graph *graph, const graft_plan_args *args,
                    graft_plan **plan);

/** A body for ranks_init() whose argument is a struct spread. It makes all passes. */
int32_t spread_body(struct rank *rank);

/** Make all passes while allocation number spread->fail_at of one rank fails. The result is 1 if it failed and all
 * ranks reported it, 0 if there are fewer allocations, and -1 for an error. */
int spread_starve(struct spread *spread, int32_t n_ranks, int32_t rank, char fault[512]);

/** Make a graph of n vertices, its transpose, the features x [n x width], and the expected sums over neighbours,
 * forward and transposed, in `want` [2 x n x width]. Values are small integers, so that the sums have no rounding
 * errors. */
void spread_make_sums(uint64_t seed, int64_t n, int64_t width, struct sample_csr *graph, struct sample_csr *transposed,
                      float *x, float *want);

#endif
