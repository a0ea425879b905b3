/* "graft.graph/1": reads the host's structs, checks them, and calls dgraph/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "dgraph/graph.h"

/* The checks of this rank's arguments; the caller makes all ranks agree on the result. */
static int32_t read_slice(const graft_context *context, const graft_slice *theirs, graft_slice *ours, graft_csr *rows,
                          graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_struct_read(ours, sizeof *ours, theirs, "slice", error));
    if (ours->rows != NULL) {
        GR_TRY(gr_struct_read(rows, sizeof *rows, ours->rows, "slice.rows", error));
        ours->rows = rows;
    }
    rc = gr_slice_check(context, ours, error);
done:
    return rc;
}

static int32_t graph_create(graft_context *context, const graft_transport *transport, const graft_slice *slice,
                            graft_graph **graph, graft_error *error)
{
    struct gr_call  call;
    struct gr_comm *comm = NULL;
    graft_slice     ours;
    graft_csr       rows;
    graft_graph    *made = NULL;
    int32_t         rc = gr_call_begin(&call, context, GRAFT_GRAPH_ID " create", error);

    GR_TRY(rc);
    GR_TRY(gr_comm_create(context, transport, context->options.halo.timeout, &comm, &call.error));
    rc = read_slice(context, slice, &ours, &rows, &call.error);
    if (rc == GRAFT_OK && graph == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "graph is null");
    GR_TRY(gr_comm_agree(comm, rc, &call.error));
    GR_TRY(gr_graph_create(context, comm, &ours, &made, &call.error));
    made->own_comm = comm;
    comm = NULL;
    *graph = made;
done:
    gr_comm_destroy(comm);
    return gr_call_end(&call, rc);
}

/* Begin a call on a graph, which may be NULL. */
static int32_t graph_call_begin(struct gr_call *call, const graft_graph *graph, const char *where, graft_error *error)
{
    const int32_t rc = gr_call_begin(call, graph != NULL ? graph->context : NULL, where, error);

    return graph != NULL ? rc : gr_fail(&call->error, GRAFT_ERR_ARG, "graph is null");
}

static int32_t graph_info(const graft_graph *graph, int32_t rank, graft_graph_info *info, graft_error *error)
{
    struct gr_call   call;
    graft_graph_info ours = { .size = sizeof ours };
    int32_t          rc = graph_call_begin(&call, graph, GRAFT_GRAPH_ID " info", error);

    if (rc == GRAFT_OK) rc = gr_graph_info(graph, graph->share, rank, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
    return gr_call_end(&call, rc);
}

static const int64_t *graph_owned(const graft_graph *graph)
{
    return graph != NULL ? graph->vertex : NULL;
}

static int32_t graph_redistribute(graft_graph *graph, const graft_redistribution *args, graft_error *error)
{
    struct gr_call       call;
    graft_redistribution ours = { .size = sizeof ours };
    int32_t              rc = graph_call_begin(&call, graph, GRAFT_GRAPH_ID " redistribute", error);

    GR_TRY(rc);
    rc = gr_struct_read(&ours, sizeof ours, args, "args", &call.error);
    GR_TRY(gr_comm_agree(graph->comm, rc, &call.error));
    rc = gr_graph_redistribute(graph, &ours, 0, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t graph_explain(const graft_graph *graph, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = graph_call_begin(&call, graph, GRAFT_GRAPH_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) gr_graph_explain(graph, graph->share, text, capacity);
    return gr_call_end(&call, rc);
}

static void graph_destroy(graft_graph *graph)
{
    struct gr_call call;

    if (graph == NULL) return;
    if (gr_call_begin(&call, graph->context, GRAFT_GRAPH_ID " destroy", NULL) == GRAFT_OK) gr_graph_destroy(graph);
    gr_call_end(&call, GRAFT_OK);
}

const graft_graphs gr_interface_graph = {
    .size = sizeof(graft_graphs),
    .create = graph_create,
    .info = graph_info,
    .owned = graph_owned,
    .redistribute = graph_redistribute,
    .explain = graph_explain,
    .destroy = graph_destroy,
};
