/* Maximum matchings between the targets and the sources of a cut.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COVER_MATCHING_H
#define GR_COVER_MATCHING_H

#include "base/memory.h"
#include "cover/cover.h"

/** Zeroed, it is empty and can be freed. */
struct gr_matching {
    int64_t  size;      /* matched pairs */
    int32_t *of_target; /* [n_targets] the partner, or -1 */
    int32_t *of_source; /* [n_sources] the partner, or -1 */

    /* [n_sources] 0, or 1 + the number of pairs on a shortest path that leads here from a source without a partner, by
     * any edge to a target and from there to its partner. */
    int32_t *level;

    /* The cut by source. */
    int64_t *begin;  /* [n_sources + 1] and one more that is for building */
    int32_t *target; /* [begin[n_sources]] */

    struct gr_pool pool; /* has all of these */
};

/** The cut by source, in blocks of the pool: begin[n_sources + 1], and one more that is for building; targets rise.
 *  ERR_NOMEM. */
int32_t gr_cut_by_source(const graft_context *context, const struct gr_cut *cut, struct gr_pool *pool, int64_t **begin,
                         int32_t **target, graft_error *error);

/** Find a maximum matching. Deterministic. ERR_NOMEM, and then it can be freed. */
int32_t gr_matching_find(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                         graft_error *error);
void    gr_matching_fini(const graft_context *context, struct gr_matching *matching);

/** Its beginning: pair the ends of edges that some maximum matching has, as long as such are in sight, and others when
 *  not. Where the edges form a forest and none repeats, this is a maximum matching. Begins with `begin` and `target`
 *  alone. */
int32_t gr_matching_greedy(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                           graft_error *error);

#endif
