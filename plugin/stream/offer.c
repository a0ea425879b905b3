/* Offered states: copies of states, and the pairs that states begin and end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "network/fields.h"
#include "stream/options.h"
#include "stream/stream.h"

#include <math.h>

/* What happens with an offered state. */
struct plan {
    int is_first, begins;  /* whether the state is the first of a run; whether it is the input of a new pair */
    int ends;              /* it completes a pair: with an earlier state, or with its own target */
    struct gr_kept *kept;  /* list for the completed pair, training or validation; NULL: no pair */
    int32_t         place; /* index of the completed pair in `kept`; -1: it is not stored */
    int64_t         position;
};

static struct plan plan_of(graft_stream *s, const graft_sample_state *state)
{
    const int64_t seen = s->train.seen + s->held.seen, every = s->options.holdout;
    struct plan   p = { .is_first = (state->flags & GRAFT_STREAM_FIRST) != 0, .place = -1 };

    p.position = p.is_first ? 0 : s->counters.position;
    p.begins = state->target == NULL && p.position % gr_stream_interval(s) == 0;
    p.ends = state->target != NULL ? p.position % gr_stream_interval(s) == 0
                                   : !p.is_first && s->n_waiting > 0 && s->waiting[0].due == p.position;
    if (!p.ends) return p;
    p.kept = s->held.capacity > 0 && seen % every == every - 1 ? &s->held : &s->train;
    p.place = gr_stream_kept_place(p.kept);
    return p;
}

/* The number of slots that must be unused before the offer releases any. */
static int32_t slots_needed(const struct plan *p, const graft_sample_state *state)
{
    if (!p->begins && p->place < 0) return 0;
    return state->target != NULL ? 2 : 1;
}

static int32_t check_state(graft_stream *s, const graft_sample_state *state, const struct plan *p, graft_error *error)
{
    const graft_network *n = s->network;

    if (state->target == NULL && n->columns.out > n->columns.in)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "state.target is null, but the network has %lld outputs and %lld inputs: a later state has no "
                       "targets",
                       (long long)n->columns.out, (long long)n->columns.in);
    GR_TRY(gr_stream_slots_reserve(s->context, &s->slots, slots_needed(p, state), error));
    GR_TRY(gr_network_check_finite(n, state->input, "state.input", 0, error));
    if (state->target != NULL) return gr_network_check_finite(n, state->target, "state.target", 1, error);
    return GRAFT_OK;
}

/* Compare copies of shared nodes in a state and in its target, if option check is full. */
static int32_t compare_state(graft_stream *s, const graft_sample_state *state, graft_error *error)
{
    graft_network *n = s->network;

    if (!n->checks.compares) return GRAFT_OK;
    GR_TRY(gr_network_compare_field(n, GRAFT_OK, state->input, "state.input", 0, error));
    if (state->target != NULL) return gr_network_compare_field(n, GRAFT_OK, state->target, "state.target", 1, error);
    return GRAFT_OK;
}

/* Remove the input that waits longest from the list, and return it. */
static struct gr_waiting next_waiting(graft_stream *s)
{
    const struct gr_waiting first = s->waiting[0];

    s->n_waiting--;
    for (int32_t k = 0; k < s->n_waiting; k++) s->waiting[k] = s->waiting[k + 1];
    return first;
}

static int32_t copy_to_slot(graft_stream *s, const graft_field *field)
{
    const int32_t slot = gr_stream_slots_take(&s->slots);

    gr_network_copy_field(s->network, field, s->network->parameters.dtype, s->slots.state[slot]);
    return slot;
}

/* Complete the pair of a state, which has its own target or is the target of a waiting input. */
static void end_pair(graft_stream *s, const struct plan *p, const graft_sample_state *state, int32_t slot)
{
    struct gr_stream_pair pair = { -1, slot, s->network->columns.in };

    if (state->target != NULL && p->place >= 0) {
        pair = (struct gr_stream_pair){ slot, copy_to_slot(s, state->target), s->network->columns.out };
        gr_stream_slots_use(&s->slots, slot);
    } else if (state->target == NULL) {
        pair.input = next_waiting(s).slot;
        if (p->place >= 0) gr_stream_slots_use(&s->slots, slot);
        else gr_stream_slots_release(&s->slots, pair.input);
    }
    if (p->place >= 0) gr_stream_kept_put(p->kept, &s->slots, p->place, &pair);
    p->kept->seen++;
}

/* Drop the input whose target would be the state at this position, if it still waits. */
static void forget_due(graft_stream *s, int64_t position)
{
    if (s->n_waiting > 0 && s->waiting[0].due == position) gr_stream_slots_release(&s->slots, next_waiting(s).slot);
}

static void take_state(graft_stream *s, const struct plan *p, const graft_sample_state *state)
{
    const int32_t slot = slots_needed(p, state) > 0 ? copy_to_slot(s, state->input) : -1;

    if (p->ends) end_pair(s, p, state, slot);
    forget_due(s, p->position);
    if (p->begins) {
        GR_ASSERT(s->n_waiting < s->waiting_most);
        s->waiting[s->n_waiting++] = (struct gr_waiting){ slot, p->position + gr_stream_lag(s) };
        gr_stream_slots_use(&s->slots, slot);
    }
    if (slot >= 0) gr_stream_slots_release(&s->slots, slot); /* pairs and waiting inputs have added their own uses */
}

/* Begin a new run: drop all inputs that wait, because they belong to another run. */
static void begin_run(graft_stream *s)
{
    while (s->n_waiting > 0) gr_stream_slots_release(&s->slots, next_waiting(s).slot);
}

int32_t gr_stream_offer(graft_stream *s, int32_t rc, const graft_sample_state *state, graft_error *error)
{
    static const char *const names[] = { "states offered so far", "state.flags", "whether state.target is given" };
    const uint64_t           values[] = { (uint64_t)s->counters.offered, state->flags, state->target != NULL };
    struct plan              p = { .place = -1 };

    if (rc == GRAFT_OK) p = plan_of(s, state);
    if (rc == GRAFT_OK) rc = check_state(s, state, &p, error);
    rc = gr_comm_agree_same(s->network->mesh->comm, rc, names, values, 3, error);
    if (rc == GRAFT_ERR_NONFINITE && gr_stream_options(s->context)->nonfinite == GR_STREAM_DROPS) {
        if (p.is_first) begin_run(s);
        forget_due(s, p.position);
        s->counters.dropped++;
        rc = GRAFT_OK;
    } else {
        GR_TRY_DONE(rc);
        GR_TRY_DONE(compare_state(s, state, error));
        if (p.is_first) begin_run(s);
        take_state(s, &p, state);
    }
    s->counters.offered++;
    s->counters.position = p.position + 1;
    s->time = state->time;
done:
    return rc;
}
