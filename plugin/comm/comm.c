/* Sends and receives messages, and waits for them with a deadline.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include "base/assert.h"
#include "base/clock.h"
#include "comm/agreement.h"
#include "comm/endpoint.h"

/* The interval at which a waiting rank checks for notices of other ranks, and reads the clock. */
static const double LOOK_SECONDS = 1e-3;

/* The largest wait that is counted between two readings of the clock, so that the time for which a job was suspended is
 * not regarded as waiting. */
static const double STEP_SECONDS = 0.1;

static int32_t return_cause(const struct gr_comm *comm, graft_error *error)
{
    *error = comm->cause;
    return comm->dead;
}

int32_t gr_comm_channel(struct gr_comm *comm)
{
    const int64_t blocks = ((int64_t)comm->transport.tag_max + 1 - GR_TAG_FIRST) / GR_CHANNEL_TAGS;

    return (int32_t)(GR_TAG_FIRST + GR_CHANNEL_TAGS * (comm->channels++ % blocks));
}

int32_t gr_comm_fail(struct gr_comm *comm, graft_error *error)
{
    if (comm->dead) return return_cause(comm, error);
    if (comm->n_ranks == 1) return error->code;
    return gr_comm_agreement_stop(comm, GR_STOP_FAILED, -1, error);
}

int32_t gr_comm_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                     struct gr_request *request, graft_error *error)
{
    GR_ASSERT(peer >= 0 && peer < comm->n_ranks && peer != comm->rank);
    if (comm->dead) return return_cause(comm, error);
    if (gr_comm_endpoint_send(comm, peer, tag, data, bytes, request, error) < 0) return gr_comm_fail(comm, error);
    return GRAFT_OK;
}

int32_t gr_comm_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                        struct gr_request *request, graft_error *error)
{
    GR_ASSERT(peer >= 0 && peer < comm->n_ranks && peer != comm->rank);
    if (comm->dead) return return_cause(comm, error);
    if (gr_comm_endpoint_receive(comm, peer, tag, data, bytes, request, error) < 0) return gr_comm_fail(comm, error);
    return GRAFT_OK;
}

static int32_t test_requests(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                             graft_error *error)
{
    if (gr_comm_endpoint_test(comm, requests, count, left, error) < 0) return gr_comm_fail(comm, error);
    return GRAFT_OK;
}

/* Stop if another rank has sent a notice. */
static int32_t look_for_notices(struct gr_comm *comm, int32_t waiting_for, graft_error *error)
{
    if (!gr_comm_agreement_has_notice(comm)) return GRAFT_OK;
    return gr_comm_agreement_stop(comm, GR_STOP_NOTIFIED, waiting_for, error);
}

int32_t gr_comm_poll(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                     graft_error *error)
{
    const double now = gr_seconds();
    int32_t      rc = GRAFT_OK;

    if (comm->dead) return return_cause(comm, error);
    if (now - comm->last_look > LOOK_SECONDS) {
        rc = look_for_notices(comm, -1, error);
        comm->last_look = now;
    }
    return rc < 0 ? rc : test_requests(comm, requests, count, left, error);
}

static int32_t first_peer(const struct gr_request *requests, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (requests[i].handle != NULL) return requests[i].peer;
    return -1;
}

static int32_t time_out(struct gr_comm *comm, int32_t peer, graft_error *error)
{
    gr_fail(error, GRAFT_ERR_PEER, "rank %d waited %.3g s for a message of rank %d", comm->rank, comm->timeout, peer);
    return gr_comm_agreement_stop(comm, GR_STOP_TIMEOUT, peer, error);
}

int32_t gr_comm_wait(struct gr_comm *comm, struct gr_request *requests, int64_t count, graft_error *error)
{
    double         last_look = gr_seconds(), waited = 0;
    struct gr_rest rest = { 0 };
    int64_t        left, before = count;
    int32_t        rc = comm->dead ? return_cause(comm, error) : look_for_notices(comm, -1, error);

    if (rc == GRAFT_OK) rc = test_requests(comm, requests, count, &left, error);
    while (rc == GRAFT_OK && left > 0) {
        const double now = gr_seconds();

        if (now - last_look > LOOK_SECONDS) {
            const int32_t peer = first_peer(requests, count);

            waited += now - last_look < STEP_SECONDS ? now - last_look : STEP_SECONDS;
            rc = look_for_notices(comm, peer, error);
            if (rc == GRAFT_OK && waited > comm->timeout) rc = time_out(comm, peer, error);
            if (rc < 0) break;
            last_look = now;
        }
        if (left < before) rest.turns = 0;
        before = left;
        gr_comm_rest(&rest);
        rc = test_requests(comm, requests, count, &left, error);
    }
    return rc;
}

void gr_comm_abandon(struct gr_comm *comm, const char *reason)
{
    if (comm->dead || comm->n_ranks == 1) return;
    gr_comm_endpoint_cancel_all(comm);
    gr_comm_agreement_destroy(comm);
    comm->dead = GRAFT_ERR_PEER;
    comm->cause.size = sizeof comm->cause;
    gr_fail(&comm->cause, GRAFT_ERR_PEER, "rank %d: %s", comm->rank, reason);
    comm->cause.rank = comm->rank;
    if (comm->transport.abandon != NULL) comm->transport.abandon(comm->transport.self);
}
