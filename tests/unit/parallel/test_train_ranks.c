/* Checks that training over ranks has the results of one process (losses, weights, predictions, metrics), for every
 * model and every way to slice, partition and exchange the data set, and that all ranks have bitwise identical weights.
 * That one process is right is checked by test_gradient.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/outputs.h"
#include "harness/tap.h"
#include "harness/train_cases.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const double TOLERANCE = 1e-4;

/* Check the traffic that gat reports. The result is 0 if nothing is wrong. */
static int32_t check_traffic(struct host *host, graft_trainer *trainer)
{
    graft_traffic t = GRAFT_INIT(graft_traffic);
    int32_t       rc = host->report->traffic(trainer, host->rank, &t, &host->error);

    if (rc < 0) return rc;
    if (t.halo_rows > 0 && t.exchange_seconds > 0 && t.wait_seconds >= 0 && t.wait_seconds <= t.exchange_seconds &&
        t.overlap_fraction == 1 - t.wait_seconds / t.exchange_seconds)
        return GRAFT_OK;
    snprintf(host->error.message, sizeof host->error.message, "%lld rows, %g of %g s waited: %g",
             (long long)t.halo_rows, t.wait_seconds, t.exchange_seconds, t.overlap_fraction);
    return GRAFT_STATUS_END;
}

/* Train gat for two epochs, and keep the weights of this rank in job->at. */
static int32_t attention_body(struct host *host)
{
    struct job         *job = host->all->arg;
    graft_epoch         epoch = output_epoch();
    struct host_trainer t;
    int32_t             rc = host_trainer_create(host, &job->set.dataset, job->way, &t);

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK) rc = check_traffic(host, t.trainer);
    job->at[host->rank].n_weights = 0;
    if (rc == GRAFT_OK) train_keep_weights(host->train, t.trainer, &job->at[host->rank]);
    host_trainer_destroy(host, &t);
    return rc;
}

/* A graph large enough for several threads, with more threads than processors, must have bitwise identical results. */
static void test_train_ranks_threads(const char *more)
{
    static const char *const threads[] = { "threads=1", "threads=2", "threads=5" };
    const struct shape       shape = { 6000, 0 };
    struct job              *job = calloc(1, sizeof *job);
    static struct hosts      hosts;
    struct sample            sample = { 8 };
    const char              *words = NULL;

    train_job_init(job, &sample, &shape);
    for (int i = 0; i < 3 && words == NULL; i++) {
        struct settings settings;

        train_settings_init(&settings, "gat", "given", "hybrid", more);
        for (int k = 0; settings.at[k] != NULL; k++)
            if (strncmp(settings.at[k], "threads=", 8) == 0) settings.at[k] = threads[i];
        hosts_run(&hosts, 3, settings.at, attention_body, job);
        words = hosts_fault(&hosts);
        if (i == 0) job->one = job->at[0];
        if (words == NULL && memcmp(job->one.weights, job->at[2].weights, sizeof job->one.weights) != 0)
            words = "weights are others with more threads";
    }
    ok_or(words == NULL && job->one.n_weights > 0, words,
          "gat on 3 ranks is bitwise identical on 1, 2 and 5 threads: %s", more);
    train_job_fini(job);
    free(job);
}

/* --- what is sent, computed from a matrix of the edges --- */

enum { N = 240, RANKS = 3, HIDDEN = 16 };

struct wanted {
    int64_t cut, rows, bytes;
};

static int owner_of(int64_t v)
{
    return (int)(v * RANKS / N);
}

/* Whether vertex v gathers from u. */
static int train_ranks_is_edge(const graft_csr *graph, int symmetric, int64_t v, int64_t u)
{
    for (int64_t e = graph->row_ptr[v]; e < graph->row_ptr[v + 1]; e++)
        if (((const int32_t *)graph->col_idx)[e] == u) return 1;
    return symmetric && train_ranks_is_edge(graph, 0, u, v);
}

/* The number of vertices that ranks gather from others for these rows, each once for each rank. */
static int64_t train_ranks_count_rows(uint8_t edge[N][N], const uint8_t *needed)
{
    int64_t count = 0;

    for (int p = 0; p < RANKS; p++)
        for (int64_t u = 0; u < N; u++) {
            int gathers = 0;

            for (int64_t v = 0; v < N; v++) gathers |= owner_of(v) == p && needed[v] && edge[v][u];
            count += gathers && owner_of(u) != p;
        }
    return count;
}

/* The expected messages of two layers: the first one sends its input forward, the second one its output in both
 * directions. */
static struct wanted messages_of(const struct job *job, int symmetric, int masked)
{
    static uint8_t edge[N][N];
    uint8_t        all[N], first[N] = { 0 }, second[N];
    struct wanted  w = { 0 };

    memset(all, 1, sizeof all);
    for (int64_t v = 0; v < N; v++) {
        second[v] = !masked || (job->set.split[v] == GRAFT_SPLIT_TRAIN && job->set.labels[v] >= 0);
        first[v] |= second[v];
        for (int64_t u = 0; u < N; u++) {
            edge[v][u] = (uint8_t)train_ranks_is_edge(&job->set.graph.csr, symmetric, v, u);
            first[u] |= second[v] && edge[v][u];
            w.cut += edge[v][u] && owner_of(v) != owner_of(u);
        }
    }
    w.rows = train_ranks_count_rows(edge, all);
    w.bytes = 4 * (FEATURES * train_ranks_count_rows(edge, first) + 2 * CLASSES * train_ranks_count_rows(edge, second));
    return w;
}

