/* The table of the loops of gat.c over vertices and entries, one for each instruction set. The results of all sets are
 * bitwise identical.
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
    float *score[GR_ENDS];          /* [n_seen x heads] scores as the source, and as the target */
    float *alpha;                   /* [edges x heads] scores of edges, then their softmax */
    float *dropped;                 /* [edges x heads] alpha after its dropout in a step; NULL: no dropout */
    float *score_gradient[GR_ENDS]; /* [n_seen x heads] */
    float *alpha_gradient;          /* [edges x heads] */
};

/** The arguments of the loops for a layer. A vertex is a row of Z, an entry is an entry of csr. */
struct gr_gat {
    struct gr_attention arrays;
    const graft_csr    *csr;
    const float        *vector[GR_ENDS];    /* [heads x columns] attention vectors of sources and of targets */
    int64_t             heads, columns;     /* number of heads, and of columns of each head */
    const float        *edge, *edge_factor; /* [entries x edge_features] features, [edge_features x heads] weights */
    int64_t             edge_features;
    const int64_t      *vertex;    /* as in gr_block, for the dropout of alpha */
    uint64_t            key;       /* random key of the dropout of alpha */
    uint32_t            threshold; /* as in gr_rows, for the dropout of alpha */
    const float        *from;      /* operand of the averages */
    float              *to;        /* result of the averages, or the gradient of Z, [n_seen x wide] */
};

/** A loop over vertices begin to end - 1, or over the entries of these rows; and such a loop that writes sums. */
typedef void gr_gat_loop(const struct gr_gat *gat, int64_t begin, int64_t end);
typedef void gr_gat_sum(const struct gr_gat *gat, double *sum, int64_t begin, int64_t end);

struct gr_gat_loops {
    /** Compute the scores of vertices: for each head the products of its columns of Z with its vectors. */
    gr_gat_loop *vertex_scores;
    /** alpha = LeakyReLU(both scores + edge . edge_factor) for the entries of some rows. */
    gr_gat_loop *entry_scores;
    /** Replace alpha_gradient, the gradient with respect to LeakyReLU(x), by that with respect to x. */
    gr_gat_loop *entry_gradients;
    /** dropped = dropout(alpha); head h of entry (v, u) uses draw h of this edge. */
    gr_gat_loop *drop;
    /** Replace alpha_gradient, the gradient with respect to `dropped`, by that with respect to alpha. */
    gr_gat_loop *drop_gradients;
    /** to[v] += the gradients with respect to both scores of v, times the vectors. */
    gr_gat_loop *add_score_gradients;
    /** to[v] = the mean over heads of from[v]. */
    gr_gat_loop *average;
    /** to[v] = the gradients with respect to the heads: from[v], the gradient with respect to the mean, / heads. */
    gr_gat_loop *average_gradients;
    /** sum[GR_ENDS x heads * columns] = the sums over vertices of Z times the gradient with respect to the score. */
    gr_gat_sum  *vector_gradients;
    /** sum[edge_features x heads] = the sums over the entries of some rows of `edge` times alpha_gradient. */
    gr_gat_sum  *edge_gradients;
};

/** Select the table for an instruction set. */
const struct gr_gat_loops *gr_model_gat_loops_for(enum gr_isa isa);

extern const struct gr_gat_loops gr_gat_generic, gr_gat_avx2, gr_gat_avx512, gr_gat_sve256, gr_gat_sve512;
