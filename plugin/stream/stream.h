/* A stream: states of a simulation, pairs of states, and the training of a network with these pairs.
 *
 * stream.c   creates a stream within its memory              offer.c   offered states, and the pairs they form
 * pairs.c    slots with states, and pairs of slots            step.c    training within a time budget, validation
 * file.c     checkpoints
 *
 * A state is copied once, to a slot. Pairs refer to slots, and so do inputs that wait for their target. Each slot has a
 * count of these uses.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "draft/graft_stream.h"
#include "network/network.h"
#include "stream/options.h"

enum { GR_STREAM_PAIRS_MOST = 1000000, GR_STREAM_HELD_MOST = 64, GR_STREAM_TIMES = 4, GR_STREAM_FIRST_STEPS = 3 };

/** Slots, each with space for a state or a target. */
struct gr_slots {
    int64_t        bytes;       /* bytes of a slot */
    int32_t        most, count; /* largest number of slots; number of allocated slots */
    void         **state;       /* [most] memory of each slot */
    int32_t       *uses;        /* [most] */
    int32_t       *unused;      /* [most] indices of unused slots */
    int32_t        n_unused;    /* number of unused slots */
    struct gr_pool pool;        /* owner of these arrays and of the states */
};

struct gr_stream_pair {
    int32_t input, target; /* slots */
    int64_t stride;        /* row stride of the target: n_in if it is a state, n_out if it is separate */
};

/** The stored pairs, of all pairs seen so far. */
struct gr_kept {
    struct gr_stream_pair *pair; /* [capacity] the stored pairs */
    int32_t                capacity, count;
    int64_t                seen;
    enum gr_stream_policy  policy;
    uint64_t               key; /* random key of draws */
};

/** An input that waits for its target. */
struct gr_waiting {
    int32_t slot;
    int64_t due; /* position of the target in the run */
};

/** The counters that are part of a checkpoint; they are equal on all ranks. */
struct gr_stream_counters {
    int64_t offered, dropped, position; /* position: number of states so far in this run of the simulation */
    int64_t steps, since_best;
};

/** The data from which the time of the next step is estimated. */
struct gr_stream_clock {
    double  times[GR_STREAM_TIMES]; /* seconds of recent steps on the slowest rank */
    int32_t n_times, is_doubtful;   /* is_doubtful: the next call measures a step, whatever its budget is */
    int64_t times_seen;
};

struct graft_stream {
    struct gr_handle         handle;
    graft_context           *context;
    graft_network           *network;
    struct gr_stream_options options; /* values at creation, for options that are not live */
    struct gr_slots          slots;
    struct gr_kept           train, held;
    struct gr_waiting       *waiting; /* [waiting_most] inputs that wait, sorted by `due` */
    int32_t                  n_waiting, waiting_most;

    struct gr_network_pair   *batch; /* [largest of pairs of a step and held.capacity] pairs of the current call */
    struct gr_stream_counters counters;
    struct gr_stream_clock    clock;
    double                    validation, best, time, loss, seconds;
    int32_t                   steps_now, reason;
};

/** Option stream.lag: states from the input of a pair to its target, and to the input of the next pair. */
static inline int64_t gr_stream_lag(const graft_stream *s)
{
    return (int64_t)s->options.lag.number[0];
}

static inline int64_t gr_stream_interval(const graft_stream *s)
{
    return (int64_t)s->options.lag.number[1];
}

/* pairs.c */
int32_t gr_stream_slots_init(const graft_context *context, struct gr_slots *slots, graft_error *error);
/** Reserve `count` unused slots. \return OK; ERR_NOMEM. */
int32_t gr_stream_slots_reserve(const graft_context *context, struct gr_slots *slots, int32_t count,
                                graft_error *error);
/** Take a reserved slot, which then has one use; add a use; and end a use. \return the slot. */
int32_t gr_stream_slots_take(struct gr_slots *slots);
void    gr_stream_slots_use(struct gr_slots *slots, int32_t slot);
void    gr_stream_slots_release(struct gr_slots *slots, int32_t slot);

/** Choose the index at which the next pair is stored. \return the index; -1: the pair is not stored. */
int32_t gr_stream_kept_place(const struct gr_kept *kept);
/** Store the next pair at index `place`, and end the uses of the previous pair there. The uses of the new pair are
 *  already counted. */
void gr_stream_kept_put(struct gr_kept *kept, struct gr_slots *slots, int32_t place, const struct gr_stream_pair *pair);
/** Draw a number from 0 to bound - 1, which depends on the key and the counter alone. */
int64_t gr_stream_draw(uint64_t key, uint64_t counter, int64_t bound);

/* stream.c */
int32_t gr_stream_create(graft_network *network, int32_t rc, graft_stream **stream, graft_error *error);
void    gr_stream_destroy(graft_stream *s);
void    gr_stream_status(const graft_stream *s, graft_stream_status *status);

/** Take a state of the simulation. `state` and its fields have all fields of this library's version. `rc` is the status
 *  of its check on this rank. Collective. */
int32_t gr_stream_offer(graft_stream *s, int32_t rc, const graft_sample_state *state, graft_error *error);

/* step.c */
int32_t gr_stream_step(graft_stream *s, int32_t rc, double budget, int32_t max_steps, graft_error *error);
int32_t gr_stream_validate(graft_stream *s, int32_t rc, graft_error *error);
/** The estimated seconds of one step; 0: there is no estimate. */
double  gr_stream_seconds(const graft_stream *s);

/* file.c */
int32_t gr_stream_save(graft_stream *s, int32_t rc, const char *path, graft_error *error);
int32_t gr_stream_load(graft_stream *s, int32_t rc, const char *path, graft_error *error);
