/* Checks option check=full: for each borrowed array, a change that the host did not announce must be found and named,
 * in one process and over ranks; a wrong kernel must be found before its results reach the host; and so must a wrong
 * dense module. Also checks row pointers of 32 bits in every call that takes a matrix.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <stdlib.h>
#include <string.h>

enum { N = 61, FEATURES = 5, CLASSES = 3, WIDTH = 4, ARRAYS_MOST = 12 };

static const graft_api     *api;
static const graft_mxm_api *mxm;
static graft_error          error = { .size = sizeof error };

/* An array of the host, and the bit that is changed, so that it stays legal. */
struct array {
    const char *name; /* name in the message */
    void       *at;   /* byte that is changed */
    uint8_t     bit;
};

static void flip(const struct array *array)
{
    *(uint8_t *)array->at ^= array->bit;
}

static int names(const struct array *array)
{
    char quoted[64];

    snprintf(quoted, sizeof quoted, "'%s'", array->name);
    return strstr(error.message, quoted) != NULL;
}

static int32_t product(graft_matrix *matrix, const float *b, float *c)
{
    const graft_dense x = graft_dense_in(GRAFT_F32, N, WIDTH, b);
    const graft_dense y = { sizeof y, GRAFT_F32, N, WIDTH, WIDTH, c };
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);

    args.semiring = GRAFT_PLUS_TIMES;
    args.a = matrix;
    args.b = &x;
    args.c = &y;
    return mxm->run(api->context, &args, &error);
}

static float b[N * WIDTH], c[N * WIDTH], other[N * WIDTH];

static void test_matrix(struct sample_csr *a)
{
    float             *values = a->values;
    const struct array arrays[] = {
        { "row_ptr", &a->row_ptr[N], 0 },
        { "col_idx", a->col_idx, 1 },
        { "values", &values[3], 1 },
    };
    graft_matrix *matrix = NULL, *turned = NULL;

    host_set(api, "check=full");
    ok(mxm->matrix_create(api->context, &a->csr, 0, &matrix, &error) == GRAFT_OK && product(matrix, b, c) == GRAFT_OK,
       "with check=full a product whose arrays did not change succeeds");
    for (int i = 1; i < 3; i++) {
        flip(&arrays[i]);
        ok(product(matrix, b, c) == GRAFT_ERR_STATE && names(&arrays[i]) && strstr(error.message, "args.a") != NULL,
           "after a change of %s a product is refused: %s", arrays[i].name, error.message);
        ok(mxm->matrix_transpose(api->context, matrix, &turned, &error) == GRAFT_ERR_STATE && names(&arrays[i]),
           "matrix_transpose() refuses a changed array too");
        flip(&arrays[i]);
        ok(product(matrix, b, c) == GRAFT_OK, "after the array is restored a product succeeds");
    }
    a->row_ptr[1]++;
    ok(product(matrix, b, c) == GRAFT_ERR_STATE && names(&arrays[0]),
       "after a change of row_ptr a product is refused: %s", error.message);
    ok(mxm->matrix_update_values(api->context, matrix, values, NULL, &error) == GRAFT_ERR_STATE,
       "matrix_update_values() refuses a changed row_ptr");
    a->row_ptr[1]--;
    flip(&arrays[2]);
    ok(mxm->matrix_update_values(api->context, matrix, values, NULL, &error) == GRAFT_OK &&
           product(matrix, b, c) == GRAFT_OK,
       "values may be changed if matrix_update_values() is called");
    flip(&arrays[2]);
    host_set(api, "check=args");
    ok(product(matrix, b, c) == GRAFT_OK, "with check=args changed arrays are not found");
    mxm->matrix_destroy(matrix);
}

/* A wrong kernel must write nothing to the host. */
static void test_kernel(const char *path, const graft_csr *plain)
{
    graft_matrix     *matrix = NULL;
    const graft_dense x = graft_dense_in(GRAFT_F32, N, WIDTH, b), y = { sizeof y, GRAFT_F32, N, WIDTH, WIDTH, c };
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    int               same = 1;

    args.semiring = GRAFT_PLUS_SECOND;
    args.b = &x;
    args.c = &y;
    ok(mxm->matrix_create(api->context, plain, 0, &matrix, &error) == GRAFT_OK &&
           api->load_module(api->context, path, &error) == GRAFT_OK,
       "a wrong kernel is loaded");
    args.a = matrix;
    host_set(api, "mxm.kernel=wrong");
    ok(mxm->run(api->context, &args, &error) == GRAFT_OK, "with check=args a wrong kernel is not found");
    host_set(api, "check=full");
    for (int i = 0; i < N * WIDTH; i++) c[i] = -3;
    ok(mxm->run(api->context, &args, &error) == GRAFT_ERR_MODULE && strstr(error.message, "kernel wrong") != NULL &&
           strstr(error.message, "reference gives") != NULL,
       "with check=full a wrong kernel is named: %s", error.message);
    for (int i = 0; i < N * WIDTH; i++) same &= c[i] == -3;
    ok(same, "a refused product leaves C unchanged");
    host_set(api, "mxm.kernel=auto");
    host_set(api, "check=args");
    mxm->matrix_destroy(matrix);
}

