/* The state that products of GraphBLAS through Graft keep between calls.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_STATE_H
#define GRAFT_GRB_STATE_H

#include "graft_load.h"
#include "graft_mxm.h"

/** The state of calls of GraphBLAS through Graft, and a report on the last call. One for each calling thread. */
typedef struct graft_grb {
    const graft_api     *api;
    const graft_mxm_api *mxm;
    int64_t              least_work;    /**< products of fewer entries times columns are left to GraphBLAS */
    int64_t              least_columns; /** products with fewer columns are left to GraphBLAS, which is faster for
                                         * them */
    int32_t              threads;       /** largest number of threads; 0 for as many as GraphBLAS may use */
    int32_t              exact; /** whether results that may differ in a bit are left to GraphBLAS: sums, and max and
                                 * min of zeros */
    void *(*allocate)(
        size_t);        /** The function malloc, or the function that the host passed to GxB_init() instead, because
                         * GraphBLAS frees with the corresponding function. If it is NULL because it is unknown,
                         * GraphBLAS itself allocates results, which costs one more write of the results. */
    int32_t     taken;  /**< whether the last product was computed by Graft */
    int64_t     copied; /**< number of bytes of operands that the last product copied or expanded */
    const char *why;    /**< reason why the last product was left to GraphBLAS, or NULL */
    graft_error error;  /** error of the last failed call of Graft */
} graft_grb;

/** Begin to use a context of Graft. It still belongs to the host, which closes it after the last call. \return
 * GrB_SUCCESS; GrB_NULL_POINTER; GrB_NOT_IMPLEMENTED (the library has no graft.mxm/1). [one-caller] */
static inline __attribute__((unused)) GrB_Info graft_grb_begin(graft_grb *grb, const graft_api *api)
{
    if (grb == NULL || api == NULL) return GrB_NULL_POINTER;
    memset(grb, 0, sizeof *grb);
    grb->error = GRAFT_INIT(graft_error);
    grb->api = api;
    grb->mxm = (const graft_mxm_api *)graft_interface(api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, run));
    grb->least_work = 1 << 16;
    grb->least_columns = 8;
    return grb->mxm != NULL ? GrB_SUCCESS : GrB_NOT_IMPLEMENTED;
}

#endif
