/* A kind of model with arrays of its own is one file: toy_kind.c. No file of the library names it, yet it trains, its
 * gradient is the gradient of the loss, and option recompute applies to its arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dense/dense.h"
#include "harness/tap.h"
#include "nn/optimizer.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"
#include "parallel/strategies.h"
#include "run/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

extern const struct gr_model_kind gr_kind_toy;

enum { N = 40, FEATURES = 6, CLASSES = 3, LAYERS = 3, DEGREE = 3, STEPS = 200 };

static const graft_api *api;

/* -- a graph, its data, and a run --------------------------------------------------------------------------------- */

struct scene {
    double             edge[N][N]; /* symmetric */
    int64_t            row_ptr[N + 1];
    int32_t            col_idx[N * N];
    float              values[N * N], x[N * FEATURES];
    int32_t            labels[N];
    uint8_t            split[N];
    struct gr_block    block;
    struct gr_budget   budget;
    struct gr_model    model;
    struct gr_run      run;
    struct gr_strategy serial;
};

static void make_data(struct scene *s)
{
    struct sample sample = { 5 };
    int64_t       at = 0;

    for (int64_t i = 0; i < N * DEGREE; i++) {
        const int64_t v = sample_below(&sample, N); /* edges join vertices of the same class */
        const int64_t u = v % CLASSES + CLASSES * sample_below(&sample, N / CLASSES);

        s->edge[v][u] = s->edge[u][v] = (double)(float)sample_real(&sample, 0.1, 0.3);
    }
    for (int64_t v = 0; v < N; v++) {
        for (int64_t u = 0; u < N; u++) {
            if (s->edge[v][u] == 0) continue;
            s->col_idx[at] = (int32_t)u;
            s->values[at++] = (float)s->edge[v][u];
        }
        s->row_ptr[v + 1] = at;
        s->labels[v] = (int32_t)(v % CLASSES);
        s->split[v] = GRAFT_SPLIT_TRAIN;
        for (int64_t j = 0; j < FEATURES; j++)
            s->x[v * FEATURES + j] = (float)(sample_real(&sample, -1, 1) + (j == s->labels[v] ? 1 : 0));
    }
}

static void configure(struct scene *s, int recompute)
{
    struct gr_config *config = &s->model.config;

    *config = (struct gr_config){ .kind = &gr_kind_toy,
                                  .n_layers = LAYERS,
                                  .n_weighted = LAYERS,
                                  .width = { FEATURES, 8, 5, CLASSES },
                                  .attention = { .heads = 1 },
                                  .loss = { .kind = GR_LOSS_SOFTMAX },
                                  .seed = 3,
                                  .recompute = recompute };
}

static int32_t open_scene(struct scene *s, int recompute, graft_error *error)
{
    const struct gr_capacity capacity = { .rows = N, .seen = N, .gradient_rows = N, .label_rows = N };
    const graft_csr          csr = { .size = sizeof csr,
                                     .index_type = GRAFT_I32,
                                     .value_type = GRAFT_F32,
                                     .n_rows = N,
                                     .n_cols = N,
                                     .row_ptr = s->row_ptr,
                                     .col_idx = s->col_idx,
                                     .values = s->values };

    make_data(s);
    configure(s, recompute);
    gr_budget_init(&s->budget, api->context, 0);
    s->serial.ops = &gr_serial_ops;
    s->block = (struct gr_block){ .n_dst = N, .n_src = N, .n_seen = N };
    s->run = (struct gr_run){ .context = api->context,
                              .model = &s->model,
                              .strategy = &s->serial,
                              .threads = 2,
                              .isa = gr_processor_isa(),
                              .input = { .x = s->x, .type = GRAFT_F32, .stride = FEATURES, .whole = &s->block },
                              .targets = { .labels = s->labels,
                                           .split = s->split,
                                           .n = N,
                                           .n_classes = CLASSES,
                                           .n_train = N,
                                           .loss_weight = N } };
    s->run.profile.team = 2;
    GR_TRY(gr_matrix_create(api->context, &csr, &s->block.a, error));
    s->block.a_transpose = s->block.a;
    GR_TRY(gr_dense_choose(api->context, &s->run.dense_type, &s->run.dense, error));
    GR_TRY(gr_model_describe(&s->model, &s->budget, error));
    GR_TRY(gr_nn_init(&s->model.parameters, &s->budget, s->model.config.seed, error));
    gr_run_plan(&s->run, &s->budget, &capacity);
    return gr_run_init(&s->run, &s->budget, &capacity, error);
}

static void close_scene(struct scene *s)
{
    gr_matrix_destroy(s->block.a);
    gr_budget_fini(&s->budget);
}

static int32_t step(struct scene *s, double *loss, graft_error *error)
{
    const struct gr_block *const blocks[LAYERS] = { &s->block, &s->block, &s->block };

    return gr_run_step(&s->run, blocks, loss, error);
}

/* -- the definition, in double ------------------------------------------------------------------------------------ */

static double row_loss(const double *z, int32_t label)
{
    double sum = 0;

    for (int64_t j = 0; j < CLASSES; j++) sum += exp(z[j]);
    return log(sum) - z[label];
}

