/* Fetches rows of the halo that their owners compute for a batch.
 *
 * A batch is sampled layer by layer from the last one. For each layer, each rank requests missing rows of its halo from
 * their owners, where these vertices become destinations of the layer before. Forward, owners send the rows; backward,
 * their gradients are sent to the owners, which add them in the order of ranks. All messages are collective calls of
 * the comm, in which ranks without rows take part, too.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "parallel/cached.h"
#include "sample/kind.h"

#include <string.h>

/* Return the index in the halo of the source of an edge of layer l, if its row must be fetched; else -1. */
static int64_t missing_vertex(const struct gr_cached *c, const struct gr_batch *batch, int32_t l, int64_t edge)
{
    const int64_t v = batch->vertex[batch->layers[l].col[edge]] - c->graph->n_rows;

    return v < 0 || gr_sample_cache_has(&c->layer[l].cache, v, &c->life) ? -1 : v;
}

/* Find the vertices of the halo whose rows layer l fetches. */
static int32_t find_missing(struct gr_cached *c, const struct gr_batch *batch, int32_t l, graft_error *error)
{
    struct gr_fetch *fetch = &c->layer[l].fetch;
    int64_t          edges = 0;

    fetch->count = 0;
    for (int64_t e = 0; e < batch->layers[l].n_edges; e++) edges += missing_vertex(c, batch, l, e) >= 0;
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_MESSAGES, fetch->vertex, edges, error));
    for (int64_t e = 0; e < batch->layers[l].n_edges; e++) {
        const int64_t v = missing_vertex(c, batch, l, e);

        if (v >= 0) fetch->vertex[fetch->count++] = v;
    }
    if (edges > 0) GR_TRY(gr_sort_unique(c->context, fetch->vertex, c->links->halo->count - 1, &fetch->count, error));
    return GR_BUDGET_NEW(c->wish.batch, GR_USE_MESSAGES, fetch->place, fetch->count, error);
}

/* List the indices of the vertices on their owners, and count the vertices of each owner. */
static void list_places(const struct gr_cached *c, struct gr_fetch *fetch)
{
    const struct gr_halo *halo = c->links->halo;
    int64_t              *out = fetch->route.out, i = 0;

    out[0] = 0;
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        out[q + 1] = 0;
        for (; i < fetch->count && fetch->vertex[i] < halo->start[q + 1]; i++, out[q + 1]++)
            fetch->place[i] = halo->place[fetch->vertex[i]];
    }
}

/* Check that no rank requests more rows than it has in its halo. */
static int32_t check_counts(const struct gr_cached *c, const struct gr_route *route, graft_error *error)
{
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = route->in[q + 1] - route->in[q];

        if (count < 0 || count > gr_rows_sent(c, q))
            return gr_fail(error, GRAFT_ERR_FORMAT, "rank %d asks for %lld rows, but has %lld in its halo", q,
                           (long long)count, (long long)gr_rows_sent(c, q));
    }
    return GRAFT_OK;
}

static int32_t check_asked(const struct gr_cached *c, const struct gr_fetch *fetch, graft_error *error)
{
    for (int64_t i = 0; i < gr_comm_route_n_in(&fetch->route); i++)
        if (fetch->row[i] < 0 || fetch->row[i] >= c->graph->n_rows)
            return gr_fail(error, GRAFT_ERR_FORMAT, "another rank asks for vertex %d, but this one has %lld",
                           (int)fetch->row[i], (long long)c->graph->n_rows);
    return GRAFT_OK;
}

void gr_parallel_fetched_fini(struct gr_cached *c, struct gr_fetched *fetched)
{
    gr_budget_charge(c->wish.lasting, GR_USE_MESSAGES,
                     -gr_memory_bytes(fetched->vertex) - gr_memory_bytes(fetched->rows));
    gr_free(c->context, fetched->vertex);
    gr_free(c->context, fetched->rows);
    *fetched = (struct gr_fetched){ 0 };
}

/* Allocate memory for the fetched rows of this batch. Those of the last batch are in the cache already. */
static int32_t reserve_fetched(struct gr_cached *c, struct gr_cached_layer *layer, graft_error *error)
{
    struct gr_fetched *fetched = &layer->fetched;
    const int64_t      more = gr_smaller(layer->fetch.count + layer->fetch.count / 4, c->links->halo->count);
    int32_t            rc = GRAFT_OK;

    if (!c->fetching.keeps || layer->fetch.count <= fetched->capacity) return GRAFT_OK;
    gr_parallel_fetched_fini(c, fetched);
    GR_TRY_DONE(gr_budget_check(c->wish.lasting, (double)more * 4.0 * (double)(layer->width + 1),
                                "messages (fetched rows)", error));
    GR_TRY_DONE(GR_NEW(c->context, fetched->vertex, more, error));
    GR_TRY_DONE(GR_NEW(c->context, fetched->rows, more * layer->width, error));
    fetched->capacity = more;
done:
    gr_budget_charge(c->wish.lasting, GR_USE_MESSAGES,
                     gr_memory_bytes(fetched->vertex) + gr_memory_bytes(fetched->rows));
    return rc;
}

/* Request rows from their owners. fetch->row[] receives the owned vertices whose rows other ranks request, sorted by
 * rank. After a wrong number, which only this rank has seen, the comm fails. */
