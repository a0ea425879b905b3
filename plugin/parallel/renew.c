/* Options of messages that change between two steps. New messages are made beside the messages in use, and replace them
 * when all ranks have memory for them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/options.h"
#include "parallel/partition.h"

#include <string.h>

/* The message buffers of a plan, of the halo rows or of transposes, and the new ones that will replace them. */
struct renewal {
    const graft_plan      *plan;      /* NULL: of the halo, or of transposes */
    struct gr_transpose   *transpose; /* NULL: of a plan, or the halo */
    struct gr_messages    *messages, next_messages;
    struct gr_halo_layers *layers, next_layers;
    const int64_t         *start[GR_SIDES]; /* of the rows of each rank; NULL: of transposes */
    int64_t                rows[GR_SIDES];  /* of all ranks */
    int64_t                borrowed;        /* from the budget, while both exist */
};

/* Whether options that differ from p->options need other messages. */
static int needs_messages(const struct gr_halo_options *now, const struct gr_halo_options *then)
{
    return memcmp(&now->codec, &then->codec, sizeof now->codec) != 0 || now->staleness != then->staleness ||
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

/* List all message buffers of the partition; there are equally many on all ranks. */
static int32_t list_renewals(struct gr_partition *p, struct renewal *list)
{
    struct gr_halo_rows *rows = &p->halo_rows;
    const int32_t        n_ranks = p->comm->n_ranks;
    int32_t              n = 0;

    if (p->needs_rows)
        list[n++] = layers_renewal(n_ranks, &rows->messages, &rows->layers, rows->links.send_start, rows->halo->start);
    if (p->plan != NULL) list[n++] = renewal_of(p->plan, n_ranks);
    if (p->columns > 1) {
        struct gr_transpose *t = &p->shared->transpose;

        list[n++] = (struct renewal){
            .transpose = t, .messages = &t->messages, .layers = &t->layers, .rows = { t->records, t->records }
        };
    }
    for (int32_t l = 0; l < p->n_layers; l++)
        if (p->masked[l].plan != NULL) list[n++] = renewal_of(p->masked[l].plan, n_ranks);
    return n;
}

/* Whether these are the messages of layer l in a step. */
static int is_of_layer(const struct gr_partition *p, const struct renewal *r, int32_t l)
{
    return r->transpose == NULL && l >= p->gathers_from && (r->plan == NULL || r->plan == p->step_plan[l]);
}

/* Number of columns of the widest pass. Passes outside of training steps use the plan of all rows. */
static int64_t widest_of(const struct gr_partition *p, const struct renewal *r)
{
    int64_t widest = r->transpose != NULL ? GR_RECORD : 0;

    for (int32_t l = p->gathers_from; l < p->n_layers; l++)
        if ((is_of_layer(p, r, l) || (r->plan != NULL && r->plan == p->plan)) && p->widest[l] > widest)
            widest = p->widest[l];
    return widest;
}

/* Create the new message buffers, without memory for rows. Channels are taken even on failure, so that all ranks agree
 * on their numbers. */
static int32_t init_renewal(const struct gr_partition *p, struct renewal *r, graft_error *error)
{
    int32_t rc = gr_messages_init(p->context, p->comm, 0, &r->next_messages, error);
    int32_t here = r->transpose != NULL ? gr_transpose_layers_init(r->transpose, &r->next_layers, error)
                                        : gr_halo_layers_init(p->context, p->comm, p->n_layers, &r->next_layers, error);

    if (rc == GRAFT_OK) rc = here;
    for (int32_t l = 0; l < p->n_layers; l++) {
        if (!is_of_layer(p, r, l)) continue;
        here = gr_halo_layers_add(&r->next_layers, l, r->start, error);
        if (rc == GRAFT_OK) rc = here;
    }
    return rc;
}

/* Allocate memory for their rows. */
static int32_t reserve_renewal(const struct gr_partition *p, struct renewal *r, graft_error *error)
{
    const int64_t widest = widest_of(p, r);
    int64_t       bytes = gr_messages_need(&r->next_messages, r->rows, widest, GRAFT_F32);
    int32_t       rc = GRAFT_OK;

    for (int32_t l = 0; l < p->n_layers; l++)
        if (is_of_layer(p, r, l)) bytes += gr_halo_layers_need(&r->next_layers, l, p->columns_of[l], GRAFT_F32);
    if (r->transpose != NULL) bytes += gr_transpose_layers_need(r->transpose, &r->next_layers);
    GR_TRY(gr_budget_borrow(p->budget, bytes, "messages with other options, beside those in use", error));
    r->borrowed = bytes;
    GR_TRY(gr_messages_reserve(&r->next_messages, r->rows, widest, GRAFT_F32, error));
    for (int32_t l = 0; l < p->n_layers; l++)
        if (is_of_layer(p, r, l))
            GR_TRY(gr_halo_layers_reserve(&r->next_layers, l, p->columns_of[l], GRAFT_F32, error));
    if (r->transpose != NULL) rc = gr_transpose_layers_reserve(r->transpose, &r->next_layers, error);
done:
    return rc;
}

static void renewal_fini(const struct gr_partition *p, struct renewal *r)
{
    gr_budget_return(p->budget, r->borrowed);
    gr_halo_layers_fini(&r->next_layers);
    gr_messages_fini(&r->next_messages);
}

/* Replace the message buffers in use by the new ones, and carry over the counters. */
static void replace_messages(struct gr_partition *p, struct renewal *r)
{
    struct gr_messages *next = &r->next_messages;

    for (int32_t i = 0; i < GR_DIRECTIONS * r->layers->n_layers; i++) {
        const int32_t               slot = i % (GR_DIRECTIONS * p->n_layers);
        const struct gr_halo_layer *layer =
            gr_halo_layers_find(r->layers, i / GR_DIRECTIONS, (enum gr_direction)(i % GR_DIRECTIONS));

        if (layer != NULL && layer->history.oldest > p->oldest[slot]) p->oldest[slot] = layer->history.oldest;
    }
    gr_halo_layers_forget(r->layers);
    gr_messages_add_seconds(r->messages, &next->wait_seconds, &next->exchange_seconds);
    gr_halo_layers_add_seconds(r->layers, &next->wait_seconds, &next->exchange_seconds);
    gr_halo_layers_fini(r->layers);
    gr_messages_fini(r->messages);
    *r->messages = r->next_messages;
    *r->layers = r->next_layers;
    r->next_messages = (struct gr_messages){ 0 };
    r->next_layers = (struct gr_halo_layers){ 0 };
}

static int32_t make_renewals(const struct gr_partition *p, struct renewal *list, int32_t n, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t i = 0; i < n; i++) {
        const int32_t here = init_renewal(p, &list[i], error);

        if (rc == GRAFT_OK) rc = here;
    }
    for (int32_t i = 0; i < n; i++)
        if (rc == GRAFT_OK) rc = reserve_renewal(p, &list[i], error);
    return rc;
}

