/* The functions of the drop-in for one major version of GraphBLAS.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_VERSION_H
#define GRAFT_GRB_DROPIN_VERSION_H

#include "graphblas/calls.h"

struct graft_grb;

/** The functions mxm, mxv and vxm of graft_grb.h, which use the table grb_calls. */
struct grb_version {
    GrB_Info (*mxm)(struct graft_grb *, GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Matrix,
                    GrB_Descriptor);
    GrB_Info (*mxv)(struct graft_grb *, GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Vector,
                    GrB_Descriptor);
    GrB_Info (*vxm)(struct graft_grb *, GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Vector, GrB_Matrix,
                    GrB_Descriptor);
};

extern const struct grb_version grb_version_7, grb_version_8, grb_version_9, grb_version_10;

#endif
