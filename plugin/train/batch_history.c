/* Historical embeddings in one process (Fey et al. 2021, "GNNAutoScale", section 2): a batch gathers from all
 * in-neighbours of its vertices, and no deeper. It computes the rows of its own vertices, with exact gradients; rows of
 * other vertices come from the last batch that computed them, and are constants. The first layer that gathers reads
 * features, and is exact.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/memory.h"
#include "sample/kind.h"
#include "train/train.h"

#include <string.h>

static int32_t check_history_options(const struct gr_setup *s, graft_error *error)
{
    const struct gr_sampling_options *options = &s->context->options.sampling;
    const struct gr_sampler_kind     *kind = gr_sample_kind(s->context);

    if (kind->no_history != NULL)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "options 'history' and 'sampler=%s' cannot be set together: %s; expected neighbour or cluster",
                       kind->word, kind->no_history);
    if (options->drop_last && !kind->deals_evenly) /* else it has no effect */
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'drop_last' is yes, but with history=full each epoch renews the rows of all vertices");
    if (options->fanout.count > 1 && kind->has_fanout)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'fanout' is a list of %d numbers, but with history=full all layers gather from the same "
                       "neighbours; expected one number",
                       options->fanout.count);
    return GRAFT_OK;
}

int32_t gr_batch_history_init(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const struct gr_config *config = &s->model.config;
    int64_t                 width[GR_LAYERS_MAX];
    struct gr_cached_wish   wish = { .ranks = s->run.strategy, .n_layers = config->n_layers, .width = width };
    int32_t                 rc = GRAFT_OK;

    GR_TRY(check_history_options(s, error));
    GR_TRY(GR_NEW(s->context, m->history, 1, error));
    m->cached = &m->history->cached;
    gr_budget_init(&m->history->budget, s->context, s->budget.limit);
    m->history->budget.limit -= gr_budget_total(&s->budget);
    wish.first = config->gathers_from + 1 < config->n_layers ? config->gathers_from + 1 : config->n_layers;
    for (int32_t l = 0; l < config->n_layers; l++)
        width[l] = config->kind->attends ? gr_config_wide(config, l) : gr_summed_columns(&s->run.layers[l]);
    GR_TRY(gr_cached_init_full(m->cached, s->context, &wish, s->data.n, &m->history->budget, error));
    gr_batches_charge(s, &m->history->budget, m->history->charged, 1);
done:
    return rc;
}

void gr_batch_history_fini(struct gr_setup *s, struct gr_minibatches *m)
{
    struct gr_batch_history *h = m->history;

    if (h == NULL) return;
    gr_batches_charge(s, &h->budget, h->charged, 0);
    gr_cached_fini(&h->cached);
    gr_budget_fini(&h->budget);
    gr_free(s->context, h);
    m->history = NULL;
    m->cached = NULL;
}

/* The blocks of all vertices as the blocks of one batch. */
static int32_t make_whole_blocks(struct gr_setup *s, struct gr_minibatches *m, int32_t *own, struct gr_block *block,
                                 const struct gr_block **block_of, graft_error *error)
{
    const int reads_rows = s->model.config.kind->attends || s->model.config.extremum != 0;
    uint8_t  *kind = NULL;
    int32_t   rc = GRAFT_OK;

    for (int64_t v = 0; v < s->data.n; v++) own[v] = (int32_t)v;
    if (reads_rows) GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, kind, s->data.n, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        block[l] = *s->derived.whole_of[l];
        block_of[l] = &block[l];
        if (l < m->cached->first) continue;
        m->cached->layer[l].n_rows = 0;
        block[l].of_strategy = &m->cached->layer[l];
        block[l].kind = kind;
    }
done:
    return rc;
}

int32_t gr_batch_history_fill(struct gr_setup *s, struct gr_minibatches *m, int64_t number, graft_error *error)
{
    struct gr_cached      *c = m->cached;
    struct gr_block        block[GR_LAYERS_MAX];
    const struct gr_block *block_of[GR_LAYERS_MAX];
    int32_t               *own, rc = GRAFT_OK;

    if (c->is_filled || c->first == c->n_layers) return GRAFT_OK;
    GR_TRY(gr_arrays_for_all(s, error));
    m->budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, own, s->data.n, error));
    GR_TRY(make_whole_blocks(s, m, own, block, block_of, error));
    c->batch = c->life.now = number;
    c->own = own;
    c->n_own = s->data.n;
    s->run.strategy = &c->base;
    GR_TRY(gr_run_forward(&s->run, GRAFT_PASS_EVALUATION, block_of, error));
    c->is_filled = c->unfit == 0; /* otherwise the step fails, or is cancelled, and the tables are filled again */
done:
    gr_arrays_fini(s);
    s->run.strategy = m->strategy;
    return rc;
}

int32_t gr_batch_history_begin(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                               int64_t number, graft_error *error)
{
    struct gr_cached *c = m->cached;
    int32_t          *vertex, rc = GRAFT_OK;

    (void)s;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, vertex, batch->n_vertices, error));
    for (int64_t i = 0; i < batch->n_vertices; i++) vertex[i] = (int32_t)batch->vertex[i];
    m->history->vertex = vertex;
    c->batch = c->life.now = number;
    c->own = vertex;
    c->n_own = batch->n_seeds;
done:
    return rc;
}

/* Find the rows of the vertices of other batches. */
static int32_t find_rows(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                         struct gr_cached_layer *layer, graft_error *error)
{
    const int64_t count = batch->n_vertices - batch->n_seeds;
    int32_t      *row, rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_GRAPH, row, count, error));
    gr_cache_find(&layer->cache, m->history->vertex + batch->n_seeds, count, &m->cached->life, s->run.threads, row);
    layer->row = row;
    layer->n_rows = count;
done:
    return rc;
}

/* All layers with tables have the same edges. */
static void share_block(struct gr_minibatches *m, struct gr_cached_layer *layer, int32_t l)
{
    m->block[l] = m->block[l - 1];
    m->block[l].of_strategy = layer;
    layer->halo = m->cached->layer[l - 1].halo;
    layer->rows = m->cached->layer[l - 1].rows;
}

int32_t gr_batch_history_block(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                               graft_error *error)
{
    const struct gr_sampled_layer *from = &batch->layers[0];
    struct gr_cached_layer        *layer = l >= m->cached->first ? &m->cached->layer[l] : NULL;
    const int64_t                  rows = l < s->model.config.gathers_from ? batch->n_vertices : batch->n_seeds;
    const struct gr_batch_layer    b = { .n_dst = rows,
                                         .n_src = layer != NULL ? batch->n_seeds : batch->n_vertices,
                                         .n_seen = batch->n_vertices,
                                         .n_edges = from->n_edges,
                                         .row_ptr = from->row_ptr,
                                         .col = from->col,
                                         .entry = from->entry,
                                         .from = from,
                                         .cached = layer };
    int32_t                        rc = GRAFT_OK;

    if (layer != NULL) GR_TRY(find_rows(s, m, batch, layer, error));
    if (layer == NULL || l == m->cached->first) return gr_batch_block(s, m, l, &b, error);
    share_block(m, layer, l);
done:
    return rc;
}
