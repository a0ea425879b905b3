/* Labels as input (Shi et al. 2021, UniMP): in each epoch a random share of the training vertices gives its labels to
 * the first layer, and the loss is over the others. The input is H_0 = X + L E; L has a row for each vertex, with a 1
 * for each of its classes, and E a row for each class. The first operation of the first layer is linear in H_0, so X
 * stays as it is, sparse or aggregated once: (X + L E) W = X W + L (E W), and E W has only as many rows as there are
 * classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/labels.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "base/random.h"
#include "model/product.h"

#include <string.h>

int32_t gr_model_labels_check(const struct gr_run *run, graft_error *error)
{
    const struct gr_targets *targets = &run->targets;
    const char              *missing = targets->split == NULL ? "split" : "labels";

    if (gr_propagates(run) && gr_is_regression(gr_run_config(run)))
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'label_rate' is %g, expected 0: with loss %s there are no labels",
                       gr_run_config(run)->label_rate, gr_loss_name(gr_run_config(run)->loss.kind));
    if (!gr_propagates(run) || (targets->split != NULL && (targets->labels != NULL || targets->targets != NULL)))
        return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_OPTION,
        "option 'label_rate' is %g, expected 0: the data set has no %s, so there is no training vertex whose "
        "label could be input",
        gr_run_config(run)->label_rate, missing);
}

static int64_t elements_of(const struct gr_run *run)
{
    return run->targets.n_classes * run->model->layers[0].wide;
}

/* The elements of labels.gathered: 0 unless the first layer aggregates first. */
static int64_t gathered_elements(const struct gr_run *run, const struct gr_capacity *capacity)
{
    return run->layers[0].count[GR_ARRAY_GATHERED] > 0 ? capacity->rows * run->targets.n_classes : 0;
}

void gr_model_labels_plan(const struct gr_run *run, const struct gr_capacity *capacity, double bytes[GR_USES])
{
    if (!gr_propagates(run)) return;
    bytes[GR_USE_ACTIVATIONS] += (double)gathered_elements(run, capacity) * sizeof *run->labels.gathered;
    bytes[GR_USE_GRADIENTS] += (double)elements_of(run) * (sizeof *run->labels.product + sizeof *run->labels.sums);
    bytes[GR_USE_MASKS] += (double)capacity->label_rows;
}

int32_t gr_model_labels_init(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                             graft_error *error)
{
    const int64_t gathered = gathered_elements(run, capacity);

    if (!gr_propagates(run)) return GRAFT_OK;
    run->labels.rows = capacity->label_rows;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MASKS, run->labels.taken, capacity->label_rows, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->labels.product, elements_of(run), error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->labels.sums, elements_of(run), error));
    if (gathered > 0) GR_TRY(GR_BUDGET_NEW(budget, GR_USE_ACTIVATIONS, run->labels.gathered, gathered, error));
    return GRAFT_OK;
}

/* Whether the label of vertex v, the host's index, is input in the step of this epoch. */
static int is_drawn(uint64_t key, int64_t v, double rate)
{
    uint32_t bits[4];

    gr_random_block(key, (uint64_t)v, 0, bits);
    return (double)bits[0] < rate * 4294967296.0;
}

/* Sum the weights of the vertices in the loss, in an order that does not depend on the number of threads. */
static double weight_in_loss(const struct gr_run *run)
{
    double weight = 0;

    for (int64_t v = 0; v < run->labels.rows; v++)
        if (gr_is_in_loss(run, v)) weight += gr_vertex_weight(&run->targets, v);
    return weight;
}

/* Choose the labels that are input, and return the number of vertices in the loss. */
static int64_t choose_labels(struct gr_run *run, int training)
{
    const struct gr_config *config = gr_run_config(run);
    const int64_t *const    vertex = run->layers[config->n_layers - 1].block->vertex;
    const uint64_t          key = gr_random_key(config->seed, GR_RANDOM_LABELS, (uint64_t)run->epoch, 0);
    const int64_t           rows = run->labels.rows;
    const int               threads = gr_threads_worth(run->threads, 64 * rows);
    int64_t                 left = 0;

    GR_ASSERT(rows <= run->targets.n);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : left) if (threads > 1)
    for (int64_t v = 0; v < rows; v++) {
        const int trained = gr_is_trained(&run->targets, v);
        const int taken = trained && (!training || is_drawn(key, gr_vertex(vertex, v), config->label_rate));

        run->labels.taken[v] = (uint8_t)taken;
        left += trained && !taken;
    }
    return left;
}

int32_t gr_model_labels_begin(struct gr_run *run, int training, graft_error *error)
{
    const double               begin = gr_profile_begin(&run->profile);
    const struct gr_parameter *e = run->model->label_embedding;
    double                     left; /* number of vertices in the loss, or sum of their class weights */

    GR_ASSERT(gr_propagates(run));
    left = (double)choose_labels(run, training);
    if (training && run->targets.class_weight != NULL) left = weight_in_loss(run);
    run->labels.has_gathered = 0;
    if (training) {
        memset(e->gradient, 0, (uint64_t)(e->rows * e->cols) * sizeof *e->gradient);
        GR_TRY(gr_strategy_sum(run->strategy, &left, 1, error));
        run->targets.loss_weight = left;
    }
    gr_profile_end_alone(&run->profile, "labels", begin);
    return GRAFT_OK;
}

/* Find the first class of vertex v that is not below c; n_classes: there is none. */
static int64_t class_from(const struct gr_targets *t, int64_t v, int64_t c)
{
    const int64_t n = t->n_classes;

    if (t->targets == NULL) return t->labels[v] >= c ? t->labels[v] : n;
    while (c < n && t->targets[v * n + c] == 0) c++;
    return c;
}

