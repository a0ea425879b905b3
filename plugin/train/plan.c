/* What a trainer will use memory for, told before any of it is taken: one refusal then names all of it. What is not
 * known yet is left out, so that nothing is refused that would fit; it is asked for when it comes to that.
 * SPDX-License-Identifier: Apache-2.0 */
#include "edge/edge.h"
#include "graph/csr.h"
#include "model/model.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int64_t gr_model_entries(const graft_trainer *t)
{
    return gr_csr_entries(t->a != NULL ? &t->a->csr : &t->graph);
}

/* Whether the vertices are certain to be put in an order; those that training needs may come first in any case. */
static int is_ordered(const graft_trainer *t)
{
    return t->config.kind != GR_MODEL_MLP && strcmp(t->config.order, "given") != 0;
}

/* Self loops are as many as are missing, and transposes come with graphs that are not symmetric: not known yet. */
static double graph_bytes(const graft_trainer *t)
{
    const int    kind = t->config.kind;
    const double labels = 4 * (t->data.labels != NULL) + (t->data.split != NULL);
    double       bytes = 0;

    if (kind == GR_MODEL_MLP) return 0;
    if (t->config.symmetrize || is_ordered(t)) bytes += (double)gr_csr_copy_bytes(&t->graph, t->n, gr_model_entries(t));
    if (is_ordered(t)) bytes += (8 + labels) * (double)t->n;
    if (kind == GR_MODEL_SAGE || kind == GR_MODEL_GCN) bytes += 4 * (double)t->n;
    if (kind == GR_MODEL_GAT) bytes += (double)gr_edge_map_bytes(&t->graph);
    return bytes;
}

static double feature_bytes(const graft_trainer *t)
{
    const double    dense = 4 * (double)t->n * (double)t->config.width[0];
    const double    dropped = t->config.input_dropout > 0 ? dense : 0;
    const float     one = 1;
    const graft_csr like = { .size = sizeof like, .index_type = GRAFT_I32, .values = &one, .value_type = GRAFT_F32 };
    const int       copied = t->config.normalize_features || is_ordered(t);
    double          sparse;

    if (t->data.features != NULL) return (copied ? dense : 0) + dropped;
    sparse = (double)gr_csr_copy_bytes(&like, t->n, gr_csr_entries(&t->sparse_features));
    if (t->config.sparse_input == GR_AUTO) return fmin(sparse, dense + dropped);
    return t->config.sparse_input == GR_YES ? sparse : dense + dropped;
}

/* What the plan comes to with option recompute, whatever it is. */
static int32_t least(graft_trainer *t, double *bytes, graft_error *error)
{
    const int recompute = t->config.recompute;
    int32_t   rc;

    t->config.recompute = 1;
    rc = gr_layers_plan(t, error);
    *bytes = gr_ledger_planned(t);
    t->config.recompute = recompute;
    return rc;
}

int32_t gr_model_replan(graft_trainer *t, graft_error *error)
{
    char    advice[64] = "";
    double  bytes;
    int32_t rc = GRAFT_OK;

    GR_TRY(least(t, &bytes, error));
    if (!t->config.recompute && bytes <= (double)t->memory_limit)
        snprintf(advice, sizeof advice, "; with recompute=yes %.1f MB at least", bytes * 1e-6);
    GR_TRY(gr_layers_plan(t, error));
    rc = gr_ledger_check_plan(t, advice, error);
done:
    return rc;
}

int32_t gr_model_plan(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    t->keeps_sparse = t->data.sparse_features != NULL && t->config.sparse_input != GR_NO;
    GR_TRY(gr_parameters_describe(t, error));
    if (t->over != NULL) return GRAFT_OK; /* What a rank will have is known when it has been moved there. */
    t->n_seen = t->n;
    gr_ledger_plan(t, GR_USE_FEATURES, feature_bytes(t));
    gr_ledger_plan(t, GR_USE_GRAPH, graph_bytes(t));
    rc = gr_model_replan(t, error);
done:
    return rc;
}
