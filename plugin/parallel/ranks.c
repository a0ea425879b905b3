/* A trainer over ranks: each has the rows of the vertices it owns, and the weights, which are the same on all. What
 * a rank can fail in alone is agreed on before the ranks do the next thing together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/adapt.h"
#include "base/crc.h"
#include "base/parallel.h"
#include "model/model.h"
#include "spmm/plan.h"

#include <math.h>
#include <string.h>

int32_t gr_ranks_agree(const graft_trainer *t, int32_t rc, graft_error *error)
{
    return t->over != NULL ? gr_comm_agree(t->over->comm, rc, error) : rc;
}

int32_t gr_ranks_fail(const graft_trainer *t, int32_t rc, graft_error *error)
{
    if (t->over == NULL || rc >= 0 || rc == GRAFT_ERR_PEER) return rc;
    return gr_comm_fail(t->over->comm, error);
}

int32_t gr_ranks_sum(const graft_trainer *t, double *values, int64_t count, graft_error *error)
{
    return t->over != NULL ? gr_comm_sum_f64(t->over->comm, values, count, error) : GRAFT_OK;
}

int32_t gr_ranks_sum_gradients(const graft_trainer *t, graft_error *error)
{
    return t->over != NULL ? gr_comm_sum_f32(t->over->comm, t->gradients, t->n_weights, error) : GRAFT_OK;
}

int32_t gr_ranks_any(const graft_trainer *t, int *here, graft_error *error)
{
    int64_t value = *here;
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(gr_comm_max(t->over->comm, &value, 1, error));
    *here = value != 0;
done:
    return rc;
}

static uint64_t digest_of(graft_trainer *t)
{
    graft_error      error = { .size = sizeof error };
    graft_state_item item = { .size = sizeof item };
    uint32_t         crc = 0;

    for (int32_t i = 0; gr_trainer_state_item(t, i, &item, &error) == GRAFT_OK; i++) {
        const int64_t elements = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        crc = gr_crc(crc, item.data, (uint64_t)elements * (item.dtype == GRAFT_F32 ? 4 : 8));
    }
    return crc;
}

/* Rows of the epochs so far are those of other weights. */
static void forget_epochs(graft_trainer *t)
{
    struct gr_ranks *r = &t->ranks;

    if (r->plan != NULL) gr_halo_layers_forget(&r->plan->layers);
    for (int32_t l = 0; l < t->config.n_layers; l++)
        if (r->masked[l].plan != NULL) gr_halo_layers_forget(&r->masked[l].plan->layers);
    gr_halo_layers_forget(&r->halo_rows.layers);
    r->drift = 0;
}

