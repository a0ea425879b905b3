/* Training with stale rows: with halo.refresh=1 it has the bits of synchronous training; else those of a
 * straight-line implementation that keeps the rows of the previous epoch. And what the results do not depend on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 8, HALF = 4, N = 90, FEATURES = 7, CLASSES = 3, RUNS_MOST = 12, ITEMS = 96, ITEM_BYTES = 4096 };

/* The arrays of a state. */
struct state {
    int              count;
    graft_state_item item[ITEMS];
    char             name[ITEMS][64], data[ITEMS][ITEM_BYTES];
};

/* The results of a trainer on one rank. */
struct outcome {
    double        loss[EPOCHS], drift[EPOCHS];
    int           waited[EPOCHS];
    graft_traffic traffic; /* of all ranks */
    struct state  first, half, last;
};

/* One trainer, from create() to destroy(). */
struct run {
    const char *settings;   /* parted by blanks, behind those of all runs */
    int         evaluates;  /* between epochs, and predicts */
    int         sets_state; /* that it has half-way, anew */
    int         from;       /* begins with the state of this run half-way; 0: of none */
    int         gives_up;   /* destroyed after so many epochs, with messages in flight; 0: never */
};

/* A data set, and trainers one after the other, over the same graph. */
struct job {
    struct sample_dataset set;
    enum slices           way;
    int32_t               owner[N];
    int                   n_runs;
    struct run            run[RUNS_MOST];
    struct outcome        at[RUNS_MOST][HOSTS_MOST];
};

static uint64_t bytes_of(const graft_state_item *item)
{
    uint64_t bytes = item->dtype == GRAFT_F32 ? 4 : 8;

    for (int32_t d = 0; d < item->n_dims; d++) bytes *= (uint64_t)item->shape[d];
    return bytes;
}

static void keep_state(const graft_train *train, graft_trainer *trainer, struct state *s)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (s->count = 0; train->state_item(trainer, s->count, &item, NULL) == GRAFT_OK; s->count++) {
        if (s->count == ITEMS || bytes_of(&item) > ITEM_BYTES || strlen(item.name) > 63) {
            printf("Bail out! there is no room for %s\n", item.name);
            exit(2);
        }
        s->item[s->count] = item;
        strcpy(s->name[s->count], item.name);
        memcpy(s->data[s->count], item.data, bytes_of(&item));
    }
}

static int32_t set_state(const graft_train *train, graft_trainer *trainer, const struct state *s, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int i = 0; i < s->count && rc == GRAFT_OK; i++) {
        graft_state_item item = s->item[i];

        item.name = s->name[i];
        item.data = s->data[i];
        rc = train->state_set(trainer, &item, error);
    }
    return rc;
}

static int same_state(const struct state *a, const struct state *b)
{
    for (int i = 0; i < a->count; i++)
        if (memcmp(a->data[i], b->data[i], bytes_of(&a->item[i])) != 0) return 0;
    return a->count == b->count && a->count > 4;
}

/* --- the ranks --- */

static int32_t look_around(struct host *host, graft_trainer *trainer)
{
    static _Thread_local int32_t labels[N];
    graft_metrics                metrics = GRAFT_INIT(graft_metrics);
    int32_t                      rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);

    return rc < 0 ? rc : host->train->predict(trainer, GRAFT_WEIGHTS_BEST, labels, NULL, &host->error);
}

