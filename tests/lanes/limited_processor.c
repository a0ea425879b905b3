/* Replaces plugin/base/processor.c in a library for tests, which then behaves as on a processor with fewer instruction
 * sets. Variable GRAFT_TEST_ISA is the highest instruction set, as a number of enum gr_isa.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/processor.h"

#include <stdlib.h>

enum gr_isa isa_of_processor(void);

#define gr_processor_isa isa_of_processor
#include "base/processor.c"
#undef gr_processor_isa

enum gr_isa gr_processor_isa(void)
{
    const char       *most = getenv("GRAFT_TEST_ISA");
    const enum gr_isa isa = isa_of_processor();

    return most != NULL && atoi(most) < (int)isa ? (enum gr_isa)atoi(most) : isa;
}
