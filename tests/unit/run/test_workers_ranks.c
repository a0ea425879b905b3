/* Checks that option workers over ranks does not change one bit of losses, weights, moments and predictions: for
 * models, row masks, codecs, stale rows, and ranks that share columns. If an allocation of one rank fails in a step,
 * all ranks fail, or the step has the same results.
 *
 *     test_workers_ranks [few]        or, under mpiexec, one case
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <string.h>
#include <unistd.h>

enum { N = 5000, N_FEW = 800, FEATURES = 13, CLASSES = 4, STEPS_MOST = 9, STATE_BYTES = 1 << 20 };

static struct hosts hosts;

/* Two trainers over the same graph, without and with workers. */
struct job {
    struct sample_dataset set;
    enum slices           way;
    const char           *settings;
    int                   steps;
    int                   same[HOSTS_MOST], piped[HOSTS_MOST];
    char                  explained[8192]; /* explain() of the first rank */
};

/* The results of one trainer: losses and predictions of a rank, and its state, one array after the other. */
struct outcome {
    double  loss[STEPS_MOST], validation[STEPS_MOST];
    float   logits[N * CLASSES];
    int64_t state_bytes;
    char    state[STATE_BYTES];
    char    explained[8192];
};

static void keep_arrays(const graft_train_api *train, graft_trainer *trainer, struct outcome *o)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        int64_t bytes = item.dtype == GRAFT_F32 ? 4 : 8;

        for (int32_t d = 0; d < item.n_dims; d++) bytes *= item.shape[d];
        if (o->state_bytes + bytes > STATE_BYTES) {
            printf("Bail out! there is no memory for %s\n", item.name);
            exit(2);
        }
        memcpy(o->state + o->state_bytes, item.data, (size_t)bytes);
        o->state_bytes += bytes;
    }
}

static int32_t keep_run(struct host *host, const graft_dataset *set, int steps, int64_t n, struct outcome *o)
{
    const graft_dense logits = { sizeof logits, GRAFT_F32, n, CLASSES, CLASSES, o->logits };
    graft_trainer    *trainer = NULL;
    int32_t           rc = host->train->create(host->api->context, set, &trainer, &host->error);

    for (int i = 0; i < steps && rc == GRAFT_OK; i++) {
        graft_epoch epoch = output_epoch();

        rc = host->train->epoch(trainer, &epoch, &host->error);
        o->loss[i] = epoch.loss;
        o->validation[i] = epoch.validation_loss;
    }
    output_clear_rows(&logits);
    if (rc == GRAFT_OK) rc = host->train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &host->error);
    if (rc == GRAFT_OK) rc = host->train->explain(trainer, o->explained, sizeof o->explained, &host->error);
    if (rc == GRAFT_OK) keep_arrays(host->train, trainer, o);
    host->train->destroy(trainer);
    return rc;
}

static int same_outcome(const struct outcome *a, const struct outcome *b)
{
    return a->loss[0] != 0 && memcmp(a->loss, b->loss, sizeof a->loss) == 0 &&
           memcmp(a->validation, b->validation, sizeof a->validation) == 0 && a->state_bytes == b->state_bytes &&
           memcmp(a->state, b->state, (size_t)a->state_bytes) == 0 &&
           memcmp(a->logits, b->logits, sizeof a->logits) == 0;
}

static int32_t compare_body(struct host *host)
{
    struct job       *job = host->all->arg;
    const char       *own = strstr(job->settings, "workers="); /* the last setting, if there is one */
    const char *const workers[] = { "workers=no", own != NULL ? own : "workers=sparse:1:7" };
    struct outcome   *o = calloc(2, sizeof *o);
    graft_graph      *graph = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &job->set.dataset, job->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        host_set(host->api, workers[i]);
        rc = keep_run(host, &s.dataset, job->steps, s.end - s.first, &o[i]);
    }
    job->same[host->rank] = same_outcome(&o[0], &o[1]);
    job->piped[host->rank] =
        strstr(o[0].explained, " tasks; idle ") == NULL && strstr(o[1].explained, " tasks; idle ") != NULL;
    if (host->rank == 0) memcpy(job->explained, o[1].explained, sizeof job->explained);
    free(o);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

/* Options of all cases, which come before those of a case. */
static const char usual[] = "layers=3 epochs=9 eval_every=1 threads=2 norm=layer dropout=0 hidden=20,28 seed=5 "
                            "order=given partition=hash halo.timeout=60 log.level=error ";

