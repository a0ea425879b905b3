/* Caches of one process: a table of each layer with a row of every vertex.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "sample/options.h"

/* ROWS_ROOM: with it the cache has place for all rows, even if a code is larger than its floats. */
enum { ROWS_AT_ONCE = 4096, ROWS_ROOM = 64 };

int32_t gr_parallel_cached_init_full(struct gr_cached *c, graft_context *context, const struct gr_cached_wish *wish,
                                     int64_t n, struct gr_budget *budget, graft_error *error)
{
    const int32_t bits = gr_cache_bits[gr_sample_options(context)->cache_codec];

    *c = (struct gr_cached){ .base = { &gr_cached_ops },
                             .budget = budget,
                             .ranks = wish->ranks,
                             .context = context,
                             .life = { .takes_expired = 1 },
                             .first = wish->first,
                             .n_layers = wish->n_layers };
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->layer, c->n_layers, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->counts.numbers, (int64_t)c->n_layers * GR_CACHE_NUMBERS, error));
    c->counts.mine = c->counts.numbers;
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_cached_layer *layer = &c->layer[l];

        layer->index = l;
        layer->width = wish->width[l];
        if (layer->width > c->widest) c->widest = layer->width;
        GR_TRY(gr_sample_cache_init(&layer->cache, budget, n, ROWS_ROOM * n, layer->width, bits, ROWS_AT_ONCE, error));
        GR_ASSERT(layer->cache.capacity == n);
        layer->cache.has_no_messages = 1;
    }
    return GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->buffer, ROWS_AT_ONCE * c->widest, error);
}

void gr_parallel_cached_store(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer,
                              const graft_dense *x)
{
    const double begin = gr_profile_begin(&run->profile);
    const int    has_gaps = x->dtype != GRAFT_F32 || x->stride != x->n_cols;

    GR_ASSERT(x->n_cols == layer->width && x->n_rows >= c->own.n);
    for (int64_t at = 0; at < c->own.n; at += ROWS_AT_ONCE) {
        const int64_t count = gr_smaller(c->own.n - at, ROWS_AT_ONCE);
        const float  *from = has_gaps ? c->buffer : (const float *)x->data + at * x->stride;

        for (int64_t i = 0; has_gaps && i < count; i++)
            gr_parallel_cached_copy_row(x, at + i, c->buffer + i * x->n_cols);
        c->own.unfit +=
            gr_sample_cache_store(&layer->cache, c->own.vertex + at, count, from, c->life.now, run->threads);
    }
    gr_profile_end_alone(&run->profile, "push", begin);
}
