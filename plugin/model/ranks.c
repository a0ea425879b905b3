/* A trainer over ranks: each has the rows of the vertices it owns, and the weights, which are the same on all. What
 * a rank can fail in alone is agreed on before the ranks do the next thing together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "aggregate/plan.h"
#include "base/crc.h"
#include "base/parallel.h"
#include "edge/edge.h"
#include "model/model.h"

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

/* A number that is the same for the same widths. */
static uint64_t widths_of(const struct gr_config *config)
{
    uint64_t sum = 0;

    for (int32_t l = 0; l <= config->n_layers; l++) sum = sum * 1000003 + (uint64_t)config->width[l];
    return sum;
}

/* What one process can do, and ranks cannot. */
static int32_t check_options(const graft_trainer *t, graft_error *error)
{
    if (t->config.symmetrize)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "option 'symmetrize' is yes, and a graph over ranks is taken as it is; give the slices each edge "
            "in both directions");
    if (strcmp(t->config.order, "given") != 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'order' is %s, and vertices over ranks keep the order they have; expected given",
                       t->config.order);
    return GRAFT_OK;
}

/* All that must be the same for ranks to train one model. */
static int32_t compare_options(const graft_trainer *t, graft_error *error)
{
    const struct gr_config *c = &t->config;
    const struct {
        const char *name;
        uint64_t    value;
    } items[] = {
        { "the number of features", (uint64_t)t->data.n_features },
        { "the number of classes", (uint64_t)t->data.n_classes },
        { "option model", (uint64_t)c->kind },
        { "option layers", (uint64_t)c->n_layers },
        { "the widths of layers", widths_of(c) },
        { "option heads", (uint64_t)c->heads },
        { "option epochs", (uint64_t)c->epochs },
        { "option eval_every", (uint64_t)c->eval_every },
        { "option lr", bits_of(c->lr) },
        { "option dropout", bits_of(c->dropout) },
        { "option input_dropout", bits_of(c->input_dropout) },
        { "option weight_decay", bits_of(c->weight_decay) },
        { "option weight_decay_layers", (uint64_t)c->decay_first_only },
        { "option momentum", bits_of(c->momentum) },
        { "option gin_eps", bits_of(c->gin_eps) },
        { "option norm", (uint64_t)c->norm },
        { "option optimizer", (uint64_t)c->adam },
        { "the loss", (uint64_t)c->sigmoid },
        { "option self_loops", (uint64_t)c->self_loops },
        { "option normalize_features", (uint64_t)c->normalize_features },
        { "option reuse_input", (uint64_t)c->reuse_input },
        { "option sparse_input", (uint64_t)c->sparse_input },
        { "option recompute", (uint64_t)c->recompute },
        { "option seed", c->seed },
    };
    enum { COUNT = sizeof items / sizeof items[0] };
    const char *names[COUNT];
    uint64_t    values[COUNT];

    for (int i = 0; i < COUNT; i++) {
        names[i] = items[i].name;
        values[i] = items[i].value;
    }
    return gr_comm_compare(t->over->comm, names, values, COUNT, error);
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

int32_t gr_ranks_compare(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(settle_loss(t, error));
    GR_TRY(compare_options(t, error));
    rc = gr_ranks_agree(t, check_options(t, error), error);
done:
    return rc;
}

/* The owned part of the graph, with self loops if they are asked for. */
static int32_t make_part(graft_trainer *t, graft_error *error)
{
    struct gr_ranks *r = &t->ranks;
    int32_t          rc = GRAFT_OK;

    r->part = t->over->part;
    if (t->config.self_loops) {
        GR_TRY(gr_csr_add_self_loops(t->context, &t->over->part.local, &r->looped, error));
        r->part.local = r->looped.view;
    }
    rc = gr_model_scales(t, &r->part.local, &r->part.remote, error);
done:
    return rc;
}

/* For gat, entries of all owned rows as one matrix, whose columns are the owned vertices and those of the halo behind
 * them. */
static int32_t make_joined(graft_trainer *t, graft_error *error)
{
    const struct gr_part *part = &t->ranks.part;
    const graft_csr      *parts[] = { &part->local, &part->remote };
    const graft_csr       like = { .size = sizeof like, .index_type = GRAFT_I32 };
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);
    struct gr_csr         joined = { 0 };
    int64_t               at = 0;

    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    if (t->n_seen > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "%lld vertices and %lld of other ranks are too many for gat",
                       (long long)t->n, (long long)part->halo.count);
    GR_TRY(gr_csr_init(t->context, &joined, &like, t->n, t->n_seen, entries, error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRAPH, t->ranks.kind, t->n_seen, error));
    memset(t->ranks.kind + t->n, GR_ROW_HALO, (uint64_t)part->halo.count);
    for (int64_t row = 0; row < t->n; row++) {
        if (part->remote.row_ptr[row] < part->remote.row_ptr[row + 1]) t->ranks.kind[row] = GR_ROW_BOUNDARY;
        for (int i = 0; i < 2; i++) {
            for (int64_t e = parts[i]->row_ptr[row]; e < parts[i]->row_ptr[row + 1]; e++)
                ((int32_t *)joined.col_idx)[at++] = (int32_t)(gr_csr_column(parts[i], e) + (i > 0 ? t->n : 0));
        }
        joined.row_ptr[row + 1] = at;
    }
    GR_TRY(gr_model_wrap(t->context, &joined, &t->a, error));
    rc = gr_edge_map(t->a, &map, error); /* here, so that no epoch allocates */
done:
    gr_csr_fini(t->context, &joined);
    return rc;
}

