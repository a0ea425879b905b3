/* Rows of earlier batches in the state of a trainer, and what identifies its batches.
 *
 * Items of the state are the arrays of the tables themselves. If the host has set all of them, the next epoch uses the
 * tables. Otherwise the tables are emptied, and filled again with the new weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "base/options.h"
#include "sample/options.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

/* The arrays of each layer. */
enum table_part { ROWS, BATCHES, PLACES, SENT };

static int32_t table_parts(const struct gr_minibatches *m)
{
    return m->cached->comm == NULL ? 2 : 4;
}

/* A checksum of all data that determine the place and the vertex of each row. */
static int64_t layout_of(const struct gr_setup *s, const struct gr_minibatches *m)
{
    const graft_csr *a = m->graph;
    const int64_t    entries = a->row_ptr[a->n_rows], bits = m->cached->layer[m->cached->first].cache.codec.bits;
    uint32_t         crc = gr_crc(0, &bits, sizeof bits);

    crc = gr_crc(crc, a->row_ptr, (uint64_t)(a->n_rows + 1) * sizeof *a->row_ptr);
    crc = gr_crc(crc, a->col_idx, (uint64_t)(entries * gr_dtype_bytes(a->index_type)));
    if (s->derived.whole.vertex != NULL)
        crc = gr_crc(crc, s->derived.whole.vertex, (uint64_t)s->data.n * sizeof *s->derived.whole.vertex);
    if (m->cached->comm == NULL) return crc;
    crc = gr_crc(crc, &s->data.over->comm->rank, sizeof s->data.over->comm->rank);
    crc = gr_crc(crc, &s->data.over->comm->n_ranks, sizeof s->data.over->comm->n_ranks);
    return gr_crc(crc, m->halo.name, (uint64_t)s->derived.graph.part.halo.count * sizeof *m->halo.name);
}

/* A checksum of all that determines to which batch a seed of this rank is dealt. */
static uint32_t checksum_of(const struct gr_setup *s, const graft_sampler *sampler)
{
    const int64_t *seeds = gr_sampler_seeds(sampler), n_batches = gr_sampler_batches(sampler);
    const int64_t  rank = s->data.over != NULL ? s->data.over->comm->rank : 0;
    const int64_t  options[] = { rank, (int64_t)gr_base_options(s->context)->seed,
                                 (int64_t)gr_sample_options(s->context)->sampler.word, gr_setup_has_history(s) };
    uint32_t       crc = gr_crc(0, options, sizeof options);

    for (int64_t b = 0; b < n_batches; b++) {
        const int64_t end = gr_sampler_first_seed(sampler, b + 1);

        for (int64_t i = gr_sampler_first_seed(sampler, b); i < end; i++) {
            const int64_t vertex = s->derived.whole.vertex != NULL ? s->derived.whole.vertex[seeds[i]] : seeds[i];

            crc = gr_crc(crc, &vertex, sizeof vertex);
        }
        crc = gr_crc(crc, &end, sizeof end);
    }
    return crc;
}

int32_t gr_train_batches_identify(const struct gr_setup *s, const graft_sampler *sampler, struct gr_batches_id *id,
                                  graft_error *error)
{
    double checksum = checksum_of(s, sampler);

    GR_TRY(gr_strategy_sum(s->run.strategy, &checksum, 1, error));
    id->n_batches = gr_sampler_batches(sampler);
    id->batch_size = gr_sample_options(s->context)->batch_size;
    id->n_ranks = s->data.over != NULL ? s->data.over->comm->n_ranks : 1;
    id->checksum = (int64_t)checksum;
    return GRAFT_OK;
}

static void list_table(struct gr_minibatches *m, int32_t layer, const char *part, int64_t *data, int64_t words)
{
    const char            *kind = m->cached->comm == NULL ? GR_STATE_HISTORY : GR_STATE_CACHES;
    struct gr_state_table *table = &m->tables.table[m->tables.count++];

    *table = (struct gr_state_table){ .words = words, .data = data };
    if (layer < 0) snprintf(table->name, sizeof table->name, "%s%s", kind, part);
    else snprintf(table->name, sizeof table->name, "%s%d.%s", kind, (int)layer, part);
}

