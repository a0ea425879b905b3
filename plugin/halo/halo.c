/* Rows of the halo as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/halo.h"

#include "base/assert.h"
#include "base/dense_view.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "edge/edge.h"

#include <string.h>

/* All rows are raw. */
static int32_t share_halo_flow(struct gr_halo_rows *r, struct gr_comm *comm, graft_error *error)
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

/* Messages and buffers, of this rank alone. */
static int32_t init_messages(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *r,
                             graft_error *error)
{
    const uint64_t row_bytes = (uint64_t)r->widest * sizeof *r->buffer;
    const int64_t  rows[GR_SIDES] = { r->links.send_start[comm->n_ranks], r->halo->count };
    int32_t        rc = gr_messages_init(context, comm, 0, &r->messages, error);

    GR_TRY(rc);
    GR_TRY(GR_NEW(context, r->flow, comm->n_ranks, error));
    r->buffer = gr_new(context, rows[GR_SEND], row_bytes, "rows of messages", error);
    if (r->buffer == NULL) return GRAFT_ERR_NOMEM;
    rc = gr_messages_reserve(&r->messages, rows, r->widest, GRAFT_F32, error);
done:
    return rc;
}

static int32_t init_layers(const graft_context *context, struct gr_comm *comm, const int64_t *width, int32_t layers,
                           struct gr_halo_rows *r, graft_error *error)
{
    const int64_t *const start[GR_SIDES] = { r->links.send_start, r->halo->start };
    int32_t              rc = gr_halo_layers_init(context, comm, layers, &r->layers, error);

    for (int32_t l = 0; l < layers; l++) {
        int32_t layer_rc = gr_halo_layers_add(&r->layers, l, start, error);

        if (layer_rc == GRAFT_OK) layer_rc = gr_halo_layers_reserve(&r->layers, l, width[l], GRAFT_F32, error);
        if (rc == GRAFT_OK) rc = layer_rc;
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
    GR_TRY(gr_comm_agree(comm, init_messages(context, comm, r, error), error));
    GR_TRY(gr_comm_agree(comm, init_layers(context, comm, width, layers, r, error), error));
    rc = share_halo_flow(r, comm, error);
done:
    return rc;
}

void gr_halo_rows_weigh(struct gr_halo_rows *r, const struct gr_part *part)
{
    for (int32_t l = 0; l < r->layers.n_layers; l++) {
        for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
            struct gr_halo_layer *layer = gr_halo_layers_find(&r->layers, l, (enum gr_direction)d);

            if (layer == NULL || !layer->is_adaptive) continue;
            gr_row_bits_weigh_mean(&layer->bits, d == GR_FORWARD ? part : NULL, layer->rows);
        }
    }
}

void gr_halo_rows_fini(struct gr_comm *comm, struct gr_halo_rows *r)
{
    gr_halo_layers_fini(&r->layers); /* while the links are there, which messages in flight depend on */
    gr_messages_fini(&r->messages);
    gr_links_fini(comm, &r->links);
    gr_free(comm->context, r->flow);
    gr_free(comm->context, r->buffer);
    *r = (struct gr_halo_rows){ 0 };
}

/* The owned rows, their copies in the buffer, and which of the former each of the latter is. */
struct packing {
    graft_dense owned, packed;
    graft_index index;
};

static struct packing packing_of(const struct gr_halo_rows *r)
{
    const struct gr_halo_pass *pass = &r->pass;
    const int64_t              n = r->links.send_start[r->messages.comm->n_ranks];

    return (struct packing){ gr_dense_view(pass->x, GRAFT_F32, pass->n_owned, pass->width, pass->width),
                             gr_dense_view(r->buffer, GRAFT_F32, n, pass->width, pass->width),
                             { sizeof(graft_index), GRAFT_I32, n, r->links.place } };
}

