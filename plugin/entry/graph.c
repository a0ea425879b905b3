/* "graft.graph/1": reads the host's structs, checks them, and calls dgraph/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "base/memory.h"
#include "comm/options.h"
#include "parallel/workload.h"
#include "spmm/plan.h"

/* Read and check this rank's arguments. The caller makes all ranks agree on the result. */
static int32_t read_slice(const graft_context *context, const graft_slice *theirs, graft_slice *ours, graft_csr *rows,
                          int64_t **row_ptr, graft_error *error)
{
    GR_TRY(gr_struct_read(ours, sizeof *ours, theirs, "slice", error));
    if (ours->rows != NULL) {
        GR_TRY(gr_struct_read(rows, sizeof *rows, ours->rows, "slice.rows", error));
        GR_TRY(gr_csr_widen(context, rows, "slice.rows", row_ptr, error));
        ours->rows = rows;
    }
    return gr_graph_slice_check(context, ours, error);
}

static int32_t graph_create(graft_context *context, const graft_transport *transport, const graft_slice *slice,
                            graft_graph **graph, graft_error *error)
{
    struct gr_call     call;
    struct gr_comm    *comm = NULL;
    graft_slice        ours;
    graft_csr          rows;
    graft_graph       *made = NULL;
    struct gr_workload workload;
    int64_t           *row_ptr = NULL; /* 64-bit row pointers of the slice, if the host has 32-bit ones */
    int32_t            rc = gr_call_begin(&call, context, GRAFT_GRAPH_ID " create", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_comm_create(context, transport, gr_comm_options(context)->timeout, &comm, &call.error));
    workload = gr_parallel_workload_of(context);
    rc = read_slice(context, slice, &ours, &rows, &row_ptr, &call.error);
    if (rc == GRAFT_OK && graph == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "graph is null");
    GR_TRY_DONE(gr_comm_agree(comm, rc, &call.error));
    GR_TRY_DONE(gr_graph_create(context, comm, &workload, &ours, &made, &call.error));
    made->own_comm = comm;
    comm = NULL;
    gr_handle_init(made, GR_HANDLE_GRAPH, context);
    *graph = made;
done:
    if (row_ptr != NULL) gr_free(context, row_ptr);
    gr_comm_destroy(comm);
    return gr_call_end(&call, rc);
}

static int32_t graph_info(const graft_graph *graph, int32_t rank, graft_graph_info *info, graft_error *error)
{
    struct gr_call   call;
    graft_graph_info ours = { .size = sizeof ours };
    int32_t          rc = gr_call_begin_on(&call, graph, GR_HANDLE_GRAPH, GRAFT_GRAPH_ID " info", error);

    if (rc == GRAFT_OK) rc = gr_graph_info(graph, graph->share, rank, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
    return gr_call_end(&call, rc);
}

static const int64_t *graph_owned(const graft_graph *graph)
{
    return gr_handle_is(graph, GR_HANDLE_GRAPH) ? graph->vertex : NULL;
}

static int32_t graph_redistribute(graft_graph *graph, const graft_redistribution *args, graft_error *error)
{
    struct gr_call       call;
    graft_redistribution ours = { .size = sizeof ours };
    int32_t              rc = gr_call_begin_on(&call, graph, GR_HANDLE_GRAPH, GRAFT_GRAPH_ID " redistribute", error);

    GR_TRY_DONE(rc);
    rc = gr_struct_read(&ours, sizeof ours, args, "args", &call.error);
    GR_TRY_DONE(gr_comm_agree(graph->comm, rc, &call.error));
    rc = gr_graph_redistribute(graph, &ours, 0, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t graph_explain(const graft_graph *graph, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, graph, GR_HANDLE_GRAPH, GRAFT_GRAPH_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) gr_graph_explain(graph, graph->share, &(struct gr_text){ text, capacity });
    return gr_call_end(&call, rc);
}

static int32_t graph_update_values(graft_graph *graph, const graft_dense *values, graft_error *error)
{
    struct gr_call call;
    graft_dense    ours = { .size = sizeof ours, .n_cols = 1 };
    int32_t        rc = gr_call_begin_on(&call, graph, GR_HANDLE_GRAPH, GRAFT_GRAPH_ID " update_values", error);

    GR_TRY_DONE(rc);
    if (values != NULL) rc = gr_struct_read(&ours, sizeof ours, values, "values", &call.error);
    GR_TRY_DONE(gr_comm_agree(graph->comm, rc, &call.error));
    rc = gr_spmm_update_values(graph, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(graph_destroy, graft_graph, GRAPH, GRAFT_GRAPH_ID " destroy", gr_graph_destroy)

const graft_graph_api gr_interface_graph = {
    .size = sizeof(graft_graph_api),
    .create = graph_create,
    .info = graph_info,
    .owned = graph_owned,
    .redistribute = graph_redistribute,
    .explain = graph_explain,
    .destroy = graph_destroy,
    .update_values = graph_update_values,
};
