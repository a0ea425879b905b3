/* Prepares a model of the oracle: the graph as a full matrix, features, targets, and weights.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"
#include "sample.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Add the entries of a CSR matrix to a full matrix. If `count` is not NULL it counts the entries at each position. */
static void add_entries(const graft_csr *csr, double *full, int64_t *count)
{
    for (int64_t i = 0; i < csr->n_rows; i++) {
        for (int64_t p = csr->row_ptr[i]; p < csr->row_ptr[i + 1]; p++) {
            const int64_t at = i * csr->n_cols + (int64_t)sample_at(csr->col_idx, csr->index_type, p);
            full[at] += csr->values != NULL ? sample_at(csr->values, csr->value_type, p) : 1;
            if (count != NULL) count[at]++;
        }
    }
}

/** Set the features of every entry: its value, or a row of the array. An entry that symmetrize has added has the
 * features of the original entry, and an added self-loop has the mean of its row. `original` counts the entries of the
 * original graph. */
static void prepare_edges(struct oracle_model *model, const graft_dataset *dataset, const int64_t *original)
{
    const graft_csr   *graph = dataset->graph;
    const graft_dense *array = dataset->edge_features;
    const int64_t      n = model->n, d = model->edge_width;

    model->edge = oracle_new(n * n * d, sizeof *model->edge);
    for (int64_t v = 0; v < n; v++) {
        for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++) {
            const int64_t u = (int64_t)sample_at(graph->col_idx, graph->index_type, e);

            for (int64_t j = 0; j < d; j++) {
                const double x = model->options.edge_array ? oracle_element(array, e, j)
                                                           : sample_at(graph->values, graph->value_type, e);

                model->edge[(v * n + u) * d + j] = x;
                if (model->options.symmetrize && original[u * n + v] == 0) model->edge[(u * n + v) * d + j] = x;
            }
        }
    }
    for (int64_t v = 0; v < n; v++) {
        double entries = 0;

        if (original[v * n + v] > 0 || model->count[v * n + v] == 0) continue;
        for (int64_t u = 0; u < n; u++) entries += (double)(u != v && model->count[v * n + u] > 0);
        for (int64_t j = 0; j < d; j++) {
            double sum = 0;

            for (int64_t u = 0; u < n; u++) sum += u != v ? model->edge[(v * n + u) * d + j] : 0;
            model->edge[(v * n + v) * d + j] = entries > 0 ? sum / entries : 0;
        }
    }
}

static void prepare_graph(struct oracle_model *model, const graft_dataset *dataset)
{
    const graft_csr *graph = dataset->graph;

    const int64_t n = model->n;
    double       *a = model->adjacency = oracle_new(n * n, sizeof *a);
    int64_t      *count = model->count = oracle_new(n * n, sizeof *count);
    int64_t      *original = oracle_new(n * n, sizeof *original);

    add_entries(graph, a, count);
    memcpy(original, count, (size_t)(n * n) * sizeof *count);
    for (int64_t u = 0; u < n && model->options.symmetrize; u++) {
        for (int64_t v = 0; v < n; v++) {
            if (original[v * n + u] > 0 || original[u * n + v] == 0) continue;
            a[v * n + u] = a[u * n + v];
            count[v * n + u] = 1;
        }
    }
    for (int64_t v = 0; v < n && model->options.self_loops; v++) {
        if (count[v * n + v] > 0) continue;
        a[v * n + v] = 1;
        count[v * n + v] = 1;
    }
    model->degree = oracle_new(n, sizeof *model->degree);
    for (int64_t at = 0; at < n * n; at++) model->degree[at / n] += a[at];
    if (model->options.edge_array) model->edge_width = dataset->edge_features->n_cols;
    else model->edge_width = model->options.edge_features != 0;
    prepare_edges(model, dataset, original);
    free(original);
}

