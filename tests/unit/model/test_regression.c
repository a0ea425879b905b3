/* Checks regression: losses and metrics against numbers that were computed by hand with the formulas of PyTorch; the
 * same over ranks; the best weights; what is refused; and a field whose next state a model learns to predict. Gradients
 * are compared with those of the oracle in test_gradient.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -- by hand ------------------------------------------------------------------------------------------------------ */

/* A model without a graph, whose outputs are its two biases 0.5 and -1. Their gradients are those of the outputs, and
 * SGD shows them. */
enum { TINY = 7, COLUMNS = 2 };

struct tiny {
    graft_dataset dataset;
    graft_csr     graph;
    graft_dense   features, targets;
    int64_t       ends[TINY + 1];
    int32_t       none;
    float         x[TINY];
    float         y[TINY * COLUMNS];
    uint8_t       split[TINY];
};

/* Errors (output - target) of the training vertices: 1 and -3; 0.5 and unknown; -0.25 and 2; and a vertex whose targets
 * are unknown. Validation has targets 1, 2 and 4 in the first column, and 5 and 5 in the second. The test part has one
 * vertex. */
static void tiny_init(struct tiny *t)
{
    static const float   y[] = { -0.5f, 2, 0, NAN, 0.75f, -3, NAN, NAN, 1, 5, 2, 5, 4, NAN };
    static const uint8_t split[] = { 1, 1, 1, 1, 2, 2, 2 };

    memset(t, 0, sizeof *t);
    memcpy(t->y, y, sizeof y);
    memcpy(t->split, split, sizeof split);
    t->graph = (graft_csr){ .size = sizeof t->graph, .n_rows = TINY, .n_cols = TINY, .index_type = GRAFT_I32 };
    t->graph.row_ptr = t->ends;
    t->graph.col_idx = &t->none;
    t->features = (graft_dense){ sizeof t->features, GRAFT_F32, TINY, 1, 1, t->x };
    t->targets = (graft_dense){ sizeof t->targets, GRAFT_F32, TINY, COLUMNS, COLUMNS, t->y };
    t->dataset = (graft_dataset){ .size = sizeof t->dataset,
                                  .n_vertices = TINY,
                                  .n_features = 1,
                                  .n_classes = COLUMNS,
                                  .graph = &t->graph,
                                  .features = &t->features,
                                  .split = t->split,
                                  .float_targets = &t->targets };
}

/* The five known errors of training. Expected are the mean loss, and its gradient with respect to the two outputs,
 * summed over vertices. */
static const struct by_hand {
    const char *settings;
    double      loss, gradient[COLUMNS];
} by_hand[] = {
    /* (1 + 9 + 0.25 + 0.0625 + 4) / 5; 2 (1 + 0.5 - 0.25) / 5, 2 (-3 + 2) / 5 */
    { "loss=auto", 2.8625, { 0.5, -0.4 } },
    { "loss=mse", 2.8625, { 0.5, -0.4 } },
    /* (1 + 3 + 0.5 + 0.25 + 2) / 5; (1 + 1 - 1) / 5, (-1 + 1) / 5 */
    { "loss=mae", 1.35, { 0.2, 0 } },
    /* (0.5 + 2.5 + 0.125 + 0.03125 + 1.5) / 5; (1 + 0.5 - 0.25) / 5, (-1 + 1) / 5 */
    { "loss=huber", 0.93125, { 0.25, 0 } },
    /* delta 2: (0.5 + 2 (3 - 1) + 0.125 + 0.03125 + 2) / 5; (1 + 0.5 - 0.25) / 5, (-2 + 2) / 5 */
    { "loss=huber:2", 1.33125, { 0.25, 0 } },
    /* delta 0.25: (0.25 (0.875 + 2.875 + 0.375 + 1.875) + 0.03125) / 5; 0.25 (1 + 1 - 1) / 5, 0 */
    { "loss=huber:0.25", 0.30625, { 0.05, 0 } },
};