static int32_t train_async_train(struct host *host, struct job *job, int number, graft_trainer *trainer)
{
    const struct run *run = &job->run[number];
    struct outcome   *o = &job->at[number][host->rank];
    int32_t           rc = GRAFT_OK;

    keep_state(host->train, trainer, &o->first);
    for (int e = 0; e < (run->gives_up > 0 ? run->gives_up : EPOCHS) && rc == GRAFT_OK; e++) {
        graft_epoch epoch = GRAFT_INIT(graft_epoch);

        if (e == HALF) keep_state(host->train, trainer, &o->half);
        if (e == HALF && run->sets_state) rc = set_state(host->train, trainer, &o->half, &host->error);
        if (e == 0 && run->from > 0) {
            rc = set_state(host->train, trainer, &job->at[run->from][host->rank].half, &host->error);
            e = HALF;
        }
        if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
        o->loss[e] = epoch.loss;
        o->drift[e] = epoch.drift;
        o->waited[e] = epoch.synchronous;
        if (rc == GRAFT_OK && run->evaluates && e % 3 != 1) rc = look_around(host, trainer);
    }
    o->traffic = GRAFT_INIT(graft_traffic);
    if (rc == GRAFT_OK) rc = host->train->traffic(trainer, -1, &o->traffic, &host->error);
    keep_state(host->train, trainer, &o->last);
    return rc;
}

/* What all runs have. */
static const char *const usual = "layers=3 hidden=3,6 heads=1 epochs=8 dropout=0 input_dropout=0 norm=none "
                                 "optimizer=sgd lr=0.2 momentum=0 eval_every=0 reuse_input=yes row_masks=yes "
                                 "recompute=no label_rate=0 sparse_input=auto halo.codec=f32 halo.staleness=0 "
                                 "halo.refresh=0 halo.smoothing=0 halo.drift_limit=0 threads=1 log.level=error";

