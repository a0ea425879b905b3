/* "graft.draft.stream": reads the host's structs, and calls stream/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "comm/collective.h"
#include "stream/stream.h"

static int32_t stream_create(graft_network *network, graft_stream **stream, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_STREAM_ID " create", error);

    GR_TRY_DONE(rc);
    if (stream == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "stream is null");
    rc = gr_stream_create(network, rc, stream, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*stream, GR_HANDLE_STREAM, network->context);
done:
    return gr_call_end(&call, rc);
}

static int32_t read_state(const graft_stream *s, const graft_sample_state *state, graft_sample_state *ours,
                          graft_field fields[2], graft_error *error)
{
    const graft_network *n = s->network;

    GR_TRY(gr_struct_read(ours, sizeof *ours, state, "state", error));
    if (ours->flags & ~GRAFT_STREAM_FIRST)
        return gr_fail(error, GRAFT_ERR_ARG, "state.flags is 0x%x, of which some are unknown", ours->flags);
    GR_TRY(gr_mesh_field_read(ours->input, "state.input", n->mesh->n_rows, n->columns.in, &fields[0], error));
    ours->input = &fields[0];
    if (ours->target == NULL) return GRAFT_OK;
    GR_TRY(gr_mesh_field_read(ours->target, "state.target", n->mesh->n_rows, n->columns.out, &fields[1], error));
    ours->target = &fields[1];
    return GRAFT_OK;
}

static int32_t stream_offer(graft_stream *stream, const graft_sample_state *state, graft_error *error)
{
    struct gr_call     call;
    graft_sample_state ours = { .size = 0 };
    graft_field        fields[2];
    int32_t            rc = gr_call_begin_on(&call, stream, GR_HANDLE_STREAM, GRAFT_STREAM_ID " offer", error);

    GR_TRY_DONE(rc);
    rc = read_state(stream, state, &ours, fields, &call.error);
    rc = gr_stream_offer(stream, rc, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t write_status(const graft_stream *s, graft_stream_status *status, graft_error *error)
{
    graft_stream_status ours;

    gr_stream_status(s, &ours);
    return status != NULL ? gr_struct_write(status, &ours, sizeof ours, "status", error) : GRAFT_OK;
}

static int32_t stream_step(graft_stream *stream, double budget, int32_t max_steps, graft_stream_status *status,
                           graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, stream, GR_HANDLE_STREAM, GRAFT_STREAM_ID " step", error);

    GR_TRY_DONE(rc);
    if (status != NULL) rc = gr_struct_check_out(status, "status", &call.error);
    GR_TRY_DONE(gr_stream_step(stream, rc, budget, max_steps, &call.error));
    rc = write_status(stream, status, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t stream_validate(graft_stream *stream, graft_stream_status *status, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, stream, GR_HANDLE_STREAM, GRAFT_STREAM_ID " validate", error);

    GR_TRY_DONE(rc);
    if (status != NULL) rc = gr_struct_check_out(status, "status", &call.error);
    GR_TRY_DONE(gr_stream_validate(stream, rc, &call.error));
    rc = write_status(stream, status, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t stream_status(const graft_stream *stream, graft_stream_status *status, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, stream, GR_HANDLE_STREAM, GRAFT_STREAM_ID " status", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_struct_check_out(status, "status", &call.error));
    rc = write_status(stream, status, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t stream_save(graft_stream *stream, const char *path, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, stream, GR_HANDLE_STREAM, GRAFT_STREAM_ID " save", error);

    GR_TRY_DONE(rc);
    if (path == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "path is null");
    rc = gr_stream_save(stream, rc, path, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t stream_load(graft_stream *stream, const char *path, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, stream, GR_HANDLE_STREAM, GRAFT_STREAM_ID " load", error);

    GR_TRY_DONE(rc);
    if (path == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "path is null");
    rc = gr_stream_load(stream, rc, path, &call.error);
done:
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(stream_destroy, graft_stream, STREAM, GRAFT_STREAM_ID " destroy", gr_stream_destroy)

const graft_stream_api gr_interface_stream = {
    .size = sizeof(graft_stream_api),
    .create = stream_create,
    .offer = stream_offer,
    .step = stream_step,
    .validate = stream_validate,
    .status = stream_status,
    .save = stream_save,
    .load = stream_load,
    .destroy = stream_destroy,
};
