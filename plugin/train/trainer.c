/* A trainer from create to destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/option_row.h"
#include "dense/dense.h"
#include "graph/csr.h"
#include "model/labels.h"
#include "parallel/serial.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

/* Of all ranks. */
static int32_t count_trained(graft_trainer *t, graft_error *error)
{
    double  count = 0; /* exact to 2^53 */
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_labels_check(&t->run, error));
    if (t->run.targets.split == NULL) return GRAFT_OK;
    for (int64_t v = 0; v < t->n; v++) count += gr_is_trained(&t->run.targets, v);
    GR_TRY(gr_strategy_sum(t->run.strategy, &count, 1, error));
    t->run.targets.n_train = t->run.targets.n_loss = (int64_t)count;
    if (t->run.targets.n_train == 0) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "the split has no training vertex with a label among its %lld vertices",
                       (long long)t->data.n_vertices);
    }
done:
    return rc;
}

/* What a rank can check without the others. */
static int32_t begin_create(graft_trainer *t, graft_error *error)
{
    struct gr_run *run = &t->run;
    int32_t        rc = GRAFT_OK;

    gr_budget_init(&t->budget, t->context, 1000000 * t->context->options.resource.memory_limit);
    run->context = t->context;
    run->model = &t->model;
    run->threads = run->profile.team = gr_threads(t->context, 0);
    run->isa = gr_processor_isa();
    t->progress.best_accuracy = -1;
    GR_TRY(gr_trainer_read_dataset(t, error));
    GR_TRY(gr_config_read(t->context, &t->data, &t->model.config, error));
    if (!t->model.config.sigmoid)
        run->targets.targets = NULL; /* Given both, softmax uses the labels and sigmoid the targets. */
    rc = gr_dense_choose(t->context, &run->dense_type, &run->dense, error);
done:
    return rc;
}

static void choose_strategy(graft_trainer *t)
{
    t->serial.ops = &gr_serial_ops;
    t->run.strategy = &t->serial;
    if (t->over == NULL) return;
    gr_partition_init(&t->partition, t->context, t->over, &t->model.config);
    t->run.strategy = &t->partition.base;
}

static int32_t finish_create(graft_trainer *t, graft_error *error)
{
    struct gr_capacity capacity;
    int32_t            rc = GRAFT_OK;

    GR_TRY(gr_model_init(&t->model, &t->budget, error));
    GR_TRY(gr_spans_init(t, error));
    /* Features and graph are complete. */
    gr_budget_plan(&t->budget, GR_USE_FEATURES, 0);
    gr_budget_plan(&t->budget, GR_USE_GRAPH, 0);
    GR_TRY(gr_trainer_replan(t, error));
    capacity = gr_capacity_of(t);
    GR_TRY(gr_run_init(&t->run, &t->budget, &capacity, error));
    rc = gr_ranks_reserve(t, error);
done:
    return rc;
}

static int32_t new_trainer(graft_context *context, const graft_dataset *data, graft_trainer **trainer,
                           graft_error *error)
{
    graft_trainer *t;
    int32_t        rc = GR_NEW(context, t, 1, error);

    if (rc < 0) return rc;
    t->context = context;
    t->data = *data;
    t->over = data->over;
    if (t->over != NULL) t->over->references++;
    *trainer = t;
    return GRAFT_OK;
}

/* Rank 0 alone warns of options that have no effect. */
static void report_options(const graft_trainer *t)
{
    if (t->over == NULL) gr_options_report(t->context, ~0u, 1);
    else if (t->over->comm->rank == 0) gr_options_report(t->context, ~0u, t->over->comm->n_ranks);
}

int32_t gr_trainer_create(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error)
{
    graft_dataset  data;
    graft_trainer *t = NULL;
    int32_t        rc = GRAFT_OK;

    GR_TRY(gr_struct_read(&data, sizeof data, dataset, "dataset", error));
    rc = new_trainer(context, &data, &t, error);
    if (data.over != NULL) rc = gr_comm_agree(data.over->comm, rc, error);
    GR_TRY(rc);
    /* Before the options are used: an option that differs may also be one that fails on a single rank. */
    GR_TRY(gr_ranks_compare_options(t, error));
    rc = begin_create(t, error);
    if (t->over != NULL) rc = gr_comm_agree(t->over->comm, rc, error);
    GR_TRY(rc);
    choose_strategy(t);
    GR_TRY(gr_ranks_compare_data(t, error));
    report_options(t);
    GR_TRY(gr_ranks_take(t, error));
    t->run.targets.n = t->n;
    GR_TRY(count_trained(t, error));
    GR_TRY(gr_strategy_agree(t->run.strategy, gr_trainer_plan(t, error), error));
    GR_TRY(gr_trainer_graph_init(t, error));
    GR_TRY(gr_trainer_features_init(t, error));
    GR_TRY(gr_trainer_graph_mask(t, error));
    GR_TRY(gr_strategy_agree(t->run.strategy, finish_create(t, error), error));
    *trainer = t;
    t = NULL;
done:
    gr_trainer_destroy(t);
    return rc;
}

