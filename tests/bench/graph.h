/* Graphs to measure with: made from a few numbers, the same on every machine, or read from a data set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_GRAPH_H
#define BENCH_GRAPH_H

#include "graft_host.h"

struct bench_graph {
    int64_t  n, nnz;
    int64_t  largest; /* entries of the longest row */
    int64_t *row_ptr; /* [n + 1] */
    int32_t *col_idx; /* [nnz] ascending in each row of a generated graph */
};

/** Create the graph that `what` names, or exit:
 *
 *     rmat:SCALE:EDGES   2^SCALE vertices, EDGES drawn from the recursive model (Chakrabarti et al., SDM 2004) with
 *                        quadrants 0.57, 0.19, 0.19, 0.05; then the names of the vertices are shuffled
 *     uniform:N:EDGES    N vertices, both ends of EDGES edges drawn uniformly
 *     anything else      a folder or file for graft.data/1, unchanged
 *
 * Drawn edges are stored in both directions, once each, without loops. */
void bench_graph_init(struct bench_graph *graph, const char *what, const graft_api *api, int threads);

/** Renumber the vertices with a method of matrix_order of graft.mxm/1, or exit. */
void bench_graph_order(struct bench_graph *graph, const char *method, const graft_api *api, int threads);
void bench_graph_fini(struct bench_graph *graph);

/** Which vertices of the data set `what` are trained on; NULL for a generated graph. The caller frees it. */
uint8_t *bench_graph_trained(const struct bench_graph *graph, const char *what, const graft_api *api);

/** Write the graph into the folder: edges.npy and labels.npy (all -1; it has the number of vertices), which together
 *  are a data set for graft.data/1, and indptr.npy, the row pointers: row 0 of edges.npy is then the columns. */
void bench_graph_export(const struct bench_graph *graph, const char *folder);

#endif
