/* The network model: latency and bandwidth from each rank to each other rank, measured once on the transport in use.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"

/** A message of B bytes takes gamma + theta B seconds: latency, and the inverse of bandwidth, as AdaQP names them. */
struct gr_network {
    double gamma, theta;
};

/** Fill in comm->network: [n_ranks] for messages of this rank, by receiver; on rank 0 [n_ranks x n_ranks] for messages
 *  of all ranks, by sender and receiver. The first call measures it in about n_ranks rounds, in each of which the ranks
 *  of a pair exchange 2 MB; later calls return at once. Collective.
 * \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_adaptive_network_measure(struct gr_comm *comm, graft_error *error);