/* One layer, from h[N x in] to h[N x out]. */
static void layer_by_definition(const struct scene *s, int32_t l, double h[N][8])
{
    const struct gr_layer *layer = &s->model.layers[l];
    double                 squares[N][8] = { { 0 } };

    for (int64_t v = 0; v < N; v++)
        for (int64_t j = 0; j < layer->out; j++) {
            double sum = 0;

            for (int64_t i = 0; i < layer->in; i++) sum += h[v][i] * (double)layer->neigh->value[i * layer->out + j];
            squares[v][j] = sum * sum;
        }
    for (int64_t v = 0; v < N; v++)
        for (int64_t j = 0; j < layer->out; j++) {
            double sum = (double)layer->bias->value[j];

            for (int64_t u = 0; u < N; u++) sum += s->edge[v][u] * squares[u][j];
            h[v][j] = l + 1 < LAYERS && sum < 0 ? 0 : sum;
        }
}

static double loss_by_definition(const struct scene *s)
{
    double h[N][8] = { { 0 } }, loss = 0;

    for (int64_t v = 0; v < N; v++)
        for (int64_t j = 0; j < FEATURES; j++) h[v][j] = (double)s->x[v * FEATURES + j];
    for (int32_t l = 0; l < LAYERS; l++) layer_by_definition(s, l, h);
    for (int64_t v = 0; v < N; v++) loss += row_loss(h[v], s->labels[v]);
    return loss / N;
}

/* The slope of the definition between two values of one weight, which are floats. */
static double slope_of(const struct scene *s, float *weight)
{
    const float before = *weight, low = before - 1e-4f, high = before + 1e-4f;
    double      slope;

    *weight = high;
    slope = loss_by_definition(s);
    *weight = low;
    slope = (slope - loss_by_definition(s)) / ((double)high - (double)low);
    *weight = before;
    return slope;
}

/* -- checks ------------------------------------------------------------------------------------------------------- */

static void check_gradient(struct scene *s)
{
    graft_error   error = GRAFT_INIT(graft_error);
    double        loss = 0, expected = loss_by_definition(s), far = 0, largest = 0;
    int64_t       count = 0;
    const int32_t rc = step(s, &loss, &error);

    if (!ok(rc == GRAFT_OK && fabs(loss - expected) < 1e-6 * expected, "the loss of the toy kind is %.6f", loss))
        diag("expected %.6f; %s", expected, error.message);
    for (int32_t i = 0; i < s->model.parameters.count; i++) {
        struct gr_parameter *p = &s->model.parameters.list[i];

        for (int64_t at = 0; at < gr_parameter_elements(p); at++, count++) {
            const double slope = slope_of(s, &p->value[at]);

            far = fmax(far, fabs(slope - (double)p->gradient[at]));
            largest = fmax(largest, fabs(slope));
        }
    }
    if (!ok(count > 100 && largest > 0.01 && far < 1e-4 * largest,
            "%lld gradients of the toy kind are slopes of the loss, up to %.3f", (long long)count, largest))
        diag("%g away", far);
}

static void check_training(struct scene *s)
{
    struct gr_nn_step how = { .method = GR_NN_ADAM, .rate = 0.004, .beta1 = 0.9, .beta2 = 0.999 };
    graft_error       error = GRAFT_INIT(graft_error);
    double            first = 0, last = 0;
    int32_t           rc = step(s, &first, &error);

    for (how.number = 1; how.number <= STEPS && rc == GRAFT_OK; how.number++) {
        gr_nn_step(&s->model.parameters, &how, gr_run_team(&s->run));
        s->run.epoch++;
        rc = step(s, &last, &error);
    }
    if (!ok(rc == GRAFT_OK && last < 0.8 * log(CLASSES),
            "in %d steps the loss of the toy kind falls from %.3f to %.3f, below that of a constant, %.3f", STEPS,
            first, last, log(CLASSES)))
        diag("%s", error.message);
}

/* With option recompute the arrays of all layers are one, as large as the largest. */
static void check_recompute(const struct scene *plain, struct scene *s)
{
    const struct gr_parameters *const all[2] = { &plain->model.parameters, &s->model.parameters };
    graft_error                       error = GRAFT_INIT(graft_error);
    double                            loss = 0;
    const int32_t                     rc = step(s, &loss, &error);

    ok(rc == GRAFT_OK && memcmp(all[0]->gradients, all[1]->gradients, (size_t)all[0]->n_weights * sizeof(float)) == 0,
       "with recompute gradients of the toy kind are bitwise identical");
    ok(s->run.layers[0].own[0] == s->run.layers[1].own[0] && plain->run.layers[0].own[0] != plain->run.layers[1].own[0],
       "with recompute layers share the array that the backward pass needs");
    ok(plain->run.layers[0].own[1] == plain->run.layers[2].own[1],
       "layers always share the array that the backward pass does not need");
    ok(gr_budget_bytes(&s->budget, GR_USE_ACTIVATIONS) < gr_budget_bytes(&plain->budget, GR_USE_ACTIVATIONS),
       "with recompute the toy kind needs %lld bytes of activations, not %lld",
       (long long)gr_budget_bytes(&s->budget, GR_USE_ACTIVATIONS),
       (long long)gr_budget_bytes(&plain->budget, GR_USE_ACTIVATIONS));
}

int main(void)
{
    graft_error   error = GRAFT_INIT(graft_error);
    struct scene *plain = oracle_new(1, sizeof *plain), *less = oracle_new(1, sizeof *less);

    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    ok(open_scene(plain, 0, &error) == GRAFT_OK && open_scene(less, 1, &error) == GRAFT_OK,
       "trainers of the toy kind are made");
    check_gradient(plain);
    check_recompute(plain, less);
    check_training(plain);
    close_scene(plain);
    close_scene(less);
    api->close(api->context);
    free(plain);
    free(less);
    return done();
}
