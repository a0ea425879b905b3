/* A description of a trainer, in a few lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "graph/order.h"
#include "kernel/options.h"
#include "model/workers.h"
#include "sample/options.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>

static void explain_model(const struct gr_setup *s, struct gr_text *text)
{
    int64_t weights = 0;

    for (int32_t i = 0; i < s->model.parameters.n_trained; i++)
        weights += s->model.parameters.list[i].rows * s->model.parameters.list[i].cols;
    gr_text_add(text, "model     %s", s->model.config.kind->name);
    if (s->model.config.kind->attends) gr_text_add(text, " of %lld heads", (long long)s->model.config.attention.heads);
    if (s->model.config.attention.reads_relu) gr_text_add(text, " after ReLU");
    if (s->model.config.attention.edge_array)
        gr_text_add(text, " with %lld features of edges", (long long)s->model.config.attention.edge_features);
    else if (s->model.config.attention.edge_features > 0) gr_text_add(text, " with values of edges");
    if (s->model.config.normalization != s->model.config.kind->normalization)
        gr_text_add(text, ", aggregator=%s",
                    s->model.config.extremum != 0 ? gr_extremum_word(s->model.config.extremum) : "sum");
    if (s->model.config.hidden.is_elu) gr_text_add(text, ", ELU");
    if (s->model.config.hidden.norm == GR_NORM_BATCH) gr_text_add(text, ", BatchNorm");
    if (s->model.config.hidden.jumping != GR_JUMPING_NONE)
        gr_text_add(text, ", jumping=%s", s->model.config.hidden.jumping == GR_JUMPING_CAT ? "cat" : "max");
    if (s->model.config.hidden.adds_input) gr_text_add(text, ", residual");
    gr_text_add(text, ", widths");
    for (int32_t l = 0; l <= s->model.config.n_layers; l++)
        gr_text_add(text, " %lld", (long long)s->model.config.width[l]);
    gr_text_add(text, ", %lld weights, %s loss\n", (long long)weights, gr_loss_name(s->model.config.loss.kind));
}

static void explain_rows(const struct gr_setup *s, struct gr_text *text)
{
    if (s->derived.reach_of_all[s->model.config.n_layers] < s->data.given.n_vertices) {
        gr_text_add(text, "rows      a step needs");
        for (int32_t l = 1; l <= s->model.config.n_layers; l++)
            gr_text_add(text, " %lld", (long long)s->derived.reach_of_all[l]);
        gr_text_add(text, " of the rows after each layer\n");
    } else if (s->strategy->all_rows && s->model.config.extremum != 0) {
        gr_text_add(text, "rows      a step computes all rows, because ranks exchange rows of the halo for maxima and "
                          "minima; option row_masks has no effect\n");
    }
}

static void explain_features(const struct gr_setup *s, struct gr_text *text)
{
    const double elements = (double)(s->data.n > 0 ? s->data.n : 1) * (double)s->model.config.width[0];
    const double filled = 100.0 * (double)s->data.sparse_features.row_ptr[s->data.n] / elements;

    gr_text_add(text, "features  sparse, %.3g %% filled; %s\n", filled,
                s->run.input.x == NULL ? "multiplied as they are" : "made dense");
}

static void explain_graph(const struct gr_setup *s, struct gr_text *text)
{
    if (!s->model.config.kind->gathers) {
        gr_text_add(text, "graph     %lld vertices; edges are not used\n", (long long)s->data.given.n_vertices);
        return;
    }
    if (s->data.over == NULL)
        gr_text_add(text, "graph     %lld vertices, %lld edges%s, %s\n", (long long)s->data.n,
                    (long long)s->derived.whole.a->csr.row_ptr[s->data.n],
                    s->model.config.data.self_loops ? " with self loops" : "",
                    s->derived.symmetric ? "symmetric" : "not symmetric");
    if (s->model.config.data.order != GR_ORDER_GIVEN)
        gr_text_add(text, "order     %s\n", gr_order_names[s->model.config.data.order]);
    if (s->run.layers[0].gathered != NULL && s->run.input.is_constant)
        gr_text_add(text, "reuse     features are aggregated once\n");
    gr_text_add(text, "layers   ");
    for (int32_t l = 0; l < s->model.config.n_layers; l++) {
        gr_text_add(text, " %d: %s first%s", l, s->run.layers[l].aggregate_first ? "aggregate" : "transform",
                    l + 1 < s->model.config.n_layers ? "," : "\n");
    }
}

/* Return the percentage of time that the workers of a kind were idle. */
static double idle_percent(const struct gr_workers *w, enum gr_worker kind)
{
    const double all = w->report.busy[kind] + w->report.idle[kind];

    return all > 0 ? 100 * w->report.idle[kind] / all : 0;
}

