/* A block: the bipartite graph between the vertices whose rows a layer computes and the vertices whose rows it reads.
 *
 * n_dst destinations gather from n_src >= n_dst sources, of which the first n_dst are the destinations themselves. In
 * full-graph training the blocks of all layers belong to one graph; with row masks, their rows are prefixes of its
 * rows. A minibatch has a block per layer.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernel/kernel.h"

/** The bits of elements of gr_block.kind. */
enum gr_row_kind { GR_ROW_BOUNDARY = 1, GR_ROW_HALO = 2 };

struct gr_block {
    int64_t n_dst, n_src;
    int64_t n_seen; /* columns of `a`: n_src; for attention and extrema over ranks also the rows of the halo */

    /* The edges, [n_dst x n_seen]; without a halo there may be more rows, which are not used. NULL if no layer gathers,
     * or if the strategy stores the edges. The transpose may be `a` itself, and is NULL for attention, which uses a map
     * of edges instead. */
    graft_matrix *a, *a_transpose;

    const float   *edge;         /* [entries of a x features] edge features for attention; NULL: the values of `a` */
    const float   *left, *right; /* [n_dst], [n_src] scales: sums are over diag(left) A diag(right); NULL: all 1 */
    const int64_t *vertex;       /* [n_src] global indices, which key random draws; NULL: v itself. [n_seen] for
                                  * attention with dropout */
    const uint8_t *kind;         /* [n_seen] bits: GR_ROW_BOUNDARY for destinations that gather from the halo,
                                    GR_ROW_HALO for rows of the halo; NULL: no halo */
    void          *of_strategy;  /* data of the strategy for this block; NULL: none */
};

static inline int gr_model_block_has_halo(const struct gr_block *block)
{
    return block->kind != NULL;
}

/** Whether the counts and arrays of a block are consistent, and all columns of the destinations are sources. Reads all
 *  edges, so it is for tests and debug builds. */
int gr_model_block_is_valid(const struct gr_block *block);
