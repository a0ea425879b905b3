/* One epoch: a step or all batches, and sometimes an evaluation. A loss, gradient or weight that is not finite undoes
 * it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/finite.h"
#include "nn/options.h"
#include "run/loss.h"
#include "run/pass.h"
#include "sample/sample.h"
#include "train/train.h"

#include <stdio.h>

/* How often an epoch is repeated at most, each time with half the learning rate: enough to go from the largest float to
 * 1. After HALVINGS_BLIND of them, one test shows whether a smaller rate can help. */
enum { HALVINGS_MOST = 128, HALVINGS_BLIND = 8 };

/* Compare validation accuracies; if they are equal, or there are none (float targets), validation losses. */
static int is_better(const struct gr_progress *so_far, const graft_metrics *now)
{
    if (isnan(now->validation_accuracy) && so_far->best_epoch == 0) return 1;
    if (!isnan(now->validation_accuracy) && now->validation_accuracy != so_far->best_accuracy)
        return now->validation_accuracy > so_far->best_accuracy;
    return now->validation_loss < so_far->best_loss;
}

/* Copy the weights if they are the best so far. Without a validation split there are no best weights. Returns whether
 * they are. */
static int keep_best(graft_trainer *t, const graft_metrics *metrics)
{
    GR_ASSERT(t->progress.epoch > 0);
    if (isnan(gr_is_regression(gr_run_config(&t->setup.run)) ? metrics->validation_loss : metrics->validation_accuracy))
        return 0;
    if (!is_better(&t->progress, metrics)) return 0;
    t->progress.best_epoch = t->progress.epoch;
    if (!isnan(metrics->validation_accuracy)) t->progress.best_accuracy = metrics->validation_accuracy;
    t->progress.best_loss = metrics->validation_loss;
    for (int32_t i = 0; i < t->setup.model.parameters.count; i++) {
        const struct gr_parameter *p = &t->setup.model.parameters.list[i];
        memcpy(p->best, p->value, (uint64_t)(p->rows * p->cols) * sizeof *p->best);
    }
    return 1;
}

static int evaluation_is_due(const graft_trainer *t)
{
    if (t->progress.epoch == t->setup.model.config.live.epochs) return 1;
    return t->setup.model.config.live.eval_every > 0 && t->progress.epoch % t->setup.model.config.live.eval_every == 0;
}

/* Whether the best epoch is `patience` epochs old, which only an evaluation can find. An undone epoch may be the best
 * (on_nonfinite); then its number is larger than that of the completed epochs. */
static int is_out_of_patience(const graft_trainer *t, int evaluated)
{
    const int64_t patience = t->setup.model.config.live.patience;

    if (patience == 0 || !evaluated || !gr_train_progress_has_best(&t->progress)) return 0;
    return t->progress.epoch - t->progress.best_epoch >= patience;
}

/* The first value found that is not finite. Sums over ranks are bitwise identical on all ranks, so all find the same
 * value. */
struct finding {
    char what[120];     /* description; empty: all values are finite */
    int  is_after_step; /* the value is in the weights after the step, or in their loss */
    int  is_in_moment;  /* the value is a moment of the optimizer */
};

static const char *not_finite_in_words(double value)
{
    if (isnan(value)) return "NaN";
    return value > 0 ? "infinite" : "-infinite";
}

static void find_in_gradients(const graft_trainer *t, double loss, struct finding *found)
{
    const struct gr_model *model = &t->setup.model;

    if (!isfinite(loss)) snprintf(found->what, sizeof found->what, "the loss is %s", not_finite_in_words(loss));
    if (!isfinite(loss) || gr_all_finite(model->parameters.gradients, model->parameters.n_weights)) return;
    for (int32_t i = 0; i < model->parameters.count; i++) {
        const struct gr_parameter *p = &model->parameters.list[i];

        if (gr_all_finite(p->gradient, p->rows * p->cols)) continue;
        snprintf(found->what, sizeof found->what, "the gradient of %s is not finite", gr_nn_name(p, GR_COPY_VALUE));
        return;
    }
}

