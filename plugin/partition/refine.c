/* Refines a partition: moves vertices to the part with more of their neighbours, on all ranks at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/refine.h"
#include "base/assert.h"
#include "base/memory.h"
#include "partition/joint.h"

#include <string.h>

/* A round that reduces the cut by less than 1 / LEAST_GAIN of it is the last one. */
enum { LEAST_GAIN = 1000 };

/* Move a vertex to the part with most of its neighbours, if it fits there and has more neighbours there than in its own
 * part; or as many, and the other part has a smaller load. No part loses its last vertices, even if all ranks move some
 * at once. */
static void improve_vertex(struct gr_joint *joint, int64_t row)
{
    struct gr_loads *loads = &joint->loads;
    const int32_t    from = joint->owner[row];
    int64_t          weight[GR_SHARES], most;
    int32_t          to = from, touched;
    double           level;

    GR_ASSERT(from >= 0);
    if (loads->has[(int64_t)from * GR_SHARES + GR_SHARE_VERTICES] <= loads->scale) return;
    touched = gr_partition_loads_count(loads, &joint->slice, row, joint->owner);
    most = loads->count[from];
    level = loads->level[from];
    gr_partition_slice_weigh(&joint->slice, row, weight);
    for (int32_t i = 0; i < touched; i++) {
        const int32_t part = loads->touched[i];
        const int64_t count = loads->count[part];
        double        with;

        loads->count[part] = 0;
        if (part == from || count < most) continue;
        with = gr_partition_loads_with(loads, part, weight);
        if (with > 1 || (count == most && with >= level)) continue;
        to = part;
        most = count;
        level = with;
    }
    if (to != from) gr_partition_loads_move(loads, weight, &joint->owner[row], to);
}

/* Do rounds until a round gains too little. `best` has the best owners so far. */
static int32_t run_rounds(struct gr_joint *joint, int64_t rounds, int32_t *best, struct gr_refinement *done,
                          graft_error *error)
{
    const size_t bytes = (size_t)joint->slice.rows->n_rows * sizeof *best;
    int64_t      cut, gain;

    GR_TRY(gr_partition_joint_cut(joint, &cut, error));
    *done = (struct gr_refinement){ .cut_before = cut, .cut = cut };
    gain = cut;
    memcpy(best, joint->owner, bytes);
    while (done->rounds < rounds && gain > 0 && gain >= done->cut / LEAST_GAIN) {
        GR_TRY(gr_partition_joint_pass(joint, improve_vertex, error));
        GR_TRY(gr_partition_joint_cut(joint, &cut, error));
        done->rounds++;
        gain = done->cut - cut;
        if (gain <= 0) continue;
        done->cut = cut;
        memcpy(best, joint->owner, bytes);
    }
    memcpy(joint->owner, best, bytes);
    return GRAFT_OK;
}

int32_t gr_partition_refine_rounds(struct gr_joint *joint, int64_t rounds, struct gr_refinement *done,
                                   graft_error *error)
{
    int32_t *best = NULL, rc;

    GR_TRY_DONE(gr_partition_joint_agree(joint, GR_NEW(joint->context, best, joint->slice.rows->n_rows, error), error));
    rc = run_rounds(joint, rounds, best, done, error);
done:
    gr_free(joint->context, best);
    return rc;
}

int32_t gr_partition_refine(const struct gr_partition_input *input, int64_t rounds, int32_t *mine,
                            struct gr_refinement *refinement, graft_error *error)
{
    struct gr_refinement done;
    struct gr_joint      joint;
    int32_t              rc;

    GR_TRY_DONE(gr_partition_joint_init(&joint, input, error));
    GR_TRY_DONE(gr_partition_joint_assign(&joint, mine, error));
    GR_TRY_DONE(gr_partition_refine_rounds(&joint, rounds, &done, error));
    memcpy(mine, joint.owner, (size_t)joint.slice.rows->n_rows * sizeof *mine);
    *refinement = done;
done:
    gr_partition_joint_fini(&joint);
    return rc;
}
