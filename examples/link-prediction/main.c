/* Link prediction: a model embeds the vertices, a decoder says which pairs have an edge.
 *
 *     link-prediction DATASET [--decoder dot|hadamard] [--width D] [--negatives K] [--others M] [--every N]
 *                     [--set KEY=VALUE ...]
 *
 * The trainer of the library has losses for vertices only, and this is a loss of pairs. Its gradient G with respect to
 * the embeddings Z reaches the trainer as targets of a regression: with n vertices and D columns the loss `mse` is
 * |Z - T|^2 / (n D), so with T = Z - (n D / 2) G its gradient is G. Z is predicted before each epoch, which therefore
 * must compute the same: there is no dropout.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* declares dladdr() for find_library.h */
#include "ranking.h"

#include "../find_library.h"

#include <stdio.h>
#include <string.h>

enum { USAGE = -1000 }; /* a status that only this program uses */

struct task {
    struct host    host;
    struct decoder decoder;
    struct split   split;
    const char    *path;
    int32_t        others, every;
    graft_data    *files;
    graft_dataset  set;
    graft_dense    targets;
    graft_trainer *trainer;
    uint8_t       *members;
    float         *z, *gradient;
    struct ranking best, test;
    int64_t        best_epoch;
};

static int32_t open_library(struct host *host)
{
    int32_t rc = find_library(NULL, NULL, &host->api, &host->error);

    if (rc < 0) return rc;
    host->data = graft_interface(host->api, GRAFT_DATA_ID, GRAFT_HAS(graft_data_api, close));
    host->edge = graft_interface(host->api, GRAFT_EDGE_ID, GRAFT_HAS(graft_edge_api, mxm));
    host->mxm = graft_interface(host->api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_destroy));
    host->train = graft_interface(host->api, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train_api, update));
    if (host->data == NULL || host->edge == NULL || host->mxm == NULL || host->train == NULL)
        return host_fail(host, GRAFT_ERR_VERSION, "the library is older than this program");
    return rc;
}

/* Set an option KEY=VALUE. Options that must have certain values when targets encode a gradient cannot be set. */
static int32_t set_option(struct host *host, const char *text)
{
    static const char *const fixed[] = { "dropout", "input_dropout", "loss", "eval_every", "label_rate" };
    char                     key[64];
    const char              *value = strchr(text, '=');

    if (value == NULL || (size_t)(value - text) >= sizeof key)
        return host_fail(host, USAGE, "'%s' is no option, expected KEY=VALUE", text);
    snprintf(key, sizeof key, "%.*s", (int)(value - text), text);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcmp(key, fixed[i]) == 0)
            return host_fail(host, USAGE, "option %s cannot be set: this program computes its own loss", key);
    if (strcmp(key, "seed") == 0) host->seed = strtoull(value + 1, NULL, 10);
    return host->api->set(host->api->context, key, value + 1, &host->error);
}

static int32_t set_defaults(struct host *host)
{
    static const char *const pairs[][2] = {
        { "model", "gcn" },  { "norm", "none" }, { "layers", "2" }, { "hidden", "64" },
        { "epochs", "100" }, { "dropout", "0" }, { "loss", "mse" }, { "eval_every", "0" },
    };
    int32_t rc = GRAFT_OK;

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && rc >= 0; i++)
        rc = host->api->set(host->api->context, pairs[i][0], pairs[i][1], &host->error);
    return rc;
}

static int32_t read_number(struct host *host, const char *name, const char *text, int64_t most, int32_t *number)
{
    char         *end = NULL;
    const int64_t value = text == NULL ? 0 : strtoll(text, &end, 10);

    if (text == NULL || *end != '\0' || value < 1 || value > most)
        return host_fail(host, USAGE, "%s needs a number from 1 to %lld", name, (long long)most);
    *number = (int32_t)value;
    return GRAFT_OK;
}

static int32_t read_decoder(struct task *task, const char *text)
{
    task->decoder.hadamard = text != NULL && strcmp(text, "hadamard") == 0;
    if (!task->decoder.hadamard && (text == NULL || strcmp(text, "dot") != 0))
        return host_fail(&task->host, USAGE, "--decoder needs dot or hadamard");
    return GRAFT_OK;
}

static int32_t read_arguments(struct task *task, int argc, char **argv)
{
    struct host *host = &task->host;
    int32_t      width = 64, rc = GRAFT_OK;
    int          sets = 0;

    task->decoder.negatives = 1;
    task->others = 100;
    task->every = 10;
    for (int i = 1; i < argc && rc >= 0; i++) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;

        if (sets && strncmp(name, "--", 2) != 0) {
            rc = set_option(host, name);
            continue;
        }
        sets = strcmp(name, "--set") == 0;
        if (sets) continue;
        if (strncmp(name, "--", 2) != 0) {
            task->path = name;
            continue;
        }
        i++;
        if (strcmp(name, "--decoder") == 0) rc = read_decoder(task, value);
        else if (strcmp(name, "--width") == 0) rc = read_number(host, name, value, 65536, &width);
        else if (strcmp(name, "--negatives") == 0) rc = read_number(host, name, value, 1000, &task->decoder.negatives);
        else if (strcmp(name, "--others") == 0) rc = read_number(host, name, value, 10000, &task->others);
        else if (strcmp(name, "--every") == 0) rc = read_number(host, name, value, 1000000, &task->every);
        else rc = host_fail(host, USAGE, "unknown argument %s%s%s", name, value ? " " : "", value ? value : "");
    }
    task->decoder.width = width;
    if (rc >= 0 && task->path == NULL) rc = host_fail(host, USAGE, "a data set is expected");
    return rc;
}

