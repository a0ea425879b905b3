/* A trainer from create to destroy.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dense/dense.h"
#include "graph/csr.h"
#include "model/labels.h"

#include <math.h>
#include <string.h>

static int32_t check_labels(const graft_trainer *t, graft_error *error)
{
    const graft_dataset *d = &t->data;

    for (int64_t v = 0; v < t->n && d->labels != NULL; v++) {
        if (d->labels[v] < -1 || d->labels[v] >= d->n_classes) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has label %d, expected -1 to %lld",
                           (long long)(t->first + v), d->labels[v], (long long)d->n_classes - 1);
        }
    }
    for (int64_t i = 0; i < t->n * d->n_classes && d->targets != NULL; i++) {
        if (d->targets[i] > 1) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has target %d for class %lld, expected 0 or 1",
                           (long long)(t->first + i / d->n_classes), d->targets[i], (long long)(i % d->n_classes));
        }
    }
    return GRAFT_OK;
}

static int32_t check_split(const graft_trainer *t, graft_error *error)
{
    for (int64_t v = 0; v < t->n && t->data.split != NULL; v++) {
        if (t->data.split[v] > GRAFT_SPLIT_TEST) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has split %d, expected 0 to 3",
                           (long long)(t->first + v), t->data.split[v]);
        }
    }
    return GRAFT_OK;
}

/* Of all ranks. */
static int32_t count_trained(graft_trainer *t, graft_error *error)
{
    double  count = 0; /* exact to 2^53 */
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_labels_check(t, error));
    if (t->data.split == NULL) return GRAFT_OK;
    for (int64_t v = 0; v < t->n; v++) count += gr_is_trained(t, v);
    GR_TRY(gr_ranks_sum(t, &count, 1, error));
    t->n_train = t->n_loss = (int64_t)count;
    if (t->n_train == 0) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "the split has no training vertex with a label among its %lld vertices",
                       (long long)t->data.n_vertices);
    }
done:
    return rc;
}

static int32_t check_graph(const graft_trainer *t, graft_error *error)
{
    if (t->over != NULL) {
        if (t->over->context != t->context)
            return gr_fail(error, GRAFT_ERR_ARG, "the graph over ranks was made in another context");
        if (t->over->n_vertices == t->data.n_vertices && t->over->value_type != GRAFT_F64) return GRAFT_OK;
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "the graph over ranks has %lld vertices and values of dtype %d; expected %lld, and GRAFT_F32 (1) "
            "or none (0)",
            (long long)t->over->n_vertices, t->over->value_type, (long long)t->data.n_vertices);
    }
    if (t->graph.n_rows != t->n || t->graph.n_cols != t->n) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld, but there are %lld vertices",
                       (long long)t->graph.n_rows, (long long)t->graph.n_cols, (long long)t->n);
    }
    if (t->graph.values != NULL && t->graph.value_type != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph has values of dtype %d, expected GRAFT_F32 (1)",
                       t->graph.value_type);
    }
    return gr_csr_check(&t->graph, "graph", 0, t->threads, error);
}

static int32_t check_shapes(const graft_trainer *t, graft_error *error)
{
    const graft_dataset *d = &t->data;
    const int64_t        rows = d->features != NULL ? t->features.n_rows : t->sparse_features.n_rows;
    const int64_t        cols = d->features != NULL ? t->features.n_cols : t->sparse_features.n_cols;

    if (d->n_features > INT32_MAX || d->n_classes > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld features and %lld classes are too many", (long long)d->n_features,
                       (long long)d->n_classes);
    }
    if (d->n_vertices < 1 || d->n_features < 1 || d->n_classes < 1) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "there are %lld vertices, %lld features and %lld classes; a model needs one of "
                       "each at least",
                       (long long)d->n_vertices, (long long)d->n_features, (long long)d->n_classes);
    }
    if ((d->features == NULL) == (d->sparse_features == NULL)) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s given; give dense features or sparse ones",
                       d->features == NULL ? "no features are" : "dense and sparse features are both");
    }
    if (rows != t->n || cols != d->n_features) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features are %lld x %lld, but there are %lld vertices%s and %lld features", (long long)rows,
                       (long long)cols, (long long)t->n, t->over != NULL ? " in the slice" : "",
                       (long long)d->n_features);
    }
    return GRAFT_OK;
}

static int32_t check_flags(const graft_trainer *t, graft_error *error)
{
    const graft_dataset *d = &t->data;

    if (d->flags & ~(uint32_t)GRAFT_DATASET_SLICE)
        return gr_fail(error, GRAFT_ERR_ARG, "dataset: flags are 0x%x, of which some are unknown", d->flags);
    if (d->flags == 0) return GRAFT_OK;
    if (t->over == NULL)
        return gr_fail(
            error, GRAFT_ERR_UNSUPPORTED,
            "this data set is a slice of %lld of %lld vertices, from vertex %lld on; expected all of them, or "
            "a graph over ranks with it (graft_dataset.over)",
            (long long)d->n_slice, (long long)d->n_vertices, (long long)d->first_vertex);
    if (d->n_slice == t->over->n_slice && d->first_vertex == t->over->first[t->over->comm->rank]) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "this data set is a slice of %lld vertices from vertex %lld on, the graph over ranks has %lld from "
                   "vertex %lld on here",
                   (long long)d->n_slice, (long long)d->first_vertex, (long long)t->over->n_slice,
                   (long long)t->over->first[t->over->comm->rank]);
}

