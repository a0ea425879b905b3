/* Checks evaluations and predictions in blocks of rows (option eval.blocks). They must be bitwise
 * identical to a pass over all rows, for every kind of model; memory must not grow with the number of vertices; any
 * allocation may fail, and the folder may be missing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_model.h"
#include "graft_train.h"

#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The features are so wide that blocks, of at most GR_EVALUATION_BYTES of features, have few rows. */
enum { N = 1500, WIDE = 3000, MANY = 60000, FEATURES = 5, CLASSES = 3, LISTED = 40, HIDDEN = 200 };

static const graft_api       *api;
static const graft_train_api *train;
static const graft_model_api *models;
static graft_error            error;
static struct strict_host     host;
static struct sample          sample = { 71 };
static char                   folder[] = "/tmp/graft-by-rows-XXXXXX";
static const char            *blocks[3]; /* options of the ways that are compared; the first one is all rows at once */

struct outputs {
    float         logits[N * CLASSES], list[LISTED * CLASSES], saved[N * CLASSES];
    graft_metrics metrics;
};

static void reset_by_rows(void)
{
    host_set_all(api, "model=sage aggregator=mean layers=3 hidden=16 heads=2 propagation=3 norm=layer jumping=none "
                      "residual=no activation=relu epochs=9 eval_every=0 threads=2 symmetrize=no edge_features=none "
                      "fanout=2 sparse_input=auto model.type=f32 order=given batch_size=500 normalize_features=no");
}

/* What a trainer measures and predicts, and a model of it for all vertices and a list. */
static int32_t compute_by_rows(const struct sample_dataset *set, const char *settings, struct outputs *to)
{
    const graft_dense logits = graft_dense_in(GRAFT_F32, N, CLASSES, to->logits);
    const graft_dense list = graft_dense_in(GRAFT_F32, LISTED, CLASSES, to->list);
    const graft_dense saved = graft_dense_in(GRAFT_F32, N, CLASSES, to->saved);
    int64_t           vertices[LISTED];
    graft_prediction  wish = { .size = sizeof wish, .dataset = &set->dataset, .n = N, .logits = &saved };
    graft_trainer    *trainer = NULL;
    graft_model      *model = NULL;
    int32_t           rc;

    for (int i = 0; i < LISTED; i++) vertices[i] = (i * 149 + 5) % N;
    to->metrics = output_metrics();
    rc = train->create(api->context, &set->dataset, &trainer, &error);
    output_clear_rows(&logits);
    if (rc == GRAFT_OK) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error);
    if (rc == GRAFT_OK) rc = train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &to->metrics, &error);
    if (rc == GRAFT_OK) rc = models->create(trainer, 0, &model, &error);
    output_clear_rows(&saved);
    output_clear_rows(&list);
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &wish, &error);
    wish.vertices = vertices;
    wish.n = LISTED;
    wish.logits = &list;
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &wish, &error);
    if (rc != GRAFT_OK) diag("%s: %s", settings, error.message);
    models->destroy(model);
    train->destroy(trainer);
    return rc;
}

/* Compute in three ways. The result is whether all are bitwise identical. */
static int compute_ways(const struct sample_dataset *set, const char *settings, const char *module,
                        struct outputs *outputs)
{
    int good = 1;

    for (int i = 0; i < 3; i++) {
        reset_by_rows();
        host_set_all(api, module);
        host_set_all(api, settings);
        host_set_all(api, blocks[i]);
        memset(&outputs[i], 0, sizeof outputs[i]);
        good &= compute_by_rows(set, settings, &outputs[i]) == GRAFT_OK;
        good &= memcmp(&outputs[0], &outputs[i], sizeof outputs[0]) == 0;
    }
    for (int i = 0; i < N * CLASSES; i++) good &= isfinite(outputs[0].logits[i]) && isfinite(outputs[0].saved[i]);
    return good;
}

