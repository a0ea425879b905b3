/* The functions of the headers, compiled with AVX on x86-64. There, a comparison of several numbers at once may raise a
 * floating-point exception for NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#include "with_avx.h"

#include "graphblas/graft_grb.h"

int has_avx(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx") != 0;
#else
    return 1;
#endif
}

int find_special(const void *array, int wide, int64_t count)
{
    return graft_grb_find_special_rows(array, wide, 1, count, NULL, 1);
}
