/* Common parts of files of networks and of streams: texts that describe the network, and its items.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "io/state_file.h"
#include "network/network.h"

enum { GR_NETWORK_TEXTS = 15 };

/** The metadata of a file. */
struct gr_network_texts {
    char                  value[GR_NETWORK_TEXTS][24];
    struct gr_tensor_pair pair[GR_NETWORK_TEXTS];
};

void gr_network_texts(const graft_network *n, struct gr_network_texts *texts);

/** The items that a file has; statistics, moments and progress may be absent. Names that begin with `others`, which may
 *  be NULL, are of other tensors. */
struct gr_state_items gr_network_items(graft_network *n, const char *others);

/** Whether the metadata of a file belong to this network, or to another program. \return OK; ERR_FORMAT. */
int32_t gr_network_check_texts(const graft_network *n, const struct gr_tensors *header, const char *shown,
                               graft_error *error);
/** Make copies of the items in a file, NULL for missing items, and read them on the rank with the open file.
 *  \return OK; ERR_NOMEM; ERR_IO; ERR_FORMAT. */
int32_t gr_network_read_items(graft_network *n, const struct gr_tensor_file *from, struct gr_pool *pool, void **copies,
                              graft_error *error);
/** Move the values of copies to the network. */
void    gr_network_take_items(graft_network *n, void *const *copies);