int32_t gr_ranks_compare_state(graft_trainer *t, graft_error *error)
{
    static const char *const names[] = { "the number of epochs behind", "whether state_set() was called",
                                         "the state (by its CRC32C) after state_set()" };
    int32_t                  rc = GRAFT_OK;

    if (t->over == NULL || t->over->comm->n_ranks == 1) return GRAFT_OK;
    GR_TRY(gr_comm_compare(t->over->comm, names,
                           (const uint64_t[]){ (uint64_t)t->progress.epoch, (uint64_t)t->state_is_set,
                                               t->state_is_set ? digest_of(t) : 0 },
                           3, error));
    if (t->state_is_set) forget_epochs(t);
    t->state_is_set = 0;
done:
    return rc;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t crc_of(const char *text)
{
    return gr_crc(0, text, strlen(text));
}

/* Options that are the same if they are the same words. */
static const struct {
    const char       *name;
    enum gr_option_id id;
} words[] = {
    { "option norm", GR_OPTION_NORM },
    { "option optimizer", GR_OPTION_OPTIMIZER },
    { "option weight_decay_layers", GR_OPTION_WEIGHT_DECAY_LAYERS },
    { "option symmetrize", GR_OPTION_SYMMETRIZE },
    { "option order", GR_OPTION_ORDER },
    { "option row_masks", GR_OPTION_ROW_MASKS },
    { "option normalize_features", GR_OPTION_NORMALIZE_FEATURES },
    { "option reuse_input", GR_OPTION_REUSE_INPUT },
    { "option sparse_input", GR_OPTION_SPARSE_INPUT },
    { "option recompute", GR_OPTION_RECOMPUTE },
    { "option mxm.kernel", GR_OPTION_MXM_KERNEL },
    { "option dense.module", GR_OPTION_DENSE_MODULE },
    { "option dense.type", GR_OPTION_DENSE_TYPE },
    { "option strict", GR_OPTION_STRICT },
    { "option halo.bits_evaluation", GR_OPTION_HALO_BITS_EVALUATION },
};

enum { WORDS = sizeof words / sizeof words[0], BESIDES = 5 };

struct items {
    int32_t     count;
    const char *names[GR_COMPARE_MAX], *texts[GR_COMPARE_MAX];
    uint64_t    values[GR_COMPARE_MAX];
};

static void add(struct items *items, const char *name, uint64_t value, const char *text)
{
    items->names[items->count] = name;
    items->values[items->count] = value;
    items->texts[items->count++] = text;
}

/* Options that may be written in several ways: the same if they come to the same. */
static void add_values(const graft_trainer *t, struct items *items)
{
    const struct gr_config *c = &t->config;
    const struct {
        const char       *name;
        enum gr_option_id id;
        uint64_t          value;
    } values[] = {
        { "option layers", GR_OPTION_LAYERS, (uint64_t)c->n_layers },
        { "option heads", GR_OPTION_HEADS, (uint64_t)c->heads },
        { "option epochs", GR_OPTION_EPOCHS, (uint64_t)c->epochs },
        { "option eval_every", GR_OPTION_EVAL_EVERY, (uint64_t)c->eval_every },
        { "option lr", GR_OPTION_LR, bits_of(c->lr) },
        { "option dropout", GR_OPTION_DROPOUT, bits_of(c->dropout) },
        { "option input_dropout", GR_OPTION_INPUT_DROPOUT, bits_of(c->input_dropout) },
        { "option label_rate", GR_OPTION_LABEL_RATE, bits_of(c->label_rate) },
        { "option weight_decay", GR_OPTION_WEIGHT_DECAY, bits_of(c->weight_decay) },
        { "option momentum", GR_OPTION_MOMENTUM, bits_of(c->momentum) },
        { "option gin_eps", GR_OPTION_GIN_EPS, bits_of(c->gin_eps) },
        { "option seed", GR_OPTION_SEED, c->seed },
        { "option self_loops", GR_OPTION_SELF_LOOPS, (uint64_t)c->self_loops },
    };

    _Static_assert(sizeof values / sizeof values[0] + WORDS + BESIDES <= GR_COMPARE_MAX, "there is room for all");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        add(items, values[i].name, values[i].value, gr_option_text(t->context, values[i].id));
}

static void add_words(const graft_trainer *t, struct items *items)
{
    for (size_t i = 0; i < WORDS; i++) {
        const char *text = gr_option_text(t->context, words[i].id);

        add(items, words[i].name, crc_of(text), text);
    }
}

/* All that must be the same for ranks to train one model. */
static int32_t compare_options(const graft_trainer *t, graft_error *error)
{
    const struct gr_config *c = &t->config;
    const char             *model = gr_option_text(t->context, GR_OPTION_MODEL);
    const char             *hidden = gr_option_text(t->context, GR_OPTION_HIDDEN);
    struct items            items = { 0 };

    add(&items, "the number of features", (uint64_t)t->data.n_features, NULL);
    add(&items, "the number of classes", (uint64_t)t->data.n_classes, NULL);
    add(&items, "option model", crc_of(model), model);
    add(&items, "the loss", (uint64_t)c->sigmoid, c->sigmoid ? "sigmoid" : "softmax");
    add_values(t, &items);
    add(&items, "option hidden", gr_crc(0, c->width, (uint64_t)(c->n_layers + 1) * sizeof c->width[0]), hidden);
    add_words(t, &items);
    return gr_comm_compare_texts(t->over->comm, items.names, items.values, items.texts, items.count, error);
}

/* With loss "auto", targets make it a sigmoid; a rank that has no rows to give goes by those that have. */
static int32_t settle_loss(graft_trainer *t, graft_error *error)
{
    const int has_rows = t->over->n_slice > 0;
    int       sigmoid = has_rows && t->config.sigmoid;
    int32_t   rc = GRAFT_OK;

    GR_TRY(gr_ranks_any(t, &sigmoid, error));
    if (!has_rows && gr_option_is(t->context, GR_OPTION_LOSS, "auto")) t->config.sigmoid = sigmoid;
done:
    return rc;
}

/* When steps wait for their own rows, and when bits are decided on. */
static void read_waits(graft_trainer *t)
{
    t->ranks.is_async = gr_option_is(t->context, GR_OPTION_HALO_ASYNC, "yes");
    t->ranks.sync_every = gr_option_integer(t->context, GR_OPTION_HALO_SYNC_EVERY);
    t->ranks.drift_limit = gr_option_number(t->context, GR_OPTION_HALO_DRIFT_LIMIT);
    t->ranks.adapt_every = gr_option_integer(t->context, GR_OPTION_HALO_ADAPT_EVERY);
}

int32_t gr_ranks_compare(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(settle_loss(t, error));
    GR_TRY(compare_options(t, error));
    GR_TRY(gr_wire_compare(t->context, t->over->comm, error));
    GR_TRY(gr_lanes_compare(t->context, t->over->comm, error));
    if (t->over->comm->rank == 0) gr_wire_tell_idle(t->context);
    read_waits(t);
done:
    return rc;
}

/* Whether rows travel as they are in what the trainer does now. */
static int32_t is_exact(const graft_trainer *t)
{
    return t->pass_now == GRAFT_PASS_EVALUATION && gr_option_is(t->context, GR_OPTION_HALO_BITS_EVALUATION, "32");
}

graft_plan *gr_ranks_step_plan(const graft_trainer *t, int32_t l)
{
    return t->layers[l].masked_plan != NULL ? t->layers[l].masked_plan : t->ranks.plan;
}

static const struct gr_halo_layers *layers_of(const graft_trainer *t, int32_t l)
{
    return t->config.kind == GR_MODEL_GAT ? &t->ranks.halo_rows.layers : &gr_ranks_step_plan(t, l)->layers;
}

struct gr_halo_layer *gr_ranks_halo_layer(const graft_trainer *t, int32_t l, enum gr_direction direction)
{
    return t->config.kind != GR_MODEL_MLP ? gr_halo_layers_find(layers_of(t, l), l, direction) : NULL;
}

int32_t gr_ranks_adapt(graft_trainer *t, graft_error *error)
{
    struct gr_ranks      *r = &t->ranks;
    struct gr_halo_layer *layer[GR_DIRECTIONS * GR_LAYERS_MAX];
    const double          begin = gr_profile_begin(t);
    int64_t               labels; /* bytes */
    int32_t               rc = GRAFT_OK;

    if (t->over == NULL || t->config.kind == GR_MODEL_MLP || r->traced == 0) return GRAFT_OK;
    if (r->is_adapted && (r->adapt_every == 0 || r->traced < r->adapt_every)) return GRAFT_OK;
    if (!layers_of(t, 0)->adaptive[GR_FORWARD] && !layers_of(t, 0)->adaptive[GR_BACKWARD]) return GRAFT_OK;
    for (int32_t i = 0; i < GR_DIRECTIONS * t->config.n_layers; i++)
        layer[i] = gr_ranks_halo_layer(t, i / GR_DIRECTIONS, (enum gr_direction)(i % GR_DIRECTIONS));
    labels = layers_of(t, 0)->adaptive[GR_FORWARD] ? gr_traffic_label_bytes(t, -1) : 0;
    GR_TRY(gr_adapt(layers_of(t, 0), layer, GR_DIRECTIONS * t->config.n_layers, labels, error));
    r->is_adapted = 1;
    r->traced = 0;
    gr_profile_end_alone(t, "adapt", begin);
done:
    return rc;
}

void gr_ranks_begin_step(graft_trainer *t)
{
    struct gr_ranks *r = &t->ranks;

    gr_traffic_begin(t);
    r->traced++;
    r->waits = (r->sync_every > 0 && t->progress.epoch % r->sync_every == 0) ||
               (r->drift_limit > 0 && r->drift > r->drift_limit);
}

/* Whether a forward pass of this step had rows of its own. */
static int has_waited(const graft_trainer *t)
{
    int waited = 0;

    for (int32_t l = 0; l < t->config.n_layers; l++) {
        const struct gr_halo_layer *layer = gr_ranks_halo_layer(t, l, GR_FORWARD);

        if (layer == NULL || !layer->history.was_used || layer->history.used_epoch != t->progress.epoch) continue;
        waited |= layer->history.age == 0;
    }
    return waited;
}

int32_t gr_ranks_end_step(graft_trainer *t, double *loss, graft_error *error)
{
    double  sums[3] = { *loss };
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    for (int32_t i = 0; i < GR_DIRECTIONS * t->config.n_layers; i++) {
        struct gr_halo_layer *layer = gr_ranks_halo_layer(t, i / GR_DIRECTIONS, (enum gr_direction)(i % GR_DIRECTIONS));

        if (layer != NULL) gr_history_take_drift(&layer->history, &sums[1]);
    }
    GR_TRY(gr_comm_sum_f64(t->over->comm, sums, 3, error));
    *loss = sums[0];
    t->ranks.has_waited = t->ranks.is_async && has_waited(t);
    t->ranks.waited += t->ranks.has_waited;
    t->ranks.drift = sums[2] > 0 ? sqrt(sums[1] / sums[2]) : 0;
done:
    return rc;
}

/* The parts of a phase, up to where rows were sent. */
static void sent_parts(const graft_trainer *t, const struct gr_exchange *pass, double begin)
{
    if (pass->settled_at > 0) gr_profile_part(t, "wait", begin, pass->settled_at, 1);
    gr_profile_part(t, "pack", pass->settled_at > 0 ? pass->settled_at : begin, pass->sent_at, 0);
}

int32_t gr_ranks_halo_begin(graft_trainer *t, enum gr_direction direction, float *x, int64_t width, double begin,
                            graft_error *error)
{
    const struct gr_halo_pass pass = { .direction = direction,
                                       .layer = t->layer_now,
                                       .exact = is_exact(t),
                                       .apart = t->pass_now == GRAFT_PASS_EVALUATION,
                                       .waits = t->ranks.waits,
                                       .epoch = t->progress.epoch,
                                       .n_owned = t->n,
                                       .width = width,
                                       .x = x };
    struct gr_halo_rows      *rows = &t->ranks.halo_rows;
    int32_t                   rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(gr_halo_rows_begin(rows, &pass, gr_profile_team(t), error));
    gr_traffic_count(t, &rows->exchange, rows->flow, (int32_t)direction);
    sent_parts(t, &rows->exchange, begin);
done:
    return rc;
}

int32_t gr_ranks_halo_end(graft_trainer *t, double local, graft_error *error)
{
    struct gr_halo_rows *rows = &t->ranks.halo_rows;
    const double         computed = gr_profile_begin(t);
    int32_t              rc = GRAFT_OK;

    if (!rows->begun) return GRAFT_OK;
    GR_TRY(gr_halo_rows_end(rows, gr_profile_team(t), error));
    gr_profile_part(t, "local", local > 0 ? local : rows->exchange.sent_at, computed, 0);
    gr_profile_part(t, "wait", computed, rows->exchange.received_at, 1);
    gr_profile_part(t, "unpack", rows->exchange.received_at, 0, 0);
done:
    return rc;
}

/* Rows that are on their way between epochs move where there is a call for it: some transports do nothing on their own.
 * A thousand times in a second will do. */
void gr_ranks_poll(void *trainer)
{
    graft_trainer *t = trainer;
    const double   now = t->ranks.is_async ? gr_seconds() : 0;

    if (now - t->ranks.polled < 1e-3) return;
    t->ranks.polled = now;
    for (int32_t i = 0; i < GR_DIRECTIONS * t->config.n_layers; i++) {
        struct gr_halo_layer *layer = gr_ranks_halo_layer(t, i / GR_DIRECTIONS, (enum gr_direction)(i % GR_DIRECTIONS));

        if (layer != NULL && layer->history.in_flight) gr_messages_poll(&layer->history.messages);
    }
}

struct gr_team gr_ranks_team(const graft_trainer *t)
{
    const struct gr_halo_rows *rows = &t->ranks.halo_rows;
    struct gr_team             team = gr_profile_team(t);

    if (!rows->begun) return team;
    team.poll = gr_messages_poll;
    team.poll_arg = rows->exchange.messages;
    return team;
}

/* Room for the rows of a plan, so many columns wide; and for those of a layer, if there is one. */
static int32_t reserve_plan(const graft_trainer *t, graft_plan *plan, int32_t layer, int64_t width, graft_error *error)
{
    const int32_t n_ranks = t->over->comm->n_ranks;
    const int64_t rows[] = { plan->rows[GR_RECEIVE].start[n_ranks], plan->rows[GR_SEND].start[n_ranks] };
    const int64_t packed = gr_messages_need(&plan->messages, rows, width, GRAFT_F32) +
                           gr_halo_layers_need(&plan->layers, layer, width, GRAFT_F32);
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_ledger_check(t, 4.0 * (double)(rows[0] + rows[1]) * (double)width + (double)packed,
                           "messages (rows of others)", error));
    rc = gr_plan_reserve(plan, layer, width, GRAFT_F32, error);
done:
    return rc;
}