static int32_t train_runs(struct host *host)
{
    struct job       *job = host->all->arg;
    graft_graph      *graph = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &job->set.dataset, job->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (rc == GRAFT_OK) {
        graft_graph_info info = GRAFT_INIT(graft_graph_info);

        rc = host->graphs->info(graph, host->rank, &info, &host->error);
        for (int64_t i = 0; i < info.n_owned; i++) job->owner[host->graphs->owned(graph)[i]] = host->rank;
    }
    for (int i = 0; i < job->n_runs && rc == GRAFT_OK; i++) {
        graft_trainer *trainer = NULL;

        host_set_all(host->api, usual);
        host_set_all(host->api, job->run[i].settings);
        rc = host->train->create(host->api->context, &s.dataset, &trainer, &host->error);
        if (rc == GRAFT_OK) rc = train_async_train(host, job, i, trainer);
        host->train->destroy(trainer);
    }
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

static void train_async_add(struct job *job, struct run run)
{
    job->run[job->n_runs++] = run;
}

/* Run all of it. Returns what is wrong, or NULL. */
static const char *train_async_play(struct job *job, int32_t n_ranks, const char *partition, const char *cover)
{
    static struct hosts hosts;
    char                by[64], with[64];
    const char *const   settings[] = { by, with, "halo.timeout=60", NULL };

    snprintf(by, sizeof by, "partition=%s", partition);
    snprintf(with, sizeof with, "halo.cover=%s", cover);
    hosts_run(&hosts, n_ranks, settings, train_runs, job);
    if (hosts_fault(&hosts) != NULL) return hosts_fault(&hosts);
    for (int i = 0; i < job->n_runs; i++)
        for (int32_t r = 1; r < n_ranks; r++)
            if (!same_state(&job->at[i][r].last, &job->at[i][0].last)) return "ranks have other weights";
    return NULL;
}

/* --- the same bits --- */

/* Whether two runs have the same results, from an epoch on. */
static int same(const struct job *job, int a, int b, int from)
{
    const struct outcome *x = &job->at[a][0], *y = &job->at[b][0];

    return memcmp(x->loss + from, y->loss + from, (size_t)(EPOCHS - from) * sizeof(double)) == 0 &&
           same_state(&x->last, &y->last);
}

enum { SYNC, EVERY_ONE, ASYNC, REMADE, OBSERVED, GIVES_UP, ANEW, RESTORED, RESUMED, EVERY_FOUR, RESTORED_FOUR, RUNS };

static const char *train_async_judge(const struct job *job, int is_mlp, int has_labels)
{
    const graft_traffic *sync = &job->at[SYNC][0].traffic, *async = &job->at[ASYNC][0].traffic;
    const int            exchanges = sync->halo_bytes_per_epoch > 0;

    if (!same(job, EVERY_ONE, SYNC, 0)) return "with halo.refresh=1 it has other bits than synchronous";
    if (!same(job, REMADE, ASYNC, 0)) return "with recompute it has other bits";
    if (!same(job, OBSERVED, ASYNC, 0)) return "evaluations and predictions in between change it";
    if (!same(job, ANEW, ASYNC, 0)) return "after a trainer that was destroyed half-way it has other bits";
    if (!same(job, RESUMED, RESTORED, HALF)) return "a state that is set says not all of what comes after it";
    if (!same(job, RESTORED_FOUR, EVERY_FOUR, 0)) return "set in an epoch that waits, a state changes what comes after";
    if (exchanges && !is_mlp && same(job, ASYNC, SYNC, 0)) return "asynchronous is no other than synchronous";
    if (memcmp(job->at[ASYNC][0].loss, job->at[SYNC][0].loss, sizeof(double)) != 0) return "the first epoch is another";
    if (sync->staleness_max != 0 || job->at[EVERY_ONE][0].traffic.staleness_max != 0) return "rows are told old";
    if (async->staleness_max != (exchanges && !is_mlp)) return "rows are not told old";
    if (async->halo_bytes_per_epoch != sync->halo_bytes_per_epoch) return "other bytes than synchronous";
    if (!has_labels && job->at[REMADE][0].traffic.halo_bytes_per_epoch != async->halo_bytes_per_epoch)
        return "rows are sent again to make a layer again";
    return NULL;
}

/* Options, and what the data set is. */
struct setup {
    const char *settings;
    int         sparse, several;
};

static const struct setup setups[] = {
    { "", 0, 0 },
    { "halo.codec=q8 halo.codec_evaluation=same reuse_input=no", 0, 0 },
    { "halo.codec=q2 row_masks=no dropout=0.3 halo.codec_evaluation=same", 0, 1 },
    { "halo.codec=q1/q4 hidden=8", 0, 0 },
    { "reuse_input=no input_dropout=0.3 hidden=12,5 norm=layer", 0, 1 },
    { "label_rate=0.5 hidden=5 dropout=0.2", 0, 0 },
    { "sparse_input=yes input_dropout=0.2 halo.codec=bf16", 1, 0 },
    { "sparse_input=no label_rate=0.3 reuse_input=no halo.smoothing=0.5", 1, 1 },
    { "halo.drift_limit=0.2 optimizer=adam lr=0.05", 0, 0 },
};
static const struct setup largest[] = {
    { "aggregator=max", 0, 0 },
    { "aggregator=max halo.codec=q8 halo.codec_evaluation=same reuse_input=no", 0, 1 },
    { "aggregator=max reuse_input=no input_dropout=0.3 hidden=12,5 norm=layer halo.codec=bf16", 0, 0 },
};

static void test_setup(int number, const char *model, int32_t n_ranks, const struct setup *setup)
{
    static const char *const more[RUNS] = { "halo.staleness=0",
                                            "halo.staleness=1 halo.refresh=1 halo.smoothing=0.25",
                                            "halo.staleness=1",
                                            "halo.staleness=1 recompute=yes",
                                            "halo.staleness=1",
                                            "halo.staleness=1",
                                            "halo.staleness=1",
                                            "halo.staleness=1",
                                            "halo.staleness=1",
                                            "halo.staleness=1 halo.refresh=4",
                                            "halo.staleness=1 halo.refresh=4" };
    static const char *const covers[] = { "hybrid", "post", "pre" };
    const char *const partition = number % 2 ? "hash" : "given", *const cover = covers[number % 3];
    const int     has_limit = strstr(setup->settings, "drift_limit") != NULL;
    struct job   *job = calloc(1, sizeof *job);
    struct sample sample = { (uint64_t)number };
    char          settings[RUNS][256];
    const char   *words;

    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, setup->several, setup->sparse);
    job->way = (enum slices)(number / 2 % SLICES);
    for (int i = 0; i < RUNS; i++) {
        snprintf(settings[i], sizeof settings[i], "model=%s %s %s", model, setup->settings, more[i]);
        train_async_add(job, (struct run){ .settings = settings[i],
                                           .evaluates = i == OBSERVED,
                                           .sets_state = i == RESTORED || i == RESTORED_FOUR,
                                           .from = i == RESUMED ? RESTORED : 0,
                                           .gives_up = i == GIVES_UP ? 3 : 0 });
    }
    words = train_async_play(job, n_ranks, partition, cover);
    /* With halo.drift_limit the drift so far matters, and it is not part of a state. */
    if (words == NULL && has_limit) job->at[RESTORED_FOUR][0] = job->at[EVERY_FOUR][0];
    if (words == NULL)
        words = train_async_judge(job, strcmp(model, "mlp") == 0, strstr(setup->settings, "label_rate") != NULL);
    ok(words == NULL, "%s on %d ranks, %s, %s, slices %s, %s: the same bits where they should be", model, n_ranks,
       partition, cover, slices_name[job->way], setup->settings);
    if (words != NULL) diag("%s", words);
    sample_dataset_fini(&job->set);
    free(job);
}

