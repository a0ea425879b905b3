/* Checks the spans of time that a trainer over ranks reports: the parts of each phase must lie inside of it and add up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/counting.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <string.h>
#include <unistd.h>

enum { N = 300, FEATURES = 13, CLASSES = 4, EPOCHS = 3, SPANS = 2048 };

/* The last rank sleeps once per epoch before it sends rows. */
enum { SLEEP_MS = 100 };

/* The spans of the last epoch on rank 0. */
struct job {
    struct sample_dataset set;
    graft_span            span[SPANS];
    int64_t               n_spans;
    double                seconds, waited;
};

static void train_spans_ask(struct host *host, struct job *job, graft_trainer *trainer)
{
    for (job->n_spans = 0; job->n_spans < SPANS; job->n_spans++) {
        job->span[job->n_spans] = GRAFT_INIT(graft_span);
        if (host->report->span(trainer, job->n_spans, &job->span[job->n_spans], NULL) < 0) break;
    }
}

static int32_t train_spans_train(struct host *host, struct job *job, graft_trainer *trainer)
{
    struct counts counts;
    graft_epoch   epoch = output_epoch();
    int32_t       rc = GRAFT_OK;

    memset(&counts, 0, sizeof counts);
    counting_begin(&counts);
    for (int e = 0; e < EPOCHS && rc == GRAFT_OK; e++) {
        graft_traffic before = GRAFT_INIT(graft_traffic), after = before;

        rc = host->report->traffic(trainer, 0, &before, &host->error);
        counting_tire(host->rank == host->n_ranks - 1 ? SLEEP_MS : 0);
        if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
        if (rc == GRAFT_OK) rc = host->report->traffic(trainer, 0, &after, &host->error);
        if (rc < 0 || host->rank > 0) continue;
        job->seconds = epoch.seconds;
        job->waited = after.wait_seconds - before.wait_seconds;
        train_spans_ask(host, job, trainer);
    }
    counting_begin(NULL);
    return rc;
}

static int32_t spans_body(struct host *host)
{
    struct job         *job = host->all->arg;
    struct host_trainer t;
    int32_t             rc;

    counting_wrap(&host->transport);
    rc = host_trainer_create(host, &job->set.dataset, SLICES_EVEN, &t);
    if (rc == GRAFT_OK) rc = train_spans_train(host, job, t.trainer);
    host_trainer_destroy(host, &t);
    return rc;
}

static int train_spans_near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

/* Check the parts of phase `at`. The return value is NULL or an error in words. */
static const char *check_parts(const struct job *job, int64_t at, int32_t n_ranks)
{
    static const char *const names[] = { "pack", "local", "wait", "unpack" };
    const graft_span *const  phase = &job->span[at];
    const int                is_sum = strcmp(phase->phase, "aggregate") == 0;
    double                   end = phase->begin, waited = 0;
    int                      n = 0, first = 0;

    /* gat has the first two parts of what it gathers in one phase, and the others in the next phase. */
    if (!is_sum && at + 1 < job->n_spans && strcmp(job->span[at + 1].phase, "local") == 0) first = 1;
    for (at++; at < job->n_spans && job->span[at].part; at++, n++) {
        const graft_span *part = &job->span[at];

        if (first + n == 4 || strcmp(part->phase, names[first + n]) != 0) return "a part of another name";
        if (part->thread != 0 || part->layer != phase->layer || part->pass != phase->pass) return "a part out of place";
        if (part->end < part->begin || part->begin < end - 1e-9) return "parts that overlap";
        if (!train_spans_near(part->begin, end)) return "a gap between parts";
        if (!train_spans_near(part->waited, strcmp(part->phase, "wait") == 0 ? part->end - part->begin : 0))
            return "another part than 'wait' has waited";
        end = part->end;
        waited += part->waited;
    }
    if (is_sum ? n != 4 : n != 0 && first + n != 4 && first + n != 2) return "parts are missing";
    if (n > 0 && !train_spans_near(end, phase->end)) return "parts that do not add up to their phase";
    if (!train_spans_near(waited, phase->waited)) return "a phase that waited for another time than its parts";
    for (; is_sum && n_ranks > 1 && at < job->n_spans && job->span[at].thread > 0; at++)
        if (job->span[at].thread == 1 && job->span[at].waited < waited - 1e-9)
            return "a thread that worked while its phase waited";
    return NULL;
}

