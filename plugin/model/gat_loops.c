/* The loops of gat.c over vertices and entries, compiled once for each instruction set: ISA is part of the name of the
 * table. The order of sums does not depend on the size of registers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gat_loops.h"

#include "base/draws.h"
#include "base/dropout.h"
#include "graph/csr.h"
#include "nn/rows.h"

#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define INLINE static inline __attribute__((always_inline))

#define REAL float
#define EDGE(noun) JOIN(f32_, noun)
#include "edge/dot.h"
#undef REAL
#undef EDGE

/* The slope of LeakyReLU below 0. */
static const float SLOPE = 0.2f;

static void vertex_scores(const struct gr_gat *gat, int64_t begin, int64_t end)
{
    const int64_t heads = gat->heads, columns = gat->columns;

    for (int64_t v = begin; v < end; v++) {
        for (int64_t h = 0; h < heads; h++) {
            const float *z = gat->arrays.projected + (v * heads + h) * columns;

            for (int to = 0; to < GR_ENDS; to++)
                gat->arrays.score[to][v * heads + h] = f32_dot(z, gat->vector[to] + h * columns, columns);
        }
    }
}

/* Compute the score of head h in entry e before LeakyReLU: the sum of the scores of its target, source and edge. */
INLINE float score_of(const struct gr_gat *gat, int64_t e, const float *target, const float *source, int64_t h,
                      const int64_t heads, const int has_edges)
{
    float sum = target[h] + source[h];

    for (int64_t k = 0; has_edges && k < gat->edge_features; k++)
        sum += gat->edge[e * gat->edge_features + k] * gat->edge_factor[k * heads + h];
    return sum;
}

/* Compute the scores of the entries of a row after LeakyReLU; or backward, the gradients before LeakyReLU from those
 * after it. */
INLINE void score_row(const struct gr_gat *gat, int64_t row, const int64_t heads, const int is_wide,
                      const int has_edges, const int is_backward)
{
    const float *const target = gat->arrays.score[GR_TARGET] + row * heads;
    const float *const scores = gat->arrays.score[GR_SOURCE];
    const void *const  col_idx = gat->csr->col_idx;

    for (int64_t e = gat->csr->row_ptr[row]; e < gat->csr->row_ptr[row + 1]; e++) {
        const int64_t      u = is_wide ? ((const int64_t *)col_idx)[e] : ((const int32_t *)col_idx)[e];
        const float *const source = scores + u * heads;
        float *const       to = (is_backward ? gat->arrays.alpha_gradient : gat->arrays.alpha) + e * heads;

#pragma GCC unroll 8
        for (int64_t h = 0; h < heads; h++) {
            const float sum = score_of(gat, e, target, source, h, heads, has_edges);
            const float slope = sum > 0 ? 1 : SLOPE;

            to[h] = slope * (is_backward ? to[h] : sum);
        }
    }
}

/* Define a loop over rows, which is compiled for frequent numbers of heads and for any number. */
#define ROWS_OF(name, is_backward)                                                                                     \
    INLINE void name##_of(const struct gr_gat *gat, int64_t row, int64_t row_end, const int64_t heads,                 \
                          const int has_edges)                                                                         \
    {                                                                                                                  \
        if (gat->csr->index_type == GRAFT_I64)                                                                         \
            for (; row < row_end; row++) score_row(gat, row, heads, 1, has_edges, is_backward);                        \
        else                                                                                                           \
            for (; row < row_end; row++) score_row(gat, row, heads, 0, has_edges, is_backward);                        \
    }                                                                                                                  \
    static void name(const struct gr_gat *gat, int64_t row, int64_t row_end)                                           \
    {                                                                                                                  \
        const int has_edges = gat->edge_features > 0;                                                                  \
                                                                                                                       \
        if (has_edges && gat->heads == 4) name##_of(gat, row, row_end, 4, 1);                                          \
        else if (has_edges) name##_of(gat, row, row_end, gat->heads, 1);                                               \
        else if (gat->heads == 1) name##_of(gat, row, row_end, 1, 0);                                                  \
        else if (gat->heads == 2) name##_of(gat, row, row_end, 2, 0);                                                  \
        else if (gat->heads == 4) name##_of(gat, row, row_end, 4, 0);                                                  \
        else if (gat->heads == 8) name##_of(gat, row, row_end, 8, 0);                                                  \
        else name##_of(gat, row, row_end, gat->heads, 0);                                                              \
    }

ROWS_OF(entry_scores, 0)
ROWS_OF(entry_gradients, 1)

/* Draws are in blocks of eight heads: the maximum number of blocks of an entry, and the number drawn at once. */
enum { HEAD_BLOCKS = 8, BLOCKS_AT_ONCE = 16 };

/* Write the draws of `count` blocks of eight heads, up to BLOCKS_AT_ONCE, to `draws`. */
static void draw_blocks(uint64_t key, int64_t vertex, const uint64_t *block, int64_t count, uint16_t *draws)
{
    for (int64_t at = 0; at < count; at += GR_DRAW_GROUP) {
        gr_draw_lanes lanes;

        for (uint64_t k = 0; k < GR_DRAW_GROUP; k++) lanes[k] = block[(uint64_t)at + gr_draw_lane(k)];
        gr_draw_group(key, (uint64_t)vertex, lanes, draws + 8 * at);
    }
}

