/* Makes data sets and distributed graphs from objects of GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_TRAIN_H
#define GRAFT_GRB_TRAIN_H

#include "graft_data.h"
#include "graft_graph.h"

#include "graft_grb_lend.h"

#include <float.h>
#include <stdio.h>

/** A data set whose arrays are lent by objects of GraphBLAS, which must not change while it is used. Ends with
 *  graft_grb_return_dataset(). The host may set further fields of `data`, such as `over`. */
typedef struct graft_grb_dataset {
    graft_dataset  data;
    graft_grb_loan graph, features, labels, split;
    char           why[160]; /** message about an illegal value, after GrB_INVALID_VALUE */
} graft_grb_dataset;

/** End the loans of a data set. A data set of zeros is legal. */
GRAFT_GRB_FN void graft_grb_return_dataset(graft_grb_dataset *dataset)
{
    graft_grb_return(&dataset->graph);
    graft_grb_return(&dataset->features);
    graft_grb_return(&dataset->labels);
    graft_grb_return(&dataset->split);
    memset(&dataset->data, 0, sizeof dataset->data);
}

/* Describes an illegal value. */
struct graft_grb_why {
    const char *name; /* name of the matrix */
    int64_t     first_row;
    char       *text;
    size_t      size;
};

GRAFT_GRB_FN int graft_grb_fits_float(double x)
{
    return graft_grb_magnitude(x) <= graft_grb_magnitude(FLT_MAX);
}

/* Round doubles to floats, which the loan owns. A number that does not fit becomes infinite, and *misfit is the index
 * of the first such number, or `count`. GraphBLAS itself would overflow silently, or end a host that traps
 * overflows. */
GRAFT_GRB_FN GrB_Info graft_grb_round(graft_grb_loan *loan, const double *x, int64_t count, int64_t *misfit)
{
    float *floats = (float *)malloc(((size_t)count + 1) * sizeof *floats);

    *misfit = count;
    if (floats == NULL) return GrB_OUT_OF_MEMORY;
    for (int64_t i = 0; i < count; i++) {
        const int fits = graft_grb_fits_float(x[i]);

        floats[i] = fits ? (float)x[i] : (float)HUGE_VAL;
        if (!fits && *misfit == count) *misfit = i;
    }
    free(loan->owned[1]);
    loan->owned[1] = floats;
    loan->copied += count * (int64_t)sizeof *floats;
    return GrB_SUCCESS;
}

GRAFT_GRB_FN GrB_Info graft_grb_refuse_value(const struct graft_grb_why *why, int64_t row, int64_t column, double value)
{
    snprintf(why->text, why->size, "%s: row %lld, column %lld has %.17g, expected a number that FP32 can hold",
             why->name, (long long)(why->first_row + row), (long long)column, value);
    return GrB_INVALID_VALUE;
}

/* Does the same as graft_grb_lend_csr() with values of FP32. Values of FP64 are rounded to FP32. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_floats(GrB_Matrix matrix, graft_grb_loan *loan, const struct graft_grb_why *why)
{
    GrB_Type   type = NULL;
    GrB_Info   info = GxB_Matrix_type(&type, matrix);
    graft_csr *csr = &loan->csr;
    int64_t    row = 0, wrong = 0;
    double     value;

    if (info == GrB_SUCCESS) info = graft_grb_lend_csr(matrix, 0, type == GrB_FP64 ? GrB_FP64 : GrB_FP32, loan);
    if (info != GrB_SUCCESS || csr->value_type != GRAFT_F64) return info;
    value = loan->view.entries > 0 ? *(const double *)loan->view.x : 0;
    info = graft_grb_round(loan, (const double *)csr->values, loan->view.entries, &wrong);
    if (info != GrB_SUCCESS) return info;
    if (wrong < loan->view.entries && !loan->view.iso) value = ((const double *)csr->values)[wrong];
    csr->values = loan->owned[1];
    csr->value_type = GRAFT_F32;
    if (wrong == loan->view.entries) return GrB_SUCCESS;
    while (graft_grb_row(csr, row + 1) <= wrong) row++;
    return graft_grb_refuse_value(why, row, graft_grb_at(csr->col_idx, csr->index_type == GRAFT_I64, wrong), value);
}

/* Does the same as graft_grb_lend_dense() with elements of FP32. Elements of FP64 are rounded to FP32. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_dense_floats(GrB_Matrix matrix, graft_grb_loan *loan,
                                                  const struct graft_grb_why *why)
{
    GrB_Type     type = NULL;
    GrB_Info     info = GxB_Matrix_type(&type, matrix);
    graft_dense *dense = &loan->dense;
    int64_t      count, wrong = 0;

    if (info == GrB_SUCCESS) info = graft_grb_lend_dense(matrix, 0, type == GrB_FP64 ? GrB_FP64 : GrB_FP32, loan);
    if (info != GrB_SUCCESS || dense->dtype != GRAFT_F64) return info;
    count = dense->n_rows * dense->n_cols;
    info = graft_grb_round(loan, (const double *)dense->data, count, &wrong);
    if (info == GrB_SUCCESS && wrong < count)
        info = graft_grb_refuse_value(why, wrong / dense->n_cols, wrong % dense->n_cols,
                                      ((const double *)dense->data)[wrong]);
    *dense = graft_dense_in(GRAFT_F32, dense->n_rows, dense->n_cols, loan->owned[1]);
    if (loan->made != NULL) GrB_Matrix_free(&loan->made); /* frees the copy in doubles */
    free(loan->owned[0]);
    loan->owned[0] = NULL;
    return info;
}

