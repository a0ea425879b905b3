/* The instruction sets for which loops are compiled.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

/** AVX-512 includes AVX2. The size of SVE registers depends on the processor; loops exist for two sizes. */
enum gr_isa { GR_ISA_GENERIC, GR_ISA_AVX2, GR_ISA_AVX512, GR_ISA_SVE256, GR_ISA_SVE512, GR_ISAS };

/** Select the function for an instruction set among NAME_generic, NAME_avx2, ... */
#if defined(__x86_64__)
#define GR_FOR_ISA(name, isa)                                                                                          \
    ((isa) >= GR_ISA_AVX512 ? name##_avx512 : (isa) >= GR_ISA_AVX2 ? name##_avx2 : name##_generic)
#elif defined(GR_HAS_SVE)
#define GR_FOR_ISA(name, isa)                                                                                          \
    ((isa) == GR_ISA_SVE512 ? name##_sve512 : (isa) == GR_ISA_SVE256 ? name##_sve256 : name##_generic)
#else
#define GR_FOR_ISA(name, isa) ((void)(isa), name##_generic)
#endif

/** Bytes of a cache line. */
enum { GR_CACHE_LINE = 64 };

/** The best instruction set that the processor has, whose registers the system saves, and for which loops are
 *  compiled. */
enum gr_isa gr_processor_isa(void);

/** The level N of x86-64-vN (System V ABI of AMD64, section 3.1.1) that the processor has; 0 on other processors. */
int gr_processor_level(void);
