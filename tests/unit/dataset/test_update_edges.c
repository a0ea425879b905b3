/* Checks update() of edge values and of edge features: the trainer must go on, bitwise, like a new trainer that is made
 * with the new ones and given the same state, in one process and over ranks. A refused update must change nothing.
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

enum { N = 83, FEATURES = 5, CLASSES = 3, EPOCHS = 2, EDGE_FEATURES = 2 };

/* Kinds of graphs as bits. MIXED has rows in no order with repeated entries. MIRRORED has the same edges in both
 * directions, and so are the values that the trainer is made with. FEW has few training vertices, so that row masks are
 * short. In ALONE every third vertex has no neighbours. POSITIVE has no negative values, so that neighbours can be
 * drawn by them. */
enum { MIXED = 0, MIRRORED = 1, FEW = 2, ALONE = 4, POSITIVE = 8 };

struct edges_job {
    const graft_dataset *old, *new;
    int                  serial;
    uint32_t             what;      /* GRAFT_UPDATE_EDGE_VALUES or GRAFT_UPDATE_EDGE_FEATURES */
    float               *logits[2]; /* [N x CLASSES] predictions of the updated trainer, and of a new one */
};

static int32_t edges_open(struct host *host, const graft_dataset *data, struct host_trainer *t)
{
    const struct edges_job *job = host->all->arg;

    if (!job->serial) {
        const int32_t rc = host_trainer_create(host, data, SLICES_ODD, t);

        if (job->what == GRAFT_UPDATE_EDGE_VALUES)
            t->slice.dataset.graph = t->slice.slice.rows; /* update() reads this member */
        return rc;
    }
    memset(t, 0, sizeof *t);
    t->slice.dataset = *data;
    t->slice.end = data->n_vertices;
    return host->train->create(host->api->context, data, &t->trainer, &host->error);
}

static void edges_close(struct host *host, struct host_trainer *t)
{
    const struct edges_job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

/* Fail with a sentence of this test. */
static int32_t edges_wrong(struct host *host, const char *words)
{
    char before[256];

    snprintf(before, sizeof before, "%.200s", host->error.message);
    snprintf(host->error.message, sizeof host->error.message, "%.80s; %s", words, before);
    return GRAFT_STATUS_END;
}

static int32_t edges_train(struct host *host, graft_trainer *trainer, double *loss)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        rc = host->train->epoch(trainer, &epoch, &host->error);
        loss[i] = epoch.loss;
    }
    return rc;
}

static int32_t edges_predict(struct host *host, const struct host_trainer *t, float *logits)
{
    const graft_dense out = { sizeof out, GRAFT_F32, t->slice.end - t->slice.first,
                              CLASSES,    CLASSES,   logits + t->slice.first * CLASSES };

    output_clear_rows(&out);
    return host->train->predict(t->trainer, GRAFT_WEIGHTS_LAST, NULL, &out, &host->error);
}

/* Expect update() of values to be refused on the ranks that have rows, and so on all. */
static int32_t edges_expect(struct host *host, const struct host_trainer *t, const graft_csr *graph, int32_t status,
                            const char *words)
{
    graft_dataset data = t->slice.dataset;

    if (t->slice.end > t->slice.first) data.graph = graph;
    if (host->train->update(t->trainer, GRAFT_UPDATE_EDGE_VALUES, &data, &host->error) == status &&
        strstr(host->error.message, words) != NULL) {
        host->error.message[0] = '\0';
        return GRAFT_OK;
    }
    return edges_wrong(host, words);
}

/* The same for edge features. */
static int32_t features_expect(struct host *host, const struct host_trainer *t, const graft_dense *features,
                               int32_t status, const char *words)
{
    graft_dataset data = t->slice.dataset;

    data.edge_features = features;
    if (host->train->update(t->trainer, GRAFT_UPDATE_EDGE_FEATURES, &data, &host->error) == status &&
        strstr(host->error.message, words) != NULL) {
        host->error.message[0] = '\0';
        return GRAFT_OK;
    }
    return edges_wrong(host, words);
}