static int32_t set_item(struct host *host, graft_trainer *trainer, const char *name, const float *values)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; host->train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        if (strcmp(item.name, name) != 0) continue;
        item.data = values;
        return host->train->state_set(trainer, &item, &host->error);
    }
    return GRAFT_ERR_NOT_FOUND;
}

static const float *item_of(struct host *host, graft_trainer *trainer, const char *name)
{
    static graft_state_item item;

    item = GRAFT_INIT(graft_state_item);
    for (int32_t i = 0; host->train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, name) == 0) return item.data;
    return NULL;
}

static int is_near(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fmax(1, fabs(b));
}

static int32_t regression_wrong(struct host *host, const char *words, double found, double expected)
{
    snprintf(host->error.message, sizeof host->error.message, "%s: %.9g, expected %.9g", words, found, expected);
    return GRAFT_STATUS_END;
}

static int32_t by_hand_body(struct host *host)
{
    const struct by_hand *expected = host->all->arg;
    const float           bias[COLUMNS] = { 0.5f, -1 };
    struct tiny           tiny;
    graft_trainer        *trainer = NULL;
    graft_epoch           epoch = output_epoch();
    graft_metrics         before = output_metrics();
    const float          *after;
    int32_t               rc;

    tiny_init(&tiny);
    host_set_all(host->api, "model=mlp layers=1 optimizer=sgd lr=1 threads=1 epochs=2");
    host_set_all(host->api, expected->settings);
    rc = host->train->create(host->api->context, &tiny.dataset, &trainer, &host->error);
    if (rc == GRAFT_OK) rc = set_item(host, trainer, "layers.0.bias", bias);
    if (rc == GRAFT_OK) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &before, &host->error);
    if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
    if (rc != GRAFT_OK) goto done;
    after = item_of(host, trainer, "layers.0.bias");
    for (int j = 0; j < COLUMNS; j++) {
        const double gradient = (double)bias[j] - (double)after[j];

        if (!is_near(gradient, expected->gradient[j]))
            rc = regression_wrong(host, "gradient", gradient, expected->gradient[j]);
    }
    if (!is_near(epoch.loss, expected->loss)) rc = regression_wrong(host, "loss", epoch.loss, expected->loss);
    if (!is_near(before.train_loss, expected->loss))
        rc = regression_wrong(host, "measured loss", before.train_loss, expected->loss);
    if (!is_near(before.train_rmse, sqrt(2.8625))) rc = regression_wrong(host, "RMSE", before.train_rmse, sqrt(2.8625));
    /* sums of squares about the mean: 19/24 in column 0, 12.5 in column 1; sums of squared errors: 21/16 and 13 */
    const double r2 = (1 - 21.0 / 16 / (19.0 / 24) + 1 - 13 / 12.5) / 2;
    if (!is_near(before.train_r2, r2)) rc = regression_wrong(host, "R^2", before.train_r2, r2);
    /* column 0 has errors -0.5, -1.5, -3.5, and column 1 has -6, -6, but no R^2, because its targets are constant */
    if (!is_near(before.validation_rmse, sqrt((14.75 + 72) / 5)))
        rc = regression_wrong(host, "validation RMSE", before.validation_rmse, sqrt((14.75 + 72) / 5));
    if (!is_near(before.validation_r2, 1 - 14.75 / (14.0 / 3)))
        rc = regression_wrong(host, "validation R^2", before.validation_r2, 1 - 14.75 / (14.0 / 3));
    if (!isnan(before.test_rmse) || !isnan(before.test_r2) || !isnan(before.train_accuracy) || !isnan(epoch.test_r2))
        rc = regression_wrong(host, "what there is nothing to measure of", before.test_rmse, (double)NAN);
done:
    host->train->destroy(trainer);
    return rc;
}

static void test_by_hand(void)
{
    static const char *const none[] = { NULL };
    static struct hosts      hosts;

    for (size_t i = 0; i < sizeof by_hand / sizeof *by_hand; i++) {
        hosts_run(&hosts, 1, none, by_hand_body, (void *)(uintptr_t)&by_hand[i]);
        ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s: loss, gradient, RMSE and R^2 by hand",
              by_hand[i].settings);
    }
}

