/* A transport whose ranks are threads of one process.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_transport.h"

enum { GR_RANK_THREADS_MAX = 4096 };

/** Fill transports[0 .. n_ranks - 1]. `host` has no missing functions; it is copied, and its allocator must exist until
 *  the last close(), which frees everything. \return OK; ERR_ARG (n_ranks); ERR_NOMEM. */
int32_t gr_comm_threads_create(const graft_host *host, int32_t n_ranks, graft_transport *transports,
                               graft_error *error);
