/* Checks which pairs a stream keeps: a reservoir must keep each with the same probability, and fifo the latest ones.
 * The slots of states are counted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "entry/entry.h"
#include "harness/tap.h"
#include "stream/stream.h"

#include <math.h>
#include <string.h>

enum { CAPACITY = 10, OFFERS = 100, TRIALS = 4000 };

/* Offer pairs 0, 1, ..., whose target is their number, and count which are kept. */
static void fill_kept(enum gr_stream_policy policy, uint64_t key, int *kept_at_end)
{
    struct gr_stream_pair pairs[CAPACITY];
    struct gr_kept        kept = { .pair = pairs, .capacity = CAPACITY, .policy = policy, .key = key };
    void                 *states[2 * OFFERS] = { NULL };
    int32_t               uses[2 * OFFERS] = { 0 }, unused[2 * OFFERS];
    struct gr_slots       slots = {
              .most = 2 * OFFERS, .count = 2 * OFFERS, .state = states, .uses = uses, .unused = unused
    };

    for (int k = 0; k < OFFERS; k++) {
        const int32_t               place = gr_stream_kept_place(&kept);
        const struct gr_stream_pair pair = { OFFERS + k, k, 1 };

        if (place >= 0) {
            gr_stream_slots_use(&slots, pair.input);
            gr_stream_slots_use(&slots, pair.target);
            gr_stream_kept_put(&kept, &slots, place, &pair);
        }
        kept.seen++;
    }
    for (int k = 0; k < OFFERS; k++) kept_at_end[k] += uses[k] == 1 && uses[OFFERS + k] == 1;
}

static void test_reservoir(void)
{
    const double mean = (double)TRIALS * CAPACITY / OFFERS, deviation = sqrt(mean * (1 - (double)CAPACITY / OFFERS));
    int          count[OFFERS] = { 0 }, total = 0;
    double       worst = 0;

    for (uint64_t t = 0; t < TRIALS; t++)
        fill_kept(GR_STREAM_RESERVOIR, gr_random_key(t, GR_RANDOM_STREAM, 0, 0), count);
    for (int k = 0; k < OFFERS; k++) {
        total += count[k];
        worst = fmax(worst, fabs(count[k] - mean) / deviation);
    }
    ok(total == TRIALS * CAPACITY, "the reservoir keeps as many pairs as fit into memory");
    if (!ok(worst < 4.5, "the reservoir keeps each pair with the same probability"))
        diag("%.2f deviations from the mean", worst);
}

static void test_fifo(void)
{
    int count[OFFERS] = { 0 }, good = 1;

    fill_kept(GR_STREAM_FIFO, 1, count);
    for (int k = 0; k < OFFERS; k++) good &= count[k] == (k >= OFFERS - CAPACITY);
    ok(good, "stream.keep=fifo keeps the latest pairs");
}

static void test_draws(void)
{
    int64_t count[7] = { 0 };
    int     good = 1;

    for (uint64_t k = 0; k < 70000; k++) {
        const int64_t x = gr_stream_draw(5, k, 7);

        good &= x >= 0 && x < 7;
        if (good) count[x]++;
    }
    for (int x = 0; x < 7; x++) good &= fabs((double)count[x] - 10000) < 450;
    ok(good, "random numbers of the reservoir are uniform");
    ok(gr_stream_draw(5, 3, 1) == 0, "the only random number below 1 is 0");
}

int main(void)
{
    test_reservoir();
    test_fifo();
    test_draws();
    return done();
}
