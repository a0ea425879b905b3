/* graft_grb.h for SuiteSparse:GraphBLAS 7.
 * SPDX-License-Identifier: Apache-2.0 */
#define GRAFT_GRB_CALLS 7
#include "graphblas/calls.h"

enum { GxB_FORMAT = 1, GxB_SPARSITY_CONTROL = 32, GxB_GLOBAL_NTHREADS = 5, GxB_DESCRIPTOR_NTHREADS = 5 };

#include "iterator_64.h"
#include "version.h"

#include "graphblas/graft_grb.h"

const struct grb_version grb_version_7 = { graft_grb_mxm, graft_grb_mxv, graft_grb_vxm };
