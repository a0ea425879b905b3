/* Computes calls of the drop-in by graft_grb.h, compiled for each version of GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#include "products.h"
#include "version.h"

#include "graphblas/graft_grb_state.h"

#include <omp.h>
#include <stdatomic.h>

extern _Thread_local const struct grb_calls *grb_calls;
_Thread_local const struct grb_calls        *grb_calls;

static const struct grb_version *find_version(int major)
{
    static const struct grb_version *const known[] = { &grb_version_7, &grb_version_8, &grb_version_9,
                                                       &grb_version_10 };

    return known[major - GRB_OLDEST];
}

__attribute__((visibility("default"))) GrB_Info grb_compute(const struct grb_calls *calls, int major,
                                                            struct graft_grb *grb, const struct grb_call *k)
{
    static atomic_int            binds = -1; /* whether OpenMP binds threads that start a team; -1 if it is not yet
                                              * known */
    const struct grb_version    *version = find_version(major);
    struct graft_load_processors before;
    GrB_Info                     info;

    if (binds != 0) graft_load_note_processors(&before);
    if (binds < 0) binds = omp_get_proc_bind() != omp_proc_bind_false;
    grb_calls = calls;
    switch (k->which) {
    case GRB_MXM: info = version->mxm(grb, k->c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor); break;
    case GRB_MXV: info = version->mxv(grb, k->c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor); break;
    default: info = version->vxm(grb, k->c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor); break;
    }
    if (binds != 0) graft_load_keep_processors(&before);
    return info;
}
