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
static int32_t compare(const graft_trainer *t, graft_error *error)
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

/* *array[n_slice] of rows of so many bytes becomes one of those that are owned. NULL stays NULL if no rank has it. */
static int32_t take(graft_trainer *t, enum gr_use use, const void **array, int64_t bytes, int64_t stride,
                    const char *name, graft_error *error)
{
    graft_move move = { .size = sizeof move,
                        .direction = GRAFT_TO_OWNERS,
                        .row_bytes = bytes,
                        .from = *array,
                        .from_stride = stride,
                        .to_stride = bytes };
    int        given = *array != NULL;
    int32_t    rc = GRAFT_OK;

    GR_TRY(gr_ranks_any(t, &given, error));
    if (!given) return GRAFT_OK;
    if (*array == NULL && t->over->n_slice > 0)
        rc = gr_fail(error, GRAFT_ERR_ARG, "%s are not given, and other ranks give them", name);
    else if ((move.to = gr_ledger_new(t, use, t->over->n_owned * bytes, 1, name, error)) == NULL) rc = GRAFT_ERR_NOMEM;
    GR_TRY(gr_ranks_agree(t, rc, error));
    GR_TRY(gr_graph_move(t->over, &move, error));
    *array = move.to;
done:
    return rc;
}

/* The parts of a sparse slice, row by row in the order in which they go. */
struct parcel {
    int64_t *length;         /* [n_slice], in bytes at last */
    int64_t *row_at;         /* [n_slice + 1] where each row begins in what goes */
    int64_t *out_at, *in_at; /* [n_ranks + 1] */
    char    *out;
};

/* The elements of so many bytes of all entries, to the owners of their rows. `in` has room for those that come. */
static int32_t move_entries(graft_trainer *t, const graft_csr *rows, const char *elements, int64_t bytes,
                            const int64_t *row_ptr, struct parcel *p, char *in, graft_error *error)
{
    const graft_graph *g = t->over;

    for (int64_t i = 0; i < g->n_slice; i++) {
        const int64_t begin = rows->row_ptr[i], count = rows->row_ptr[i + 1] - begin;

        memcpy(p->out + p->row_at[g->sent[i]] * bytes, elements + begin * bytes, (uint64_t)(count * bytes));
    }
    for (int32_t q = 0; q <= g->comm->n_ranks; q++) {
        p->out_at[q] = p->row_at[g->sent_start[q]] * bytes;
        p->in_at[q] = row_ptr[g->received_start[q]] * bytes;
    }
    return gr_comm_alltoallv(g->comm, p->out, p->out_at, in, p->in_at, error);
}

static int32_t parcel_init(graft_trainer *t, const graft_csr *rows, struct parcel *p, graft_error *error)
{
    const graft_graph *g = t->over;
    const int64_t      entries = g->n_slice > 0 ? gr_csr_entries(rows) : 0;
    int32_t            rc = GRAFT_OK;

    GR_TRY(GR_NEW(t->context, p->length, g->n_slice, error));
    GR_TRY(GR_NEW(t->context, p->row_at, g->n_slice + 1, error));
    GR_TRY(GR_NEW(t->context, p->out_at, g->comm->n_ranks + 1, error));
    GR_TRY(GR_NEW(t->context, p->in_at, g->comm->n_ranks + 1, error));
    GR_TRY(GR_NEW(t->context, p->out, entries * 8, error));
    for (int64_t i = 0; i < g->n_slice; i++) {
        p->length[i] = rows->row_ptr[i + 1] - rows->row_ptr[i];
        p->row_at[g->sent[i] + 1] = p->length[i];
    }
    for (int64_t i = 0; i < g->n_slice; i++) p->row_at[i + 1] += p->row_at[i];
done:
    return rc;
}

static void parcel_fini(const graft_trainer *t, struct parcel *p)
{
    gr_free(t->context, p->length);
    gr_free(t->context, p->row_at);
    gr_free(t->context, p->out_at);
    gr_free(t->context, p->in_at);
    gr_comm_free(t->over->comm, p->out);
}

/* The sparse features of the slice become those of the owned vertices. */
static int32_t take_sparse(graft_trainer *t, graft_error *error)
{
    const graft_graph *g = t->over;
    graft_csr         *s = &t->sparse_features;
    int64_t            index;
    struct parcel      p = { 0 };
    int64_t           *row_ptr = NULL, *length = NULL;
    char              *col_idx = NULL, *values = NULL;
    int                valued = s->values != NULL, wide = s->index_type == GRAFT_I64;
    graft_move         move = {
                .size = sizeof move, .direction = GRAFT_TO_OWNERS, .row_bytes = 8, .from_stride = 8, .to_stride = 8
    };
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_ranks_any(t, &valued, error));
    GR_TRY(gr_ranks_any(t, &wide, error));
    if (g->n_slice > 0 && (wide != (s->index_type == GRAFT_I64) || valued != (s->values != NULL)))
        rc =
            gr_fail(error, GRAFT_ERR_ARG, "sparse features are of another kind (index type, values) than other ranks'");
    if (rc == GRAFT_OK) rc = parcel_init(t, s, &p, error);
    if (rc == GRAFT_OK) rc = GR_LEDGER_NEW(t, GR_USE_FEATURES, row_ptr, g->n_owned + 1, error);
    GR_TRY(gr_ranks_agree(t, rc, error));
    index = wide ? 8 : 4;
    s->index_type = wide ? GRAFT_I64 : GRAFT_I32;
    length = row_ptr + 1;
    move.from = p.length;
    move.to = length;
    GR_TRY(gr_graph_move(t->over, &move, error));
    for (int64_t i = 0; i < g->n_owned; i++) row_ptr[i + 1] += row_ptr[i];
    col_idx = gr_ledger_new(t, GR_USE_FEATURES, row_ptr[g->n_owned] * index, 1, "columns of sparse features", error);
    if (valued && col_idx != NULL)
        values = gr_ledger_new(t, GR_USE_FEATURES, row_ptr[g->n_owned] * 4, 1, "values of sparse features", error);
    GR_TRY(gr_ranks_agree(t, col_idx == NULL || (valued && values == NULL) ? GRAFT_ERR_NOMEM : GRAFT_OK, error));
    GR_TRY(move_entries(t, s, s->col_idx, index, row_ptr, &p, col_idx, error));
    if (valued) GR_TRY(move_entries(t, s, s->values, 4, row_ptr, &p, values, error));
    s->n_rows = g->n_owned;
    s->row_ptr = row_ptr;
    s->col_idx = col_idx;
    s->values = values;