static void prepare_features(struct oracle_model *model, const graft_dataset *dataset)
{
    const int64_t n = model->n, d = model->width[0];
    double       *h = model->features = oracle_new(n * d, sizeof *h);

    if (dataset->sparse_features != NULL) {
        add_entries(dataset->sparse_features, h, NULL);
    } else {
        const graft_dense *dense = dataset->features;
        for (int64_t v = 0; v < n; v++)
            for (int64_t j = 0; j < d; j++) h[v * d + j] = ((const float *)dense->data)[v * dense->stride + j];
    }
    for (int64_t v = 0; v < n && model->options.normalize_features; v++) {
        double sum = 0;
        for (int64_t j = 0; j < d; j++) sum += h[v * d + j];
        for (int64_t j = 0; j < d && sum != 0; j++) h[v * d + j] /= sum;
    }
}

static void prepare_targets(struct oracle_model *model, const graft_dataset *dataset)
{
    const int64_t n = model->n, c = model->classes;

    model->target = oracle_new(n * c, sizeof *model->target);
    model->labelled = oracle_new(n, 1);
    model->several = dataset->targets != NULL && (model->options.loss == ORACLE_SIGMOID || dataset->labels == NULL);
    model->split = oracle_new(n, 1);
    model->gives = oracle_new(n, 1);
    for (int64_t v = 0; v < n; v++) {
        if (dataset->split != NULL) model->split[v] = dataset->split[v];
        if (model->options.loss >= ORACLE_MSE) {
            for (int64_t j = 0; j < c; j++) {
                const graft_dense *y = dataset->float_targets;

                model->target[v * c + j] = ((const float *)y->data)[v * y->stride + j];
                if (!isnan(model->target[v * c + j])) model->labelled[v] = 1;
            }
        } else if (model->several) {
            model->labelled[v] = 1;
            for (int64_t j = 0; j < c; j++) model->target[v * c + j] = dataset->targets[v * c + j];
        } else if (dataset->labels != NULL && dataset->labels[v] >= 0) {
            model->labelled[v] = 1;
            model->target[v * c + dataset->labels[v]] = 1;
        }
    }
}

static void add_tensor(struct oracle_model *model, int32_t layer, const char *name, int64_t rows, int64_t cols)
{
    struct oracle_tensor *tensor = &model->tensor[model->n_tensors++];

    if (layer < 0) snprintf(tensor->name, sizeof tensor->name, "%s", name);
    else snprintf(tensor->name, sizeof tensor->name, "layers.%d.%s", layer, name);
    tensor->layer = layer;
    tensor->rows = rows;
    tensor->cols = cols;
    tensor->value = oracle_new(rows * cols, sizeof *tensor->value);
}

int64_t oracle_model_in(const struct oracle_model *model, int32_t l)
{
    int64_t sum = 0;

    if (model->options.jumping == NULL || strcmp(model->options.jumping, "cat") != 0) return model->width[l];
    if (l + 1 < model->options.layers || l == 0) return model->width[l];
    for (int32_t k = 1; k <= l; k++) sum += model->width[k];
    return sum;
}

static void add_layer(struct oracle_model *model, int32_t layer)
{
    const int64_t in = oracle_model_in(model, layer), out = model->width[layer + 1], heads = model->options.heads;
    /* number of columns of one head */
    const int64_t columns = layer + 1 == model->options.layers ? out : out / (heads > 0 ? heads : 1);

    switch (model->options.kind) {
    case ORACLE_SAGE:
        add_tensor(model, layer, "weight_self", in, out);
        add_tensor(model, layer, "weight_neigh", in, out);
        add_tensor(model, layer, "bias", 1, out);
        break;
    case ORACLE_GIN:
        add_tensor(model, layer, "weight_1", in, out);
        add_tensor(model, layer, "bias_1", 1, out);
        add_tensor(model, layer, "weight_2", out, out);
        add_tensor(model, layer, "bias_2", 1, out);
        break;
    case ORACLE_GAT:
        add_tensor(model, layer, "weight", in, heads * columns);
        add_tensor(model, layer, "attention_source", heads, columns);
        add_tensor(model, layer, "attention_target", heads, columns);
        add_tensor(model, layer, "bias", 1, out);
        if (model->edge_width > 0) {
            add_tensor(model, layer, "weight_edge", model->edge_width, heads * columns);
            add_tensor(model, layer, "attention_edge", heads, columns);
        }
        if (model->options.inner_relu) add_tensor(model, layer, "inner_bias", 1, heads * columns);
        break;
    default: add_tensor(model, layer, "weight", in, out); add_tensor(model, layer, "bias", 1, out);
    }
    if (model->options.norm != ORACLE_NO_NORM && layer + 1 < model->options.layers) {
        add_tensor(model, layer, "norm.gain", 1, out);
        add_tensor(model, layer, "norm.shift", 1, out);
    }
    for (int which = 0; which < 2; which++) {
        model->running[which][layer] = oracle_new(out, sizeof(double));
        model->batch[which][layer] = oracle_new(out, sizeof(double));
    }
    for (int64_t j = 0; j < out; j++) model->running[1][layer][j] = 1;
}

