/* Labels as input (Shi et al. 2021, UniMP): of the training vertices a share, drawn anew in each epoch, gives its
 * labels to the first layer, and the others are the loss. The input is H_0 = X + L E, for rows of L with a 1 for each
 * class of the vertex, and E with a row for each class. What the first layer does first with H_0 is linear in it, so
 * that X is left as it is, sparse or aggregated once: (X + L E) W = X W + L (E W), and E W has as few rows as there are
 * classes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/labels.h"

#include "base/parallel.h"
#include "base/random.h"

#include <string.h>

/* Columns of a chunk in sums over vertices: those of a line of a cache. */
enum { CHUNK_COLUMNS = 16 };

int32_t gr_labels_check(const graft_trainer *t, graft_error *error)
{
    const char *missing = t->data.split == NULL ? "split" : "labels";

    if (!gr_propagates(t) || (t->data.split != NULL && (t->data.labels != NULL || t->data.targets != NULL)))
        return GRAFT_OK;
    return gr_fail(
        error, GRAFT_ERR_OPTION,
        "option 'label_rate' is %g, expected 0: the data set has no %s, so there is no training vertex whose "
        "label could be input",
        t->config.label_rate, missing);
}

/* Vertices whose labels may be input are among these. */
static int64_t rows_of(const graft_trainer *t)
{
    return t->reach[t->config.n_layers];
}

static int64_t elements_of(const graft_trainer *t)
{
    return t->data.n_classes * t->layers[0].wide;
}

double gr_labels_bytes(const graft_trainer *t)
{
    return (double)t->data.n_classes * (double)t->layers[0].wide * (sizeof *t->labels.product + sizeof *t->labels.sums);
}

int32_t gr_labels_init(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (!gr_propagates(t)) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_MASKS, t->labels.taken, rows_of(t), error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->labels.product, elements_of(t), error));
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRADIENTS, t->labels.sums, elements_of(t), error));
done:
    return rc;
}

/* Whether a step of this epoch has the label of vertex v, by the host's number, as input. */
static int is_drawn(uint64_t key, int64_t v, double rate)
{
    uint32_t bits[4];

    gr_random_block(key, (uint64_t)v, 0, bits);
    return (double)bits[0] < rate * 4294967296.0;
}

/* Returns how many are in the loss. */
static int64_t choose(graft_trainer *t, int training)
{
    const uint64_t key = gr_random_key(t->config.seed, GR_RANDOM_LABELS, (uint64_t)t->progress.epoch, 0);
    const int64_t  rows = rows_of(t);
    const int      threads = gr_threads_worth(t->threads, 64 * rows);
    int64_t        left = 0;

#pragma omp parallel for num_threads(threads) schedule(static) reduction(+ : left) if (threads > 1)
    for (int64_t v = 0; v < rows; v++) {
        const int trained = gr_is_trained(t, v);
        const int taken = trained && (!training || is_drawn(key, gr_vertex(t->vertex, v), t->config.label_rate));

        t->labels.taken[v] = (uint8_t)taken;
        left += trained && !taken;
    }
    return left;
}

int32_t gr_labels_begin(graft_trainer *t, int training, graft_error *error)
{
    const double               begin = gr_profile_begin(t);
    const struct gr_parameter *e = t->labels.embedding;
    double                     left; /* exact to 2^53 */
    int32_t                    rc = GRAFT_OK;

    if (!gr_propagates(t)) return GRAFT_OK;
    left = (double)choose(t, training);
    t->layers[0].has_label_sums = 0;
    if (training) {
        memset(e->gradient, 0, (uint64_t)(e->rows * e->cols) * sizeof *e->gradient);
        GR_TRY(gr_ranks_sum(t, &left, 1, error));
        t->n_loss = (int64_t)left;
    }
    gr_profile_end_alone(t, "labels", begin);
done:
    return rc;
}

/* The first class of vertex v that is not below c; n_classes if there is none. */
static int64_t class_from(const graft_trainer *t, int64_t v, int64_t c)
{
    const int64_t n = t->data.n_classes;

    if (t->data.targets == NULL) return t->data.labels[v] >= c ? t->data.labels[v] : n;
    while (c < n && t->data.targets[v * n + c] == 0) c++;
    return c;
}

struct pass {
    const graft_trainer *t;
    int64_t              width;
    int                  add;
    const float         *from;
    float               *to;
};

/* to[v] = the sum of the rows that E W has for the classes of v, or added to it. */
static void product_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass   *p = arg;
    const graft_trainer *t = p->t;
    const int64_t        rows = rows_of(t), classes = t->data.n_classes;

    (void)chunk;
    if (!p->add) memset(p->to + begin * p->width, 0, (uint64_t)((end - begin) * p->width) * sizeof *p->to);
    for (int64_t v = begin; v < end && v < rows; v++) {
        float *out = p->to + v * p->width;

        if (!t->labels.taken[v]) continue;
        for (int64_t c = class_from(t, v, 0); c < classes; c = class_from(t, v, c + 1)) {
            for (int64_t j = 0; j < p->width; j++) out[j] += p->from[c * p->width + j];
        }
    }
}