static int32_t ask_owners(struct gr_cached *c, struct gr_fetch *fetch, graft_error *error)
{
    struct gr_route *route = &fetch->route;

    list_places(c, fetch);
    GR_TRY(gr_comm_route_plan(route, error));
    if (check_counts(c, route, error) < 0) return gr_comm_fail(c->comm, error);
    GR_TRY(gr_comm_agree(
        c->comm, GR_BUDGET_NEW(c->wish.batch, GR_USE_MESSAGES, fetch->row, gr_comm_route_n_in(route), error), error));
    GR_TRY(gr_comm_route_send(route, fetch->place, fetch->row, sizeof *fetch->row, error));
    if (check_asked(c, fetch, error) < 0) return gr_comm_fail(c->comm, error);
    return GRAFT_OK;
}

/* Add requested vertices to the destinations of layer l - 1, and replace them in fetch->row[] by their indices in the
 * batch. */
static int32_t add_asked(const struct gr_making *made, struct gr_fetch *fetch, graft_error *error)
{
    const int64_t count = gr_comm_route_n_in(&fetch->route);

    GR_TRY(gr_sample_making_reserve(made, count, error));
    for (int64_t i = 0; i < count; i++) gr_sample_making_add(made, fetch->row[i]);
    for (int64_t i = 0; i < count; i++) fetch->row[i] = gr_sample_numbering_find(&made->work->numbering, fetch->row[i]);
    return GRAFT_OK;
}

int32_t gr_parallel_fetch_extend(void *cached, const struct gr_making *made, int32_t l, int32_t rc, graft_error *error)
{
    struct gr_cached       *c = cached;
    struct gr_cached_layer *layer = &c->layer[l];

    if (rc == GRAFT_OK) rc = find_missing(c, made->batch, l, error);
    if (rc == GRAFT_OK) rc = reserve_fetched(c, layer, error);
    GR_TRY(gr_comm_agree(c->comm, rc, error));
    GR_TRY(ask_owners(c, &layer->fetch, error));
    return gr_comm_agree(c->comm, add_asked(made, &layer->fetch, error), error);
}

int32_t gr_parallel_fetch_number(struct gr_cached *c, graft_error *error)
{
    int64_t most = 0;

    if (!c->fetching.is_on) return GRAFT_OK;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        const struct gr_fetch *fetch = &c->layer[l].fetch;
        const int64_t          count = gr_comm_route_n_in(&fetch->route);

        for (int64_t i = 0; i < count; i++) fetch->row[i] = c->now.place[fetch->row[i]];
        if (count * c->layer[l].width > most) most = count * c->layer[l].width;
    }
    return GR_BUDGET_NEW(c->wish.batch, GR_USE_MESSAGES, c->fetching.asked, most, error);
}

static void keep_fetched(const struct gr_cached *c, struct gr_cached_layer *layer, const float *rows)
{
    const struct gr_fetch *fetch = &layer->fetch;
    struct gr_fetched     *fetched = &layer->fetched;

    if (!c->fetching.keeps || fetch->count == 0) return;
    for (int64_t i = 0; i < fetch->count; i++) fetched->vertex[i] = (int32_t)fetch->vertex[i];
    memcpy(fetched->rows, rows, (uint64_t)(fetch->count * layer->width) * sizeof *rows);
    fetched->count = fetch->count;
    fetched->batch = c->batch;
}

void gr_parallel_fetch_store(struct gr_cached *c, struct gr_cached_layer *layer, int threads)
{
    struct gr_fetched *fetched = &layer->fetched;

    if (fetched->count > 0 && fetched->batch != c->batch)
        (void)gr_sample_cache_store(&layer->cache, fetched->vertex, fetched->count, fetched->rows, fetched->batch,
                                    threads);
    fetched->count = 0;
}

int32_t gr_parallel_fetch_rows(struct gr_cached *c, struct gr_cached_layer *layer, const graft_dense *x, float *to,
                               graft_error *error)
{
    const struct gr_fetch *fetch = &layer->fetch;
    struct gr_run         *run = c->wish.run;
    const double           begin = gr_profile_begin(&run->profile);
    const int64_t          row_bytes = x->n_cols * (int64_t)sizeof *to;

    GR_ASSERT(x->n_cols == layer->width);
    gr_parallel_cached_copy_rows(run, x, fetch->row, gr_comm_route_n_in(&fetch->route), NULL, c->fetching.asked);
    GR_TRY(gr_comm_route_return(&fetch->route, c->fetching.asked, to, row_bytes, error));
    keep_fetched(c, layer, to);
    layer->fetched_rows += fetch->count;
    layer->fetched_bytes += fetch->count * row_bytes;
    gr_profile_end_alone(&run->profile, "fetch", begin);
    return GRAFT_OK;
}

int32_t gr_parallel_fetch_return(struct gr_cached *c, struct gr_cached_layer *layer, const float *gradient,
                                 graft_error *error)
{
    struct gr_run *run = c->wish.run;
    const double   begin = gr_profile_begin(&run->profile);
    const int64_t  row_bytes = layer->width * (int64_t)sizeof *gradient;

    layer->fetched_bytes += layer->fetch.count * row_bytes;
    GR_TRY(gr_comm_route_send(&layer->fetch.route, gradient, c->fetching.asked, row_bytes, error));
    gr_profile_end_alone(&run->profile, "fetch", begin);
    return GRAFT_OK;
}

void gr_parallel_fetch_add(const struct gr_cached *c, const struct gr_cached_layer *layer, const float *scale,
                           float *to)
{
    const int64_t width = layer->width;

    for (int64_t i = 0; i < gr_comm_route_n_in(&layer->fetch.route); i++) {
        const int32_t row = layer->fetch.row[i];
        const float   factor = scale != NULL ? scale[row] : 1;

        for (int64_t j = 0; j < width; j++) to[row * width + j] += factor * c->fetching.asked[i * width + j];
    }
}
