/* Rows of the halo as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/halo.h"
#include "base/clock.h"
#include "base/memory.h"

#include <string.h>

static int32_t allocate(const graft_context *context, int32_t n_ranks, struct gr_halo_rows *r, int64_t **count,
                        graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(GR_NEW(context, r->send_start, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, r->out_at, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, r->in_at, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, r->flow, n_ranks, error));
    rc = GR_NEW(context, *count, n_ranks, error);
done:
    return rc;
}

/* All rows are raw. */
static int32_t share_flow(struct gr_halo_rows *r, struct gr_comm *comm, graft_error *error)
{
    const int64_t *in = r->halo->start, *out = r->send_start;
    struct gr_flow mine = {
        .in = r->halo->count, .raw = r->halo->count, .if_post = r->halo->count, .out = out[comm->n_ranks]
    };

    for (int32_t q = 0; q < comm->n_ranks; q++) {
        mine.messages_in += in[q] < in[q + 1];
        mine.messages_out += out[q] < out[q + 1];
    }
    return gr_comm_allgather(comm, &mine, sizeof mine, r->flow, error);
}

int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          int64_t widest, struct gr_halo_rows *r, graft_error *error)
{
    const int32_t n_ranks = comm->n_ranks;
    int64_t      *count = NULL, sent;
    int32_t       rc = allocate(context, n_ranks, r, &count, error);

    r->halo = halo;
    r->widest = widest;
    GR_TRY(gr_comm_agree(comm, rc, error));
    for (int32_t q = 0; q < n_ranks; q++) count[q] = halo->start[q + 1] - halo->start[q];
    GR_TRY(gr_comm_alltoall(comm, count, sizeof *count, r->send_start + 1, error));
    for (int32_t q = 0; q < n_ranks; q++) r->send_start[q + 1] += r->send_start[q];
    sent = r->send_start[n_ranks];
    rc = GR_NEW(context, r->place, sent, error);
    if (rc == GRAFT_OK && (r->buffer = gr_new(context, sent, (uint64_t)widest * 4, "rows of messages", error)) == NULL)
        rc = GRAFT_ERR_NOMEM;
    GR_TRY(gr_comm_agree(comm, rc, error));
    for (int32_t q = 0; q <= n_ranks; q++) {
        r->out_at[q] = 4 * halo->start[q];
        r->in_at[q] = 4 * r->send_start[q];
    }
    GR_TRY(gr_comm_alltoallv(comm, halo->place, r->out_at, r->place, r->in_at, error));
    rc = share_flow(r, comm, error);
done:
    gr_free(context, count);
    return rc;
}

void gr_halo_rows_fini(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *r)
{
    gr_free(context, r->send_start);
    gr_free(context, r->out_at);
    gr_free(context, r->in_at);
    gr_free(context, r->flow);
    if (r->buffer != NULL) gr_comm_free(comm, r->buffer);
    if (r->place != NULL) gr_comm_free(comm, r->place);
    *r = (struct gr_halo_rows){ 0 };
}

/* Where the rows of each rank begin in the buffer and in the halo, in bytes. */
static void lay_out(const struct gr_halo_rows *r, int32_t n_ranks, int64_t bytes, int64_t *sent_at, int64_t *halo_at)
{
    for (int32_t q = 0; q <= n_ranks; q++) {
        sent_at[q] = r->send_start[q] * bytes;
        halo_at[q] = r->halo->start[q] * bytes;
    }
}

static int32_t exchange(struct gr_halo_rows *r, struct gr_comm *comm, const void *out, void *in, graft_error *error)
{
    int32_t rc;

    r->sent = gr_seconds();
    rc = gr_comm_alltoallv(comm, out, r->out_at, in, r->in_at, error);
    r->came = gr_seconds();
    r->seconds += r->came - r->sent;
    return rc;
}

int32_t gr_halo_rows_ask(struct gr_halo_rows *r, struct gr_comm *comm, const void *owned, void *halo, int64_t bytes,
                         graft_error *error)
{
    char *const out = (char *)r->buffer;

    for (int64_t i = 0; i < r->send_start[comm->n_ranks]; i++)
        memcpy(out + i * bytes, (const char *)owned + r->place[i] * bytes, (uint64_t)bytes);
    lay_out(r, comm->n_ranks, bytes, r->out_at, r->in_at);
    return exchange(r, comm, out, halo, error);
}

int32_t gr_halo_rows_tell(struct gr_halo_rows *r, struct gr_comm *comm, const void *halo, void *told, int64_t bytes,
                          graft_error *error)
{
    lay_out(r, comm->n_ranks, bytes, r->in_at, r->out_at);
    return exchange(r, comm, halo, told, error);
}

int32_t gr_halo_rows_get(struct gr_halo_rows *r, struct gr_comm *comm, float *x, int64_t first, int64_t width,
                         graft_error *error)
{
    return gr_halo_rows_ask(r, comm, x, x + first * width, width * (int64_t)sizeof *x, error);
}

int32_t gr_halo_rows_give(struct gr_halo_rows *r, struct gr_comm *comm, float *x, int64_t first, int64_t width,
                          graft_error *error)
{
    const int64_t sent = r->send_start[comm->n_ranks];
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_halo_rows_tell(r, comm, x + first * width, r->buffer, width * (int64_t)sizeof *x, error));
    for (int64_t i = 0; i < sent; i++) {
        float *const to = x + r->place[i] * width, *const from = r->buffer + i * width;

        for (int64_t j = 0; j < width; j++) to[j] += from[j];
    }
done:
    return rc;
}

int64_t gr_halo_rows_bytes(const struct gr_halo_rows *r, int32_t n_ranks)
{
    if (r->send_start == NULL) return 0;
    return 24 * ((int64_t)n_ranks + 1) + (int64_t)sizeof *r->flow * n_ranks +
           r->send_start[n_ranks] * 4 * (1 + r->widest);
}
