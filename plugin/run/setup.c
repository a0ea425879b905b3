/* Makes a setup from the host's arrays.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run/input.h"
#include "run/memory.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/option_row.h"
#include "base/options.h"
#include "dense/dense.h"
#include "halo/options.h"
#include "model/labels.h"
#include "model/options.h"
#include "model/workers.h"
#include "nn/options.h"
#include "parallel/strategies.h"
#include "run/loss.h"
#include "run/pass.h"
#include "sample/options.h"

/* Count the training vertices of all ranks, and refuse a data set that has none. */
static int32_t count_trained(struct gr_setup *s, graft_error *error)
{
    GR_TRY(gr_model_labels_check(&s->run, error));
    if (s->run.targets.split == NULL) return GRAFT_OK;
    if (s->given == NULL)
        GR_TRY(gr_strategy_agree(s->run.strategy, gr_run_loss_init(&s->run, &s->budget, error), error));
    GR_TRY(gr_run_targets_count(&s->run.targets, s->run.strategy, error));
    if (s->run.targets.n_train == 0 && s->given == NULL) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "the split has no training vertex with a %s among its %lld vertices",
                       gr_is_regression(&s->model.config) ? "known target" : "label",
                       (long long)s->data.given.n_vertices);
    }
    return GRAFT_OK;
}

/* Check that the graph has the values that attention uses as edge features. Over ranks, every rank knows whether it
 * has. */
static int32_t check_edge_features(const struct gr_setup *s, graft_error *error)
{
    const int     has_values = s->data.over != NULL ? s->data.over->value_type != 0 : s->data.graph.values != NULL;
    const int64_t here = s->model.config.attention.edge_features;
    const int64_t expected = s->given != NULL ? s->given->model->config.attention.edge_features : here;

    if (here != expected)
        return gr_fail(error, GRAFT_ERR_ARG, "the data set has %lld edge features, the model has %lld", (long long)here,
                       (long long)expected);
    if (s->model.config.attention.edge_array || here == 0 || has_values) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION, "option 'edge_features' is values, but the graph has no values");
}

static int32_t check_model_type(const graft_context *context, graft_error *error)
{
    if (gr_shape_options(context)->model_type != GR_MODEL_F64) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION,
                   "option 'model.type' is f64, which only networks on meshes have; trainers have f32 and bf16");
}

/* Whether the model reads the features of edges in the data set. */
static int uses_edges(const struct gr_setup *s)
{
    const struct gr_model_options *model = gr_options_of(s->options, &gr_model_option_table);

    return gr_model_kind(model->kind)->attends && model->edge_features == GR_EDGE_FEATURES_ARRAY;
}

/* Check options and data of this rank, and copy what can be copied without other ranks. */
static int32_t begin_setup(struct gr_setup *s, graft_error *error)
{
    struct gr_run *run = &s->run;

    gr_budget_init(&s->budget, s->context, 1000000 * gr_base_options(s->context)->memory_limit);
    if (s->data.over != NULL) gr_budget_defer(&s->budget, &s->deferral);
    run->context = s->context;
    run->model = &s->model;
    run->isa = gr_processor_isa();
    gr_setup_set_threads(s);
    GR_TRY(check_model_type(s->context, error));
    GR_TRY(gr_dataset_read(&s->data, uses_edges(s), &run->targets, error));
    GR_TRY(gr_model_config_read(s->options, &s->data.given, &s->model.config, error));
    s->data.regresses = gr_is_regression(&s->model.config);
    s->widens_rows = s->data.over != NULL
                         ? gr_setup_has_batches(s)
                         : gr_setup_can_go_by_rows(s) && gr_sample_options(s->context)->history != GR_HISTORY_FULL;
    if (s->given == NULL && !gr_setup_has_batches(s)) GR_TRY(gr_model_workers_check(run, error));
    if (s->data.given.features != NULL && !gr_setup_reads_rows(s)) /* otherwise batches check the rows that they read */
        GR_TRY(gr_dataset_check_features(&s->data.features.x, gr_dataset_first(&s->data), run->threads, error));
    GR_TRY(check_edge_features(s, error));
    if (s->given != NULL) s->model.config.recompute = 1; /* no pass needs results of two layers at a time */
    s->by_rows = s->given != NULL && gr_setup_can_go_by_rows(s);
    if (gr_setup_has_batches(s)) s->model.config.data.row_masks = s->model.config.data.reuse_input = 0;
    if (gr_setup_has_batches(s) && s->data.over != NULL)
        s->model.config.data.sparse_input = GR_NO; /* rows of other ranks are sent dense */
    if (s->model.config.loss.kind != GR_LOSS_SIGMOID) {
        run->targets.targets = NULL; /* if both are given, softmax uses the labels and sigmoid the targets */
        gr_loan_take(&s->data.loans, s->context, &(struct gr_loan){ .name = "targets" });
    }
    return gr_dense_choose(s->context, &run->dense_type, &run->dense, error);
}

