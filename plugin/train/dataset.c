/* The data set of the host, checked: what a rank can check without the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/csr.h"
#include "train/train.h"

#include <math.h>

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
    const int32_t rc = check_labels(targets, first, error);

    return rc < 0 ? rc : check_split(targets, first, error);
}

int32_t gr_features_check(const graft_dense *f, int64_t first, int threads, graft_error *error)
{
    int64_t       bad = INT64_MAX;
    const int32_t rc = gr_dense_check(f, "features", error);

    if (rc < 0) return rc;
    if (f->dtype != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "features have dtype %d, expected GRAFT_F32 (1)", f->dtype);
    }
#pragma omp parallel for num_threads(threads) reduction(min : bad) if (threads > 1)
    for (int64_t row = 0; row < f->n_rows; row++) {
        for (int64_t j = 0; j < f->n_cols; j++) {
            if (!isfinite(((const float *)f->data)[row * f->stride + j]) && row < bad) bad = row;
        }
    }
    if (bad == INT64_MAX) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "features: row %lld holds a value that is not finite",
                   (long long)(first + bad));
}

static int32_t check_dataset_graph(const graft_trainer *t, graft_error *error)
{
    if (t->over != NULL) {
        if (t->over->context != t->context)
            return gr_fail(error, GRAFT_ERR_ARG, "the graph over ranks was made in another context");
        if (t->over->n_vertices == t->data.n_vertices && t->over->value_type != GRAFT_F64) return GRAFT_OK;
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "the graph over ranks has %lld vertices and values of dtype %d; expected %lld, and GRAFT_F32 (1) "
            "or none (0)",
            (long long)t->over->n_vertices, t->over->value_type, (long long)t->data.n_vertices);
    }
    if (t->graph.n_rows != t->n || t->graph.n_cols != t->n) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph is %lld x %lld, but there are %lld vertices",
                       (long long)t->graph.n_rows, (long long)t->graph.n_cols, (long long)t->n);
    }
    if (t->graph.values != NULL && t->graph.value_type != GRAFT_F32) {
        return gr_fail(error, GRAFT_ERR_ARG, "the graph has values of dtype %d, expected GRAFT_F32 (1)",
                       t->graph.value_type);
    }
    return gr_csr_check(&t->graph, "graph", 0, t->run.threads, error);
}

static int32_t check_dataset_shapes(const graft_trainer *t, graft_error *error)
{
    const graft_dataset *d = &t->data;
    const int64_t        rows = d->features != NULL ? t->features.n_rows : t->sparse_features.n_rows;
    const int64_t        cols = d->features != NULL ? t->features.n_cols : t->sparse_features.n_cols;

    if (d->n_features > INT32_MAX || d->n_classes > INT32_MAX) {
        return gr_fail(error, GRAFT_ERR_ARG, "%lld features and %lld classes are too many", (long long)d->n_features,
                       (long long)d->n_classes);
    }
    if (d->n_vertices < 1 || d->n_features < 1 || d->n_classes < 1) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "there are %lld vertices, %lld features and %lld classes; a model needs one of "
                       "each at least",
                       (long long)d->n_vertices, (long long)d->n_features, (long long)d->n_classes);
    }
    if ((d->features == NULL) == (d->sparse_features == NULL)) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s given; give dense features or sparse ones",
                       d->features == NULL ? "no features are" : "dense and sparse features are both");
    }
    if (rows != t->n || cols != d->n_features) {
        return gr_fail(error, GRAFT_ERR_ARG,
                       "features are %lld x %lld, but there are %lld vertices%s and %lld features", (long long)rows,
                       (long long)cols, (long long)t->n, t->over != NULL ? " in the slice" : "",
                       (long long)d->n_features);
    }
    return GRAFT_OK;
}

static int32_t check_flags(const graft_trainer *t, graft_error *error)
{
    const graft_dataset *d = &t->data;

    if (d->flags & ~(uint32_t)GRAFT_DATASET_SLICE)
        return gr_fail(error, GRAFT_ERR_ARG, "dataset: flags are 0x%x, of which some are unknown", d->flags);
    if (d->flags == 0) return GRAFT_OK;
    if (t->over == NULL)
        return gr_fail(
            error, GRAFT_ERR_UNSUPPORTED,
            "this data set is a slice of %lld of %lld vertices, from vertex %lld on; expected all of them, or "
            "a graph over ranks with it (graft_dataset.over)",
            (long long)d->n_slice, (long long)d->n_vertices, (long long)d->first_vertex);
    if (d->n_slice == t->over->n_slice && d->first_vertex == t->over->first[t->over->comm->rank]) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG,
                   "this data set is a slice of %lld vertices from vertex %lld on, the graph over ranks has %lld from "
                   "vertex %lld on here",
                   (long long)d->n_slice, (long long)d->first_vertex, (long long)t->over->n_slice,
                   (long long)t->over->first[t->over->comm->rank]);
}

/* What the run learns, as the host gives it; arrays of no rows are as if they were not given. */
static void read_run_targets(graft_trainer *t)
{
    struct gr_targets *targets = &t->run.targets;

    targets->n_classes = t->data.n_classes;
    targets->n = t->n;
    if (t->n == 0) return;
    targets->labels = t->data.labels;
    targets->targets = t->data.targets;
    targets->split = t->data.split;
}

/* Our copies of the host's structs; the arrays remain those of the host. */
int32_t gr_trainer_read_dataset(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(check_flags(t, error));
    t->n = t->over != NULL ? t->over->n_slice : t->data.n_vertices;
    t->first = t->over != NULL ? t->over->first[t->over->comm->rank] : 0;
    read_run_targets(t);
    if (t->over == NULL) GR_TRY(gr_struct_read(&t->graph, sizeof t->graph, t->data.graph, "dataset.graph", error));
    if (t->data.features != NULL) {
        GR_TRY(gr_struct_read(&t->features, sizeof t->features, t->data.features, "dataset.features", error));
    }
    if (t->data.sparse_features != NULL) {
        GR_TRY(gr_struct_read(&t->sparse_features, sizeof t->sparse_features, t->data.sparse_features,
                              "dataset.sparse_features", error));
    }
    GR_TRY(check_dataset_shapes(t, error));
    GR_TRY(check_dataset_graph(t, error));
    if (t->data.features != NULL) GR_TRY(gr_features_check(&t->features, t->first, t->run.threads, error));
    else GR_TRY(gr_csr_check(&t->sparse_features, "sparse_features", 0, t->run.threads, error));
    rc = gr_targets_check(&t->run.targets, t->first, error);
done:
    return rc;
}
