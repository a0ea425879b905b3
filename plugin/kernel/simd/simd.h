/* Kernel "simd" and its variants for older instruction sets.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_module.h"

/** Variant number `index` that this processor can run, the best first, under the name "simd"; NULL past the last. */
const graft_module_table *gr_kernel_simd(int32_t index);
