/* Training over ranks has the results of training in one process: losses, weights, predictions, metrics; for every
 * model, and any way to slice, partition and exchange the data set. All ranks have the same bits. That one process is
 * right is checked by test_gradient.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 10, CLASSES = 4, FEATURES = 13, WEIGHTS_MOST = 8000 };

static const double TOLERANCE = 1e-4;
/* With model.type=bf16: sums of another order may be rounded to another bfloat16, 2^-8 apart. */
static const double ROUNDED_TOLERANCE = 1e-3;

/* The results of a trainer, on one rank or in one process. */
struct outcome {
    double        loss[EPOCHS];
    graft_metrics metrics;
    graft_traffic traffic; /* over ranks, of all of them */
    int64_t       n_weights;
    float         weights[WEIGHTS_MOST];
    char          explained[8192];
};

/* A data set, how it is trained, and the results. */
struct job {
    struct sample_dataset set;
    float                *values; /* of the edges, or NULL */
    enum slices           way;
    struct outcome        one, at[HOSTS_MOST];
    float                *logits[2]; /* [n x CLASSES] of one process, and of ranks */
    int32_t              *labels[2];
};

/* All weights, one behind the other. */
static void keep_weights(const graft_train *train, graft_trainer *trainer, struct outcome *o)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        const int64_t count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        const int is_weight = strncmp(item.name, "layers.", 7) == 0 || strcmp(item.name, "label_embedding") == 0;

        if (!is_weight || o->n_weights + count > WEIGHTS_MOST) continue;
        memcpy(o->weights + o->n_weights, item.data, (size_t)count * sizeof(float));
        o->n_weights += count;
    }
}

/* Train, predict n vertices, and measure. */
static int32_t train_and_keep(const graft_api *api, const graft_train *train, const graft_dataset *dataset, int64_t n,
                              int32_t *labels, float *rows, struct outcome *o, graft_error *error)
{
    const graft_dense logits = { sizeof logits, GRAFT_F32, n, CLASSES, CLASSES, rows };
    graft_trainer    *trainer = NULL;
    int32_t           rc = train->create(api->context, dataset, &trainer, error);

    o->metrics = GRAFT_INIT(graft_metrics);
    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        graft_epoch epoch = GRAFT_INIT(graft_epoch);

        rc = train->epoch(trainer, &epoch, error);
        o->loss[i] = epoch.loss;
    }
    if (rc == GRAFT_OK) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, labels, &logits, error);
    if (rc == GRAFT_OK) rc = train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &o->metrics, error);
    if (rc == GRAFT_OK) rc = train->explain(trainer, o->explained, sizeof o->explained, error);
    o->traffic = GRAFT_INIT(graft_traffic);
    if (rc == GRAFT_OK && dataset->over != NULL) rc = train->traffic(trainer, -1, &o->traffic, error);
    if (rc == GRAFT_OK) keep_weights(train, trainer, o);
    train->destroy(trainer);
    return rc;
}

static int32_t job_body(struct host *host)
{
    struct job       *job = host->all->arg;
    graft_graph      *graph = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &job->set.dataset, job->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (s.first == s.end && host->rank % 2 == 0) { /* arrays of no rows may be null */
        s.dataset.labels = NULL;
        s.dataset.targets = s.dataset.split = NULL;
    }
    if (rc == GRAFT_OK)
        rc = train_and_keep(host->api, host->train, &s.dataset, s.end - s.first, job->labels[1] + s.first,
                            job->logits[1] + s.first * CLASSES, &job->at[host->rank], &host->error);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

static void train_one(struct job *job, const char *const *settings)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    int32_t          rc = graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error);

    for (int i = 0; settings[i] != NULL && rc == GRAFT_OK; i++) host_set(api, settings[i]);
    if (rc == GRAFT_OK)
        rc = train_and_keep(api, graft_interface(api, GRAFT_TRAIN_ID, sizeof(graft_train)), &job->set.dataset,
                            job->set.dataset.n_vertices, job->labels[0], job->logits[0], &job->one, &error);
    if (rc != GRAFT_OK) {
        printf("Bail out! %s\n", error.message);
        exit(2);
    }
    api->close(api->context);
}

