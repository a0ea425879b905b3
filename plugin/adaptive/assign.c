/* Assigns bits to groups of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/assign.h"

#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Upgrades of a group: from 2 to 4 bits, and from 4 to 8. */
enum { STEPS = 2 };
static const int32_t bits_of[STEPS + 1] = { 2, 4, 8 };

/* One upgrade of one group. */
struct upgrade {
    double  saves; /* the variance that it saves */
    int64_t group, bytes;
    int32_t channel, step;
    double  time; /* seconds of its channel with this upgrade and all that save more per byte */
};

/* An assignment under construction; it begins with 2 bits for all groups. */
struct choice {
    const struct gr_assign *assign;
    struct upgrade         *upgrades; /* [n_upgrades] */
    int64_t                 n_upgrades;
    int64_t                *bytes;    /* [n_channels] current bytes of each channel */
    double                 *deadline; /* [n_exchanges] seconds of each exchange */
    uint8_t                *step;     /* [n_groups] upgrades of each group */
    struct gr_pool          pool;     /* owner of these arrays */
};

static double share(int32_t bits)
{
    const double levels = (double)((1 << bits) - 1);

    return 1 / (levels * levels);
}

static int64_t bytes_with(const struct gr_assign *a, const struct gr_assign_group *g, int32_t bits)
{
    return g->rows * ((a->channels[g->channel].width * bits + 7) / 8 + 4);
}

static double seconds_of(const struct gr_assign_channel *c, int64_t bytes)
{
    return bytes > 0 ? c->gamma + c->theta * (double)bytes : 0;
}

/* The variance of all groups with one bit width. */
static double variance_with(const struct gr_assign *a, int32_t bits)
{
    double sum = 0;

    for (int64_t i = 0; i < a->n_groups; i++) sum += a->groups[i].variance * share(bits);
    return sum;
}

/* Compute the seconds of all exchanges from the bytes of each channel; slowest[n_exchanges] receives the seconds of
 * each exchange. */
static double seconds_now(const struct gr_assign *a, const int64_t *bytes, double *slowest)
{
    double sum = 0;

    memset(slowest, 0, (size_t)a->n_exchanges * sizeof *slowest);
    for (int32_t c = 0; c < a->n_channels; c++) {
        const double seconds = seconds_of(&a->channels[c], bytes[c]);

        if (seconds > slowest[a->channels[c].exchange]) slowest[a->channels[c].exchange] = seconds;
    }
    for (int32_t x = 0; x < a->n_exchanges; x++) sum += slowest[x];
    return sum;
}

/* The variance saved per additional byte; infinite if more bits need no more bytes, as in short rows. */
static double worth(const struct upgrade *u)
{
    if (u->saves <= 0) return 0;
    return u->bytes > 0 ? u->saves / (double)u->bytes : (double)INFINITY;
}

/* Compare for a sort by descending worth; upgrades of equal worth are in the order of groups and steps. */
static int by_worth(const void *one, const void *other)
{
    const struct upgrade *a = one, *b = other;
    const double          of_a = worth(a), of_b = worth(b);

    if (of_a != of_b) return of_a < of_b ? 1 : -1;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    return a->step - b->step;
}

/* Compare for a sort by time, the earliest first. */
static int by_time(const void *one, const void *other)
{
    const struct upgrade *a = one, *b = other;

    return (a->time > b->time) - (a->time < b->time);
}

static int32_t choice_init(const graft_context *context, const struct gr_assign *a, struct choice *c,
                           graft_error *error)
{
    *c = (struct choice){ .assign = a };
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->upgrades, STEPS * a->n_groups, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->bytes, a->n_channels, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->deadline, a->n_exchanges, error));
    GR_TRY(GR_POOL_NEW(context, &c->pool, c->step, a->n_groups, error));
    for (int64_t i = 0; i < a->n_groups; i++) {
        const struct gr_assign_group *g = &a->groups[i];

        c->bytes[g->channel] += bytes_with(a, g, bits_of[0]);
        for (int32_t s = 0; s < STEPS; s++)
            c->upgrades[c->n_upgrades++] =
                (struct upgrade){ .group = i,
                                  .channel = g->channel,
                                  .step = s,
                                  .saves = g->variance * (share(bits_of[s]) - share(bits_of[s + 1])),
                                  .bytes = bytes_with(a, g, bits_of[s + 1]) - bytes_with(a, g, bits_of[s]) };
    }
    qsort(c->upgrades, (size_t)c->n_upgrades, sizeof *c->upgrades, by_worth);
    return GRAFT_OK;
}

