/* Bipartite graphs for tests of vertex covers: built edge by edge, of a known shape, or random.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BIPARTITE_H
#define BIPARTITE_H

#include "oracle.h"
#include "sample.h"

/** A graph that is built edge by edge. All zeros is the empty graph. The numbers of vertices grow with the edges; they
 * can be set higher for vertices without edges. */
struct bipartite {
    int64_t n_targets, n_sources, count, room;
    int32_t (*edge)[2]; /* pairs (target, source) */
    int64_t                *row_ptr;
    int32_t                *source;
    struct oracle_bipartite view; /* the graph by rows, after bipartite_finish() */
};

void bipartite_add(struct bipartite *graph, int64_t target, int64_t source);

/** Sort the edges into rows. No edge can be added afterwards. */
void bipartite_finish(struct bipartite *graph);
void bipartite_fini(struct bipartite *graph);

/** Copy a graph with its edges in another order and its vertices renumbered. The caller frees new_target and
 *  new_source, which have the new numbers. */
void bipartite_shuffle(struct bipartite *shuffled, const struct bipartite *graph, struct sample *sample,
                       int32_t **new_target, int32_t **new_source);

/** Make a path of n vertices, which are alternately targets and sources. With `closed` it is a cycle. */
void bipartite_path(struct bipartite *graph, int64_t n, int closed);

/** Make a board of side x side squares (side is even), each of which is joined to its four neighbours. Black squares
 *  are targets and white ones sources. */
void bipartite_board(struct bipartite *graph, int64_t side);

/** Make such a board, remove a random sixth of its edges, and permute edges and vertices. A greedy matching of it is
 * rarely maximum. */
void bipartite_torn_board(struct bipartite *graph, struct sample *sample, int64_t side);

/** Make random edges. A higher `skew` makes low numbers more likely, so that some vertices are hubs. Some edges repeat,
 *  and the last vertices of both sides have none. */
void bipartite_random(struct bipartite *graph, struct sample *sample, int64_t n_targets, int64_t n_sources,
                      int64_t edges, int skew);

#endif
