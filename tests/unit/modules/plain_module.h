/* A module without state. The file that includes this header defines `table` after it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

static const graft_module_table table;

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    (void)host, (void)error;
    *state = NULL;
    return GRAFT_OK;
}

static void fini(void *state)
{
    (void)state;
}

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    (void)abi_min, (void)abi_max, (void)error;
    *out = &table;
    return GRAFT_OK;
}