static int can_take(const struct choice *c, const struct upgrade *u)
{
    return c->step[u->group] == u->step;
}

static void change_step(struct choice *c, const struct upgrade *u, int direction)
{
    c->step[u->group] = (uint8_t)(c->step[u->group] + direction);
    GR_ASSERT(c->step[u->group] <= STEPS);
    c->bytes[u->channel] += direction * u->bytes;
}

static void choice_apply(const struct choice *c)
{
    for (int64_t i = 0; i < c->assign->n_groups; i++) c->assign->groups[i].bits = bits_of[c->step[i]];
}

int32_t gr_adaptive_assign_cost(const graft_context *context, const struct gr_assign *a, struct gr_assign_cost *cost,
                                graft_error *error)
{
    struct gr_pool pool = { 0 };
    int64_t       *bytes = NULL;
    double        *slowest = NULL;
    int32_t        rc = GRAFT_OK;

    *cost = (struct gr_assign_cost){ 0 };
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, bytes, a->n_channels, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, slowest, a->n_exchanges, error));
    for (int64_t i = 0; i < a->n_groups; i++) {
        cost->variance += a->groups[i].variance * share(a->groups[i].bits);
        bytes[a->groups[i].channel] += bytes_with(a, &a->groups[i], a->groups[i].bits);
    }
    for (int32_t p = 0; p < a->n_channels; p++) cost->bytes += bytes[p];
    cost->seconds = seconds_now(a, bytes, slowest);
done:
    gr_pool_fini(context, &pool);
    return rc;
}

/* Compute the factors of variance and seconds in the objective; 0 where the bits make no difference. */
static int32_t objective_factors(const graft_context *context, const struct gr_assign *a, double lambda,
                                 double price[2], graft_error *error)
{
    const double   apart = variance_with(a, bits_of[0]) - variance_with(a, bits_of[STEPS]);
    struct gr_pool pool = { 0 };
    int64_t       *bytes = NULL;
    double        *slowest = NULL, seconds[2];
    int32_t        rc = GRAFT_OK;

    GR_TRY_DONE(GR_POOL_NEW(context, &pool, bytes, a->n_channels, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, slowest, a->n_exchanges, error));
    for (int k = 0; k < 2; k++) {
        memset(bytes, 0, (size_t)a->n_channels * sizeof *bytes);
        for (int64_t i = 0; i < a->n_groups; i++)
            bytes[a->groups[i].channel] += bytes_with(a, &a->groups[i], bits_of[k * STEPS]);
        seconds[k] = seconds_now(a, bytes, slowest);
    }
    price[0] = apart > 0 ? lambda / apart : 0;
    price[1] = seconds[1] > seconds[0] ? (1 - lambda) / (seconds[1] - seconds[0]) : 0;
done:
    gr_pool_fini(context, &pool);
    return rc;
}

/* Find the deadline of each exchange: the time that minimises the objective. An upgrade that is finished before the
 * slowest channel has sent its rows in 2 bits costs no time. */
static int32_t find_deadlines(const graft_context *context, struct choice *c, const double price[2], graft_error *error)
{
    const struct gr_assign *a = c->assign;
    struct gr_pool          pool = { 0 };
    double                 *gain = NULL, *best = NULL, *begin = NULL;
    int64_t                *bytes = NULL;
    int32_t                 rc = GRAFT_OK;

    GR_TRY_DONE(GR_POOL_NEW(context, &pool, gain, a->n_exchanges, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, best, a->n_exchanges, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, begin, a->n_exchanges, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &pool, bytes, a->n_channels, error));
    seconds_now(a, c->bytes, begin);
    memcpy(c->deadline, begin, (size_t)a->n_exchanges * sizeof *begin);
    memcpy(bytes, c->bytes, (size_t)a->n_channels * sizeof *bytes);
    for (int64_t i = 0; i < c->n_upgrades; i++) {
        struct upgrade *u = &c->upgrades[i];

        bytes[u->channel] += u->bytes;
        u->time = seconds_of(&a->channels[u->channel], bytes[u->channel]);
    }
    qsort(c->upgrades, (size_t)c->n_upgrades, sizeof *c->upgrades, by_time);
    for (int64_t i = 0; i < c->n_upgrades; i++) {
        const struct upgrade *u = &c->upgrades[i];
        const int32_t         x = a->channels[u->channel].exchange;
        const double          late = u->time > begin[x] ? u->time - begin[x] : 0;

        gain[x] += price[0] * u->saves;
        if (gain[x] - price[1] * late <= best[x]) continue;
        best[x] = gain[x] - price[1] * late;
        c->deadline[x] = begin[x] + late;
    }
    qsort(c->upgrades, (size_t)c->n_upgrades, sizeof *c->upgrades, by_worth);
done:
    gr_pool_fini(context, &pool);
    return rc;
}