/* Make the trainer. Its data set has the training edges, and targets for all vertices. */
static int32_t make_trainer(struct task *task)
{
    struct host  *host = &task->host;
    const int64_t n = task->split.n, width = task->decoder.width;

    task->members = host_alloc(host, n, sizeof *task->members);
    task->z = host_alloc(host, n * width, sizeof *task->z);
    task->gradient = host_alloc(host, n * width, sizeof *task->gradient);
    if (host->error.code < 0) return host->error.code;
    memset(task->members, GRAFT_SPLIT_TRAIN, (size_t)n);
    task->targets = graft_dense_in(GRAFT_F32, n, width, task->gradient);
    task->set.graph = &task->split.graph;
    task->set.labels = NULL;
    task->set.targets = NULL;
    task->set.split = task->members;
    task->set.n_classes = width;
    task->set.float_targets = &task->targets;
    return host->train->create(host->api->context, &task->set, &task->trainer, &host->error);
}

static int32_t embed(struct task *task)
{
    const graft_dense z = graft_dense_in(GRAFT_F32, task->split.n, task->decoder.width, task->z);

    return task->host.train->predict(task->trainer, GRAFT_WEIGHTS_LAST, NULL, &z, &task->host.error);
}

/* Train one epoch with the gradient of the pair loss with respect to the embeddings. */
static int32_t train_epoch(struct task *task, graft_epoch *epoch, double *loss)
{
    struct host  *host = &task->host;
    const int64_t count = task->split.n * task->decoder.width;
    int32_t       rc = embed(task);

    if (rc >= 0) rc = decoder_step(host, &task->decoder, &task->split, epoch->epoch + 1, task->z, task->gradient, loss);
    if (rc < 0) return rc;
    gradient_to_targets(task->z, count, task->gradient);
    rc = host->train->update(task->trainer, GRAFT_UPDATE_TARGETS, &task->set, &host->error);
    if (rc >= 0) rc = host->train->epoch(task->trainer, epoch, &host->error);
    return rc;
}

static int32_t measure(struct task *task, const graft_epoch *epoch, double loss)
{
    struct ranking validation, test;
    int32_t        rc = embed(task);

    if (rc >= 0)
        rc = rank_pairs(&task->host, &task->decoder, &task->split, PART_VALIDATION, task->others, task->z, &validation);
    if (rc >= 0) rc = rank_pairs(&task->host, &task->decoder, &task->split, PART_TEST, task->others, task->z, &test);
    if (rc < 0) return rc;
    printf("epoch %4lld  loss %.4f  validation MRR %.4f  hits@10 %.4f\n", (long long)epoch->epoch, loss, validation.mrr,
           validation.hits_10);
    fflush(stdout);
    if (task->best_epoch == 0 || validation.mrr > task->best.mrr) {
        task->best = validation;
        task->test = test;
        task->best_epoch = epoch->epoch;
    }
    return rc;
}

static int32_t run(struct task *task)
{
    struct host *host = &task->host;
    graft_epoch  epoch = GRAFT_INIT(graft_epoch);
    double       loss = 0;
    int32_t      rc = host->data->open(host->api->context, task->path, &task->files, &host->error);

    if (rc < 0) return rc;
    task->set = *host->data->view(task->files);
    if (task->set.features == NULL && task->set.sparse_features == NULL)
        return host_fail(host, GRAFT_ERR_FORMAT, "'%s' has no features", task->path);
    rc = split_create(host, task->set.graph, &task->split);
    if (rc >= 0) rc = decoder_create(host, &task->split, &task->decoder);
    if (rc >= 0) rc = make_trainer(task);
    if (rc < 0) return rc;
    printf("%lld vertices, pairs: %lld to train, %lld to validate, %lld to test\n", (long long)task->split.n,
           (long long)count_pairs(&task->split, PART_TRAIN), (long long)count_pairs(&task->split, PART_VALIDATION),
           (long long)count_pairs(&task->split, PART_TEST));
    while (!epoch.done && rc >= 0) {
        rc = train_epoch(task, &epoch, &loss);
        if (rc >= 0 && (epoch.done || epoch.epoch % task->every == 0)) rc = measure(task, &epoch, loss);
    }
    if (rc >= 0)
        printf("best epoch %lld: test MRR %.4f  hits@1 %.4f  hits@3 %.4f  hits@10 %.4f, among %d others\n",
               (long long)task->best_epoch, task->test.mrr, task->test.hits_1, task->test.hits_3, task->test.hits_10,
               task->others);
    return rc;
}

int main(int argc, char **argv)
{
    struct task  task = { .host.error = GRAFT_INIT(graft_error) };
    struct host *host = &task.host;
    int32_t      rc = open_library(host);

    if (rc >= 0) rc = set_defaults(host);
    if (rc >= 0) rc = read_arguments(&task, argc, argv);
    if (rc >= 0) rc = run(&task);
    if (rc < 0) fprintf(stderr, "link-prediction: %s\n", host->error.message);
    if (host->train != NULL) host->train->destroy(task.trainer);
    if (host->data != NULL) host->data->close(task.files);
    decoder_free(&task.decoder);
    split_free(&task.split);
    free(task.members);
    free(task.z);
    free(task.gradient);
    if (host->api != NULL) host->api->close(host->api->context);
    return rc >= 0 ? 0 : rc == USAGE ? 2 : 1;
}
