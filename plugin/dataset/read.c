/* Reads the structs of the host, checks shapes, and stores digests of the arrays that are borrowed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "dataset/dataset.h"
#include "graph/csr.h"
#include "kernel/kernel.h"

#include <string.h>

static int32_t check_graph(const struct gr_dataset *d, graft_error *error)
{
    if (d->over != NULL) {
        if (d->over->context != d->context)
            return gr_fail(error, GRAFT_ERR_ARG, "the graph over ranks was made in another context");
        if (d->over->n_vertices == d->given.n_vertices && d->over->value_type != GRAFT_F64) return GRAFT_OK;
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "the graph over ranks has %lld vertices and values of dtype %d; expected %lld, and GRAFT_F32 (1) "
            "or none (0)",
            (long long)d->over->n_vertices, d->over->value_type, (long long)d->given.n_vertices);
    }
    if (d->graph.n_rows != d->n || d->graph.n_cols != d->n) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld, but there are %lld vertices",
                       (long long)d->graph.n_rows, (long long)d->graph.n_cols, (long long)d->n);
    }
    if (d->graph.values != NULL && d->graph.value_type != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph has values of dtype %d, expected GRAFT_F32 (1)",
                       d->graph.value_type);
    }
    return gr_csr_check(&d->graph, "graph", 0, d->threads, error);
}

static int32_t check_shapes(const struct gr_dataset *d, graft_error *error)
{
    const graft_dataset *given = &d->given;
    const int64_t        rows = given->features != NULL ? d->features.x.n_rows : d->sparse_features.n_rows;
    const int64_t        cols = given->features != NULL ? d->features.x.n_cols : d->sparse_features.n_cols;

    if (given->n_features > INT32_MAX || given->n_classes > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld features and %lld classes are too many",
                       (long long)given->n_features, (long long)given->n_classes);
    }
    if (given->n_vertices < 1 || given->n_features < 1 || given->n_classes < 1) {
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "there are %lld vertices, %lld features and %lld classes; a model needs one of "
            "each at least%s",
            (long long)given->n_vertices, (long long)given->n_features, (long long)given->n_classes,
            given->n_classes < 1 ? ". Without labels n_classes must be set; a saved model predicts without it" : "");
    }
    if ((given->features == NULL) == (given->sparse_features == NULL)) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s given; give dense features or sparse ones",
                       given->features == NULL ? "no features are" : "dense and sparse features are both");
    }
    if (rows != d->n || cols != given->n_features) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features are %lld x %lld, but there are %lld vertices%s and %lld features", (long long)rows,
                       (long long)cols, (long long)d->n, d->over != NULL ? " in the slice" : "",
                       (long long)given->n_features);
    }
    return GRAFT_OK;
}

static int32_t check_flags(const struct gr_dataset *d, graft_error *error)
{
    const graft_dataset *given = &d->given;

    if (given->flags & ~(uint32_t)GRAFT_DATASET_SLICE)
        return gr_fail(error, GRAFT_ERR_ARG, "dataset: flags are 0x%x, of which some are unknown", given->flags);
    if (given->flags == 0) return GRAFT_OK;
    if (d->over == NULL)
        return gr_fail(
            error, GRAFT_ERR_UNSUPPORTED,
            "this data set is a slice of %lld of %lld vertices, from vertex %lld on; expected all of them, or "
            "a graph over ranks with it (graft_dataset.over)",
            (long long)given->n_slice, (long long)given->n_vertices, (long long)given->first_vertex);
    if (given->n_slice == d->over->n_slice && given->first_vertex == d->over->first[d->over->comm->rank])
        return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "this data set is a slice of %lld vertices from vertex %lld on, the graph over ranks has %lld from "
                   "vertex %lld on here",
                   (long long)given->n_slice, (long long)given->first_vertex, (long long)d->over->n_slice,
                   (long long)d->over->first[d->over->comm->rank]);
}

struct gr_target_array gr_dataset_target_array(const struct gr_targets *t, int array)
{
    const int64_t one = sizeof *t->values, classes = t->n_classes;

    switch (array) {
    case GR_TARGET_LABELS: return (struct gr_target_array){ "labels", GRAFT_UPDATE_LABELS, t->labels, 4, 4 };
    case GR_TARGET_CLASSES:
        return (struct gr_target_array){ "targets", GRAFT_UPDATE_TARGETS, t->targets, classes, classes };
    case GR_TARGET_VALUES:
        return (struct gr_target_array){ "float_targets", GRAFT_UPDATE_TARGETS, t->values, classes * one,
                                         t->stride * one };
    default: return (struct gr_target_array){ "split", GRAFT_UPDATE_SPLIT, t->split, 1, 1 };
    }
}

void gr_dataset_set_target_array(struct gr_targets *t, int array, const void *data, int64_t stride)
{
    switch (array) {
    case GR_TARGET_LABELS: t->labels = data; break;
    case GR_TARGET_CLASSES: t->targets = data; break;
    case GR_TARGET_SPLIT: t->split = data; break;
    default: t->values = data; t->stride = stride / (int64_t)sizeof *t->values;
    }
}

int32_t gr_dataset_read_targets(const struct gr_dataset *d, const graft_dataset *given, struct gr_targets *targets,
                                graft_error *error)
{
    const int64_t n = gr_dataset_host_rows(d), classes = d->given.n_classes;
    graft_dense   y = { .n_rows = n, .n_cols = classes, .dtype = GRAFT_F32, .stride = classes };

    if (given->float_targets != NULL) {
        GR_TRY(gr_struct_read(&y, sizeof y, given->float_targets, "dataset.float_targets", error));
        GR_TRY(gr_kernel_dense_check(&y, "float_targets", error));
    }
    if (y.dtype != GRAFT_F32 || y.n_rows != n || y.n_cols != classes)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "float_targets are %lld x %lld of dtype %d; expected %lld x %lld (n_classes) of GRAFT_F32 (1)",
                       (long long)y.n_rows, (long long)y.n_cols, y.dtype, (long long)n, (long long)classes);
    *targets = (struct gr_targets){ .n = n, .n_classes = classes, .stride = y.stride };
    if (n == 0) return GRAFT_OK;
    targets->labels = given->labels;
    targets->targets = given->targets;
    targets->split = given->split;
    targets->values = y.data;
    return GRAFT_OK;
}

void gr_dataset_lend_features(struct gr_dataset *d, const graft_dense *f)
{
    const int64_t element = gr_dtype_bytes(f->dtype);

    gr_loan_take(&d->loans, d->context,
                 &(struct gr_loan){ "features", GRAFT_UPDATE_FEATURES, f->data, f->n_rows, f->n_cols * element,
                                    f->stride * element, 0 });
}

void gr_dataset_lend_sparse(struct gr_dataset *d, const graft_csr *x)
{
    static const char *const names[] = { "sparse_features.row_ptr", "sparse_features.col_idx",
                                         "sparse_features.values" };

    gr_loan_take_csr(&d->loans, d->context, x, names, GRAFT_UPDATE_FEATURES, GRAFT_UPDATE_FEATURES);
}

void gr_dataset_lend_targets(struct gr_dataset *d, uint32_t what, const struct gr_targets *given)
{
    for (int i = 0; i < GR_TARGET_ARRAYS; i++) {
        const struct gr_target_array a = gr_dataset_target_array(given, i);

        if ((what & a.what) != 0 && !(d->regresses && i == GR_TARGET_CLASSES))
            gr_loan_take(&d->loans, d->context,
                         &(struct gr_loan){ a.name, a.what, a.data, given->n, a.bytes, a.stride, 0 });
    }
}

static const char graph_values[] = "graph.values";

void gr_dataset_lend_edge_values(struct gr_dataset *d, const graft_csr *graph)
{
    gr_loan_take(&d->loans, d->context,
                 &(struct gr_loan){ graph_values, GRAFT_UPDATE_EDGE_VALUES, graph->values, gr_csr_entries(graph),
                                    sizeof(float), sizeof(float), 0 });
}

/* Store digests of all borrowed arrays, before the views of the host's arrays are replaced by others. */
static void lend_dataset(struct gr_dataset *d, const graft_csr *graph, const graft_csr *sparse,
                         const struct gr_targets *targets)
{
    static const char *const names[] = { "graph.row_ptr", "graph.col_idx", graph_values };

    if (d->over == NULL) gr_loan_take_csr(&d->loans, d->context, graph, names, 0, GRAFT_UPDATE_EDGE_VALUES);
    if (d->given.features != NULL) gr_dataset_lend_features(d, &d->features.x);
    else gr_dataset_lend_sparse(d, sparse);
    gr_dataset_lend_targets(d, GRAFT_UPDATE_LABELS | GRAFT_UPDATE_TARGETS | GRAFT_UPDATE_SPLIT, targets);
}

