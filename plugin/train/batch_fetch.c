/* Batches over ranks with hec.miss=fetch: the owners compute, in the same batch, the rows of a layer that a rank needs
 * and its cache does not have. So the destinations of a layer are the sources of the layer above and the vertices whose
 * rows other ranks need. The neighbours of each vertex are drawn once, by its owner.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"
#include "comm/collective.h"
#include "sample/kind.h"
#include "train/minibatch.h"

/* The halo vertex at the source of an edge of layer l, if its row must be fetched; else -1. */
static int64_t missing_vertex(const struct gr_setup *s, const struct gr_cached *c, const struct gr_batch *batch,
                              int32_t l, int64_t edge)
{
    const int64_t v = batch->vertex[batch->layers[l].col[edge]] - s->data.n;

    return v < 0 || gr_sample_cache_has(&c->layer[l].cache, v, &c->life) ? -1 : v;
}

/* The vertices of the halo whose rows layer l fetches. */
static int32_t find_missing(const struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                            graft_error *error)
{
    struct gr_fetch *fetch = &m->cached->layer[l].fetch;
    int64_t          edges = 0;

    for (int64_t e = 0; e < batch->layers[l].n_edges; e++) edges += missing_vertex(s, m->cached, batch, l, e) >= 0;
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_MESSAGES, fetch->vertex, edges, error));
    for (int64_t e = 0; e < batch->layers[l].n_edges; e++) {
        const int64_t v = missing_vertex(s, m->cached, batch, l, e);

        if (v >= 0) fetch->vertex[fetch->count++] = v;
    }
    if (edges > 0)
        return gr_sort_unique(s->context, fetch->vertex, s->derived.graph.part.halo.count - 1, &fetch->count, error);
    return GRAFT_OK;
}

/* Add missing destinations of layer l - 1 for other ranks; their numbers replace the vertices. */
static int32_t add_asked(const struct gr_making *made, struct gr_fetch *fetch, int64_t count, graft_error *error)
{
    GR_TRY(gr_sample_making_reserve(made, count, error));
    for (int64_t i = 0; i < count; i++) gr_sample_making_add(made, fetch->row[i]);
    for (int64_t i = 0; i < count; i++) fetch->row[i] = gr_sample_numbering_find(&made->work->numbering, fetch->row[i]);
    return GRAFT_OK;
}

static int32_t extend_batch(void *arg, const struct gr_making *made, int32_t l, int32_t rc, graft_error *error)
{
    struct gr_batch_ranks  *r = arg;
    struct gr_minibatches  *m = r->batches;
    struct gr_comm         *comm = m->cached->comm;
    struct gr_cached_layer *layer = &m->cached->layer[l];

    layer->fetch = (struct gr_fetch){ 0 };
    if (rc == GRAFT_OK) rc = find_missing(r->setup, m, made->batch, l, error);
    rc = gr_parallel_fetch_ask(m->cached, &m->now.budget, layer, rc, error);
    gr_train_batches_charge(r->setup, m);
    GR_TRY(rc);
    return gr_comm_agree(comm, add_asked(made, &layer->fetch, layer->fetch.start[GR_SEND][comm->n_ranks], error),
                         error);
}

const struct gr_extension *gr_train_batch_fetch_extension(struct gr_setup *s, struct gr_minibatches *m)
{
    struct gr_batch_ranks *r = m->ranks;

    if (!m->cached->fetching.is_on) return NULL;
    r->setup = s;
    r->batches = m;
    r->extension = (struct gr_extension){ extend_batch, r, m->cached->first - 1 };
    return &r->extension;
}

int32_t gr_train_batch_fetch_number(struct gr_minibatches *m, graft_error *error)
{
    const int32_t n_ranks = m->cached->comm->n_ranks;

    if (!m->cached->fetching.is_on) return GRAFT_OK;
    for (int32_t l = m->cached->first; l < m->cached->n_layers; l++) {
        struct gr_fetch *fetch = &m->cached->layer[l].fetch;

        for (int64_t i = 0; i < fetch->start[GR_SEND][n_ranks]; i++) fetch->row[i] = m->ranks->place[fetch->row[i]];
    }
    return gr_parallel_fetch_reserve(m->cached, &m->now.budget, error);
}
