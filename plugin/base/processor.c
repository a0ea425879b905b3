/* Asks the processor for its instruction sets. The compiler's builtin would add code that runs when the library is
 * loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/processor.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Bits of register B of CPUID leaf 7, and the register states (XCR0) that the system must save. */
enum { AVX2_BITS = 1 << 5, AVX_STATE = 0x06, AVX512_STATE = 0xE6 };
static const unsigned AVX512_BITS = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */

static int has(unsigned bits, unsigned state)
{
    unsigned a, b, c, d, saved, upper;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
    if ((saved & state) != state || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    return (b & bits) == bits;
}
#endif

enum gr_isa gr_processor_isa(void)
{
#if defined(__x86_64__)
    if (has(AVX512_BITS, AVX512_STATE)) return GR_ISA_AVX512;
    if (has(AVX2_BITS, AVX_STATE)) return GR_ISA_AVX2;
#endif
    return GR_ISA_GENERIC;
}
