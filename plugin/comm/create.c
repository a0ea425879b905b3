/* Creates comms, which objects of a context share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "comm/agreement.h"
#include "comm/calls.h"
#include "comm/endpoint.h"

enum { TAG_MAX_LEAST = 1023 };

static int32_t transport_read(graft_transport *ours, const graft_transport *theirs, graft_error *error)
{
    const int32_t rc = gr_struct_read(ours, sizeof *ours, theirs, "transport", error);

    if (rc < 0) return rc;
    if (ours->n_ranks < 1 || ours->rank < 0 || ours->rank >= ours->n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "transport: rank is %d and n_ranks is %d, expected a rank from 0 to n_ranks - 1", ours->rank,
                       ours->n_ranks);
    if (ours->tag_max < TAG_MAX_LEAST)
        return gr_fail(error, GRAFT_ERR_ARG, "transport: tag_max is %d, expected at least %d", ours->tag_max,
                       TAG_MAX_LEAST);
    if (!ours->send || !ours->receive || !ours->test || !ours->cancel)
        return gr_fail(error, GRAFT_ERR_ARG, "transport: one of send, receive, test and cancel is null");
    return GRAFT_OK;
}

static int32_t make_comm(graft_context *context, const graft_transport *transport, double timeout,
                         struct gr_comm **comm, graft_error *error)
{
    int32_t         rc = GRAFT_OK;
    struct gr_comm *made;

    GR_TRY_DONE(GR_NEW(context, made, 1, error));
    made->context = context;
    made->uses = 1;
    made->next = context->comms;
    context->comms = made;
    made->transport = *transport;
    made->rank = transport->rank;
    made->n_ranks = transport->n_ranks;
    made->timeout = timeout;
    GR_TRY_DONE(gr_comm_calls_create(made, error));
    GR_TRY_DONE(gr_comm_agreement_create(made, error));
    *comm = made;
    made = NULL;
done:
    gr_comm_destroy(made);
    return rc;
}

/* Find the comm of the context for this transport. Comms of one rank are never shared. */
static struct gr_comm *find_comm(const graft_context *context, const graft_transport *transport)
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

    if (transport != NULL) GR_TRY_DONE(transport_read(&ours, transport, error));
    made = find_comm(context, &ours);
    if (made != NULL) made->uses++;
    else rc = make_comm(context, &ours, timeout, &made, error);
    if (rc < 0 && ours.n_ranks > 1) rc = gr_comm_agreement_announce(&ours, timeout, error);
    GR_TRY_DONE(rc);
    made->timeout = timeout;
    GR_TRY_DONE(gr_comm_compare(made, NULL, NULL, 0, error));
    *comm = made;
    made = NULL;
done:
    gr_comm_destroy(made);
    return rc;
}

void gr_comm_destroy(struct gr_comm *comm)
{
    struct gr_comm **link;

    GR_ASSERT(comm == NULL || comm->uses > 0);
    if (comm == NULL || --comm->uses > 0) return;
    for (link = &comm->context->comms; *link != comm; link = &(*link)->next) continue;
    *link = comm->next;
    gr_comm_endpoint_cancel_all(comm);
    gr_comm_agreement_destroy(comm);
    gr_comm_calls_destroy(comm);
    gr_free(comm->context, comm->network);
    if (comm->is_unsafe) comm->context->keeps--;
    gr_free(comm->context, comm);
}
