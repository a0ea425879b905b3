/* Checks update(): a trainer whose arrays were replaced must go on like a new trainer that is made with the new arrays
 * and given the same state, in one process and over ranks. A refused update must change nothing.
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

enum { N = 211, FEATURES = 9, CLASSES = 4, BEFORE = 2, AFTER = 2 };

/* The data before and after the update, and what is replaced. */
struct job {
    const graft_dataset *old, *new;
    uint32_t             what;
    const char          *settings;
    int                  serial;
    float               *logits[2]; /* [N x CLASSES] predictions of the updated trainer, and of a new one */
};

/* Make the trainer of a rank, or of one process. */
static int32_t open_trainer(struct host *host, const graft_dataset *data, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (!job->serial) return host_trainer_create(host, data, SLICES_ODD, t);
    memset(t, 0, sizeof *t);
    t->slice.dataset = *data;
    t->slice.end = data->n_vertices;
    return host->train->create(host->api->context, data, &t->trainer, &host->error);
}

static void close_trainer(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

static int32_t train(struct host *host, graft_trainer *trainer, int epochs, double *loss)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    for (int i = 0; i < epochs && rc == GRAFT_OK; i++) {
        rc = host->train->epoch(trainer, &epoch, &host->error);
        loss[i] = epoch.loss;
    }
    return rc;
}

static int32_t predict(struct host *host, const struct host_trainer *t, float *logits)
{
    const graft_dense out = { sizeof out, GRAFT_F32, t->slice.end - t->slice.first,
                              CLASSES,    CLASSES,   logits + t->slice.first * CLASSES };

    output_clear_rows(&out);
    return host->train->predict(t->trainer, GRAFT_WEIGHTS_LAST, NULL, &out, &host->error);
}

/* Fail with a sentence of this test. */
static int32_t update_wrong(struct host *host, const char *words)
{
    snprintf(host->error.message, sizeof host->error.message, "%s", words);
    return GRAFT_STATUS_END;
}

/* Try updates that must be refused: unknown or null arrays, other shapes, a value that is not finite. */
static int32_t refused(struct host *host, const struct host_trainer *t)
{
    graft_error   error = GRAFT_INIT(graft_error);
    graft_dataset data = t->slice.dataset;
    graft_dense   features = *data.features;
    float         hole[N * 2 * FEATURES];

    if (host->train->update(t->trainer, 0, &data, &error) != GRAFT_ERR_ARG) return update_wrong(host, "0 is accepted");
    if (host->train->update(t->trainer, 1u << 20, &data, &error) != GRAFT_ERR_ARG)
        return update_wrong(host, "unknown bits");
    features.n_cols--;
    data.features = &features;
    if (host->train->update(t->trainer, GRAFT_UPDATE_FEATURES, &data, &error) != GRAFT_ERR_ARG)
        return update_wrong(host, "features of another width are accepted");
    features.n_cols++;
    features.data = hole;
    if (features.n_rows > 0) {
        memcpy(hole, t->slice.dataset.features->data, (size_t)(features.n_rows * features.stride) * sizeof *hole);
        hole[(features.n_rows - 1) * features.stride] = NAN;
    } else features.data = t->slice.dataset.features->data;
    if (host->train->update(t->trainer, GRAFT_UPDATE_FEATURES, &data, &error) != GRAFT_ERR_FORMAT)
        return update_wrong(host, "features that are not finite are accepted");
    if (host->n_ranks > 1 && host->train->update(t->trainer, host->rank == 0 ? GRAFT_UPDATE_LABELS : GRAFT_UPDATE_SPLIT,
                                                 &t->slice.dataset, &error) != GRAFT_ERR_ARG)
        return update_wrong(host, "ranks replace other arrays");
    return GRAFT_OK;
}

/* Try the same for sparse features: another column in the last entry of rank 0, and other shapes. */
static int32_t refused_sparse(struct host *host, const struct host_trainer *t)
{
    const struct job *job = host->all->arg;
    graft_error       error = GRAFT_INIT(graft_error);
    graft_dataset     data = t->slice.dataset;
    graft_csr         sparse = *data.sparse_features;
    const int64_t     entries = sparse.n_rows > 0 ? sparse.row_ptr[sparse.n_rows] : 0;
    int32_t          *columns = oracle_new(entries + 1, sizeof *columns), rc;

    data.sparse_features = &sparse;
    sparse.n_cols--;
    if (host->train->update(t->trainer, GRAFT_UPDATE_FEATURES, &data, &error) != GRAFT_ERR_ARG)
        return update_wrong(host, "sparse features of another width are accepted");
    sparse.n_cols++;
    for (int64_t e = 0; e < entries; e++) columns[e] = ((const int32_t *)sparse.col_idx)[e];
    if (entries > 0) columns[entries - 1] = (columns[entries - 1] + 1) % FEATURES;
    sparse.col_idx = columns;
    rc = strstr(job->settings, "sparse_input=yes") != NULL
             ? host->train->update(t->trainer, GRAFT_UPDATE_FEATURES, &data, &error)
             : GRAFT_ERR_ARG;
    free(columns);
    return rc == GRAFT_ERR_ARG ? GRAFT_OK : update_wrong(host, "other entries are accepted");
}

