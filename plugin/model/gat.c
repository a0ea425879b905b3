/* Layers of gat (Velickovic et al. 2018): every entry (v, u) of A has in each head a weight alpha, the softmax over the
 * entries of row v of LeakyReLU(target(v) + source(u)), two scores that are products of Z = H W with vectors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "edge/edge.h"
#include "edge/rows.h"
#include "model/model.h"

#include <string.h>

/* Of LeakyReLU below 0. */
static const float SLOPE = 0.2f;

static int64_t entries_of(const graft_trainer *t)
{
    return gr_model_entries(t);
}

int64_t gr_gat_shared_count(const graft_trainer *t)
{
    return (entries_of(t) + GR_ENDS * t->n_seen) * t->config.heads;
}

/* A dense matrix without gaps. */
static graft_dense dense(const float *data, int64_t n_rows, int64_t n_cols)
{
    return (graft_dense){ .size = sizeof(graft_dense),
                          .dtype = GRAFT_F32,
                          .n_rows = n_rows,
                          .n_cols = n_cols,
                          .stride = n_cols,
                          .data = (void *)(uintptr_t)data };
}

/* Gradients live from one step of a layer's backward pass to the next, so one set serves all layers. */
int32_t gr_gat_share(graft_trainer *t, graft_error *error)
{
    struct gr_attention *gat = &t->layers[0].attention;
    int32_t              rc = GRAFT_OK;

    for (int end = 0; end < GR_ENDS; end++) {
        GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, gat->score_gradient[end], t->n_seen * t->config.heads, error));
    }
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, gat->alpha_gradient, entries_of(t) * t->config.heads, error));
    for (int32_t l = 1; l < t->config.n_layers; l++) {
        struct gr_attention *other = &t->layers[l].attention;

        memcpy(other->score_gradient, gat->score_gradient, sizeof other->score_gradient);
        other->alpha_gradient = gat->alpha_gradient;
    }
done:
    return rc;
}

int32_t gr_gat_init(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_layer     *layer = &t->layers[l];
    struct gr_attention *gat = &layer->attention;
    const int64_t        heads = t->config.heads;

    (void)error;
    layer->neigh = gr_parameter_find(t, l, "weight");
    layer->bias = gr_parameter_find(t, l, "bias");
    gat->vector[GR_SOURCE] = gr_parameter_find(t, l, "attention_source");
    gat->vector[GR_TARGET] = gr_parameter_find(t, l, "attention_target");
    /* A rank without vertices has no arrays to share, but has its part in exchanges of passes that are made again. */
    layer->shares[GR_STEP_BEGIN] = t->config.recompute;
    layer->count[GR_ARRAY_PROJECTED] = t->n_seen * layer->wide;
    layer->count[GR_ARRAY_ALPHA] = entries_of(t) * heads;
    layer->count[GR_ARRAY_SOURCE_SCORE] = layer->count[GR_ARRAY_TARGET_SCORE] = t->n_seen * heads;
    if (layer->wide > layer->out) layer->count[GR_ARRAY_PER_HEAD] = t->n * layer->wide;
    return GRAFT_OK;
}

/* A pass over vertices, or over entries. */
struct pass {
    const graft_trainer *t;
    struct gr_layer     *layer;
    const float         *from;
    float               *to;
    int64_t              first; /* vertex, of a pass over vertices */
};

/* n of them: those of this rank, which come first, or of others, or all that are seen. */
static void over_vertices(const struct pass *pass, int64_t n, gr_chunk_fn body)
{
    gr_parallel_chunks(gr_ranks_team(pass->t), n * pass->layer->wide, n, GR_CHUNK_ROWS, body, (void *)(uintptr_t)pass);
}

static void over_entries(const struct pass *pass, const struct gr_edge_some *some, gr_edge_rows_fn body)
{
    const graft_trainer *t = pass->t;

    gr_edge_parallel_rows(gr_ranks_team(t), entries_of(t) * t->config.heads, &t->a->csr, some, body,
                          (void *)(uintptr_t)pass);
}

/* Over ranks, what rows of others are needed for, or what others need, stands apart from the rest, which is done while
 * messages travel. Without ranks, the rest is all there is. */
static struct gr_edge_some rows_with(const graft_trainer *t, enum gr_row_kind kind)
{
    return (struct gr_edge_some){ .kind = t->ranks.kind, .bits = (uint8_t)kind };
}

static struct gr_edge_some rows_without(const graft_trainer *t, enum gr_row_kind kind)
{
    return (struct gr_edge_some){ .kind = t->ranks.kind, .bits = (uint8_t)kind, .others = 1 };
}

