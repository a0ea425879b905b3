/* Runs all layers in their order, forward and backward, by the functions of the kind of model and the operations on
 * rows that follow them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dropout.h"
#include "base/parallel.h"
#include "model/kind.h"
#include "model/labels.h"
#include "model/rows.h"
#include "model/workers.h"
#include "run/loss.h"
#include "run/pass.h"

#include <string.h>

/* Describe the operations on rows that follow layer l. Dropout uses the bits of this epoch, and is omitted in
 * evaluations. */
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
    rows.is_elu = config->hidden.is_elu;
    rows.drops_first = config->hidden.drops_first;
    if (layer->gain != NULL) {
        rows.gain = layer->gain->value;
        rows.shift = layer->shift->value;
        rows.mean = a->mean;
        rows.rstd = a->rstd;
        rows.norms_columns = config->hidden.norm == GR_NORM_BATCH;
    }
    rows.vertex = a->block->vertex;
    rows.key = gr_random_key(config->seed, GR_RANDOM_DROPOUT, (uint64_t)run->epoch, (uint64_t)l + 1);
    rows.threshold = gr_is_training(run) ? gr_dropout_threshold(config->hidden.dropout) : 0;
    return rows;
}

/* Jumping knowledge (Xu et al. 2018): the last layer with weights reads J, the outputs of all hidden layers side by
 * side, or their maximum in each element. J has the rows that this layer reads, which every hidden layer makes. */
struct jump {
    const struct gr_run *run;
    int32_t              last; /* index of the layer that reads J */
    int32_t              from; /* layer whose part of the gradient of J is wanted */
    int                  add;
    float               *gradient;
};

static struct jump jump_of(const struct gr_run *run)
{
    return (struct jump){ .run = run, .last = gr_run_config(run)->n_weighted - 1 };
}

static const float *output_row(const struct jump *jump, int32_t l, int64_t row)
{
    const struct gr_activations *a = &jump->run->layers[l];

    return a->output + row * a->layer->out;
}

/* Compute the maximum of the outputs of hidden layers in a row. Of equal elements the first layer's counts. A NaN is
 * kept, so that it shows in the loss. */
static void join_largest(const struct jump *jump, int64_t row, int64_t width, float *to)
{
    memcpy(to, output_row(jump, 0, row), (uint64_t)width * sizeof *to);
    for (int32_t l = 1; l < jump->last; l++) {
        const float *h = output_row(jump, l, row);

        for (int64_t j = 0; j < width; j++) to[j] = h[j] > to[j] || h[j] != h[j] ? h[j] : to[j];
    }
}

static void join_rows(void *arg, int64_t begin, int64_t end)
{
    const struct jump           *jump = arg;
    const struct gr_activations *a = &jump->run->layers[jump->last];

    for (int64_t row = begin; row < end; row++) {
        float *to = a->joined + row * a->layer->in;

        if (gr_run_config(jump->run)->hidden.jumping == GR_JUMPING_MAX) {
            join_largest(jump, row, a->layer->in, to);
            continue;
        }
        for (int32_t l = 0; l < jump->last; l++) {
            const int64_t width = jump->run->layers[l].layer->out;

            memcpy(to, output_row(jump, l, row), (uint64_t)width * sizeof *to);
            to += width;
        }
    }
}

static void over_rows(struct gr_run *run, struct jump *jump, gr_rows_fn body)
{
    const struct gr_activations *a = &run->layers[jump->last];
    const int64_t                rows = a->block->n_src, elements = rows * a->layer->in;
    const double                 begin = gr_profile_begin(&run->profile);

    gr_parallel_rows(gr_run_team(run), elements, rows, GR_CHUNK_ROWS, body, jump);
    gr_profile_end(&run->profile, "rows", begin, 8 * (double)elements, 0);
}

static void join_outputs(struct gr_run *run)
{
    struct jump jump = jump_of(run);

    over_rows(run, &jump, join_rows);
}

