/* Checks update() when it fails: an allocation fails, a rank does not call it, or the new split has vertices that no
 * step computes. The data must then be as before. Also checks that update() discards the best weights, which were
 * measured on old data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 83, FEATURES = 7, CLASSES = 3, MOST = 400 };

struct faults_job {
    const graft_dataset *old, *new;
    uint32_t             what;
    int                  serial;
    float               *logits[2]; /* [N x CLASSES] predictions of all ranks */
    int64_t              failed;    /* how many updates failed on rank 0 */
};

static int32_t faults_open(struct host *host, const graft_dataset *data, struct host_trainer *t)
{
    const struct faults_job *job = host->all->arg;

    if (!job->serial) return host_trainer_create(host, data, SLICES_EVEN, t);
    memset(t, 0, sizeof *t);
    t->slice.dataset = *data;
    t->slice.end = data->n_vertices;
    return host->train->create(host->api->context, data, &t->trainer, &host->error);
}

static void faults_close(struct host *host, struct host_trainer *t)
{
    const struct faults_job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

/* Fail with a sentence of this test. */
static int32_t faults_wrong(struct host *host, const char *words, int64_t number)
{
    char before[256];

    snprintf(before, sizeof before, "%.200s", host->error.message);
    snprintf(host->error.message, sizeof host->error.message, "%.80s (%lld); %s", words, (long long)number, before);
    return GRAFT_STATUS_END;
}

static int32_t faults_predict(struct host *host, const struct host_trainer *t, float *logits)
{
    const graft_dense out = { sizeof out, GRAFT_F32, t->slice.end - t->slice.first,
                              CLASSES,    CLASSES,   logits + t->slice.first * CLASSES };

    output_clear_rows(&out);
    return host->train->predict(t->trainer, GRAFT_WEIGHTS_LAST, NULL, &out, &host->error);
}

static int32_t faults_epoch(struct host *host, graft_trainer *trainer, graft_epoch *epoch)
{
    *epoch = output_epoch();
    return host->train->epoch(trainer, epoch, &host->error);
}

static int same_logits(const struct faults_job *job, const struct host_trainer *t)
{
    const int64_t at = t->slice.first * CLASSES, count = (t->slice.end - t->slice.first) * CLASSES;

    return memcmp(job->logits[0] + at, job->logits[1] + at, (size_t)count * sizeof(float)) == 0;
}

/* Each allocation of update() fails once, on the last rank. Predictions must stay the same until it succeeds. */
static int32_t memory_body(struct host *host)
{
    struct faults_job  *job = host->all->arg;
    const int           guilty = host->rank == host->n_ranks - 1;
    struct host_trainer t = { 0 };
    struct host_slice   slice = { 0 };
    graft_epoch         epoch;
    int32_t             rc = faults_open(host, job->old, &t);
    int64_t             k;

    if (job->serial) slice.dataset = *job->new;
    else host_slice_init(&slice, job->new, SLICES_EVEN, host->rank, host->n_ranks);
    if (!job->serial) slice.dataset.graph = slice.slice.rows;
    if (rc == GRAFT_OK) rc = faults_epoch(host, t.trainer, &epoch);
    if (rc == GRAFT_OK) rc = faults_predict(host, &t, job->logits[0]);
    for (k = 0; k < MOST && rc == GRAFT_OK; k++) {
        int32_t updated;

        if (guilty) atomic_store(&host->fail_at, k);
        updated = host->train->update(t.trainer, job->what, &slice.dataset, &host->error);
        atomic_store(&host->fail_at, -1);
        if (updated == GRAFT_OK) break;
        if (updated != GRAFT_ERR_NOMEM) rc = faults_wrong(host, "update() has another status", updated);
        if (rc == GRAFT_OK) rc = faults_predict(host, &t, job->logits[1]);
        if (rc == GRAFT_OK && !same_logits(job, &t)) rc = faults_wrong(host, "a failed update changed predictions", k);
    }
    if (host->rank == 0) job->failed = k;
    if (rc == GRAFT_OK) rc = faults_epoch(host, t.trainer, &epoch);
    if (rc == GRAFT_OK) rc = faults_predict(host, &t, job->logits[1]);
    if (rc == GRAFT_OK && t.slice.end > t.slice.first && same_logits(job, &t))
        rc = faults_wrong(host, "the update that succeeds changes nothing", k);
    faults_close(host, &t);
    if (!job->serial) host_slice_fini(&slice);
    return rc;
}

/* Run an epoch of minibatches from the state of `from`. */
static int32_t epoch_from(struct host *host, graft_trainer *from, graft_trainer *trainer, graft_epoch *epoch)
{
    int32_t rc = host_copy_state(host, from, trainer);

    return rc == GRAFT_OK ? faults_epoch(host, trainer, epoch) : rc;
}

/* The old data with the arrays that update() replaces. */
static graft_dataset replaced(const struct faults_job *job)
{
    graft_dataset data = *job->old;

    if (job->what & GRAFT_UPDATE_FEATURES) data.features = job->new->features;
    if (job->what & GRAFT_UPDATE_LABELS) data.labels = job->new->labels;
    if (job->what & GRAFT_UPDATE_SPLIT) data.split = job->new->split;
    if (job->what & GRAFT_UPDATE_EDGE_VALUES) data.graph = job->new->graph;
    if (job->what & GRAFT_UPDATE_EDGE_FEATURES) data.edge_features = job->new->edge_features;
    return data;
}

/* Each allocation of update() fails once on the last rank, in a trainer by minibatch. The next epoch must be that of
 * the old data, and after the update succeeds that of a new trainer. */
static int32_t batches_body(struct host *host)
{
    struct faults_job  *job = host->all->arg;
    const graft_dataset after = replaced(job);
    struct host_trainer t = { 0 }, start = { 0 }, fresh = { 0 };
    struct host_slice   slice = { 0 };
    graft_epoch         epoch, old, new = { 0 };
    int32_t             rc = faults_open(host, job->old, &t), updated = GRAFT_ERR_NOMEM;
    int64_t             k;

    if (job->serial) slice.dataset = *job->new;
    else host_slice_init(&slice, job->new, SLICES_EVEN, host->rank, host->n_ranks);
    if (!job->serial) slice.dataset.graph = slice.slice.rows;
    if (rc == GRAFT_OK) rc = faults_open(host, job->old, &start);
    if (rc == GRAFT_OK) rc = faults_open(host, &after, &fresh);
    if (rc == GRAFT_OK) rc = faults_epoch(host, start.trainer, &epoch);
    if (rc == GRAFT_OK) rc = epoch_from(host, start.trainer, t.trainer, &old);
    if (rc == GRAFT_OK) rc = epoch_from(host, start.trainer, fresh.trainer, &new);
    if (rc == GRAFT_OK && old.loss == new.loss) rc = faults_wrong(host, "the new data are the old: no test", 0);
    for (k = 0; k < MOST && rc == GRAFT_OK; k++) {
        if (host->rank == host->n_ranks - 1) atomic_store(&host->fail_at, k);
        updated = host->train->update(t.trainer, job->what, &slice.dataset, &host->error);
        atomic_store(&host->fail_at, -1);
        if (updated != GRAFT_OK && updated != GRAFT_ERR_NOMEM)
            rc = faults_wrong(host, "update() has another status", updated);
        if (rc == GRAFT_OK) rc = epoch_from(host, start.trainer, t.trainer, &epoch);
        if (rc == GRAFT_OK && epoch.loss != (updated == GRAFT_OK ? new.loss : old.loss))
            rc = faults_wrong(host, "the epoch after an update has another loss", k);
        if (updated == GRAFT_OK) break;
    }
    if (host->rank == 0) job->failed = k;
    faults_close(host, &t);
    faults_close(host, &start);
    faults_close(host, &fresh);
    if (!job->serial) host_slice_fini(&slice);
    return rc;
}

/* The last rank does not call update() in time. */
static int32_t absent_body(struct host *host)
{
    const struct faults_job *job = host->all->arg;
    struct host_trainer      t = { 0 };
    graft_epoch              epoch;
    int32_t                  rc = faults_open(host, job->old, &t);

    if (rc == GRAFT_OK) rc = faults_epoch(host, t.trainer, &epoch);
    if (host->rank == host->n_ranks - 1) sleep(5);
    if (rc == GRAFT_OK) rc = host->train->update(t.trainer, job->what, &t.slice.dataset, &host->error);
    faults_close(host, &t);
    return rc;
}

/* The new split has a training vertex whose row no step computes. update() must refuse it, and training must continue
 * as before. Without row masks it must be accepted, and a new trainer with the same state must continue in the same
 * way. */
static int32_t split_body(struct host *host)
{
    struct faults_job  *job = host->all->arg;
    const int           masks = job->failed != 0;
    struct host_trainer t = { 0 }, fresh = { 0 };
    struct host_slice   slice = { 0 };
    graft_epoch         epoch, expected;
    int32_t             rc = faults_open(host, job->old, &t), updated;

    if (job->serial) slice.dataset = *job->new;
    else host_slice_init(&slice, job->new, SLICES_EVEN, host->rank, host->n_ranks);
    if (rc == GRAFT_OK) rc = faults_epoch(host, t.trainer, &epoch);
    if (rc == GRAFT_OK) rc = faults_open(host, masks ? job->old : job->new, &fresh);
    if (rc == GRAFT_OK) rc = host_copy_state(host, t.trainer, fresh.trainer);
    if (rc != GRAFT_OK) goto done;
    updated = host->train->update(t.trainer, GRAFT_UPDATE_SPLIT, &slice.dataset, &host->error);
    if (updated != (masks ? GRAFT_ERR_STATE : GRAFT_OK))
        rc = faults_wrong(host, "update() has another status", updated);
    if (masks && strstr(host->error.message, "'row_masks' = no") == NULL)
        rc = faults_wrong(host, "update() says no option", 0);
    if (rc == GRAFT_OK) rc = faults_epoch(host, t.trainer, &epoch);
    if (rc == GRAFT_OK) rc = faults_epoch(host, fresh.trainer, &expected);
    if (rc == GRAFT_OK && (epoch.loss != expected.loss || epoch.train_accuracy != expected.train_accuracy))
        rc = faults_wrong(host, "an epoch is not that of a new trainer", 0);
done:
    faults_close(host, &t);
    if (fresh.trainer != NULL) faults_close(host, &fresh);
    if (!job->serial) host_slice_fini(&slice);
    return rc;
}

/* The best weights were measured on old data. After update() "best" must mean the last weights, until there is a new
 * best. */
static int32_t best_body(struct host *host)
{
    struct faults_job  *job = host->all->arg;
    struct host_trainer t = { 0 };
    graft_epoch         epoch;
    graft_metrics       last = output_metrics(), best = output_metrics();
    int32_t             rc = faults_open(host, job->old, &t);

    for (int i = 0; i < 6 && rc == GRAFT_OK; i++) rc = faults_epoch(host, t.trainer, &epoch);
    if (rc == GRAFT_OK) rc = host->train->evaluate(t.trainer, GRAFT_WEIGHTS_BEST, &best, &host->error);
    if (rc == GRAFT_OK && best.epoch == 6) rc = faults_wrong(host, "the best epoch is the last: no test", best.epoch);
    if (rc == GRAFT_OK) rc = host->train->update(t.trainer, job->what, &t.slice.dataset, &host->error);
    if (rc == GRAFT_OK) rc = host->train->evaluate(t.trainer, GRAFT_WEIGHTS_BEST, &best, &host->error);
    if (rc == GRAFT_OK) rc = host->train->evaluate(t.trainer, GRAFT_WEIGHTS_LAST, &last, &host->error);
    if (rc == GRAFT_OK && (best.epoch != 6 || best.validation_loss != last.validation_loss))
        rc = faults_wrong(host, "old weights are still the best", best.epoch);
    if (rc == GRAFT_OK) rc = faults_epoch(host, t.trainer, &epoch);
    if (rc == GRAFT_OK && !epoch.best) rc = faults_wrong(host, "the first epoch after update() is no best", 7);
    faults_close(host, &t);
    return rc;
}

/* -- data --------------------------------------------------------------------------------------------------------- */

/* The same graph with other features, labels and targets. The split has fewer or more training vertices. */
struct faults_data {
    struct sample_dataset old, new;
};

static void faults_data_init(struct faults_data *d, int regression, int gains, int sparse)
{
    struct sample sample = { 7 };

    sample_dataset_init(&d->old, &sample, N, FEATURES, CLASSES, 0, sparse);
    if (regression) sample_dataset_regress(&d->old, &sample);
    sample = (struct sample){ 7 };
    sample_dataset_init(&d->new, &sample, N, FEATURES, CLASSES, 0, sparse);
    if (regression) sample_dataset_regress(&d->new, &sample);
    for (int64_t i = 0; i < N * FEATURES && !gains && !sparse; i++) ((float *)d->new.features.data)[i] += 0.25f;
    for (int64_t e = 0; sparse && e < d->new.sparse.row_ptr[N]; e++) ((float *)d->new.sparse.values)[e] += 0.25f;
    for (int64_t v = 0; v < N; v++) {
        if (!gains && d->new.labels[v] >= 0) d->new.labels[v] = (d->new.labels[v] + 1) % CLASSES;
        /* There are few training vertices, so that masks are short. */
        if (v >= 5 && gains) d->old.split[v] = GRAFT_SPLIT_VALIDATION;
        d->new.split[v] = d->old.split[v];
        if (v == 11 && gains) d->new.split[v] = GRAFT_SPLIT_TRAIN;
        if (v % 6 == 0 && !gains) d->new.split[v] = GRAFT_SPLIT_NONE;
    }
}

/* Give the graph values, and the new graph other ones. */
static void faults_data_value(struct faults_data *d)
{
    struct sample_dataset *const sets[] = { &d->old, &d->new };
    struct sample                sample = { 9 };

    for (int i = 0; i < 2; i++) {
        const int64_t entries = sets[i]->graph.row_ptr[N];
        float        *values = oracle_new(entries, sizeof *values);

        for (int64_t e = 0; e < entries; e++) values[e] = (float)sample_real(&sample, 0.1, 1);
        sets[i]->graph.values = values;
        sets[i]->graph.csr.values = values;
        sets[i]->graph.csr.value_type = GRAFT_F32;
    }
}

/* Give the edges features, and the new data other ones. */
static void faults_data_edges(struct faults_data *d)
{
    const graft_dense *features = &d->new.edge_features;

    for (int64_t at = 0; at < features->n_rows * features->stride; at++) ((float *)features->data)[at] += 0.25f;
}

static void faults_data_fini(struct faults_data *d)
{
    sample_dataset_fini(&d->old);
    sample_dataset_fini(&d->new);
}

static void faults_run(int32_t n_ranks, const char *more, struct faults_job *job, int32_t (*body)(struct host *host),
                       struct hosts *hosts)
{
    const char *settings[16] = { "layers=2", "hidden=6", "epochs=9", "threads=1" };
    char        text[160];
    int         count = 4;

    job->serial = n_ranks == 0;
    for (int i = 0; i < 2; i++) job->logits[i] = oracle_new(N * CLASSES, sizeof(float));
    snprintf(text, sizeof text, "%s", more);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) settings[count++] = word;
    hosts_run(hosts, job->serial ? 1 : n_ranks, settings, body, job);
    for (int i = 0; i < 2; i++) free(job->logits[i]);
}

