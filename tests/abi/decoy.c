/* A library on which a module depends. It happens to export a function with the name of a module's entry point.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

int graft_decoy_anchor(void);
int graft_decoy_anchor(void)
{
    return 1;
}

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **table, graft_error *error)
{
    (void)abi_min, (void)abi_max, (void)table, (void)error;
    return GRAFT_OK;
}