/* Our copies of the host's structs; the arrays stay his. */
static int32_t read_dataset(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(check_flags(t, error));
    t->n = t->over != NULL ? t->over->n_slice : t->data.n_vertices;
    t->first = t->over != NULL ? t->over->first[t->over->comm->rank] : 0;
    if (t->over == NULL) GR_TRY(gr_struct_read(&t->graph, sizeof t->graph, t->data.graph, "dataset.graph", error));
    if (t->data.features != NULL) {
        GR_TRY(gr_struct_read(&t->features, sizeof t->features, t->data.features, "dataset.features", error));
    }
    if (t->data.sparse_features != NULL) {
        GR_TRY(gr_struct_read(&t->sparse_features, sizeof t->sparse_features, t->data.sparse_features,
                              "dataset.sparse_features", error));
    }
    GR_TRY(check_shapes(t, error));
    GR_TRY(check_graph(t, error));
    if (t->data.features != NULL) GR_TRY(gr_model_features_check(t, error));
    else GR_TRY(gr_csr_check(&t->sparse_features, "sparse_features", 0, t->threads, error));
    GR_TRY(check_labels(t, error));
    rc = check_split(t, error);
done:
    return rc;
}

/* What a rank can say without the others. */
static int32_t begin(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    t->threads = gr_threads(t->context, 0);
    t->isa = gr_processor_isa();
    t->progress.best_accuracy = -1;
    gr_ledger_init(t);
    GR_TRY(read_dataset(t, error));
    if (t->n == 0) { /* arrays of no rows are as if they were not given */
        t->data.labels = NULL;
        t->data.targets = t->data.split = NULL;
    }
    GR_TRY(gr_config_read(t->context, &t->data, &t->config, error));
    if (!t->config.sigmoid)
        t->data.targets = NULL; /* Given both, softmax goes by the labels and sigmoid by the targets. */
    rc = gr_dense_choose(t->context, &t->dense_type, &t->dense, error);
done:
    return rc;
}

static int32_t finish(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_parameters_init(t, error));
    GR_TRY(gr_profile_init(t, error));
    GR_TRY(gr_layers_init(t, error));
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
    return begin(t, error);
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
    GR_TRY(gr_ranks_compare(t, error));
    GR_TRY(gr_ranks_take(t, error));
    GR_TRY(count_trained(t, error));
    GR_TRY(gr_ranks_agree(t, gr_model_plan(t, error), error));
    GR_TRY(gr_model_graph_init(t, error));
    GR_TRY(gr_model_features_init(t, error));
    GR_TRY(gr_model_graph_mask(t, error));
    GR_TRY(gr_ranks_agree(t, finish(t, error), error));
    *trainer = t;
    t = NULL;
done:
    gr_trainer_destroy(t);
    return rc;
}

void gr_trainer_destroy(graft_trainer *t)
{
    if (t == NULL) return;
    gr_sparse_fini(t);
    gr_model_graph_fini(t);
    for (int use = 0; use < GR_USES; use++) gr_pool_fini(t->context, &t->pool[use]);
    gr_ranks_fini(t); /* with the last of the comm; messages went to and from the pools */
    gr_free(t->context, t);
}

static const float *logits_of(const graft_trainer *t)
{
    return t->layers[t->config.n_layers - 1].z;
}

static int is_better(const struct gr_progress *so_far, const graft_metrics *now)
{
    if (now->validation_accuracy != so_far->best_accuracy) return now->validation_accuracy > so_far->best_accuracy;
    return now->validation_loss < so_far->best_loss;
}

/* Keep the weights if they are the best so far. Without a validation split there is no best. */
static int keep_best(graft_trainer *t, const graft_metrics *metrics)
{
    if (isnan(metrics->validation_accuracy) || !is_better(&t->progress, metrics)) return 0;
    t->progress.best_epoch = t->progress.epoch;
    t->progress.best_accuracy = metrics->validation_accuracy;
    t->progress.best_loss = metrics->validation_loss;
    for (int32_t i = 0; i < t->n_parameters; i++) {
        const struct gr_parameter *p = &t->parameters[i];
        memcpy(p->best, p->value, (uint64_t)(p->rows * p->cols) * sizeof *p->best);
    }
    return 1;
}

static int evaluation_is_due(const graft_trainer *t)
{
    if (t->progress.epoch == t->config.epochs) return 1;
    return t->config.eval_every > 0 && t->progress.epoch % t->config.eval_every == 0;
}

