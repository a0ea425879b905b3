/* Which rows one rank sends to another: each cut edge is served by the raw row of its source, or by a partial sum for
 * its target, and the rows of both sorts together are as few as can be: a minimum vertex cover of the cut edges
 * (SuperGCN, section "Subgraph construction based on a hybrid of pre- and post-aggregation", Algorithm 2).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COVER_COVER_H
#define GR_COVER_COVER_H

#include "base/context.h"

/** The cut edges from one rank to another: the rows of the receiving rank with the vertices of the sending rank they
 *  gather from. Both are numbered among themselves, from 0; either may have members without an edge, and none with more
 *  than INT32_MAX. */
struct gr_cut {
    int64_t        n_targets, n_sources; /* at most INT32_MAX */
    const int64_t *row_ptr;              /* [n_targets + 1] from 0 */
    const int32_t *source;               /* [row_ptr[n_targets]] in any order; may repeat in a row */
};

enum gr_cover_kind {
    GR_COVER_HYBRID, /* a minimum vertex cover */
    GR_COVER_PRE,    /* every target that has an edge: the sender aggregates */
    GR_COVER_POST    /* every source that has an edge: the receiver aggregates */
};

/** As option halo.cover calls it; "unknown" of a kind that there is not. */
const char *gr_cover_name(int32_t kind);

/** Find a vertex cover of the cut edges: of every edge at least one end is in it.
 *
 *  An edge goes by its source if the source is in the cover ("post": the row is sent once, as it is, and aggregated by
 *  the receiver), else by its target ("pre": the sender aggregates). With both ends in the cover the source has it,
 *  for a raw row is exact, also where a partial sum would be rounded or quantised over a wider range, and adds no
 *  work at the sender. Every member of the cover has an edge to serve, so no message row is empty.
 *
 *  With GR_COVER_HYBRID, size is that of a maximum matching (Koenig 1931), below which no choice of rows can go. There
 *  are often several covers of this size. This one has the most sources: those of any other minimum cover are among
 *  its sources. So it depends on the edges alone, and not on their order or on how the ends are numbered.
 *
 * \param[in]  cut        Trusted.
 * \param[out] source_in  [n_sources] 1 if the source is in the cover, else 0.
 * \param[out] target_in  [n_targets] The same of the targets.
 * \param[out] size       Members of the cover.
 * \return OK; ERR_NOMEM. Outputs stay as they were on failure.
 *
 *  May be called by several threads at once, each with outputs and an error of its own. Memory while it works, with E
 *  edges in T rows and S sources: 4 E + 4 T + 12 S + max(8 T + 8 S, 20 S) bytes and less than 2 KiB; none for PRE and
 *  POST. The cut itself and the outputs have 4 E + 9 T + S. Time O(E sqrt(T + S)), in practice a small multiple of E.
 *  No recursion. */
int32_t gr_cover_find(const graft_context *context, const struct gr_cut *cut, enum gr_cover_kind kind,
                      uint8_t *source_in, uint8_t *target_in, int64_t *size, graft_error *error);

#endif
