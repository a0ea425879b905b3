/* The table of the loops of gat.c over vertices and entries, one for each instruction set. All give bitwise identical
 * results.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "graft_mxm.h"

/** A vertex as the source or as the target of edges. */
enum { GR_SOURCE, GR_TARGET, GR_ENDS };

/** The arrays of a layer: Z = H W of all heads; for every vertex and head a score as the source and one as the target
 *  of edges; and alpha, the softmax over the edges of a vertex. */
struct gr_attention {
    float *projected;               /* [n_seen x wide] Z */
    float *score[GR_ENDS];          /* [n_seen x heads] */
    float *alpha;                   /* [edges x heads] */
    float *dropped;                 /* [edges x heads] alpha after its dropout in a step; NULL: no dropout */
    float *score_gradient[GR_ENDS]; /* [n_seen x heads] */
    float *alpha_gradient;          /* [edges x heads] */
};

/** The arguments of the loops for a layer. Vertices are rows of Z, entries are entries of csr. */
struct gr_gat {
    struct gr_attention arrays;
    const graft_csr    *csr;
    const float        *vector[GR_ENDS];    /* [heads x columns] */
    int64_t             heads, columns;     /* columns of a head */
    const float        *edge, *edge_factor; /* [entries x edge_features], [edge_features x heads] */
    int64_t             edge_features;
    const int64_t      *vertex; /* as in gr_block; with the next two, of the dropout of alpha */
    uint64_t            key;
    uint32_t            threshold;
    const float        *from; /* of the averages */
    float              *to;   /* of the averages; the gradient of Z, [n_seen x wide] */
};

/** A loop over vertices, or over the entries of rows, begin to end - 1; and one that writes sums over them. */
typedef void gr_gat_loop(const struct gr_gat *gat, int64_t begin, int64_t end);
typedef void gr_gat_sum(const struct gr_gat *gat, double *sum, int64_t begin, int64_t end);

struct gr_gat_loops {
    /** Scores of vertices: products of the part of Z of each head with the vectors of the head. */
    gr_gat_loop *vertex_scores;
    /** alpha = LeakyReLU(both scores + edge . edge_factor) for the entries of some rows. */
    gr_gat_loop *entry_scores;
    /** alpha_gradient: through LeakyReLU, the gradient with respect to its result becomes that of its argument. */
    gr_gat_loop *entry_gradients;
    /** dropped = dropout(alpha): head h of entry (v, u) uses draw number h of this edge. */
    gr_gat_loop *drop;
    /** alpha_gradient: through dropout, the gradient with respect to `dropped` becomes that of alpha. */
    gr_gat_loop *drop_gradients;
    /** to += the gradients with respect to both scores of a vertex, times the vectors. */
    gr_gat_loop *add_score_gradients;
    /** to[v] = the mean over heads of from[v]. */
    gr_gat_loop *average;
    /** to: each head's share of `from`, the gradient with respect to the mean. */
    gr_gat_loop *average_gradients;
    /** sum[GR_ENDS x heads * columns] = sums over some vertices of (gradient with respect to the score) times Z. */
    gr_gat_sum  *vector_gradients;
    /** sum[edge_features x heads] = sums over the entries of some rows of edge times alpha_gradient. */
    gr_gat_sum  *edge_gradients;
};

/** The table for an instruction set. */
const struct gr_gat_loops *gr_model_gat_loops_for(enum gr_isa isa);

extern const struct gr_gat_loops gr_gat_generic, gr_gat_avx2, gr_gat_avx512, gr_gat_sve256, gr_gat_sve512;
