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
    struct gr_slice slice; /* the whole graph as one slice */
};

enum { GRAPHS = 11 };

/** Make one of the test graphs by its number. They are a ring, a star, a graph without entries, a symmetric power law
 * graph, a directed power law graph with loops and repeated entries, a chain of cliques with permuted vertices, a grid,
 * a complete graph, and graphs of three vertices, one vertex and no vertex. */
void graph_init(struct graph *graph, int which);
void graph_fini(struct graph *graph);

/** Read a data set of folder GRAFT_TEST_DATA, which is not changed. The result is 0 if there is no such data set. */
int graph_read(struct graph *graph, graft_context *context, const char *name);

/** Rows `first` up to first + count - 1 of a graph, with their own row pointers. */
struct graph_slice {
    struct gr_slice slice;
    graft_csr       rows;
    int64_t        *row_ptr;
};
void graph_cut(struct graph_slice *cut, const struct graph *graph, int64_t first, int64_t count);
void graph_cut_fini(struct graph_slice *cut);

/** Compare the library's measure of a partition with a table of the vertices that each part needs. The result is NULL,
 * or a sentence about the first wrong number. */
const char *graph_measure_fault(const struct graph *graph, const struct gr_partition_measure *measure,
                                const int32_t *owner);

/** The largest share of vertices, entries or training vertices that one part may have: the mean times
 * GR_PARTITION_LIMIT, or the mean rounded up if that is more. */
int64_t graph_allowed(const struct graph *graph, int share, int32_t parts);

/** The largest amount by which a part exceeds graph_allowed(), over all kinds of shares; 0 if no part exceeds it. */
int64_t graph_overload(const struct graph *graph, const int32_t *owner, int32_t parts);

/** The number of parts without a vertex, or -1 if an owner is out of range. */
int32_t graph_empty_parts(const struct graph *graph, const int32_t *owner, int32_t parts);

/** The number of entries whose row and column belong to different parts. */
int64_t graph_cut_entries(const struct graph *graph, const int32_t *owner);

#endif
