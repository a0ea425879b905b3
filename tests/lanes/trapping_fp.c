/* Replaces plugin/base/fp.c in a library for tests. The library then enables traps in its calls instead of masking
 * them, so that a program ends at the place where a call computes a number that is not finite.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fp.h"

#include <fenv.h>

struct gr_fp gr_fp_hold(void)
{
    const struct gr_fp host = gr_fp_get();

    const unsigned trapped = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW;

    gr_fp_set((struct gr_fp){ host.mxcsr & ~(trapped << 7 | FE_ALL_EXCEPT) });
    return host;
}
