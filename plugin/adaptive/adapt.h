/* Adaptive bits: each row goes in 2, 4 or 8, chosen by how far apart its elements are, by what its receiver makes of
 * it, and by how long messages take. Source: AdaQP, section 4 (Wan, Zhao, Wu 2023).
 *
 * An error e in a row that comes changes what the receiver computes by e times the factors that it multiplies the row
 * with; the sum of their squares is the weight of the row. Rows from one rank to another are parted into groups, of
 * which rank 0 is told how many rows they have, and what would be lost with a step as wide as the range of each row
 * (adaptive/assign.h). It counts what is lost in a layer and direction as a share of what its rows say there, sum of
 * weight |x|^2: gradients are smaller than features by orders of magnitude, and matter as much.
 *
 * Everything is the same for any number of threads. Bits that are decided by the balance of loss and time depend on
 * measured times (adaptive/network.h), and differ from run to run; those within a limit do not.
 *
 * adapt.c  from ranges to bits, over all ranks      groups.c  the groups of one rank
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_ADAPTIVE_ADAPT_H
#define GR_ADAPTIVE_ADAPT_H

#include "adaptive/assign.h"
#include "halo/layers.h"

/** Decide on the bits of passes to come, by the last passes of these layers; those without any keep theirs, and those
 *  that are not adaptive, or NULL, are left out. Rows that travel keep theirs. Collective, for the same layers on all
 *  ranks.
 * \param[in] of       Has the limits.
 * \param[in] layers    [n_layers] or NULL: all of `of`.
 * \param[in] besides  Bytes of other rows in an epoch, which count for the limit of bytes.
 * \return OK; ERR_OPTION (a limit that cannot be met: what can be; that of the loss only at the first time, later all
 *         rows of such a layer have 8 bits, and the log of rank 0 says so); ERR_NOMEM: the same on all ranks, and bits
 *         stay as they were; ERR_PEER. */
int32_t gr_adapt(const struct gr_halo_layers *of, struct gr_halo_layer *const *layers, int32_t n_layers,
                 int64_t besides, graft_error *error);

/** How many groups the rows of a layer that go are parted into, at most `most` for each rank. */
int64_t gr_groups_count(const struct gr_halo_layer *layer, int32_t n_ranks, int64_t most);

/** Make these groups, of about as many rows each, of those that matter most to those that matter least; `channel` is
 *  the rank that they go to. \param[out] number  [rows that go] the group of each, counted for each rank.
 * \return OK; ERR_NOMEM. */
int32_t gr_groups_make(const graft_context *context, const struct gr_halo_layer *layer, int32_t n_ranks, int64_t most,
                       struct gr_assign_group *groups, uint8_t *number, graft_error *error);

/** layer->bits.next of rows that go, from the bits of their groups. */
void gr_groups_spread(struct gr_halo_layer *layer, int32_t n_ranks, int64_t most, const struct gr_assign_group *groups,
                      const uint8_t *number);

/** The sum of weight |x|^2 of the rows that go. */
double gr_groups_signal(const struct gr_halo_layer *layer);

#endif
