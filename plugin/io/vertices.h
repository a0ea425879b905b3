/* The number of vertices, and the file that states it. All files of a data set must agree.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_VERTICES_H
#define GR_IO_VERTICES_H

#include "base/file.h"

struct gr_vertices {
    int64_t     count; /* -1: not known yet */
    const char *said_by;
};

/** `file` states `count` vertices. \return OK; ERR_FORMAT (another file states another number; more than INT32_MAX) */
int32_t gr_vertices_agree(struct gr_vertices *vertices, const struct gr_file *file, int64_t count, graft_error *error);

/** A graph in `file` has vertices up to count - 1. If no other file has a row for each vertex, count may be at most
 *  2^24, or 16 for each byte of `file`, so that a few bytes cannot make the library allocate gigabytes. Else as
 *  gr_vertices_agree(). */
int32_t gr_vertices_named(struct gr_vertices *vertices, const struct gr_file *file, int64_t count, graft_error *error);

#endif
