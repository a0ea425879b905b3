/* A plugin for grb_plugins.c that uses the GraphBLAS library with which it is linked. Its products multiply a small
 * graph by a full matrix. Each function returns the weighted sum of the result, or an error code of GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#include "grb_plugin.h"

enum { N = 300, WIDTH = 40 };

static void add_values(float *z, const float *x, const float *y)
{
    *z = *x + *y;
}

static void multiply_values(float *z, const float *x, const float *y)
{
    *z = *x * *y;
}

static void set_value(GrB_Matrix matrix, int user, float value, GrB_Index i, GrB_Index j)
{
    if (user) GrB_Matrix_setElement_UDT(matrix, &value, i, j);
    else GrB_Matrix_setElement_FP32(matrix, value, i, j);
}

static GrB_Matrix plugin_graph(GrB_Type type, int user)
{
    GrB_Matrix a = NULL;

    GrB_Matrix_new(&a, type, N, N);
    for (GrB_Index i = 0; i < N; i++) set_value(a, user, (float)(i % 5) / 2, i, (i + 1) % N);
    return a;
}

static GrB_Matrix full_operand(GrB_Type type, int user)
{
    GrB_Matrix h = NULL;

    GrB_Matrix_new(&h, type, N, WIDTH);
    for (GrB_Index i = 0; i < N * WIDTH; i++) set_value(h, user, (float)(i % 11), i / WIDTH, i % WIDTH);
    return h;
}

/* The weighted sum of the values of a matrix; with `user` it has a user-defined type. */
static double weighted_sum(GrB_Matrix c, int user)
{
    double sum = 0;

    for (GrB_Index i = 0; i < N * WIDTH; i++) {
        float value = 0;

        if (user) GrB_Matrix_extractElement_UDT(&value, c, i / WIDTH, i % WIDTH);
        else GrB_Matrix_extractElement_FP32(&value, c, i / WIDTH, i % WIDTH);
        sum += (double)((float)(i % 3 + 1) * value);
    }
    return sum;
}

static double multiply_new(product_function mxm, GrB_Semiring semiring, GrB_Type type, int user)
{
    GrB_Matrix     a = plugin_graph(type, user), h = full_operand(type, user), c = NULL;
    const GrB_Info info = GrB_Matrix_new(&c, type, N, WIDTH);
    double         result = info == GrB_SUCCESS ? mxm(c, NULL, NULL, semiring, a, h, NULL) : info;

    if (result == 0) result = weighted_sum(c, user);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
    return result;
}

static GrB_Info call_here(GrB_Matrix c, GrB_Matrix mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Matrix a,
                          GrB_Matrix b, GrB_Descriptor descriptor)
{
    return GrB_mxm(c, mask, accum, semiring, a, b, descriptor);
}

init_function plugin_init_function(void)
{
    return GxB_init;
}

product_function plugin_product_function(void)
{
    return GrB_mxm;
}

int plugin_init(void)
{
    return GrB_init(GrB_NONBLOCKING);
}

int plugin_finalize(void)
{
    return GrB_finalize();
}

/* Uses only functions that GraphBLAS 7 has, and later versions too. */
double plugin_product(product_function mxm, enum operators operators)
{
    GrB_BinaryOp add = NULL, times = NULL;
    GrB_Monoid   monoid = NULL;
    GrB_Semiring semiring = NULL;
    GrB_Type     type = NULL;
    float        zero = 0;
    double       result;

    if (mxm == NULL) mxm = call_here;
    if (operators == NO_OPERATORS) return multiply_new(mxm, NULL, GrB_FP32, 0);
    if (operators == BUILT_IN) return multiply_new(mxm, GrB_PLUS_TIMES_SEMIRING_FP32, GrB_FP32, 0);
    if (operators == OWN_SEMIRING) {
        GrB_Monoid_new_FP32(&monoid, GrB_PLUS_FP32, 0);
        GrB_Semiring_new(&semiring, monoid, GrB_TIMES_FP32);
    } else {
        GrB_Type_new(&type, sizeof zero);
        GrB_BinaryOp_new(&add, (GxB_binary_function)add_values, type, type, type);
        GrB_BinaryOp_new(&times, (GxB_binary_function)multiply_values, type, type, type);
        GrB_Monoid_new_UDT(&monoid, add, &zero);
        GrB_Semiring_new(&semiring, monoid, times);
    }
    result = multiply_new(mxm, semiring, operators == OWN_TYPE ? type : GrB_FP32, operators == OWN_TYPE);
    GrB_Semiring_free(&semiring);
    GrB_Monoid_free(&monoid);
    GrB_BinaryOp_free(&add);
    GrB_BinaryOp_free(&times);
    GrB_Type_free(&type);
    return result;
}
