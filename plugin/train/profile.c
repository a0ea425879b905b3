/* Where the time of a trainer goes: spans of the thread that calls it and of those of its team, of the last call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <string.h>

/* Phases of a step and an evaluation: no layer has more than 18, and some belong to none. Over ranks no layer has more
 * than four exchanges in these, with recompute; the three forward ones of gat are in two phases each. */
enum { PHASES_OF_LAYER = 24, PHASES_BESIDE = 8, PARTS_OF_PHASE = 4, PARTS_OF_LAYER = 5 * PARTS_OF_PHASE };

/* What labels as input come to besides, in the first layer: their draw and sum, and of their part in two products of
 * step and evaluation at most 8 each, and 6 going back; and two exchanges. */
enum { PHASES_OF_LABELS = 24, PARTS_OF_LABELS = 2 * PARTS_OF_PHASE };

struct gr_profile {
    graft_span *spans; /* [capacity] */
    int64_t     count, capacity;
    double      origin;
    double     *times;                /* [threads x GR_TIMES] of the phase in work */
    int         threads;              /* there is room for */
    graft_span  part[PARTS_OF_PHASE]; /* of the phase in work: */
    int         n_parts;
};

/* Room for more threads, which the host may give at any time. What it replaces goes with the trainer. */
static int32_t make_room(graft_trainer *t, graft_error *error)
{
    struct gr_profile *p = t->profile;
    const int          labels = gr_propagates(t);
    const int64_t      phases =
        (int64_t)PHASES_OF_LAYER * t->config.n_layers + PHASES_BESIDE + (labels ? PHASES_OF_LABELS : 0);
    const int64_t parts = (int64_t)PARTS_OF_LAYER * t->config.n_layers + (labels ? PARTS_OF_LABELS : 0);
    const int64_t capacity = phases * (1 + t->threads) + parts;
    graft_span   *spans;
    double       *times;
    int32_t       rc = GRAFT_OK;

    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, spans, capacity, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, times, (int64_t)t->threads * GR_TIMES, error));
    p->spans = spans;
    p->times = times;
    p->capacity = capacity;
    p->threads = t->threads;
done:
    return rc;
}

int32_t gr_profile_init(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (!gr_option_is(t->context, GR_OPTION_PROFILE, "yes")) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->profile, 1, error));
    t->profile->origin = gr_seconds();
    rc = make_room(t, error);
done:
    return rc;
}

int32_t gr_profile_reset(graft_trainer *t, graft_error *error)
{
    struct gr_profile *p = t->profile;

    if (p == NULL) return GRAFT_OK;
    p->count = 0;
    p->n_parts = 0;
    memset(p->times, 0, (uint64_t)p->threads * GR_TIMES * sizeof *p->times);
    return t->threads > p->threads ? make_room(t, error) : GRAFT_OK;
}

struct gr_team gr_profile_team(const graft_trainer *t)
{
    return (struct gr_team){ .threads = t->threads,
                             .times = t->profile != NULL ? t->profile->times : NULL,
                             .poll = t->ranks.is_async ? gr_ranks_poll : NULL,
                             .poll_arg = (void *)(uintptr_t)t };
}

double gr_profile_begin(const graft_trainer *t)
{
    return t->profile != NULL ? gr_seconds() : 0;
}

static void put(struct gr_profile *p, const graft_span *span)
{
    if (p->count < p->capacity) p->spans[p->count++] = *span;
}

/* The shares of the threads, behind the span of the phase. The times are for the next phase then. */
static void put_threads(const graft_trainer *t, const graft_span *phase)
{
    struct gr_profile *p = t->profile;
    graft_span         span = *phase;

    span.bytes = span.flops = 0;
    for (int i = 0; i < t->threads; i++) {
        double *times = p->times + i * GR_TIMES;

        if (times[GR_TIME_BEGIN] == 0) continue;
        span.thread = i + 1;
        span.begin = times[GR_TIME_BEGIN] - p->origin;
        span.end = times[GR_TIME_END] - p->origin;
        span.waited = times[GR_TIME_WAITED];
        put(p, &span);
        memset(times, 0, GR_TIMES * sizeof *times);
    }
}

void gr_profile_part(const graft_trainer *t, const char *name, double begin, double end, int waits)
{
    struct gr_profile *p = t->profile;

    if (p == NULL || p->n_parts == PARTS_OF_PHASE) return;
    p->part[p->n_parts++] = (graft_span){ .phase = name,
                                          .begin = begin - p->origin,
                                          .end = end > 0 ? end - p->origin : -1,
                                          .waited = waits ? end - begin : 0 };
}

/* The parts of a phase, behind its span. */
static void put_parts(struct gr_profile *p, const graft_span *phase)
{
    for (int i = 0; i < p->n_parts; i++) {
        graft_span span = *phase;

        span.part = 1;
        span.phase = p->part[i].phase;
        span.begin = p->part[i].begin;
        if (p->part[i].end >= 0) span.end = p->part[i].end;
        span.waited = p->part[i].waited;
        span.bytes = span.flops = 0;
        put(p, &span);
    }
    p->n_parts = 0;
}

void gr_profile_end(const graft_trainer *t, const char *phase, double begin, double bytes, double flops)
{
    struct gr_profile *p = t->profile;
    graft_span         span = { .size = sizeof span,
                                .layer = t->layer_now,
                                .pass = t->pass_now,
                                .phase = phase,
                                .epoch = t->progress.epoch,
                                .bytes = bytes,
                                .flops = flops,
                                .threads = t->threads };

    if (p == NULL) return;
    span.begin = begin - p->origin;
    span.end = gr_seconds() - p->origin;
    for (int i = 0; i < p->n_parts; i++) span.waited += p->part[i].waited;
    put(p, &span);
    put_parts(p, &span);
    put_threads(t, &span);
}

void gr_profile_end_alone(const graft_trainer *t, const char *phase, double begin)
{
    if (t->profile == NULL) return;
    t->profile->times[GR_TIME_BEGIN] = begin;
    t->profile->times[GR_TIME_END] = gr_seconds();
    gr_profile_end(t, phase, begin, 0, 0);
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
