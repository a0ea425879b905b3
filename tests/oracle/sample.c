/* Makes numbers, sparse matrices and data sets from a seed, see oracle/sample.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"
#include "oracle.h"

#include <math.h>
#include <stdlib.h>

uint64_t sample_bits(struct sample *sample)
{
    /* The generator is MMIX of Knuth, whose high bits have good quality. */
    sample->state = sample->state * 6364136223846793005u + 1442695040888963407u;
    return (sample->state >> 33) ^ sample->state >> 59;
}

int64_t sample_below(struct sample *sample, int64_t bound)
{
    return (int64_t)(sample_bits(sample) % (uint64_t)bound);
}

double sample_real(struct sample *sample, double low, double high)
{
    return low + (high - low) * (double)sample_bits(sample) / 2147483648.0;
}

double sample_exact(struct sample *sample, int64_t limit, int64_t step)
{
    return (double)(sample_below(sample, 2 * limit + 1) - limit) / (double)step;
}

void sample_put(void *data, graft_dtype dtype, int64_t at, double value)
{
    switch (dtype) {
    case GRAFT_F32: ((float *)data)[at] = (float)value; break;
    case GRAFT_F64: ((double *)data)[at] = value; break;
    case GRAFT_I32: ((int32_t *)data)[at] = (int32_t)value; break;
    default: ((int64_t *)data)[at] = (int64_t)value;
    }
}

double sample_at(const void *data, graft_dtype dtype, int64_t at)
{
    switch (dtype) {
    case GRAFT_F32: return (double)((const float *)data)[at];
    case GRAFT_F64: return ((const double *)data)[at];
    case GRAFT_I32: return ((const int32_t *)data)[at];
    default: return (double)((const int64_t *)data)[at];
    }
}

uint64_t sample_bytes(graft_dtype dtype)
{
    return dtype == GRAFT_F32 || dtype == GRAFT_I32 ? 4 : 8;
}

/** Describe the arrays as a CSR matrix. A matrix without values has NULL, whatever the array contains. */
static void sample_describe(struct sample_csr *sparse, int64_t n_rows, int64_t n_cols, graft_dtype index_type,
                            graft_dtype value_type)
{
    sparse->csr = GRAFT_INIT(graft_csr);
    sparse->csr.index_type = index_type;
    sparse->csr.value_type = value_type;
    sparse->csr.n_rows = n_rows;
    sparse->csr.n_cols = n_cols;
    sparse->csr.row_ptr = sparse->row_ptr;
    sparse->csr.col_idx = sparse->col_idx;
    sparse->csr.values = value_type != 0 ? sparse->values : NULL;
}

