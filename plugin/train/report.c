/* Memory and spans of a trainer, for graft.train/1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "train/train.h"

int32_t gr_trainer_span(const graft_trainer *t, int64_t index, graft_span *span, graft_error *error)
{
    const struct gr_profile *p = &t->setup.run.profile;

    if (p->spans == NULL) return gr_fail(error, GRAFT_ERR_STATE, "the trainer was made without option 'profile'");
    if (index < 0 || index >= p->count)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no span %lld, there are %lld", (long long)index,
                       (long long)p->count);
    *span = p->spans[index];
    return GRAFT_OK;
}

int32_t gr_trainer_memory_item(const graft_trainer *t, int32_t index, graft_memory_item *item, graft_error *error)
{
    if (index < 0 || index >= GR_USES)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no ledger item %d, there are %d", index, GR_USES);
    item->name = gr_budget_use_name((enum gr_use)index);
    item->help = gr_budget_use_help((enum gr_use)index);
    item->bytes = gr_budget_bytes(&t->setup.budget, (enum gr_use)index);
    return GRAFT_OK;
}

static int32_t check_ranks(const graft_trainer *t, graft_error *error)
{
    if (t->setup.strategy->ops->report.traffic != NULL) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "the trainer has all vertices in one process, and no messages");
}

int32_t gr_trainer_traffic(const graft_trainer *t, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    GR_TRY(check_ranks(t, error));
    return t->setup.strategy->ops->report.traffic(t->setup.strategy, rank, traffic, error);
}

int32_t gr_trainer_traffic_item(const graft_trainer *t, int32_t rank, int32_t index, graft_traffic_item *item,
                                graft_error *error)
{
    GR_TRY(check_ranks(t, error));
    return t->setup.strategy->ops->report.traffic_item(t->setup.strategy, rank, index, item, error);
}

int32_t gr_trainer_traffic_pair(const graft_trainer *t, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                graft_error *error)
{
    GR_TRY(check_ranks(t, error));
    return t->setup.strategy->ops->report.traffic_pair(t->setup.strategy, peer, index, pair, error);
}

int32_t gr_trainer_cache_item(const graft_trainer *t, int32_t rank, int32_t index, graft_cache_item *item,
                              graft_error *error)
{
    const struct gr_strategy *strategy =
        t->batches != NULL && t->batches->strategy != NULL ? &t->batches->strategy->base : NULL;

    if (strategy == NULL || strategy->ops->report.cache_item == NULL)
        return gr_fail(error, GRAFT_ERR_STATE, "the trainer has no batches that read rows of others, and no caches");
    return strategy->ops->report.cache_item(strategy, rank, index, item, error);
}
