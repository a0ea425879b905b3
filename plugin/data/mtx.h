/* Reading Matrix Market files that hold a graph.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MTX_H
#define GR_MTX_H

#include "data/vertices.h"
#include "graph/csr_build.h"

/** Read the entries: coordinate; real, integer or pattern; general or symmetric (both halves come out); square.
 *  vertices->count < 0 becomes what the file says; else the file must say the same. */
int32_t gr_mtx_read(const graft_context *context, const struct gr_file *file, struct gr_vertices *vertices,
                    struct gr_coo *coo, graft_error *error);

#endif
