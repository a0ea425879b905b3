/* Reads data sets from files: the implementation of "graft.data/1".
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_data.h"
#include "graft_transport.h"

/** Open a data set, or with a transport this rank's slice of it: see graft_data. If path or data is NULL on some rank,
 *  all ranks return the error. With `maps` the file of dense features is mapped instead of read, if possible. */
int32_t gr_io_data_open_slice(graft_context *context, const graft_transport *transport, const char *path, int maps,
                              graft_data **data, graft_error *error);

const graft_dataset *gr_io_data_view(const graft_data *data);
void                 gr_io_data_close(graft_context *context, graft_data *data);
