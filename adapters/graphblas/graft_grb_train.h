/* Data sets and distributed graphs of objects of GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_TRAIN_H
#define GRAFT_GRB_TRAIN_H

#include "graft_data.h"
#include "graft_graph.h"

#include "graft_grb_lend.h"

/** A data set whose arrays are lent by objects of GraphBLAS, which must not change while it is used. Ends with
 *  graft_grb_return_dataset(). The host may set further fields of `data`, such as `over`. */
typedef struct graft_grb_dataset {
    graft_dataset  data;
    graft_grb_loan graph, features, labels, split;
} graft_grb_dataset;

/** End the loans of a data set. One of zeros is legal. */
GRAFT_GRB_FN void graft_grb_return_dataset(graft_grb_dataset *dataset)
{
    graft_grb_return(&dataset->graph);
    graft_grb_return(&dataset->features);
    graft_grb_return(&dataset->labels);
    graft_grb_return(&dataset->split);
    memset(&dataset->data, 0, sizeof dataset->data);
}

/* Lend a graph: entry (v, u) means that v gathers from u. Weights are values of a floating-point type; a graph of
 * another type has none. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_graph(GrB_Matrix graph, graft_grb_loan *loan)
{
    GrB_Type type = NULL;
    GrB_Info info = GxB_Matrix_type(&type, graph);

    if (info != GrB_SUCCESS) return info;
    return graft_grb_lend_csr(graph, 0, type == GrB_FP32 || type == GrB_FP64 ? type : NULL, loan);
}

/* Lend a vector of integers as an array, in place if it is full and of this type; where it has no entry, `missing`. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_integers(GrB_Vector vector, GrB_Type type, int64_t missing, graft_grb_loan *loan)
{
    const int64_t bytes = graft_grb_bytes_of(type);
    GrB_Matrix    matrix = (GrB_Matrix)vector;
    GrB_Info      info = graft_grb_look(matrix, &loan->view);
    GrB_Index     n = (GrB_Index)loan->view.n_rows;

    if (info != GrB_SUCCESS) return info;
    if (graft_grb_is_full(&loan->view) && loan->view.type == type && !loan->view.iso) return GrB_SUCCESS;
    info = GrB_Matrix_new(&loan->made, type, n, 1);
    if (info == GrB_SUCCESS)
        info = GxB_Matrix_Option_set_INT32(loan->made, GxB_SPARSITY_CONTROL, GxB_FULL | GxB_BITMAP);
    if (info == GrB_SUCCESS)
        info = GrB_Matrix_assign_INT64(loan->made, NULL, NULL, missing, GrB_ALL, n, GrB_ALL, 1, NULL);
    if (info == GrB_SUCCESS) /* the entries of the vector, and no others */
        info = GrB_Matrix_assign(loan->made, matrix, NULL, matrix, GrB_ALL, n, GrB_ALL, 1, GrB_DESC_S);
    if (info == GrB_SUCCESS) info = graft_grb_look(loan->made, &loan->view);
    if (info == GrB_SUCCESS && loan->view.iso) {
        char *values = graft_grb_new_array(loan, 0, (int64_t)n, bytes);

        for (GrB_Index i = 0; values != NULL && i < n; i++)
            memcpy(values + i * (size_t)bytes, loan->view.x, (size_t)bytes);
        if (values == NULL) return GrB_OUT_OF_MEMORY;
        loan->view.x = values;
    }
    loan->copied = (int64_t)n * bytes;
    return info;
}

/** Lend a data set.
 *
 * \param[in]  graph     [n x N], entry (v, u): v gathers from u. Values of type FP32 or FP64 are weights.
 * \param[in]  features  [n x d]; full: dense features; sparse: sparse ones. Other types than FP32 are converted.
 * \param[in]  labels    [n] classes from 0 on; a vertex without an entry has no label. NULL: none
 * \param[in]  split     [n] GRAFT_SPLIT_...; a vertex without an entry is in no set. NULL: prediction only
 * \param[out] dataset   ends with graft_grb_return_dataset(), on failure too. n_classes is the largest label + 1. In
 *                       one process n is N; over ranks the host sets data.over, and the objects have the rows of its
 *                       slice. What had to be copied is in the field `copied` of each loan.
 * \return GrB_SUCCESS; GrB_NULL_POINTER (graph or features); GrB_DIMENSION_MISMATCH; GrB_OUT_OF_MEMORY; the code of
 *         GraphBLAS. [any-thread] Not collective. */
