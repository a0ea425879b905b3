/* Collective calls, made of framed messages: all ranks make the same calls in the same order. A rank that makes a
 * different call is detected and named. After ERR_PEER outputs may have been written.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** Agree on one status: each rank passes its own `rc` and, if that is a failure, `error`. All return the status of the
 *  lowest rank that failed, with its sentence and its rank in `error`, or OK. The comm stays alive. A rank whose host
 *  has asked to cancel the call fails with ERR_CANCELLED, but not in gr_comm_agree_on(). */
int32_t gr_comm_agree(struct gr_comm *comm, int32_t rc, graft_error *error);
int32_t gr_comm_agree_on(struct gr_comm *comm, int32_t rc, graft_error *error);

/** Return when all ranks have called. \return OK; ERR_PEER. */
int32_t gr_comm_barrier(struct gr_comm *comm, graft_error *error);

/** all[p] = `mine` of rank p, all of the same `bytes`. \return OK; ERR_PEER. */
int32_t gr_comm_allgather(struct gr_comm *comm, const void *mine, uint64_t bytes, void *all, graft_error *error);

/** in[p] on rank r = out[r] on rank p, all of the same `bytes`: for example counts. \return OK; ERR_PEER. */
int32_t gr_comm_alltoall(struct gr_comm *comm, const void *out, uint64_t bytes, void *in, graft_error *error);

/** The same with counts that both sides know; see route.h. Items out_start[p] to out_start[p + 1] - 1 of `out`, of
 *  `item_bytes` each, go to rank p, and the items from rank p to in_start[p] of `in` and behind. Both arrays of starts
 *  have n_ranks + 1 elements. \return OK; ERR_PEER. */
int32_t gr_comm_alltoallv(struct gr_comm *comm, const void *out, const int64_t *out_start, void *in,
                          const int64_t *in_start, int64_t item_bytes, graft_error *error);

/** `mine` of each rank p, of bytes[p], to rank `root`, or with -1 to all ranks, which receive them one after the other
 *  in `all`. `bytes` is the same on all ranks. \return OK; ERR_PEER. */
int32_t gr_comm_gather(struct gr_comm *comm, int32_t root, const void *mine, const int64_t *bytes, void *all,
                       graft_error *error);

/** The same among ranks first to end - 1, which include this rank: each gets count[p] items of every rank p of the
 *  range. All ranks call it. \return OK; ERR_PEER. */
int32_t gr_comm_gather_among(struct gr_comm *comm, int32_t first, int32_t end, const void *mine, const int64_t *count,
                             int64_t item_bytes, void *all, graft_error *error);

/** `data` of rank `root` to all. \return OK; ERR_PEER. */
int32_t gr_comm_broadcast(struct gr_comm *comm, int32_t root, void *data, uint64_t bytes, graft_error *error);

/** Heartbeats of one rank whose work takes longer than the deadline of the comm. This rank calls gr_comm_heartbeat() as
 *  often as it likes, which sends a heartbeat to the others from time to time, and gr_comm_heartbeat_end() when its
 *  work is done. The others call gr_comm_attend(), which returns when the work is done. A rank that fails meanwhile, at
 *  work or waiting, is detected by the deadline of the comm like in any other call. \return OK; ERR_PEER. */
struct gr_heartbeat {
    struct gr_comm *comm;
    double          last; /* time of gr_seconds(); 0 at first */
    int is_cancelled; /* by another rank: gr_comm_heartbeat() has returned ERR_CANCELLED, as an agreement does next */
};
int32_t gr_comm_heartbeat(struct gr_heartbeat *heartbeat, graft_error *error);
int32_t gr_comm_heartbeat_end(struct gr_heartbeat *heartbeat, graft_error *error);
int32_t gr_comm_attend(struct gr_comm *comm, graft_error *error);

/** The minimum and the maximum of each element over all ranks. \return OK; ERR_PEER. */
int32_t gr_comm_min(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);
int32_t gr_comm_max(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);

/** The sum over all ranks in the type of the values, in an order that depends on n_ranks alone: bitwise identical on
 *  all ranks and in every run. A rank sends 2 log2(n_ranks) messages if n_ranks is a power of 2, else up to 2 more.
 *  Allocates nothing after gr_comm_reserve(). \return OK; ERR_PEER. */
int32_t gr_comm_sum_f32(struct gr_comm *comm, float *values, int64_t count, graft_error *error);
int32_t gr_comm_sum_f64(struct gr_comm *comm, double *values, int64_t count, graft_error *error);
/** Modulo 2^64. */
int32_t gr_comm_sum_i64(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);

/** Allocate the memory for sums, minima and maxima of up to `bytes`. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_comm_reserve(struct gr_comm *comm, uint64_t bytes, graft_error *error);

enum { GR_COMPARE_MAX = 40 };

/** Check that all ranks run the same release and pass the same number of items with the same names and values.
 *  \param[in] names  Of the items, for the message.
 *  \return OK; ERR_VERSION (releases differ); ERR_ARG (items differ: the message has the name of the first such item,
 *          two ranks and their values): the same on all ranks, and the comm stays alive; ERR_PEER. */
int32_t gr_comm_compare(struct gr_comm *comm, const char *const *names, const uint64_t *values, int32_t count,
                        graft_error *error);

/** The same for values that are checksums or codes: the message has the texts of the two ranks instead of the values.
 *  \param[in] texts  Of the items; NULL for an item that is a number. */
int32_t gr_comm_compare_texts(struct gr_comm *comm, const char *const *names, const uint64_t *values,
                              const char *const *texts, int32_t count, graft_error *error);

/** Agree on one status, and compare: one collective call if all is well. Each rank passes its own `rc` and, if that is
 *  a failure, `error`. \return the status of the lowest rank that failed, as gr_comm_agree_on(); else as
 *  gr_comm_compare(). */
int32_t gr_comm_agree_same(struct gr_comm *comm, int32_t rc, const char *const *names, const uint64_t *values,
                           int32_t count, graft_error *error);