/* Whether the outputs of two ways belong to one model whose rounding differs. */
static int are_near(const struct outputs *a, const struct outputs *b)
{
    float scale = 0, worst = 0;

    for (int i = 0; i < N * CLASSES; i++) {
        scale = fmaxf(scale, fabsf(a->logits[i]));
        worst = fmaxf(worst, fmaxf(fabsf(a->logits[i] - b->logits[i]), fabsf(a->saved[i] - b->saved[i])));
    }
    return worst <= 1e-2f * scale;
}

/* In some dense libraries a row of a product depends on how many rows it has. Plain loops must then be bitwise
 * identical, and the library near. */
static void test_way_bits(const struct sample_dataset *set, const char *name, const char *settings)
{
    static struct outputs outputs[3];
    const char           *asked = getenv("GRAFT_DENSE_MODULE");
    char                  module[80];
    int                   good;

    snprintf(module, sizeof module, "dense.module=%s", asked != NULL ? asked : "auto");
    good = compute_ways(set, settings, module, outputs);
    if (!good && are_near(&outputs[0], &outputs[1]) && are_near(&outputs[0], &outputs[2])) {
        diag("%s, %s: rows of the dense module depend on other rows; with plain loops:", name, settings);
        good = compute_ways(set, settings, "dense.module=reference", outputs);
    }
    ok(good && outputs[0].logits[CLASSES] != outputs[0].logits[2 * CLASSES],
       "%s, %s: evaluation in blocks of rows, in memory and in a file, is bitwise identical", name, settings);
}

static void test_all_bits(void)
{
    struct sample_dataset dense, sparse, several, floats;

    sample_dataset_init(&dense, &sample, N, WIDE, CLASSES, 0, 0);
    sample_dataset_init(&sparse, &sample, N, WIDE, CLASSES, 0, 1);
    sample_dataset_init(&several, &sample, N, WIDE, CLASSES, 1, 0);
    sample_dataset_init(&floats, &sample, N, WIDE, CLASSES, 0, 0);
    sample_dataset_regress(&floats, &sample);
    test_way_bits(&dense, "dense", "model=sage");
    test_way_bits(&dense, "dense", "model=gcn residual=yes activation=elu model.type=bf16");
    test_way_bits(&dense, "dense", "model=gin jumping=cat");
    test_way_bits(&dense, "dense", "model=gat edge_features=array");
    test_way_bits(&dense, "dense", "model=gat heads=1 attention_input=relu");
    test_way_bits(&dense, "dense", "model=mlp norm=batch");
    test_way_bits(&dense, "dense", "model=sgc layers=2 symmetrize=yes");
    test_way_bits(&dense, "dense", "model=appnp layers=2 order=degree");
    test_way_bits(&dense, "dense", "aggregator=max jumping=max layers=4");
    test_way_bits(&dense, "dense", "aggregator=min jumping=max layers=4");
    test_way_bits(&dense, "dense", "aggregator=sum normalize_features=yes batch_size=0");
    test_way_bits(&sparse, "sparse", "sparse_input=yes");
    test_way_bits(&sparse, "sparse", "model=gat sparse_input=yes");
    test_way_bits(&sparse, "sparse", "model=mlp sparse_input=no");
    test_way_bits(&several, "several classes", "model=gcn order=rcm");
    test_way_bits(&floats, "float targets", "model=sage");
    sample_dataset_fini(&dense);
    sample_dataset_fini(&sparse);
    sample_dataset_fini(&several);
    sample_dataset_fini(&floats);
}

