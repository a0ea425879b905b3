/* Layers of gat (Velickovic et al. 2018): every entry (v, u) of A has in each head a weight alpha, the softmax over the
 * entries of row v of LeakyReLU(target(v) + source(u)), two scores that are products of Z = H W with vectors. In a step
 * alpha may have dropout. With attention_input=relu Z is ReLU(H W + b) (Md Vasimuddin et al. 2022,
 * "DistGNN-MB", eq. 2).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dropout.h"
#include "base/parallel.h"
#include "edge/edge_loops.h"
#include "edge/rows.h"
#include "model/gat_loops.h"

#include <string.h>

const struct gr_gat_loops *gr_gat_loops_for(enum gr_isa isa)
{
    return GR_FOR_ISA(&gr_gat, isa);
}

static int64_t gat_edges(const struct gr_activations *a)
{
    return gr_csr_entries(&a->block->a->csr);
}

static int64_t gat_shared_count(const struct gr_run *run, const struct gr_capacity *capacity)
{
    if (capacity->predicts) return 0;
    return (capacity->edges + GR_ENDS * capacity->seen) * gr_run_config(run)->heads;
}

/* A dense matrix without gaps. */
static graft_dense dense(const float *data, int64_t n_rows, int64_t n_cols)
{
    return gr_dense_view(data, GRAFT_F32, n_rows, n_cols, n_cols);
}

/* These gradients live from one step of a layer's backward pass to the next, so one set serves all layers. */
static int32_t gat_share(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                         graft_error *error)
{
    const int64_t        heads = gr_run_config(run)->heads;
    struct gr_attention *gat = &run->layers[0].attention;
    int32_t              rc = GRAFT_OK;

    if (capacity->predicts) return GRAFT_OK;
    for (int end = 0; end < GR_ENDS; end++)
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, gat->score_gradient[end], capacity->seen * heads, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, gat->alpha_gradient, capacity->edges * heads, error));
    for (int32_t l = 1; l < gr_run_config(run)->n_layers; l++) {
        struct gr_attention *other = &run->layers[l].attention;

        memcpy(other->score_gradient, gat->score_gradient, sizeof other->score_gradient);
        other->alpha_gradient = gat->alpha_gradient;
    }
done:
    return rc;
}

static void gat_count(struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    const struct gr_layer *layer = a->layer;
    const int64_t          heads = gr_run_config(run)->heads;

    GR_ASSERT(layer->wide % heads == 0);
    /* A rank without vertices has no arrays to share, but takes part in the exchanges of recomputed passes. */
    a->shared[GR_STEP_BEGIN] = gr_run_config(run)->recompute;
    a->count[GR_ARRAY_PROJECTED] = capacity->seen * layer->wide;
    if (layer->inner_bias != NULL) a->count[GR_ARRAY_INNER_BITS] = capacity->seen * ((layer->wide + 7) / 8);
    a->count[GR_ARRAY_ALPHA] = capacity->edges * heads;
    if (gr_run_config(run)->attention_dropout > 0 && !capacity->predicts)
        a->count[GR_ARRAY_DROPPED] = capacity->edges * heads;
    a->count[GR_ARRAY_EDGE_FACTOR] = gr_run_config(run)->edge_features * heads;
    if (!capacity->predicts) a->count[GR_ARRAY_EDGE_FACTOR_GRADIENT] = a->count[GR_ARRAY_EDGE_FACTOR];
    a->count[GR_ARRAY_SOURCE_SCORE] = a->count[GR_ARRAY_TARGET_SCORE] = capacity->seen * heads;
    if (layer->wide > layer->out) a->count[GR_ARRAY_PER_HEAD] = capacity->rows * layer->wide;
}

static struct gr_parameter *vector_of(const struct gr_activations *a, int end)
{
    return end == GR_SOURCE ? a->layer->source : a->layer->target;
}

static int drops_attention(const struct gr_run *run)
{
    return gr_run_config(run)->attention_dropout > 0 && gr_is_training(run);
}

