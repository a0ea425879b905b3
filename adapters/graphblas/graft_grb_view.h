/* Reads the arrays of a GrB_Matrix by means of GxB_Iterator, the only public struct of GraphBLAS that has pointers to
 * them. Attaching an iterator finishes pending work, as any use of the matrix does, and changes nothing else, so
 * several threads may view a matrix at the same time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_VIEW_H
#define GRAFT_GRB_VIEW_H

#ifndef GRAFT_GRB_CALLS /* defined if the functions of GraphBLAS are found at run time */
#if __has_include(<GraphBLAS.h>)
#include <GraphBLAS.h>
#else
#include <suitesparse/GraphBLAS.h>
#endif
#endif

#include "graft_matrix.h"

#include <math.h>
#include <string.h>

#define GRAFT_GRB_FN static inline __attribute__((unused))

/* A loop over the elements of a matrix runs in parallel if the host's unit is compiled with OpenMP. */
#ifdef _OPENMP
#define GRAFT_GRB_PRAGMA(text) _Pragma(#text)
#define GRAFT_GRB_PARALLEL(team, more) GRAFT_GRB_PRAGMA(omp parallel for num_threads(team) more)
#else
#define GRAFT_GRB_PARALLEL(team, more) (void)(team);
#endif

/* One thread is used for each chunk of this number of operations, which is the default chunk of GraphBLAS. */
enum { GRAFT_GRB_CHUNK = 65536 };

GRAFT_GRB_FN int32_t graft_grb_team(int32_t most, int64_t operations)
{
    const int64_t wanted = operations / GRAFT_GRB_CHUNK;

    if (wanted <= 1 || most <= 1) return 1;
    return wanted < most ? (int32_t)wanted : most;
}

/* The largest number of threads of a call: the limit of GraphBLAS, in version 7 also the limit of the descriptor; at
 * least 1. */
GRAFT_GRB_FN int32_t graft_grb_threads(GrB_Descriptor descriptor)
{
    int32_t threads = 0, fewer = 0;

    if (GxB_Global_Option_get_INT32(GxB_GLOBAL_NTHREADS, &threads) != GrB_SUCCESS || threads < 1) threads = 1;
#if GxB_IMPLEMENTATION_MAJOR == 7
    if (descriptor != NULL && GxB_Desc_get_INT32(descriptor, GxB_DESCRIPTOR_NTHREADS, &fewer) == GrB_SUCCESS &&
        fewer > 0 && fewer < threads)
        threads = fewer;
#else
    (void)descriptor, (void)fewer;
#endif
    return threads;
}

/** The arrays of a matrix, which belong to GraphBLAS and are valid until the matrix changes. A "vector" is a row of a
 *  matrix held by row, or a column of a matrix held by column. */
typedef struct graft_grb_view {
    int64_t       n_rows, n_cols;
    int64_t       length;    /**< number of elements of a vector */
    int64_t       n_vectors; /** number of vectors that have a pointer: all, or fewer if hypersparse */
    int64_t       entries;   /** number of entries that are present */
    int32_t       sparsity;  /**< GxB_HYPERSPARSE, GxB_SPARSE, GxB_BITMAP or GxB_FULL */
    int32_t       by_col;
    int32_t       iso;                    /**< whether all entries have the value x[0] */
    int32_t       wide_p, wide_h, wide_i; /**< whether the integers of each array have 64 bits */
    GrB_Type      type;
    int32_t       value_bytes; /** size of a value in bytes; 0 if the type is not built in */
    const void   *p, *h, *i, *x;
    const int8_t *b;
} graft_grb_view;

GRAFT_GRB_FN int64_t graft_grb_at(const void *array, int wide, int64_t index)
{
    return wide ? ((const int64_t *)array)[index] : (int64_t)((const uint32_t *)array)[index];
}

GRAFT_GRB_FN void graft_grb_read_iterator(const struct GB_Iterator_opaque *iterator, graft_grb_view *view)
{
    view->length = iterator->avlen;
    view->n_vectors = iterator->anvec;
    view->sparsity = iterator->A_sparsity;
    view->iso = iterator->iso;
    view->by_col = iterator->by_col;
    view->x = iterator->Ax;
    view->b = iterator->Ab;
#if GxB_IMPLEMENTATION_MAJOR >= 10
    view->wide_p = iterator->Ap32 == NULL;
    view->wide_h = iterator->Ah32 == NULL;
    view->wide_i = iterator->Ai32 == NULL;
    view->p = view->wide_p ? (const void *)iterator->Ap64 : iterator->Ap32;
    view->h = view->wide_h ? (const void *)iterator->Ah64 : iterator->Ah32;
    view->i = view->wide_i ? (const void *)iterator->Ai64 : iterator->Ai32;
#else
    view->wide_p = view->wide_h = view->wide_i = 1;
    view->p = iterator->Ap;
    view->h = iterator->Ah;
    view->i = iterator->Ai;
#endif
}