static int32_t choose_strategy(struct gr_setup *s, graft_error *error)
{
    const struct gr_strategy_wish wish = { .run = &s->run,
                                           .over = s->data.over,
                                           .budget = &s->budget,
                                           .trains = s->given == NULL,
                                           .has_batches = gr_setup_has_batches(s) };

    GR_TRY(gr_parallel_choose(&wish, &s->strategy, error));
    s->run.strategy = s->strategy;
    if (s->given != NULL && gr_setup_masks_rows(s)) s->model.config.data.reuse_input = 0; /* Reuse needs all rows. */
    return GRAFT_OK;
}

/* Use the weights of the given model, which still owns them. */
static void borrow_weights(struct gr_setup *s)
{
    GR_ASSERT(s->model.parameters.count == s->given->model->parameters.count);
    for (int32_t i = 0; i < s->model.parameters.count; i++) {
        const struct gr_parameter *p = &s->given->model->parameters.list[i];

        s->model.parameters.list[i].value = s->given->best ? p->best : p->value;
    }
}

/* Divide the matrices with which a block sums over neighbours into parts for sparse workers. A strategy divides its own
 * matrices. */
static int32_t cut_sums(struct gr_setup *s, const struct gr_block *block, int64_t rows, graft_error *error)
{
    GR_TRY(gr_model_workers_cut(&s->run, &s->budget, block->a, rows, error));
    return gr_model_workers_cut(&s->run, &s->budget, block->a_transpose, rows, error);
}

static int32_t finish_setup(struct gr_setup *s, graft_error *error)
{
    struct gr_capacity capacity;

    if (s->given != NULL) borrow_weights(s);
    else GR_TRY(gr_nn_init(&s->model.parameters, &s->budget, s->model.config.seed, error));
    if (s->given == NULL) GR_TRY(gr_setup_spans_init(s, error));
    /* Features and graph exist, so nothing more is planned for them. */
    gr_budget_plan(&s->budget, GR_USE_FEATURES, 0);
    gr_budget_plan(&s->budget, GR_USE_GRAPH, 0);
    s->by_rows = s->given != NULL && gr_setup_goes_by_rows(s);
    GR_TRY(gr_setup_replan(s, error));
    if (gr_setup_has_batches(s) || s->by_rows) return GR_NEW(s->context, s->arrays, 1, error);
    capacity = gr_setup_capacity(s);
    GR_TRY(gr_run_init(&s->run, &s->budget, &capacity, error));
    GR_TRY(cut_sums(s, &s->derived.whole, s->derived.whole.n_src, error));
    for (int32_t l = 0; l < s->model.config.n_layers; l++)
        GR_TRY(cut_sums(s, &s->derived.step[l], s->derived.step[0].n_src, error));
    return GRAFT_OK;
}

void gr_setup_follow_options(struct gr_setup *s)
{
    const uint32_t groups = gr_setup_groups(s);

    if (s->followed == s->context->options.changes) return;
    s->followed = s->context->options.changes;
    if (s->given == NULL) s->model.config.live = gr_model_live_config(&s->context->options);
    if (s->data.over == NULL) gr_options_report(s->context, groups, 1);
    else if (s->data.over->comm->rank == 0) gr_options_report(s->context, groups, s->data.over->comm->n_ranks);
}

/* Give the graph to the strategy. The plan of the budget is made before, because it determines the widths of the sums
 * of the layers. */
static int32_t begin_strategy(struct gr_setup *s, graft_error *error)
{
    const struct gr_strategy_graph graph = { .part = s->data.over != NULL ? &s->derived.graph.part : NULL,
                                             .share = s->derived.share,
                                             .reach = s->derived.reach,
                                             .reach_of_all = s->derived.reach_of_all,
                                             .n_vertices = s->data.given.n_vertices,
                                             .first_masked = gr_setup_first_masked(s),
                                             .whole = &s->derived.whole,
                                             .step = s->derived.step };

    (void)gr_setup_planned(s, s->model.config.recompute);
    return gr_strategy_graph(s->strategy, &graph, error);
}