/* Lend a graph: entry (v, u) means that v gathers from u. Values of a floating-point type are weights, of type
 * `weights`; a graph of another type has no weights. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_graph(GrB_Matrix graph, GrB_Type weights, graft_grb_loan *loan,
                                           const struct graft_grb_why *why)
{
    GrB_Type type = NULL;
    GrB_Info info = GxB_Matrix_type(&type, graph);

    if (info != GrB_SUCCESS) return info;
    if (!graft_grb_is_real(type)) return graft_grb_lend_csr(graph, 0, NULL, loan);
    return weights == GrB_FP32 ? graft_grb_lend_floats(graph, loan, why) : graft_grb_lend_csr(graph, 0, weights, loan);
}

/* The legal values of a vector, which are integers of a range. */
struct graft_grb_range {
    const char *name;
    double      least, most, missing; /* `missing` is the value of a vertex without an entry */
};

GRAFT_GRB_FN GrB_Info graft_grb_check_integer(const struct graft_grb_range *range, double value, GrB_Index vertex,
                                              char *why, size_t size)
{
    if (graft_grb_fits_float(value) && value >= range->least && value <= range->most && value == (double)(int64_t)value)
        return GrB_SUCCESS;
    snprintf(why, size, "%s: vertex %llu has %.17g, expected an integer from %.0f to %.0f", range->name,
             (unsigned long long)vertex, value, range->least, range->most);
    return GrB_INVALID_VALUE;
}

GRAFT_GRB_FN void graft_grb_set_integer(void *array, int wide, GrB_Index index, double value)
{
    if (wide) ((int32_t *)array)[index] = (int32_t)value;
    else ((uint8_t *)array)[index] = (uint8_t)value;
}

/* Check the entries of a vector, and write them to an array of INT32 or UINT8. */
GRAFT_GRB_FN GrB_Info graft_grb_copy_integers(GrB_Vector vector, int wide, const struct graft_grb_range *range,
                                              int64_t entries, void *array, char *why, size_t size)
{
    GrB_Index  count = (GrB_Index)entries;
    GrB_Index *vertices = (GrB_Index *)malloc((count + 1) * sizeof *vertices);
    double    *values = (double *)malloc((count + 1) * sizeof *values);
    GrB_Info   info = vertices != NULL && values != NULL ? GrB_SUCCESS : GrB_OUT_OF_MEMORY;

    if (info == GrB_SUCCESS) info = GrB_Vector_extractTuples_FP64(vertices, values, &count, vector);
    for (GrB_Index e = 0; info == GrB_SUCCESS && e < count; e++) {
        info = graft_grb_check_integer(range, values[e], vertices[e], why, size);
        if (info == GrB_SUCCESS) graft_grb_set_integer(array, wide, vertices[e], values[e]);
    }
    free(vertices);
    free(values);
    return info;
}

