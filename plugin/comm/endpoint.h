/* Requests of the transport: begin, test, cancel. Failures are returned to the caller: agreement.h decides how ranks
 * stop, comm.h how long they wait.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** Begin to send or receive, and add the request to the pending requests of the comm. \return OK; errors of the
 *  transport, also in `error`. */
int32_t gr_comm_endpoint_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                              struct gr_request *request, graft_error *error);
int32_t gr_comm_endpoint_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                                 struct gr_request *request, graft_error *error);

/** Test each request once; *left receives the number of pending requests. \return OK; errors of the transport, also in
 *  `error`. */
int32_t gr_comm_endpoint_test(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                              graft_error *error);

/** Cancel a request of the transport. If the transport may still access the memory of the message, its blocks are
 *  unknown: then no memory of the context is freed until the comm is destroyed, and blocks freed meanwhile are kept for
 *  the life of the process. Memory of messages is therefore freed before the comm. */
void gr_comm_endpoint_cancel(struct gr_comm *comm, graft_request *handle);

/** Cancel all pending requests. The other ranks will wait for these messages. */
void gr_comm_endpoint_cancel_all(struct gr_comm *comm);

/** Short rests in a polling loop: the first calls do nothing, later calls yield to other threads, then they sleep. */
struct gr_rest {
    int32_t turns;
};
void gr_comm_rest(struct gr_rest *rest);
