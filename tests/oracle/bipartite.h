/* Bipartite graphs for tests: built edge by edge, of a given shape, or random.
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

/** Make a graph with the same edges in another order and with other numbers of vertices; new_target and new_source are
 *  for free(). */
void bipartite_shuffle(struct bipartite *shuffled, const struct bipartite *graph, struct sample *sample,
                       int32_t **new_target, int32_t **new_source);

/** Make a path, or with `closed` a cycle, of n vertices, targets and sources in turn. */
void bipartite_path(struct bipartite *graph, int64_t n, int closed);

/** Make a board of side x side squares (side even), each joined to its neighbours; black squares are targets, white
 *  squares sources. */
void bipartite_board(struct bipartite *graph, int64_t side);

/** The same without a random sixth of the edges, in a random order and with random numbers of vertices. A greedy
 *  matching of it is rarely a maximum matching. */
void bipartite_torn_board(struct bipartite *graph, struct sample *sample, int64_t side);

/** Make a graph of random edges. Higher `skew` makes low numbers more likely, so that there are hubs; some edges
 *  repeat; the last vertices of both sides have no edges. */
void bipartite_random(struct bipartite *graph, struct sample *sample, int64_t n_targets, int64_t n_sources,
                      int64_t edges, int skew);

#endif
