/* Kernel "graphblas": graft.mxm on GrB_mxm of SuiteSparse:GraphBLAS.
 *
 * The fast product of GraphBLAS is Z (+)= A B with Z full, no mask, and the accumulator of the semiring ("saxpy5");
 * every masked form is slower than this product and a pass over Z. So Z is initialised with the identity, GrB_mxm
 * accumulates into it, which is exact, and mask, scale and accumulator of the call are applied afterwards (epilogue.c).
 *
 * Memory. GraphBLAS may free a matrix that it writes, if it runs out of memory or chooses another method, e.g. for a
 * diagonal A or a single entry. So Z belongs to GraphBLAS, and the host's C is never passed to it. The inputs A and B
 * are imported by pack and exported by unpack; none of their arrays is freed in between.
 * SPDX-License-Identifier: Apache-2.0 */
#define GRAFT_GRB_CALLS 0 /* this file works with all versions */
#include "common/mode.h"
#include "common/module.h"
#include "epilogue.h"
#include "graphblas/calls.h"
#include "start.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct prepared {
    const struct graphblas *graphblas;
    int64_t                *columns; /* columns, sorted in each row; NULL if the columns of the csr can be used */
    void                   *values;  /* values of the sorted entries; NULL if the values of the csr can be used */
    uint64_t                columns_bytes, values_bytes;
    GrB_Matrix              weighted; /* matrix A; NULL if it has no values */
    GrB_Matrix              ones[2];  /* A with all values 1, in float and in double */
    float                   one_f32;  /* the values of the matrices `ones` */
    double                  one_f64;
    GrB_Matrix              z; /* full matrix [rows x z_width] of type z_dtype; NULL until the first run */
    int64_t                 z_width;
    graft_dtype             z_dtype;
    GrB_Index               z_bytes; /* capacity of its array in bytes; 0 if it is unknown */
    GrB_Descriptor          descriptor;
};

__attribute__((format(printf, 4, 5))) static int32_t fail(graft_error *error, int32_t code, GrB_Info info,
                                                          const char *format, ...)
{
    va_list list;

    error->code = code;
    error->native_code = info;
    va_start(list, format);
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return code;
}

/* Report a failed call of GraphBLAS. */
static int32_t foreign(graft_error *error, GrB_Info info, const char *call)
{
    if (info == GrB_SUCCESS) return GRAFT_OK;
    if (info == GrB_OUT_OF_MEMORY) return fail(error, GRAFT_ERR_NOMEM, info, "GraphBLAS is out of memory in %s", call);
    return fail(error, GRAFT_ERR_MODULE, info, "GraphBLAS returned %d from %s", (int)info, call);
}

/* Make the state of the kernel. GraphBLAS is not started, because a module may be loaded and never used. */
static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    struct graphblas *graphblas = host->allocate(host->self, sizeof *graphblas, 64);

    if (graphblas == NULL) return fail(error, GRAFT_ERR_NOMEM, 0, "no memory for the state of kernel graphblas");
    memset(graphblas, 0, sizeof *graphblas);
    graphblas->host = host;
    *state = graphblas;
    return GRAFT_OK;
}

static void fini(void *state)
{
    struct graphblas *graphblas = state;

    if (graphblas != NULL) graphblas->host->deallocate(graphblas->host->self, graphblas, sizeof *graphblas, 64);
}

static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state, (void)a;
    if (args->winner != NULL) snprintf(why, capacity, "GrB_mxm does not report winners");
    else if (args->epilogue != NULL) snprintf(why, capacity, "GrB_mxm has no epilogue");
    else if (args->b->dtype == GRAFT_BF16) snprintf(why, capacity, "GraphBLAS has no bfloat16");
    else return GRAFT_OK;
    return GRAFT_ERR_UNSUPPORTED;
}

/* Unpack the arrays of a CSR matrix and free the matrix. Freeing it together with its arrays would free the host's
 * arrays. If unpacking runs out of memory, only the small handle is leaked. */
