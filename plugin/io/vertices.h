/* The number of vertices, and which file says so. All files of a data set must agree on it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_VERTICES_H
#define GR_IO_VERTICES_H

#include "base/file.h"

struct gr_vertices {
    int64_t     count; /* -1: not known yet */
    const char *said_by;
};

/** `file` says that there are `count` vertices. ERR_FORMAT if another file said otherwise, or if that is more than
 *  INT32_MAX. */
int32_t gr_vertices_agree(struct gr_vertices *vertices, const struct gr_file *file, int64_t count, graft_error *error);

/** A graph names `count` vertices, but perhaps no file has a row for each of them, and a few bytes must not make the
 *  library ask for gigabytes: then there may be 2^24, or 16 for each byte of `file`. Else as gr_vertices_agree(). */
int32_t gr_vertices_named(struct gr_vertices *vertices, const struct gr_file *file, int64_t count, graft_error *error);

#endif
