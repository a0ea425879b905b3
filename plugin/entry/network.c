/* "graft.draft.network": reads the host's structs, and calls network/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "comm/collective.h"
#include "network/network.h"

#include <stdio.h>

static int32_t network_create(graft_mesh *mesh, const graft_network_args *args, graft_network **network,
                              graft_error *error)
{
    struct gr_call     call;
    graft_network_args ours = { .size = 0 };
    int32_t            rc = gr_call_begin_on(&call, mesh, GR_HANDLE_MESH, GRAFT_NETWORK_ID " create", error);

    GR_TRY_DONE(rc);
    rc = gr_struct_read(&ours, sizeof ours, args, "args", &call.error);
    if (rc == GRAFT_OK && network == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "network is null");
    rc = gr_network_create(mesh, rc, &ours, network, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*network, GR_HANDLE_NETWORK, mesh->context);
done:
    return gr_call_end(&call, rc);
}

static int32_t network_info(const graft_network *network, graft_network_info *info, graft_error *error)
{
    struct gr_call     call;
    graft_network_info ours;
    int32_t            rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " info", error);

    GR_TRY_DONE(rc);
    gr_network_info(network, &ours);
    rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t read_field(const graft_network *n, const graft_field *theirs, const char *name, int64_t columns,
                          graft_field *ours, graft_error *error)
{
    return gr_mesh_field_read(theirs, name, n->mesh->n_rows, columns, ours, error);
}

static int32_t network_begin(graft_network *network, const graft_field *input, graft_error *error)
{
    struct gr_call call;
    graft_field    ours;
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " begin", error);

    GR_TRY_DONE(rc);
    if (network->use.begun) gr_mgn_count_begin(network->mgn);
    GR_TRY_DONE(gr_network_check_idle(network, &call.error));
    rc = read_field(network, input, "input", network->columns.in, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_network_check_input(network, &ours, &call.error);
    rc = gr_network_begin(network, rc, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

/* Copy the host's struct *field, unless it is NULL, and point *field to the copy. */
static int32_t read_result(const graft_network *n, const graft_field **field, const char *name, graft_field *ours,
                           graft_error *error)
{
    const graft_field *theirs = *field;

    *field = theirs != NULL ? ours : NULL;
    return theirs != NULL ? read_field(n, theirs, name, n->columns.out, ours, error) : GRAFT_OK;
}

static int32_t network_end(graft_network *network, const graft_field *output, graft_error *error)
{
    struct gr_call call;
    graft_field    ours;
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " end", error);

    GR_TRY_DONE(rc);
    if (!network->use.begun) {
        gr_mgn_count_end(network->mgn);
        GR_TRY_DONE(
            gr_fail(&call.error, GRAFT_ERR_STATE, "no inference of this network has begun; call begin() first"));
    }
    rc = read_result(network, &output, "output", &ours, &call.error);
    rc = gr_network_end(network, rc, output, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t read_rollout(const graft_network *n, const graft_rollout *args, graft_rollout *ours,
                            graft_field fields[2], graft_error *error)
{
    GR_TRY(gr_struct_read(ours, sizeof *ours, args, "args", error));
    GR_TRY(gr_network_check_idle(n, error));
    if (ours->steps < 1) return gr_fail(error, GRAFT_ERR_ARG, "args.steps is %d, expected 1 or more", ours->steps);
    if (n->columns.out > n->columns.in)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "the network has %lld outputs and %lld inputs: results cannot be inputs of the next step",
                       (long long)n->columns.out, (long long)n->columns.in);
    GR_TRY(read_field(n, ours->initial, "args.initial", n->columns.in, &fields[0], error));
    GR_TRY(read_field(n, ours->state, "args.state", n->columns.in, &fields[1], error));
    ours->initial = &fields[0];
    ours->state = &fields[1];
    return gr_network_check_input(n, ours->initial, error);
}