/* Some of the rows to send: gathered, unless they lie side by side, and encoded by the same thread. */
static void gather_some(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    struct gr_halo_rows *r = arg;
    struct packing       p = packing_of(r);

    (void)chunk;
    if (r->pass.direction == GR_FORWARD) {
        p.packed.data = r->buffer + begin * r->pass.width;
        p.packed.n_rows = p.index.count = end - begin;
        p.index.data = r->links.place + begin;
        gr_edge_gather_rows(&p.owned, &p.index, &p.packed, 1);
    }
    if (gr_messages_are_encoded(r->exchange.messages))
        gr_messages_encode(r->exchange.messages, omp_get_thread_num(), begin, end);
}

/* Messages are not polled meanwhile: those to send are not posted yet. */
static void gather_sent(struct gr_halo_rows *r, struct gr_rank_rows sent, struct gr_team team)
{
    struct gr_messages *messages = r->exchange.messages;
    const int64_t       n = sent.start[messages->comm->n_ranks];

    gr_messages_set_rows(messages, sent);
    team.poll = NULL;
    if (r->pass.direction == GR_FORWARD || gr_messages_are_encoded(messages))
        gr_parallel_chunks(gr_messages_team(messages, team), n * r->pass.width, n, GR_ROWS_AT_ONCE, gather_some, r);
}

int32_t gr_halo_rows_begin(struct gr_halo_rows *r, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error)
{
    const struct gr_rank_rows forward[GR_SIDES] = { { r->links.send_start, r->buffer },
                                                    { r->halo->start, pass->x + pass->n_owned * pass->width } };
    const int                 is_step = !pass->stateless && !pass->exact;
    struct gr_exchange       *x = &r->exchange;
    int32_t                   rc = GRAFT_OK;

    GR_ASSERT(pass->width <= r->widest);
    r->pass = *pass;
    *x = (struct gr_exchange){ .args = { .layer = pass->layer,
                                         .direction = pass->direction,
                                         .exact = pass->exact,
                                         .epoch = pass->epoch,
                                         .width = pass->width,
                                         .dtype = GRAFT_F32 },
                               .messages = &r->messages,
                               .layer = is_step ? gr_halo_layers_find(&r->layers, pass->layer, pass->direction) : NULL,
                               .received = forward[gr_side_of(pass->direction, GR_RECEIVE)],
                               .smoothing = r->layers.smoothing,
                               .synchronous = pass->synchronous };
    GR_TRY(gr_exchange_begin(x, team, error));
    if (!x->is_repeat) gather_sent(r, forward[gr_side_of(pass->direction, GR_SEND)], team);
    rc = gr_exchange_send(x, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER) rc = gr_comm_fail(r->messages.comm, error);
    GR_TRY(rc);
    r->begun = 1;
done:
    return rc;
}

int32_t gr_halo_rows_end(struct gr_halo_rows *r, struct gr_team team, graft_error *error)
{
    const struct gr_halo_pass *pass = &r->pass;
    const struct gr_exchange  *x = &r->exchange;
    const void                *rows;
    int32_t                    rc = GRAFT_OK;

    if (!r->begun) return GRAFT_OK;
    r->begun = 0;
    GR_TRY(gr_exchange_end(&r->exchange, team, &rows, error));
    if (pass->direction == GR_BACKWARD) {
        struct packing p = packing_of(r);

        p.packed.data = (void *)(uintptr_t)rows;
        gr_edge_index_add(&p.packed, &p.index, &p.owned, team.threads);
    } else if (rows != x->received.data && r->halo->count > 0) {
        memcpy(x->received.data, rows, (uint64_t)(r->halo->count * pass->width) * sizeof *pass->x);
    }
done:
    return rc;
}

int64_t gr_halo_rows_bytes(const struct gr_halo_rows *r, int32_t n_ranks)
{
    if (r->buffer == NULL) return 0;
    return gr_messages_bytes(&r->messages) + gr_halo_layers_bytes(&r->layers) + gr_links_bytes(&r->links) +
           (int64_t)sizeof *r->flow * n_ranks + gr_bytes(r->buffer);
}