static void list_layer(struct gr_minibatches *m, int32_t l)
{
    struct gr_cache *cache = &m->cached->layer[l].cache;

    list_table(m, l, "rows", (int64_t *)(void *)cache->bytes, gr_sample_cache_words(cache));
    list_table(m, l, "batches", cache->since, cache->capacity);
    if (m->cached->comm == NULL) return;
    list_table(m, l, "places", (int64_t *)(void *)cache->vertex, gr_sample_cache_place_words(cache));
    list_table(m, l, "sent", m->cached->layer[l].last_sent, m->cached->links->send_start[m->cached->comm->n_ranks]);
}

int32_t gr_train_batch_tables_init(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_cached *c = m->cached;

    if (c == NULL || c->first == c->n_layers) return GRAFT_OK;
    if (c->comm != NULL && (c->comm->n_ranks == 1 || (c->push.rows_most == 0 && !c->fetching.keeps)))
        return GRAFT_OK; /* empty */
    GR_TRY(GR_BUDGET_NEW(&m->lasting.budget, GR_USE_MESSAGES, m->tables.table,
                         1 + table_parts(m) * (c->n_layers - c->first), error));
    m->tables.layout = layout_of(s, m);
    list_table(m, -1, "layout", &m->tables.layout, 1);
    for (int32_t l = c->first; l < c->n_layers; l++) list_layer(m, l);
    return GRAFT_OK;
}

static int32_t check_table_rows(const struct gr_cached *c, const struct gr_cached_layer *layer, const char *name,
                                const int64_t *data, graft_error *error)
{
    const struct gr_cache *cache = &layer->cache;
    const int64_t broken = gr_sample_cache_first_broken(cache, (const uint8_t *)data, cache->capacity, c->buffer);

    if (broken == cache->capacity) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s': row %lld is not a valid record of option 'hec.codec'",
                   name, (long long)broken);
}

/* A cache of rows from other ranks has -1 for a row without a code. */
static int32_t check_batches(const struct gr_state_table *table, const int64_t *data, int64_t least, graft_error *error)
{
    for (int64_t i = 0; i < table->words; i++)
        if (data[i] < least)
            return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s': element %lld is %lld, expected %lld or more",
                           table->name, (long long)i, (long long)data[i], (long long)least);
    return GRAFT_OK;
}

static int32_t check_table_places(struct gr_cache *cache, const char *name, const int64_t *data, graft_error *error)
{
    if (gr_sample_cache_can_place(cache, (const int32_t *)(const void *)data)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s' does not list each row of a cache once", name);
}

static int32_t check_layout(const struct gr_minibatches *m, const char *name, int64_t layout, graft_error *error)
{
    if (layout == m->tables.layout) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "state item '%s' is %lld, expected %lld: its rows are of another graph or rank, or of other options "
                   "'order' or 'hec.codec'",
                   name, (long long)layout, (long long)m->tables.layout);
}

int32_t gr_train_batch_table_check(const struct gr_minibatches *m, const struct gr_state_table *table,
                                   const int64_t *data, graft_error *error)
{
    const int64_t           at = table - m->tables.table - 1;
    struct gr_cached_layer *layer = &m->cached->layer[m->cached->first + at / table_parts(m)];

    if (at < 0) return check_layout(m, table->name, *data, error);
    switch ((enum table_part)(at % table_parts(m))) {
    case ROWS: return check_table_rows(m->cached, layer, table->name, data, error);
    case BATCHES: return check_batches(table, data, m->cached->comm == NULL ? 0 : -1, error);
    case PLACES: return check_table_places(&layer->cache, table->name, data, error);
    case SENT: break;
    }
    return check_batches(table, data, -1, error);
}

int gr_train_batch_tables_hold(const struct gr_minibatches *m, int is_set)
{
    int all = m->tables.count > 0;

    if (!is_set) return all && m->cached->is_filled;
    for (int32_t i = 0; i < m->tables.count; i++) all &= m->tables.table[i].is_set;
    return all;
}

void gr_train_batch_tables_take(struct gr_minibatches *m, int64_t now)
{
    struct gr_cached *c = m->cached;

    if (!gr_train_batch_tables_hold(m, 1)) {
        if (c != NULL) gr_parallel_cached_forget(c);
    } else {
        for (int32_t l = c->first; l < c->n_layers; l++) {
            if (c->comm == NULL) gr_sample_cache_place_all(&c->layer[l].cache);
            gr_sample_cache_adopt(&c->layer[l].cache, now, c->buffer);
        }
        c->is_filled = 1;
    }
    gr_train_batch_tables_unset(m);
}

void gr_train_batch_tables_unset(struct gr_minibatches *m)
{
    for (int32_t i = 0; i < m->tables.count; i++) m->tables.table[i].is_set = 0;
}
