/* One exchange of boundary rows, from begin to end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/exchange.h"

#include "base/assert.h"

/* The stale rows of the layer, or NULL if its exchanges are synchronous. */
static struct gr_history *history_of(const struct gr_exchange *x)
{
    return x->layer != NULL && x->layer->is_stale ? &x->layer->history : NULL;
}

/* The widths of its rows; NULL: all equal. */
static const struct gr_row_widths *widths_of(const struct gr_exchange *x)
{
    return x->layer != NULL && x->layer->is_adaptive ? &x->layer->bits.widths : NULL;
}

int32_t gr_halo_exchange_begin(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    struct gr_history *history = history_of(x);

    GR_ASSERT(x->messages != NULL && x->args.width >= 0);
    x->is_repeat = 0;
    x->settled_at = 0;
    if (history != NULL) {
        x->messages = &history->messages;
        x->is_repeat = gr_halo_history_begin(history, x->args.semiring, x->args.epoch);
    }
    if (x->is_repeat) return GRAFT_OK;
    if (history != NULL && history->in_flight) {
        GR_TRY(gr_halo_history_receive(history, x->received.data, x->smoothing, team, error));
        x->settled_at = history->messages.begun.received_at;
    }
    if (widths_of(x) != NULL) gr_halo_row_bits_begin(&x->layer->bits, x->layer->rows, x->args.width, x->args.epoch);
    return gr_halo_messages_post(x->messages, &x->args, widths_of(x), x->received, error);
}

int32_t gr_halo_exchange_send(struct gr_exchange *x, struct gr_team team, graft_error *error)
{
    struct gr_history *history = history_of(x);
    int32_t            rc = GRAFT_OK;

    x->sent_at = gr_seconds();
    if (x->is_repeat) return GRAFT_OK;
    rc = gr_halo_messages_send(x->messages, team, error);
    if (rc < 0 && rc != GRAFT_ERR_NONFINITE) goto done;
    x->sent_at = x->messages->begun.sent_at;
    if (history != NULL && rc == GRAFT_OK) gr_halo_history_mark_sent(history, x->args.epoch);
done:
    return rc;
}

/* Whether the end uses rows that this exchange itself receives. */
static int uses_own_rows(const struct gr_exchange *x)
{
    const struct gr_history *history = history_of(x);

    return history == NULL || (!x->is_repeat && (x->synchronous || gr_halo_history_is_too_old(history, x->args.epoch)));
}

int32_t gr_halo_exchange_progress(struct gr_exchange *x, int32_t *arrived, graft_error *error)
{
    struct gr_messages *m = x->messages;

    if (!x->is_repeat) gr_halo_messages_poll(m);
    if (m->begun.rc < 0) {
        *error = m->begun.error;
        return m->begun.rc;
    }
    *arrived = m->begun.arrived || !uses_own_rows(x);
    return GRAFT_OK;
}

int32_t gr_halo_exchange_end(struct gr_exchange *x, struct gr_team team, const void **rows, graft_error *error)
{
    struct gr_history *history = history_of(x);

    GR_ASSERT(history == NULL || x->messages == &history->messages);
    if (history == NULL) {
        GR_TRY(gr_halo_messages_wait(x->messages, team, error));
        GR_TRY(gr_halo_messages_decode(x->messages, x->received.data, team, error));
        x->received_at = x->messages->begun.received_at;
        *rows = x->received.data;
        return GRAFT_OK;
    }
    x->received_at = gr_seconds();
    *rows = history->rows;
    if (x->is_repeat) return GRAFT_OK;
    if (uses_own_rows(x)) {
        GR_TRY(gr_halo_history_receive(history, x->received.data, 0, team, error));
        x->received_at = history->messages.begun.received_at;
    }
    gr_halo_history_use(history, x->args.epoch);
    return GRAFT_OK;
}
