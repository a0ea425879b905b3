/* The graphs of the benchmarks. They are generated from a few numbers, identically on every machine, or read from a
 * data set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include "graft_host.h"

struct bench_graph {
    int64_t  n, nnz;
    int64_t  largest; /* number of entries of the longest row */
    int64_t *row_ptr; /* [n + 1] */
    int32_t *col_idx; /* [nnz] columns, ascending within each row of a generated graph */
};

/** Create the graph that `what` names. Exits if that is impossible. The names are:
 *
 *     rmat:SCALE:EDGES   2^SCALE vertices, EDGES drawn from the recursive model (Chakrabarti et al., SDM 2004) with
 *                        quadrant probabilities 0.57, 0.19, 0.19 and 0.05, and randomly renumbered vertices
 *     uniform:N:EDGES    N vertices, and EDGES edges whose end vertices are drawn uniformly
 *     anything else      a folder or file that graft.data/1 reads, without changes
 *
 * Each generated edge is stored once in each direction. Duplicates and loops are removed. */
void bench_graph_init(struct bench_graph *graph, const char *what, const graft_api *api, int threads);

/** Renumber the vertices with a method of matrix_order() of graft.mxm/1. Exits if that fails. */
void bench_graph_order(struct bench_graph *graph, const char *method, const graft_api *api, int threads);
void bench_graph_fini(struct bench_graph *graph);

/** Returns the mask of the training vertices of the data set `what`, or NULL for a generated graph. The caller frees
 *  the mask. */
uint8_t *bench_graph_trained(const struct bench_graph *graph, const char *what, const graft_api *api);

/** Write the graph to three files in the folder. edges.npy and labels.npy together are a data set that graft.data/1
 *  reads; all labels are -1, and their number is the number of vertices. indptr.npy has the row pointers, with which
 *  row 0 of edges.npy is the array of columns of a CSR matrix. */
void bench_graph_export(const struct bench_graph *graph, const char *folder);

#endif
