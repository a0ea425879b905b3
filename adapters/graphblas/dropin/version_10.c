/* graft_grb.h for SuiteSparse:GraphBLAS 10, whose integers have 32 or 64 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#define GRAFT_GRB_CALLS 10
#include "graphblas/calls.h"

enum { GxB_FORMAT = 7002, GxB_SPARSITY_CONTROL = 7036, GxB_IS_READONLY = 7078, GxB_GLOBAL_NTHREADS = 7086 };

struct GB_Iterator_opaque {
    int64_t         pstart, pend, p, k;
    size_t          header_size;
    int64_t         pmax, avlen, avdim, anvec;
    const uint32_t *Ap32;
    const uint64_t *Ap64;
    const uint32_t *Ah32;
    const uint64_t *Ah64;
    const uint32_t *Ai32;
    const uint64_t *Ai64;
    const int8_t   *Ab;
    const void     *Ax;
    size_t          type_size;
    int             A_sparsity;
    bool            iso, by_col;
};

#include "version.h"

#include "graphblas/graft_grb.h"

const struct grb_version grb_version_10 = { graft_grb_mxm, graft_grb_mxv, graft_grb_vxm };
