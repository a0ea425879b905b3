/* Rows of the halo as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/halo.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "edge/edge.h"

#include <string.h>

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
    int32_t        rc = gr_wire_init(context, comm, 0, &r->wire, error);

    GR_TRY(rc);
    GR_TRY(GR_NEW(context, r->flow, comm->n_ranks, error));
    r->buffer = gr_new(context, rows[0], row_bytes, "rows of messages", error);
    rc = r->buffer != NULL ? gr_wire_reserve(&r->wire, rows, r->widest, GRAFT_F32, error) : GRAFT_ERR_NOMEM;
done:
    return rc;
}

static int32_t init_lanes(const graft_context *context, struct gr_comm *comm, const int64_t *width, int32_t layers,
                          struct gr_halo_rows *r, graft_error *error)
{
    const int64_t *const start[] = { r->links.send_start, r->halo->start };
    int32_t              rc = gr_lanes_init(context, comm, layers, &r->lanes, error);

    for (int32_t l = 0; l < layers; l++) {
        int32_t here = gr_lanes_add(&r->lanes, l, start, error);

        if (here == GRAFT_OK) here = gr_lanes_reserve(&r->lanes, l, width[l], GRAFT_F32, error);
        if (rc == GRAFT_OK) rc = here;
    }
    return rc;
}

int32_t gr_halo_rows_init(const graft_context *context, struct gr_comm *comm, const struct gr_halo *halo,
                          const int64_t *width, int32_t layers, struct gr_halo_rows *r, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    r->halo = halo;
    for (int32_t l = 0; l < layers; l++) r->widest = width[l] > r->widest ? width[l] : r->widest;
    GR_TRY(gr_links_init(context, comm, halo, &r->links, error));
    GR_TRY(gr_comm_agree(comm, complete(context, comm, r, error), error));
    GR_TRY(gr_comm_agree(comm, init_lanes(context, comm, width, layers, r, error), error));
    rc = share_flow(r, comm, error);
done:
    return rc;
}

static void weigh_lane(struct gr_lane *lane, const struct gr_part *part)
{
    const graft_csr *remote = &part->remote;
    float *const     weight = lane->weight[1];

    for (int64_t i = 0; i < lane->rows[1] && lane->direction == GR_BACKWARD; i++) weight[i] = 1;
    for (int64_t row = 0; row < remote->n_rows && lane->direction == GR_FORWARD; row++) {
        const int64_t begin = remote->row_ptr[row], end = remote->row_ptr[row + 1];
        const float   degree = (float)(end - begin + part->local.row_ptr[row + 1] - part->local.row_ptr[row]);

        for (int64_t e = begin; e < end; e++) weight[gr_csr_column(remote, e)] += 1 / (degree * degree);
    }
    lane->is_weighed = 1;
}

void gr_halo_rows_weigh(struct gr_halo_rows *r, const struct gr_part *part)
{
    for (int32_t l = 0; l < r->lanes.n_layers; l++) {
        for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) {
            struct gr_lane *lane = gr_lanes_find(&r->lanes, l, d);

            if (lane != NULL && lane->is_adaptive) weigh_lane(lane, part);
        }
    }
}

void gr_halo_rows_fini(struct gr_comm *comm, struct gr_halo_rows *r)
{
    gr_lanes_fini(&r->lanes); /* as in a plan */
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

/* Some of the rows that go: copied from where they are, unless they lie side by side, and encoded. */
static void make_some(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    struct gr_halo_rows  *r = arg;
    const gr_wire_encoder encode = gr_wire_encoder_of(r->on_lane.wire);
    struct packing        p = packing_of(r);

    (void)chunk;
    if (r->pass.direction == GR_FORWARD) {
        p.packed.data = r->buffer + begin * r->pass.width;
        p.packed.n_rows = p.index.count = end - begin;
        p.index.data = r->links.place + begin;
        gr_edge_gather_rows(&p.owned, &p.index, &p.packed, 1);
    }
    if (encode != NULL) encode(r->on_lane.wire, omp_get_thread_num(), begin, end);
}

/* The rows that go, each block of them encoded by the thread that copied it. */
static void make_rows(struct gr_halo_rows *r, struct gr_wire_rows out, struct gr_team team)
{
    struct gr_wire *wire = r->on_lane.wire;
    const int64_t   n = out.start[wire->exchange.comm->n_ranks];

    gr_wire_out(wire, out);
    team.poll = NULL; /* what goes is not posted yet */
    if (r->pass.direction == GR_FORWARD || gr_wire_encoder_of(wire) != NULL)
        gr_parallel_chunks(gr_wire_team(wire, team), n * r->pass.width, n, CHUNK, make_some, r);
}

int32_t gr_halo_rows_begin(struct gr_halo_rows *r, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error)
{
    const struct gr_wire_rows owned = { r->links.send_start, r->buffer };
    const struct gr_wire_rows halo = { r->halo->start, pass->x + pass->n_owned * pass->width };
    const int                 forward = pass->direction == GR_FORWARD;
    struct gr_wire_pass       on_wire = { .layer = pass->layer,
                                          .direction = (int32_t)pass->direction,
                                          .exact = pass->exact,
                                          .epoch = pass->epoch,
                                          .width = pass->width,
                                          .dtype = GRAFT_F32 };
    struct gr_lane           *lane = NULL;
    int32_t                   rc = GRAFT_OK;

    r->pass = *pass;
    r->on_lane.waits = pass->waits;
    r->on_lane.smoothing = r->lanes.smoothing;
    if (!pass->apart && !pass->exact) lane = gr_lanes_find(&r->lanes, pass->layer, (int32_t)pass->direction);
    GR_TRY(gr_lane_receive(&r->on_lane, lane, &r->wire, &on_wire, forward ? halo : owned, team, error));
    if (!r->on_lane.again) make_rows(r, forward ? owned : halo, team);
    rc = gr_lane_send(&r->on_lane, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(r->wire.exchange.comm, error);
    GR_TRY(rc);
    r->begun = 1;
done:
    return rc;
}

int32_t gr_halo_rows_end(struct gr_halo_rows *r, struct gr_team team, graft_error *error)
{
    const struct gr_halo_pass *pass = &r->pass;
    const void                *rows;
    int32_t                    rc = GRAFT_OK;

    if (!r->begun) return GRAFT_OK;
    r->begun = 0;
    GR_TRY(gr_lane_end(&r->on_lane, team, &rows, error));
    if (pass->direction == GR_BACKWARD) {
        struct packing p = packing_of(r);

        p.packed.data = (void *)(uintptr_t)rows;
        gr_edge_index_add(&p.packed, &p.index, &p.owned, team.threads);
    } else if (rows != r->on_lane.in.rows && r->halo->count > 0) {
        memcpy(r->on_lane.in.rows, rows, (uint64_t)(r->halo->count * pass->width) * sizeof *pass->x);
    }
done:
    return rc;
}

int64_t gr_halo_rows_bytes(const struct gr_halo_rows *r, int32_t n_ranks)
{
    if (r->buffer == NULL) return 0;
    return gr_wire_bytes(&r->wire) + gr_lanes_bytes(&r->lanes) + gr_links_bytes(&r->links) +
           (int64_t)sizeof *r->flow * n_ranks + gr_bytes(r->buffer);
}