int32_t gr_adaptive_assign_balance(const graft_context *context, const struct gr_assign *a, double lambda,
                                   graft_error *error)
{
    struct choice c;
    double        price[2] = { 0 };
    int32_t       rc = choice_init(context, a, &c, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(objective_factors(context, a, lambda, price, error));
    GR_TRY_DONE(find_deadlines(context, &c, price, error));
    for (int64_t i = 0; i < c.n_upgrades; i++) {
        const struct upgrade           *u = &c.upgrades[i];
        const struct gr_assign_channel *channel = &a->channels[u->channel];
        const double                    time = seconds_of(channel, c.bytes[u->channel] + u->bytes);

        if (can_take(&c, u) && time <= c.deadline[channel->exchange] * (1 + 1e-12)) change_step(&c, u, 1);
    }
    choice_apply(&c);
done:
    gr_pool_fini(context, &c.pool);
    return rc;
}

int32_t gr_adaptive_assign_within_bytes(const graft_context *context, const struct gr_assign *a, int64_t bytes,
                                        graft_error *error)
{
    struct choice c;
    int64_t       sent = a->besides;
    char          more[96] = "";
    int32_t       rc = choice_init(context, a, &c, error);

    GR_TRY_DONE(rc);
    for (int32_t p = 0; p < a->n_channels; p++) sent += c.bytes[p];
    if (a->besides > 0)
        snprintf(more, sizeof more, ", of which %lld are of rows whose bits are fixed", (long long)a->besides);
    if (sent > bytes)
        GR_TRY_DONE(gr_fail(error, GRAFT_ERR_OPTION,
                            "at most %lld bytes are allowed, and with 2 bits everywhere it is %lld%s", (long long)bytes,
                            (long long)sent, more));
    for (int64_t i = 0; i < c.n_upgrades; i++) {
        if (!can_take(&c, &c.upgrades[i]) || sent + c.upgrades[i].bytes > bytes) continue;
        change_step(&c, &c.upgrades[i], 1);
        sent += c.upgrades[i].bytes;
    }
    choice_apply(&c);
done:
    gr_pool_fini(context, &c.pool);
    return rc;
}

int32_t gr_adaptive_assign_within_variance(const graft_context *context, const struct gr_assign *a, double variance,
                                           graft_error *error)
{
    const double  least = variance_with(a, bits_of[STEPS]);
    double        total = variance_with(a, bits_of[0]);
    struct choice c;
    int64_t       last = 0;
    int32_t       rc = choice_init(context, a, &c, error);

    GR_TRY_DONE(rc);
    if (least > variance)
        GR_TRY_DONE(gr_fail(error, GRAFT_ERR_OPTION,
                            "an error of at most %.3g is allowed, and with 8 bits everywhere it is %.3g", variance,
                            least));
    for (; last < c.n_upgrades && total > variance; last++) {
        change_step(&c, &c.upgrades[last], 1);
        total -= c.upgrades[last].saves;
    }
    while (last-- > 0) { /* the last upgrades may be unnecessary */
        const struct upgrade *u = &c.upgrades[last];

        if (c.step[u->group] != u->step + 1 || total + u->saves > variance) continue;
        change_step(&c, u, -1);
        total += u->saves;
    }
    choice_apply(&c);
done:
    gr_pool_fini(context, &c.pool);
    return rc;
}
