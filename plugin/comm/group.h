/* Collective calls for hosts. Messages are copied: a transport that cannot cancel a message may use its memory after a
 * failure, so the transport never gets memory of the host.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"
#include "graft_group.h"

struct graft_group {
    struct gr_handle handle;
    graft_context   *context;
    struct gr_comm  *comm;
};

/** \return OK; ERR_NOMEM, ERR_VERSION, ERR_ARG; ERR_PEER. */
int32_t gr_comm_group_join(graft_context *context, const graft_transport *transport, graft_group **group,
                           graft_error *error);
void    gr_comm_group_leave(graft_group *group);

/* See graft_transport_api. `rc` is the status of this rank's argument check, with the message in error if it failed;
 * the ranks agree on it.
 * \return OK; the status of a rank, ERR_NOMEM, ERR_ARG (ranks disagree): the same on all ranks; ERR_PEER. */
int32_t gr_comm_group_agree(graft_group *group, int32_t rc, graft_error *error);
int32_t gr_comm_group_sum(graft_group *group, int32_t rc, graft_dtype dtype, void *values, int64_t count,
                          graft_error *error);
int32_t gr_comm_group_maximum(graft_group *group, int32_t rc, int64_t *values, int64_t count, graft_error *error);
int32_t gr_comm_group_gather(graft_group *group, int32_t rc, int32_t root, const void *mine, const int64_t *bytes,
                             void *all, graft_error *error);
int32_t gr_comm_group_broadcast(graft_group *group, int32_t rc, int32_t root, void *data, int64_t bytes,
                                graft_error *error);
