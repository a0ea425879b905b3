/* Creates, evaluates, updates and destroys trainers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "model/options.h"
#include "nn/options.h"
#include "run/loss.h"
#include "run/pass.h"
#include "train/train.h"

/* Copy the options that are written into files of the model. */
static int32_t copy_options(graft_trainer *t, graft_error *error)
{
    const graft_context                *context = t->setup.context;
    const struct gr_option_table *const tables[] = { &gr_shape_option_table, &gr_model_option_table,
                                                     &gr_training_option_table, &gr_loss_option_table,
                                                     &gr_data_option_table };
    uint32_t                            bits = 0;

    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) bits |= gr_options_bit(context, tables[i]);
    return gr_options_copy(context, bits, &t->options, error);
}

int32_t gr_trainer_create(graft_context *context, int32_t found, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error)
{
    graft_dataset  data;
    graft_trainer *t = NULL;
    int32_t        rc = GRAFT_OK;

    /* Without these structs there is no comm for an agreement. */
    GR_TRY_DONE(gr_struct_read(&data, sizeof data, dataset, "dataset", error));
    if (data.over != NULL) GR_TRY_DONE(gr_handle_check(context, data.over, GR_HANDLE_GRAPH, "dataset.over", error));
    rc = found;
    if (rc == GRAFT_OK) rc = GR_NEW(context, t, 1, error);
    if (rc == GRAFT_OK) t->setup.context = t->setup.data.context = t->setup.derived.context = context;
    if (data.over != NULL) rc = gr_comm_agree(data.over->comm, rc, error);
    GR_TRY_DONE(rc);
    t->progress = (struct gr_progress){ .best_accuracy = -1, .rate_factor = 1 };
    GR_TRY_DONE(gr_setup_init(&t->setup, context, &data, NULL, error));
    GR_TRY_DONE(gr_train_minibatches_init(t, error));
    GR_TRY_DONE(gr_strategy_agree(t->setup.run.strategy, copy_options(t, error), error));
    *trainer = t;
    t = NULL;
done:
    gr_trainer_destroy(t);
    return rc;
}

void gr_trainer_destroy(graft_trainer *t)
{
    if (t == NULL) return;
    gr_train_minibatches_fini(t);
    gr_setup_fini(&t->setup);
    gr_free(t->setup.context, t->options);
    gr_free(t->setup.context, t);
}

int gr_train_progress_has_best(const struct gr_progress *progress)
{
    return progress->best_epoch > 0;
}

static void swap_best(graft_trainer *t)
{
    for (int32_t i = 0; i < t->setup.model.parameters.count; i++) {
        struct gr_parameter *p = &t->setup.model.parameters.list[i];
        float *const         value = p->value;

        p->value = p->best;
        p->best = value;
    }
}

int32_t gr_trainer_forward(graft_trainer *t, graft_error *error)
{
    t->setup.run.epoch = t->progress.epoch;
    return gr_setup_forward(&t->setup, error);
}

void gr_trainer_forward_end(graft_trainer *t)
{
    if (t->setup.arrays != NULL) gr_setup_arrays_fini(&t->setup);
}

int32_t gr_trainer_measure(graft_trainer *t, graft_metrics *metrics, int *is_finite, graft_error *error)
{
    const double  begin = gr_profile_begin(&t->setup.run.profile);
    const int32_t rc = gr_run_loss_measure(&t->setup.run, gr_run_logits(&t->setup.run), metrics, is_finite, error);

    gr_profile_end(&t->setup.run.profile, "loss", begin, 0, 0);
    return rc;
}

static int32_t check_weights(int32_t weights, graft_error *error)
{
    if (weights == GRAFT_WEIGHTS_LAST || weights == GRAFT_WEIGHTS_BEST) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "weights is %d, expected GRAFT_WEIGHTS_LAST (0) or GRAFT_WEIGHTS_BEST (1)",
                   weights);
}

/* Run a forward pass without dropout, with the requested weights. */
static int32_t infer(graft_trainer *t, int32_t weights, graft_error *error)
{
    const int best = weights == GRAFT_WEIGHTS_BEST && gr_train_progress_has_best(&t->progress);
    int32_t   rc = GRAFT_OK;

    gr_setup_set_threads(&t->setup);
    GR_TRY(gr_setup_spans_reset(&t->setup, error));
    if (best) swap_best(t);
    rc = gr_trainer_forward(t, error);
    if (best) swap_best(t);
    return rc;
}

int32_t gr_trainer_evaluate(graft_trainer *t, int32_t rc, int32_t weights, graft_metrics *metrics, graft_error *error)
{
    int is_finite;

    if (rc == GRAFT_OK && t->setup.run.targets.split == NULL)
        rc = gr_fail(error, GRAFT_ERR_STATE, "the data set has no split to measure");
    if (rc == GRAFT_OK) rc = check_weights(weights, error);
    rc = gr_strategy_agree(t->setup.run.strategy, rc, error);
    if (rc == GRAFT_OK) rc = gr_trainer_compare_state(t, 0, GRAFT_OK, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_loans(&t->setup, 0, error);
    if (rc < 0) return rc;
    GR_TRY_DONE(infer(t, weights, error));
    GR_TRY_DONE(gr_trainer_measure(t, metrics, &is_finite, error));
    metrics->epoch = weights == GRAFT_WEIGHTS_BEST && gr_train_progress_has_best(&t->progress) ? t->progress.best_epoch
                                                                                               : t->progress.epoch;
done:
    gr_trainer_forward_end(t);
    return gr_setup_ranks_fail(&t->setup, rc, error);
}

int32_t gr_trainer_predict(graft_trainer *t, int32_t rc, int32_t weights, int32_t *labels, const graft_dense *logits,
                           graft_error *error)
{
    const struct gr_outputs outputs = { .labels = labels, .logits = logits };

    if (rc == GRAFT_OK) rc = gr_setup_check_outputs(&t->setup, &outputs, error);
    if (rc == GRAFT_OK) rc = check_weights(weights, error);
    rc = gr_strategy_agree(t->setup.run.strategy, rc, error);
    if (rc == GRAFT_OK) rc = gr_trainer_compare_state(t, 0, GRAFT_OK, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_loans(&t->setup, 0, error);
    if (rc < 0) return rc;
    rc = gr_setup_ranks_fail(&t->setup, infer(t, weights, error), error);
    if (rc == GRAFT_OK) rc = gr_setup_give(&t->setup, &outputs, error);
    gr_trainer_forward_end(t);
    return rc;
}

int32_t gr_trainer_update(graft_trainer *t, int32_t rc, uint32_t what, const graft_dataset *data, graft_error *error)
{
    GR_TRY(gr_trainer_compare_state(t, 0, rc, error));
    GR_TRY(gr_setup_check_loans(&t->setup, what, error));
    if (t->batches != NULL) GR_TRY(gr_train_minibatches_update(t, what, data, error));
    else GR_TRY(gr_setup_update(&t->setup, what, data, NULL, error));
    /* The best accuracy, and the knowledge that losses are finite, belong to the old data. */
    t->has_previous = t->is_measured = 0;
    t->progress.best_epoch = 0;
    t->progress.best_accuracy = -1;
    return GRAFT_OK;
}