/* How many modules are listed under the names of the wrong modules of this test. */
static int list_wrong_modules(const graft_api *strict)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    int                count = 0;

    for (int32_t i = 0; strict->module_info(strict->context, i, &entry, NULL) == GRAFT_OK; i++)
        count += strcmp(entry.name, "wrong") == 0;
    return count;
}

/* If memory runs out in set("module.path"), neither the option nor the list of modules may change. */
static void test_module_path(const char *path)
{
    static struct strict_host host;
    const graft_api          *strict;
    graft_option              option = GRAFT_INIT(graft_option);
    char                      folder[512];
    int64_t                   k = 0;
    int                       fine = 1, rc = GRAFT_ERR_NOMEM;

    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    strict_host_init(&host);
    if (graft_load(getenv("GRAFT_LIBRARY"), &host.table, &strict, &error) < 0) exit(2);
    for (; rc != GRAFT_OK && fine && k < 1000; k++) {
        host.fail_at = host.calls + k;
        rc = strict->set(strict->context, "module.path", folder, &error);
        host.fail_at = -1;
        for (int32_t i = 0; strict->option_info(strict->context, i, &option, NULL) == GRAFT_OK; i++)
            if (strcmp(option.key, "module.path") == 0) break;
        fine = rc == GRAFT_OK ? list_wrong_modules(strict) == 2 && strcmp(option.value, folder) == 0
                              : rc == GRAFT_ERR_NOMEM && list_wrong_modules(strict) == 0 && *option.value == '\0';
    }
    ok(fine && k > 3, "set(module.path) in which one of %lld allocations fails changes nothing", (long long)k - 1);
    strict->close(strict->context);
}

/* List the arrays of the data set of a rank, or of one process. */
static int list_arrays(const struct host_slice *slice, int over, struct array arrays[ARRAYS_MOST])
{
    const graft_dataset     *d = &slice->dataset;
    const graft_csr         *csr[] = { over ? NULL : d->graph, d->sparse_features };
    static const char *const csr_names[2][3] = {
        { "graph.row_ptr", "graph.col_idx", "graph.values" },
        { "sparse_features.row_ptr", "sparse_features.col_idx", "sparse_features.values" },
    };
    int count = 0;

    if (d->features != NULL) arrays[count++] = (struct array){ "features", d->features->data, 1 };
    if (d->labels != NULL) arrays[count++] = (struct array){ "labels", (void *)(uintptr_t)d->labels, 1 };
    if (d->targets != NULL) arrays[count++] = (struct array){ "targets", (void *)(uintptr_t)d->targets, 1 };
    if (d->float_targets != NULL) arrays[count++] = (struct array){ "float_targets", d->float_targets->data, 1 };
    if (d->split != NULL) arrays[count++] = (struct array){ "split", (void *)(uintptr_t)d->split, 1 };
    for (int i = 0; i < 2; i++) {
        if (csr[i] == NULL) continue;
        arrays[count++] = (struct array){ csr_names[i][0], (void *)(uintptr_t)&csr[i]->row_ptr[1], 1 };
        arrays[count++] = (struct array){ csr_names[i][1], (void *)(uintptr_t)csr[i]->col_idx, 1 };
        if (csr[i]->values != NULL)
            arrays[count++] = (struct array){ csr_names[i][2], (void *)(uintptr_t)csr[i]->values, 1 };
    }
    return count;
}

static int32_t epoch(struct host *host, graft_trainer *trainer)
{
    graft_epoch epoch = output_epoch();

    return host->train->epoch(trainer, &epoch, &host->error);
}

static int32_t blame_array(struct host *host, const char *what, const char *name)
{
    char before[300];

    snprintf(before, sizeof before, "%.299s", host->error.message);
    snprintf(host->error.message, sizeof host->error.message, "%s (%s): %s", what, name, before);
    return GRAFT_STATUS_END;
}