GRAFT_GRB_FN GrB_Info graft_grb_lend_dataset(GrB_Matrix graph, GrB_Matrix features, GrB_Vector labels, GrB_Vector split,
                                             graft_grb_dataset *dataset)
{
    graft_dataset *data = &dataset->data;
    GrB_Info       info = graph != NULL && features != NULL ? GrB_SUCCESS : GrB_NULL_POINTER;
    int64_t        n;

    memset(dataset, 0, sizeof *dataset);
    *data = (graft_dataset)GRAFT_INIT(graft_dataset);
    if (info == GrB_SUCCESS) info = graft_grb_lend_graph(graph, &dataset->graph);
    if (info != GrB_SUCCESS) return info;
    n = dataset->graph.csr.n_rows;
    info = graft_grb_lend_dense(features, 0, GrB_FP32, &dataset->features);
    if (info == GrB_SUCCESS) data->features = &dataset->features.dense;
    if (info == GrB_NO_VALUE) {
        graft_grb_return(&dataset->features);
        info = graft_grb_lend_csr(features, 0, GrB_FP32, &dataset->features);
        data->sparse_features = &dataset->features.csr;
    }
    if (info == GrB_SUCCESS && labels != NULL) info = graft_grb_lend_integers(labels, GrB_INT32, -1, &dataset->labels);
    if (info == GrB_SUCCESS && split != NULL) info = graft_grb_lend_integers(split, GrB_UINT8, 0, &dataset->split);
    if (info != GrB_SUCCESS) return info;
    if (dataset->features.view.n_rows != n || (labels != NULL && dataset->labels.view.n_rows != n) ||
        (split != NULL && dataset->split.view.n_rows != n))
        return GrB_DIMENSION_MISMATCH;
    data->n_vertices = dataset->graph.csr.n_cols;
    data->n_slice = n;
    data->n_features = dataset->features.view.n_cols;
    data->graph = &dataset->graph.csr;
    data->labels = dataset->labels.view.x;
    data->split = dataset->split.view.x;
    for (int64_t v = 0; data->labels != NULL && v < n; v++) {
        if (data->labels[v] >= data->n_classes) data->n_classes = data->labels[v] + 1;
    }
    return GrB_SUCCESS;
}

/** Create a distributed graph; see graft_graphs.create(). Each rank passes its rows.
 *
 * \param[in]  rows       [m x N], row i holds the vertices from which first_row + i gathers. Read during the call
 * \param[out] graph      unchanged on failure
 * \return the codes of graft_graphs.create(); ERR_ARG on all ranks if the matrix of one cannot be lent, with the code
 *         of GraphBLAS in native_code on that rank. Collective over the transport. [one-caller] */
GRAFT_GRB_FN int32_t graft_grb_graph(const graft_graphs *graphs, graft_context *context,
                                     const graft_transport *transport, GrB_Matrix rows, int64_t first_row,
                                     graft_graph **graph, graft_error *error)
{
    graft_grb_loan loan = { .copied = 0 };
    graft_slice    slice = GRAFT_INIT(graft_slice);
    const GrB_Info info = graft_grb_lend_graph(rows, &loan);
    int32_t        rc;

    slice.n_vertices = loan.csr.n_cols;
    slice.first_row = first_row;
    slice.rows = &loan.csr;
    /* Without a slice this rank is refused, and all the others with it: none waits for it. */
    rc = graphs->create(context, transport, info == GrB_SUCCESS ? &slice : NULL, graph, error);
    if (info != GrB_SUCCESS && error != NULL) error->native_code = (int32_t)info;
    graft_grb_return(&loan);
    return rc;
}

#endif
