/* Checks option history (historical embeddings, Fey et al. 2021) in one process. An epoch must equal one in plain loops
 * over a table of rows, a batch of all vertices a step on the whole graph, and with constant weights all batches
 * together must have its loss.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_mxm.h"
#include "graft_report.h"
#include "graft_sample.h"

#include <math.h>
#include <string.h>

enum { N = 300, FEATURES = 7, CLASSES = 4, EPOCHS = 4 };

static const graft_api        *api;
static const graft_train_api  *train;
static const graft_report_api *report;
static const graft_sample_api *samples;
static const graft_mxm_api    *mxm;
static graft_error             error;
static struct strict_host      host;
static struct sample           sample = { 29 };

static void set_history_options(const char *settings)
{
    host_set_all(
        api,
        "model=sage aggregator=mean layers=3 hidden=16 heads=2 propagation=3 dropout=0 input_dropout=0 "
        "norm=none jumping=none residual=no epochs=4 eval_every=0 threads=2 order=given symmetrize=no "
        "batch_size=0 fanout=-1 drop_last=no sampler=neighbour lr=0.01 sparse_input=auto recompute=no optimizer=adam "
        "model.type=f32 attention_dropout=0 hec.codec=f32 history=no edge_features=none "
        "weight_decay=0 row_masks=yes partition.program=auto");
    host_set_all(api, settings);
}

static graft_trainer *create_for_history(const graft_dataset *set, const char *settings)
{
    graft_trainer *trainer = NULL;

    set_history_options(settings);
    if (train->create(api->context, set, &trainer, &error) == GRAFT_OK) return trainer;
    diag("%s: %s", settings, error.message);
    return NULL;
}

static double history_loss(graft_trainer *trainer)
{
    graft_epoch epoch = output_epoch();

    if (trainer == NULL) return epoch.loss;
    if (train->epoch(trainer, &epoch, &error) == GRAFT_OK) return epoch.loss;
    diag("%s", error.message);
    return epoch.loss; /* differs from the result of any other call */
}

/* The largest difference between the losses of epochs with these options and `settings`, and without these options. */
static double loss_difference(const graft_dataset *set, const char *settings, const char *history)
{
    graft_trainer *whole, *batches;
    double         most = 0, losses[EPOCHS];
    char           both[400];

    whole = create_for_history(set, settings);
    for (int e = 0; e < EPOCHS; e++) losses[e] = history_loss(whole);
    train->destroy(whole);
    snprintf(both, sizeof both, "%s %s", settings, history);
    batches = create_for_history(set, both);
    for (int e = 0; e < EPOCHS; e++) {
        const double off = fabs(history_loss(batches) - losses[e]) / fabs(losses[e]);

        if (!(off <= most)) most = off;
    }
    train->destroy(batches);
    return most;
}

