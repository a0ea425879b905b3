/* Checks apply() of a model to a trainer with other options, where weights have the same shapes but would compute
 * something else. It must be refused, except for options that have no effect or matter in training only. An option that
 * a file does not have counts as its default.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const graft_model_api *models;
static char                   logged[2048]; /* last line of the log */

static void keep_last_line(void *self, graft_log_level level, const char *message)
{
    (void)self;
    (void)level;
    snprintf(logged, sizeof logged, "%s", message);
}

/* Options of the model and of the trainer, in addition to common ones, and words of the error; NULL if the model
 * fits. */
struct pair {
    const char *both, *model, *trainer, *message;
};

#define ELSE ": the same weights would compute something else"

static const struct pair pairs[] = {
    { "model=gcn", "activation=elu", "activation=relu",
      "option 'activation' of the model is elu, and the trainer has relu" ELSE },
    { "model=gcn", "activation=elu", "activation=elu", NULL },
    { "layers=1", "activation=elu", "activation=relu", NULL },
    { "model=sage", "norm_order=before_dropout", "norm_order=after_dropout", NULL },
    { "model=sage", "residual=no", "residual=yes",
      "option 'residual' of the model is no, and the trainer has yes" ELSE },
    { "model=sage layers=2", "residual=no", "residual=yes", NULL },
    { "model=sage", "aggregator=sum", "aggregator=mean",
      "option 'aggregator' of the model is sum, and the trainer has mean" ELSE },
    { "model=sage", "aggregator=min", "aggregator=max",
      "option 'aggregator' of the model is min, and the trainer has max" ELSE },
    { "model=sage", "aggregator=min", "aggregator=min", NULL },
    { "model=gin", "aggregator=sum", "aggregator=mean", NULL },
    { "model=mlp", "jumping=max", "jumping=none",
      "option 'jumping' of the model is max, and the trainer has none" ELSE },
    { "model=appnp", "teleport=0.5", "teleport=0.10", "option 'teleport' of the model is 0.5" },
    { "model=appnp", "teleport=0.1", "teleport=0.10", NULL },
    { "model=appnp", "propagation=2", "propagation=3", "option 'propagation' of the model is 2" },
    { "layers=3", "model=gcn", "model=mlp", "option 'model' of the model is gcn, and the trainer has mlp" ELSE },
    { "layers=3", "hidden=8", "hidden=8,8", NULL },
    { "model=gat heads=2", "dropout=0.1 input_dropout=0.1 attention_dropout=0.1",
      "dropout=0.2 input_dropout=0 attention_dropout=0.2", NULL },
};

/* Other options of the data must cause a warning with these words. */
static const struct pair warned[] = {
    { "model=sage", "self_loops=no", "self_loops=yes",
      "option 'self_loops' of the model is no, and the trainer has yes" },
    { "model=gcn", "self_loops=auto", "self_loops=yes", NULL },
    { "model=gin", "symmetrize=yes", "symmetrize=no",
      "option 'symmetrize' of the model is yes, and the trainer has no" },
    { "model=mlp", "symmetrize=yes", "symmetrize=no", NULL },
    { "model=mlp", "normalize_features=yes", "normalize_features=no",
      "option 'normalize_features' of the model is yes, and the trainer has no" },
};

/* Open a context with these options, and make a trainer in it. */
static graft_trainer *open_apply_trainer(const struct sample_dataset *set, const char *both, const char *settings,
                                         const graft_api **api)
{
    graft_error            error = GRAFT_INIT(graft_error);
    graft_trainer         *trainer = NULL;
    const graft_train_api *train;
    graft_host             host = GRAFT_INIT(graft_host);

    host.log = keep_last_line;
    if (graft_load(getenv("GRAFT_LIBRARY"), &host, api, &error) == GRAFT_OK) {
        train = (*api)->get_interface((*api)->context, GRAFT_TRAIN_ID);
        models = (*api)->get_interface((*api)->context, GRAFT_MODEL_ID);
        host_set_all(*api, "threads=1 epochs=2 hidden=8");
        host_set_all(*api, both);
        host_set_all(*api, settings);
        if (train->create((*api)->context, &set->dataset, &trainer, &error) == GRAFT_OK) return trainer;
    }
    printf("Bail out! %s %s: %s\n", both, settings, error.message);
    exit(1);
}

static void apply_close_trainer(const graft_api *api, graft_trainer *trainer)
{
    const graft_train_api *train = api->get_interface(api->context, GRAFT_TRAIN_ID);

    train->destroy(trainer);
    api->close(api->context);
}