static void test_update_memory(int32_t n_ranks, const char *more, uint32_t what, int regression)
{
    static struct hosts hosts;
    struct faults_data  d;
    struct faults_job   job = { .what = what };

    faults_data_init(&d, regression, 0, strstr(more, "sparse") != NULL);
    if (what & GRAFT_UPDATE_EDGE_VALUES) faults_data_value(&d);
    if (what & GRAFT_UPDATE_EDGE_FEATURES) faults_data_edges(&d);
    job.old = &d.old.dataset;
    job.new = &d.new.dataset;
    faults_run(n_ranks, more, &job, strstr(more, "batch_size") != NULL ? batches_body : memory_body, &hosts);
    if (!ok(hosts_fault(&hosts) == NULL && job.failed > (n_ranks > 0 ? 1 : 0) && job.failed < MOST,
            "%s, update of 0x%x on %d ranks: each of %lld allocations fails in turn", more, what, n_ranks,
            (long long)job.failed))
        diag("%s", hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "too few");
    faults_data_fini(&d);
}

static void test_absent(void)
{
    static struct hosts hosts;
    struct faults_data  d;
    struct faults_job   job = { .what = GRAFT_UPDATE_FEATURES };

    faults_data_init(&d, 0, 0, 0);
    job.old = &d.old.dataset;
    faults_run(3, "halo.timeout=1", &job, absent_body, &hosts);
    for (int32_t i = 0; i < 2; i++)
        ok(hosts.at[i].rc == GRAFT_ERR_PEER && hosts.at[i].error.rank == 2 && hosts.at[i].seconds < 4.9,
           "rank %d returns after %.1f s if another rank does not call: %s", i, hosts.at[i].seconds,
           hosts.at[i].error.message);
    faults_data_fini(&d);
}