static void return_a(const struct grb_calls *grb_calls, GrB_Matrix matrix)
{
    GrB_Index *row_ptr, *columns, sizes[3];
    void      *values;
    bool       iso, jumbled;

    if (matrix == NULL) return;
    if (GxB_Matrix_unpack_CSR(matrix, &row_ptr, &columns, &values, &sizes[0], &sizes[1], &sizes[2], &iso, &jumbled,
                              NULL) == GrB_SUCCESS)
        GrB_Matrix_free(&matrix);
}

static void release(void *state, void *prepared)
{
    const struct graphblas *graphblas = state;
    const struct grb_calls *grb_calls = &graphblas->calls;
    const graft_host       *host = graphblas->host;
    struct prepared        *p = prepared;

    if (p == NULL) return;
    return_a(grb_calls, p->weighted);
    return_a(grb_calls, p->ones[0]);
    return_a(grb_calls, p->ones[1]);
    GrB_Matrix_free(&p->z);
    GrB_Descriptor_free(&p->descriptor);
    if (p->columns != NULL) host->deallocate(host->self, p->columns, p->columns_bytes, 64);
    if (p->values != NULL) host->deallocate(host->self, p->values, p->values_bytes, 64);
    host->deallocate(host->self, p, sizeof *p, 64);
}

static int64_t column_of(const graft_csr *csr, int64_t e)
{
    return csr->index_type == GRAFT_I32 ? ((const int32_t *)csr->col_idx)[e] : ((const int64_t *)csr->col_idx)[e];
}

static int is_ascending(const graft_csr *csr, int64_t row)
{
    for (int64_t e = csr->row_ptr[row] + 1; e < csr->row_ptr[row + 1]; e++) {
        if (column_of(csr, e) <= column_of(csr, e - 1)) return 0;
    }
    return 1;
}

/* The entries of one row that are being sorted. The values may be NULL. */
struct entries {
    int64_t *columns;
    char    *values;
    size_t   value_bytes;
};

static void swap(const struct entries *entries, int64_t i, int64_t j)
{
    const int64_t column = entries->columns[i];
    char          value[sizeof(double)];

    entries->columns[i] = entries->columns[j];
    entries->columns[j] = column;
    if (entries->values == NULL) return;
    memcpy(value, entries->values + (size_t)i * entries->value_bytes, entries->value_bytes);
    memcpy(entries->values + (size_t)i * entries->value_bytes, entries->values + (size_t)j * entries->value_bytes,
           entries->value_bytes);
    memcpy(entries->values + (size_t)j * entries->value_bytes, value, entries->value_bytes);
}

static void sift_down(const struct entries *entries, int64_t root, int64_t count)
{
    for (int64_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
        if (child + 1 < count && entries->columns[child + 1] > entries->columns[child]) child++;
        if (entries->columns[child] <= entries->columns[root]) return;
        swap(entries, child, root);
        root = child;
    }
}

/* Sort a row by heap sort, which needs no extra memory, and O(n log n) time in the worst case. */
static void sort_row(const struct entries *entries, int64_t count)
{
    for (int64_t root = count / 2 - 1; root >= 0; root--) sift_down(entries, root, count);
    for (int64_t last = count - 1; last > 0; last--) {
        swap(entries, 0, last);
        sift_down(entries, 0, last);
    }
}

