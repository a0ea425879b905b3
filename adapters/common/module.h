/* The function with which every module returns its table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ADAPTERS_MODULE_H
#define ADAPTERS_MODULE_H

#include "graft_module.h"

#include <stdio.h>

/** The body of graft_module() in a module that knows only GRAFT_ABI_VERSION. Returns OK or ERR_VERSION. */
static inline int32_t module_give(const graft_module_table *mine, uint32_t abi_min, uint32_t abi_max,
                                  const graft_module_table **table, graft_error *error)
{
    if (abi_min > GRAFT_ABI_VERSION || abi_max < GRAFT_ABI_VERSION) {
        error->code = GRAFT_ERR_VERSION;
        snprintf(error->message, sizeof error->message, "%s module %s has version %u, the library supports %u to %u",
                 mine->kind, mine->name, GRAFT_ABI_VERSION, abi_min, abi_max);
        return GRAFT_ERR_VERSION;
    }
    *table = mine;
    return GRAFT_OK;
}

#endif
