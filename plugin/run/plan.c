/* Plans the memory budget of a setup before any of it is used, so that one refusal names all uses. Sizes that are not
 * known yet are omitted, so that nothing is refused that would fit; they are checked when the memory is allocated.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "edge/edge.h"
#include "graph/csr.h"
#include "run/input.h"
#include "run/memory.h"
#include "run/pass.h"

#include <math.h>
#include <stdio.h>

/* The number of edges of the derived graph or, before it exists, of the host's graph. */
static int64_t edges_of(const struct gr_setup *s)
{
    return gr_csr_entries(s->derived.whole.a != NULL ? &s->derived.whole.a->csr : &s->data.graph);
}

/* The least bytes of the graph. Self-loops that will be added, and transposes of graphs that are not symmetric, are not
 * counted, because their sizes are not known yet. */
static double graph_bytes(const struct gr_setup *s)
{
    const struct gr_model_kind *kind = s->model.config.kind;
    const double                labels = s->run.targets.labels != NULL ? sizeof *s->run.targets.labels : 0;
    const double                split = s->run.targets.split != NULL ? sizeof *s->run.targets.split : 0;
    const double values = s->run.targets.values != NULL ? sizeof(float) * (double)s->run.targets.n_classes : 0;
    double       bytes = (double)gr_memory_bytes(s->data.row_ptr[0]);

    if (!kind->gathers) return bytes;
    if (s->model.config.data.symmetrize || gr_setup_is_ordered(s))
        bytes += (double)gr_csr_copy_bytes(&s->data.graph, s->data.n, edges_of(s));
    if (gr_setup_is_ordered(s))
        bytes += (sizeof *s->derived.whole.vertex + labels + split + values) * (double)s->data.n;
    if (s->model.config.normalization != GR_NORMALIZE_NONE) bytes += sizeof *s->derived.left * (double)s->data.n;
    if (s->model.config.attention.edge_array)
        bytes += sizeof *s->derived.edge * (double)s->model.config.attention.edge_features * (double)edges_of(s);
    if (kind->attends && s->given == NULL) bytes += (double)gr_edge_map_bytes(&s->data.graph);
    return bytes;
}

static double feature_bytes(const struct gr_setup *s)
{
    const double    dense = sizeof(float) * (double)s->data.n * (double)s->model.config.width[0];
    const int       drops = s->given == NULL && !gr_setup_has_batches(s) && s->model.config.input_dropout > 0;
    const double    dropped = drops ? dense : 0;
    const float     one = 1;
    const graft_csr like = { .size = sizeof like, .index_type = GRAFT_I32, .values = &one, .value_type = GRAFT_F32 };
    const double    pointers = (double)gr_memory_bytes(s->data.row_ptr[1]);
    double          sparse;

    if (s->data.given.features != NULL)
        return (gr_setup_copies_features(s) ? dense : 0) + dropped + (double)gr_memory_bytes(s->data.feature_scale);
    sparse = (double)gr_csr_copy_bytes(&like, s->data.n, gr_csr_entries(&s->data.sparse_features));
    if (s->model.config.data.sparse_input == GR_AUTO) return pointers + fmin(sparse, dense + dropped);
    return pointers + (s->model.config.data.sparse_input == GR_YES ? sparse : dense + dropped);
}

/* The number of rows of a step that have gradients: of the output of the first layer those that a later layer needs
 * and, for some kinds of models, the rows of its input. Before receptive fields are known this is a lower bound. */
static int64_t gradient_rows(const struct gr_setup *s)
{
    if (s->given != NULL || gr_setup_has_batches(s)) return 0;
    if (s->derived.reach[0] > 0 || s->data.over != NULL)
        return s->derived.reach[s->model.config.kind->wide_gradient ? 0 : 1];
    return gr_setup_masks_rows(s) && s->model.config.hidden.norm != GR_NORM_BATCH ? s->run.targets.n_train : s->data.n;
}

