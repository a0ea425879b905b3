/* Rows of the halo as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/halo.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "edge/edge.h"

/* Rows that a thread gathers before it encodes them. */
enum { CHUNK = 64 };

/* All rows are raw. */
static int32_t share_flow(struct gr_halo_rows *r, struct gr_comm *comm, graft_error *error)
{
    const int64_t *in = r->halo->start, *out = r->links.send_start;
    struct gr_flow mine = {
        .in = r->halo->count, .raw = r->halo->count, .if_post = r->halo->count, .out = out[comm->n_ranks]
    };

    for (int32_t q = 0; q < comm->n_ranks; q++) {
        mine.messages_in += in[q] < in[q + 1];
        mine.messages_out += out[q] < out[q + 1];
    }
    return gr_comm_allgather(comm, &mine, sizeof mine, r->flow, error);
}

/* What follows from who needs what. */
static int32_t complete(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *r, graft_error *error)
{
    const uint64_t row_bytes = (uint64_t)r->widest * sizeof *r->buffer;
    const int64_t  rows[] = { r->links.send_start[comm->n_ranks], r->halo->count };
    int32_t        rc = gr_wire_init(context, comm, &r->wire, error);

    GR_TRY(rc);
    GR_TRY(GR_NEW(context, r->flow, comm->n_ranks, error));
    r->buffer = gr_new(context, rows[0], row_bytes, "rows of messages", error);
    rc = r->buffer != NULL ? gr_wire_reserve(&r->wire, rows, r->widest, GRAFT_F32, error) : GRAFT_ERR_NOMEM;
done:
    return rc;
}

int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          int64_t widest, struct gr_halo_rows *r, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    r->halo = halo;
    r->widest = widest;
    GR_TRY(gr_links_init(context, comm, halo, &r->links, error));
    GR_TRY(gr_comm_agree(comm, complete(context, comm, r, error), error));
    rc = share_flow(r, comm, error);
done:
    return rc;
}

void gr_halo_rows_fini(struct gr_comm *comm, struct gr_halo_rows *r)
{
    gr_wire_fini(&r->wire);
    gr_links_fini(comm, &r->links);
    gr_free(comm->context, r->flow);
    gr_free(comm->context, r->buffer);
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
    const int64_t              sent = r->links.send_start[r->wire.exchange.comm->n_ranks];

    return (struct packing){ dense(pass->x, pass->n_owned, pass->width),
                             dense(r->buffer, sent, pass->width),
                             { sizeof(graft_index), GRAFT_I32, sent, r->links.place } };
}

/* Rows that go: copied from where they are, unless they lie side by side, and encoded while they are in the caches. */
static void make_rows(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    struct gr_halo_rows  *r = arg;
    const gr_wire_encoder encode = gr_wire_encoder_of(&r->wire);
    struct packing        p = packing_of(r);

    (void)chunk;
    if (r->pass.direction == GR_FORWARD) {
        p.packed.data = r->buffer + begin * r->pass.width;
        p.packed.n_rows = p.index.count = end - begin;
        p.index.data = r->links.place + begin;
        gr_edge_gather_rows(&p.owned, &p.index, &p.packed, 1);
    }
    if (encode != NULL) encode(&r->wire, omp_get_thread_num(), begin, end);
}

int32_t gr_halo_rows_begin(struct gr_halo_rows *r, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error)
{
    const struct gr_wire_rows owned = { r->links.send_start, r->buffer };
    const struct gr_wire_rows halo = { r->halo->start, pass->x + pass->n_owned * pass->width };
    const int                 forward = pass->direction == GR_FORWARD;
    const int64_t             sent = forward ? r->links.send_start[r->wire.exchange.comm->n_ranks] : r->halo->count;
    const struct gr_wire_pass on_wire = { .layer = pass->layer,
                                          .direction = (int32_t)pass->direction,
                                          .exact = pass->exact,
                                          .epoch = pass->epoch,
                                          .width = pass->width,
                                          .dtype = GRAFT_F32 };
    int32_t                   rc = GRAFT_OK;

    r->pass = *pass;
    GR_TRY(gr_wire_receive(&r->wire, &on_wire, forward ? halo : owned, error));
    gr_wire_out(&r->wire, forward ? owned : halo);
    team.poll = NULL; /* what goes is not posted yet */
    if (forward || gr_wire_encoder_of(&r->wire) != NULL)
        gr_parallel_chunks(gr_wire_team(&r->wire, team), sent * pass->width, sent, CHUNK, make_rows, r);
    rc = gr_wire_send(&r->wire, team, error);
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
    if (r->buffer == NULL) return 0;
    return gr_wire_bytes(&r->wire) + gr_links_bytes(&r->links) + (int64_t)sizeof *r->flow * n_ranks +
           gr_bytes(r->buffer);
}