/* --- straight on --- */

enum { LAYERS = 3, WIDE = 8 };

/* What a layer had in one direction in the epoch before. */
struct memory {
    int    has, own;
    double x[N][WIDE], used[N][WIDE];
};

struct straight {
    const struct job *job;
    const int64_t    *width;         /* [LAYERS + 1] */
    int               gathers_first; /* in all layers, as in the papers */
    double            norm[N];       /* 1 / sqrt(degree) */
    double            smoothing;
    int               waits; /* this epoch */
    struct memory     memory[LAYERS][2];
    double            w[LAYERS][WIDE][WIDE], b[LAYERS][WIDE];
    double            h[LAYERS + 1][N][WIDE], q[LAYERS][N][WIDE], g[N][WIDE];
};

/* In the second one the library gathers first in all layers, too: no layer makes rows much narrower. */
static const int64_t usual_width[LAYERS + 1] = { FEATURES, 3, 6, CLASSES }, paper_width[] = { FEATURES, 4, 4, 4 };

/* out = A x, or A^T x, for A = D^-1/2 (A + I) D^-1/2, in which rows of other owners are those that there are. */
static void train_async_gather(struct straight *s, int l, int back, int64_t columns, double x[N][WIDE],
                               double out[N][WIDE])
{
    const graft_csr *a = &s->job->set.graph.csr;
    struct memory   *m = &s->memory[l][back];
    const int        own = !m->has || s->waits;

    for (int v = 0; v < N; v++)
        for (int j = 0; j < columns; j++) {
            if (own) m->used[v][j] = x[v][j];
            else m->used[v][j] = m->own ? m->x[v][j] : s->smoothing * m->used[v][j] + (1 - s->smoothing) * m->x[v][j];
            m->x[v][j] = x[v][j];
            out[v][j] = s->norm[v] * s->norm[v] * x[v][j];
        }
    m->has = 1;
    m->own = own;
    for (int v = 0; v < N; v++)
        for (int64_t e = a->row_ptr[v]; e < a->row_ptr[v + 1]; e++) {
            const int u = (int)((const int32_t *)a->col_idx)[e], to = back ? u : v, from = back ? v : u;
            double(*rows)[WIDE] = s->job->owner[u] == s->job->owner[v] ? x : m->used;

            for (int j = 0; j < columns; j++) out[to][j] += s->norm[u] * s->norm[v] * rows[from][j];
        }
}

