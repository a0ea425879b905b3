/* The kernels that a test can try on this machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNELS_H
#define KERNELS_H

#include "graft_mxm.h"

/** Whether the kernel that module_info(index) describes can be used here. It is loaded if necessary, which updates
 *  `entry`; option mxm.kernel names it afterwards. The module of GraphBLAS can be loaded without GraphBLAS, and then
 *  refuses products. \return NULL, or the reason why it cannot, in static memory */
const char *kernel_lack(const graft_api *api, int32_t index, graft_module_entry *entry);

#endif
