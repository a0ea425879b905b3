/* Computes minimum vertex covers of bipartite graphs by two slow methods. One tries all sets of sources. The other uses
 * the sizes of the maximum matchings without one source, each of which is grown by augmenting paths.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* A growing matching. Source `absent` is left out; -1 leaves out none. */
struct growth {
    const struct oracle_bipartite *graph;
    int64_t                        absent;
    int64_t                       *partner; /* [n_sources] target of each source, or -1 */
    uint8_t                       *tried;   /* [n_sources] whether the current search has tried the source */
};

/* Kuhn's algorithm: match target t with a source. If the source is already matched, find another source for its present
 * target. */
static int find_partner(struct growth *growth, int64_t t)
{
    for (int64_t e = growth->graph->row_ptr[t]; e < growth->graph->row_ptr[t + 1]; e++) {
        const int64_t s = growth->graph->source[e];

        if (s == growth->absent || growth->tried[s]) continue;
        growth->tried[s] = 1;
        if (growth->partner[s] < 0 || find_partner(growth, growth->partner[s])) {
            growth->partner[s] = t;
            return 1;
        }
    }
    return 0;
}

int64_t oracle_matching_size(const struct oracle_bipartite *graph, int64_t absent)
{
    struct growth growth = { graph, absent, oracle_new(graph->n_sources, sizeof(int64_t)),
                             oracle_new(graph->n_sources, 1) };
    int64_t       size = 0;

    for (int64_t s = 0; s < graph->n_sources; s++) growth.partner[s] = -1;
    for (int64_t t = 0; t < graph->n_targets; t++) {
        memset(growth.tried, 0, (size_t)graph->n_sources);
        size += find_partner(&growth, t);
    }
    free(growth.partner);
    free(growth.tried);
    return size;
}

/* Add the targets that a set of sources requires: all targets with an edge to a source outside of the set. */
static int64_t add_targets(const struct oracle_bipartite *graph, const uint8_t *source_in, uint8_t *target_in)
{
    int64_t size = 0;

    for (int64_t t = 0; t < graph->n_targets; t++) {
        target_in[t] = 0;
        for (int64_t e = graph->row_ptr[t]; e < graph->row_ptr[t + 1]; e++)
            if (!source_in[graph->source[e]]) target_in[t] = 1;
        size += target_in[t];
    }
    return size;
}

int64_t oracle_cover(const struct oracle_bipartite *graph, uint8_t *source_in, uint8_t *target_in)
{
    const int64_t size = oracle_matching_size(graph, -1);
    int64_t       sources = 0;

    for (int64_t s = 0; s < graph->n_sources; s++) {
        source_in[s] = oracle_matching_size(graph, s) < size;
        sources += source_in[s];
    }
    return sources + add_targets(graph, source_in, target_in);
}

/* Decode number `choice` into a set of sources. */
static int64_t oracle_cover_choose(const struct oracle_bipartite *graph, int64_t choice, uint8_t *source_in)
{
    int64_t sources = 0;

    for (int64_t s = 0; s < graph->n_sources; s++) {
        source_in[s] = choice >> s & 1;
        sources += source_in[s];
    }
    return sources;
}

int64_t oracle_cover_by_trial(const struct oracle_bipartite *graph, uint8_t *source_in, uint8_t *target_in,
                              int *several)
{
    int64_t best = 0, smallest = INT64_MAX, most = -1;

    for (int64_t choice = 0; choice < (int64_t)1 << graph->n_sources; choice++) {
        const int64_t sources = oracle_cover_choose(graph, choice, source_in);
        const int64_t size = sources + add_targets(graph, source_in, target_in);

        if (size == smallest && sources == most) *several = 1;
        if (size > smallest || (size == smallest && sources <= most)) continue;
        smallest = size;
        most = sources;
        best = choice;
        *several = 0;
    }
    oracle_cover_choose(graph, best, source_in);
    add_targets(graph, source_in, target_in);
    return smallest;
}