static int64_t widest_attention(const graft_trainer *t)
{
    int64_t widest = 0;

    for (int32_t l = 0; l < t->config.n_layers; l++)
        if (gr_config_wide(&t->config, l) > widest) widest = gr_config_wide(&t->config, l);
    return widest;
}

static int32_t init_attention(graft_trainer *t, graft_error *error)
{
    const struct gr_halo *halo = &t->ranks.part.halo;
    int32_t               rc = GRAFT_OK;

    t->n_seen = t->n + halo->count;
    GR_TRY(gr_ranks_agree(t, make_joined(t, error), error));
    rc = gr_halo_rows_init(t->context, t->over->comm, halo, widest_attention(t), &t->ranks.halo_rows, error);
done:
    return rc;
}

int32_t gr_ranks_halo_begin(graft_trainer *t, enum gr_direction direction, float *x, int64_t width, graft_error *error)
{
    const struct gr_halo_pass pass = { direction, t->layer_now, t->progress.epoch, t->n, width, x };

    return t->over != NULL ? gr_halo_rows_begin(&t->ranks.halo_rows, &pass, gr_profile_team(t), error) : GRAFT_OK;
}

int32_t gr_ranks_halo_end(graft_trainer *t, graft_error *error)
{
    return gr_halo_rows_end(&t->ranks.halo_rows, gr_profile_team(t), error);
}

struct gr_team gr_ranks_team(const graft_trainer *t)
{
    const struct gr_halo_rows *rows = &t->ranks.halo_rows;
    struct gr_team             team = gr_profile_team(t);

    if (!rows->begun) return team;
    team.poll = gr_exchange_poll;
    team.poll_arg = (void *)(uintptr_t)&rows->exchange;
    return team;
}

int32_t gr_ranks_graph_init(graft_trainer *t, graft_error *error)
{
    struct gr_plan_wish wish = { .transposed = 1, .dtype = GRAFT_F32, .cover = gr_plan_cover(t->context) };
    int32_t             rc = GRAFT_OK;

    for (int32_t l = 0; l <= t->config.n_layers; l++) t->reach[l] = t->n;
    t->vertex = t->over->vertex;
    if (t->config.kind == GR_MODEL_MLP) return GRAFT_OK;
    GR_TRY(gr_ranks_agree(t, make_part(t, error), error));
    if (t->config.kind == GR_MODEL_GAT) return init_attention(t, error);
    rc = gr_plan_create(t->context, t->over->comm, &t->ranks.part, t->over, &wish, &t->ranks.plan, error);
done:
    return rc;
}

int32_t gr_ranks_reserve(const graft_trainer *t, graft_error *error)
{
    graft_plan *plan = t->ranks.plan;
    int64_t     widest = 0, rows;
    int32_t     rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(gr_comm_reserve(t->over->comm, (uint64_t)t->n_weights * sizeof *t->gradients, error));
    if (plan == NULL) return GRAFT_OK;
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        const int64_t width = t->layers[l].aggregate_first ? t->layers[l].in : t->layers[l].out;

        if (width > widest) widest = width;
    }
    rows = plan->side[GR_SIDE_IN].start[t->over->comm->n_ranks] + plan->side[GR_SIDE_OUT].start[t->over->comm->n_ranks];
    GR_TRY(gr_ledger_check(t, 4.0 * (double)rows * (double)widest, "messages (rows of others)", error));
    rc = gr_plan_reserve(plan, widest, sizeof(float), error);
done:
    return rc;
}

int64_t gr_ranks_columns(const graft_trainer *t)
{
    return t->ranks.plan != NULL ? t->ranks.plan->columns : t->ranks.halo_rows.columns;
}

