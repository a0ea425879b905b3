/* Kernel "graphblas": graft.mxm on GrB_mxm of SuiteSparse:GraphBLAS.
 *
 * Its fast product is Z (+)= A B with Z full, no mask, and the accumulator that of the semiring ("saxpy5"); every
 * masked form is slower than that and a pass over Z. So Z begins as the identity, GrB_mxm accumulates into it, which
 * is exact, and mask, scale and accumulator of the call are applied behind it (epilogue.c).
 *
 * Memory. GraphBLAS may free a matrix that it was asked to write, for example when it runs out of memory, so Z is
 * always its own; the arrays of B are lent by pack and taken back by unpack, and a product only reads them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "epilogue.h"
#include "graft_module.h"

#include <GraphBLAS.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if GxB_IMPLEMENTATION_MAJOR != 7
#error "adapters/graphblas is written for, and tested with, SuiteSparse:GraphBLAS 7"
#endif

struct prepared {
    GrB_Matrix     a;
    GrB_Matrix     z; /* [rows x z_width] of z_dtype, full; NULL until the first run */
    int64_t        z_width;
    graft_dtype    z_dtype;
    GrB_Descriptor descriptor;
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

/* A call of GraphBLAS that did not succeed. */
static int32_t foreign(graft_error *error, GrB_Info info, const char *call)
{
    if (info == GrB_SUCCESS) return GRAFT_OK;
    if (info == GrB_OUT_OF_MEMORY) return fail(error, GRAFT_ERR_NOMEM, info, "GraphBLAS is out of memory in %s", call);
    return fail(error, GRAFT_ERR_MODULE, info, "GraphBLAS answers %d to %s", (int)info, call);
}

/* GraphBLAS belongs to the host. If he has not begun it yet it is begun here, and never ended. */
static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    int32_t  mode, version[3];
    GrB_Info info = GxB_Global_Option_get(GxB_MODE, &mode);

    if (info == GrB_PANIC) {
        int64_t no_pool[64] = { 0 };

        info = GrB_init(GrB_NONBLOCKING);
        if (info == GrB_SUCCESS) info = GxB_Global_Option_set(GxB_MEMORY_POOL, no_pool);
    }
    if (info != GrB_SUCCESS) {
        return fail(error, GRAFT_ERR_UNSUPPORTED, info, "GraphBLAS cannot be used, it answers %d; was it finalised?",
                    (int)info);
    }
    info = GxB_Global_Option_get(GxB_LIBRARY_VERSION, version);
    if (info != GrB_SUCCESS || version[0] != GxB_IMPLEMENTATION_MAJOR) {
        return fail(error, GRAFT_ERR_UNSUPPORTED, info, "GraphBLAS is of version %d, this module was built for %d",
                    version[0], GxB_IMPLEMENTATION_MAJOR);
    }
    *state = (void *)(uintptr_t)host;
    return GRAFT_OK;
}

static void fini(void *state)
{
    (void)state;
}

static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state, (void)a;
    if (args->winner == NULL) return GRAFT_OK;
    snprintf(why, capacity, "GrB_mxm does not tell which neighbour won");
    return GRAFT_ERR_UNSUPPORTED;
}

static void release(void *state, void *prepared)
{
    const graft_host *host = state;
    struct prepared  *p = prepared;

    if (p == NULL) return;
    GrB_Matrix_free(&p->a);
    GrB_Matrix_free(&p->z);
    GrB_Descriptor_free(&p->descriptor);
    host->deallocate(host->self, p, sizeof *p, 64);
}

/* Sparse by rows, whatever the host's global settings say. */
static GrB_Info by_rows(GrB_Matrix matrix, int sparsity)
{
    GrB_Info info = GxB_Matrix_Option_set(matrix, GxB_FORMAT, GxB_BY_ROW);

    if (info == GrB_SUCCESS) info = GxB_Matrix_Option_set(matrix, GxB_HYPER_SWITCH, GxB_NEVER_HYPER);
    if (info == GrB_SUCCESS) info = GxB_Matrix_Option_set(matrix, GxB_SPARSITY_CONTROL, sparsity);
    return info;
}

/* The entries as coordinates, which is all that GraphBLAS takes without taking the arrays away. */
static void list_entries(const graft_csr *csr, GrB_Index *rows, GrB_Index *columns)
{
    for (int64_t row = 0; row < csr->n_rows; row++) {
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            rows[e] = (GrB_Index)row;
            columns[e] = csr->index_type == GRAFT_I32 ? (GrB_Index)((const int32_t *)csr->col_idx)[e]
                                                      : (GrB_Index)((const int64_t *)csr->col_idx)[e];
        }
    }
}

