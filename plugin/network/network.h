/* A network as an object of the host: the arithmetic of mgn/ with statistics, noise, loss, optimiser and files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_NETWORK_NETWORK_H
#define GR_NETWORK_NETWORK_H

#include "graft_network.h"
#include "mgn/mgn.h"

/** Another use; each has its gr_network_destroy(), and the last frees the network. */
graft_network *gr_network_use(graft_network *network);
void           gr_network_destroy(graft_network *network);

/** A pair in the order of nodes of the mesh, and in the type of the network: input [n_nodes x n_in], target
 *  [n_nodes x n_out]. */
struct gr_network_pair {
    const void *input, *target;
};

/** One training step, and the mean loss of pairs without noise and without a step. Collective. \return as
 *  graft_networks.train(). */
int32_t gr_network_train(graft_network *network, const struct gr_network_pair *pairs, int32_t count,
                         graft_network_step *step, graft_error *error);
int32_t gr_network_loss(graft_network *network, const struct gr_network_pair *pairs, int32_t count, double *loss,
                        graft_error *error);

#endif
