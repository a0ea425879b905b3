/* The first matching: the heuristic of Karp and Sipser (FOCS 1981). A vertex with a single possible partner is matched
 * with it, which is always optimal; if there is no such vertex, a target is matched with the source that has the fewest
 * possible partners.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "cover/matching.h"

struct greedy {
    const struct gr_cut *cut;
    struct gr_matching  *matching;
    int32_t             *target_degree; /* [n_targets] edges to unmatched sources */
    int32_t             *source_degree; /* [n_sources] edges to unmatched targets */
    int32_t
        *single; /* [n_targets + n_sources] a stack of vertices whose degree fell to 1: target t, or ~s for source s */
    int64_t n_single;
};

static void decrement_sources(struct greedy *g, int32_t t)
{
    for (int64_t e = g->cut->row_ptr[t]; e < g->cut->row_ptr[t + 1]; e++) {
        const int32_t s = g->cut->source[e];

        if (g->matching->of_source[s] >= 0) continue;
        if (--g->source_degree[s] == 1) g->single[g->n_single++] = ~s;
    }
}

static void decrement_targets(struct greedy *g, int32_t s)
{
    const struct gr_matching *matching = g->matching;

    for (int64_t e = matching->begin[s]; e < matching->begin[s + 1]; e++) {
        const int32_t t = matching->target[e];

        if (matching->of_target[t] >= 0) continue;
        if (--g->target_degree[t] == 1) g->single[g->n_single++] = t;
    }
}

static void match_pair(struct greedy *g, int32_t t, int32_t s)
{
    GR_ASSERT(g->matching->of_target[t] < 0 && g->matching->of_source[s] < 0);
    g->matching->of_target[t] = s;
    g->matching->of_source[s] = t;
    g->matching->size++;
    decrement_sources(g, t);
    decrement_targets(g, s);
}

/* The unmatched source of a target with the fewest possible partners. The target must have an unmatched source. */
static int32_t partner_of_target(const struct greedy *g, int32_t t)
{
    int32_t best = -1;

    for (int64_t e = g->cut->row_ptr[t]; e < g->cut->row_ptr[t + 1]; e++) {
        const int32_t s = g->cut->source[e];

        if (g->matching->of_source[s] >= 0) continue;
        if (best < 0 || g->source_degree[s] < g->source_degree[best]) best = s;
    }
    return best;
}

/* The first unmatched target of a source, which must have one. */
static int32_t partner_of_source(const struct greedy *g, int32_t s)
{
    int64_t e = g->matching->begin[s];

    while (g->matching->of_target[g->matching->target[e]] >= 0) e++;
    return g->matching->target[e];
}

/* Vertices that were matched, or lost their last possible partner, since they were pushed are skipped. */
static void match_singles(struct greedy *g)
{
    while (g->n_single > 0) {
        const int32_t vertex = g->single[--g->n_single];

        if (vertex >= 0) {
            if (g->matching->of_target[vertex] < 0 && g->target_degree[vertex] == 1)
                match_pair(g, vertex, partner_of_target(g, vertex));
        } else if (g->matching->of_source[~vertex] < 0 && g->source_degree[~vertex] == 1) {
            match_pair(g, partner_of_source(g, ~vertex), ~vertex);
        }
    }
}

static void count_degrees(struct greedy *g)
{
    for (int64_t s = 0; s < g->cut->n_sources; s++) {
        g->source_degree[s] = (int32_t)(g->matching->begin[s + 1] - g->matching->begin[s]);
        if (g->source_degree[s] == 1) g->single[g->n_single++] = ~(int32_t)s;
    }
    for (int64_t t = 0; t < g->cut->n_targets; t++) {
        g->target_degree[t] = (int32_t)(g->cut->row_ptr[t + 1] - g->cut->row_ptr[t]);
        if (g->target_degree[t] == 1) g->single[g->n_single++] = (int32_t)t;
    }
}

int32_t gr_cover_matching_greedy(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                                 graft_error *error)
{
    struct greedy  g = { .cut = cut, .matching = matching };
    struct gr_pool pool = { 0 };
    int32_t        rc = GRAFT_OK;

    GR_TRY_DONE(GR_POOL_NEW(context, &pool, g.target_degree, cut->n_targets, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, g.source_degree, cut->n_sources, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, g.single, cut->n_targets + cut->n_sources, error));
    count_degrees(&g);
    match_singles(&g);
    for (int64_t t = 0; t < cut->n_targets; t++) {
        if (matching->of_target[t] >= 0 || g.target_degree[t] == 0) continue;
        match_pair(&g, (int32_t)t, partner_of_target(&g, (int32_t)t));
        match_singles(&g);
    }
done:
    gr_pool_fini(context, &pool);
    return rc;
}
