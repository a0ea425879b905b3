/* Kernel "simd" and its variants for older instruction sets.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_module.h"

/** Variant `index` of those that this processor can run, the best first: variant 0 has the name "simd", the others
 *  "simd." and their instruction set. NULL after the last. */
const graft_module_table *gr_kernel_simd(int32_t index);
