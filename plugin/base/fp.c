/* Masks the floating-point traps of a thread during a public call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/fp.h"

#if defined(__x86_64__)

enum { MASKS = 0x1F80 };

struct gr_fp gr_fp_hold(void)
{
    const struct gr_fp host = gr_fp_get();

    gr_fp_set((struct gr_fp){ host.mxcsr | MASKS });
    return host;
}

#else

struct gr_fp gr_fp_hold(void)
{
    struct gr_fp host;

    feholdexcept(&host.environment);
    return host;
}

#endif
