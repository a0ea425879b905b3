/* Memory and spans of a trainer, for graft.train/1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "train/train.h"

/* Phases of a step and an evaluation: no layer has more than 18, and some belong to none. Over ranks no layer has more
 * than four exchanges in these, with recompute; the three forward ones of gat are in two phases each. */
enum { PHASES_OF_LAYER = 24, PHASES_BESIDE = 8, PARTS_OF_LAYER = 5 * GR_PARTS_OF_PHASE };

/* What label_rate adds in the first layer: the draw and its sum; at most 8 phases for the labels in two products of
 * step and evaluation each, and 6 in the backward pass; and two exchanges. */
enum { PHASES_OF_LABELS = 24, PARTS_OF_LABELS = 2 * GR_PARTS_OF_PHASE };

/* Space for more threads, which the host may grant at any time. What it replaces is freed with the trainer. */
static int32_t make_spans(graft_trainer *t, graft_error *error)
{
    struct gr_profile *p = &t->run.profile;
    const int          labels = gr_propagates(&t->run);
    const int64_t      layers = t->model.config.n_layers;
    const int64_t      phases = PHASES_OF_LAYER * layers + PHASES_BESIDE + (labels ? PHASES_OF_LABELS : 0);
    const int64_t      parts = PARTS_OF_LAYER * layers + (labels ? PARTS_OF_LABELS : 0);
    const int64_t      capacity = phases * (1 + t->run.threads) + parts;
    graft_span        *spans;
    double            *times;
    int32_t            rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRADIENTS, spans, capacity, error));
    GR_TRY(GR_BUDGET_NEW(&t->budget, GR_USE_GRADIENTS, times, (int64_t)t->run.threads * GR_TIMES, error));
    p->spans = spans;
    p->times = times;
    p->capacity = capacity;
    p->threads = t->run.threads;
done:
    return rc;
}

int32_t gr_spans_init(graft_trainer *t, graft_error *error)
{
    if (!t->context->options.resource.profile) return GRAFT_OK;
    t->run.profile.origin = gr_seconds();
    return make_spans(t, error);
}

int32_t gr_spans_reset(graft_trainer *t, graft_error *error)
{
    struct gr_profile *p = &t->run.profile;

    GR_ASSERT(p->spans == NULL || p->threads > 0);
    gr_profile_reset(p);
    return p->spans != NULL && t->run.threads > p->threads ? make_spans(t, error) : GRAFT_OK;
}

int32_t gr_trainer_span(const graft_trainer *t, int64_t index, graft_span *span, graft_error *error)
{
    const struct gr_profile *p = &t->run.profile;

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
    item->name = gr_use_name((enum gr_use)index);
    item->help = gr_use_help((enum gr_use)index);
    item->bytes = gr_budget_bytes(&t->budget, (enum gr_use)index);
    return GRAFT_OK;
}

static int32_t check_ranks(const graft_trainer *t, graft_error *error)
{
    if (t->over != NULL) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "the trainer has all vertices in one process, and no messages");
}

int32_t gr_trainer_traffic(const graft_trainer *t, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    const int32_t rc = check_ranks(t, error);

    return rc < 0 ? rc : gr_traffic_of(&t->partition, rank, traffic, error);
}

int32_t gr_trainer_traffic_item(const graft_trainer *t, int32_t rank, int32_t index, graft_traffic_item *item,
                                graft_error *error)
{
    const int32_t rc = check_ranks(t, error);

    return rc < 0 ? rc : gr_traffic_item(&t->partition, rank, index, item, error);
}

int32_t gr_trainer_traffic_pair(const graft_trainer *t, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                graft_error *error)
{
    const int32_t rc = check_ranks(t, error);

    return rc < 0 ? rc : gr_traffic_pair(&t->partition, peer, index, pair, error);
}