/* Whether element (row, j) of J is from layer jump->from. */
static int gives_largest(const struct jump *jump, int64_t row, int64_t j, float joined)
{
    for (int32_t l = 0; l < jump->from; l++)
        if (output_row(jump, l, row)[j] == joined) return 0;
    return output_row(jump, jump->from, row)[j] == joined;
}

static void part_rows(void *arg, int64_t begin, int64_t end)
{
    const struct jump           *jump = arg;
    const struct gr_run         *run = jump->run;
    const struct gr_activations *a = &run->layers[jump->last];
    const int64_t                width = run->layers[jump->from].layer->out, in = a->layer->in;
    const int                    largest = gr_run_config(run)->hidden.jumping == GR_JUMPING_MAX;
    int64_t                      first = 0; /* first column of the layer's part of J */

    for (int32_t l = 0; l < jump->from && !largest; l++) first += run->layers[l].layer->out;
    for (int64_t row = begin; row < end; row++) {
        const float *from = run->space.jumped + row * in + first;
        float       *g = jump->gradient + row * width;

        for (int64_t j = 0; j < width; j++) {
            const float part = !largest || gives_largest(jump, row, j, a->joined[row * in + j]) ? from[j] : 0;

            g[j] = jump->add ? g[j] + part : part;
        }
    }
}

/* Take the gradient of layer l's output out of run->space.jumped, the gradient of J, and write it to `gradient`, or add
 * it if `add` is not 0. `gradient` has the rows of J. */
static void split_gradient(struct gr_run *run, int32_t l, int add, float *gradient)
{
    struct jump jump = jump_of(run);

    GR_ASSERT(l < jump.last);
    jump.from = l;
    jump.add = add;
    jump.gradient = gradient;
    over_rows(run, &jump, part_rows);
}

/* Run one step of layer l. From then on arrays that layers share have the values of layer l. */
static int32_t layer_step(struct gr_run *run, int32_t l, enum gr_step step, struct gr_rows *rows, graft_error *error)
{
    const struct gr_model_kind *kind = gr_run_config(run)->kind;
    struct gr_activations      *a = &run->layers[l];
    const struct gr_operand     x = gr_run_input(run, l);

    if (a->shared[step]) run->holder[step] = l;
    if (step == GR_STEP_Z) return kind->forward(run, a, x, rows, error);
    return kind->begin != NULL ? kind->begin(run, a, x, error) : GRAFT_OK;
}

static void enter_layer(struct gr_run *run, int32_t l)
{
    run->layer = run->profile.layer = l;
}

/* Copy the first n_dst rows of x. */
static void keep_rows(struct gr_run *run, const struct gr_activations *a, const float *x, float *to)
{
    gr_model_layer_scale(run, gr_dense_operand(x, a->layer->out, a->block->n_dst), NULL, 1, to, a->layer->out);
}

/* Add the residual connection of layer l (Kipf and Welling 2017, eq. 14). H itself is kept for the backward pass of
 * ELU. */
static void add_input(struct gr_run *run, int32_t l)
{
    const struct gr_activations *a = &run->layers[l];

    if (a->output != a->h) keep_rows(run, a, a->h, a->output);
    gr_model_layer_mix(run, a->block->n_dst * a->layer->out, 1, run->layers[l - 1].output, 1, a->output);
}

static int32_t layer_forward(struct gr_run *run, int32_t l, graft_error *error)
{
    const struct gr_activations *a = &run->layers[l];
    const int                    batch = gr_has_batch_norm(run, a->layer);
    struct gr_rows               rows = rows_after(run, l), z = rows;

    enter_layer(run, l);
    if (batch && gr_is_training(run)) z.h = NULL; /* H is computed later, when all rows of Z are known */
    else if (batch) gr_run_batch_norm_take_running(a);
    if (gr_model_config_jumps(gr_run_config(run), l)) join_outputs(run);
    GR_TRY(layer_step(run, l, GR_STEP_BEGIN, NULL, error));
    GR_TRY(layer_step(run, l, GR_STEP_Z, &z, error));
    if (batch && gr_is_training(run)) GR_TRY(gr_run_batch_norm_forward(run, a, &rows, error));
    if (a->layer->adds_input) add_input(run, l);
    return GRAFT_OK;
}

