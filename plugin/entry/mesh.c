/* "graft.draft.mesh": reads the host's structs, checks them, and calls mesh/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "comm/collective.h"
#include "comm/options.h"
#include "mesh/mesh.h"

static int32_t mesh_create(graft_context *context, const graft_transport *transport, const graft_mesh_args *args,
                           graft_mesh **mesh, graft_error *error)
{
    struct gr_call  call;
    struct gr_comm *comm = NULL;
    graft_mesh_args ours;
    graft_mesh     *made = NULL;
    int32_t         rc = gr_call_begin(&call, context, GRAFT_MESH_ID " create", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_comm_create(context, transport, gr_comm_options(context)->timeout, &comm, &call.error));
    rc = gr_struct_read(&ours, sizeof ours, args, "args", &call.error);
    if (rc == GRAFT_OK && mesh == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "mesh is null");
    GR_TRY_DONE(gr_comm_agree(comm, rc, &call.error));
    GR_TRY_DONE(gr_mesh_create(context, transport, &ours, &made, &call.error));
    gr_handle_init(made, GR_HANDLE_MESH, context);
    *mesh = made;
done:
    gr_comm_destroy(comm);
    return gr_call_end(&call, rc);
}

static int32_t mesh_info(const graft_mesh *mesh, int32_t rank, graft_mesh_info *info, graft_error *error)
{
    struct gr_call  call;
    graft_mesh_info ours;
    int32_t         rc = gr_call_begin_on(&call, mesh, GR_HANDLE_MESH, GRAFT_MESH_ID " info", error);

    if (rc == GRAFT_OK) rc = gr_mesh_info(mesh, rank, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t mesh_view(const graft_mesh *mesh, graft_mesh_view *view, graft_error *error)
{
    struct gr_call  call;
    graft_mesh_view ours;
    int32_t         rc = gr_call_begin_on(&call, mesh, GR_HANDLE_MESH, GRAFT_MESH_ID " view", error);

    if (rc == GRAFT_OK) {
        gr_mesh_view(mesh, &ours);
        rc = gr_struct_write(view, &ours, sizeof ours, "view", &call.error);
    }
    return gr_call_end(&call, rc);
}

static int32_t mesh_explain(const graft_mesh *mesh, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, mesh, GR_HANDLE_MESH, GRAFT_MESH_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) gr_mesh_explain(mesh, text, capacity);
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(mesh_destroy, graft_mesh, MESH, GRAFT_MESH_ID " destroy", gr_mesh_destroy)

const graft_mesh_api gr_interface_mesh = {
    .size = sizeof(graft_mesh_api),
    .create = mesh_create,
    .info = mesh_info,
    .view = mesh_view,
    .explain = mesh_explain,
    .destroy = mesh_destroy,
};