done:
    parcel_fini(t, &p);
    return rc;
}

static int32_t take_dense(graft_trainer *t, graft_error *error)
{
    const int64_t row = t->data.n_features * (int64_t)sizeof(float);
    const void   *x = t->features.data;
    int32_t       rc = GRAFT_OK;

    GR_TRY(take(t, GR_USE_FEATURES, &x, row, t->features.stride * (int64_t)sizeof(float), "features", error));
    t->features.data = (void *)(uintptr_t)x;
    t->features.n_rows = t->over->n_owned;
    t->features.stride = t->data.n_features;
done:
    return rc;
}

int32_t gr_ranks_take(graft_trainer *t, graft_error *error)
{
    const void *labels = t->data.labels, *targets = t->data.targets, *split = t->data.split;
    int         sparse = t->data.sparse_features != NULL;
    int32_t     rc = GRAFT_OK;

    GR_TRY(compare(t, error));
    GR_TRY(gr_ranks_agree(t, check_options(t, error), error));
    GR_TRY(gr_ranks_any(t, &sparse, error));
    if (sparse != (t->data.sparse_features != NULL))
        rc = gr_fail(error, GRAFT_ERR_ARG, "features are dense, and those of other ranks are sparse");
    GR_TRY(gr_ranks_agree(t, rc, error));
    GR_TRY(sparse ? take_sparse(t, error) : take_dense(t, error));
    GR_TRY(take(t, GR_USE_GRAPH, &labels, 4, 4, "labels", error));
    GR_TRY(take(t, GR_USE_GRAPH, &targets, t->data.n_classes, t->data.n_classes, "targets", error));
    GR_TRY(take(t, GR_USE_GRAPH, &split, 1, 1, "split", error));
    t->data.labels = labels;
    t->data.targets = targets;
    t->data.split = split;
    t->n = t->over->n_owned;
    t->first = 0;
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
    for (int64_t row = 0; row < t->n; row++) {
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

int32_t gr_ranks_halo_get(graft_trainer *t, float *x, int64_t width, graft_error *error)
{
    return t->over != NULL ? gr_halo_rows_get(&t->ranks.halo_rows, t->over->comm, x, t->n, width, error) : GRAFT_OK;
}

int32_t gr_ranks_halo_give(graft_trainer *t, float *x, int64_t width, graft_error *error)
{
    return t->over != NULL ? gr_halo_rows_give(&t->ranks.halo_rows, t->over->comm, x, t->n, width, error) : GRAFT_OK;
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

/* Rows of so many bytes from the order of owners to that of slices. */
static int32_t give(graft_trainer *t, const void *from, int64_t bytes, void *to, int64_t stride, graft_error *error)
{
    const graft_move move = { .size = sizeof move,
                              .direction = GRAFT_TO_SLICES,
                              .row_bytes = bytes,
                              .from = from,
                              .from_stride = bytes,
                              .to = to,
                              .to_stride = stride };

    return gr_graph_move(t->over, &move, error);
}

int32_t gr_ranks_give(graft_trainer *t, const float *logits, int32_t *labels, const graft_dense *out,
                      graft_error *error)
{
    const int64_t classes = t->data.n_classes;
    int           wants_labels = labels != NULL, wants_logits = out != NULL;
    int32_t      *mine = NULL, *slice = NULL;
    float        *rows = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_ranks_any(t, &wants_labels, error));
    GR_TRY(gr_ranks_any(t, &wants_logits, error));
    if (wants_labels) rc = GR_NEW(t->context, mine, t->n, error);
    if (rc == GRAFT_OK && wants_labels && labels == NULL) rc = GR_NEW(t->context, slice, t->over->n_slice, error);
    if (rc == GRAFT_OK && wants_logits && out == NULL) rc = GR_NEW(t->context, rows, t->over->n_slice * classes, error);
    GR_TRY(gr_ranks_agree(t, rc, error));
    for (int64_t i = 0; i < t->n && wants_labels; i++) mine[i] = (int32_t)gr_argmax(logits + i * classes, classes);
    if (wants_labels) GR_TRY(give(t, mine, 4, labels != NULL ? labels : slice, 4, error));
    if (wants_logits)
        rc = give(t, logits, classes * 4, out != NULL ? out->data : rows, (out != NULL ? out->stride : classes) * 4,
                  error);
done:
    gr_free(t->context, mine);
    gr_free(t->context, slice);
    gr_free(t->context, rows);
    return rc;
}