/* Both scores of each vertex: products of the part of Z of each head with the vectors of that head. */
static void score_vertices(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass         *pass = arg;
    const struct gr_attention *gat = &pass->layer->attention;
    const int64_t              heads = pass->t->config.heads, wide = pass->layer->wide, columns = wide / heads;
    const float *const source = gat->vector[GR_SOURCE]->value, *const target = gat->vector[GR_TARGET]->value;

    (void)chunk;
    for (int64_t i = (pass->first + begin) * heads; i < (pass->first + end) * heads; i++) {
        const float  *z = gat->projected + i * columns;
        const int64_t first = i % heads * columns;
        float         as_source = 0, as_target = 0;

#pragma omp simd reduction(+ : as_source, as_target)
        for (int64_t c = 0; c < columns; c++) {
            as_source += z[c] * source[first + c];
            as_target += z[c] * target[first + c];
        }
        gat->score[GR_SOURCE][i] = as_source;
        gat->score[GR_TARGET][i] = as_target;
    }
}

/* Scores of the entries of some rows, into alpha. */
static void score_entries(void *arg, int64_t row, int64_t row_end)
{
    const struct pass         *pass = arg;
    const struct gr_attention *gat = &pass->layer->attention;
    const graft_csr           *csr = &pass->t->a->csr;
    const int64_t              heads = pass->t->config.heads;

    for (; row < row_end; row++) {
        const float *target = gat->score[GR_TARGET] + row * heads;

        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const float *source = gat->score[GR_SOURCE] + gr_csr_column(csr, e) * heads;

            for (int64_t h = 0; h < heads; h++) {
                const float sum = target[h] + source[h];
                gat->alpha[e * heads + h] = sum > 0 ? sum : SLOPE * sum;
            }
        }
    }
}

/* The gradient by the result of LeakyReLU becomes that by the sum of scores. */
static void score_entries_backward(void *arg, int64_t row, int64_t row_end)
{
    const struct pass         *pass = arg;
    const struct gr_attention *gat = &pass->layer->attention;
    const graft_csr           *csr = &pass->t->a->csr;
    const int64_t              heads = pass->t->config.heads;

    for (; row < row_end; row++) {
        const float *target = gat->score[GR_TARGET] + row * heads;

        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const float *source = gat->score[GR_SOURCE] + gr_csr_column(csr, e) * heads;

            for (int64_t h = 0; h < heads; h++) {
                if (!(target[h] + source[h] > 0)) gat->alpha_gradient[e * heads + h] *= SLOPE;
            }
        }
    }
}

/* The mean over heads, from one wide row for each vertex to one as wide as a head. */
static void average_heads(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;
    const int64_t      out = pass->layer->out, heads = pass->t->config.heads;

    (void)chunk;
    memset(pass->to + begin * out, 0, (uint64_t)((end - begin) * out) * sizeof *pass->to);
    for (int64_t i = begin * heads; i < end * heads; i++) {
        for (int64_t c = 0; c < out; c++) pass->to[i / heads * out + c] += pass->from[i * out + c] / (float)heads;
    }
}

/* Of the gradient by the mean, each head has its share. */
static void average_heads_backward(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;
    const int64_t      out = pass->layer->out, heads = pass->t->config.heads;

    (void)chunk;
    for (int64_t i = begin * heads; i < end * heads; i++) {
        for (int64_t c = 0; c < out; c++) pass->to[i * out + c] = pass->from[i / heads * out + c] / (float)heads;
    }
}

/* Of a phase in which so many rows of all heads are gathered for each entry, beside its alphas or scores. */
static void end_attention(const graft_trainer *t, double begin, int gathered, double flops)
{
    const double entries = (double)entries_of(t), heads = (double)t->config.heads;
    const double wide = (double)t->layers[t->layer_now].wide;

    gr_profile_end(t, "attention", begin, 4 * entries * (gathered * wide + 3 * heads), flops);
}

/* From scores of vertices to alpha. */
static void attend(const struct pass *pass, struct gr_edge_some some)
{
    const graft_trainer *t = pass->t;
    const graft_dense    alpha = dense(pass->layer->attention.alpha, entries_of(t), t->config.heads);

    over_entries(pass, &some, score_entries);
    gr_edge_softmax(&t->a->csr, &alpha, &alpha, &some, gr_ranks_team(t));
}

/* What gr_gat_begin() left undone: Z of other ranks has come, or is waited for. Since `local` other work was done. */
static int32_t attend_to_others(graft_trainer *t, struct gr_layer *layer, double local, graft_error *error)
{
    const struct pass pass = { t, layer, NULL, NULL, t->n };
    int32_t           rc = GRAFT_OK;

    if (!t->ranks.halo_rows.begun) return GRAFT_OK;
    GR_TRY(gr_ranks_halo_end(t, local, error));
    over_vertices(&pass, t->n_seen - t->n, score_vertices);
    attend(&pass, rows_with(t, GR_ROW_BOUNDARY));
done:
    return rc;
}

