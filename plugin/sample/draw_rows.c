/* Draws entries of several rows at once, one row in each lane: the same as gr_sample_draw_entries(), without weights
 * and replacement. Compiled once for each instruction set: ISA is part of the name of the function.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/draw.h"

#include "base/draws.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

enum { ROWS = WIDE_BYTES / 8, ROWS_AHEAD = 16 };

/* A group of rows, one in each lane. */
struct row_group {
    gr_draw_lanes low, high; /* halves of gr_sample_draw_name() of the vertices */
    gr_draw_lanes range;     /* the next draw is below this number */
    gr_draw_lanes doubtful;  /* all bits are set if a draw may need another random word */
    gr_draw_lanes draw[GR_DRAWN_TOGETHER];
};

static inline void draw_lanes(struct row_group *g, uint64_t key, int64_t fanout)
{
    gr_draw_lanes c[4];

    for (int64_t i = 0; i < fanout; i++) {
        gr_draw_lanes product, drawn, twice = { 0 };

        if (i % 4 == 0) {
            uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);

            c[0] = (gr_draw_lanes){ 0 } + (uint64_t)(i / 4);
            c[1] = (gr_draw_lanes){ 0 };
            c[2] = g->low;
            c[3] = g->high;
            for (int round = 0; round < GR_RANDOM_ROUNDS; round++) {
                gr_draw_round(c, k0, k1);
                gr_random_next_key(&k0, &k1);
            }
        }
        product = gr_draw_products(c[3 - i % 4], g->range);
        g->doubtful |= (gr_draw_lanes)((gr_draw_signed)(product & UINT32_MAX) < (gr_draw_signed)g->range);
        drawn = product >> 32;
        for (int64_t before = 0; before < i; before++) twice |= (gr_draw_lanes)(g->draw[before] == drawn);
        g->draw[i] = (drawn & ~twice) | ((g->range - 1) & twice);
        g->range += 1;
    }
}

/* Draw up to ROWS rows with more than `fanout` entries. */
static void draw_group(const struct gr_draw_rows *rows, const int64_t *row, int count)
{
    const int64_t   *row_ptr = rows->rule->graph->row_ptr;
    const int64_t    fanout = rows->fanout;
    struct row_group g;

    g.doubtful = (gr_draw_lanes){ 0 };
    for (int l = 0; l < ROWS; l++) {
        const int64_t  v = rows->vertex[row[l < count ? l : 0]];
        const uint64_t name = gr_sample_draw_name(rows->rule, v);

        g.low[l] = (uint32_t)name;
        g.high[l] = name >> 32;
        g.range[l] = (uint64_t)(row_ptr[v + 1] - row_ptr[v] - fanout + 1);
    }
    draw_lanes(&g, rows->key, fanout);
    for (int l = 0; l < count; l++) {
        const int64_t   v = rows->vertex[row[l]], first = row_ptr[v];
        int64_t *const  entry = rows->entry + rows->row_ptr[row[l]];
        const uint64_t *draw = (const uint64_t *)g.draw + l;

        for (int64_t i = 0; i < fanout; i++) entry[i] = first + (int64_t)draw[i * ROWS];
        if (g.doubtful[l] != 0) gr_sample_draw_entries(rows->rule, NULL, rows->key, fanout, v, entry);
    }
}

void JOIN(gr_sample_draw_rows_, ISA)(const struct gr_draw_rows *rows, int64_t begin, int64_t end)
{
    const int64_t *row_ptr = rows->rule->graph->row_ptr;
    int64_t        row[ROWS];
    int            count = 0;

    for (int64_t i = begin; i < end; i++) {
        int64_t *entry = rows->entry + rows->row_ptr[i], first, d;

        if (i + ROWS_AHEAD < end) __builtin_prefetch(&row_ptr[rows->vertex[i + ROWS_AHEAD]]);
        if (rows->row_ptr[i] == rows->row_ptr[i + 1]) continue; /* a vertex of the halo has no row */
        first = row_ptr[rows->vertex[i]];
        d = row_ptr[rows->vertex[i] + 1] - first;
        if (d <= rows->fanout) {
            for (int64_t k = 0; k < d; k++) entry[k] = first + k;
            continue;
        }
        row[count++] = i;
        if (count < ROWS) continue;
        draw_group(rows, row, count);
        count = 0;
    }
    if (count > 0) draw_group(rows, row, count);
}
