/* Makes random calls of GraphBLAS and compares their results, see random_calls.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "random_calls.h"

#include "harness/lcg.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The numbers of rows and columns of matrices. One call in MANY has a matrix so large that loops over its elements run
 * in parallel. */
enum { SIDE = 24, LARGE_SIDE = 420, MANY = 400 };

static uint32_t draw_below(uint32_t *state, uint32_t count)
{
    return lcg_next(state) % count;
}

static GrB_Type random_type(uint32_t *state)
{
    const GrB_Type types[] = { GrB_FP32, GrB_FP32, GrB_FP32,  GrB_FP64,  GrB_FP64,
                               GrB_BOOL, GrB_INT8, GrB_INT32, GrB_INT64, GrB_UINT16 };

    return types[draw_below(state, sizeof types / sizeof *types)];
}

static GrB_Index drawn_side(uint32_t *state, int large)
{
    return large ? LARGE_SIDE / 2 + draw_below(state, LARGE_SIDE / 2) : 1 + draw_below(state, SIDE);
}

/* Draw a small integer or, rarely, NaN or infinity. It is never -0.0, because GraphBLAS 7.4 treats -0.0 in a mask as
 * true in some products and as false in others. */
static double drawn_value(uint32_t *state)
{
    static const double special[] = { NAN, INFINITY, -INFINITY };

    if (draw_below(state, 300) == 0) return special[draw_below(state, 3)];
    return (int)draw_below(state, 7) - 2;
}

/* Draw some entries. In some cases all have the same value, or rows or columns are full or empty. */
static void draw_entries(uint32_t *state, GrB_Matrix matrix, GrB_Index n_rows, GrB_Index n_cols, uint32_t percent)
{
    const int      iso = draw_below(state, 4) == 0, value = (int)draw_below(state, 4);
    const uint32_t whole = percent >= 40 && percent < 100 ? draw_below(state, 3) : 0, every = 2 + draw_below(state, 4);

    if (percent == 100 && iso) {
        GrB_Matrix_assign_FP64(matrix, NULL, NULL, value, GrB_ALL, n_rows, GrB_ALL, n_cols, NULL);
        return;
    }
    for (GrB_Index i = 0; i < n_rows; i++) {
        const int empty = percent < 100 && draw_below(state, 5) == 0;

        for (GrB_Index j = 0; j < n_cols && !empty; j++) {
            const int drawn = whole == 0 ? draw_below(state, 100) < percent : (whole == 1 ? i : j) % every != 0;

            if (drawn) GrB_Matrix_setElement_FP64(matrix, iso ? value : drawn_value(state), i, j);
        }
    }
}

/* A matrix of random type and storage form. Some have pending work. */
static GrB_Matrix drawn_matrix(uint32_t *state, GrB_Index n_rows, GrB_Index n_cols, uint32_t percent)
{
    const int32_t forms[] = { GxB_SPARSE, GxB_HYPERSPARSE, GxB_BITMAP, GxB_AUTO_SPARSITY, GxB_AUTO_SPARSITY, GxB_FULL };
    GrB_Matrix    matrix = NULL;

    GrB_Matrix_new(&matrix, random_type(state), n_rows, n_cols);
    GxB_Matrix_Option_set(matrix, GxB_FORMAT, draw_below(state, 4) == 0 ? GxB_BY_COL : GxB_BY_ROW);
    GxB_Matrix_Option_set(matrix, GxB_SPARSITY_CONTROL, forms[draw_below(state, 6)]);
    draw_entries(state, matrix, n_rows, n_cols, percent);
    if (draw_below(state, 3) != 0) GrB_Matrix_wait(matrix, GrB_MATERIALIZE);
    if (draw_below(state, 3) == 0 && n_rows > 0 && n_cols > 0) {
        GrB_Matrix_setElement_FP64(matrix, 3, draw_below(state, (uint32_t)n_rows), draw_below(state, (uint32_t)n_cols));
        if (percent < 100)
            GrB_Matrix_removeElement(matrix, draw_below(state, (uint32_t)n_rows), draw_below(state, (uint32_t)n_cols));
    }
    return matrix;
}

static GrB_Vector drawn_vector(uint32_t *state, GrB_Index n, uint32_t percent)
{
    GrB_Vector vector = NULL;
    const int  iso = draw_below(state, 4) == 0;

    GrB_Vector_new(&vector, random_type(state), n);
    if (draw_below(state, 2))
        GxB_Vector_Option_set(vector, GxB_SPARSITY_CONTROL, draw_below(state, 2) ? GxB_BITMAP : GxB_SPARSE);
    for (GrB_Index i = 0; i < n; i++) {
        if (draw_below(state, 100) < percent) GrB_Vector_setElement_FP64(vector, iso ? 2 : drawn_value(state), i);
    }
    if (draw_below(state, 2)) GrB_Vector_wait(vector, GrB_MATERIALIZE);
    return vector;
}