/* Recompute the arrays of layer l that later layers have overwritten. H, the dropout bits, mean and deviation still
 * exist, so of the operations on rows only those for Z are repeated. */
static int32_t layer_recompute(struct gr_run *run, int32_t l, graft_error *error)
{
    const struct gr_activations *a = &run->layers[l];
    struct gr_rows               rows = rows_after(run, l);

    rows.h = NULL;
    if (a->shared[GR_STEP_BEGIN] && run->holder[GR_STEP_BEGIN] != l)
        GR_TRY(layer_step(run, l, GR_STEP_BEGIN, NULL, error));
    if (a->shared[GR_STEP_Z] && run->holder[GR_STEP_Z] != l) return layer_step(run, l, GR_STEP_Z, &rows, error);
    return GRAFT_OK;
}

static void enter_pass(struct gr_run *run, int32_t pass)
{
    run->pass = run->profile.pass = pass;
    run->profile.epoch = run->epoch;
    enter_layer(run, -1);
}

/* Check whether the host has cancelled the step, before each layer. Only in one process: over ranks, the others would
 * wait for this rank. */
static int32_t check_step(const struct gr_run *run, graft_error *error)
{
    if (run->pass == GRAFT_PASS_EVALUATION || run->strategy->ops->agree != NULL) return GRAFT_OK;
    return gr_context_check_cancel(run->context, error);
}

int32_t gr_run_forward(struct gr_run *run, int32_t pass, const struct gr_block *const *blocks, graft_error *error)
{
    const struct gr_config *config = gr_run_config(run);
    int32_t                 rc = GRAFT_OK;

    enter_pass(run, pass);
    for (int32_t l = 1; l < config->n_layers; l++) GR_ASSERT(blocks[l]->n_src <= blocks[l - 1]->n_dst);
    for (int32_t l = 0; l < config->n_layers; l++) run->layers[l].block = blocks[l];
    if (gr_is_training(run) && config->input_dropout > 0) gr_run_drop_input(run, blocks[0]);
    if (gr_propagates(run)) GR_TRY_DONE(gr_model_labels_begin(run, gr_is_training(run), error));
    gr_model_workers_begin(run);
    for (int32_t l = 0; l < config->n_layers; l++) {
        GR_TRY_DONE(check_step(run, error));
        GR_TRY_DONE(layer_forward(run, l, error));
    }
    enter_layer(run, -1);
done:
    return gr_model_workers_end(run, rc, error);
}

int32_t gr_run_layer(struct gr_run *run, int32_t l, const struct gr_block *block, graft_error *error)
{
    enter_pass(run, GRAFT_PASS_EVALUATION);
    run->layers[l].block = block;
    return layer_forward(run, l, error);
}

/* Begin the backward pass over the rows of layer l, whose gradient will be in g. \return whether the layer has such a
 * pass */
static int begin_rows_backward(struct gr_run *run, int32_t l, float *g, struct gr_rows_backward *pass)
{
    const struct gr_layer *layer = run->layers[l].layer;

    *pass = (struct gr_rows_backward){ .rows = rows_after(run, l), .left = run->space.left[0] };
    pass->gradient = (struct gr_rows_gradient){ .g = g,
                                                .bias = layer->bias != NULL ? layer->bias->gradient : NULL,
                                                .partial = run->space.partial,
                                                .gain = layer->gain != NULL ? layer->gain->gradient : NULL,
                                                .shift = layer->shift != NULL ? layer->shift->gradient : NULL };
    gr_model_workers_own_pass(run, l, 0, pass);
    gr_nn_rows_backward_begin(pass);
    return layer->bias != NULL || layer->hidden;
}

