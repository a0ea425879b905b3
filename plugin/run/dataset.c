/* The local checks of the data set of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dense_view.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/team.h"
#include "graph/csr.h"
#include "run/setup.h"

#include <math.h>
#include <string.h>

static int32_t check_labels(const struct gr_targets *d, int64_t first, graft_error *error)
{
    for (int64_t v = 0; v < d->n && d->labels != NULL; v++) {
        if (d->labels[v] < -1 || d->labels[v] >= d->n_classes) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has label %d, expected -1 to %lld",
                           (long long)(first + v), d->labels[v], (long long)d->n_classes - 1);
        }
    }
    for (int64_t i = 0; i < d->n * d->n_classes && d->targets != NULL; i++) {
        if (d->targets[i] > 1) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has target %d for class %lld, expected 0 or 1",
                           (long long)(first + i / d->n_classes), d->targets[i], (long long)(i % d->n_classes));
        }
    }
    return GRAFT_OK;
}

static int32_t check_float_values(const struct gr_targets *d, int64_t first, graft_error *error)
{
    for (int64_t i = 0; i < d->n * d->n_classes && d->values != NULL; i++) {
        if (!isinf(d->values[i / d->n_classes * d->stride + i % d->n_classes])) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "float_targets: row %lld, column %lld is infinite, expected a finite value, or NaN if it is not "
                       "known",
                       (long long)(first + i / d->n_classes), (long long)(i % d->n_classes));
    }
    return GRAFT_OK;
}

static int32_t check_split(const struct gr_targets *d, int64_t first, graft_error *error)
{
    for (int64_t v = 0; v < d->n && d->split != NULL; v++) {
        if (d->split[v] > GRAFT_SPLIT_TEST) {
            return gr_fail(error, GRAFT_ERR_FORMAT, "vertex %lld has split %d, expected 0 to 3", (long long)(first + v),
                           d->split[v]);
        }
    }
    return GRAFT_OK;
}

int32_t gr_targets_check(const struct gr_targets *targets, int64_t first, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(check_labels(targets, first, error));
    GR_TRY(check_float_values(targets, first, error));
    rc = check_split(targets, first, error);
done:
    return rc;
}

int32_t gr_float_targets_check(const graft_dense *y, int64_t n, int64_t n_classes, graft_error *error)
{
    const int32_t rc = gr_dense_check(y, "float_targets", error);

    if (rc < 0 || (y->dtype == GRAFT_F32 && y->n_rows == n && y->n_cols == n_classes)) return rc;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "float_targets are %lld x %lld of dtype %d; expected %lld x %lld (n_classes) of GRAFT_F32 (1)",
                   (long long)y->n_rows, (long long)y->n_cols, y->dtype, (long long)n, (long long)n_classes);
}

/* The first row in [begin, end) with a NaN or an infinity, or n_rows. Contiguous rows are checked in one loop. */
static int64_t find_row_not_finite(const graft_dense *f, int64_t begin, int64_t end)
{
    const int64_t span = f->stride == f->n_cols ? end - begin : 1;

    for (int64_t row = begin; row < end; row += span) {
        const int64_t count = span * f->n_cols, at = gr_features_not_finite(f, row * f->stride, count);

        if (at < count) return row + at / f->n_cols;
    }
    return f->n_rows;
}

/* The first row with a NaN or an infinity, or n_rows. */
static int64_t find_bad_row(const graft_dense *f, int threads)
{
    const struct gr_fp fp = gr_fp_get();
    int64_t            bad = f->n_rows;

    threads = gr_threads_worth(threads, f->n_rows * f->n_cols);
#pragma omp parallel for num_threads(threads) reduction(min : bad) if (threads > 1)
    for (int64_t begin = 0; begin < f->n_rows; begin += GR_CHUNK_ROWS) {
        const int64_t      end = begin + GR_CHUNK_ROWS < f->n_rows ? begin + GR_CHUNK_ROWS : f->n_rows;
        const struct gr_fp own = gr_fp_swap(fp);
        const int64_t      at = find_row_not_finite(f, begin, end);

        gr_fp_set(own);
        if (at < bad) bad = at;
    }
    return bad;
}

