/* Turns global into local columns: finds the owners of columns, from the ranks that had these vertices in their slices,
 * and splits the rows of a rank into edges from its own vertices and from the halo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/team.h"
#include "dgraph/graph.h"

#include <string.h>

/* A map from the global columns of the owned rows to local columns: the index of a vertex among the owned vertices, or
 * in the halo. */
struct column_map {
    struct gr_pool pool;
    int64_t        first; /* columns v from first to end - 1 are owned, with index v - first */
    int64_t        end;
    int64_t        count;  /* number of all other columns, each counted once */
    int64_t       *vertex; /* [count] these columns, ascending */
    int32_t       *local;  /* [count] index of an owned vertex, or complement (~) of an index in the halo */
};

/* The owner of a vertex, and the index of the vertex there. */
struct home {
    int32_t owner, place;
};

/* Requests for the homes of vertices, and the replies. */
struct inquiry {
    struct gr_pool  pool;
    struct gr_route route;         /* route of requests to the ranks whose slices have the vertices */
    int64_t        *base;          /* [n_ranks] index, at each owner, of the first vertex from this slice */
    int64_t        *request;       /* vertices that other ranks request */
    struct home    *reply, *homes; /* replies sent; homes received */
};

/* Collect the columns outside first to end - 1, each once. */
static int32_t collect_columns(const graft_graph *g, const int64_t *columns, int64_t n_edges, struct column_map *map,
                               graft_error *error)
{
    const int64_t n = g->n_owned;
    int64_t       count = 0;

    if (n > 0 && g->vertex[n - 1] - g->vertex[0] == n - 1) {
        map->first = g->vertex[0];
        map->end = g->vertex[0] + n;
    }
    for (int64_t e = 0; e < n_edges; e++) count += columns[e] < map->first || columns[e] >= map->end;
    GR_TRY(GR_POOL_NEW(g->context, &map->pool, map->vertex, count, error));
    for (int64_t e = 0, put = 0; e < n_edges; e++)
        if (columns[e] < map->first || columns[e] >= map->end) map->vertex[put++] = columns[e];
    map->count = count;
    GR_TRY(gr_sort_unique(g->context, map->vertex, g->n_vertices - 1, &map->count, error));
    return GR_POOL_NEW(g->context, &map->pool, map->local, map->count, error);
}

static int32_t inquiry_init(const graft_graph *g, const struct column_map *map, struct inquiry *q, graft_error *error)
{
    GR_TRY(gr_comm_route_init(&q->route, g->comm, error));
    GR_TRY(GR_POOL_NEW(g->context, &q->pool, q->base, g->comm->n_ranks, error));
    GR_TRY(GR_POOL_NEW(g->context, &q->pool, q->homes, map->count, error));
    for (int64_t i = 0, p = 0; i < map->count; i++) {
        while (map->vertex[i] >= g->first[p + 1]) p++;
        q->route.out[p + 1]++;
    }
    return GRAFT_OK;
}

static void answer_requests(const graft_graph *g, struct inquiry *q)
{
    for (int64_t i = 0; i < gr_comm_route_n_in(&q->route); i++) {
        const int64_t row = q->request[i] - g->first[g->comm->rank];
        const int32_t owner = g->slice.owner[row];
        GR_ASSERT(row >= 0 && row < g->n_slice && owner >= 0 && owner < g->comm->n_ranks);

        q->reply[i] =
            (struct home){ owner, (int32_t)(q->base[owner] + g->slice.packed[row] - g->slice.route.out[owner]) };
    }
}

static int32_t request_homes(const graft_graph *g, const struct column_map *map, struct inquiry *q, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_comm_alltoall(g->comm, g->slice.route.in, sizeof *q->base, q->base, error));
    GR_TRY(gr_comm_route_plan(&q->route, error));
    rc = GR_POOL_NEW(g->context, &q->pool, q->request, gr_comm_route_n_in(&q->route), error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(g->context, &q->pool, q->reply, gr_comm_route_n_in(&q->route), error);
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_comm_route_send(&q->route, map->vertex, q->request, sizeof *q->request, error));
    answer_requests(g, q);
    return gr_comm_route_return(&q->route, q->reply, q->homes, sizeof *q->reply, error);
}

/* Assign indices in the halo to the vertices of other ranks, sorted by owner, and by index there: it ascends with the
 * vertex. */
static int32_t number_halo(graft_graph *g, const struct home *home, struct column_map *map, struct gr_halo *halo,
                           graft_error *error)
{
    const int32_t me = g->comm->rank;

    for (int64_t i = 0; i < map->count; i++)
        if (home[i].owner != me) halo->start[home[i].owner + 1]++;
    for (int32_t p = 0; p < g->comm->n_ranks; p++) halo->start[p + 1] += halo->start[p];
    halo->count = halo->start[g->comm->n_ranks];
    if (halo->count > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "the rows of a rank gather from %lld vertices of other ranks, expected at most %d",
                       (long long)halo->count, INT32_MAX);
    GR_TRY(GR_POOL_NEW(g->context, &g->pool, halo->place, halo->count, error));
    for (int64_t i = 0; i < map->count; i++) {
        if (home[i].owner == me) {
            map->local[i] = home[i].place;
            continue;
        }
        halo->place[halo->start[home[i].owner]] = home[i].place;
        map->local[i] = ~(int32_t)halo->start[home[i].owner]++;
    }
    /* Undo the shift: each start has advanced to the next one. */
    memmove(halo->start + 1, halo->start, (uint64_t)g->comm->n_ranks * sizeof *halo->start);
    halo->start[0] = 0;
    GR_ASSERT(gr_csr_halo_is_valid(halo, g->comm->n_ranks, me));
    return GRAFT_OK;
}

