/* The tables of calls that hosts have, which outlive their contexts.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_host.h"

/** Tables of contexts that were closed last, which stay as they are. */
enum { GR_TABLES_KEPT = 256 };

/** A table with these calls, for a context. The library allocates it, not the host. \return OK; ERR_NOMEM */
int32_t gr_table_create(const graft_api *calls, graft_context *context, graft_api **api, graft_error *error);

/** The context of this table is closed: the table names a context from now on that is none, and is used again after
 *  those of GR_TABLES_KEPT other contexts. */
void gr_table_retire(graft_api *api);