/* The flag of update() for an array that can change by one bit and stay legal. */
static uint32_t updated_by(const char *name)
{
    if (strcmp(name, "features") == 0 || strcmp(name, "sparse_features.values") == 0) return GRAFT_UPDATE_FEATURES;
    if (strcmp(name, "graph.values") == 0) return GRAFT_UPDATE_EDGE_VALUES;
    return strcmp(name, "float_targets") == 0 ? GRAFT_UPDATE_TARGETS : 0;
}

struct job {
    const graft_dataset *dataset;
    int                  over;
};

/* The last rank changes its arrays, and all ranks must report it. */
static int32_t checked_body(struct host *host)
{
    const struct job   *job = host->all->arg;
    struct array        arrays[ARRAYS_MOST];
    struct host_trainer t = { .slice = { .dataset = *job->dataset } };
    graft_metrics       metrics = output_metrics();
    const int           changes = host->rank == host->n_ranks - 1;
    int32_t             rc;
    int                 count;

    if (job->over) rc = host_trainer_create(host, job->dataset, SLICES_EVEN, &t);
    else rc = host->train->create(host->api->context, job->dataset, &t.trainer, &host->error);
    if (rc == GRAFT_OK) rc = epoch(host, t.trainer);
    count = list_arrays(&t.slice, job->over, arrays);
    for (int i = 0; i < count && rc == GRAFT_OK; i++) {
        char quoted[64];

        snprintf(quoted, sizeof quoted, "'%s'", arrays[i].name);
        if (changes) flip(&arrays[i]);
        if (epoch(host, t.trainer) != GRAFT_ERR_STATE || strstr(host->error.message, quoted) == NULL ||
            host->error.rank != host->n_ranks - 1)
            rc = blame_array(host, "epoch() does not say what changed", arrays[i].name);
        if (rc == GRAFT_OK && strcmp(arrays[i].name, "graph.values") == 0 &&
            strstr(host->error.message, "update(GRAFT_UPDATE_EDGE_VALUES)") == NULL)
            rc = blame_array(host, "nor which call says so", arrays[i].name);
        if (rc == GRAFT_OK &&
            host->train->evaluate(t.trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error) != GRAFT_ERR_STATE)
            rc = blame_array(host, "nor evaluate()", arrays[i].name);
        if (rc == GRAFT_OK &&
            host->train->predict(t.trainer, GRAFT_WEIGHTS_LAST, NULL, NULL, &host->error) != GRAFT_ERR_STATE)
            rc = blame_array(host, "nor predict()", arrays[i].name);
        if (changes) flip(&arrays[i]);
        if (rc == GRAFT_OK && epoch(host, t.trainer) != GRAFT_OK)
            rc = blame_array(host, "after the array is restored a product succeeds", arrays[i].name);
    }
    for (int i = 0; i < count && rc == GRAFT_OK; i++) {
        const uint32_t what = updated_by(arrays[i].name);

        if (what == 0) continue;
        if (changes) flip(&arrays[i]);
        rc = host->train->update(t.trainer, what, &t.slice.dataset, &host->error);
        if (rc == GRAFT_OK) rc = epoch(host, t.trainer);
        if (changes) flip(&arrays[i]);
        if (rc == GRAFT_OK && epoch(host, t.trainer) != GRAFT_ERR_STATE)
            rc = blame_array(host, "the new array has no digest", arrays[i].name);
        if (rc == GRAFT_OK) rc = host->train->update(t.trainer, what, &t.slice.dataset, &host->error);
    }
    if (job->over) host_trainer_destroy(host, &t);
    else host->train->destroy(t.trainer);
    return rc;
}

/* Give a graph values. */
static void give_values(struct sample_csr *graph)
{
    float *values = oracle_new(graph->row_ptr[N], sizeof *values);

    for (int64_t e = 0; e < graph->row_ptr[N]; e++) values[e] = 1 + (float)(e % 7);
    graph->values = values;
    graph->csr.values = values;
    graph->csr.value_type = GRAFT_F32;
}

enum { LABELS, TARGETS, FLOATS };

static void test_trainer(int n_ranks, int kind, int sparse)
{
    static const char *const kinds[] = { "labels", "targets", "float targets" };
    static const char *const settings[] = { "layers=2", "hidden=4", "threads=1", "check=full", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 17 };
    struct sample_dataset    set;
    struct job               job = { .over = n_ranks > 1 };

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, kind == TARGETS, sparse);
    if (kind == FLOATS) sample_dataset_regress(&set, &sample);
    give_values(&set.graph);
    job.dataset = &set.dataset;
    hosts_run(&hosts, n_ranks, settings, checked_body, &job);
    ok(hosts_fault(&hosts) == NULL, "%d rank%s, %s, %s features: %s", n_ranks, n_ranks == 1 ? "" : "s", kinds[kind],
       sparse ? "sparse" : "dense", hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "each array is named");
    sample_dataset_fini(&set);
}

