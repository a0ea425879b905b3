/* "graft.transport/1": reads the host's structs, checks them, and calls comm/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "base/memory.h"
#include "comm/collective.h"
#include "comm/group.h"
#include "comm/open.h"
#include "comm/options.h"
#include "comm/threads.h"

/* Find an element of an array of the host. Elements have the size that the first one states. */
static void *element(graft_transport *array, int32_t index)
{
    return (char *)array + (uint64_t)index * array->size;
}

static int32_t check_array(int32_t n_ranks, graft_transport *transports, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (transports == NULL) return gr_fail(error, GRAFT_ERR_ARG, "transports is null");
    if (n_ranks < 1 || n_ranks > GR_RANK_THREADS_MAX)
        return gr_fail(error, GRAFT_ERR_ARG, "n_ranks is %d, expected 1 to %d", n_ranks, (int)GR_RANK_THREADS_MAX);
    for (int32_t i = 0; i < n_ranks && rc == GRAFT_OK; i++) {
        const graft_transport *at = element(transports, i);

        rc = gr_struct_check_out(at, "a transport", error);
        if (rc == GRAFT_OK && at->size != transports->size)
            rc = gr_fail(error, GRAFT_ERR_ARG, "transport %d has size %u, transport 0 has %u", i, at->size,
                         transports->size);
    }
    return rc;
}

static int32_t transport_threads(graft_context *context, int32_t n_ranks, graft_transport *transports,
                                 graft_error *error)
{
    struct gr_call   call;
    graft_transport *ours = NULL;
    int32_t          rc = gr_call_begin(&call, context, GRAFT_TRANSPORT_ID " threads", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(check_array(n_ranks, transports, &call.error));
    GR_TRY_DONE(GR_NEW(context, ours, n_ranks, &call.error));
    GR_TRY_DONE(gr_comm_threads_create(&context->host, n_ranks, ours, &call.error));
    for (int32_t i = 0; i < n_ranks; i++)
        (void)gr_struct_write(element(transports, i), &ours[i], sizeof ours[i], "a transport", &call.error);
done:
    if (ours != NULL) gr_free(context, ours); /* otherwise the context may be invalid */
    return gr_call_end(&call, rc);
}

static int32_t transport_open(graft_context *context, const char *module, const graft_communicator *communicator,
                              graft_transport *transport, graft_error *error)
{
    struct gr_call     call;
    graft_communicator ours = { .size = sizeof ours };
    graft_transport    made = { .size = sizeof made };
    int32_t            rc = gr_call_begin(&call, context, GRAFT_TRANSPORT_ID " open", error);

    GR_TRY_DONE(rc);
    if (module == NULL) GR_TRY_DONE(gr_fail(&call.error, GRAFT_ERR_ARG, "module is null"));
    GR_TRY_DONE(gr_struct_check_out(transport, "transport", &call.error));
    if (communicator != NULL)
        GR_TRY_DONE(gr_struct_read(&ours, sizeof ours, communicator, "communicator", &call.error));
    GR_TRY_DONE(gr_comm_transport_open(context, module, &ours, &made, &call.error));
    (void)gr_struct_write(transport, &made, sizeof made, "transport", &call.error);
done:
    return gr_call_end(&call, rc);
}

const graft_transport_api gr_interface_transport = {
    .size = sizeof(graft_transport_api),
    .threads = transport_threads,
    .open = transport_open,
};
