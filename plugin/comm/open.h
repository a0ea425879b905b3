/* Opens transports of modules, and finds the MPI of the process.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"
#include "graft_transport.h"

/** As graft_transport_api.open(), but the structs have the sizes of this library. */
int32_t gr_comm_transport_open(graft_context *context, const char *module, const graft_communicator *communicator,
                               graft_transport *transport, graft_error *error);