/* The number of rows of the input of layer l that are computed: `all` rows or, in a prediction of a list, its receptive
 * field. At least 1, because the field may be unknown yet, and because arrays of one row let a rank without vertices
 * take part in all exchanges that recompute repeats. */
static int64_t rows_made(const struct gr_setup *s, int32_t l, int64_t all)
{
    const int64_t rows = s->given == NULL || !gr_setup_masks_rows(s) ? all : s->derived.reach[l];

    return rows > 0 ? rows : 1;
}

struct gr_capacity gr_setup_capacity(const struct gr_setup *s)
{
    GR_ASSERT(s->derived.whole.n_seen >= s->data.n);
    return (struct gr_capacity){ .rows = rows_made(s, 1, s->data.n),
                                 .seen = rows_made(s, 0, s->derived.whole.n_seen),
                                 .predicts = s->given != NULL || gr_setup_has_batches(s),
                                 .reads_history = gr_setup_has_history(s),
                                 .edges = s->model.config.kind->attends ? edges_of(s) : 0,
                                 .winner_words = s->run.strategy->ops->extrema != NULL   ? 0
                                                 : s->data.graph.index_type == GRAFT_I64 ? 2
                                                                                         : 1,
                                 .gradient_rows = gradient_rows(s),
                                 .label_rows = s->derived.reach[s->model.config.n_layers] };
}

static void plan_layers(struct gr_setup *s)
{
    const struct gr_capacity capacity = gr_setup_capacity(s);

    gr_run_plan(&s->run, &s->budget, &capacity);
    if (!gr_setup_has_batches(s) && !s->by_rows) return;
    for (int use = GR_USE_ACTIVATIONS; use <= GR_USE_GRADIENTS; use++) /* they are temporary; see arrays.c */
        gr_budget_plan(&s->budget, (enum gr_use)use, 0);
}

double gr_setup_evaluation_bytes(struct gr_setup *s)
{
    const struct gr_capacity capacity = gr_setup_capacity(s);
    const int                recompute = s->model.config.recompute;
    struct gr_budget         plan = { 0 };

    s->model.config.recompute = 1;
    gr_run_plan(&s->run, &plan, &capacity);
    s->model.config.recompute = recompute;
    return gr_budget_planned(&plan);
}

double gr_setup_planned(struct gr_setup *s, int recompute)
{
    const int set = s->model.config.recompute;

    s->model.config.recompute = recompute;
    plan_layers(s);
    s->model.config.recompute = set;
    return gr_budget_planned(&s->budget);
}

int32_t gr_setup_replan(struct gr_setup *s, graft_error *error)
{
    const double least = gr_setup_planned(s, 1);
    char         advice[64] = "";

    if (!s->model.config.recompute && least <= (double)s->budget.limit)
        snprintf(advice, sizeof advice, "; with recompute=yes %.1f MB at least", least * 1e-6);
    plan_layers(s);
    return gr_budget_check_plan(&s->budget, advice, error);
}

int32_t gr_setup_plan(struct gr_setup *s, graft_error *error)
{
    const struct gr_config *config = &s->model.config;

    gr_setup_expect_input(s, s->data.given.sparse_features != NULL && config->data.sparse_input != GR_NO);
    GR_TRY(gr_model_describe(&s->model, &s->budget, error));
    if (s->given != NULL) { /* the weights exist */
        gr_budget_plan(&s->budget, GR_USE_WEIGHTS, 0);
        gr_budget_plan(&s->budget, GR_USE_OPTIMISER, 0);
    }
    if (s->data.over != NULL) return GRAFT_OK; /* sizes of this rank are known only after redistribution */
    s->derived.whole.n_seen = s->data.n;
    gr_budget_plan(&s->budget, GR_USE_FEATURES, feature_bytes(s));
    gr_budget_plan(&s->budget, GR_USE_GRAPH, graph_bytes(s));
    return gr_setup_replan(s, error);
}
