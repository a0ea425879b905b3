/* Forward pass, loss, and the gradient by central differences. The code follows the formulas of graft_model.h
 * literally.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Add a dense product: z += h w, with h [n x in] and w [in x out]. */
static void add_product(int64_t n, int64_t in, int64_t out, const double *h, const double *w, double *z)
{
    for (int64_t v = 0; v < n; v++)
        for (int64_t i = 0; i < in; i++)
            for (int64_t j = 0; j < out; j++) z[v * out + j] += h[v * in + i] * w[i * out + j];
}

/** Element (v, u) of the normalised adjacency D^-1/2 A D^-1/2. */
static double normalised(const struct oracle_model *model, int64_t v, int64_t u)
{
    const double a = model->adjacency[v * model->n + u], *degree = model->degree;

    return degree[v] > 0 && degree[u] > 0 ? a / sqrt(degree[v] * degree[u]) : 0;
}

/** The coefficient of the features of vertex u in the sum of vertex v, by the formula of the model. */
static double share_of(const struct oracle_model *model, int64_t v, int64_t u)
{
    const double a = model->adjacency[v * model->n + u], *degree = model->degree;

    switch (model->options.kind) {
    case ORACLE_SAGE:
        if (model->options.aggregator != NULL) return a;
        return degree[v] > 0 ? a / degree[v] : 0;
    case ORACLE_GCN: return normalised(model, v, u);
    case ORACLE_GIN: return a + (u == v);
    default: return u == v;
    }
}

/** Compute for each vertex the largest (sign 1) or smallest (sign -1) element of each column over its neighbours, or 0
 * if it has none. The derivative jumps where two neighbours are equal, unless both are 0 because of ReLU or dropout,
 * since then no weight changes them. */
static void gather_extrema(const struct oracle_model *model, int sign, int64_t width, const double *h, double *out,
                           struct oracle_kinks *kinks)
{
    for (int64_t at = 0; at < model->n * width; at++) {
        const int64_t *count = &model->count[at / width * model->n];
        int64_t        best = -1;

        for (int64_t u = 0; u < model->n; u++)
            if (count[u] > 0 && (best < 0 || sign * h[u * width + at % width] > sign * h[best * width + at % width]))
                best = u;
        out[at] = best < 0 ? 0 : h[best * width + at % width];
        for (int64_t u = 0; u < model->n && kinks != NULL; u++) {
            const double apart = best < 0 ? 0 : sign * (out[at] - h[u * width + at % width]);

            if (count[u] > 0 && u != best && (apart != 0 || out[at] != 0)) kinks->nearest = fmin(kinks->nearest, apart);
        }
        if (kinks != NULL) kinks->signs = (kinks->signs ^ (uint64_t)(best + 1)) * 1099511628211u;
    }
}

static void oracle_forward_gather(const struct oracle_model *model, int64_t width, const double *h, double *out,
                                  struct oracle_kinks *kinks)
{
    const char *aggregator = model->options.aggregator != NULL ? model->options.aggregator : "mean";

    if (strcmp(aggregator, "max") == 0 || strcmp(aggregator, "min") == 0) {
        gather_extrema(model, strcmp(aggregator, "max") == 0 ? 1 : -1, width, h, out, kinks);
        return;
    }
    memset(out, 0, (size_t)(model->n * width) * sizeof *out);
    for (int64_t v = 0; v < model->n; v++) {
        for (int64_t u = 0; u < model->n; u++) {
            const double share = share_of(model, v, u);
            for (int64_t j = 0; j < width && share != 0; j++) out[v * width + j] += share * h[u * width + j];
        }
    }
}

static const double *oracle_forward_weight_of(const struct oracle_model *model, int32_t layer, const char *name)
{
    const size_t length = strlen(name);

    for (int32_t t = 0; t < model->n_tensors; t++) {
        const char *full = model->tensor[t].name;
        if (model->tensor[t].layer == layer && strcmp(full + strlen(full) - length, name) == 0)
            return model->tensor[t].value;
    }
    printf("Bail out! the model has no weight %s in layer %d\n", name, layer);
    exit(1);
}

static void add_bias(int64_t n, int64_t width, const double *bias, double *z)
{
    for (int64_t at = 0; at < n * width; at++) z[at] += bias[at % width];
}

