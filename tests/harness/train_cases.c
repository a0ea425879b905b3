/* Compares training over ranks with training in one process, see harness/train_cases.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/train_cases.h"
#include "harness/outputs.h"
#include "harness/tap.h"

#include "graft_load.h"

#include <math.h>
#include <string.h>

static const double TOLERANCE = 1e-4;
/* Tolerance with model.type=bf16. Sums in different orders may be rounded to neighbouring bfloat16 numbers, whose
 * relative distance is 2^-8. */
static const double ROUNDED_TOLERANCE = 1e-3;

/* Copy all weights of a trainer, one after the other. */
void train_keep_weights(const graft_train_api *train, graft_trainer *trainer, struct outcome *o)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        const int64_t count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        const int is_weight = strncmp(item.name, "layers.", 7) == 0 || strcmp(item.name, "label_embedding") == 0;

        if (!is_weight || o->n_weights + count > WEIGHTS_MOST) continue;
        memcpy(o->weights + o->n_weights, item.data, (size_t)count * sizeof(float));
        o->n_weights += count;
    }
}

/* Train all epochs, predict n vertices, and keep losses, metrics and weights. */
static int32_t train_and_keep(const graft_api *api, const graft_train_api *train, const graft_dataset *dataset,
                              int64_t n, int32_t *labels, float *rows, struct outcome *o, graft_error *error)
{
    const graft_dense       logits = { sizeof logits, GRAFT_F32, n, CLASSES, CLASSES, rows };
    const graft_report_api *report = graft_interface(api, GRAFT_REPORT_ID, sizeof *report);
    graft_trainer          *trainer = NULL;
    int32_t                 rc = train->create(api->context, dataset, &trainer, error);

    o->metrics = output_metrics();
    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        graft_epoch epoch = output_epoch();

        rc = train->epoch(trainer, &epoch, error);
        o->loss[i] = epoch.loss;
    }
    output_clear_rows(&logits);
    output_clear(labels, (size_t)n * sizeof *labels);
    if (rc == GRAFT_OK) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, labels, &logits, error);
    if (rc == GRAFT_OK) rc = train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &o->metrics, error);
    if (rc == GRAFT_OK) rc = train->explain(trainer, o->explained, sizeof o->explained, error);
    o->traffic = GRAFT_INIT(graft_traffic);
    if (rc == GRAFT_OK && dataset->over != NULL) rc = report->traffic(trainer, -1, &o->traffic, error);
    if (rc == GRAFT_OK) train_keep_weights(train, trainer, o);
    train->destroy(trainer);
    return rc;
}

int32_t train_job_body(struct host *host)
{
    struct job       *job = host->all->arg;
    graft_graph      *graph = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &job->set.dataset, job->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (s.first == s.end && host->rank % 2 == 0) { /* a rank without rows may pass NULL as arrays */
        s.dataset.labels = NULL;
        s.dataset.targets = s.dataset.split = NULL;
    }
    if (rc == GRAFT_OK)
        rc = train_and_keep(host->api, host->train, &s.dataset, s.end - s.first, job->labels[1] + s.first,
                            job->logits[1] + s.first * CLASSES, &job->at[host->rank], &host->error);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

void train_one_process(struct job *job, const char *const *settings)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    int32_t          rc = graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error);

    for (int i = 0; settings[i] != NULL && rc == GRAFT_OK; i++) host_set(api, settings[i]);
    if (rc == GRAFT_OK)
        rc = train_and_keep(api, graft_interface(api, GRAFT_TRAIN_ID, sizeof(graft_train_api)), &job->set.dataset,
                            job->set.dataset.n_vertices, job->labels[0], job->logits[0], &job->one, &error);
    if (rc != GRAFT_OK) {
        printf("Bail out! %s\n", error.message);
        exit(2);
    }
    api->close(api->context);
}

/* The distance of two arrays as vectors, relative to their lengths. */
static double distance_of_arrays(const float *a, const float *b, int64_t count)
{
    double apart = 0, length = 0;

    for (int64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        length += (double)b[i] * (double)b[i];
    }
    return length > 0 ? sqrt(apart / length) : apart > 0 ? INFINITY : 0;
}

double train_off(double a, double b)
{
    if (isnan(a) && isnan(b)) return 0;
    return a == b ? 0 : fabs(a - b) / fabs(b);
}

/* The largest relative distance between the results of the ranks and those of one process. It is NaN if a result is
 * NaN, so that it is not below any tolerance. */