/* How far apart two arrays are, by their lengths as vectors. */
static double distance_of_arrays(const float *a, const float *b, int64_t count)
{
    double apart = 0, length = 0;

    for (int64_t i = 0; i < count; i++) {
        apart += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        length += (double)b[i] * (double)b[i];
    }
    return length > 0 ? sqrt(apart / length) : apart > 0 ? INFINITY : 0;
}

static double off(double a, double b)
{
    if (isnan(a) && isnan(b)) return 0;
    return a == b ? 0 : fabs(a - b) / fabs(b);
}

/* The largest distance of the results of ranks from those of one process; NaN is none. */
static double worst_of(const struct job *job)
{
    const struct outcome *a = &job->at[0], *b = &job->one;
    const int64_t         n = job->set.dataset.n_vertices;
    double                worst = distance_of_arrays(a->weights, b->weights, b->n_weights);

    if (a->n_weights != b->n_weights || b->n_weights == 0) return INFINITY;
    worst = fmax(worst, distance_of_arrays(job->logits[1], job->logits[0], n * CLASSES));
    for (int i = 0; i < EPOCHS; i++) worst = fmax(worst, off(a->loss[i], b->loss[i]));
    worst = fmax(worst, off(a->metrics.train_loss, b->metrics.train_loss));
    worst = fmax(worst, off(a->metrics.validation_loss, b->metrics.validation_loss));
    return fmax(worst, off(a->metrics.test_loss, b->metrics.test_loss));
}

/* Classes are those of the logits, and accuracies those of one process but for a vertex between two classes. */
static const char *check_classes(const struct job *job)
{
    const struct outcome *a = &job->at[0], *b = &job->one;
    const int64_t         n = job->set.dataset.n_vertices;
    int64_t               differ = 0;

    for (int64_t v = 0; v < n; v++) {
        const float *row = job->logits[1] + v * CLASSES;
        int          best = 0;

        for (int j = 1; j < CLASSES; j++)
            if (row[j] > row[best]) best = j;
        if (job->labels[1][v] != best) return "a predicted class is not that of the largest logit";
        differ += job->labels[1][v] != job->labels[0][v];
    }
    if (differ > n / 100) return "other classes are predicted";
    if (fabs(a->metrics.train_accuracy - b->metrics.train_accuracy) > 0.02) return "another training accuracy";
    return NULL;
}

static const char *train_ranks_check_bits(const struct job *job, int32_t n_ranks)
{
    for (int32_t i = 1; i < n_ranks; i++) {
        const struct outcome *a = &job->at[i], *b = &job->at[0];

        if (memcmp(a->loss, b->loss, sizeof a->loss) != 0) return "losses differ from rank to rank";
        if (memcmp(&a->metrics, &b->metrics, sizeof a->metrics) != 0) return "metrics differ from rank to rank";
        if (memcmp(a->weights, b->weights, sizeof a->weights) != 0) return "weights differ from rank to rank";
    }
    return NULL;
}

/* What a data set is made of: sparse features; several classes at once; edges with values; few trained vertices, the
 * one that gathers from all not among them; rows that have a column twice; vertices with the same features. */
enum { SPARSE = 1, SEVERAL = 2, WEIGHTED = 4, FEW = 8, REPEATS = 16, ALIKE = 32 };

struct shape {
    int64_t n;
    int     is;
};

/* Fewer are trained, and every third row with two entries has the first one twice. */
static void change(struct job *job, const struct shape *shape)
{
    const graft_csr *graph = &job->set.graph.csr;
    int32_t *const   column = job->set.graph.col_idx;

    for (int64_t v = 0; v < shape->n; v++) {
        const int64_t first = graph->row_ptr[v];

        for (int64_t j = 0; j < FEATURES && (shape->is & ALIKE); j++)
            ((float *)job->set.features.data)[v * job->set.features.stride + j] = 0.1f * (float)(j - 4);
        if ((shape->is & FEW) && v % 37 != 2 && job->set.split[v] == GRAFT_SPLIT_TRAIN)
            job->set.split[v] = GRAFT_SPLIT_TEST;
        if ((shape->is & REPEATS) && v % 3 == 0 && graph->row_ptr[v + 1] > first + 1) column[first + 1] = column[first];
    }
}