int32_t gr_edge_features_check(const graft_dense *f, int64_t rows, int threads, graft_error *error)
{
    const int32_t rc = gr_dense_check(f, "edge_features", error);
    int64_t       bad;

    if (rc < 0) return rc;
    if (f->dtype != GRAFT_F32 || f->n_cols < 1 || f->n_cols > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "edge_features are %lld x %lld of dtype %d, expected a column at least, of GRAFT_F32 (1)",
                       (long long)f->n_rows, (long long)f->n_cols, f->dtype);
    if (rows >= 0 && f->n_rows != rows)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "edge_features have %lld rows, but the graph has %lld edges; expected a row for each",
                       (long long)f->n_rows, (long long)rows);
    bad = find_bad_row(f, threads);
    if (bad == f->n_rows) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "edge_features: row %lld has a value that is not finite", (long long)bad);
}

int32_t gr_features_check(const graft_dense *f, int64_t first, int threads, graft_error *error)
{
    const int64_t bad = find_bad_row(f, threads);
    int64_t       column;

    if (bad == f->n_rows) return GRAFT_OK;
    column = gr_features_not_finite(f, bad * f->stride, f->n_cols);
    return gr_features_refuse(first + bad, column, gr_features_element(f, bad * f->stride + column), error);
}

static int32_t check_dataset_graph(const struct gr_setup *s, graft_error *error)
{
    if (s->data.over != NULL) {
        if (s->data.over->context != s->context)
            return gr_fail(error, GRAFT_ERR_ARG, "the graph over ranks was made in another context");
        if (s->data.over->n_vertices == s->data.given.n_vertices && s->data.over->value_type != GRAFT_F64)
            return GRAFT_OK;
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "the graph over ranks has %lld vertices and values of dtype %d; expected %lld, and GRAFT_F32 (1) "
            "or none (0)",
            (long long)s->data.over->n_vertices, s->data.over->value_type, (long long)s->data.given.n_vertices);
    }
    if (s->data.graph.n_rows != s->data.n || s->data.graph.n_cols != s->data.n) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld, but there are %lld vertices",
                       (long long)s->data.graph.n_rows, (long long)s->data.graph.n_cols, (long long)s->data.n);
    }
    if (s->data.graph.values != NULL && s->data.graph.value_type != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph has values of dtype %d, expected GRAFT_F32 (1)",
                       s->data.graph.value_type);
    }
    return gr_csr_check(&s->data.graph, "graph", 0, s->run.threads, error);
}

static int32_t check_dataset_shapes(const struct gr_setup *s, graft_error *error)
{
    const graft_dataset *d = &s->data.given;
    const int64_t        rows = d->features != NULL ? s->data.features.x.n_rows : s->data.sparse_features.n_rows;
    const int64_t        cols = d->features != NULL ? s->data.features.x.n_cols : s->data.sparse_features.n_cols;

    if (d->n_features > INT32_MAX || d->n_classes > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld features and %lld classes are too many", (long long)d->n_features,
                       (long long)d->n_classes);
    }
    if (d->n_vertices < 1 || d->n_features < 1 || d->n_classes < 1) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "there are %lld vertices, %lld features and %lld classes; a model needs one of "
                       "each at least%s",
                       (long long)d->n_vertices, (long long)d->n_features, (long long)d->n_classes,
                       d->n_classes < 1 ? ". Without labels n_classes must be set; a saved model predicts without it"
                                        : "");
    }
    if ((d->features == NULL) == (d->sparse_features == NULL)) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s given; give dense features or sparse ones",
                       d->features == NULL ? "no features are" : "dense and sparse features are both");
    }
    if (rows != s->data.n || cols != d->n_features) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features are %lld x %lld, but there are %lld vertices%s and %lld features", (long long)rows,
                       (long long)cols, (long long)s->data.n, s->data.over != NULL ? " in the slice" : "",
                       (long long)d->n_features);
    }
    return GRAFT_OK;
}

static int32_t check_flags(const struct gr_setup *s, graft_error *error)
{
    const graft_dataset *d = &s->data.given;

    if (d->flags & ~(uint32_t)GRAFT_DATASET_SLICE)
        return gr_fail(error, GRAFT_ERR_ARG, "dataset: flags are 0x%x, of which some are unknown", d->flags);
    if (d->flags == 0) return GRAFT_OK;
    if (s->data.over == NULL)
        return gr_fail(
            error, GRAFT_ERR_UNSUPPORTED,
            "this data set is a slice of %lld of %lld vertices, from vertex %lld on; expected all of them, or "
            "a graph over ranks with it (graft_dataset.over)",
            (long long)d->n_slice, (long long)d->n_vertices, (long long)d->first_vertex);
    if (d->n_slice == s->data.over->n_slice && d->first_vertex == s->data.over->first[s->data.over->comm->rank])
        return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "this data set is a slice of %lld vertices from vertex %lld on, the graph over ranks has %lld from "
                   "vertex %lld on here",
                   (long long)d->n_slice, (long long)d->first_vertex, (long long)s->data.over->n_slice,
                   (long long)s->data.over->first[s->data.over->comm->rank]);
}