static void meet_kink(double z, struct oracle_kinks *kinks)
{
    kinks->nearest = fmin(kinks->nearest, fabs(z));
    kinks->signs = (kinks->signs ^ (z > 0 ? 1u : 2u)) * 1099511628211u; /* one step of the hash FNV-1a */
}

/** Apply ReLU. The derivative does not jump at elements that dropout has set to 0, because no weight changes them. */
static void relu(int64_t count, double *z, struct oracle_kinks *kinks)
{
    for (int64_t at = 0; at < count; at++) {
        if (z[at] != 0) meet_kink(z[at], kinks);
        if (!(z[at] > 0)) z[at] = 0;
    }
}

static void elu(int64_t count, double *z)
{
    for (int64_t at = 0; at < count; at++)
        if (z[at] < 0) z[at] = exp(z[at]) - 1;
}

static double dot(int64_t count, const double *x, const double *y)
{
    double sum = 0;

    for (int64_t j = 0; j < count; j++) sum += x[j] * y[j];
    return sum;
}

/** Add the result of one attention head for vertex v, times `share`. The result is the sum over the entries of v of
 * softmax(LeakyReLU(score)) times the row of u. A row begins at the columns of the head, and rows are `stride` apart. A
 * score also contains the product of the features of the entry with `edge`. factor[k * heads] is the dropout factor of
 * vertex k; NULL if there is no dropout. */
static void attend(const struct oracle_model *model, int64_t v, int64_t columns, int64_t stride, const double *u,
                   const double *target, const double *source, const double *edge, const double *factor, double share,
                   double *out, struct oracle_kinks *kinks)
{
    double *score = oracle_new(model->n, sizeof *score), largest = -INFINITY, sum = 0;

    for (int64_t k = 0; k < model->n; k++) {
        if (model->count[v * model->n + k] == 0) continue;
        score[k] = dot(columns, target, &u[v * stride]) + dot(columns, source, &u[k * stride]) +
                   dot(model->edge_width, edge, &model->edge[(v * model->n + k) * model->edge_width]);
        /* If both vertices have no features, the score is 0 and no weight changes it. */
        if (score[k] != 0) meet_kink(score[k], kinks);
        if (!(score[k] > 0)) score[k] *= 0.2;
        largest = fmax(largest, score[k]);
    }
    for (int64_t k = 0; k < model->n; k++) {
        const double count = (double)model->count[v * model->n + k];
        score[k] = count > 0 ? count * exp(score[k] - largest) : 0;
        sum += score[k];
    }
    for (int64_t k = 0; k < model->n; k++) {
        const double kept = factor != NULL ? factor[k * model->options.heads] : 1;

        for (int64_t j = 0; j < columns && score[k] > 0; j++)
            out[j] += kept * share * score[k] / sum * u[k * stride + j];
    }
    free(score);
}

/** The weights of the edge features in the scores of head k, which has `columns` columns. */
static void edge_of(const struct oracle_model *model, int32_t l, int64_t k, int64_t columns, double *edge)
{
    for (int64_t j = 0; j < model->edge_width; j++)
        edge[j] =
            dot(columns, oracle_forward_weight_of(model, l, ".weight_edge") + (j * model->options.heads + k) * columns,
                oracle_forward_weight_of(model, l, ".attention_edge") + k * columns);
}

/** Compute Z_l of gat before the bias: the heads side by side, or in the last layer their mean. */
static void attend_all(const struct oracle_model *model, int32_t l, int training, const double *h, double *z,
                       struct oracle_kinks *kinks)
{
    const int64_t n = model->n, out = model->width[l + 1], heads = model->options.heads;
    const int     last = l + 1 == model->options.layers;
    const int64_t columns = last ? out : out / heads, wide = heads * columns;
    double       *u = oracle_new(n * wide, sizeof *u), *edge = oracle_new(model->edge_width, sizeof *edge);

    add_product(n, oracle_model_in(model, l), wide, h, oracle_forward_weight_of(model, l, ".weight"), u);
    if (model->options.inner_relu) {
        add_bias(n, wide, oracle_forward_weight_of(model, l, ".inner_bias"), u);
        relu(n * wide, u, kinks);
    }
    for (int64_t v = 0; v < n; v++) {
        for (int64_t k = 0; k < heads; k++) {
            const double *target = oracle_forward_weight_of(model, l, ".attention_target") + k * columns;
            const double *source = oracle_forward_weight_of(model, l, ".attention_source") + k * columns;
            const double *factor =
                training && model->attention[l] != NULL ? &model->attention[l][v * n * heads + k] : NULL;

            edge_of(model, l, k, columns, edge);
            attend(model, v, columns, wide, &u[k * columns], target, source, edge, factor,
                   last ? 1.0 / (double)heads : 1, &z[v * out + (last ? 0 : k * columns)], kinks);
        }
    }
    free(u);
    free(edge);
}