/* Whether two numbers are equal. They must be bitwise identical, unless other vertices are trained, which changes the
 * order of sums. */
static int are_same(const struct job *job, double a, double b)
{
    return a == b || ((job->what & GRAFT_UPDATE_SPLIT) != 0 && fabs(a - b) < 1e-5 * (1 + fabs(b)));
}

/* Compare losses and logits with those of a new trainer that has the new data and the old state. */
static int32_t body(struct host *host)
{
    const struct job   *job = host->all->arg;
    struct host_trainer updated = { 0 }, fresh = { 0 };
    struct host_slice   slice = { 0 };
    double              loss[2][BEFORE + AFTER] = { { 0 } };
    int32_t             rc = open_trainer(host, job->old, &updated);

    if (!job->serial) host_slice_init(&slice, job->new, SLICES_ODD, host->rank, host->n_ranks);
    else slice.dataset = *job->new;
    if (rc == GRAFT_OK) rc = open_trainer(host, job->new, &fresh);
    if (rc == GRAFT_OK) rc = train(host, updated.trainer, BEFORE, loss[0]);
    if (rc == GRAFT_OK) rc = predict(host, &updated, job->logits[0]); /* computes sums that the update makes stale */
    if (rc == GRAFT_OK) rc = host_copy_state(host, updated.trainer, fresh.trainer);
    if (rc == GRAFT_OK) rc = host->train->update(updated.trainer, job->what, &slice.dataset, &host->error);
    if (rc == GRAFT_OK)
        rc = job->new->sparse_features != NULL ? refused_sparse(host, &updated) : refused(host, &updated);
    if (rc == GRAFT_OK) rc = train(host, updated.trainer, AFTER, loss[0]);
    if (rc == GRAFT_OK) rc = train(host, fresh.trainer, AFTER, loss[1]);
    if (rc == GRAFT_OK) rc = predict(host, &updated, job->logits[0]);
    if (rc == GRAFT_OK) rc = predict(host, &fresh, job->logits[1]);
    for (int i = 0; i < AFTER && rc == GRAFT_OK; i++)
        if (!are_same(job, loss[0][i], loss[1][i])) rc = update_wrong(host, "losses are not those of a new trainer");
    close_trainer(host, &updated);
    close_trainer(host, &fresh);
    if (!job->serial) host_slice_fini(&slice);
    return rc;
}

/* -- data --------------------------------------------------------------------------------------------------------- */

/* The same graph with other features, other labels, and fewer training vertices. */
struct other {
    graft_dataset dataset;
    graft_dense   features, float_targets;
    graft_csr     sparse;
    float        *x, *y, *entries;
    int32_t      *labels;
    uint8_t      *targets, *split;
};

static void other_init(struct other *o, const struct sample_dataset *set, struct sample *sample, uint32_t what)
{
    *o = (struct other){ .dataset = set->dataset, .features = set->features };
    o->x = oracle_new(N * FEATURES, sizeof *o->x);
    o->labels = oracle_new(N, sizeof *o->labels);
    o->targets = oracle_new(N * CLASSES, 1);
    o->split = oracle_new(N, 1);
    for (int64_t i = 0; i < N * FEATURES; i++) o->x[i] = (float)sample_real(sample, -1, 1);
    for (int64_t v = 0; v < N; v++) {
        o->split[v] = set->split[v] == GRAFT_SPLIT_TRAIN && v % 3 == 0 ? GRAFT_SPLIT_TEST : set->split[v];
        if (set->labels != NULL) o->labels[v] = set->labels[v] < 0 ? -1 : (set->labels[v] + 1) % CLASSES;
        for (int j = 0; j < CLASSES && set->targets != NULL; j++)
            o->targets[v * CLASSES + j] = set->targets[v * CLASSES + (j + 1) % CLASSES];
    }
    o->y = oracle_new(N * (CLASSES + 1), sizeof *o->y);
    for (int64_t i = 0; i < N * (CLASSES + 1); i++) {
        o->y[i] = sample_below(sample, 5) == 0 ? NAN : (float)sample_real(sample, -1, 1);
        if (i % (CLASSES + 1) == CLASSES) o->y[i] = INFINITY; /* a gap between rows */
    }
    o->float_targets = set->float_targets;
    o->float_targets.data = o->y;
    o->float_targets.stride = CLASSES + 1;
    o->features.data = o->x;
    o->features.stride = FEATURES;
    if (set->dataset.sparse_features != NULL) {
        o->sparse = *set->dataset.sparse_features;
        o->entries = oracle_new(o->sparse.row_ptr[N], sizeof *o->entries);
        for (int64_t e = 0; e < o->sparse.row_ptr[N]; e++) o->entries[e] = (float)sample_real(sample, -1, 1);
        o->sparse.values = o->entries;
        if (what & GRAFT_UPDATE_FEATURES) o->dataset.sparse_features = &o->sparse;
    } else if (what & GRAFT_UPDATE_FEATURES) o->dataset.features = &o->features;
    if (what & GRAFT_UPDATE_LABELS) o->dataset.labels = o->labels;
    if ((what & GRAFT_UPDATE_TARGETS) && set->dataset.float_targets != NULL)
        o->dataset.float_targets = &o->float_targets;
    else if (what & GRAFT_UPDATE_TARGETS) o->dataset.targets = o->targets;
    if (what & GRAFT_UPDATE_SPLIT) o->dataset.split = o->split;
}