/* A pass over vertices, or over entries. */
struct pass {
    const struct gr_run       *run;
    struct gr_activations     *a;
    const struct gr_gat_loops *loops;
    struct gr_gat              gat;
    int64_t                    heads, wide; /* wide: columns of all heads */
    const float               *from;
    float                     *to;
    int64_t                    first; /* vertex, of a pass over vertices */
};

static struct pass pass_of(const struct gr_run *run, struct gr_activations *a, const float *from, float *to,
                           int64_t first)
{
    const struct gr_config *config = gr_run_config(run);
    const int64_t           heads = config->heads, wide = a->layer->wide;

    return (struct pass){
        .run = run,
        .a = a,
        .loops = gr_gat_loops_for(run->isa),
        .gat = { .arrays = &a->attention,
                 .csr = &a->block->a->csr,
                 .vector = { vector_of(a, GR_SOURCE)->value, vector_of(a, GR_TARGET)->value },
                 .heads = heads,
                 .columns = wide / heads,
                 .edge = a->block->edge != NULL ? a->block->edge : a->block->a->csr.values,
                 .edge_factor = a->attention.edge_factor[0],
                 .edge_features = config->edge_features,
                 .vertex = a->block->vertex,
                 .key = gr_random_key(config->seed, GR_RANDOM_ATTENTION, (uint64_t)run->epoch, (uint64_t)a->index),
                 .threshold = gr_dropout_threshold(config->attention_dropout) },
        .heads = heads,
        .wide = wide,
        .from = from,
        .to = to,
        .first = first,
    };
}

/* n vertices from pass->first on. */
static void over_vertices(const struct pass *pass, int64_t n, gr_chunk_fn body)
{
    gr_parallel_chunks(gr_run_team(pass->run), n * pass->wide, n, GR_CHUNK_ROWS, body, (void *)(uintptr_t)pass);
}

static void over_edges(const struct pass *pass, const struct gr_edge_some *some, gr_edge_rows_fn body)
{
    gr_edge_parallel_rows(gr_run_team(pass->run), gat_edges(pass->a) * pass->heads, &pass->a->block->a->csr, some, body,
                          (void *)(uintptr_t)pass);
}

/* Over ranks, edges whose results depend on rows of other ranks, or are needed by other ranks, are separate from the
 * other edges, which are computed while messages travel. Without ranks, there are only other edges. */
static struct gr_edge_some rows_with(const struct gr_activations *a, enum gr_row_kind kind)
{
    return (struct gr_edge_some){ .kind = a->block->kind, .bits = (uint8_t)kind };
}

static struct gr_edge_some rows_without(const struct gr_activations *a, enum gr_row_kind kind)
{
    return (struct gr_edge_some){ .kind = a->block->kind, .bits = (uint8_t)kind, .others = 1 };
}

static void score_vertices(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;

    (void)chunk;
    pass->loops->vertex_scores(&pass->gat, pass->first + begin, pass->first + end);
}

/* The factors of the rows of neighbours: alpha, in a step after its dropout. */
static graft_dense factors_of(const struct gr_run *run, const struct gr_activations *a)
{
    const float *const factor = drops_attention(run) ? a->attention.dropped : a->attention.alpha;

    return dense(factor, gat_edges(a), gr_run_config(run)->heads);
}

/* Average the heads of the wide row of each vertex to a row as wide as one head. */
static void average_heads(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;

    (void)chunk;
    pass->loops->average(&pass->gat, pass->from, pass->to, begin, end);
}

static void average_heads_backward(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;

    (void)chunk;
    pass->loops->average_gradients(&pass->gat, pass->from, pass->to, begin, end);
}

/* End a phase that gathers this number of rows of all heads for each edge, beside its alphas or scores. */
static void end_attention(struct gr_run *run, const struct gr_activations *a, double begin, int gathered, double flops)
{
    const double heads = (double)gr_run_config(run)->heads, wide = (double)a->layer->wide;

    gr_profile_end(&run->profile, "attention", begin, 4 * (double)gat_edges(a) * (gathered * wide + 3 * heads), flops);
}

