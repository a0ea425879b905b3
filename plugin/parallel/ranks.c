/* Begins and ends steps over ranks. The ranks agree on local failures before the next collective operation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/ranks.h"

#include "adaptive/adapt.h"
#include "parallel/columns.h"
#include "parallel/traffic.h"

#include <math.h>

/* Read the options that can change without new messages. */
static void read_halo_options(struct gr_ranks *r)
{
    const struct gr_halo_options *halo = gr_halo_options(r->context);

    r->stale.sync_every = (int64_t)halo->staleness.number[0];
    r->adapt.every = (int64_t)halo->budget.number[1];
}

int32_t gr_parallel_init(struct gr_ranks *r, const struct gr_strategy_ops *ops, const struct gr_strategy_wish *wish,
                         graft_error *error)
{
    const struct gr_config *config = gr_run_config(wish->run);
    const int64_t           slots = GR_DIRECTIONS * (int64_t)config->n_layers;

    *r = (struct gr_ranks){ .base = { .ops = ops },
                            .wish = *wish,
                            .context = wish->run->context,
                            .comm = wish->over->comm,
                            .n_layers = config->n_layers,
                            .gathers_from = config->gathers_from };
    r->options = *gr_halo_options(r->context);
    r->stale.is_on = wish->trains && r->options.staleness.word == GR_HALO_STALE; /* otherwise no rows are in flight */
    read_halo_options(r);
    GR_TRY(GR_BUDGET_NEW(wish->budget, GR_USE_MESSAGES, r->traffic.sent, slots + 1, error));
    return GR_BUDGET_NEW(wish->budget, GR_USE_MESSAGES, r->traffic.pairs, slots * r->comm->n_ranks, error);
}

void gr_parallel_fini(struct gr_ranks *r)
{
    gr_parallel_plans_fini(r);
    gr_halo_rows_fini(r->comm, &r->halo_rows);
}

int32_t gr_parallel_exchange_rows(struct gr_ranks *r, const struct gr_halo *halo, const int64_t *width,
                                  graft_error *error)
{
    int32_t rc = gr_halo_rows_init(r->context, r->comm, halo, width, r->n_layers, &r->halo_rows, error);

    gr_parallel_charge(r);
    return rc;
}

int32_t gr_parallel_reserve_sums(struct gr_ranks *r, graft_error *error)
{
    const struct gr_run *run = r->wish.run;

    if (r->wish.trains)
        GR_TRY(gr_comm_reserve(r->comm, (uint64_t)run->model->parameters.n_weights * sizeof(float), error));
    if (run->space.n_column_sums > 0)
        return gr_comm_reserve(r->comm, (uint64_t)run->space.n_column_sums * sizeof(double), error);
    return GRAFT_OK;
}

/* Adopt changed options, and assign adaptive widths from the traced steps, if it is time. The limit of bytes includes
 * the rows of labels, which have no adaptive widths. */
int32_t gr_parallel_prepare_step(struct gr_strategy *strategy, struct gr_run *run, graft_error *error)
{
    struct gr_ranks *const       r = gr_parallel_of(strategy);
    const int32_t                slots = GR_DIRECTIONS * r->n_layers;
    const struct gr_halo_layers *layers;
    struct gr_halo_layer        *layer[GR_DIRECTIONS * GR_LAYERS_MAX];
    const double                 begin = gr_profile_begin(&run->profile);

    GR_TRY(gr_parallel_renew(r, error));
    read_halo_options(r);
    if (r->gathers_from == r->n_layers || r->adapt.traced == 0) return GRAFT_OK;
    if (r->adapt.is_adapted && (r->adapt.every == 0 || r->adapt.traced < r->adapt.every)) return GRAFT_OK;
    layers = gr_parallel_plans_layers(r, r->gathers_from);
    if (!layers->adaptive[GR_FORWARD] && !layers->adaptive[GR_BACKWARD]) return GRAFT_OK;
    for (int32_t i = 0; i < slots; i++) layer[i] = gr_parallel_plans_exchange(r, i);
    GR_TRY(gr_adaptive_set_widths(layers, layer, slots,
                                  layers->adaptive[GR_FORWARD] ? gr_parallel_traffic_label_bytes(r, -1) : 0, error));
    r->adapt.is_adapted = 1;
    r->adapt.traced = 0;
    gr_profile_end_alone(&run->profile, "adapt", begin);
    return GRAFT_OK;
}

void gr_parallel_begin_step(struct gr_strategy *strategy, int64_t epoch)
{
    struct gr_ranks *r = gr_parallel_of(strategy);

    gr_parallel_traffic_begin(r);
    r->stale.synchronous = r->stale.sync_every > 0 && epoch % r->stale.sync_every == 0;
}

