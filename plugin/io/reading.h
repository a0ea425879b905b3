/* All ranks read a data set together: each rank reads one range of the edges, and sends each edge to the rank whose
 * slice has its row. From the other files a rank reads the rows of its slice.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/route.h"
#include "graph/csr_build.h"

struct gr_reading {
    const graft_context *context;
    struct gr_comm      *comm;
    int                  maps;    /* 1: dense features are mapped instead of read, if possible */
    int64_t             *first;   /* [n_ranks + 1] first vertex of each slice, then the number of vertices */
    int64_t             *scratch; /* [n_ranks + 1] memory for gathers */
};

/* All functions are [collective], and return the same code on all ranks. */

/** Allocate the arrays. */
int32_t gr_io_reading_init(struct gr_reading *reading, struct gr_comm *comm, graft_error *error);
void    gr_io_reading_fini(struct gr_reading *reading);

/** Where the part of rank p begins if `count` items are divided evenly. */
int64_t gr_io_reading_share(const struct gr_reading *reading, int64_t count, int32_t p);

/** Sum `mine` over the ranks before this rank, and over all ranks. */
int32_t gr_io_reading_before(const struct gr_reading *reading, int64_t mine, int64_t *before, int64_t *total,
                             graft_error *error);

/** Choose slices with about the same number of bytes: vertex_bytes for each vertex, and the bytes of its edges. `coo`
 *  has any edges in any order on each rank. */
int32_t gr_io_reading_choose(struct gr_reading *reading, const struct gr_coo *coo, double vertex_bytes,
                             graft_error *error);

/** Send each edge to the rank with its row. `coo` becomes the edges of this slice, in the order of the file; rows are
 *  counted from the first of the slice. This needs memory for the received edges and one array of the sent ones. After
 *  a failure `coo` can be freed. */
int32_t gr_io_reading_send(struct gr_reading *reading, struct gr_coo *coo, graft_error *error);