static void explain_workers(const struct gr_run *run, struct gr_text *text)
{
    const struct gr_workers *w = run->workers;

    if (w == NULL) return;
    if (!gr_model_workers_suit(run)) {
        gr_text_add(text, "workers   steps run in the plain order, because %s\n", gr_model_workers_refusal(run));
        return;
    }
    gr_text_add(text, "workers   %d of %d threads for sums, in %lld stages", w->sparse, run->threads,
                (long long)gr_model_workers_stages(run));
    if (w->report.bandwidth > 0) gr_text_add(text, " (the bandwidth is %.2f of the rows)", w->report.bandwidth);
    if (w->report.tasks_done > 0)
        gr_text_add(text, "; %lld tasks; idle %.0f %% of their time (%.3f s), and the other threads %.0f %% (%.3f s)",
                    (long long)w->report.tasks_done, idle_percent(w, GR_WORKER_SPARSE),
                    w->report.idle[GR_WORKER_SPARSE], idle_percent(w, GR_WORKER_DENSE),
                    w->report.idle[GR_WORKER_DENSE]);
    if (w->trial.is_auto && isfinite(w->trial.piped))
        gr_text_add(text, "; a step took %.3g s with them and %.3g s without: auto takes the %s", w->trial.piped,
                    w->trial.plain, w->trial.is_off ? "plain order" : "pipeline");
    gr_text_add(text, "\n");
}

/* Add the line of a cache, with the sums over all ranks. */
static void explain_cache(const graft_cache_item *c, struct gr_text *text)
{
    gr_text_add(text, "cache     layer %d: %lld rows of %lld numbers", c->layer, (long long)c->capacity,
                (long long)c->width);
    if (c->searched > 0)
        gr_text_add(text, "; of %lld that batches needed %.1f %% were there, %.1f %% too old; mean age %.1f batches",
                    (long long)c->searched, 100 * (double)c->found / (double)c->searched,
                    100 * (double)c->expired / (double)c->searched, c->age);
    if (c->rows_fetched > 0)
        gr_text_add(text, "; %lld came from their owners, %.1f MB with gradients", (long long)c->rows_fetched,
                    (double)c->bytes_fetched * 1e-6);
    if (c->candidates > 0)
        gr_text_add(text, "; %lld of %lld rows sent, %.1f MB", (long long)c->rows_sent, (long long)c->candidates,
                    (double)c->bytes_sent * 1e-6);
    gr_text_add(text, "\n");
}

static void explain_batches(const graft_trainer *t, struct gr_text *text)
{
    const struct gr_minibatches *m = t->batches;
    const int64_t                batches = t->progress.n_batches;
    const struct gr_batch_deal  *deal = &m->deal;
    const int32_t                ranks = t->setup.data.over != NULL ? t->setup.data.over->comm->n_ranks : 0;
    graft_cache_item             item = { .size = sizeof item };
    graft_error                  error = { .size = sizeof error };

    gr_text_add(text, "batches   %lld of %lld %s in an epoch", (long long)batches,
                (long long)gr_sample_options(t->setup.context)->batch_size, m->mode->seeds);
    if (ranks > 0)
        gr_text_add(text, " on each rank; here %.1f, the mean is %.1f and the most %.1f",
                    (double)deal->n_seeds / (double)batches, (double)deal->n_all / (double)(batches * ranks),
                    (double)deal->most_seeds / (double)batches);
    if (m->edges.all > 0)
        gr_text_add(
            text, "; in the last epoch they had %.0f edges on a rank in the mean, the largest rank %.2f times as many",
            m->edges.all / ranks, (double)m->edges.most * ranks / m->edges.all);
    gr_text_add(text, "\n");
    gr_sampler_explain_kind(m->sampler, text);
    for (int32_t i = 0; gr_trainer_cache_item(t, -1, i, &item, &error) == GRAFT_OK; i++) explain_cache(&item, text);
}

int32_t gr_trainer_explain(graft_trainer *t, char *buffer, uint64_t capacity, graft_error *error)
{
    const struct gr_setup *s = &t->setup;
    const char            *kernel = gr_kernel_options(s->context)->mxm;
    struct gr_text         text = { buffer, capacity };
    char                   budget[192];

    (void)error;
    if (s->model.config.kind->attends) kernel = "edge operators";
    explain_model(s, &text);
    if (s->data.given.sparse_features != NULL) explain_features(s, &text);
    if (gr_propagates(&s->run))
        gr_text_add(&text, "labels    of %g %% of the training vertices are input of a step, the others are its loss\n",
                    100 * s->model.config.label_rate);
    if (s->data.over != NULL) gr_graph_explain(s->data.over, s->derived.share, &text);
    if (s->strategy->ops->report.explain != NULL) s->strategy->ops->report.explain(s->strategy, t->seconds_step, &text);
    explain_graph(s, &text);
    explain_rows(s, &text);
    if (t->batches != NULL) explain_batches(t, &text);
    gr_text_add(&text, "kernel    %s; %d threads%s\n", kernel, s->run.threads,
                s->run.space.rounded != NULL ? "; sums over rows of bfloat16" : "");
    gr_text_add(&text, "dense     %s: %s%s\n", s->run.dense->name, s->run.dense->detail,
                s->run.dense_type == GRAFT_BF16 ? "; products of bfloat16" : "");
    explain_workers(&s->run, &text);
    if (s->model.config.recompute)
        gr_text_add(&text, "recompute values inside layers are recomputed in the backward pass\n");
    gr_budget_text(&s->budget, 0, budget, sizeof budget);
    gr_text_add(&text, "memory    %.1f MB beside the data set: %s\n", (double)gr_budget_total(&s->budget) * 1e-6,
                budget);
    return GRAFT_OK;
}
