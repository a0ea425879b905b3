/* Adopts options of messages that have changed between two steps. New messages are created besides those in use, and
 * replace them when all ranks have memory for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"
#include "parallel/traffic.h"

#include <string.h>

/* The message buffers of a plan, of the halo rows or of transposes, and the new ones that will replace them. */
struct renewal {
    const graft_plan      *plan;      /* plan of the messages; NULL: messages of the halo, or of transposes */
    struct gr_transpose   *transpose; /* transpose of the messages; NULL: messages of a plan, or of the halo */
    struct gr_messages    *messages, next_messages;
    struct gr_halo_layers *layers, next_layers;
    const int64_t         *start[GR_SIDES]; /* [n_ranks + 1] first row of each rank; NULL: transposes */
    int64_t                rows[GR_SIDES];  /* rows of all ranks */
    int64_t                borrowed;        /* bytes borrowed from the budget, while both exist */
};

/* Whether new options need other messages than the options before. */
static int needs_messages(const struct gr_halo_options *now, const struct gr_halo_options *then)
{
    return memcmp(&now->codec, &then->codec, sizeof now->codec) != 0 || now->staleness.word != then->staleness.word ||
           now->rounding != then->rounding || now->nonfinite != then->nonfinite;
}

static struct renewal layers_renewal(int32_t n_ranks, struct gr_messages *messages, struct gr_halo_layers *layers,
                                     const int64_t *sent, const int64_t *received)
{
    return (struct renewal){ .messages = messages,
                             .layers = layers,
                             .start = { sent, received },
                             .rows = { sent[n_ranks], received[n_ranks] } };
}

static struct renewal renewal_of(graft_plan *plan, int32_t n_ranks)
{
    struct renewal r = layers_renewal(n_ranks, &plan->messages, &plan->layers, plan->rows[GR_SEND].start,
                                      plan->rows[GR_RECEIVE].start);

    r.plan = plan;
    return r;
}

/* List all message buffers; their number is the same on all ranks. */
static int32_t list_renewals(struct gr_ranks *r, struct renewal *list)
{
    struct gr_halo_rows *rows = &r->halo_rows;
    const int32_t        n_ranks = r->comm->n_ranks;
    int32_t              n = 0;

    if (r->exchanges_rows)
        list[n++] = layers_renewal(n_ranks, &rows->messages, &rows->layers, rows->links.send_start, rows->halo->start);
    if (r->plans.whole != NULL) list[n++] = renewal_of(r->plans.whole, n_ranks);
    if (r->columns != NULL) {
        struct gr_transpose *t = &r->columns->transpose;

        list[n++] = (struct renewal){
            .transpose = t, .messages = &t->messages, .layers = &t->layers, .rows = { t->records, t->records }
        };
    }
    for (int32_t l = 0; l < r->n_layers; l++)
        if (r->plans.masked[l].plan != NULL) list[n++] = renewal_of(r->plans.masked[l].plan, n_ranks);
    return n;
}

/* Whether `next` replaces the messages of layer l in a step. */
static int is_of_layer(const struct gr_ranks *r, const struct renewal *next, int32_t l)
{
    return next->transpose == NULL && l >= r->gathers_from && (next->plan == NULL || next->plan == r->plans.step[l]);
}

/* Return the number of columns of the widest pass. Passes outside of training steps use the plan of all rows. */
static int64_t widest_of(const struct gr_ranks *r, const struct renewal *next)
{
    int64_t widest = next->transpose != NULL ? GR_RECORD : 0;

    for (int32_t l = r->gathers_from; l < r->n_layers; l++)
        if ((is_of_layer(r, next, l) || (next->plan != NULL && next->plan == r->plans.whole)) &&
            r->plans.widest[l] > widest)
            widest = r->plans.widest[l];
    return widest;
}

/* Create the new message buffers, without memory for rows. Channels are taken even on failure, so that all ranks agree
 * on their numbers. */
static int32_t init_renewal(const struct gr_ranks *r, struct renewal *next, graft_error *error)
{
    int32_t rc = gr_halo_messages_init(r->context, r->comm, 0, &next->next_messages, error);
    int32_t here = next->transpose != NULL
                       ? gr_parallel_transpose_layers_init(next->transpose, &next->next_layers, error)
                       : gr_halo_layers_init(r->context, r->comm, r->n_layers, &next->next_layers, error);

    if (rc == GRAFT_OK) rc = here;
    for (int32_t l = 0; l < r->n_layers; l++) {
        if (!is_of_layer(r, next, l)) continue;
        here = gr_halo_layers_add(&next->next_layers, l, next->start, error);
        if (rc == GRAFT_OK) rc = here;
    }
    return rc;
}