/** Compute z = Z_l of the model for h [n x in]. z [n x out] is zero on entry, and scratch has n rows of the larger
 * width. */
static void transform(const struct oracle_model *model, int32_t l, int training, const double *h, double *z,
                      double *scratch, struct oracle_kinks *kinks)
{
    const int64_t n = model->n, in = oracle_model_in(model, l), out = model->width[l + 1];
    double       *inner = NULL;

    if (model->options.kind != ORACLE_GAT) oracle_forward_gather(model, in, h, scratch, l > 0 ? kinks : NULL);
    switch (model->options.kind) {
    case ORACLE_SAGE:
        add_product(n, in, out, h, oracle_forward_weight_of(model, l, ".weight_self"), z);
        add_product(n, in, out, scratch, oracle_forward_weight_of(model, l, ".weight_neigh"), z);
        add_bias(n, out, oracle_forward_weight_of(model, l, ".bias"), z);
        break;
    case ORACLE_GIN:
        inner = oracle_new(n * out, sizeof *inner);
        add_product(n, in, out, scratch, oracle_forward_weight_of(model, l, ".weight_1"), inner);
        add_bias(n, out, oracle_forward_weight_of(model, l, ".bias_1"), inner);
        relu(n * out, inner, kinks);
        add_product(n, out, out, inner, oracle_forward_weight_of(model, l, ".weight_2"), z);
        add_bias(n, out, oracle_forward_weight_of(model, l, ".bias_2"), z);
        free(inner);
        break;
    case ORACLE_GAT:
        attend_all(model, l, training, h, z, kinks);
        add_bias(n, out, oracle_forward_weight_of(model, l, ".bias"), z);
        break;
    default:
        add_product(n, in, out, scratch, oracle_forward_weight_of(model, l, ".weight"), z);
        add_bias(n, out, oracle_forward_weight_of(model, l, ".bias"), z);
    }
}

static void apply_dropout(const struct oracle_model *model, int32_t l, double *h)
{
    for (int64_t at = 0; at < model->n * model->width[l]; at++) h[at] *= model->factor[l][at];
}

/** Add the label embedding to the features of the vertices whose labels are input: in training those that were drawn,
 *  otherwise all training vertices. */
static void add_labels(const struct oracle_model *model, int training, double *h)
{
    const int64_t in = model->width[0], c = model->classes;
    const double *embedding = oracle_forward_weight_of(model, -1, "label_embedding");

    for (int64_t v = 0; v < model->n; v++) {
        const int trains = model->labelled[v] && model->split[v] == GRAFT_SPLIT_TRAIN;

        if (training ? model->gives[v] : trains) add_product(1, c, in, &model->target[v * c], embedding, &h[v * in]);
    }
}

/** Propagate K times: Z = (1 - alpha) S Z + alpha H with S = D^-1/2 A D^-1/2, starting with Z = H (Gasteiger et al.
 * 2019, eq. 3 and 4). For sgc alpha is 0 (Wu et al. 2019, eq. 8). */
static void propagate(const struct oracle_model *model, double *z, double *scratch)
{
    const int64_t c = model->classes, count = model->n * c;
    const double  alpha = model->options.kind == ORACLE_APPNP ? model->options.teleport : 0;
    double       *h = oracle_new(count, sizeof *h);

    memcpy(h, z, (size_t)count * sizeof *h);
    for (int32_t k = 0; k < model->options.propagation; k++) {
        for (int64_t at = 0; at < count; at++) {
            scratch[at] = alpha * h[at];
            for (int64_t u = 0; u < model->n; u++)
                scratch[at] += (1 - alpha) * normalised(model, at / c, u) * z[u * c + at % c];
        }
        memcpy(z, scratch, (size_t)count * sizeof *z);
    }
    free(h);
}

