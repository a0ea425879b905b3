/* Begins, tests and cancels requests of the transport. Failures are returned to the caller. How ranks stop is decided
 * in agreement.h, and how long they wait in comm.h.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** Begin to send or receive, and add the request to the pending requests of the comm. \return OK; errors of the
 *  transport, also in `error`. */
int32_t gr_comm_endpoint_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                              struct gr_request *request, graft_error *error);
int32_t gr_comm_endpoint_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                                 struct gr_request *request, graft_error *error);

/** Test each request once, and set *left to the number of pending requests. \return OK; errors of the transport, also
 *  in `error`. */
int32_t gr_comm_endpoint_test(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                              graft_error *error);

/** Cancel a request of the transport. If the transport may still access memory of the message, no memory of the context
 *  is freed from now on until the comm is destroyed, because it is unknown which blocks are affected. Blocks for which
 *  gr_free() is called meanwhile are leaked, so memory of messages is freed before the comm. */
void gr_comm_endpoint_cancel(struct gr_comm *comm, graft_request *handle);

/** Cancel all pending requests. Other ranks will then wait for these messages until their deadline. */
void gr_comm_endpoint_cancel_all(struct gr_comm *comm);

/** The state of a loop that polls. gr_comm_rest() first does nothing, after some calls yields to other threads, and
 *  later sleeps. */
struct gr_rest {
    int32_t turns;
};
void gr_comm_rest(struct gr_rest *rest);