static void test_exact_history(void)
{
    static const char *const models[] = { "model=sage",
                                          "model=sage aggregator=sum",
                                          "model=sage aggregator=max",
                                          "model=sage aggregator=min",
                                          "model=gcn",
                                          "model=gcn hidden=3",
                                          "model=gin",
                                          "model=gat",
                                          "model=sgc",
                                          "model=appnp",
                                          "model=sage layers=1",
                                          "model=sage jumping=cat recompute=yes",
                                          "model=gat edge_features=array",
                                          "model=gcn norm=layer order=rcm" };
    struct sample_dataset    dense, sparse;
    char                     settings[200];

    sample_dataset_init(&dense, &sample, N, FEATURES, CLASSES, 0, 0);
    sample_dataset_init(&sparse, &sample, N, FEATURES, CLASSES, 0, 1);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        double off;

        snprintf(settings, sizeof settings, "%s dropout=0.3", models[i]);
        off = loss_difference(&dense.dataset, settings, "batch_size=300 history=full");
        ok(off < 1e-3, "%s: a batch of all vertices is a step (%.1e off)", settings, off);
        snprintf(settings, sizeof settings, "%s lr=0", models[i]);
        off = loss_difference(&dense.dataset, settings, "batch_size=37 history=full");
        ok(off < 1e-5, "%s: batches have the loss of the whole (%.1e off)", settings, off);
        off = loss_difference(&dense.dataset, settings, "batch_size=11 history=full sample.ahead=1 recompute=yes");
        ok(off < 1e-5, "%s: and those of 11 vertices, with recompute (%.1e off)", settings, off);
    }
    ok(loss_difference(&dense.dataset, "model=sage norm=batch row_masks=no", "batch_size=300 history=full") < 1e-3,
       "norm=batch: a batch of all vertices is a step");
    ok(loss_difference(&sparse.dataset, "model=gcn lr=0 sparse_input=yes", "batch_size=37 history=full") < 1e-5,
       "sparse");
    ok(loss_difference(&dense.dataset, "model=gcn lr=0", "batch_size=37 history=full hec.codec=bf16") < 1e-2, "bf16");
    ok(loss_difference(&dense.dataset, "model=gcn lr=0", "batch_size=37 history=full hec.codec=q8") < 2e-2, "q8");
    ok(loss_difference(&dense.dataset, "model=gcn lr=0", "batch_size=37 history=full hec.codec=q4") < 0.3, "q4");
    ok(loss_difference(&dense.dataset, "model=gcn lr=0", "batch_size=37 history=full model.type=bf16") < 2e-2,
       "bf16 sums");
    sample_dataset_fini(&dense);
    sample_dataset_fini(&sparse);
}

/* -- in plain loops ----------------------------------------------------------------------------------------------- */

/* The model of the plain loops: sage with the mean, Z = H S + mean(H) T + b, ReLU between layers, softmax, SGD. */
enum { LAYERS = 3, WIDEST = 7 };
static const int width[LAYERS + 1] = { FEATURES, 3, 6, CLASSES };

static struct {
    double self[LAYERS][WIDEST][WIDEST], neigh[LAYERS][WIDEST][WIDEST], bias[LAYERS][WIDEST];
    double table[LAYERS][N][WIDEST]; /* rows that the sums of a layer read: H, or H T */
    double h[LAYERS + 1][N][WIDEST], read[LAYERS][N][WIDEST], mean[LAYERS][N][WIDEST];
    int    sums_input[LAYERS]; /* whether the sums read H and not H T */
} plain;

static int plain_columns(int l, int is_sum)
{
    return is_sum && !plain.sums_input[l] ? width[l + 1] : width[l];
}

/* The row that vertex v contributes to sums of layer l now. */
static void give_row(int l, int64_t v, double *row)
{
    for (int j = 0; j < plain_columns(l, 1); j++) {
        row[j] = plain.sums_input[l] ? plain.h[l][v][j] : 0;
        for (int i = 0; !plain.sums_input[l] && i < width[l]; i++) row[j] += plain.h[l][v][i] * plain.neigh[l][i][j];
    }
}

/* Compute layer l of vertex v from the rows in read[l]. */
static void compute_plain(const graft_csr *a, int l, int64_t v)
{
    const int64_t degree = a->row_ptr[v + 1] - a->row_ptr[v];
    double       *mean = plain.mean[l][v];

    for (int j = 0; j < plain_columns(l, 1); j++) {
        mean[j] = 0;
        for (int64_t e = a->row_ptr[v]; e < a->row_ptr[v + 1]; e++)
            mean[j] += plain.read[l][(int64_t)sample_at(a->col_idx, a->index_type, e)][j] / (double)degree;
    }
    for (int j = 0; j < width[l + 1]; j++) {
        double z = plain.bias[l][j] + (plain.sums_input[l] ? 0 : mean[j]);

        for (int i = 0; i < width[l]; i++)
            z += plain.h[l][v][i] * plain.self[l][i][j] + (plain.sums_input[l] ? mean[i] * plain.neigh[l][i][j] : 0);
        plain.h[l + 1][v][j] = l + 1 < LAYERS && z < 0 ? 0 : z;
    }
}

