/* Checks option sparse_input: what "auto" chooses against a rule computed by hand, that dense features are left alone,
 * and that steps are bitwise identical for any number of threads. That either choice gives the right gradients is for
 * test_gradient.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_train.h"

#include <stdlib.h>
#include <string.h>

static const graft_api       *api;
static const graft_train_api *train;
static const char *const      models[] = { "sage", "gcn", "gat", "gin", "mlp", "sgc", "appnp" };

enum { MODELS = 7, CLASSES = 2 };

static void set_model(const char *model)
{
    api->set(api->context, "model", model, NULL);
    host_set_all(api, "layers=2 hidden=16 heads=2 input_dropout=0 sparse_input=auto threads=2 memory.limit=0");
}

/** A data set whose vertices are all trained. Each gathers from `degree` others and has `filled` of d features. */
struct chain {
    graft_dataset dataset;
    graft_csr     graph, features;
    int64_t      *ends, *feature_ends;
    int32_t      *neighbours, *columns, *labels;
    uint8_t      *split;
};

static graft_csr sparse_input_rows_of(int64_t n_rows, int64_t n_cols, int64_t each, int64_t *ends, int32_t *columns)
{
    graft_csr csr = GRAFT_INIT(graft_csr);

    for (int64_t v = 0; v < n_rows; v++) {
        ends[v + 1] = (v + 1) * each;
        for (int64_t i = 0; i < each; i++) columns[v * each + i] = (int32_t)((v * each + i) % n_cols);
    }
    csr.index_type = GRAFT_I32;
    csr.n_rows = n_rows;
    csr.n_cols = n_cols;
    csr.row_ptr = ends;
    csr.col_idx = columns;
    return csr;
}

static void chain_init(struct chain *chain, int64_t n, int64_t d, int64_t filled, int64_t degree)
{
    *chain = (struct chain){ .ends = calloc((size_t)n + 1, sizeof(int64_t)),
                             .feature_ends = calloc((size_t)n + 1, sizeof(int64_t)),
                             .neighbours = calloc((size_t)(n * degree), sizeof(int32_t)),
                             .columns = calloc((size_t)(n * filled), sizeof(int32_t)),
                             .labels = calloc((size_t)n, sizeof(int32_t)),
                             .split = malloc((size_t)n) };
    memset(chain->split, GRAFT_SPLIT_TRAIN, (size_t)n);
    chain->graph = sparse_input_rows_of(n, n, degree, chain->ends, chain->neighbours);
    chain->features = sparse_input_rows_of(n, d, filled, chain->feature_ends, chain->columns);
    chain->dataset = GRAFT_INIT(graft_dataset);
    chain->dataset.n_vertices = n;
    chain->dataset.n_features = d;
    chain->dataset.n_classes = CLASSES;
    chain->dataset.graph = &chain->graph;
    chain->dataset.sparse_features = &chain->features;
    chain->dataset.labels = chain->labels;
    chain->dataset.split = chain->split;
}

static void chain_fini(struct chain *chain)
{
    free(chain->ends);
    free(chain->feature_ends);
    free(chain->neighbours);
    free(chain->columns);
    free(chain->labels);
    free(chain->split);
}

/** What explain() says about a trainer of this data set, or the error message if there is none. */
static const char *explained(const graft_dataset *dataset)
{
    static char    text[2048];
    graft_trainer *trainer = NULL;
    graft_error    error = GRAFT_INIT(graft_error);

    if (train->create(api->context, dataset, &trainer, &error) != GRAFT_OK) return strcpy(text, error.message);
    train->explain(trainer, text, sizeof text, NULL);
    train->destroy(trainer);
    return text;
}

static void sparse_input_expect(const graft_dataset *dataset, const char *word, const char *model, const char *why)
{
    const char *text = explained(dataset);

    ok_or(strstr(text, word) != NULL, text, "%s: %s, so features are %s", model, why, word);
}

/** The rule of graft_train.h, computed by hand. With 1 of 400 features per vertex all sparse products of a step take
 *  some hundredths of the dense ones. With 200 of 400 they take half as many operations, and each costs eight times as
 *  much. With 30 of 400 and 200 neighbours it depends: A (X W) takes more than a dense product with features that are
 *  aggregated once, as 8 (30 + 200) > 400, but less than one more aggregation. Models that do not gather features have
 *  8 * 30 < 400. */