static int64_t divisor(int64_t a, int64_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

/** Choose the columns of one row. Without repeats they follow at equal steps, modulo the number of columns, so that all
 * columns are visited before one repeats. */
static void fill_row(struct sample_csr *sparse, struct sample *sample, const struct sample_csr_shape *shape,
                     int64_t row)
{
    const int64_t k = shape->n_cols, begin = sparse->row_ptr[row], first = sample_below(sample, k);
    int64_t       step = 1 + sample_below(sample, k);

    while (divisor(k, step) != 1) step = 1 + sample_below(sample, k);
    for (int64_t p = begin; p < sparse->row_ptr[row + 1]; p++) {
        const int64_t column = shape->repeats ? sample_below(sample, k) : (first + (p - begin) * step) % k;
        sample_put(sparse->col_idx, shape->index_type, p, (double)column);
    }
}

void sample_csr_init_shape(struct sample_csr *sparse, struct sample *sample, const struct sample_csr_shape *shape)
{
    const int64_t k = shape->n_cols, hub = shape->repeats ? 2 * k : k, most = shape->repeats || k > 6 ? 6 : k;
    int64_t       entries = 0;

    sparse->row_ptr = oracle_new(shape->n_rows + 1, sizeof(int64_t));
    for (int64_t i = 0; i < shape->n_rows; i++) {
        int64_t degree = i % 5 == 2 ? 0 : sample_below(sample, most + 1);
        if (i == 1 || i == shape->n_rows - 1) degree = hub;
        sparse->row_ptr[i + 1] = sparse->row_ptr[i] + (k > 0 ? degree : 0);
    }
    entries = sparse->row_ptr[shape->n_rows];
    sparse->col_idx = oracle_new(entries, sizeof(int64_t));
    sparse->values = oracle_new(entries, sizeof(double));
    for (int64_t i = 0; i < shape->n_rows && k > 0; i++) fill_row(sparse, sample, shape, i);
    for (int64_t p = 0; p < entries && shape->value_type != 0; p++) {
        const double value = shape->exact ? sample_exact(sample, 16, 4) : sample_real(sample, -2, 2);
        sample_put(sparse->values, shape->value_type, p, value);
    }
    sample_describe(sparse, shape->n_rows, k, shape->index_type, shape->value_type);
}

void sample_csr_init(struct sample_csr *sparse, struct sample *sample, int64_t n_rows, int64_t n_cols,
                     graft_dtype index_type, graft_dtype value_type, int exact)
{
    const struct sample_csr_shape shape = { n_rows, n_cols, index_type, value_type, 1, exact };

    sample_csr_init_shape(sparse, sample, &shape);
}

void sample_csr_fini(struct sample_csr *sparse)
{
    free(sparse->row_ptr);
    free(sparse->col_idx);
    free(sparse->values);
}

void sample_csr_transpose(struct sample_csr *transpose, const struct sample_csr *original)
{
    const graft_csr *csr = &original->csr;
    const int64_t    entries = csr->row_ptr[csr->n_rows];
    int64_t          to = 0;

    transpose->row_ptr = oracle_new(csr->n_cols + 1, sizeof(int64_t));
    transpose->col_idx = oracle_new(entries, sizeof(int64_t));
    transpose->values = oracle_new(entries, sizeof(double));
    for (int64_t column = 0; column < csr->n_cols; column++) {
        for (int64_t i = 0; i < csr->n_rows; i++) {
            for (int64_t at = csr->row_ptr[i]; at < csr->row_ptr[i + 1]; at++) {
                if ((int64_t)sample_at(csr->col_idx, csr->index_type, at) != column) continue;
                if (csr->values != NULL)
                    sample_put(transpose->values, csr->value_type, to, sample_at(csr->values, csr->value_type, at));
                sample_put(transpose->col_idx, csr->index_type, to++, (double)i);
            }
        }
        transpose->row_ptr[column + 1] = to;
    }
    sample_describe(transpose, csr->n_cols, csr->n_rows, csr->index_type, csr->value_type);
}

/** Whether vertex v of the sample graph gathers from u. */
static int sample_is_edge(struct sample *sample, int64_t n, int64_t v, int64_t u)
{
    const int random = sample_below(sample, n) < 3;

    if (v == 0) return 1;
    if (v % 6 == 4 || v == n - 1) return 0;
    return u == 1 || random;
}

static void init_graph(struct sample_csr *graph, struct sample *sample, int64_t n)
{
    int64_t entries = 0;

    graph->row_ptr = oracle_new(n + 1, sizeof(int64_t));
    graph->col_idx = oracle_new(n * n, sizeof(int64_t));
    graph->values = NULL;
    for (int64_t v = 0; v < n; v++) {
        for (int64_t u = 0; u < n; u++)
            if (sample_is_edge(sample, n, v, u)) sample_put(graph->col_idx, GRAFT_I32, entries++, (double)u);
        graph->row_ptr[v + 1] = entries;
    }
    sample_describe(graph, n, n, GRAFT_I32, 0);
}

/** Make sparse features. A column occurs at most once in a row, and every seventh row is empty. */
static void init_sparse_features(struct sample_csr *sparse, struct sample *sample, int64_t n, int64_t d)
{
    int64_t entries = 0;

    sparse->row_ptr = oracle_new(n + 1, sizeof(int64_t));
    sparse->col_idx = oracle_new(n * d, sizeof(int64_t));
    sparse->values = oracle_new(n * d, sizeof(double));
    for (int64_t v = 0; v < n; v++) {
        for (int64_t j = 0; j < d; j++) {
            if (v % 7 == 5 || sample_below(sample, 3) == 0) continue;
            sample_put(sparse->values, GRAFT_F32, entries, sample_real(sample, 0.1, 1.5));
            sample_put(sparse->col_idx, GRAFT_I32, entries++, (double)j);
        }
        sparse->row_ptr[v + 1] = entries;
    }
    sample_describe(sparse, n, d, GRAFT_I32, GRAFT_F32);
}

static void init_dense_features(struct sample_dataset *set, struct sample *sample, int64_t n, int64_t d)
{
    set->features = GRAFT_INIT(graft_dense);
    set->features.dtype = GRAFT_F32;
    set->features.n_rows = n;
    set->features.n_cols = d;
    set->features.stride = d;
    set->features.data = oracle_new(n * d, sizeof(float));
    for (int64_t at = 0; at < n * d; at++) sample_put(set->features.data, GRAFT_F32, at, sample_real(sample, -1, 1.5));
}

/** Edge features are drawn with their own seed, so that the other data do not depend on them. */
static void init_edge_features(struct sample_dataset *set)
{
    const int64_t entries = set->graph.row_ptr[set->graph.csr.n_rows], stride = SAMPLE_EDGE_FEATURES + 1;
    struct sample own = { (uint64_t)entries };
    float        *y = oracle_new(entries * stride, sizeof *y);

    for (int64_t at = 0; at < entries * stride; at++)
        y[at] = at % stride < SAMPLE_EDGE_FEATURES ? (float)sample_real(&own, -1, 1) : INFINITY;
    set->edge_features = GRAFT_INIT(graft_dense);
    set->edge_features.dtype = GRAFT_F32;
    set->edge_features.n_rows = entries;
    set->edge_features.n_cols = SAMPLE_EDGE_FEATURES;
    set->edge_features.stride = stride;
    set->edge_features.data = y;
    set->dataset.edge_features = &set->edge_features;
}

void sample_dataset_init(struct sample_dataset *set, struct sample *sample, int64_t n, int64_t d, int64_t classes,
                         int several, int sparse)
{
    *set = (struct sample_dataset){ 0 };
    init_graph(&set->graph, sample, n);
    if (sparse) init_sparse_features(&set->sparse, sample, n, d);
    else init_dense_features(set, sample, n, d);
    set->labels = oracle_new(n, sizeof *set->labels);
    set->targets = oracle_new(n * classes, 1);
    set->split = oracle_new(n, 1);
    for (int64_t v = 0; v < n; v++) {
        set->labels[v] = (int32_t)(v % 5 == 3 ? -1 : sample_below(sample, classes));
        set->split[v] = (uint8_t)(v % 2 == 0 ? GRAFT_SPLIT_TRAIN : v / 2 % 4);
        for (int64_t j = 0; j < classes; j++) set->targets[v * classes + j] = sample_below(sample, 3) == 0;
    }
    set->dataset = GRAFT_INIT(graft_dataset);
    set->dataset.n_vertices = n;
    set->dataset.n_features = d;
    set->dataset.n_classes = classes;
    set->dataset.graph = &set->graph.csr;
    set->dataset.features = sparse ? NULL : &set->features;
    set->dataset.sparse_features = sparse ? &set->sparse.csr : NULL;
    set->dataset.labels = several ? NULL : set->labels;
    set->dataset.targets = several ? set->targets : NULL;
    set->dataset.split = set->split;
    init_edge_features(set);
}

void sample_dataset_regress(struct sample_dataset *set, struct sample *sample)
{
    const int64_t n = set->dataset.n_vertices, columns = set->dataset.n_classes, stride = columns + 2;
    float        *y = oracle_new(n * stride, sizeof *y);

    for (int64_t v = 0; v < n; v++) {
        for (int64_t j = 0; j < stride; j++) {
            const int known = v % 5 != 3 && sample_below(sample, 7) > 0;

            y[v * stride + j] = j >= columns ? INFINITY : known ? (float)sample_real(sample, -2, 2) : NAN;
        }
    }
    set->float_targets = GRAFT_INIT(graft_dense);
    set->float_targets.dtype = GRAFT_F32;
    set->float_targets.n_rows = n;
    set->float_targets.n_cols = columns;
    set->float_targets.stride = stride;
    set->float_targets.data = y;
    set->dataset.labels = NULL;
    set->dataset.targets = NULL;
    set->dataset.float_targets = &set->float_targets;
}

void sample_dataset_fini(struct sample_dataset *set)
{
    sample_csr_fini(&set->graph);
    sample_csr_fini(&set->sparse);
    free(set->features.data);
    free(set->float_targets.data);
    free(set->edge_features.data);
    free(set->labels);
    free(set->targets);
    free(set->split);
}
