/* One exchange of boundary rows, from begin to end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/exchange.h"

#include "base/assert.h"

/* Return the stale rows of the layer, or NULL if its exchanges are synchronous. */
static struct gr_history *history_of(const struct gr_exchange *x)
{
    return x->layer != NULL && x->layer->is_stale ? &x->layer->history : NULL;
}

/* Return the widths of the rows; NULL: all are equal. */
static const struct gr_row_widths *widths_of(const struct gr_exchange *x)
{
    return x->layer != NULL && x->layer->is_adaptive ? &x->layer->bits.widths : NULL;
}

int32_t gr_halo_exchange_begin(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    struct gr_history *history = history_of(x);

    GR_ASSERT(x->messages != NULL && x->args.width >= 0);
    x->is_repeat = x->encodes = 0;
    x->settled_at = 0;
    if (history != NULL) {
        x->messages = &history->messages;
        x->is_repeat = gr_halo_history_begin(history, x->args.semiring, x->args.epoch);
    }
    if (x->is_repeat) return GRAFT_OK;
    if (history != NULL && history->in_flight) {
        GR_TRY(gr_halo_history_receive(history, x->received.data, x->smoothing, team, error));
        x->settled_at = history->messages.framed.begun.received_at;
    }
    if (widths_of(x) != NULL) gr_halo_row_bits_begin(&x->layer->bits, x->layer->rows, x->args.width, x->args.epoch);
    GR_TRY(gr_halo_messages_post(x->messages, &x->args, widths_of(x), x->received, error));
    gr_halo_messages_set_rows(x->messages, x->sent);
    x->encodes = x->messages->begun.encodes;
    x->threads = gr_halo_messages_team(x->messages, team).threads;
    return GRAFT_OK;
}

int32_t gr_halo_exchange_open(struct gr_exchange *x, const struct gr_halo_layers *layers, struct gr_team team,
                              graft_error *error)
{
    const int32_t            n_ranks = x->messages->comm->n_ranks;
    const int64_t            rows[GR_SIDES] = { x->sent.start[n_ranks], x->received.start[n_ranks] };
    struct gr_exchange_args *args = &x->args;

    if (layers != NULL) x->layer = gr_halo_layers_find(layers, args->layer, args->direction);
    GR_TRY(gr_halo_messages_reserve(x->messages, rows, args->width, args->dtype, error));
    GR_TRY(gr_halo_layer_reserve(x->layer, args->width, args->dtype, error));
    return gr_halo_exchange_begin(x, team, error);
}

/* Add the statistics of the rows sent to all ranks to x->total. */
static void add_sent(const struct gr_exchange *x)
{
    for (int32_t q = 0; q < x->messages->comm->n_ranks && x->total != NULL; q++)
        gr_halo_send_stats_add(x->total, &x->messages->sent[q]);
}

int32_t gr_halo_exchange_send(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    struct gr_history *history = history_of(x);
    int32_t            rc;

    x->sent_at = gr_seconds();
    if (x->is_repeat) return GRAFT_OK;
    rc = gr_halo_messages_send(x->messages, team, error);
    if (rc < 0 && rc != GRAFT_ERR_NONFINITE) return rc;
    x->sent_at = x->messages->framed.begun.sent_at;
    if (history != NULL && rc == GRAFT_OK) gr_halo_history_mark_sent(history, x->args.epoch);
    add_sent(x);
    return rc;
}

/* Whether gr_halo_exchange_end() uses rows that this exchange itself receives. */
static int uses_own_rows(const struct gr_exchange *x)
{
    const struct gr_history *history = history_of(x);

    return history == NULL || (!x->is_repeat && (x->synchronous || gr_halo_history_is_too_old(history, x->args.epoch)));
}

int32_t gr_halo_exchange_progress(struct gr_exchange *x, int32_t *arrived, graft_error *error)
{
    struct gr_framed *framed = &x->messages->framed;

    if (!x->is_repeat) gr_comm_framed_poll(framed);
    if (framed->begun.rc < 0) {
        *error = framed->begun.error;
        return framed->begun.rc;
    }
    *arrived = framed->begun.arrived || !uses_own_rows(x);
    return GRAFT_OK;
}

int32_t gr_halo_exchange_end(struct gr_exchange *x, struct gr_team team, const void **rows, graft_error *error)
{
    struct gr_history *history = history_of(x);

    GR_ASSERT(history == NULL || x->messages == &history->messages);
    if (history == NULL) {
        GR_TRY(gr_comm_framed_wait(&x->messages->framed, team, error));
        GR_TRY(gr_halo_messages_decode(x->messages, x->received.data, team, error));
        x->received_at = x->messages->framed.begun.received_at;
        *rows = x->received.data;
        return GRAFT_OK;
    }
    x->received_at = gr_seconds();
    *rows = history->rows;
    if (x->is_repeat) return GRAFT_OK;
    if (uses_own_rows(x)) {
        GR_TRY(gr_halo_history_receive(history, x->received.data, 0, team, error));
        x->received_at = history->messages.framed.begun.received_at;
    }
    gr_halo_history_use(history, x->args.epoch);
    return GRAFT_OK;
}
