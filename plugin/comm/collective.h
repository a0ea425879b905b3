/* Collective calls. All ranks make the same calls in the same order; if a rank makes another call, the error names this
 * rank. A call that returns ERR_PEER may have written its outputs.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** Agree on one status: each rank passes its own `rc` and, if that is a failure, `error`. All return the status of the
 *  lowest rank that failed, with its sentence and its rank in `error`, or OK. The comm stays alive. If the host of a
 *  rank has asked to cancel the call, the rank fails with ERR_CANCELLED. gr_comm_agree_on() ignores such requests. */
int32_t gr_comm_agree(struct gr_comm *comm, int32_t rc, graft_error *error);
int32_t gr_comm_agree_on(struct gr_comm *comm, int32_t rc, graft_error *error);

/** Wait until all ranks have made this call. \return OK; ERR_PEER. */
int32_t gr_comm_barrier(struct gr_comm *comm, graft_error *error);

/** Gather `mine` of rank p, the same number of `bytes` on every rank, in element p of `all`. \return OK; ERR_PEER. */
int32_t gr_comm_allgather(struct gr_comm *comm, const void *mine, uint64_t bytes, void *all, graft_error *error);

/** Send element p of `out` to rank p, which receives it in the element of `in` that belongs to this rank. Elements have
 *  the same number of `bytes` on all ranks, for example counts. \return OK; ERR_PEER. */
int32_t gr_comm_alltoall(struct gr_comm *comm, const void *out, uint64_t bytes, void *in, graft_error *error);

/** Send items out_start[p] to out_start[p + 1] - 1 of `out` to rank p, and receive items in_start[p] to in_start[p + 1]
 *  - 1 of `in` from rank p. An item has `item_bytes`. Both arrays of starts have n_ranks + 1 elements; both sides must
 *  know their counts (see route.h). \return OK; ERR_PEER. */
int32_t gr_comm_alltoallv(struct gr_comm *comm, const void *out, const int64_t *out_start, void *in,
                          const int64_t *in_start, int64_t item_bytes, graft_error *error);

/** Send `mine` of each rank p, which has bytes[p], to rank `root`, or to all ranks if root is -1. The receivers get the
 *  data of all ranks one after the other in `all`. `bytes` is the same on all ranks. \return OK; ERR_PEER. */
int32_t gr_comm_gather(struct gr_comm *comm, int32_t root, const void *mine, const int64_t *bytes, void *all,
                       graft_error *error);

/** Gather among ranks first to end - 1, which include this rank: each of them receives count[p] items of every rank p
 *  in this range. All ranks of the comm make this call. \return OK; ERR_PEER. */
int32_t gr_comm_gather_among(struct gr_comm *comm, int32_t first, int32_t end, const void *mine, const int64_t *count,
                             int64_t item_bytes, void *all, graft_error *error);

/** Send `data` of rank `root` to all other ranks. \return OK; ERR_PEER. */
int32_t gr_comm_broadcast(struct gr_comm *comm, int32_t root, void *data, uint64_t bytes, graft_error *error);

/** Heartbeats of one rank whose work takes longer than the deadline of the comm. This rank calls gr_comm_heartbeat()
 *  often, which sends a heartbeat to the others from time to time, and gr_comm_heartbeat_end() when its work is done.
 *  The others call gr_comm_attend(), which returns when the work is done. The deadline of the comm detects the failure
 *  of any rank meanwhile, as in any other call. \return OK; ERR_PEER. */
struct gr_heartbeat {
    struct gr_comm *comm;
    double          last; /* time of the last heartbeat, of gr_seconds(); 0 at first */
    int is_cancelled; /* 1: another rank has cancelled the call, and gr_comm_heartbeat() has returned ERR_CANCELLED */
};
int32_t gr_comm_heartbeat(struct gr_heartbeat *heartbeat, graft_error *error);
int32_t gr_comm_heartbeat_end(struct gr_heartbeat *heartbeat, graft_error *error);
int32_t gr_comm_attend(struct gr_comm *comm, graft_error *error);

/** Compute the minimum, or the maximum, of each element over all ranks. \return OK; ERR_PEER. */
int32_t gr_comm_min(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);
int32_t gr_comm_max(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);

/** Compute the sum of each element over all ranks in the type of the values. The order depends only on n_ranks, so sums
 *  are bitwise identical on all ranks and in every run. A rank sends 2 log2(n_ranks) messages if n_ranks is a power of
 *  2, else up to 2 more. After gr_comm_reserve() nothing is allocated. \return OK; ERR_PEER. */
int32_t gr_comm_sum_f32(struct gr_comm *comm, float *values, int64_t count, graft_error *error);
int32_t gr_comm_sum_f64(struct gr_comm *comm, double *values, int64_t count, graft_error *error);
/** As gr_comm_sum_f32(), modulo 2^64. */
int32_t gr_comm_sum_i64(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error);

/** Allocate the memory for sums, minima and maxima of arrays of up to `bytes`. Not collective. \return OK;
 *  ERR_NOMEM. */
int32_t gr_comm_reserve(struct gr_comm *comm, uint64_t bytes, graft_error *error);

enum { GR_COMPARE_MAX = 40 };

/** Check that all ranks run the same release and pass the same number of items with the same names and values.
 *  \param[in] names  The names of the items, for the error message.
 *  \return OK; ERR_VERSION (releases differ); ERR_ARG (items differ: the message has the name of the first such item,
 *          two ranks and their values): the same on all ranks, and the comm stays alive; ERR_PEER. */
int32_t gr_comm_compare(struct gr_comm *comm, const char *const *names, const uint64_t *values, int32_t count,
                        graft_error *error);

/** As gr_comm_compare(), for values that are checksums or codes. The error message contains the texts of the two ranks
 *  instead of the values.
 *  \param[in] texts  The texts of the items; NULL for an item that is a number. */
int32_t gr_comm_compare_texts(struct gr_comm *comm, const char *const *names, const uint64_t *values,
                              const char *const *texts, int32_t count, graft_error *error);

/** Agree on one status, and compare values, in one collective call if there is no failure. Each rank passes its own
 *  `rc` and, if that is a failure, `error`. \return the status of the lowest rank that failed, as gr_comm_agree_on();
 *  if none failed, as gr_comm_compare(). */
int32_t gr_comm_agree_same(struct gr_comm *comm, int32_t rc, const char *const *names, const uint64_t *values,
                           int32_t count, graft_error *error);
