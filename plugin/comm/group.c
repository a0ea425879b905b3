/* Collective calls for hosts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/group.h"

#include "base/dtype.h"
#include "base/memory.h"
#include "comm/collective.h"

#include <string.h>

int32_t gr_group_join(graft_context *context, const graft_transport *transport, graft_group **group, graft_error *error)
{
    struct gr_comm *comm = NULL;
    graft_group    *made = NULL;
    int32_t         rc = GRAFT_OK;

    GR_TRY(gr_comm_create(context, transport, context->options.halo.timeout, &comm, error));
    rc = GR_NEW(context, made, 1, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    *made = (graft_group){ .context = context, .comm = comm };
    comm = NULL;
    *group = made;
    made = NULL;
done:
    gr_free(context, made);
    gr_comm_destroy(comm);
    return rc;
}

void gr_group_leave(graft_group *g)
{
    if (g == NULL) return;
    gr_comm_destroy(g->comm);
    gr_free(g->context, g);
}

/* A copy of what a call sends, or memory for what it receives. The others may be waiting for this rank already. */
static int32_t copy_of(const graft_group *g, const void *data, int64_t bytes, void **copy, graft_error *error)
{
    *copy = gr_new(g->context, bytes, 1, "messages of the host", error);
    if (*copy == NULL) return gr_comm_fail(g->comm, error);
    if (data != NULL && bytes > 0) memcpy(*copy, data, (uint64_t)bytes);
    return GRAFT_OK;
}

static void copy_back(void *data, const void *copy, int64_t bytes)
{
    if (bytes > 0) memcpy(data, copy, (uint64_t)bytes);
}

int32_t gr_group_sum(graft_group *g, graft_dtype dtype, void *values, int64_t count, graft_error *error)
{
    const int64_t bytes = count * gr_dtype_bytes(dtype);
    void         *copy = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(copy_of(g, values, bytes, &copy, error));
    if (dtype == GRAFT_F32) rc = gr_comm_sum_f32(g->comm, copy, count, error);
    else if (dtype == GRAFT_F64) rc = gr_comm_sum_f64(g->comm, copy, count, error);
    else rc = gr_comm_sum_i64(g->comm, copy, count, error);
    if (rc == GRAFT_OK) copy_back(values, copy, bytes);
done:
    gr_free(g->context, copy);
    return rc;
}

int32_t gr_group_maximum(graft_group *g, int64_t *values, int64_t count, graft_error *error)
{
    const int64_t bytes = count * (int64_t)sizeof *values;
    void         *copy = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(copy_of(g, values, bytes, &copy, error));
    rc = gr_comm_max(g->comm, copy, count, error);
    if (rc == GRAFT_OK) copy_back(values, copy, bytes);
done:
    gr_free(g->context, copy);
    return rc;
}

int32_t gr_group_gather(graft_group *g, int32_t root, const void *mine, const int64_t *bytes, void *all,
                        graft_error *error)
{
    const int32_t rank = g->comm->rank;
    int64_t       total = 0;
    void         *out = NULL, *in = NULL;
    int32_t       rc = GRAFT_OK;

    for (int32_t p = 0; p < g->comm->n_ranks; p++) total += bytes[p];
    if (root >= 0 && root != rank) total = 0;
    GR_TRY(copy_of(g, mine, bytes[rank], &out, error));
    GR_TRY(copy_of(g, NULL, total, &in, error));
    GR_TRY(gr_comm_gather(g->comm, root, out, bytes, in, error));
    copy_back(all, in, total);
done:
    gr_free(g->context, out);
    gr_free(g->context, in);
    return rc;
}

int32_t gr_group_broadcast(graft_group *g, int32_t root, void *data, int64_t bytes, graft_error *error)
{
    void   *copy = NULL;
    int32_t rc = GRAFT_OK;

    GR_TRY(copy_of(g, g->comm->rank == root ? data : NULL, bytes, &copy, error));
    GR_TRY(gr_comm_broadcast(g->comm, root, copy, (uint64_t)bytes, error));
    if (g->comm->rank != root) copy_back(data, copy, bytes);
done:
    gr_free(g->context, copy);
    return rc;
}