/* Train two epochs of a model with the dense products of a module, and predict. */
static int32_t train_with(const graft_dataset *data, const char *settings)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, GRAFT_HAS(graft_train_api, destroy));
    graft_trainer         *trainer = NULL;
    graft_epoch            epoch = output_epoch();
    int32_t                labels[N], rc;

    host_set_all(api, settings);
    rc = train->create(api->context, data, &trainer, &error);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = train->epoch(trainer, &epoch, &error);
    if (rc == GRAFT_OK) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, labels, NULL, &error);
    train->destroy(trainer);
    return rc;
}

/* Every product of every kind of model is compared: a module that is wrong by 1e-5 must be named, and right ones
 * pass. */
static void test_dense_modules(const char *path)
{
    static const char *const models[] = { "mlp", "gcn", "sage", "gin", "gat", "sgc", "appnp" };
    static const char *const modules[] = { "reference", "cblas", "onednn", "onednn dense.type=bf16" };
    struct sample            sample = { 11 };
    struct sample_dataset    set;
    char                     settings[160];

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    ok(api->load_module(api->context, path, &error) == GRAFT_OK, "a wrong dense module is loaded");
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        snprintf(settings, sizeof settings, "model=%s hidden=24 layers=3 check=args dense.module=wrong", models[m]);
        ok(train_with(&set.dataset, settings) == GRAFT_OK, "%s: with check=args a wrong dense module is not found",
           models[m]);
        ok(train_with(&set.dataset, "check=full") == GRAFT_ERR_MODULE &&
               strstr(error.message, "of dense module wrong is") != NULL,
           "with check=full a wrong dense module is named: %s", error.message);
        for (size_t d = 0; d < sizeof modules / sizeof *modules; d++) {
            int32_t rc;

            snprintf(settings, sizeof settings, "dense.type=f32 dense.module=%s", modules[d]);
            rc = train_with(&set.dataset, settings);
            /* The module was not built, or cannot run here. */
            if (rc == GRAFT_ERR_OPTION || rc == GRAFT_ERR_UNSUPPORTED) continue;
            ok(rc == GRAFT_OK, "%s is accepted with check=full: %s", modules[d], rc < 0 ? error.message : "");
        }
        host_set_all(api, "dense.type=f32 dense.module=auto check=args");
    }
    sample_dataset_fini(&set);
}

/* The same matrix with row pointers of 32 bits. */
static graft_csr narrow(const graft_csr *csr, int32_t *row_ptr)
{
    graft_csr made = *csr;

    for (int64_t i = 0; i <= csr->n_rows; i++) row_ptr[i] = (int32_t)csr->row_ptr[i];
    made.row_ptr = NULL;
    made.row_ptr_32 = row_ptr;
    return made;
}

static void test_narrow_matrix(struct sample_csr *a)
{
    int32_t       row_ptr[N + 1];
    graft_csr     csr = narrow(&a->csr, row_ptr);
    graft_matrix *wide = NULL, *matrix = NULL;

    ok(mxm->matrix_create(api->context, &a->csr, 0, &wide, &error) == GRAFT_OK && product(wide, b, c) == GRAFT_OK &&
           mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_OK &&
           product(matrix, b, other) == GRAFT_OK && memcmp(c, other, sizeof c) == 0,
       "32-bit row pointers give the same product");
    ok(mxm->matrix_update_values(api->context, matrix, a->values, NULL, &error) == GRAFT_OK &&
           mxm->matrix_bytes(matrix) >= (N + 1) * 8,
       "values of a matrix with 32-bit row pointers can be updated, and its memory is reported");
    mxm->matrix_destroy(matrix);
    mxm->matrix_destroy(wide);
    matrix = NULL;
    row_ptr[3] = row_ptr[4] + 1;
    ok(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_ERR_FORMAT &&
           strstr(error.message, "falls") != NULL,
       "row pointers that decrease are refused: %s", error.message);
    row_ptr[N] = INT32_MIN;
    ok(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_ERR_FORMAT,
       "row pointers that overflowed are refused");
    row_ptr[0] = 1;
    ok(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_ERR_FORMAT,
       "row pointers that begin at 1 are refused");
    csr.row_ptr = a->row_ptr;
    ok(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_ERR_ARG,
       "a matrix with row pointers of both sizes is refused: %s", error.message);
    csr.row_ptr = NULL;
    csr.row_ptr_32 = NULL;
    ok(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_ERR_ARG,
       "a matrix without row pointers is refused: %s", error.message);
    csr = narrow(&a->csr, row_ptr);
    csr.n_rows = -1;
    ok(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_ERR_ARG && matrix == NULL,
       "a matrix with a negative number of rows is refused");
}

