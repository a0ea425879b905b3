/* Data sets from files: the implementation of "graft.data/1".
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_data.h"
#include "graft_transport.h"

/** See graft_data.open_slice(), and open() without a transport. path and data may be NULL on some ranks, which all
 *  ranks then report. `maps`: dense features are mapped, not read, if that is possible. */
int32_t gr_io_data_open_slice(graft_context *context, const graft_transport *transport, const char *path, int maps,
                              graft_data **data, graft_error *error);

const graft_dataset *gr_io_data_view(const graft_data *data);
void                 gr_io_data_close(graft_context *context, graft_data *data);
