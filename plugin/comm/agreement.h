/* Makes all ranks stop together when one fails. Each rank has posted a receive for a notice from every other rank. The
 * first notice of a rank says why it stops, the second one states the agreed sentence.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** The kinds of notices: why a rank stops, or that ranks agree. */
enum gr_stop {
    GR_STOP_FAILED = 1, /* it failed */
    GR_STOP_TIMEOUT,    /* it waited too long for another rank */
    GR_STOP_NOTIFIED,   /* it received a notice of another rank */
    GR_STOP_AGREED      /* all ranks agree on this sentence */
};

/** Post the receives of notices. \return OK; ERR_NOMEM; errors of the transport. */
int32_t gr_comm_agreement_create(struct gr_comm *comm, graft_error *error);
void    gr_comm_agreement_destroy(struct gr_comm *comm);

/** Whether a notice of any rank has arrived. */
int gr_comm_agreement_has_notice(struct gr_comm *comm);

/** Notify the other ranks, cancel pending messages, agree with the others on a sentence, and mark the comm as dead.
 *  `error` holds the reason of this rank, and receives the agreed sentence. \return ERR_PEER.
 *  \param[in] awaited  The rank that this one was waiting for, or -1. */
int32_t gr_comm_agreement_stop(struct gr_comm *comm, enum gr_stop why, int32_t awaited, graft_error *error);

/** Notify the other ranks that this rank cannot create a comm. \return ERR_PEER, and in `error` the error that the
 *  others return. */
int32_t gr_comm_agreement_announce(const graft_transport *transport, double timeout, graft_error *error);
