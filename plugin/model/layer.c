/* All layers, forward and backward: the functions of the kind of model, and the passes over rows that follow.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/dropout.h"
#include "base/parallel.h"
#include "model/labels.h"
#include "model/workers.h"

#include <string.h>

struct gr_team gr_run_team(const struct gr_run *run)
{
    return (struct gr_team){ .threads = run->threads,
                             .times = run->profile.times,
                             .poll = run->strategy->ops->poll,
                             .poll_arg = run->strategy };
}

/* -- passes over rows --------------------------------------------------------------------------------------------- */

/* The passes over rows that follow layer l; dropout with the bits of this epoch, none in evaluation. */
static struct gr_rows rows_after(const struct gr_run *run, int32_t l)
{
    const struct gr_config      *config = gr_run_config(run);
    const struct gr_activations *a = &run->layers[l];
    const struct gr_layer       *layer = a->layer;
    struct gr_rows               rows = {
                      .n = a->block->n_dst,
                      .width = layer->out,
                      .team = gr_run_team(run),
                      .isa = run->isa,
                      .bias = layer->bias != NULL ? layer->bias->value : NULL,
                      .z = a->z,
    };

    if (!layer->hidden) return rows;
    rows.h = a->h;
    rows.bits = a->bits;
    rows.is_elu = config->is_elu;
    rows.drops_first = config->drops_first;
    if (layer->gain != NULL) {
        rows.gain = layer->gain->value;
        rows.shift = layer->shift->value;
        rows.mean = a->mean;
        rows.rstd = a->rstd;
        rows.norms_columns = config->norm == GR_NORM_BATCH;
    }
    rows.vertex = a->block->vertex;
    rows.key = gr_random_key(config->seed, GR_RANDOM_DROPOUT, (uint64_t)run->epoch, (uint64_t)l + 1);
    rows.threshold = gr_is_training(run) ? gr_dropout_threshold(config->dropout) : 0;
    return rows;
}

/* Bytes that a pass over rows reads and writes: Z and H, or their gradients. */
static double row_pass_bytes(const struct gr_rows *rows)
{
    return 4 * (double)rows->n * (double)rows->width * (rows->h != NULL && rows->h != rows->z ? 3 : 2);
}

void gr_layer_rows_forward(struct gr_run *run, struct gr_rows *rows)
{
    double begin;

    gr_workers_sync(run);
    begin = gr_profile_begin(&run->profile);
    gr_rows_forward(rows);
    gr_profile_end(&run->profile, "rows", begin, row_pass_bytes(rows), 0);
}

static void rows_forward_all(struct gr_run *run, void *rows)
{
    gr_layer_rows_forward(run, rows);
}

struct gr_epilogue gr_layer_rows_epilogue(struct gr_rows *rows)
{
    return (struct gr_epilogue){ .some = gr_rows_forward_part, .all = rows_forward_all, .arg = rows };
}

void gr_layer_rows_backward(struct gr_run *run, struct gr_rows_backward *pass)
{
    const double begin = gr_profile_begin(&run->profile);

    if (gr_workers_backward(run, pass)) return;
    gr_workers_sync(run);
    gr_rows_backward_end(pass);
    gr_profile_end(&run->profile, "rows", begin, row_pass_bytes(&pass->rows), 0);
}

void gr_layer_clear_rest(struct gr_run *run, const struct gr_block *block, float *x, int64_t width)
{
    const int64_t rows = block->n_src - block->n_dst;
    const double  begin = gr_profile_begin(&run->profile);

    if (gr_workers_clear(run, x + block->n_dst * width, rows, width)) return;
    memset(x + block->n_dst * width, 0, (uint64_t)(rows * width) * sizeof *x);
    gr_profile_end_alone(&run->profile, "rows", begin);
}

void gr_layer_scale(struct gr_run *run, struct gr_operand x, const float *scale, float factor, float *out,
                    int64_t width)
{
    const double           begin = gr_profile_begin(&run->profile);
    struct gr_rows_scaling scaling = { .n = x.rows,
                                       .width = width,
                                       .x_stride = x.stride,
                                       .team = gr_run_team(run),
                                       .x = x.data,
                                       .scale = scale,
                                       .factor = factor,
                                       .out = out };

    if (gr_workers_scale(run, &scaling)) return;
    gr_rows_scale(&scaling);
    gr_profile_end(&run->profile, "rows", begin, 8 * (double)x.rows * (double)width, (double)x.rows * (double)width);
}

void gr_mix_part(const struct gr_mix *m, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) m->y[i] = m->by * m->x[i] + m->beta * m->y[i];
}

