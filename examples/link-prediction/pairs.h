/* Pairs of vertices with an edge: those for training, and those that the model must find.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PAIRS_H
#define PAIRS_H

#include "host.h"

enum part { PART_TRAIN, PART_VALIDATION, PART_TEST, PARTS };

/** The pairs of one part of the split, by one of their vertices: vertex u has targets target[begin[u]] to
 * target[begin[u + 1] - 1]. */
struct pairs {
    int64_t *begin; /* [n + 1] */
    int32_t *target;
};

struct split {
    const graft_csr *whole;
    int64_t          n;
    struct pairs     part[PARTS];
    graft_csr        graph; /* the graph of the training edges, which is all that the model sees */
    int64_t         *row_ptr;
    int32_t         *col_idx;
};

/** Divide the pairs. Every pair with an edge in one direction or both, except loops, belongs to one part, which is
 * drawn by its vertices: 5 % to validation, 10 % to test, and the rest to training. */
int32_t split_create(struct host *host, const graft_csr *whole, struct split *split);
void    split_free(struct split *split);

/** Whether the graph has an edge between the two vertices, in any direction. */
int has_pair(const graft_csr *graph, int32_t u, int32_t v);

static inline int64_t count_pairs(const struct split *split, enum part part)
{
    return split->part[part].begin[split->n];
}

#endif
