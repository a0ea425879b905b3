/* Checks what graft.data/1, graft.train/1 and graft.transport/1 must refuse. Each call gets arguments that it cannot
 * use, and must return the status that the header documents.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

static const char *data_calls(const void *arg)
{
    graft_data     *data = NULL;
    graft_transport odd = { .size = 4 };

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.data->open(NULL, "/", &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open(s.context, NULL, &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open(s.context, "/", NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open(s.context, "", &data, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open(s.context, "/nowhere", &data, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open(s.context, "/proc", &data, &error));
    REFUSED(GRAFT_ERR_FORMAT, s.data->open(s.context, "/dev/null", &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open_slice(NULL, NULL, "/", &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open_slice(s.context, NULL, NULL, &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open_slice(s.context, NULL, "/", NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.data->open_slice(s.context, NULL, "/nowhere", &data, &error));
    REFUSED(GRAFT_ERR_ARG, s.data->open_slice(s.context, &odd, "/", &data, &error));
    odd = (graft_transport)GRAFT_INIT(graft_transport);
    REFUSED(GRAFT_ERR_ARG, s.data->open_slice(s.context, &odd, "/", &data, &error));
    odd.n_ranks = 2, odd.tag_max = INT32_MAX;
    /* The transport has no functions. */
    REFUSED(GRAFT_ERR_ARG, s.data->open_slice(s.context, &odd, "/", &data, &error));
    if (s.data->view(NULL) != NULL) watch_blame("view(NULL) is not NULL");
    s.data->close(NULL);
    s.data->close(NULL);
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
        snprintf(doing, DOING, "create with %s", #change);                                                             \
        arguments_judge(status, s.train->create(s.context, &d, trainer, &error));                                      \
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
    REFUSED(GRAFT_OK, s.api.set(s.context, "label_rate", "0.5", &error));
    BAD(GRAFT_ERR_OPTION, d.labels = NULL, (void)0);
    BAD(GRAFT_ERR_OPTION, d.split = NULL, (void)0);
    BAD(GRAFT_ERR_FORMAT, split[0] = split[1] = 0, split[0] = split[1] = 1);
    REFUSED(GRAFT_OK, s.api.set(s.context, "label_rate", "0", &error));
    BAD(GRAFT_ERR_ARG, d.n_classes = 0, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_features = 0, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_features = INT64_MAX, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_vertices = 0, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_vertices = -1, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_vertices = N + 1, (void)0);
    BAD(GRAFT_ERR_ARG, d.flags = 2, (void)0);
    BAD(GRAFT_ERR_UNSUPPORTED, (d.flags = GRAFT_DATASET_SLICE, d.n_slice = N), (void)0);
    BAD(GRAFT_OK, (d.first_vertex = -1, d.n_slice = N + 1), s.train->destroy(*trainer); *trainer = NULL);
#undef BAD
}