static void train_ranks_job_init(struct job *job, struct sample *sample, const struct shape *shape)
{
    graft_csr *graph;

    memset(job, 0, sizeof *job);
    sample_dataset_init(&job->set, sample, shape->n, FEATURES, CLASSES, (shape->is & SEVERAL) != 0,
                        (shape->is & SPARSE) != 0);
    change(job, shape);
    graph = &job->set.graph.csr;
    if (shape->is & WEIGHTED) {
        job->values = calloc((size_t)graph->row_ptr[shape->n] + 1, sizeof *job->values);
        for (int64_t e = 0; e < graph->row_ptr[shape->n]; e++) job->values[e] = (float)sample_real(sample, 0.5, 1.5);
        graph->value_type = GRAFT_F32;
        graph->values = job->values;
    }
    for (int i = 0; i < 2; i++) {
        job->logits[i] = calloc((size_t)(shape->n * CLASSES), sizeof(float));
        job->labels[i] = calloc((size_t)shape->n, sizeof(int32_t));
    }
}

static void job_fini(struct job *job)
{
    sample_dataset_fini(&job->set);
    free(job->values);
    for (int i = 0; i < 2; i++) {
        free(job->logits[i]);
        free(job->labels[i]);
    }
}

/* One way to train: settings parted by blanks, and the data set for it. */
struct setup {
    const char  *settings;
    struct shape shape;
};

static const struct setup setups[] = {
    { "dropout=0", { 300, 0 } },
    { "dropout=0.5 input_dropout=0.3 seed=7 edge_features=values norm=batch", { 300, WEIGHTED } },
    { "dropout=0 normalize_features=yes norm=none reuse_input=no model.type=bf16", { 211, SEVERAL } },
    { "dropout=0.2 self_loops=yes recompute=yes residual=yes jumping=max class_weights=balanced label_smoothing=0.1",
      { 300, WEIGHTED } },
    { "sparse_input=yes input_dropout=0.4 dropout=0.1 normalize_features=yes", { 300, SPARSE } },
    { "sparse_input=no input_dropout=0.4 dropout=0", { 300, SPARSE | WEIGHTED } },
    { "sparse_input=auto dropout=0 recompute=yes self_loops=yes", { 257, SPARSE | SEVERAL } },
    { "optimizer=sgd momentum=0.5 lr=0.02 hidden=40,10 dropout=0.3 threads=2 activation=elu norm_order=after_dropout "
      "attention_dropout=0.4 norm=batch",
      { 300, 0 } },
    { "hidden=10,40 dropout=0 norm=none reuse_input=no weight_decay=0.01 clip_norm=0.1", { 300, WEIGHTED } },
    { "dropout=0 gin_eps=0.25 norm=batch", { 6, 0 } },
    { "dropout=0 sparse_input=yes row_masks=no", { 6, SPARSE } },
    { "label_rate=0.62 dropout=0.3 seed=3 class_weights=balanced", { 300, WEIGHTED } },
    { "label_rate=0.4 hidden=40,10 input_dropout=0.2 recompute=yes norm=batch", { 211, SEVERAL } },
    { "label_rate=0.5 dropout=0 sparse_input=yes norm=none", { 300, SPARSE | SEVERAL } },
    { "dropout=0.2 edge_features=array recompute=yes", { 300, REPEATS } },
};

/* Adam would make steps of gradients that are 0 but for rounding. */
#define SGD "optimizer=sgd momentum=0.5 lr=0.05"

/* The graph is changed first, or few are trained. */
static const struct setup prepared[] = {
    { "symmetrize=yes dropout=0.3 edge_features=values " SGD, { 300, WEIGHTED | REPEATS } },
    { "symmetrize=yes order=rcm self_loops=yes row_masks=no input_dropout=0.2 " SGD, { 211, SEVERAL } },
    { "symmetrize=yes order=degree dropout=0.2 " SGD, { 6, WEIGHTED } },
    { "order=degree dropout=0.4 input_dropout=0.3 edge_features=values " SGD, { 257, SPARSE | WEIGHTED | REPEATS } },
    { "order=community symmetrize=yes sparse_input=yes reuse_input=no " SGD, { 300, SPARSE | FEW } },
    { "dropout=0.4 input_dropout=0.2 residual=yes activation=elu jumping=cat norm=batch " SGD,
      { 300, WEIGHTED | FEW } },
    { "dropout=0.4 hidden=6,30 reuse_input=no norm=none recompute=yes model.type=bf16 " SGD, { 300, SEVERAL | FEW } },
    { "order=rcm self_loops=yes dropout=0.1 attention_dropout=0.5 activation=elu hidden=30,6 " SGD,
      { 300, FEW | REPEATS } },
    { "sparse_input=yes input_dropout=0.4 dropout=0 " SGD, { 300, SPARSE | WEIGHTED | FEW } },
    { "layers=7 hidden=8 dropout=0.1 reuse_input=no " SGD, { 211, FEW } },
    { "label_rate=0.62 order=degree symmetrize=yes dropout=0.2 " SGD, { 300, FEW } },
    { "label_rate=0.4 hidden=6,30 reuse_input=no recompute=yes " SGD, { 300, WEIGHTED | FEW } },
    { "label_rate=0.8 dropout=0 " SGD, { 6, 0 } },
    { "symmetrize=yes order=degree dropout=0.3 edge_features=array " SGD, { 300, WEIGHTED | REPEATS } },
    { "order=rcm self_loops=no dropout=0.3 edge_features=array " SGD, { 6, 0 } },
};

