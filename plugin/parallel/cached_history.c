/* Batches of one process that read rows of earlier batches, from a table for each layer that has a row of every vertex.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "sample/options.h"

/* ROWS_ROOM: the factor in the cache size that leaves space for all rows, even if encoded rows are larger than
 * floats. */
enum { ROWS_AT_ONCE = 4096, ROWS_ROOM = 64 };

int32_t gr_parallel_history_init(struct gr_cached *c, graft_error *error)
{
    struct gr_budget *budget = c->wish.lasting;
    const int32_t     bits = gr_cache_bits[gr_sample_options(c->context)->cache_codec];
    const int64_t     n = c->graph->n_rows;

    c->life.takes_expired = 1;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->layer, c->n_layers, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->counts.all, c->n_layers, error));
    c->counts.mine = c->counts.all;
    gr_parallel_cached_set_widths(c);
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_cached_layer *layer = &c->layer[l];

        GR_TRY(gr_sample_cache_init(&layer->cache, budget, n, ROWS_ROOM * n, layer->width, bits, ROWS_AT_ONCE, error));
        GR_ASSERT(layer->cache.capacity == n);
        layer->cache.has_no_messages = 1;
    }
    return GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->buffer, ROWS_AT_ONCE * c->widest, error);
}

static int32_t begin_batch(struct gr_batch_strategy *strategy, int64_t number, graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);

    (void)error;
    c->batch = c->life.now = number;
    c->base.unfit = 0;
    return GRAFT_OK;
}

static int32_t number_vertices(struct gr_batch_strategy *strategy, const struct gr_batch *batch, const int64_t **vertex,
                               int64_t *n_owned, graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);
    int32_t          *place;

    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, place, batch->n_vertices, error));
    for (int64_t i = 0; i < batch->n_vertices; i++) place[i] = (int32_t)(batch->vertex != NULL ? batch->vertex[i] : i);
    c->now.place = place;
    c->now.n_owned = batch->n_seeds;
    *vertex = batch->vertex;
    *n_owned = batch->n_vertices;
    return GRAFT_OK;
}

/* Set the edges of a layer. All layers with tables have the same edges. Vertices whose rows are read from tables follow
 * the seeds. */
static int32_t read_tables(struct gr_batch_strategy *strategy, const struct gr_batch *batch, int32_t l,
                           struct gr_batch_layer *b, graft_error *error)
{
    struct gr_cached              *c = gr_cached_of(strategy);
    const struct gr_config        *config = gr_run_config(c->wish.run);
    const struct gr_sampled_layer *from = &batch->layers[0];
    const int64_t                  count = batch->n_vertices - batch->n_seeds;
    int32_t                       *row;

    *b = (struct gr_batch_layer){ .n_dst = l < config->gathers_from ? batch->n_vertices : batch->n_seeds,
                                  .n_src = l < c->first ? batch->n_vertices : batch->n_seeds,
                                  .n_seen = batch->n_vertices,
                                  .n_edges = from->n_edges,
                                  .row_ptr = from->row_ptr,
                                  .col = from->col,
                                  .entry = from->entry,
                                  .from = from,
                                  .is_shared = l > c->first };
    if (l < c->first) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, row, count, error));
    gr_sample_cache_find(&c->layer[l].cache, c->now.place + batch->n_seeds, count, &c->life, c->wish.run->threads, row);
    c->layer[l].row = row;
    return GRAFT_OK;
}

void gr_parallel_history_store(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer,
                               const graft_dense *x)
{
    const double begin = gr_profile_begin(&run->profile);
    const int    has_gaps = x->dtype != GRAFT_F32 || x->stride != x->n_cols;

    GR_ASSERT(x->n_cols == layer->width && x->n_rows >= c->now.n_owned);
    for (int64_t at = 0; at < c->now.n_owned; at += ROWS_AT_ONCE) {
        const int64_t count = gr_smaller(c->now.n_owned - at, ROWS_AT_ONCE);
        const float  *from = has_gaps ? c->buffer : (const float *)x->data + at * x->stride;

        for (int64_t i = 0; has_gaps && i < count; i++)
            gr_parallel_cached_copy_row(x, at + i, c->buffer + i * x->n_cols);
        c->base.unfit +=
            gr_sample_cache_store(&layer->cache, c->now.place + at, count, from, c->life.now, run->threads);
    }
    gr_profile_end_alone(&run->profile, "push", begin);
}

const struct gr_batch_ops gr_history_batches = { .begin = begin_batch,
                                                 .number = number_vertices,
                                                 .layer = read_tables,
                                                 .block = gr_parallel_cached_block,
                                                 .end = gr_parallel_cached_end,
                                                 .settle = gr_parallel_cached_gather,
                                                 .check_table = gr_parallel_cached_check_table,
                                                 .adopt = gr_parallel_cached_adopt };