static void mix_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    (void)chunk;
    gr_mix_part(arg, begin, end);
}

void gr_layer_mix(struct gr_run *run, int64_t count, float by, const float *x, float beta, float *y)
{
    struct gr_mix m = { x, y, by, beta };
    const double  begin = gr_profile_begin(&run->profile);

    if (gr_workers_mix(run, count, &m)) return;
    gr_workers_sync(run);
    gr_parallel_chunks(gr_run_team(run), count, count, 128 * GR_CHUNK_ROWS, mix_chunk, &m);
    gr_profile_end(&run->profile, "rows", begin, 12 * (double)count, 3 * (double)count);
}

/* -- the input of a layer ----------------------------------------------------------------------------------------- */

/* The features, with dropout in training. */
static struct gr_operand features_of(const struct gr_run *run, int64_t rows)
{
    const struct gr_input *input = &run->input;

    if (input->x == NULL)
        return (struct gr_operand){ .rows = rows,
                                    .sparse = gr_is_training(run) || input->sparse.whole.x == NULL
                                                  ? input->sparse.step
                                                  : &input->sparse.whole };
    if (gr_is_training(run) && input->dropped != NULL)
        return gr_dense_operand(input->dropped, gr_run_config(run)->width[0], rows);
    GR_ASSERT(input->type == GRAFT_F32);
    return gr_dense_operand(input->x, input->stride, rows);
}

static struct gr_operand input_of(const struct gr_run *run, int32_t l)
{
    const int64_t     rows = run->layers[l].block->n_src;
    struct gr_operand x;

    if (gr_config_jumps(gr_run_config(run), l))
        return gr_dense_operand(run->layers[l].joined, run->layers[l].layer->in, rows);
    if (l > 0) return gr_dense_operand(run->layers[l - 1].output, run->layers[l - 1].layer->out, rows);
    x = features_of(run, rows);
    x.labels = gr_propagates(run) ? GR_LABELS_OWN : GR_LABELS_NONE;
    return x;
}

static void drop_input(struct gr_run *run, const struct gr_block *block)
{
    const struct gr_config *config = gr_run_config(run);
    const struct gr_input  *input = &run->input;
    const double            begin = gr_profile_begin(&run->profile);
    struct gr_rows_drop     rows = { .n = block->n_src,
                                     .width = config->width[0],
                                     .x_stride = input->stride,
                                     .team = gr_run_team(run),
                                     .x = input->x,
                                     .out = input->dropped,
                                     .key = gr_random_key(config->seed, GR_RANDOM_DROPOUT, (uint64_t)run->epoch, 0),
                                     .threshold = gr_dropout_threshold(config->input_dropout),
                                     .isa = run->isa,
                                     .vertex = block->vertex };

    if (input->x == NULL) gr_sparse_dropout(run, rows.key, rows.threshold);
    else gr_rows_dropout(&rows);
    gr_profile_end(&run->profile, "rows", begin, 0, 0);
}

/* -- aggregation of the input ------------------------------------------------------------------------------------- */

/* Columns that pass through the sparse product with A, forward and backward, in either order; the first layer sends no
 * gradient back to its input. The cheaper order is taken. An input that is aggregated only once costs nothing, and
 * sparse features never enter a product with A. Labels have separate columns if they are aggregated first. */
int gr_layer_aggregates_first(const struct gr_run *run, int32_t l)
{
    const struct gr_layer *layer = &run->model->layers[l];
    const int64_t          more = l > 0 ? layer->in : gr_propagates(run) ? run->targets.n_classes : 0;

    if (gr_run_config(run)->extremum != 0) return 1;
    if (l == 0 && run->input.is_sparse) return 0;
    if (l == 0 && run->input.is_constant) return 1;
    return layer->in + more <= 2 * layer->out;
}

struct gr_sum gr_sum_of(const struct gr_activations *a, enum gr_direction direction, const float *scale, const float *x,
                        int64_t width, int add, float *out)
{
    return (struct gr_sum){ .block = a->block,
                            .direction = direction,
                            .scale = scale,
                            .x = x,
                            .x_type = GRAFT_F32,
                            .stride = width,
                            .width = width,
                            .add = add,
                            .out = out };
}

