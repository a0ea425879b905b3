/* Checks that option workers changes who computes what and when, but not one bit of losses, weights, moments and
 * predictions, for every model, module, order and number of stages.
 *
 *     test_workers [few]
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_train.h"

#include <pthread.h>
#include <string.h>

/* The row of a hub has more entries than two tasks of kernel simd take. */
enum { N = 17000, N_FEW = 1500, FEATURES = 13, CLASSES = 4 };

static const graft_api       *apis[2]; /* contexts without and with workers, whose trainers are compared */
static const graft_train_api *train;
static struct sample_dataset  sets[2]; /* with dense and with sparse features */
static graft_error            error = GRAFT_INIT(graft_error);

/* A host that checks which threads call it. Any thread may call its allocator, but only the caller of the library its
 * log. */
static pthread_t       caller;
static _Atomic int64_t live_bytes, fail_at = -1, cancel_at = -1, logs_elsewhere, allocations_elsewhere;

static void *any_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    if (fail_at >= 0 && fail_at-- == 0) return NULL;
    if (cancel_at >= 0 && cancel_at-- == 0) apis[1]->cancel(apis[1]->context);
    allocations_elsewhere += !pthread_equal(caller, pthread_self());
    live_bytes += (int64_t)bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void any_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self, (void)alignment;
    live_bytes -= (int64_t)bytes;
    free(memory);
}

static void caller_log(void *self, graft_log_level level, const char *message)
{
    (void)self, (void)level, (void)message;
    logs_elsewhere += !pthread_equal(caller, pthread_self());
}

static void reset_workers(const graft_api *of)
{
    host_set_all(of, "layers=3 epochs=9 eval_every=1 threads=2 norm=layer dropout=0 row_masks=yes heads=2 jumping=none "
                     "reuse_input=yes input_dropout=0 order=given hidden=20,28 memory.limit=0 label_rate=0 "
                     "optimizer=adam recompute=no aggregator=mean residual=no dense.module=auto mxm.kernel=auto "
                     "model.type=f32 check=args profile=no workers=no");
}

enum { STEPS_MOST = 9 }; /* auto compares the first 7 steps */

struct outcome {
    graft_trainer *trainer;
    int            steps;
    graft_epoch    epoch[STEPS_MOST];
    float          logits[N][CLASSES];
    char           explained[2048];
};

static int32_t run_with(struct outcome *o, const graft_api *of, const struct sample_dataset *set)
{
    const graft_dense logits = { sizeof logits, GRAFT_F32, set->graph.csr.n_rows, CLASSES, CLASSES, o->logits };
    int32_t           rc = train->create(of->context, &set->dataset, &o->trainer, &error);

    for (int i = 0; i < o->steps && rc == GRAFT_OK; i++) {
        o->epoch[i] = output_epoch();
        rc = train->epoch(o->trainer, &o->epoch[i], &error);
    }
    output_clear_rows(&logits);
    if (rc == GRAFT_OK) rc = train->predict(o->trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error);
    if (rc == GRAFT_OK) rc = train->explain(o->trainer, o->explained, sizeof o->explained, &error);
    return rc;
}

static int same_results(const struct outcome *a, const struct outcome *b)
{
    for (int i = 0; i < a->steps; i++) {
        if (memcmp(&a->epoch[i].loss, &b->epoch[i].loss, sizeof(double)) != 0) return 0;
        if (memcmp(&a->epoch[i].validation_loss, &b->epoch[i].validation_loss, sizeof(double)) != 0) return 0;
    }
    return host_same_state(train, a->trainer, b->trainer) && memcmp(a->logits, b->logits, sizeof a->logits) == 0;
}

/* `piped` says whether the options suit the pipeline. It must then have done tasks, and otherwise none. */
static void check_bits(const struct sample_dataset *set, const char *settings, int piped)
{
    const char       *own = strstr(settings, "workers="); /* the last setting, if there is one */
    const char *const workers[] = { "workers=no", own != NULL ? own : "workers=sparse:1:7" };
    struct outcome   *o = calloc(2, sizeof *o);
    int32_t           rc = GRAFT_OK;

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        reset_workers(apis[i]);
        host_set_all(apis[i], settings);
        host_set(apis[i], workers[i]);
        o[i].steps = strstr(workers[1], "auto") != NULL ? STEPS_MOST : 2;
        rc = run_with(&o[i], apis[i], set);
    }
    if (!ok(rc == GRAFT_OK, "%s: the trainers with and without the pipeline train", settings)) {
        diag("%s", error.message);
    } else {
        ok(same_results(&o[0], &o[1]), "%s: losses, state and predictions are bitwise identical with the pipeline",
           settings);
        ok(strstr(o[0].explained, "\nworkers ") == NULL && strstr(o[1].explained, "\nworkers ") != NULL &&
               (strstr(o[1].explained, "steps run in the plain order, because") == NULL) == piped &&
               (strstr(o[1].explained, " tasks; idle ") != NULL) == piped &&
               (strstr(o[1].explained, ": auto takes the ") != NULL) == (piped && o[1].steps == STEPS_MOST),
           "%s: explain() says whether the pipeline is used", settings);
    }
    train->destroy(o[0].trainer);
    train->destroy(o[1].trainer);
    free(o);
}

