/* Checks a training step of every model on blocks whose rows are random subsets of a graph in random order, with a
 * strategy that only this test has. Loss and gradients must be those of the oracle, which sees the whole graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dense/dense.h"
#include "harness/tap.h"
#include "model/kind.h"
#include "model/run.h"
#include "oracle/training.h"
#include "run/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const graft_api *api;

/* -- the strategy: sums by plain loops, and only at the end ------------------------------------------------------- */

struct toy {
    struct gr_strategy base;
    struct gr_boundary boundary; /* exchange that has begun */
    int                begun, sums, exchanges;
};

static int32_t toy_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    (void)run;
    (void)sum;
    (void)error;
    ((struct toy *)strategy)->begun++;
    return GRAFT_OK;
}

static int32_t toy_end(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    const struct gr_block *block = sum->block;
    const graft_csr       *csr = &block->a->csr;
    const int              back = sum->direction == GR_BACKWARD;
    const int64_t          rows = back ? block->n_src : block->n_dst, width = sum->width;
    const float *const     x = sum->x;
    struct toy            *toy = (struct toy *)strategy;
    double                *total = oracle_new(rows * width, sizeof *total);

    (void)run;
    (void)error;
    for (int64_t v = 0; v < block->n_dst; v++)
        for (int64_t e = csr->row_ptr[v]; e < csr->row_ptr[v + 1]; e++) {
            const int64_t u = ((const int32_t *)csr->col_idx)[e], to = back ? u : v, from = back ? v : u;

            for (int64_t j = 0; j < width; j++)
                total[to * width + j] += (double)((const float *)csr->values)[e] * (double)x[from * sum->stride + j];
        }
    for (int64_t i = 0; i < rows * width; i++)
        sum->out[i] = (float)((sum->add ? (double)sum->out[i] : 0) +
                              total[i] * (sum->scale != NULL ? (double)sum->scale[i / width] : 1));
    free(total);
    toy->begun--;
    toy->sums++;
    return GRAFT_OK;
}

static int32_t toy_boundary_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *rows,
                                  graft_error *error)
{
    struct toy *toy = (struct toy *)strategy;

    (void)run;
    (void)error;
    toy->boundary = *rows;
    toy->begun++;
    return GRAFT_OK;
}

/* Rows of the halo are additional sources; block->of_strategy says which vertices they are. */
static int32_t toy_boundary_end(struct gr_strategy *strategy, struct gr_run *run, double local, graft_error *error)
{
    struct toy               *toy = (struct toy *)strategy;
    const struct gr_boundary *rows = &toy->boundary;
    const struct gr_block    *block = rows->block;
    const int64_t            *source = block->of_strategy;

    (void)run;
    (void)local;
    (void)error;
    for (int64_t i = 0; i < (block->n_seen - block->n_src) * rows->width; i++) {
        float *halo = &rows->x[block->n_src * rows->width + i];
        float *own = &rows->x[source[i / rows->width] * rows->width + i % rows->width];

        if (rows->direction == GR_FORWARD) *halo = *own;
        else *own += *halo;
    }
    toy->begun--;
    toy->exchanges++;
    return GRAFT_OK;
}

static const struct gr_strategy_ops toy_ops = { .name = "toy",
                                                .aggregate_begin = toy_begin,
                                                .aggregate_end = toy_end,
                                                .boundary_begin = toy_boundary_begin,
                                                .boundary_end = toy_boundary_end };

/* -- blocks ------------------------------------------------------------------------------------------------------- */

/* A block and its arrays. */
struct made_block {
    struct gr_block block;
    int64_t        *vertex, *place, *row_ptr; /* place [n]: number of each vertex among the sources, or -1 */
    int32_t        *col_idx;
    float          *values, *left, *right;
    int64_t        *halo_source; /* [rows of the halo] source of each row */
    uint8_t        *kind;
};

static void add_source(struct made_block *b, int64_t vertex)
{
    if (b->place[vertex] >= 0) return;
    b->place[vertex] = b->block.n_src;
    b->vertex[b->block.n_src++] = vertex;
}

