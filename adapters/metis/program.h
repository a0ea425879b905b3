/* graft-metis: reads a graph from standard input, and converts it to the form that METIS requires.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_METIS_PROGRAM_H
#define GRAFT_METIS_PROGRAM_H

#include "draft/graft_partitioner.h"

#include <metis.h>
#include <stddef.h>

/** The largest number of vertices, entries and weights that METIS can count. It is built with indices of 32 or of 64
 * bits. */
static inline int64_t metis_most(void)
{
    return IDX_MAX;
}

/** The graph as it was read. */
struct metis_input {
    graft_partitioner_input head;
    int64_t                *row_ptr; /* [n_vertices + 1] */
    idx_t                  *column;  /* [n_edges] */
    idx_t                  *weight;  /* [n_vertices x head.n_weights] weights, without columns that are all zero */
};

/** The graph for METIS. It has no loops, and every edge occurs once in each direction. */
struct metis_graph {
    idx_t *begin;     /* [n_vertices + 1] */
    idx_t *neighbour; /* [begin[n_vertices]] neighbours of all vertices */
};

/** Write the message to standard error and exit with the code. */
__attribute__((format(printf, 2, 3), noreturn)) void metis_die(int code, const char *format, ...);

/** Allocate zeroed memory; never NULL. */
void *metis_new(int64_t count, size_t bytes);

/** Read and check standard input to its end. A request for information has only the head. */
void metis_read(struct metis_input *input);

/** Make the graph for METIS. Rows and columns of the input are freed early, to save memory. */
void metis_symmetrize(struct metis_graph *graph, struct metis_input *input);

#endif
