/* The tables of public calls that hosts have. They outlive their contexts.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_host.h"

/** The number of tables of closed contexts that are not reused yet. */
enum { GR_TABLES_KEPT = 256 };

/** Create a table with these calls for a context. The C library allocates it, not the host. \return OK; ERR_NOMEM */
int32_t gr_table_create(const graft_api *calls, graft_context *context, graft_api **api, graft_error *error);

/** Retire the table of a context that was closed. From now on it refers to no valid context. It is reused after
 *  GR_TABLES_KEPT other tables have been retired. */
void gr_table_retire(graft_api *api);
