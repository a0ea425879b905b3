/* "graft.data/1": reads data sets from files with io/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "io/data.h"
#include "sample/options.h"

/* Whether the file of dense features is mapped instead of read: batches read few rows at a time. */
static int maps_features(const graft_context *context)
{
    return gr_sample_options(context)->batch_size > 0;
}

static int32_t data_open(graft_context *context, const char *path, graft_data **data, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_DATA_ID " open", error);

    if (rc == GRAFT_OK) rc = gr_io_data_open_slice(context, NULL, path, maps_features(context), data, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*data, GR_HANDLE_DATA, context);
    return gr_call_end(&call, rc);
}

static int32_t data_open_slice(graft_context *context, const graft_transport *transport, const char *path,
                               graft_data **data, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_DATA_ID " open_slice", error);

    if (rc == GRAFT_OK) rc = gr_io_data_open_slice(context, transport, path, maps_features(context), data, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*data, GR_HANDLE_DATA, context);
    return gr_call_end(&call, rc);
}

static const graft_dataset *data_view(const graft_data *data)
{
    return gr_handle_is(data, GR_HANDLE_DATA) ? gr_io_data_view(data) : NULL;
}

static void destroy_data(void *data)
{
    gr_io_data_close(((struct gr_handle *)data)->context, data);
}

static void data_close(graft_data *data)
{
    gr_handle_destroy(data, GR_HANDLE_DATA, GRAFT_DATA_ID " close", destroy_data);
}

const graft_data_api gr_interface_data = {
    .size = sizeof(graft_data_api),
    .open = data_open,
    .view = data_view,
    .close = data_close,
    .open_slice = data_open_slice,
};
