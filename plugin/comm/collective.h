/* What all ranks do together, made of messages with frames: each is called by all ranks, in the same order. A rank that
 * is in another call than the others is found out and named. After ERR_PEER outputs may have been written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COMM_COLLECTIVE_H
#define GR_COMM_COLLECTIVE_H

#include "comm/comm.h"

/** Make one of the outcomes of all ranks: each gives its own, `rc` and, if that is a failure, `error`. All return the
 *  status of the lowest rank that failed, with its sentence and its rank in `error`, or OK. The comm lives on. */
int32_t gr_comm_agree(struct gr_comm *comm, int32_t rc, graft_error *error);

/** Return when all ranks are here. \return OK; ERR_PEER. */
int32_t gr_comm_barrier(struct gr_comm *comm, graft_error *error);

/** all[rank] = mine, each of the same `bytes`. \return OK; ERR_PEER. */
int32_t gr_comm_allgather(struct gr_comm *comm, const void *mine, uint64_t bytes, void *all, graft_error *error);

/** in[p] on rank r = out[r] on rank p, each of the same `bytes`: the way to exchange counts. \return OK; ERR_PEER. */
int32_t gr_comm_alltoall(struct gr_comm *comm, const void *out, uint64_t bytes, void *in, graft_error *error);

/** The same with counts that both sides know; see route.h. Items out_start[p] to out_start[p + 1] - 1 of `out`, of
 *  `item_bytes` each, go to rank p, and the items from rank p to in_start[p] of `in` and behind. Both arrays of starts
 *  have n_ranks + 1 elements. \return OK; ERR_PEER. */
int32_t gr_comm_alltoallv(struct gr_comm *comm, const void *out, const int64_t *out_start, void *in,
                          const int64_t *in_start, int64_t item_bytes, graft_error *error);

/** `data` of rank `root` to all. \return OK; ERR_PEER. */
int32_t gr_comm_broadcast(struct gr_comm *comm, int32_t root, void *data, uint64_t bytes, graft_error *error);

/** What one rank does alone may take longer than the others wait. They call gr_comm_attend(); it calls gr_beat() as
 *  often as it likes, which tells them from time to time that it still works and sees that they are all there, and
 *  gr_beat_end() when it does not any more. So each wait keeps the deadline of the comm: a rank that dies at work, or
 *  while others are, is found out as in any other call. \return OK; ERR_PEER. */
struct gr_beat {
    struct gr_comm *comm;
    double          last; /* by gr_seconds(); 0 at first */
};
int32_t gr_beat(struct gr_beat *beat, graft_error *error);
int32_t gr_beat_end(struct gr_beat *beat, graft_error *error);
int32_t gr_comm_attend(struct gr_comm *comm, graft_error *error);

/** Element by element over all ranks. \return OK; ERR_PEER. */
int32_t gr_comm_min(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);
int32_t gr_comm_max(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);

/** The sum over all ranks, in the order of ranks and in double; the same bits on all of them, and in every run.
 *  \return OK; ERR_PEER. Allocates nothing after gr_comm_reserve(). */
int32_t gr_comm_sum_f32(struct gr_comm *comm, float *values, int64_t count, graft_error *error);
int32_t gr_comm_sum_f64(struct gr_comm *comm, double *values, int64_t count, graft_error *error);

/** Have the memory for sums, minima and maxima of up to so many bytes. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_comm_reserve(struct gr_comm *comm, uint64_t bytes, graft_error *error);

enum { GR_COMPARE_MAX = 40 };

/** Whether all ranks have the same release, the same number of items and the same values.
 *  \param[in] names  Of the items, for the message.
 *  \return OK; ERR_VERSION (releases); ERR_ARG: which item differs, and two ranks with their values; the same on all
 *          ranks, and the comm lives on; ERR_PEER. */
int32_t gr_comm_compare(struct gr_comm *comm, const char *const *names, const uint64_t *values, int32_t count,
                        graft_error *error);

/** The same of values that are not for the reader as they are: the message shows the texts of the two ranks.
 *  \param[in] texts  Of the items; NULL for one that is a number. */
int32_t gr_comm_compare_texts(struct gr_comm *comm, const char *const *names, const uint64_t *values,
                              const char *const *texts, int32_t count, graft_error *error);

#endif