struct narrow_job {
    const graft_dataset *dataset;
    int                  narrow;
    float                logits[N * CLASSES];
};

/* Train on slices whose matrices have 32-bit row pointers. */
static int32_t narrow_body(struct host *host)
{
    struct narrow_job *job = host->all->arg;
    struct host_slice  s;
    int32_t            rows[N + 1], sparse[N + 1], rc;
    graft_csr          narrow_rows, narrow_sparse;
    graft_graph       *graph = NULL;
    graft_trainer     *trainer = NULL;
    graft_dense        logits = { sizeof logits, GRAFT_F32, 0, CLASSES, CLASSES, NULL };

    host_slice_init(&s, job->dataset, SLICES_EVEN, host->rank, host->n_ranks);
    if (job->narrow) {
        narrow_rows = narrow(&s.rows, rows);
        narrow_sparse = narrow(&s.sparse, sparse);
        s.slice.rows = &narrow_rows;
        s.dataset.sparse_features = &narrow_sparse;
    }
    logits.n_rows = s.end - s.first;
    logits.data = job->logits + s.first * CLASSES;
    if (host->n_ranks == 1) {
        s.dataset.graph = s.slice.rows;
        rc = GRAFT_OK;
    } else rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &s.dataset, &trainer, &host->error);
    memset(rows, 0x7f, sizeof rows); /* the slice is read during the call; only one process borrows */
    if (host->n_ranks == 1 && job->narrow) narrow_rows = narrow(&s.rows, rows);
    if (rc == GRAFT_OK) rc = epoch(host, trainer);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) /* the second update replaces a copy that the first one made */
        rc = host->train->update(trainer, GRAFT_UPDATE_FEATURES, &s.dataset, &host->error);
    output_clear_rows(&logits);
    if (rc == GRAFT_OK) rc = host->train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &host->error);
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

static void test_narrow_trainer(int n_ranks)
{
    static const char *const settings[] = { "layers=2", "hidden=4", "threads=1", NULL };
    static struct hosts      hosts;
    static struct narrow_job wide, small;
    struct sample            sample = { 23 };
    struct sample_dataset    set;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 1);
    wide.dataset = small.dataset = &set.dataset;
    small.narrow = 1;
    hosts_run(&hosts, n_ranks, settings, narrow_body, &wide);
    ok(hosts_fault(&hosts) == NULL, "%d ranks: training with 64-bit row pointers: %s", n_ranks,
       hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "");
    hosts_run(&hosts, n_ranks, settings, narrow_body, &small);
    ok(hosts_fault(&hosts) == NULL, "%d ranks: training with 32-bit row pointers: %s", n_ranks,
       hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "");
    ok(memcmp(wide.logits, small.logits, sizeof wide.logits) == 0,
       "logits are the same with row pointers of both sizes");
    sample_dataset_fini(&set);
}

int main(int argc, char **argv)
{
    const struct sample_csr_shape shape = { N, N, GRAFT_I32, GRAFT_F32, 1, 1 }, plain = { N, N, GRAFT_I32, 0, 1, 1 };
    struct sample                 sample = { 3 };
    struct sample_csr             a, without;

    if (argc < 3 || graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) return 2;
    mxm = graft_interface(api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_update_values));
    if (mxm == NULL) return 2;
    sample_csr_init_shape(&a, &sample, &shape);
    sample_csr_init_shape(&without, &sample, &plain);
    for (int i = 0; i < N * WIDTH; i++) b[i] = (float)sample_exact(&sample, 64, 8);
    test_matrix(&a);
    test_kernel(argv[1], &without.csr);
    test_dense_modules(argv[2]);
    test_module_path(argv[1]);
    test_narrow_matrix(&a);
    api->close(api->context);
    test_trainer(1, LABELS, 0);
    test_trainer(1, TARGETS, 1);
    test_trainer(1, FLOATS, 0);
    test_trainer(3, LABELS, 0);
    test_trainer(2, TARGETS, 1);
    test_trainer(2, FLOATS, 1);
    test_narrow_trainer(1);
    test_narrow_trainer(2);
    sample_csr_fini(&a);
    sample_csr_fini(&without);
    return done();
}
