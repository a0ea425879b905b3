/* The parts of collective calls: framed messages to and from some ranks, and trees.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/collective.h"
#include "comm/frame.h"

enum gr_call_kind {
    GR_CALL_AGREE,
    GR_CALL_ALLGATHER,
    GR_CALL_ALLTOALL,
    GR_CALL_ALLTOALLV,
    GR_CALL_BROADCAST,
    GR_CALL_MINIMUM,
    GR_CALL_MAXIMUM,
    GR_CALL_SUM,
    GR_CALL_COMPARE,
    GR_CALL_GATHER,
    GR_CALL_KINDS
};

/* A message of a call to or from one rank. If it has no bytes it is not sent; both sides know this. */
struct gr_message {
    int32_t  peer;
    uint64_t bytes;
    void    *data;
};

struct gr_calls {
    int64_t            number; /* number of the current call, the same on all ranks */
    uint64_t           scratch_bytes;
    void              *scratch;
    struct gr_frame   *frame_in, *frame_out; /* [n_ranks] frames of received and sent messages */
    struct gr_message *in, *out;             /* [n_ranks] received and sent messages */
    struct gr_request *requests;             /* [4 * n_ranks] requests of frames and payloads */
};

enum { GR_SCRATCH_LEAST = 2048 };

int32_t gr_comm_calls_create(struct gr_comm *comm, graft_error *error);
void    gr_comm_calls_destroy(struct gr_comm *comm);

/** Begin the next call. \return OK; ERR_PEER if the comm is dead. */
int32_t gr_comm_calls_begin(struct gr_comm *comm, graft_error *error);

/** Enlarge calls->scratch to at least `bytes`, during a call. \return OK; ERR_PEER (also if there is no memory). */
int32_t gr_comm_calls_scratch(struct gr_comm *comm, uint64_t bytes, graft_error *error);

/** Append a message to calls->out or calls->in, unless it has no bytes. */
void gr_comm_calls_add(struct gr_message *parts, int32_t *count, int32_t peer, const void *data, uint64_t bytes);

/** Send calls->out[n_out], receive calls->in[n_in], and wait for all. \return OK; ERR_PEER. */
int32_t gr_comm_calls_exchange(struct gr_comm *comm, enum gr_call_kind kind, int32_t n_out, int32_t n_in,
                               graft_error *error);

/** Reduce values along a tree to rank 0: combine() merges a received value into `value`. \return OK; ERR_PEER. */
int32_t gr_comm_calls_reduce(struct gr_comm *comm, enum gr_call_kind kind, void *value, void *incoming, uint64_t bytes,
                             void (*combine)(void *value, const void *incoming, uint64_t bytes), graft_error *error);

/** Broadcast `value` along a tree from rank `root`. \return OK; ERR_PEER. */
int32_t gr_comm_calls_spread(struct gr_comm *comm, enum gr_call_kind kind, int32_t root, void *value, uint64_t bytes,
                             graft_error *error);
