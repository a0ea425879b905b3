/* Makes a trainer of the library and an oracle with the same data, options and weights, see oracle/training.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_name[] = { "mlp", "sage", "gcn", "gin", "gat", "sgc", "appnp" };

enum { FEATURES = 13, CLASSES = 4, PROPAGATION = 3 };

static const char *const norm_name[] = { "", "norm, ", "BatchNorm, " }, *const norm_word[] = { "none", "layer",
                                                                                               "batch" };
static const char *const loss_name[] = { "softmax", "sigmoid", "mse", "mae", "huber" };

static enum oracle_loss training_loss(const struct training_case *what)
{
    if (what->loss == NULL) return what->regression ? ORACLE_MSE : what->several ? ORACLE_SIGMOID : ORACLE_SOFTMAX;
    for (enum oracle_loss loss = ORACLE_SOFTMAX;; loss++)
        if (strcmp(loss_name[loss], what->loss) == 0) return loss;
}

const char *training_name(const struct training_case *what)
{
    const char *const entries_name[] = { "", ", entries repeated", ", entries without values" };
    const char *const widths[] = { " of shrinking width", " of growing width" };
    static char       text[512];

    snprintf(text, sizeof text,
             "%s %s%s, %d layers%s, %s, %s%s features%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s%s",
             what->aggregator != NULL ? what->aggregator : "", kind_name[what->kind],
             what->heads > 1 ? " of several heads" : "", what->layers, what->layers < 2 ? "" : widths[what->growing],
             loss_name[training_loss(what)], norm_name[what->norm], what->sparse ? "sparse" : "dense",
             what->several && what->loss != NULL ? " beside targets" : "", what->weighted ? ", weighted" : "",
             what->prepare ? ", prepared" : "", what->dropout > 0 ? ", dropout" : "", what->kernel != NULL ? ", " : "",
             what->kernel != NULL ? what->kernel : "", what->order != NULL ? ", order " : "",
             what->order != NULL ? what->order : "", what->dense != NULL ? ", " : "",
             what->dense != NULL ? what->dense : "", what->anew ? ", aggregated anew" : "",
             what->unmasked ? ", unmasked" : "", what->recompute ? ", recomputed" : "",
             what->sparse_input != NULL ? ", sparse_input " : "", what->sparse_input != NULL ? what->sparse_input : "",
             entries_name[what->entries], what->scarce ? ", few trained" : "", what->label_rate > 0 ? ", labels" : "",
             what->balanced ? ", balanced" : "", what->smoothing > 0 ? ", smoothed" : "", what->elu ? ", ELU" : "",
             what->drops_first ? ", dropout first" : "", what->attention_dropout > 0 ? ", attention dropped" : "",
             what->inner_relu ? ", inner ReLU" : "", what->edge_features ? ", edge features" : "",
             what->edge_array ? ", edge array" : "", what->residual ? ", residual" : "",
             what->jumping != NULL ? ", jumping " : "", what->jumping != NULL ? what->jumping : "");
    return text;
}

static struct oracle_options options_of(const struct training_case *what, uint64_t seed)
{
    struct oracle_options options = { .kind = what->kind,
                                      .layers = what->layers,
                                      .norm = what->norm,
                                      .loss = training_loss(what),
                                      .huber_delta = 0.75,
                                      .dropout = what->dropout,
                                      .input_dropout = what->input_dropout,
                                      .attention_dropout = what->attention_dropout,
                                      .edge_features = what->edge_features,
                                      .edge_array = what->edge_array,
                                      .inner_relu = what->inner_relu,
                                      .elu = what->elu,
                                      .drops_first = what->drops_first,
                                      .residual = what->residual,
                                      .jumping = what->jumping,
                                      .label_rate = what->label_rate,
                                      .balanced = what->balanced,
                                      .smoothing = what->smoothing,
                                      .aggregator = what->aggregator,
                                      .heads = what->heads > 0 ? what->heads : 1,
                                      .propagation = PROPAGATION,
                                      .teleport = what->kind == ORACLE_APPNP ? 0.25 : 0,
                                      .seed = seed,
                                      .symmetrize = what->prepare,
                                      .self_loops = what->prepare || what->kind == ORACLE_GCN ||
                                                    what->kind == ORACLE_GAT || what->kind >= ORACLE_SGC,
                                      .normalize_features = what->prepare };

    for (int l = 0; l + 1 < what->layers; l++) {
        options.hidden[l] = what->residual || (what->jumping != NULL && strcmp(what->jumping, "max") == 0) ? 12
                            : what->growing                                                                ? 15 + 4 * l
                                                                                                           : 11 - 5 * l;
        options.hidden[l] -= options.hidden[l] % options.heads;
    }
    return options;
}

/** Draw weights that are neither so small that gradients vanish nor so large that softmax saturates. They are rounded
 * to floats, so that library and oracle have the same weights. Biases are not zero, because otherwise empty rows would
 * be at the point where the derivative of ReLU jumps. */
