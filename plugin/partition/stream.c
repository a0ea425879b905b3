/* Method stream: assigns vertices one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "partition/refine.h"

#include <string.h>

/* The number of passes, and the largest number of rounds of refinement. The first pass does not know the owners of
 * later neighbours: alone it cuts 1.7 times as many edges of the Debian graph. More passes than this gain little. */
enum { PASSES = 5, ROUNDS = 20 };

/* Assign one vertex, given the owners of the others, which are -1 if not assigned yet. */
static void assign_vertex(struct gr_joint *joint, int64_t row)
{
    struct gr_loads *loads = &joint->loads;
    int64_t          weight[GR_SHARES];
    int32_t          part;

    gr_partition_slice_weigh(&joint->slice, row, weight);
    part = gr_partition_loads_nearest(loads, &joint->slice, row, weight, joint->owner);
    if (part < 0) part = gr_partition_loads_least(loads, weight);
    GR_ASSERT(part >= 0 && part < loads->parts);
    gr_partition_loads_add(loads, part, weight, 1);
    joint->owner[row] = part;
}

/* Assign vertices one after the other, each to the part with most of its neighbours, weighted by the remaining
 * capacity: linear deterministic greedy (Stanton and Kliot, KDD 2012) with the maximum over the quantities as the load.
 * Further passes begin with empty parts, and use the previous owners of vertices that have no new one (Nishimura and
 * Ugander, KDD 2013). A vertex that fits nowhere goes to the part that it overfills least; at the end overfull parts
 * are relieved as in gr_partition_repair(). A part then has at most GR_PARTITION_LIMIT times the mean of each quantity,
 * or one vertex more where vertices are few or heavy.
 *
 * Over ranks all slices are assigned at once, and ranks know the assignments of the others up to the last block; see
 * joint.h. The result is refined. Refinement moves no vertex to a full part, so the passes before it fill parts only to
 * the mean.
 *
 * Only rows are followed, so the matrix should be symmetric. O(entries + n_rows log parts), O(parts) for a vertex that
 * fits nowhere. Memory: 4 bytes per row and 90 per part; over ranks at first 16 per entry with a column in another
 * slice, then 8 per row, 4 per entry, 16 per neighbour in another slice, and 8 for each pair of a vertex of the slice
 * and a rank that has it as a neighbour.
 * \return OK; ERR_NOMEM; over ranks also ERR_UNSUPPORTED, ERR_CANCELLED and ERR_PEER: the same on all ranks. */
int32_t gr_partition_stream(const struct gr_partition_input *input, int32_t *mine, graft_error *error)
{
    struct gr_refinement done;
    struct gr_joint      joint;
    int32_t              rc;

    GR_TRY_DONE(gr_partition_joint_init(&joint, input, error));
    if (joint.comm != NULL) gr_partition_loads_limit(&joint.loads, 1);
    for (int pass = 0; pass < PASSES; pass++) {
        gr_partition_loads_clear(&joint.loads);
        GR_TRY_DONE(gr_partition_joint_pass(&joint, assign_vertex, error));
    }
    if (joint.comm != NULL) gr_partition_loads_limit(&joint.loads, GR_PARTITION_LIMIT);
    GR_TRY_DONE(gr_partition_joint_relieve(&joint, error));
    if (joint.comm != NULL) GR_TRY_DONE(gr_partition_refine_rounds(&joint, ROUNDS, &done, error));
    memcpy(mine, joint.owner, (size_t)joint.slice.rows->n_rows * sizeof *mine);
done:
    gr_partition_joint_fini(&joint);
    return rc;
}
