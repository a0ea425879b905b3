/* Gathers the counts of the caches of all ranks, for reports.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

/* Return the counts of a layer on this rank. `age` is the sum of the ages of found rows. */
static graft_cache_item count_layer(const struct gr_cached_layer *layer)
{
    const struct gr_cache_counts *c = &layer->cache.counts;

    return (graft_cache_item){ .width = layer->width,
                               .capacity = layer->cache.capacity,
                               .used = layer->cache.used,
                               .searched = c->searched,
                               .found = c->found,
                               .expired = c->expired,
                               .age = (double)c->ages,
                               .age_max = c->oldest,
                               .stored = c->stored,
                               .evicted = c->evicted,
                               .candidates = layer->sent.candidates,
                               .rows_sent = layer->sent.rows,
                               .bytes_sent = layer->sent.bytes,
                               .rows_fetched = layer->fetched_rows,
                               .bytes_fetched = layer->fetched_bytes };
}

/* Return the counts of the features of the halo, which were all fetched once. */
static graft_cache_item count_features(const struct gr_cached *c)
{
    const int64_t halo = c->links->halo->count, sent = c->links->send_start[c->comm->n_ranks];

    return (graft_cache_item){ .width = gr_run_config(c->wish.run)->width[0],
                               .capacity = halo,
                               .used = halo,
                               .searched = c->counts.features_read,
                               .found = c->counts.features_read,
                               .stored = halo,
                               .candidates = sent,
                               .rows_sent = sent,
                               .bytes_sent = c->wish.feature_bytes * sent };
}

int32_t gr_parallel_cached_gather(struct gr_batch_strategy *strategy, graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);

    if (c->comm != NULL) c->counts.mine[c->first - 1] = count_features(c);
    for (int32_t l = c->first; l < c->n_layers; l++) c->counts.mine[l] = count_layer(&c->layer[l]);
    if (c->comm == NULL) return GRAFT_OK;
    return gr_comm_allgather(c->comm, c->counts.mine, (uint64_t)c->n_layers * sizeof *c->counts.mine, c->counts.all,
                             error);
}

static void add_counts(graft_cache_item *sum, const graft_cache_item *one)
{
    sum->width = one->width;
    sum->capacity += one->capacity;
    sum->used += one->used;
    sum->searched += one->searched;
    sum->found += one->found;
    sum->expired += one->expired;
    sum->age += one->age;
    if (one->age_max > sum->age_max) sum->age_max = one->age_max;
    sum->stored += one->stored;
    sum->evicted += one->evicted;
    sum->candidates += one->candidates;
    sum->rows_sent += one->rows_sent;
    sum->bytes_sent += one->bytes_sent;
    sum->rows_fetched += one->rows_fetched;
    sum->bytes_fetched += one->bytes_fetched;
}

int32_t gr_parallel_cached_item(const struct gr_strategy *strategy, int32_t rank, int32_t index, graft_cache_item *item,
                                graft_error *error)
{
    const struct gr_cached *c = (const struct gr_cached *)strategy;
    const int32_t    n_ranks = c->comm != NULL ? c->comm->n_ranks : 1, features = c->comm != NULL; /* number of items */
    const int32_t    layer = c->first - features + index;
    graft_cache_item sum = { .size = item->size, .rank = rank, .layer = layer };

    if (rank < -1 || rank >= n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected -1 to %d", rank, n_ranks - 1);
    if (index < 0 || layer >= c->n_layers)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no cache %d, there are %d", index,
                       c->n_layers - c->first + features);
    for (int32_t q = 0; q < n_ranks; q++)
        if (rank < 0 || rank == q) add_counts(&sum, &c->counts.all[(int64_t)q * c->n_layers + layer]);
    if (sum.found > 0) sum.age /= (double)sum.found;
    sum.bytes_if_fetched = 4 * sum.width * sum.searched;
    *item = sum;
    return GRAFT_OK;
}