/* A graph of many vertices, each of which gathers from three others. */
static const graft_dataset *many_vertices(void)
{
    static int64_t       row_ptr[MANY + 1];
    static int32_t       col[3 * MANY], labels[MANY];
    static float         x[MANY * FEATURES];
    static uint8_t       split[MANY];
    static graft_csr     graph = GRAFT_INIT(graft_csr);
    static graft_dense   features = GRAFT_INIT(graft_dense);
    static graft_dataset set = GRAFT_INIT(graft_dataset);

    for (int64_t v = 0; v < MANY; v++) {
        row_ptr[v + 1] = 3 * (v + 1);
        for (int i = 0; i < 3; i++) col[3 * v + i] = (int32_t)((v * 7 + 1 + i * 1000) % MANY);
        for (int j = 0; j < FEATURES; j++) x[v * FEATURES + j] = (float)((v + j) % 11) - 5;
        labels[v] = (int32_t)(v % CLASSES);
        split[v] = GRAFT_SPLIT_TRAIN;
    }
    graph = (graft_csr){ sizeof graph, GRAFT_I32, 0, 0, MANY, MANY, row_ptr, col, NULL, NULL };
    features = graft_dense_in(GRAFT_F32, MANY, FEATURES, x);
    set.n_vertices = MANY;
    set.n_features = FEATURES;
    set.n_classes = CLASSES;
    set.graph = &graph;
    set.features = &features;
    set.labels = labels;
    set.split = split;
    return &set;
}

/* The peak memory of an evaluation above that of the trainer. */
static int64_t bytes_of_evaluation(const graft_dataset *set, const char *settings)
{
    graft_metrics  metrics = output_metrics();
    graft_trainer *trainer = NULL;
    int64_t        before = 0;
    int32_t        rc;

    reset_by_rows();
    host_set_all(api, settings);
    rc = train->create(api->context, set, &trainer, &error);
    before = host.most_bytes = host.live_bytes;
    if (rc == GRAFT_OK) rc = train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error);
    if (rc != GRAFT_OK) diag("%s: %s", settings, error.message);
    train->destroy(trainer);
    return rc == GRAFT_OK ? host.most_bytes - before : -1;
}

static void test_memory(void)
{
    const graft_dataset *set = many_vertices();
    const int64_t        layer = (int64_t)MANY * HIDDEN * 4;
    int64_t              bytes[3];
    char                 settings[200];

    for (int i = 0; i < 3; i++) {
        snprintf(settings, sizeof settings, "hidden=%d %s", HIDDEN, blocks[i]);
        bytes[i] = bytes_of_evaluation(set, settings);
    }
    ok(bytes[0] > 4 * layer, "evaluation of all rows at once needs %lld bytes; one layer has %lld", (long long)bytes[0],
       (long long)layer);
    ok(bytes[1] > 2 * layer && bytes[1] < bytes[0], "evaluation in blocks needs the outputs of two layers: %lld bytes",
       (long long)bytes[1]);
    ok(bytes[2] > 0 && bytes[2] <= bytes[1] - 2 * layer,
       "evaluation in blocks with a file needs no outputs in memory: %lld bytes", (long long)bytes[2]);
    snprintf(settings, sizeof settings, "hidden=%d memory.limit=%lld", HIDDEN,
             (long long)(bytes[0] + bytes[1]) / 2000000);
    host_set_all(api, "eval.blocks=auto");
    ok(bytes_of_evaluation(set, settings) > 0, "eval.blocks=auto uses blocks if all rows do not fit into memory");
    host_set_all(api, "eval.blocks=no");
    ok(bytes_of_evaluation(set, settings) < 0 && error.code == GRAFT_ERR_NOMEM,
       "eval.blocks=no is refused if all rows do not fit into memory: %s", error.message);
    host_set_all(api, "memory.limit=0");
}

/* -- failures ----------------------------------------------------------------------------------------------------- */

static void test_allocations(const char *way)
{
    static float          logits[N * CLASSES];
    const graft_dense     to = graft_dense_in(GRAFT_F32, N, CLASSES, logits);
    struct sample_dataset set;
    graft_trainer        *trainer = NULL;
    int                   failures = 0, good;
    int32_t               rc = GRAFT_ERR_NOMEM;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    reset_by_rows();
    host_set_all(api, "layers=2 threads=1");
    host_set_all(api, way);
    memset(logits, 7, sizeof logits);
    good = train->create(api->context, &set.dataset, &trainer, &error) == GRAFT_OK;
    for (int64_t k = 0; good && rc == GRAFT_ERR_NOMEM && k < 100000; k += 1 + k / 8) {
        const int64_t before = host.live_bytes;

        strict_host_fail(&host, k, 0);
        rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &to, &error);
        failures += rc == GRAFT_ERR_NOMEM;
        if (rc == GRAFT_ERR_NOMEM)
            good = host.live_bytes == before && ((const unsigned char *)logits)[sizeof logits - 1] == 7;
    }
    strict_host_fail(&host, -1, 0);
    ok(good && rc == GRAFT_OK && failures > 10,
       "%s: allocations fail in turn, %d of them, and results are right afterwards", way, failures);
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