/** Compute z = H_{l+1} from Z_l in z and from h = H_l. */
static void finish_layer(const struct oracle_model *model, int32_t l, int training, const double *h, double *z,
                         struct oracle_kinks *kinks)
{
    const int64_t width = model->width[l + 1];

    if (training && model->options.drops_first) apply_dropout(model, l + 1, z);
    if (model->options.norm == ORACLE_BATCH_NORM)
        oracle_batch_norm(model, l, training, oracle_forward_weight_of(model, l, ".norm.gain"),
                          oracle_forward_weight_of(model, l, ".norm.shift"), z);
    if (model->options.norm == ORACLE_LAYER_NORM)
        oracle_layer_norm(model->n, width, oracle_forward_weight_of(model, l, ".norm.gain"),
                          oracle_forward_weight_of(model, l, ".norm.shift"), z);
    if (model->options.elu) elu(model->n * width, z);
    else relu(model->n * width, z, kinks);
    if (training && !model->options.drops_first) apply_dropout(model, l + 1, z);
    for (int64_t at = 0; at < model->n * width && model->options.residual && l > 0 && model->width[l] == width; at++)
        z[at] += h[at];
}

/** The largest element at one position of H_1 to H_l. Also record its distance to the second largest, unless all are 0
 * because of ReLU. */
static double largest_of(double *const *all, int32_t l, int64_t at, struct oracle_kinks *kinks)
{
    int32_t best = 1;

    for (int32_t k = 2; k <= l; k++)
        if (all[k][at] > all[best][at]) best = k;
    for (int32_t k = 1; k <= l; k++)
        if (k != best && (all[k][at] != 0 || all[best][at] != 0))
            kinks->nearest = fmin(kinks->nearest, all[best][at] - all[k][at]);
    kinks->signs = (kinks->signs ^ (uint64_t)best) * 1099511628211u;
    return all[best][at];
}

/** Compute h, the input of the last layer l, by joining H_1 to H_l, which are all[1] to all[l]. */
static void join_hidden(const struct oracle_model *model, int32_t l, double *const *all, double *h,
                        struct oracle_kinks *kinks)
{
    const int64_t in = oracle_model_in(model, l);
    int64_t       column = 0;

    if (strcmp(model->options.jumping, "max") == 0) {
        for (int64_t at = 0; at < model->n * in; at++) h[at] = largest_of(all, l, at, kinks);
        return;
    }
    for (int32_t k = 1; k <= l; k++) {
        const int64_t width = model->width[k];

        for (int64_t at = 0; at < model->n * width; at++) h[at / width * in + column + at % width] = all[k][at];
        column += width;
    }
}

void oracle_model_forward(const struct oracle_model *model, int training, double *logits, struct oracle_kinks *kinks)
{
    const int32_t       layers = model->options.layers;
    struct oracle_kinks unused, *met = kinks != NULL ? kinks : &unused;
    int64_t             widest = 0;
    double             *h[ORACLE_LAYERS_MAX + 1], *scratch, *joined;

    *met = (struct oracle_kinks){ INFINITY, 14695981039346656037u };
    for (int32_t l = 0; l <= layers; l++) {
        widest += model->width[l];
        h[l] = oracle_new(model->n * model->width[l], sizeof **h);
    }
    scratch = oracle_new(model->n * widest, sizeof *scratch);
    joined = oracle_new(model->n * widest, sizeof *joined);
    memcpy(h[0], model->features, (size_t)(model->n * model->width[0]) * sizeof **h);
    if (training) apply_dropout(model, 0, h[0]);
    if (model->options.label_rate > 0) add_labels(model, training, h[0]);
    for (int32_t l = 0; l < layers; l++) {
        const int joins = model->options.jumping != NULL && l > 0 && l + 1 == layers;

        if (joins) join_hidden(model, l, h, joined, met);
        transform(model, l, training, joins ? joined : h[l], h[l + 1], scratch, met);
        if (l + 1 < layers) finish_layer(model, l, training, h[l], h[l + 1], met);
    }
    if (model->options.kind >= ORACLE_SGC) propagate(model, h[layers], scratch);
    memcpy(logits, h[layers], (size_t)(model->n * model->classes) * sizeof *logits);
    for (int32_t l = 0; l <= layers; l++) free(h[l]);
    free(scratch);
    free(joined);
}

