/* The part of the drop-in that computes: libgraft-grb-products.so. The drop-in is loaded into every process that has it
 * in LD_PRELOAD, and OpenMP binds the thread that loads it if OMP_PROC_BIND or OMP_PLACES asks for it. So the drop-in
 * itself needs no OpenMP, and loads this part at the first product that Graft may compute.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_PRODUCTS_H
#define GRAFT_GRB_DROPIN_PRODUCTS_H

#include "graphblas/calls.h"

struct graft_grb;

enum { GRB_OLDEST = 7, GRB_NEWEST = 10 }; /* versions of GraphBLAS */

enum { GRB_MXM, GRB_MXV, GRB_VXM };

/** The arguments of one call. In products with a vector, the pointers are vectors. */
struct grb_call {
    int            which;
    void          *c, *mask, *a, *b;
    GrB_BinaryOp   accum;
    GrB_Semiring   semiring;
    GrB_Descriptor descriptor;
};

/** Compute a call of GraphBLAS `major`, from GRB_OLDEST to GRB_NEWEST, by Graft if graft_grb.h can, else by GraphBLAS.
 *  The thread keeps its processors. The symbol GRB_COMPUTE has the number of the release, because the structs of
 *  releases differ. \return the code of the call. [any-thread] */
GrB_Info grb_compute(const struct grb_calls *calls, int major, struct graft_grb *grb,
                     const struct grb_call *call) __asm__(GRB_COMPUTE);

#endif