/* Lend a vector of integers as an array of INT32 or UINT8. It is lent in place if it is full and of this type. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_integers(GrB_Vector vector, GrB_Type type, const struct graft_grb_range *range,
                                              graft_grb_loan *loan, char *why, size_t size)
{
    const int       wide = type == GrB_INT32;
    graft_grb_view *view = &loan->view;
    GrB_Info        info = graft_grb_look((GrB_Matrix)vector, view);
    void           *array;

    if (info != GrB_SUCCESS) return info;
    if (graft_grb_is_full(view) && view->type == type && !view->iso) {
        for (int64_t v = 0; info == GrB_SUCCESS && v < view->n_rows; v++)
            info = graft_grb_check_integer(range, wide ? ((const int32_t *)view->x)[v] : ((const uint8_t *)view->x)[v],
                                           (GrB_Index)v, why, size);
        return info;
    }
    array = graft_grb_new_array(loan, 0, view->n_rows, wide ? 4 : 1);
    if (array == NULL) return GrB_OUT_OF_MEMORY;
    for (int64_t v = 0; v < view->n_rows; v++) graft_grb_set_integer(array, wide, (GrB_Index)v, range->missing);
    view->x = array;
    return graft_grb_copy_integers(vector, wide, range, view->entries, array, why, size);
}

/** Lend a data set.
 *
 * \param[in]  graph     [n x N], entry (v, u): v gathers from u. Values of type FP32 or FP64 are weights: those of FP64
 *                       are rounded to FP32, in which Graft trains; values of other types are ignored. For weights
 *                       that are a single 1 see graft_grb_expand_ones().
 * \param[in]  features  [n x d]; full: dense features; sparse: sparse ones. Other types than FP32 are converted.
 * \param[in]  labels    [n] classes from 0 on; a vertex without an entry, or with -1, has no label. NULL: none
 * \param[in]  split     [n] GRAFT_SPLIT_...; a vertex without an entry is in no set. NULL: prediction only
 * \param[out] dataset   ends with graft_grb_return_dataset(), on failure too. n_classes is the largest label + 1. In
 *                       one process n is N; over ranks the host sets data.over, and the objects have the rows of its
 *                       slice. Field `copied` of each loan counts copied bytes.
 * \return GrB_SUCCESS; GrB_NULL_POINTER (graph or features); GrB_DIMENSION_MISMATCH; GrB_OUT_OF_MEMORY;
 *         GrB_INVALID_VALUE (an illegal label or part of the split: dataset->why names vertex and value; a weight or
 *         feature of FP64 that FP32 cannot hold: row, column and value); the code of GraphBLAS. [any-thread] Not
 *         collective. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_dataset(GrB_Matrix graph, GrB_Matrix features, GrB_Vector labels, GrB_Vector split,
                                             graft_grb_dataset *dataset)
{
    const struct graft_grb_range classes = { "labels", -1, INT32_MAX - 1, -1 };
    const struct graft_grb_range sets = { "split", GRAFT_SPLIT_NONE, GRAFT_SPLIT_TEST, GRAFT_SPLIT_NONE };
    const struct graft_grb_why   graph_why = { "graph", 0, dataset->why, sizeof dataset->why };
    const struct graft_grb_why   features_why = { "features", 0, dataset->why, sizeof dataset->why };
    graft_dataset               *data = &dataset->data;
    GrB_Info                     info = graph != NULL && features != NULL ? GrB_SUCCESS : GrB_NULL_POINTER;
    int64_t                      n;

    memset(dataset, 0, sizeof *dataset);
    *data = GRAFT_INIT(graft_dataset);
    if (info == GrB_SUCCESS) info = graft_grb_lend_graph(graph, GrB_FP32, &dataset->graph, &graph_why);
    if (info != GrB_SUCCESS) return info;
    n = dataset->graph.csr.n_rows;
    info = graft_grb_lend_dense_floats(features, &dataset->features, &features_why);
    if (info == GrB_SUCCESS) data->features = &dataset->features.dense;
    if (info == GrB_NO_VALUE) {
        graft_grb_return(&dataset->features);
        info = graft_grb_lend_floats(features, &dataset->features, &features_why);
        data->sparse_features = &dataset->features.csr;
    }
    if (info == GrB_SUCCESS && labels != NULL)
        info =
            graft_grb_lend_integers(labels, GrB_INT32, &classes, &dataset->labels, dataset->why, sizeof dataset->why);
    if (info == GrB_SUCCESS && split != NULL)
        info = graft_grb_lend_integers(split, GrB_UINT8, &sets, &dataset->split, dataset->why, sizeof dataset->why);
    if (info != GrB_SUCCESS) return info;
    if (dataset->features.view.n_rows != n || (labels != NULL && dataset->labels.view.n_rows != n) ||
        (split != NULL && dataset->split.view.n_rows != n))
        return GrB_DIMENSION_MISMATCH;
    data->n_vertices = dataset->graph.csr.n_cols;
    data->n_slice = n;
    data->n_features = dataset->features.view.n_cols;
    data->graph = &dataset->graph.csr;
    data->labels = (const int32_t *)dataset->labels.view.x;
    data->split = (const uint8_t *)dataset->split.view.x;
    for (int64_t v = 0; data->labels != NULL && v < n; v++) {
        if (data->labels[v] >= data->n_classes) data->n_classes = data->labels[v] + 1;
    }
    return GrB_SUCCESS;
}

/** Give a lent graph without weights an array of ones, `wide`: of FP64, else of FP32. A matrix whose weights GraphBLAS
 *  holds as a single 1 is lent without weights, so that products need not read them; a trainer that shall take other
 *  weights in update() needs them: graft_grb_expand_ones(&dataset->graph, 0) before create(), or before update() if
 *  the new weights are such a 1. Memory: one weight for each entry.
 * \return GrB_SUCCESS, also if there are weights or no entries; GrB_OUT_OF_MEMORY. [any-thread] Not collective. */
