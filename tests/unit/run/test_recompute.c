/* Checks that option recompute changes what a trainer stores but nothing that it computes: losses, weights with their
 * moments, and predictions must be bitwise identical to those without it, which test_gradient compares with the oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_train.h"

#include <string.h>

enum { N = 2500, FEATURES = 13, CLASSES = 4, TRAINED = 40 };

static const graft_api       *apis[2], *api; /* contexts with recompute=no and yes, whose trainers are compared */
static const graft_train_api *train;
static struct sample_dataset  set;
static graft_error            error = GRAFT_INIT(graft_error);
static const char *const      models[] = { "mlp", "sage", "gcn", "gin", "gat", "sgc", "appnp" };

#define GROWING "20,28,36"
#define SHRINKING "36,28,20"

static void reset(const graft_api *of)
{
    host_set_all(of, "layers=4 epochs=3 eval_every=1 threads=2 heads=2 norm=layer dropout=0 row_masks=yes "
                     "reuse_input=yes input_dropout=0 order=given hidden=" GROWING " memory.limit=0 "
                     "label_rate=0 optimizer=adam");
}

/* The results of a trainer after each epoch and at the end. */
struct outcome {
    graft_trainer *trainer;
    graft_epoch    epoch[3];
    float          logits[N][CLASSES];
    char           explained[1024];
    double         activations; /* megabytes */
};

static int32_t run_trainer(struct outcome *o, const graft_api *of, const char *recompute)
{
    const graft_dense logits = { sizeof logits, GRAFT_F32, N, CLASSES, CLASSES, o->logits };
    const char       *found;
    int32_t           rc = of->set(of->context, "recompute", recompute, &error);

    if (rc == GRAFT_OK) rc = train->create(of->context, &set.dataset, &o->trainer, &error);
    for (int i = 0; i < 3 && rc == GRAFT_OK; i++) {
        o->epoch[i] = output_epoch();
        rc = train->epoch(o->trainer, &o->epoch[i], &error);
    }
    output_clear_rows(&logits);
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

/* `saves` says whether less must be stored with recompute=yes. */
static void check_same(const char *model, const char *settings, int saves)
{
    struct outcome *o = calloc(2, sizeof *o);
    int32_t         rc = GRAFT_OK;

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        reset(apis[i]);
        rc = apis[i]->set(apis[i]->context, "model", model, &error);
        host_set_all(apis[i], settings);
        if (rc == GRAFT_OK) rc = run_trainer(&o[i], apis[i], i == 0 ? "no" : "yes");
    }
    if (!ok(rc == GRAFT_OK, "%s, %s: the trainers with and without recompute train", model, settings)) {
        diag("%s", error.message);
    } else {
        ok(same_epochs(&o[0], &o[1]) && host_same_state(train, o[0].trainer, o[1].trainer) &&
               memcmp(o[0].logits, o[1].logits, sizeof o[0].logits) == 0,
           "%s, %s: losses, state and predictions are bitwise identical", model, settings);
        ok(saves ? o[1].activations < o[0].activations - 0.05 : o[1].activations <= o[0].activations,
           "%s, %s: activations of %.1f MB become %.1f MB with recompute", model, settings, o[0].activations,
           o[1].activations);
    }
    train->destroy(o[0].trainer);
    train->destroy(o[1].trainer);
    free(o);
}

static void test_recompute_bits(const char *model)
{
    const int gat = strcmp(model, "gat") == 0, gin = strcmp(model, "gin") == 0;
    /* The layers of these models that have weights are those of mlp, which stores nothing extra without a norm. */
    const int mlp = strcmp(model, "mlp") == 0 || strcmp(model, "sgc") == 0 || strcmp(model, "appnp") == 0;

    check_same(model, "", 1);
    check_same(model, "norm=none", !mlp);
    check_same(model, "norm=none hidden=" SHRINKING, gat || gin);
    check_same(model, "hidden=" SHRINKING " reuse_input=no", 1);
    check_same(model, "dropout=0.4 input_dropout=0.2 order=degree", 1);
    check_same(model, "norm=none dropout=0.4 order=rcm", !mlp);
    check_same(model, "row_masks=no dropout=0.4 reuse_input=no", 1);
    check_same(model, "label_rate=0.62 dropout=0.4", 1);
    check_same(model, "label_rate=0.5 reuse_input=no order=rcm", 1);
    check_same(model, "optimizer=sgd:0.5 layers=2 hidden=20", 0);
}

/* Row masks must be in use in test_recompute_bits(), which would not try them otherwise. */
static void test_masked(void)
{
    struct outcome *o = calloc(1, sizeof *o);

    reset(api);
    ok(api->set(api->context, "model", "sage", &error) == GRAFT_OK && run_trainer(o, api, "yes") == GRAFT_OK &&
           strstr(o->explained, "a step needs") != NULL && strstr(o->explained, "\nrecompute ") != NULL,
       "masks of rows are used, and explain() mentions recompute");
    train->destroy(o->trainer);
    free(o);
}

/* Create a trainer with a memory limit and a value of option recompute. Returns whether memory is insufficient. */
static int recompute_refused(const char *limit, const char *recompute)
{
    graft_trainer *trainer = NULL;
    int32_t        rc = api->set(api->context, "memory.limit", limit, &error);

    if (rc == GRAFT_OK) rc = api->set(api->context, "recompute", recompute, &error);
    if (rc == GRAFT_OK) rc = train->create(api->context, &set.dataset, &trainer, &error);
    train->destroy(trainer);
    return rc == GRAFT_ERR_NOMEM;
}

/* The statement of the error about recompute must be true. The error is made before the graph and the features, from
 * the least required memory, so at one limit or two the memory may be insufficient for their copies. */
static void test_recompute_limit(void)
{
    int  hinted = 0, plain = 0, wrong = 0, short_of = 0;
    char limit[16];

    reset(api);
    host_set_all(api, "model=sage layers=12 hidden=64");
    for (int megabytes = 1; megabytes < 40; megabytes++) {
        snprintf(limit, sizeof limit, "%d", megabytes);
        if (!recompute_refused(limit, "no")) continue;
        if (strstr(error.message, "recompute=yes") != NULL) {
            hinted++;
            if (recompute_refused(limit, "yes")) short_of++;
        } else {
            plain++;
            if (!recompute_refused(limit, "yes")) wrong++;
        }
    }
    ok(hinted > 3 && plain > 3 && wrong == 0 && short_of <= 2,
       "%d refusals advise recompute, and except for %d it helps; %d do not advise it, and it "
       "would not help",
       hinted, short_of, plain);
    ok(!recompute_refused("0", "no"), "without a memory limit no trainer is refused");
    reset(api);
}

/* Few training vertices, far from vertex 0 that gathers from all, so that a step does not need all rows. */
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

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &apis[0], &error) == GRAFT_OK &&
                graft_load(getenv("GRAFT_LIBRARY"), NULL, &apis[1], &error) == GRAFT_OK,
            "two contexts are opened")) {
        diag("%s", error.message);
        return done();
    }
    api = apis[1];
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    if (!ok(train != NULL, "it has " GRAFT_TRAIN_ID)) return done();
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    split_few();
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) test_recompute_bits(models[i]);
    test_masked();
    test_recompute_limit();
    sample_dataset_fini(&set);
    for (int i = 0; i < 2; i++) apis[i]->close(apis[i]->context);
    return done();
}