/* Try no features, another number of them than of edges, another width, and features that are not finite. */
static int32_t features_refused(struct host *host, const struct host_trainer *t)
{
    const graft_dense *given = t->slice.dataset.edge_features;
    graft_dense        wrong = *given;
    const int64_t      count = given->n_rows * given->stride;
    float             *rows = oracle_new(count + 1, sizeof *rows);
    int32_t            rc = features_expect(host, t, NULL, GRAFT_ERR_ARG, "null");

    wrong.n_cols--;
    if (rc == GRAFT_OK) rc = features_expect(host, t, &wrong, GRAFT_ERR_ARG, "columns");
    wrong = *given;
    wrong.n_rows += wrong.n_rows > 0 ? -1 : 0;
    if (rc == GRAFT_OK) rc = features_expect(host, t, &wrong, GRAFT_ERR_ARG, "rows");
    for (int64_t at = 0; at < count; at++) rows[at] = at == count / 2 ? NAN : 0;
    wrong = *given;
    wrong.data = rows;
    if (rc == GRAFT_OK) rc = features_expect(host, t, &wrong, GRAFT_ERR_FORMAT, "not finite");
    free(rows);
    return rc;
}

/* Try other entries, no values, and values that are not finite. */
static int32_t edges_refused(struct host *host, const struct host_trainer *t)
{
    const graft_csr *rows = t->slice.dataset.graph;
    const int64_t    n = rows != NULL ? rows->n_rows : 0, entries = n > 0 ? rows->row_ptr[n] : 0;
    graft_csr        wrong = { 0 };
    int64_t         *pointers = oracle_new(n + 1, sizeof *pointers);
    int32_t         *columns = oracle_new(entries + 1, sizeof *columns);
    float           *values = oracle_new(entries + 1, sizeof *values);
    int32_t          rc = GRAFT_OK;

    if (rows != NULL) wrong = *rows;
    for (int64_t i = 0; i <= n && rows != NULL; i++) pointers[i] = rows->row_ptr[i];
    for (int64_t e = 0; e < entries; e++) columns[e] = ((const int32_t *)rows->col_idx)[e];
    for (int64_t e = 0; e < entries; e++) values[e] = ((const float *)rows->values)[e];
    wrong.values = NULL;
    rc = edges_expect(host, t, &wrong, GRAFT_ERR_ARG, "null");
    if (rc == GRAFT_OK) rc = edges_expect(host, t, NULL, GRAFT_ERR_ARG, "null");
    wrong.values = values;
    values[entries / 2] = INFINITY;
    if (rc == GRAFT_OK) rc = edges_expect(host, t, &wrong, GRAFT_ERR_FORMAT, "not finite");
    if (rows != NULL) wrong.values = rows->values;
    wrong.col_idx = columns;
    columns[entries / 2] = (columns[entries / 2] + 1) % N;
    if (rc == GRAFT_OK) rc = edges_expect(host, t, &wrong, GRAFT_ERR_ARG, "entries");
    if (rows != NULL) wrong.col_idx = rows->col_idx;
    pointers[n]--;
    wrong.row_ptr = pointers;
    if (rc == GRAFT_OK) rc = edges_expect(host, t, &wrong, GRAFT_ERR_ARG, "entries");
    free(pointers);
    free(columns);
    free(values);
    return rc;
}