static int32_t network_rollout(graft_network *network, const graft_rollout *args, graft_error *error)
{
    struct gr_call call;
    graft_rollout  ours = { .size = 0 };
    graft_field    fields[2];
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " rollout", error);

    GR_TRY_DONE(rc);
    rc = read_rollout(network, args, &ours, fields, &call.error);
    rc = gr_network_rollout(network, rc, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t check_members(graft_network *const *networks, int32_t count, graft_error *error)
{
    for (int32_t k = 0; k < count; k++) {
        const graft_network *n = networks[k], *first = networks[0];
        char                 name[24];

        snprintf(name, sizeof name, "networks[%d]", k);
        GR_TRY(gr_handle_check(first->context, n, GR_HANDLE_NETWORK, name, error));
        GR_TRY(gr_network_check_idle(n, error));
        if (n->mesh != first->mesh || n->columns.in != first->columns.in || n->columns.out != first->columns.out ||
            n->predicts != first->predicts)
            return gr_fail(error, GRAFT_ERR_ARG,
                           "networks[%d] has another mesh than networks[0], or other inputs and outputs", k);
    }
    return GRAFT_OK;
}

static int32_t network_ensemble(graft_network *const *networks, int32_t count, const graft_field *input,
                                const graft_field *mean, const graft_field *deviation, graft_error *error)
{
    struct gr_call       call;
    graft_field          ours[3];
    graft_network *const first = networks != NULL && count > 0 ? networks[0] : NULL;
    int32_t              rc = gr_call_begin_on(&call, first, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " ensemble", error);

    if (count < 1) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "count is %d, expected 1 or more", count);
    GR_TRY_DONE(rc);
    rc = check_members(networks, count, &call.error);
    if (rc == GRAFT_OK) rc = read_field(first, input, "input", first->columns.in, &ours[0], &call.error);
    for (int32_t k = 0; rc == GRAFT_OK && k < count; k++)
        rc = gr_network_check_input(networks[k], &ours[0], &call.error);
    if (rc == GRAFT_OK) rc = read_result(first, &mean, "mean", &ours[1], &call.error);
    if (rc == GRAFT_OK) rc = read_result(first, &deviation, "deviation", &ours[2], &call.error);
    rc = gr_network_ensemble(networks, count, rc, &ours[0], mean, deviation, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t check_pairs(int32_t count, graft_error *error)
{
    if (count >= 1 && count <= 1024) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "count is %d, expected 1 to 1024", count);
}

/* Read a pair of the host and its two fields. */
static int32_t read_pair(const graft_network *n, const graft_pair *pair, graft_field fields[2], graft_error *error)
{
    graft_pair ours;

    GR_TRY(gr_struct_read(&ours, sizeof ours, pair, "pair", error));
    GR_TRY(read_field(n, ours.input, "pair.input", n->columns.in, &fields[0], error));
    return read_field(n, ours.target, "pair.target", n->columns.out, &fields[1], error);
}

/* Find element k of an array of the host. Elements have the size that the first one states. */
static const graft_pair *pair_at(const graft_pair *pairs, int32_t k)
{
    return (const graft_pair *)(const void *)((const char *)pairs + (uint64_t)k * pairs->size);
}

/* Copy the pairs of the host to the memory for training, after all have been checked. */
static int32_t stage_pairs(graft_network *n, const graft_pair *pairs, int32_t count, struct gr_network_pair *staged,
                           graft_error *error)
{
    graft_field fields[2];

    GR_TRY(gr_network_check_idle(n, error));
    for (int32_t k = 0; k < count; k++) GR_TRY(read_pair(n, pairs != NULL ? pair_at(pairs, k) : NULL, fields, error));
    GR_TRY(gr_network_reserve_training(n, count, error));
    for (int32_t k = 0; k < count; k++) {
        GR_TRY(read_pair(n, pair_at(pairs, k), fields, error));
        gr_network_stage(n, &fields[0], &fields[1], k, &staged[k]);
    }
    return GRAFT_OK;
}

static int32_t network_gradient(graft_network *network, const graft_pair *pair, double *loss, graft_error *error)
{
    struct gr_call         call;
    struct gr_network_pair staged;
    double                 found = 0;
    int32_t rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " gradient", error);

    GR_TRY_DONE(rc);
    if (loss == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "loss is null");
    if (rc == GRAFT_OK) rc = stage_pairs(network, pair, 1, &staged, &call.error);
    GR_TRY_DONE(gr_network_gradient(network, rc, &staged, &found, &call.error));
    *loss = found;
done:
    return gr_call_end(&call, rc);
}