double train_worst_of(const struct job *job)
{
    const struct outcome *a = &job->at[0], *b = &job->one;
    const int64_t         n = job->set.dataset.n_vertices;
    double                worst = distance_of_arrays(a->weights, b->weights, b->n_weights);

    if (a->n_weights != b->n_weights || b->n_weights == 0) return INFINITY;
    worst = fmax(worst, distance_of_arrays(job->logits[1], job->logits[0], n * CLASSES));
    for (int i = 0; i < EPOCHS; i++) worst = fmax(worst, train_off(a->loss[i], b->loss[i]));
    worst = fmax(worst, train_off(a->metrics.train_loss, b->metrics.train_loss));
    worst = fmax(worst, train_off(a->metrics.validation_loss, b->metrics.validation_loss));
    return fmax(worst, train_off(a->metrics.test_loss, b->metrics.test_loss));
}

/* Check the predicted classes, which must be those of the largest logits, and the accuracies, which must equal those of
 * one process, except for a vertex whose two largest logits are nearly equal. */
static const char *check_classes(const struct job *job)
{
    const struct outcome *a = &job->at[0], *b = &job->one;
    const int64_t         n = job->set.dataset.n_vertices;
    int64_t               differ = 0;

    for (int64_t v = 0; v < n; v++) {
        const float *row = job->logits[1] + v * CLASSES;
        int          best = 0;

        for (int j = 1; j < CLASSES; j++)
            if (row[j] > row[best]) best = j;
        if (job->labels[1][v] != best) return "a predicted class is not that of the largest logit";
        differ += job->labels[1][v] != job->labels[0][v];
    }
    if (differ > n / 100) return "other classes are predicted";
    if (fabs(a->metrics.train_accuracy - b->metrics.train_accuracy) > 0.02) return "another training accuracy";
    return NULL;
}

static const char *train_ranks_check_bits(const struct job *job, int32_t n_ranks)
{
    for (int32_t i = 1; i < n_ranks; i++) {
        const struct outcome *a = &job->at[i], *b = &job->at[0];

        if (memcmp(a->loss, b->loss, sizeof a->loss) != 0) return "losses differ from rank to rank";
        if (memcmp(&a->metrics, &b->metrics, sizeof a->metrics) != 0) return "metrics differ from rank to rank";
        if (memcmp(a->weights, b->weights, sizeof a->weights) != 0) return "weights differ from rank to rank";
    }
    return NULL;
}

/* Replace the edges of every fourth vertex by the same number of loops. Vertices that gathered from such a vertex
 * gather from the vertex before it instead. */
static int32_t without_lone(int64_t v, int32_t column)
{
    if (v % 4 == 1) return (int32_t)v;
    return column % 4 == 1 ? column - 1 : column;
}

/* Reduce the number of training vertices. Repeat the first entry of every third row that has at least two entries. */
static void change(struct job *job, const struct shape *shape)
{
    const graft_csr *graph = &job->set.graph.csr;
    int32_t *const   column = job->set.graph.col_idx;

    for (int64_t v = 0; v < shape->n; v++) {
        const int64_t first = graph->row_ptr[v];

        for (int64_t e = first; e < graph->row_ptr[v + 1] && (shape->is & LONE); e++)
            column[e] = without_lone(v, column[e]);
        for (int64_t j = 0; j < FEATURES && (shape->is & ALIKE); j++)
            ((float *)job->set.features.data)[v * job->set.features.stride + j] = 0.1f * (float)(j - 4);
        if ((shape->is & FEW) && v % 37 != 2 && job->set.split[v] == GRAFT_SPLIT_TRAIN)
            job->set.split[v] = GRAFT_SPLIT_TEST;
        if ((shape->is & REPEATS) && v % 3 == 0 && graph->row_ptr[v + 1] > first + 1) column[first + 1] = column[first];
    }
}

void train_job_init(struct job *job, struct sample *sample, const struct shape *shape)
{
    graft_csr *graph;

    memset(job, 0, sizeof *job);
    sample_dataset_init(&job->set, sample, shape->n, FEATURES, CLASSES, (shape->is & SEVERAL) != 0,
                        (shape->is & SPARSE) != 0);
    change(job, shape);
    graph = &job->set.graph.csr;
    if (shape->is & WEIGHTED) {
        job->values = calloc((size_t)graph->row_ptr[shape->n] + 1, sizeof *job->values);
        for (int64_t e = 0; e < graph->row_ptr[shape->n]; e++) job->values[e] = (float)sample_real(sample, 0.5, 1.5);
        graph->value_type = GRAFT_F32;
        graph->values = job->values;
    }
    for (int i = 0; i < 2; i++) {
        job->logits[i] = calloc((size_t)(shape->n * CLASSES), sizeof(float));
        job->labels[i] = calloc((size_t)shape->n, sizeof(int32_t));
    }
}

void train_job_fini(struct job *job)
{
    sample_dataset_fini(&job->set);
    free(job->values);
    for (int i = 0; i < 2; i++) {
        free(job->logits[i]);
        free(job->labels[i]);
    }
}