static void save_applied_model(const struct sample_dataset *set, const char *both, const char *settings, int32_t what,
                               const char *path)
{
    const graft_api *api;
    graft_trainer   *trainer = open_apply_trainer(set, both, settings, &api);
    graft_model     *model = NULL;
    graft_error      error = GRAFT_INIT(graft_error);

    if (models->create(trainer, what, &model, &error) < 0 || models->save(model, path, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        exit(1);
    }
    models->destroy(model);
    apply_close_trainer(api, trainer);
}

/* The sum of all weights, which shows whether weights were copied. */
static double sum_of_weights(const graft_api *api, graft_trainer *trainer)
{
    const graft_train_api *train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    graft_state_item       item = GRAFT_INIT(graft_state_item);
    double                 sum = 0;

    for (int32_t i = 0; train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        const int64_t count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        for (int64_t at = 0; at < count && item.dtype == GRAFT_F32; at++) sum += ((const float *)item.data)[at];
    }
    return sum;
}

static void apply_file(const struct sample_dataset *set, const struct pair *pair, const char *path, const char *name,
                       int warns)
{
    const graft_api *api;
    graft_trainer   *trainer = open_apply_trainer(set, pair->both, pair->trainer, &api);
    graft_model     *model = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    const double     before = sum_of_weights(api, trainer);
    int32_t          rc = models->load(api->context, NULL, path, &model, &error);
    int              right;

    logged[0] = 0;
    if (rc == GRAFT_OK) rc = models->apply(model, trainer, &error);
    if (warns || pair->message == NULL)
        right = rc == GRAFT_OK && (pair->message != NULL ? strstr(logged, pair->message) != NULL : logged[0] == 0);
    else
        right = rc == GRAFT_ERR_FORMAT && strstr(error.message, pair->message) != NULL &&
                sum_of_weights(api, trainer) == before;
    if (!ok(right, "a model of %s %s: %s applied to a trainer of %s: %s", name, pair->both, pair->model, pair->trainer,
            pair->message == NULL ? "taken"
            : warns               ? "a warning"
                                  : "refused"))
        diag("%d: %s", rc, error.message);
    models->destroy(model);
    apply_close_trainer(api, trainer);
}

/* Replace "KEY":"..." in the header of a file by blanks, as if an older release without the option had written it. */
static void remove_key(char *text, size_t length, const char *key)
{
    char        quoted[64];
    const char *end;
    char       *at = NULL;

    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    for (size_t i = 0; at == NULL && i + strlen(quoted) < length; i++)
        if (memcmp(text + i, quoted, strlen(quoted)) == 0) at = text + i;
    end = at != NULL ? strchr(at + strlen(quoted) + 1, '"') : NULL;
    if (end == NULL) {
        printf("Bail out! the file has no %s\n", key);
        exit(1);
    }
    end++;
    if (*end == ',') end++;
    else
        for (char *comma = at; *comma != '{'; comma--)
            if (*comma == ',') {
                *comma = ' ';
                break;
            }
    memset(at, ' ', (size_t)(end - at));
}

static void remove_option(const char *path, const char *key)
{
    static char text[1 << 18];
    FILE       *file = fopen(path, "rb");
    size_t      length;

    length = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file != NULL) fclose(file);
    remove_key(text, length, key);
    remove_key(text, length, "crc32c");
    remove_key(text, length, "crc32c.header");
    file = fopen(path, "wb");
    if (file == NULL || fwrite(text, 1, length, file) != length || fclose(file) != 0) exit(1);
}

int main(void)
{
    static const struct pair old[] = {
        { "layers=3", "activation=elu", "activation=elu",
          "option 'activation' of the model is relu (its default; the file does not say), and the trainer has "
          "elu" ELSE },
        { "layers=3", "activation=elu", "activation=relu", NULL },
    };
    struct sample         sample = { 6 };
    struct sample_dataset set;
    char                  path[64];

    alarm(100);
    snprintf(path, sizeof path, "/tmp/test_apply_options_%d", (int)getpid());
    sample_dataset_init(&set, &sample, 30, 5, 3, 0, 0);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        const int32_t what = i % 2 ? GRAFT_MODEL_STATE : GRAFT_MODEL_LAST;

        save_applied_model(&set, pairs[i].both, pairs[i].model, what, path);
        apply_file(&set, &pairs[i], path, i % 2 ? "a state," : "weights,", 0);
    }
    for (size_t i = 0; i < sizeof warned / sizeof *warned; i++) {
        save_applied_model(&set, warned[i].both, warned[i].model, GRAFT_MODEL_LAST, path);
        apply_file(&set, &warned[i], path, "weights,", 1);
    }
    for (size_t i = 0; i < sizeof old / sizeof *old; i++) {
        save_applied_model(&set, old[i].both, old[i].model, GRAFT_MODEL_LAST, path);
        remove_option(path, "model.activation");
        apply_file(&set, &old[i], path, "an old file,", 0);
    }
    unlink(path);
    sample_dataset_fini(&set);
    return done();
}