/* Options as hosts take them, one after the other, the last one NULL. */
struct settings {
    char        text[1024];
    const char *at[HOST_SETTINGS];
};

static void settings_init(struct settings *s, const char *of_case)
{
    int count = 0;

    snprintf(s->text, sizeof s->text, "%s%s", usual, of_case);
    for (char *word = strtok(s->text, " "); word != NULL && count + 1 < HOST_SETTINGS; word = strtok(NULL, " "))
        if (strncmp(word, "workers=", strlen("workers=")) != 0) s->at[count++] = word;
    s->at[count] = NULL;
}

static void check_ranks(const struct sample_dataset *set, int32_t n_ranks, const char *of_case, int piped)
{
    struct job     *job = calloc(1, sizeof *job);
    struct settings settings;
    int             clean, same = 1, as_said = 1;

    job->set = *set;
    job->way = n_ranks > 2 ? SLICES_ODD : SLICES_EVEN;
    job->settings = of_case;
    job->steps = strstr(of_case, "workers=auto") != NULL ? STEPS_MOST : 3;
    settings_init(&settings, of_case);
    clean = hosts_run(&hosts, n_ranks, settings.at, compare_body, job);
    if (!ok(clean && hosts_fault(&hosts) == NULL, "%d ranks, %s: the trainers with and without the pipeline train",
            n_ranks, of_case)) {
        diag("%s", hosts_fault(&hosts));
    } else {
        for (int32_t i = 0; i < n_ranks; i++) {
            same = same && job->same[i];
            as_said = as_said && job->piped[i] == piped;
        }
        ok(same, "%d ranks, %s: losses, state and predictions are bitwise identical with the pipeline", n_ranks,
           of_case);
        ok_or(as_said, job->explained, "%d ranks, %s: explain() tells whether the pipeline is used", n_ranks, of_case);
    }
    free(job);
}

static const char *const piped[] = {
    "model=sage",
    "model=sage norm=none hidden=36,20 dropout=0.4 halo.cover=post",
    "model=sage reuse_input=no input_dropout=0.2 halo.cover=pre workers=sparse:1",
    "model=sage reuse_input=no residual=yes hidden=20,20 partition=stream workers=sparse:1:32",
    "model=sage aggregator=sum activation=elu norm=none workers=sparse:1:1",
    "model=sage row_masks=no halo.codec=q8",
    "model=sage halo.codec=q1 reuse_input=no dropout=0.2",
    "model=sage halo.codec=adaptive reuse_input=no halo.budget=balance:0.5:1",
    "model=sage halo.staleness=1 reuse_input=no",
    "model=gcn halo.staleness=1:0:0.5 halo.codec=q2 reuse_input=no row_masks=no",
    "model=gcn",
    "model=gcn hidden=36,20 reuse_input=no order=rcm halo.codec=bf16",
    "model=gcn threads=3 workers=auto:7",
    "model=gin",
    "model=gin hidden=36,20 dropout=0.4 reuse_input=no order=rcm halo.codec=q4",
    "model=sgc propagation=3 order=community",
    "model=appnp propagation=3 workers=sparse:1:16",
    "model=sage dense.module=reference mxm.kernel=reference",
    "model=gcn profile=yes",
    "model=sage parallel=feature",
    "model=sage parallel=feature reuse_input=no dropout=0.2 halo.codec=q8",
    "model=gin parallel=feature feature.graph=stream",
    "model=gcn parallel=grid reuse_input=no",
    "model=sage parallel=feature halo.staleness=1 reuse_input=no row_masks=no",
    "model=sage parallel=grid residual=yes hidden=20,20 profile=yes",
    "model=appnp parallel=feature propagation=2",
};

static const char *const plain[] = { "model=sage aggregator=max",      "model=sage aggregator=min",
                                     "model=gat heads=2 hidden=20,20", "model=sage norm=batch",
                                     "model=gcn recompute=yes",        "model=gcn threads=1 workers=auto:7" };

static const char *const few[] = { "model=sage reuse_input=no residual=yes hidden=20,20 dropout=0.4 halo.codec=q8",
                                   "model=gin reuse_input=no halo.codec=q4 workers=auto:7",
                                   "model=gcn reuse_input=no halo.staleness=1" };

