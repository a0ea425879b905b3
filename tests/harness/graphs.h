/* Graphs for tests of partitions, and the costs of a partition by plain counts, which share no code with the plugin.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PARTITION_GRAPHS_H
#define PARTITION_GRAPHS_H

#include "oracle/oracle.h"
#include "oracle/sample.h"
#include "partition/partition.h"

/** A square sparse matrix in CSR that owns its arrays. Column indices are int32 or int64. */
struct graph {
    const char     *name;
    graft_csr       rows;
    int64_t        *row_ptr;
    void           *col_idx;
    uint8_t        *train_mask;
    struct gr_slice slice; /* the slice that is the whole graph */
};

enum { GRAPHS = 11 };

/** Make one of the graphs, by number: ring, star, no entries, symmetric power law, directed power law with loops and
 *  repeated entries, chain of cliques under shuffled names, grid, complete graph, three vertices, one vertex, no
 *  vertex. */
void graph_init(struct graph *graph, int which);
void graph_fini(struct graph *graph);

/** Read a data set of folder GRAFT_TEST_DATA without changing it. The result is 0 if there is no such data set. */
int graph_read(struct graph *graph, graft_context *context, const char *name);

/** Rows first to first + count - 1 of a graph, with their own row pointers. */
struct graph_slice {
    struct gr_slice slice;
    graft_csr       rows;
    int64_t        *row_ptr;
};
void graph_cut(struct graph_slice *cut, const struct graph *graph, int64_t first, int64_t count);
void graph_cut_fini(struct graph_slice *cut);

/** Compare a measure of the library with a table that says which part needs which vertices. The result is NULL, or
 *  names the first number that is wrong. */
const char *graph_measure_fault(const struct graph *graph, const struct gr_partition_measure *measure,
                                const int32_t *owner);

/** The most of a share (vertices, entries or training vertices) that one part may have: GR_PARTITION_LIMIT times the
 *  mean, or the mean rounded up if that is more. */
int64_t graph_allowed(const struct graph *graph, int share, int32_t parts);

/** The largest excess of a part over graph_allowed(), over all shares; 0 if no part has too much. */
int64_t graph_overload(const struct graph *graph, const int32_t *owner, int32_t parts);

/** The number of parts without a vertex, or -1 if an owner is out of range. */
int32_t graph_empty_parts(const struct graph *graph, const int32_t *owner, int32_t parts);

/** The number of entries whose row and column belong to different parts. */
int64_t graph_cut_entries(const struct graph *graph, const int32_t *owner);

#endif