/* Update the values to those of `data`. Then the trainer must do what a new trainer with them does. */
static int32_t edges_change(struct host *host, struct host_trainer *t, const graft_dataset *data)
{
    const struct edges_job *job = host->all->arg;
    const int64_t           at = t->slice.first * CLASSES, count = (t->slice.end - t->slice.first) * CLASSES;
    struct host_trainer     fresh = { 0 };
    double                  loss[2][EPOCHS] = { { 0 } };
    const char             *wrong = NULL;
    int32_t                 rc = edges_open(host, data, &fresh);

    if (rc == GRAFT_OK) rc = host->train->update(t->trainer, job->what, &fresh.slice.dataset, &host->error);
    if (rc == GRAFT_OK) rc = job->what == GRAFT_UPDATE_EDGE_VALUES ? edges_refused(host, t) : features_refused(host, t);
    /* After update() the state has no rows of earlier batches, which a new trainer does not have either. */
    if (rc == GRAFT_OK) rc = host_copy_state(host, t->trainer, fresh.trainer);
    if (rc == GRAFT_OK) rc = edges_predict(host, t, job->logits[0]);
    if (rc == GRAFT_OK) rc = edges_predict(host, &fresh, job->logits[1]);
    if (memcmp(job->logits[0] + at, job->logits[1] + at, (size_t)count * sizeof(float)) != 0)
        /* Reported at the end, when no rank waits for this one. */
        wrong = "predictions are not those of a new trainer";
    if (rc == GRAFT_OK) rc = edges_train(host, t->trainer, loss[0]);
    if (rc == GRAFT_OK) rc = edges_train(host, fresh.trainer, loss[1]);
    if (memcmp(loss[0], loss[1], sizeof loss[0]) != 0) wrong = "losses are not those of a new trainer";
    if (rc == GRAFT_OK) rc = edges_predict(host, t, job->logits[0]);
    if (rc == GRAFT_OK) rc = edges_predict(host, &fresh, job->logits[1]);
    if (memcmp(job->logits[0] + at, job->logits[1] + at, (size_t)count * sizeof(float)) != 0)
        wrong = "predictions after epochs are not those of a new trainer";
    edges_close(host, &fresh);
    return rc == GRAFT_OK && wrong != NULL ? edges_wrong(host, wrong) : rc;
}

/* Update to the new values and back to the old ones, after epochs with the values of create(). */
static int32_t edges_body(struct host *host)
{
    const struct edges_job *job = host->all->arg;
    struct host_trainer     t = { 0 };
    double                  loss[EPOCHS];
    int32_t                 rc = edges_open(host, job->old, &t), back;

    if (rc == GRAFT_OK) rc = edges_train(host, t.trainer, loss);
    if (rc == GRAFT_OK) rc = edges_change(host, &t, job->new);
    back = rc == GRAFT_OK || rc == GRAFT_STATUS_END ? edges_change(host, &t, job->old) : rc;
    if (rc == GRAFT_OK) rc = back;
    edges_close(host, &t);
    return rc;
}

/* A graph without values has none that could be replaced. */
static int32_t bare_body(struct host *host)
{
    const struct edges_job *job = host->all->arg;
    struct host_trainer     t = { 0 };
    int32_t                 rc = edges_open(host, job->old, &t), updated;

    if (rc != GRAFT_OK) return rc;
    updated = host->train->update(t.trainer, GRAFT_UPDATE_EDGE_FEATURES, &t.slice.dataset, &host->error);
    if (updated != GRAFT_ERR_STATE || strstr(host->error.message, "without edge_features") == NULL)
        rc = edges_wrong(host, "features where there were none");
    updated = host->train->update(t.trainer, GRAFT_UPDATE_EDGE_VALUES, &t.slice.dataset, &host->error);
    if (updated != GRAFT_ERR_STATE || strstr(host->error.message, "without values") == NULL)
        rc = edges_wrong(host, "values where there were none");
    edges_close(host, &t);
    return rc;
}

/* -- data --------------------------------------------------------------------------------------------------------- */

struct edges_data {
    struct sample_dataset set;
    graft_dataset         old, new;
    graft_csr             graph[2]; /* graphs with the old and the new values */
    int64_t              *row_ptr;
    int32_t              *col_idx;
    float                *values[2];
    graft_dense           features[2]; /* edge features, old and new */
};

static int is_entry(const graft_csr *csr, int64_t v, int64_t u)
{
    for (int64_t e = csr->row_ptr[v]; e < csr->row_ptr[v + 1]; e++)
        if (((const int32_t *)csr->col_idx)[e] == u) return 1;
    return 0;
}

/* Write the entries of the graph: ascending rows that are mirrored, or descending rows with every third entry twice. */
static int64_t put_entries(struct edges_data *d, int kind)
{
    const graft_csr *csr = &d->set.graph.csr;
    int64_t          put = 0;

    for (int64_t v = 0; v < N; v++) {
        for (int64_t i = 0; i < N; i++) {
            const int64_t u = kind & MIRRORED ? i : N - 1 - i;

            if ((kind & ALONE) && (v % 3 == 1 || u % 3 == 1)) continue;
            if (!is_entry(csr, v, u) && !((kind & MIRRORED) && is_entry(csr, u, v))) continue;
            d->col_idx[put++] = (int32_t)u;
            if (!(kind & MIRRORED) && put % 3 == 0) d->col_idx[put++] = (int32_t)u;
        }
        d->row_ptr[v + 1] = put;
    }
    return put;
}

