/* Bipartite graphs for tests: built edge by edge, of a shape, or random.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BIPARTITE_H
#define BIPARTITE_H

#include "oracle.h"
#include "sample.h"

/** Zeroed, it is empty. Set n_targets and n_sources for vertices without edges; they grow with the edges. */
struct bipartite {
    int64_t n_targets, n_sources, count, room;
    int32_t (*edge)[2]; /* target, source */
    int64_t                *row_ptr;
    int32_t                *source;
    struct oracle_bipartite view; /* after bipartite_finish() */
};

void bipartite_add(struct bipartite *graph, int64_t target, int64_t source);

/** Make the rows; no edge can be added any more. */
void bipartite_finish(struct bipartite *graph);
void bipartite_fini(struct bipartite *graph);

/** Make one with the same edges in another order, under other numbers; new_target and new_source are for free(). */
void bipartite_shuffle(struct bipartite *shuffled, const struct bipartite *graph, struct sample *sample,
                       int32_t **new_target, int32_t **new_source);

/** Make a path, or with `closed` a cycle, of n vertices, targets and sources in turn. */
void bipartite_path(struct bipartite *graph, int64_t n, int closed);

/** Make a board of side x side squares (side even), each joined to those beside it; black ones are targets, white ones
 *  sources. */
void bipartite_board(struct bipartite *graph, int64_t side);

/** The same with a sixth of the edges taken away at random, in a random order and under random numbers. A greedy
 *  matching of it is seldom a maximum one. */
void bipartite_torn_board(struct bipartite *graph, struct sample *sample, int64_t side);

/** Make one of random edges. Low numbers are the likelier the higher `skew` is, so that there are hubs; some edges
 *  repeat; the last of both sides have none. */
void bipartite_random(struct bipartite *graph, struct sample *sample, int64_t n_targets, int64_t n_sources,
                      int64_t edges, int skew);

#endif
