/* "graft.halo/1": reads the host's structs, checks them, and calls dgraph/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "dgraph/halo.h"
#include "kernel/kernel.h"

static int32_t halo_create(graft_graph *graph, graft_halo **halo, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, graph, GR_HANDLE_GRAPH, GRAFT_HALO_ID " create", error);

    GR_TRY_DONE(rc);
    if (halo == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "halo is null");
    GR_TRY_DONE(gr_comm_agree(graph->comm, rc, &call.error));
    GR_TRY_DONE(gr_graph_halo_create(graph, halo, &call.error));
    gr_handle_init(*halo, GR_HANDLE_HALO, graph->context);
done:
    return gr_call_end(&call, rc);
}

static int32_t halo_info(const graft_halo *halo, graft_halo_info *info, graft_error *error)
{
    struct gr_call  call;
    graft_halo_info ours;
    int32_t         rc = gr_call_begin_on(&call, halo, GR_HANDLE_HALO, GRAFT_HALO_ID " info", error);

    GR_TRY_DONE(rc);
    gr_graph_halo_info(halo, &ours);
    rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t halo_matrix(graft_halo *halo, graft_csr *matrix, graft_error *error)
{
    struct gr_call   call;
    const graft_csr *ours;
    int32_t          rc = gr_call_begin_on(&call, halo, GR_HANDLE_HALO, GRAFT_HALO_ID " matrix", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_check_out(matrix, "matrix", &call.error));
    GR_TRY_DONE(gr_graph_halo_matrix(halo, &ours, &call.error));
    rc = gr_struct_write(matrix, ours, sizeof *ours, "matrix", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t check_dense(const graft_dense *dense, int64_t n_rows, const char *name, graft_error *error)
{
    GR_TRY(gr_kernel_dense_check(dense, name, error));
    if (dense->dtype != GRAFT_F32 && dense->dtype != GRAFT_F64)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: dtype is %d, expected GRAFT_F32 (1) or GRAFT_F64 (2)", name,
                       dense->dtype);
    if (dense->n_rows != n_rows)
        return gr_fail(error, GRAFT_ERR_ARG, "%s: has %lld rows, expected %lld, as info() says", name,
                       (long long)dense->n_rows, (long long)n_rows);
    return GRAFT_OK;
}

static int32_t check_pass(const graft_halo *halo, const graft_halo_args *args, graft_error *error)
{
    const graft_dense *owned = args->owned, *rows = args->halo;
    int64_t            left;

    if (args->flags & ~(GRAFT_HALO_SUM | GRAFT_HALO_EXACT))
        return gr_fail(error, GRAFT_ERR_ARG, "flags are 0x%x, of which some are unknown", args->flags);
    GR_TRY(check_dense(owned, halo->graph->n_owned, "args.owned", error));
    GR_TRY(check_dense(rows, halo->rows.halo->count, "args.halo", error));
    if (owned->n_cols != rows->n_cols || owned->dtype != rows->dtype)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "args.owned has %lld columns of dtype %d and args.halo %lld of dtype %d; expected the same",
                       (long long)owned->n_cols, owned->dtype, (long long)rows->n_cols, rows->dtype);
    if (gr_kernel_dense_overlaps(owned, rows))
        return gr_fail(error, GRAFT_ERR_ARG, "args.halo overlaps args.owned in memory");
    return gr_comm_poll(halo->graph->comm, NULL, 0, &left, error);
}

static int32_t read_halo_pass(const graft_halo *halo, const graft_halo_args *theirs, graft_halo_args *ours,
                              graft_dense *owned, graft_dense *rows, graft_error *error)
{
    GR_TRY(gr_struct_read(ours, sizeof *ours, theirs, "args", error));
    GR_TRY(gr_struct_read(owned, sizeof *owned, ours->owned, "args.owned", error));
    GR_TRY(gr_struct_read(rows, sizeof *rows, ours->halo, "args.halo", error));
    ours->owned = owned;
    ours->halo = rows;
    return check_pass(halo, ours, error);
}

static int32_t halo_begin(graft_halo *halo, const graft_halo_args *args, graft_error *error)
{
    struct gr_call  call;
    graft_halo_args ours;
    graft_dense     owned, rows;
    int32_t         rc = gr_call_begin_on(&call, halo, GR_HANDLE_HALO, GRAFT_HALO_ID " begin", error);

    GR_TRY_DONE(rc);
    gr_comm_outcome_count(&halo->outcome);
    if (gr_graph_halo_has_begun(halo))
        GR_TRY_DONE(gr_fail(&call.error, GRAFT_ERR_STATE, "a pass of this halo has begun and not ended"));
    rc = read_halo_pass(halo, args, &ours, &owned, &rows, &call.error);
    rc = gr_graph_halo_begin(halo, rc, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t check_begun(const graft_halo *halo, graft_error *error)
{
    if (gr_graph_halo_has_begun(halo)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "no pass of this halo has begun");
}

static int32_t halo_progress(graft_halo *halo, int32_t *arrived, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, halo, GR_HANDLE_HALO, GRAFT_HALO_ID " progress", error);

    GR_TRY_DONE(rc);
    if (arrived == NULL) GR_TRY_DONE(gr_fail(&call.error, GRAFT_ERR_ARG, "arrived is null"));
    GR_TRY_DONE(check_begun(halo, &call.error));
    *arrived = 1;
    if (halo->rows.begun) GR_TRY_DONE(gr_halo_exchange_progress(&halo->rows.exchange, arrived, &call.error));
    rc = gr_comm_outcome_progress(&halo->outcome, arrived, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t halo_end(graft_halo *halo, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, halo, GR_HANDLE_HALO, GRAFT_HALO_ID " end", error);

    GR_TRY_DONE(rc);
    if (!gr_graph_halo_has_begun(halo)) gr_comm_outcome_count_end(&halo->outcome);
    GR_TRY_DONE(check_begun(halo, &call.error));
    rc = gr_graph_halo_end(halo, &call.error);
done:
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(halo_destroy, graft_halo, HALO, GRAFT_HALO_ID " destroy", gr_graph_halo_destroy)

const graft_halo_api gr_interface_halo = {
    .size = sizeof(graft_halo_api),
    .create = halo_create,
    .info = halo_info,
    .matrix = halo_matrix,
    .begin = halo_begin,
    .progress = halo_progress,
    .end = halo_end,
    .destroy = halo_destroy,
};