/* The weights W_e and a of the features e of an edge have one product for each head: (e W_e) . a = e . (W_e a). */
static void make_edge_factor(const struct pass *pass)
{
    const struct gr_layer *layer = pass->a->layer;
    const int64_t          columns = pass->gat.columns;

    for (int64_t i = 0; i < pass->gat.edge_features * pass->heads; i++) {
        const float *weight = layer->edge_weight->value + i * columns;
        const float *attention = layer->edge_attention->value + i % pass->heads * columns;
        double       sum = 0;

        for (int64_t c = 0; c < columns; c++) sum += (double)weight[c] * (double)attention[c];
        pass->a->attention.edge_factor[0][i] = (float)sum;
    }
}

/* Compute alpha from the scores of vertices, for some rows while they are in the caches. */
static void attend_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct pass            *pass = arg;
    const graft_dense             alpha = dense(pass->a->attention.alpha, gat_edges(pass->a), pass->heads);
    const struct gr_edge_operands o = { .csr = pass->gat.csr, .x = &alpha, .out = &alpha };

    pass->loops->entry_scores(&pass->gat, row, row_end);
    gr_edge_loops_for(GRAFT_F32)->softmax(&o, row, row_end);
    if (drops_attention(pass->run)) pass->loops->drop(&pass->gat, row, row_end);
}

/* From the gradient by the factors of the rows of neighbours to the gradient by the scores before LeakyReLU. */
static void attend_rows_backward(void *arg, int64_t row, int64_t row_end)
{
    const struct pass            *pass = arg;
    const struct gr_attention    *gat = &pass->a->attention;
    const graft_dense             alpha = dense(gat->alpha, gat_edges(pass->a), pass->heads);
    const graft_dense             d_alpha = dense(gat->alpha_gradient, gat_edges(pass->a), pass->heads);
    const struct gr_edge_operands o = { .csr = pass->gat.csr, .x = &alpha, .y = &d_alpha, .out = &d_alpha };

    if (drops_attention(pass->run)) pass->loops->drop_gradients(&pass->gat, row, row_end);
    gr_edge_loops_for(GRAFT_F32)->softmax_backward(&o, row, row_end);
    pass->loops->entry_gradients(&pass->gat, row, row_end);
}

/* Complete gat_begin() for the rows that need Z of the halo. `local`: when the work without other ranks began. */
static int32_t attend_to_halo(struct gr_run *run, struct gr_activations *a, double local, graft_error *error)
{
    const struct pass         pass = pass_of(run, a, NULL, NULL, a->block->n_src);
    const struct gr_edge_some some = rows_with(a, GR_ROW_BOUNDARY);
    int32_t                   rc = GRAFT_OK;

    if (!a->attention.awaits_halo) return GRAFT_OK;
    a->attention.awaits_halo = 0;
    GR_TRY(run->strategy->ops->boundary_end(run->strategy, run, local, error));
    over_vertices(&pass, a->block->n_seen - a->block->n_src, score_vertices);
    over_edges(&pass, &some, attend_rows);
done:
    return rc;
}

static int32_t begin_boundary(struct gr_run *run, const struct gr_activations *a, enum gr_direction direction, float *x,
                              double begin, graft_error *error)
{
    const struct gr_boundary rows = { a->block, direction, x, a->layer->wide, begin, 0 };

    return run->strategy->ops->boundary_begin(run->strategy, run, &rows, error);
}

/* The passes over the rows of H W with attention_input=relu: bias and ReLU. */
static struct gr_rows projected_rows(const struct gr_run *run, const struct gr_activations *a)
{
    return (struct gr_rows){ .n = a->block->n_src,
                             .width = a->layer->wide,
                             .team = gr_run_team(run),
                             .isa = run->isa,
                             .bias = a->layer->inner_bias->value,
                             .z = a->attention.projected,
                             .h = a->attention.projected,
                             .bits = a->inner_bits };
}

