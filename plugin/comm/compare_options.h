/* Checks that all ranks have the same options.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"
#include "comm/collective.h"

/** Check that options with scope SAME have the same values on all ranks. `groups` is a set of option tables (a bit for
 *  each). Collective.
 *  \return OK; ERR_ARG, with one option and the values of two ranks in the message, the same on all ranks; ERR_PEER. */
int32_t gr_comm_compare_options(const graft_context *context, struct gr_comm *comm, uint32_t groups,
                                graft_error *error);

/** As gr_comm_compare_options(), for live options only. */
int32_t gr_comm_compare_live_options(const graft_context *context, struct gr_comm *comm, uint32_t groups,
                                     graft_error *error);

/** Compute the CRC32C of the values of live options with scope SAME in the set of tables `groups` (a bit for each).
 *  Ranks compare it before each training step. */
uint64_t gr_comm_digest_live_options(const graft_context *context, uint32_t groups);
