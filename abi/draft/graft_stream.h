/* "graft.draft.stream": online training: a network learns from the states of a running simulation, in its process. A
 * draft.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_STREAM_H
#define GRAFT_STREAM_H

#include "graft_network.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_STREAM_ID "graft.draft.stream/1"

/* The solver offers states as it computes them. The stream keeps pairs of an earlier and a later state within a memory
 * limit, and trains with random pairs among them. Options, of the group "mesh models":
 *
 *     stream.memory    MB of pairs on a rank
 *     stream.policy    reservoir: every pair offered so far is kept with the same probability (Melissa, arXiv
 *                      2309.16743); fifo: the latest ones
 *     stream.lag       LAG:INTERVAL: number of offers from the input of a pair to its target, and between the inputs of
 *                      consecutive pairs (1 unless it is given)
 *     stream.batch     pairs of a training step
 *     stream.holdout   one of this many pairs is not used for training, but for validation; 0: none. A
 *                      reservoir of them is kept: of the pairs that memory allows one in this many, but at most 64
 *     stream.nonfinite refuse: a state that is not finite is ERR_NONFINITE; drop: it is counted, and forgotten with the
 *                      pairs that it belongs to
 *     patience  advise to stop after this many validations without improvement; 0: never
 *
 * All draws depend on option `seed` and counters, so ranks agree, and a restart is bitwise exact. */

typedef struct graft_stream graft_stream;

/** A state of the simulation. */
typedef struct graft_sample_state {
    uint32_t           size;
    uint32_t           flags;  /**< 0, or GRAFT_STREAM_FIRST */
    const graft_field *input;  /**< [n_rows x n_in] of the network: read in the call, and may change afterwards */
    const graft_field *target; /**< NULL: the targets of pairs are later states, their first n_out columns. Otherwise
                                    [n_rows x n_out]: input and target are a pair by themselves, and the state is not
                                    the target of an earlier input */
    double             time;   /**< time of the simulation, for reports */
} graft_sample_state;

/** The state is the first of a run: no pair connects it with an earlier one. The same on all ranks. */
enum { GRAFT_STREAM_FIRST = 1u };

typedef struct graft_stream_status {
    uint32_t size;
    int32_t  should_stop;     /**< option patience advises to stop; the same on all ranks */
    int64_t  offered;         /**< states offered so far */
    int64_t  dropped;         /**< states that were not finite */
    int64_t  pairs;           /**< pairs offered so far */
    int64_t  kept;            /**< pairs in memory */
    int64_t  capacity;        /**< pairs that memory allows, the minimum over ranks */
    int64_t  held_out;        /**< pairs kept for validation */
    int64_t  bytes;           /**< bytes of states on this rank */
    int64_t  steps;           /**< training steps of the stream */
    int32_t  steps_now;       /**< training steps of the last step() */
    int32_t  reason;          /**< why step() ended: GRAFT_STREAM_... */
    double   seconds;         /**< duration of the last step() */
    double   seconds_of_step; /**< estimate for one training step: the largest of all ranks */
    double   loss;            /**< mean of the steps of the last step() that changed weights; NaN without any */
    double   validation;      /**< loss of held-out pairs when it was last measured; NaN before */
    double   best;            /**< the lowest validation loss so far; NaN before the first */
    double   time;            /**< time of the simulation at the last offer */
} graft_stream_status;

enum {
    GRAFT_STREAM_BUDGET_USED = 0,  /**< another step would exceed the budget */
    GRAFT_STREAM_NO_PAIRS = 1,     /**< there are no pairs to train with */
    GRAFT_STREAM_BUDGET_SMALL = 2, /**< the budget is too small for one step: nothing was done */
    GRAFT_STREAM_STEPS_DONE = 3    /**< max_steps were done */
};

typedef struct graft_stream_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a stream that trains `network`.
     * \param[out] stream  Unchanged on failure.
     * \return OK; ERR_ARG (null); ERR_OPTION (stream.memory is too small for one pair: the message has its bytes);
     *         ERR_STATE (another stream trains the network); ERR_NOMEM; ERR_PEER. The same on all ranks.
     * [one-caller] Collective. Memory for states is allocated as they are offered, up to the limit. Since 0.2. */
    int32_t (*create)(graft_network *network, graft_stream **stream, graft_error *error);

    /** Offer a state. If a pair needs it, it is copied once, in the type of the network (model.type): changes below the
     *  float precision of the values need f64, or values with a constant subtracted.
     * \return OK; ERR_ARG (null, shapes, types, ranks that disagree); ERR_NONFINITE (see stream.nonfinite); ERR_FORMAT
     *         (check=full: copies of a shared node differ); ERR_NOMEM; ERR_PEER. The same on all ranks; after all but
     *         ERR_PEER the stream is as before, and the run can go on.
     * [one-caller] Collective. Memory: see create(); with check=full a copy of the state during the call. Since 0.2. */
    int32_t (*offer)(graft_stream *stream, const graft_sample_state *state, graft_error *error);

    /** Train for about `budget` milliseconds: as many steps as the time of earlier steps allows. The first step of a
     *  stream runs for any budget above 0, to measure its time. If it took longer than the budget, up to two more steps
     *  run in the same way, each in a later call, because first steps are slower.
     * \param[in]  budget     At least 0; the smallest of all ranks counts.
     * \param[in]  max_steps  0: no limit but the budget.
     * \param[out] status     May be NULL.
     * \return OK; ERR_ARG; as graft_network_api.train(). OK also if nothing was done: see `reason`.
     * [one-caller] [starts-openmp]. Collective. Since 0.2. */
    int32_t (*step)(graft_stream *stream, double budget, int32_t max_steps, graft_stream_status *status,
                    graft_error *error);

    /** Measure the loss of held-out pairs now; status has it.
     * \return OK; ERR_STATE (none is held out); as graft_network_api.train().
     * [one-caller] [starts-openmp]. Collective. Since 0.2. */
    int32_t (*validate)(graft_stream *stream, graft_stream_status *status, graft_error *error);

    /** Report the status. \return OK; ERR_ARG (null). [one-caller] Not collective. Memory: none. Since 0.2. */
    int32_t (*status)(const graft_stream *stream, graft_stream_status *status, graft_error *error);

    /** Write network, counters and states of all ranks, so that a run that load()s them continues bitwise identically.
     *  Each rank writes a file PATH.RANK, complete or not at all; load() checks that the files belong together.
     * \return OK; ERR_ARG (null); ERR_IO; ERR_NOMEM; ERR_PEER. The same on all ranks.
     * [one-caller] Collective. Since 0.2. */
    int32_t (*save)(graft_stream *stream, const char *path, graft_error *error);

    /** Read the files of save(), with the same mesh, ranks and options. On failure the stream is unchanged.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND; ERR_IO; ERR_FORMAT; ERR_NOMEM; ERR_PEER. The same on all ranks.
     * [one-caller] Collective. Since 0.2. */
    int32_t (*load)(graft_stream *stream, const char *path, graft_error *error);

    /** Free the stream; the network stays. NULL is legal. [one-caller] Not collective. Since 0.2. */
    void (*destroy)(graft_stream *stream);
} graft_stream_api;

GRAFT_EXTERN_C_END
#endif