/* Z of the vertices of this rank. */
static int32_t project(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    struct gr_rows rows;

    if (a->layer->inner_bias == NULL)
        return gr_product(run, x, a->layer->neigh, 0, NULL, a->attention.projected, error);
    rows = projected_rows(run, a);
    return gr_product_rows(run, x, a->layer->neigh, 0, &rows, error);
}

/* From run->scratch, the gradient of Z, to the gradients of H W and of the bias. */
static void project_backward(struct gr_run *run, const struct gr_activations *a)
{
    struct gr_rows_backward pass;

    if (a->layer->inner_bias == NULL) return;
    pass = (struct gr_rows_backward){ .rows = projected_rows(run, a), .left = run->left[1] };
    pass.gradient =
        (struct gr_rows_gradient){ .g = run->scratch, .bias = a->layer->inner_bias->gradient, .partial = run->partial };
    gr_rows_backward_begin(&pass);
    gr_layer_rows_backward(run, &pass);
}

static int32_t gat_begin(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    const struct pass         pass = pass_of(run, a, NULL, NULL, 0);
    const struct gr_edge_some some = rows_without(a, GR_ROW_BOUNDARY);
    double                    begin;
    int32_t                   rc = GRAFT_OK;

    GR_TRY(project(run, a, x, error));
    begin = gr_profile_begin(&run->profile);
    make_edge_factor(&pass);
    if (gr_block_has_halo(a->block)) GR_TRY(begin_boundary(run, a, GR_FORWARD, a->attention.projected, begin, error));
    a->attention.awaits_halo = gr_block_has_halo(a->block);
    over_vertices(&pass, a->block->n_src, score_vertices);
    over_edges(&pass, &some, attend_rows);
    if (gr_block_has_halo(a->block)) gr_profile_part(&run->profile, "local", 0, 0, 0);
    end_attention(run, a, begin, 0, 2 * (double)a->block->n_src * (double)a->layer->wide * GR_ENDS);
done:
    return rc;
}

/* The sums of some destinations, weighted by alpha. */
static void gat_gather_some(const struct gr_run *run, const struct gr_activations *a, struct gr_edge_some some)
{
    const struct gr_attention *gat = &a->attention;
    const struct gr_block     *block = a->block;
    const graft_dense          factors = factors_of(run, a);
    const graft_dense          z = dense(gat->projected, block->n_seen, a->layer->wide);
    const graft_dense          out = dense(gat->per_head != NULL ? gat->per_head : a->z, block->n_dst, a->layer->wide);

    gr_edge_mxm(&block->a->csr, NULL, &factors, &z, &out, &some, gr_run_team(run));
}

static int32_t gat_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                           graft_error *error)
{
    const struct pass pass = pass_of(run, a, a->attention.per_head, a->z, 0);
    const double      begin = gr_profile_begin(&run->profile);
    int32_t           rc = GRAFT_OK;

    (void)x;
    gat_gather_some(run, a, rows_without(a, GR_ROW_BOUNDARY));
    if (gr_block_has_halo(a->block)) {
        GR_TRY(attend_to_halo(run, a, begin, error));
        gat_gather_some(run, a, rows_with(a, GR_ROW_BOUNDARY));
    }
    if (pass.from != NULL) over_vertices(&pass, a->block->n_dst, average_heads);
    end_attention(run, a, begin, 1, 2 * (double)gat_edges(a) * (double)a->layer->wide);
    gr_layer_rows_forward(run, rows);
done:
    return rc;
}

/* Add the gradients through the scores of vertices to the gradient by Z. Vertices of other ranks have gradient 0 by the
 * score as a target. */
static void add_score_gradients(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;

    (void)chunk;
    pass->loops->add_score_gradients(&pass->gat, pass->to, pass->first + begin, pass->first + end);
}