/* A number of workers that leaves no thread for dense products must be refused. */
static void check_refusal(const char *settings, const char *words)
{
    graft_trainer *trainer = NULL;
    int32_t        rc;

    reset_workers(apis[0]);
    host_set_all(apis[0], settings);
    rc = train->create(apis[0]->context, &sets[0].dataset, &trainer, &error);
    ok(rc == GRAFT_ERR_OPTION && strstr(error.message, words) != NULL, "%s: %s", settings, words);
    train->destroy(trainer);
    host_set(apis[0], "workers=no");
}

static double first_loss(const struct sample_dataset *set, const char *settings)
{
    graft_trainer *trainer = NULL;
    graft_epoch    epoch = output_epoch();

    reset_workers(apis[1]);
    host_set_all(apis[1], settings);
    if (train->create(apis[1]->context, &set->dataset, &trainer, &error) == GRAFT_OK)
        train->epoch(trainer, &epoch, &error);
    train->destroy(trainer);
    return epoch.loss;
}

/* Each allocation of the first step fails in turn. The step fails for lack of memory, or has the same loss without
 * it. */
static void check_no_memory(const struct sample_dataset *set)
{
    const double loss = first_loss(set, "model=sage reuse_input=no workers=sparse:1");
    int64_t      k = 0, failed = 0, wrong = loss == 0, is_reached = 1;

    for (; is_reached && k < 1000; k++) {
        graft_trainer *trainer = NULL;
        graft_epoch    epoch = output_epoch();
        int32_t        rc = train->create(apis[1]->context, &set->dataset, &trainer, &error);

        wrong += rc != GRAFT_OK;
        fail_at = k;
        rc = train->epoch(trainer, &epoch, &error);
        is_reached = fail_at < 0;
        fail_at = -1;
        failed += rc == GRAFT_ERR_NOMEM;
        wrong += rc != GRAFT_ERR_NOMEM && (rc != GRAFT_OK || epoch.loss != loss);
        train->destroy(trainer);
    }
    ok(k > 3 && k < 1000 && failed > 0 && wrong == 0,
       "of %lld steps in which one allocation fails %lld fail, and the others work without that "
       "memory",
       (long long)k - 1, (long long)failed);
}

/* The host cancels the first step during each of its allocations in turn. The next step must have the loss of a first
 * one: what a cancelled step recorded and did not compute must not be reused. */
static void check_cancelled_step(const struct sample_dataset *set)
{
    const double loss = first_loss(set, "model=sage hidden=8,8 workers=sparse:1");
    int64_t      k = 0, cancelled = 0, wrong = loss == 0, is_reached = 1;

    for (; is_reached && k < 1000; k++) {
        graft_trainer *trainer = NULL;
        graft_epoch    epoch = output_epoch();
        int32_t        rc = train->create(apis[1]->context, &set->dataset, &trainer, &error);

        wrong += rc != GRAFT_OK;
        cancel_at = k;
        rc = train->epoch(trainer, &epoch, &error);
        is_reached = cancel_at < 0;
        cancel_at = -1;
        cancelled += rc == GRAFT_ERR_CANCELLED;
        if (rc == GRAFT_ERR_CANCELLED) rc = train->epoch(trainer, &epoch, &error);
        wrong += rc != GRAFT_OK || epoch.loss != loss;
        train->destroy(trainer);
    }
    ok(k > 3 && k < 1000 && cancelled > 0 && wrong == 0,
       "of %lld steps that the host cancels %lld return that, and the next step has the same loss", (long long)k - 1,
       (long long)cancelled);
}

