/* The kernels for sparse products that this machine can use. Tests of products run with each of them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_H
#define KERNELS_H

#include "graft_mxm.h"

/** Whether the kernel that module_info(index) describes can be used here. The kernel is loaded if necessary, which
 * updates `entry`, and is the value of option mxm.kernel afterwards. The module for GraphBLAS can be loaded on a
 * machine without GraphBLAS, but then refuses products. \return NULL, or the reason in static memory. */
const char *kernel_lack(const graft_api *api, int32_t index, graft_module_entry *entry);

#endif
