/* Reads graphs from Matrix Market files.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_MTX_H
#define GR_IO_MTX_H

#include "io/reading.h"
#include "io/vertices.h"

/** Read the edges: coordinate; real, integer or pattern; general or symmetric (both directions are returned); square.
 *  Each rank reads the lines that begin in an equal range of bytes. vertices->count < 0 becomes the number the file
 *  states; else the file must state the same. [collective] All ranks return the same code. */
int32_t gr_mtx_read(const struct gr_reading *reading, const struct gr_file *file, struct gr_vertices *vertices,
                    struct gr_coo *coo, graft_error *error);

#endif
