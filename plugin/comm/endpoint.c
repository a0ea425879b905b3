/* Begins, tests and cancels requests of the transport.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/endpoint.h"

#include "base/assert.h"

#include <sched.h>
#include <time.h>

void gr_comm_rest(struct gr_rest *rest)
{
    enum { SPINS = 64, YIELDS = 256, SLEEP_FIRST = 20000, SLEEP_MOST = 300000 };
    struct timespec sleep = { 0, SLEEP_FIRST };

    if (rest->turns < INT32_MAX) rest->turns++;
    if (rest->turns <= SPINS) return;
    if (rest->turns <= YIELDS) {
        sched_yield();
        return;
    }
    sleep.tv_nsec += (long)(rest->turns - YIELDS) * 1000;
    if (sleep.tv_nsec > SLEEP_MOST) sleep.tv_nsec = SLEEP_MOST;
    nanosleep(&sleep, NULL);
}

/* Add a request to the pending requests, if the transport has accepted it (rc is OK). */
static int32_t enlist(struct gr_comm *comm, int32_t rc, int32_t peer, struct gr_request *request, graft_error *error)
{
    if (rc < 0) {
        request->handle = NULL;
        error->code = rc;
        return rc;
    }
    request->peer = peer;
    request->next = comm->pending;
    request->link = &comm->pending;
    if (request->next != NULL) request->next->link = &request->next;
    comm->pending = request;
    return GRAFT_OK;
}

static void delist(struct gr_request *request)
{
    GR_ASSERT(*request->link == request);
    *request->link = request->next;
    if (request->next != NULL) request->next->link = request->link;
    *request = (struct gr_request){ 0 };
}

int32_t gr_comm_endpoint_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                              struct gr_request *request, graft_error *error)
{
    const graft_transport *t = &comm->transport;

    GR_ASSERT(request->handle == NULL);
    return enlist(comm, t->send(t->self, peer, tag, data, bytes, &request->handle, error), peer, request, error);
}

int32_t gr_comm_endpoint_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                                 struct gr_request *request, graft_error *error)
{
    const graft_transport *t = &comm->transport;

    GR_ASSERT(request->handle == NULL);
    return enlist(comm, t->receive(t->self, peer, tag, data, bytes, &request->handle, error), peer, request, error);
}

int32_t gr_comm_endpoint_test(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                              graft_error *error)
{
    const graft_transport *t = &comm->transport;

    *left = 0;
    for (int64_t i = 0; i < count; i++) {
        int32_t done = 0, rc;

        if (requests[i].handle == NULL) continue;
        rc = t->test(t->self, requests[i].handle, &done, error);
        if (rc < 0) {
            error->code = rc;
            return rc;
        }
        if (done) delist(&requests[i]);
        else ++*left;
    }
    return GRAFT_OK;
}

void gr_comm_endpoint_cancel(struct gr_comm *comm, graft_request *handle)
{
    if (comm->transport.cancel(comm->transport.self, handle)) return;
    if (!comm->is_unsafe) comm->context->keeps++;
    comm->is_unsafe = 1;
}

void gr_comm_endpoint_cancel_all(struct gr_comm *comm)
{
    while (comm->pending != NULL) {
        gr_comm_endpoint_cancel(comm, comm->pending->handle);
        delist(comm->pending);
    }
}
