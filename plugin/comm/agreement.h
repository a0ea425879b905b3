/* How all ranks stop together when one fails: each rank has a receive open for a notice of every other rank. The first
 * notice of a rank has its reason to stop, the second one the agreed sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** The reason of a rank to stop: the kind of a notice. */
enum gr_stop {
    GR_STOP_FAILED = 1, /* it failed itself */
    GR_STOP_TIMEOUT,    /* it waited too long for another rank */
    GR_STOP_NOTIFIED,   /* it received a notice of another rank */
    GR_STOP_AGREED      /* the agreement of all ranks */
};

/** Open the receives. \return OK; ERR_NOMEM; errors of the transport. */
int32_t gr_comm_agreement_create(struct gr_comm *comm, graft_error *error);
void    gr_comm_agreement_destroy(struct gr_comm *comm);

/** Whether a notice of any rank has arrived. */
int gr_comm_agreement_has_notice(struct gr_comm *comm);

/** Stop: cancel pending messages, notify the others, agree with them, and mark the comm as dead. `error` holds the
 *  reason of this rank, and receives the agreed sentence. Returns ERR_PEER.
 *  \param[in] awaited  The rank that this one was waiting for, or -1. */
int32_t gr_comm_agreement_stop(struct gr_comm *comm, enum gr_stop why, int32_t awaited, graft_error *error);

/** Notify the others that this rank cannot create a comm. Returns ERR_PEER, and in `error` the error that the others
 *  return. */
int32_t gr_comm_agreement_announce(const graft_transport *transport, double timeout, graft_error *error);
