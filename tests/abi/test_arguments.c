/* What must be refused, through every slot of every table: each call gets what it cannot use and returns the status that the
 * header gives for it. Each group runs in a process of its own, so that a crash is a failed check.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../oracle/sample.h"
#include "../tap.h"
#include "child.h"
#include "watch.h"

#include <math.h>
#include <sys/mman.h>

enum { N = 9, FEATURES = 4, CLASSES = 3, WIDTH = 3 };

static struct strict_host    host;
static struct subject        s;
static struct sample_dataset set;
static graft_error           error = { .size = sizeof error };
static char                 *doing; /* the call in progress, seen by the parent when the child dies */

/* The call must return `status`. */
#define REFUSED(status, call) (snprintf(doing, 256, "%s", #call), judge((status), (call)))

static void judge(int32_t expected, int32_t rc)
{
    if (rc != expected) watch_blame("%s returned %d, expected %d: %s", doing, rc, expected, rc < 0 ? error.message : "");
}

#define NUMBER(array) (sizeof(array) / sizeof *(array))

static const char *end_of_group(void)
{
    subject_close(&s);
    if (host.live_bytes != 0) watch_blame("%lld bytes are left", (long long)host.live_bytes);
    return watch.faults > 0 ? watch.fault : NULL;
}

static const char *context_calls(const void *arg)
{
    graft_option       option = GRAFT_INIT(graft_option);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.api.set(NULL, "lr", "1", &error));
    REFUSED(GRAFT_ERR_ARG, s.api.set(s.context, NULL, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.set(s.context, NULL, NULL, NULL));
    REFUSED(GRAFT_ERR_ARG, s.api.option_info(NULL, 0, &option, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.option_info(s.context, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.module_info(NULL, 0, &entry, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.module_info(s.context, 0, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.module_info(s.context, -1, &entry, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.module_info(s.context, INT32_MAX, &entry, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.module_info(s.context, INT32_MIN, &entry, &error));
    REFUSED(GRAFT_ERR_ARG, s.api.load_module(NULL, "x.so", &error));
    REFUSED(GRAFT_ERR_ARG, s.api.load_module(s.context, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.api.load_module(s.context, "", &error));
    s.api.close(NULL);
    s.api.get_interface(NULL, GRAFT_MXM_ID);
    return end_of_group();
}

static const char *matrix_calls(const void *arg)
{
    static const int64_t rows[] = { 0, 2, 3 }, falling[] = { 0, 3, 2 }, late[] = { 1, 2, 3 }, under[] = { 0, 1, -1 };
    static const int32_t cols[] = { 0, 1, 2 }, high[] = { 0, 3, 1 }, low[] = { 0, 1, -1 };
    static const float   values[] = { 1, 2, 3 }, odd[] = { 1, 2, (float)NAN };
    static const double  wide[] = { 1, (double)INFINITY, 3 };
    const graft_csr      good = { sizeof good, GRAFT_I32, GRAFT_F32, 0, 2, 3, rows, cols, values };
    graft_csr            bad;
    graft_matrix        *matrix = NULL;

    (void)arg;
#define BAD(status, field, value)                                                                                      \
    (bad = good, bad.field = (value), REFUSED(status, s.mxm->matrix_create(s.context, &bad, 0, &matrix, &error)))
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_create(NULL, &good, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_create(s.context, NULL, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_create(s.context, &good, 0, NULL, &error));
    BAD(GRAFT_ERR_ARG, size, 0);
    BAD(GRAFT_ERR_ARG, index_type, 0);
    BAD(GRAFT_ERR_ARG, index_type, GRAFT_F32);
    BAD(GRAFT_ERR_ARG, value_type, GRAFT_I32);
    BAD(GRAFT_ERR_ARG, value_type, 0);
    BAD(GRAFT_ERR_ARG, value_type, INT32_MIN);
    BAD(GRAFT_ERR_ARG, n_rows, -1);
    BAD(GRAFT_ERR_ARG, n_cols, -1);
    BAD(GRAFT_ERR_ARG, n_rows, INT64_MIN);
    BAD(GRAFT_ERR_ARG, row_ptr, NULL);
    BAD(GRAFT_ERR_ARG, col_idx, NULL);
    BAD(GRAFT_ERR_FORMAT, row_ptr, falling);
    BAD(GRAFT_ERR_FORMAT, row_ptr, late);
    BAD(GRAFT_ERR_FORMAT, row_ptr, under);
    BAD(GRAFT_ERR_FORMAT, col_idx, high);
    BAD(GRAFT_ERR_FORMAT, col_idx, low);
    BAD(GRAFT_ERR_FORMAT, values, odd);
    bad = good;
    bad.value_type = GRAFT_F64;
    bad.values = wide;
    REFUSED(GRAFT_ERR_FORMAT, s.mxm->matrix_create(s.context, &bad, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_transpose(s.context, NULL, &matrix, &error));
    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, &good, 0, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_transpose(s.context, matrix, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->matrix_transpose(NULL, matrix, &matrix, &error));
    s.mxm->matrix_destroy(s.context, matrix);
    s.mxm->matrix_destroy(s.context, NULL);
    s.mxm->matrix_destroy(NULL, NULL);
    if (s.mxm->matrix_bytes(NULL) != 0) watch_blame("matrix_bytes(NULL) is not 0");
    return end_of_group();
#undef BAD
}

/* A product that is fine. */
static struct product {
    float          b[N][WIDTH], c[N][WIDTH], scale[N];
    int32_t        winner[N][WIDTH];
    uint8_t        present[N][WIDTH];
    graft_dense    dense_b, dense_c;
    graft_mask     mask;
    graft_mxm_args args;
} p;

static void product_init(graft_matrix *matrix)
{
    p = (struct product){ .mask = GRAFT_INIT(graft_mask), .args = GRAFT_INIT(graft_mxm_args) };
    p.dense_b = (graft_dense){ sizeof p.dense_b, GRAFT_F32, N, WIDTH, WIDTH, p.b };
    p.dense_c = (graft_dense){ sizeof p.dense_c, GRAFT_F32, N, WIDTH, WIDTH, p.c };
    p.mask.kind = GRAFT_MASK_BYTES;
    p.mask.stride = WIDTH;
    p.mask.present = &p.present[0][0];
    p.args.semiring = GRAFT_MAX_SECOND;
    p.args.a = matrix;
    p.args.b = &p.dense_b;
    p.args.c = &p.dense_c;
    p.args.mask = &p.mask;
    p.args.winner = p.winner;
    p.args.winner_stride = WIDTH;
}

/* With one field of the product changed, run() and explain() give the same status. */
#define BAD(field, value)                                                                                              \
    do {                                                                                                               \
        product_init(matrix);                                                                                          \
        p.field = (value);                                                                                             \
        snprintf(doing, 256, "run with %s = %s", #field, #value);                                                      \
        judge(GRAFT_ERR_ARG, s.mxm->run(s.context, &p.args, &error));                                                  \
        judge(GRAFT_ERR_ARG, s.mxm->explain(s.context, &p.args, text, 64, &error));                                    \
    } while (0)

static void bad_products(graft_matrix *matrix, char text[64])
{
    BAD(args.size, 0);
    BAD(args.semiring, 0);
    BAD(args.semiring, 7);
    BAD(args.semiring, -1);
    BAD(args.semiring, GRAFT_PLUS_TIMES); /* a sum has no winner */
    BAD(args.flags, 4u);
    BAD(args.flags, UINT32_MAX);
    BAD(args.a, NULL);
    BAD(args.b, NULL);
    BAD(args.c, NULL);
    BAD(args.winner_stride, WIDTH - 1);
    BAD(args.winner_stride, -1);
    BAD(args.winner, p.c);
    BAD(args.winner, p.b);
    BAD(mask.size, 4);
    BAD(mask.kind, 0);
    BAD(mask.kind, 4);
    BAD(mask.flags, 4u);
    BAD(mask.stride, WIDTH - 1);
    BAD(mask.stride, -WIDTH);
}

static void bad_operands(graft_matrix *matrix, char text[64])
{
    BAD(dense_b.size, 0);
    BAD(dense_b.dtype, GRAFT_F64);
    BAD(dense_b.dtype, GRAFT_I32);
    BAD(dense_b.n_rows, N - 1);
    BAD(dense_b.n_rows, -1);
    BAD(dense_b.n_cols, WIDTH + 1);
    BAD(dense_b.stride, WIDTH - 1);
    BAD(dense_b.stride, -WIDTH);
    BAD(dense_b.data, NULL);
    BAD(dense_b.data, p.c);
    BAD(dense_b.data, (char *)p.c + sizeof p.c - 4);
    BAD(dense_c.size, 7);
    BAD(dense_c.dtype, 0);
    BAD(dense_c.n_rows, N + 1);
    BAD(dense_c.n_cols, 0);
    BAD(dense_c.stride, 0);
    BAD(dense_c.data, NULL);
    /* Strides by which no array fits into the address space. */
    BAD(dense_b.stride, INT64_MAX);
    BAD(dense_c.stride, INT64_MAX / 2);
    BAD(args.winner_stride, INT64_MAX);
    BAD(mask.stride, INT64_MAX);
}
#undef BAD

static const char *product_calls(const void *arg)
{
    void (*const bad)(graft_matrix *, char *) = *(void (*const *)(graft_matrix *, char *))arg;
    graft_matrix *matrix = NULL;
    char          text[64];

    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    product_init(matrix);
    REFUSED(GRAFT_OK, s.mxm->run(s.context, &p.args, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->run(NULL, &p.args, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->run(s.context, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->explain(NULL, NULL, text, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->explain(s.context, NULL, NULL, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.mxm->explain(s.context, NULL, text, 0, &error));
    REFUSED(GRAFT_OK, s.mxm->explain(s.context, NULL, text, 1, &error));
    if (text[0] != '\0') watch_blame("a text of capacity 1 is not cut");
    REFUSED(GRAFT_OK, s.api.set(s.context, "mxm.kernel", "refference", &error));
    REFUSED(GRAFT_ERR_OPTION, s.mxm->run(s.context, &p.args, &error));
    if (strstr(error.message, "'reference'") == NULL) watch_blame("no nearest kernel in: %s", error.message);
    REFUSED(GRAFT_OK, s.api.set(s.context, "mxm.kernel", "auto", &error));
    bad(matrix, text);
    s.mxm->matrix_destroy(s.context, matrix);
    return end_of_group();
}

static const char *another_context(const void *arg)
{
    struct subject other;
    graft_matrix  *matrix = NULL;

    (void)arg;
    if (subject_open(&other, &error) < 0) return error.message;
    if (other.mxm->matrix_create(other.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    product_init(matrix);
    REFUSED(GRAFT_ERR_ARG, s.mxm->run(s.context, &p.args, &error));
    other.mxm->matrix_destroy(other.context, matrix);
    subject_close(&other);
    return end_of_group();
}

/* A number of threads is a limit: a host that asks for more than there can be must live. */
static const char *many_threads(const void *arg)
{
    graft_matrix *matrix = NULL;

    p.args.threads = *(const int32_t *)arg;
    if (s.mxm->matrix_create(s.context, &set.graph.csr, 0, &matrix, &error) < 0) return error.message;
    product_init(matrix);
    p.args.threads = *(const int32_t *)arg;
    REFUSED(GRAFT_OK, s.mxm->run(s.context, &p.args, &error));
    s.mxm->matrix_destroy(s.context, matrix);
    return end_of_group();
}

static const char *data_calls(const void *arg)
{
    graft_data *data = NULL;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.data->open(NULL, "/", &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open(s.context, NULL, &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open(s.context, "/", NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open(s.context, "", &data, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open(s.context, "/nowhere", &data, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open(s.context, "/proc", &data, &error));
    REFUSED(GRAFT_ERR_FORMAT, s.data->open(s.context, "/dev/null", &data, &error));
    if (s.data->view(NULL) != NULL) watch_blame("view(NULL) is not NULL");
    s.data->close(s.context, NULL);
    s.data->close(NULL, NULL);
    return end_of_group();
}

static void bad_dataset_arrays(graft_trainer **trainer)
{
    graft_dataset d;
    graft_dense   f;
    graft_csr     g;
    int32_t       labels[N] = { 0, 1, 2, -1, 0, 1, 2, 0, 0 };
    uint8_t       split[N] = { 1, 1, 2, 2, 3, 3, 0, 0, 0 };
    float         features[N][FEATURES] = { { 0 } };

#define BAD(status, change, undo)                                                                                      \
    do {                                                                                                               \
        d = set.dataset, f = *d.features, g = *d.graph;                                                                \
        f.data = features, d.labels = labels, d.split = split, d.features = &f, d.graph = &g;                          \
        change;                                                                                                        \
        snprintf(doing, 256, "create with %s", #change);                                                               \
        judge(status, s.train->create(s.context, &d, trainer, &error));                                                \
        undo;                                                                                                          \
    } while (0)
    BAD(GRAFT_OK, (void)d, s.train->destroy(*trainer); *trainer = NULL);
    BAD(GRAFT_ERR_FORMAT, labels[2] = CLASSES, labels[2] = 2);
    BAD(GRAFT_ERR_FORMAT, labels[2] = -2, labels[2] = 2);
    BAD(GRAFT_ERR_FORMAT, labels[2] = INT32_MIN, labels[2] = 2);
    BAD(GRAFT_ERR_FORMAT, split[8] = 4, split[8] = 0);
    BAD(GRAFT_ERR_FORMAT, split[0] = split[1] = 0, split[0] = split[1] = 1);
    BAD(GRAFT_ERR_FORMAT, labels[0] = labels[1] = -1, (labels[0] = 0, labels[1] = 1));
    BAD(GRAFT_ERR_FORMAT, features[8][3] = (float)NAN, features[8][3] = 0);
    BAD(GRAFT_ERR_FORMAT, features[0][0] = -(float)INFINITY, features[0][0] = 0);
    BAD(GRAFT_ERR_ARG, f.dtype = GRAFT_F64, (void)0);
    BAD(GRAFT_ERR_ARG, f.stride = FEATURES - 1, (void)0);
    BAD(GRAFT_ERR_ARG, f.n_rows = N - 1, (void)0);
    BAD(GRAFT_ERR_ARG, f.n_cols = FEATURES + 1, (void)0);
    BAD(GRAFT_ERR_ARG, f.data = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, f.size = 0, (void)0);
    BAD(GRAFT_ERR_ARG, g.n_cols = N + 1, (void)0);
    BAD(GRAFT_ERR_ARG, g.n_rows = N - 1, (void)0);
    BAD(GRAFT_ERR_ARG, g.index_type = GRAFT_U8, (void)0);
    BAD(GRAFT_ERR_ARG, g.row_ptr = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, d.graph = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, d.features = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, d.sparse_features = &g, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_classes = 0, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_features = 0, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_features = INT64_MAX, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_vertices = 0, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_vertices = -1, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_vertices = N + 1, (void)0);
#undef BAD
}

static const char *create_calls(const void *arg)
{
    graft_trainer *trainer = NULL;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.train->create(NULL, &set.dataset, &trainer, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->create(s.context, NULL, &trainer, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->create(s.context, &set.dataset, NULL, &error));
    bad_dataset_arrays(&trainer);
    REFUSED(GRAFT_OK, s.api.set(s.context, "hidden", "8,8,8", &error));
    REFUSED(GRAFT_ERR_OPTION, s.train->create(s.context, &set.dataset, &trainer, &error));
    REFUSED(GRAFT_OK, s.api.set(s.context, "hidden", "8", &error));
    REFUSED(GRAFT_OK, s.api.set(s.context, "dense.module", "cbals", &error));
    REFUSED(GRAFT_ERR_OPTION, s.train->create(s.context, &set.dataset, &trainer, &error));
    return end_of_group();
}

static void bad_state(graft_trainer *trainer)
{
    graft_state_item item = GRAFT_INIT(graft_state_item), bad;
    float            odd[4096];

    for (int i = 0; i < 4096; i++) odd[i] = i == 2 ? (float)NAN : 0;
    REFUSED(GRAFT_OK, s.train->state_item(trainer, 0, &item, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.train->state_item(trainer, -1, &bad, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.train->state_item(trainer, INT32_MIN, &bad, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.train->state_item(trainer, INT32_MAX, &bad, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->state_item(trainer, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->state_set(trainer, NULL, &error));
#define BAD(status, field, value) (bad = item, bad.field = (value), REFUSED(status, s.train->state_set(trainer, &bad, &error)))
    BAD(GRAFT_ERR_ARG, size, 0);
    BAD(GRAFT_ERR_ARG, name, NULL);
    BAD(GRAFT_ERR_ARG, data, NULL);
    BAD(GRAFT_ERR_NOT_FOUND, name, "");
    BAD(GRAFT_ERR_NOT_FOUND, name, "layers.99.weight");
    BAD(GRAFT_ERR_FORMAT, dtype, GRAFT_F64);
    BAD(GRAFT_ERR_FORMAT, dtype, -7);
    BAD(GRAFT_ERR_FORMAT, n_dims, 5);
    BAD(GRAFT_ERR_FORMAT, n_dims, INT32_MAX);
    BAD(GRAFT_ERR_FORMAT, n_dims, -1);
    BAD(GRAFT_ERR_FORMAT, shape[0], item.shape[0] + 1);
    BAD(GRAFT_ERR_FORMAT, shape[0], INT64_MIN);
    BAD(GRAFT_ERR_FORMAT, data, odd);
#undef BAD
}

static const char *trainer_calls(const void *arg)
{
    static float   values[N][CLASSES];
    graft_dense    logits = { sizeof logits, GRAFT_F32, N, CLASSES, CLASSES, values }, bad;
    graft_epoch    epoch = GRAFT_INIT(graft_epoch);
    graft_metrics  metrics = GRAFT_INIT(graft_metrics);
    graft_trainer *trainer = NULL;
    char           text[32];

    (void)arg;
    if (s.train->create(s.context, &set.dataset, &trainer, &error) < 0) return error.message;
    REFUSED(GRAFT_ERR_ARG, s.train->epoch(NULL, &epoch, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->epoch(trainer, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->evaluate(NULL, 0, &metrics, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->evaluate(trainer, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->evaluate(trainer, 2, &metrics, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->evaluate(trainer, -1, &metrics, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->predict(NULL, 0, NULL, &logits, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->predict(trainer, 3, NULL, &logits, &error));
    REFUSED(GRAFT_OK, s.train->predict(trainer, 0, NULL, NULL, &error));
#define BAD(field, value) (bad = logits, bad.field = (value), REFUSED(GRAFT_ERR_ARG, s.train->predict(trainer, 0, NULL, &bad, &error)))
    BAD(size, 0);
    BAD(dtype, GRAFT_F64);
    BAD(n_rows, N - 1);
    BAD(n_cols, CLASSES + 1);
    BAD(stride, CLASSES - 1);
    BAD(stride, INT64_MAX);
    BAD(data, NULL);
#undef BAD
    REFUSED(GRAFT_ERR_ARG, s.train->explain(NULL, text, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->explain(trainer, NULL, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->explain(trainer, text, 0, &error));
    REFUSED(GRAFT_OK, s.train->explain(trainer, text, sizeof text, &error));
    if (memchr(text, '\0', sizeof text) == NULL) watch_blame("a cut text has no end");
    bad_state(trainer);
    s.train->destroy(trainer);
    s.train->destroy(NULL);
    return end_of_group();
}

static const char *spent_trainer(const void *arg)
{
    graft_dataset  only_graph = set.dataset;
    graft_epoch    epoch = GRAFT_INIT(graft_epoch);
    graft_metrics  metrics = GRAFT_INIT(graft_metrics);
    graft_trainer *trainer = NULL;
    int32_t        labels[N];

    (void)arg;
    REFUSED(GRAFT_OK, s.api.set(s.context, "epochs", "1", &error));
    if (s.train->create(s.context, &set.dataset, &trainer, &error) < 0) return error.message;
    REFUSED(GRAFT_OK, s.train->epoch(trainer, &epoch, &error));
    REFUSED(GRAFT_ERR_STATE, s.train->epoch(trainer, &epoch, &error));
    s.train->destroy(trainer);
    trainer = NULL;
    only_graph.split = NULL;
    only_graph.labels = NULL;
    if (s.train->create(s.context, &only_graph, &trainer, &error) < 0) return error.message;
    REFUSED(GRAFT_ERR_STATE, s.train->epoch(trainer, &epoch, &error));
    REFUSED(GRAFT_ERR_STATE, s.train->evaluate(trainer, 0, &metrics, &error));
    REFUSED(GRAFT_OK, s.train->predict(trainer, GRAFT_WEIGHTS_BEST, labels, NULL, &error));
    s.train->destroy(trainer);
    return end_of_group();
}

static const char *in_context(const void *group);

struct group {
    const char *name;
    const char *(*check)(const void *arg);
    const void *arg;
};

static const char *in_context(const void *arg)
{
    const struct group *group = arg;

    watch_reset(&host);
    if (subject_open(&s, &error) < 0) return error.message;
    return group->check(group->arg);
}

int main(void)
{
    static void (*const       products)(graft_matrix *, char *) = bad_products;
    static void (*const       operands)(graft_matrix *, char *) = bad_operands;
    static const int32_t      negative = INT32_MIN, thousand = 1000, most = INT32_MAX;
    static const struct group groups[] = {
        { "calls of the context", context_calls, NULL },
        { "matrix_create, matrix_transpose, matrix_destroy", matrix_calls, NULL },
        { "run and explain: arguments and masks", product_calls, &products },
        { "run and explain: operands", product_calls, &operands },
        { "run with a matrix of another context", another_context, NULL },
        { "run with a negative number of threads", many_threads, &negative },
        { "run with 1000 threads", many_threads, &thousand },
        { "run with 2^31 - 1 threads", many_threads, &most },
        { "data sets", data_calls, NULL },
        { "create of a trainer", create_calls, NULL },
        { "a trainer", trainer_calls, NULL },
        { "a trainer that has nothing to train", spent_trainer, NULL },
    };
    struct sample sample = { 11 };

    doing = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (doing == MAP_FAILED) return 2;
    strict_host_init(&host);
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (size_t i = 0; i < NUMBER(groups); i++) {
        const char *fault = in_child(in_context, &groups[i]);
        if (!ok(fault == NULL, "%s", groups[i].name)) diag("%s; the last call was %s", fault, doing);
    }
    sample_dataset_fini(&set);
    return done();
}