enum { SETUPS = sizeof setups / sizeof setups[0], PREPARED = sizeof prepared / sizeof prepared[0] };

/* All settings of a case, of which the last ones count. */
struct settings {
    const char *at[HOST_SETTINGS];
    char        text[512];
};

static void settings_init(struct settings *s, const char *model, const char *partition, const char *cover,
                          const char *more)
{
    int count = 0;

    snprintf(s->text, sizeof s->text,
             "layers=3 hidden=16 heads=2 epochs=%d eval_every=4 threads=1 halo.timeout=60 "
             "model=%s partition=%s halo.cover=%s %s",
             EPOCHS, model, partition, cover, more);
    /* Adam would make whole steps of gradients that are 0 but for rounding: those of the target vectors of gat, where
     * all scores of a row have one sign, and those of units of gin that are nearly dead. */
    if (strcmp(model, "gat") == 0 || strcmp(model, "gin") == 0)
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), " optimizer=sgd lr=0.05");
    /* BatchNorm divides by the deviations of those units, and so multiplies rounding errors. */
    if (strcmp(model, "gin") == 0 && strstr(more, "norm=batch") != NULL)
        snprintf(s->text + strlen(s->text), sizeof s->text - strlen(s->text), " lr=0.001");
    for (char *rest = s->text, *word; (word = strtok_r(rest, " ", &rest)) != NULL && count + 1 < HOST_SETTINGS;)
        s->at[count++] = word;
    s->at[count] = NULL;
}

/* Train in one process and over ranks; what is wrong with the latter, or NULL. */
static const char *run_case(struct job *job, int32_t n_ranks, const struct settings *settings)
{
    static struct hosts hosts;
    const char         *words = NULL;

    train_one(job, settings->at);
    hosts_run(&hosts, n_ranks, settings->at, job_body, job);
    words = hosts_fault(&hosts);
    if (words == NULL) words = check_classes(job);
    if (words == NULL) words = train_ranks_check_bits(job, n_ranks);
    return words;
}

static void test_case(int number, const char *model, int32_t n_ranks, const struct setup *setup)
{
    static const char *const partitions[] = { "given", "block", "hash" };
    static const char *const covers[] = { "hybrid", "post", "hybrid", "pre" };
    const char *const partition = partitions[number % 3], *const cover = covers[number / 3 % 4];
    struct job     *job = calloc(1, sizeof *job);
    struct sample   sample = { (uint64_t)number };
    struct settings settings;
    const char     *words;
    const double    most = strstr(setup->settings, "bf16") != NULL ? ROUNDED_TOLERANCE : TOLERANCE;
    double          worst;

    train_ranks_job_init(job, &sample, &setup->shape);
    job->way = (enum slices)(number / 2 % SLICES);
    settings_init(&settings, model, partition, cover, setup->settings);
    words = run_case(job, n_ranks, &settings);
    worst = worst_of(job);
    ok(words == NULL && worst <= most, "%s on %d ranks, %s, %s, slices %s, %lld vertices, %s: %.2g off", model, n_ranks,
       partition, cover, slices_name[job->way], (long long)setup->shape.n, setup->settings, worst);
    if (words != NULL) diag("%s", words);
    for (int i = 0; i < EPOCHS && worst > most; i++)
        diag("epoch %d: loss %.9g, in one process %.9g", i, job->at[0].loss[i], job->one.loss[i]);
    job_fini(job);
    free(job);
}