static float scale_of(const struct oracle_model *model, enum gr_normalization normalization, int64_t v)
{
    const double degree = model->degree[v];

    if (degree <= 0) return 0;
    return (float)(normalization == GR_NORMALIZE_SYMMETRIC ? 1 / sqrt(degree) : 1 / degree);
}

/* Give every second source that is no destination a row in the halo too, where edges find it. */
static void add_halo(struct made_block *b, int64_t n)
{
    b->halo_source = oracle_new(n, sizeof *b->halo_source);
    b->kind = oracle_new(2 * n, sizeof *b->kind);
    for (int64_t i = b->block.n_dst; i < b->block.n_src; i += 2) {
        b->kind[b->block.n_seen] = GR_ROW_HALO;
        b->place[b->vertex[i]] = b->block.n_seen;
        b->halo_source[b->block.n_seen++ - b->block.n_src] = i;
    }
    b->block.kind = b->kind;
    b->block.of_strategy = b->halo_source;
}

static void fill_edges(struct made_block *b, const struct oracle_model *model)
{
    int64_t at = 0;

    for (int64_t i = 0; i < b->block.n_dst; i++) {
        for (int64_t u = 0; u < model->n; u++) {
            const int64_t edge = b->vertex[i] * model->n + u;

            if (model->count[edge] == 0) continue;
            if (b->place[u] >= b->block.n_src) b->kind[i] = GR_ROW_BOUNDARY;
            b->col_idx[at] = (int32_t)b->place[u];
            b->values[at++] = (float)model->adjacency[edge];
        }
        b->row_ptr[i + 1] = at;
    }
}

/* Choose the sources: the destinations; if the layer gathers, their neighbours, beginning at a random vertex; and one
 * vertex that no edge needs, if there is one. */
static void add_sources(struct made_block *b, const struct oracle_model *model, const int64_t *dst, int64_t n_dst,
                        int gathers, int64_t first)
{
    const int64_t n = model->n;

    for (int64_t v = 0; v < n; v++) b->place[v] = -1;
    for (int64_t i = 0; i < n_dst; i++) add_source(b, dst[i]);
    b->block.n_dst = n_dst;
    for (int64_t i = 0; i < n_dst && gathers; i++)
        for (int64_t u = 0; u < n; u++)
            if (model->count[dst[i] * n + (first + u) % n] > 0) add_source(b, (first + u) % n);
    for (int64_t v = 0; v < n && b->block.n_src < n; v++)
        if (b->place[v] < 0) {
            add_source(b, v);
            break;
        }
    b->block.n_seen = b->block.n_src;
}

/* Make the block with these vertices as destinations. */
static void make_block(struct made_block *b, const struct gr_config *config, const struct oracle_model *model,
                       const int64_t *dst, int64_t n_dst, int gathers, struct sample *sample)
{
    const enum gr_normalization normalization = config->kind->normalization;
    const int64_t               n = model->n;
    graft_error                 error = GRAFT_INIT(graft_error);
    graft_csr                   csr = { .size = sizeof csr, .index_type = GRAFT_I32, .value_type = GRAFT_F32 };

    memset(b, 0, sizeof *b);
    b->vertex = oracle_new(n, sizeof *b->vertex);
    b->place = oracle_new(n, sizeof *b->place);
    b->row_ptr = oracle_new(n_dst + 1, sizeof *b->row_ptr);
    b->col_idx = oracle_new(n_dst * n, sizeof *b->col_idx);
    b->values = oracle_new(n_dst * n, sizeof *b->values);
    add_sources(b, model, dst, n_dst, gathers, sample_below(sample, n));
    b->block.vertex = b->vertex;
    if (!gathers) return;
    if (config->kind->attends) add_halo(b, n);
    fill_edges(b, model);
    csr.n_rows = n_dst;
    csr.n_cols = b->block.n_seen;
    csr.row_ptr = b->row_ptr;
    csr.col_idx = b->col_idx;
    csr.values = b->values;
    if (gr_matrix_create(api->context, &csr, &b->block.a, &error) < 0) exit(2);
    if (normalization == GR_NORMALIZE_NONE) return;
    b->left = oracle_new(n, sizeof *b->left);
    for (int64_t i = 0; i < b->block.n_src; i++) b->left[i] = scale_of(model, normalization, b->vertex[i]);
    b->block.left = b->left;
    if (normalization == GR_NORMALIZE_SYMMETRIC) b->block.right = b->left;
}