static void edges_data_init(struct edges_data *d, int kind)
{
    struct sample sample = { 5 };

    *d = (struct edges_data){ 0 };
    sample_dataset_init(&d->set, &sample, N, FEATURES, CLASSES, 0, 0);
    d->row_ptr = oracle_new(N + 1, sizeof *d->row_ptr);
    d->col_idx = oracle_new(2 * N * N, sizeof *d->col_idx);
    put_entries(d, kind);
    for (int i = 0; i < 2; i++) {
        d->values[i] = oracle_new(d->row_ptr[N], sizeof *d->values[i]);
        d->graph[i] = d->set.graph.csr;
        d->graph[i].row_ptr = d->row_ptr;
        d->graph[i].col_idx = d->col_idx;
        d->graph[i].values = d->values[i];
        d->graph[i].value_type = GRAFT_F32;
    }
    for (int64_t v = 0; v < N; v++) {
        for (int64_t e = d->row_ptr[v]; e < d->row_ptr[v + 1]; e++) {
            d->values[0][e] = kind & MIRRORED ? (float)(v + d->col_idx[e]) / N : (float)sample_real(&sample, -0.2, 1);
            d->values[1][e] = (float)sample_real(&sample, -0.3, 1.5);
            for (int i = 0; i < 2 && (kind & POSITIVE); i++) d->values[i][e] = fabsf(d->values[i][e]);
        }
        if ((kind & FEW) && v >= 4) d->set.split[v] = GRAFT_SPLIT_VALIDATION;
    }
    d->old = d->new = d->set.dataset;
    for (int i = 0; i < 2; i++) {
        const int64_t count = d->row_ptr[N] * EDGE_FEATURES;
        float        *features = oracle_new(count, sizeof *features);

        for (int64_t at = 0; at < count; at++) features[at] = (float)sample_real(&sample, -1, 1);
        d->features[i] =
            (graft_dense){ sizeof d->features[i], GRAFT_F32, d->row_ptr[N], EDGE_FEATURES, EDGE_FEATURES, features };
    }
    d->old.edge_features = &d->features[0];
    d->new.edge_features = &d->features[1];
    d->old.graph = &d->graph[0];
    d->new.graph = &d->graph[1];
}

static void edges_data_fini(struct edges_data *d)
{
    for (int i = 0; i < 2; i++) free(d->values[i]);
    for (int i = 0; i < 2; i++) free(d->features[i].data);
    free(d->row_ptr);
    free(d->col_idx);
    sample_dataset_fini(&d->set);
}

static void edges_run(int32_t n_ranks, const char *more, int kind, int bare, int32_t (*body)(struct host *host))
{
    const char         *settings[16] = { "layers=2", "hidden=6", "epochs=99", "threads=1", "partition=hash" };
    static struct hosts hosts;
    struct edges_data   d;
    struct edges_job    job = { .serial = n_ranks == 0, .what = GRAFT_UPDATE_EDGE_VALUES };
    char                text[160];
    int                 count = job.serial ? 4 : 5;

    edges_data_init(&d, kind);
    job.old = bare ? &d.set.dataset : &d.old;
    job.new = &d.new;
    if (strstr(more, "edge_features=array") != NULL) job.what = GRAFT_UPDATE_EDGE_FEATURES;
    for (int i = 0; i < 2; i++) job.logits[i] = oracle_new(N * CLASSES, sizeof(float));
    snprintf(text, sizeof text, "%s", more);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) settings[count++] = word;
    settings[count] = NULL;
    hosts_run(&hosts, job.serial ? 1 : n_ranks, settings, body, &job);
    if (hosts_fault(&hosts) != NULL && strstr(hosts_fault(&hosts), "there is no kernel module") != NULL)
        skip(1, "%s", hosts_fault(&hosts));
    else
        ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s, %s%s%s on %d ranks", more,
              kind & MIRRORED ? "mirrored" : "mixed", kind & FEW ? ", few are trained" : "",
              kind & ALONE ? ", some without neighbours" : "", n_ranks);
    for (int i = 0; i < 2; i++) free(job.logits[i]);
    edges_data_fini(&d);
}