/* Create the map and the halo of the graph. Collective. */
static int32_t column_map_init(graft_graph *g, const int64_t *columns, int64_t n_edges, struct column_map *map,
                               graft_error *error)
{
    struct inquiry inquiry = { 0 };
    int32_t        rc = collect_columns(g, columns, n_edges, map, error);

    if (rc == GRAFT_OK) rc = inquiry_init(g, map, &inquiry, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(request_homes(g, map, &inquiry, error));
    rc = gr_comm_agree(g->comm, number_halo(g, inquiry.homes, map, &g->part.halo, error), error);
done:
    gr_pool_fini(g->context, &inquiry.pool);
    gr_comm_route_fini(&inquiry.route);
    return rc;
}

/* Return the index of an owned vertex, or the complement of the index in the halo. */
static int32_t local_column(const struct column_map *map, int64_t vertex)
{
    if (vertex >= map->first && vertex < map->end) return (int32_t)(vertex - map->first);
    return map->local[gr_sorted_index(map->vertex, map->count, vertex)];
}

/* Allocate both matrices, and fill their row pointers. */
static int32_t allocate_matrices(graft_graph *g, const graft_csr *like, const int64_t *row_ptr, const int32_t *column,
                                 graft_error *error)
{
    const int64_t n = g->n_owned, entries = row_ptr[n];
    int64_t       inside = 0;

    for (int64_t e = 0; e < entries; e++) inside += column[e] >= 0;
    GR_TRY(gr_csr_init(g->context, &g->local, like, n, n, inside, error));
    GR_TRY(gr_csr_init(g->context, &g->remote, like, n, g->part.halo.count, entries - inside, error));
    for (int64_t i = 0; i < n; i++) {
        int64_t here = 0;

        for (int64_t e = row_ptr[i]; e < row_ptr[i + 1]; e++) here += column[e] >= 0;
        g->local.row_ptr[i + 1] = g->local.row_ptr[i] + here;
        g->remote.row_ptr[i + 1] = g->remote.row_ptr[i] + row_ptr[i + 1] - row_ptr[i] - here;
    }
    g->part.local = g->local.view;
    g->part.remote = g->remote.view;
    return GRAFT_OK;
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

/* Store which edges are cut: they are divided among two matrices, but new values arrive in the order of the host. */
static int32_t note_cut(graft_graph *g, const int32_t *column, int64_t entries, graft_error *error)
{
    GR_TRY(GR_POOL_NEW(g->context, &g->pool, g->slice.is_cut, (entries + 7) / 8, error));
    for (int64_t e = 0; e < entries; e++) g->slice.is_cut[e / 8] |= (uint8_t)((column[e] < 0) << e % 8);
    return GRAFT_OK;
}

static int32_t split_edges(graft_graph *g, const int64_t *row_ptr, const int64_t *columns, const void *values,
                           const struct column_map *map, graft_error *error)
{
    const int64_t   entries = row_ptr[g->n_owned];
    const int       threads = gr_threads_worth(gr_context_threads(g->context, 0), entries);
    const graft_csr like = {
        .size = sizeof like, .index_type = GRAFT_I32, .value_type = g->value_type, .values = values
    };
    int32_t *column = NULL, rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(g->context, column, entries, error));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) column[e] = local_column(map, columns[e]);
    GR_TRY_DONE(allocate_matrices(g, &like, row_ptr, column, error));
    fill_matrices(g, row_ptr, column, &like, threads);
    rc = note_cut(g, column, entries, error);
done:
    gr_free(g->context, column);
    return rc;
}

/* Keep the row pointers of the slice: new values, which come without them, are sent to the owners of their rows. */
static int32_t keep_slice_rows(graft_graph *g, const graft_slice *slice, graft_error *error)
{
    if (g->value_type == 0) return GRAFT_OK;
    GR_TRY(GR_NEW(g->context, g->slice.row_ptr, g->n_slice + 1, error));
    for (int64_t i = 0; i < g->n_slice; i++) g->slice.row_ptr[i + 1] = slice->rows->row_ptr[i + 1];
    return GRAFT_OK;
}

int32_t gr_graph_split(graft_graph *g, const graft_slice *slice, const int64_t *row_ptr, const int64_t *columns,
                       const void *values, graft_error *error)
{
    struct column_map map = { 0 };
    int32_t           rc = GRAFT_OK;

    GR_TRY_DONE(column_map_init(g, columns, row_ptr[g->n_owned], &map, error));
    rc = split_edges(g, row_ptr, columns, g->value_type != 0 ? values : NULL, &map, error);
    if (rc == GRAFT_OK) rc = keep_slice_rows(g, slice, error);
    rc = gr_comm_agree(g->comm, rc, error);
done:
    gr_pool_fini(g->context, &map.pool);
    return rc;
}
