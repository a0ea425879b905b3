/* Checks graft.model/1: a model that is copied out of a trainer, saved, and loaded must predict what the trainer
 * predicts, in one process and over ranks; its state must continue bitwise identically in another trainer; and its
 * weights must work on another graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 97, FEATURES = 7, CLASSES = 4, EPOCHS = 3 };

struct job {
    struct sample_dataset set, other; /* the second one has other vertices and edges */
    int                   serial;
    char                  path[64];
    float                *logits[2]; /* predictions of the trainer, and of the model */
    int32_t              *labels[2];
};

static int32_t model_wrong(struct host *host, const char *words)
{
    snprintf(host->error.message, sizeof host->error.message, "%s", words);
    return GRAFT_STATUS_END;
}

static int32_t open_model_trainer(struct host *host, const graft_dataset *data, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (!job->serial) return host_trainer_create(host, data, SLICES_ODD, t);
    t->slice.dataset = *data;
    t->slice.end = data->n_vertices;
    return host->train->create(host->api->context, data, &t->trainer, &host->error);
}

static void close_model_trainer(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

static int32_t train_some(struct host *host, graft_trainer *trainer)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) rc = host->train->epoch(trainer, &epoch, &host->error);
    return rc;
}

static graft_dense logits_of(const struct host_trainer *t, float *all)
{
    const graft_dense out = { sizeof out, GRAFT_F32, t->slice.end - t->slice.first,
                              CLASSES,    CLASSES,   all + t->slice.first * CLASSES };

    return out;
}

/* Save a model and load it on all ranks, although the context has other options now. */
static int32_t save_and_load(struct host *host, const graft_model_api *models, graft_trainer *trainer, int32_t what,
                             graft_model **model)
{
    const struct job *job = host->all->arg;
    graft_model      *made = NULL;
    int32_t           rc = models->create(trainer, what, &made, &host->error);

    if (rc == GRAFT_OK && host->rank == 0) rc = models->save(made, job->path, &host->error);
    models->destroy(made);
    /* All ranks wait here for rank 0, which opens the file. */
    if (rc == GRAFT_OK)
        rc = models->load(host->api->context, job->serial ? NULL : &host->transport, host->rank == 0 ? job->path : NULL,
                          model, &host->error);
    return rc;
}

static void flip_bit_of(const char *path, long at, int whence)
{
    FILE *file = fopen(path, "r+b");
    int   byte;

    if (file == NULL || fseek(file, at, whence) != 0 || (byte = fgetc(file)) == EOF) exit(2);
    fseek(file, at, whence);
    fputc(byte ^ 4, file);
    fclose(file);
}

/* Flip a bit in a text or in a weight. All ranks must refuse the file with one sentence, which names the place. */
static int32_t load_damaged(struct host *host, const graft_model_api *models)
{
    const struct job *job = host->all->arg;
    int32_t           rc = GRAFT_OK;

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        graft_model *model = NULL;
        int32_t      loaded;

        if (host->rank == 0) flip_bit_of(job->path, i == 0 ? 30 : -1, i == 0 ? SEEK_SET : SEEK_END);
        loaded = models->load(host->api->context, job->serial ? NULL : &host->transport,
                              host->rank == 0 ? job->path : NULL, &model, &host->error);
        models->destroy(model);
        if (host->rank == 0) flip_bit_of(job->path, i == 0 ? 30 : -1, i == 0 ? SEEK_SET : SEEK_END);
        if (loaded != GRAFT_ERR_FORMAT || host->error.rank != 0 || strstr(host->error.message, "from byte ") == NULL)
            rc = model_wrong(host, i == 0 ? "a damaged text is not refused" : "a damaged weight is not refused");
    }
    return rc;
}

static int32_t check_model_info(struct host *host, const graft_model_api *models, graft_model *model, int state)
{
    graft_model_info info = GRAFT_INIT(graft_model_info);
    const char      *key, *value;
    int              found = 0;
    const int32_t    rc = models->info(model, &info, &host->error);

    if (rc < 0) return rc;
    if (info.n_features != FEATURES || info.n_classes != CLASSES || info.epoch != EPOCHS || info.has_state != state ||
        info.widths[0] != FEATURES || info.widths[info.n_layers] != CLASSES || info.n_weights <= 0)
        return model_wrong(host, "info is wrong");
    for (int32_t i = 0; models->metadata(model, i, &key, &value, NULL) == GRAFT_OK; i++)
        found += (strcmp(key, "model.model") == 0 && strcmp(value, info.kind) == 0) ||
                 (strcmp(key, "model.layers") == 0 && strcmp(value, "2") == 0);
    return found == 2 ? GRAFT_OK : model_wrong(host, "the metadata lack the options of the model");
}

