/* How long a message takes from one rank to another: measured once, pair by pair, on the transport that there is.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_ADAPTIVE_NETWORK_H
#define GR_ADAPTIVE_NETWORK_H

#include "comm/comm.h"

/** Seconds of a message: gamma, and theta for each byte. */
struct gr_pace {
    double gamma, theta;
};

/** Have comm->pace: of messages of this rank, by receiver; on rank 0 of those of all ranks, by sender and receiver. The
 *  first call measures it, in about n_ranks rounds, in each of which the ranks of a pair exchange 2 MB. Collective.
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_comm_pace(struct gr_comm *comm, graft_error *error);

#endif
