/* The part of a distributed graph that one rank has: the rows of its own vertices, and its halo.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/sort.h"
#include "graph/csr.h"

/** Vertices of other ranks that the local rows gather from, each once, sorted by owner, then by place. */
struct gr_halo {
    int64_t  count;
    int64_t *start; /* [n_ranks + 1] the halo vertices of rank q are start[q] .. start[q + 1] - 1 */
    int32_t *place; /* [count] the index of each vertex among the vertices of its owner */
};

/** The index in a halo of the vertex of rank `q` at `place`, which is in the halo. */
static inline int64_t gr_csr_halo_index(const struct gr_halo *halo, int32_t q, int64_t place)
{
    return halo->start[q] +
           gr_sorted_index_32(halo->place + halo->start[q], halo->start[q + 1] - halo->start[q], place);
}

/** The part of a graph on one rank, from which plans are created. Rows and columns of `local` are the owned vertices;
 *  a part derived by gr_graph_part_first_rows() has only the first of them. The edges of a row are in the order of the
 *  host; in a part derived from another one they may be sorted by column. */
struct gr_part {
    graft_csr      local;  /* int32 columns */
    graft_csr      remote; /* [rows of local x halo.count] int32 columns */
    struct gr_halo halo;
};

/** Whether a halo has no vertices of this rank, and is sorted by owner and then by place, each vertex once. Returns 1
 *  or 0. O(count), no messages. */
int gr_csr_halo_is_valid(const struct gr_halo *halo, int32_t n_ranks, int32_t rank);

/** Whether the part is valid: valid matrices that fit each other, and a valid halo. Returns 1 or 0. O(rows + edges), no
 *  messages. */
int gr_csr_part_is_valid(const struct gr_part *part, int32_t n_ranks, int32_t rank);