static void other_fini(struct other *o)
{
    free(o->x);
    free(o->entries);
    free(o->y);
    free(o->labels);
    free(o->targets);
    free(o->split);
}

static void test_update(int32_t n_ranks, uint32_t what, const char *more)
{
    static const char *const settings[] = { "layers=2", "hidden=12", "epochs=9", "threads=2", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 11 };
    struct sample_dataset    set;
    struct other             other;
    struct job               job = { .what = what, .settings = more, .serial = n_ranks == 0 };
    const char              *given[16], *fault;
    char                     text[160];
    int                      count = 0;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, (what & GRAFT_UPDATE_TARGETS) != 0,
                        strstr(more, "sparse_input=") != NULL);
    if (strstr(more, "loss=") != NULL && strstr(more, "loss=softmax") == NULL) sample_dataset_regress(&set, &sample);
    other_init(&other, &set, &sample, what);
    job.old = &set.dataset;
    job.new = &other.dataset;
    for (int i = 0; i < 2; i++) job.logits[i] = oracle_new(N * CLASSES, sizeof(float));
    for (int i = 0; settings[i] != NULL; i++) given[count++] = settings[i];
    /* Every other rank has a slice, and there are edges between all. */
    if (!job.serial) given[count++] = "partition=hash";
    snprintf(text, sizeof text, "%s", more);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) given[count++] = word;
    given[count] = NULL;
    hosts_run(&hosts, job.serial ? 1 : n_ranks, given, body, &job);
    fault = hosts_fault(&hosts);
    for (int64_t i = 0; i < N * CLASSES && fault == NULL; i++)
        if (!are_same(&job, job.logits[0][i], job.logits[1][i])) fault = "predictions are not those of a new trainer";
    ok_or(fault == NULL, fault, "%s%s%s%s on %d ranks: %s", what & GRAFT_UPDATE_FEATURES ? "features " : "",
          what & GRAFT_UPDATE_LABELS ? "labels " : "", what & GRAFT_UPDATE_TARGETS ? "targets " : "",
          what & GRAFT_UPDATE_SPLIT ? "split " : "", n_ranks, more);
    for (int i = 0; i < 2; i++) free(job.logits[i]);
    other_fini(&other);
    sample_dataset_fini(&set);
}

int main(void)
{
    static const char *const settings[] = { "model=sage dropout=0.2",
                                            "model=gcn order=degree input_dropout=0.3",
                                            "model=gat heads=2 normalize_features=yes",
                                            "model=gin row_masks=no recompute=yes",
                                            "model=sage label_rate=0.4 dropout=0",
                                            "model=appnp propagation=2 reuse_input=no" };
    static const uint32_t    all[] = { GRAFT_UPDATE_FEATURES, GRAFT_UPDATE_LABELS,
                                       GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_LABELS | GRAFT_UPDATE_SPLIT,
                                       GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_TARGETS };

    static const uint32_t floats[] = { GRAFT_UPDATE_TARGETS,
                                       GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_TARGETS | GRAFT_UPDATE_SPLIT };

    alarm(170);
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
        for (size_t w = 0; w < sizeof all / sizeof *all; w++)
            for (int32_t ranks = 0; ranks < 4; ranks++) test_update(ranks, all[w], settings[s]);
    test_update(3, GRAFT_UPDATE_FEATURES, "model=sage halo.staleness=1");
    for (int32_t ranks = 0; ranks < 4; ranks += 3) {
        test_update(ranks, GRAFT_UPDATE_FEATURES, "model=sage sparse_input=yes");
        test_update(ranks, GRAFT_UPDATE_FEATURES, "model=gcn sparse_input=yes input_dropout=0.3 order=degree");
        test_update(ranks, GRAFT_UPDATE_FEATURES, "model=gin sparse_input=no normalize_features=yes");
    }
    for (int32_t ranks = 0; ranks < 4; ranks += 3) { /* the class weights are those of the new labels */
        test_update(ranks, GRAFT_UPDATE_LABELS, "model=gcn order=degree loss=softmax:balanced");
        test_update(ranks, GRAFT_UPDATE_LABELS | GRAFT_UPDATE_SPLIT | GRAFT_UPDATE_FEATURES,
                    "model=sage label_rate=0.4 loss=softmax:balanced:0.2");
    }
    for (size_t w = 0; w < sizeof floats / sizeof *floats; w++) {
        for (int32_t ranks = 0; ranks < 4; ranks += 3) {
            test_update(ranks, floats[w], "model=sage loss=mse row_masks=no");
            test_update(ranks, floats[w], "model=gcn loss=huber row_masks=no order=degree");
        }
    }
    return done();
}
