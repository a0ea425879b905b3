/* The outcome of a call that begins and ends, on which all ranks agree while its messages travel: the call of a rank
 * returns when no rank can refuse it any more. A blocking agreement, gr_comm_agree(), would wait in begin().
 *
 * In round k each rank sends what it knows to the rank 2^k places after it, so after log2(n_ranks) rounds, rounded up,
 * every rank knows of every other (Hensgen, Finkel and Manber 1988). A message has the number of the call: a rank that
 * has skipped a call, or made one more, is detected before any of its rows are used.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

enum { GR_OUTCOME_TERMS = 48 };

struct gr_outcome {
    struct gr_comm           *comm; /* NULL: not in use */
    int32_t                   tag;
    const char               *what;          /* the calls, for messages */
    int64_t                   calls;         /* so far, also those refused for their state */
    int32_t                   rounds, round; /* rounds: 0 with one rank; round: those that are done */
    int                       is_open, was_refused;
    struct gr_outcome_record *known;    /* what this rank knows; after it in memory: */
    struct gr_outcome_record *in, *out; /* [rounds] */
    struct gr_request        *requests; /* [2 * rounds] receives, then sends */
};

/** \param[in] what  Such as "a pass of a halo". gr_comm_outcome_fini() is always required. Not collective. \return OK;
 *  ERR_NOMEM. */
int32_t gr_comm_outcome_init(struct gr_outcome *outcome, struct gr_comm *comm, int32_t tag, const char *what,
                             graft_error *error);
void    gr_comm_outcome_fini(struct gr_outcome *outcome);
/** Bytes that it holds. */
int64_t gr_comm_outcome_bytes(const struct gr_outcome *outcome);

/** Count a call that begins, also one that this rank refuses for its state. */
void gr_comm_outcome_count(struct gr_outcome *outcome);

/** Count an end without a begin, unless the begin was refused: the others have begun one more call than this rank. */
void gr_comm_outcome_count_end(struct gr_outcome *outcome);

/** Begin with the status of this rank, whose reason is in `why` if it is a failure. Sends and receives nothing with one
 *  rank.
 *  \param[in] call   Its number: `calls` when it was counted.
 *  \param[in] terms  [bytes] at most GR_OUTCOME_TERMS: the arguments of a call that this rank makes; NULL: none.
 *  \return OK; ERR_PEER. */
int32_t gr_comm_outcome_begin(struct gr_outcome *outcome, int64_t call, int32_t rc, const graft_error *why,
                              const void *terms, uint64_t bytes, graft_error *error);

/** Let its messages progress. NULL is legal. A failure is reported by gr_comm_outcome_end(). */
void gr_comm_outcome_poll(struct gr_outcome *outcome);

/** Let its messages progress; *arrived becomes 0 if gr_comm_outcome_end() waits. \return OK; ERR_PEER. */
int32_t gr_comm_outcome_progress(struct gr_outcome *outcome, int32_t *arrived, graft_error *error);

/** Whether gr_comm_outcome_end() does not wait. */
int gr_comm_outcome_is_known(const struct gr_outcome *outcome);

/** Wait for the outcome. \return OK, also if none has begun; the status of the lowest rank that failed, with its
 *  sentence and its rank in `error`: the same on all ranks; ERR_PEER. */
int32_t gr_comm_outcome_end(struct gr_outcome *outcome, graft_error *error);

/** After a failure: the terms of the lowest rank that has any, or NULL. */
const void *gr_comm_outcome_terms(const struct gr_outcome *outcome);