const struct setup train_setups[TRAIN_SETUPS] = {
    { "dropout=0", { 300, 0 } },
    { "dropout=0.5 input_dropout=0.3 seed=7 edge_features=values norm=batch", { 300, WEIGHTED } },
    { "dropout=0 normalize_features=yes norm=none reuse_input=no model.type=bf16", { 211, SEVERAL } },
    { "dropout=0.2 self_loops=yes recompute=yes residual=yes jumping=max loss=softmax:balanced:0.1",
      { 300, WEIGHTED } },
    { "sparse_input=yes input_dropout=0.4 dropout=0.1 normalize_features=yes", { 300, SPARSE } },
    { "sparse_input=no input_dropout=0.4 dropout=0", { 300, SPARSE | WEIGHTED } },
    { "sparse_input=auto dropout=0 recompute=yes self_loops=yes", { 257, SPARSE | SEVERAL } },
    { "optimizer=sgd:0.5 lr=0.02 hidden=40,10 dropout=0.3 threads=2 activation=elu norm_order=after_dropout "
      "attention_dropout=0.4 norm=batch",
      { 300, 0 } },
    { "hidden=10,40 dropout=0 norm=none reuse_input=no weight_decay=0.01 clip_norm=0.1", { 300, WEIGHTED } },
    { "dropout=0 norm=batch", { 6, 0 } },
    { "dropout=0 sparse_input=yes row_masks=no", { 6, SPARSE } },
    { "label_rate=0.62 dropout=0.3 seed=3 loss=softmax:balanced", { 300, WEIGHTED } },
    { "label_rate=0.4 hidden=40,10 input_dropout=0.2 recompute=yes norm=batch", { 211, SEVERAL } },
    { "label_rate=0.5 dropout=0 sparse_input=yes norm=none", { 300, SPARSE | SEVERAL } },
    { "dropout=0.2 edge_features=array attention_input=relu recompute=yes", { 300, REPEATS } },
};

/* SGD is used instead of Adam, because Adam turns gradients that are 0 except for rounding errors into full steps. */
#define SGD "optimizer=sgd:0.5 lr=0.05"

/* Cases in which the library first changes the graph, or in which there are few training vertices. */
const struct setup train_prepared[TRAIN_PREPARED] = {
    { "symmetrize=yes dropout=0.3 edge_features=values " SGD, { 300, WEIGHTED | REPEATS } },
    { "symmetrize=yes order=rcm self_loops=yes row_masks=no input_dropout=0.2 " SGD, { 211, SEVERAL } },
    { "symmetrize=yes order=degree dropout=0.2 " SGD, { 6, WEIGHTED } },
    { "order=degree dropout=0.4 input_dropout=0.3 edge_features=values " SGD, { 257, SPARSE | WEIGHTED | REPEATS } },
    { "order=community symmetrize=yes sparse_input=yes reuse_input=no " SGD, { 300, SPARSE | FEW } },
    { "dropout=0.4 input_dropout=0.2 residual=yes activation=elu jumping=cat norm=batch " SGD,
      { 300, WEIGHTED | FEW } },
    { "dropout=0.4 hidden=6,30 reuse_input=no norm=none recompute=yes model.type=bf16 " SGD, { 300, SEVERAL | FEW } },
    { "order=rcm self_loops=yes dropout=0.1 attention_dropout=0.5 activation=elu hidden=30,6 " SGD,
      { 300, FEW | REPEATS } },
    { "sparse_input=yes input_dropout=0.4 dropout=0 " SGD, { 300, SPARSE | WEIGHTED | FEW } },
    { "layers=7 hidden=8 dropout=0.1 reuse_input=no " SGD, { 211, FEW } },
    { "label_rate=0.62 order=degree symmetrize=yes dropout=0.2 " SGD, { 300, FEW } },
    { "label_rate=0.4 hidden=6,30 reuse_input=no recompute=yes " SGD, { 300, WEIGHTED | FEW } },
    { "label_rate=0.8 dropout=0 " SGD, { 6, 0 } },
    { "symmetrize=yes order=degree dropout=0.3 edge_features=array " SGD, { 300, WEIGHTED | REPEATS } },
    { "order=rcm self_loops=no dropout=0.3 edge_features=array " SGD, { 6, 0 } },
};

const char *train_shared = "", *train_rounds = "";