static GrB_Semiring random_semiring(uint32_t *state)
{
    const GrB_Semiring of[] = { GrB_PLUS_TIMES_SEMIRING_FP32,
                                GrB_PLUS_TIMES_SEMIRING_FP64,
                                GxB_PLUS_SECOND_FP32,
                                GxB_PLUS_SECOND_FP64,
                                GxB_PLUS_FIRST_FP32,
                                GxB_PLUS_FIRST_FP64,
                                GrB_MAX_TIMES_SEMIRING_FP32,
                                GxB_MAX_TIMES_FP64,
                                GrB_MAX_SECOND_SEMIRING_FP32,
                                GxB_MAX_FIRST_FP64,
                                GrB_MIN_TIMES_SEMIRING_FP32,
                                GrB_MIN_SECOND_SEMIRING_FP64,
                                GrB_MIN_FIRST_SEMIRING_FP32,
                                GxB_MIN_TIMES_FP64,
                                GxB_PLUS_PAIR_FP32,
                                GxB_MAX_PAIR_FP64,
                                GrB_PLUS_TIMES_SEMIRING_INT64,
                                GrB_MIN_PLUS_SEMIRING_FP32,
                                GxB_PLUS_PAIR_FP64 };

    /* The last types in the list are drawn less often. */
    return of[draw_below(state, draw_below(state, 4) ? 16 : 19)];
}

static GrB_BinaryOp random_accum(uint32_t *state)
{
    const GrB_BinaryOp of[] = { NULL,         NULL,         NULL,           GrB_PLUS_FP32,   GrB_PLUS_FP64,
                                GrB_MAX_FP32, GrB_MIN_FP64, GrB_TIMES_FP32, GrB_SECOND_FP64, GrB_PLUS_INT32,
                                GrB_MIN_FP32, GrB_MAX_FP64 };

    return of[draw_below(state, sizeof of / sizeof *of)];
}

struct call {
    GrB_Semiring   semiring;
    GrB_BinaryOp   accum;
    GrB_Descriptor descriptor;
    int            t0, t1;
};

static struct call random_options(uint32_t *state)
{
    struct call call = { random_semiring(state), random_accum(state), NULL, draw_below(state, 3) == 0,
                         draw_below(state, 3) == 0 };

    GrB_Descriptor_new(&call.descriptor);
    if (call.t0) GrB_Descriptor_set(call.descriptor, GrB_INP0, GrB_TRAN);
    if (call.t1) GrB_Descriptor_set(call.descriptor, GrB_INP1, GrB_TRAN);
    if (draw_below(state, 3) == 0) GrB_Descriptor_set(call.descriptor, GrB_OUTP, GrB_REPLACE);
    if (draw_below(state, 3) == 0) GrB_Descriptor_set(call.descriptor, GrB_MASK, GrB_COMP);
    if (draw_below(state, 3) == 0) GrB_Descriptor_set(call.descriptor, GrB_MASK, GrB_STRUCTURE);
    return call;
}

/* Compare two matrices, or vectors cast to matrices: shape, type, storage form, entries and values. */
static int same_objects(GrB_Matrix x, GrB_Matrix y, char *fault, size_t size)
{
    GrB_Index  nx = 0, ny = 0;
    GrB_Index *i[2], *j[2];
    double    *v[2];
    GrB_Type   tx, ty;
    int32_t    fx = 0, fy = 0;
    int        equal = 1;

    GrB_Matrix_nvals(&nx, x);
    GrB_Matrix_nvals(&ny, y);
    GxB_Matrix_type(&tx, x);
    GxB_Matrix_type(&ty, y);
    GxB_Matrix_Option_get(x, GxB_FORMAT, &fx);
    GxB_Matrix_Option_get(y, GxB_FORMAT, &fy);
    if (nx != ny || tx != ty || fx != fy) {
        snprintf(fault, size, "%llu entries, expected %llu; format %d, expected %d", (unsigned long long)nx,
                 (unsigned long long)ny, fx, fy);
        return 0;
    }
    if (GxB_Matrix_fprint(x, "C", GxB_SILENT, NULL) != GrB_SUCCESS) {
        snprintf(fault, size, "C is not valid");
        return 0;
    }
    for (int k = 0; k < 2; k++) {
        GrB_Index n = nx;

        i[k] = malloc((nx + 1) * sizeof **i);
        j[k] = malloc((nx + 1) * sizeof **j);
        v[k] = malloc((nx + 1) * sizeof **v);
        GrB_Matrix_extractTuples_FP64(i[k], j[k], v[k], &n, k == 0 ? x : y);
    }
    for (GrB_Index e = 0; equal && e < nx; e++) {
        equal = i[0][e] == i[1][e] && j[0][e] == j[1][e] && (v[0][e] == v[1][e] || (isnan(v[0][e]) && isnan(v[1][e])));
        if (!equal)
            snprintf(fault, size, "entry %llu is (%llu, %llu) %g, expected (%llu, %llu) %g", (unsigned long long)e,
                     (unsigned long long)i[0][e], (unsigned long long)j[0][e], v[0][e], (unsigned long long)i[1][e],
                     (unsigned long long)j[1][e], v[1][e]);
    }
    for (int k = 0; k < 2; k++) {
        free(i[k]);
        free(j[k]);
        free(v[k]);
    }
    return equal;
}