/* Copy the entries into p->columns and p->values, sorted within each row. */
static int32_t copy_sorted(struct prepared *p, const graft_csr *csr, graft_error *error)
{
    const size_t value_bytes = csr->value_type == GRAFT_F32 ? sizeof(float) : sizeof(double);

    if (p->values != NULL) memcpy(p->values, csr->values, (size_t)csr->row_ptr[csr->n_rows] * value_bytes);
    for (int64_t row = 0; row < csr->n_rows; row++) {
        const int64_t        begin = csr->row_ptr[row], count = csr->row_ptr[row + 1] - begin;
        const struct entries entries = {
            .columns = p->columns + begin,
            .values = p->values != NULL ? (char *)p->values + (size_t)begin * value_bytes : NULL,
            .value_bytes = value_bytes,
        };

        for (int64_t e = 0; e < count; e++) entries.columns[e] = column_of(csr, begin + e);
        if (is_ascending(csr, row)) continue;
        sort_row(&entries, count);
        for (int64_t e = 1; e < count; e++) {
            if (entries.columns[e] != entries.columns[e - 1]) continue;
            return fail(error, GRAFT_ERR_UNSUPPORTED, 0,
                        "row %lld has column %lld more than once, which a GrB_Matrix cannot represent", (long long)row,
                        (long long)entries.columns[e]);
        }
    }
    return GRAFT_OK;
}

/* Convert arrays that GraphBLAS cannot use: 32-bit columns, and unsorted rows. */
static int32_t arrange(const graft_host *host, struct prepared *p, const graft_csr *csr, graft_error *error)
{
    const uint64_t entries = (uint64_t)csr->row_ptr[csr->n_rows];
    int            ascending = 1;

    for (int64_t row = 0; ascending && row < csr->n_rows; row++) ascending = is_ascending(csr, row);
    if (entries == 0 || (ascending && csr->index_type == GRAFT_I64)) return GRAFT_OK;
    p->columns_bytes = entries * sizeof *p->columns;
    p->columns = host->allocate(host->self, p->columns_bytes, 64);
    if (p->columns != NULL && !ascending && csr->values != NULL) {
        p->values_bytes = entries * (csr->value_type == GRAFT_F32 ? sizeof(float) : sizeof(double));
        p->values = host->allocate(host->self, p->values_bytes, 64);
    }
    if (p->columns == NULL || (p->values == NULL && p->values_bytes > 0)) {
        return fail(error, GRAFT_ERR_NOMEM, 0, "no memory for %llu sorted entries", (unsigned long long)entries);
    }
    return copy_sorted(p, csr, error);
}

/* Create a matrix of the entries with these values by packing borrowed arrays. */
static GrB_Info lend_a(GrB_Matrix *matrix, GrB_Type type, const struct prepared *p, const graft_csr *csr,
                       const void *values, uint64_t values_bytes, bool iso)
{
    const struct grb_calls *grb_calls = &p->graphblas->calls;
    GrB_Index              *row_ptr = (GrB_Index *)(uintptr_t)csr->row_ptr;
    GrB_Index              *columns = (GrB_Index *)(uintptr_t)(p->columns != NULL ? p->columns : csr->col_idx);
    void                   *borrowed = (void *)(uintptr_t)values;
    const GrB_Index         entries = row_ptr[csr->n_rows];
    GrB_Info                info = GrB_Matrix_new(matrix, type, (GrB_Index)csr->n_rows, (GrB_Index)csr->n_cols);

    if (info == GrB_SUCCESS) {
        info = GxB_Matrix_pack_CSR(*matrix, &row_ptr, &columns, &borrowed,
                                   ((GrB_Index)csr->n_rows + 1) * sizeof *csr->row_ptr, entries * sizeof *p->columns,
                                   values_bytes, iso, false, NULL);
    }
    if (info != GrB_SUCCESS) GrB_Matrix_free(matrix);
    return info;
}