void train_settings_init(struct settings *s, const char *model, const char *partition, const char *cover,
                         const char *more)
{
    char *rest = s->text, *word;
    int   count = 0;

    snprintf(s->text, sizeof s->text,
             "layers=3 hidden=16 heads=2 epochs=%d eval_every=4 threads=1 halo.timeout=60 "
             "model=%s partition=%s%s halo.cover=%s %s %s",
             EPOCHS, model, partition, train_rounds, cover, train_shared, more);
    /* Adam turns gradients that are 0 except for rounding errors into full steps. The target vectors of gat have such
     * gradients if all scores of a row have one sign, and so have nearly dead units of gin. */
    if (strcmp(model, "gat") == 0 || strcmp(model, "gin") == 0)
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), " optimizer=sgd lr=0.05");
    /* BatchNorm divides by the standard deviation of these units, which multiplies their rounding errors. */
    if (strcmp(model, "gin") == 0 && strstr(more, "norm=batch") != NULL)
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), " lr=0.001");
    while (count + 1 < HOST_SETTINGS && (word = strtok_r(rest, " ", &rest)) != NULL) s->at[count++] = word;
    s->at[count] = NULL;
    if (count + 1 == HOST_SETTINGS || strlen(more) > sizeof s->text / 2) {
        printf("Bail out! too many settings\n");
        exit(2);
    }
}

/* Train in one process and over ranks. \return NULL, or an error of the training over ranks in words. */
const char *train_run_case(struct job *job, int32_t n_ranks, const struct settings *settings)
{
    static struct hosts hosts;
    const char         *words = NULL;

    train_one_process(job, settings->at);
    hosts_run(&hosts, n_ranks, settings->at, train_job_body, job);
    words = hosts_fault(&hosts);
    if (words == NULL) words = check_classes(job);
    if (words == NULL) words = train_ranks_check_bits(job, n_ranks);
    return words;
}

void train_test_case(int number, const char *model, int32_t n_ranks, const struct setup *setup)
{
    static const char *const partitions[] = { "given", "block", "hash" };
    static const char *const covers[] = { "hybrid", "post", "hybrid", "pre" };
    const char *const partition = partitions[number % 3], *const cover = covers[number / 3 % 4];
    struct job     *job = calloc(1, sizeof *job);
    struct sample   sample = { (uint64_t)number };
    struct settings settings;
    const char     *words;
    const double    most = strstr(setup->settings, "bf16") != NULL ? ROUNDED_TOLERANCE : TOLERANCE;
    double          worst;

    train_job_init(job, &sample, &setup->shape);
    job->way = (enum slices)(number / 2 % SLICES);
    train_settings_init(&settings, model, partition, cover, setup->settings);
    words = train_run_case(job, n_ranks, &settings);
    worst = train_worst_of(job);
    ok_or(words == NULL && worst <= most, words, "%s on %d ranks, %s, %s, slices %s, %lld vertices, %s: %.2g off",
          model, n_ranks, partition, cover, slices_name[job->way], (long long)setup->shape.n, setup->settings, worst);
    for (int i = 0; i < EPOCHS && worst > most; i++)
        diag("epoch %d: loss %.9g, in one process %.9g", i, job->at[0].loss[i], job->one.loss[i]);
    train_job_fini(job);
    free(job);
}

/* Check every model with every data set, each on two or three of the five numbers of ranks. */
void train_test_all(const char *const *models, int n_models, const struct setup *setup, int n, const int32_t *ranks)
{
    int number = 0;

    for (int m = 0; m < n_models; m++)
        for (int s = 0; s < n; s++)
            for (int r = (m + s) % 2; r < 5; r += 2) train_test_case(number++, models[m], ranks[r], &setup[s]);
}

void train_test_sums(const int32_t *ranks)
{
    for (int s = 0; s < TRAIN_SETUPS; s++) {
        struct setup sums = train_setups[s];
        char         settings[160];

        train_test_case(2 * s, "sgc", ranks[1 + s % 4], &train_setups[s]);
        train_test_case(2 * s + 1, "appnp", ranks[1 + (s + 1) % 4], &train_setups[s]);
        if (s % 2 == 1) continue;
        snprintf(settings, sizeof settings, "%s aggregator=sum lr=0.001", sums.settings);
        sums.settings = settings;
        train_test_case(s, "sage", ranks[1 + s % 4], &sums);
    }
}

void train_test_extrema(const char *aggregator, const int32_t *ranks)
{
    static const struct setup ties = { "dropout=0 optimizer=sgd:0.5 lr=0.05", { 300, ALIKE } };
    char                      settings[200];

    for (int s = 0; s <= TRAIN_SETUPS + TRAIN_PREPARED; s++) {
        struct setup extrema = s < TRAIN_SETUPS                    ? train_setups[s]
                               : s < TRAIN_SETUPS + TRAIN_PREPARED ? train_prepared[s - TRAIN_SETUPS]
                                                                   : ties;

        if (strstr(extrema.settings, "sparse_input=yes") != NULL || strstr(extrema.settings, "label_rate") != NULL)
            continue;
        snprintf(settings, sizeof settings, "%s aggregator=%s", extrema.settings, aggregator);
        extrema.settings = settings;
        train_test_case(s, "sage", ranks[s % 4], &extrema);
    }
}
