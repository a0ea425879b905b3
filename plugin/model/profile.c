/* Where the time of a trainer goes: spans of the thread that calls it, those of the last call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "model/model.h"

enum { SPANS_MAX = 4096 };

struct gr_profile {
    graft_span *spans; /* [SPANS_MAX] */
    int64_t     count;
    double      origin;
};

int32_t gr_profile_init(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (!gr_option_is(t->context, GR_OPTION_PROFILE, "yes")) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_WEIGHTS, t->profile, 1, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_WEIGHTS, t->profile->spans, SPANS_MAX, error));
    t->profile->origin = gr_seconds();
done:
    return rc;
}

double gr_profile_begin(const graft_trainer *t)
{
    return t->profile != NULL ? gr_seconds() : 0;
}

void gr_profile_end(const graft_trainer *t, const char *phase, double begin, double bytes, double flops)
{
    struct gr_profile *p = t->profile;

    if (p == NULL || p->count == SPANS_MAX) return;
    p->spans[p->count++] = (graft_span){ .size = sizeof(graft_span),
                                         .layer = t->layer_now,
                                         .pass = t->pass_now,
                                         .phase = phase,
                                         .epoch = t->progress.epoch,
                                         .begin = begin - p->origin,
                                         .end = gr_seconds() - p->origin,
                                         .bytes = bytes,
                                         .flops = flops };
}

void gr_profile_reset(const graft_trainer *t)
{
    if (t->profile != NULL) t->profile->count = 0;
}

int32_t gr_profile_span(const graft_trainer *t, int64_t index, graft_span *span, graft_error *error)
{
    const struct gr_profile *p = t->profile;

    if (p == NULL) return gr_fail(error, GRAFT_ERR_STATE, "the trainer was made without option 'profile'");
    if (index < 0 || index >= p->count) {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no span %lld, there are %lld", (long long)index,
                       (long long)p->count);
    }
    *span = p->spans[index];
    return GRAFT_OK;
}
