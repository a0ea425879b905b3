/* Whether all ranks have the same options.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"
#include "comm/collective.h"

/** Compare options that must be the same on all ranks. `groups` has a bit for each group of options. Collective.
 *  \return OK; ERR_ARG: names one option and two ranks with their values, the same on all ranks; ERR_PEER. */
int32_t gr_comm_compare_options(const graft_context *context, struct gr_comm *comm, uint32_t groups,
                                graft_error *error);

/** As gr_comm_compare_options(), but of live options only. */
int32_t gr_comm_compare_live_options(const graft_context *context, struct gr_comm *comm, uint32_t groups,
                                     graft_error *error);

/** CRC32C of the values of live options with scope SAME. `groups` is a bit mask of option groups. Ranks compare it
 *  before each training step. */
uint64_t gr_comm_digest_live_options(const graft_context *context, uint32_t groups);