/* Allocate memory for the rows of the new messages. */
static int32_t reserve_renewal(const struct gr_ranks *r, struct renewal *next, graft_error *error)
{
    const int64_t widest = widest_of(r, next);
    int64_t       bytes = gr_halo_messages_need(&next->next_messages, next->rows, widest, GRAFT_F32);

    for (int32_t l = 0; l < r->n_layers; l++)
        if (is_of_layer(r, next, l))
            bytes += gr_halo_layers_need(&next->next_layers, l, r->plans.columns[l], GRAFT_F32);
    if (next->transpose != NULL) bytes += gr_parallel_transpose_layers_need(next->transpose, &next->next_layers);
    GR_TRY(gr_budget_borrow(r->wish.budget, bytes, "messages with other options, beside those in use", error));
    next->borrowed = bytes;
    GR_TRY(gr_halo_messages_reserve(&next->next_messages, next->rows, widest, GRAFT_F32, error));
    for (int32_t l = 0; l < r->n_layers; l++)
        if (is_of_layer(r, next, l))
            GR_TRY(gr_halo_layers_reserve(&next->next_layers, l, r->plans.columns[l], GRAFT_F32, error));
    if (next->transpose != NULL)
        return gr_parallel_transpose_layers_reserve(next->transpose, &next->next_layers, error);
    return GRAFT_OK;
}

static void renewal_fini(const struct gr_ranks *r, struct renewal *next)
{
    gr_budget_return(r->wish.budget, next->borrowed);
    gr_halo_layers_fini(&next->next_layers);
    gr_halo_messages_fini(&next->next_messages);
}

/* Replace the message buffers in use by the new ones, and carry over the counters. */
static void replace_messages(struct gr_ranks *r, struct renewal *next)
{
    double *const wait = &next->next_messages.framed.wait_seconds;
    double *const exchange = &next->next_messages.framed.exchange_seconds;

    for (int32_t i = 0; i < GR_DIRECTIONS * next->layers->n_layers; i++) {
        const int32_t               slot = i % (GR_DIRECTIONS * r->n_layers);
        const struct gr_halo_layer *layer =
            gr_halo_layers_find(next->layers, i / GR_DIRECTIONS, (enum gr_direction)(i % GR_DIRECTIONS));

        if (layer != NULL && layer->history.oldest > r->traffic.oldest[slot])
            r->traffic.oldest[slot] = layer->history.oldest;
    }
    gr_halo_layers_forget(next->layers);
    gr_halo_messages_add_seconds(next->messages, wait, exchange);
    gr_halo_layers_add_seconds(next->layers, wait, exchange);
    gr_halo_layers_fini(next->layers);
    gr_halo_messages_fini(next->messages);
    *next->messages = next->next_messages;
    *next->layers = next->next_layers;
    next->next_messages = (struct gr_messages){ 0 };
    next->next_layers = (struct gr_halo_layers){ 0 };
}

static int32_t make_renewals(const struct gr_ranks *r, struct renewal *list, int32_t n, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t i = 0; i < n; i++) {
        const int32_t here = init_renewal(r, &list[i], error);

        if (rc == GRAFT_OK) rc = here;
    }
    for (int32_t i = 0; i < n; i++)
        if (rc == GRAFT_OK) rc = reserve_renewal(r, &list[i], error);
    return rc;
}

static int32_t renew_messages(struct gr_ranks *r, graft_error *error)
{
    struct renewal *list = NULL;
    int32_t         rc = GR_NEW(r->context, list, r->n_layers + 3, error), n = 0;

    GR_TRY_DONE(gr_comm_agree(r->comm, rc, error));
    n = list_renewals(r, list);
    rc = gr_comm_agree(r->comm, make_renewals(r, list, n, error), error);
    for (int32_t i = 0; i < n && rc == GRAFT_OK; i++) replace_messages(r, &list[i]);
done:
    for (int32_t i = 0; i < n; i++) renewal_fini(r, &list[i]);
    gr_free(r->context, list);
    gr_parallel_charge(r);
    if (rc < 0) return rc;
    if (r->exchanges_rows) gr_halo_rows_weigh(&r->halo_rows, r->graph.part);
    gr_parallel_traffic_begin(r); /* counts depend on the replaced messages */
    r->stale.is_on = gr_halo_options(r->context)->staleness.word == GR_HALO_STALE;
    r->adapt.is_adapted = 0;
    r->adapt.traced = 0;
    r->base.drift = 0;
    return GRAFT_OK;
}

int32_t gr_parallel_renew(struct gr_ranks *r, graft_error *error)
{
    const struct gr_halo_options *now = gr_halo_options(r->context);
    struct gr_halo_layers        *list[GR_LAYERS_MAX + 3];
    int32_t                       n;

    if (r->gathers_from < r->n_layers && needs_messages(now, &r->options)) GR_TRY(renew_messages(r, error));
    if (now->budget.word != r->options.budget.word || now->budget.number[0] != r->options.budget.number[0])
        r->adapt.is_adapted = 0;
    r->options = *now;
    n = gr_parallel_plans_list_layers(r, list);
    for (int32_t i = 0; i < n; i++) { /* options that can change without new messages */
        list[i]->smoothing = r->options.staleness.number[1];
        list[i]->budget = r->options.budget;
    }
    return GRAFT_OK;
}
