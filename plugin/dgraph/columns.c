/* From global to local columns: the rows of a rank, parted into entries of its own vertices and of those of others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/graph.h"
#include "base/memory.h"
#include "base/team.h"

#include <string.h>

/* Where a vertex stands in the list of names; it is there. */
static int64_t find(const struct gr_names *names, int64_t vertex)
{
    int64_t low = 0, high = names->count;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (names->vertex[middle] <= vertex) low = middle;
        else high = middle;
    }
    return low;
}

/* The place of a vertex that is owned, or the complement of that in the halo. */
static int32_t name_of(const struct gr_names *names, int64_t vertex)
{
    if (vertex >= names->first && vertex < names->end) return (int32_t)(vertex - names->first);
    return names->name[find(names, vertex)];
}

/* Entries of each row, of both sorts. */
static void count_entries(graft_graph *g, const int64_t *row_ptr, const int32_t *name, int64_t *local, int64_t *remote)
{
    for (int64_t i = 0; i < g->n_owned; i++) {
        int64_t here = 0;

        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) here += name[e] >= 0;
        local[i + 1] = local[i] + here;
        remote[i + 1] = remote[i] + row_ptr[i + 1] - row_ptr[i] - here;
    }
}

static void fill(graft_graph *g, const int64_t *row_ptr, const int32_t *name, const graft_csr *in, int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < g->n_owned; i++) {
        int64_t local = g->local.row_ptr[i], remote = g->remote.row_ptr[i];

        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) {
            if (name[e] >= 0) gr_csr_put(&g->local, local++, name[e], in, e);
            else gr_csr_put(&g->remote, remote++, ~name[e], in, e);
        }
    }
}

/* Both matrices, with room for the entries that the row pointers count. */
static int32_t allocate(graft_graph *g, const graft_csr *like, const int64_t *local, const int64_t *remote,
                        graft_error *error)
{
    const int64_t n = g->n_owned;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_csr_init(g->context, &g->local, like, n, n, local[n], error));
    GR_TRY(gr_csr_init(g->context, &g->remote, like, n, g->part.halo.count, remote[n], error));
    memcpy(g->local.row_ptr, local, (uint64_t)(n + 1) * sizeof *local);
    memcpy(g->remote.row_ptr, remote, (uint64_t)(n + 1) * sizeof *remote);
    g->part.local = g->local.view;
    g->part.remote = g->remote.view;
done:
    return rc;
}

int32_t gr_graph_split(graft_graph *g, const int64_t *row_ptr, const int64_t *columns, const void *values,
                       const struct gr_names *names, graft_error *error)
{
    const int64_t   n = g->n_owned, entries = row_ptr[n];
    const int       threads = gr_threads_worth(gr_threads(g->context, 0), entries);
    const graft_csr like = {
        .size = sizeof like, .index_type = GRAFT_I32, .value_type = g->value_type, .values = values
    };
    int64_t *local = NULL, *remote = NULL;
    int32_t *name = NULL, rc = GRAFT_OK;

    GR_TRY(GR_NEW(g->context, name, entries, error));
    GR_TRY(GR_NEW(g->context, local, n + 1, error));
    GR_TRY(GR_NEW(g->context, remote, n + 1, error));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) name[e] = name_of(names, columns[e]);
    count_entries(g, row_ptr, name, local, remote);
    GR_TRY(allocate(g, &like, local, remote, error));
    fill(g, row_ptr, name, &like, threads);
done:
    gr_free(g->context, name);
    gr_free(g->context, local);
    gr_free(g->context, remote);
    return rc;
}