/* Rows of the batch are computed and stored, others are read from the table. Features are always exact. */
static void plain_forward(const graft_csr *a, const int64_t *vertex, int64_t n)
{
    for (int l = 0; l < LAYERS; l++) {
        memcpy(plain.read[l], plain.table[l], sizeof plain.read[l]);
        for (int64_t v = 0; l == 0 && v < N; v++) give_row(l, v, plain.read[l][v]);
        for (int64_t i = 0; i < n; i++) give_row(l, vertex[i], plain.read[l][vertex[i]]);
        for (int64_t i = 0; i < n; i++)
            memcpy(plain.table[l][vertex[i]], plain.read[l][vertex[i]], sizeof plain.table[l][0]);
        for (int64_t i = 0; i < n; i++) compute_plain(a, l, vertex[i]);
    }
}

static double plain_softmax(const struct sample_dataset *set, int64_t v, double count, double *gradient)
{
    const double *z = plain.h[LAYERS][v];
    double        largest = z[0], sum = 0;

    for (int j = 1; j < CLASSES; j++) largest = fmax(largest, z[j]);
    for (int j = 0; j < CLASSES; j++) sum += exp(z[j] - largest);
    for (int j = 0; j < CLASSES; j++) gradient[j] = (exp(z[j] - largest) / sum - (j == set->labels[v])) / count;
    return log(sum) + largest - z[set->labels[v]];
}

/* Gradients flow to the rows of the batch alone. Features have none, but their products with T do. */
static void plain_backward(const graft_csr *a, const int64_t *vertex, int64_t n, double (*g)[WIDEST], double lr)
{
    static double below[N][WIDEST], sums[N][WIDEST];
    static char   own[N];

    memset(own, 0, sizeof own);
    for (int64_t i = 0; i < n; i++) own[vertex[i]] = 1;
    for (int l = LAYERS - 1; l >= 0; l--) {
        double self[WIDEST][WIDEST] = { { 0 } }, neigh[WIDEST][WIDEST] = { { 0 } }, bias[WIDEST] = { 0 };

        memset(below, 0, sizeof below);
        memset(sums, 0, sizeof sums);
        for (int64_t k = 0; k < n; k++) {
            const int64_t v = vertex[k], degree = a->row_ptr[v + 1] - a->row_ptr[v];
            double        of_mean[WIDEST] = { 0 };

            for (int j = 0; j < width[l + 1]; j++) bias[j] += g[v][j];
            for (int i = 0; i < width[l]; i++)
                for (int j = 0; j < width[l + 1]; j++) {
                    self[i][j] += plain.h[l][v][i] * g[v][j];
                    below[v][i] += plain.self[l][i][j] * g[v][j];
                    if (plain.sums_input[l]) neigh[i][j] += plain.mean[l][v][i] * g[v][j];
                    if (plain.sums_input[l]) of_mean[i] += plain.neigh[l][i][j] * g[v][j];
                }
            for (int j = 0; !plain.sums_input[l] && j < width[l + 1]; j++) of_mean[j] = g[v][j];
            for (int64_t e = a->row_ptr[v]; e < a->row_ptr[v + 1]; e++) {
                const int64_t u = (int64_t)sample_at(a->col_idx, a->index_type, e);

                for (int j = 0; j < plain_columns(l, 1) && (own[u] || l == 0); j++)
                    sums[u][j] += of_mean[j] / (double)degree;
            }
        }
        for (int64_t u = 0; u < N; u++) {
            for (int i = 0; i < width[l]; i++) {
                if (plain.sums_input[l]) below[u][i] += sums[u][i];
                for (int j = 0; !plain.sums_input[l] && j < width[l + 1]; j++) {
                    neigh[i][j] += plain.h[l][u][i] * sums[u][j];
                    below[u][i] += plain.neigh[l][i][j] * sums[u][j];
                }
                if (!(plain.h[l][u][i] > 0)) below[u][i] = 0;
            }
        }
        for (int j = 0; j < width[l + 1]; j++) {
            plain.bias[l][j] -= lr * bias[j];
            for (int i = 0; i < width[l]; i++) {
                plain.self[l][i][j] -= lr * self[i][j];
                plain.neigh[l][i][j] -= lr * neigh[i][j];
            }
        }
        memcpy(g, below, sizeof below);
    }
}