int32_t gr_ranks_reserve(const graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(gr_comm_reserve(t->over->comm, (uint64_t)t->n_weights * sizeof *t->gradients, error));
    for (int32_t l = 0; l < t->config.n_layers && t->ranks.plan != NULL; l++) {
        const struct gr_layer *layer = &t->layers[l];
        const int64_t          labels = l == 0 && gr_propagates(t) ? t->data.n_classes : 0;
        const int64_t          columns = layer->aggregate_first ? layer->in : layer->out;
        const int64_t          width = columns > labels ? columns : labels;

        GR_TRY(reserve_plan(t, t->ranks.plan, -1, width, error));
        if (layer->masked_plan != NULL) GR_TRY(reserve_plan(t, layer->masked_plan, -1, width, error));
        GR_TRY(reserve_plan(t, gr_ranks_step_plan(t, l), l, columns, error));
    }
done:
    return rc;
}

int64_t gr_ranks_message_bytes(const graft_trainer *t)
{
    const struct gr_ranks *r = &t->ranks;
    int64_t                bytes = r->plan != NULL ? gr_plan_bytes(r->plan) : 0;

    if (t->over == NULL) return 0;
    for (int32_t l = 0; l < t->config.n_layers; l++)
        if (r->masked[l].plan != NULL) bytes += gr_plan_bytes(r->masked[l].plan);
    return bytes + gr_halo_rows_bytes(&r->halo_rows, t->over->comm->n_ranks) + gr_links_bytes(&r->links);
}