static void free_block(struct made_block *b)
{
    gr_matrix_destroy(b->block.a);
    free(b->vertex);
    free(b->place);
    free(b->row_ptr);
    free(b->col_idx);
    free(b->values);
    free(b->left);
    free(b->halo_source);
    free(b->kind);
}

/* -- a run without a trainer -------------------------------------------------------------------------------------- */

struct bench {
    struct gr_budget       budget;
    struct gr_model        model;
    struct gr_run          run;
    struct toy             toy;
    struct made_block      made[GR_LAYERS_MAX];
    const struct gr_block *blocks[GR_LAYERS_MAX];
    float                 *x;
    int32_t               *labels;
    uint8_t               *split;
};

/* List the training vertices in random order. The result is their number. */
static int64_t choose_seeds(const struct oracle_model *model, struct sample *sample, int64_t *seeds)
{
    int64_t count = 0;

    for (int64_t v = 0; v < model->n; v++)
        if (model->split[v] == GRAFT_SPLIT_TRAIN && model->labelled[v]) seeds[count++] = v;
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = sample_below(sample, i + 1), seed = seeds[i];

        seeds[i] = seeds[j];
        seeds[j] = seed;
    }
    return count;
}

static void make_blocks(struct bench *b, const struct training *training, const int64_t *seeds, int64_t count,
                        struct sample *sample)
{
    const struct gr_config *config = &b->model.config;

    for (int32_t l = config->n_layers - 1; l >= 0; l--) {
        const int last = l + 1 == config->n_layers;

        make_block(&b->made[l], config, &training->model, last ? seeds : b->made[l + 1].vertex,
                   last ? count : b->made[l + 1].block.n_src, l >= config->gathers_from, sample);
        b->blocks[l] = &b->made[l].block;
    }
}

static void make_data(struct bench *b, const struct training *training, const int64_t *seeds, int64_t count)
{
    const int64_t width = b->model.config.width[0], rows = b->blocks[0]->n_src;

    b->x = oracle_new(rows * width, sizeof *b->x);
    for (int64_t i = 0; i < rows * width; i++)
        b->x[i] = (float)training->model.features[b->blocks[0]->vertex[i / width] * width + i % width];
    b->labels = oracle_new(count, sizeof *b->labels);
    b->split = oracle_new(count, sizeof *b->split);
    for (int64_t i = 0; i < count; i++) {
        b->labels[i] = training->set.labels[seeds[i]];
        b->split[i] = GRAFT_SPLIT_TRAIN;
    }
    b->run.input = (struct gr_input){ .x = b->x, .type = GRAFT_F32, .stride = width };
    if (b->model.config.input_dropout > 0)
        b->run.input.dropped = gr_budget_new(&b->budget, GR_USE_FEATURES, rows * width, sizeof(float), "dropped", NULL);
    b->run.targets = (struct gr_targets){ .labels = b->labels,
                                          .split = b->split,
                                          .n = count,
                                          .n_classes = training->model.classes,
                                          .n_train = count,
                                          .loss_weight = (double)count };
}

static int32_t make_run(struct bench *b, graft_error *error)
{
    struct gr_capacity capacity = { .label_rows = b->run.targets.n };

    for (int32_t l = 0; l < b->model.config.n_layers; l++) {
        const struct gr_block *block = b->blocks[l];
        const int64_t          edges = block->a != NULL ? block->a->csr.row_ptr[block->n_dst] : 0;

        if (block->n_src > capacity.rows) capacity.rows = capacity.gradient_rows = block->n_src;
        if (block->n_seen > capacity.seen) capacity.seen = block->n_seen;
        if (edges > capacity.edges) capacity.edges = edges;
    }
    b->toy.base.ops = &toy_ops;
    b->run.context = api->context;
    b->run.model = &b->model;
    b->run.strategy = &b->toy.base;
    b->run.threads = b->run.profile.team = 2;
    b->run.isa = gr_processor_isa();
    GR_TRY(gr_dense_choose(api->context, &b->run.dense_type, &b->run.dense, error));
    GR_TRY(gr_nn_init(&b->model.parameters, &b->budget, b->model.config.seed, error));
    gr_run_plan(&b->run, &b->budget, &capacity);
    return gr_run_init(&b->run, &b->budget, &capacity, error);
}

