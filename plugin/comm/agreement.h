/* Agreement on what went wrong. Every rank has a receive open for a control message of every other rank. The first of
 * them says why a rank stops (its verdict), the second on what the ranks agree (the conclusion).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COMM_AGREEMENT_H
#define GR_COMM_AGREEMENT_H

#include "comm/comm.h"

/** Why a rank stops. */
enum gr_complaint {
    GR_FAILED = 1, /* of itself */
    GR_TIMEOUT,    /* it waited too long for another */
    GR_HEARD,      /* it heard of another's failure */
    GR_CONCLUSION  /* no complaint, but what all agree on */
};

/** Open the receives. \return OK; ERR_NOMEM or what the transport says. */
int32_t gr_control_create(struct gr_comm *comm, graft_error *error);
void    gr_control_destroy(struct gr_comm *comm);

/** Whether any rank was heard complaining. */
int gr_control_heard(struct gr_comm *comm);

/** Stop: tell the others why, hear them, agree, and die. `blamed` is the rank that this one was waiting for, or -1.
 *  Returns ERR_PEER with the agreed sentence in `error`, which gives the reason of this rank before. */
int32_t gr_control_stop(struct gr_comm *comm, enum gr_complaint complaint, int32_t blamed, graft_error *error);

/** What a rank does that cannot even make a comm: tell the others. Returns ERR_PEER, with what they say in `error`. */
int32_t gr_control_announce(const graft_transport *transport, double timeout, graft_error *error);

#endif