void gr_trainer_destroy(graft_trainer *t)
{
    if (t == NULL) return;
    gr_trainer_sparse_fini(t);
    gr_trainer_graph_fini(t);
    gr_budget_fini(&t->budget);
    gr_partition_fini(&t->partition);
    if (t->over != NULL) gr_graph_destroy(t->over); /* with the last of the comm; messages used memory of the budget */
    gr_free(t->context, t);
}

static int is_better(const struct gr_progress *so_far, const graft_metrics *now)
{
    if (now->validation_accuracy != so_far->best_accuracy) return now->validation_accuracy > so_far->best_accuracy;
    return now->validation_loss < so_far->best_loss;
}

/* Keep the weights if they are the best so far. Without a validation split there is no best. */
static int keep_best(graft_trainer *t, const graft_metrics *metrics)
{
    GR_ASSERT(t->progress.epoch > 0);
    if (isnan(metrics->validation_accuracy) || !is_better(&t->progress, metrics)) return 0;
    t->progress.best_epoch = t->progress.epoch;
    t->progress.best_accuracy = metrics->validation_accuracy;
    t->progress.best_loss = metrics->validation_loss;
    for (int32_t i = 0; i < t->model.n_parameters; i++) {
        const struct gr_parameter *p = &t->model.parameters[i];
        memcpy(p->best, p->value, (uint64_t)(p->rows * p->cols) * sizeof *p->best);
    }
    return 1;
}

static int evaluation_is_due(const graft_trainer *t)
{
    if (t->progress.epoch == t->model.config.live.epochs) return 1;
    return t->model.config.live.eval_every > 0 && t->progress.epoch % t->model.config.live.eval_every == 0;
}

static int32_t train_step(graft_trainer *t, double *loss, graft_error *error)
{
    struct gr_run *run = &t->run;
    int32_t        rc = GRAFT_OK;
    double         begin;

    GR_ASSERT(t->progress.epoch < t->model.config.live.epochs);
    run->epoch = t->progress.epoch;
    gr_strategy_begin_step(run->strategy, run->epoch);
    GR_TRY(gr_run_step(run, t->step_of, loss, error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(gr_strategy_end_step(run->strategy, run->epoch, loss, error));
    GR_TRY(gr_strategy_sum_gradients(run->strategy, t->model.gradients, t->model.n_weights, error));
    if (run->strategy->ops->sum_gradients != NULL) gr_profile_end_alone(&run->profile, "reduce", begin);
    begin = gr_profile_begin(&run->profile);
    t->progress.epoch++;
    gr_optimizer_step(&t->model, t->progress.epoch);
    gr_profile_end_alone(&run->profile, "optimizer", begin);
done:
    return rc;
}

/* A forward pass without dropout. */
static int32_t forward_all(graft_trainer *t, graft_error *error)
{
    t->run.epoch = t->progress.epoch;
    return gr_run_forward(&t->run, GRAFT_PASS_EVALUATION, t->whole_of, error);
}

static int32_t measure_logits(graft_trainer *t, graft_metrics *metrics, graft_error *error)
{
    const double  begin = gr_profile_begin(&t->run.profile);
    const int32_t rc = gr_loss_measure(&t->run, gr_run_logits(&t->run), metrics, error);

    gr_profile_end(&t->run.profile, "loss", begin, 0, 0);
    return rc;
}

static void set_threads(graft_trainer *t)
{
    t->run.threads = t->run.profile.team = gr_threads(t->context, 0);
}

int32_t gr_trainer_epoch(graft_trainer *t, graft_epoch *epoch, graft_error *error)
{
    graft_metrics metrics = { .size = sizeof metrics };
    const double  begin = gr_seconds();
    int32_t       rc = gr_ranks_compare_state(t, 1, error);

    if (rc < 0) return rc;
    t->model.config.live = gr_live_config_of(t->context);
    if (t->run.targets.n_train == 0)
        return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split, so there is nothing to train on");
    if (t->progress.epoch >= t->model.config.live.epochs) {
        return gr_fail(error, GRAFT_ERR_STATE, "all %lld epochs of option 'epochs' are completed",
                       (long long)t->model.config.live.epochs);
    }
    metrics.train_accuracy = metrics.validation_accuracy = metrics.test_accuracy = metrics.validation_loss =
        (double)NAN;
    set_threads(t);
    GR_TRY(gr_spans_reset(t, error));
    rc = gr_strategy_prepare_step(t->run.strategy, &t->run, error);
    if (rc < 0) return rc; /* as on all ranks */
    GR_TRY(train_step(t, &epoch->loss, error));
    epoch->seconds_step = gr_seconds() - begin;
    epoch->drift = t->partition.drift;
    epoch->synchronous = t->partition.was_synchronous;
    epoch->evaluated = evaluation_is_due(t);
    if (epoch->evaluated) {
        GR_TRY(forward_all(t, error));
        GR_TRY(measure_logits(t, &metrics, error));
        epoch->best = keep_best(t, &metrics);
    }
    epoch->train_accuracy = metrics.train_accuracy;
    epoch->validation_accuracy = metrics.validation_accuracy;
    epoch->test_accuracy = metrics.test_accuracy;
    epoch->validation_loss = metrics.validation_loss;
    epoch->learning_rate = gr_learning_rate(&t->model.config.live, t->progress.epoch - 1);
    epoch->epoch = t->progress.epoch;
    epoch->epochs = t->model.config.live.epochs;
    epoch->done = t->progress.epoch >= t->model.config.live.epochs;
    epoch->seconds = gr_seconds() - begin;
done:
    return gr_ranks_fail(t, rc, error);
}

/* A best that lies ahead came in by state_set(), and its weights may not have. */
static int has_best(const graft_trainer *t)
{
    return t->progress.best_epoch > 0 && t->progress.best_epoch <= t->progress.epoch;
}

static void swap_best(graft_trainer *t)
{
    for (int32_t i = 0; i < t->model.n_parameters; i++) {
        struct gr_parameter *p = &t->model.parameters[i];
        float *const         value = p->value;

        p->value = p->best;
        p->best = value;
    }
}

static int32_t check_weights(int32_t weights, graft_error *error)
{
    if (weights == GRAFT_WEIGHTS_LAST || weights == GRAFT_WEIGHTS_BEST) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "weights is %d, expected GRAFT_WEIGHTS_LAST (0) or GRAFT_WEIGHTS_BEST (1)",
                   weights);
}

/* A forward pass without dropout, with the weights asked for. */
static int32_t infer(graft_trainer *t, int32_t weights, graft_error *error)
{
    const int best = weights == GRAFT_WEIGHTS_BEST && has_best(t);
    int32_t   rc = GRAFT_OK;

    set_threads(t);
    GR_TRY(gr_spans_reset(t, error));
    if (best) swap_best(t);
    rc = forward_all(t, error);
    if (best) swap_best(t);
done:
    return rc;
}

int32_t gr_trainer_evaluate(graft_trainer *t, int32_t weights, graft_metrics *metrics, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->run.targets.split == NULL) return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split to measure");
    rc = gr_strategy_agree(t->run.strategy, check_weights(weights, error), error);
    if (rc == GRAFT_OK) rc = gr_ranks_compare_state(t, 0, error);
    if (rc < 0) return rc;
    GR_TRY(infer(t, weights, error));
    GR_TRY(measure_logits(t, metrics, error));
    metrics->epoch = weights == GRAFT_WEIGHTS_BEST && has_best(t) ? t->progress.best_epoch : t->progress.epoch;
done:
    return gr_ranks_fail(t, rc, error);
}

