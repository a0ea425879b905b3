/* Rows of the halo as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/halo.h"
#include "base/memory.h"
#include "edge/edge.h"

#include <string.h>

static int32_t allocate(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *r, int64_t **count,
                        graft_error *error)
{
    const int64_t n_ranks = comm->n_ranks;
    int32_t       rc = gr_wire_init(context, comm, &r->wire, error);

    GR_TRY(rc);
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

/* Exchange rows of so many bytes, of which those in the order of send_start go or come. */
static int32_t exchange_plain(struct gr_halo_rows *r, const int64_t *out_start, const void *out,
                              const int64_t *in_start, void *in, int64_t bytes, graft_error *error)
{
    struct gr_comm *comm = r->wire.exchange.comm;

    for (int32_t q = 0; q <= comm->n_ranks; q++) {
        r->out_at[q] = out_start[q] * bytes;
        r->in_at[q] = in_start[q] * bytes;
    }
    return gr_comm_alltoallv(comm, out, r->out_at, in, r->in_at, error);
}

int32_t gr_halo_rows_tell(struct gr_halo_rows *r, const void *halo, void *told, int64_t bytes, graft_error *error)
{
    return exchange_plain(r, r->halo->start, halo, r->send_start, told, bytes, error);
}

int32_t gr_halo_rows_ask(struct gr_halo_rows *r, const void *owned, void *halo, int64_t bytes, graft_error *error)
{
    char *const out = (char *)r->buffer;

    for (int64_t i = 0; i < r->send_start[r->wire.exchange.comm->n_ranks]; i++)
        memcpy(out + i * bytes, (const char *)owned + r->place[i] * bytes, (uint64_t)bytes);
    return exchange_plain(r, r->send_start, out, r->halo->start, halo, bytes, error);
}

int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          int64_t widest, struct gr_halo_rows *r, graft_error *error)
{
    const int32_t n_ranks = comm->n_ranks;
    int64_t      *count = NULL, sent;
    int32_t       rc = allocate(context, comm, r, &count, error);

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
    if (rc == GRAFT_OK)
        rc = gr_wire_reserve(&r->wire, (const int64_t[]){ sent, halo->count }, widest, GRAFT_F32, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(gr_halo_rows_tell(r, halo->place, r->place, sizeof *r->place, error));
    rc = share_flow(r, comm, error);
done:
    gr_comm_free(comm, count);
    return rc;
}

void gr_halo_rows_fini(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *r)
{
    gr_wire_fini(&r->wire);
    gr_comm_free(comm, r->send_start);
    gr_free(context, r->out_at);
    gr_free(context, r->in_at);
    gr_comm_free(comm, r->flow);
    gr_comm_free(comm, r->buffer);
    gr_comm_free(comm, r->place);
    *r = (struct gr_halo_rows){ 0 };
}

static graft_dense dense(float *data, int64_t rows, int64_t width)
{
    return (graft_dense){
        .size = sizeof(graft_dense), .dtype = GRAFT_F32, .n_rows = rows, .n_cols = width, .stride = width, .data = data
    };
}

/* The owned rows, the rows in the buffer, and which of the former each of the latter is. */
struct packing {
    graft_dense owned, packed;
    graft_index index;
};

static struct packing packing_of(const struct gr_halo_rows *r)
{
    const struct gr_halo_pass *pass = &r->pass;
    const int64_t              sent = r->send_start[r->wire.exchange.comm->n_ranks];

    return (struct packing){ dense(pass->x, pass->n_owned, pass->width),
                             dense(r->buffer, sent, pass->width),
                             { sizeof(graft_index), GRAFT_I32, sent, r->place } };
}

int32_t gr_halo_rows_begin(struct gr_halo_rows *r, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error)
{
    const struct gr_wire_rows owned = { r->send_start, r->buffer };
    const struct gr_wire_rows halo = { r->halo->start, pass->x + pass->n_owned * pass->width };
    const int                 forward = pass->direction == GR_FORWARD;
    const struct gr_wire_pass on_wire = { .layer = pass->layer,
                                          .direction = (int32_t)pass->direction,
                                          .exact = pass->exact,
                                          .epoch = pass->epoch,
                                          .width = pass->width,
                                          .dtype = GRAFT_F32 };
    int32_t                   rc = GRAFT_OK;

    r->pass = *pass;
    GR_TRY(gr_wire_receive(&r->wire, &on_wire, forward ? halo : owned, error));
    if (forward) {
        const struct packing p = packing_of(r);

        gr_edge_gather_rows(&p.owned, &p.index, &p.packed, team.threads);
    }
    rc = gr_wire_send(&r->wire, forward ? owned : halo, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(r->wire.exchange.comm, error);
    GR_TRY(rc);
    r->begun = 1;
done:
    return rc;
}

int32_t gr_halo_rows_end(struct gr_halo_rows *r, struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (!r->begun) return GRAFT_OK;
    r->begun = 0;
    GR_TRY(gr_wire_end(&r->wire, team, error));
    if (r->pass.direction == GR_BACKWARD) {
        const struct packing p = packing_of(r);

        gr_edge_index_add(&p.packed, &p.index, &p.owned, team.threads);
    }
done:
    return rc;
}

int64_t gr_halo_rows_bytes(const struct gr_halo_rows *r, int32_t n_ranks)
{
    if (r->send_start == NULL) return 0;
    return gr_wire_bytes(&r->wire) + 24 * ((int64_t)n_ranks + 1) + (int64_t)sizeof *r->flow * n_ranks +
           r->send_start[n_ranks] * 4 * (1 + r->widest);
}
