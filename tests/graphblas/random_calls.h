/* Random calls of GrB_mxm, GrB_mxv and GrB_vxm. Each is made twice, by the function under test and by GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANDOM_CALLS_H
#define RANDOM_CALLS_H

#include <GraphBLAS.h>

#include <stdint.h>

/* A program that was built with the header of version 7 also runs with later libraries, whose options have other
 * numbers. */
#ifdef OPTIONS_OF_VERSION_8
#define GxB_FORMAT 7002
#define GxB_SPARSITY_CONTROL 7036
#endif

/** The functions to be compared. */
struct products {
    GrB_Info (*mxm)(GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Matrix, GrB_Descriptor);
    GrB_Info (*mxv)(GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Vector, GrB_Descriptor);
    GrB_Info (*vxm)(GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Vector, GrB_Matrix, GrB_Descriptor);
};

enum { LIBRARY_DIFFERS = 2 };

/** Make call number `number` with `tested` and with `plain` on equal objects, and compare error codes and results.
 * Values are small integers, so that sums are exact in any order, and rarely NaN or infinity. \param[out] fault A
 * sentence about the difference. \return 1 if there is none, 0 if there is one, or LIBRARY_DIFFERS if `plain` agrees
 * with `tested` only when the operands have the type of the semiring, because versions 8 and 9 of the library compute
 * wrong sums for some operands of two types. */
int random_call(uint64_t number, const struct products *tested, const struct products *plain, char *fault, size_t size);

#endif
