/* The GraphBLAS of the kernel: which library, and who starts it. A process can start it once, so it is the host's:
 *
 *  - If the host has called GrB_init(), it is used as it is.
 *  - If GraphBLAS was in the process before this module needed it, the host will call GrB_init(), and until then
 *    nothing is done. The same holds if the host has the flag GRAFT_HOST_STARTS_LIBRARIES.
 *  - Else this module loads it: the file of option graphblas.path, or the newest version that the dynamic linker finds.
 *    It is started when a matrix is first prepared for a product, in blocking mode, which is also correct for programs
 *    written for nonblocking mode.
 *
 * It is never finalised here. A copy of GraphBLAS that is linked statically into the host, and does not export its
 * functions, is a separate library, which this module ignores.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAPHBLAS_START_H
#define GRAPHBLAS_START_H

#include "graft_host.h"

#include "graphblas/calls.h"

/** The state of the module in one context. */
struct graphblas {
    const graft_host *host;
    struct grb_calls  calls;
    int               major; /**< major version; 0 as long as it cannot be used */
    int               own;   /**< 1 if this module has started it */
};

/** Make sure that GraphBLAS can be called. \return OK; ERR_UNSUPPORTED with the reason, which may be temporary. */
int32_t graphblas_start(struct graphblas *graphblas, graft_error *error);

/** Set the number of threads of products with this descriptor; 0 is the setting of GraphBLAS. After version 7 this is a
 * setting of the process, which is changed only if the host does not own GraphBLAS. */
GrB_Info graphblas_use_threads(const struct graphblas *graphblas, GrB_Descriptor descriptor, int32_t threads);

/** Make GraphBLAS store a matrix by row. */
GrB_Info graphblas_hold_by_row(const struct graphblas *graphblas, GrB_Matrix matrix);

#endif