static void draw_weights(struct oracle_model *model, struct sample *sample)
{
    const int gat = model->options.kind == ORACLE_GAT; /* attention scores need both signs, see vanishes() */

    for (int32_t t = 0; t < model->n_tensors; t++) {
        struct oracle_tensor *tensor = &model->tensor[t];
        const int             gain = strstr(tensor->name, "norm.gain") != NULL;
        const double          low = gain ? 0.5 : gat ? -0.7 : -0.4, high = gain ? 1.5 : gat ? 0.7 : 0.5;

        for (int64_t at = 0; at < tensor->rows * tensor->cols; at++)
            tensor->value[at] = (float)sample_real(sample, low, high);
    }
}

/** Give edges weights that are multiples of 1/2, so that sums have no rounding errors. */
static void weigh_graph(struct sample_csr *graph, struct sample *sample)
{
    const int64_t entries = graph->row_ptr[graph->csr.n_rows];

    graph->values = oracle_new(entries, sizeof(float));
    for (int64_t p = 0; p < entries; p++) ((float *)graph->values)[p] = (float)(1 + sample_below(sample, 4)) / 2;
    graph->csr.values = graph->values;
    graph->csr.value_type = GRAFT_F32;
}

/** Rearrange sparse features into the order that the case requires. */
static void rearrange(struct sample_csr *sparse, enum training_entries entries)
{
    const graft_csr   old = sparse->csr;
    const int64_t     count = old.row_ptr[old.n_rows];
    struct sample_csr made = { .row_ptr = oracle_new(old.n_rows + 1, sizeof(int64_t)),
                               .col_idx = oracle_new(2 * count, sizeof(int64_t)),
                               .values = oracle_new(2 * count, sizeof(double)) };
    int64_t           to = 0;

    made.csr = old;
    made.csr.index_type = entries == TRAINING_ONES ? GRAFT_I64 : GRAFT_I32;
    for (int64_t v = 0; v < old.n_rows; v++) {
        for (int64_t e = old.row_ptr[v + 1] - 1; e >= old.row_ptr[v]; e--) {
            for (int again = 0; again < 1 + (int)(e % 2); again++) {
                sample_put(made.values, GRAFT_F32, to, ((const float *)old.values)[e] + (float)again);
                sample_put(made.col_idx, made.csr.index_type, to++, ((const int32_t *)old.col_idx)[e]);
            }
        }
        made.row_ptr[v + 1] = to;
    }
    made.csr.row_ptr = made.row_ptr;
    made.csr.col_idx = made.col_idx;
    made.csr.values = entries == TRAINING_ONES ? NULL : made.values;
    sample_csr_fini(sparse);
    *sparse = made;
}

/** Keep only five labelled training vertices, none of which gathers from all. */
static void train_few(struct sample_dataset *set, int64_t n)
{
    for (int64_t v = 0; v < n; v++)
        set->split[v] = v > 0 && v < 8 && v % 5 != 3 && v % 6 != 4 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
}

