/* Option recompute changes what a trainer keeps and nothing that it computes: losses, weights with their moments, and
 * predictions are the same bits as without, which test_gradient compares with the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_train.h"

#include <string.h>

enum { N = 2500, FEATURES = 13, CLASSES = 4, TRAINED = 40, SETTINGS = 8 };

static const graft_api      *api;
static const graft_train    *train;
static struct sample_dataset set;
static graft_error           error = GRAFT_INIT(graft_error);
static const char *const     models[] = { "mlp", "sage", "gcn", "gin", "gat" };
static const char *const growing = "20,28,36", *const shrinking = "36,28,20";

/* Options of both trainers, up to a NULL; the others have what reset() gives them. */
struct settings {
    const char *pair[SETTINGS][2];
};

static int32_t set_all(const char *const pair[][2], int count)
{
    int32_t rc = GRAFT_OK;

    for (int i = 0; i < count && pair[i][0] != NULL && rc == GRAFT_OK; i++)
        rc = api->set(api->context, pair[i][0], pair[i][1], &error);
    return rc;
}

static int32_t reset(void)
{
    static const char *const pair[][2] = { { "layers", "4" },        { "epochs", "3" },      { "eval_every", "1" },
                                           { "threads", "2" },       { "heads", "2" },       { "norm", "layer" },
                                           { "dropout", "0" },       { "row_masks", "yes" }, { "reuse_input", "yes" },
                                           { "input_dropout", "0" }, { "order", "given" },   { "hidden", growing },
                                           { "memory.limit", "0" },  { "gin_eps", "0.25" },  { "label_rate", "0" } };

    return set_all(pair, sizeof pair / sizeof pair[0]);
}

/* What a trainer comes to, epoch by epoch and at the end. */
struct outcome {
    graft_trainer *trainer;
    graft_epoch    epoch[3];
    float          logits[N][CLASSES];
    char           explained[1024];
    double         activations; /* MB */
};

static int32_t run(struct outcome *o, const char *recompute)
{
    const graft_dense logits = { sizeof logits, GRAFT_F32, N, CLASSES, CLASSES, o->logits };
    const char       *found;
    int32_t           rc = api->set(api->context, "recompute", recompute, &error);

    if (rc == GRAFT_OK) rc = train->create(api->context, &set.dataset, &o->trainer, &error);
    for (int i = 0; i < 3 && rc == GRAFT_OK; i++) {
        o->epoch[i] = GRAFT_INIT(graft_epoch);
        rc = train->epoch(o->trainer, &o->epoch[i], &error);
    }
    if (rc == GRAFT_OK) rc = train->predict(o->trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error);
    if (rc == GRAFT_OK) rc = train->explain(o->trainer, o->explained, sizeof o->explained, &error);
    if (rc != GRAFT_OK) return rc;
    found = strstr(o->explained, "activations ");
    o->activations = found != NULL ? strtod(found + strlen("activations "), NULL) : -1;
    return rc;
}

static int same_epochs(const struct outcome *a, const struct outcome *b)
{
    for (int i = 0; i < 3; i++) {
        if (memcmp(&a->epoch[i].loss, &b->epoch[i].loss, sizeof(double)) != 0) return 0;
        if (memcmp(&a->epoch[i].validation_loss, &b->epoch[i].validation_loss, sizeof(double)) != 0) return 0;
    }
    return 1;
}

/* Every array of the state. */
static int same_state(const struct outcome *a, const struct outcome *b)
{
    graft_state_item left = GRAFT_INIT(graft_state_item), right = GRAFT_INIT(graft_state_item);
    int32_t          i;

    for (i = 0; train->state_item(a->trainer, i, &left, NULL) == GRAFT_OK; i++) {
        uint64_t bytes = left.dtype == GRAFT_F32 ? 4 : 8;

        if (train->state_item(b->trainer, i, &right, NULL) != GRAFT_OK) return 0;
        for (int32_t d = 0; d < left.n_dims; d++) bytes *= (uint64_t)left.shape[d];
        if (strcmp(left.name, right.name) != 0 || memcmp(left.data, right.data, bytes) != 0) {
            diag("%s differs", left.name);
            return 0;
        }
    }
    return i > 8;
}

/* `saves`: there must be less to keep. */
static void check(const char *model, const struct settings *settings, int saves, const char *name)
{
    struct outcome *o = calloc(2, sizeof *o);
    int32_t         rc = reset();

    if (rc == GRAFT_OK) rc = api->set(api->context, "model", model, &error);
    if (rc == GRAFT_OK) rc = set_all(settings->pair, SETTINGS);
    if (rc == GRAFT_OK) rc = run(&o[0], "no");
    if (rc == GRAFT_OK) rc = run(&o[1], "yes");
    if (!ok(rc == GRAFT_OK, "%s, %s: both train", model, name)) {
        diag("%s", error.message);
    } else {
        ok(same_epochs(&o[0], &o[1]) && same_state(&o[0], &o[1]) &&
               memcmp(o[0].logits, o[1].logits, sizeof o[0].logits) == 0,
           "%s, %s: losses, state and predictions have the same bits", model, name);
        ok(saves ? o[1].activations < o[0].activations - 0.05 : o[1].activations <= o[0].activations,
           "%s, %s: activations of %.1f MB are %.1f", model, name, o[0].activations, o[1].activations);
    }
    train->destroy(o[0].trainer);
    train->destroy(o[1].trainer);
    free(o);
}

