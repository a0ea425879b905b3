/* A block: the bipartite graph between the vertices whose rows a layer makes and the vertices whose rows it reads.
 *
 * n_dst destinations gather from n_src >= n_dst sources, of which the first n_dst are the destinations themselves. In
 * full-graph training the blocks of all layers belong to one graph; with row masks, their rows are prefixes of its
 * rows. A minibatch has a block per layer.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernel/kernel.h"

/** Bits of gr_block.kind. */
enum gr_row_kind { GR_ROW_BOUNDARY = 1, GR_ROW_HALO = 2 };

struct gr_block {
    int64_t n_dst, n_src;
    int64_t n_seen; /* columns of `a`: for attention and extrema over ranks n_src and the halo, else n_src */

    /* [n_dst x n_seen]; without a halo it may have more rows, which stay unused. NULL if no layer gathers, or if the
     * strategy has the edges. The transpose may be `a` itself, and is NULL for attention, which maps edges. */
    graft_matrix *a, *a_transpose;

    const float   *edge; /* [entries of a x features] of attention with features of edges; NULL: the values of `a` */
    const float   *left, *right; /* [n_dst], [n_src] the edges are diag(left) A diag(right); NULL: 1 */
    const int64_t *vertex;       /* [n_src] global vertices, which key random draws; NULL: v itself. [n_seen] for
                                  * attention with dropout */
    const uint8_t *kind;         /* [n_seen] of a block with a halo: destinations that gather from the halo have
                                    GR_ROW_BOUNDARY, rows of the halo GR_ROW_HALO; else NULL */
    void          *of_strategy;  /* data of the strategy for this block; NULL: none */
};

static inline int gr_model_block_has_halo(const struct gr_block *block)
{
    return block->kind != NULL;
}

/** Whether the counts and arrays are consistent, and all columns of the destinations are sources. For tests and debug
 *  builds: it reads all edges. */
int gr_model_block_is_valid(const struct gr_block *block);