static int32_t make_matrices(struct prepared *p, const graft_csr *csr, graft_error *error)
{
    const struct grb_calls *grb_calls = &p->graphblas->calls;
    const int               wide = csr->value_type == GRAFT_F64;
    GrB_Info                info = GrB_Descriptor_new(&p->descriptor);

    p->one_f32 = 1;
    p->one_f64 = 1;
    if (csr->row_ptr[csr->n_rows] == 0) return foreign(error, info, "GrB_Descriptor_new");
    if (info == GrB_SUCCESS) info = lend_a(&p->ones[0], GrB_FP32, p, csr, &p->one_f32, sizeof p->one_f32, true);
    if (info == GrB_SUCCESS) info = lend_a(&p->ones[1], GrB_FP64, p, csr, &p->one_f64, sizeof p->one_f64, true);
    if (info == GrB_SUCCESS && csr->values != NULL) {
        info = lend_a(&p->weighted, wide ? GrB_FP64 : GrB_FP32, p, csr, p->values != NULL ? p->values : csr->values,
                      (uint64_t)csr->row_ptr[csr->n_rows] * (wide ? sizeof(double) : sizeof(float)), false);
    }
    return foreign(error, info, "packing A");
}

static int32_t prepare(void *state, const graft_csr *csr, void **prepared, int64_t *bytes, graft_error *error)
{
    struct graphblas *graphblas = state;
    const graft_host *host = graphblas->host;
    struct prepared  *p;
    int32_t           rc = graphblas_start(graphblas, error);

    if (rc < 0) return rc;
    p = host->allocate(host->self, sizeof *p, 64);
    if (p == NULL) return fail(error, GRAFT_ERR_NOMEM, 0, "no memory for a prepared matrix");
    memset(p, 0, sizeof *p);
    p->graphblas = graphblas;
    rc = arrange(host, p, csr, error);
    if (rc == GRAFT_OK) rc = make_matrices(p, csr, error);
    if (rc < 0) {
        release(state, p);
        return rc;
    }
    *bytes += (int64_t)(sizeof *p + p->columns_bytes + p->values_bytes);
    *prepared = p;
    return GRAFT_OK;
}

static int is_sum(graft_semiring semiring)
{
    return semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_PLUS_SECOND;
}

static int is_weighted(const struct prepared *p, graft_semiring semiring)
{
    return p->weighted != NULL &&
           (semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MIN_TIMES);
}

/* The semiring and the accumulator of GrB_mxm. A sum without weights is computed as a product with ones, because
 * GraphBLAS vectorises only plus_times. */
struct operation {
    GrB_Matrix   a;
    GrB_Semiring semiring;
    GrB_BinaryOp add; /* operator that accumulates into Z */
};

static struct operation operation_of(const struct prepared *p, const graft_mxm_args *args)
{
    const struct grb_calls *grb_calls = &p->graphblas->calls;
    const GrB_Semiring      times[3][2] = { { GrB_PLUS_TIMES_SEMIRING_FP32, GrB_PLUS_TIMES_SEMIRING_FP64 },
                                            { GrB_MAX_TIMES_SEMIRING_FP32, GrB_MAX_TIMES_SEMIRING_FP64 },
                                            { GrB_MIN_TIMES_SEMIRING_FP32, GrB_MIN_TIMES_SEMIRING_FP64 } };
    const GrB_Semiring      second[3][2] = { { GrB_PLUS_TIMES_SEMIRING_FP32, GrB_PLUS_TIMES_SEMIRING_FP64 },
                                             { GxB_MAX_SECOND_FP32, GxB_MAX_SECOND_FP64 },
                                             { GxB_MIN_SECOND_FP32, GxB_MIN_SECOND_FP64 } };
    const GrB_BinaryOp      adds[3][2] = { { GrB_PLUS_FP32, GrB_PLUS_FP64 },
                                           { GrB_MAX_FP32, GrB_MAX_FP64 },
                                           { GrB_MIN_FP32, GrB_MIN_FP64 } };
    const int               monoid = (args->semiring - GRAFT_PLUS_TIMES) / 2, wide = args->c->dtype == GRAFT_F64;
    const int               weighted = is_weighted(p, args->semiring);

    return (struct operation){
        .a = weighted ? p->weighted : p->ones[wide],
        .semiring = weighted ? times[monoid][wide] : second[monoid][wide],
        .add = adds[monoid][wide],
    };
}