/* Read and check features of edges. Over ranks the number of rows is checked later, when the edges of slices are
 * known. */
static int32_t read_edge_features(struct gr_dataset *d, graft_error *error)
{
    const int64_t rows = d->over != NULL ? -1 : gr_csr_entries(&d->graph);

    if (d->given.edge_features == NULL)
        return gr_fail(error, GRAFT_ERR_OPTION, "option 'edge_features' is array, but the data set has none");
    GR_TRY(gr_struct_read(&d->edge_features, sizeof d->edge_features, d->given.edge_features, "dataset.edge_features",
                          error));
    d->given.edge_features = &d->edge_features;
    return gr_dataset_check_edge_features(&d->edge_features, rows, d->threads, error);
}

/* Store the type of dense features, and copy their scale and zero. */
static int32_t take_types(struct gr_dataset *d, graft_error *error)
{
    struct gr_features *f = &d->features;
    const int64_t       width = f->x.n_cols;

    d->feature_type = f->x.dtype;
    if (f->scale == NULL) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(d->budget, GR_USE_FEATURES, d->feature_scale, 2 * width, error));
    memcpy(d->feature_scale, f->scale, (uint64_t)width * sizeof *f->scale);
    memcpy(d->feature_scale + width, f->zero, (uint64_t)width * sizeof *f->zero);
    f->scale = d->feature_scale;
    f->zero = d->feature_scale + width;
    return GRAFT_OK;
}

