/* Layers of gat (Velickovic et al. 2018): every entry (v, u) of A has in each head a weight alpha, the softmax over the
 * entries of row v of LeakyReLU(target(v) + source(u)). The scores target(v) and source(u) are products of rows of
 * Z = H W with vectors. In a step alpha may have dropout. With attention_input=relu Z is ReLU(H W + b) (Md Vasimuddin
 * et al. 2022, "DistGNN-MB", eq. 2).
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dropout.h"
#include "base/parallel.h"
#include "edge/edge_loops.h"
#include "edge/rows.h"
#include "model/gat_loops.h"
#include "model/kind.h"
#include "model/product.h"
#include "model/rows.h"

#include <string.h>

const struct gr_gat_loops *gr_model_gat_loops_for(enum gr_isa isa)
{
    return GR_FOR_ISA(&gr_gat, isa);
}

/* The arrays of struct gr_attention. Besides, PER_HEAD: [n_dst x wide] results of heads before they are averaged, and
 * their gradient. FACTOR: [edge features x heads] products of the two weights of edge features. */
enum {
    PROJECTED,
    INNER_BITS,
    SOURCE_SCORE,
    TARGET_SCORE,
    FACTOR,
    FACTOR_GRADIENT,
    ALPHA,
    DROPPED,
    PER_HEAD,
    SOURCE_GRADIENT,
    TARGET_GRADIENT,
    ALPHA_GRADIENT
};

