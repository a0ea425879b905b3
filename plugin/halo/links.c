/* Send lists: the owned vertices in the halo of each rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/links.h"
#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

static int32_t allocate_links(const graft_context *context, int32_t n_ranks, struct gr_links *l, int64_t **count,
                              graft_error *error)
{
    GR_TRY(GR_NEW(context, l->send_start, n_ranks + 1, error));
    return GR_NEW(context, *count, n_ranks, error);
}

int32_t gr_halo_links_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                           struct gr_links *l, graft_error *error)
{
    const int32_t n_ranks = comm->n_ranks;
    int64_t      *count = NULL;
    int32_t       rc = allocate_links(context, n_ranks, l, &count, error);

    l->halo = halo;
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    for (int32_t q = 0; q < n_ranks; q++) count[q] = halo->start[q + 1] - halo->start[q];
    GR_TRY_DONE(gr_comm_alltoall(comm, count, sizeof *count, l->send_start + 1, error));
    for (int32_t q = 0; q < n_ranks; q++) l->send_start[q + 1] += l->send_start[q];
    GR_TRY_DONE(gr_comm_agree(comm, GR_NEW(context, l->place, l->send_start[n_ranks], error), error));
    rc = gr_halo_links_tell(l, comm, halo->place, l->place, sizeof *l->place, error);
    GR_ASSERT(rc < 0 || gr_halo_links_are_valid(l, n_ranks, comm->rank));
done:
    gr_free(comm->context, count);
    return rc;
}

int gr_halo_links_are_valid(const struct gr_links *l, int32_t n_ranks, int32_t rank)
{
    /* Send lists have the same form as a halo, which also lists vertices by rank. */
    const struct gr_halo sent = { l->send_start[n_ranks], l->send_start, l->place };

    return gr_csr_halo_is_valid(&sent, n_ranks, rank);
}

void gr_halo_links_fini(const struct gr_comm *comm, struct gr_links *l)
{
    gr_free(comm->context, l->send_start);
    gr_free(comm->context, l->place);
    *l = (struct gr_links){ 0 };
}

int32_t gr_halo_links_ask(struct gr_links *l, struct gr_comm *comm, const void *owned, void *packed, void *halo,
                          int64_t bytes, graft_error *error)
{
    for (int64_t i = 0; i < l->send_start[comm->n_ranks]; i++)
        memcpy((char *)packed + i * bytes, (const char *)owned + l->place[i] * bytes, (uint64_t)bytes);
    return gr_comm_alltoallv(comm, packed, l->send_start, halo, l->halo->start, bytes, error);
}

int32_t gr_halo_links_tell(struct gr_links *l, struct gr_comm *comm, const void *halo, void *told, int64_t bytes,
                           graft_error *error)
{
    return gr_comm_alltoallv(comm, halo, l->halo->start, told, l->send_start, bytes, error);
}

int64_t gr_halo_links_bytes(const struct gr_links *l)
{
    return gr_memory_bytes(l->send_start) + gr_memory_bytes(l->place);
}