static GrB_Info build(GrB_Matrix a, const graft_csr *csr, const GrB_Index *rows, const GrB_Index *columns,
                      GrB_Index entries)
{
    GrB_Scalar one = NULL;
    GrB_Info   info;

    if (csr->values != NULL && csr->value_type == GRAFT_F32) {
        return GrB_Matrix_build_FP32(a, rows, columns, csr->values, entries, GrB_PLUS_FP32);
    }
    if (csr->values != NULL) return GrB_Matrix_build_FP64(a, rows, columns, csr->values, entries, GrB_PLUS_FP64);
    info = GrB_Scalar_new(&one, GrB_BOOL);
    if (info == GrB_SUCCESS) info = GrB_Scalar_setElement_BOOL(one, true);
    if (info == GrB_SUCCESS) info = GxB_Matrix_build_Scalar(a, rows, columns, one, entries);
    GrB_Scalar_free(&one);
    return info;
}

/* Make p->a. GraphBLAS sorts the rows; entries that it merges are what its matrices cannot hold. */
static int32_t make_a(struct prepared *p, const graft_csr *csr, GrB_Index *rows, GrB_Index *columns, graft_error *error)
{
    const GrB_Index entries = (GrB_Index)csr->row_ptr[csr->n_rows];
    const GrB_Type  type = csr->values == NULL ? GrB_BOOL : csr->value_type == GRAFT_F32 ? GrB_FP32 : GrB_FP64;
    GrB_Index       kept = 0;
    GrB_Info        info = GrB_Matrix_new(&p->a, type, (GrB_Index)csr->n_rows, (GrB_Index)csr->n_cols);

    if (info == GrB_SUCCESS) info = by_rows(p->a, GxB_SPARSE);
    list_entries(csr, rows, columns);
    if (info == GrB_SUCCESS) info = build(p->a, csr, rows, columns, entries);
    if (info == GrB_SUCCESS) info = GrB_Matrix_wait(p->a, GrB_MATERIALIZE);
    if (info == GrB_SUCCESS) info = GrB_Matrix_nvals(&kept, p->a);
    if (info == GrB_SUCCESS) info = GrB_Descriptor_new(&p->descriptor);
    if (info == GrB_SUCCESS && kept != entries) {
        return fail(error, GRAFT_ERR_UNSUPPORTED, 0,
                    "rows name %lld columns more than once, which a GrB_Matrix cannot hold",
                    (long long)(entries - kept));
    }
    return foreign(error, info, "building the matrix");
}

static int32_t prepare(void *state, const graft_csr *csr, void **prepared, int64_t *bytes, graft_error *error)
{
    const graft_host *host = state;
    const uint64_t    index_bytes = ((uint64_t)csr->row_ptr[csr->n_rows] + 1) * sizeof(GrB_Index);
    GrB_Index        *indices = NULL;
    struct prepared  *p = host->allocate(host->self, sizeof *p, 64);
    size_t            held = 0;
    int32_t           rc = GRAFT_ERR_NOMEM;

    if (p != NULL) {
        memset(p, 0, sizeof *p);
        indices = host->allocate(host->self, 2 * index_bytes, 64);
    }
    if (indices == NULL)
        fail(error, rc, 0, "no memory for %llu bytes of indices", (unsigned long long)(2 * index_bytes));
    else rc = make_a(p, csr, indices, indices + index_bytes / sizeof *indices, error);
    if (indices != NULL) host->deallocate(host->self, indices, 2 * index_bytes, 64);
    if (rc < 0) {
        release(state, p);
        return rc;
    }
    if (GxB_Matrix_memoryUsage(&held, p->a) == GrB_SUCCESS) *bytes += (int64_t)held;
    *prepared = p;
    return GRAFT_OK;
}

static int is_sum(graft_semiring semiring)
{
    return semiring == GRAFT_PLUS_TIMES || semiring == GRAFT_PLUS_SECOND;
}