static void test_bits(const char *model)
{
    const int             mlp = strcmp(model, "mlp") == 0, gat = strcmp(model, "gat") == 0;
    const int             gin = strcmp(model, "gin") == 0;
    const struct settings plain = { { { NULL } } };
    const struct settings bare = { { { "norm", "none" } } };
    const struct settings narrow = { { { "norm", "none" }, { "hidden", shrinking } } };
    const struct settings narrow_norm = { { { "hidden", shrinking }, { "reuse_input", "no" } } };
    const struct settings dropped = { { { "dropout", "0.4" }, { "input_dropout", "0.2" }, { "order", "degree" } } };
    const struct settings bare_dropped = { { { "norm", "none" }, { "dropout", "0.4" }, { "order", "rcm" } } };
    const struct settings all_rows = { { { "row_masks", "no" }, { "dropout", "0.4" }, { "reuse_input", "no" } } };
    const struct settings labels = { { { "label_rate", "0.62" }, { "dropout", "0.4" } } };
    const struct settings labels_anew = { { { "label_rate", "0.5" }, { "reuse_input", "no" }, { "order", "rcm" } } };
    const struct settings sgd = {
        { { "optimizer", "sgd" }, { "momentum", "0.5" }, { "layers", "2" }, { "hidden", "20" } }
    };

    check(model, &plain, 1, "plain");
    check(model, &bare, !mlp, "no norm");
    check(model, &narrow, gat || gin, "no norm, shrinking");
    check(model, &narrow_norm, 1, "shrinking, features aggregated anew");
    check(model, &dropped, 1, "dropout, by degree");
    check(model, &bare_dropped, !mlp, "no norm, dropout, rcm");
    check(model, &all_rows, 1, "all rows, dropout, features aggregated anew");
    check(model, &labels, 1, "labels as input");
    check(model, &labels_anew, 1, "labels as input, features aggregated anew");
    check(model, &sgd, 0, "two layers, sgd");
    api->set(api->context, "optimizer", "adam", &error);
}

/* Masks of rows are on in what test_bits() does, or it would not try them. */
static void test_masked(void)
{
    struct outcome *o = calloc(1, sizeof *o);

    ok(reset() == GRAFT_OK && api->set(api->context, "model", "sage", &error) == GRAFT_OK &&
           run(o, "yes") == GRAFT_OK && strstr(o->explained, "a step needs") != NULL &&
           strstr(o->explained, "\nrecompute ") != NULL,
       "masks of rows are on, and explain() tells of recompute");
    train->destroy(o->trainer);
    free(o);
}

/* The sum in the message of a refusal, or a part of it. */
static int refused(const char *limit, const char *recompute)
{
    graft_trainer *trainer = NULL;
    int32_t        rc = api->set(api->context, "memory.limit", limit, &error);

    if (rc == GRAFT_OK) rc = api->set(api->context, "recompute", recompute, &error);
    if (rc == GRAFT_OK) rc = train->create(api->context, &set.dataset, &trainer, &error);
    train->destroy(trainer);
    return rc == GRAFT_ERR_NOMEM;
}

/* What the message of a refusal says about recompute is what happens when it is tried. It is given before graph and
 * features are made, as what is needed at least: at one limit or two it may not be enough for their copies too. */
static void test_limit(void)
{
    int  hinted = 0, plain = 0, wrong = 0, short_of = 0;
    char limit[16];

    reset();
    api->set(api->context, "model", "sage", &error);
    api->set(api->context, "layers", "12", &error);
    api->set(api->context, "hidden", "64", &error);
    for (int megabytes = 1; megabytes < 40; megabytes++) {
        snprintf(limit, sizeof limit, "%d", megabytes);
        if (!refused(limit, "no")) continue;
        if (strstr(error.message, "recompute=yes") != NULL) {
            hinted++;
            if (refused(limit, "yes")) short_of++;
        } else {
            plain++;
            if (!refused(limit, "yes")) wrong++;
        }
    }
    ok(hinted > 3 && plain > 3 && wrong == 0 && short_of <= 2,
       "%d refusals say that recompute might do, and but for %d it does; %d do not, and it does not", hinted, short_of,
       plain);
    ok(!refused("0", "no"), "without a limit none is refused");
    reset();
}

/* Few to train, far from vertex 0 that gathers from all, so that a step does not need all rows. */
static void split_few(void)
{
    for (int64_t v = 0; v < N; v++) {
        const int trained = v >= N / 2 && v < N / 2 + TRAINED;

        set.split[v] = trained ? GRAFT_SPLIT_TRAIN : v % 2 ? GRAFT_SPLIT_VALIDATION : GRAFT_SPLIT_TEST;
        set.labels[v] = (int32_t)(v % CLASSES);
    }
}

int main(void)
{
    struct sample sample = { 11 };

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    if (!ok(train != NULL, "it has " GRAFT_TRAIN_ID)) return done();
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    split_few();
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) test_bits(models[i]);
    test_masked();
    test_limit();
    sample_dataset_fini(&set);
    api->close(api->context);
    return done();
}
