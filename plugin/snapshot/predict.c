/* Predicts with a model, without a trainer.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "comm/collective.h"
#include "model/options.h"
#include "nn/options.h"
#include "snapshot/snapshot.h"

#include <stdio.h>

/* Whether the best weights are used, which only a state has: a model may have only its last weights. */
static int uses_best(const graft_model *m, int32_t weights)
{
    return weights == GRAFT_WEIGHTS_BEST && m->copies > 1 && gr_train_progress_has_best(&m->progress);
}

/* The tables of options whose values belong to a model. */
static const struct gr_option_table *const of_model[] = { &gr_shape_option_table, &gr_model_option_table,
                                                          &gr_loss_option_table, &gr_data_option_table };

/* Compute the CRC32C of the options of a model and of the weights with which it predicts. */
static uint32_t digest_of_model(const graft_model *m, int32_t weights)
{
    uint32_t crc = 0;

    for (size_t i = 0; i < sizeof of_model / sizeof *of_model; i++)
        crc = gr_crc(crc, gr_options_of(&m->options, of_model[i]), of_model[i]->bytes);
    for (int32_t i = 0; i < m->model.parameters.count; i++) {
        const struct gr_parameter *p = &m->model.parameters.list[i];

        crc = gr_crc(crc, uses_best(m, weights) ? p->best : p->value, (uint64_t)(p->rows * p->cols) * sizeof *p->value);
    }
    return crc;
}

/* Take the options that do not belong to a model from the context. */
static void take_other_options(graft_model *m)
{
    const struct gr_option_list *list = m->options.list;

    for (int32_t i = 0; i < list->n_tables; i++) {
        const struct gr_option_table *table = list->tables[i].table;
        int                           is_of_model = 0;

        for (size_t k = 0; k < sizeof of_model / sizeof *of_model; k++) is_of_model |= table == of_model[k];
        if (!is_of_model) gr_options_copy_values(&m->options, &m->context->options, table);
    }
}

static int64_t classes_of(const graft_model *m)
{
    return m->model.config.width[m->model.config.n_layers];
}

/* The range of vertices whose rows this host has. */
struct vertex_range {
    int64_t first, count;
};

static struct vertex_range vertices_of_host(const graft_dataset *data)
{
    const graft_graph *over = data->over;

    if (over != NULL) return (struct vertex_range){ over->first[over->comm->rank], over->n_slice };
    if (data->flags != 0) return (struct vertex_range){ data->first_vertex, data->n_slice }; /* refused later */
    return (struct vertex_range){ 0, data->n_vertices };
}

static int32_t check_list(const graft_dataset *data, const graft_prediction *p, graft_error *error)
{
    const struct vertex_range mine = vertices_of_host(data);
    const char *const         where = data->over != NULL ? ", the slice of this rank" : "";
    char                      legal[64] = "none";

    if (mine.count > 0)
        snprintf(legal, sizeof legal, "%lld to %lld", (long long)mine.first, (long long)(mine.first + mine.count - 1));
    if (p->vertices == NULL && p->n != GR_ALL_VERTICES && p->n != mine.count)
        return gr_fail(error, GRAFT_ERR_ARG, "vertices are null, which means all, and n is %lld; expected %lld%s",
                       (long long)p->n, (long long)mine.count, where);
    for (int64_t i = 0; p->vertices != NULL && i < p->n; i++) {
        if (p->vertices[i] >= mine.first && p->vertices[i] - mine.first < mine.count) continue;
        return gr_fail(error, GRAFT_ERR_ARG, "vertices: element %lld is %lld, expected %s%s", (long long)i,
                       (long long)p->vertices[i], legal, where);
    }
    return GRAFT_OK;
}

/* Whether labels that are input of the model are given as targets. */
static int reads_targets(const graft_model *m, const graft_dataset *data)
{
    return data->targets != NULL && (m->model.config.loss.kind == GR_LOSS_SIGMOID || data->labels == NULL);
}

/* Check that labels that are input are classes of the model. */
static int32_t check_known_classes(const graft_model *m, const graft_dataset *data, graft_error *error)
{
    const struct vertex_range mine = vertices_of_host(data);
    const int64_t             classes = classes_of(m);

    if (m->model.config.label_rate == 0 || mine.count == 0) return GRAFT_OK;
    if (reads_targets(m, data) && data->n_classes != classes)
        return gr_fail(error, GRAFT_ERR_ARG, "the data set has targets of %lld classes, the model has %lld classes",
                       (long long)data->n_classes, (long long)classes);
    for (int64_t v = 0; v < mine.count && data->labels != NULL; v++) {
        if (data->labels[v] >= -1 && data->labels[v] < classes) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "vertex %lld has label %d, which the model does not know: it has %lld classes, expected -1 to "
                       "%lld",
                       (long long)(mine.first + v), data->labels[v], (long long)classes, (long long)classes - 1);
    }
    return GRAFT_OK;
}