/* Copy the weights of the trainer to the plain loops, or return the largest difference. */
static double plain_weights(graft_trainer *trainer, int reads)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    double           most = 0;

    for (int k = 0; k < 3 * LAYERS; k++) {
        const int l = k / 3, rows = k % 3 < 2 ? width[l] : 1;

        if (train->state_item(trainer, k, &item, &error) != GRAFT_OK) return (double)NAN;
        if (item.shape[item.n_dims - 1] != width[l + 1] || (rows > 1 && item.shape[0] != rows)) return (double)NAN;
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < width[l + 1]; j++) {
                const double value = (double)((const float *)item.data)[i * width[l + 1] + j];
                double *to = k % 3 == 0 ? &plain.self[l][i][j] : k % 3 == 1 ? &plain.neigh[l][i][j] : &plain.bias[l][j];

                if (reads) *to = value;
                most = fmax(most, fabs(*to - value));
            }
    }
    return most;
}

/* Run one epoch in plain loops. The result is its loss. */
static double plain_epoch(const struct sample_dataset *set, graft_sampler *sampler, int64_t epoch, int *idle)
{
    static double      g[N][WIDEST];
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    double             loss = 0, all = 0;
    int64_t            n_batches = 0;

    samples->begin(sampler, epoch, 0, &n_batches, &error);
    for (int64_t b = 0; b < n_batches; b++) {
        double count = 0;

        if (samples->next(sampler, &batch, &error) != GRAFT_OK) return (double)NAN;
        plain_forward(set->dataset.graph, batch.vertex, batch.n_seeds);
        memset(g, 0, sizeof g);
        for (int64_t i = 0; i < batch.n_seeds; i++)
            count += set->split[batch.vertex[i]] == GRAFT_SPLIT_TRAIN && set->labels[batch.vertex[i]] >= 0;
        *idle += count == 0;
        for (int64_t i = 0; i < batch.n_seeds; i++) {
            const int64_t v = batch.vertex[i];

            if (set->split[v] == GRAFT_SPLIT_TRAIN && set->labels[v] >= 0) loss += plain_softmax(set, v, count, g[v]);
        }
        all += count;
        if (count > 0) plain_backward(set->dataset.graph, batch.vertex, batch.n_seeds, g, 0.5);
    }
    return loss / all;
}