static void training_begin(struct training *training, const struct training_case *what, uint64_t seed)
{
    const struct oracle_options options = options_of(what, seed);
    struct sample               sample = { seed };
    struct oracle_model        *model = &training->model;

    memset(training, 0, sizeof *training);
    sample_dataset_init(&training->set, &sample, what->n > 0 ? what->n : 23, FEATURES, CLASSES, what->several,
                        what->sparse);
    if (options.loss >= ORACLE_MSE) sample_dataset_regress(&training->set, &sample);
    else if (what->several && what->loss != NULL) training->set.dataset.labels = training->set.labels;
    if (what->entries != TRAINING_PLAIN) rearrange(&training->set.sparse, what->entries);
    if (what->scarce) train_few(&training->set, training->set.dataset.n_vertices);
    if (what->weighted || what->edge_features) weigh_graph(&training->set.graph, &sample);
    oracle_model_init(model, &options, &training->set.dataset);
    draw_weights(model, &sample);
    for (int32_t t = 0; t < model->n_tensors; t++) {
        const int64_t count = model->tensor[t].rows * model->tensor[t].cols;
        training->gradient[0][t] = oracle_new(count, sizeof(double));
        training->gradient[1][t] = oracle_new(count, sizeof(double));
        training->m[t] = oracle_new(count, sizeof(double));
        training->v[t] = oracle_new(count, sizeof(double));
    }
}

int training_differentiate(struct training *training, int epoch)
{
    /* With a step of 2^-17, second-order differences are below 1e-6, and so is the rounding error of the loss. A sum
     * nearer to 0 than 2e-5 could have the opposite sign in float. */
    oracle_model_drop(&training->model, epoch);
    return oracle_model_gradient(&training->model, 1.0 / 131072, 2e-5, training->gradient[epoch]);
}

int training_is_idle(const struct training *training, int32_t t)
{
    const struct oracle_options *options = &training->model.options;
    const struct oracle_tensor  *tensor = &training->model.tensor[t];
    const size_t                 length = strlen(tensor->name);
    const char *const            last = options->kind == ORACLE_GIN ? ".bias_2" : ".bias";

    if (options->norm != ORACLE_BATCH_NORM || tensor->layer < 0 || tensor->layer + 1 == options->layers) return 0;
    if (options->drops_first && options->dropout > 0) return 0;
    return length > strlen(last) && strcmp(tensor->name + length - strlen(last), last) == 0;
}

/** Whether some tensor has no gradient that can be compared. A softmax does not depend on a common term of its scores,
 * so the gradients of the target vectors of gat vanish if all scores of each vertex have the same sign. */
static int vanishes(const struct training *training, int epoch)
{
    for (int32_t t = 0; t < training->model.n_tensors; t++) {
        const int64_t count = training->model.tensor[t].rows * training->model.tensor[t].cols;
        const int     is_void = training->model.options.kind == ORACLE_MLP && training->model.tensor[t].layer < 0;
        double        largest = 0;

        if (training_is_idle(training, t)) continue;
        if (is_void) continue; /* no vertex in the loss gathers the label of another vertex */
        for (int64_t at = 0; at < count; at++) largest = fmax(largest, fabs(training->gradient[epoch][t][at]));
        if (largest < 1e-3) return 1;
    }
    return 0;
}

int training_is_drawn(const struct training_case *what)
{
    return what->dropout > 0 || what->label_rate > 0 || what->attention_dropout > 0;
}

static int is_telling(struct training *training, int epoch)
{
    return training_differentiate(training, epoch) && !vanishes(training, epoch);
}

void training_init(struct training *training, const struct training_case *what, uint64_t seed)
{
    for (const uint64_t end = seed + 200; seed < end; seed++) {
        training_begin(training, what, seed);
        if (is_telling(training, 0) && (!training_is_drawn(what) || is_telling(training, 1))) return;
        training_fini(training);
    }
    printf("Bail out! no seed keeps clear of the kinks of ReLU and has all gradients: %s\n", training_name(what));
    exit(1);
}