/* The targets of the run as given by the host; arrays without rows count as not given. */
static void read_run_targets(struct gr_setup *s)
{
    struct gr_targets *targets = &s->run.targets;

    targets->n_classes = s->data.given.n_classes;
    targets->n = s->data.n;
    targets->stride = s->data.given.float_targets != NULL ? s->data.float_targets.stride : s->data.given.n_classes;
    if (s->data.n == 0) return;
    targets->labels = s->data.given.labels;
    targets->targets = s->data.given.targets;
    targets->split = s->data.given.split;
    targets->values = s->data.given.float_targets != NULL ? s->data.float_targets.data : NULL;
}

static void lend_rows(struct gr_setup *s, const char *name, uint32_t what, const void *data, int64_t rows,
                      int64_t row_bytes)
{
    gr_loan_take(&s->data.loans, s->context, &(struct gr_loan){ name, what, data, rows, row_bytes, row_bytes, 0 });
}

void gr_setup_lend_features(struct gr_setup *s, const graft_dense *f)
{
    const int64_t element = gr_dtype_bytes(f->dtype);

    gr_loan_take(&s->data.loans, s->context,
                 &(struct gr_loan){ "features", GRAFT_UPDATE_FEATURES, f->data, f->n_rows, f->n_cols * element,
                                    f->stride * element, 0 });
}

void gr_setup_lend_sparse(struct gr_setup *s, const graft_csr *x)
{
    static const char *const names[] = { "sparse_features.row_ptr", "sparse_features.col_idx",
                                         "sparse_features.values" };

    gr_loan_take_csr(&s->data.loans, s->context, x, names, GRAFT_UPDATE_FEATURES, GRAFT_UPDATE_FEATURES);
}

void gr_setup_lend_targets(struct gr_setup *s, uint32_t what, const graft_dataset *data, const graft_dense *y)
{
    const int64_t rows = s->data.over != NULL ? s->data.over->n_slice : s->data.n, classes = s->data.given.n_classes;

    if (what & GRAFT_UPDATE_LABELS)
        lend_rows(s, "labels", GRAFT_UPDATE_LABELS, data->labels, rows, sizeof *data->labels);
    if ((what & GRAFT_UPDATE_TARGETS) && !gr_is_regression(&s->model.config))
        lend_rows(s, "targets", GRAFT_UPDATE_TARGETS, data->targets, rows, classes);
    if (what & GRAFT_UPDATE_TARGETS)
        gr_loan_take(&s->data.loans, s->context,
                     &(struct gr_loan){ "float_targets", GRAFT_UPDATE_TARGETS, y->data, rows,
                                        classes * (int64_t)sizeof(float), y->stride * (int64_t)sizeof(float), 0 });
    if (what & GRAFT_UPDATE_SPLIT) lend_rows(s, "split", GRAFT_UPDATE_SPLIT, data->split, rows, 1);
}

static const char graph_values[] = "graph.values";

void gr_setup_lend_edge_values(struct gr_setup *s, const graft_csr *graph)
{
    gr_loan_take(&s->data.loans, s->context,
                 &(struct gr_loan){ graph_values, GRAFT_UPDATE_EDGE_VALUES, graph->values, gr_csr_entries(graph),
                                    sizeof(float), sizeof(float), 0 });
}

/* Called before the views of the host's arrays are replaced. */
static void lend_dataset(struct gr_setup *s, const graft_csr *graph, const graft_csr *sparse)
{
    static const char *const names[] = { "graph.row_ptr", "graph.col_idx", graph_values };

    if (s->data.over == NULL) gr_loan_take_csr(&s->data.loans, s->context, graph, names, 0, GRAFT_UPDATE_EDGE_VALUES);
    if (s->data.given.features != NULL) gr_setup_lend_features(s, &s->data.features.x);
    else gr_setup_lend_sparse(s, sparse);
    gr_setup_lend_targets(s, GRAFT_UPDATE_LABELS | GRAFT_UPDATE_TARGETS | GRAFT_UPDATE_SPLIT, &s->data.given,
                          &s->data.float_targets);
}

