/* The functions of a host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_HOST_H
#define GR_BASE_HOST_H

#include "graft_host.h"

/** Copy a host, or NULL, with defaults for missing functions. \return OK; ERR_ARG; ERR_UNSUPPORTED */
int32_t gr_host_complete(graft_host *ours, const graft_host *theirs, graft_error *error);

/** A host for the modules of a context, which forwards all calls. */
graft_host gr_host_for_modules(graft_context *context);

#endif