void gr_ranks_fini(graft_trainer *t)
{
    if (t->over == NULL) return;
    gr_ranks_graph_fini(t);
    gr_graph_destroy(t->over);
}

/* Rows of a sum, without gaps unless x says so. */
static graft_dense rows_of(const float *data, int64_t n_rows, int64_t width, int64_t stride)
{
    return (graft_dense){ .size = sizeof(graft_dense),
                          .dtype = GRAFT_F32,
                          .n_rows = n_rows,
                          .n_cols = width,
                          .stride = stride,
                          .data = (void *)(uintptr_t)data };
}

int32_t gr_ranks_gather(const graft_trainer *t, const struct gr_layer *layer, const struct gr_sum *sum,
                        graft_error *error)
{
    graft_plan *const          plan = sum->way == GR_GATHER_ALL ? t->ranks.plan : layer->plan;
    const struct gr_exchange  *pass = &plan->product.exchange;
    const int                  back = sum->way == GR_SCATTER;
    const int32_t              exact = sum->way == GR_GATHER_ALL || is_exact(t); /* what is kept is made once */
    const int                  apart = exact || sum->way == GR_GATHER_LABELS || t->pass_now == GRAFT_PASS_EVALUATION;
    const graft_csr           *local = &plan->part->local;
    const int64_t              n_out = back ? local->n_cols : local->n_rows;
    const graft_dense          x = rows_of(sum->x.data, sum->x.rows, sum->width, sum->x.stride);
    const graft_dense          out = rows_of(sum->out, n_out, sum->width, sum->width);
    const graft_aggregate_args args = { .size = sizeof args,
                                        .semiring = GRAFT_PLUS_TIMES,
                                        .flags = (back ? GRAFT_AGGREGATE_TRANSPOSE : 0) |
                                                 (sum->add ? GRAFT_AGGREGATE_ACCUMULATE : 0) |
                                                 (exact ? GRAFT_AGGREGATE_EXACT : 0) |
                                                 (apart ? GRAFT_AGGREGATE_APART : 0) |
                                                 (t->ranks.waits ? GRAFT_AGGREGATE_WAIT : 0),
                                        .layer = t->layer_now,
                                        .epoch = t->progress.epoch,
                                        .threads = t->threads,
                                        .x = &x,
                                        .out = &out,
                                        .row_scale = sum->scale,
                                        .times = gr_profile_team(t).times };
    const double               entries = (double)(gr_csr_entries(local) + gr_csr_entries(&plan->part->remote));
    const double               begin = gr_profile_begin(t);
    int32_t                    rc = GRAFT_OK;

    GR_TRY(gr_spmm_begin(plan, &args, error));
    GR_TRY(gr_spmm_end(plan, error));
    gr_traffic_count(t, pass, plan->flow, back);
    sent_parts(t, pass, begin);
    gr_profile_part(t, "local", pass->sent_at, plan->product.computed_at, 0);
    gr_profile_part(t, "wait", plan->product.computed_at, pass->received_at, 1);
    gr_profile_part(t, "unpack", pass->received_at, 0, 0);
    gr_profile_end(t, "aggregate", begin, 4 * ((entries + (double)n_out) * (double)sum->width + entries),
                   entries * (double)sum->width);
done:
    return rc;
}