static int same_code(GrB_Info found, GrB_Info expected, char *fault, size_t size)
{
    if (found == expected) return 1;
    snprintf(fault, size, "returned %d, expected %d", (int)found, (int)expected);
    return 0;
}

/* Copy a matrix to another type. Values are converted in the same way as by GrB_mxm. */
static GrB_Matrix converted(GrB_Matrix matrix, GrB_Type type)
{
    GrB_Index  n_rows = 0, n_cols = 0;
    GrB_Matrix made = NULL;

    GrB_Matrix_nrows(&n_rows, matrix);
    GrB_Matrix_ncols(&n_cols, matrix);
    GrB_Matrix_new(&made, type, n_rows, n_cols);
    GrB_Matrix_assign(made, NULL, NULL, matrix, GrB_ALL, n_rows, GrB_ALL, n_cols, NULL);
    return made;
}

static GrB_Type ring_type(GrB_Semiring semiring)
{
    GrB_BinaryOp multiply = NULL;
    GrB_Type     type = NULL;

    GxB_Semiring_multiply(&multiply, semiring);
    GxB_BinaryOp_ytype(&type, multiply);
    return type;
}

/* Whether the library returns `found` for operands that were first converted to the type of the semiring. By the
 * specification this is the same product. `c` is the output before the product. */
static int same_in_one_type(GrB_Matrix found, GrB_Matrix c, GrB_Matrix mask, const struct call *call, GrB_Matrix a,
                            GrB_Matrix b, const struct products *plain)
{
    const GrB_Type type = ring_type(call->semiring);
    GrB_Matrix     ours = converted(a, type), theirs = converted(b, type), copy = NULL;
    char           fault[200];
    int            same;

    GrB_Matrix_dup(&copy, c);
    same = plain->mxm(copy, mask, call->accum, call->semiring, ours, theirs, call->descriptor) == GrB_SUCCESS &&
           same_objects(found, copy, fault, sizeof fault);
    GrB_Matrix_free(&ours);
    GrB_Matrix_free(&theirs);
    GrB_Matrix_free(&copy);
    return same;
}

static GrB_Info multiply_vector(const struct products *by, int vxm, GrB_Vector w, GrB_Vector mask,
                                const struct call *call, GrB_Matrix a, GrB_Vector u)
{
    return vxm ? by->vxm(w, mask, call->accum, call->semiring, u, a, call->descriptor)
               : by->mxv(w, mask, call->accum, call->semiring, a, u, call->descriptor);
}

/* As same_in_one_type(), for a product of a matrix and a vector. */
static int same_vector_in_one_type(GrB_Vector found, GrB_Vector w, GrB_Vector mask, const struct call *call,
                                   GrB_Matrix a, GrB_Vector u, int vxm, const struct products *plain)
{
    const GrB_Type type = ring_type(call->semiring);
    GrB_Matrix     ours = converted(a, type);
    GrB_Vector     theirs = NULL, copy = NULL;
    GrB_Index      n = 0;
    char           fault[200];
    int            same;

    GrB_Vector_size(&n, u);
    GrB_Vector_new(&theirs, type, n);
    GrB_Vector_assign(theirs, NULL, NULL, u, GrB_ALL, n, NULL);
    GrB_Vector_dup(&copy, w);
    same = multiply_vector(plain, vxm, copy, mask, call, ours, theirs) == GrB_SUCCESS &&
           same_objects((GrB_Matrix)found, (GrB_Matrix)copy, fault, sizeof fault);
    GrB_Matrix_free(&ours);
    GrB_Vector_free(&theirs);
    GrB_Vector_free(&copy);
    return same;
}

