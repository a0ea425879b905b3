/* Finds the owners of columns, from the ranks that had these vertices in their slices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"
#include "dgraph/graph.h"

#include <string.h>

/* The owner of a vertex, and its place there. */
struct home {
    int32_t owner, place;
};

/* Requests for the homes of vertices, and the replies. */
struct inquiry {
    struct gr_route route;         /* of requested vertices, to the ranks that had them in their slices */
    int64_t        *base;          /* [n_ranks] the place, at each owner, of the first vertex of this slice */
    int64_t        *request;       /* received */
    struct home    *reply, *homes; /* sent and received */
};

static void inquiry_fini(const graft_context *context, struct inquiry *q)
{
    void *const blocks[] = { q->base, q->request, q->reply, q->homes };

    gr_comm_route_fini(&q->route);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gr_free(context, blocks[i]);
}

/* The columns outside first to end - 1, each once. */
static int32_t collect_columns(const graft_graph *g, const int64_t *columns, int64_t n_edges, struct gr_column_map *map,
                               graft_error *error)
{
    const int64_t n = g->n_owned;
    int64_t       count = 0;

    if (n > 0 && g->vertex[n - 1] - g->vertex[0] == n - 1) {
        map->first = g->vertex[0];
        map->end = g->vertex[0] + n;
    }
    for (int64_t e = 0; e < n_edges; e++) count += columns[e] < map->first || columns[e] >= map->end;
    GR_TRY(GR_NEW(g->context, map->vertex, count, error));
    for (int64_t e = 0, put = 0; e < n_edges; e++)
        if (columns[e] < map->first || columns[e] >= map->end) map->vertex[put++] = columns[e];
    map->count = count;
    GR_TRY(gr_sort_unique(g->context, map->vertex, g->n_vertices - 1, &map->count, error));
    return GR_NEW(g->context, map->local, map->count, error);
}

static int32_t inquiry_init(const graft_graph *g, const struct gr_column_map *map, struct inquiry *q,
                            graft_error *error)
{
    GR_TRY(gr_comm_route_init(&q->route, g->comm, error));
    GR_TRY(GR_NEW(g->context, q->base, g->comm->n_ranks, error));
    GR_TRY(GR_NEW(g->context, q->homes, map->count, error));
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

static int32_t request_homes(const graft_graph *g, const struct gr_column_map *map, struct inquiry *q,
                             graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_comm_alltoall(g->comm, g->slice.route.in, sizeof *q->base, q->base, error));
    GR_TRY(gr_comm_route_plan(&q->route, error));
    rc = GR_NEW(g->context, q->request, gr_comm_route_n_in(&q->route), error);
    if (rc == GRAFT_OK) rc = GR_NEW(g->context, q->reply, gr_comm_route_n_in(&q->route), error);
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_comm_route_send(&q->route, map->vertex, q->request, sizeof *q->request, error));
    answer_requests(g, q);
    return gr_comm_route_return(&q->route, q->reply, q->homes, sizeof *q->reply, error);
}

/* Number the vertices of other ranks: sorted by owner, and by place because places ascend with vertices. */
static int32_t number_halo(const graft_graph *g, const struct home *home, struct gr_column_map *map,
                           struct gr_halo *halo, graft_error *error)
{
    const int32_t me = g->comm->rank;
    int64_t      *next = NULL;
    int32_t       rc = GRAFT_OK;

    for (int64_t i = 0; i < map->count; i++)
        if (home[i].owner != me) halo->start[home[i].owner + 1]++;
    for (int32_t p = 0; p < g->comm->n_ranks; p++) halo->start[p + 1] += halo->start[p];
    halo->count = halo->start[g->comm->n_ranks];
    if (halo->count > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "the rows of a rank gather from %lld vertices of other ranks, expected at most %d",
                       (long long)halo->count, INT32_MAX);
    GR_TRY_DONE(GR_NEW(g->context, halo->place, halo->count, error));
    GR_TRY_DONE(GR_NEW(g->context, next, g->comm->n_ranks, error));
    memcpy(next, halo->start, (uint64_t)g->comm->n_ranks * sizeof *next);
    for (int64_t i = 0; i < map->count; i++) {
        if (home[i].owner == me) {
            map->local[i] = home[i].place;
            continue;
        }
        halo->place[next[home[i].owner]] = home[i].place;
        map->local[i] = ~(int32_t)next[home[i].owner]++;
    }
    GR_ASSERT(rc < 0 || gr_csr_halo_is_valid(halo, g->comm->n_ranks, me));
done:
    gr_free(g->context, next);
    return rc;
}

int32_t gr_graph_column_map_init(graft_graph *g, const int64_t *columns, int64_t n_edges, struct gr_column_map *map,
                                 graft_error *error)
{
    struct inquiry inquiry = { 0 };
    int32_t        rc = collect_columns(g, columns, n_edges, map, error);

    if (rc == GRAFT_OK) rc = inquiry_init(g, map, &inquiry, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(request_homes(g, map, &inquiry, error));
    rc = number_halo(g, inquiry.homes, map, &g->part.halo, error);
    rc = gr_comm_agree(g->comm, rc, error);
done:
    inquiry_fini(g->context, &inquiry);
    return rc;
}

void gr_graph_column_map_fini(const graft_context *context, struct gr_column_map *map)
{
    gr_free(context, map->vertex);
    gr_free(context, map->local);
    *map = (struct gr_column_map){ 0 };
}
