/* "graft.group/1": checks what the host passes, and calls comm/group.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "comm/group.h"
#include "comm/options.h"

static int32_t group_create(graft_context *context, const graft_transport *transport, graft_group **group,
                            graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_GROUP_ID " create", error);

    if (rc == GRAFT_OK && group == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "group is null");
    if (rc == GRAFT_OK) rc = gr_comm_group_join(context, transport, group, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*group, GR_HANDLE_GROUP, context);
    return gr_call_end(&call, rc);
}

/* Begin a call on a group. Option halo.timeout may have changed since the last call. */
static int32_t group_call_begin(struct gr_call *call, graft_group *group, const char *where, graft_error *error)
{
    const int32_t rc = gr_call_begin_on(call, group, GR_HANDLE_GROUP, where, error);

    if (rc == GRAFT_OK) group->comm->timeout = gr_comm_options(group->context)->timeout;
    return rc;
}

static int32_t group_agree(graft_group *group, int32_t status, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = group_call_begin(&call, group, GRAFT_GROUP_ID " agree", error);

    GR_TRY_DONE(rc);
    if (status < 0) {
        const int has_text =
            error != NULL && error->size >= GRAFT_HAS(graft_error, message) && error->message[0] != '\0';

        gr_fail(&call.error, status, "%.447s", has_text ? error->message : "a failure without a sentence");
    }
    rc = gr_comm_group_agree(group, status < 0 ? status : GRAFT_OK, &call.error);
done:
    return gr_call_end(&call, rc);
}

/* Check that `values` can be an array of `count` elements. */
static int32_t check_elements(const void *values, int64_t count, int64_t element, graft_error *error)
{
    int64_t bytes;

    if (count < 0 || __builtin_mul_overflow(count, element, &bytes))
        return gr_fail(error, GRAFT_ERR_ARG, "count is %lld, expected 0 or more elements that fit into memory",
                       (long long)count);
    if (values == NULL && count > 0) return gr_fail(error, GRAFT_ERR_ARG, "values is null");
    return GRAFT_OK;
}

static int32_t check_sum(graft_dtype dtype, int64_t count, const void *values, graft_error *error)
{
    if (dtype == GRAFT_F32 || dtype == GRAFT_F64 || dtype == GRAFT_I64) return check_elements(values, count, 8, error);
    return gr_fail(error, GRAFT_ERR_ARG, "dtype is %d, expected GRAFT_F32 (1), GRAFT_F64 (2) or GRAFT_I64 (4)", dtype);
}

static int32_t group_sum(graft_group *group, graft_dtype dtype, int64_t count, void *values, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = group_call_begin(&call, group, GRAFT_GROUP_ID " sum", error);

    GR_TRY_DONE(rc);
    rc = gr_comm_group_sum(group, check_sum(dtype, count, values, &call.error), dtype, values, count, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t group_maximum(graft_group *group, int64_t count, int64_t *values, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = group_call_begin(&call, group, GRAFT_GROUP_ID " maximum", error);

    GR_TRY_DONE(rc);
    rc = gr_comm_group_maximum(group, check_elements(values, count, 8, &call.error), values, count, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t check_root(const graft_group *group, int32_t least, int32_t root, graft_error *error)
{
    if (root >= least && root < group->comm->n_ranks) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "root is %d, expected %d to %d", root, least, group->comm->n_ranks - 1);
}

static int32_t check_gather(const graft_group *group, int32_t root, const int64_t *bytes, const void *mine,
                            const void *all, graft_error *error)
{
    const struct gr_comm *comm = group->comm;
    int64_t               total = 0;

    GR_TRY(check_root(group, -1, root, error));
    if (bytes == NULL) return gr_fail(error, GRAFT_ERR_ARG, "bytes is null");
    for (int32_t p = 0; p < comm->n_ranks; p++)
        if (bytes[p] < 0 || __builtin_add_overflow(total, bytes[p], &total))
            return gr_fail(error, GRAFT_ERR_ARG, "bytes of rank %d are %lld, or too many together", p,
                           (long long)bytes[p]);
    if (mine == NULL && bytes[comm->rank] > 0) return gr_fail(error, GRAFT_ERR_ARG, "mine is null");
    if (all == NULL && total > 0 && (root < 0 || root == comm->rank))
        return gr_fail(error, GRAFT_ERR_ARG, "all is null");
    return GRAFT_OK;
}

static int32_t group_gather(graft_group *group, int32_t root, const int64_t *bytes, const void *mine, void *all,
                            graft_error *error)
{
    struct gr_call call;
    int32_t        rc = group_call_begin(&call, group, GRAFT_GROUP_ID " gather", error);

    GR_TRY_DONE(rc);
    rc = check_gather(group, root, bytes, mine, all, &call.error);
    rc = gr_comm_group_gather(group, rc, root, mine, bytes, all, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t group_broadcast(graft_group *group, int32_t root, int64_t bytes, void *data, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = group_call_begin(&call, group, GRAFT_GROUP_ID " broadcast", error);

    GR_TRY_DONE(rc);
    rc = check_root(group, 0, root, &call.error);
    if (rc == GRAFT_OK) rc = check_elements(data, bytes, 1, &call.error);
    rc = gr_comm_group_broadcast(group, rc, root, data, bytes, &call.error);
done:
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(group_destroy, graft_group, GROUP, GRAFT_GROUP_ID " destroy", gr_comm_group_leave)

const graft_group_api gr_interface_group = {
    .size = sizeof(graft_group_api),
    .create = group_create,
    .agree = group_agree,
    .sum = group_sum,
    .maximum = group_maximum,
    .gather = group_gather,
    .broadcast = group_broadcast,
    .destroy = group_destroy,
};
