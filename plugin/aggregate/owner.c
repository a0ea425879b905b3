/* Which rank owns which vertex.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/graph.h"
#include "base/memory.h"
#include "graph/partition.h"

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

static void own_blocks(const graft_graph *graph, const struct gr_slice *slice, int32_t *owner)
{
    int64_t before[GR_SHARES] = { 0 }, total[GR_SHARES] = { 0 };

    for (int32_t p = 0; p < graph->comm->n_ranks; p++) {
        int64_t *const to[] = { total, before };

        for (int i = 0; i < 1 + (p < graph->comm->rank); i++) {
            to[i][GR_SHARE_VERTICES] += graph->share[p].n_slice;
            to[i][GR_SHARE_ENTRIES] += graph->share[p].n_entries;
        }
    }
    gr_partition_block(slice, before, total, graph->comm->n_ranks, owner);
}

/* Each slice is dealt out by itself, evenly, so that all together are even too; its owners are not known to others. */
static int32_t own_by_stream(const graft_graph *graph, const struct gr_slice *slice, int32_t *owner, graft_error *error)
{
    int32_t *all = NULL, rc = GRAFT_OK;

    GR_TRY(GR_NEW(graph->context, all, graph->n_vertices, error));
    memset(all, -1, (uint64_t)graph->n_vertices * sizeof *all);
    GR_TRY(gr_partition_stream(graph->context, slice, graph->comm->n_ranks, all, error));
    memcpy(owner, all + slice->first, (uint64_t)graph->n_slice * sizeof *owner);
done:
    gr_free(graph->context, all);
    return rc;
}

int32_t gr_owner_find(const graft_graph *graph, const graft_slice *slice, int32_t *owner, graft_error *error)
{
    const struct gr_slice rows = { .rows = slice->rows, .first = slice->first_row };
    int32_t               rc = GRAFT_OK;

    if (graph->n_slice == 0) return GRAFT_OK;
    if (slice->owner != NULL) {
        GR_TRY(check_owners(graph, slice, error));
        memcpy(owner, slice->owner, (uint64_t)graph->n_slice * sizeof *owner);
    } else if (gr_option_is(graph->context, GR_OPTION_PARTITION, "block")) {
        own_blocks(graph, &rows, owner);
    } else if (gr_option_is(graph->context, GR_OPTION_PARTITION, "hash")) {
        gr_partition_hash(slice->first_row, graph->n_slice, graph->comm->n_ranks, owner);
    } else if (gr_option_is(graph->context, GR_OPTION_PARTITION, "stream")) {
        rc = own_by_stream(graph, &rows, owner, error);
    } else {
        for (int64_t i = 0; i < graph->n_slice; i++) owner[i] = graph->comm->rank;
    }
done:
    return rc;
}
