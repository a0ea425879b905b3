/* A trainer from create to destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

int32_t gr_trainer_create(graft_context *context, int32_t found, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error)
{
    graft_dataset  data;
    graft_trainer *t = NULL;
    int32_t        rc = GRAFT_OK;

    /* Without these there is no comm to agree over. */
    GR_TRY(gr_struct_read(&data, sizeof data, dataset, "dataset", error));
    if (data.over != NULL) GR_TRY(gr_handle_check(context, data.over, GR_HANDLE_GRAPH, "dataset.over", error));
    rc = found;
    if (rc == GRAFT_OK) rc = GR_NEW(context, t, 1, error);
    if (rc == GRAFT_OK) t->setup.context = context;
    if (data.over != NULL) rc = gr_comm_agree(data.over->comm, rc, error);
    GR_TRY(rc);
    t->progress.best_accuracy = -1;
    GR_TRY(gr_setup_init(&t->setup, context, &data, NULL, error));
    if (t->setup.over != NULL) t->setup.partition.label_bytes = gr_trainer_label_bytes(t, -1);
    GR_TRY(gr_strategy_agree(t->setup.run.strategy, gr_options_copy(context, &t->options, error), error));
    *trainer = t;
    t = NULL;
done:
    gr_trainer_destroy(t);
    return rc;
}

void gr_trainer_destroy(graft_trainer *t)
{
    if (t == NULL) return;
    gr_setup_fini(&t->setup);
    gr_free(t->setup.context, t->options);
    gr_free(t->setup.context, t);
}

/* By the accuracy; of float targets, which have none, by the loss. */
static int is_better(const struct gr_progress *so_far, const graft_metrics *now)
{
    if (isnan(now->validation_accuracy) && so_far->best_epoch == 0) return 1;
    if (!isnan(now->validation_accuracy) && now->validation_accuracy != so_far->best_accuracy)
        return now->validation_accuracy > so_far->best_accuracy;
    return now->validation_loss < so_far->best_loss;
}

/* Keep the weights if they are the best so far. Without a validation split there is no best. */
static int keep_best(graft_trainer *t, const graft_metrics *metrics)
{
    GR_ASSERT(t->progress.epoch > 0);
    if (isnan(gr_is_regression(gr_run_config(&t->setup.run)) ? metrics->validation_loss : metrics->validation_accuracy))
        return 0;
    if (!is_better(&t->progress, metrics)) return 0;
    t->progress.best_epoch = t->progress.epoch;
    if (!isnan(metrics->validation_accuracy)) t->progress.best_accuracy = metrics->validation_accuracy;
    t->progress.best_loss = metrics->validation_loss;
    for (int32_t i = 0; i < t->setup.model.n_parameters; i++) {
        const struct gr_parameter *p = &t->setup.model.parameters[i];
        memcpy(p->best, p->value, (uint64_t)(p->rows * p->cols) * sizeof *p->best);
    }
    return 1;
}

static int evaluation_is_due(const graft_trainer *t)
{
    if (t->progress.epoch == t->setup.model.config.live.epochs) return 1;
    return t->setup.model.config.live.eval_every > 0 && t->progress.epoch % t->setup.model.config.live.eval_every == 0;
}

