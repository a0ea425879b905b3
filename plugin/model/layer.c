/* All layers, forward and backward: what the kind of model does, and the passes over rows behind it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dropout.h"
#include "model/labels.h"

#include <string.h>

const struct gr_layer_kind gr_layer_kinds[GR_MODEL_KINDS] = {
    [GR_MODEL_SAGE] = { "sage", 0, gr_conv_init, gr_conv_begin, gr_conv_forward, gr_conv_backward },
    [GR_MODEL_GCN] = { "gcn", 1, gr_conv_init, gr_conv_begin, gr_conv_forward, gr_conv_backward },
    [GR_MODEL_GAT] = { "gat", 1, gr_gat_init, gr_gat_begin, gr_gat_forward, gr_gat_backward },
    [GR_MODEL_GIN] = { "gin", 0, gr_gin_init, gr_gin_begin, gr_gin_forward, gr_gin_backward },
    [GR_MODEL_MLP] = { "mlp", 0, gr_conv_init, gr_conv_begin, gr_conv_forward, gr_conv_backward },
};

/* The passes over rows behind layer l; dropout with the bits of this epoch, none if not training. */
static struct gr_rows rows_behind(const graft_trainer *t, int32_t l, int training)
{
    const struct gr_layer *layer = &t->layers[l];
    struct gr_rows         rows = {
                .n = layer->rows_out,
                .width = layer->out,
                .team = gr_profile_team(t),
                .isa = t->isa,
                .bias = layer->bias->value,
                .z = layer->z,
    };

    if (!layer->hidden) return rows;
    rows.h = layer->h;
    rows.bits = layer->bits;
    if (layer->gain != NULL) {
        rows.gain = layer->gain->value;
        rows.shift = layer->shift->value;
        rows.mean = layer->mean;
        rows.rstd = layer->rstd;
    }
    rows.vertex = t->vertex;
    rows.key = gr_random_key(t->config.seed, GR_RANDOM_DROPOUT, (uint64_t)t->progress.epoch, (uint64_t)l + 1);
    rows.threshold = training ? gr_dropout_threshold(t->config.dropout) : 0;
    return rows;
}

/* Of a pass over rows: Z and H, or their gradients, read and written. */
static double rows_bytes(const struct gr_rows *rows)
{
    return 4 * (double)rows->n * (double)rows->width * (rows->h != NULL && rows->h != rows->z ? 3 : 2);
}

/* The features, with dropout in training. */
static struct gr_operand features_of(const graft_trainer *t, int64_t rows, int training)
{
    if (training && t->x_dropped != NULL) return gr_dense_operand(t->x_dropped, t->config.width[0], rows);
    if (t->x != NULL) return gr_dense_operand(t->x, t->x_stride, rows);
    return (struct gr_operand){ .rows = rows, .sparse = training ? t->sparse.step : &t->sparse.whole };
}

static struct gr_operand input_of(const graft_trainer *t, int32_t l, int training)
{
    const int64_t     rows = t->layers[l].rows_in;
    struct gr_operand x;

    if (l > 0) return gr_dense_operand(t->layers[l - 1].h, t->layers[l - 1].out, rows);
    x = features_of(t, rows, training);
    x.labels = gr_propagates(t) ? GR_LABELS_OWN : GR_LABELS_NONE;
    return x;
}

struct gr_operand gr_layer_gathered(const struct gr_layer *layer)
{
    struct gr_operand x = gr_dense_operand(layer->gathered, layer->in, layer->rows_out);

    x.labels = layer->label_sums != NULL ? GR_LABELS_GATHERED : GR_LABELS_NONE;
    return x;
}

/* The rows of a pass: in training, those that training vertices depend on. */
static void set_rows(graft_trainer *t, int training)
{
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        struct gr_layer *layer = &t->layers[l];
        const int        masked = training && layer->masked_a != NULL;

        layer->rows_in = training ? t->reach[l] : t->n;
        layer->rows_out = training ? t->reach[l + 1] : t->n;
        layer->a = masked ? layer->masked_a : t->a;
        layer->a_transpose = masked ? layer->masked_transpose : t->a_transpose;
        layer->plan = training && layer->masked_plan != NULL ? layer->masked_plan : t->ranks.plan;
    }
}

/* Columns that pass through the sparse product with A, forward and backward, in either order; the first layer sends no
 * gradient back to its input. The cheaper one is taken; what is aggregated once costs nothing, and sparse features are
 * in no product with A. Labels have columns of their own if they are aggregated first. */