/* Whether a row has a NaN or, if asked for, an infinity. */
static int is_suspect(const graft_dense *dense, int64_t row, int infinities)
{
    int found = 0;

    if (dense->dtype == GRAFT_F32) {
        const float *x = (const float *)dense->data + row * dense->stride;

        for (int64_t j = 0; j < dense->n_cols; j++) found |= isnan(x[j]) | (infinities & (fabsf(x[j]) > FLT_MAX));
    } else {
        const double *x = (const double *)dense->data + row * dense->stride;

        for (int64_t j = 0; j < dense->n_cols; j++) found |= isnan(x[j]) | (infinities & (fabs(x[j]) > DBL_MAX));
    }
    return found;
}

/* Refuse products with NaN. max and min of GraphBLAS ignore NaN, and ours propagate it; and a weight of 0 turns an
 * infinity into NaN. */
static int32_t refuse_nan(const struct prepared *p, const graft_mxm_args *args, graft_error *error)
{
    const int     weighted = is_weighted(p, args->semiring);
    const mode_fp mode = mode_get();
    int64_t       bad = INT64_MAX;

    if (is_sum(args->semiring)) return GRAFT_OK;
#pragma omp parallel for num_threads(args->threads) reduction(min : bad) if (args->threads > 1)
    for (int64_t row = 0; row < args->b->n_rows; row++) {
        const mode_fp own = mode_swap(mode);

        if (row < bad && is_suspect(args->b, row, weighted)) bad = row;
        mode_set(own);
    }
    if (bad == INT64_MAX) return GRAFT_OK;
    return fail(error, GRAFT_ERR_UNSUPPORTED, 0, "its max and min would ignore a NaN from row %lld of B",
                (long long)bad);
}

static GrB_Info new_dense(const struct grb_calls *grb_calls, GrB_Matrix *matrix, graft_dtype dtype, int64_t n_rows,
                          int64_t n_cols)
{
    return GrB_Matrix_new(matrix, dtype == GRAFT_F32 ? GrB_FP32 : GrB_FP64, (GrB_Index)n_rows, (GrB_Index)n_cols);
}

static double identity_of(graft_semiring semiring)
{
    if (is_sum(semiring)) return 0;
    return semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MAX_SECOND ? -INFINITY : INFINITY;
}

static void fill(void *array, graft_dtype dtype, int64_t count, double value, int threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        if (dtype == GRAFT_F32) {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < count; i++) ((float *)array)[i] = (float)value;
        } else {
#pragma omp for schedule(static)
            for (int64_t i = 0; i < count; i++) ((double *)array)[i] = value;
        }
    }
}

/* Unpack Z as a contiguous array; GraphBLAS may store a single number for all elements. */
static GrB_Info open_z(struct prepared *p, void **array)
{
    const struct grb_calls *grb_calls = &p->graphblas->calls;
    return GxB_Matrix_unpack_FullR(p->z, array, &p->z_bytes, NULL, NULL);
}

/* Create Z of this shape, where every element is the identity. GraphBLAS allocates its memory when it multiplies. */
static GrB_Info new_z(const struct graphblas *graphblas, struct prepared *p, const graft_mxm_args *args)
{
    const struct grb_calls *grb_calls = &graphblas->calls;
    const graft_dense      *c = args->c;
    GrB_Info                info;

    GrB_Matrix_free(&p->z);
    p->z_bytes = 0;
    info = new_dense(grb_calls, &p->z, c->dtype, c->n_rows, c->n_cols);
    if (info == GrB_SUCCESS) info = graphblas_hold_by_row(graphblas, p->z);
    if (info == GrB_SUCCESS) {
        info = GrB_Matrix_assign_FP64(p->z, NULL, NULL, identity_of(args->semiring), GrB_ALL, (GrB_Index)c->n_rows,
                                      GrB_ALL, (GrB_Index)c->n_cols, NULL);
    }
    return info;
}

