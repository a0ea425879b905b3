/* A data set read by all ranks of a comm: each rank reads one part of the entries of the graph, which are then sent to
 * the rank whose slice of the vertices they belong to, and of everything else the rows of its slice.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_IO_READING_H
#define GR_IO_READING_H

#include "comm/route.h"
#include "graph/csr_build.h"

struct gr_reading {
    const graft_context *context;
    struct gr_comm      *comm;
    int64_t             *first;   /* [n_ranks + 1] of each slice; the last is the number of vertices */
    int64_t             *scratch; /* [n_ranks + 1] */
};

/* All functions are called by all ranks, in the same order; with one rank they do next to nothing. Where they say so,
 * all ranks return the same. */

/** Arrays for a comm of so many ranks. All ranks return the same. */
int32_t gr_reading_init(struct gr_reading *reading, struct gr_comm *comm, graft_error *error);
void    gr_reading_fini(struct gr_reading *reading);

/** Where the part of rank `p` begins in `count` that are dealt out evenly. */
int64_t gr_reading_share(const struct gr_reading *reading, int64_t count, int32_t p);

/** The sum of `mine` over the ranks before this one, and over all. All ranks return the same. */
int32_t gr_reading_before(const struct gr_reading *reading, int64_t mine, int64_t *before, int64_t *total,
                          graft_error *error);

/** Choose the slices so that they have about the same number of bytes. A vertex has `vertex_bytes`, and what its
 *  entries have; the entries of the graph lie in `coo` on all ranks. All ranks return the same. */
int32_t gr_reading_choose(struct gr_reading *reading, const struct gr_coo *coo, double vertex_bytes,
                          graft_error *error);

/** Send entries to the rank that has their row. `coo` becomes those of our slice, in the order they had from rank to
 *  rank, with rows counted from its first. Memory meanwhile: what comes, and one array of what there was. All ranks
 *  return the same; after a failure `coo` can be freed. */
int32_t gr_reading_send(struct gr_reading *reading, struct gr_coo *coo, graft_error *error);

#endif