void training_fini(struct training *training)
{
    if (training->trainer != NULL) training->train->destroy(training->trainer);
    for (int32_t t = 0; t < training->model.n_tensors; t++) {
        free(training->gradient[0][t]);
        free(training->gradient[1][t]);
        free(training->m[t]);
        free(training->v[t]);
    }
    oracle_model_fini(&training->model);
    sample_dataset_fini(&training->set);
}

static int32_t set_number(const graft_api *api, const char *key, double value, graft_error *error)
{
    char text[40];

    snprintf(text, sizeof text, "%.17g", value);
    return api->set(api->context, key, text, error);
}

static int32_t set_hidden(const graft_api *api, const struct oracle_options *options, graft_error *error)
{
    char text[64] = "1";

    for (int l = 0, used = 0; l + 1 < options->layers; l++)
        used += snprintf(text + used, sizeof text - (size_t)used, "%s%lld", l > 0 ? "," : "",
                         (long long)options->hidden[l]);
    return api->set(api->context, "hidden", text, error);
}

static int32_t set_texts(const graft_api *api, const struct oracle_options *options, const struct training_case *what,
                         graft_error *error)
{
    const char *const pairs[][2] = {
        { "model", kind_name[what->kind] },
        { "norm", norm_word[what->norm] },
        { "activation", what->elu ? "elu" : "relu" },
        { "residual", what->residual ? "yes" : "no" },
        { "jumping", what->jumping != NULL ? what->jumping : "none" },
        { "norm_order", what->drops_first ? "after_dropout" : "before_dropout" },
        { "aggregator", what->aggregator != NULL ? what->aggregator : "mean" },
        { "symmetrize", what->prepare ? "yes" : "no" },
        { "self_loops", what->prepare ? "yes" : "auto" },
        { "normalize_features", what->prepare ? "yes" : "no" },
        { "epochs", "3" },
        { "eval_every", "0" },
        { "threads", what->threads == 1   ? "1"
                     : what->threads == 3 ? "3"
                                          : "2" },
        { "mxm.kernel", what->kernel != NULL ? what->kernel : "auto" },
        { "dense.module", what->dense != NULL ? what->dense : "auto" },
        { "row_masks", what->unmasked ? "no" : "yes" },
        { "reuse_input", what->anew ? "no" : "yes" },
        { "recompute", what->recompute ? "yes" : "no" },
        { "sparse_input", what->sparse_input != NULL ? what->sparse_input : "auto" },
        { "edge_features", what->edge_array      ? "array"
                           : what->edge_features ? "values"
                                                 : "none" },
        { "attention_input", what->inner_relu ? "relu" : "linear" },
        { "order", what->order != NULL ? what->order : "given" },
    };
    char    loss[48], optimizer[48], decay[48];
    int32_t rc;

    snprintf(loss, sizeof loss, "%s", what->loss != NULL ? what->loss : "auto");
    if (strcmp(loss, "huber") == 0) snprintf(loss, sizeof loss, "huber:%.17g", options->huber_delta);
    if (what->balanced || options->smoothing > 0)
        snprintf(loss, sizeof loss, "softmax:%s%.17g", what->balanced ? "balanced:" : "", options->smoothing);
    snprintf(decay, sizeof decay, "%.17g%s", what->optimizer.weight_decay,
             what->optimizer.decay_first_only ? ":first" : "");
    snprintf(optimizer, sizeof optimizer, "adam");
    if (!what->optimizer.adam) snprintf(optimizer, sizeof optimizer, "sgd:%.17g", what->optimizer.momentum);
    rc = api->set(api->context, "loss", loss, error);
    if (rc == GRAFT_OK) rc = api->set(api->context, "optimizer", optimizer, error);
    if (rc == GRAFT_OK) rc = api->set(api->context, "weight_decay", decay, error);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && rc == GRAFT_OK; i++)
        rc = api->set(api->context, pairs[i][0], pairs[i][1], error);
    return rc;
}