static int32_t network_train(graft_network *network, const graft_pair *pairs, int32_t count, graft_network_step *step,
                             graft_error *error)
{
    struct gr_call         call;
    struct gr_network_pair staged[1024];
    graft_network_step     ours;
    int32_t                rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " train", error);

    GR_TRY_DONE(rc);
    rc = check_pairs(count, &call.error);
    if (rc == GRAFT_OK && step != NULL) rc = gr_struct_check_out(step, "step", &call.error);
    if (rc == GRAFT_OK) rc = stage_pairs(network, pairs, count, staged, &call.error);
    if (rc == GRAFT_OK) rc = gr_network_reserve_moments(network, &call.error);
    GR_TRY_DONE(gr_network_train(network, rc, staged, count, &ours, &call.error));
    if (step != NULL) rc = gr_struct_write(step, &ours, sizeof ours, "step", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t network_state_item(graft_network *network, int32_t index, graft_state_item *item, graft_error *error)
{
    struct gr_call   call;
    graft_state_item ours = { .size = sizeof ours };
    int32_t          rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " state_item", error);

    if (rc == GRAFT_OK) rc = gr_network_state_item(network, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t network_state_set(graft_network *network, const graft_state_item *item, graft_error *error)
{
    struct gr_call   call;
    graft_state_item ours;
    int32_t          rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " state_set", error);

    if (rc == GRAFT_OK) rc = gr_struct_read(&ours, sizeof ours, item, "item", &call.error);
    if (rc == GRAFT_OK) rc = gr_network_check_idle(network, &call.error);
    if (rc == GRAFT_OK) rc = gr_network_state_set(network, &ours, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t network_save(graft_network *network, const char *path, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " save", error);

    GR_TRY_DONE(rc);
    if (path == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "path is null");
    rc = gr_network_save(network, rc, path, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t network_load(graft_network *network, const char *path, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " load", error);

    GR_TRY_DONE(rc);
    if (path == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "path is null");
    if (rc == GRAFT_OK) rc = gr_network_check_idle(network, &call.error);
    rc = gr_network_load(network, rc, path, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t network_explain(const graft_network *network, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) gr_network_explain(network, text, capacity);
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(network_destroy, graft_network, NETWORK, GRAFT_NETWORK_ID " destroy", gr_network_destroy)

static int32_t network_times(const graft_network *network, int32_t layer, int32_t pass, graft_network_times *times,
                             graft_error *error)
{
    struct gr_call      call;
    graft_network_times ours;
    int32_t             rc = gr_call_begin_on(&call, network, GR_HANDLE_NETWORK, GRAFT_NETWORK_ID " times", error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(gr_network_times(network, layer, pass, &ours, &call.error));
    rc = gr_struct_write(times, &ours, sizeof ours, "times", &call.error);
done:
    return gr_call_end(&call, rc);
}

const graft_network_api gr_interface_network = {
    .size = sizeof(graft_network_api),
    .create = network_create,
    .info = network_info,
    .begin = network_begin,
    .end = network_end,
    .rollout = network_rollout,
    .ensemble = network_ensemble,
    .gradient = network_gradient,
    .train = network_train,
    .state_item = network_state_item,
    .state_set = network_state_set,
    .save = network_save,
    .load = network_load,
    .explain = network_explain,
    .destroy = network_destroy,
    .times = network_times,
};