static const struct oracle_tensor *tensor_of(const struct training *training, const char *name, int32_t *number)
{
    for (*number = 0; *number < training->model.n_tensors; ++*number)
        if (strcmp(training->model.tensor[*number].name, name) == 0) return &training->model.tensor[*number];
    return NULL;
}

/* BatchNorm uses the destinations of each block, so the oracle computes its gradient anew. */
static void choose_batches(const struct bench *b, struct training *training)
{
    struct oracle_model *model = &training->model;

    for (int32_t l = 0; l + 1 < model->options.layers; l++) {
        model->in_batch[l] = oracle_new(model->n, sizeof *model->in_batch[l]);
        for (int64_t i = 0; i < b->blocks[l]->n_dst; i++) model->in_batch[l][b->made[l].vertex[i]] = 1;
    }
    training_differentiate(training, 0);
}

/* The largest difference of a batch statistic of the step from that of the oracle. */
static double distance_of_batches(const struct bench *b, const struct training *training)
{
    double far = 0;

    for (int32_t l = 0; l + 1 < training->model.options.layers; l++) {
        const struct gr_layer *layer = &b->model.layers[l];

        for (int64_t j = 0; j < layer->out; j++) {
            far = fmax(far, fabs((double)layer->running_mean->gradient[j] - training->model.batch[0][l][j]));
            far = fmax(far, fabs((double)layer->running_variance->gradient[j] - training->model.batch[1][l][j]));
        }
    }
    return far;
}

static void push_weights(struct bench *b, const struct training *training)
{
    for (int32_t i = 0; i < b->model.parameters.count; i++) {
        struct gr_parameter        *p = &b->model.parameters.list[i];
        int32_t                     t;
        const struct oracle_tensor *tensor = tensor_of(training, gr_nn_name(p, GR_COPY_VALUE), &t);

        if (p->statistic != GR_TRAINED) continue;
        for (int64_t at = 0; at < p->rows * p->cols; at++) p->value[at] = (float)tensor->value[at];
    }
}

/* The largest difference of a gradient from that of the oracle, relative to its largest element. */
static double distance_of_gradients(const struct bench *b, const struct training *training)
{
    double far = 0;

    for (int32_t i = 0; i < b->model.parameters.count; i++) {
        const struct gr_parameter *p = &b->model.parameters.list[i];
        double                     largest = 1e-9, most = 0;
        int32_t                    t;

        if (p->statistic != GR_TRAINED) continue;
        if (tensor_of(training, gr_nn_name(p, GR_COPY_VALUE), &t) == NULL) return INFINITY;
        if (training_is_idle(training, t)) largest = 1;
        for (int64_t at = 0; at < p->rows * p->cols; at++) {
            largest = fmax(largest, fabs(training->gradient[0][t][at]));
            most = fmax(most, fabs((double)p->gradient[at] - training->gradient[0][t][at]));
        }
        far = fmax(far, most / largest);
    }
    return far;
}

static void check_valid(struct bench *b, const char *name)
{
    struct gr_block wrong;
    int             all = 1, refused = 1;

    for (int32_t l = 0; l < b->model.config.n_layers; l++) {
        all &= gr_model_block_is_valid(b->blocks[l]);
        wrong = *b->blocks[l];
        wrong.n_src = wrong.n_seen = wrong.n_dst - 1;
        refused &= !gr_model_block_is_valid(&wrong);
        if (wrong.a == NULL) continue;
        wrong = *b->blocks[l];
        wrong.n_dst = wrong.n_src = wrong.n_seen = 0;
        wrong.kind = NULL;
        refused &= gr_model_block_is_valid(&wrong);
        wrong = *b->blocks[l];
        b->made[l].col_idx[0] += (int32_t)wrong.n_seen;
        refused &= b->made[l].row_ptr[wrong.n_dst] == 0 || !gr_model_block_is_valid(&wrong);
        b->made[l].col_idx[0] -= (int32_t)wrong.n_seen;
    }
    ok(all && refused, "%s: all blocks are valid, and each fault in a block is found", name);
}

