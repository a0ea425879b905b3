/* All ranks read a data set together: each rank reads one range of the edges, and sends each edge to the rank whose
 * slice has its row. From the other files a rank reads the rows of its slice.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/route.h"
#include "graph/csr_build.h"

struct gr_reading {
    const graft_context *context;
    struct gr_comm      *comm;
    int                  maps;    /* dense features are mapped, not read, if that is possible */
    int64_t             *first;   /* [n_ranks + 1] the first vertex of each slice; the last is the number of vertices */
    int64_t             *scratch; /* [n_ranks + 1] */
};

/* All functions are [collective]. */

/** Allocate the arrays. All ranks return the same code. */
int32_t gr_io_reading_init(struct gr_reading *reading, struct gr_comm *comm, graft_error *error);
void    gr_io_reading_fini(struct gr_reading *reading);

/** The beginning of rank p's part of `count` items that are divided evenly. */
int64_t gr_io_reading_share(const struct gr_reading *reading, int64_t count, int32_t p);

/** The sum of `mine` over the ranks before this one, and over all ranks. All ranks return the same code. */
int32_t gr_io_reading_before(const struct gr_reading *reading, int64_t mine, int64_t *before, int64_t *total,
                             graft_error *error);

/** Choose slices with about equal numbers of bytes: vertex_bytes for each vertex, plus its edges, which lie in `coo` in
 *  any order on any rank. All ranks return the same code. */
int32_t gr_io_reading_choose(struct gr_reading *reading, const struct gr_coo *coo, double vertex_bytes,
                             graft_error *error);

/** Send each edge to the rank that has its row. `coo` becomes the edges of this slice, in the order of the file, with
 *  rows numbered from the first of the slice. Extra memory: the received edges and one array of the sent ones. All
 *  ranks return the same code. After a failure `coo` can be freed. */
int32_t gr_io_reading_send(struct gr_reading *reading, struct gr_coo *coo, graft_error *error);