int32_t gr_gat_begin(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, graft_error *error)
{
    const struct pass pass = { t, layer, NULL, NULL, 0 };
    double            begin;
    int32_t           rc = GRAFT_OK;

    GR_TRY(gr_product(t, x, layer->neigh, 0, NULL, layer->attention.projected, error));
    begin = gr_profile_begin(t);
    GR_TRY(gr_ranks_halo_begin(t, GR_FORWARD, layer->attention.projected, layer->wide, begin, error));
    over_vertices(&pass, t->n, score_vertices);
    attend(&pass, rows_without(t, GR_ROW_BOUNDARY));
    if (t->over != NULL) gr_profile_part(t, "local", t->ranks.halo_rows.exchange.sent_at, 0, 0);
    end_attention(t, begin, 0, 2 * (double)t->n * (double)layer->wide * GR_ENDS);
done:
    return rc;
}

/* What some rows gather. */
static void gather(const graft_trainer *t, const struct gr_layer *layer, struct gr_edge_some some)
{
    const struct gr_attention *gat = &layer->attention;
    const graft_dense          alpha = dense(gat->alpha, entries_of(t), t->config.heads);
    const graft_dense          z = dense(gat->projected, t->n_seen, layer->wide);
    const graft_dense          out = dense(gat->per_head != NULL ? gat->per_head : layer->z, t->n, layer->wide);

    gr_edge_mxm(&t->a->csr, NULL, &alpha, &z, &out, &some, gr_ranks_team(t));
}

int32_t gr_gat_forward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                       graft_error *error)
{
    const struct pass pass = { t, layer, layer->attention.per_head, layer->z, 0 };
    const double      begin = gr_profile_begin(t);
    int32_t           rc = GRAFT_OK;

    (void)x;
    gather(t, layer, rows_without(t, GR_ROW_BOUNDARY));
    if (t->over != NULL) {
        GR_TRY(attend_to_others(t, layer, begin, error));
        gather(t, layer, rows_with(t, GR_ROW_BOUNDARY));
    }
    if (pass.from != NULL) over_vertices(&pass, t->n, average_heads);
    end_attention(t, begin, 1, 2 * (double)entries_of(t) * (double)layer->wide);
    gr_layer_rows_forward(t, rows);
done:
    return rc;
}

/* From the gradients by the scores of vertices, which are 0 as a target for those of other ranks, to those by Z, to
 * which they are added. */
static void add_score_gradients(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass         *pass = arg;
    const struct gr_attention *gat = &pass->layer->attention;
    const int64_t              heads = pass->t->config.heads, columns = pass->layer->wide / heads;

    (void)chunk;
    for (int to = 0; to < GR_ENDS; to++) {
        const float *vector = gat->vector[to]->value;

        for (int64_t i = (pass->first + begin) * heads; i < (pass->first + end) * heads; i++) {
            const float   g = gat->score_gradient[to][i];
            float        *dz = pass->to + i * columns;
            const int64_t first = i % heads * columns;

#pragma omp simd
            for (int64_t c = 0; c < columns; c++) dz[c] += g * vector[first + c];
        }
    }
}

/* From the same to those by the vectors, of which the sums over a chunk of vertices go to trainer->partial. */
static void sum_vector_gradients(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass         *pass = arg;
    const struct gr_attention *gat = &pass->layer->attention;
    const int64_t              heads = pass->t->config.heads, wide = pass->layer->wide, columns = wide / heads;

    for (int to = 0; to < GR_ENDS; to++) {
        double *sum = pass->t->partial + (chunk * GR_ENDS + to) * wide;

        memset(sum, 0, (uint64_t)wide * sizeof *sum);
        for (int64_t i = begin * heads; i < end * heads; i++) {
            const float   g = gat->score_gradient[to][i];
            const float  *z = gat->projected + i * columns;
            const int64_t first = i % heads * columns;

#pragma omp simd
            for (int64_t c = 0; c < columns; c++) sum[first + c] += (double)(g * z[c]);
        }
    }
}

