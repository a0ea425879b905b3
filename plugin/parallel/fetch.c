/* Rows of the halo that their owners compute for a batch.
 *
 * While the blocks of a batch are made, layer by layer from the last one, each rank tells the owners which vertices of
 * its halo it needs of a layer; there they are destinations of the layer below. Forward, owners send these rows;
 * backward, the gradients of these rows are sent back, and added to the gradients of the owner in the order of ranks.
 * All ranks take part, also ranks without rows. Messages are collective calls of the comm, and all wait for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "comm/collective.h"
#include "parallel/cached.h"

#include <string.h>

/* -- requests ----------------------------------------------------------------------------------------------------- */

static int32_t make_starts(const struct gr_cached *c, struct gr_budget *budget, struct gr_fetch *fetch,
                           graft_error *error)
{
    for (int side = 0; side < GR_SIDES; side++)
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, fetch->start[side], c->comm->n_ranks + 1, error));
    return GR_BUDGET_NEW(budget, GR_USE_MESSAGES, fetch->place, fetch->count, error);
}

/* The places of the vertices on their owners, and the number of vertices of each rank. */
static void list_places(const struct gr_cached *c, struct gr_fetch *fetch)
{
    int64_t *start = fetch->start[GR_RECEIVE], i = 0;

    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        for (; i < fetch->count && fetch->vertex[i] < c->links->halo->start[q + 1]; i++)
            fetch->place[i] = c->links->halo->place[fetch->vertex[i]];
        start[q + 1] = i;
    }
}

/* Exchange the number of rows that each rank asks for. A wrong number is an error of another rank that only this rank
 * has seen. */
static int32_t tell_counts(struct gr_cached *c, const struct gr_fetch *fetch, graft_error *error)
{
    const int64_t *mine = fetch->start[GR_RECEIVE];
    int64_t       *start = fetch->start[GR_SEND];

    for (int32_t q = 0; q < c->comm->n_ranks; q++) c->push.begin[q] = mine[q + 1] - mine[q];
    GR_TRY(gr_comm_alltoall(c->comm, c->push.begin, sizeof *c->push.begin, start + 1, error));
    for (int32_t q = 0; q < c->comm->n_ranks; q++) {
        const int64_t count = start[q + 1];

        if (count < 0 || count > gr_rows_sent(c, q)) {
            (void)gr_fail(error, GRAFT_ERR_FORMAT, "rank %d asks for %lld rows, but has %lld in its halo", q,
                          (long long)count, (long long)gr_rows_sent(c, q));
            return gr_comm_fail(c->comm, error);
        }
        start[q + 1] += start[q];
    }
    return GRAFT_OK;
}

void gr_parallel_fetched_fini(struct gr_cached *c, struct gr_fetched *fetched)
{
    gr_budget_charge(c->budget, GR_USE_MESSAGES, -gr_memory_bytes(fetched->vertex) - gr_memory_bytes(fetched->rows));
    gr_free(c->context, fetched->vertex);
    gr_free(c->context, fetched->rows);
    *fetched = (struct gr_fetched){ 0 };
}

/* Space for the rows of this batch; the rows of the last batch have been stored. */
static int32_t reserve_fetched(struct gr_cached *c, struct gr_cached_layer *layer, graft_error *error)
{
    struct gr_fetched *fetched = &layer->fetched;
    const int64_t      more = gr_smaller(layer->fetch.count + layer->fetch.count / 4, c->links->halo->count);
    int32_t            rc = GRAFT_OK;

    if (!c->fetching.keeps || layer->fetch.count <= fetched->capacity) return GRAFT_OK;
    gr_parallel_fetched_fini(c, fetched);
    GR_TRY_DONE(
        gr_budget_check(c->budget, (double)more * 4.0 * (double)(layer->width + 1), "messages (fetched rows)", error));
    GR_TRY_DONE(GR_NEW(c->context, fetched->vertex, more, error));
    GR_TRY_DONE(GR_NEW(c->context, fetched->rows, more * layer->width, error));
    fetched->capacity = more;
done:
    gr_budget_charge(c->budget, GR_USE_MESSAGES, gr_memory_bytes(fetched->vertex) + gr_memory_bytes(fetched->rows));
    return rc;
}