GRAFT_GRB_FN int graft_grb_bytes_of(GrB_Type type)
{
    if (type == GrB_BOOL || type == GrB_INT8 || type == GrB_UINT8) return 1;
    if (type == GrB_INT16 || type == GrB_UINT16) return 2;
    if (type == GrB_INT32 || type == GrB_UINT32 || type == GrB_FP32) return 4;
    if (type == GrB_INT64 || type == GrB_UINT64 || type == GrB_FP64) return 8;
    return 0; /* a type that is not built in */
}

/* The bits of |x|. As integers they have the order of the numbers, with infinity after them and NaN last. Compilers may
 * compare numbers, by < and by isless(), with instructions that raise an exception for NaN, which would end a host that
 * traps it. Comparisons of bits raise none. */
GRAFT_GRB_FN int64_t graft_grb_magnitude(double x)
{
    int64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits & INT64_MAX;
}

/** View a matrix, or a vector that was cast to one, as SuiteSparse:GraphBLAS allows.
 * \return the code of GraphBLAS. [any-thread] */
GRAFT_GRB_FN GrB_Info graft_grb_look(GrB_Matrix matrix, graft_grb_view *view)
{
    GxB_Iterator iterator = NULL;
    GrB_Index    n_rows = 0, n_cols = 0, entries = 0;
    GrB_Info     info = GxB_Iterator_new(&iterator);

    memset(view, 0, sizeof *view);
    if (info == GrB_SUCCESS) info = GxB_Matrix_Iterator_attach(iterator, matrix, NULL);
    if (info == GrB_SUCCESS) graft_grb_read_iterator(iterator, view);
    if (iterator != NULL) GxB_Iterator_free(&iterator); /* version 7 does not accept NULL */
    if (info == GrB_SUCCESS) info = GrB_Matrix_nrows(&n_rows, matrix);
    if (info == GrB_SUCCESS) info = GrB_Matrix_ncols(&n_cols, matrix);
    if (info == GrB_SUCCESS) info = GrB_Matrix_nvals(&entries, matrix);
    if (info == GrB_SUCCESS) info = GxB_Matrix_type(&view->type, matrix);
    if (info == GrB_SUCCESS) view->value_bytes = graft_grb_bytes_of(view->type);
    view->n_rows = (int64_t)n_rows;
    view->n_cols = (int64_t)n_cols;
    view->entries = (int64_t)entries;
    return info;
}

GRAFT_GRB_FN int graft_grb_is_sparse(const graft_grb_view *view)
{
    return view->sparsity == GxB_SPARSE || view->sparsity == GxB_HYPERSPARSE;
}

/** The number of elements, but at most INT64_MAX, because an iso or hypersparse matrix may have more elements than fit
 * into memory. */
GRAFT_GRB_FN int64_t graft_grb_elements(const graft_grb_view *view)
{
    int64_t elements;

    return __builtin_mul_overflow(view->n_rows, view->n_cols, &elements) ? INT64_MAX : elements;
}

/** Whether every element is an entry: the matrix is full, or a bitmap without a gap. */
GRAFT_GRB_FN int graft_grb_is_full(const graft_grb_view *view)
{
    return !graft_grb_is_sparse(view) && view->entries == graft_grb_elements(view);
}

/** Whether the vectors of a matrix are columns (`by_col`) or rows. A full or bitmap matrix of one row or column is
 *  both. */
GRAFT_GRB_FN int graft_grb_is_held(const graft_grb_view *view, int by_col)
{
    return view->by_col == by_col || (!graft_grb_is_sparse(view) && (view->n_rows == 1 || view->n_cols == 1));
}

/** Whether value number `index` is true, as a mask reads it: a bit of it is set, so -0.0 is true. Uses no object of
 *  GraphBLAS, so any thread of a parallel loop may call it. */
GRAFT_GRB_FN int graft_grb_is_true(const graft_grb_view *view, int64_t index)
{
    const int64_t at = view->iso ? 0 : index;

    switch (view->value_bytes) {
    case 1: return ((const int8_t *)view->x)[at] != 0;
    case 2: return ((const int16_t *)view->x)[at] != 0;
    case 4: return ((const int32_t *)view->x)[at] != 0;
    default: return ((const int64_t *)view->x)[at] != 0;
    }
}

#endif