static uint32_t random_percent(uint32_t *state)
{
    const uint32_t of[] = { 0, 10, 40, 90, 100, 100 };

    return of[draw_below(state, 6)];
}

static int random_mxm(uint32_t *state, const struct products *tested, const struct products *plain, char *fault,
                      size_t size)
{
    struct call     call = random_options(state);
    const int       large = draw_below(state, MANY) == 0;
    const GrB_Index m = drawn_side(state, large), n = drawn_side(state, large), k = drawn_side(state, 0);
    const int left = draw_below(state, 3) == 0, wrong = draw_below(state, 40) == 0, alias = (int)draw_below(state, 12);
    const uint32_t dense = draw_below(state, 3) ? 100 : 90;
    GrB_Matrix     a = drawn_matrix(state, call.t0 ? k : m, call.t0 ? m : k, left ? dense : random_percent(state));
    GrB_Matrix     b = drawn_matrix(state, call.t1 ? n : k, call.t1 ? k : n, left ? random_percent(state) : dense);
    GrB_Matrix     c = drawn_matrix(state, m + (GrB_Index)wrong, n, random_percent(state)), copy = NULL, before = NULL;
    GrB_Matrix     mask = draw_below(state, 2) ? drawn_matrix(state, m, n, random_percent(state)) : NULL;
    GrB_Info       x, y;
    int            equal;

    GrB_Matrix_dup(&copy, c);
    GrB_Matrix_dup(&before, c);
    x = tested->mxm(c, alias == 0 ? c : mask, call.accum, call.semiring, alias == 1 ? c : a, alias == 2 ? c : b,
                    call.descriptor);
    y = plain->mxm(copy, alias == 0 ? copy : mask, call.accum, call.semiring, alias == 1 ? copy : a,
                   alias == 2 ? copy : b, call.descriptor);
    equal = same_code(x, y, fault, size) && (y != GrB_SUCCESS || same_objects(c, copy, fault, size));
    if (!equal && x == y &&
        same_in_one_type(c, before, alias == 0 ? before : mask, &call, alias == 1 ? before : a, alias == 2 ? before : b,
                         plain))
        equal = LIBRARY_DIFFERS;
    GrB_Matrix_free(&before);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&b);
    GrB_Matrix_free(&c);
    GrB_Matrix_free(&copy);
    GrB_Matrix_free(&mask);
    GrB_Descriptor_free(&call.descriptor);
    return equal;
}

static int random_vector_call(uint32_t *state, const struct products *tested, const struct products *plain, char *fault,
                              size_t size)
{
    struct call     call = random_options(state);
    const int       vxm = (int)draw_below(state, 2), t = vxm ? call.t1 : call.t0;
    const GrB_Index m = drawn_side(state, 0), k = drawn_side(state, 0);
    GrB_Matrix      a = drawn_matrix(state, (vxm ? !t : t) ? k : m, (vxm ? !t : t) ? m : k, random_percent(state));
    GrB_Vector      u = drawn_vector(state, k, draw_below(state, 3) ? 100 : 50);
    GrB_Vector      w = drawn_vector(state, m, random_percent(state)), copy = NULL, before = NULL;
    GrB_Vector      mask = draw_below(state, 2) ? drawn_vector(state, m, random_percent(state)) : NULL;
    GrB_Info        x, y;
    int             equal;

    GrB_Vector_dup(&copy, w);
    GrB_Vector_dup(&before, w);
    x = multiply_vector(tested, vxm, w, mask, &call, a, u);
    y = multiply_vector(plain, vxm, copy, mask, &call, a, u);
    equal = same_code(x, y, fault, size) &&
            (y != GrB_SUCCESS || same_objects((GrB_Matrix)w, (GrB_Matrix)copy, fault, size));
    if (!equal && x == y && same_vector_in_one_type(w, before, mask, &call, a, u, vxm, plain)) equal = LIBRARY_DIFFERS;
    GrB_Vector_free(&before);
    GrB_Matrix_free(&a);
    GrB_Vector_free(&u);
    GrB_Vector_free(&w);
    GrB_Vector_free(&copy);
    GrB_Vector_free(&mask);
    GrB_Descriptor_free(&call.descriptor);
    return equal;
}

int random_call(uint64_t number, const struct products *tested, const struct products *plain, char *fault, size_t size)
{
    uint32_t state = (uint32_t)(number * 2654435761u + 1);

    for (int i = 0; i < 4; i++) lcg_next(&state);
    fault[0] = '\0';
    return draw_below(&state, 3) ? random_mxm(&state, tested, plain, fault, size)
                                 : random_vector_call(&state, tested, plain, fault, size);
}
