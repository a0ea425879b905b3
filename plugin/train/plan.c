/* The memory budget of a trainer, planned before any of it is used, so that one refusal names all uses. What is not
 * known yet is left out, so that nothing is refused that would fit; it is checked when it is needed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "edge/edge.h"
#include "graph/csr.h"
#include "train/train.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Edges of the graph; those of the host's, before it is made. */
static int64_t edges_of(const graft_trainer *t)
{
    return gr_csr_entries(t->a != NULL ? &t->a->csr : &t->graph);
}

/* Whether the vertices are certain to be put in an order; those that training needs may come first in any case. */
static int is_ordered(const graft_trainer *t)
{
    return t->model.config.kind->gathers && t->model.config.order != GR_ORDER_GIVEN;
}

/* Self loops are as many as are missing, and transposes come with graphs that are not symmetric: not known yet. */
static double graph_bytes(const graft_trainer *t)
{
    const struct gr_model_kind *kind = t->model.config.kind;
    const double                labels = t->run.targets.labels != NULL ? sizeof *t->run.targets.labels : 0;
    const double                split = t->run.targets.split != NULL ? sizeof *t->run.targets.split : 0;
    double                      bytes = 0;

    if (!kind->gathers) return 0;
    if (t->model.config.symmetrize || is_ordered(t)) bytes += (double)gr_csr_copy_bytes(&t->graph, t->n, edges_of(t));
    if (is_ordered(t)) bytes += (sizeof *t->vertex + labels + split) * (double)t->n;
    if (kind->normalization != GR_NORMALIZE_NONE) bytes += sizeof *t->left * (double)t->n;
    if (kind->attends) bytes += (double)gr_edge_map_bytes(&t->graph);
    return bytes;
}

static double feature_bytes(const graft_trainer *t)
{
    const double    dense = sizeof(float) * (double)t->n * (double)t->model.config.width[0];
    const double    dropped = t->model.config.input_dropout > 0 ? dense : 0;
    const float     one = 1;
    const graft_csr like = { .size = sizeof like, .index_type = GRAFT_I32, .values = &one, .value_type = GRAFT_F32 };
    const int       copied = t->model.config.normalize_features || is_ordered(t);
    double          sparse;

    if (t->data.features != NULL) return (copied ? dense : 0) + dropped;
    sparse = (double)gr_csr_copy_bytes(&like, t->n, gr_csr_entries(&t->sparse_features));
    if (t->model.config.sparse_input == GR_AUTO) return fmin(sparse, dense + dropped);
    return t->model.config.sparse_input == GR_YES ? sparse : dense + dropped;
}

/* Rows of a step that have gradients: those behind the first layer that a later one needs, and for some kinds those
 * before it. Before the receptive fields are known, as many as are certain. */
static int64_t gradient_rows(const graft_trainer *t)
{
    if (t->reach[0] > 0 || t->over != NULL) return t->reach[t->model.config.kind->wide_gradient ? 0 : 1];
    return gr_masks_rows(t) ? t->run.targets.n_train : t->n;
}

struct gr_capacity gr_capacity_of(const graft_trainer *t)
{
    GR_ASSERT(t->n_seen >= t->n);
    return (struct gr_capacity){ .rows = t->n,
                                 .seen = t->n_seen,
                                 .edges = t->model.config.kind->attends ? edges_of(t) : 0,
                                 .gradient_rows = gradient_rows(t),
                                 .label_rows = t->reach[t->model.config.n_layers] };
}

static void plan_layers(graft_trainer *t)
{
    const struct gr_capacity capacity = gr_capacity_of(t);

    gr_run_plan(&t->run, &t->budget, &capacity);
}

/* Bytes that are planned if option recompute is set, whatever it is. */
static double bytes_with_recompute(graft_trainer *t)
{
    const int recompute = t->model.config.recompute;
    double    bytes;

    t->model.config.recompute = 1;
    plan_layers(t);
    bytes = gr_budget_planned(&t->budget);
    t->model.config.recompute = recompute;
    return bytes;
}

int32_t gr_trainer_replan(graft_trainer *t, graft_error *error)
{
    const double least = bytes_with_recompute(t);
    char         advice[64] = "";

    if (!t->model.config.recompute && least <= (double)t->budget.limit)
        snprintf(advice, sizeof advice, "; with recompute=yes %.1f MB at least", least * 1e-6);
    plan_layers(t);
    return gr_budget_check_plan(&t->budget, advice, error);
}

void gr_input_expect(graft_trainer *t, int sparse)
{
    const struct gr_config *config = &t->model.config;

    t->run.input.is_sparse = sparse;
    t->run.input.is_constant = config->reuse_input && config->input_dropout == 0 && !sparse;
}

int32_t gr_trainer_plan(graft_trainer *t, graft_error *error)
{
    const struct gr_config *config = &t->model.config;
    int32_t                 rc = GRAFT_OK;

    gr_input_expect(t, t->data.sparse_features != NULL && config->sparse_input != GR_NO);
    GR_TRY(gr_model_describe(&t->model, &t->budget, error));
    if (t->over != NULL) return GRAFT_OK; /* The size of a rank's part is known when it has been redistributed. */
    t->n_seen = t->n;
    gr_budget_plan(&t->budget, GR_USE_FEATURES, feature_bytes(t));
    gr_budget_plan(&t->budget, GR_USE_GRAPH, graph_bytes(t));
    rc = gr_trainer_replan(t, error);
done:
    return rc;
}
