/* Collective calls of hosts. Data are copied, so that the transport never gets memory of the host: a transport that
 * cannot cancel a message may access its memory after a failure.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"
#include "graft_group.h"

struct graft_group {
    struct gr_handle handle;
    graft_context   *context;
    struct gr_comm  *comm;
};

/** Create a group of the ranks of a transport. \return OK; ERR_NOMEM, ERR_VERSION, ERR_ARG; ERR_PEER. */
int32_t gr_comm_group_join(graft_context *context, const graft_transport *transport, graft_group **group,
                           graft_error *error);
void    gr_comm_group_leave(graft_group *group);

/* The calls of graft_transport_api. `rc` is the result of checking the arguments on this rank, with its message in
 * `error`. The ranks first agree on it.
 * \return OK; the `rc` of a rank, ERR_NOMEM, ERR_ARG (ranks disagree): the same on all ranks; ERR_PEER. */
int32_t gr_comm_group_agree(graft_group *group, int32_t rc, graft_error *error);
int32_t gr_comm_group_sum(graft_group *group, int32_t rc, graft_dtype dtype, void *values, int64_t count,
                          graft_error *error);
int32_t gr_comm_group_maximum(graft_group *group, int32_t rc, int64_t *values, int64_t count, graft_error *error);
int32_t gr_comm_group_gather(graft_group *group, int32_t rc, int32_t root, const void *mine, const int64_t *bytes,
                             void *all, graft_error *error);
int32_t gr_comm_group_broadcast(graft_group *group, int32_t rc, int32_t root, void *data, int64_t bytes,
                                graft_error *error);