static void test_files(void)
{
    struct sample_dataset set;
    graft_trainer        *trainer = NULL;
    graft_metrics         metrics = output_metrics();
    graft_epoch           epoch = output_epoch();
    struct rlimit         usual, small;
    int32_t               rc;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    reset_by_rows();
    host_set_all(api, "eval.blocks=/tmp/graft-no-such-folder");
    rc = train->create(api->context, &set.dataset, &trainer, &error);
    ok(rc == GRAFT_ERR_IO && trainer == NULL && strstr(error.message, "graft-no-such-folder") != NULL &&
           error.native_code != 0,
       "a missing folder for blocks is refused: %s", error.message);
    host_set_all(api, blocks[2]);
    rc = train->create(api->context, &set.dataset, &trainer, &error);
    host_set_all(api, "eval.blocks=/tmp/graft-no-such-folder");
    ok(rc == GRAFT_OK && train->epoch(trainer, &epoch, &error) == GRAFT_ERR_IO &&
           train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error) == GRAFT_ERR_IO,
       "a folder for blocks that is removed later is reported: %s", error.message);
    host_set_all(api, blocks[2]);
    getrlimit(RLIMIT_FSIZE, &usual);
    small = usual;
    small.rlim_cur = 10000;
    setrlimit(RLIMIT_FSIZE, &small);
    rc = rc == GRAFT_OK ? train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error) : rc;
    setrlimit(RLIMIT_FSIZE, &usual);
    ok(rc == GRAFT_ERR_IO, "a file of blocks that exceeds the limit of file sizes is an error and no signal: %s",
       error.message);
    ok(trainer != NULL && train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error) == GRAFT_OK,
       "after that error the trainer can be used");
    train->destroy(trainer);
    sample_dataset_fini(&set);
    ok(rmdir(folder) == 0, "no file of blocks is left in the folder");
}

static void test_unread_rows(void)
{
    struct sample_dataset set;
    graft_trainer        *trainer = NULL;
    graft_metrics         metrics = output_metrics();
    float                *x;
    int32_t               rc;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    x = set.features.data;
    reset_by_rows();
    host_set_all(api, "hidden=8 memory.limit=0 eval.blocks=yes");
    rc = train->create(api->context, &set.dataset, &trainer, &error);
    x[(N - 1) * set.features.stride] = (float)NAN;
    if (rc == GRAFT_OK) rc = train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &error);
    ok(rc == GRAFT_ERR_FORMAT && strstr(error.message, "features of vertex 1499") != NULL,
       "a row that is not finite is found in evaluation by blocks: %s", error.message);
    train->destroy(trainer);
    sample_dataset_fini(&set);
}

int main(void)
{
    static char in_file[100];

    strict_host_init(&host);
    error = (graft_error)GRAFT_INIT(graft_error);
    if (!ok(mkdtemp(folder) != NULL && graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) == GRAFT_OK,
            "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof *models);
    snprintf(in_file, sizeof in_file, "eval.blocks=%s", folder);
    blocks[0] = "eval.blocks=no";
    blocks[1] = "eval.blocks=yes";
    blocks[2] = in_file;
    test_all_bits();
    test_memory();
    test_unread_rows();
    test_allocations(blocks[1]);
    test_allocations(blocks[2]);
    test_files();
    api->close(api->context);
    ok(host.fault == NULL && host.live_blocks == 0, "all memory of the trainers is freed");
    return done();
}
