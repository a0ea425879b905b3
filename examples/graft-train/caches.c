/* Reports the caches of rows of other ranks or of other batches.
 * SPDX-License-Identifier: Apache-2.0 */
#include "caches.h"

#include "json_text.h"

#include <inttypes.h>
#include <stdio.h>

/* Read cache number `index` of one rank, or, if `rank` is -1, of all ranks together. */
static int next_cache(const struct run *run, int32_t rank, int32_t index, graft_cache_item *item)
{
    *item = GRAFT_INIT(graft_cache_item);
    return run->library.report->cache_item(run->trainer, rank, index, item, NULL) == GRAFT_OK;
}

static json_t *build_cache(const graft_cache_item *item, int *bad)
{
    json_t *cache = json_object();

    json_add(cache, "layer", json_integer(item->layer), bad);
    if (item->rank >= 0) json_add(cache, "rank", json_integer(item->rank), bad);
    json_add(cache, "width", json_integer(item->width), bad);
    json_add(cache, "capacity", json_integer(item->capacity), bad);
    json_add(cache, "used", json_integer(item->used), bad);
    json_add(cache, "searched", json_integer(item->searched), bad);
    json_add(cache, "found", json_integer(item->found), bad);
    json_add(cache, "expired", json_integer(item->expired), bad);
    json_add(cache, "age", json_number(item->age), bad);
    json_add(cache, "age_max", json_integer(item->age_max), bad);
    json_add(cache, "stored", json_integer(item->stored), bad);
    json_add(cache, "evicted", json_integer(item->evicted), bad);
    json_add(cache, "candidates", json_integer(item->candidates), bad);
    json_add(cache, "rows_sent", json_integer(item->rows_sent), bad);
    json_add(cache, "bytes_sent", json_integer(item->bytes_sent), bad);
    json_add(cache, "bytes_if_fetched", json_integer(item->bytes_if_fetched), bad);
    json_add(cache, "rows_fetched", json_integer(item->rows_fetched), bad);
    json_add(cache, "bytes_fetched", json_integer(item->bytes_fetched), bad);
    return cache;
}

static json_t *build_caches(const struct run *run, int32_t first, int32_t end, int *bad)
{
    json_t          *caches = json_array();
    graft_cache_item item;

    for (int32_t rank = first; rank < end; rank++)
        for (int32_t i = 0; next_cache(run, rank, i, &item); i++)
            if (json_array_append_new(caches, build_cache(&item, bad)) != 0) *bad = 1;
    return caches;
}

void caches_json(json_t *report, const struct run *run, int *bad)
{
    graft_cache_item item;

    if (!next_cache(run, -1, 0, &item)) return;
    json_add(report, "caches", build_caches(run, -1, 0, bad), bad);
    if (run->ranks.n_ranks > 1) json_add(report, "caches_by_rank", build_caches(run, 0, run->ranks.n_ranks, bad), bad);
}

int64_t caches_bytes(const struct run *run)
{
    graft_cache_item item;
    int64_t          bytes = 0;

    for (int32_t i = 0; next_cache(run, -1, i, &item); i++) bytes += item.bytes_sent + item.bytes_fetched;
    return bytes;
}

void caches_print(const struct run *run)
{
    graft_cache_item item;

    for (int32_t i = 0; next_cache(run, -1, i, &item); i++) {
        printf("cache           layer %d: %" PRId64 " rows of %s were needed, ", item.layer, item.searched,
               run->ranks.n_ranks > 1 ? "the halo" : "other batches");
        if (item.searched > 0)
            printf("%.1f %% were there (mean age %.1f batches), ", 100 * (double)item.found / (double)item.searched,
                   item.age);
        if (item.rows_fetched > 0)
            printf("%" PRId64 " came from their owners (%.3f MB with gradients), ", item.rows_fetched,
                   (double)item.bytes_fetched * 1e-6);
        if (run->ranks.n_ranks > 1) printf("%.3f MB sent in all epochs\n", (double)item.bytes_sent * 1e-6);
        else printf("%" PRId64 " stored in all epochs\n", item.stored);
    }
}