/** The weight of a class: the mean number of training vertices of all classes, divided by the number in this class. */
static double class_weight(const struct oracle_model *model, int64_t class)
{
    double all = 0, of_class = 0;

    if (!model->options.balanced) return 1;
    for (int64_t v = 0; v < model->n; v++) {
        if (model->split[v] != GRAFT_SPLIT_TRAIN || !model->labelled[v]) continue;
        all++;
        of_class += model->target[v * model->classes + class];
    }
    return of_class > 0 ? all / (double)model->classes / of_class : 0;
}

/** -log of the softmax probability of class j. The largest logit is subtracted first, so that exp() stays finite. */
static double surprise(int64_t c, const double *logit, int64_t j)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t k = 0; k < c; k++) largest = fmax(largest, logit[k]);
    for (int64_t k = 0; k < c; k++) sum += exp(logit[k] - largest);
    return log(sum) + largest - logit[j];
}

/** The cross-entropy of one vertex as PyTorch defines it, times the weight of its class. */
static double softmax_loss(const struct oracle_model *model, const double *logit, const double *target, double *count)
{
    const double  e = model->options.smoothing;
    const int64_t c = model->classes;
    double        smooth = 0, hard = 0;

    *count = 0;
    for (int64_t j = 0; j < c; j++) {
        const double weight = model->options.balanced || e > 0 ? class_weight(model, j) : 1;

        if (target[j] > 0) *count += weight;
        if (target[j] > 0) hard += weight * surprise(c, logit, j);
        if (e > 0) smooth += weight * surprise(c, logit, j);
    }
    return (1 - e) * hard + e / (double)c * smooth;
}

/** The binary cross-entropy: the sum over classes of -log sigmoid(x) where the target is 1 and -log(1 - sigmoid(x))
 *  where it is 0. */
static double sigmoid_loss(int64_t c, const double *logit, const double *target)
{
    double sum = 0;

    for (int64_t j = 0; j < c; j++) sum += fmax(logit[j], 0) - logit[j] * target[j] + log1p(exp(-fabs(logit[j])));
    return sum;
}

static double error_loss(const struct oracle_model *model, double error)
{
    const double delta = model->options.huber_delta;

    if (model->options.loss == ORACLE_MSE) return error * error;
    if (model->options.loss == ORACLE_MAE) return error < 0 ? -error : error;
    if (error >= -delta && error <= delta) return error * error / 2;
    return delta * ((error < 0 ? -error : error) - delta / 2);
}

/** The loss of the known float targets of a vertex. Their number is stored in *count. */
static double float_loss(const struct oracle_model *model, const double *output, const double *target, double *count)
{
    double sum = 0;

    *count = 0;
    for (int64_t j = 0; j < model->classes; j++) {
        if (isnan(target[j])) continue;
        sum += error_loss(model, output[j] - target[j]);
        ++*count;
    }
    return sum;
}

/** The loss of one vertex. Its weight in a mean is stored in *count. */
static double vertex_loss(const struct oracle_model *model, const double *logits, int64_t v, double *count)
{
    const int64_t c = model->classes;

    *count = 1;
    if (model->options.loss >= ORACLE_MSE) return float_loss(model, &logits[v * c], &model->target[v * c], count);
    return model->options.loss == ORACLE_SIGMOID ? sigmoid_loss(c, &logits[v * c], &model->target[v * c])
                                                 : softmax_loss(model, &logits[v * c], &model->target[v * c], count);
}

double oracle_model_loss(const struct oracle_model *model, const double *logits, uint8_t split)
{
    double sum = 0, count = 0, of_vertex;

    for (int64_t v = 0; v < model->n; v++) {
        if (model->split[v] != split || !model->labelled[v]) continue;
        sum += vertex_loss(model, logits, v, &of_vertex);
        count += of_vertex;
    }
    return sum / count;
}

double oracle_model_training_loss(const struct oracle_model *model, const double *logits)
{
    double sum = 0, count = 0, of_vertex;

    for (int64_t v = 0; v < model->n; v++) {
        if (model->split[v] != GRAFT_SPLIT_TRAIN || !model->labelled[v] || model->gives[v]) continue;
        sum += vertex_loss(model, logits, v, &of_vertex);
        count += of_vertex;
    }
    return count > 0 ? sum / count : 0;
}

/** The share of the labelled vertices of a part of the split whose label has the largest logit; NaN if there are
 *  none. */
