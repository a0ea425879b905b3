/* graft_grb.h for SuiteSparse:GraphBLAS 8.
 * SPDX-License-Identifier: Apache-2.0 */
#define GRAFT_GRB_CALLS 8
#include "graphblas/calls.h"

enum { GxB_FORMAT = 7002, GxB_SPARSITY_CONTROL = 7036, GxB_GLOBAL_NTHREADS = 7086 };

#include "iterator_64.h"
#include "version.h"

#include "graphblas/graft_grb.h"

const struct grb_version grb_version_8 = { graft_grb_mxm, graft_grb_mxv, graft_grb_vxm };