void oracle_model_init(struct oracle_model *model, const struct oracle_options *options, const graft_dataset *dataset)
{
    memset(model, 0, sizeof *model);
    model->options = *options;
    model->n = dataset->n_vertices;
    model->classes = dataset->n_classes;
    model->width[0] = dataset->n_features;
    for (int32_t l = 1; l < options->layers; l++) model->width[l] = options->hidden[l - 1];
    model->width[options->layers] = dataset->n_classes;
    prepare_graph(model, dataset);
    prepare_features(model, dataset);
    prepare_targets(model, dataset);
    for (int32_t l = 0; l < options->layers; l++) {
        model->factor[l] = oracle_new(model->n * model->width[l], sizeof(double));
        if (options->attention_dropout > 0)
            model->attention[l] = oracle_new(model->n * model->n * options->heads, sizeof(double));
        add_layer(model, l);
    }
    if (options->label_rate > 0) add_tensor(model, -1, "label_embedding", model->classes, model->width[0]);
}

void oracle_model_fini(struct oracle_model *model)
{
    for (int32_t t = 0; t < model->n_tensors; t++) free(model->tensor[t].value);
    for (int32_t l = 0; l < model->options.layers; l++) {
        free(model->factor[l]);
        free(model->attention[l]);
        free(model->in_batch[l]);
        for (int which = 0; which < 2; which++) {
            free(model->running[which][l]);
            free(model->batch[which][l]);
        }
    }
    free(model->adjacency);
    free(model->count);
    free(model->degree);
    free(model->edge);
    free(model->features);
    free(model->target);
    free(model->labelled);
    free(model->split);
    free(model->gives);
    memset(model, 0, sizeof *model);
}

struct oracle_tensor *oracle_model_find(struct oracle_model *model, const char *name)
{
    for (int32_t t = 0; t < model->n_tensors; t++)
        if (strcmp(model->tensor[t].name, name) == 0) return &model->tensor[t];
    return NULL;
}

static void drop_attention(struct oracle_model *model, int32_t l, int64_t epoch)
{
    const struct oracle_options *options = &model->options;
    const int64_t                n = model->n, heads = options->heads;

    for (int64_t at = 0; at < n * n * heads && options->attention_dropout > 0; at++)
        model->attention[l][at] = oracle_attention_factor(options->attention_dropout, options->seed, epoch, l,
                                                          at / heads / n, at / heads % n, at % heads);
}

void oracle_model_drop(struct oracle_model *model, int64_t epoch)
{
    const struct oracle_options *options = &model->options;

    for (int32_t l = 0; l < options->layers; l++) {
        oracle_dropout(l == 0 ? options->input_dropout : options->dropout, options->seed, epoch, l, model->n,
                       model->width[l], model->factor[l]);
        drop_attention(model, l, epoch);
    }
    for (int64_t v = 0; v < model->n && options->label_rate > 0; v++)
        model->gives[v] = model->labelled[v] && model->split[v] == GRAFT_SPLIT_TRAIN &&
                          oracle_gives_label(options->label_rate, options->seed, epoch, v);
}