static double accuracy_of(const struct oracle_model *model, const double *logits, uint8_t split)
{
    double right = 0, all = 0;

    for (int64_t v = 0; v < model->n; v++) {
        int64_t best = 0;
        if (model->split[v] != split || !model->labelled[v]) continue;
        for (int64_t j = 1; j < model->classes; j++)
            if (logits[v * model->classes + j] > logits[v * model->classes + best]) best = j;
        right += model->target[v * model->classes + best];
        all++;
    }
    return right / all;
}

/** The F1 score of logits > 0 against the targets, counted over all vertices of a part of the split and all classes. */
static double f1_of(const struct oracle_model *model, const double *logits, uint8_t split)
{
    double both = 0, predicted = 0, actual = 0;

    for (int64_t at = 0; at < model->n * model->classes; at++) {
        if (model->split[at / model->classes] != split) continue;
        both += logits[at] > 0 && model->target[at] == 1;
        predicted += logits[at] > 0;
        actual += model->target[at] == 1;
    }
    return 2 * both / (predicted + actual);
}

double oracle_model_accuracy(const struct oracle_model *model, const double *logits, uint8_t split)
{
    return model->several ? f1_of(model, logits, split) : accuracy_of(model, logits, split);
}

static int is_measured(const struct oracle_model *model, int64_t at, uint8_t split)
{
    return model->split[at / model->classes] == split && !isnan(model->target[at]);
}

double oracle_model_rmse(const struct oracle_model *model, const double *outputs, uint8_t split)
{
    double squares = 0, count = 0;

    for (int64_t at = 0; at < model->n * model->classes; at++) {
        if (!is_measured(model, at, split)) continue;
        squares += (outputs[at] - model->target[at]) * (outputs[at] - model->target[at]);
        count++;
    }
    return sqrt(squares / count);
}

double oracle_model_r2(const struct oracle_model *model, const double *outputs, uint8_t split)
{
    double sum = 0, columns = 0;

    for (int64_t j = 0; j < model->classes; j++) {
        double mean = 0, count = 0, error = 0, variance = 0, first = NAN;
        int    differ = 0;

        for (int64_t at = j; at < model->n * model->classes; at += model->classes) {
            if (!is_measured(model, at, split)) continue;
            if (count == 0) first = model->target[at];
            if (model->target[at] != first) differ = 1;
            mean += model->target[at];
            count++;
        }
        if (!differ) continue;
        mean /= count;
        for (int64_t at = j; at < model->n * model->classes; at += model->classes) {
            if (!is_measured(model, at, split)) continue;
            error += (outputs[at] - model->target[at]) * (outputs[at] - model->target[at]);
            variance += (mean - model->target[at]) * (mean - model->target[at]);
        }
        sum += 1 - error / variance;
        columns++;
    }
    return sum / columns;
}

/** Record how near the errors of training vertices are to 0, where the derivative of the absolute error jumps. */
static void meet_loss(const struct oracle_model *model, const double *outputs, struct oracle_kinks *kinks)
{
    for (int64_t at = 0; at < model->n * model->classes && model->options.loss == ORACLE_MAE; at++) {
        if (is_measured(model, at, GRAFT_SPLIT_TRAIN)) meet_kink(outputs[at] - model->target[at], kinks);
    }
}

int oracle_model_gradient(struct oracle_model *model, double step, double margin, double *const *gradient)
{
    double             *logits = oracle_new(model->n * model->classes, sizeof *logits);
    struct oracle_kinks here, there;
    int                 smooth = 1;

    oracle_model_forward(model, 1, logits, &here);
    meet_loss(model, logits, &here);
    smooth = here.nearest > margin;
    for (int32_t t = 0; t < model->n_tensors; t++) {
        for (int64_t at = 0; at < model->tensor[t].rows * model->tensor[t].cols && smooth; at++) {
            double      *w = &model->tensor[t].value[at], loss[2];
            const double old = *w, point[2] = { old - step, old + step };

            for (int side = 0; side < 2; side++) {
                *w = point[side];
                oracle_model_forward(model, 1, logits, &there);
                meet_loss(model, logits, &there);
                loss[side] = oracle_model_training_loss(model, logits);
                if (there.signs != here.signs) smooth = 0;
            }
            *w = old;
            gradient[t][at] = (loss[1] - loss[0]) / (point[1] - point[0]);
        }
    }
    free(logits);
    return smooth;
}