static void test_plain_loops(const char *settings)
{
    struct sample_dataset set;
    graft_csr             graph;
    graft_matrix         *matrix = NULL;
    graft_sampler        *sampler = NULL;
    graft_trainer        *trainer;
    graft_cache_item      cache = GRAFT_INIT(graft_cache_item);
    int64_t               all[N];
    char                  text[4000] = "", word[32];
    int                   idle = 0, orders = 0;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    graph = set.graph.csr;
    graph.values = NULL;
    graph.value_type = 0;
    set.dataset.graph = &graph;
    for (int64_t v = 0; v < N; v++) {
        all[v] = v;
        if (v % 5) set.split[v] = GRAFT_SPLIT_TEST;
    }
    trainer = create_for_history(&set.dataset, settings);
    if (trainer == NULL || train->explain(trainer, text, sizeof text, &error) != GRAFT_OK) text[0] = '\0';
    for (int l = 0; l < LAYERS; l++) {
        snprintf(word, sizeof word, "%d: aggregate", l);
        plain.sums_input[l] = strstr(text, word) != NULL;
        orders |= 1 << plain.sums_input[l];
    }
    ok(trainer != NULL && orders == 3 && plain_weights(trainer, 1) == 0, "both orders of products are tested");
    snprintf(word, sizeof word, "layer 2: %d rows of", N);
    ok(strstr(text, word) != NULL, "before the first epoch explain() says how large caches are");
    if (mxm->matrix_create(api->context, &graph, 0, &matrix, &error) != GRAFT_OK ||
        samples->create(api->context, matrix, all, N, &sampler, &error) != GRAFT_OK)
        diag("%s", error.message);
    for (int64_t v = 0; v < N; v++)
        for (int j = 0; j < FEATURES; j++)
            plain.h[0][v][j] = sample_at(set.features.data, set.features.dtype, v * set.features.stride + j);
    plain_forward(&graph, all, N); /* fills the table */
    for (int e = 0; e < EPOCHS; e++) {
        const double expected = plain_epoch(&set, sampler, e, &idle), loss = history_loss(trainer);
        const double weights = plain_weights(trainer, 0);

        ok(fabs(loss - expected) < 1e-5 * expected && weights < 1e-5,
           "%s, epoch %d: loss %.6f as in plain loops (%.6f), weights are %.1e off", settings, e + 1, loss, expected,
           weights);
    }
    ok(idle > 0, "%d batches had no training vertex", idle);
    ok(report->cache_item(trainer, -1, 1, &cache, &error) == GRAFT_OK && cache.layer == 2 && cache.capacity == N &&
           cache.used == N && cache.searched > 0 && cache.found == cache.searched && cache.age > 0 &&
           cache.stored == N * (EPOCHS + 1) && cache.evicted == 0 && cache.bytes_sent == 0,
       "the cache of the last layer: %lld rows found, of age %.1f", (long long)cache.found, cache.age);
    ok(report->cache_item(trainer, 0, 2, &cache, &error) == GRAFT_ERR_NOT_FOUND, "there is no third one");
    samples->destroy(sampler);
    mxm->matrix_destroy(matrix);
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

/* -- bitwise identical, lack of memory, refusals ------------------------------------------------------------------- */

static void test_history_bits(const char *settings)
{
    struct sample_dataset set;
    graft_trainer        *first, *other;
    graft_epoch           epoch = output_epoch();
    double                losses[2][EPOCHS];
    int64_t               failures = 0;
    char                  threads[300];

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    first = create_for_history(&set.dataset, settings);
    for (int e = 0; e < EPOCHS; e++) history_loss(first);
    if (train->create(api->context, &set.dataset, &other, &error) != GRAFT_OK) return;
    for (; !epoch.done && failures < 400; failures++) {
        host.fail_at = host.calls + 1 + failures % 97;
        train->epoch(other, &epoch, &error);
        host.fail_at = -1;
    }
    while (!epoch.done && train->epoch(other, &epoch, &error) == GRAFT_OK) continue;
    ok(epoch.done && host_same_state(train, first, other), "%s: bitwise identical after lacks of memory", settings);
    train->destroy(other);
    train->destroy(first);
    for (int t = 0; t < 2; t++) {
        snprintf(threads, sizeof threads, "%s threads=%d", settings, 1 + 2 * t);
        first = create_for_history(&set.dataset, threads);
        for (int e = 0; e < EPOCHS; e++) losses[t][e] = history_loss(first);
        train->destroy(first);
    }
    ok(memcmp(losses[0], losses[1], sizeof losses[0]) == 0, "%s: bitwise identical on 1 and 3 threads", settings);
    sample_dataset_fini(&set);
}

/* Two trainers with the same state must have the same epochs, whatever they did before. */
static void test_history_state(void)
{
    struct sample_dataset set;
    graft_state_item      item = GRAFT_INIT(graft_state_item);
    graft_trainer        *first, *second, *third = NULL;
    int                   good;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    first = create_for_history(&set.dataset, "batch_size=40 history=full lr=0.1");
    history_loss(first);
    good = train->create(api->context, &set.dataset, &second, &error) == GRAFT_OK;
    good = good && train->create(api->context, &set.dataset, &third, &error) == GRAFT_OK;
    history_loss(third);
    history_loss(third);
    for (int32_t i = 0; good && train->state_item(first, i, &item, NULL) == GRAFT_OK; i++)
        good =
            train->state_set(second, &item, &error) == GRAFT_OK && train->state_set(third, &item, &error) == GRAFT_OK;
    good = good && history_loss(second) == history_loss(third);
    ok(good && host_same_state(train, second, third), "state_set() replaces the tables");
    ((float *)set.features.data)[0] += 2;
    good = good && train->update(third, GRAFT_UPDATE_FEATURES, &set.dataset, &error) == GRAFT_OK;
    train->destroy(second);
    second = NULL;
    good = good && train->create(api->context, &set.dataset, &second, &error) == GRAFT_OK;
    for (int32_t i = 0; good && train->state_item(third, i, &item, NULL) == GRAFT_OK; i++)
        good = train->state_set(second, &item, &error) == GRAFT_OK;
    good = good && history_loss(second) == history_loss(third);
    ok(good && host_same_state(train, second, third), "and update() fills them anew");
    train->destroy(first);
    train->destroy(second);
    train->destroy(third);
    sample_dataset_fini(&set);
}

/* By default batches gather from all neighbours. */
static void test_default_fanout(void)
{
    static const char     settings[] = "model=gcn layers=2 hidden=8 dropout=0 norm=none lr=0 eval_every=0";
    const graft_api      *other = NULL;
    struct sample_dataset set;
    graft_trainer        *trainer = NULL;
    graft_epoch           epochs[2];
    int64_t               most = 0;
    int                   good;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (int64_t v = 0; v < N; v++)
        most = set.graph.csr.row_ptr[v + 1] - set.graph.csr.row_ptr[v] > most
                   ? set.graph.csr.row_ptr[v + 1] - set.graph.csr.row_ptr[v]
                   : most;
    good = graft_load(getenv("GRAFT_LIBRARY"), &host.table, &other, &error) == GRAFT_OK;
    for (int i = 0; good && i < 2; i++) {
        epochs[i] = output_epoch();
        host_set_all(other, settings);
        if (i) host_set_all(other, "batch_size=30 history=full");
        good = train->create(other->context, &set.dataset, &trainer, &error) == GRAFT_OK &&
               train->epoch(trainer, &epochs[i], &error) == GRAFT_OK;
        train->destroy(trainer);
        trainer = NULL;
    }
    ok(good && most > 10 && fabs(epochs[1].loss - epochs[0].loss) < 1e-5 * epochs[0].loss,
       "without option fanout batches gather from all neighbours, %lld of one vertex", (long long)most);
    if (other != NULL) other->close(other->context);
    sample_dataset_fini(&set);
}

/* Replace vertex 0 by vertex 1 in all rows. */
static void hide_vertex(struct sample_dataset *set)
{
    const graft_csr *a = &set->graph.csr;

    for (int64_t e = 0; e < a->row_ptr[N]; e++) {
        if (sample_at(a->col_idx, a->index_type, e) != 0) continue;
        if (a->index_type == GRAFT_I32) ((int32_t *)(uintptr_t)a->col_idx)[e] = 1;
        else ((int64_t *)(uintptr_t)a->col_idx)[e] = 1;
    }
}

/* Repeat an epoch that fails at this allocation. The result is whether there was such an allocation. */
static int lack_and_repeat(graft_trainer *trainer, int64_t fails)
{
    graft_epoch epoch = output_epoch();
    int         lacks;

    strict_host_fail(&host, fails, 0);
    train->epoch(trainer, &epoch, &error);
    lacks = host.failed > 0;
    strict_host_fail(&host, -1, 0);
    error.message[0] = '\0';
    train->epoch(trainer, &epoch, &error);
    return lacks;
}

/* A row that no code can encode, of a vertex that no loss depends on. */
static void test_unfit_rows(void)
{
    static const char     settings[] = "batch_size=7 history=full hec.codec=q8 epochs=9 seed=2";
    struct sample_dataset set;
    graft_trainer        *trainer;
    graft_epoch           epoch = output_epoch();
    char                  sentence[sizeof error.message];
    int64_t               fails = 0;
    int                   lacks = 1;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    hide_vertex(&set);
    set.split[0] = GRAFT_SPLIT_TEST;
    for (int j = 0; j < FEATURES; j++) ((float *)set.features.data)[j] = 3.4e38f;
    trainer = create_for_history(&set.dataset, settings);
    ok(train->epoch(trainer, &epoch, &error) == GRAFT_ERR_NONFINITE && strstr(error.message, "'hec.codec'") != NULL,
       "a row without a code: %s", error.message);
    strcpy(sentence, error.message);
    train->destroy(trainer);
    for (; lacks && strcmp(sentence, error.message) == 0 && fails < 500; fails++) {
        trainer = create_for_history(&set.dataset, settings);
        lacks = lack_and_repeat(trainer, fails);
        train->destroy(trainer);
    }
    ok_or(!lacks && fails > 20, error.message, "the repeated epoch tells it after each of %lld lacks of memory",
          (long long)fails);
    sample_dataset_fini(&set);
}

static void test_history_refusals(void)
{
    static const char *const wrong[][2] = {
        { "batch_size=40 history=full drop_last=yes", "'drop_last'" },
        { "batch_size=40 history=full drop_last=no sampler=saint", "'sampler=saint'" },
        { "batch_size=40 history=full drop_last=no sampler=ladies", "'sampler=ladies'" },
        { "batch_size=40 history=full fanout=1,2,3", "list of 3 numbers" },
        { "batch_size=301 history=full", "'batch_size' is 301" },
    };
    struct sample_dataset set;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        graft_trainer *trainer = NULL;

        set_history_options(wrong[i][0]);
        ok(train->create(api->context, &set.dataset, &trainer, &error) == GRAFT_ERR_OPTION &&
               strstr(error.message, wrong[i][1]) != NULL,
           "%s: %s", wrong[i][0], error.message);
        train->destroy(trainer);
    }
    sample_dataset_fini(&set);
}

