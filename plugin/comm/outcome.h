/* Agrees on the outcome of a call that consists of begin() and end() while its messages travel. end() returns when
 * every rank is known to have accepted the call, or refused it. A blocking agreement, gr_comm_agree(), would make
 * begin() wait.
 *
 * In round k each rank sends what it knows to the rank 2^k places after it, so after log2(n_ranks) rounds, rounded up,
 * every rank knows of every other (Hensgen, Finkel and Manber 1988). A message contains the number of the call, so a
 * rank that has skipped a call, or made one too many, is detected before any of its rows are used.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

enum { GR_OUTCOME_TERMS = 48 };

struct gr_outcome {
    struct gr_comm           *comm; /* NULL: not in use */
    int32_t                   tag;
    const char               *what;          /* what error messages call these calls */
    int64_t                   calls;         /* number of calls so far, including those that this rank refused */
    int32_t                   rounds, round; /* rounds of a call, 0 with one rank; rounds that are done */
    int                       is_open, was_refused;
    struct gr_outcome_record *known;    /* what this rank knows; the records `in` and `out` follow in memory */
    struct gr_outcome_record *in, *out; /* [rounds] received and sent records */
    struct gr_request        *requests; /* [2 * rounds] requests of receives, then of sends */
};

/** Prepare for calls. `what` names them in error messages, such as "a pass of a halo". Always call
 *  gr_comm_outcome_fini(). Not collective. \return OK; ERR_NOMEM. */
int32_t gr_comm_outcome_init(struct gr_outcome *outcome, struct gr_comm *comm, int32_t tag, const char *what,
                             graft_error *error);
void    gr_comm_outcome_fini(struct gr_outcome *outcome);
/** The bytes of the memory of an outcome. */
int64_t gr_comm_outcome_bytes(const struct gr_outcome *outcome);

/** Count a begin(), also if this rank refuses it. */
void gr_comm_outcome_count(struct gr_outcome *outcome);

/** Count an end() without a begin(): the other ranks have begun one more call than this rank. If this rank had refused
 *  the begin(), it was counted already. */
void gr_comm_outcome_count_end(struct gr_outcome *outcome);

/** Begin to agree. `rc` is the status of this rank; if it is a failure, `why` is its error. With one rank nothing is
 *  sent.
 *  \param[in] call   The number of the call: `calls` when it was counted.
 *  \param[in] terms  [bytes], at most GR_OUTCOME_TERMS: arguments of this rank's call for the other ranks; NULL: none.
 *  \return OK; ERR_PEER. */
int32_t gr_comm_outcome_begin(struct gr_outcome *outcome, int64_t call, int32_t rc, const graft_error *why,
                              const void *terms, uint64_t bytes, graft_error *error);

/** Let the messages of the agreement progress. NULL is legal. A failure is returned by gr_comm_outcome_end(). */
void gr_comm_outcome_poll(struct gr_outcome *outcome);

/** Let the messages of the agreement progress. *arrived becomes 0 if gr_comm_outcome_end() would wait. \return OK;
 *  ERR_PEER. */
int32_t gr_comm_outcome_progress(struct gr_outcome *outcome, int32_t *arrived, graft_error *error);

/** Whether gr_comm_outcome_end() returns without waiting. */
int gr_comm_outcome_is_known(const struct gr_outcome *outcome);

/** Wait for the outcome. \return OK, also if no call has begun; the status of the lowest rank that failed, with its
 *  sentence and its rank in `error`: the same on all ranks; ERR_PEER. */
int32_t gr_comm_outcome_end(struct gr_outcome *outcome, graft_error *error);

/** Return the terms of the lowest rank that offered any, or NULL. Legal after a failure. */
const void *gr_comm_outcome_terms(const struct gr_outcome *outcome);
