/* Reading Matrix Market files that hold a graph.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_MTX_H
#define GR_IO_MTX_H

#include "io/reading.h"
#include "io/vertices.h"

/** Read the entries: coordinate; real, integer or pattern; general or symmetric (both halves come out); square. Each
 *  rank reads an equal range of bytes behind the header, and has the lines that begin there. vertices->count < 0
 *  becomes what the file says; else the file must say the same. All ranks return the same. */
int32_t gr_mtx_read(const struct gr_reading *reading, const struct gr_file *file, struct gr_vertices *vertices,
                    struct gr_coo *coo, graft_error *error);

#endif
