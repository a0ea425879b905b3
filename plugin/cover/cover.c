/* Vertex covers of the cut edges: all targets, all sources, or a minimum cover.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cover/cover.h"

#include "base/assert.h"
#include "cover/matching.h"

#include <string.h>

static int64_t cover_targets(const struct gr_cut *cut, uint8_t *target_in)
{
    int64_t size = 0;

    for (int64_t t = 0; t < cut->n_targets; t++) {
        target_in[t] = cut->row_ptr[t] < cut->row_ptr[t + 1];
        size += target_in[t];
    }
    return size;
}

static int64_t cover_sources(const struct gr_cut *cut, uint8_t *source_in)
{
    int64_t size = 0;

    for (int64_t e = 0; e < cut->row_ptr[cut->n_targets]; e++) {
        size += !source_in[cut->source[e]];
        source_in[cut->source[e]] = 1;
    }
    return size;
}

/* Make the cover from a maximum matching (Koenig): it has one end of every matched pair. Alternating paths begin at
 * unmatched sources. The cover has the target of every matched pair that such a path reaches, and the source of every
 * other matched pair. */
static int64_t cover_pairs(const struct gr_cut *cut, const struct gr_matching *matching, uint8_t *source_in,
                           uint8_t *target_in)
{
    for (int64_t s = 0; s < cut->n_sources; s++) {
        if (matching->of_source[s] < 0) continue;
        if (matching->level[s] > 0) target_in[matching->of_source[s]] = 1;
        else source_in[s] = 1;
    }
    return matching->size;
}

const char *gr_cover_name(int32_t kind)
{
    static const char *const names[] = { "hybrid", "pre", "post" };

    return kind >= GR_COVER_HYBRID && kind <= GR_COVER_POST ? names[kind] : "unknown";
}

/* Whether every cut edge has a source or a target in the cover. */
static int covers_all(const struct gr_cut *cut, const uint8_t *source_in, const uint8_t *target_in)
{
    for (int64_t t = 0; t < cut->n_targets; t++)
        for (int64_t e = cut->row_ptr[t]; e < cut->row_ptr[t + 1]; e++)
            if (!target_in[t] && !source_in[cut->source[e]]) return 0;
    return 1;
}

int32_t gr_cover_find(const graft_context *context, const struct gr_cut *cut, enum gr_cover_kind kind,
                      uint8_t *source_in, uint8_t *target_in, int64_t *size, graft_error *error)
{
    struct gr_matching matching = { 0 };
    int32_t            rc = GRAFT_OK;

    if (kind == GR_COVER_HYBRID) GR_TRY_DONE(gr_cover_matching_find(context, cut, &matching, error));
    memset(source_in, 0, (uint64_t)cut->n_sources);
    memset(target_in, 0, (uint64_t)cut->n_targets);
    switch (kind) {
    case GR_COVER_PRE: *size = cover_targets(cut, target_in); break;
    case GR_COVER_POST: *size = cover_sources(cut, source_in); break;
    default: *size = cover_pairs(cut, &matching, source_in, target_in); break;
    }
    GR_ASSERT(covers_all(cut, source_in, target_in));
done:
    gr_cover_matching_fini(context, &matching);
    return rc;
}