static int32_t train_step(graft_trainer *t, double *loss, graft_error *error)
{
    struct gr_run *run = &t->setup.run;
    int32_t        rc = GRAFT_OK;
    double         begin;

    GR_ASSERT(t->progress.epoch < t->setup.model.config.live.epochs);
    run->epoch = t->progress.epoch;
    gr_strategy_begin_step(run->strategy, run->epoch);
    GR_TRY(gr_run_step(run, t->setup.step_of, loss, error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(gr_strategy_end_step(run->strategy, run->epoch, loss, error));
    GR_TRY(gr_strategy_sum_gradients(run->strategy, t->setup.model.gradients, t->setup.model.n_weights, error));
    if (run->strategy->ops->sum_gradients != NULL) gr_profile_end_alone(&run->profile, "reduce", begin);
    begin = gr_profile_begin(&run->profile);
    t->progress.epoch++;
    gr_optimizer_step(&t->setup.model, t->progress.epoch);
    gr_profile_end_alone(&run->profile, "optimizer", begin);
done:
    return rc;
}

/* A forward pass without dropout. */
static int32_t forward_all(graft_trainer *t, graft_error *error)
{
    t->setup.run.epoch = t->progress.epoch;
    return gr_run_forward(&t->setup.run, GRAFT_PASS_EVALUATION, t->setup.whole_of, error);
}

static int32_t measure_logits(graft_trainer *t, graft_metrics *metrics, graft_error *error)
{
    const double  begin = gr_profile_begin(&t->setup.run.profile);
    const int32_t rc = gr_loss_measure(&t->setup.run, gr_run_logits(&t->setup.run), metrics, error);

    gr_profile_end(&t->setup.run.profile, "loss", begin, 0, 0);
    return rc;
}

static void copy_metrics(graft_epoch *epoch, const graft_metrics *metrics)
{
    epoch->train_accuracy = metrics->train_accuracy;
    epoch->validation_accuracy = metrics->validation_accuracy;
    epoch->test_accuracy = metrics->test_accuracy;
    epoch->validation_loss = metrics->validation_loss;
    epoch->train_rmse = metrics->train_rmse;
    epoch->validation_rmse = metrics->validation_rmse;
    epoch->test_rmse = metrics->test_rmse;
    epoch->train_r2 = metrics->train_r2;
    epoch->validation_r2 = metrics->validation_r2;
    epoch->test_r2 = metrics->test_r2;
}

int32_t gr_trainer_epoch(graft_trainer *t, int32_t rc, graft_epoch *epoch, graft_error *error)
{
    graft_metrics metrics = { .size = sizeof metrics };
    const double  begin = gr_seconds();

    rc = gr_ranks_compare_state(t, 1, rc, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_loans(&t->setup, 0, error);
    if (rc < 0) return rc;
    gr_setup_report_options(&t->setup);
    t->setup.model.config.live = gr_live_config_of(&t->setup.context->options);
    if (t->setup.run.targets.n_train == 0)
        return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split, so there is nothing to train on");
    if (t->progress.epoch >= t->setup.model.config.live.epochs) {
        return gr_fail(error, GRAFT_ERR_STATE, "%lld epochs are completed, and option 'epochs' is %lld",
                       (long long)t->progress.epoch, (long long)t->setup.model.config.live.epochs);
    }
    gr_metrics_clear(&metrics);
    gr_setup_set_threads(&t->setup);
    GR_TRY(gr_spans_reset(&t->setup, error));
    rc = gr_strategy_prepare_step(t->setup.run.strategy, &t->setup.run, error);
    if (rc < 0) return rc; /* as on all ranks */
    GR_TRY(train_step(t, &epoch->loss, error));
    epoch->seconds_step = gr_seconds() - begin;
    epoch->drift = t->setup.partition.drift;
    epoch->synchronous = t->setup.partition.was_synchronous;
    epoch->evaluated = evaluation_is_due(t);
    if (epoch->evaluated) {
        GR_TRY(forward_all(t, error));
        GR_TRY(measure_logits(t, &metrics, error));
        epoch->best = keep_best(t, &metrics);
    }
    copy_metrics(epoch, &metrics);
    epoch->learning_rate = gr_learning_rate(&t->setup.model.config.live, t->progress.epoch - 1);
    epoch->epoch = t->progress.epoch;
    epoch->epochs = t->setup.model.config.live.epochs;
    epoch->done = t->progress.epoch >= t->setup.model.config.live.epochs;
    epoch->seconds = gr_seconds() - begin;
done:
    return gr_ranks_fail(&t->setup, rc, error);
}

int gr_progress_has_best(const struct gr_progress *progress)
{
    return progress->best_epoch > 0 && progress->best_epoch <= progress->epoch;
}

static void swap_best(graft_trainer *t)
{
    for (int32_t i = 0; i < t->setup.model.n_parameters; i++) {
        struct gr_parameter *p = &t->setup.model.parameters[i];
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
    const int best = weights == GRAFT_WEIGHTS_BEST && gr_progress_has_best(&t->progress);
    int32_t   rc = GRAFT_OK;

    gr_setup_set_threads(&t->setup);
    GR_TRY(gr_spans_reset(&t->setup, error));
    if (best) swap_best(t);
    rc = forward_all(t, error);
    if (best) swap_best(t);
done:
    return rc;
}

int32_t gr_trainer_evaluate(graft_trainer *t, int32_t rc, int32_t weights, graft_metrics *metrics, graft_error *error)
{
    if (t->setup.run.targets.split == NULL)
        return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split to measure");
    if (rc == GRAFT_OK) rc = check_weights(weights, error);
    rc = gr_strategy_agree(t->setup.run.strategy, rc, error);
    if (rc == GRAFT_OK) rc = gr_ranks_compare_state(t, 0, GRAFT_OK, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_loans(&t->setup, 0, error);
    if (rc < 0) return rc;
    GR_TRY(infer(t, weights, error));
    GR_TRY(measure_logits(t, metrics, error));
    metrics->epoch = weights == GRAFT_WEIGHTS_BEST && gr_progress_has_best(&t->progress) ? t->progress.best_epoch
                                                                                         : t->progress.epoch;
done:
    return gr_ranks_fail(&t->setup, rc, error);
}

int32_t gr_trainer_predict(graft_trainer *t, int32_t rc, int32_t weights, int32_t *labels, const graft_dense *logits,
                           graft_error *error)
{
    if (rc == GRAFT_OK) rc = gr_setup_check_logits(&t->setup, logits, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_labels(&t->setup, labels, error);
    if (rc == GRAFT_OK) rc = check_weights(weights, error);
    rc = gr_strategy_agree(t->setup.run.strategy, rc, error);
    if (rc == GRAFT_OK) rc = gr_ranks_compare_state(t, 0, GRAFT_OK, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_loans(&t->setup, 0, error);
    if (rc < 0) return rc;
    rc = gr_ranks_fail(&t->setup, infer(t, weights, error), error);
    return rc < 0 ? rc : gr_setup_give(&t->setup, labels, logits, error);
}

int32_t gr_trainer_update(graft_trainer *t, int32_t rc, uint32_t what, const graft_dataset *data, graft_error *error)
{
    GR_TRY(gr_ranks_compare_state(t, 0, rc, error));
    GR_TRY(gr_setup_check_loans(&t->setup, what, error));
    GR_TRY(gr_setup_update(&t->setup, what, data, error));
    /* The best accuracy is of the old data. */
    t->progress.best_epoch = 0;
    t->progress.best_accuracy = -1;
done:
    return rc;
}