static void bad_float_targets(graft_trainer **trainer)
{
    float         values[2 * N][CLASSES] = { { 0 } }; /* the array is large enough to be read as doubles */
    graft_dense   y;
    graft_dataset d = set.dataset;

    d.labels = NULL, d.float_targets = &y;
#define BAD(status, change, undo)                                                                                      \
    do {                                                                                                               \
        y = (graft_dense){ sizeof y, GRAFT_F32, N, CLASSES, CLASSES, values };                                         \
        change;                                                                                                        \
        snprintf(doing, DOING, "create with float targets and %s", #change);                                           \
        arguments_judge(status, s.train->create(s.context, &d, trainer, &error));                                      \
        undo;                                                                                                          \
    } while (0)
    BAD(GRAFT_OK, (void)y, (void)0);
    d.float_targets = NULL;
    REFUSED(GRAFT_ERR_ARG, s.train->update(*trainer, GRAFT_UPDATE_TARGETS, &d, &error));
    REFUSED(GRAFT_ERR_STATE, s.train->update(*trainer, GRAFT_UPDATE_LABELS, &d, &error));
    d.float_targets = &y;
    y.n_cols = CLASSES + 1;
    REFUSED(GRAFT_ERR_ARG, s.train->update(*trainer, GRAFT_UPDATE_TARGETS, &d, &error));
    y.n_cols = CLASSES, values[0][0] = (float)INFINITY;
    REFUSED(GRAFT_ERR_FORMAT, s.train->update(*trainer, GRAFT_UPDATE_TARGETS, &d, &error));
    values[0][0] = 0;
    s.train->destroy(*trainer);
    *trainer = NULL;
    BAD(GRAFT_ERR_ARG, y.size = 0, (void)0);
    BAD(GRAFT_ERR_ARG, y.dtype = GRAFT_F64, (void)0);
    BAD(GRAFT_ERR_ARG, y.n_rows = N - 1, (void)0);
    BAD(GRAFT_ERR_ARG, y.n_cols = CLASSES - 1, (void)0);
    BAD(GRAFT_ERR_ARG, y.stride = CLASSES - 1, (void)0);
    BAD(GRAFT_ERR_ARG, y.data = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, d.n_classes = 0, d.n_classes = CLASSES);
    BAD(GRAFT_ERR_ARG, d.labels = set.dataset.labels, d.labels = NULL);
    BAD(GRAFT_ERR_FORMAT, values[N - 1][0] = (float)INFINITY, values[N - 1][0] = 0);
    REFUSED(GRAFT_OK, s.api.set(s.context, "loss", "softmax", &error));
    BAD(GRAFT_ERR_OPTION, (void)y, (void)0);
    REFUSED(GRAFT_OK, s.api.set(s.context, "loss", "huber", &error));
    REFUSED(GRAFT_ERR_OPTION, s.api.set(s.context, "loss", "huber:0", &error));
    REFUSED(GRAFT_ERR_OPTION, s.train->create(s.context, &set.dataset, trainer, &error));
    REFUSED(GRAFT_OK, s.api.set(s.context, "loss", "auto", &error));
#undef BAD
}

static void bad_sparse_features(graft_trainer **trainer)
{
    graft_dataset d = set.dataset;
    graft_csr     x;
    int64_t       ends[N + 1] = { 0, 2, 2, 2, 2, 2, 2, 2, 2, 4 };
    int32_t       columns[] = { 0, 3, 1, 1 };
    float         values[8] = { 1, 2, 3, 4 }; /* the array is large enough to be read as four doubles */

    d.features = NULL, d.sparse_features = &x;
#define BAD(status, change, undo)                                                                                      \
    do {                                                                                                               \
        x = (graft_csr)GRAFT_INIT(graft_csr);                                                                          \
        x.n_rows = N, x.n_cols = FEATURES, x.row_ptr = ends, x.col_idx = columns, x.values = values;                   \
        x.index_type = GRAFT_I32, x.value_type = GRAFT_F32;                                                            \
        change;                                                                                                        \
        snprintf(doing, DOING, "create with sparse features and %s", #change);                                         \
        arguments_judge(status, s.train->create(s.context, &d, trainer, &error));                                      \
        undo;                                                                                                          \
    } while (0)
    BAD(GRAFT_OK, (void)x, s.train->destroy(*trainer); *trainer = NULL);
    BAD(GRAFT_OK, x.values = NULL, s.train->destroy(*trainer); *trainer = NULL);
    BAD(GRAFT_ERR_FORMAT, values[3] = (float)NAN, values[3] = 4);
    BAD(GRAFT_ERR_FORMAT, values[0] = -(float)INFINITY, values[0] = 1);
    BAD(GRAFT_ERR_FORMAT, values[2] = values[3] = 3e38f, (values[2] = 3, values[3] = 4));
    BAD(GRAFT_ERR_FORMAT, columns[3] = FEATURES, columns[3] = 1);
    BAD(GRAFT_ERR_FORMAT, columns[0] = -1, columns[0] = 0);
    BAD(GRAFT_ERR_FORMAT, ends[1] = 3, ends[1] = 2);
    BAD(GRAFT_ERR_FORMAT, ends[0] = 1, ends[0] = 0);
    BAD(GRAFT_ERR_ARG, x.value_type = GRAFT_F64, (void)0);
    BAD(GRAFT_ERR_ARG, x.index_type = GRAFT_U8, (void)0);
    BAD(GRAFT_ERR_ARG, x.n_rows = N - 1, (void)0);
    BAD(GRAFT_ERR_ARG, x.n_cols = FEATURES + 1, (void)0);
    BAD(GRAFT_ERR_ARG, x.col_idx = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, x.row_ptr = NULL, (void)0);
    BAD(GRAFT_ERR_ARG, x.size = 0, (void)0);
#undef BAD
}

static void bad_edge_features(graft_trainer **trainer)
{
    static float  values[2 * N * N]; /* the array is large enough to be read as doubles */
    const int64_t entries = set.dataset.graph->row_ptr[N];
    graft_dataset d = set.dataset;
    graft_dense   y;

    d.edge_features = &y;
    REFUSED(GRAFT_OK, s.api.set(s.context, "model", "gat", &error));
    REFUSED(GRAFT_OK, s.api.set(s.context, "edge_features", "array", &error));
#define BAD(status, change, undo)                                                                                      \
    do {                                                                                                               \
        y = (graft_dense){ sizeof y, GRAFT_F32, entries, 1, 1, values };                                               \
        change;                                                                                                        \
        snprintf(doing, DOING, "create with edge features and %s", #change);                                           \
        arguments_judge(status, s.train->create(s.context, &d, trainer, &error));                                      \
        undo;                                                                                                          \
    } while (0)
    BAD(GRAFT_OK, (void)y, s.train->destroy(*trainer); *trainer = NULL);
    BAD(GRAFT_ERR_OPTION, d.edge_features = NULL, d.edge_features = &y);
    BAD(GRAFT_ERR_ARG, y.size = 0, (void)0);
    BAD(GRAFT_ERR_ARG, y.dtype = GRAFT_F64, (void)0);
    BAD(GRAFT_ERR_ARG, y.n_rows = entries - 1, (void)0);
    BAD(GRAFT_ERR_ARG, y.n_rows = entries + 1, (void)0);
    BAD(GRAFT_ERR_ARG, y.n_cols = y.stride = 0, (void)0);
    BAD(GRAFT_ERR_ARG, y.n_cols = INT64_MAX, (void)0);
    BAD(GRAFT_ERR_ARG, y.stride = 0, (void)0);
    BAD(GRAFT_ERR_ARG, y.data = NULL, (void)0);
    BAD(GRAFT_ERR_FORMAT, values[entries - 1] = (float)NAN, values[entries - 1] = 0);
#undef BAD
    REFUSED(GRAFT_OK, s.api.set(s.context, "edge_features", "none", &error));
    REFUSED(GRAFT_OK, s.api.set(s.context, "model", "sage", &error));
}

static const char *create_calls(const void *arg)
{
    graft_trainer *trainer = NULL;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.train->create(NULL, &set.dataset, &trainer, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->create(s.context, NULL, &trainer, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->create(s.context, &set.dataset, NULL, &error));
    bad_dataset_arrays(&trainer);
    bad_float_targets(&trainer);
    bad_edge_features(&trainer);
    REFUSED(GRAFT_OK, s.api.set(s.context, "sparse_input", "yes", &error));
    bad_sparse_features(&trainer);
    REFUSED(GRAFT_OK, s.api.set(s.context, "sparse_input", "no", &error));
    bad_sparse_features(&trainer);
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
#define BAD(status, field, value)                                                                                      \
    (bad = item, bad.field = (value), REFUSED(status, s.train->state_set(trainer, &bad, &error)))
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

/* Check values of edges that must be refused. The graph of trainer `bare` has no values. */
static void bad_edge_values(graft_trainer *bare)
{
    static float   values[2 * N * N]; /* the array is large enough for doubles, which must be refused */
    graft_csr      g = *set.dataset.graph;
    graft_dataset  d = set.dataset;
    graft_trainer *trainer = NULL;

    REFUSED(GRAFT_ERR_STATE, s.train->update(bare, GRAFT_UPDATE_EDGE_VALUES, &d, &error));
    g.values = values, g.value_type = GRAFT_F32, d.graph = &g;
    REFUSED(GRAFT_OK, s.train->create(s.context, &d, &trainer, &error));
    REFUSED(GRAFT_OK, s.train->update(trainer, GRAFT_UPDATE_EDGE_VALUES, &d, &error));
#define BAD(status, change)                                                                                            \
    do {                                                                                                               \
        const graft_csr before = g;                                                                                    \
        change;                                                                                                        \
        snprintf(doing, DOING, "update of edge values with %s", #change);                                              \
        arguments_judge(status, s.train->update(trainer, GRAFT_UPDATE_EDGE_VALUES, &d, &error));                       \
        g = before, d.graph = &g, values[0] = 0;                                                                       \
    } while (0)
    BAD(GRAFT_ERR_ARG, g.size = 0);
    BAD(GRAFT_ERR_ARG, g.n_rows = N - 1);
    BAD(GRAFT_ERR_ARG, g.n_cols = N + 1);
    BAD(GRAFT_ERR_ARG, g.n_rows = -1);
    BAD(GRAFT_ERR_ARG, g.index_type = GRAFT_U8);
    BAD(GRAFT_ERR_ARG, g.value_type = GRAFT_F64);
    BAD(GRAFT_ERR_ARG, g.row_ptr = NULL);
    BAD(GRAFT_ERR_ARG, g.col_idx = NULL);
    BAD(GRAFT_ERR_ARG, g.values = NULL);
    BAD(GRAFT_ERR_ARG, d.graph = NULL);
    BAD(GRAFT_ERR_FORMAT, values[0] = (float)NAN);
    BAD(GRAFT_OK, (void)g);
#undef BAD
    s.train->destroy(trainer);
}

static void bad_update(graft_trainer *trainer)
{
    graft_dataset d = set.dataset;
    graft_dense   x = set.features;

    REFUSED(GRAFT_OK, s.train->update(trainer, GRAFT_UPDATE_FEATURES, &d, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->update(NULL, GRAFT_UPDATE_FEATURES, &d, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, GRAFT_UPDATE_FEATURES, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, 0, &d, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, UINT32_MAX, &d, &error));
    d.features = NULL;
    REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, GRAFT_UPDATE_FEATURES, &d, &error));
    d.features = &x;
#define BAD(field, value)                                                                                              \
    (x = set.features, x.field = (value),                                                                              \
     REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, GRAFT_UPDATE_FEATURES, &d, &error)))
    BAD(size, 0);
    BAD(dtype, GRAFT_F64);
    BAD(n_rows, N - 1);
    BAD(n_cols, FEATURES + 1);
    BAD(stride, FEATURES - 1);
    BAD(data, NULL);
#undef BAD
    d.labels = NULL;
    REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, GRAFT_UPDATE_LABELS, &d, &error));
    REFUSED(GRAFT_ERR_STATE, s.train->update(trainer, GRAFT_UPDATE_TARGETS, &d, &error));
    REFUSED(GRAFT_ERR_STATE, s.train->update(trainer, GRAFT_UPDATE_EDGE_FEATURES, &d, &error));
    d.size = 0;
    REFUSED(GRAFT_ERR_ARG, s.train->update(trainer, GRAFT_UPDATE_SPLIT, &d, &error));
    bad_edge_values(trainer);
}

static const char *trainer_calls(const void *arg)
{
    static float   values[2 * N][CLASSES]; /* the array is large enough for doubles, which must be refused */
    graft_dense    logits = { sizeof logits, GRAFT_F32, N, CLASSES, CLASSES, values }, bad;
    graft_epoch    epoch = GRAFT_INIT(graft_epoch);
    graft_span     span = GRAFT_INIT(graft_span);
    graft_metrics  metrics = GRAFT_INIT(graft_metrics);
    graft_trainer *trainer = NULL;
    char           text[32];

    graft_memory_item use = GRAFT_INIT(graft_memory_item);
    graft_traffic     traffic = GRAFT_INIT(graft_traffic);

    graft_traffic_item layer = GRAFT_INIT(graft_traffic_item);
    graft_traffic_pair pair = GRAFT_INIT(graft_traffic_pair);
    graft_cache_item   cache = GRAFT_INIT(graft_cache_item);

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
#define BAD(field, value)                                                                                              \
    (bad = logits, bad.field = (value), REFUSED(GRAFT_ERR_ARG, s.train->predict(trainer, 0, NULL, &bad, &error)))
    BAD(size, 0);
    BAD(dtype, GRAFT_F64);
    BAD(n_rows, N - 1);
    BAD(n_cols, CLASSES + 1);
    BAD(stride, CLASSES - 1);
    BAD(stride, INT64_MAX);
    BAD(data, NULL);
#undef BAD
    REFUSED(GRAFT_ERR_ARG, s.report->span(NULL, 0, &span, &error));
    /* The trainer was made without option profile. */
    REFUSED(GRAFT_ERR_STATE, s.report->span(trainer, 0, &span, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->memory_item(NULL, 0, &use, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->memory_item(trainer, 0, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.report->memory_item(trainer, -1, &use, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.report->memory_item(trainer, 1000, &use, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->traffic(NULL, 0, &traffic, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->traffic(trainer, 0, NULL, &error));
    REFUSED(GRAFT_ERR_STATE, s.report->traffic(trainer, 0, &traffic, &error)); /* this trainer does not use ranks */
    REFUSED(GRAFT_ERR_ARG, s.report->traffic_item(NULL, 0, 0, &layer, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->traffic_item(trainer, 0, 0, NULL, &error));
    /* This trainer does not use ranks. */
    REFUSED(GRAFT_ERR_STATE, s.report->traffic_item(trainer, 0, 0, &layer, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->traffic_pair(NULL, 0, 0, &pair, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->traffic_pair(trainer, 0, 0, NULL, &error));
    REFUSED(GRAFT_ERR_STATE, s.report->traffic_pair(trainer, 0, 0, &pair, &error)); /* this trainer does not use
                                                                                     * ranks */
    REFUSED(GRAFT_ERR_ARG, s.report->cache_item(NULL, 0, 0, &cache, &error));
    REFUSED(GRAFT_ERR_ARG, s.report->cache_item(trainer, 0, 0, NULL, &error));
    /* This trainer does not make batches over ranks. */
    REFUSED(GRAFT_ERR_STATE, s.report->cache_item(trainer, 0, 0, &cache, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->explain(NULL, text, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->explain(trainer, NULL, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.train->explain(trainer, text, 0, &error));
    REFUSED(GRAFT_OK, s.train->explain(trainer, text, sizeof text, &error));
    if (memchr(text, '\0', sizeof text) == NULL) watch_blame("a cut text has no end");
    bad_update(trainer);
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

static const char *transport_calls(const void *arg)
{
    graft_transport    ranks[3] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport),
                                    GRAFT_INIT(graft_transport) };
    graft_communicator communicator = GRAFT_INIT(graft_communicator);
    char               byte = 0;
    graft_request     *request;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(NULL, 2, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(s.context, 2, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(s.context, 0, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(s.context, -1, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(s.context, INT32_MAX, ranks, &error));
    ranks[2].size = 8;
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(s.context, 3, ranks, &error));
    ranks[2].size = 0;
    REFUSED(GRAFT_ERR_ARG, s.transport->threads(s.context, 3, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->open(NULL, "auto", NULL, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->open(s.context, NULL, NULL, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->open(s.context, "auto", NULL, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.transport->open(s.context, "auto", NULL, &ranks[2], &error));
    communicator.size = 4;
    REFUSED(GRAFT_ERR_ARG, s.transport->open(s.context, "auto", &communicator, ranks, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.transport->open(s.context, "auto", NULL, ranks, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.transport->open(s.context, "", NULL, ranks, &error));
    REFUSED(GRAFT_ERR_STATE, s.transport->open(s.context, "openmpi", NULL, ranks, &error));
    REFUSED(GRAFT_ERR_STATE, s.transport->open(s.context, "mpich", NULL, ranks, &error));
    REFUSED(GRAFT_OK, s.transport->threads(s.context, 2, ranks, &error));
    REFUSED(GRAFT_ERR_ARG, ranks[0].send(ranks[0].self, 0, 1, &byte, 1, &request, &error));
    REFUSED(GRAFT_ERR_ARG, ranks[0].send(ranks[0].self, 2, 1, &byte, 1, &request, &error));
    REFUSED(GRAFT_ERR_ARG, ranks[0].receive(ranks[0].self, -1, 1, &byte, 1, &request, &error));
    REFUSED(GRAFT_ERR_ARG, ranks[0].receive(ranks[0].self, 1, -1, &byte, 1, &request, &error));
    for (int i = 0; i < 2; i++) ranks[i].close(ranks[i].self);
    return end_of_group();
}

int main(void)
{
    static const struct group groups[] = {
        { "data sets", data_calls, NULL },       { "create of a trainer", create_calls, NULL },
        { "a trainer", trainer_calls, NULL },    { "a trainer that has nothing to train", spent_trainer, NULL },
        { "transports", transport_calls, NULL },
    };

    return run_groups(groups, NUMBER(groups));
}