int main(void)
{
    static const char *const settings[] = {
        "model=sage dropout=0.2",
        "model=gcn",
        "model=gin recompute=yes threads=2",
        "model=sgc",
        "model=appnp propagation=2 reuse_input=no",
        "model=gat heads=2 order=rcm",
        "model=gat heads=2 edge_features=values order=rcm",
        "model=gat heads=2 edge_features=values symmetrize=yes dropout=0.3",
        "model=gat heads=3 edge_features=values self_loops=no recompute=yes",
        "model=gat heads=2 edge_features=array",
        "model=gat heads=3 edge_features=array self_loops=no",
        "model=gat heads=2 edge_features=array symmetrize=yes order=rcm dropout=0.3",
        "model=sage aggregator=max",
        "model=sage aggregator=min",
        "model=mlp",
        "model=sage symmetrize=yes self_loops=yes row_masks=no",
        "model=gcn order=degree row_masks=no",
        "model=gcn symmetrize=yes order=rcm self_loops=no",
        "model=sage label_rate=0.4 input_dropout=0.3 mxm.kernel=graphblas",
        "model=gin order=community self_loops=yes mxm.kernel=reference"
    };
    static const char *const over_ranks[] = { "model=sage parallel=feature",
                                              "model=gcn parallel=feature feature.graph=stream symmetrize=yes",
                                              "model=sage halo.staleness=1",
                                              "model=gcn halo.cover=pre",
                                              "model=gin halo.cover=post halo.codec=q4",
                                              "model=gcn symmetrize=yes halo.codec=adaptive halo.budget=balance:0.5:1",
                                              "model=sage halo.codec=adaptive halo.staleness=1",
                                              "model=gat heads=2 edge_features=values halo.staleness=1",
                                              "model=gat heads=2 edge_features=array halo.codec=q8",
                                              "model=gat heads=2 edge_features=values halo.codec=adaptive "
                                              "halo.budget=error:0.01:1" };
    static const char *const batches[] = { "model=gcn batch_size=9 fanout=2 dropout=0.2",
                                           "model=sage batch_size=20 sampler=cluster partition.program=none",
                                           "model=gcn batch_size=20 history=full" };
    static const char *const by_value[] = {
        "model=gat heads=2 batch_size=9 fanout=2 sample.weights=edge order=rcm",
        "model=sage aggregator=max batch_size=9 fanout=2 sample.weights=edge order=rcm self_loops=yes",
        "model=sage aggregator=min batch_size=9 fanout=2 sample.weights=edge order=rcm self_loops=yes",
        "model=gcn batch_size=9 fanout=2 sample.weights=edge order=degree"
    };

    alarm(170);
    for (int32_t ranks = 0; ranks < 4; ranks++) {
        for (size_t s = 0; s < sizeof settings / sizeof *settings; s++)
            for (int kind = MIXED; kind <= (MIRRORED | FEW); kind += ranks == 0 ? 1 : MIRRORED | FEW)
                edges_run(ranks, settings[s], kind, 0, edges_body);
        for (size_t s = 0; s < sizeof over_ranks / sizeof *over_ranks && ranks > 1; s++)
            for (int kind = 0; kind <= FEW; kind += FEW) edges_run(ranks, over_ranks[s], kind, 0, edges_body);
        for (size_t s = 0; s < 3 && ranks > 1; s++) edges_run(ranks, over_ranks[s], MIXED | ALONE, 0, edges_body);
        for (size_t s = 0; s < sizeof batches / sizeof *batches; s++)
            if (ranks == 0 || s == 0) edges_run(ranks, batches[s], MIXED, 0, edges_body);
        for (size_t s = 0; s < sizeof by_value / sizeof *by_value; s++)
            edges_run(ranks, by_value[s], POSITIVE, 0, edges_body);
        edges_run(ranks, "model=gcn", MIXED, 1, bare_body);
    }
    edges_run(4, "model=gcn parallel=grid symmetrize=yes", MIXED, 0, edges_body);
    edges_run(4, "model=sage parallel=grid feature.graph=stream", FEW, 0, edges_body);
    return done();
}