struct pass {
    const struct gr_run *run;
    int64_t              width;
    int                  add;
    const float         *from;
    float               *to;
};

/* to[v] = the sum of the rows of E W for the classes of v, added to to[v] if `add`. */
static void product_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct pass       *p = arg;
    const struct gr_labels  *labels = &p->run->labels;
    const struct gr_targets *targets = &p->run->targets;
    const int64_t            rows = labels->rows, classes = targets->n_classes;

    if (!p->add) memset(p->to + begin * p->width, 0, (uint64_t)((end - begin) * p->width) * sizeof *p->to);
    for (int64_t v = begin; v < end && v < rows; v++) {
        float *out = p->to + v * p->width;

        if (!labels->taken[v]) continue;
        for (int64_t c = class_from(targets, v, 0); c < classes; c = class_from(targets, v, c + 1)) {
            for (int64_t j = 0; j < p->width; j++) out[j] += p->from[c * p->width + j];
        }
    }
}

/* Sum, for each class, columns begin to end - 1 of the rows of its vertices. */
static void sum_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct pass       *p = arg;
    const struct gr_labels  *labels = &p->run->labels;
    const struct gr_targets *targets = &p->run->targets;
    const int64_t            rows = labels->rows, classes = targets->n_classes, width = p->width;
    double *const            sums = labels->sums;

    for (int64_t c = 0; c < classes; c++) memset(sums + c * width + begin, 0, (uint64_t)(end - begin) * sizeof *sums);
    for (int64_t v = 0; v < rows; v++) {
        if (!labels->taken[v]) continue;
        for (int64_t c = class_from(targets, v, 0); c < classes; c = class_from(targets, v, c + 1)) {
            for (int64_t j = begin; j < end; j++) sums[c * width + j] += (double)p->from[v * width + j];
        }
    }
    for (int64_t c = 0; c < classes; c++) {
        for (int64_t j = begin; j < end; j++) p->to[c * width + j] = (float)sums[c * width + j];
    }
}

/* out[rows x width] = L from, added to out if `add`. */
static void own_product(struct gr_run *run, int64_t rows, const float *from, int64_t width, int add, float *out)
{
    const double begin = gr_profile_begin(&run->profile);
    struct pass  pass = { run, width, add, from, out };

    gr_parallel_rows(gr_run_team(run), rows * width, rows, GR_CHUNK_ROWS, product_chunk, &pass);
    gr_profile_end(&run->profile, "rows", begin, 8 * (double)rows * (double)width, 0);
}

/* to[classes x width] = L^T g. Each column is summed by one thread, in the order of vertices. */
static void own_sums(struct gr_run *run, const float *g, int64_t width, float *to)
{
    const double  begin = gr_profile_begin(&run->profile);
    const int64_t rows = run->labels.rows;
    struct pass   pass = { run, width, 0, g, to };

    gr_parallel_rows(gr_run_team(run), rows * width, width, GR_CHUNK_COLUMNS, sum_chunk, &pass);
    gr_profile_end(&run->profile, "rows", begin, 4 * (double)rows * (double)width, 0);
}

void gr_model_labels_fill(struct gr_run *run, int64_t rows, float *x)
{
    const struct gr_targets *targets = &run->targets;
    const double             begin = gr_profile_begin(&run->profile);
    const int64_t            classes = targets->n_classes;

    memset(x, 0, (uint64_t)(rows * classes) * sizeof *x);
    for (int64_t v = 0; v < run->labels.rows; v++) {
        if (!run->labels.taken[v]) continue;
        for (int64_t c = class_from(targets, v, 0); c < classes; c = class_from(targets, v, c + 1))
            x[v * classes + c] = 1;
    }
    gr_profile_end_alone(&run->profile, "rows", begin);
}

/* Make a parameter whose value and gradient are one array, labels.product: E W in the forward pass, then its
 * gradient. */
static struct gr_parameter product_of(const struct gr_run *run, const struct gr_parameter *w)
{
    return (struct gr_parameter){
        .rows = run->targets.n_classes, .cols = w->cols, .value = run->labels.product, .gradient = run->labels.product
    };
}

static struct gr_operand embedding_of(const struct gr_run *run)
{
    const struct gr_parameter *e = run->model->label_embedding;

    return gr_dense_operand(e->value, e->cols, e->rows);
}

static struct gr_operand sums_of(const struct gr_run *run, struct gr_operand x)
{
    return gr_dense_operand(run->labels.gathered, run->targets.n_classes, x.rows);
}

int32_t gr_model_labels_product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                                float *out, graft_error *error)
{
    const struct gr_parameter product = product_of(run, w);

    GR_TRY(gr_model_product(run, embedding_of(run), w, 0, NULL, run->labels.product, error));
    if (x.labels == GR_LABELS_GATHERED) return gr_model_product(run, sums_of(run, x), &product, beta, NULL, out, error);
    own_product(run, x.rows, run->labels.product, w->cols, beta != 0, out);
    return GRAFT_OK;
}

int32_t gr_model_labels_gradient(struct gr_run *run, struct gr_operand x, const float *g, struct gr_parameter *w,
                                 graft_error *error)
{
    struct gr_parameter product = product_of(run, w), *e = run->model->label_embedding;

    if (x.labels == GR_LABELS_GATHERED) GR_TRY(gr_model_weight_gradient(run, sums_of(run, x), g, 0, &product, error));
    else own_sums(run, g, w->cols, product.gradient);
    GR_TRY(gr_model_weight_gradient(run, embedding_of(run), product.gradient, 1, w, error));
    return gr_model_input_gradient(run, product.gradient, product.rows, w, 1, NULL, e->gradient, error);
}