/* -- over ranks --------------------------------------------------------------------------------------------------- */

enum { N = 157, FEATURES = 6, CLASSES = 3, EPOCHS = 6, RANKS = 4 };

struct measured {
    double        loss[EPOCHS], rmse[EPOCHS], r2[EPOCHS];
    graft_metrics best;
    float         outputs[N * CLASSES];
};

struct job {
    const graft_dataset *set;
    const char          *settings;
    struct measured     *found;
    int                  serial;
};

static int32_t open_regression(struct host *host, const graft_dataset *data, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (!job->serial) return host_trainer_create(host, data, SLICES_ODD, t);
    memset(t, 0, sizeof *t);
    t->slice.end = data->n_vertices;
    return host->train->create(host->api->context, data, &t->trainer, &host->error);
}

static void close_regression(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

static int32_t predict_alone(struct host *host, const struct host_trainer *t, const graft_dense *expected)
{
    const struct job      *job = host->all->arg;
    const graft_model_api *models = host->api->get_interface(host->api->context, GRAFT_MODEL_ID);
    graft_dataset          data = job->serial ? *job->set : t->slice.dataset;
    graft_model           *model = NULL;
    int32_t                labels[N];
    float                  found[N * CLASSES];
    const graft_dense      out = { sizeof out, GRAFT_F32, expected->n_rows, CLASSES, CLASSES, found };
    int32_t                rc = models->create(t->trainer, GRAFT_MODEL_LAST, &model, &host->error);

    if (rc == GRAFT_OK &&
        models->predict(model, GRAFT_WEIGHTS_LAST, &data, labels, NULL, &host->error) != GRAFT_ERR_ARG)
        rc = regression_wrong(host, "a model gives labels", 0, GRAFT_ERR_ARG);
    output_clear_rows(&out);
    if (rc == GRAFT_OK) rc = models->predict(model, GRAFT_WEIGHTS_LAST, &data, NULL, &out, &host->error);
    for (int64_t i = 0; rc == GRAFT_OK && i < expected->n_rows * CLASSES; i++) {
        const double other = (double)((const float *)expected->data)[i];

        if (fabs((double)found[i] - other) > 1e-4 * fmax(1, fabs(other)))
            rc = regression_wrong(host, "an output of the model", (double)found[i], other);
    }
    models->destroy(model);
    return rc;
}

static int32_t measure_body(struct host *host)
{
    const struct job   *job = host->all->arg;
    struct measured    *found = &job->found[host->rank];
    struct host_trainer t;
    graft_epoch         epoch = output_epoch();
    double              lowest = INFINITY;
    int64_t             best = 0;
    int32_t             rc = open_regression(host, job->set, &t);

    found->best = output_metrics();
    for (int e = 0; e < EPOCHS && rc == GRAFT_OK; e++) {
        rc = host->train->epoch(t.trainer, &epoch, &host->error);
        found->loss[e] = epoch.loss;
        found->rmse[e] = epoch.test_rmse;
        found->r2[e] = epoch.validation_r2;
        if (epoch.validation_loss >= lowest) continue;
        lowest = epoch.validation_loss;
        best = epoch.epoch;
        if (!epoch.best && rc == GRAFT_OK) rc = regression_wrong(host, "a lower loss is no best", lowest, 0);
    }
    if (rc == GRAFT_OK) rc = host->train->evaluate(t.trainer, GRAFT_WEIGHTS_BEST, &found->best, &host->error);
    if (rc == GRAFT_OK && (found->best.epoch != best || !is_near(found->best.validation_loss, lowest)))
        rc = regression_wrong(host, "the best validation loss", found->best.validation_loss, lowest);
    if (rc == GRAFT_OK) {
        const graft_dense out = { sizeof out, GRAFT_F32, t.slice.end - t.slice.first,
                                  CLASSES,    CLASSES,   job->found->outputs + t.slice.first * CLASSES };

        output_clear_rows(&out);
        rc = host->train->predict(t.trainer, GRAFT_WEIGHTS_LAST, NULL, &out, &host->error);
        if (rc == GRAFT_OK) rc = predict_alone(host, &t, &out);
    }
    close_regression(host, &t);
    return rc;
}

static int is_close(double a, double b)
{
    return (isnan(a) && isnan(b)) || fabs(a - b) <= 2e-4 * fmax(1, fabs(b));
}

static const char *difference(const struct measured *a, const struct measured *b, int with_outputs)
{
    for (int e = 0; e < EPOCHS; e++) {
        if (!is_close(a->loss[e], b->loss[e])) return "losses differ";
        if (!is_close(a->rmse[e], b->rmse[e])) return "the RMSE differs";
        if (!is_close(a->r2[e], b->r2[e])) return "R^2 differs";
    }
    if (!is_close(a->best.train_r2, b->best.train_r2) || !is_close(a->best.train_rmse, b->best.train_rmse) ||
        !is_close(a->best.test_loss, b->best.test_loss))
        return "the best weights differ";
    for (int i = 0; i < N * CLASSES && with_outputs; i++)
        if (!is_close((double)a->outputs[i], (double)b->outputs[i])) return "outputs differ";
    return NULL;
}

static void run_job(struct job *job, int32_t n_ranks, const char *const *settings, char fault[256])
{
    static struct hosts hosts;
    const char         *words;

    job->serial = n_ranks == 0;
    hosts_run(&hosts, n_ranks == 0 ? 1 : n_ranks, settings, measure_body, job);
    words = hosts_fault(&hosts);
    snprintf(fault, 256, "%s", words != NULL ? words : "");
}

/* Ranks must give the numbers of one process up to rounding, and all ranks identical ones. */
static void test_ranks(const char *more)
{
    static struct measured one[1], many[RANKS];
    struct sample          sample = { 5 };
    struct sample_dataset  set;
    const char            *settings[16] = { "layers=2", "hidden=8", "epochs=6", "threads=2", "lr=0.05" }, *words;
    char                   text[160], fault[256];
    int                    count = 5;

    snprintf(text, sizeof text, "%s", more);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) settings[count++] = word;
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_regress(&set, &sample);
    for (int32_t ranks = 0; ranks <= RANKS; ranks++) {
        struct job job = { &set.dataset, more, ranks == 0 ? one : many, 0 };

        memset(job.found, 0, sizeof *job.found);
        if (ranks == 1) settings[count] = "partition=hash";
        run_job(&job, ranks, settings, fault);
        words = *fault != '\0' ? fault : ranks == 0 ? NULL : difference(one, many, 1);
        for (int32_t r = 1; r < ranks && words == NULL; r++) {
            if (memcmp(many[r].loss, many[0].loss, sizeof one->loss) != 0 || many[r].best.epoch != many[0].best.epoch ||
                memcmp(many[r].r2, many[0].r2, sizeof one->r2) != 0)
                words = "ranks have other numbers";
        }
        ok_or(words == NULL, words, "%s on %d ranks", more, ranks);
    }
    sample_dataset_fini(&set);
}

