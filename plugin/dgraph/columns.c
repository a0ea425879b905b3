/* Turns global into local columns, and splits the rows of a rank into edges from its own vertices and from the halo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/sort.h"
#include "base/team.h"
#include "dgraph/graph.h"

#include <string.h>

/* The place of an owned vertex, or the complement of the place in the halo. */
static int32_t local_column(const struct gr_column_map *map, int64_t vertex)
{
    if (vertex >= map->first && vertex < map->end) return (int32_t)(vertex - map->first);
    return map->local[gr_sorted_index(map->vertex, map->count, vertex)];
}

/* The row pointers of both matrices. */
static void point_rows(graft_graph *g, const int64_t *row_ptr, const int32_t *column, int64_t *local, int64_t *remote)
{
    for (int64_t i = 0; i < g->n_owned; i++) {
        int64_t here = 0;

        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) here += column[e] >= 0;
        local[i + 1] = local[i] + here;
        remote[i + 1] = remote[i] + row_ptr[i + 1] - row_ptr[i] - here;
    }
}

static void fill_matrices(graft_graph *g, const int64_t *row_ptr, const int32_t *column, const graft_csr *in,
                          int threads)
{
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t i = 0; i < g->n_owned; i++) {
        int64_t local = g->local.row_ptr[i], remote = g->remote.row_ptr[i];

        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) {
            if (column[e] >= 0) gr_csr_put(&g->local, local++, column[e], in, e);
            else gr_csr_put(&g->remote, remote++, ~column[e], in, e);
        }
    }
}

/* The edges of a row are divided among the matrices, but new values come in the order of the host. */
static int32_t note_cut(graft_graph *g, const int32_t *column, int64_t entries, graft_error *error)
{
    if (GR_NEW(g->context, g->is_cut, (entries + 7) / 8, error) < 0) return GRAFT_ERR_NOMEM;
    for (int64_t e = 0; e < entries; e++) g->is_cut[e / 8] |= (uint8_t)((column[e] < 0) << e % 8);
    return GRAFT_OK;
}

/* Allocate both matrices for these row pointers. */
static int32_t allocate_matrices(graft_graph *g, const graft_csr *like, const int64_t *local, const int64_t *remote,
                                 graft_error *error)
{
    const int64_t n = g->n_owned;

    GR_TRY(gr_csr_init(g->context, &g->local, like, n, n, local[n], error));
    GR_TRY(gr_csr_init(g->context, &g->remote, like, n, g->part.halo.count, remote[n], error));
    memcpy(g->local.row_ptr, local, (uint64_t)(n + 1) * sizeof *local);
    memcpy(g->remote.row_ptr, remote, (uint64_t)(n + 1) * sizeof *remote);
    g->part.local = g->local.view;
    g->part.remote = g->remote.view;
    return GRAFT_OK;
}

int32_t gr_graph_split(graft_graph *g, const int64_t *row_ptr, const int64_t *columns, const void *values,
                       const struct gr_column_map *map, graft_error *error)
{
    const int64_t   n = g->n_owned, entries = row_ptr[n];
    const int       threads = gr_threads_worth(gr_context_threads(g->context, 0), entries);
    const graft_csr like = {
        .size = sizeof like, .index_type = GRAFT_I32, .value_type = g->value_type, .values = values
    };
    int64_t *local = NULL, *remote = NULL;
    int32_t *column = NULL, rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(g->context, column, entries, error));
    GR_TRY_DONE(GR_NEW(g->context, local, n + 1, error));
    GR_TRY_DONE(GR_NEW(g->context, remote, n + 1, error));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) column[e] = local_column(map, columns[e]);
    point_rows(g, row_ptr, column, local, remote);
    GR_TRY_DONE(allocate_matrices(g, &like, local, remote, error));
    fill_matrices(g, row_ptr, column, &like, threads);
    rc = note_cut(g, column, entries, error);
done:
    gr_free(g->context, column);
    gr_free(g->context, local);
    gr_free(g->context, remote);
    return rc;
}