int32_t gr_parallel_fetch_ask(struct gr_cached *c, struct gr_budget *budget, struct gr_cached_layer *layer, int32_t rc,
                              graft_error *error)
{
    struct gr_fetch *fetch = &layer->fetch;
    int64_t          asked;

    if (rc == GRAFT_OK) rc = make_starts(c, budget, fetch, error);
    if (rc == GRAFT_OK) rc = reserve_fetched(c, layer, error);
    GR_TRY_DONE(gr_comm_agree(c->comm, rc, error));
    list_places(c, fetch);
    GR_TRY_DONE(tell_counts(c, fetch, error));
    asked = fetch->start[GR_SEND][c->comm->n_ranks];
    GR_TRY_DONE(gr_comm_agree(c->comm, GR_BUDGET_NEW(budget, GR_USE_MESSAGES, fetch->row, asked, error), error));
    GR_TRY_DONE(gr_comm_alltoallv(c->comm, fetch->place, fetch->start[GR_RECEIVE], fetch->row, fetch->start[GR_SEND],
                                  sizeof *fetch->row, error));
    for (int64_t i = 0; i < asked; i++) {
        if (fetch->row[i] >= 0 && fetch->row[i] < c->graph->n_rows) continue;
        (void)gr_fail(error, GRAFT_ERR_FORMAT, "another rank asks for vertex %d, but this one has %lld",
                      (int)fetch->row[i], (long long)c->graph->n_rows);
        return gr_comm_fail(c->comm, error);
    }
done:
    return rc;
}

int32_t gr_parallel_fetch_reserve(struct gr_cached *c, struct gr_budget *budget, graft_error *error)
{
    int64_t most = 0;

    for (int32_t l = c->first; l < c->n_layers; l++) {
        const int64_t elements = c->layer[l].fetch.start[GR_SEND][c->comm->n_ranks] * c->layer[l].width;

        if (elements > most) most = elements;
    }
    return GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->fetching.asked, most, error);
}

/* -- a step ------------------------------------------------------------------------------------------------------- */

struct copying_rows {
    const struct gr_fetch *fetch;
    const graft_dense     *x;
    float                 *to;
};

static void copy_sources(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct copying_rows *p = arg;

    (void)chunk;
    for (int64_t i = begin; i < end; i++) gr_parallel_cached_copy_row(p->x, p->fetch->row[i], p->to + i * p->x->n_cols);
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

/* Rows and bytes that this rank receives or sends back. */
static void count_fetched(struct gr_cached_layer *layer, int64_t width)
{
    layer->fetched_bytes += (int64_t)sizeof(float) * layer->fetch.count * width;
}

int32_t gr_parallel_fetch_rows(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer,
                               const graft_dense *x, float *to, graft_error *error)
{
    const struct gr_fetch *fetch = &layer->fetch;
    const int64_t          count = fetch->start[GR_SEND][c->comm->n_ranks];
    struct copying_rows    copying = { fetch, x, c->fetching.asked };
    struct gr_team         team = gr_run_team(run);

    GR_ASSERT(x->n_cols == layer->width);
    team.poll = NULL;
    gr_parallel_chunks(team, count * x->n_cols, count, GR_ROWS_AT_ONCE, copy_sources, &copying);
    GR_TRY(gr_comm_alltoallv(c->comm, c->fetching.asked, fetch->start[GR_SEND], to, fetch->start[GR_RECEIVE],
                             x->n_cols * (int64_t)sizeof *to, error));
    keep_fetched(c, layer, to);
    layer->fetched_rows += fetch->count;
    count_fetched(layer, x->n_cols);
    return GRAFT_OK;
}

int32_t gr_parallel_fetch_return(struct gr_cached *c, struct gr_cached_layer *layer, const float *gradient,
                                 int64_t width, graft_error *error)
{
    const struct gr_fetch *fetch = &layer->fetch;

    GR_ASSERT(width == layer->width);
    count_fetched(layer, width);
    return gr_comm_alltoallv(c->comm, gradient, fetch->start[GR_RECEIVE], c->fetching.asked, fetch->start[GR_SEND],
                             width * (int64_t)sizeof *gradient, error);
}

void gr_parallel_fetch_add(const struct gr_cached *c, const struct gr_cached_layer *layer, const float *scale,
                           float *to)
{
    const int64_t width = layer->width;

    for (int64_t i = 0; i < layer->fetch.start[GR_SEND][c->comm->n_ranks]; i++) {
        const int32_t row = layer->fetch.row[i];
        const float   factor = scale != NULL ? scale[row] : 1;

        for (int64_t j = 0; j < width; j++) to[row * width + j] += factor * c->fetching.asked[i * width + j];
    }
}