/* Rows of one exchange, as they are here, and if none, or all, were partial results. gat sends them as they are. */
static int32_t count_rows(const graft_trainer *t, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    graft_plan_info  plan = { .size = sizeof plan };
    graft_graph_info graph = { .size = sizeof graph };
    int32_t          rc = GRAFT_OK;

    GR_TRY(gr_graph_info(t->over, rank, &graph, error));
    traffic->rank = rank;
    traffic->cut_edges = graph.n_cut;
    if (t->config.kind == GR_MODEL_MLP) return GRAFT_OK;
    traffic->halo_rows = traffic->halo_rows_if_post = graph.n_halo;
    if (t->ranks.plan == NULL) return GRAFT_OK;
    GR_TRY(gr_plan_info(t->ranks.plan, rank, &plan, error));
    traffic->halo_rows = plan.halo_rows;
    traffic->halo_rows_if_post = plan.halo_rows_if_post;
done:
    return rc;
}

int32_t gr_trainer_traffic(const graft_trainer *t, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    const graft_plan         *plan = t->ranks.plan;
    const struct gr_exchange *exchange = plan != NULL ? &plan->exchange : &t->ranks.halo_rows.exchange;
    const int64_t             row_bytes = t->ranks.step_columns * (int64_t)sizeof(float);
    int32_t                   rc = GRAFT_OK;

    if (t->over == NULL)
        return gr_fail(error, GRAFT_ERR_STATE, "the trainer has all vertices in one process, and no messages");
    GR_TRY(count_rows(t, rank, traffic, error));
    traffic->halo_bytes_per_epoch = traffic->halo_rows * row_bytes;
    traffic->halo_bytes_if_post = traffic->halo_rows_if_post * row_bytes;
    traffic->wait_seconds = exchange->wait_seconds;
    traffic->exchange_seconds = exchange->exchange_seconds;
    if (traffic->exchange_seconds > 0)
        traffic->overlap_fraction = 1 - traffic->wait_seconds / traffic->exchange_seconds;
done:
    return rc;
}

int64_t gr_ranks_message_bytes(const graft_trainer *t)
{
    if (t->over == NULL) return 0;
    return (t->ranks.plan != NULL ? gr_plan_bytes(t->ranks.plan) : 0) +
           gr_halo_rows_bytes(&t->ranks.halo_rows, t->over->comm->n_ranks, widest_attention(t));
}

int64_t gr_ranks_graph_bytes(const graft_trainer *t)
{
    const graft_csr *csr = &t->ranks.looped.view;

    if (csr->row_ptr == NULL) return 0;
    return 8 * (csr->n_rows + 1) + gr_csr_entries(csr) * (csr->values != NULL ? 8 : 4);
}

void gr_ranks_fini(graft_trainer *t)
{
    gr_plan_destroy(t->ranks.plan);
    if (t->over != NULL) gr_halo_rows_fini(t->context, t->over->comm, &t->ranks.halo_rows);
    gr_csr_fini(t->context, &t->ranks.looped);
    if (t->over != NULL) gr_graph_destroy(t->over);
}

int32_t gr_ranks_gather(const graft_trainer *t, const struct gr_sum *sum, graft_error *error)
{
    const graft_dense          x = { .size = sizeof x,
                                     .dtype = GRAFT_F32,
                                     .n_rows = t->n,
                                     .n_cols = sum->width,
                                     .stride = sum->x.stride,
                                     .data = (void *)(uintptr_t)sum->x.data };
    const graft_dense          out = { .size = sizeof out,
                                       .dtype = GRAFT_F32,
                                       .n_rows = t->n,
                                       .n_cols = sum->width,
                                       .stride = sum->width,
                                       .data = sum->out };
    const graft_aggregate_args args = { .size = sizeof args,
                                        .semiring = GRAFT_PLUS_TIMES,
                                        .flags = (sum->way == GR_SCATTER ? GRAFT_AGGREGATE_TRANSPOSE : 0) |
                                                 (sum->add ? GRAFT_AGGREGATE_ACCUMULATE : 0),
                                        .layer = t->layer_now,
                                        .epoch = t->progress.epoch,
                                        .threads = t->threads,
                                        .x = &x,
                                        .out = &out,
                                        .row_scale = sum->scale,
                                        .times = gr_profile_team(t).times };
    const struct gr_part      *part = &t->ranks.part;
    const double               entries = (double)(gr_csr_entries(&part->local) + gr_csr_entries(&part->remote));
    const double               begin = gr_profile_begin(t);
    int32_t                    rc = GRAFT_OK;

    GR_TRY(gr_pass_begin(t->ranks.plan, &args, error));
    GR_TRY(gr_pass_end(t->ranks.plan, error));
    gr_profile_end(t, "aggregate", begin, 4 * ((entries + (double)t->n) * (double)sum->width + entries),
                   entries * (double)sum->width);
done:
    return rc;
}
