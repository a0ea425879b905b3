/* Selects the rows that one rank sends to another. Each cut edge is served by the raw row of its source (post) or by
 * a partial sum for its target (pre). The smallest set of rows of both kinds together is a minimum vertex cover of
 * the cut edges (SuperGCN, section "Subgraph construction based on a hybrid of pre- and post-aggregation", Algorithm
 * 2).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

/** The cut edges from one rank to another: rows of the receiving rank (targets), and the vertices of the sending rank
 *  from which they gather (sources). Each side is numbered from 0, and may have members without an edge. */
struct gr_cut {
    int64_t        n_targets, n_sources; /* at most INT32_MAX */
    const int64_t *row_ptr;              /* [n_targets + 1] offsets in `source` of each target, beginning with 0 */
    const int32_t *source;               /* [row_ptr[n_targets]] sources in any order; a row may repeat them */
};

enum gr_cover_kind {
    GR_COVER_HYBRID, /* a minimum vertex cover */
    GR_COVER_PRE,    /* every target that has an edge: the sender aggregates */
    GR_COVER_POST    /* every source that has an edge: the receiver aggregates */
};

/** The name of a kind in option halo.cover; "unknown" for another number. */
const char *gr_cover_name(int32_t kind);

/** Find a vertex cover of the cut edges: at least one end of every edge is in it.
 *
 *  An edge is served by its source if the source is in the cover ("post": the raw row is sent once, and the receiver
 *  aggregates it), else by its target ("pre": the sender aggregates). If both ends are in the cover the source serves
 *  it, because a raw row is exact where a partial sum may be rounded or quantized over a wider range, and costs the
 *  sender no work. Every member of the cover serves an edge, so no row is empty.
 *
 *  With GR_COVER_HYBRID, size equals the size of a maximum matching (Koenig 1931), a lower bound for any choice of
 *  rows. Of all minimum covers this one has the most sources: it contains the sources of every minimum cover. So it
 *  depends on the edges only, not on their order or on the numbering.
 *
 *  \param[in] cut The cut edges, which are not checked.
 *  \param[out] source_in [n_sources] 1 if the source is in the cover, else 0.
 *  \param[out] target_in [n_targets] 1 if the target is in the cover, else 0.
 *  \param[out] size The number of members of the cover.
 *  \return OK; ERR_NOMEM, and the outputs are unchanged.
 *
 *  Several threads may call it at once with outputs and errors of their own. Temporary memory for E edges, T targets
 *  and S sources: 4 E + 4 T + 12 S + max(8 T + 8 S, 20 S) bytes and less than 2 KiB; none for PRE and POST. Time O(E
 *  sqrt(T + S)), in practice a small multiple of E. No recursion. */
int32_t gr_cover_find(const graft_context *context, const struct gr_cut *cut, enum gr_cover_kind kind,
                      uint8_t *source_in, uint8_t *target_in, int64_t *size, graft_error *error);
