/* The instruction sets that loops are compiled for.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_PROCESSOR_H
#define GR_BASE_PROCESSOR_H

/** Each includes those before it. */
enum gr_isa { GR_ISA_GENERIC, GR_ISA_AVX2, GR_ISA_AVX512, GR_ISAS };

/** Bytes of a cache line. */
enum { GR_CACHE_LINE = 64 };

/** The last one that the processor has and whose registers the system saves. */
enum gr_isa gr_processor_isa(void);

/** The level N of x86-64-vN (System V ABI of AMD64, section 3.1.1) that the processor has; 0 on other processors. */
int gr_processor_level(void);

#endif