/* The rows that the sum reads, rounded to bfloat16. Labels stay as they are: their columns are few. */
static int32_t round_rows(struct gr_run *run, struct gr_sum *sum, graft_error *error)
{
    const int64_t     rows = sum->direction == GR_BACKWARD ? sum->block->n_dst : sum->block->n_src;
    const graft_dense from = gr_dense_view(sum->x, GRAFT_F32, rows, sum->width, sum->stride);
    const graft_dense to = gr_dense_view(run->rounded, GRAFT_BF16, rows, sum->width, sum->width);
    const double      begin = gr_profile_begin(&run->profile);
    int32_t           rc;

    if (run->rounded == NULL || sum->kind == GR_SUM_LABELS) return GRAFT_OK;
    rc = gr_dense_convert(&from, &to, gr_run_team(run), error);
    gr_profile_end(&run->profile, "rows", begin, 6 * (double)rows * (double)sum->width, 0);
    sum->x = run->rounded;
    sum->x_type = GRAFT_BF16;
    sum->stride = sum->width;
    return rc;
}

int32_t gr_aggregate(struct gr_run *run, const struct gr_sum *wanted, graft_error *error)
{
    const struct gr_strategy_ops *ops = run->strategy->ops;
    struct gr_sum                 sum = *wanted;
    int32_t                       rc = GRAFT_OK;

    GR_TRY(round_rows(run, &sum, error));
    GR_TRY(ops->aggregate_begin(run->strategy, run, &sum, error));
    if (ops->aggregate_end != NULL) GR_TRY(ops->aggregate_end(run->strategy, run, &sum, error));
    gr_epilogue_end(run, sum.epilogue);
done:
    return rc;
}

int32_t gr_aggregate_scaled(struct gr_run *run, double own, struct gr_sum sum, graft_error *error)
{
    const struct gr_block *block = sum.block;

    if (own != 0) {
        gr_layer_scale(run, gr_dense_operand(sum.x, sum.stride, block->n_dst), NULL, (float)own, sum.out, sum.width);
        sum.add = 1;
    }
    if (block->right != NULL) {
        gr_layer_scale(run, gr_dense_operand(sum.x, sum.stride, block->n_src), block->right, 0, run->scratch,
                       sum.width);
        sum.x = run->scratch;
        sum.stride = sum.width;
    }
    sum.scale = block->left;
    return gr_aggregate(run, &sum, error);
}

/* A (X + L E) is A X plus A L times E, so A X stays as it is. This function computes A L. */
static int32_t gather_labels(struct gr_run *run, struct gr_activations *a, double own, graft_error *error)
{
    struct gr_sum sum = gr_sum_of(a, GR_FORWARD, NULL, run->scratch, run->targets.n_classes, 0, a->label_sums);
    int32_t       rc = GRAFT_OK;

    if (a->has_label_sums) return GRAFT_OK;
    sum.kind = GR_SUM_LABELS;
    gr_labels_fill(run, a->block->n_src, run->scratch);
    GR_TRY(gr_aggregate_scaled(run, own, sum, error));
    a->has_label_sums = 1;
done:
    return rc;
}

int32_t gr_layer_gather(struct gr_run *run, struct gr_activations *a, struct gr_operand x, double own,
                        graft_error *error)
{
    const int     constant = a->index == 0 && run->input.is_constant; /* arrays of no rows may all be NULL */
    struct gr_sum sum = gr_sum_of(a, GR_FORWARD, NULL, x.data, a->layer->in, 0, a->gathered);
    int32_t       rc = GRAFT_OK;

    if (x.labels != GR_LABELS_NONE) GR_TRY(gather_labels(run, a, own, error));
    if (constant && a->gathered_of == x.data) return GRAFT_OK;
    a->gathered_of = NULL;
    sum.stride = x.stride;
    if (constant) {
        sum.kind = GR_SUM_CONSTANT;
        sum.block = run->input.whole; /* of all rows, for evaluation too */
    }
    GR_TRY(gr_aggregate_scaled(run, own, sum, error));
    if (constant) a->gathered_of = x.data;
done:
    return rc;
}

struct gr_operand gr_layer_gathered(const struct gr_activations *a)
{
    struct gr_operand x = gr_dense_operand(a->gathered, a->layer->in, a->block->n_dst);

    x.labels = a->label_sums != NULL ? GR_LABELS_GATHERED : GR_LABELS_NONE;
    return x;
}

/* -- forward and backward ----------------------------------------------------------------------------------------- */

/* A step of layer l. From now on, arrays shared with other layers hold the values of this layer. */
static int32_t layer_step(struct gr_run *run, int32_t l, enum gr_step step, struct gr_rows *rows, graft_error *error)
{
    const struct gr_model_kind *kind = gr_run_config(run)->kind;
    struct gr_activations      *a = &run->layers[l];
    const struct gr_operand     x = input_of(run, l);
    const int32_t rc = step == GR_STEP_BEGIN ? kind->begin(run, a, x, error) : kind->forward(run, a, x, rows, error);

    if (a->shared[step]) run->holder[step] = l;
    return rc;
}