/* Columns begin to end - 1 of the sums, for each class, of the rows of its vertices. */
static void sum_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct pass   *p = arg;
    const graft_trainer *t = p->t;
    const int64_t        rows = rows_of(t), classes = t->data.n_classes, width = p->width;
    double *const        sums = t->labels.sums;

    (void)chunk;
    for (int64_t c = 0; c < classes; c++) memset(sums + c * width + begin, 0, (uint64_t)(end - begin) * sizeof *sums);
    for (int64_t v = 0; v < rows; v++) {
        if (!t->labels.taken[v]) continue;
        for (int64_t c = class_from(t, v, 0); c < classes; c = class_from(t, v, c + 1)) {
            for (int64_t j = begin; j < end; j++) sums[c * width + j] += (double)p->from[v * width + j];
        }
    }
    for (int64_t c = 0; c < classes; c++) {
        for (int64_t j = begin; j < end; j++) p->to[c * width + j] = (float)sums[c * width + j];
    }
}

/* out[rows x width] = L from, or added to out. */
static void own_product(const graft_trainer *t, int64_t rows, const float *from, int64_t width, int add, float *out)
{
    const double begin = gr_profile_begin(t);
    struct pass  pass = { t, width, add, from, out };

    gr_parallel_chunks(gr_profile_team(t), rows * width, rows, GR_CHUNK_ROWS, product_chunk, &pass);
    gr_profile_end(t, "rows", begin, 8 * (double)rows * (double)width, 0);
}

/* to[classes x width] = L^T g. Each column is added up by one thread, in the order of vertices. */
static void own_sums(const graft_trainer *t, const float *g, int64_t width, float *to)
{
    const double begin = gr_profile_begin(t);
    struct pass  pass = { t, width, 0, g, to };

    gr_parallel_chunks(gr_profile_team(t), rows_of(t) * width, width, CHUNK_COLUMNS, sum_chunk, &pass);
    gr_profile_end(t, "rows", begin, 4 * (double)rows_of(t) * (double)width, 0);
}

void gr_labels_fill(const graft_trainer *t, int64_t rows, float *x)
{
    const double  begin = gr_profile_begin(t);
    const int64_t classes = t->data.n_classes, taken = rows_of(t);

    memset(x, 0, (uint64_t)(rows * classes) * sizeof *x);
    for (int64_t v = 0; v < taken; v++) {
        if (!t->labels.taken[v]) continue;
        for (int64_t c = class_from(t, v, 0); c < classes; c = class_from(t, v, c + 1)) x[v * classes + c] = 1;
    }
    gr_profile_end_alone(t, "rows", begin);
}

/* E W, or its gradient, as if it were a parameter of its own. */
static struct gr_parameter product_of(const graft_trainer *t, const struct gr_parameter *w)
{
    return (struct gr_parameter){
        .rows = t->data.n_classes, .cols = w->cols, .value = t->labels.product, .gradient = t->labels.product
    };
}

static struct gr_operand embedding_of(const graft_trainer *t)
{
    return gr_dense_operand(t->labels.embedding->value, t->labels.embedding->cols, t->data.n_classes);
}

static struct gr_operand sums_of(const graft_trainer *t, struct gr_operand x)
{
    return gr_dense_operand(t->layers[0].label_sums, t->data.n_classes, x.rows);
}

int32_t gr_labels_product(const graft_trainer *t, struct gr_operand x, const struct gr_parameter *w, float beta,
                          float *out, graft_error *error)
{
    const struct gr_parameter product = product_of(t, w);
    int32_t                   rc = GRAFT_OK;

    GR_TRY(gr_product(t, embedding_of(t), w, 0, NULL, t->labels.product, error));
    if (x.labels == GR_LABELS_GATHERED) rc = gr_product(t, sums_of(t, x), &product, beta, NULL, out, error);
    else own_product(t, x.rows, t->labels.product, w->cols, beta != 0, out);
done:
    return rc;
}

int32_t gr_labels_gradient(const graft_trainer *t, struct gr_operand x, const float *g, struct gr_parameter *w,
                           graft_error *error)
{
    struct gr_parameter product = product_of(t, w);
    int32_t             rc = GRAFT_OK;

    if (x.labels == GR_LABELS_GATHERED) GR_TRY(gr_product_weight_gradient(t, sums_of(t, x), g, 0, &product, error));
    else own_sums(t, g, w->cols, product.gradient);
    GR_TRY(gr_product_weight_gradient(t, embedding_of(t), product.gradient, 1, w, error));
    rc = gr_product_input_gradient(t, product.gradient, product.rows, w, 1, NULL, t->labels.embedding->gradient, error);
done:
    return rc;
}
