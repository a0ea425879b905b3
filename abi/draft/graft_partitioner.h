/* The input and output of a program that partitions graphs, such as graft-metis. A draft.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The library starts it with no arguments, writes the graph to its standard input, closes that, and reads from its
 * standard output until the end. All numbers are in the byte order of the machine.
 *
 *     input    graft_partitioner_input
 *              int64_t row_ptr[n_vertices + 1]                nondecreasing, from 0 to n_edges
 *              int64_t column[n_edges]                      each in 0 .. n_vertices-1, in any order, may repeat
 *              int64_t weight[n_vertices x n_weights]         not negative; row-major
 *     output   graft_partitioner_output
 *              int32_t owner[n_vertices]                      each in 0 .. n_parts-1
 *
 * An entry (v, u) means that v gathers from u. A row costs the same in both directions, so the program may treat the
 * graph as undirected. Each column of weights should be balanced over the parts. Parts may be empty. On failure the
 * program writes one sentence to standard error and exits with one of the codes below.
 *
 * The program leads a process group. The kernel kills the program and all processes of this group when the host ends,
 * or when the call ends or is cancelled. Descriptor 3 serves this purpose only: the program and its processes should
 * leave it open. No other file of the host is open.
 *
 * The id of a draft may get a new revision with every release. The magic numbers below end in the revision. */
#ifndef GRAFT_PARTITIONER_H
#define GRAFT_PARTITIONER_H

#include <stdint.h>

#define GRAFT_PARTITIONER_ID "graft.draft.partitioner/1"

/** First number of the input: "graftPI1" on a machine that stores the low byte first. */
#define GRAFT_PARTITIONER_INPUT UINT64_C(0x3149507466617267)
/** First number of the output: "graftPO1". */
#define GRAFT_PARTITIONER_OUTPUT UINT64_C(0x314F507466617267)

typedef struct graft_partitioner_input {
    uint64_t magic;    /**< GRAFT_PARTITIONER_INPUT */
    uint32_t reserved; /**< 0, or GRAFT_PARTITIONER_ASK */
    uint32_t n_weights;
    int64_t  n_parts; /**< 1 to 2^31-1 */
    int64_t  n_vertices, n_edges;
} graft_partitioner_input;

typedef struct graft_partitioner_output {
    uint64_t magic; /**< GRAFT_PARTITIONER_OUTPUT */
    int64_t  n_vertices;
} graft_partitioner_output;

/** Value of `reserved` in a query: the program checks that it can partition a graph of these sizes, and partitions
 *  nothing. 0: it partitions the graph. A query and its output have no arrays after their structs. A program that
 *  cannot partition such a graph, or does not know this value, fails. The library sends a query before it gathers a
 *  graph with more than 2^31-1 entries. */
#define GRAFT_PARTITIONER_ASK UINT32_C(1)

/** Exit codes of the program. */
enum {
    GRAFT_PARTITIONER_OK = 0,
    GRAFT_PARTITIONER_BAD_INPUT = 2, /**< the input is not as described above */
    GRAFT_PARTITIONER_TOO_LARGE = 3, /**< the input is valid, but too large for the program */
    GRAFT_PARTITIONER_FAILED = 4,    /**< the library behind it failed */
    GRAFT_PARTITIONER_NO_MEMORY = 5,
    GRAFT_PARTITIONER_NO_IO = 6 /**< reading or writing failed */
};

#endif
