/* Refines a partition, made by any method, over the ranks that have the slices.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "partition/joint.h"

struct gr_refinement {
    int64_t rounds;
    int64_t cut_before, cut; /* entries whose row and column have different owners */
};

/** Do the rounds of gr_partition_refine() on a joint whose vertices all have owners; the vertices of the slice receive
 *  the best owners. Collective. \return OK; ERR_NOMEM, ERR_CANCELLED: the same on all ranks; ERR_PEER. */
int32_t gr_partition_refine_rounds(struct gr_joint *joint, int64_t rounds, struct gr_refinement *done,
                                   graft_error *error);

/** Improve a partition by rounds in which each vertex may move to the part with most of its neighbours. The cut never
 *  grows. A part gets no vertex that would raise a quantity above GR_PARTITION_LIMIT times its mean; a part that had
 *  more before may keep its vertices. Ends when a round gains too little. Only rows are followed, so the matrix should
 *  be symmetric. Collective over input->comm.
 *
 * \param[in]     rounds  The largest number of rounds.
 * \param[in,out] mine    [n_rows] Owners from 0 to parts - 1.
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED, ERR_CANCELLED: the same on all ranks; ERR_PEER. Owners are unchanged on
 *         failure. Memory as method stream, and 4 bytes per row. */
int32_t gr_partition_refine(const struct gr_partition_input *input, int64_t rounds, int32_t *mine,
                            struct gr_refinement *refinement, graft_error *error);
