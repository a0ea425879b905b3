/* Who starts GraphBLAS. A process can start it once, so it belongs to the host:
 *
 *  - If the host has called GrB_init(), it is used as it is.
 *  - If GraphBLAS was in the process before this module, the host will call GrB_init(), and until then nothing is
 *    done. The same holds if the host has the flag GRAFT_HOST_STARTS_LIBRARIES.
 *  - Else it came with this module. It is started when a matrix is first prepared for a product, in blocking mode,
 *    which is also correct for programs written for nonblocking mode.
 *
 * It is never finalised here. A copy of GraphBLAS that is linked statically into the host, and does not export its
 * functions, is another library, of which this one takes no notice.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAPHBLAS_START_H
#define GRAPHBLAS_START_H

#include "graft_host.h"

/** Make sure that GraphBLAS can be called. \return OK; ERR_UNSUPPORTED with the reason, which may pass. */
int32_t graphblas_start(const graft_host *host, graft_error *error);

#endif
