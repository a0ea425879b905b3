/* Which of the instruction sets that loops are compiled for this processor has.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_PROCESSOR_H
#define GR_BASE_PROCESSOR_H

/** Each has what those before it have. */
enum gr_isa { GR_ISA_GENERIC, GR_ISA_AVX2, GR_ISA_AVX512, GR_ISAS };

/** The last one that the processor has and the system saves the registers of. */
enum gr_isa gr_processor_isa(void);

#endif