static struct wanted test_messages(const char *model, int symmetric, int masked)
{
    struct job     *job = calloc(1, sizeof *job);
    struct sample   sample = { 77 };
    struct settings settings;
    struct wanted   wanted;
    char            more[256];
    const char     *words;

    train_job_init(job, &sample, &(struct shape){ N, FEW });
    job->way = SLICES_EVEN;
    snprintf(more, sizeof more, "layers=2 hidden=%d reuse_input=no order=degree dropout=0.2 symmetrize=%s row_masks=%s",
             HIDDEN, symmetric ? "yes" : "no", masked ? "yes" : "no");
    train_settings_init(&settings, model, "given", "post", more);
    words = train_run_case(job, RANKS, &settings);
    wanted = messages_of(job, symmetric, masked);
    ok_or(words == NULL && train_worst_of(job) <= TOLERANCE && job->at[0].traffic.cut_edges == wanted.cut &&
              job->at[0].traffic.halo_rows == wanted.rows && job->at[0].traffic.halo_bytes_per_epoch == wanted.bytes &&
              job->at[0].traffic.halo_bytes_if_post == wanted.bytes,
          words, "%s, symmetrize=%d, row_masks=%d: %lld cut edges, %lld rows and, in a step, %lld bytes", model,
          symmetric, masked, (long long)wanted.cut, (long long)wanted.rows, (long long)wanted.bytes);
    if (job->at[0].traffic.halo_bytes_per_epoch != wanted.bytes)
        diag("%lld bytes were told", (long long)job->at[0].traffic.halo_bytes_per_epoch);
    train_job_fini(job);
    free(job);
    return wanted;
}

static void test_sent(const char *model)
{
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        const struct wanted all = test_messages(model, symmetric, 0), masked = test_messages(model, symmetric, 1);

        ok(masked.bytes < all.bytes / 2, "%s: with few training vertices less than half of that is needed", model);
    }
}

/* Extrema do not depend on the order of their operands. With the initial weights the predictions of ranks must be
 * bitwise identical to those of one process, even if the previous steps had quantized messages. */
static void test_extrema_bits(const char *aggregator, int32_t n_ranks, const char *partition, const char *codec,
                              const char *staleness)
{
    const char *const   settings[] = { aggregator, "lr=1e-30", "dropout=0", "threads=1", "dense.module=reference",
                                       partition,  codec,      staleness,   NULL };
    static struct hosts hosts;
    struct job         *job = calloc(1, sizeof *job);
    struct sample       sample = { 8 };
    const char         *fault;

    train_job_init(job, &sample, &(struct shape){ N, WEIGHTED | REPEATS });
    train_one_process(job, settings);
    hosts_run(&hosts, n_ranks, settings, train_job_body, job);
    fault = hosts_fault(&hosts);
    if (fault == NULL && memcmp(job->logits[0], job->logits[1], (size_t)(N * CLASSES) * sizeof(float)) != 0)
        fault = "other bits";
    if (fault == NULL && train_off(job->at[0].loss[EPOCHS - 1], job->one.loss[EPOCHS - 1]) > 0.05)
        fault = "another loss";
    ok_or(fault == NULL, fault, "%s on %d ranks, %s, %s: the bits of one process", aggregator, n_ranks, partition,
          codec);
    train_job_fini(job);
    free(job);
}

/* Maxima and minima over neighbours, for which ranks exchange rows and no sums. */
static void test_extrema(void)
{
    static const int32_t ranks[] = { 2, 3, 4, 7 };

    for (int i = 0; i < 2; i++) {
        const char *const aggregator = i == 0 ? "aggregator=max" : "aggregator=min";

        train_test_extrema(i == 0 ? "max" : "min", ranks);
        test_extrema_bits(aggregator, 3, "partition=hash", "halo.codec=f32", "halo.staleness=0");
        test_extrema_bits(aggregator, 4, "partition=given", "halo.codec=q4", "halo.staleness=1");
        test_extrema_bits(aggregator, 2, "partition=hash", "halo.codec=adaptive", "halo.staleness=0");
        test_extrema_bits(aggregator, 3, "parallel=feature", "halo.codec=f32", "halo.staleness=0");
        test_extrema_bits(aggregator, 4, "parallel=feature", "halo.codec=q8", "halo.staleness=1");
        /* Sums of 13 and of 4 columns. */
        test_extrema_bits(aggregator, 8, "parallel=feature", "halo.codec=bf16", "halo.staleness=0");
    }
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat", "mlp" };
    static const int32_t     ranks[] = { 1, 2, 3, 4, 7 };

    alarm(600); /* it is slow under a sanitizer */
    test_extrema();
    test_train_ranks_threads("dropout=0.3 hidden=32");
    test_train_ranks_threads("dropout=0 recompute=yes heads=4");
    train_test_all(models, 5, train_setups, TRAIN_SETUPS, ranks);
    train_test_all(models, 5, train_prepared, TRAIN_PREPARED, ranks);
    train_test_sums(ranks);
    for (int m = 0; m < 3; m++) test_sent(models[m]);
    return done();
}
