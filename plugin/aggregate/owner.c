/* Which rank owns which vertex.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/graph.h"
#include "base/random.h"

#include <string.h>

static int32_t check_owners(const graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    for (int64_t i = 0; i < graph->n_slice; i++) {
        if (slice->owner[i] >= 0 && slice->owner[i] < graph->comm->n_ranks) continue;
        return gr_fail(error, GRAFT_ERR_ARG, "vertex %lld shall be owned by rank %d, expected one of 0 to %d",
                       (long long)(slice->first_row + i), slice->owner[i], graph->comm->n_ranks - 1);
    }
    return GRAFT_OK;
}

/* Ranges of about the same sum of 1 + entries. A vertex goes where the middle of its own share lies. */
static void own_blocks(const graft_graph *graph, const graft_slice *slice, int32_t *owner)
{
    const int32_t n_ranks = graph->comm->n_ranks;
    double        before = 0, total = 0;

    for (int32_t p = 0; p < n_ranks; p++) {
        const double share = (double)graph->share[p].n_slice + (double)graph->share[p].n_entries;

        if (p < graph->comm->rank) before += share;
        total += share;
    }
    for (int64_t i = 0; i < graph->n_slice; i++) {
        const double share = 1 + (double)(slice->rows->row_ptr[i + 1] - slice->rows->row_ptr[i]);

        owner[i] = (int32_t)((before + share / 2) / total * n_ranks);
        if (owner[i] >= n_ranks) owner[i] = n_ranks - 1;
        before += share;
    }
}

static void own_by_hash(const graft_graph *graph, const graft_slice *slice, int32_t *owner)
{
    for (int64_t i = 0; i < graph->n_slice; i++) {
        const uint64_t vertex = (uint64_t)(slice->first_row + i);

        owner[i] = (int32_t)(gr_random_key(vertex, GR_RANDOM_PARTITION, 0, 0) % (uint64_t)graph->comm->n_ranks);
    }
}

int32_t gr_owner_find(const graft_graph *graph, const graft_slice *slice, int32_t *owner, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (slice->owner != NULL) {
        GR_TRY(check_owners(graph, slice, error));
        memcpy(owner, slice->owner, (uint64_t)graph->n_slice * sizeof *owner);
    } else if (gr_option_is(graph->context, GR_OPTION_PARTITION, "block")) {
        own_blocks(graph, slice, owner);
    } else if (gr_option_is(graph->context, GR_OPTION_PARTITION, "hash")) {
        own_by_hash(graph, slice, owner);
    } else {
        for (int64_t i = 0; i < graph->n_slice; i++) owner[i] = graph->comm->rank;
    }
done:
    return rc;
}