/* out = x W, or x W^T. */
static void train_async_multiply(const struct straight *s, int l, int transposed, double x[N][WIDE],
                                 double out[N][WIDE])
{
    const int64_t from = s->width[l + transposed], to = s->width[l + !transposed];

    for (int v = 0; v < N; v++)
        for (int j = 0; j < to; j++) {
            out[v][j] = 0;
            for (int i = 0; i < from; i++) out[v][j] += x[v][i] * (transposed ? s->w[l][j][i] : s->w[l][i][j]);
        }
}

/* Layers that make rows narrower transform first, others gather first. Stale rows make this another model: what is
 * transformed first is stale in its weights, too. Sylvie and PipeGCN gather first. */
static int gathers_first(const struct straight *s, int l)
{
    return s->gathers_first || s->width[l] <= s->width[l + 1];
}

static void forward(struct straight *s)
{
    double p[N][WIDE], (*z)[WIDE];

    for (int l = 0; l < LAYERS; l++) {
        z = s->h[l + 1];
        if (gathers_first(s, l)) {
            train_async_gather(s, l, 0, s->width[l], s->h[l], s->q[l]);
            train_async_multiply(s, l, 0, s->q[l], z);
        } else {
            train_async_multiply(s, l, 0, s->h[l], p);
            train_async_gather(s, l, 0, s->width[l + 1], p, z);
        }
        for (int v = 0; v < N; v++)
            for (int j = 0; j < s->width[l + 1]; j++) {
                z[v][j] += s->b[l][j];
                if (l + 1 < LAYERS && z[v][j] < 0) z[v][j] = 0;
            }
    }
}

/* The mean cross-entropy of labelled training vertices, and its gradient in s->g. */
static double loss_of(struct straight *s)
{
    const struct sample_dataset *set = &s->job->set;
    double                       loss = 0;
    int                          count = 0;

    for (int v = 0; v < N; v++) count += set->split[v] == GRAFT_SPLIT_TRAIN && set->labels[v] >= 0;
    for (int v = 0; v < N; v++) {
        const double *z = s->h[LAYERS][v];
        double        sum = 0;

        memset(s->g[v], 0, sizeof s->g[v]);
        if (set->split[v] != GRAFT_SPLIT_TRAIN || set->labels[v] < 0) continue;
        for (int j = 0; j < s->width[LAYERS]; j++) sum += exp(z[j]);
        loss += (log(sum) - z[set->labels[v]]) / count;
        for (int j = 0; j < s->width[LAYERS]; j++) s->g[v][j] = (exp(z[j]) / sum - (j == set->labels[v])) / count;
    }
    return loss;
}

/* w -= lr x^T g */
static void descend(struct straight *s, int l, double lr, double x[N][WIDE], double g[N][WIDE])
{
    for (int v = 0; v < N; v++)
        for (int i = 0; i < s->width[l]; i++)
            for (int j = 0; j < s->width[l + 1]; j++) s->w[l][i][j] -= lr * x[v][i] * g[v][j];
}

static void backward(struct straight *s, double lr)
{
    double dx[N][WIDE], sum[N][WIDE], db[WIDE];

    for (int l = LAYERS - 1; l >= 0; l--) {
        memset(db, 0, sizeof db);
        for (int v = 0; v < N; v++)
            for (int j = 0; j < s->width[l + 1]; j++) db[j] += s->g[v][j];
        if (gathers_first(s, l)) {
            train_async_multiply(s, l, 1, s->g, sum);
            train_async_gather(s, l, 1, s->width[l], sum, dx);
            descend(s, l, lr, s->q[l], s->g);
        } else {
            train_async_gather(s, l, 1, s->width[l + 1], s->g, sum);
            train_async_multiply(s, l, 1, sum, dx);
            descend(s, l, lr, s->h[l], sum);
        }
        for (int j = 0; j < s->width[l + 1]; j++) s->b[l][j] -= lr * db[j];
        for (int v = 0; v < N; v++)
            for (int j = 0; j < s->width[l] && l > 0; j++) s->g[v][j] = s->h[l][v][j] > 0 ? dx[v][j] : 0;
    }
}