/* Check the reported traffic of gat; 0 if nothing is wrong. */
static int32_t check_traffic(struct host *host, graft_trainer *trainer)
{
    graft_traffic t = GRAFT_INIT(graft_traffic);
    int32_t       rc = host->train->traffic(trainer, host->rank, &t, &host->error);

    if (rc < 0) return rc;
    if (t.halo_rows > 0 && t.exchange_seconds > 0 && t.wait_seconds >= 0 && t.wait_seconds <= t.exchange_seconds &&
        t.overlap_fraction == 1 - t.wait_seconds / t.exchange_seconds)
        return GRAFT_OK;
    snprintf(host->error.message, sizeof host->error.message, "%lld rows, %g of %g s waited: %g",
             (long long)t.halo_rows, t.wait_seconds, t.exchange_seconds, t.overlap_fraction);
    return GRAFT_STATUS_END;
}

/* Two epochs of gat, whose weights on this rank go to job->at. */
static int32_t attention_body(struct host *host)
{
    struct job         *job = host->all->arg;
    graft_epoch         epoch = GRAFT_INIT(graft_epoch);
    struct host_trainer t;
    int32_t             rc = host_trainer_create(host, &job->set.dataset, job->way, &t);

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK) rc = check_traffic(host, t.trainer);
    job->at[host->rank].n_weights = 0;
    if (rc == GRAFT_OK) keep_weights(host->train, t.trainer, &job->at[host->rank]);
    host_trainer_destroy(host, &t);
    return rc;
}

/* A graph that is large enough for several threads, and more of them than processors: the same bits. */
static void test_train_ranks_threads(const char *more)
{
    static const char *const threads[] = { "threads=1", "threads=2", "threads=5" };
    const struct shape       shape = { 6000, 0 };
    struct job              *job = calloc(1, sizeof *job);
    static struct hosts      hosts;
    struct sample            sample = { 8 };
    const char              *words = NULL;

    train_ranks_job_init(job, &sample, &shape);
    for (int i = 0; i < 3 && words == NULL; i++) {
        struct settings settings;

        settings_init(&settings, "gat", "given", "hybrid", more);
        for (int k = 0; settings.at[k] != NULL; k++)
            if (strncmp(settings.at[k], "threads=", 8) == 0) settings.at[k] = threads[i];
        hosts_run(&hosts, 3, settings.at, attention_body, job);
        words = hosts_fault(&hosts);
        if (i == 0) job->one = job->at[0];
        if (words == NULL && memcmp(job->one.weights, job->at[2].weights, sizeof job->one.weights) != 0)
            words = "weights are others with more threads";
    }
    ok(words == NULL && job->one.n_weights > 0, "gat on 3 ranks has the same bits on 1, 2 and 5 threads: %s", more);
    if (words != NULL) diag("%s", words);
    job_fini(job);
    free(job);
}

/* --- what is sent, by a matrix of the edges --- */

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

/* Vertices that ranks gather from others for these rows, each once for each rank. */
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

/* Of two layers, the first of which sends its input forward, and the second its output there and back. */
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

    train_ranks_job_init(job, &sample, &(struct shape){ N, FEW });
    job->way = SLICES_EVEN;
    snprintf(more, sizeof more, "layers=2 hidden=%d reuse_input=no order=degree dropout=0.2 symmetrize=%s row_masks=%s",
             HIDDEN, symmetric ? "yes" : "no", masked ? "yes" : "no");
    settings_init(&settings, model, "given", "post", more);
    words = run_case(job, RANKS, &settings);
    wanted = messages_of(job, symmetric, masked);
    ok(words == NULL && worst_of(job) <= TOLERANCE && job->at[0].traffic.cut_edges == wanted.cut &&
           job->at[0].traffic.halo_rows == wanted.rows && job->at[0].traffic.halo_bytes_per_epoch == wanted.bytes &&
           job->at[0].traffic.halo_bytes_if_post == wanted.bytes,
       "%s, symmetrize=%d, row_masks=%d: %lld cut edges, %lld rows and, in a step, %lld bytes", model, symmetric,
       masked, (long long)wanted.cut, (long long)wanted.rows, (long long)wanted.bytes);
    if (words != NULL) diag("%s", words);
    if (job->at[0].traffic.halo_bytes_per_epoch != wanted.bytes)
        diag("%lld bytes were told", (long long)job->at[0].traffic.halo_bytes_per_epoch);
    job_fini(job);
    free(job);
    return wanted;
}

