/* Makes rows of earlier batches items of the state of a trainer. These items are the arrays of the caches themselves.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/crc.h"
#include "base/dtype.h"

#include <stdio.h>

/* The tables of each layer; in one process only the first two. Table 0 of the strategy is the layout. */
enum table_part { ROWS, BATCHES, PLACES, SENT };

static int32_t table_parts(const struct gr_cached *c)
{
    return c->comm == NULL ? 2 : 4;
}

/* Return a checksum of all data that determine the place and the vertex of each row; over ranks these include the
 * rank. */
static int64_t layout_of(const struct gr_cached *c)
{
    const graft_csr *a = c->graph;
    const int64_t    bits = c->layer[c->first].cache.codec.bits;
    uint32_t         crc = gr_crc(0, &bits, sizeof bits);

    crc = gr_crc(crc, a->row_ptr, (uint64_t)(a->n_rows + 1) * sizeof *a->row_ptr);
    crc = gr_crc(crc, a->col_idx, (uint64_t)(gr_csr_entries(a) * gr_dtype_bytes(a->index_type)));
    if (c->wish.vertex != NULL) crc = gr_crc(crc, c->wish.vertex, (uint64_t)a->n_rows * sizeof *c->wish.vertex);
    if (c->comm == NULL) return crc;
    crc = gr_crc(crc, &c->comm->rank, sizeof c->comm->rank);
    crc = gr_crc(crc, &c->comm->n_ranks, sizeof c->comm->n_ranks);
    return gr_crc(crc, c->wish.halo, (uint64_t)c->links->halo->count * sizeof *c->wish.halo);
}

static void list_table(struct gr_cached *c, int32_t layer, const char *part, int64_t *data, int64_t words)
{
    const char            *kind = c->comm == NULL ? GR_STATE_HISTORY : GR_STATE_CACHES;
    struct gr_state_table *table = &c->base.table[c->base.n_tables++];

    *table = (struct gr_state_table){ .words = words, .data = data };
    if (layer < 0) snprintf(table->name, sizeof table->name, "%s%s", kind, part);
    else snprintf(table->name, sizeof table->name, "%s%d.%s", kind, (int)layer, part);
}

static void list_layer(struct gr_cached *c, int32_t l)
{
    struct gr_cache *cache = &c->layer[l].cache;

    list_table(c, l, "rows", (int64_t *)(void *)cache->bytes, gr_sample_cache_words(cache));
    list_table(c, l, "batches", cache->since, cache->capacity);
    if (c->comm == NULL) return;
    list_table(c, l, "places", (int64_t *)(void *)cache->vertex, gr_sample_cache_place_words(cache));
    list_table(c, l, "sent", c->layer[l].last_sent, c->links->send_start[c->comm->n_ranks]);
}

int32_t gr_parallel_cached_list_tables(struct gr_cached *c, graft_error *error)
{
    if (c->first == c->n_layers) return GRAFT_OK;
    if (c->comm != NULL && (c->comm->n_ranks == 1 || (c->push.rows_most == 0 && !c->fetching.keeps)))
        return GRAFT_OK; /* caches are always empty */
    GR_TRY(GR_BUDGET_NEW(c->wish.lasting, GR_USE_MESSAGES, c->base.table, 1 + table_parts(c) * (c->n_layers - c->first),
                         error));
    c->layout = layout_of(c);
    list_table(c, -1, "layout", &c->layout, 1);
    for (int32_t l = c->first; l < c->n_layers; l++) list_layer(c, l);
    return GRAFT_OK;
}

/* Check numbers of batches. In a cache of rows from other ranks, -1 marks a row that the codec cannot represent. */
static int32_t check_batches(const struct gr_state_table *table, const int64_t *data, int64_t least, graft_error *error)
{
    for (int64_t i = 0; i < table->words; i++)
        if (data[i] < least)
            return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s': element %lld is %lld, expected %lld or more",
                           table->name, (long long)i, (long long)data[i], (long long)least);
    return GRAFT_OK;
}

/* Check values that the host sets for a table of a layer. */
static int32_t check_part(const struct gr_cached *c, struct gr_cache *cache, enum table_part part,
                          const struct gr_state_table *table, const int64_t *data, graft_error *error)
{
    int64_t broken;

    switch (part) {
    case ROWS:
        broken = gr_sample_cache_first_broken(cache, (const uint8_t *)data, cache->capacity, c->buffer);
        if (broken == cache->capacity) return GRAFT_OK;
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s': row %lld is not a valid record of option 'hec.codec'",
                       table->name, (long long)broken);
    case PLACES:
        if (gr_sample_cache_can_place(cache, (const int32_t *)(const void *)data)) return GRAFT_OK;
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s' does not list each row of a cache once", table->name);
    case BATCHES:
    case SENT: break;
    }
    return check_batches(table, data, c->comm == NULL ? 0 : -1, error);
}

int32_t gr_parallel_cached_check_table(const struct gr_batch_strategy *strategy, int32_t index, const int64_t *data,
                                       graft_error *error)
{
    const struct gr_cached      *c = (const struct gr_cached *)strategy;
    const struct gr_state_table *table = &strategy->table[index];
    const int32_t                at = index - 1, parts = table_parts(c);

    if (index > 0)
        return check_part(c, &c->layer[c->first + at / parts].cache, (enum table_part)(at % parts), table, data, error);
    if (*data == c->layout) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "state item '%s' is %lld, expected %lld: its rows are of another graph or rank, or of other options "
                   "'order' or 'hec.codec'",
                   table->name, (long long)*data, (long long)c->layout);
}

void gr_parallel_cached_adopt(struct gr_batch_strategy *strategy, int64_t now)
{
    struct gr_cached *c = gr_cached_of(strategy);

    for (int32_t l = c->first; l < c->n_layers; l++) {
        if (c->comm == NULL) gr_sample_cache_place_all(&c->layer[l].cache);
        gr_sample_cache_adopt(&c->layer[l].cache, now, c->buffer);
    }
    strategy->is_filled = 1;
}
