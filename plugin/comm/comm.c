/* Messages and waiting.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/comm.h"

#include "base/clock.h"
#include "base/memory.h"
#include "comm/calls.h"
#include "comm/agreement.h"

#include <sched.h>
#include <stdio.h>

/* How often the others' complaints and the clock are looked at while waiting. */
static const double LISTEN_SECONDS = 1e-3;

/* The most that counts as waited between two looks at the clock: a job that was stopped, and goes on an hour later, has
 * not waited for an hour. */
static const double STEP_SECONDS = 0.1;

void gr_rest(struct gr_rest *rest)
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

static int32_t transport_read(graft_transport *ours, const graft_transport *theirs, graft_error *error)
{
    const int32_t rc = gr_struct_read(ours, sizeof *ours, theirs, "transport", error);

    if (rc < 0) return rc;
    if (ours->n_ranks < 1 || ours->rank < 0 || ours->rank >= ours->n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "the transport has rank %d of %d", ours->rank, ours->n_ranks);
    if (ours->tag_max < 1023)
        return gr_fail(error, GRAFT_ERR_ARG, "the transport has tags up to %d, expected 1023 at least", ours->tag_max);
    if (!ours->send || !ours->receive || !ours->test || !ours->give_up)
        return gr_fail(error, GRAFT_ERR_ARG, "the transport lacks one of send, receive, test and give_up");
    return GRAFT_OK;
}

static int32_t make(graft_context *context, const graft_transport *transport, double timeout, struct gr_comm **comm,
                    graft_error *error)
{
    int32_t         rc = GRAFT_OK;
    struct gr_comm *made;

    GR_TRY(GR_NEW(context, made, 1, error));
    made->context = context;
    made->uses = 1;
    made->next = context->comms;
    context->comms = made;
    made->transport = *transport;
    made->rank = transport->rank;
    made->n_ranks = transport->n_ranks;
    made->timeout = timeout;
    GR_TRY(gr_calls_create(made, error));
    GR_TRY(gr_control_create(made, error));
    *comm = made;
    made = NULL;
done:
    gr_comm_destroy(made);
    return rc;
}

static struct gr_comm *find(const graft_context *context, const graft_transport *transport)
{
    struct gr_comm *comm = context->comms;

    while (comm != NULL && (transport->n_ranks == 1 || comm->transport.self != transport->self)) comm = comm->next;
    return comm;
}

int32_t gr_comm_create(graft_context *context, const graft_transport *transport, double timeout, struct gr_comm **comm,
                       graft_error *error)
{
    int32_t         rc = GRAFT_OK;
    graft_transport ours = { .n_ranks = 1, .tag_max = INT32_MAX };
    struct gr_comm *made = NULL;

    if (transport != NULL) GR_TRY(transport_read(&ours, transport, error));
    made = find(context, &ours);
    if (made != NULL) made->uses++;
    else rc = make(context, &ours, timeout, &made, error);
    if (rc < 0 && ours.n_ranks > 1) rc = gr_control_announce(&ours, timeout, error);
    GR_TRY(rc);
    made->timeout = timeout;
    GR_TRY(gr_comm_compare(made, NULL, NULL, 0, error));
    *comm = made;
    made = NULL;
done:
    gr_comm_destroy(made);
    return rc;
}

static void forget(struct gr_request *request)
{
    *request->link = request->next;
    if (request->next != NULL) request->next->link = request->link;
    *request = (struct gr_request){ 0 };
}

void gr_comm_keep(struct gr_comm *comm)
{
    if (!comm->is_unsafe) comm->context->keeps++;
    comm->is_unsafe = 1;
}

void gr_comm_give_up(struct gr_comm *comm)
{
    while (comm->pending != NULL) {
        struct gr_request *request = comm->pending;

        if (!comm->transport.give_up(comm->transport.self, request->handle)) gr_comm_keep(comm);
        forget(request);
    }
}

void gr_comm_abandon(struct gr_comm *comm, const char *reason)
{
    if (comm->dead || comm->n_ranks == 1) return;
    gr_comm_give_up(comm);
    gr_control_destroy(comm);
    comm->dead = GRAFT_ERR_PEER;
    comm->cause.size = sizeof comm->cause;
    gr_fail(&comm->cause, GRAFT_ERR_PEER, "rank %d: %s", comm->rank, reason);
    comm->cause.rank = comm->rank;
    if (comm->transport.abandon != NULL) comm->transport.abandon(comm->transport.self);
}

void gr_comm_destroy(struct gr_comm *comm)
{
    struct gr_comm **link;

    if (comm == NULL || --comm->uses > 0) return;
    for (link = &comm->context->comms; *link != comm; link = &(*link)->next) continue;
    *link = comm->next;
    gr_comm_give_up(comm);
    gr_control_destroy(comm);
    gr_calls_destroy(comm);
    gr_free(comm->context, comm->pace);
    if (comm->is_unsafe) comm->context->keeps--;
    gr_free(comm->context, comm);
}