static int32_t renew_messages(struct gr_partition *p, graft_error *error)
{
    struct renewal *list = NULL;
    int32_t         rc = GR_NEW(p->context, list, p->n_layers + 3, error), n = 0;

    GR_TRY(gr_comm_agree(p->comm, rc, error));
    n = list_renewals(p, list);
    rc = gr_comm_agree(p->comm, make_renewals(p, list, n, error), error);
    for (int32_t i = 0; i < n && rc == GRAFT_OK; i++) replace_messages(p, &list[i]);
done:
    for (int32_t i = 0; i < n; i++) renewal_fini(p, &list[i]);
    gr_free(p->context, list);
    gr_partition_charge(p, p->budget);
    if (rc < 0) return rc;
    if (p->needs_rows) gr_halo_rows_weigh(&p->halo_rows, p->part);
    gr_traffic_begin(p); /* its counts depend on the replaced messages */
    p->is_stale = gr_halo_options(p->context)->staleness > 0;
    p->is_adapted = 0;
    p->traced = 0;
    p->drift = 0;
    return GRAFT_OK;
}

/* Options of stale rows and adaptive widths that need no new message buffers. */
static void read_layer_options(struct gr_partition *p, struct gr_halo_layers *layers)
{
    layers->smoothing = p->options.smoothing;
    layers->budget = p->options.budget;
}

int32_t gr_partition_renew(struct gr_partition *p, graft_error *error)
{
    const struct gr_halo_options *now = gr_halo_options(p->context);
    int32_t                       rc = GRAFT_OK;

    GR_TRY(gr_partition_check(p, now, error));
    if (p->gathers_from < p->n_layers && needs_messages(now, &p->options)) GR_TRY(renew_messages(p, error));
    if (memcmp(&now->budget, &p->options.budget, sizeof now->budget) != 0) p->is_adapted = 0;
    p->options = *now;
    if (p->plan != NULL) read_layer_options(p, &p->plan->layers);
    for (int32_t l = 0; l < p->n_layers; l++)
        if (p->masked[l].plan != NULL) read_layer_options(p, &p->masked[l].plan->layers);
    if (p->shared != NULL) read_layer_options(p, &p->shared->transpose.layers);
    read_layer_options(p, &p->halo_rows.layers);
done:
    return rc;
}