/* -- what is refused ---------------------------------------------------------------------------------------------- */

/* A change of the data set or of an option, with the expected status and words of the message. */
struct refusal {
    const char *settings;
    int         change;
    int32_t     status;
    const char *words[2];
};

enum { NOTHING, WITH_LABELS, WITH_TARGETS, LABELS_ONLY, OTHER_WIDTH, ALL_UNKNOWN, INFINITE, DOUBLES, FEWER_ROWS };

static const struct refusal refusals[] = {
    { "", WITH_LABELS, GRAFT_ERR_ARG, { "float_targets", "labels" } },
    { "", WITH_TARGETS, GRAFT_ERR_ARG, { "float_targets", "targets" } },
    { "loss=softmax", NOTHING, GRAFT_ERR_OPTION, { "'loss' is softmax", "mse" } },
    { "loss=sigmoid", NOTHING, GRAFT_ERR_OPTION, { "'loss' is sigmoid", "mse" } },
    { "loss=mae", LABELS_ONLY, GRAFT_ERR_OPTION, { "'loss' is mae", "labels" } },
    { "label_rate=0.5", NOTHING, GRAFT_ERR_OPTION, { "'label_rate' is 0.5", "mse" } },
    { "", OTHER_WIDTH, GRAFT_ERR_ARG, { "157 x 3", "157 x 2" } },
    { "", FEWER_ROWS, GRAFT_ERR_ARG, { "156 x 3", "157 x 3" } },
    { "", DOUBLES, GRAFT_ERR_ARG, { "dtype 2", "GRAFT_F32" } },
    { "", ALL_UNKNOWN, GRAFT_ERR_FORMAT, { "known target", "157" } },
    { "", INFINITE, GRAFT_ERR_FORMAT, { "row 156, column 2", "NaN" } },
};

