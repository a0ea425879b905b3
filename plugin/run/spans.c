/* Allocates memory for the spans of a profile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/options.h"
#include "run/memory.h"

#include <string.h>

/* The most phases of a step and an evaluation together. No layer has more than 18, and some phases belong to no layer.
 * Over ranks a layer has at most four exchanges in them, with recompute; the three forward exchanges of gat are in two
 * phases each. */
enum { PHASES_OF_LAYER = 24, PHASES_BESIDE = 8, PARTS_OF_LAYER = 5 * GR_PARTS_OF_PHASE };

/* The most phases that label_rate adds to the first layer: drawing labels and summing them; 8 for products with labels
 * in step and evaluation; 6 in the backward pass; and two exchanges. */
enum { PHASES_OF_LABELS = 24, PARTS_OF_LABELS = 2 * GR_PARTS_OF_PHASE };

/* The most spans of a step and an evaluation. */
static int64_t spans_of_step(const struct gr_setup *s)
{
    const int     labels = gr_propagates(&s->run);
    const int64_t layers = s->model.config.n_layers;
    const int64_t phases = PHASES_OF_LAYER * layers + PHASES_BESIDE + (labels ? PHASES_OF_LABELS : 0);
    const int64_t parts = PARTS_OF_LAYER * layers + (labels ? PARTS_OF_LABELS : 0);

    return phases * (1 + s->run.threads) + parts;
}

/* Allocate memory for `capacity` spans and for the threads of the run, and copy existing spans. The replaced arrays are
 * freed with the setup. */
static int32_t make_spans(struct gr_setup *s, int64_t capacity, graft_error *error)
{
    struct gr_profile *p = &s->run.profile;
    graft_span        *spans;
    double            *times;

    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRADIENTS, spans, capacity, error));
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_GRADIENTS, times, (int64_t)s->run.threads * GR_TIMES, error));
    if (p->count > 0) memcpy(spans, p->spans, (uint64_t)p->count * sizeof *spans);
    p->spans = spans;
    p->times = times;
    p->capacity = capacity;
    p->threads = s->run.threads;
    return GRAFT_OK;
}

double gr_setup_spans_need(const struct gr_setup *s)
{
    if (!gr_base_options(s->context)->profile) return 0;
    return (double)(spans_of_step(s) * (int64_t)sizeof(graft_span) +
                    (int64_t)s->run.threads * GR_TIMES * (int64_t)sizeof(double));
}

int32_t gr_setup_spans_init(struct gr_setup *s, graft_error *error)
{
    if (!gr_base_options(s->context)->profile) return GRAFT_OK;
    s->run.profile.origin = gr_seconds();
    return make_spans(s, spans_of_step(s), error);
}

int32_t gr_setup_spans_reserve(struct gr_setup *s, graft_error *error)
{
    struct gr_profile *p = &s->run.profile;
    const int64_t      wanted = p->count + spans_of_step(s);

    GR_ASSERT(p->spans == NULL || p->threads > 0);
    if (p->spans == NULL || (wanted <= p->capacity && s->run.threads <= p->threads)) return GRAFT_OK;
    return make_spans(s, wanted <= p->capacity ? p->capacity : 2 * wanted, error);
}
