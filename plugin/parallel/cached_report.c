/* Counts of the caches of all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "comm/collective.h"

static void list_numbers(const struct gr_cached_layer *layer, int64_t *number)
{
    const struct gr_cache_counts *c = &layer->cache.counts;

    number[GR_CACHE_CAPACITY] = layer->cache.capacity;
    number[GR_CACHE_USED] = layer->cache.used;
    number[GR_CACHE_SEARCHED] = c->searched;
    number[GR_CACHE_FOUND] = c->found;
    number[GR_CACHE_EXPIRED] = c->expired;
    number[GR_CACHE_AGES] = c->ages;
    number[GR_CACHE_OLDEST] = c->oldest;
    number[GR_CACHE_STORED] = c->stored;
    number[GR_CACHE_EVICTED] = c->evicted;
    number[GR_CACHE_CANDIDATES] = layer->sent.candidates;
    number[GR_CACHE_ROWS_SENT] = layer->sent.rows;
    number[GR_CACHE_BYTES_SENT] = layer->sent.bytes;
    number[GR_CACHE_ROWS_FETCHED] = layer->fetched_rows;
    number[GR_CACHE_BYTES_FETCHED] = layer->fetched_bytes;
}

/* Features of the halo were fetched once, and are complete. */
static void list_features(const struct gr_cached *c, int64_t *number)
{
    const int64_t sent = c->links->send_start[c->comm->n_ranks];

    number[GR_CACHE_CAPACITY] = number[GR_CACHE_USED] = number[GR_CACHE_STORED] = c->links->halo->count;
    number[GR_CACHE_SEARCHED] = number[GR_CACHE_FOUND] = c->counts.features_read;
    number[GR_CACHE_CANDIDATES] = number[GR_CACHE_ROWS_SENT] = sent;
    number[GR_CACHE_BYTES_SENT] = c->wish.feature_bytes * sent;
}

int32_t gr_parallel_cached_gather(struct gr_batch_strategy *strategy, graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);

    if (c->comm != NULL) list_features(c, c->counts.mine + (int64_t)(c->first - 1) * GR_CACHE_NUMBERS);
    for (int32_t l = c->first; l < c->n_layers; l++)
        list_numbers(&c->layer[l], c->counts.mine + (int64_t)l * GR_CACHE_NUMBERS);
    if (c->comm == NULL) return GRAFT_OK;
    return gr_comm_allgather(c->comm, c->counts.mine, (uint64_t)c->n_layers * GR_CACHE_NUMBERS * sizeof *c->counts.mine,
                             c->counts.numbers, error);
}

static void add_numbers(int64_t *sum, const int64_t *number)
{
    for (int i = 0; i < GR_CACHE_NUMBERS; i++) {
        if (i != GR_CACHE_OLDEST) sum[i] += number[i];
        else if (number[i] > sum[i]) sum[i] = number[i];
    }
}

int32_t gr_parallel_cached_item(const struct gr_strategy *strategy, int32_t rank, int32_t index, graft_cache_item *item,
                                graft_error *error)
{
    const struct gr_cached *c = (const struct gr_cached *)strategy;
    const int32_t n_ranks = c->comm != NULL ? c->comm->n_ranks : 1, features = c->comm != NULL; /* an item of them */
    const int32_t layer = c->first - features + index;
    int64_t       sum[GR_CACHE_NUMBERS] = { 0 };

    if (rank < -1 || rank >= n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected -1 to %d", rank, n_ranks - 1);
    if (index < 0 || layer >= c->n_layers)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no cache %d, there are %d", index,
                       c->n_layers - c->first + features);
    for (int32_t q = 0; q < n_ranks; q++)
        if (rank < 0 || rank == q)
            add_numbers(sum, c->counts.numbers + ((int64_t)q * c->n_layers + layer) * GR_CACHE_NUMBERS);
    item->rank = rank;
    item->layer = layer;
    item->width = index < features ? gr_run_config(c->wish.run)->width[0] : c->layer[layer].width;
    item->capacity = sum[GR_CACHE_CAPACITY];
    item->used = sum[GR_CACHE_USED];
    item->searched = sum[GR_CACHE_SEARCHED];
    item->found = sum[GR_CACHE_FOUND];
    item->expired = sum[GR_CACHE_EXPIRED];
    item->age = sum[GR_CACHE_FOUND] > 0 ? (double)sum[GR_CACHE_AGES] / (double)sum[GR_CACHE_FOUND] : 0;
    item->age_max = sum[GR_CACHE_OLDEST];
    item->stored = sum[GR_CACHE_STORED];
    item->evicted = sum[GR_CACHE_EVICTED];
    item->candidates = sum[GR_CACHE_CANDIDATES];
    item->rows_sent = sum[GR_CACHE_ROWS_SENT];
    item->bytes_sent = sum[GR_CACHE_BYTES_SENT];
    item->bytes_if_fetched = 4 * item->width * item->searched;
    item->rows_fetched = sum[GR_CACHE_ROWS_FETCHED];
    item->bytes_fetched = sum[GR_CACHE_BYTES_FETCHED];
    return GRAFT_OK;
}