/* Check the spans of the last epoch on rank 0. The return value is NULL or an error in words. */
static const char *check_spans_of_ranks(const struct job *job, int32_t n_ranks, double *waited, int *parts,
                                        int *reduced)
{
    double      all = 0, end = 0;
    const char *fault = NULL;

    *waited = 0;
    *parts = *reduced = 0;
    for (int64_t i = 0; i < job->n_spans && fault == NULL; i++) {
        const graft_span *span = &job->span[i];

        *parts += span->part;
        if (span->thread > 0 || span->part) continue;
        if (span->begin < end - 1e-9) return "phases overlap";
        end = span->end;
        all += span->end - span->begin;
        *waited += span->waited;
        *reduced += strcmp(span->phase, "reduce") == 0;
        fault = check_parts(job, i, n_ranks);
    }
    if (fault == NULL && all > job->seconds) fault = "phases are longer than the epoch";
    if (fault == NULL && *waited < job->waited - 1e-6) fault = "more was waited than the spans say";
    return fault;
}

static struct job *spans_run(int32_t n_ranks, const char *const *settings, const char **words)
{
    static struct hosts hosts;
    struct job         *job = calloc(1, sizeof *job);
    struct sample       sample = { 5 };

    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, 0, 0);
    hosts_run(&hosts, n_ranks, settings, spans_body, job);
    *words = hosts_fault(&hosts);
    return job;
}

/* Check one epoch with its evaluation, which has `exchanges` exchanges. */
static void test_spans(const char *model, const char *recompute, const char *more, int32_t n_ranks, int expected)
{
    char        kind[32];
    const char *settings[] = { "layers=3",
                               "epochs=9",
                               "eval_every=1",
                               "threads=2",
                               "halo.timeout=60",
                               "partition=hash",
                               "heads=2",
                               "reuse_input=no",
                               kind,
                               recompute,
                               "profile=yes",
                               "hidden=16",
                               more,
                               NULL };
    const char *words;
    double      waited = 0;
    int         parts = 0, reduced = 0;
    struct job *job;

    snprintf(kind, sizeof kind, "model=%s", model);
    job = spans_run(n_ranks, settings, &words);
    if (words == NULL) words = check_spans_of_ranks(job, n_ranks, &waited, &parts, &reduced);
    ok(words == NULL && parts == expected && reduced == 1, "%s, %s, %s on %d ranks: %d parts of spans: %s", model,
       recompute, more, n_ranks, parts, words != NULL ? words : "they add up");
    if (n_ranks > 1) /* meanwhile the other rank slept */
        ok(waited > 0.0005 * SLEEP_MS, "%s: the profile has %.3f s in which the rank waited", model, waited);
    sample_dataset_fini(&job->set);
    free(job);
}

int main(void)
{
    alarm(110);
    /* Exchanges of three layers: each one forward in step and evaluation, all but the first backward, and with
     * recompute once more those whose arrays another layer has taken. */
    test_spans("sage", "recompute=no", "eval_every=1", 2, 4 * (3 + 3 + 2));
    test_spans("sage", "recompute=yes", "eval_every=1", 3, 4 * (3 + 3 + 2 + 1));
    test_spans("gcn", "recompute=no", "eval_every=1", 3, 4 * (3 + 3 + 2));
    test_spans("gin", "recompute=yes", "eval_every=1", 2, 4 * (3 + 3 + 2 + 2));
    test_spans("gat", "recompute=yes", "eval_every=1", 2, 5 * (3 + 3 + 2) + 4 * 3);
    test_spans("sage", "recompute=no", "eval_every=1", 1, 4 * (3 + 3 + 2));
    /* labels add one exchange in step and evaluation each */
    test_spans("gin", "recompute=yes", "label_rate=0.5", 2, 4 * (3 + 3 + 2 + 2 + 2));
    test_spans("sage", "recompute=yes", "label_rate=0.5", 3, 4 * (3 + 3 + 2 + 1 + 2));
    return done();
}