static void drop_alphas(const struct gr_gat *gat, int64_t row)
{
    const int64_t  heads = gat->heads, per_entry = (heads + 7) / 8, after = gat->csr->row_ptr[row + 1];
    const float    scale = (float)gr_dropout_scale(gat->threshold);
    const uint16_t threshold = (uint16_t)gat->threshold;
    uint64_t       block[BLOCKS_AT_ONCE] = { 0 };
    uint16_t       draws[BLOCKS_AT_ONCE * 8];

    for (int64_t e = gat->csr->row_ptr[row], count; e < after; e += count) {
        count = after - e < BLOCKS_AT_ONCE / per_entry ? after - e : BLOCKS_AT_ONCE / per_entry;
        for (int64_t i = 0; i < count * per_entry; i++)
            block[i] = (uint64_t)(gr_vertex(gat->vertex, gr_csr_column(gat->csr, e + i / per_entry)) * HEAD_BLOCKS +
                                  i % per_entry);
        draw_blocks(gat->key, gr_vertex(gat->vertex, row), block, count * per_entry, draws);
        for (int64_t i = 0; i < count; i++) {
            const uint16_t    *draw = draws + i * per_entry * 8;
            const float *const alpha = gat->arrays.alpha + (e + i) * heads;
            float *const       dropped = gat->arrays.dropped + (e + i) * heads;

            for (int64_t h = 0; h < heads; h++) dropped[h] = draw[h] >= threshold ? alpha[h] * scale : 0;
        }
    }
}

static void drop(const struct gr_gat *gat, int64_t row, int64_t row_end)
{
    for (; row < row_end; row++) drop_alphas(gat, row);
}

/* An element with alpha 0 gets gradient 0 even if it was not dropped, which is harmless: no score depends on it. */
static void drop_gradients(const struct gr_gat *gat, int64_t row, int64_t row_end)
{
    const int64_t      begin = gat->csr->row_ptr[row] * gat->heads, end = gat->csr->row_ptr[row_end] * gat->heads;
    const float        scale = (float)gr_dropout_scale(gat->threshold);
    const float *const dropped = gat->arrays.dropped;
    float *const       gradient = gat->arrays.alpha_gradient;

#pragma omp simd
    for (int64_t i = begin; i < end; i++) gradient[i] = dropped[i] != 0 ? gradient[i] * scale : 0;
}

static void spread_scores(const struct gr_gat *gat, int64_t begin, int64_t end)
{
    const int64_t heads = gat->heads, columns = gat->columns;

    for (int64_t i = begin * heads; i < end * heads; i++) {
        const float        as_source = gat->arrays.score_gradient[GR_SOURCE][i];
        const float        as_target = gat->arrays.score_gradient[GR_TARGET][i];
        const float *const source = gat->vector[GR_SOURCE] + i % heads * columns;
        const float *const target = gat->vector[GR_TARGET] + i % heads * columns;
        float *const       of = gat->to + i * columns;

#pragma omp simd
        for (int64_t c = 0; c < columns; c++) of[c] = of[c] + as_source * source[c] + as_target * target[c];
    }
}

static void vector_gradients(const struct gr_gat *gat, double *sum, int64_t begin, int64_t end)
{
    const int64_t heads = gat->heads, columns = gat->columns, wide = heads * columns;

    memset(sum, 0, (uint64_t)(GR_ENDS * wide) * sizeof *sum);
    for (int64_t i = begin * heads; i < end * heads; i++) {
        const float        as_source = gat->arrays.score_gradient[GR_SOURCE][i];
        const float        as_target = gat->arrays.score_gradient[GR_TARGET][i];
        const float *const z = gat->arrays.projected + i * columns;
        double *const      source = sum + GR_SOURCE * wide + i % heads * columns;
        double *const      target = sum + GR_TARGET * wide + i % heads * columns;

#pragma omp simd
        for (int64_t c = 0; c < columns; c++) {
            source[c] += (double)(as_source * z[c]);
            target[c] += (double)(as_target * z[c]);
        }
    }
}

static void factor_gradients(const struct gr_gat *gat, double *sum, int64_t row, int64_t row_end)
{
    const int64_t heads = gat->heads, features = gat->edge_features;

    memset(sum, 0, (uint64_t)(features * heads) * sizeof *sum);
    for (int64_t e = gat->csr->row_ptr[row]; e < gat->csr->row_ptr[row_end]; e++) {
        const float *const gradient = gat->arrays.alpha_gradient + e * heads;

        for (int64_t k = 0; k < features; k++) {
            const float   value = gat->edge[e * features + k];
            double *const of = sum + k * heads;

#pragma omp simd
            for (int64_t h = 0; h < heads; h++) of[h] += (double)(gradient[h] * value);
        }
    }
}

static void average(const struct gr_gat *gat, int64_t begin, int64_t end)
{
    const int64_t heads = gat->heads, columns = gat->columns;

    for (int64_t v = begin; v < end; v++) {
        float *const mean = gat->to + v * columns;

        memset(mean, 0, (uint64_t)columns * sizeof *mean);
        for (int64_t h = 0; h < heads; h++) {
            const float *const of = gat->from + (v * heads + h) * columns;

#pragma omp simd
            for (int64_t c = 0; c < columns; c++) mean[c] += of[c] / (float)heads;
        }
    }
}

static void average_gradients(const struct gr_gat *gat, int64_t begin, int64_t end)
{
    const int64_t heads = gat->heads, columns = gat->columns;

    for (int64_t i = begin * heads; i < end * heads; i++) {
        const float *const of = gat->from + i / heads * columns;
        float *const       share = gat->to + i * columns;

#pragma omp simd
        for (int64_t c = 0; c < columns; c++) share[c] = of[c] / (float)heads;
    }
}

const struct gr_gat_loops JOIN(gr_gat_, ISA) = { vertex_scores,    entry_scores,    entry_gradients, drop,
                                                 drop_gradients,   spread_scores,   average,         average_gradients,
                                                 vector_gradients, factor_gradients };