/* The semiring, and the operation that accumulates into Z; where A has no values they are not looked at. */
static GrB_Semiring semiring_of(const graft_mxm_args *args, const graft_csr *a, GrB_BinaryOp *add)
{
    const GrB_Semiring semirings[3][2][2] = {
        { { GrB_PLUS_TIMES_SEMIRING_FP32, GrB_PLUS_TIMES_SEMIRING_FP64 },
          { GxB_PLUS_SECOND_FP32, GxB_PLUS_SECOND_FP64 } },
        { { GrB_MAX_TIMES_SEMIRING_FP32, GrB_MAX_TIMES_SEMIRING_FP64 }, { GxB_MAX_SECOND_FP32, GxB_MAX_SECOND_FP64 } },
        { { GrB_MIN_TIMES_SEMIRING_FP32, GrB_MIN_TIMES_SEMIRING_FP64 }, { GxB_MIN_SECOND_FP32, GxB_MIN_SECOND_FP64 } },
    };
    const GrB_BinaryOp adds[3][2] = { { GrB_PLUS_FP32, GrB_PLUS_FP64 },
                                      { GrB_MAX_FP32, GrB_MAX_FP64 },
                                      { GrB_MIN_FP32, GrB_MIN_FP64 } };
    const int          monoid = (args->semiring - GRAFT_PLUS_TIMES) / 2, wide = args->c->dtype == GRAFT_F64;
    const int          second = a->values == NULL || (args->semiring - GRAFT_PLUS_TIMES) % 2 == 1;

    *add = adds[monoid][wide];
    return semirings[monoid][second][wide];
}

static double element_of(const graft_dense *dense, int64_t row, int64_t column)
{
    const int64_t at = row * dense->stride + column;

    return dense->dtype == GRAFT_F32 ? (double)((const float *)dense->data)[at] : ((const double *)dense->data)[at];
}

/* max and min of GraphBLAS pass over a NaN, ours must not; a weight of 0 makes one of an infinity. */
static int32_t refuse_nan(const graft_mxm_args *args, const graft_csr *a, graft_error *error)
{
    const int weighted = a->values != NULL && (args->semiring == GRAFT_MAX_TIMES || args->semiring == GRAFT_MIN_TIMES);
    int64_t   bad = INT64_MAX;

    if (is_sum(args->semiring)) return GRAFT_OK;
#pragma omp parallel for num_threads(args->threads) reduction(min : bad) if (args->threads > 1)
    for (int64_t row = 0; row < args->b->n_rows; row++) {
        for (int64_t j = 0; j < args->b->n_cols; j++) {
            const double b = element_of(args->b, row, j);

            if ((isnan(b) || (weighted && isinf(b))) && row < bad) bad = row;
        }
    }
    if (bad == INT64_MAX) return GRAFT_OK;
    return fail(error, GRAFT_ERR_UNSUPPORTED, 0, "its max and min would hide a NaN that row %lld of B may bring in",
                (long long)bad);
}

/* A full matrix by rows of the type of C. */
static GrB_Info new_full(GrB_Matrix *matrix, graft_dtype dtype, int64_t n_rows, int64_t n_cols)
{
    GrB_Info info =
        GrB_Matrix_new(matrix, dtype == GRAFT_F32 ? GrB_FP32 : GrB_FP64, (GrB_Index)n_rows, (GrB_Index)n_cols);

    if (info == GrB_SUCCESS) info = by_rows(*matrix, GxB_FULL + GxB_BITMAP);
    return info;
}

static double identity_of(graft_semiring semiring)
{
    if (is_sum(semiring)) return 0;
    return semiring == GRAFT_MAX_TIMES || semiring == GRAFT_MAX_SECOND ? -INFINITY : INFINITY;
}

/* Fill the array of Z, which stays GraphBLAS's own, with the identity; make Z at the first run of its width and type.
 * */
static GrB_Info reset_z(struct prepared *p, const graft_mxm_args *args)
{
    const int64_t count = args->c->n_rows * args->c->n_cols;
    const double  identity = identity_of(args->semiring);
    GrB_Index     bytes;
    GrB_Info      info;
    void         *array = NULL;
    bool          iso;

    if (p->z == NULL || p->z_width != args->c->n_cols || p->z_dtype != args->c->dtype) {
        GrB_Matrix_free(&p->z);
        p->z_width = args->c->n_cols;
        p->z_dtype = args->c->dtype;
        info = new_full(&p->z, p->z_dtype, args->c->n_rows, p->z_width);
        if (info != GrB_SUCCESS) return info;
        return GrB_Matrix_assign_FP64(p->z, NULL, NULL, identity, GrB_ALL, (GrB_Index)args->c->n_rows, GrB_ALL,
                                      (GrB_Index)p->z_width, NULL);
    }
    info = GxB_Matrix_unpack_FullR(p->z, &array, &bytes, &iso, NULL);
    if (info != GrB_SUCCESS) return info;
    for (int64_t i = 0; i < (iso ? 1 : count); i++) {
        if (p->z_dtype == GRAFT_F32) ((float *)array)[i] = (float)identity;
        else ((double *)array)[i] = identity;
    }
    return GxB_Matrix_pack_FullR(p->z, &array, bytes, iso, NULL);
}