static int32_t check_logits(const graft_trainer *t, const graft_dense *logits, graft_error *error)
{
    const int64_t rows = t->over != NULL ? t->over->n_slice : t->n, classes = t->data.n_classes;
    int32_t       rc;

    if (logits == NULL) return GRAFT_OK;
    rc = gr_dense_check(logits, "logits", error);
    if (rc < 0 || (logits->dtype == GRAFT_F32 && logits->n_rows == rows && logits->n_cols == classes)) return rc;
    return gr_fail(error, GRAFT_ERR_ARG, "logits are %lld x %lld of dtype %d; expected %lld x %lld of GRAFT_F32 (1)",
                   (long long)logits->n_rows, (long long)logits->n_cols, logits->dtype, (long long)rows,
                   (long long)classes);
}

int32_t gr_trainer_predict(graft_trainer *t, int32_t weights, int32_t *labels, const graft_dense *logits,
                           graft_error *error)
{
    const int64_t classes = t->data.n_classes;
    int32_t       rc = check_logits(t, logits, error);

    if (rc == GRAFT_OK) rc = check_weights(weights, error);
    rc = gr_strategy_agree(t->run.strategy, rc, error);
    if (rc == GRAFT_OK) rc = gr_ranks_compare_state(t, 0, error);
    if (rc < 0) return rc;
    GR_TRY(infer(t, weights, error));
    if (t->over != NULL) return gr_ranks_give(t, gr_run_logits(&t->run), labels, logits, error);
    for (int64_t i = 0; i < t->n; i++) {
        const float  *row = gr_run_logits(&t->run) + i * classes;
        const int64_t v = gr_vertex(t->row, i);

        if (labels != NULL) labels[v] = (int32_t)gr_argmax(row, classes);
        if (logits != NULL) memcpy((float *)logits->data + v * logits->stride, row, (uint64_t)classes * sizeof *row);
    }
done:
    return gr_ranks_fail(t, rc, error);
}