/* With sampler=cluster option drop_last has no effect, also with history=full. */
static void test_drop_last_of_parts(void)
{
    struct sample_dataset set;
    double                loss[2];

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (int i = 0; i < 2; i++) {
        graft_trainer *trainer = create_for_history(&set.dataset, i == 0 ? "batch_size=40 history=full sampler=cluster"
                                                                         : "batch_size=40 history=full "
                                                                           "sampler=cluster drop_last=yes");

        loss[i] = trainer != NULL ? history_loss(trainer) : -1 - i;
        train->destroy(trainer);
    }
    ok(loss[0] == loss[1], "history=full sampler=cluster: drop_last=yes has no effect (loss %.6f and %.6f)", loss[0],
       loss[1]);
    sample_dataset_fini(&set);
}

int main(void)
{
    error = GRAFT_INIT(graft_error);
    strict_host_init(&host);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    report = graft_interface(api, GRAFT_REPORT_ID, sizeof *report);
    samples = graft_interface(api, GRAFT_SAMPLE_ID, sizeof *samples);
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    if (!ok(train != NULL && samples != NULL && mxm != NULL, "it has the interfaces")) return done();
    test_exact_history();
    test_plain_loops("hidden=3,6 batch_size=7 history=full optimizer=sgd lr=0.5 hec.codec=f32");
    test_plain_loops("hidden=3,6 batch_size=7 history=full sampler=cluster:90 partition.program=none "
                     "optimizer=sgd lr=0.5");
    test_history_bits("batch_size=60 history=full dropout=0.4");
    test_history_bits("batch_size=60 history=full sampler=cluster dropout=0.4");
    test_history_bits("model=gat batch_size=60 history=full dropout=0.2 attention_dropout=0.2 fanout=5");
    test_history_state();
    test_default_fanout();
    test_unfit_rows();
    test_history_refusals();
    test_drop_last_of_parts();
    api->close(api->context);
    ok(host.live_blocks == 0 && host.fault == NULL, "all memory was returned (%lld blocks, %s)",
       (long long)host.live_blocks, host.fault != NULL ? host.fault : "no fault");
    return done();
}