/* Compare the predictions of trainer and model, while the context has options that are not those of the model. */
static int32_t compare_predictions(struct host *host, const graft_model_api *models, struct host_trainer *t,
                                   graft_model *model)
{
    struct job       *job = host->all->arg;
    const graft_dense mine = logits_of(t, job->logits[0]), theirs = logits_of(t, job->logits[1]);
    graft_dataset     data = t->slice.dataset;
    int32_t           rc =
        host->train->predict(t->trainer, GRAFT_WEIGHTS_LAST, job->labels[0] + t->slice.first, &mine, &host->error);

    host->train->destroy(t->trainer); /* a trainer would keep its options */
    t->trainer = NULL;
    data.n_classes = 0; /* a host without labels does not know the number of classes */
    host_set(host->api, "hidden=33");
    host_set(host->api, "model=mlp");
    host_set(host->api, "aggregator=max");
    if (rc == GRAFT_OK) output_clear_rows(&theirs);
    rc = models->predict(model, GRAFT_WEIGHTS_LAST, &data, job->labels[1] + t->slice.first, &theirs, &host->error);
    return rc;
}

/* A new trainer must get the whole state, and one of another graph the weights. */
static int32_t check_apply(struct host *host, const graft_model_api *models, struct host_trainer *from,
                           graft_model *state)
{
    const struct job   *job = host->all->arg;
    struct host_trainer next = { 0 }, other = { 0 };
    graft_model        *weights = NULL;
    graft_state_item    a = GRAFT_INIT(graft_state_item), b = a;
    int32_t             rc = open_model_trainer(host, &job->set.dataset, &next);

    if (rc == GRAFT_OK) rc = models->apply(state, next.trainer, &host->error);
    if (rc == GRAFT_OK && !host_same_state(host->train, from->trainer, next.trainer))
        rc = model_wrong(host, "a state that is applied is another one");
    if (rc == GRAFT_OK) rc = train_some(host, from->trainer);
    if (rc == GRAFT_OK) rc = train_some(host, next.trainer);
    if (rc == GRAFT_OK && !host_same_state(host->train, from->trainer, next.trainer))
        rc = model_wrong(host, "training does not continue bitwise identically");
    if (rc == GRAFT_OK) rc = models->create(from->trainer, GRAFT_MODEL_LAST, &weights, &host->error);
    if (rc == GRAFT_OK) rc = open_model_trainer(host, &job->other.dataset, &other);
    if (rc == GRAFT_OK) rc = models->apply(weights, other.trainer, &host->error);
    for (int32_t i = 0; rc == GRAFT_OK && models->item(weights, i, &a, NULL) == GRAFT_OK; i++) {
        const int64_t count = a.shape[0] * (a.n_dims == 2 ? a.shape[1] : 1);

        rc = host->train->state_item(other.trainer, i, &b, &host->error);
        if (rc == GRAFT_OK && (strcmp(a.name, b.name) != 0 || memcmp(a.data, b.data, (size_t)count * 4) != 0))
            rc = model_wrong(host, "weights that are applied to another graph are others");
    }
    if (rc == GRAFT_OK) rc = train_some(host, other.trainer);
    models->destroy(weights);
    close_model_trainer(host, &other);
    close_model_trainer(host, &next);
    return rc;
}