static const struct gr_array_shape gat_arrays[] = {
    [PROJECTED] = { "projected", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [INNER_BITS] = { "inner_bits", 1, GR_USE_MASKS, GR_LIFE_RECOMPUTED },
    [SOURCE_SCORE] = { "score of sources", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [TARGET_SCORE] = { "score of targets", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [FACTOR] = { "edge_factor", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_KEPT },
    [FACTOR_GRADIENT] = { "edge_factor gradient", sizeof(float), GR_USE_GRADIENTS, GR_LIFE_KEPT },
    [ALPHA] = { "alpha", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [DROPPED] = { "alpha after dropout", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED },
    [PER_HEAD] = { "results of heads", sizeof(float), GR_USE_ACTIVATIONS, GR_LIFE_SHARED },
    [SOURCE_GRADIENT] = { "score gradient of sources", sizeof(float), GR_USE_GRADIENTS, GR_LIFE_SHARED },
    [TARGET_GRADIENT] = { "score gradient of targets", sizeof(float), GR_USE_GRADIENTS, GR_LIFE_SHARED },
    [ALPHA_GRADIENT] = { "alpha gradient", sizeof(float), GR_USE_GRADIENTS, GR_LIFE_SHARED },
    { 0 }
};

static void gat_count(const struct gr_run *run, struct gr_activations *a, const struct gr_capacity *capacity)
{
    const struct gr_config *config = gr_run_config(run);
    const struct gr_layer  *layer = a->layer;
    const int64_t           heads = config->attention.heads;
    int64_t *const          count = a->own_count;

    GR_ASSERT(layer->wide % heads == 0);
    count[PROJECTED] = capacity->seen * layer->wide;
    if (layer->inner_bias != NULL) count[INNER_BITS] = capacity->seen * ((layer->wide + 7) / 8);
    count[SOURCE_SCORE] = count[TARGET_SCORE] = capacity->seen * heads;
    count[ALPHA] = capacity->edges * heads;
    count[FACTOR] = config->attention.edge_features * heads;
    if (layer->wide > layer->out) count[PER_HEAD] = capacity->rows * layer->wide;
    if (capacity->predicts) return;
    if (config->attention.dropout > 0) count[DROPPED] = count[ALPHA];
    count[FACTOR_GRADIENT] = count[FACTOR];
    count[SOURCE_GRADIENT] = count[TARGET_GRADIENT] = count[SOURCE_SCORE];
    count[ALPHA_GRADIENT] = count[ALPHA];
}

/* One layer in one pass. Rows of the matrices follow each other without gaps. */
struct pass {
    const struct gr_run       *run;
    const struct gr_block     *block;
    const struct gr_gat_loops *loops;
    struct gr_gat              gat;
    int64_t                    edges, wide; /* wide: number of columns of all heads together */
    int                        drops;       /* there is dropout on alpha */
    graft_dense                z, alpha, alpha_gradient;
    graft_dense                factors; /* weights of the neighbours' rows: alpha, in a step after dropout */
};

static graft_dense dense(const float *data, int64_t n_rows, int64_t n_cols)
{
    return gr_dense_view(data, GRAFT_F32, n_rows, n_cols, n_cols);
}

static struct pass pass_of(const struct gr_run *run, const struct gr_activations *a)
{
    const struct gr_config *config = gr_run_config(run);
    const struct gr_block  *block = a->block;
    const int64_t heads = config->attention.heads, wide = a->layer->wide, edges = gr_csr_entries(&block->a->csr);
    const int     drops = config->attention.dropout > 0 && gr_is_training(run);

    return (struct pass){
        .run = run,
        .block = block,
        .loops = gr_model_gat_loops_for(run->isa),
        .gat = { .arrays = { .projected = a->own[PROJECTED],
                             .score = { a->own[SOURCE_SCORE], a->own[TARGET_SCORE] },
                             .alpha = a->own[ALPHA],
                             .dropped = a->own[DROPPED],
                             .score_gradient = { a->own[SOURCE_GRADIENT], a->own[TARGET_GRADIENT] },
                             .alpha_gradient = a->own[ALPHA_GRADIENT] },
                 .csr = &block->a->csr,
                 .vector = { a->layer->source->value, a->layer->target->value },
                 .heads = heads,
                 .columns = wide / heads,
                 .edge = block->edge != NULL ? block->edge : block->a->csr.values,
                 .edge_factor = a->own[FACTOR],
                 .edge_features = config->attention.edge_features,
                 .vertex = block->vertex,
                 .key = gr_random_key(config->seed, GR_RANDOM_ATTENTION, (uint64_t)run->epoch, (uint64_t)a->index),
                 .threshold = gr_dropout_threshold(config->attention.dropout) },
        .edges = edges,
        .wide = wide,
        .drops = drops,
        .z = dense(a->own[PROJECTED], block->n_seen, wide),
        .alpha = dense(a->own[ALPHA], edges, heads),
        .alpha_gradient = dense(a->own[ALPHA_GRADIENT], edges, heads),
        .factors = dense(drops ? a->own[DROPPED] : a->own[ALPHA], edges, heads),
    };
}

/* Arguments of a parallel loop over vertices: either `loop`, for vertices from `first` on; or `sum`, which writes
 * `width` partial sums for each chunk of vertices. */
struct over_vertices {
    const struct pass *pass;
    gr_gat_loop       *loop;
    gr_gat_sum        *sum;
    int64_t            first, width;
};

static void vertex_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct over_vertices *over = arg;
    const struct gr_gat        *gat = &over->pass->gat;

    if (over->loop != NULL) over->loop(gat, over->first + begin, over->first + end);
    else over->sum(gat, over->pass->run->space.partial + chunk * over->width, begin, end);
}

static void over_chunks(struct over_vertices over, int64_t n)
{
    gr_parallel_chunks(gr_run_team(over.pass->run), n * over.pass->wide, n, GR_CHUNK_ROWS, vertex_chunk, &over);
}

static void over_vertices(const struct pass *pass, gr_gat_loop *loop, int64_t first, int64_t n)
{
    over_chunks((struct over_vertices){ .pass = pass, .loop = loop, .first = first }, n);
}

static void over_edges(const struct pass *pass, struct gr_edge_some some, gr_edge_rows_fn body)
{
    gr_edge_parallel_rows(gr_run_team(pass->run), pass->edges * pass->gat.heads, pass->gat.csr, &some, body,
                          (void *)(uintptr_t)pass);
}

/* Select the rows with a bit of gr_block.kind, and below the rows without it. Rows that depend on rows of other ranks,
 * or that other ranks need, have a bit; the others are computed while messages travel. In one process no row has a
 * bit. */
static struct gr_edge_some rows_with(const struct pass *pass, enum gr_row_kind kind)
{
    return (struct gr_edge_some){ .kind = pass->block->kind, .bits = (uint8_t)kind };
}

static struct gr_edge_some rows_without(const struct pass *pass, enum gr_row_kind kind)
{
    return (struct gr_edge_some){ .kind = pass->block->kind, .bits = (uint8_t)kind, .others = 1 };
}

/* End a phase of the profile that reads, for each edge, `gathered` rows of all heads, besides alphas or scores. */
static void end_attention(struct gr_run *run, const struct pass *pass, double begin, int gathered, double flops)
{
    const double columns = gathered * (double)pass->wide + 3 * (double)pass->gat.heads;

    gr_profile_end(&run->profile, "attention", begin, 4 * (double)pass->edges * columns, flops);
}

/* Compute W_e a for each head from the two weights of edge features e, because (e W_e) . a = e . (W_e a). */
static void make_edge_factor(const struct gr_activations *a, const struct gr_gat *gat)
{
    const struct gr_layer *layer = a->layer;
    float *const           factor = a->own[FACTOR];

    for (int64_t i = 0; i < gat->edge_features * gat->heads; i++) {
        const float *weight = layer->edge_weight->value + i * gat->columns;
        const float *attention = layer->edge_attention->value + i % gat->heads * gat->columns;
        double       sum = 0;

        for (int64_t c = 0; c < gat->columns; c++) sum += (double)weight[c] * (double)attention[c];
        factor[i] = (float)sum;
    }
}

/* Compute alpha from the scores of vertices for some rows, while they are in the caches. */
static void attend_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct pass            *pass = arg;
    const struct gr_edge_operands o = { .csr = pass->gat.csr, .x = &pass->alpha, .out = &pass->alpha };

    pass->loops->entry_scores(&pass->gat, row, row_end);
    gr_edge_loops_for(GRAFT_F32)->softmax(&o, row, row_end);
    if (pass->drops) pass->loops->drop(&pass->gat, row, row_end);
}

/* Replace alpha_gradient, the gradient of the factors of neighbours' rows, by that of the scores before LeakyReLU. */
static void attend_rows_backward(void *arg, int64_t row, int64_t row_end)
{
    const struct pass            *pass = arg;
    const struct gr_edge_operands o = {
        .csr = pass->gat.csr, .x = &pass->alpha, .y = &pass->alpha_gradient, .out = &pass->alpha_gradient
    };

    if (pass->drops) pass->loops->drop_gradients(&pass->gat, row, row_end);
    gr_edge_loops_for(GRAFT_F32)->softmax_backward(&o, row, row_end);
    pass->loops->entry_gradients(&pass->gat, row, row_end);
}

/* Complete gat_begin() for the rows that need Z of the halo. `local` is the time when local work began. */
static int32_t attend_to_halo(struct gr_run *run, struct gr_activations *a, const struct pass *pass, double local,
                              graft_error *error)
{
    if (!a->awaits_halo) return GRAFT_OK;
    a->awaits_halo = 0;
    GR_TRY(run->strategy->ops->boundary_end(run->strategy, run, local, error));
    over_vertices(pass, pass->loops->vertex_scores, a->block->n_src, a->block->n_seen - a->block->n_src);
    over_edges(pass, rows_with(pass, GR_ROW_BOUNDARY), attend_rows);
    return GRAFT_OK;
}

static int32_t begin_boundary(struct gr_run *run, const struct gr_activations *a, enum gr_direction direction, float *x,
                              double begin, graft_error *error)
{
    const struct gr_boundary rows = { a->block, direction, x, a->layer->wide, begin, 0 };

    return run->strategy->ops->boundary_begin(run->strategy, run, &rows, error);
}

/* Describe the passes over the rows of H W with attention_input=relu: bias and ReLU. */
static struct gr_rows projected_rows(const struct gr_run *run, const struct gr_activations *a)
{
    return (struct gr_rows){ .n = a->block->n_src,
                             .width = a->layer->wide,
                             .team = gr_run_team(run),
                             .isa = run->isa,
                             .bias = a->layer->inner_bias->value,
                             .z = a->own[PROJECTED],
                             .h = a->own[PROJECTED],
                             .bits = a->own[INNER_BITS] };
}

/* Compute Z of the vertices of this rank. */
static int32_t project(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    struct gr_rows rows;

    if (a->layer->inner_bias == NULL)
        return gr_model_product(run, x, a->layer->neigh, 0, NULL, a->own[PROJECTED], error);
    rows = projected_rows(run, a);
    return gr_model_product_rows(run, x, a->layer->neigh, 0, &rows, error);
}

/* Compute the gradients of H W and of the bias from the gradient of Z, which is in the scratch memory. */
static void project_backward(struct gr_run *run, const struct gr_activations *a)
{
    struct gr_rows_backward pass;

    if (a->layer->inner_bias == NULL) return;
    pass = (struct gr_rows_backward){ .rows = projected_rows(run, a), .left = run->space.left[1] };
    pass.gradient = (struct gr_rows_gradient){ .g = run->space.scratch,
                                               .bias = a->layer->inner_bias->gradient,
                                               .partial = run->space.partial };
    gr_nn_rows_backward_begin(&pass);
    gr_model_layer_rows_backward(run, &pass);
}

static int32_t gat_begin(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    const struct pass pass = pass_of(run, a);
    double            begin;

    GR_TRY(project(run, a, x, error));
    begin = gr_profile_begin(&run->profile);
    make_edge_factor(a, &pass.gat);
    if (gr_model_block_has_halo(a->block)) GR_TRY(begin_boundary(run, a, GR_FORWARD, a->own[PROJECTED], begin, error));
    a->awaits_halo = gr_model_block_has_halo(a->block);
    over_vertices(&pass, pass.loops->vertex_scores, 0, a->block->n_src);
    over_edges(&pass, rows_without(&pass, GR_ROW_BOUNDARY), attend_rows);
    if (a->awaits_halo) gr_profile_part(&run->profile, "local", 0, 0, 0);
    end_attention(run, &pass, begin, 0, 2 * (double)a->block->n_src * (double)pass.wide * GR_ENDS);
    return GRAFT_OK;
}

static int32_t gat_forward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, struct gr_rows *rows,
                           graft_error *error)
{
    struct pass               pass = pass_of(run, a);
    const int                 averages = a->own[PER_HEAD] != NULL;
    const graft_dense         out = dense(averages ? a->own[PER_HEAD] : a->z, a->block->n_dst, pass.wide);
    const struct gr_edge_some own = rows_without(&pass, GR_ROW_BOUNDARY), other = rows_with(&pass, GR_ROW_BOUNDARY);
    const double              begin = gr_profile_begin(&run->profile);

    (void)x;
    gr_edge_mxm(pass.gat.csr, NULL, &pass.factors, &pass.z, &out, &own, gr_run_team(run));
    if (gr_model_block_has_halo(a->block)) {
        GR_TRY(attend_to_halo(run, a, &pass, begin, error));
        gr_edge_mxm(pass.gat.csr, NULL, &pass.factors, &pass.z, &out, &other, gr_run_team(run));
    }
    pass.gat.from = a->own[PER_HEAD];
    pass.gat.to = a->z;
    if (averages) over_vertices(&pass, pass.loops->average, 0, a->block->n_dst);
    end_attention(run, &pass, begin, 1, 2 * (double)pass.edges * (double)pass.wide);
    gr_model_layer_rows_forward(run, rows);
    return GRAFT_OK;
}

/* Compute the gradients of the scores of some edges before LeakyReLU from g, the gradient of the sums of each head. */
static void edge_gradients(const struct pass *pass, const graft_dense *g, struct gr_edge_some some)
{
    gr_edge_sddmm(pass->gat.csr, g, &pass->z, &pass->alpha_gradient, &some, gr_run_team(pass->run));
    over_edges(pass, some, attend_rows_backward);
}

/* Compute gat.to, the gradient of Z, for n vertices from `first` on, which are the rows `some` of the transpose, from
 * the gradients of sums and scores. Vertices of other ranks are no targets here: the gradients of their target scores
 * are 0. */
static void vertex_gradients(const struct pass *pass, const struct gr_edge_map *map, const graft_dense *g,
                             int64_t first, int64_t n, struct gr_edge_some some)
{
    const struct gr_gat *gat = &pass->gat;
    const graft_dense    d_source = dense(gat->arrays.score_gradient[GR_SOURCE], pass->block->n_seen, gat->heads);
    const graft_dense    dz = dense(gat->to, pass->block->n_seen, pass->wide);

    gr_edge_mxm(gat->csr, map, &pass->alpha_gradient, NULL, &d_source, &some, gr_run_team(pass->run));
    gr_edge_mxm(gat->csr, map, &pass->factors, g, &dz, &some, gr_run_team(pass->run));
    over_vertices(pass, pass->loops->add_score_gradients, first, n);
}

/* Compute the gradients of the target scores: sums over the edges of each destination. */
static void target_gradients(const struct pass *pass)
{
    const struct gr_gat *gat = &pass->gat;
    const graft_dense    d_target = dense(gat->arrays.score_gradient[GR_TARGET], pass->block->n_dst, gat->heads);

    gr_edge_mxm(gat->csr, NULL, &pass->alpha_gradient, NULL, &d_target, NULL, gr_run_team(pass->run));
}

/* Set the gradients of the target scores of vertices that are no destinations to 0. */
static void clear_other_targets(const struct pass *pass)
{
    const struct gr_block *block = pass->block;
    const int64_t          heads = pass->gat.heads;

    memset(pass->gat.arrays.score_gradient[GR_TARGET] + block->n_dst * heads, 0,
           (uint64_t)((block->n_seen - block->n_dst) * heads) * sizeof(float));
}

/* Compute the gradients of the weights of edge features from the gradients of all scores. */
static void edge_weight_gradients(const struct pass *pass, const struct gr_activations *a)
{
    const struct gr_layer *layer = a->layer;
    const int64_t          columns = pass->gat.columns, count = pass->gat.edge_features * pass->gat.heads;
    float *const           factor = a->own[FACTOR_GRADIENT];
    float *const weights = layer->edge_weight->gradient, *const vectors = layer->edge_attention->gradient;

    over_chunks((struct over_vertices){ .pass = pass, .sum = pass->loops->edge_gradients, .width = count },
                pass->block->n_dst);
    gr_nn_rows_sum_chunks(pass->run->space.partial, count, pass->block->n_dst, count, factor);
    memset(vectors, 0, (uint64_t)pass->wide * sizeof *vectors);
    for (int64_t i = 0; i < count * columns; i++) {
        weights[i] = factor[i / columns] * layer->edge_attention->value[i % pass->wide];
        vectors[i % pass->wide] += factor[i / columns] * layer->edge_weight->value[i];
    }
}

/* Compute the gradients of the attention vectors from the gradients of all scores. */
static void vector_gradients(const struct pass *pass, const struct gr_layer *layer)
{
    const int64_t       n = pass->block->n_seen, width = GR_ENDS * pass->wide;
    const double *const sums = pass->run->space.partial;

    over_chunks((struct over_vertices){ .pass = pass, .sum = pass->loops->vector_gradients, .width = width }, n);
    gr_nn_rows_sum_chunks(sums + GR_SOURCE * pass->wide, width, n, pass->wide, layer->source->gradient);
    gr_nn_rows_sum_chunks(sums + GR_TARGET * pass->wide, width, n, pass->wide, layer->target->gradient);
}

/* Compute the gradients of Z, in the scratch memory, and of the vectors from g, the gradient of each head's sums. Over
 * ranks, the gradients of the halo are computed first and sent to their owners during the other computation. */
static int32_t attention_backward(struct gr_run *run, struct gr_activations *a, const struct pass *pass,
                                  const graft_dense *g, double begin, graft_error *error)
{
    const struct gr_block    *block = a->block;
    const struct gr_edge_map *map;

    GR_TRY(gr_edge_map(block->a, &map, error));
    clear_other_targets(pass);
    if (gr_model_block_has_halo(block)) {
        edge_gradients(pass, g, rows_with(pass, GR_ROW_BOUNDARY));
        vertex_gradients(pass, map, g, block->n_src, block->n_seen - block->n_src, rows_with(pass, GR_ROW_HALO));
        GR_TRY(begin_boundary(run, a, GR_BACKWARD, run->space.scratch, begin, error));
    }
    edge_gradients(pass, g, rows_without(pass, GR_ROW_BOUNDARY));
    target_gradients(pass);
    if (pass->gat.edge_features > 0) edge_weight_gradients(pass, a);
    vertex_gradients(pass, map, g, 0, block->n_src, rows_without(pass, GR_ROW_HALO));
    vector_gradients(pass, a->layer);
    if (gr_model_block_has_halo(block)) return run->strategy->ops->boundary_end(run->strategy, run, 0, error);
    return GRAFT_OK;
}

static int32_t gat_backward(struct gr_run *run, struct gr_activations *a, struct gr_operand x, float *g, float *dx,
                            graft_error *error)
{
    float *const      per_head = a->own[PER_HEAD];
    struct pass       pass = pass_of(run, a);
    const graft_dense gradient = dense(per_head != NULL ? per_head : g, a->block->n_dst, pass.wide);
    double            begin = gr_profile_begin(&run->profile);

    if (a->awaits_halo) { /* gat_begin() was repeated for option recompute, without gat_forward() */
        GR_TRY(attend_to_halo(run, a, &pass, begin, error));
        end_attention(run, &pass, begin, 0, 0);
        begin = gr_profile_begin(&run->profile);
    }
    pass.gat.from = g;
    pass.gat.to = per_head;
    if (per_head != NULL) over_vertices(&pass, pass.loops->average_gradients, 0, a->block->n_dst);
    pass.gat.to = run->space.scratch;
    GR_TRY(attention_backward(run, a, &pass, &gradient, begin, error));
    end_attention(run, &pass, begin, 2, 4 * (double)pass.edges * (double)pass.wide);
    project_backward(run, a);
    GR_TRY(gr_model_weight_gradient(run, x, run->space.scratch, 0, a->layer->neigh, error));
    if (dx != NULL)
        return gr_model_input_gradient_with(run, run->space.scratch, a->block->n_src, a->layer->neigh, 0, dx,
                                            run->below, error);
    return GRAFT_OK;
}

static int has_edge_features(const struct gr_config *config)
{
    return config->attention.edge_features > 0;
}

static int attends_to_relu(const struct gr_config *config)
{
    return config->attention.reads_relu;
}

/* The parameters; weights of edge features are those of GATConv in PyTorch Geometric. */
static const struct gr_parameter_shape gat_shapes[] = {
    { "weight", 'i', 'w', GR_SLOT(neigh), GR_FIRST_GLOROT, NULL },
    { "attention_source", 'h', 'd', GR_SLOT(source), GR_FIRST_GLOROT, NULL },
    { "attention_target", 'h', 'd', GR_SLOT(target), GR_FIRST_GLOROT, NULL },
    { "bias", '1', 'o', GR_SLOT(bias), GR_FIRST_ZERO, NULL },
    { "weight_edge", 'e', 'w', GR_SLOT(edge_weight), GR_FIRST_GLOROT, has_edge_features },
    { "attention_edge", 'h', 'd', GR_SLOT(edge_attention), GR_FIRST_GLOROT, has_edge_features },
    { "inner_bias", '1', 'w', GR_SLOT(inner_bias), GR_FIRST_ZERO, attends_to_relu },
    { 0 },
};

const struct gr_model_kind gr_kind_gat = { .name = "gat",
                                           .shapes = gat_shapes,
                                           .arrays = gat_arrays,
                                           .gathers = 1,
                                           .attends = 1,
                                           .self_loops = 1,
                                           .count = gat_count,
                                           .begin = gat_begin,
                                           .forward = gat_forward,
                                           .backward = gat_backward };