/* Whether a forward pass of this step used fresh rows. */
static int used_fresh_rows(const struct gr_ranks *r, int64_t epoch)
{
    int fresh = 0;

    for (int32_t i = GR_FORWARD; i < gr_parallel_plans_count_exchanges(r); i += GR_DIRECTIONS) {
        const struct gr_halo_layer *layer = gr_parallel_plans_exchange(r, i);

        if (layer == NULL || !layer->history.was_used || layer->history.used_epoch != epoch) continue;
        fresh |= layer->history.age == 0;
    }
    return fresh;
}

/* Remove the exchanges of the last step from the sums for adaptive widths, because the step will be repeated. Exchanges
 * of stale rows are not repeated: a repeated step uses the stored rows and drift of the last step. */
static void undo_exchanges(struct gr_ranks *r)
{
    for (int32_t i = 0; i < gr_parallel_plans_count_exchanges(r); i++) {
        struct gr_halo_layer *layer = gr_parallel_plans_exchange(r, i);

        if (layer != NULL && layer->is_adaptive && !layer->is_stale)
            gr_halo_row_bits_undo_epoch(&layer->bits, layer->rows);
    }
}

int32_t gr_parallel_end_step(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);
    double           sums[4] = { *loss };

    for (int32_t i = 0; i < gr_parallel_plans_count_exchanges(r); i++) {
        const struct gr_halo_layer *layer = gr_parallel_plans_exchange(r, i);

        for (int k = 0; k < 2 && layer != NULL; k++) sums[1 + k] += layer->history.drift[k];
    }
    sums[3] = gr_context_check_cancel(r->context, error) < 0;
    GR_TRY(gr_comm_sum_f64(r->comm, sums, 4, error));
    if (sums[3] > 0) {
        undo_exchanges(r);
        return gr_comm_agree(r->comm, GRAFT_OK, error);
    }
    *loss = sums[0];
    r->adapt.traced++;
    for (int32_t i = 0; i < gr_parallel_plans_count_exchanges(r); i++) {
        struct gr_halo_layer *layer = gr_parallel_plans_exchange(r, i);

        if (layer != NULL) gr_halo_history_clear_drift(&layer->history);
    }
    r->base.waited = r->stale.is_on && used_fresh_rows(r, epoch);
    r->stale.n_synchronous += r->base.waited;
    r->base.drift = sums[2] > 0 ? sqrt(sums[1] / sums[2]) : 0;
    return GRAFT_OK;
}

void gr_parallel_forget(struct gr_strategy *strategy, int undoes)
{
    struct gr_ranks       *r = gr_parallel_of(strategy);
    struct gr_halo_layers *list[GR_LAYERS_MAX + 3];
    const int32_t          n = gr_parallel_plans_list_layers(r, list);

    for (int32_t i = 0; i < n; i++) gr_halo_layers_forget(list[i]);
    r->base.drift = 0;
    if (!undoes) return;
    for (int32_t i = 0; i < gr_parallel_plans_count_exchanges(r); i++) {
        struct gr_halo_layer *layer = gr_parallel_plans_exchange(r, i);

        if (layer != NULL) layer->bits.is_counting = 0; /* widths must not depend on epochs that were not finite */
    }
    r->adapt.traced = 0;
}

void gr_parallel_reset(struct gr_ranks *r)
{
    struct gr_halo_layers *list[GR_LAYERS_MAX + 3];
    const int32_t          n = gr_parallel_plans_list_layers(r, list);

    for (int32_t i = 0; i < n; i++) gr_halo_layers_reset(list[i]);
    if (r->exchanges_rows) gr_halo_rows_weigh(&r->halo_rows, r->graph.part);
    r->adapt.is_adapted = 0;
    r->adapt.traced = 0;
}

int32_t gr_parallel_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error)
{
    return gr_comm_sum_f64(gr_parallel_of(strategy)->comm, values, count, error);
}

int32_t gr_parallel_sum_gradients(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error)
{
    return gr_comm_sum_f32(gr_parallel_of(strategy)->comm, values, count, error);
}

int32_t gr_parallel_agree(struct gr_strategy *strategy, int32_t rc, graft_error *error)
{
    return gr_comm_agree(gr_parallel_of(strategy)->comm, rc, error);
}

/* Let stale rows progress, which are in flight between steps: some transports need calls for that. 1000 calls per
 * second are enough. */
static void poll_layers(struct gr_ranks *r)
{
    const double now = r->stale.is_on ? gr_seconds() : 0;

    if (now - r->stale.polled < 1e-3) return;
    r->stale.polled = now;
    for (int32_t i = 0; i < gr_parallel_plans_count_exchanges(r); i++) {
        struct gr_halo_layer *layer = gr_parallel_plans_exchange(r, i);

        if (layer != NULL && layer->history.in_flight) gr_comm_framed_poll(&layer->history.messages.framed);
    }
}

void gr_parallel_poll(void *strategy)
{
    struct gr_ranks *r = strategy;

    if (r->halo_rows.begun) gr_comm_framed_poll(&r->halo_rows.exchange.messages->framed);
    else if (r->moving != NULL) gr_comm_framed_poll(&r->moving->framed);
    else poll_layers(r);
}
