/* Predictions of a model without a trainer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "comm/collective.h"
#include "snapshot/snapshot.h"

/* Whether the best weights are used: a model may have the last ones alone. */
static int uses_best(const graft_model *m, int32_t weights)
{
    return weights == GRAFT_WEIGHTS_BEST && m->copies > 1 && gr_progress_has_best(&m->progress);
}

/* Options, and the weights that are used. */
static uint32_t digest_of_model(const graft_model *m, int32_t weights)
{
    uint32_t crc = gr_crc(0, &m->options.model, sizeof m->options.model);

    crc = gr_crc(crc, &m->options.data, sizeof m->options.data);
    for (int32_t i = 0; i < m->model.n_parameters; i++) {
        const struct gr_parameter *p = &m->model.parameters[i];

        crc = gr_crc(crc, uses_best(m, weights) ? p->best : p->value, (uint64_t)(p->rows * p->cols) * sizeof *p->value);
    }
    return crc;
}

/* All ranks have the same model, and the data set its number of features. */
static int32_t check_data(const graft_model *m, int32_t rc, int32_t weights, const graft_dataset *data,
                          graft_error *error)
{
    static const char *const names[] = { "the model (by the CRC32C of options and weights)", "the choice of weights" };
    const uint64_t           values[] = { data->over != NULL ? digest_of_model(m, weights) : 0, (uint64_t)weights };
    const int64_t            expected = m->model.config.width[0];

    if (rc == GRAFT_OK && data->n_features != expected)
        rc = gr_fail(error, GRAFT_ERR_ARG, "the data set has %lld features, the model has %lld",
                     (long long)data->n_features, (long long)expected);
    if (rc == GRAFT_OK && weights != GRAFT_WEIGHTS_LAST && weights != GRAFT_WEIGHTS_BEST)
        rc = gr_fail(error, GRAFT_ERR_ARG, "weights is %d, expected GRAFT_WEIGHTS_LAST (0) or GRAFT_WEIGHTS_BEST (1)",
                     weights);
    if (data->over == NULL) return rc;
    if (rc == GRAFT_OK && data->over->context != m->context)
        rc = gr_fail(error, GRAFT_ERR_ARG, "the graph over ranks was made in another context");
    GR_TRY(gr_comm_agree(data->over->comm, rc, error));
    rc = gr_comm_compare(data->over->comm, names, values, 2, error);
done:
    return rc;
}

/* The data set as the model sees it. */
static void adapt_data(const graft_model *m, graft_dataset *data)
{
    data->n_classes = m->model.config.width[m->model.config.n_layers];
    if (m->model.config.label_rate > 0) return;
    data->labels = NULL;
    data->targets = NULL;
    data->float_targets = NULL;
    data->split = NULL;
}

/* A setup is too large for the stack of a thread of the host, and so are options. */
struct prediction_setup {
    struct gr_setup       setup;
    struct gr_given_model given;
};

static int32_t run_prediction(struct prediction_setup *p, const graft_model *m, int32_t weights,
                              const graft_dataset *data, int32_t *labels, const graft_dense *logits, graft_error *error)
{
    struct gr_setup *s = &p->setup;
    int32_t          rc = GRAFT_OK;

    p->given.model = &m->model;
    p->given.best = uses_best(m, weights);
    p->given.options = m->context->options;
    p->given.options.model = m->options.model;
    p->given.options.train = m->options.train;
    p->given.options.data = m->options.data;
    GR_TRY(gr_setup_init(s, m->context, data, &p->given, error));
    rc = gr_setup_check_labels(s, labels, error);
    if (rc == GRAFT_OK) rc = gr_setup_check_logits(s, logits, error);
    GR_TRY(gr_strategy_agree(s->run.strategy, rc, error));
    rc = gr_run_forward(&s->run, GRAFT_PASS_EVALUATION, s->whole_of, error);
    if (rc == GRAFT_OK) rc = gr_setup_give(s, labels, logits, error);
    rc = gr_ranks_fail(s, rc, error);
done:
    return rc;
}

int32_t gr_snapshot_predict(graft_model *m, int32_t found, int32_t weights, const graft_dataset *dataset,
                            int32_t *labels, const graft_dense *logits, graft_error *error)
{
    struct prediction_setup *p = NULL;
    graft_dataset            data;
    int32_t                  rc = GRAFT_OK;

    /* Without these there is no comm to agree over. */
    GR_TRY(gr_struct_read(&data, sizeof data, dataset, "dataset", error));
    if (data.over != NULL) GR_TRY(gr_handle_check(m->context, data.over, GR_HANDLE_GRAPH, "dataset.over", error));
    GR_TRY(check_data(m, found, weights, &data, error));
    adapt_data(m, &data);
    rc = GR_NEW(m->context, p, 1, error);
    if (data.over != NULL) rc = gr_comm_agree(data.over->comm, rc, error);
    if (p != NULL) p->setup.context = m->context;
    GR_TRY(rc);
    rc = run_prediction(p, m, weights, &data, labels, logits, error);
done:
    if (p != NULL) gr_setup_fini(&p->setup);
    gr_free(m->context, p);
    return rc;
}
