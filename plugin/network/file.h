/* Common parts of files of networks and of streams: texts that describe the network, and its items.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_NETWORK_FILE_H
#define GR_NETWORK_FILE_H

#include "io/tensor_file.h"
#include "network/network.h"

enum { GR_NETWORK_TEXTS = 15 };

/** The metadata of a file. */
struct gr_network_texts {
    char                  value[GR_NETWORK_TEXTS][24];
    struct gr_tensor_pair pair[GR_NETWORK_TEXTS];
};

void gr_network_texts(const graft_network *n, struct gr_network_texts *texts);

/** List the saved tensors, with space for `more` tensors at the end. The caller frees *data. \return OK; ERR_NOMEM. */
int32_t gr_network_list(graft_network *n, struct gr_tensor_data **data, int32_t *count, int32_t more,
                        graft_error *error);

/** Whether the metadata of a file belong to this network, or to another program. \return OK; ERR_FORMAT. */
int32_t gr_network_check_texts(const graft_network *n, const struct gr_tensors *header, const char *shown,
                               graft_error *error);
/** Whether a file has the items of this network, and no other tensors except names that begin with `others`, which may
 *  be NULL. Statistics, moments and progress may be absent. \return OK; ERR_FORMAT. */
int32_t gr_network_check_tensors(graft_network *n, const struct gr_file *file, const struct gr_tensors *header,
                                 const char *others, graft_error *error);

/** Make copies of the items in a file, NULL for missing items, and read them on the rank with the open file.
 *  \return OK; ERR_NOMEM; ERR_IO; ERR_FORMAT. */
int32_t gr_network_read_items(graft_network *n, const struct gr_tensor_file *from, struct gr_pool *pool, void **copies,
                              graft_error *error);
/** Move the values of copies to the network. */
void    gr_network_take_items(graft_network *n, void *const *copies);

#endif