/* From the same gradients to the gradients by the vectors, summed over a chunk of vertices into run->partial. */
static void sum_vector_gradients(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;

    pass->loops->vector_gradients(&pass->gat, pass->run->partial + chunk * GR_ENDS * pass->wide, begin, end);
}

/* From g, the gradient of the sums of each head, to the gradients of the scores of some edges before LeakyReLU. */
static void edge_gradients(const struct pass *pass, const graft_dense *g, struct gr_edge_some some)
{
    const struct gr_activations *a = pass->a;
    const graft_dense            d_alpha = dense(a->attention.alpha_gradient, gat_edges(a), pass->heads);
    const graft_dense            z = dense(a->attention.projected, a->block->n_seen, pass->wide);

    gr_edge_sddmm(&a->block->a->csr, g, &z, &d_alpha, &some, gr_run_team(pass->run));
    over_edges(pass, &some, attend_rows_backward);
}

/* From both to the gradient of Z of n vertices, which are some rows of the transpose. */
static void vertex_gradients(const struct pass *pass, const struct gr_edge_map *map, const graft_dense *g, int64_t n,
                             struct gr_edge_some some)
{
    const struct gr_activations *a = pass->a;
    const struct gr_attention   *gat = &a->attention;
    const graft_csr             *csr = &a->block->a->csr;
    const graft_dense            factors = factors_of(pass->run, a);
    const graft_dense            d_alpha = dense(gat->alpha_gradient, gat_edges(a), pass->heads);
    const graft_dense            d_source = dense(gat->score_gradient[GR_SOURCE], a->block->n_seen, pass->heads);
    const graft_dense            dz = dense(pass->to, a->block->n_seen, pass->wide);
    const struct gr_team         team = gr_run_team(pass->run);

    gr_edge_mxm(csr, map, &d_alpha, NULL, &d_source, &some, team);
    gr_edge_mxm(csr, map, &factors, g, &dz, &some, team);
    over_vertices(pass, n, add_score_gradients);
}

/* The gradient of the scores as a target: sums over the edges of each destination. Other vertices are not targets. */
static void target_gradients(const struct pass *pass)
{
    const struct gr_activations *a = pass->a;
    const struct gr_block       *block = a->block;
    float *const                 to = a->attention.score_gradient[GR_TARGET];
    const graft_dense            d_alpha = dense(a->attention.alpha_gradient, gat_edges(a), pass->heads);
    const graft_dense            d_target = dense(to, block->n_dst, pass->heads);

    gr_edge_mxm(&block->a->csr, NULL, &d_alpha, NULL, &d_target, NULL, gr_run_team(pass->run));
}

static void clear_other_targets(const struct gr_activations *a, int64_t heads)
{
    const struct gr_block *block = a->block;

    memset(a->attention.score_gradient[GR_TARGET] + block->n_dst * heads, 0,
           (uint64_t)((block->n_seen - block->n_dst) * heads) * sizeof(float));
}

static void sum_edge_gradients(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass *pass = arg;
    const int64_t      count = pass->gat.edge_features * pass->heads;

    pass->loops->edge_gradients(&pass->gat, pass->run->partial + chunk * count, begin, end);
}

/* The gradients of the weights of edges, after the gradients of all scores. */
static void edge_weight_gradients(const struct pass *pass)
{
    const struct gr_layer *layer = pass->a->layer;
    const int64_t          columns = pass->gat.columns, count = pass->gat.edge_features * pass->heads;
    float *const           factor = pass->a->attention.edge_factor[1];
    float *const weights = layer->edge_weight->gradient, *const vectors = layer->edge_attention->gradient;

    over_vertices(pass, pass->a->block->n_dst, sum_edge_gradients);
    gr_rows_sum_chunks(pass->run->partial, count, pass->a->block->n_dst, count, factor);
    memset(vectors, 0, (uint64_t)pass->wide * sizeof *vectors);
    for (int64_t i = 0; i < count * columns; i++) {
        weights[i] = factor[i / columns] * layer->edge_attention->value[i % pass->wide];
        vectors[i % pass->wide] += factor[i / columns] * layer->edge_weight->value[i];
    }
}

