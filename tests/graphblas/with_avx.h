/* Functions of the headers as a host compiles them for processors with AVX.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_GRAPHBLAS_WITH_AVX_H
#define TEST_GRAPHBLAS_WITH_AVX_H

#include <stdint.h>

/** Whether this processor can run them. */
int has_avx(void);

/** The flags GRAFT_GRB_... of special values in an array of floats, or of doubles if `wide` is set. */
int find_special(const void *array, int wide, int64_t count);

#endif
