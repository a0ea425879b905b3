/* Finds the instruction sets of the processor. It is asked only once, because a virtual machine emulates the
 * instruction CPUID, which then takes 10 to 25 us. The compiler's builtin would add code that runs when the library is
 * loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/processor.h"

#include <stdatomic.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <stddef.h>

/* Where CPUID states a feature: a leaf, and bits in its registers B and C. */
struct cpuid_bits {
    unsigned leaf, b, c;
};

/* The registers (bits of XCR0) that the system must save on a task switch. */
enum { AVX_STATE = 0x06, AVX512_STATE = 0xE6 };

#define BIT(n) (1u << (n))

static const struct cpuid_bits avx2[] = { { 7, BIT(5), 0 } };
static const struct cpuid_bits avx512[] = { { 7, BIT(16) | BIT(17) | BIT(30) | BIT(31), 0 } }; /* F, DQ, BW, VL */

/* x86-64-v2: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF. v3: BMI1, AVX2, BMI2; FMA, MOVBE, F16C; LZCNT.
 * v4: AVX-512 F, DQ, CD, BW, VL. */
static const struct cpuid_bits level_2[] = { { 1, 0, BIT(0) | BIT(9) | BIT(13) | BIT(19) | BIT(20) | BIT(23) },
                                             { 0x80000001u, 0, BIT(0) } };
static const struct cpuid_bits level_3[] = { { 7, BIT(3) | BIT(5) | BIT(8), 0 },
                                             { 1, 0, BIT(12) | BIT(22) | BIT(28) | BIT(29) },
                                             { 0x80000001u, 0, BIT(5) } };
static const struct cpuid_bits level_4[] = { { 7, BIT(16) | BIT(17) | BIT(28) | BIT(30) | BIT(31), 0 } };

static int has(const struct cpuid_bits *wanted, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        unsigned a, b, c, d;

        if (!__get_cpuid_count(wanted[i].leaf, 0, &a, &b, &c, &d)) return 0;
        if ((b & wanted[i].b) != wanted[i].b || (c & wanted[i].c) != wanted[i].c) return 0;
    }
    return 1;
}

#define HAS(wanted) has(wanted, sizeof(wanted) / sizeof *(wanted))

static int saves(unsigned state)
{
    unsigned a, b, c, d, saved, upper;

    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
    return (saved & state) == state;
}
#endif

#if defined(GR_HAS_SVE)
#include <sys/auxv.h>
#include <sys/prctl.h>

enum { HAS_SVE = 1 << 22 }; /* bit of AT_HWCAP */

/* The number of bytes in a register of SVE; 0: there is no SVE. */
static int sve_bytes(void)
{
    return getauxval(AT_HWCAP) & HAS_SVE ? prctl(PR_SVE_GET_VL) & PR_SVE_VL_LEN_MASK : 0;
}
#endif

static enum gr_isa find_isa(void)
{
#if defined(GR_HAS_SVE)
    if (sve_bytes() == 64) return GR_ISA_SVE512;
    if (sve_bytes() == 32) return GR_ISA_SVE256;
#endif
#if defined(__x86_64__)
    if (saves(AVX512_STATE) && HAS(avx512) && HAS(avx2)) return GR_ISA_AVX512;
    if (saves(AVX_STATE) && HAS(avx2)) return GR_ISA_AVX2;
#endif
    return GR_ISA_GENERIC;
}

static int find_level(void)
{
#if defined(__x86_64__)
    if (!HAS(level_2)) return 1;
    if (!saves(AVX_STATE) || !HAS(level_3)) return 2;
    return saves(AVX512_STATE) && HAS(level_4) ? 4 : 3;
#else
    return 0;
#endif
}

/* The results, which are negative until they are first needed. */
static struct {
    atomic_int isa, level;
} gr_processor = { -1, -1 };

enum gr_isa gr_processor_isa(void)
{
    if (atomic_load(&gr_processor.isa) < 0) atomic_store(&gr_processor.isa, (int)find_isa());
    return (enum gr_isa)atomic_load(&gr_processor.isa);
}

int gr_processor_level(void)
{
    if (atomic_load(&gr_processor.level) < 0) atomic_store(&gr_processor.level, find_level());
    return atomic_load(&gr_processor.level);
}