/* Make the data set with the change; `whole` is the data set of one process. */
static void change_dataset(struct sample_dataset *set, graft_dense *targets, int change)
{
    float *y = set->float_targets.data;

    *targets = set->float_targets;
    set->dataset.float_targets = targets;
    switch (change) {
    case WITH_LABELS: set->dataset.labels = set->labels; break;
    case WITH_TARGETS: set->dataset.targets = set->targets; break;
    case LABELS_ONLY:
        set->dataset.labels = set->labels;
        set->dataset.float_targets = NULL;
        break;
    case OTHER_WIDTH: set->dataset.n_classes = CLASSES - 1; break;
    case FEWER_ROWS: targets->n_rows--; break;
    case DOUBLES: targets->dtype = GRAFT_F64; break;
    case ALL_UNKNOWN:
        for (int64_t i = 0; i < N * targets->stride; i++) y[i] = NAN;
        break;
    case INFINITE: y[(N - 1) * targets->stride + 2] = -INFINITY; break;
    default: break;
    }
}

static int32_t refused_body(struct host *host)
{
    const struct job   *job = host->all->arg;
    struct host_trainer t;
    const int32_t       rc = open_regression(host, job->set, &t);

    close_regression(host, &t);
    return rc;
}

static void test_refusal(const struct refusal *r, int32_t n_ranks)
{
    static struct hosts   hosts;
    struct sample         sample = { 5 };
    struct sample_dataset set;
    struct job            job = { &set.dataset, r->settings, NULL, n_ranks == 0 };
    const char *const     settings[] = { *r->settings != '\0' ? r->settings : "threads=1", NULL };
    graft_dense           targets;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_regress(&set, &sample);
    change_dataset(&set, &targets, r->change);
    hosts_run(&hosts, n_ranks == 0 ? 1 : n_ranks, settings, refused_body, &job);
    for (int32_t i = 0; i < hosts.n_ranks; i++) {
        const struct host *h = &hosts.at[i];
        const int          is_same = h->rc == r->status;

        /* Over ranks shapes are those of slices. */
        if (!ok(is_same && (n_ranks > 0 || (strstr(h->error.message, r->words[0]) != NULL &&
                                            strstr(h->error.message, r->words[1]) != NULL)),
                "illegal targets are refused on rank %d of %d: %s", i, n_ranks, h->error.message))
            diag("status %d, expected %d and %s, %s", h->rc, r->status, r->words[0], r->words[1]);
    }
    sample_dataset_fini(&set);
}

static int32_t mixed_body(struct host *host)
{
    const struct job   *job = host->all->arg;
    graft_dataset       data = *job->set;
    struct host_trainer t;
    int32_t             rc;

    data.labels = host->rank == 0 ? NULL : (const int32_t *)job->found;
    if (host->rank > 0) data.float_targets = NULL;
    rc = host_trainer_create(host, &data, SLICES_EVEN, &t);
    host_trainer_destroy(host, &t);
    return rc;
}

