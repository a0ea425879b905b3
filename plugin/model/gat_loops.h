/* The table of the loops of gat.c over vertices and entries, one for each instruction set. All give the same bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MODEL_GAT_LOOPS_H
#define GR_MODEL_GAT_LOOPS_H

#include "model/run.h"

/** The arguments of the loops for a layer. Vertices are rows of Z, entries are entries of csr. */
struct gr_gat {
    const struct gr_attention *arrays;
    const graft_csr           *csr;
    const float               *vector[GR_ENDS];    /* [heads x columns] */
    int64_t                    heads, columns;     /* columns of a head */
    const float               *edge, *edge_factor; /* [entries x edge_features], [edge_features x heads] */
    int64_t                    edge_features;
    const int64_t             *vertex; /* as in gr_block; with the next two, of the dropout of alpha */
    uint64_t                   key;
    uint32_t                   threshold;
};

struct gr_gat_loops {
    /** Scores of vertices: products of the part of Z of each head with the vectors of the head. */
    void (*vertex_scores)(const struct gr_gat *gat, int64_t begin, int64_t end);
    /** alpha = LeakyReLU(both scores + edge . edge_factor) for the entries of some rows. */
    void (*entry_scores)(const struct gr_gat *gat, int64_t row, int64_t row_end);
    /** alpha_gradient, from the gradient by the result of LeakyReLU to the gradient by the sum. */
    void (*entry_gradients)(const struct gr_gat *gat, int64_t row, int64_t row_end);
    /** dropped = dropout(alpha): head h of entry (v, u) uses draw number h of this edge. */
    void (*drop)(const struct gr_gat *gat, int64_t row, int64_t row_end);
    /** alpha_gradient, from the gradient by alpha after dropout to the gradient by alpha. */
    void (*drop_gradients)(const struct gr_gat *gat, int64_t row, int64_t row_end);
    /** dz += the gradients by both scores of a vertex times the vectors. */
    void (*add_score_gradients)(const struct gr_gat *gat, float *dz, int64_t begin, int64_t end);
    /** sum[GR_ENDS x heads * columns] = sums over some vertices of the gradients by the scores times Z. */
    void (*vector_gradients)(const struct gr_gat *gat, double *sum, int64_t begin, int64_t end);
    /** sum[edge_features x heads] = sums over the entries of some rows of edge times alpha_gradient. */
    void (*edge_gradients)(const struct gr_gat *gat, double *sum, int64_t row, int64_t row_end);
    /** to[v] = the mean over heads of from[v]. */
    void (*average)(const struct gr_gat *gat, const float *from, float *to, int64_t begin, int64_t end);
    /** Give each head its share of the gradient by the mean. */
    void (*average_gradients)(const struct gr_gat *gat, const float *from, float *to, int64_t begin, int64_t end);
};

/** The table for an instruction set. */
const struct gr_gat_loops *gr_gat_loops_for(enum gr_isa isa);

extern const struct gr_gat_loops gr_gat_generic, gr_gat_avx2, gr_gat_avx512, gr_gat_sve256, gr_gat_sve512;

#endif
