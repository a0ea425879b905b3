/* Records spans of time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/profile.h"

#include "base/assert.h"

#include <string.h>

void gr_profile_reset(struct gr_profile *p)
{
    p->count = 0;
    p->n_parts = 0;
    if (p->spans != NULL) memset(p->times, 0, (uint64_t)p->threads * GR_TIMES * sizeof *p->times);
}

static void put_span(struct gr_profile *p, const graft_span *span)
{
    if (p->count < p->capacity) p->spans[p->count++] = *span;
}

/* Record when each thread worked, as spans after the span of the phase, and clear these times for the next phase. */
static void put_threads(struct gr_profile *p, const graft_span *phase)
{
    graft_span span = *phase;

    GR_ASSERT(p->team <= p->threads);
    span.bytes = span.flops = 0;
    for (int i = 0; i < p->team; i++) {
        double *times = p->times + i * GR_TIMES;

        if (times[GR_TIME_BEGIN] == 0) continue;
        span.thread = i + 1;
        span.begin = times[GR_TIME_BEGIN] - p->origin;
        span.end = times[GR_TIME_END] - p->origin;
        span.waited = times[GR_TIME_WAITED];
        put_span(p, &span);
        memset(times, 0, GR_TIMES * sizeof *times);
    }
}

void gr_profile_part(struct gr_profile *p, const char *name, double begin, double end, int waits)
{
    struct gr_part_of_phase part = { .phase = name, .begin = begin - p->origin, .end = end > 0 ? end - p->origin : -1 };

    if (p->spans == NULL || p->n_parts == GR_PARTS_OF_PHASE) return;
    if (begin == 0) part.begin = p->part[p->n_parts - 1].end;
    if (waits) part.waited = part.end - part.begin;
    p->part[p->n_parts++] = part;
}

/* Record the parts of a phase as spans after the span of the phase. */
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
        put_span(p, &span);
    }
    p->n_parts = 0;
}

void gr_profile_end(struct gr_profile *p, const char *phase, double begin, double bytes, double flops)
{
    graft_span span = { .size = sizeof span,
                        .layer = p->layer,
                        .pass = p->pass,
                        .phase = phase,
                        .epoch = p->epoch,
                        .bytes = bytes,
                        .flops = flops,
                        .threads = p->team };

    if (p->spans == NULL) return;
    span.begin = begin - p->origin;
    span.end = gr_seconds() - p->origin;
    for (int i = 0; i < p->n_parts; i++) span.waited += p->part[i].waited;
    put_span(p, &span);
    put_parts(p, &span);
    put_threads(p, &span);
}

void gr_profile_end_alone(struct gr_profile *p, const char *phase, double begin)
{
    if (p->spans == NULL) return;
    p->times[GR_TIME_BEGIN] = begin;
    p->times[GR_TIME_END] = gr_seconds();
    gr_profile_end(p, phase, begin, 0, 0);
}