static void test_sparse_input_choice(const char *model)
{
    const int    gathers = strcmp(model, "sage") == 0 || strcmp(model, "gcn") == 0 || strcmp(model, "gin") == 0;
    struct chain chain;

    set_model(model);
    chain_init(&chain, 500, 400, 1, 2);
    sparse_input_expect(&chain.dataset, "multiplied as they are", model, "one feature of 400 is there");
    host_set(api, "sparse_input=no");
    sparse_input_expect(&chain.dataset, "made dense", model, "sparse_input is no");
    chain_fini(&chain);
    host_set(api, "sparse_input=auto");
    chain_init(&chain, 500, 400, 200, 2);
    sparse_input_expect(&chain.dataset, "made dense", model, "half of the features are there");
    host_set(api, "sparse_input=yes");
    sparse_input_expect(&chain.dataset, "multiplied as they are", model, "sparse_input is yes");
    chain_fini(&chain);
    host_set(api, "sparse_input=auto");
    chain_init(&chain, 500, 400, 30, 200);
    sparse_input_expect(&chain.dataset, gathers ? "made dense" : "multiplied as they are", model,
                        "neighbours are many");
    host_set(api, "input_dropout=0.5");
    sparse_input_expect(&chain.dataset, "multiplied as they are", model, "neighbours are many and features change");
    chain_fini(&chain);
}

/** 10,000 vertices with 20 of 100 features: dense X and what is gathered of it would take 8 MB; the entries and those
 *  of the transpose take 5 MB. */
static void test_sparse_input_memory(void)
{
    struct chain chain;

    set_model("gcn");
    chain_init(&chain, 10000, 100, 20, 1);
    sparse_input_expect(&chain.dataset, "made dense", "gcn", "a fifth of the features is there");
    host_set(api, "memory.limit=8");
    host_set(api, "hidden=4");
    sparse_input_expect(&chain.dataset, "multiplied as they are", "gcn", "dense ones would not fit");
    chain_fini(&chain);
}

/** Dense features stay dense, whatever their values. */
static void test_dense(void)
{
    struct sample         sample = { 5 };
    struct sample_dataset data;
    const char           *text;

    set_model("sage");
    host_set(api, "sparse_input=yes");
    sample_dataset_init(&data, &sample, 23, 7, CLASSES, 0, 0);
    text = explained(&data.dataset);
    ok_or(strstr(text, "model") != NULL && strstr(text, "sparse") == NULL, text, "dense features stay dense");
    sample_dataset_fini(&data);
}

/** Two trainers make two steps each in turn, one with one thread and one with three. There is work for three. */
static void test_sparse_input_threads(const char *model)
{
    struct sample         sample = { 3 };
    struct sample_dataset data;
    graft_trainer        *trainer[2] = { NULL };
    graft_epoch           epoch = output_epoch();
    graft_error           error = GRAFT_INIT(graft_error);
    int32_t               rc = GRAFT_OK;

    set_model(model);
    host_set(api, "sparse_input=yes");
    host_set(api, "input_dropout=0.3");
    sample_dataset_init(&data, &sample, 600, 400, CLASSES, 0, 1);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = train->create(api->context, &data.dataset, &trainer[i], &error);
    for (int i = 0; i < 4 && rc == GRAFT_OK; i++) {
        host_set(api, i % 2 ? "threads=3" : "threads=1");
        rc = train->epoch(trainer[i % 2], &epoch, &error);
    }
    ok_or(rc == GRAFT_OK && epoch.loss > 0 && host_same_state(train, trainer[0], trainer[1]), error.message,
          "%s: bitwise identical on one thread and on three", model);
    for (int i = 0; i < 2; i++) train->destroy(trainer[i]);
    sample_dataset_fini(&data);
}

int main(void)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    if (!ok(train != NULL, "it has " GRAFT_TRAIN_ID)) return done();
    for (int i = 0; i < MODELS; i++) {
        test_sparse_input_choice(models[i]);
        test_sparse_input_threads(models[i]);
    }
    test_sparse_input_memory();
    test_dense();
    api->close(api->context);
    return done();
}