/* Whether layer l - 1 is hidden and its output is also part of J. */
static int is_joined(const struct gr_run *run, int32_t l)
{
    const struct gr_config *config = gr_run_config(run);

    return config->hidden.jumping != GR_JUMPING_NONE && l > 0 && l < config->n_weighted;
}

/* Whether the products of layer l write the complete gradient of the output of layer l - 1, so that nothing is added
 * later. */
static int ends_gradient(const struct gr_run *run, int32_t l)
{
    if (l == 0 || is_joined(run, l)) return 0;
    return !run->layers[l].layer->adds_input && !run->layers[l - 1].layer->adds_input;
}

/* Add to dx, the gradient of the input of layer l, those gradients that do not pass through the products of the
 * layer. */
static void add_other_gradients(struct gr_run *run, int32_t l, float *dx)
{
    const struct gr_activations *a = &run->layers[l];

    if (a->layer->adds_input) gr_model_layer_mix(run, a->block->n_dst * a->layer->in, 1, run->space.residual, 1, dx);
    if (is_joined(run, l)) split_gradient(run, l - 1, a->layer->hidden, dx);
}

/* Compute the gradients of all parameters from run->space.gradient[0], the gradient of the logits [n_dst of the last
 * layer x classes], after a forward pass of training over the same blocks. */
static int32_t run_backward(struct gr_run *run, graft_error *error)
{
    const struct gr_config *config = gr_run_config(run);
    float                  *g = run->space.gradient[0], *dx = run->space.gradient[1];
    struct gr_rows_backward pass;
    int32_t                 rc = GRAFT_OK;
    int                     has_pass;

    enter_pass(run, GRAFT_PASS_BACKWARD);
    gr_model_workers_begin(run);
    has_pass = begin_rows_backward(run, config->n_layers - 1, g, &pass);
    for (int32_t l = config->n_layers - 1; l >= 0; l--) {
        struct gr_activations *a = &run->layers[l];
        struct gr_epilogue     below = { .some = gr_nn_rows_backward_part, .arg = &pass };
        float *const           to = l > 0 ? dx : NULL;

        enter_layer(run, l);
        GR_TRY_DONE(check_step(run, error));
        GR_TRY_DONE(layer_recompute(run, l, error));
        if (a->layer->adds_input) keep_rows(run, a, g, run->space.residual);
        if (has_pass) gr_model_layer_rows_backward(run, &pass);
        if (gr_has_batch_norm(run, a->layer)) GR_TRY_DONE(gr_run_batch_norm_backward(run, &pass, error));
        if (l > 0) has_pass = begin_rows_backward(run, l - 1, dx, &pass);
        below.bits = pass.rows.bits;
        /* With recompute, the pass of the layer below needs arrays that must be recomputed first, which would overwrite
         * arrays of this layer. */
        run->below = has_pass && ends_gradient(run, l) && !config->recompute ? &below : NULL;
        GR_TRY_DONE(config->kind->backward(run, a, gr_run_input(run, l), g,
                                           gr_model_config_jumps(config, l) ? run->space.jumped : to, error));
        add_other_gradients(run, l, to);
        dx = g;
        g = to;
    }
    enter_layer(run, -1);
done:
    run->below = NULL;
    return gr_model_workers_end(run, rc, error);
}

const float *gr_run_logits(const struct gr_run *run)
{
    return run->layers[gr_run_config(run)->n_layers - 1].z;
}

int32_t gr_run_step(struct gr_run *run, const struct gr_block *const *blocks, double *loss, graft_error *error)
{
    const int64_t rows = blocks[gr_run_config(run)->n_layers - 1]->n_dst;
    double        begin;

    GR_TRY(gr_run_forward(run, GRAFT_PASS_FORWARD, blocks, error));
    begin = gr_profile_begin(&run->profile);
    *loss = gr_run_loss_gradient(run, rows, gr_run_logits(run), run->space.gradient[0]);
    gr_profile_end(&run->profile, "loss", begin, 8 * (double)rows * (double)run->targets.n_classes, 0);
    return run_backward(run, error);
}
