/* Makes objects of GraphBLAS for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "objects.h"

GrB_Matrix three_each(GrB_Type type)
{
    GrB_Matrix a = NULL;

    GrB_Matrix_new(&a, type, N, N);
    GxB_Matrix_Option_set(a, GxB_SPARSITY_CONTROL, GxB_SPARSE);
    for (GrB_Index v = 0; v < N; v++) {
        for (GrB_Index k = 1; k <= 3; k++) GrB_Matrix_setElement_FP64(a, 0.25 * (double)k, v, (v * k + 5 * k) % N);
    }
    GrB_Matrix_wait(a, GrB_MATERIALIZE);
    return a;
}

GrB_Matrix all_elements(GrB_Index n, GrB_Index width)
{
    GrB_Matrix h = NULL;

    GrB_Matrix_new(&h, GrB_FP32, n, width);
    for (GrB_Index i = 0; i < n; i++) {
        for (GrB_Index j = 0; j < width; j++) GrB_Matrix_setElement_FP64(h, (double)((i * 7 + j * 3) % 13) / 8, i, j);
    }
    GrB_Matrix_wait(h, GrB_MATERIALIZE);
    return h;
}
