/* Objects of GraphBLAS for tests, which free them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GRAPHBLAS_OBJECTS_H
#define TEST_GRAPHBLAS_OBJECTS_H

#include <GraphBLAS.h>

enum { N = 60 }; /* vertices */

/** A graph in which each of N vertices gathers from three others, with weights, by row. */
GrB_Matrix three_each(GrB_Type type);

/** [n x width] of FP32, with all elements. */
GrB_Matrix all_elements(GrB_Index n, GrB_Index width);

#endif