static void find_in_weights(const graft_trainer *t, struct finding *found)
{
    for (int32_t i = 0; i < t->setup.model.parameters.count; i++) {
        const struct gr_parameter *p = &t->setup.model.parameters.list[i];
        const float *const         arrays[] = { p->value, p->m, p->v };

        for (int k = 0; k < (p->statistic == GR_TRAINED ? 3 : 1) && found->what[0] == '\0'; k++) {
            if (gr_all_finite(arrays[k], p->rows * p->cols)) continue;
            found->is_in_moment = k > 0;
            snprintf(found->what, sizeof found->what, "%s of %s is not finite after the step",
                     k == 0 ? "a weight" : "a moment", gr_nn_name(p, GR_COPY_VALUE));
        }
    }
    found->is_after_step = found->what[0] != '\0';
}

/* Report rows that the codec of the tables cannot represent: other batches would read them as zeros. */
static void find_in_history(const graft_trainer *t, struct finding *found)
{
    const struct gr_batch_strategy *strategy = t->batches != NULL ? t->batches->strategy : NULL;

    if (strategy == NULL || strategy->unfit == 0 || found->what[0] != '\0') return;
    snprintf(found->what, sizeof found->what, "%lld rows that history=full keeps fit no code of option 'hec.codec'",
             (long long)strategy->unfit);
}

/* Compute the loss and the gradients of step number `step` on these blocks. */
static int32_t differentiate_loss(graft_trainer *t, const struct gr_block *const *blocks, int64_t step, double *loss,
                                  struct finding *found, graft_error *error)
{
    struct gr_run *run = &t->setup.run;
    double         begin;