/* Whether the data set's features of edges are used. */
static int uses_edge_array(const struct gr_setup *s)
{
    return s->options->model.kind == GR_KIND_GAT && s->options->model.edge_features == GR_EDGE_FEATURES_ARRAY;
}

/* The rows of a slice are counted when its edges are known. */
static int32_t read_edge_features(struct gr_setup *s, graft_error *error)
{
    const int64_t rows = s->data.over != NULL ? -1 : gr_csr_entries(&s->data.graph);
    int32_t       rc = GRAFT_OK;

    if (!uses_edge_array(s)) return GRAFT_OK;
    if (s->data.given.edge_features == NULL)
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'edge_features' is array, but the data set has none");
    GR_TRY(gr_struct_read(&s->data.edge_features, sizeof s->data.edge_features, s->data.given.edge_features,
                          "dataset.edge_features", error));
    s->data.given.edge_features = &s->data.edge_features;
    rc = gr_edge_features_check(&s->data.edge_features, rows, s->run.threads, error);
done:
    return rc;
}

/* Copy the scale and zero of dense features. */
static int32_t take_types(struct gr_setup *s, graft_error *error)
{
    struct gr_features *f = &s->data.features;
    const int64_t       width = f->x.n_cols;
    int32_t             rc = GRAFT_OK;

    s->data.feature_type = f->x.dtype;
    if (f->scale == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&s->budget, GR_USE_FEATURES, s->data.feature_scale, 2 * width, error));
    memcpy(s->data.feature_scale, f->scale, (uint64_t)width * sizeof *f->scale);
    memcpy(s->data.feature_scale + width, f->zero, (uint64_t)width * sizeof *f->zero);
    f->scale = s->data.feature_scale;
    f->zero = s->data.feature_scale + width;
done:
    return rc;
}

/* Copy the host's structs; the arrays remain the host's. */
int32_t gr_setup_read_dataset(struct gr_setup *s, graft_error *error)
{
    graft_csr graph = { 0 }, sparse = { 0 }; /* as given by the host */
    int32_t   rc = GRAFT_OK;

    GR_TRY(check_flags(s, error));
    s->data.n = s->data.over != NULL ? s->data.over->n_slice : s->data.given.n_vertices;
    s->data.first = s->data.over != NULL ? s->data.over->first[s->data.over->comm->rank] : 0;
    if (s->data.given.float_targets != NULL)
        GR_TRY(gr_struct_read(&s->data.float_targets, sizeof s->data.float_targets, s->data.given.float_targets,
                              "dataset.float_targets", error));
    read_run_targets(s);
    if (s->data.over == NULL) GR_TRY(gr_struct_read(&graph, sizeof graph, s->data.given.graph, "dataset.graph", error));
    if (s->data.given.features != NULL) GR_TRY(gr_features_view(&s->data.given, &s->data.features, error));
    if (s->data.given.sparse_features != NULL) {
        GR_TRY(gr_struct_read(&sparse, sizeof sparse, s->data.given.sparse_features, "dataset.sparse_features", error));
    }
    s->data.graph = graph;
    s->data.sparse_features = sparse;
    GR_TRY(check_dataset_shapes(s, error));
    if (s->data.over == NULL) GR_TRY(gr_csr_widen(s->context, &s->data.graph, "graph", &s->data.row_ptr[0], error));
    gr_budget_charge(&s->budget, GR_USE_GRAPH, gr_bytes(s->data.row_ptr[0]));
    GR_TRY(check_dataset_graph(s, error));
    GR_TRY(read_edge_features(s, error));
    if (s->data.given.float_targets != NULL)
        GR_TRY(gr_float_targets_check(&s->data.float_targets, s->data.n, s->data.given.n_classes, error));
    if (s->data.given.features != NULL) GR_TRY(take_types(s, error));
    else {
        GR_TRY(gr_csr_widen(s->context, &s->data.sparse_features, "sparse_features", &s->data.row_ptr[1], error));
        gr_budget_charge(&s->budget, GR_USE_FEATURES, gr_bytes(s->data.row_ptr[1]));
        GR_TRY(gr_csr_check(&s->data.sparse_features, "sparse_features", 0, s->run.threads, error));
    }
    GR_TRY(gr_targets_check(&s->run.targets, s->data.first, error));
    lend_dataset(s, &graph, &sparse);
done:
    return rc;
}
