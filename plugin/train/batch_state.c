/* Rows of earlier batches in the state of a trainer.
 *
 * Items of the state are the arrays of the tables themselves. If the host has set all of them, the next epoch uses the
 * tables. Otherwise the tables are emptied, and filled again with the weights that were set.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

/* The arrays of each layer. */
enum table_part { ROWS, BATCHES, N_PARTS };

/* A checksum of all that decides where each row is, and what it is a row of. */
static int64_t layout_of(const struct gr_setup *s, const struct gr_minibatches *m)
{
    const graft_csr *a = m->graph;
    const int64_t    entries = a->row_ptr[a->n_rows], bits = m->cached->layer[m->cached->first].cache.codec.bits;
    uint32_t         crc = gr_crc(0, &bits, sizeof bits);

    crc = gr_crc(crc, a->row_ptr, (uint64_t)(a->n_rows + 1) * sizeof *a->row_ptr);
    crc = gr_crc(crc, a->col_idx, (uint64_t)(entries * gr_dtype_bytes(a->index_type)));
    if (s->vertex != NULL) crc = gr_crc(crc, s->vertex, (uint64_t)s->n * sizeof *s->vertex);
    return crc;
}

static void list_table(struct gr_minibatches *m, int32_t layer, const char *part, int64_t *data, int64_t words)
{
    struct gr_state_table *table = &m->tables[m->n_tables++];

    *table = (struct gr_state_table){ .words = words, .data = data };
    if (layer < 0) snprintf(table->name, sizeof table->name, GR_STATE_TABLES "%s", part);
    else snprintf(table->name, sizeof table->name, GR_STATE_TABLES "%d.%s", (int)layer, part);
}

int32_t gr_batch_tables_init(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_cached *c = m->cached;
    int32_t           rc = GRAFT_OK;

    if (m->history == NULL || c->first == c->n_layers) return GRAFT_OK;
    GR_TRY(
        GR_BUDGET_NEW(&m->history->budget, GR_USE_MESSAGES, m->tables, 1 + N_PARTS * (c->n_layers - c->first), error));
    gr_batches_charge(s, &m->history->budget, m->history->charged, 1);
    m->layout = layout_of(s, m);
    list_table(m, -1, "layout", &m->layout, 1);
    for (int32_t l = c->first; l < c->n_layers; l++) {
        struct gr_cache *cache = &c->layer[l].cache;

        list_table(m, l, "rows", (int64_t *)(void *)cache->bytes, gr_cache_words(cache));
        list_table(m, l, "batches", cache->since, cache->capacity);
    }
done:
    return rc;
}

static int32_t check_table_rows(const struct gr_cached *c, const struct gr_cached_layer *layer, const char *name,
                                const int64_t *data, graft_error *error)
{
    const struct gr_cache *cache = &layer->cache;
    const int64_t          broken = gr_cache_first_broken(cache, (const uint8_t *)data, cache->capacity, c->buffer);

    if (broken == cache->capacity) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s': row %lld is no row in the codec of option 'hec.codec'",
                   name, (long long)broken);
}

static int32_t check_batches(const struct gr_state_table *table, const int64_t *data, graft_error *error)
{
    for (int64_t i = 0; i < table->words; i++)
        if (data[i] < 0)
            return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s': element %lld is %lld, expected 0 or more",
                           table->name, (long long)i, (long long)data[i]);
    return GRAFT_OK;
}

int32_t gr_batch_table_check(const struct gr_minibatches *m, const struct gr_state_table *table, const int64_t *data,
                             graft_error *error)
{
    const int64_t                 at = table - m->tables - 1;
    const struct gr_cached_layer *layer = &m->cached->layer[m->cached->first + at / N_PARTS];

    if (at >= 0)
        return at % N_PARTS == ROWS ? check_table_rows(m->cached, layer, table->name, data, error)
                                    : check_batches(table, data, error);
    if (*data == m->layout) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "state item '%s' is %lld, expected %lld: its rows are of another graph, or of other options 'order' "
                   "or 'hec.codec'",
                   table->name, (long long)*data, (long long)m->layout);
}

int gr_batch_tables_hold(const struct gr_minibatches *m, int is_set)
{
    int all = m->n_tables > 0;

    if (!is_set) return all && m->cached->is_filled;
    for (int32_t i = 0; i < m->n_tables; i++) all &= m->tables[i].is_set;
    return all;
}

void gr_batch_tables_take(struct gr_minibatches *m, int64_t now)
{
    struct gr_cached *c = m->cached;

    if (!gr_batch_tables_hold(m, 1)) {
        if (c != NULL) gr_cached_forget(c);
    } else {
        for (int32_t l = c->first; l < c->n_layers; l++) gr_cache_adopt(&c->layer[l].cache, now);
        c->is_filled = 1;
    }
    gr_batch_tables_unset(m);
}

void gr_batch_tables_unset(struct gr_minibatches *m)
{
    for (int32_t i = 0; i < m->n_tables; i++) m->tables[i].is_set = 0;
}