static void enter_layer(struct gr_run *run, int32_t l)
{
    run->layer = run->profile.layer = l;
}

/* Copy the n_dst rows of x. */
static void keep_rows(struct gr_run *run, const struct gr_activations *a, const float *x, float *to)
{
    gr_layer_scale(run, gr_dense_operand(x, a->layer->out, a->block->n_dst), NULL, 1, to, a->layer->out);
}

/* The residual connection of layer l (Kipf and Welling 2017, eq. 14). The backward pass of ELU needs the original H. */
static void add_input(struct gr_run *run, int32_t l)
{
    const struct gr_activations *a = &run->layers[l];

    if (a->output != a->h) keep_rows(run, a, a->h, a->output);
    gr_layer_mix(run, a->block->n_dst * a->layer->out, 1, run->layers[l - 1].output, 1, a->output);
}

static int32_t layer_forward(struct gr_run *run, int32_t l, graft_error *error)
{
    const struct gr_activations *a = &run->layers[l];
    const int                    batch = gr_has_batch_norm(run, a->layer);
    struct gr_rows               rows = rows_after(run, l), z = rows;
    int32_t                      rc = GRAFT_OK;

    enter_layer(run, l);
    if (batch && gr_is_training(run)) z.h = NULL; /* until all rows of Z are computed */
    else if (batch) gr_batch_norm_take_running(a);
    if (gr_config_jumps(gr_run_config(run), l)) gr_jumping_join(run);
    GR_TRY(layer_step(run, l, GR_STEP_BEGIN, NULL, error));
    GR_TRY(layer_step(run, l, GR_STEP_Z, &z, error));
    if (batch && gr_is_training(run)) GR_TRY(gr_batch_norm_forward(run, a, &rows, error));
    if (a->layer->adds_input) add_input(run, l);
done:
    return rc;
}

/* Recompute the arrays of layer l that later layers have overwritten. H, the bits of kept elements, mean and deviation
 * still exist, so the pass over rows only recomputes Z. */
static int32_t layer_recompute(struct gr_run *run, int32_t l, graft_error *error)
{
    const struct gr_activations *a = &run->layers[l];
    struct gr_rows               rows = rows_after(run, l);
    int32_t                      rc = GRAFT_OK;

    rows.h = NULL;
    if (a->shared[GR_STEP_BEGIN] && run->holder[GR_STEP_BEGIN] != l)
        GR_TRY(layer_step(run, l, GR_STEP_BEGIN, NULL, error));
    if (a->shared[GR_STEP_Z] && run->holder[GR_STEP_Z] != l) rc = layer_step(run, l, GR_STEP_Z, &rows, error);
done:
    return rc;
}

static void enter_pass(struct gr_run *run, int32_t pass)
{
    run->pass = run->profile.pass = pass;
    run->profile.epoch = run->epoch;
    enter_layer(run, -1);
}

/* In one process a step may be cancelled before each of its layers; over ranks, other ranks would wait for this
 * rank. */
static int32_t check_step(const struct gr_run *run, graft_error *error)
{
    if (run->pass == GRAFT_PASS_EVALUATION || run->strategy->ops->agree != NULL) return GRAFT_OK;
    return gr_check_cancel(run->context, error);
}

int32_t gr_run_forward(struct gr_run *run, int32_t pass, const struct gr_block *const *blocks, graft_error *error)
{
    const struct gr_config *config = gr_run_config(run);
    int32_t                 rc = GRAFT_OK;

    enter_pass(run, pass);
    for (int32_t l = 1; l < config->n_layers; l++) GR_ASSERT(blocks[l]->n_src <= blocks[l - 1]->n_dst);
    for (int32_t l = 0; l < config->n_layers; l++) run->layers[l].block = blocks[l];
    if (gr_is_training(run) && config->input_dropout > 0) drop_input(run, blocks[0]);
    GR_TRY(gr_labels_begin(run, gr_is_training(run), error));
    gr_workers_begin(run);
    for (int32_t l = 0; l < config->n_layers; l++) {
        GR_TRY(check_step(run, error));
        GR_TRY(layer_forward(run, l, error));
    }
    enter_layer(run, -1);
done:
    return gr_workers_end(run, rc, error);
}

int32_t gr_run_layer(struct gr_run *run, int32_t l, const struct gr_block *block, graft_error *error)
{
    enter_pass(run, GRAFT_PASS_EVALUATION);
    run->layers[l].block = block;
    return layer_forward(run, l, error);
}