int32_t gr_dataset_read(struct gr_dataset *d, int uses_edges, struct gr_targets *targets, graft_error *error)
{
    graft_csr graph = { 0 }, sparse = { 0 }; /* views of the host's arrays */

    GR_TRY(check_flags(d, error));
    d->n = d->over != NULL ? d->over->n_slice : d->given.n_vertices;
    if (d->over == NULL) GR_TRY(gr_struct_read(&graph, sizeof graph, d->given.graph, "dataset.graph", error));
    if (d->given.features != NULL) GR_TRY(gr_dataset_view_features(&d->given, &d->features, error));
    if (d->given.sparse_features != NULL) {
        GR_TRY(gr_struct_read(&sparse, sizeof sparse, d->given.sparse_features, "dataset.sparse_features", error));
    }
    d->graph = graph;
    d->sparse_features = sparse;
    GR_TRY(check_shapes(d, error));
    if (d->over == NULL) GR_TRY(gr_csr_widen(d->context, &d->graph, "graph", &d->row_ptr[0], error));
    gr_budget_charge(d->budget, GR_USE_GRAPH, gr_memory_bytes(d->row_ptr[0]));
    GR_TRY(check_graph(d, error));
    if (uses_edges) GR_TRY(read_edge_features(d, error));
    GR_TRY(gr_dataset_read_targets(d, &d->given, targets, error));
    if (d->given.features != NULL) GR_TRY(take_types(d, error));
    else {
        GR_TRY(gr_csr_widen(d->context, &d->sparse_features, "sparse_features", &d->row_ptr[1], error));
        gr_budget_charge(d->budget, GR_USE_FEATURES, gr_memory_bytes(d->row_ptr[1]));
        GR_TRY(gr_csr_check(&d->sparse_features, "sparse_features", 0, d->threads, error));
    }
    GR_TRY(gr_dataset_check_targets(targets, gr_dataset_first(d), error));
    lend_dataset(d, &graph, &sparse, targets);
    return GRAFT_OK;
}

void gr_dataset_fini(struct gr_dataset *d)
{
    for (int i = 0; i < 2; i++) gr_free(d->context, d->row_ptr[i]);
    gr_free(d->context, d->owned);
}
