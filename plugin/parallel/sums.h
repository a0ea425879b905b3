/* Functions for sums over ranks that several strategies use.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "parallel/ranks.h"

/** Execute the recorded tasks that must precede reading the rows of x, and overwriting the received rows of another
 *  sum. */
int32_t gr_parallel_sync(struct gr_run *run, const struct gr_sum *sum, graft_error *error);
/** Begin a product over ranks; with `records` only send its rows, because the caller records the local part. \return
 *  OK; ERR_PEER. */
int32_t gr_parallel_begin_sum(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, int records,
                              graft_error *error);
/** Whether the rows of a sum are sent unquantized: in evaluations, and in sums that are computed once. */
int32_t gr_parallel_is_exact(const struct gr_run *run, const struct gr_sum *sum);
/** Whether a sum is not a step of its layer, and so does not use the stored rows of the layer. */
int     gr_parallel_is_stateless(const struct gr_run *run, const struct gr_sum *sum);

/** Profile the parts of a phase from `begin` to the sending of rows. */
void gr_parallel_sent_parts(struct gr_run *run, const struct gr_exchange *pass, double begin);
/** Profile the parts of a phase after the sending of rows: local work from `local` (0: from the sending) to `computed`,
 *  waiting, and unpacking until `end` (0: until the end of the phase). */
void gr_parallel_received_parts(struct gr_run *run, const struct gr_exchange *pass, double local, double computed,
                                double end);
/** End the phase of a sum over this many edges and rows, with this many columns on this rank. */
void gr_parallel_end_phase(const struct gr_ranks *r, struct gr_run *run, int64_t columns, double edges, double rows);