static int32_t model_body(struct host *host)
{
    const struct job      *job = host->all->arg;
    const graft_model_api *models = host->api->get_interface(host->api->context, GRAFT_MODEL_ID);
    struct host_trainer    t = { 0 };
    graft_model           *model = NULL, *state = NULL;
    int32_t                rc = open_model_trainer(host, &job->set.dataset, &t);

    if (rc == GRAFT_OK) rc = train_some(host, t.trainer);
    if (rc == GRAFT_OK) rc = save_and_load(host, models, t.trainer, GRAFT_MODEL_STATE, &state);
    if (rc == GRAFT_OK) rc = load_damaged(host, models);
    if (rc == GRAFT_OK) rc = check_model_info(host, models, state, 1);
    if (rc == GRAFT_OK) rc = check_apply(host, models, &t, state);
    if (rc == GRAFT_OK) rc = models->apply(state, t.trainer, &host->error); /* restores the state of the trainer */
    if (rc == GRAFT_OK) rc = save_and_load(host, models, t.trainer, GRAFT_MODEL_LAST, &model);
    if (rc == GRAFT_OK) rc = check_model_info(host, models, model, 0);
    if (rc == GRAFT_OK) rc = compare_predictions(host, models, &t, model);
    models->destroy(model);
    models->destroy(state);
    close_model_trainer(host, &t);
    return rc;
}

static const char *differing_predictions(const struct job *job)
{
    for (int64_t i = 0; i < N * CLASSES; i++) {
        const double a = (double)job->logits[0][i], b = (double)job->logits[1][i];

        if (!(fabs(a - b) <= 1e-4 * (1 + fabs(a)))) return "logits of the model are not those of the trainer";
    }
    for (int64_t v = 0; v < N; v++)
        if (job->labels[0][v] != job->labels[1][v]) return "labels of the model are not those of the trainer";
    return NULL;
}

static void test_saved_model(int32_t n_ranks, const char *more, int sparse)
{
    static struct hosts hosts;
    struct sample       sample = { 5 };
    struct job          job = { .serial = n_ranks == 0 };
    const char         *given[16] = { "layers=2", "hidden=12", "epochs=99", "threads=2" }, *fault;
    char                text[160];
    int                 count = 4;

    snprintf(job.path, sizeof job.path, "/tmp/graft-model-%d.safetensors", (int)getpid());
    sample_dataset_init(&job.set, &sample, N, FEATURES, CLASSES, 0, sparse);
    sample_dataset_init(&job.other, &sample, N + 20, FEATURES, CLASSES, 0, sparse);
    for (int i = 0; i < 2; i++) job.logits[i] = oracle_new(N * CLASSES, sizeof(float));
    for (int i = 0; i < 2; i++) job.labels[i] = oracle_new(N, sizeof(int32_t));
    for (int i = 0; i < 2; i++) output_clear(job.logits[i], N * CLASSES * sizeof(float));
    for (int i = 0; i < 2; i++) output_clear(job.labels[i], N * sizeof(int32_t));
    if (!job.serial) given[count++] = "partition=hash";
    snprintf(text, sizeof text, "%s", more);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) given[count++] = word;
    given[count] = NULL;
    hosts_run(&hosts, job.serial ? 1 : n_ranks, given, model_body, &job);
    fault = hosts_fault(&hosts);
    if (fault == NULL) fault = differing_predictions(&job);
    ok_or(fault == NULL, fault, "%s%s on %d ranks", more, sparse ? ", sparse features" : "", n_ranks);
    for (int i = 0; i < 2; i++) free(job.logits[i]);
    for (int i = 0; i < 2; i++) free(job.labels[i]);
    sample_dataset_fini(&job.set);
    sample_dataset_fini(&job.other);
    unlink(job.path);
    strcat(job.path, ".previous");
    unlink(job.path);
}

int main(void)
{
    static const char *const models[] = { "model=sage",
                                          "model=sage aggregator=min",
                                          "model=gcn symmetrize=yes",
                                          "model=gat heads=2",
                                          "model=gin",
                                          "model=mlp",
                                          "model=sgc layers=2 propagation=2",
                                          "model=appnp layers=2 propagation=3" };

    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        test_saved_model(0, models[i], 0);
        test_saved_model(3, models[i], 0);
    }
    test_saved_model(0, "model=sage", 1);
    test_saved_model(2, "model=gcn", 1);
    test_saved_model(0, "model=sage label_rate=0.5 optimizer=sgd:0.9", 0);
    test_saved_model(2, "model=gin label_rate=0.5", 0);
    test_saved_model(0, "model=gcn order=degree normalize_features=yes input_dropout=0.3", 0);
    test_saved_model(2, "model=gat heads=4 order=rcm norm=none", 0);
    test_saved_model(0, "model=gat heads=2 edge_features=array", 0);
    test_saved_model(3, "model=gat heads=2 edge_features=array symmetrize=yes order=rcm", 0);
    return done();
}