static int32_t step(graft_trainer *t, double *loss, graft_error *error)
{
    int32_t rc = GRAFT_OK;
    double  begin;

    gr_ranks_begin_step(t);
    GR_TRY(gr_layers_forward(t, 1, error));
    begin = gr_profile_begin(t);
    *loss = gr_loss_gradient(t, logits_of(t), t->gradient[0]);
    gr_profile_end(t, "loss", begin, 8 * (double)t->reach[t->config.n_layers] * (double)t->data.n_classes, 0);
    GR_TRY(gr_layers_backward(t, error));
    begin = gr_profile_begin(t);
    GR_TRY(gr_ranks_end_step(t, loss, error));
    GR_TRY(gr_ranks_sum_gradients(t, error));
    if (t->over != NULL) gr_profile_end_alone(t, "reduce", begin);
    begin = gr_profile_begin(t);
    gr_optimizer_step(t);
    gr_profile_end_alone(t, "optimizer", begin);
    t->progress.epoch++;
done:
    return rc;
}

static int32_t measure(const graft_trainer *t, graft_metrics *metrics, graft_error *error)
{
    const double  begin = gr_profile_begin(t);
    const int32_t rc = gr_loss_measure(t, logits_of(t), metrics, error);

    gr_profile_end(t, "loss", begin, 0, 0);
    return rc;
}

int32_t gr_trainer_epoch(graft_trainer *t, graft_epoch *epoch, graft_error *error)
{
    graft_metrics metrics = { .size = sizeof metrics };
    const double  begin = gr_seconds();
    int32_t       rc = gr_ranks_compare_state(t, error);

    if (rc < 0) return rc;
    if (t->n_train == 0)
        return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split, so there is nothing to train on");
    if (t->progress.epoch >= t->config.epochs) {
        return gr_fail(error, GRAFT_ERR_STATE, "all %lld epochs of option 'epochs' are behind",
                       (long long)t->config.epochs);
    }
    metrics.train_accuracy = metrics.validation_accuracy = metrics.test_accuracy = metrics.validation_loss =
        (double)NAN;
    t->threads = gr_threads(t->context, 0);
    GR_TRY(gr_profile_reset(t, error));
    rc = gr_ranks_adapt(t, error);
    if (rc < 0) return rc; /* as all ranks do */
    GR_TRY(step(t, &epoch->loss, error));
    epoch->seconds_step = gr_seconds() - begin;
    epoch->drift = t->ranks.drift;
    epoch->waited = t->ranks.has_waited;
    epoch->evaluated = evaluation_is_due(t);
    if (epoch->evaluated) {
        GR_TRY(gr_layers_forward(t, 0, error));
        GR_TRY(measure(t, &metrics, error));
        epoch->best = keep_best(t, &metrics);
    }
    epoch->train_accuracy = metrics.train_accuracy;
    epoch->validation_accuracy = metrics.validation_accuracy;
    epoch->test_accuracy = metrics.test_accuracy;
    epoch->validation_loss = metrics.validation_loss;
    epoch->epoch = t->progress.epoch;
    epoch->epochs = t->config.epochs;
    epoch->done = t->progress.epoch == t->config.epochs;
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
    for (int32_t i = 0; i < t->n_parameters; i++) {
        struct gr_parameter *p = &t->parameters[i];
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

    t->threads = gr_threads(t->context, 0);
    GR_TRY(gr_profile_reset(t, error));
    if (best) swap_best(t);
    rc = gr_layers_forward(t, 0, error);
    if (best) swap_best(t);
done:
    return rc;
}

int32_t gr_trainer_evaluate(graft_trainer *t, int32_t weights, graft_metrics *metrics, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->data.split == NULL) return gr_fail(error, GRAFT_ERR_STATE, "the data set has no split to measure");
    rc = gr_ranks_agree(t, check_weights(weights, error), error);
    if (rc == GRAFT_OK) rc = gr_ranks_compare_state(t, error);
    if (rc < 0) return rc;
    GR_TRY(infer(t, weights, error));
    GR_TRY(measure(t, metrics, error));
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
    rc = gr_ranks_agree(t, rc, error);
    if (rc == GRAFT_OK) rc = gr_ranks_compare_state(t, error);
    if (rc < 0) return rc;
    GR_TRY(infer(t, weights, error));
    if (t->over != NULL) return gr_ranks_give(t, logits_of(t), labels, logits, error);
    for (int64_t i = 0; i < t->n; i++) {
        const float  *row = logits_of(t) + i * classes;
        const int64_t v = gr_vertex(t->row, i);

        if (labels != NULL) labels[v] = (int32_t)gr_argmax(row, classes);
        if (logits != NULL) memcpy((float *)logits->data + v * logits->stride, row, (uint64_t)classes * sizeof *row);
    }
done:
    return gr_ranks_fail(t, rc, error);
}
