/* What a trainer is, in a few lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "graph/order.h"
#include "train/train.h"

#include <stdio.h>
#include <string.h>

static void explain_model(const graft_trainer *t, struct gr_text *text)
{
    int64_t weights = 0;

    for (int32_t i = 0; i < t->model.n_parameters; i++)
        weights += t->model.parameters[i].rows * t->model.parameters[i].cols;
    gr_text_add(text, "model     %s", t->model.config.kind->name);
    if (t->model.config.kind->attends) gr_text_add(text, " of %lld heads", (long long)t->model.config.heads);
    gr_text_add(text, ", widths");
    for (int32_t l = 0; l <= t->model.config.n_layers; l++)
        gr_text_add(text, " %lld", (long long)t->model.config.width[l]);
    gr_text_add(text, ", %lld weights, %s loss\n", (long long)weights, t->model.config.sigmoid ? "sigmoid" : "softmax");
}

static void explain_labels(const graft_trainer *t, struct gr_text *text)
{
    if (gr_propagates(&t->run))
        gr_text_add(text, "labels    of %g %% of the training vertices are input of a step, the others are its loss\n",
                    100 * t->model.config.label_rate);
}

static void explain_rows(const graft_trainer *t, struct gr_text *text)
{
    if (t->reach_of_all[t->model.config.n_layers] < t->data.n_vertices) {
        gr_text_add(text, "rows      a step needs");
        for (int32_t l = 1; l <= t->model.config.n_layers; l++)
            gr_text_add(text, " %lld", (long long)t->reach_of_all[l]);
        gr_text_add(text, " of those behind each layer\n");
    }
}

static void explain_features(const graft_trainer *t, struct gr_text *text)
{
    const double elements = (double)(t->n > 0 ? t->n : 1) * (double)t->model.config.width[0];
    const double filled = 100.0 * (double)t->sparse_features.row_ptr[t->n] / elements;

    gr_text_add(text, "features  sparse, %.3g %% filled; %s\n", filled,
                t->run.input.x == NULL ? "multiplied as they are" : "made dense");
}

/* Behind what another has written there. */
static void go_on(struct gr_text *text)
{
    const uint64_t length = strlen(text->at);

    text->at += length;
    text->left -= length;
}

/* Tables of all ranks, which all of them know. */
static void explain_ranks(const graft_trainer *t, struct gr_text *text)
{
    gr_graph_explain(t->over, t->partition.share, text->at, text->left);
    go_on(text);
    if (t->partition.plan != NULL) gr_plan_explain(t->partition.plan, text->at, text->left);
    go_on(text);
    gr_trainer_explain_traffic(t, text);
}

static void explain_graph(const graft_trainer *t, struct gr_text *text)
{
    if (t->over != NULL) explain_ranks(t, text);
    if (!t->model.config.kind->gathers) {
        gr_text_add(text, "graph     %lld vertices; edges are not used\n", (long long)t->data.n_vertices);
        return;
    }
    if (t->over == NULL)
        gr_text_add(text, "graph     %lld vertices, %lld edges%s, %s\n", (long long)t->n,
                    (long long)t->a->csr.row_ptr[t->n], t->model.config.self_loops ? " with self loops" : "",
                    t->symmetric ? "symmetric" : "not symmetric");
    if (t->model.config.order != GR_ORDER_GIVEN)
        gr_text_add(text, "order     %s\n", gr_order_names[t->model.config.order]);
    if (t->run.layers[0].gathered != NULL && t->run.input.is_constant)
        gr_text_add(text, "reuse     features are aggregated once\n");
    gr_text_add(text, "layers   ");
    for (int32_t l = 0; l < t->model.config.n_layers; l++) {
        gr_text_add(text, " %d: %s first%s", l, t->run.layers[l].aggregate_first ? "aggregate" : "transform",
                    l + 1 < t->model.config.n_layers ? "," : "\n");
    }
}

int32_t gr_trainer_explain(graft_trainer *t, char *buffer, uint64_t capacity, graft_error *error)
{
    const char    *kernel = t->context->options.kernel.mxm;
    struct gr_text text = { buffer, capacity };
    char           budget[192];

    (void)error;
    if (t->model.config.kind->attends) kernel = "edge operators";
    explain_model(t, &text);
    if (t->data.sparse_features != NULL) explain_features(t, &text);
    explain_labels(t, &text);
    explain_graph(t, &text);
    explain_rows(t, &text);
    gr_text_add(&text, "kernel    %s; %d threads\n", kernel, t->run.threads);
    gr_text_add(&text, "dense     %s: %s%s\n", t->run.dense->name, t->run.dense->detail,
                t->run.dense_type == GRAFT_BF16 ? "; products of bfloat16" : "");
    if (t->model.config.recompute)
        gr_text_add(&text, "recompute what is inside layers is made again in the backward pass\n");
    gr_budget_text(&t->budget, 0, budget, sizeof budget);
    gr_text_add(&text, "memory    %.1f MB beside the data set: %s\n", (double)gr_budget_total(&t->budget) * 1e-6,
                budget);
    return GRAFT_OK;
}