/* Weights as the trainer had them at first. */
static void take_weights(struct straight *s, const struct state *state)
{
    for (int i = 0; i < state->count; i++) {
        const float *data = (const float *)(const void *)state->data[i];
        int          l, end = 0;

        if (sscanf(state->name[i], "layers.%d.weight%n", &l, &end) == 1 && state->name[i][end] == '\0' && end > 0)
            for (int k = 0; k < s->width[l] * s->width[l + 1]; k++)
                s->w[l][k / s->width[l + 1]][k % s->width[l + 1]] = (double)data[k];
        end = 0;
        if (sscanf(state->name[i], "layers.%d.bias%n", &l, &end) == 1 && state->name[i][end] == '\0' && end > 0)
            for (int k = 0; k < s->width[l + 1]; k++) s->b[l][k] = (double)data[k];
    }
}

static void straight_init(struct straight *s, const struct job *job, const int64_t *width)
{
    const graft_csr   *a = &job->set.graph.csr;
    const graft_dense *x = &job->set.features;

    memset(s, 0, sizeof *s);
    s->job = job;
    s->width = width;
    for (int v = 0; v < N; v++) {
        s->norm[v] = 1 / sqrt((double)(a->row_ptr[v + 1] - a->row_ptr[v]) + 1);
        for (int j = 0; j < FEATURES; j++) s->h[0][v][j] = (double)((const float *)x->data)[v * x->stride + j];
    }
    take_weights(s, &job->at[0][0].first);
}

/* The epochs that wait for fresh rows: every so many; or, with a limit that all drifts exceed, the one after the first
 * epoch in which rows could be compared with earlier ones. */
struct manner {
    const char *settings;
    double      smoothing;
    int         every, limits, gathers_first;
};

static void test_straight(int number, int32_t n_ranks, const struct manner *manner)
{
    static const char *const covers[] = { "hybrid", "post", "pre" };
    static struct straight   s;
    struct job              *job = calloc(1, sizeof *job);
    struct sample            sample = { 40 + (uint64_t)number };
    const int64_t           *width = manner->gathers_first ? paper_width : usual_width;
    char                     settings[256];
    double                   worst = 0;
    int                      waited = 0;
    const char              *words;

    sample_dataset_init(&job->set, &sample, N, FEATURES, (int32_t)width[LAYERS], 0, 0);
    /* The graph has no loops: the trainer adds each once. */
    for (int64_t v = 0; v < N; v++)
        for (int64_t e = job->set.graph.row_ptr[v]; e < job->set.graph.row_ptr[v + 1]; e++) {
            int32_t *column = &((int32_t *)job->set.graph.col_idx)[e];

            if (*column == v) *column = (int32_t)((v + 1) % N);
        }
    snprintf(settings, sizeof settings, "model=gcn reuse_input=no row_masks=%s halo.staleness=1 %s",
             number % 2 ? "yes" : "no", manner->settings);
    train_async_add(job, (struct run){ .settings = settings, .evaluates = number % 3 == 0 });
    words = train_async_play(job, n_ranks, number % 2 ? "given" : "hash", covers[number % 3]);
    straight_init(&s, job, width);
    s.gathers_first = manner->gathers_first;
    s.smoothing = manner->smoothing;
    for (int e = 0; e < EPOCHS && words == NULL; e++) {
        double loss;

        s.waits = (manner->every > 0 && e % manner->every == 0) || (manner->limits && e > 2 && n_ranks > 1);
        forward(&s);
        loss = loss_of(&s);
        backward(&s, 0.2);
        worst = fmax(worst, fabs(job->at[0][0].loss[e] - loss) / loss);
        waited += s.waits || e == 0;
        if (job->at[0][n_ranks - 1].waited[e] != (s.waits || e == 0)) words = "another epoch waited";
    }
    if (words == NULL && job->at[0][0].traffic.epochs_synchronous != waited) words = "other epochs waited in all";
    ok(words == NULL && worst < 2e-5 && s.memory[1][1].has,
       "gcn on %d ranks, %s, %s: losses are %.1g off those of straight-line epochs", n_ranks, covers[number % 3],
       manner->settings, worst);
    if (words != NULL) diag("%s", words);
    sample_dataset_fini(&job->set);
    free(job);
}