int gr_layer_aggregates_first(const graft_trainer *t, int32_t l)
{
    const struct gr_layer *layer = &t->layers[l];
    const int64_t          more = l > 0 ? layer->in : gr_propagates(t) ? t->data.n_classes : 0;

    if (l == 0 && t->keeps_sparse) return 0;
    if (l == 0 && gr_gathers_once(t)) return 1;
    return layer->in + more <= 2 * layer->out;
}

void gr_layer_clear_rest(const graft_trainer *t, const struct gr_layer *layer, float *x, int64_t width)
{
    const uint64_t rows = (uint64_t)(layer->rows_in - layer->rows_out);
    const double   begin = gr_profile_begin(t);

    memset(x + layer->rows_out * width, 0, rows * (uint64_t)width * sizeof *x);
    gr_profile_end_alone(t, "rows", begin);
}

void gr_layer_scale(const graft_trainer *t, struct gr_operand x, const float *scale, float factor, float *out,
                    int64_t width)
{
    const double           begin = gr_profile_begin(t);
    struct gr_rows_scaling scaling = { .n = x.rows,
                                       .width = width,
                                       .x_stride = x.stride,
                                       .team = gr_profile_team(t),
                                       .x = x.data,
                                       .scale = scale,
                                       .factor = factor,
                                       .out = out };

    gr_rows_scale(&scaling);
    gr_profile_end(t, "rows", begin, 8 * (double)x.rows * (double)width, (double)x.rows * (double)width);
}

/* By a sum of `rows` rows, what the formula of the model has of neighbours. */
static int32_t gather(const graft_trainer *t, const struct gr_layer *layer, int64_t rows, struct gr_sum *sum,
                      graft_error *error)
{
    if (t->config.kind == GR_MODEL_GIN) {
        const float factor = (float)(1 + t->config.gin_eps);

        gr_layer_scale(t, gr_dense_operand(sum->x.data, sum->x.stride, rows), NULL, factor, sum->out, sum->width);
        sum->add = 1;
    }
    if (t->right != NULL) {
        gr_layer_scale(t, sum->x, t->right, 0, t->scratch, sum->width);
        sum->x = gr_dense_operand(t->scratch, sum->width, sum->x.rows);
    }
    sum->scale = t->left;
    return gr_product_gather(t, layer, sum, error);
}

/* A (X + L E) is A X and A L times E, so that A X stays as it is; these are A L. */
static int32_t gather_labels(const graft_trainer *t, struct gr_layer *layer, graft_error *error)
{
    const int64_t classes = t->data.n_classes;
    struct gr_sum sum = { .way = GR_GATHER_LABELS,
                          .x = gr_dense_operand(t->scratch, classes, layer->rows_in),
                          .width = classes,
                          .out = layer->label_sums };
    int32_t       rc = GRAFT_OK;

    if (layer->has_label_sums) return GRAFT_OK;
    gr_labels_fill(t, layer->rows_in, t->scratch);
    GR_TRY(gather(t, layer, layer->rows_out, &sum, error));
    layer->has_label_sums = 1;
done:
    return rc;
}

int32_t gr_layer_gather(const graft_trainer *t, struct gr_layer *layer, struct gr_operand x, graft_error *error)
{
    const int     keeps = layer == &t->layers[0] && gr_gathers_once(t); /* arrays of no rows may all be NULL */
    struct gr_sum sum = { .way = keeps ? GR_GATHER_ALL : GR_GATHER, .width = layer->in, .out = layer->gathered };
    int32_t       rc = GRAFT_OK;

    if (x.labels != GR_LABELS_NONE) GR_TRY(gather_labels(t, layer, error));
    if (keeps && layer->gathered_of == x.data) return GRAFT_OK;
    layer->gathered_of = NULL;
    if (keeps) x.rows = t->n; /* of all rows, for evaluation too */
    sum.x = x;
    GR_TRY(gather(t, layer, keeps ? t->n : layer->rows_out, &sum, error));
    if (keeps) layer->gathered_of = t->x;
done:
    return rc;
}

static void drop_input(graft_trainer *t)
{
    const double        begin = gr_profile_begin(t);
    struct gr_rows_drop rows = { .n = t->reach[0],
                                 .width = t->config.width[0],
                                 .x_stride = t->x_stride,
                                 .team = gr_profile_team(t),
                                 .x = t->x,
                                 .out = t->x_dropped,
                                 .key =
                                     gr_random_key(t->config.seed, GR_RANDOM_DROPOUT, (uint64_t)t->progress.epoch, 0),
                                 .threshold = gr_dropout_threshold(t->config.input_dropout),
                                 .isa = t->isa,
                                 .vertex = t->vertex };

    if (t->x == NULL) gr_sparse_dropout(t, rows.key, rows.threshold);
    else gr_rows_dropout(&rows);
    gr_profile_end(t, "rows", begin, 0, 0);
}