/* Z (+)= A B, with the array of B lent to GraphBLAS for the time of the product. */
static int32_t product(struct prepared *p, const graft_csr *a, const graft_mxm_args *args, void *b_data,
                       graft_error *error)
{
    const GrB_Index b_bytes = (GrB_Index)(args->b->n_rows * args->b->n_cols) * (args->c->dtype == GRAFT_F32 ? 4 : 8);
    GrB_BinaryOp    add;
    GrB_Semiring    semiring = semiring_of(args, a, &add);
    GrB_Matrix      b = NULL;
    GrB_Index       bytes;
    void           *lent = b_data, *back = NULL;
    bool            iso;
    GrB_Info        info = new_full(&b, args->b->dtype, args->b->n_rows, args->b->n_cols), taken;

    if (info == GrB_SUCCESS) info = GxB_Matrix_pack_FullR(b, &lent, b_bytes, false, NULL);
    if (info != GrB_SUCCESS) {
        GrB_Matrix_free(&b);
        return foreign(error, info, "lending it B");
    }
    info = GxB_Desc_set(p->descriptor, GxB_NTHREADS, (int)args->threads);
    if (info == GrB_SUCCESS) info = GrB_mxm(p->z, NULL, add, semiring, p->a, b, p->descriptor);
    if (info == GrB_SUCCESS) info = GrB_Matrix_wait(p->z, GrB_MATERIALIZE);
    taken = GxB_Matrix_unpack_FullR(b, &back, &bytes, &iso, NULL);
    /* Freeing a matrix that still has the host's array would free that; then rather lose the few bytes of its handle.
     * */
    if (taken == GrB_SUCCESS) GrB_Matrix_free(&b);
    return foreign(error, info != GrB_SUCCESS ? info : taken, "GrB_mxm");
}

/* Take the array of Z for the time of the epilogue. */
static int32_t finish(struct prepared *p, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    void     *array = NULL;
    GrB_Index bytes;
    bool      iso;
    GrB_Info  info = GxB_Matrix_unpack_FullR(p->z, &array, &bytes, &iso, NULL);

    if (info == GrB_SUCCESS && !iso) epilogue_apply(a, args, array);
    if (info == GrB_SUCCESS) info = GxB_Matrix_pack_FullR(p->z, &array, bytes, iso, NULL);
    if (info == GrB_SUCCESS && iso)
        return fail(error, GRAFT_ERR_UNSUPPORTED, 0, "GraphBLAS gave one value for all of Z");
    return foreign(error, info, "reading Z");
}

/* B without gaps between its rows: itself, or a copy. */
static void *pack_rows(const graft_host *host, const graft_dense *b, uint64_t element, uint64_t bytes)
{
    const uint64_t row = (uint64_t)b->n_cols * element;
    char          *copy;

    if (b->stride == b->n_cols) return b->data;
    copy = host->allocate(host->self, bytes, 64);
    for (int64_t i = 0; i < b->n_rows && copy != NULL; i++) {
        memcpy(copy + (uint64_t)i * row, (const char *)b->data + (uint64_t)(i * b->stride) * element, row);
    }
    return copy;
}

static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    const graft_host *host = state;
    struct prepared  *p = prepared;
    const uint64_t    element = args->c->dtype == GRAFT_F32 ? 4 : 8;
    const uint64_t    bytes = (uint64_t)(args->b->n_rows * args->b->n_cols) * element;
    void             *b;
    int32_t           rc;

    if (args->c->n_rows == 0 || args->c->n_cols == 0) return GRAFT_OK;
    if (a->row_ptr[a->n_rows] == 0) {
        epilogue_apply(a, args, NULL);
        return GRAFT_OK;
    }
    rc = refuse_nan(args, a, error);
    if (rc < 0) return rc;
    b = pack_rows(host, args->b, element, bytes);
    if (b == NULL)
        return fail(error, GRAFT_ERR_NOMEM, 0, "no memory for a copy of B, %llu bytes", (unsigned long long)bytes);
    rc = foreign(error, reset_z(p, args), "filling Z");
    if (rc == GRAFT_OK) rc = product(p, a, args, b, error);
    if (rc == GRAFT_OK) rc = finish(p, a, args, error);
    if (rc < 0) GrB_Matrix_free(&p->z); /* It may be in any state; the next run makes a new one. */
    if (b != args->b->data) host->deallocate(host->self, b, bytes, 64);
    return rc;
}

static const graft_kernel kernel = {
    .size = sizeof kernel,
    .preference = 10,
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
    if (abi_min > GRAFT_ABI_VERSION || abi_max < GRAFT_ABI_VERSION) {
        return fail(error, GRAFT_ERR_VERSION, 0,
                    "kernel module graphblas knows version %u, the library drives %u to %u", GRAFT_ABI_VERSION, abi_min,
                    abi_max);
    }
    *out = &table;
    return GRAFT_OK;
}
