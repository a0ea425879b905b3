/* Makes objects of GraphBLAS for tests. The tests free them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GRAPHBLAS_OBJECTS_H
#define TEST_GRAPHBLAS_OBJECTS_H

#include <GraphBLAS.h>

enum { N = 60 }; /* number of vertices */

/** Make a graph in which each of N vertices gathers from three others, with weights, stored by row. */
GrB_Matrix three_each(GrB_Type type);

/** Make a full matrix [n x width] of type FP32. */
GrB_Matrix all_elements(GrB_Index n, GrB_Index width);

#endif
