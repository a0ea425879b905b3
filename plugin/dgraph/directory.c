/* Where the vertices of columns live: asked of the ranks that had them in their slices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"
#include "base/sort.h"
#include "dgraph/graph.h"

#include <string.h>

/* Where a vertex lives. */
struct home {
    int32_t owner, place;
};

/* Questions about vertices that go from rank to rank, and answers back. */
struct inquiry {
    struct gr_route route;          /* of the vertices asked about, to the ranks that had them in their slices */
    int64_t        *base;           /* [n_ranks] the place, at each owner, of the first vertex of this slice */
    int64_t        *question;       /* received */
    struct home    *answer, *known; /* sent and received */
};

static void inquiry_fini(const graft_context *context, struct inquiry *q)
{
    void *const blocks[] = { q->base, q->question, q->answer, q->known };

    gr_route_fini(&q->route);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gr_free(context, blocks[i]);
}

/* The columns that are not known to be owned, each once. */
static int32_t collect(const graft_graph *g, const int64_t *columns, int64_t entries, struct gr_names *names,
                       graft_error *error)
{
    const int64_t n = g->n_owned;
    int64_t       count = 0;
    int32_t       rc = GRAFT_OK;

    if (n > 0 && g->vertex[n - 1] - g->vertex[0] == n - 1) {
        names->first = g->vertex[0];
        names->end = g->vertex[0] + n;
    }
    for (int64_t e = 0; e < entries; e++) count += columns[e] < names->first || columns[e] >= names->end;
    GR_TRY(GR_NEW(g->context, names->vertex, count, error));
    for (int64_t e = 0, put = 0; e < entries; e++)
        if (columns[e] < names->first || columns[e] >= names->end) names->vertex[put++] = columns[e];
    names->count = count;
    GR_TRY(gr_sort_unique(g->context, names->vertex, g->n_vertices - 1, &names->count, error));
    GR_TRY(GR_NEW(g->context, names->name, names->count, error));
done:
    return rc;
}

static int32_t inquiry_init(const graft_graph *g, const struct gr_names *names, struct inquiry *q, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_route_init(&q->route, g->comm, error));
    GR_TRY(GR_NEW(g->context, q->base, g->comm->n_ranks, error));
    GR_TRY(GR_NEW(g->context, q->known, names->count, error));
    for (int64_t i = 0, p = 0; i < names->count; i++) {
        while (names->vertex[i] >= g->first[p + 1]) p++;
        q->route.out[p + 1]++;
    }
done:
    return rc;
}

static void answer(const graft_graph *g, struct inquiry *q)
{
    for (int64_t i = 0; i < gr_route_n_in(&q->route); i++) {
        const int64_t row = q->question[i] - g->first[g->comm->rank];
        const int32_t owner = g->owner[row];

        q->answer[i] = (struct home){ owner, (int32_t)(q->base[owner] + g->packed[row] - g->rows.out[owner]) };
    }
}

static int32_t ask(const graft_graph *g, const struct gr_names *names, struct inquiry *q, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_comm_alltoall(g->comm, g->rows.in, sizeof *q->base, q->base, error));
    GR_TRY(gr_route_plan(&q->route, error));
    rc = GR_NEW(g->context, q->question, gr_route_n_in(&q->route), error);
    if (rc == GRAFT_OK) rc = GR_NEW(g->context, q->answer, gr_route_n_in(&q->route), error);
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_route_send(&q->route, names->vertex, q->question, sizeof *q->question, error));
    answer(g, q);
    rc = gr_route_return(&q->route, q->answer, q->known, sizeof *q->answer, error);
done:
    return rc;
}

/* Number the vertices of others by owner; those of one owner come in the order of its own numbers, as vertices do. */
static int32_t number_halo(const graft_graph *g, const struct home *home, struct gr_names *names, struct gr_halo *halo,
                           graft_error *error)
{
    const int32_t me = g->comm->rank;
    int64_t      *next = NULL;
    int32_t       rc = GRAFT_OK;

    for (int64_t i = 0; i < names->count; i++)
        if (home[i].owner != me) halo->start[home[i].owner + 1]++;
    for (int32_t p = 0; p < g->comm->n_ranks; p++) halo->start[p + 1] += halo->start[p];
    halo->count = halo->start[g->comm->n_ranks];
    if (halo->count > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "its rows gather from %lld vertices of other ranks, at most %d",
                       (long long)halo->count, INT32_MAX);
    GR_TRY(GR_NEW(g->context, halo->place, halo->count, error));
    GR_TRY(GR_NEW(g->context, next, g->comm->n_ranks, error));
    memcpy(next, halo->start, (uint64_t)g->comm->n_ranks * sizeof *next);
    for (int64_t i = 0; i < names->count; i++) {
        if (home[i].owner == me) {
            names->name[i] = home[i].place;
            continue;
        }
        halo->place[next[home[i].owner]] = home[i].place;
        names->name[i] = ~(int32_t)next[home[i].owner]++;
    }
done:
    gr_free(g->context, next);
    return rc;
}

int32_t gr_names_find(graft_graph *g, const int64_t *columns, int64_t entries, struct gr_names *names,
                      graft_error *error)
{
    struct inquiry inquiry = { 0 };
    int32_t        rc = collect(g, columns, entries, names, error);

    if (rc == GRAFT_OK) rc = inquiry_init(g, names, &inquiry, error);
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(ask(g, names, &inquiry, error));
    rc = number_halo(g, inquiry.known, names, &g->part.halo, error);
    rc = gr_comm_agree(g->comm, rc, error);
done:
    inquiry_fini(g->context, &inquiry);
    return rc;
}

void gr_names_fini(const graft_context *context, struct gr_names *names)
{
    gr_free(context, names->vertex);
    gr_free(context, names->name);
    *names = (struct gr_names){ 0 };
}