    run->epoch = step;
    gr_strategy_begin_step(run->strategy, run->epoch);
    GR_TRY(gr_run_step(run, blocks, loss, error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(gr_strategy_end_step(run->strategy, run->epoch, loss, error));
    GR_TRY(gr_strategy_sum_gradients(run->strategy, t->setup.model.parameters.gradients,
                                     t->setup.model.parameters.n_weights, error));
    if (run->strategy->ops->sum_gradients != NULL) gr_profile_end_alone(&run->profile, "reduce", begin);
    find_in_gradients(t, *loss, found);
    find_in_history(t, found);
    return GRAFT_OK;
}

/* Clip the gradients, and change the weights. `number` counts steps from 1. */
static void change_weights(graft_trainer *t, int64_t number, graft_epoch *epoch)
{
    const struct gr_config      *config = &t->setup.model.config;
    const struct gr_live_config *live = &config->live;
    const struct gr_nn_step      step = { .method = config->optimizer.word == GR_ADAM ? GR_NN_ADAM : GR_NN_SGD,
                                          .number = number,
                                          .rate = epoch->learning_rate,
                                          .weight_decay = live->weight_decay,
                                          .decays_first = live->decays_first,
                                          .momentum = config->optimizer.number[0],
                                          .beta1 = config->optimizer.number[0],
                                          .beta2 = config->optimizer.number[1] };

    epoch->gradient_norm = (double)NAN;
    if (live->clip_norm > 0) {
        epoch->gradient_norm = sqrt(gr_nn_squares(&t->setup.model.parameters));
        gr_nn_clip(&t->setup.model.parameters, epoch->gradient_norm, live->clip_norm);
    }
    gr_nn_step(&t->setup.model.parameters, &step, (struct gr_team){ .threads = t->setup.run.threads });
}

/* Run step number `step`. Weights do not change if the loss or a gradient is not finite. */
static int32_t train_blocks(graft_trainer *t, const struct gr_block *const *blocks, int64_t step, graft_epoch *epoch,
                            double *loss, struct finding *found, graft_error *error)
{
    struct gr_run *run = &t->setup.run;
    const int32_t  rc = differentiate_loss(t, blocks, step, loss, found, error);
    double         begin;

    GR_ASSERT(t->progress.epoch < t->setup.model.config.live.epochs);
    if (rc < 0 || found->what[0] != '\0') return rc;
    begin = gr_profile_begin(&run->profile);
    epoch->learning_rate =
        gr_nn_rate(&t->setup.model.config.live.schedule, t->progress.epoch) * t->progress.rate_factor;
    change_weights(t, step + 1, epoch);
    t->has_previous = 1;
    t->is_measured = 0;
    find_in_weights(t, found);
    gr_profile_end_alone(&run->profile, "optimizer", begin);
    return GRAFT_OK;
}

/* Whether the step has changed the weights. */
static int has_changed(const struct finding *found)
{
    return found->what[0] == '\0' || found->is_after_step;
}

/* Whether a batch has no training vertex, as with option history: it then only renews the rows of its vertices, without
 * a step. */
static int renews_only(const graft_trainer *t)
{
    return t->batches->mode->renews && t->setup.run.targets.n_train == 0;
}

static int32_t renew_rows(graft_trainer *t, int64_t step, struct finding *found, graft_error *error)
{
    int32_t rc;

    t->setup.run.epoch = step;
    rc = gr_run_forward(&t->setup.run, GRAFT_PASS_FORWARD, t->batches->now.block_of, error);
    if (rc == GRAFT_OK) find_in_history(t, found);
    return rc;
}

/* Run the step of the next batch of the epoch. */
static int32_t train_batch(graft_trainer *t, graft_epoch *epoch, struct finding *found, graft_error *error)
{
    struct gr_progress *p = &t->progress;
    const int64_t       step = gr_train_minibatch_number(p);
    double              loss = 0;
    int32_t             rc = GRAFT_OK;

    if (t->setup.data.over == NULL) GR_TRY(gr_context_check_cancel(t->setup.context, error));
    rc = gr_train_minibatch_begin(t, error);
    if (rc == GRAFT_OK && renews_only(t)) rc = renew_rows(t, step, found, error);
    else if (rc == GRAFT_OK) rc = train_blocks(t, t->batches->now.block_of, step, epoch, &loss, found, error);
    if (rc == GRAFT_OK && has_changed(found)) {
        p->loss += loss * t->setup.run.targets.loss_weight;
        p->weight += t->setup.run.targets.loss_weight;
        p->batch++;
        t->batches->idle = renews_only(t) ? t->batches->idle + 1 : 0;
    }
    gr_train_minibatch_end(t);
    return rc;
}

static int32_t train_batches(graft_trainer *t, graft_epoch *epoch, struct finding *found, graft_error *error)
{
    struct gr_progress *p = &t->progress;

    GR_TRY(gr_train_minibatches_begin_epoch(t, error));
    while (p->batch < p->n_batches && found->what[0] == '\0') GR_TRY(train_batch(t, epoch, found, error));
    if (found->what[0] == '\0') return gr_train_minibatches_end_epoch(t, error);
    return GRAFT_OK;
}

/* After an evaluation that failed, set the progress to the end of the last batch, so that the next call evaluates, and
 * repeats no batch. */
static void await_evaluation(graft_trainer *t, double loss)
{
    if (t->batches == NULL) return;
    t->progress.epoch--;
    t->progress.batch = t->progress.n_batches;
    t->progress.loss = loss;
    t->progress.weight = 1;
}

/* Run a step on the whole graph, or the remaining batches of the epoch. */
static int32_t train_step(graft_trainer *t, graft_epoch *epoch, struct finding *found, graft_error *error)
{
    struct gr_progress *p = &t->progress;

    if (p->n_batches == 0) {
        GR_TRY(train_blocks(t, t->setup.derived.step_of, p->epoch, epoch, &epoch->loss, found, error));
        p->epoch += has_changed(found);
        return GRAFT_OK;
    }
    if (p->batch < p->n_batches) GR_TRY(train_batches(t, epoch, found, error));
    if (found->what[0] != '\0') return GRAFT_OK;
    epoch->loss = p->loss / p->weight;
    p->loss = p->weight = 0;
    p->batch = 0;
    p->epoch++;
    return GRAFT_OK;
}

/* Run the step or the batches of an epoch and, if it is due, an evaluation. */
static int32_t try_epoch(graft_trainer *t, graft_epoch *epoch, graft_metrics *metrics, struct finding *found,
                         graft_error *error)
{
    const double begin = gr_seconds();
    int          is_finite = 1;
    int32_t      rc = GRAFT_OK;

    *found = (struct finding){ 0 };
    epoch->best = 0;
    gr_run_metrics_clear(metrics);
    GR_TRY(train_step(t, epoch, found, error));
    epoch->seconds_step = t->seconds_step = gr_seconds() - begin;
    epoch->drift = t->setup.strategy->drift;
    epoch->synchronous = t->setup.strategy->waited;
    epoch->evaluated = evaluation_is_due(t);
    if (found->what[0] != '\0' || !epoch->evaluated) return GRAFT_OK;
    rc = gr_trainer_forward(t, error);
    if (rc == GRAFT_OK) rc = gr_trainer_measure(t, metrics, &is_finite, error);
    gr_trainer_forward_end(t);
    if (rc < 0) await_evaluation(t, epoch->loss);
    if (rc < 0) return rc;
    t->is_measured = is_finite;
    if (is_finite) epoch->best = keep_best(t, metrics);
    else
        *found = (struct finding){ "the loss of the training or validation vertices is not finite after the step",
                                   .is_after_step = 1 };
    return GRAFT_OK;
}

/* Go back to weights whose loss is known to be finite: the weights before the last step. The current weights stay if
 * the failed step has not changed them, their evaluation was finite, and `restores` is 0. Returns whether there are
 * such weights. */
static int go_back(graft_trainer *t, const struct finding *found, int restores)
{
    const int64_t idle = t->batches != NULL ? t->batches->idle : 0;

    gr_strategy_forget(t->setup.run.strategy, 1);
    gr_train_minibatches_forget(t);
    if (!found->is_after_step && t->is_measured && !restores) return 1;
    if (!t->has_previous) return 0;
    gr_nn_undo(&t->setup.model.parameters);
    t->has_previous = t->is_measured = 0;
    if (t->progress.batch > idle) t->progress.batch -= 1 + idle;
    else if (t->progress.batch > 0) t->progress.batch = 0;
    else t->progress.epoch--;
    return 1;
}

/* Whether the restored weights, too, give values that are not finite, as the weights after their step did in epoch
 * number `epoch`: then so do all weights near them, and no smaller learning rate helps. Neither does it for moments,
 * which do not depend on the learning rate. */
static int32_t is_hopeless(graft_trainer *t, const struct finding *found, int64_t epoch, int *hopeless,
                           graft_error *error)
{
    struct finding now = { 0 };
    graft_metrics  metrics = { .size = sizeof metrics };
    double         loss;
    int            is_finite = 1;
    int32_t        rc = GRAFT_OK;

    if (found->is_in_moment) now = *found;
    else if (!found->is_after_step) {
        GR_TRY(gr_strategy_prepare_step(t->setup.run.strategy, &t->setup.run, error));
        GR_TRY(gr_setup_ranks_fail(
            &t->setup, differentiate_loss(t, t->setup.derived.step_of, epoch - 1, &loss, &now, error), error));
        gr_strategy_forget(t->setup.run.strategy, 1);
    } else if (!t->is_measured) {
        rc = gr_trainer_forward(t, error);
        if (rc == GRAFT_OK) rc = gr_trainer_measure(t, &metrics, &is_finite, error);
        gr_trainer_forward_end(t);
        GR_TRY(gr_setup_ranks_fail(&t->setup, rc, error));
    }
    *hopeless = now.what[0] != '\0' || !is_finite;
    return GRAFT_OK;
}

/* Treat a value that is not finite in epoch number `epoch`: report an error, or with on_nonfinite=restore halve the
 * learning rate, so that the caller tries again. After that the state before the call, which includes messages over
 * ranks, cannot be restored: the call must complete its epoch, and requests to cancel wait for the next call. */
static int32_t treat(graft_trainer *t, const struct finding *found, int64_t epoch, int *halvings, graft_error *error)
{
    const struct gr_setup *s = &t->setup;
    const int              restores = gr_training_options(s->context)->on_nonfinite == GR_NONFINITE_RESTORE;
    const double           rate = gr_nn_rate(&s->model.config.live.schedule, epoch - 1) * t->progress.rate_factor;
    int                    hopeless = 0;
    int32_t                rc = GRAFT_OK;

    if (!go_back(t, found, restores))
        return gr_fail(error, GRAFT_ERR_NONFINITE,
                       "epoch %lld: %s, and there are no earlier weights to go back to; features, float targets, "
                       "edge values or weights may be too large: scale them (normalize_features=yes divides rows of "
                       "features by their sums)",
                       (long long)epoch, found->what);
    if (!restores)
        return gr_fail(error, GRAFT_ERR_NONFINITE,
                       "epoch %lld: %s; the weights are from epoch %lld. Try a smaller lr than %g, or "
                       "on_nonfinite=restore, which goes back and halves it",
                       (long long)epoch, found->what, (long long)t->progress.epoch, rate);
    if (found->is_in_moment || *halvings == HALVINGS_BLIND) rc = is_hopeless(t, found, epoch, &hopeless, error);
    if (rc < 0) return rc;
    if (hopeless)
        return gr_fail(error, GRAFT_ERR_NONFINITE,
                       "epoch %lld: %s, also with any learning rate smaller than %g, so on_nonfinite=restore cannot "
                       "help; the weights are from epoch %lld. Continue from an earlier model, or scale features, "
                       "float targets and edge values",
                       (long long)epoch, found->what, rate, (long long)t->progress.epoch);
    if (++*halvings > HALVINGS_MOST)
        return gr_fail(error, GRAFT_ERR_NONFINITE,
                       "epoch %lld: %s, also after %d halvings of the learning rate, to %g; the weights are from "
                       "epoch %lld",
                       (long long)epoch, found->what, HALVINGS_MOST, rate, (long long)t->progress.epoch);
    t->progress.rate_factor /= 2;
    s->context->defers_cancel = 1;
    return GRAFT_OK;
}

/* Warn that the learning rate was halved. Over ranks only rank 0 warns. */
static void warn_of_halvings(const graft_trainer *t, const struct finding *first, int halvings)
{
    const struct gr_setup *s = &t->setup;

    if (halvings == 0 || (s->data.over != NULL && s->data.over->comm->rank != 0)) return;
    gr_log(s->context, GRAFT_LOG_WARNING,
           "%s in epoch %lld, so earlier weights were restored and the learning rate was halved %d times, to %g",
           first->what, (long long)t->progress.epoch, halvings,
           gr_nn_rate(&s->model.config.live.schedule, t->progress.epoch - 1) * t->progress.rate_factor);
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

/* Check on all ranks that an epoch can begin. */
static int32_t begin_epoch(graft_trainer *t, int32_t rc, graft_error *error)
{
    const struct gr_live_config *live = &t->setup.model.config.live;

    rc = gr_trainer_compare_state(t, 1, rc, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_loans(&t->setup, 0, error);
    if (rc < 0) return rc;
    if (t->batches != NULL || t->progress.batch > 0) gr_train_minibatches_settle(t);
    if (t->setup.data.over == NULL && t->state_is_set) {
        if (t->batches != NULL) gr_train_batch_tables_take(t->batches, gr_train_minibatch_number(&t->progress));
        t->state_is_set = 0;
    }
    gr_setup_follow_options(&t->setup);
    if (t->setup.run.targets.n_train == 0)
        return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split, so there is nothing to train on");
    if (t->progress.epoch >= live->epochs)
        return gr_fail(error, GRAFT_ERR_STATE, "%lld epochs are completed, and option 'epochs' is %lld",
                       (long long)t->progress.epoch, (long long)live->epochs);
    return GRAFT_OK;
}

/* Try steps until epoch `target` is completed. Failures are the same on all ranks. */
static int32_t complete_epoch(graft_trainer *t, int64_t target, graft_epoch *epoch, graft_error *error)
{
    graft_metrics  metrics = { .size = sizeof metrics };
    const double   factor = t->progress.rate_factor;
    struct finding found, first = { 0 };
    int            halvings = 0;
    int32_t        rc = GRAFT_OK;

    while (t->progress.epoch < target) {
        const int64_t next = t->progress.epoch + 1;

        if (t->batches != NULL) GR_TRY_DONE(gr_train_minibatches_prepare(t, error));
        GR_TRY_DONE(gr_strategy_prepare_step(t->setup.run.strategy, &t->setup.run, error));
        GR_TRY_DONE(gr_setup_ranks_fail(&t->setup, try_epoch(t, epoch, &metrics, &found, error), error));
        if (found.what[0] != '\0' && halvings == 0) first = found;
        if (found.what[0] != '\0') GR_TRY_DONE(treat(t, &found, next, &halvings, error));
    }
    warn_of_halvings(t, &first, halvings);
    copy_metrics(epoch, &metrics);
done:
    if (rc < 0) t->progress.rate_factor = factor; /* after these halvings a smaller lr would have no effect */
    t->setup.context->defers_cancel = 0;
    return rc;
}

int32_t gr_trainer_epoch(graft_trainer *t, int32_t rc, graft_epoch *epoch, graft_error *error)
{
    const double begin = gr_seconds();

    rc = begin_epoch(t, rc, error);
    if (rc < 0) return rc;
    gr_setup_set_threads(&t->setup);
    rc = gr_setup_ranks_fail(&t->setup, gr_setup_spans_reset(&t->setup, error), error);
    if (rc == GRAFT_OK) rc = complete_epoch(t, t->progress.epoch + 1, epoch, error);
    if (rc < 0) return rc;
    epoch->epoch = t->progress.epoch;
    epoch->epochs = t->setup.model.config.live.epochs;
    epoch->done = t->progress.epoch >= t->setup.model.config.live.epochs;
    epoch->should_stop = is_out_of_patience(t, epoch->evaluated);
    epoch->seconds = gr_seconds() - begin;
    return GRAFT_OK;
}