void gr_layer_rows_forward(const graft_trainer *t, const struct gr_rows *rows)
{
    const double begin = gr_profile_begin(t);

    gr_rows_forward(rows);
    gr_profile_end(t, "rows", begin, rows_bytes(rows), 0);
}

void gr_layer_rows_backward(const graft_trainer *t, const struct gr_rows *rows, const struct gr_rows_gradient *gradient)
{
    const double begin = gr_profile_begin(t);

    gr_rows_backward(rows, gradient);
    gr_profile_end(t, "rows", begin, rows_bytes(rows), 0);
}

/* A step of layer l. The arrays that it shares with other layers hold its values from now on. */
static int32_t run_step(graft_trainer *t, int32_t l, enum gr_step step, struct gr_rows *rows, int training,
                        graft_error *error)
{
    const struct gr_layer_kind *kind = &gr_layer_kinds[t->config.kind];
    const struct gr_operand     x = input_of(t, l, training);
    const int32_t               rc = step == GR_STEP_BEGIN ? kind->begin(t, &t->layers[l], x, error)
                                                           : kind->forward(t, &t->layers[l], x, rows, error);

    if (t->layers[l].shares[step]) t->holder[step] = l;
    return rc;
}

static int32_t layer_forward(graft_trainer *t, int32_t l, int training, graft_error *error)
{
    struct gr_rows rows = rows_behind(t, l, training);
    int32_t        rc = GRAFT_OK;

    t->layer_now = l;
    GR_TRY(run_step(t, l, GR_STEP_BEGIN, NULL, training, error));
    rc = run_step(t, l, GR_STEP_Z, &rows, training, error);
done:
    return rc;
}

/* Make again what layer l had in arrays that later layers have written since. H, the bits of what got through, mean and
 * deviation are there, so that behind Z the bias alone is missing. */
static int32_t layer_remake(graft_trainer *t, int32_t l, graft_error *error)
{
    const struct gr_layer *layer = &t->layers[l];
    struct gr_rows         rows = rows_behind(t, l, 1);
    int32_t                rc = GRAFT_OK;

    rows.h = NULL;
    if (layer->shares[GR_STEP_BEGIN] && t->holder[GR_STEP_BEGIN] != l)
        GR_TRY(run_step(t, l, GR_STEP_BEGIN, NULL, 1, error));
    if (layer->shares[GR_STEP_Z] && t->holder[GR_STEP_Z] != l) rc = run_step(t, l, GR_STEP_Z, &rows, 1, error);
done:
    return rc;
}

int32_t gr_layers_forward(graft_trainer *t, int training, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    set_rows(t, training);
    t->pass_now = training ? GRAFT_PASS_FORWARD : GRAFT_PASS_EVALUATION;
    t->layer_now = -1;
    if (training && t->config.input_dropout > 0) drop_input(t);
    GR_TRY(gr_labels_begin(t, training, error));
    for (int32_t l = 0; l < t->config.n_layers; l++) GR_TRY(layer_forward(t, l, training, error));
    t->layer_now = -1;
done:
    return rc;
}

int32_t gr_layers_backward(graft_trainer *t, graft_error *error)
{
    float  *g = t->gradient[0], *dx = t->gradient[1];
    int32_t rc = GRAFT_OK;

    t->pass_now = GRAFT_PASS_BACKWARD;
    for (int32_t l = t->config.n_layers - 1; l >= 0; l--) {
        struct gr_layer              *layer = &t->layers[l];
        const struct gr_rows          rows = rows_behind(t, l, 1);
        const struct gr_rows_gradient gradient = { .g = g,
                                                   .bias = layer->bias->gradient,
                                                   .partial = t->partial,
                                                   .gain = layer->gain != NULL ? layer->gain->gradient : NULL,
                                                   .shift = layer->shift != NULL ? layer->shift->gradient : NULL };
        float *const                  to = l > 0 ? dx : NULL;

        t->layer_now = l;
        GR_TRY(layer_remake(t, l, error));
        gr_layer_rows_backward(t, &rows, &gradient);
        GR_TRY(gr_layer_kinds[t->config.kind].backward(t, layer, input_of(t, l, 1), g, to, error));
        dx = g;
        g = to;
    }
    t->layer_now = -1;
done:
    return rc;
}
