/* The part of the drop-in that computes products: libgraft-grb-products.so. The drop-in is loaded into every process
 * that has it in LD_PRELOAD, and OpenMP binds the thread that loads it if OMP_PROC_BIND or OMP_PLACES asks for that.
 * The drop-in itself therefore does not use OpenMP, and loads this part when there is a first product that Graft may
 * compute.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_PRODUCTS_H
#define GRAFT_GRB_DROPIN_PRODUCTS_H

#include "graphblas/calls.h"

struct graft_grb;

enum { GRB_OLDEST = 7, GRB_NEWEST = 10 }; /* the oldest and the newest supported version of GraphBLAS */

enum { GRB_MXM, GRB_MXV, GRB_VXM };

/** The arguments of one call. In products with a vector, the pointers are vectors. */
struct grb_call {
    int            which;
    void          *c, *mask, *a, *b;
    GrB_BinaryOp   accum;
    GrB_Semiring   semiring;
    GrB_Descriptor descriptor;
};

/** Compute a call of GraphBLAS version `major`, between GRB_OLDEST and GRB_NEWEST. Graft computes it if graft_grb.h
 * supports it, otherwise GraphBLAS does. The thread may afterwards run on the same processors as before. The symbol
 * GRB_COMPUTE has the number of the release, because the structs of releases differ. \return the code of the call.
 * [any-thread] */
GrB_Info grb_compute(const struct grb_calls *calls, int major, struct graft_grb *grb,
                     const struct grb_call *call) __asm__(GRB_COMPUTE);

#endif