static void test_split(int32_t n_ranks, const char *more, int masks)
{
    static struct hosts hosts;
    struct faults_data  d;
    struct faults_job   job = { .failed = masks };

    faults_data_init(&d, 0, 1, 0);
    job.old = &d.old.dataset;
    job.new = &d.new.dataset;
    faults_run(n_ranks, more, &job, split_body, &hosts);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s on %d ranks: a split with a new training vertex", more,
          n_ranks);
    faults_data_fini(&d);
}

static void test_best(int32_t n_ranks, const char *more, uint32_t what, int regression)
{
    static struct hosts hosts;
    struct faults_data  d;
    struct faults_job   job = { .what = what };

    faults_data_init(&d, regression, 0, strstr(more, "sparse") != NULL);
    job.old = &d.old.dataset;
    faults_run(n_ranks, more, &job, best_body, &hosts);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s on %d ranks: after update() best means last", more,
          n_ranks);
    faults_data_fini(&d);
}

int main(void)
{
    const uint32_t all = GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_LABELS | GRAFT_UPDATE_SPLIT;

    alarm(150);
    test_update_memory(0, "model=gcn order=degree", all, 0);
    test_update_memory(0, "model=gcn order=degree loss=mse", GRAFT_UPDATE_TARGETS, 1);
    test_update_memory(2, "model=sage", all, 0);
    test_update_memory(3, "model=gin order=rcm", all, 0);
    test_update_memory(2, "model=sage loss=huber", GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_TARGETS, 1);
    test_update_memory(0, "model=sage sparse_input=yes", GRAFT_UPDATE_FEATURES, 0);
    test_update_memory(3, "model=gcn sparse_input=yes order=rcm", all, 0);
    test_update_memory(2, "model=sage sparse_input=no", GRAFT_UPDATE_FEATURES, 0);
    test_update_memory(0, "model=gcn", GRAFT_UPDATE_EDGE_VALUES, 0);
    test_update_memory(0, "model=sage symmetrize=yes order=rcm", GRAFT_UPDATE_EDGE_VALUES, 0);
    test_update_memory(2, "model=sage", GRAFT_UPDATE_EDGE_VALUES, 0);
    test_update_memory(3, "model=gcn order=rcm symmetrize=yes", GRAFT_UPDATE_EDGE_VALUES | all, 0);
    test_update_memory(0, "model=gat heads=2 edge_features=array order=rcm symmetrize=yes", GRAFT_UPDATE_EDGE_FEATURES,
                       0);
    test_update_memory(2, "model=gat heads=2 edge_features=array", GRAFT_UPDATE_EDGE_FEATURES, 0);
    test_update_memory(3, "model=gat heads=2 edge_features=array order=rcm symmetrize=yes",
                       GRAFT_UPDATE_EDGE_FEATURES | all, 0);
    test_update_memory(0, "model=sage batch_size=7 fanout=3", all, 0);
    test_update_memory(0, "model=gcn batch_size=9 fanout=4 sample.weights=edge", GRAFT_UPDATE_EDGE_VALUES, 0);
    test_update_memory(2, "model=sage batch_size=5 fanout=3 partition=hash", all, 0);
    test_update_memory(3, "model=gcn batch_size=6 fanout=4 sample.weights=edge hec.miss=fetch order=rcm",
                       GRAFT_UPDATE_EDGE_VALUES | all, 0);
    test_update_memory(2, "model=gcn batch_size=6 fanout=4", GRAFT_UPDATE_EDGE_VALUES, 0);
    test_update_memory(3, "model=gat heads=2 edge_features=array batch_size=4 fanout=3", GRAFT_UPDATE_EDGE_FEATURES, 0);
    test_update_memory(2, "model=gat heads=2 edge_features=values batch_size=8", GRAFT_UPDATE_EDGE_VALUES, 0);
    test_update_memory(2, "model=mlp batch_size=6", GRAFT_UPDATE_SPLIT, 0);
    test_absent();
    for (int32_t ranks = 0; ranks < 4; ranks++) {
        test_split(ranks, "model=sage layers=1", 1);
        test_split(ranks, "model=sage row_masks=no", 0);
        test_best(ranks, "model=gcn lr=0.5 dropout=0", GRAFT_UPDATE_FEATURES, 0);
        test_best(ranks, "model=gcn lr=0.5 dropout=0 loss=mse", GRAFT_UPDATE_TARGETS, 1);
    }
    return done();
}
