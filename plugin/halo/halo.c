/* Exchanges of raw rows of the halo.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/halo.h"

#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "edge/edge.h"

#include <string.h>

/* Gather the numbers of rows and messages of all ranks. All rows are raw. */
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

static int32_t reserve_buffer(struct gr_halo_rows *r, enum gr_side side, int64_t rows, int64_t row_bytes,
                              graft_error *error)
{
    const graft_context *context = r->messages.context;
    int64_t              bytes;
    void                *larger;

    if (__builtin_mul_overflow(rows, row_bytes, &bytes)) bytes = INT64_MAX;
    if (r->buffer[side] != NULL && bytes <= r->capacity[side]) return GRAFT_OK;
    larger = gr_new(context, bytes, 1, "rows of messages", error);
    if (larger == NULL) return GRAFT_ERR_NOMEM;
    gr_free(context, r->buffer[side]);
    r->buffer[side] = larger;
    r->capacity[side] = bytes;
    return GRAFT_OK;
}

int32_t gr_halo_rows_reserve(struct gr_halo_rows *r, int64_t width, graft_dtype dtype, int is_own, graft_error *error)
{
    const int64_t rows[GR_SIDES] = { r->links.send_start[r->messages.comm->n_ranks], r->halo->count };
    int64_t       row_bytes;
    int32_t       rc = GRAFT_OK;

    if (__builtin_mul_overflow(width, gr_dtype_bytes(dtype), &row_bytes)) row_bytes = INT64_MAX;
    GR_TRY_DONE(reserve_buffer(r, GR_SEND, rows[GR_SEND], row_bytes, error));
    if (!is_own) GR_TRY_DONE(reserve_buffer(r, GR_RECEIVE, rows[GR_RECEIVE], row_bytes, error));
    rc = gr_halo_messages_reserve(&r->messages, rows, width, dtype, error);
    if (rc == GRAFT_OK && width > r->widest) r->widest = width;
done:
    return rc;
}

/* Allocate the messages and buffers of this rank. */
static int32_t init_messages(const graft_context *context, struct gr_comm *comm, struct gr_halo_rows *r,
                             graft_error *error)
{
    GR_TRY(gr_halo_messages_init(context, comm, 0, &r->messages, error));
    GR_TRY(GR_NEW(context, r->flow, comm->n_ranks, error));
    return gr_halo_rows_reserve(r, r->widest, GRAFT_F32, 1, error);
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
    r->halo = halo;
    for (int32_t l = 0; l < layers; l++) r->widest = width[l] > r->widest ? width[l] : r->widest;
    GR_TRY(gr_halo_links_init(context, comm, halo, &r->links, error));
    GR_TRY(gr_comm_agree(comm, init_messages(context, comm, r, error), error));
    GR_TRY(gr_comm_agree(comm, init_layers(context, comm, width, layers, r, error), error));
    return share_halo_flow(r, comm, error);
}

void gr_halo_rows_weigh(struct gr_halo_rows *r, const struct gr_part *part)
{
    for (int32_t l = 0; l < r->layers.n_layers; l++) {
        for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
            struct gr_halo_layer *layer = gr_halo_layers_find(&r->layers, l, (enum gr_direction)d);

            if (layer == NULL || !layer->is_adaptive) continue;
            gr_halo_row_bits_weigh_mean(&layer->bits, d == GR_FORWARD ? part : NULL, layer->rows);
        }
    }
}

void gr_halo_rows_fini(struct gr_comm *comm, struct gr_halo_rows *r)
{
    gr_halo_layers_fini(&r->layers); /* before the links, on which messages in flight depend */
    gr_halo_messages_fini(&r->messages);
    gr_halo_links_fini(comm, &r->links);
    gr_free(comm->context, r->flow);
    for (int side = 0; side < GR_SIDES; side++) gr_free(comm->context, r->buffer[side]);
    *r = (struct gr_halo_rows){ 0 };
}

/* Some rows of a buffer with copies of owned rows, and their indices among the owned rows. */
struct packing {
    graft_dense packed;
    graft_index index;
};

static struct packing packing_of(const struct gr_halo_rows *r, const void *buffer, int64_t begin, int64_t end)
{
    const graft_dense *owned = &r->pass.owned;
    const char        *rows = (const char *)buffer + begin * owned->n_cols * gr_dtype_bytes(owned->dtype);

    return (struct packing){ gr_dense_view(rows, owned->dtype, end - begin, owned->n_cols, owned->n_cols),
                             { sizeof(graft_index), GRAFT_I32, end - begin, r->links.place + begin } };
}

/* Copy rows begin to end - 1 of the halo of a pass to an array without gaps if is_out, else from that array. */
static void copy_halo(const struct gr_halo_rows *r, void *packed, int64_t begin, int64_t end, int is_out)
{
    const graft_dense *halo = &r->pass.halo;
    const int64_t      element = gr_dtype_bytes(halo->dtype), bytes = halo->n_cols * element;

    for (int64_t i = begin; i < end; i++) {
        char *const row = (char *)halo->data + i * halo->stride * element, *const copy = (char *)packed + i * bytes;

        memcpy(is_out ? copy : row, is_out ? row : copy, (uint64_t)bytes);
    }
}

