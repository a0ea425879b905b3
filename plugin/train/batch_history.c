/* Historical embeddings in one process (Fey et al. 2021, "GNNAutoScale", section 2): a batch gathers from all
 * in-neighbours of its vertices, and no deeper. It computes the rows of its own vertices, with exact gradients; rows of
 * other vertices come from the last batch that computed them, and are constants. The first layer that gathers reads
 * features, and is exact.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/memory.h"
#include "run/pass.h"
#include "sample/kind.h"
#include "sample/options.h"
#include "train/train.h"

#include <string.h>

static int32_t check_history_options(const struct gr_setup *s, graft_error *error)
{
    const struct gr_sample_options *options = gr_sample_options(s->context);
    const struct gr_sampler_kind   *kind = gr_sample_kind(s->context);

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

static int32_t init_history(struct gr_setup *s, struct gr_minibatches *m, struct gr_cached_wish *wish,
                            graft_error *error)
{
    const int32_t rc = check_history_options(s, error);

    if (rc < 0) return rc;
    m->cached = &m->rows;
    return gr_parallel_cached_init_full(m->cached, s->context, wish, s->data.n, &m->lasting.budget, error);
}

/* All layers share one sampled layer. */
static void set_source(struct gr_setup *s, struct gr_minibatches *m, struct gr_sampler_source *source, int64_t *fanout)
{
    (void)m;
    source->n_layers = 1;
    source->by_parts = gr_sample_kind(s->context)->order != NULL;
    fanout[0] = source->by_parts || gr_option_is_default(s->context, "fanout")
                    ? GR_ALL_NEIGHBOURS
                    : gr_sample_options(s->context)->fanout.width[0];
}

/* The blocks of all vertices as the blocks of one batch. */
static int32_t make_whole_blocks(struct gr_setup *s, struct gr_minibatches *m, int32_t *own, struct gr_block *block,
                                 const struct gr_block **block_of, graft_error *error)
{
    const int reads_rows = s->model.config.kind->attends || s->model.config.extremum != 0;
    uint8_t  *kind = NULL;

    for (int64_t v = 0; v < s->data.n; v++) own[v] = (int32_t)v;
    if (reads_rows) GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, kind, s->data.n, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        block[l] = *s->derived.whole_of[l];
        block_of[l] = &block[l];
        if (l < m->cached->first) continue;
        m->cached->layer[l].n_rows = 0;
        block[l].of_strategy = &m->cached->layer[l];
        block[l].kind = kind;
    }
    return GRAFT_OK;
}

/* Fill empty tables by a forward pass over all vertices, without dropout. */
static int32_t fill_tables(struct gr_setup *s, struct gr_minibatches *m, int64_t number, graft_error *error)
{
    struct gr_cached      *c = m->cached;
    struct gr_block        block[GR_LAYERS_MAX];
    const struct gr_block *block_of[GR_LAYERS_MAX];
    int32_t               *own, rc = GRAFT_OK;

    if (c->is_filled || c->first == c->n_layers) return GRAFT_OK;
    GR_TRY_DONE(gr_setup_arrays_for_all(s, error));
    m->now.budget.limit = s->budget.limit - gr_budget_total(&s->budget);
    GR_TRY_DONE(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, own, s->data.n, error));
    GR_TRY_DONE(make_whole_blocks(s, m, own, block, block_of, error));
    c->batch = c->life.now = number;
    c->own.vertex = own;
    c->own.n = s->data.n;
    s->run.strategy = &c->base;
    GR_TRY_DONE(gr_run_forward(&s->run, GRAFT_PASS_EVALUATION, block_of, error));
    c->is_filled = c->own.unfit == 0; /* with unfit rows the step fails or is cancelled, and tables are filled again */
done:
    gr_setup_arrays_fini(s);
    s->run.strategy = m->whole.strategy;
    return rc;
}

static int32_t begin_batch(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int64_t number,
                           graft_error *error)
{
    struct gr_cached *c = m->cached;
    int32_t          *vertex;

    (void)s;
    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, vertex, batch->n_vertices, error));
    for (int64_t i = 0; i < batch->n_vertices; i++) vertex[i] = (int32_t)batch->vertex[i];
    c->batch = c->life.now = number;
    c->own.vertex = vertex;
    c->own.n = batch->n_seeds;
    return GRAFT_OK;
}

/* Find the rows of the vertices of other batches, which follow the own vertices. */
static int32_t find_rows(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch,
                         struct gr_cached_layer *layer, graft_error *error)
{
    const int64_t count = batch->n_vertices - batch->n_seeds;
    int32_t      *row;

    GR_TRY(GR_BUDGET_NEW(&m->now.budget, GR_USE_GRAPH, row, count, error));
    gr_sample_cache_find(&layer->cache, m->cached->own.vertex + batch->n_seeds, count, &m->cached->life, s->run.threads,
                         row);
    layer->row = row;
    layer->n_rows = count;
    return GRAFT_OK;
}

/* All layers with tables have the same edges, and share the space of rows. */
static int32_t read_tables(struct gr_setup *s, struct gr_minibatches *m, const struct gr_batch *batch, int32_t l,
                           struct gr_batch_layer *b, graft_error *error)
{
    const struct gr_sampled_layer *from = &batch->layers[0];

    *b = (struct gr_batch_layer){ .n_dst = l < s->model.config.gathers_from ? batch->n_vertices : batch->n_seeds,
                                  .n_src = batch->n_vertices,
                                  .n_seen = batch->n_vertices,
                                  .n_edges = from->n_edges,
                                  .row_ptr = from->row_ptr,
                                  .col = from->col,
                                  .entry = from->entry,
                                  .from = from };
    if (l < m->cached->first) return GRAFT_OK;
    b->n_src = batch->n_seeds;
    b->cached = &m->cached->layer[l];
    b->row_width = m->cached->widest;
    b->is_shared = l > m->cached->first;
    return find_rows(s, m, batch, b->cached, error);
}

const struct gr_batch_mode gr_train_history_batches = {
    .seeds = "vertices, which read rows of earlier batches,",
    .refills = "tables will be filled again",
    .renews = 1,
    .init = init_history,
    .source = set_source,
    .before = fill_tables,
    .begin = begin_batch,
    .layer = read_tables,
};