static void test_sent(const char *model)
{
    for (int symmetric = 0; symmetric < 2; symmetric++) {
        const struct wanted all = test_messages(model, symmetric, 0), masked = test_messages(model, symmetric, 1);

        ok(masked.bytes < all.bytes / 2, "%s: few trained vertices need less than half of that", model);
    }
}

/* Maxima do not depend on the order of what they are of: with weights that stay as they were drawn, ranks predict what
 * one process does, to the last bit. Quantized messages of the steps before it must not be part of it. */
static void test_largest_bits(int32_t n_ranks, const char *partition, const char *codec, const char *staleness)
{
    const char *const   settings[] = { "aggregator=max", "lr=1e-30", "dropout=0", "threads=1", "dense.module=reference",
                                       partition,        codec,      staleness,   NULL };
    static struct hosts hosts;
    struct job         *job = calloc(1, sizeof *job);
    struct sample       sample = { 8 };
    const char         *fault;

    train_ranks_job_init(job, &sample, &(struct shape){ N, WEIGHTED | REPEATS });
    train_one(job, settings);
    hosts_run(&hosts, n_ranks, settings, job_body, job);
    fault = hosts_fault(&hosts);
    if (fault == NULL && memcmp(job->logits[0], job->logits[1], (size_t)(N * CLASSES) * sizeof(float)) != 0)
        fault = "other bits";
    if (fault == NULL && off(job->at[0].loss[EPOCHS - 1], job->one.loss[EPOCHS - 1]) > 0.05) fault = "another loss";
    ok_fault("maxima over ranks have the bits of one process", fault);
    job_fini(job);
    free(job);
}

/* Maxima over neighbours, for which ranks exchange rows and no sums. */
static void test_largest(void)
{
    static const struct setup ties = { "dropout=0 " SGD, { 300, ALIKE } };
    static const int32_t      ranks[] = { 2, 3, 4, 7 };
    char                      settings[200];

    for (int s = 0; s <= SETUPS + PREPARED; s++) {
        struct setup largest = s < SETUPS ? setups[s] : s < SETUPS + PREPARED ? prepared[s - SETUPS] : ties;

        if (strstr(largest.settings, "sparse_input=yes") != NULL || strstr(largest.settings, "label_rate") != NULL)
            continue;
        snprintf(settings, sizeof settings, "%s aggregator=max", largest.settings);
        largest.settings = settings;
        test_case(s, "sage", ranks[s % 4], &largest);
    }
    test_largest_bits(3, "partition=hash", "halo.codec=f32", "halo.staleness=0");
    test_largest_bits(4, "partition=given", "halo.codec=q4", "halo.staleness=1");
    test_largest_bits(2, "partition=hash", "halo.codec=adaptive", "halo.staleness=0");
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat", "mlp" };
    static const int32_t     ranks[] = { 1, 2, 3, 4, 7 };
    int                      number = 0;

    alarm(600); /* under a sanitizer it is slow */
    test_largest();
    test_train_ranks_threads("dropout=0.3 hidden=32");
    test_train_ranks_threads("dropout=0 recompute=yes heads=4");
    for (int m = 0; m < 5; m++)
        for (int s = 0; s < SETUPS; s++) {
            for (int r = 0; r < 5; r++, number++) {
                if (m < 4 || (r + s) % 3 == 0) test_case(number, models[m], ranks[r], &setups[s]);
            }
        }
    for (int s = 0; s < SETUPS; s++) {
        test_case(2 * s, "sgc", ranks[1 + s % 4], &setups[s]);
        test_case(2 * s + 1, "appnp", ranks[1 + (s + 1) % 4], &setups[s]);
    }
    for (int m = 0; m < 5; m++)
        for (int s = 0; s < PREPARED; s++) {
            for (int r = 0; r < 5; r++, number++) {
                if ((m + r + s) % 2 == 0) test_case(number, models[m], ranks[r], &prepared[s]);
            }
        }
    for (int s = 0; s < SETUPS; s += 2) { /* sums over neighbours, in the place of means */
        struct setup sums = setups[s];
        char         settings[160];

        snprintf(settings, sizeof settings, "%s aggregator=sum lr=0.001", sums.settings);
        sums.settings = settings;
        test_case(s, "sage", ranks[1 + s % 4], &sums);
    }
    for (int m = 0; m < 3; m++) test_sent(models[m]);
    return done();
}