GRAFT_GRB_FN GrB_Info graft_grb_expand_ones(graft_grb_loan *loan, int wide)
{
    float  *floats;
    double *doubles;

    if (loan->csr.values != NULL || loan->view.entries == 0) return GrB_SUCCESS;
    loan->csr.values = graft_grb_new_array(loan, 1, loan->view.entries, wide ? 8 : 4);
    if (loan->csr.values == NULL) return GrB_OUT_OF_MEMORY;
    loan->csr.value_type = wide ? GRAFT_F64 : GRAFT_F32;
    floats = (float *)loan->owned[1];
    doubles = (double *)loan->owned[1];
    for (int64_t e = 0; e < loan->view.entries; e++) {
        if (wide) doubles[e] = 1;
        else floats[e] = 1;
    }
    return GrB_SUCCESS;
}

/** Create a distributed graph; see graft_graph_api.create(). Each rank passes its rows.
 *
 * \param[in]  rows       [m x N], row i holds the vertices from which first_row + i gathers. Read during the call.
 *                        Values of type FP32 or FP64 are weights; values of other types are ignored
 * \param[in]  weights    GrB_FP32: the type of the weights, as training requires; or GrB_FP64, for products in double
 * \param[out] graph      unchanged on failure
 * \return the codes of graft_graph_api.create(); ERR_FORMAT on all ranks if FP32 cannot hold a weight: the message has
 *         row and column, and on this rank the value too; ERR_ARG on all ranks if the matrix of one rank cannot be
 *         lent, with the code of GraphBLAS in native_code on this rank. Collective over the transport. [one-caller] */
GRAFT_GRB_FN int32_t graft_grb_graph_of(const graft_graph_api *graphs, graft_context *context,
                                        const graft_transport *transport, GrB_Matrix rows, GrB_Type weights,
                                        int64_t first_row, graft_graph **graph, graft_error *error)
{
    graft_grb_loan             loan;
    graft_slice                slice = GRAFT_INIT(graft_slice);
    char                       text[160] = "";
    const struct graft_grb_why why = { "rows", first_row, text, sizeof text };
    GrB_Type                   type = NULL;
    GrB_Info                   info = graft_grb_is_real(weights) ? GxB_Matrix_type(&type, rows) : GrB_DOMAIN_MISMATCH;
    int32_t                    rc;

    memset(&loan, 0, sizeof loan);
    if (info == GrB_SUCCESS) info = graft_grb_lend_graph(rows, weights, &loan, &why);
    if (info == GrB_SUCCESS && graft_grb_is_real(type)) info = graft_grb_expand_ones(&loan, weights == GrB_FP64);
    slice.n_vertices = loan.csr.n_cols;
    slice.first_row = first_row;
    slice.rows = &loan.csr;
    /* Without a slice, or with an infinite weight, create() fails on this rank and therefore on all others, so that no
     * rank waits. */
    rc = graphs->create(context, transport, info == GrB_SUCCESS || text[0] != '\0' ? &slice : NULL, graph, error);
    if (info != GrB_SUCCESS && error != NULL) error->native_code = (int32_t)info;
    if (text[0] != '\0' && error != NULL) snprintf(error->message, sizeof error->message, "%s", text);
    graft_grb_return(&loan);
    return rc;
}

/** Does the same as graft_grb_graph_of() with weights of FP32. */
GRAFT_GRB_FN int32_t graft_grb_graph(const graft_graph_api *graphs, graft_context *context,
                                     const graft_transport *transport, GrB_Matrix rows, int64_t first_row,
                                     graft_graph **graph, graft_error *error)
{
    return graft_grb_graph_of(graphs, context, transport, rows, GrB_FP32, first_row, graph, error);
}

#endif
