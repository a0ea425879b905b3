/* Graphs to cut in parts, and plain counts of the costs of a cut, which share no code with the plugin.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PARTITION_GRAPHS_H
#define PARTITION_GRAPHS_H

#include "oracle/oracle.h"
#include "oracle/sample.h"
#include "partition/partition.h"

/** A square matrix by rows that owns its arrays; columns are int32 or int64. */
struct graph {
    const char     *name;
    graft_csr       rows;
    int64_t        *row_ptr;
    void           *col_idx;
    uint8_t        *train_mask;
    struct gr_slice slice; /* all of it */
};

enum { GRAPHS = 11 };

/** Number `which` of: ring, star, without entries, a power law in both directions, a power law as it comes (directed,
 *  with loops and entries that repeat), cliques in a chain under shuffled names, a grid, a complete graph, three
 *  vertices, one vertex, none. */
void graph_init(struct graph *graph, int which);
void graph_fini(struct graph *graph);

/** A data set of the folder GRAFT_TEST_DATA, as it is stored; 0 if it is missing. */
int graph_read(struct graph *graph, graft_context *context, const char *name);

/** Rows first .. first + count - 1, with separate row pointers. */
struct graph_slice {
    struct gr_slice slice;
    graft_csr       rows;
    int64_t        *row_ptr;
};
void graph_cut(struct graph_slice *cut, const struct graph *graph, int64_t first, int64_t count);
void graph_cut_fini(struct graph_slice *cut);

/** What is wrong with a measure of the whole graph, compared with tables of which part needs which vertices; NULL if
 *  nothing is. */
const char *graph_measure_fault(const struct graph *graph, const struct gr_partition_measure *measure,
                                const int32_t *owner);

/** The most that a part may have of a share: GR_PARTITION_LIMIT of the mean, or the mean rounded up. */
int64_t graph_allowed(const struct graph *graph, int share, int32_t parts);

/** The largest excess of a part over graph_allowed() of any share; 0 if none. */
int64_t graph_overload(const struct graph *graph, const int32_t *owner, int32_t parts);

/** Parts without a vertex; -1 if an owner is out of range. */
int32_t graph_empty_parts(const struct graph *graph, const int32_t *owner, int32_t parts);

/** Entries from one part to another. */
int64_t graph_cut_entries(const struct graph *graph, const int32_t *owner);

#endif