/* Give Z the shape of C and set every element to the identity. Its array is reused while it is large enough. */
static GrB_Info reset_z(const struct graphblas *graphblas, struct prepared *p, const graft_mxm_args *args)
{
    const struct grb_calls *grb_calls = &graphblas->calls;
    const graft_dense      *c = args->c;
    const GrB_Index         needed = (GrB_Index)(c->n_rows * c->n_cols) * (c->dtype == GRAFT_F32 ? 4 : 8);
    GrB_Info                info = GrB_SUCCESS;
    GrB_Matrix              shaped = NULL;
    void                   *array = NULL;

    if (p->z_bytes < needed) {
        info = new_z(graphblas, p, args);
    } else {
        if (p->z_width != c->n_cols || p->z_dtype != c->dtype)
            info = new_dense(grb_calls, &shaped, c->dtype, c->n_rows, c->n_cols);
        if (info == GrB_SUCCESS) info = open_z(p, &array);
        if (info == GrB_SUCCESS) {
            if (shaped != NULL) {
                GrB_Matrix_free(&p->z);
                p->z = shaped;
                shaped = NULL;
            }
            fill(array, c->dtype, c->n_rows * c->n_cols, identity_of(args->semiring), args->threads);
            info = GxB_Matrix_pack_FullR(p->z, &array, p->z_bytes, false, NULL);
        }
        GrB_Matrix_free(&shaped);
    }
    p->z_width = c->n_cols;
    p->z_dtype = c->dtype;
    return info;
}

enum { MODES_MOST = 1024 };

/* Swap the floating-point mode of each thread of a GraphBLAS team with mode[thread]. OpenMP keeps the threads of a team
 * from one parallel region of the caller to the next. */
static void swap_modes(mode_fp *mode, int threads)
{
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const int t = omp_get_thread_num();

        if (t < MODES_MOST) mode[t] = mode_swap(mode[t]);
    }
}

/* Compute Z (+)= A B, in which each thread computes in the mode of the caller. */
static GrB_Info multiply(const struct graphblas *graphblas, struct prepared *p, const struct operation *operation,
                         GrB_Matrix b, int threads)
{
    const struct grb_calls *grb_calls = &graphblas->calls;
    mode_fp                 mode[MODES_MOST];
    GrB_Info                info;

    for (int t = 0; t < MODES_MOST; t++) mode[t] = mode_get();
    swap_modes(mode, threads);
    info = GrB_mxm(p->z, NULL, operation->add, operation->semiring, operation->a, b, p->descriptor);
    if (info == GrB_SUCCESS) info = GrB_Matrix_wait(p->z, GrB_MATERIALIZE);
    swap_modes(mode, threads);
    return info;
}

/* Compute Z (+)= A B, with the array of B packed into a GraphBLAS matrix during the product. */
static int32_t product(const struct graphblas *graphblas, struct prepared *p, const graft_mxm_args *args, void *b_data,
                       graft_error *error)
{
    const struct grb_calls *grb_calls = &graphblas->calls;
    const struct operation  operation = operation_of(p, args);
    const GrB_Index b_bytes = (GrB_Index)(args->b->n_rows * args->b->n_cols) * (args->b->dtype == GRAFT_F32 ? 4 : 8);
    GrB_Matrix      b = NULL;
    GrB_Index       bytes;
    void           *borrowed = b_data, *back = NULL;
    bool            iso;
    GrB_Info        info = new_dense(grb_calls, &b, args->b->dtype, args->b->n_rows, args->b->n_cols), taken;

    if (info == GrB_SUCCESS) info = GxB_Matrix_pack_FullR(b, &borrowed, b_bytes, false, NULL);
    if (info != GrB_SUCCESS) {
        GrB_Matrix_free(&b);
        return foreign(error, info, "packing B");
    }
    info = graphblas_use_threads(graphblas, p->descriptor, args->threads);
    if (info == GrB_SUCCESS) info = multiply(graphblas, p, &operation, b, args->threads);
    graphblas_use_threads(graphblas, p->descriptor, 0);
    taken = GxB_Matrix_unpack_FullR(b, &back, &bytes, &iso, NULL);
    if (taken == GrB_SUCCESS) GrB_Matrix_free(&b); /* otherwise it is leaked, as in return_a() */
    return foreign(error, info != GrB_SUCCESS ? info : taken, "GrB_mxm");
}