/* Check the arguments of this rank. */
static int32_t check_alone(const graft_model *m, const graft_prediction *p, const graft_dataset *data,
                           graft_error *error)
{
    const int64_t expected = m->model.config.width[0];

    if (data->n_features != expected)
        return gr_fail(error, GRAFT_ERR_ARG, "the data set has %lld features, the model has %lld",
                       (long long)data->n_features, (long long)expected);
    if (p->weights != GRAFT_WEIGHTS_LAST && p->weights != GRAFT_WEIGHTS_BEST)
        return gr_fail(error, GRAFT_ERR_ARG, "weights is %d, expected GRAFT_WEIGHTS_LAST (0) or GRAFT_WEIGHTS_BEST (1)",
                       p->weights);
    GR_TRY(check_list(data, p, error));
    return check_known_classes(m, data, error);
}

/* Check that the arguments of all ranks are right, and that all ranks have the same model. */
static int32_t check_data(const graft_model *m, int32_t rc, const graft_prediction *p, const graft_dataset *data,
                          graft_error *error)
{
    static const char *const names[] = { "the model (by the CRC32C of options and weights)", "the choice of weights" };
    const uint64_t values[] = { data->over != NULL ? digest_of_model(m, p->weights) : 0, (uint64_t)p->weights };

    if (rc == GRAFT_OK) rc = check_alone(m, p, data, error);
    if (data->over == NULL) return rc;
    if (rc == GRAFT_OK && data->over->context != m->context)
        rc = gr_fail(error, GRAFT_ERR_ARG, "the graph over ranks was made in another context");
    GR_TRY(gr_comm_agree(data->over->comm, rc, error));
    return gr_comm_compare(data->over->comm, names, values, 2, error);
}

/* Remove from the data set what a prediction does not read, and give it the model's number of classes. */
static void adapt_data(const graft_model *m, graft_dataset *data)
{
    const int labels = m->model.config.label_rate > 0;

    data->n_classes = classes_of(m);
    data->float_targets = NULL;
    if (!labels || !reads_targets(m, data)) data->targets = NULL;
    if (!labels) data->labels = NULL;
    if (!labels) data->split = NULL;
}

/* Allocated, because it is too large for the stack of a thread of the host. */
struct prediction_setup {
    struct gr_setup       setup;
    struct gr_given_model given;
    struct gr_outputs     outputs;
};

static int32_t run_prediction(struct prediction_setup *p, const graft_model *m, const graft_prediction *asked,
                              const graft_dataset *data, graft_error *error)
{
    struct gr_setup *s = &p->setup;
    int32_t          rc = GRAFT_OK;

    p->outputs = (struct gr_outputs){ .vertices = asked->vertices,
                                      .n = asked->n,
                                      .labels = asked->labels,
                                      .logits = asked->logits,
                                      .probabilities = asked->probabilities };
    p->given.outputs = &p->outputs;
    p->given.model = &m->model;
    p->given.best = uses_best(m, asked->weights);
    p->given.options = &m->options;
    GR_TRY(gr_setup_init(s, m->context, data, &p->given, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, gr_setup_check_outputs(s, &p->outputs, error), error));
    rc = gr_setup_forward(s, error);
    if (rc == GRAFT_OK) rc = gr_setup_give(s, &p->outputs, error);
    return gr_setup_ranks_fail(s, rc, error);
}

int32_t gr_snapshot_predict(graft_model *m, int32_t found, const graft_prediction *asked, graft_error *error)
{
    struct prediction_setup *p = NULL;
    graft_dataset            data;
    int32_t                  rc = GRAFT_OK;

    /* If these fail there is no comm over which ranks could agree. */
    GR_TRY_DONE(gr_struct_read(&data, sizeof data, asked->dataset, "dataset", error));
    if (data.over != NULL) GR_TRY_DONE(gr_handle_check(m->context, data.over, GR_HANDLE_GRAPH, "dataset.over", error));
    GR_TRY_DONE(check_data(m, found, asked, &data, error));
    adapt_data(m, &data);
    take_other_options(m);
    rc = GR_NEW(m->context, p, 1, error);
    if (data.over != NULL) rc = gr_comm_agree(data.over->comm, rc, error);
    if (p != NULL) p->setup.context = m->context;
    GR_TRY_DONE(rc);
    rc = run_prediction(p, m, asked, &data, error);
done:
    if (p != NULL) gr_setup_fini(&p->setup);
    gr_free(m->context, p);
    return rc;
}
