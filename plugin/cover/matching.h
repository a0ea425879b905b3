/* Maximum matchings between the targets and the sources of a cut.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "cover/cover.h"

/** A matching. Zeroed, it is empty, and fini() accepts it. */
struct gr_matching {
    int64_t  size;      /* number of matched pairs */
    int32_t *of_target; /* [n_targets] the partner, or -1 */
    int32_t *of_source; /* [n_sources] the partner, or -1 */

    /* [n_sources] 0 if no alternating path leads from an unmatched source to this one; else 1 + the number of matched
     * pairs on a shortest such path. */
    int32_t *level;

    /* The edges, sorted by source. */
    int64_t *begin;  /* [n_sources + 1] offsets in `target` of each source, and one more element for building */
    int32_t *target; /* [begin[n_sources]] targets of the edges */

    struct gr_pool pool; /* owns all of these arrays */
};

/** Find a maximum matching. Deterministic. Always call gr_cover_matching_fini(). \return OK; ERR_NOMEM */
int32_t gr_cover_matching_find(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                               graft_error *error);
void    gr_cover_matching_fini(const graft_context *context, struct gr_matching *matching);