static void test_mixed(void)
{
    static const char *const settings[] = { "threads=1", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 5 };
    struct sample_dataset    set;
    struct job               job = { &set.dataset, "", NULL, 0 };

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_regress(&set, &sample);
    job.found = (struct measured *)(void *)set.labels;
    hosts_run(&hosts, 3, settings, mixed_body, &job);
    for (int32_t i = 0; i < 3; i++)
        ok(hosts.at[i].rc == GRAFT_ERR_ARG && strstr(hosts.at[i].error.message, "the loss") != NULL,
           "ranks that learn different kinds of targets are refused on rank %d: %s", i, hosts.at[i].error.message);
    sample_dataset_fini(&set);
}

/* -- numbers that cancel ------------------------------------------------------------------------------------------ */

/* Targets are 4e6 plus 0 to 3 quarters, and outputs 4e6, so that R^2 would be lost in sums of squares. Another column
 * has the same number everywhere, for which no mean is exact. */
static int32_t offset_body(struct host *host)
{
    enum { ROWS = 1001 };
    static float      y[ROWS * COLUMNS], x[ROWS];
    static int64_t    ends[ROWS + 1];
    static uint8_t    split[ROWS];
    const int32_t     none = 0;
    const float       bias[COLUMNS] = { 4000000, 0 };
    graft_csr         graph = { .size = sizeof graph, .index_type = GRAFT_I32, .row_ptr = ends, .col_idx = &none };
    const graft_dense features = { sizeof features, GRAFT_F32, ROWS, 1, 1, x };
    const graft_dense targets = { sizeof targets, GRAFT_F32, ROWS, COLUMNS, COLUMNS, y };
    graft_dataset     data = { .size = sizeof data, .n_vertices = ROWS, .n_features = 1, .n_classes = COLUMNS };
    graft_metrics     metrics = output_metrics();
    graft_trainer    *trainer = NULL;
    int32_t           rc;

    graph.n_rows = graph.n_cols = ROWS;
    for (int v = 0; v < ROWS; v++) {
        y[v * COLUMNS] = 4000000 + 0.25f * (float)(v % 4);
        y[v * COLUMNS + 1] = 0.1f;
        split[v] = GRAFT_SPLIT_TRAIN;
    }
    data.graph = &graph;
    data.features = &features;
    data.float_targets = &targets;
    data.split = split;
    rc = host->train->create(host->api->context, &data, &trainer, &host->error);
    if (rc == GRAFT_OK) rc = set_item(host, trainer, "layers.0.bias", bias);
    if (rc == GRAFT_OK) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);
    if (rc == GRAFT_OK) {
        /* 251 targets are 0, and 250 each are 1/4, 2/4 and 3/4: their sum is 1500/4, and that of squares 3500/16 */
        const double squares = 3500.0 / 16, mean = 1500.0 / 4 / ROWS, r2 = 1 - squares / (squares - ROWS * mean * mean);

        if (fabs(metrics.train_r2 - r2) > 1e-9) rc = regression_wrong(host, "R^2", metrics.train_r2, r2);
    }
    host->train->destroy(trainer);
    return rc;
}

static void test_offset(void)
{
    static const char *const settings[] = { "model=mlp", "layers=1", "threads=2", NULL };
    static struct hosts      hosts;
    struct job               job = { .serial = 1 };

    hosts_run(&hosts, 1, settings, offset_body, &job);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "R^2 of large targets, and of a constant column");
}

/* -- a field ------------------------------------------------------------------------------------------------------ */

/* Heat conduction on a torus of SIDE x SIDE points: the next state of a point is its own plus a fifth of the
 * differences to its four neighbours. Training points are scattered among the others, and a tenth of the targets is
 * unknown. */
enum { SIDE = 24, POINTS = SIDE * SIDE };

struct field {
    int64_t ends[POINTS + 1];
    int32_t columns[4 * POINTS];
    float   now[POINTS], next[POINTS];
    uint8_t split[POINTS];
};