/* Unpack the array of Z and run the epilogue on it. */
static int32_t finish(struct prepared *p, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    const struct grb_calls *grb_calls = &p->graphblas->calls;
    void                   *array = NULL;
    GrB_Info                info = open_z(p, &array);

    if (info == GrB_SUCCESS) {
        epilogue_apply(a, args, array);
        info = GxB_Matrix_pack_FullR(p->z, &array, p->z_bytes, false, NULL);
    }
    return foreign(error, info, "reading Z");
}

/* Matrix B with contiguous rows: B itself, or a copy. */
static void *pack_rows(const graft_host *host, const graft_dense *b, uint64_t element, uint64_t bytes)
{
    const uint64_t row = (uint64_t)b->n_cols * element;
    char          *copy;

    if (b->stride == b->n_cols || b->n_rows == 1) return b->data;
    copy = host->allocate(host->self, bytes, 64);
    for (int64_t i = 0; i < b->n_rows && copy != NULL; i++) {
        memcpy(copy + (uint64_t)i * row, (const char *)b->data + (uint64_t)(i * b->stride) * element, row);
    }
    return copy;
}

static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    const struct grb_calls *grb_calls = &((struct graphblas *)state)->calls;
    struct graphblas       *graphblas = state;
    const graft_host       *host = graphblas->host;
    struct prepared        *p = prepared;
    const uint64_t          element = args->b->dtype == GRAFT_F32 ? 4 : 8;
    const uint64_t          bytes = (uint64_t)(args->b->n_rows * args->b->n_cols) * element;
    void                   *b;
    int32_t                 rc;

    if (args->c->n_rows == 0) return GRAFT_OK;
    if (a->row_ptr[a->n_rows] == 0 || args->c->n_cols == 0) {
        epilogue_apply(a, args, NULL);
        return GRAFT_OK;
    }
    rc = refuse_nan(p, args, error);
    if (rc < 0) return rc;
    b = pack_rows(host, args->b, element, bytes);
    if (b == NULL)
        return fail(error, GRAFT_ERR_NOMEM, 0, "no memory for a copy of B, %llu bytes", (unsigned long long)bytes);
    rc = foreign(error, reset_z(graphblas, p, args), "filling Z");
    if (rc == GRAFT_OK) rc = product(graphblas, p, args, b, error);
    if (rc == GRAFT_OK) rc = finish(p, a, args, error);
    if (rc < 0) { /* The state of Z is undefined; the next run creates a new one. */
        GrB_Matrix_free(&p->z);
        p->z_bytes = 0;
    }
    if (b != args->b->data) host->deallocate(host->self, b, bytes, 64);
    return rc;
}

enum { PREFERENCE = -1 }; /* "auto" must not start GraphBLAS in a process that may load it later */

GRAFT_MODULE_NOTE("kernel", "graphblas", PREFERENCE);

static const graft_kernel_ops kernel = {
    .size = sizeof kernel,
    .args_size = sizeof(graft_mxm_args),
    .preference = PREFERENCE,
    .description = "GrB_mxm of SuiteSparse:GraphBLAS, accumulating into a full matrix",
    .init = init,
    .fini = fini,
    .supports = supports,
    .prepare = prepare,
    .release = release,
    .run = run,
};

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "kernel",
    .name = "graphblas",
    .kernel = &kernel,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    return module_give(&table, abi_min, abi_max, out, error);
}