/* Make the graph and the features that the model reads, and the blocks of its layers. */
static int32_t derive(struct gr_setup *s, graft_error *error)
{
    s->derived.wish = gr_setup_wish(s);
    if (s->data.over == NULL) GR_TRY(gr_context_check_cancel(s->context, error));
    GR_TRY(gr_derived_init(&s->derived, error));
    s->run.input.whole = &s->derived.whole;
    if (s->data.over == NULL) GR_TRY(gr_context_check_cancel(s->context, error));
    GR_TRY(gr_setup_features_init(s, error));
    if (s->data.over == NULL) GR_TRY(gr_context_check_cancel(s->context, error));
    GR_TRY(gr_derived_mask(&s->derived, gr_setup_first_masked(s), error));
    return begin_strategy(s, error);
}

/* Allocate memory for all messages. */
static int32_t reserve(struct gr_setup *s, graft_error *error)
{
    const uint64_t sums = GR_PARTIALS * (uint64_t)gr_run_regression_sums(s->data.given.n_classes);
    int32_t        rc = gr_strategy_reserve(s->strategy, error);

    if (rc == GRAFT_OK && s->data.over != NULL && s->data.regresses)
        rc = gr_comm_reserve(s->data.over->comm, sums * sizeof(double), error);
    return rc;
}

int32_t gr_setup_init(struct gr_setup *s, graft_context *context, const graft_dataset *dataset,
                      const struct gr_given_model *given, graft_error *error)
{
    int variant = 0;

    s->context = context;
    s->given = given;
    s->options = given != NULL ? given->options : &context->options;
    s->data = (struct gr_dataset){ .context = context, .budget = &s->budget, .given = *dataset, .over = dataset->over };
    s->derived =
        (struct gr_derived){ .context = context, .budget = &s->budget, .config = &s->model.config, .data = &s->data };
    if (s->data.over != NULL) s->data.over->references++;
    /* First of all, because a rank with another value of an option might fail alone. */
    GR_TRY(gr_setup_compare_options(s, error));
    GR_TRY(gr_dataset_agree(&s->data, begin_setup(s, error), error));
    GR_TRY(choose_strategy(s, error));
    GR_TRY(gr_setup_compare_data(s, error));
    gr_setup_follow_options(s);
    GR_TRY(gr_dataset_distribute(&s->data, &s->run.targets, error));
    GR_TRY(count_trained(s, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_setup_plan(s, error), error));
    GR_TRY(derive(s, error));
    GR_TRY(gr_setup_check_memory(s, &variant, error));
    GR_TRY(gr_strategy_hold(s->strategy, variant, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, finish_setup(s, error), error));
    return gr_strategy_agree(s->run.strategy, reserve(s, error), error);
}

void gr_setup_fini(struct gr_setup *s)
{
    if (s->data.context == NULL) return; /* init() was not called, because another rank had no memory */
    gr_setup_sparse_fini(s);
    gr_derived_fini(&s->derived);
    gr_model_workers_fini(&s->run);
    gr_setup_arrays_fini(s);
    gr_free(s->context, s->arrays);
    gr_dataset_fini(&s->data);
    gr_budget_fini(&s->budget);
    gr_strategy_destroy(s->strategy);
    if (s->data.over != NULL) gr_graph_destroy(s->data.over); /* last, because messages used memory of the budget */
}

void gr_setup_set_threads(struct gr_setup *s)
{
    s->run.threads = s->run.profile.team = s->data.threads = gr_context_threads(s->context, 0);
}

int32_t gr_setup_forward(struct gr_setup *s, graft_error *error)
{
    /* In one process, the blocks of a step have the rows that a prediction of a list needs. */
    const struct gr_block *const *blocks =
        s->given != NULL && s->data.over == NULL ? s->derived.step_of : s->derived.whole_of;

    if (s->arrays != NULL) {
        gr_setup_arrays_fini(s);
        if (gr_setup_goes_by_rows(s)) return gr_setup_by_rows_forward(s, error);
        GR_TRY(gr_setup_arrays_for_all(s, error));
    }
    return gr_run_forward(&s->run, GRAFT_PASS_EVALUATION, blocks, error);
}