/* From g, the gradient of the sums of each head, to the gradients of Z, in run->scratch, and of the vectors. Over
 * ranks, the gradients of the halo are computed first, and travel to their owners during the other computation. */
static int32_t attention_backward(struct gr_run *run, struct gr_activations *a, const graft_dense *g, double begin,
                                  graft_error *error)
{
    const struct gr_block    *block = a->block;
    const struct pass         own = pass_of(run, a, NULL, run->scratch, 0);
    const struct pass         halo = pass_of(run, a, NULL, run->scratch, block->n_src);
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_edge_map(block->a, &map, error));
    clear_other_targets(a, own.heads);
    if (gr_block_has_halo(block)) {
        edge_gradients(&own, g, rows_with(a, GR_ROW_BOUNDARY));
        vertex_gradients(&halo, map, g, block->n_seen - block->n_src, rows_with(a, GR_ROW_HALO));
        GR_TRY(begin_boundary(run, a, GR_BACKWARD, run->scratch, begin, error));
    }
    edge_gradients(&own, g, rows_without(a, GR_ROW_BOUNDARY));
    target_gradients(&own);
    if (own.gat.edge_features > 0) edge_weight_gradients(&own);
    vertex_gradients(&own, map, g, block->n_src, rows_without(a, GR_ROW_HALO));
    over_vertices(&own, block->n_seen, sum_vector_gradients);
    for (int end = 0; end < GR_ENDS; end++)
        gr_rows_sum_chunks(run->partial + end * own.wide, GR_ENDS * own.wide, block->n_seen, own.wide,
                           vector_of(a, end)->gradient);
    if (gr_block_has_halo(block)) rc = run->strategy->ops->boundary_end(run->strategy, run, 0, error);
done:
    return rc;
}

static int32_t gat_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                            graft_error *error)
{
    float *const      per_head = a->attention.per_head;
    const struct pass pass = pass_of(run, a, g, per_head, 0);
    const graft_dense gradient = dense(per_head != NULL ? per_head : g, a->block->n_dst, a->layer->wide);
    double            begin = gr_profile_begin(&run->profile);
    int32_t           rc = GRAFT_OK;

    if (a->attention.awaits_halo) { /* recomputed, and then without Z */
        GR_TRY(attend_to_halo(run, a, begin, error));
        end_attention(run, a, begin, 0, 0);
        begin = gr_profile_begin(&run->profile);
    }
    if (per_head != NULL) over_vertices(&pass, a->block->n_dst, average_heads_backward);
    GR_TRY(attention_backward(run, a, &gradient, begin, error));
    end_attention(run, a, begin, 2, 4 * (double)gat_edges(a) * (double)a->layer->wide);
    project_backward(run, a);
    GR_TRY(gr_product_weight_gradient(run, x, run->scratch, 0, a->layer->neigh, error));
    if (dx != NULL)
        rc = gr_product_input_gradient_with(run, run->scratch, a->block->n_src, a->layer->neigh, 0, dx, run->below,
                                            error);
done:
    return rc;
}

static const struct gr_parameter_shape gat_shapes[] = {
    { "weight", 'i', 'w', GR_SLOT(neigh), GR_FIRST_GLOROT },
    { "attention_source", 'h', 'd', GR_SLOT(source), GR_FIRST_GLOROT },
    { "attention_target", 'h', 'd', GR_SLOT(target), GR_FIRST_GLOROT },
    { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_ZERO },
    { 0 },
};

const struct gr_model_kind gr_kind_gat = { .name = "gat",
                                           .shapes = gat_shapes,
                                           .gathers = 1,
                                           .attends = 1,
                                           .self_loops = 1,
                                           .count = gat_count,
                                           .shared_count = gat_shared_count,
                                           .share = gat_share,
                                           .begin = gat_begin,
                                           .forward = gat_forward,
                                           .backward = gat_backward };