static void field_init(struct field *f)
{
    for (int p = 0; p < POINTS; p++) {
        const double x = 2 * acos(-1) * (p % SIDE) / SIDE, y = 2 * acos(-1) * (p / SIDE) / SIDE;

        f->now[p] = (float)(sin(3 * x) * cos(2 * y) + 0.5 * cos(5 * x - y) + 0.7 * sin(4 * y));
    }
    for (int p = 0; p < POINTS; p++) {
        const int row = p / SIDE, column = p % SIDE;
        const int near[4] = { row * SIDE + (column + 1) % SIDE, row * SIDE + (column + SIDE - 1) % SIDE,
                              (row + 1) % SIDE * SIDE + column, (row + SIDE - 1) % SIDE * SIDE + column };
        float     flow = 0;

        for (int i = 0; i < 4; i++) {
            f->columns[4 * p + i] = near[i];
            flow += f->now[near[i]] - f->now[p];
        }
        f->ends[p + 1] = 4 * (p + 1);
        f->next[p] = p % 10 == 7 ? NAN : f->now[p] + 0.2f * flow;
        f->split[p] = (uint8_t)(1 + (p * 7 + p / SIDE) % 3);
    }
}

static int32_t field_body(struct host *host)
{
    static struct field f[HOSTS_MOST];
    struct field       *mine = &f[host->rank];
    const graft_csr     graph = { .size = sizeof graph,
                                  .n_rows = POINTS,
                                  .n_cols = POINTS,
                                  .index_type = GRAFT_I32,
                                  .row_ptr = mine->ends,
                                  .col_idx = mine->columns };
    const graft_dense   now = { sizeof now, GRAFT_F32, POINTS, 1, 1, mine->now };
    const graft_dense   next = { sizeof next, GRAFT_F32, POINTS, 1, 1, mine->next };
    graft_dataset       data = { .size = sizeof data, .n_vertices = POINTS, .n_features = 1, .n_classes = 1 };
    struct host_trainer t;
    graft_epoch         epoch = output_epoch();
    graft_metrics       best = output_metrics();
    int32_t             rc;

    field_init(mine);
    data.graph = &graph;
    data.features = &now;
    data.float_targets = &next;
    data.split = mine->split;
    rc = open_regression(host, &data, &t);
    while (rc == GRAFT_OK && !epoch.done) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK) rc = host->train->evaluate(t.trainer, GRAFT_WEIGHTS_BEST, &best, &host->error);
    if (rc == GRAFT_OK && !(best.test_r2 > 0.9)) rc = regression_wrong(host, "R^2 of test points", best.test_r2, 0.9);
    close_regression(host, &t);
    return rc;
}

static void test_field(int32_t n_ranks, const char *more)
{
    const char *const   settings[] = { "model=sage", "layers=2",   "hidden=16", "dropout=0", "norm=none",
                                       "lr=0.02",    "epochs=120", "threads=1", more,        NULL };
    static struct hosts hosts;
    struct job          job = { .serial = n_ranks == 0 };

    hosts_run(&hosts, n_ranks == 0 ? 1 : n_ranks, settings, field_body, &job);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "the next state of a field is learnt, %s, on %d ranks",
          more, n_ranks);
}

int main(void)
{
    alarm(200);
    test_by_hand();
    test_offset();
    test_ranks("model=sage");
    test_ranks("model=gcn order=degree loss=huber");
    test_ranks("model=gin row_masks=no recompute=yes loss=mae");
    test_ranks("model=gat heads=2 dropout=0.2");
    test_ranks("model=sgc propagation=2 normalize_features=yes");
    test_ranks("model=appnp propagation=3 symmetrize=yes loss=huber:0.3");
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        for (int32_t ranks = 0; ranks < 4; ranks += 3) /* slices follow the rows of the graph */
            if (ranks == 0 || refusals[i].change != FEWER_ROWS) test_refusal(&refusals[i], ranks);
    test_mixed();
    test_field(0, "loss=mse");
    test_field(0, "loss=huber");
    test_field(3, "halo.codec=q8");
    test_field(2, "halo.staleness=1");
    return done();
}