/* One case in a process that mpiexec has started. Each rank reports its own results. */
static int test_one_launched(const struct sample_dataset *set)
{
    struct job     *job = calloc(1, sizeof *job);
    struct settings settings;
    int             rank, same;

    job->set = *set;
    job->way = SLICES_EVEN;
    job->settings = few[0];
    job->steps = 3;
    settings_init(&settings, few[0]);
    hosts_run_launched(&hosts, settings.at, compare_body, job);
    rank = hosts.at[0].rank;
    same = hosts_fault(&hosts) == NULL && job->same[rank] && job->piped[rank];
    if (hosts_fault(&hosts) != NULL) diag("%s", hosts_fault(&hosts));
    if (rank == 0) ok(same, "%s: the pipeline is used, and results are bitwise identical", few[0]);
    free(job);
    return rank == 0 ? done() : !same;
}

/* -- no memory ---------------------------------------------------------------------------------------------------- */

struct plot {
    struct sample_dataset set;
    int64_t               fail_at; /* number of the allocation of rank 1 that fails in its first step */
    int                   is_reached;
    double                loss[HOSTS_MOST];
};

static int32_t first_step_body(struct host *host)
{
    struct plot      *plot = host->all->arg;
    graft_graph      *graph = NULL;
    graft_trainer    *trainer = NULL;
    graft_epoch       epoch = output_epoch();
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &plot->set.dataset, SLICES_EVEN, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &s.dataset, &trainer, &host->error);
    if (host->rank == 1) atomic_store(&host->fail_at, plot->fail_at);
    if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
    if (host->rank == 1) plot->is_reached = atomic_exchange(&host->fail_at, -1) < 0;
    plot->loss[host->rank] = epoch.loss;
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

/* Whether a run with a failure is complete, or the same error on all ranks. */
static int is_whole_or_failed(const struct plot *plot, int32_t n_ranks, double loss)
{
    for (int32_t i = 0; i < n_ranks; i++) {
        if (hosts.at[i].rc != hosts.at[0].rc) return 0;
        if (hosts.at[i].rc == GRAFT_OK && plot->loss[i] != loss) return 0;
        if (hosts.at[i].rc != GRAFT_OK && strcmp(hosts.at[i].error.message, hosts.at[0].error.message) != 0) return 0;
    }
    return 1;
}

static void check_rank_without_memory(const struct sample_dataset *set, const char *of_case)
{
    enum { RANKS = 2, MOST = 1000 };
    struct plot    *plot = calloc(1, sizeof *plot);
    int64_t         k = 0, failed = 0, wrong = 0;
    struct settings settings;
    double          loss;

    plot->set = *set;
    plot->fail_at = -1;
    settings_init(&settings, of_case);
    hosts_run(&hosts, RANKS, settings.at, first_step_body, plot);
    loss = plot->loss[0];
    plot->is_reached = 1;
    for (; plot->is_reached && k < MOST; k++) {
        plot->fail_at = k;
        wrong +=
            !hosts_run(&hosts, RANKS, settings.at, first_step_body, plot) || !is_whole_or_failed(plot, RANKS, loss);
        failed += hosts.at[0].rc != GRAFT_OK;
    }
    if (!ok(loss != 0 && k > 3 && k < MOST && failed > 0 && wrong == 0,
            "%s: of %lld steps in which one allocation fails %lld fail on all ranks, and the others "
            "work without that memory",
            of_case, (long long)k - 1, (long long)failed))
        diag("%lld wrong; %s", (long long)wrong, hosts.at[0].error.message);
    free(plot);
}

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static void test_few_ranks(const struct sample_dataset *set)
{
    for (size_t i = 0; i < COUNT(few); i++) check_ranks(set, 2, few[i], 1);
}

static void test_all_ranks(const struct sample_dataset *set)
{
    for (size_t i = 0; i < COUNT(piped); i++) check_ranks(set, i % 2 == 0 ? 2 : 4, piped[i], 1);
    for (size_t i = 0; i < COUNT(plain); i++) check_ranks(set, 2, plain[i], 0);
    check_ranks(set, 1, "model=sage", 1);
}

int main(int n, char **arguments)
{
    struct sample         sample = { 17 };
    struct sample_dataset set, small;

    (void)arguments;
    alarm(600); /* it is slow under a sanitizer */
    sample_dataset_init(&set, &sample, n > 1 ? N_FEW : N, FEATURES, CLASSES, 0, 0);
    if (hosts_are_launched()) return test_one_launched(&set);
    sample_dataset_init(&small, &sample, 2000, FEATURES, CLASSES, 0, 0);
    if (n > 1) test_few_ranks(&set);
    else test_all_ranks(&set);
    if (n == 1) check_rank_without_memory(&small, "model=sage reuse_input=no workers=sparse:1 halo.codec=q8");
    sample_dataset_fini(&set);
    sample_dataset_fini(&small);
    return done();
}