/* From g, the gradient of what each head gives, to those of the scores of some entries before LeakyReLU. */
static void entry_gradients(const struct pass *pass, const graft_dense *g, struct gr_edge_some some)
{
    const graft_trainer       *t = pass->t;
    const struct gr_attention *gat = &pass->layer->attention;
    const graft_dense          alpha = dense(gat->alpha, entries_of(t), t->config.heads);
    const graft_dense          d_alpha = dense(gat->alpha_gradient, entries_of(t), t->config.heads);
    const graft_dense          z = dense(gat->projected, t->n_seen, pass->layer->wide);
    const struct gr_team       team = gr_ranks_team(t);

    gr_edge_sddmm(&t->a->csr, g, &z, &d_alpha, &some, team);
    gr_edge_softmax_backward(&t->a->csr, &alpha, &d_alpha, &d_alpha, &some, team);
    over_entries(pass, &some, score_entries_backward);
}

/* From both to the gradient by Z of n vertices, those of some rows of the transpose. */
static void vertex_gradients(const struct pass *pass, const struct gr_edge_map *map, const graft_dense *g, int64_t n,
                             struct gr_edge_some some)
{
    const graft_trainer       *t = pass->t;
    const struct gr_attention *gat = &pass->layer->attention;
    const int64_t              heads = t->config.heads;
    const graft_dense          alpha = dense(gat->alpha, entries_of(t), heads);
    const graft_dense          d_alpha = dense(gat->alpha_gradient, entries_of(t), heads);
    const graft_dense          d_source = dense(gat->score_gradient[GR_SOURCE], t->n_seen, heads);
    const graft_dense          dz = dense(pass->to, t->n_seen, pass->layer->wide);
    const struct gr_team       team = gr_ranks_team(t);

    gr_edge_mxm(&t->a->csr, map, &d_alpha, NULL, &d_source, &some, team);
    gr_edge_mxm(&t->a->csr, map, &alpha, g, &dz, &some, team);
    over_vertices(pass, n, add_score_gradients);
}

/* From the gradient of what each head gives to that of Z in trainer->scratch, and of the vectors. Over ranks, those of
 * vertices of others come first, and are on their way to their owners while the rest is done. */
static int32_t attention_backward(graft_trainer *t, struct gr_layer *layer, const graft_dense *g, double begin,
                                  graft_error *error)
{
    struct gr_attention      *gat = &layer->attention;
    const int64_t             heads = t->config.heads, wide = layer->wide;
    const struct pass         own = { t, layer, NULL, t->scratch, 0 }, others = { t, layer, NULL, t->scratch, t->n };
    const graft_dense         d_alpha = dense(gat->alpha_gradient, entries_of(t), heads);
    const graft_dense         d_target = dense(gat->score_gradient[GR_TARGET], t->n, heads);
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_edge_map(t->a, &map, error));
    if (t->over != NULL) {
        entry_gradients(&own, g, rows_with(t, GR_ROW_BOUNDARY));
        vertex_gradients(&others, map, g, t->n_seen - t->n, rows_with(t, GR_ROW_HALO));
        GR_TRY(gr_ranks_halo_begin(t, GR_BACKWARD, t->scratch, wide, begin, error));
    }
    entry_gradients(&own, g, rows_without(t, GR_ROW_BOUNDARY));
    gr_edge_mxm(&t->a->csr, NULL, &d_alpha, NULL, &d_target, NULL, gr_ranks_team(t));
    vertex_gradients(&own, map, g, t->n, rows_without(t, GR_ROW_HALO));
    over_vertices(&own, t->n_seen, sum_vector_gradients);
    for (int end = 0; end < GR_ENDS; end++)
        gr_rows_sum_chunks(t->partial + end * wide, GR_ENDS * wide, t->n_seen, wide, gat->vector[end]->gradient);
    rc = gr_ranks_halo_end(t, 0, error);
done:
    return rc;
}

int32_t gr_gat_backward(graft_trainer *t, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                        graft_error *error)
{
    float *const      per_head = layer->attention.per_head;
    const struct pass pass = { t, layer, g, per_head, 0 };
    const graft_dense gradient = dense(per_head != NULL ? per_head : g, t->n, layer->wide);
    double            begin = gr_profile_begin(t);
    int32_t           rc = GRAFT_OK;

    if (t->ranks.halo_rows.begun) { /* made again, and then no Z */
        GR_TRY(attend_to_others(t, layer, begin, error));
        end_attention(t, begin, 0, 0);
        begin = gr_profile_begin(t);
    }
    if (per_head != NULL) over_vertices(&pass, t->n, average_heads_backward);
    GR_TRY(attention_backward(t, layer, &gradient, begin, error));
    end_attention(t, begin, 2, 4 * (double)entries_of(t) * (double)layer->wide);
    GR_TRY(gr_product_weight_gradient(t, x, t->scratch, 0, layer->neigh, error));
    if (dx != NULL) rc = gr_product_input_gradient(t, t->scratch, t->n, layer->neigh, 0, NULL, dx, error);
done:
    return rc;
}
