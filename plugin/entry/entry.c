/* Negotiates versions and interfaces, and makes the calls of the context.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "base/context.h"
#include "base/options.h"
#include "base/table.h"
#include "dense/dense.h"
#include "kernel/kernel.h"
#include "kernel/simd/simd.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

static void api_close(graft_context *context)
{
    const struct gr_fp saved_fp = gr_fp_hold();
    const int          saved_errno = errno;

    gr_handle_close(context, "graft close");
    gr_fp_set(saved_fp);
    errno = saved_errno;
}

static const struct {
    const char *id;
    const void *table;
} interfaces[] = {
    { GRAFT_MXM_ID, &gr_interface_mxm },         { GRAFT_EDGE_ID, &gr_interface_edge },
    { GRAFT_DATA_ID, &gr_interface_data },       { GRAFT_TRAIN_ID, &gr_interface_train },
    { GRAFT_MODEL_ID, &gr_interface_model },     { GRAFT_TRANSPORT_ID, &gr_interface_transport },
    { GRAFT_CODEC_ID, &gr_interface_codec },     { GRAFT_GRAPH_ID, &gr_interface_graph },
    { GRAFT_HALO_ID, &gr_interface_halo },       { GRAFT_AGGREGATE_ID, &gr_interface_aggregate },
    { GRAFT_GROUP_ID, &gr_interface_group },     { GRAFT_REPORT_ID, &gr_interface_report },
    { GRAFT_SAMPLE_ID, &gr_interface_sample },   { GRAFT_MESH_ID, &gr_interface_mesh },
    { GRAFT_NETWORK_ID, &gr_interface_network }, { GRAFT_STREAM_ID, &gr_interface_stream },
};

static const void *api_get_interface(graft_context *context, const char *id)
{
    (void)context;
    for (size_t i = 0; id != NULL && i < sizeof interfaces / sizeof *interfaces; i++)
        if (strcmp(id, interfaces[i].id) == 0) return interfaces[i].table;
    return NULL;
}

static int32_t api_set(graft_context *context, const char *key, const char *value, graft_error *error)
{
    struct gr_call    call;
    struct gr_search *found = NULL;
    int32_t           rc = gr_call_begin(&call, context, "graft set", error);

    if (rc == GRAFT_OK && (key == NULL || value == NULL)) {
        rc = gr_fail(&call.error, GRAFT_ERR_ARG, "%s is null", key == NULL ? "key" : "value");
    }
    if (rc == GRAFT_OK && strcmp(key, "module.path") == 0) rc = gr_modules_search(context, value, &found, &call.error);
    if (rc == GRAFT_OK) rc = gr_option_set(context, key, value, &call.error);
    gr_modules_end(found, rc == GRAFT_OK);
    if (rc == GRAFT_OK)
        atomic_store_explicit(&context->callers.check, gr_base_options(context)->check, memory_order_relaxed);
    return gr_call_end(&call, rc);
}

static int32_t api_option_info(graft_context *context, int32_t index, graft_option *option, graft_error *error)
{
    struct gr_call call;
    graft_option   ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin(&call, context, "graft option_info", error);

    if (rc == GRAFT_OK) rc = gr_option_describe(context, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(option, &ours, sizeof ours, "option", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t api_load_module(graft_context *context, const char *path, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, "graft load_module", error);

    if (rc == GRAFT_OK) rc = gr_module_load(context, path, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t api_module_info(graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error)
{
    struct gr_call     call;
    graft_module_entry ours = { .size = sizeof ours };
    int32_t            rc = gr_call_begin(&call, context, "graft module_info", error);

    if (rc == GRAFT_OK) rc = gr_module_describe(context, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(entry, &ours, sizeof ours, "entry", &call.error);
    return gr_call_end(&call, rc);
}

/* Legal during any other call, because it only stores a flag. */
static void api_cancel(graft_context *context)
{
    if (context != NULL) atomic_store_explicit(&context->cancel, 1, memory_order_relaxed);
}

static const graft_api api_template = {
    .size = sizeof(graft_api),
    .abi = GRAFT_ABI_VERSION,
    .version = GRAFT_RELEASE,
    .close = api_close,
    .get_interface = api_get_interface,
    .set = api_set,
    .option_info = api_option_info,
    .load_module = api_load_module,
    .module_info = api_module_info,
    .cancel = api_cancel,
};

static int32_t negotiate(uint32_t abi_min, uint32_t abi_max, graft_error *error)
{
    if (abi_min > abi_max) {
        return gr_fail(error, GRAFT_ERR_ARG, "abi_min is %u, more than abi_max, which is %u", abi_min, abi_max);
    }
    if (abi_min > GRAFT_ABI_VERSION || abi_max < GRAFT_ABI_VERSION) {
        return gr_fail(error, GRAFT_ERR_VERSION,
                       "the host supports versions %u to %u of the contract, this library (release %s) only version %u",
                       abi_min, abi_max, GRAFT_RELEASE, GRAFT_ABI_VERSION);
    }
    return GRAFT_OK;
}

static int32_t open_context(const graft_host *host, graft_context **context, graft_error *error)
{
    int32_t           rc = GRAFT_OK;
    graft_context    *made = NULL;
    struct gr_search *found = NULL;

    GR_TRY_DONE(gr_context_create(host, &gr_all_options, &made, error));
    for (int32_t i = 0; gr_kernel_simd(i) != NULL; i++) GR_TRY_DONE(gr_module_register(made, gr_kernel_simd(i), error));
    GR_TRY_DONE(gr_module_register(made, &gr_kernel_reference, error));
    GR_TRY_DONE(gr_module_register(made, &gr_dense_reference, error));
    GR_TRY_DONE(gr_modules_search(made, gr_base_options(made)->module_path, &found, error));
    gr_modules_end(found, 1);
    made->binds_threads = gr_affinity_is_at_risk();
    GR_TRY_DONE(gr_table_create(&api_template, made, &made->api, error));
    *context = made;
    made = NULL;
done:
    gr_context_destroy(made);
    return rc;
}

int32_t graft_open(uint32_t abi_min, uint32_t abi_max, const graft_host *host, const graft_api **api,
                   graft_error *error)
{
    struct gr_call call = { .error = { .size = sizeof call.error },
                            .out = error,
                            .where = "graft_open",
                            .saved_errno = errno,
                            .saved_fp = gr_fp_hold() };
    graft_context *context = NULL;
    int32_t        rc = GRAFT_OK;

    gr_affinity_save(&call.affinity);
    if (api == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "api is null");
    if (rc == GRAFT_OK) rc = negotiate(abi_min, abi_max, &call.error);
    if (rc == GRAFT_OK) rc = open_context(host, &context, &call.error);
    if (rc == GRAFT_OK) *api = context->api;
    return gr_call_end(&call, rc);
}