int32_t gr_comm_channel(struct gr_comm *comm)
{
    const int64_t blocks = ((int64_t)comm->transport.tag_max + 1 - GR_TAG_FIRST) / GR_CHANNEL_TAGS;

    return (int32_t)(GR_TAG_FIRST + GR_CHANNEL_TAGS * (comm->channels++ % blocks));
}

static int32_t dead(const struct gr_comm *comm, graft_error *error)
{
    *error = comm->cause;
    return comm->dead;
}

/* A request that the transport took, or its failure. */
static int32_t begun(struct gr_comm *comm, int32_t rc, int32_t peer, struct gr_request *request, graft_error *error)
{
    if (rc < 0) {
        request->handle = NULL;
        error->code = rc;
        return gr_comm_fail(comm, error);
    }
    request->peer = peer;
    request->next = comm->pending;
    request->link = &comm->pending;
    if (request->next != NULL) request->next->link = &request->next;
    comm->pending = request;
    return GRAFT_OK;
}

int32_t gr_comm_send(struct gr_comm *comm, int32_t peer, int32_t tag, const void *data, uint64_t bytes,
                     struct gr_request *request, graft_error *error)
{
    const graft_transport *t = &comm->transport;

    if (comm->dead) return dead(comm, error);
    return begun(comm, t->send(t->self, peer, tag, data, bytes, &request->handle, error), peer, request, error);
}

int32_t gr_comm_receive(struct gr_comm *comm, int32_t peer, int32_t tag, void *data, uint64_t bytes,
                        struct gr_request *request, graft_error *error)
{
    const graft_transport *t = &comm->transport;

    if (comm->dead) return dead(comm, error);
    return begun(comm, t->receive(t->self, peer, tag, data, bytes, &request->handle, error), peer, request, error);
}

int32_t gr_comm_fail(struct gr_comm *comm, graft_error *error)
{
    if (comm->dead) return dead(comm, error);
    if (comm->n_ranks == 1) return error->code;
    return gr_control_stop(comm, GR_FAILED, -1, error);
}

/* Test each request once. */
static int32_t test_all(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
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
            return gr_comm_fail(comm, error);
        }
        if (done) forget(&requests[i]);
        else ++*left;
    }
    return GRAFT_OK;
}

static int32_t hear(struct gr_comm *comm, int32_t waiting_for, graft_error *error)
{
    if (!gr_control_heard(comm)) return GRAFT_OK;
    return gr_control_stop(comm, GR_HEARD, waiting_for, error);
}

int32_t gr_comm_poll(struct gr_comm *comm, struct gr_request *requests, int64_t count, int64_t *left,
                     graft_error *error)
{
    const double now = gr_seconds();
    int32_t      rc = GRAFT_OK;

    if (comm->dead) return dead(comm, error);
    if (now - comm->listened > LISTEN_SECONDS) {
        rc = hear(comm, -1, error);
        comm->listened = now;
    }
    return rc < 0 ? rc : test_all(comm, requests, count, left, error);
}

static int32_t first_peer(const struct gr_request *requests, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (requests[i].handle != NULL) return requests[i].peer;
    return -1;
}

static int32_t too_late(struct gr_comm *comm, int32_t peer, graft_error *error)
{
    gr_fail(error, GRAFT_ERR_PEER, "rank %d waited %.3g s for a message of rank %d", comm->rank, comm->timeout, peer);
    return gr_control_stop(comm, GR_TIMEOUT, peer, error);
}

int32_t gr_comm_wait(struct gr_comm *comm, struct gr_request *requests, int64_t count, graft_error *error)
{
    double         listened = gr_seconds(), waited = 0;
    struct gr_rest rest = { 0 };
    int64_t        left, before = count;
    int32_t        rc = comm->dead ? dead(comm, error) : hear(comm, -1, error);

    if (rc == GRAFT_OK) rc = test_all(comm, requests, count, &left, error);
    while (rc == GRAFT_OK && left > 0) {
        const double now = gr_seconds();

        if (now - listened > LISTEN_SECONDS) {
            const int32_t peer = first_peer(requests, count);

            waited += now - listened < STEP_SECONDS ? now - listened : STEP_SECONDS;
            rc = hear(comm, peer, error);
            if (rc == GRAFT_OK && waited > comm->timeout) rc = too_late(comm, peer, error);
            if (rc < 0) break;
            listened = now;
        }
        if (left < before) rest.turns = 0;
        before = left;
        gr_rest(&rest);
        rc = test_all(comm, requests, count, &left, error);
    }
    return rc;
}
