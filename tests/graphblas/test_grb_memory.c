/* Checks graft_grb.h when memory runs out. Each allocation of GraphBLAS in a product fails once. GraphBLAS must then
 * compute the product or refuse it, and no memory may leak.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graphblas/graft_grb.h"

#include "harness/tap.h"

#include <stdatomic.h>

enum { N = 40, WIDTH = 8, MOST_FAILURES = 200, FAILED = 1 };

static _Atomic int64_t live, fail_at = -1;

static int fails_now(void)
{
    return atomic_load(&fail_at) >= 0 && atomic_fetch_sub(&fail_at, 1) == 0;
}

static void *counted_malloc(size_t bytes)
{
    void *memory = fails_now() ? NULL : malloc(bytes);

    if (memory != NULL) atomic_fetch_add(&live, 1);
    return memory;
}

static void counted_free(void *memory)
{
    if (memory != NULL) atomic_fetch_sub(&live, 1);
    free(memory);
}

static GrB_Matrix new_operand(GrB_Index n_cols, GrB_Index step)
{
    GrB_Matrix matrix = NULL;

    GrB_Matrix_new(&matrix, GrB_FP32, N, n_cols);
    if (step == 3) GxB_Matrix_Option_set(matrix, GxB_SPARSITY_CONTROL, GxB_SPARSE);
    for (GrB_Index i = 0; i < N - (step > 1); i++) { /* the last row of a sparse matrix is empty */
        for (GrB_Index j = i % step; j < n_cols; j += step) GrB_Matrix_setElement_FP32(matrix, (float)(i + j), i, j);
    }
    GrB_Matrix_wait(matrix, GrB_MATERIALIZE);
    return matrix;
}

/* One kind of product: where and how the result is written. */
struct product {
    const char    *name;
    int            full, masked;
    GrB_BinaryOp   accum;
    GrB_Descriptor descriptor;
    GrB_Semiring   semiring;
};

static double sum_of_entries(GrB_Matrix c)
{
    double sum = 0;

    GrB_Matrix_reduce_FP64(&sum, NULL, GrB_PLUS_MONOID_FP64, c, NULL);
    return sum;
}

/* Multiply while one allocation fails. \return FAILED if it failed, 0 if there are fewer allocations, -1 if the result
 * or the code is wrong */
static int multiply_without(graft_grb *grb, const struct product *p, const GrB_Matrix operands[3], int64_t failure,
                            double expected)
{
    GrB_Matrix c = NULL;
    GrB_Info   info;
    int        result = 0;

    if (p->full) GrB_Matrix_dup(&c, operands[1]);
    else GrB_Matrix_new(&c, GrB_FP32, N, WIDTH);
    atomic_store(&fail_at, failure);
    info = graft_grb_mxm(grb, c, p->masked ? operands[2] : NULL, p->accum, p->semiring, operands[0], operands[1],
                         p->descriptor);
    if (failure >= 0 && atomic_exchange(&fail_at, -1) < 0) result = FAILED;
    if (info == GrB_SUCCESS) {
        if (sum_of_entries(c) != expected) result = -1;
    } else if (info != GrB_OUT_OF_MEMORY) {
        result = -1;
    }
    GrB_Matrix_free(&c);
    return result;
}

static void test_product(graft_grb *grb, const struct product *p, const GrB_Matrix operands[3])
{
    GrB_Matrix c = NULL;
    double     expected;
    int64_t    before, after, failures = 0;
    int        wrong = 0;

    if (p->full) GrB_Matrix_dup(&c, operands[1]);
    else GrB_Matrix_new(&c, GrB_FP32, N, WIDTH);
    GrB_mxm(c, p->masked ? operands[2] : NULL, p->accum, p->semiring, operands[0], operands[1], p->descriptor);
    expected = sum_of_entries(c);
    GrB_Matrix_free(&c);
    multiply_without(grb, p, operands, -1, expected); /* allocates the memory that is reused in later calls */
    ok(grb->taken, "%s: Graft computes it", p->name);
    before = atomic_load(&live);
    while (failures < MOST_FAILURES) {
        const int result = multiply_without(grb, p, operands, failures++, expected);

        wrong += result < 0;
        if (result == 0) break; /* the product made fewer allocations, so none failed */
    }
    after = atomic_load(&live);
    ok(wrong == 0 && failures > 1, "%s: %lld allocations fail one by one", p->name, (long long)failures - 1);
    ok(before == after, "%s: and nothing is lost", p->name);
}

int main(void)
{
    const graft_api *api = NULL;
    graft_grb        grb;
    GrB_Matrix       operands[3];
    int64_t          no_pool[64] = { 0 };

    GxB_init(GrB_BLOCKING, counted_malloc, NULL, NULL, counted_free);
    GxB_Global_Option_set(GxB_MEMORY_POOL, no_pool);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, NULL) == GRAFT_OK, "the library is opened")) return done();
    graft_grb_begin(&grb, api);
    grb.least_work = grb.least_columns = 0;
    operands[0] = new_operand(N, 3);
    operands[1] = new_operand(WIDTH, 1);
    operands[2] = new_operand(WIDTH, 2);
    for (int own = 0; own < 2; own++) {
        const struct product products[] = {
            { "a new C", 0, 0, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32 },
            { "a full C", 1, 0, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32 },
            { "an accumulator", 1, 0, GrB_PLUS_FP32, NULL, GrB_PLUS_TIMES_SEMIRING_FP32 },
            { "another accumulator", 1, 0, GrB_MAX_FP32, NULL, GrB_PLUS_TIMES_SEMIRING_FP32 },
            { "a mask", 0, 1, NULL, GrB_DESC_S, GrB_MAX_SECOND_SEMIRING_FP32 },
            { "a mask over a full C", 1, 1, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32 },
            { "a mask that replaces", 1, 1, NULL, GrB_DESC_RC, GrB_PLUS_TIMES_SEMIRING_FP32 },
            { "a transposed A", 0, 0, NULL, GrB_DESC_T0, GrB_MIN_FIRST_SEMIRING_FP32 },
        };

        grb.allocate = own ? counted_malloc : NULL;
        for (size_t i = 0; i < sizeof products / sizeof *products; i++) test_product(&grb, &products[i], operands);
    }
    for (int i = 0; i < 3; i++) GrB_Matrix_free(&operands[i]);
    api->close(api->context);
    GrB_finalize();
    return done();
}
