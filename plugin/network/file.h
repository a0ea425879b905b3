/* Common parts of the files of networks and of streams: texts that describe the network, and the items of its state.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "io/state_file.h"
#include "network/network.h"

enum { GR_NETWORK_TEXTS = 15 };

/** The texts that describe a network in the metadata of a file. */
struct gr_network_texts {
    char                  value[GR_NETWORK_TEXTS][24];
    struct gr_tensor_pair pair[GR_NETWORK_TEXTS];
};

void gr_network_texts(const graft_network *n, struct gr_network_texts *texts);

/** Describe the items that a file of this network contains; statistics, moments and progress may be missing. Other
 *  tensors have names that begin with `others`; NULL: there are none. */
struct gr_state_items gr_network_items(graft_network *n, const char *others);

/** Allocate copies of the items in a file, NULL for missing items, and on the rank with the open file read and check
 *  their values. \return OK; ERR_NOMEM; ERR_IO; ERR_FORMAT. */
int32_t gr_network_read_items(graft_network *n, const struct gr_tensor_file *from, struct gr_pool *pool, void **copies,
                              graft_error *error);
/** Replace the values of the network by those of the copies. */
void    gr_network_take_items(graft_network *n, void *const *copies);
