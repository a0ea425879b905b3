/* Collective calls of hosts.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/group.h"

#include "base/crc.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "comm/options.h"

#include <string.h>

int32_t gr_comm_group_join(graft_context *context, const graft_transport *transport, graft_group **group,
                           graft_error *error)
{
    struct gr_comm *comm = NULL;
    graft_group    *made = NULL;
    int32_t         rc = GRAFT_OK;

    GR_TRY_DONE(gr_comm_create(context, transport, gr_comm_options(context)->timeout, &comm, error));
    rc = GR_NEW(context, made, 1, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    *made = (graft_group){ .context = context, .comm = comm };
    comm = NULL;
    *group = made;
    made = NULL;
done:
    gr_free(context, made);
    gr_comm_destroy(comm);
    return rc;
}

void gr_comm_group_leave(graft_group *g)
{
    if (g == NULL) return;
    gr_comm_destroy(g->comm);
    gr_free(g->context, g);
}

/* The arguments of a collective call that must be the same on all ranks. */
struct group_call {
    const char *name;
    int32_t     dtype, root;
    uint64_t    count; /* number of elements, or a checksum of several numbers */
};

/* Check that all ranks make the same call, then agree on the status `rc` of each rank so far. So an error that one rank
 * detects is known to all before data are sent. */
static int32_t agree_on_call(const graft_group *g, const struct group_call *call, int32_t rc, graft_error *error)
{
    enum { ITEMS = 4 };
    static const char *const names[ITEMS] = { "the collective call", "dtype", "root",
                                              "the count, or the checksum of bytes," };
    const char *const        texts[ITEMS] = { call->name, NULL, NULL, NULL };
    const uint64_t           values[ITEMS] = { gr_crc(0, call->name, strlen(call->name)), (uint64_t)call->dtype,
                                               (uint64_t)(int64_t)call->root, call->count };
    graft_error              found = { .size = sizeof found };
    const int32_t            compared = gr_comm_compare_texts(g->comm, names, values, texts, ITEMS, &found);

    if (compared == GRAFT_OK) return gr_comm_agree_on(g->comm, rc, error);
    *error = found;
    return compared;
}

/* Allocate memory for messages, and copy `data`, unless it is NULL, to it. */
static int32_t copy_of(const graft_group *g, const void *data, int64_t bytes, void **copy, graft_error *error)
{
    *copy = gr_new(g->context, bytes, 1, "messages of the host", error);
    if (*copy == NULL) return GRAFT_ERR_NOMEM;
    if (data != NULL && bytes > 0) memcpy(*copy, data, (uint64_t)bytes);
    return GRAFT_OK;
}

static void copy_back(void *data, const void *copy, int64_t bytes)
{
    if (bytes > 0) memcpy(data, copy, (uint64_t)bytes);
}

int32_t gr_comm_group_agree(graft_group *g, int32_t rc, graft_error *error)
{
    return agree_on_call(g, &(struct group_call){ .name = "agree" }, rc, error);
}

int32_t gr_comm_group_sum(graft_group *g, int32_t rc, graft_dtype dtype, void *values, int64_t count,
                          graft_error *error)
{
    const struct group_call call = { .name = "sum", .dtype = dtype, .count = (uint64_t)count };
    const int64_t           bytes = rc == GRAFT_OK ? count * (int64_t)sizeof(double) : 0;
    const int               widens = dtype == GRAFT_F32; /* floats are summed as doubles */
    void                   *copy = NULL;

    if (rc == GRAFT_OK) rc = copy_of(g, widens ? NULL : values, bytes, &copy, error);
    if (rc == GRAFT_OK) rc = gr_comm_reserve(g->comm, (uint64_t)bytes, error);
    GR_TRY_DONE(agree_on_call(g, &call, rc, error));
    for (int64_t i = 0; i < count && widens; i++) ((double *)copy)[i] = (double)((const float *)values)[i];
    if (dtype == GRAFT_I64) rc = gr_comm_sum_i64(g->comm, copy, count, error);
    else rc = gr_comm_sum_f64(g->comm, copy, count, error);
    if (rc < 0) goto done;
    for (int64_t i = 0; i < count && widens; i++) ((float *)values)[i] = (float)((const double *)copy)[i];
    if (!widens) copy_back(values, copy, bytes);
done:
    gr_free(g->context, copy);
    return rc;
}

int32_t gr_comm_group_maximum(graft_group *g, int32_t rc, int64_t *values, int64_t count, graft_error *error)
{
    const struct group_call call = { .name = "maximum", .count = (uint64_t)count };
    const int64_t           bytes = rc == GRAFT_OK ? count * (int64_t)sizeof *values : 0;
    void                   *copy = NULL;

    if (rc == GRAFT_OK) rc = copy_of(g, values, bytes, &copy, error);
    if (rc == GRAFT_OK) rc = gr_comm_reserve(g->comm, (uint64_t)bytes, error);
    GR_TRY_DONE(agree_on_call(g, &call, rc, error));
    rc = gr_comm_max(g->comm, copy, count, error);
    if (rc == GRAFT_OK) copy_back(values, copy, bytes);
done:
    gr_free(g->context, copy);
    return rc;
}

int32_t gr_comm_group_gather(graft_group *g, int32_t rc, int32_t root, const void *mine, const int64_t *bytes,
                             void *all, graft_error *error)
{
    const int32_t     rank = g->comm->rank, n = g->comm->n_ranks;
    struct group_call call = { .name = "gather", .root = root };
    int64_t           total = 0;
    void             *out = NULL, *in = NULL;

    if (bytes != NULL) call.count = gr_crc(0, bytes, (uint64_t)n * sizeof *bytes);
    for (int32_t p = 0; rc == GRAFT_OK && p < n && (root < 0 || root == rank); p++) total += bytes[p];
    if (rc == GRAFT_OK) rc = copy_of(g, mine, bytes[rank], &out, error);
    if (rc == GRAFT_OK) rc = copy_of(g, NULL, total, &in, error);
    GR_TRY_DONE(agree_on_call(g, &call, rc, error));
    GR_TRY_DONE(gr_comm_gather(g->comm, root, out, bytes, in, error));
    copy_back(all, in, total);
done:
    gr_free(g->context, out);
    gr_free(g->context, in);
    return rc;
}

int32_t gr_comm_group_broadcast(graft_group *g, int32_t rc, int32_t root, void *data, int64_t bytes, graft_error *error)
{
    const struct group_call call = { .name = "broadcast", .root = root, .count = (uint64_t)bytes };
    void                   *copy = NULL;

    if (rc == GRAFT_OK) rc = copy_of(g, g->comm->rank == root ? data : NULL, bytes, &copy, error);
    GR_TRY_DONE(agree_on_call(g, &call, rc, error));
    GR_TRY_DONE(gr_comm_broadcast(g->comm, root, copy, (uint64_t)bytes, error));
    if (g->comm->rank != root) copy_back(data, copy, bytes);
done:
    gr_free(g->context, copy);
    return rc;
}