/* Gather some rows to send, unless they are contiguous already, and encode them in the same thread. */
static void pack_some(void *arg, int64_t begin, int64_t end)
{
    struct gr_halo_rows *r = arg;

    if (r->pass.is_refused) {
        const int64_t row_bytes = r->pass.owned.n_cols * gr_dtype_bytes(r->pass.owned.dtype);

        memset((char *)r->exchange.sent.data + begin * row_bytes, 0, (uint64_t)((end - begin) * row_bytes));
    } else if (r->pass.direction == GR_FORWARD) {
        const struct packing p = packing_of(r, r->buffer[GR_SEND], begin, end);

        gr_edge_gather_rows(&r->pass.owned, &p.index, &p.packed, 1);
    } else if (!r->pass.is_own) {
        copy_halo(r, r->buffer[GR_RECEIVE], begin, end, 1);
    }
    if (r->exchange.encodes) gr_halo_messages_encode(r->exchange.messages, omp_get_thread_num(), begin, end);
}

/* Gather and encode all rows to send. Messages are not polled meanwhile, because no send is posted yet. */
static void pack_sent(struct gr_halo_rows *r, struct gr_team team)
{
    const int64_t n = r->exchange.sent.start[r->messages.comm->n_ranks];

    team.poll = NULL;
    team.threads = r->exchange.threads;
    if (r->pass.direction == GR_FORWARD || !r->pass.is_own || r->exchange.encodes)
        gr_parallel_rows(team, n * r->pass.owned.n_cols, n, GR_ROWS_AT_ONCE, pack_some, r);
}

void gr_halo_rows_place(const struct gr_halo_rows *r, struct gr_halo_pass *pass, float *x, int64_t n_owned,
                        int64_t width)
{
    pass->owned = gr_dense_view(x, GRAFT_F32, n_owned, width, width);
    pass->halo = gr_dense_view(x + n_owned * width, GRAFT_F32, r->halo->count, width, width);
    pass->is_own = 1;
}

int32_t gr_halo_rows_begin(struct gr_halo_rows *r, const struct gr_halo_pass *pass, struct gr_team team,
                           graft_error *error)
{
    const struct gr_rank_rows forward[GR_SIDES] = { { r->links.send_start, r->buffer[GR_SEND] },
                                                    { r->halo->start,
                                                      pass->is_own ? pass->halo.data : r->buffer[GR_RECEIVE] } };
    const int                 is_step = !pass->stateless && !pass->exact;
    struct gr_exchange       *x = &r->exchange;
    int32_t                   rc = GRAFT_OK;

    GR_ASSERT(pass->owned.n_cols <= r->widest && pass->owned.n_cols == pass->halo.n_cols);
    GR_ASSERT(pass->halo.n_rows == r->halo->count && pass->owned.dtype == pass->halo.dtype);
    r->pass = *pass;
    *x = (struct gr_exchange){ .args = { .layer = pass->layer,
                                         .direction = pass->direction,
                                         .exact = pass->exact,
                                         .epoch = pass->epoch,
                                         .call = pass->call,
                                         .width = pass->owned.n_cols,
                                         .dtype = pass->owned.dtype },
                               .messages = &r->messages,
                               .layer = is_step ? gr_halo_layers_find(&r->layers, pass->layer, pass->direction) : NULL,
                               .sent = forward[gr_side_of(pass->direction, GR_SEND)],
                               .received = forward[gr_side_of(pass->direction, GR_RECEIVE)],
                               .smoothing = r->layers.smoothing,
                               .synchronous = pass->synchronous };
    GR_TRY_DONE(gr_halo_exchange_begin(x, team, error));
    if (!x->is_repeat) pack_sent(r, team);
    rc = gr_halo_exchange_send(x, team, error);
    if (rc < 0 && rc != GRAFT_ERR_PEER && !(rc == GRAFT_ERR_NONFINITE && pass->sends_refused_rows))
        rc = gr_comm_fail(r->messages.comm, error);
    r->begun = rc != GRAFT_ERR_PEER;
done:
    return rc;
}

int32_t gr_halo_rows_end(struct gr_halo_rows *r, struct gr_team team, graft_error *error)
{
    const void *rows;
    int32_t     rc = GRAFT_OK;

    if (!r->begun) return GRAFT_OK;
    r->begun = 0;
    GR_TRY_DONE(gr_halo_exchange_end(&r->exchange, team, &rows, error));
    if (r->pass.is_refused) goto done;
    if (r->pass.direction == GR_BACKWARD) {
        const struct packing p = packing_of(r, rows, 0, r->links.send_start[r->messages.comm->n_ranks]);

        gr_edge_index_add(r->messages.comm->context, &p.packed, &p.index, &r->pass.owned, team.threads);
    } else if (rows != r->pass.halo.data) {
        copy_halo(r, (void *)(uintptr_t)rows, 0, r->halo->count, 0);
    }
done:
    return rc;
}

int64_t gr_halo_rows_bytes(const struct gr_halo_rows *r, int32_t n_ranks)
{
    if (r->flow == NULL) return 0;
    return gr_halo_messages_bytes(&r->messages) + gr_halo_layers_bytes(&r->layers) + gr_halo_links_bytes(&r->links) +
           (int64_t)sizeof *r->flow * n_ranks + gr_memory_bytes(r->buffer[GR_SEND]) +
           gr_memory_bytes(r->buffer[GR_RECEIVE]);
}