/* Begin the backward pass over the rows of layer l, whose gradient will be in g. Returns whether there is one. */
static int begin_rows_backward(struct gr_run *run, int32_t l, float *g, struct gr_rows_backward *pass)
{
    const struct gr_layer *layer = run->layers[l].layer;

    *pass = (struct gr_rows_backward){ .rows = rows_after(run, l), .left = run->left[0] };
    pass->gradient = (struct gr_rows_gradient){ .g = g,
                                                .bias = layer->bias != NULL ? layer->bias->gradient : NULL,
                                                .partial = run->partial,
                                                .gain = layer->gain != NULL ? layer->gain->gradient : NULL,
                                                .shift = layer->shift != NULL ? layer->shift->gradient : NULL };
    gr_workers_own_pass(run, l, 0, pass);
    gr_rows_backward_begin(pass);
    return layer->bias != NULL || layer->hidden;
}

/* Whether the output of the layer below layer l is also read by the layer that reads all hidden layers. */
static int is_joined(const struct gr_run *run, int32_t l)
{
    const struct gr_config *config = gr_run_config(run);

    return config->jumping != GR_JUMPING_NONE && l > 0 && l < config->n_weighted;
}

/* Whether the products of layer l write all of the gradient of the layer below, so that it needs no copy. */
static int ends_gradient(const struct gr_run *run, int32_t l)
{
    if (l == 0 || is_joined(run, l)) return 0;
    return !run->layers[l].layer->adds_input && !run->layers[l - 1].layer->adds_input;
}

/* Add to dx, the gradient of the input of layer l, the gradients that bypass the products of the layer. */
static void add_other_gradients(struct gr_run *run, int32_t l, float *dx)
{
    const struct gr_activations *a = &run->layers[l];

    if (a->layer->adds_input) gr_layer_mix(run, a->block->n_dst * a->layer->in, 1, run->residual, 1, dx);
    if (is_joined(run, l)) gr_jumping_gradient(run, l - 1, a->layer->hidden, dx);
}

int32_t gr_run_backward(struct gr_run *run, graft_error *error)
{
    const struct gr_config *config = gr_run_config(run);
    float                  *g = run->gradient[0], *dx = run->gradient[1];
    struct gr_rows_backward pass;
    int32_t                 rc = GRAFT_OK;
    int                     has_pass;

    enter_pass(run, GRAFT_PASS_BACKWARD);
    gr_workers_begin(run);
    has_pass = begin_rows_backward(run, config->n_layers - 1, g, &pass);
    for (int32_t l = config->n_layers - 1; l >= 0; l--) {
        struct gr_activations *a = &run->layers[l];
        struct gr_epilogue     below = { .some = gr_rows_backward_part, .arg = &pass };
        float *const           to = l > 0 ? dx : NULL;

        enter_layer(run, l);
        GR_TRY(check_step(run, error));
        GR_TRY(layer_recompute(run, l, error));
        if (a->layer->adds_input) keep_rows(run, a, g, run->residual);
        if (has_pass) gr_layer_rows_backward(run, &pass);
        if (gr_has_batch_norm(run, a->layer)) GR_TRY(gr_batch_norm_backward(run, &pass, error));
        if (l > 0) has_pass = begin_rows_backward(run, l - 1, dx, &pass);
        below.bits = pass.rows.bits;
        /* With recompute, the layer below must first recompute arrays for its pass, which would overwrite arrays of
         * this layer. */
        run->below = has_pass && ends_gradient(run, l) && !config->recompute ? &below : NULL;
        GR_TRY(
            config->kind->backward(run, a, input_of(run, l), g, gr_config_jumps(config, l) ? run->jumped : to, error));
        add_other_gradients(run, l, to);
        dx = g;
        g = to;
    }
    enter_layer(run, -1);
done:
    run->below = NULL;
    return gr_workers_end(run, rc, error);
}

const float *gr_run_logits(const struct gr_run *run)
{
    return run->layers[gr_run_config(run)->n_layers - 1].z;
}

int32_t gr_run_step(struct gr_run *run, const struct gr_block *const *blocks, double *loss, graft_error *error)
{
    const int64_t rows = blocks[gr_run_config(run)->n_layers - 1]->n_dst;
    double        begin;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_run_forward(run, GRAFT_PASS_FORWARD, blocks, error));
    begin = gr_profile_begin(&run->profile);
    *loss = gr_loss_gradient(run, rows, gr_run_logits(run), run->gradient[0]);
    gr_profile_end(&run->profile, "loss", begin, 8 * (double)rows * (double)run->targets.n_classes, 0);
    rc = gr_run_backward(run, error);
done:
    return rc;
}