static int32_t set_numbers(const graft_api *api, const struct oracle_options *options,
                           const struct oracle_optimizer *optimizer, graft_error *error)
{
    const struct {
        const char *key;
        double      value;
    } numbers[] = {
        { "layers", options->layers },
        { "seed", (double)options->seed },
        { "dropout", options->dropout },
        { "input_dropout", options->input_dropout },
        { "attention_dropout", options->attention_dropout },
        { "label_rate", options->label_rate },
        { "propagation", options->propagation },
        { "teleport", options->teleport },
        { "lr", optimizer->lr },
        { "heads", (double)options->heads },
        { "clip_norm", optimizer->clip_norm },
    };
    int32_t rc = set_hidden(api, options, error);

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && rc == GRAFT_OK; i++)
        rc = set_number(api, numbers[i].key, numbers[i].value, error);
    return rc;
}

int32_t training_open(struct training *training, const graft_api *api, const struct training_case *what,
                      graft_error *error)
{
    int32_t rc = set_numbers(api, &training->model.options, &what->optimizer, error);

    training->api = api;
    training->train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    if (rc == GRAFT_OK) rc = set_texts(api, &training->model.options, what, error);
    if (rc == GRAFT_OK) rc = training->train->create(api->context, &training->set.dataset, &training->trainer, error);
    return rc == GRAFT_OK ? training_push(training, error) : rc;
}

/** Find state item PREFIX + NAME. The result is 0 if no item has this name and the size of the tensor. */
static int find_item(struct training *training, const char *prefix, const struct oracle_tensor *tensor,
                     graft_state_item *item)
{
    const size_t length = strlen(prefix);

    *item = GRAFT_INIT(graft_state_item);
    for (int32_t i = 0; training->train->state_item(training->trainer, i, item, NULL) == GRAFT_OK; i++) {
        int64_t count = 1;

        if (strncmp(item->name, prefix, length) != 0 || strcmp(item->name + length, tensor->name) != 0) continue;
        for (int32_t d = 0; d < item->n_dims; d++) count *= item->shape[d];
        return item->dtype == GRAFT_F32 && count == tensor->rows * tensor->cols &&
               item->shape[item->n_dims - 1] == tensor->cols;
    }
    return 0;
}

int32_t training_push(struct training *training, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t t = 0; t < training->model.n_tensors && rc == GRAFT_OK; t++) {
        const struct oracle_tensor *tensor = &training->model.tensor[t];
        const int64_t               count = tensor->rows * tensor->cols;
        float                      *value = oracle_new(count, sizeof *value);
        graft_state_item            item;

        for (int64_t at = 0; at < count; at++) value[at] = (float)tensor->value[at];
        rc = find_item(training, "", tensor, &item) ? GRAFT_OK : GRAFT_ERR_NOT_FOUND;
        if (rc != GRAFT_OK && error != NULL)
            snprintf(error->message, sizeof error->message, "the state has no %s of the documented shape",
                     tensor->name);
        item.data = value;
        if (rc == GRAFT_OK) rc = training->train->state_set(training->trainer, &item, error);
        free(value);
    }
    return rc;
}

int training_pull(struct training *training, const char *prefix, int32_t t, double *value)
{
    const struct oracle_tensor *tensor = &training->model.tensor[t];
    graft_state_item            item;

    if (!find_item(training, prefix, tensor, &item)) return 0;
    for (int64_t at = 0; at < tensor->rows * tensor->cols; at++) value[at] = ((const float *)item.data)[at];
    return 1;
}

int64_t training_count(const struct oracle_tensor *tensor)
{
    return tensor->rows * tensor->cols;
}

double training_largest(const double *value, int64_t count)
{
    double most = 0;

    for (int64_t at = 0; at < count; at++) most = fmax(most, fabs(value[at]));
    return most;
}

double training_distance(const double *found, const double *expected, int64_t count)
{
    double most = 0;

    for (int64_t at = 0; at < count; at++) {
        if (isnan(found[at])) return INFINITY;
        most = fmax(most, fabs(found[at] - expected[at]));
    }
    return most == 0 ? 0 : most / training_largest(expected, count);
}
