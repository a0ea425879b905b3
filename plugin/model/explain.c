/* What a trainer is, in a few lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct text {
    char    *at;
    uint64_t left;
};

__attribute__((format(printf, 2, 3))) static void add(struct text *text, const char *format, ...)
{
    va_list list;
    int     length;

    va_start(list, format);
    length = vsnprintf(text->at, text->left, format, list);
    va_end(list);
    if (length < 0 || text->left == 0) return;
    if ((uint64_t)length >= text->left) length = (int)text->left - 1;
    text->at += length;
    text->left -= (uint64_t)length;
}

static void explain_model(const graft_trainer *t, struct text *text)
{
    int64_t weights = 0;

    for (int32_t i = 0; i < t->n_parameters; i++) weights += t->parameters[i].rows * t->parameters[i].cols;
    add(text, "model     %s", gr_layer_kinds[t->config.kind].name);
    if (t->config.kind == GR_MODEL_GAT) add(text, " of %lld heads", (long long)t->config.heads);
    add(text, ", widths");
    for (int32_t l = 0; l <= t->config.n_layers; l++) add(text, " %lld", (long long)t->config.width[l]);
    add(text, ", %lld weights, %s loss\n", (long long)weights, t->config.sigmoid ? "sigmoid" : "softmax");
}

static void explain_rows(const graft_trainer *t, struct text *text)
{
    if (t->reach[t->config.n_layers] < t->n) {
        add(text, "rows      a step needs");
        for (int32_t l = 1; l <= t->config.n_layers; l++) add(text, " %lld", (long long)t->reach[l]);
        add(text, " of those behind each layer\n");
    }
}

static void explain_features(const graft_trainer *t, struct text *text)
{
    const double filled = 100.0 * (double)t->sparse_features.row_ptr[t->n] / (double)t->n / (double)t->config.width[0];

    add(text, "features  sparse, %.3g %% filled; %s\n", filled, t->x == NULL ? "multiplied as they are" : "made dense");
}

static void explain_graph(const graft_trainer *t, struct text *text)
{
    if (t->a == NULL) {
        add(text, "graph     %lld vertices; edges are not used\n", (long long)t->n);
        return;
    }
    add(text, "graph     %lld vertices, %lld edges%s, %s\n", (long long)t->n, (long long)t->a->csr.row_ptr[t->n],
        t->config.self_loops ? " with self loops" : "", t->symmetric ? "symmetric" : "not symmetric");
    if (strcmp(t->config.order, "given") != 0) add(text, "order     %s\n", t->config.order);
    if (t->layers[0].gathered != NULL && gr_gathers_once(t)) add(text, "reuse     features are aggregated once\n");
    add(text, "layers   ");
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        add(text, " %d: %s first%s", l, t->layers[l].aggregate_first ? "aggregate" : "transform",
            l + 1 < t->config.n_layers ? "," : "\n");
    }
}

int32_t gr_trainer_explain(graft_trainer *t, char *buffer, uint64_t capacity, graft_error *error)
{
    const char *kernel = gr_option_text(t->context, GR_OPTION_MXM_KERNEL);
    struct text text = { buffer, capacity };
    char        ledger[192];

    (void)error;
    if (t->config.kind == GR_MODEL_GAT) kernel = "edge operators";
    explain_model(t, &text);
    if (t->data.sparse_features != NULL) explain_features(t, &text);
    explain_graph(t, &text);
    explain_rows(t, &text);
    add(&text, "kernel    %s; %d threads\n", kernel, t->threads);
    add(&text, "dense     %s: %s%s\n", t->dense->name, t->dense->detail,
        t->dense_type == GRAFT_BF16 ? "; products of bfloat16" : "");
    if (t->config.recompute) add(&text, "recompute what is inside layers is made again in the backward pass\n");
    gr_ledger_text(t, 0, ledger, sizeof ledger);
    add(&text, "memory    %.1f MB beside the data set: %s\n", (double)gr_ledger_total(t) * 1e-6, ledger);
    return GRAFT_OK;
}