/* Rows that become a tenth smaller in each epoch have drifted by a ninth of their length: those of weights that nothing
 * but their decay changes, to speak of, and features that are large beside gradients. */
static void test_train_async_drift(const char *model, const char *limit, int waits)
{
    struct job   *job = calloc(1, sizeof *job);
    struct sample sample = { 77 };
    char          settings[256];
    const char   *words;

    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (int64_t i = 0; i < N * job->set.features.stride; i++) ((float *)job->set.features.data)[i] *= 1000;
    snprintf(settings, sizeof settings,
             "model=%s layers=1 hidden=3 reuse_input=no lr=1e-9 weight_decay=1e8 halo.staleness=1 halo.drift_limit=%s",
             model, limit);
    train_async_add(job, (struct run){ .settings = settings });
    words = train_async_play(job, 3, "hash", "hybrid");
    for (int e = 0; e < EPOCHS && words == NULL; e++) {
        const struct outcome *o = &job->at[0][e % 3];

        if (e < 2 ? o->drift[e] != 0 : fabs(o->drift[e] - 1.0 / 9) > 1e-3) words = "rows have drifted otherwise";
        if (o->waited[e] != (e == 0 || (waits && e > 2))) words = "another epoch waited";
        if (words != NULL) diag("epoch %d: %g, %d", e, o->drift[e], o->waited[e]);
    }
    ok(words == NULL, "%s, halo.drift_limit=%s: rows drift by a ninth, and epochs %s%s%s", model, limit,
       waits ? "wait" : "do not", words != NULL ? ": " : "", words != NULL ? words : "");
    sample_dataset_fini(&job->set);
    free(job);
}

int main(void)
{
    static const char *const   models[] = { "sage", "gcn", "gin", "gat", "sgc", "appnp", "mlp" };
    static const int32_t       ranks[] = { 3, 1, 4, 2, 7 };
    static const struct manner manners[] = { { "halo.smoothing=0", 0, 0, 0, 0 },
                                             { "halo.smoothing=0.5", 0.5, 0, 0, 0 },
                                             { "halo.refresh=3", 0, 3, 0, 0 },
                                             { "halo.drift_limit=1e-9", 0, 0, 1, 0 },
                                             { "halo.drift_limit=1e9", 0, 0, 0, 0 },
                                             { "halo.refresh=1", 0, 1, 0, 0 },
                                             { "hidden=4 halo.smoothing=0", 0, 0, 0, 1 },
                                             { "hidden=4 halo.refresh=3", 0, 3, 0, 1 } };
    int                        number = 0;

    alarm(300); /* under a sanitizer it is slow */
    for (int r = 0; r < 5; r++)
        for (size_t i = 0; i < sizeof manners / sizeof *manners; i++) test_straight(number++, ranks[r], &manners[i]);
    test_train_async_drift("gcn", "0", 0);
    test_train_async_drift("gcn", "0.12", 0);
    test_train_async_drift("gcn", "0.1", 1);
    for (int m = 0; m < 7; m++)
        for (size_t i = 0; i < sizeof setups / sizeof *setups; i++, number++)
            if (m < 6 || i % 3 == 0) test_setup(number, models[m], ranks[number % 5], &setups[i]);
    for (size_t i = 0; i < sizeof largest / sizeof *largest; i++) test_setup(number++, "sage", 2 + (int)i, &largest[i]);
    return done();
}