static void run_step(struct bench *b, struct training *training, const char *name)
{
    double     *logits = oracle_new(training->model.n * training->model.classes, sizeof *logits), expected, loss = 0;
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc;

    oracle_model_drop(&training->model, 0);
    oracle_model_forward(&training->model, 1, logits, NULL);
    expected = oracle_model_training_loss(&training->model, logits);
    rc = gr_run_step(&b->run, b->blocks, &loss, &error);
    if (!ok(rc == GRAFT_OK && fabs(loss - expected) < 1e-5 * fabs(expected),
            "%s: the loss is %.6f over %lld of %lld vertices", name, loss, (long long)b->run.targets.n,
            (long long)training->model.n))
        diag("expected %.6f; %s", expected, error.message);
    if (!ok(distance_of_gradients(b, training) < 1e-4 && b->toy.begun == 0,
            "%s: gradients equal the oracle, with %d sums and %d exchanges", name, b->toy.sums, b->toy.exchanges))
        diag("%g away", distance_of_gradients(b, training));
    if (b->model.config.hidden.norm == GR_NORM_BATCH)
        ok(distance_of_batches(b, training) < 1e-5, "%s: running statistics of blocks are within %.1e of the oracle",
           name, distance_of_batches(b, training));
    free(logits);
}

static void blocks_bench_fini(struct bench *b)
{
    for (int32_t l = 0; l < b->model.config.n_layers; l++) free_block(&b->made[l]);
    gr_budget_fini(&b->budget);
    free(b->x);
    free(b->labels);
    free(b->split);
}

static void blocks_check_case(const struct training_case *what)
{
    struct training training;
    struct sample   sample = { 7 };
    struct bench    b = { 0 };
    graft_error     error = GRAFT_INIT(graft_error);
    int64_t         seeds[64], count;
    int32_t         rc;

    training_init(&training, what, 3);
    rc = training_open(&training, api, what, &error); /* sets the options too */
    if (rc == GRAFT_OK)
        rc = gr_model_config_read(&api->context->options, &training.set.dataset, &b.model.config, &error);
    gr_budget_init(&b.budget, api->context, 0);
    if (rc == GRAFT_OK) rc = gr_model_describe(&b.model, &b.budget, &error);
    ok_or(rc == GRAFT_OK, error.message, "%s", training_name(what));
    count = choose_seeds(&training.model, &sample, seeds);
    make_blocks(&b, &training, seeds, count, &sample);
    check_valid(&b, training_name(what));
    make_data(&b, &training, seeds, count);
    ok_or(make_run(&b, &error) == GRAFT_OK, error.message, "%s: a run without a trainer", training_name(what));
    push_weights(&b, &training);
    if (what->norm == ORACLE_BATCH_NORM) choose_batches(&b, &training);
    run_step(&b, &training, training_name(what));
    blocks_bench_fini(&b);
    training_fini(&training);
}

int main(void)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    for (enum oracle_kind kind = ORACLE_MLP; kind <= ORACLE_APPNP; kind++) {
        for (int variant = 0; variant < 7; variant++) {
            const struct training_case what = { .kind = kind,
                                                .layers = 2 + variant % 2,
                                                .heads = kind == ORACLE_GAT ? 2 : 0,
                                                .n = 41,
                                                .scarce = 1,
                                                .norm = variant == 6 ? ORACLE_BATCH_NORM : variant % 2,
                                                .growing = variant / 2 % 2,
                                                .anew = 1,
                                                .weighted = kind != ORACLE_GAT && variant == 1,
                                                .dropout = variant > 1 ? 0.25 : 0,
                                                .drops_first = variant == 6 && kind % 2,
                                                .input_dropout = variant == 3 ? 0.25 : 0,
                                                .label_rate = variant > 3 && variant < 6 ? 0.5 : 0,
                                                .recompute = variant == 5,
                                                .dense = "reference",
                                                .optimizer = { .lr = 1 } };

            blocks_check_case(&what);
        }
    }
    api->close(api->context);
    return done();
}