static const char *const piped[] = {
    "model=sage",
    "model=sage norm=none hidden=36,20 dropout=0.4",
    "model=sage reuse_input=no input_dropout=0.2 workers=sparse:1",
    "model=sage reuse_input=no residual=yes hidden=20,20 workers=sparse:1:32",
    "model=sage aggregator=sum activation=elu workers=sparse:1:1",
    "model=gcn",
    "model=gcn hidden=36,20 reuse_input=no order=rcm",
    "model=gcn row_masks=no dropout=0.4 norm_order=after_dropout reuse_input=no",
    "model=gcn order=degree threads=3 workers=auto:7",
    "model=sage hidden=36,20 dropout=0.4 reuse_input=no threads=3 workers=auto:7",
    "model=gin threads=3 order=rcm workers=auto:7",
    "model=gin",
    "model=gin hidden=36,20 dropout=0.4 reuse_input=no order=rcm",
    "model=sgc propagation=3 order=community",
    "model=appnp propagation=3 workers=sparse:1:16",
    "model=sage dense.module=reference mxm.kernel=reference",
    "model=gin dense.module=reference reuse_input=no",
    "model=gcn profile=yes",
};

static const char *const plain[] = {
    "model=sage aggregator=max",
    "model=sage aggregator=min",
    "model=gat",
    "model=sage norm=batch",
    "model=sage jumping=cat",
    "model=gcn recompute=yes",
    "model=gcn check=full",
    "model=sage label_rate=0.5",
    "model=gcn model.type=bf16",
    "model=gcn threads=1 workers=auto:7",
};

/* Whether the build has a module. */
static int has_module(const char *name)
{
    graft_trainer *trainer = NULL;
    char           setting[64];
    int32_t        rc;

    reset_workers(apis[0]);
    snprintf(setting, sizeof setting, "%s", name);
    rc = apis[0]->set(apis[0]->context, "dense.module", setting, &error);
    if (rc == GRAFT_OK) rc = train->create(apis[0]->context, &sets[0].dataset, &trainer, &error);
    train->destroy(trainer);
    return rc == GRAFT_OK;
}

static void test_all_settings(void)
{
    for (size_t i = 0; i < sizeof piped / sizeof piped[0]; i++) check_bits(&sets[0], piped[i], 1);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) check_bits(&sets[0], plain[i], 0);
    check_bits(&sets[1], "model=sage", 1);
    check_bits(&sets[1], "model=gin input_dropout=0.2", 1);
    if (has_module("cblas")) check_bits(&sets[0], "model=sage dense.module=cblas dropout=0.4", 1);
    if (has_module("onednn")) check_bits(&sets[0], "model=gcn dense.module=onednn reuse_input=no", 1);
}

/* A few cases for sanitizers, under which all would take too long. */
static void test_few(void)
{
    static const char *const few[] = { "model=sage reuse_input=no residual=yes hidden=20,20 dropout=0.4",
                                       "model=gin reuse_input=no workers=auto:7", "model=appnp propagation=2" };

    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) check_bits(&sets[0], few[i], 1);
}

int main(int n, char **arguments)
{
    struct sample sample = { 17 };
    graft_host    host = GRAFT_INIT(graft_host);

    (void)arguments;
    caller = pthread_self();
    host.log = caller_log;
    host.allocate = any_allocate;
    host.deallocate = any_deallocate;
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &apis[0], &error) == GRAFT_OK &&
                graft_load(getenv("GRAFT_LIBRARY"), &host, &apis[1], &error) == GRAFT_OK,
            "two contexts are opened")) {
        diag("%s", error.message);
        return done();
    }
    train = graft_interface(apis[0], GRAFT_TRAIN_ID, sizeof *train);
    if (!ok(train != NULL, "it has " GRAFT_TRAIN_ID)) return done();
    for (int i = 0; i < 2; i++) sample_dataset_init(&sets[i], &sample, n > 1 ? N_FEW : N, FEATURES, CLASSES, 0, i);
    check_refusal("model=sage threads=2 workers=sparse:5", "is sparse:5, and threads are 2");
    check_refusal("model=sage threads=2 workers=sparse:2", "expected fewer, or threads=3 or more");
    check_refusal("model=gcn threads=1 workers=sparse:1", "expected fewer, or threads=2 or more");
    if (n > 1) test_few();
    else test_all_settings();
    if (n == 1) check_no_memory(&sets[0]);
    if (n == 1) check_cancelled_step(&sets[0]);
    for (int i = 0; i < 2; i++) sample_dataset_fini(&sets[i]);
    for (int i = 0; i < 2; i++) apis[i]->close(apis[i]->context);
    ok(live_bytes == 0 && logs_elsewhere == 0,
       "all memory is freed, and only the calling thread has written to the log");
    diag("%lld allocations in other threads", (long long)allocations_elsewhere);
    return done();
}
