/* Finds maximum matchings in phases of many shortest augmenting paths (Hopcroft and Karp, SIAM J. Comput. 1973), each
 * followed by paths of any length in the rest of the graph (Duff and Wiberg, ACM TOMS 1988), which saves most phases on
 * meshes and other graphs with long paths. Paths begin at unmatched sources, because the last search, which finds no
 * path, determines the cover.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cover/matching.h"

#include "base/assert.h"

/* The initial matching: the heuristic of Karp and Sipser (FOCS 1981). A vertex with a single possible partner is
 * matched with it, which is always optimal; if there is no such vertex, a target is matched with the source that has
 * the fewest possible partners. For a forest without repeated edges the matching is a maximum. */
struct greedy {
    const struct gr_cut *cut;
    struct gr_matching  *matching;
    int32_t             *target_degree; /* [n_targets] number of edges to unmatched sources */
    int32_t             *source_degree; /* [n_sources] number of edges to unmatched targets */
    int32_t
        *single; /* [n_targets + n_sources] a stack of vertices whose degree became 1: target t, or ~s for source s */
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

/* Find the unmatched source of a target that has the fewest possible partners. The target must have an unmatched
 * one. */
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

/* Find the first unmatched target of a source, which must have one. */
static int32_t partner_of_source(const struct greedy *g, int32_t s)
{
    int64_t e = g->matching->begin[s];

    while (g->matching->of_target[g->matching->target[e]] >= 0) e++;
    return g->matching->target[e];
}

/* Match the vertices on the stack. Skip those that were matched, or lost their last possible partner, since they were
 * pushed. */
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

static int32_t match_greedily(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
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

/* Only this many phases also use paths of any length, since the bound of 2 sqrt(T + S) phases holds for shortest
 * paths. */
enum { DEEP_PHASES = 64 };

/* The state of the search; all arrays [n_sources]. A phase accesses only the sources that it reaches. */
struct search {
    struct gr_matching *matching;
    int64_t            *cursor; /* the next edge of each source that this phase has not tried */
    int32_t *queue; /* sources in the order in which they are reached; first the roots, which are unmatched */
    int32_t *path;  /* the sources on the path from a root */
    int64_t  n_roots, n_reached;
    int      deep; /* whether paths may have any length; then level is -1 for visited sources */
    int32_t  last; /* level of the first reached source that has an edge to an unmatched target */
};

static void visit_source(struct search *search, int32_t source, int32_t level)
{
    search->matching->level[source] = level;
    search->cursor[source] = search->matching->begin[source];
    search->queue[search->n_reached++] = source;
}

/* Find the roots: unmatched sources that have edges. */
static void find_roots(struct search *search, int64_t n_sources)
{
    const struct gr_matching *matching = search->matching;

    for (int64_t s = 0; s < n_sources; s++) {
        if (matching->of_source[s] < 0 && matching->begin[s] < matching->begin[s + 1])
            search->queue[search->n_roots++] = (int32_t)s;
    }
}

/* Search breadth-first from all roots up to the first unmatched target. \return whether there is one */
static int find_levels(struct search *search)
{
    const struct gr_matching *matching = search->matching;
    const int64_t             n_roots = search->n_roots;

    for (int64_t i = 0; i < search->n_reached; i++) matching->level[search->queue[i]] = 0;
    search->n_reached = 0;
    for (int64_t i = 0; i < n_roots; i++)
        if (matching->of_source[search->queue[i]] < 0) visit_source(search, search->queue[i], 1);
    search->n_roots = search->n_reached;
    for (int64_t i = 0; i < search->n_reached; i++) {
        const int32_t s = search->queue[i];

        for (int64_t e = matching->begin[s]; e < matching->begin[s + 1]; e++) {
            const int32_t next = matching->of_target[matching->target[e]];

            if (next < 0) {
                search->last = matching->level[s];
                return 1;
            }
            if (matching->level[next] == 0) visit_source(search, next, matching->level[s] + 1);
        }
    }
    return 0;
}

/* Match every source of the path with the target that follows it on the path. */
static void augment_path(struct search *search, int64_t length)
{
    struct gr_matching *matching = search->matching;

    GR_ASSERT(length > 0);
    for (int64_t i = 0; i < length; i++) {
        const int32_t s = search->path[i], t = matching->target[search->cursor[s] - 1];

        matching->of_source[s] = t;
        matching->of_target[t] = s;
    }
    matching->size++;
}

/* Whether a path of `others` sources may continue with this source. A shortest path may visit the next level only;
 * edges that were tried are not tried again in the phase. A target matched in this phase leads to a source whose level
 * is too high, so the paths of a phase are disjoint. A path of any length may visit sources that no other such path has
 * visited. */
static int may_enter(struct search *search, int32_t source, int64_t others)
{
    int32_t *level = search->matching->level;

    if (!search->deep) return others < search->last && level[source] == others + 1;
    if (level[source] < 0) return 0;
    if (level[source] == 0) search->queue[search->n_reached++] = source;
    level[source] = -1;
    search->cursor[source] = search->matching->begin[source];
    return 1;
}

/* Search depth-first from one root to the first unmatched target, and augment along the path. */
static void augment(struct search *search, int32_t root)
{
    const struct gr_matching *matching = search->matching;
    int64_t                   length = 0;

    if (may_enter(search, root, 0)) search->path[length++] = root;
    while (length > 0) {
        const int32_t s = search->path[length - 1];
        int32_t       next;

        if (search->cursor[s] == matching->begin[s + 1]) {
            length--;
            continue;
        }
        next = matching->of_target[matching->target[search->cursor[s]++]];
        if (next < 0) {
            augment_path(search, length);
            return;
        }
        if (may_enter(search, next, length)) search->path[length++] = next;
    }
}

static void augment_roots(struct search *search, int deep)
{
    search->deep = deep;
    for (int64_t i = 0; i < search->n_roots; i++)
        if (search->matching->of_source[search->queue[i]] < 0) augment(search, search->queue[i]);
}

static int32_t run_phases(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                          graft_error *error)
{
    struct search  search = { .matching = matching };
    struct gr_pool pool = { 0 };
    int32_t        rc = GRAFT_OK;

    GR_TRY_DONE(GR_POOL_NEW(context, &matching->pool, matching->level, cut->n_sources, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, search.cursor, cut->n_sources, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, search.queue, cut->n_sources, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, search.path, cut->n_sources, error));
    find_roots(&search, cut->n_sources);
    for (int phase = 0; find_levels(&search); phase++) {
        augment_roots(&search, 0);
        if (phase < DEEP_PHASES) augment_roots(&search, 1);
    }
done:
    gr_pool_fini(context, &pool);
    return rc;
}

/* The edges by source; targets rise. Counts are stored two places ahead, so that begin[s + 1] can move from the first
 * edge of source s to its end while edges are placed. */
static int32_t sort_by_source(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                              graft_error *error)
{
    const int64_t entries = cut->row_ptr[cut->n_targets];

    GR_TRY(GR_POOL_NEW(context, &matching->pool, matching->begin, cut->n_sources + 2, error));
    GR_TRY(GR_POOL_NEW(context, &matching->pool, matching->target, entries, error));
    for (int64_t e = 0; e < entries; e++) matching->begin[cut->source[e] + 2]++;
    for (int64_t s = 0; s < cut->n_sources; s++) matching->begin[s + 2] += matching->begin[s + 1];
    for (int64_t t = 0; t < cut->n_targets; t++) {
        for (int64_t e = cut->row_ptr[t]; e < cut->row_ptr[t + 1]; e++)
            matching->target[matching->begin[cut->source[e] + 1]++] = (int32_t)t;
    }
    return GRAFT_OK;
}

int32_t gr_cover_matching_find(const graft_context *context, const struct gr_cut *cut, struct gr_matching *matching,
                               graft_error *error)
{
    *matching = (struct gr_matching){ 0 };
    GR_TRY(sort_by_source(context, cut, matching, error));
    GR_TRY(GR_POOL_NEW(context, &matching->pool, matching->of_target, cut->n_targets, error));
    GR_TRY(GR_POOL_NEW(context, &matching->pool, matching->of_source, cut->n_sources, error));
    for (int64_t t = 0; t < cut->n_targets; t++) matching->of_target[t] = -1;
    for (int64_t s = 0; s < cut->n_sources; s++) matching->of_source[s] = -1;
    GR_TRY(match_greedily(context, cut, matching, error));
    return run_phases(context, cut, matching, error);
}

void gr_cover_matching_fini(const graft_context *context, struct gr_matching *matching)
{
    gr_pool_fini(context, &matching->pool);
    *matching = (struct gr_matching){ 0 };
}
