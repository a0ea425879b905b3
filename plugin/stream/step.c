/* Training within a time budget, and validation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/random.h"
#include "comm/collective.h"
#include "stream/stream.h"

#include <math.h>

double gr_stream_seconds(const graft_stream *s)
{
    double sum = 0;

    for (int32_t k = 0; k < s->clock.n_times; k++) sum += s->clock.times[k];
    return s->clock.n_times > 0 ? sum / s->clock.n_times : 0;
}

/* Record the time of a step. The first step also allocates memory, so its time is discarded when a second step has been
 * measured. */
static void add_time(graft_stream *s, double seconds)
{
    if (s->clock.times_seen++ == 1 || s->clock.is_doubtful) s->clock.n_times = 0;
    s->clock.is_doubtful = 0;
    if (s->clock.n_times < GR_STREAM_TIMES) s->clock.n_times++;
    for (int32_t k = s->clock.n_times - 1; k > 0; k--) s->clock.times[k] = s->clock.times[k - 1];
    s->clock.times[0] = seconds;
}

/* Drop the longest time after a call whose budget was too small, because one slow step must not end the training for
 * ever. If only the first steps were measured, which may be slow because memory is new and threads start, the next call
 * does another step. */
static void forget_slowest(graft_stream *s)
{
    int32_t slowest = 0;

    s->clock.is_doubtful = s->clock.n_times == 1 && s->clock.times_seen < GR_STREAM_FIRST_STEPS;
    if (s->clock.n_times < 2) return;
    for (int32_t k = 1; k < s->clock.n_times; k++)
        if (s->clock.times[k] > s->clock.times[slowest]) slowest = k;
    s->clock.times[slowest] = s->clock.times[--s->clock.n_times];
}

static struct gr_network_pair pair_of(const graft_stream *s, const struct gr_stream_pair *pair)
{
    return (struct gr_network_pair){ s->slots.state[pair->input], s->slots.state[pair->target], pair->stride,
                                     s->network->parameters.dtype };
}

/* Do one training step with pairs drawn from the stored pairs. */
static int32_t train_once(graft_stream *s, graft_network_step *step, graft_error *error)
{
    const uint64_t key = gr_random_key((uint64_t)s->network->seed, GR_RANDOM_STREAM, 1, (uint64_t)s->counters.steps);
    const int32_t  count = (int32_t)s->options.batch;
    int32_t        rc;

    for (int32_t k = 0; k < count; k++)
        s->batch[k] = pair_of(s, &s->train.pair[gr_stream_draw(key, (uint64_t)k, s->train.count)]);
    rc = gr_network_reserve_training(s->network, 0, error);
    if (rc == GRAFT_OK) rc = gr_network_reserve_moments(s->network, error);
    return gr_network_train(s->network, rc, s->batch, count, step, error);
}

/* A clock with the same values on all ranks: nanoseconds on the slowest rank. */
struct watch {
    double  begin, step_begin;
    int64_t elapsed, step;
};

static int32_t read_watch(const graft_stream *s, struct watch *w, graft_error *error)
{
    const double now = gr_seconds();
    int64_t      both[2] = { (int64_t)(1e9 * (now - w->begin)), (int64_t)(1e9 * (now - w->step_begin)) };
    int32_t      rc = gr_comm_max(s->network->mesh->comm, both, 2, error);

    w->elapsed = both[0];
    w->step = both[1];
    return rc;
}

/* Find the reason to end gr_stream_step(); -1: do another training step. */
static int32_t reason_to_end(const graft_stream *s, const struct watch *w, int64_t budget, int32_t max_steps)
{
    const double would_end = (double)w->elapsed + 1e9 * gr_stream_seconds(s);

    if (s->train.count == 0) return GRAFT_STREAM_NO_PAIRS;
    if (max_steps > 0 && s->steps_now == max_steps) return GRAFT_STREAM_STEPS_DONE;
    if (budget > 0 && (s->clock.n_times == 0 || s->clock.is_doubtful || would_end <= (double)budget)) return -1;
    return s->steps_now == 0 ? GRAFT_STREAM_BUDGET_SMALL : GRAFT_STREAM_BUDGET_USED;
}

static int32_t train_within(graft_stream *s, int64_t budget, int32_t max_steps, graft_error *error)
{
    struct watch       w = { .begin = gr_seconds() };
    graft_network_step step;
    double             losses = 0;
    int32_t            reason, counted = 0;

    s->steps_now = 0;
    s->loss = (double)NAN;
    w.step_begin = w.begin;
    while ((reason = reason_to_end(s, &w, budget, max_steps)) < 0) {
        w.step_begin = gr_seconds();
        GR_TRY(train_once(s, &step, error));
        s->counters.steps++;
        s->steps_now++;
        if (!step.is_gathering) losses += step.loss, counted++;
        if (counted > 0) s->loss = losses / counted;
        GR_TRY(read_watch(s, &w, error));
        add_time(s, 1e-9 * (double)w.step);
        s->seconds = 1e-9 * (double)w.elapsed;
    }
    if (s->steps_now == 0) s->seconds = 0;
    s->reason = reason;
    if (reason == GRAFT_STREAM_BUDGET_SMALL && budget > 0) forget_slowest(s);
    return GRAFT_OK;
}

int32_t gr_stream_step(graft_stream *s, int32_t rc, double budget, int32_t max_steps, graft_error *error)
{
    static const char *const names[] = { "states offered so far", "steps of the stream so far", "max_steps" };
    const uint64_t values[] = { (uint64_t)s->counters.offered, (uint64_t)s->counters.steps, (uint64_t)max_steps };
    int64_t        nanoseconds = 0;

    if (rc == GRAFT_OK && !(isfinite(budget) && budget >= 0))
        rc = gr_fail(error, GRAFT_ERR_ARG, "budget is %g ms, expected a finite number, 0 or more", budget);
    if (rc == GRAFT_OK && max_steps < 0)
        rc = gr_fail(error, GRAFT_ERR_ARG, "max_steps is %d, expected 0 or more", max_steps);
    if (rc == GRAFT_OK) rc = gr_network_check_idle(s->network, error);
    GR_TRY(gr_comm_agree_same(s->network->mesh->comm, rc, names, values, 3, error));
    nanoseconds = budget < 1e12 ? (int64_t)(1e6 * budget) : (int64_t)1000000000 * 1000000000;
    GR_TRY(gr_comm_min(s->network->mesh->comm, &nanoseconds, 1, error));
    return train_within(s, nanoseconds, max_steps, error);
}

int32_t gr_stream_validate(graft_stream *s, int32_t rc, graft_error *error)
{
    double loss;

    if (rc == GRAFT_OK && s->held.count == 0)
        rc = gr_fail(error, GRAFT_ERR_STATE, "no pair is held out yet; see option 'stream.holdout'");
    if (rc == GRAFT_OK) rc = gr_network_check_idle(s->network, error);
    if (rc == GRAFT_OK) rc = gr_network_reserve_training(s->network, 0, error);
    GR_TRY_DONE(gr_network_agree(s->network, rc, s->held.count, error));
    for (int32_t k = 0; k < s->held.count; k++) s->batch[k] = pair_of(s, &s->held.pair[k]);
    GR_TRY_DONE(gr_network_loss(s->network, s->batch, s->held.count, &loss, error));
    s->validation = loss;
    s->counters.since_best = islessequal(s->best, loss) ? s->counters.since_best + 1 : 0; /* false if best is NaN */
    if (s->counters.since_best == 0) s->best = loss;
done:
    return rc;
}
