/* Checks draws of neighbours by degree, where a row has neighbours of other ranks: their frequencies must follow the
 * degrees that these vertices have on their ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/random.h"
#include "harness/tap.h"
#include "sample/draw.h"

#include <math.h>

enum { OWNED = 3, HALO = 4, ENTRIES = OWNED + HALO, DRAWS = 200000 };

/* Row 0 has all vertices, and the other rows have 2 and 0 entries. */
static const int64_t row_ptr[] = { 0, 7, 9, 9 }, halo_degree[] = { 1, 0, 12, 5 };
static const int32_t col_idx[] = { 0, 1, 2, 3, 4, 5, 6, 0, 4 };
static const double  degree[] = { 7, 2, 0, 1, 0, 12, 5 };

static const graft_csr graph = { .size = sizeof graph,
                                 .index_type = GRAFT_I32,
                                 .n_rows = OWNED,
                                 .n_cols = OWNED + HALO,
                                 .row_ptr = row_ptr,
                                 .col_idx = col_idx };

/* Count how often each entry of row 0 is the first of `fanout` draws, which is the only draw or one of several. */
static void count_entries(int replace, int64_t fanout, int64_t *count)
{
    const struct gr_draw_rule rule = {
        .graph = &graph, .weights = GR_SAMPLE_BY_DEGREE, .replace = replace, .degree = halo_degree
    };
    double               weight[ENTRIES];
    int64_t              entry[ENTRIES], entries[ENTRIES];
    struct gr_draw_space space = { weight, entry, ENTRIES };

    for (int64_t i = 0; i < DRAWS; i++) {
        const int64_t drawn = gr_sample_draw_count(&rule, fanout, 0);

        gr_sample_draw_entries(&rule, &space, gr_random_key(7, GR_RANDOM_SAMPLE, (uint64_t)i, 0), fanout, 0, entries);
        for (int64_t k = 0; k < drawn; k++) count[entries[k]]++;
    }
}

/* Pearson's statistic of counts with these probabilities, as its distance from the mean in standard deviations. */
static double deviation_of(const int64_t *count, double draws)
{
    double sum = 0, all = 0;
    int    used = 0;

    for (int e = 0; e < ENTRIES; e++) all += degree[e];
    for (int e = 0; e < ENTRIES; e++) {
        const double expected = draws * degree[e] / all;

        if (expected == 0 && count[e] > 0) return INFINITY;
        if (expected == 0) continue;
        sum += ((double)count[e] - expected) * ((double)count[e] - expected) / expected;
        used++;
    }
    return (sum - (used - 1)) / sqrt(2.0 * (used - 1));
}

int main(void)
{
    const struct gr_draw_rule rule = { .graph = &graph, .weights = GR_SAMPLE_BY_DEGREE, .degree = halo_degree };
    int64_t                   one[ENTRIES] = { 0 }, several[ENTRIES] = { 0 };

    count_entries(0, 1, one);
    ok(fabs(deviation_of(one, DRAWS)) < 4.5, "single draws from row 0 are in proportion to degrees (%.2f)",
       deviation_of(one, DRAWS));
    count_entries(1, 4, several);
    ok(fabs(deviation_of(several, 4.0 * DRAWS)) < 4.5, "draws with replacement are in proportion to degrees (%.2f)",
       deviation_of(several, 4.0 * DRAWS));
    ok(gr_sample_draw_count(&rule, 100, 0) == 5, "vertices of degree 0 are never drawn");
    ok(gr_sample_draw_count(&rule, 100, 1) == 1, "vertices of degree 0 that belong to another rank are never drawn");
    ok(gr_sample_draw_count(&rule, 3, 5) == 0, "no neighbours are drawn for a vertex of another rank");
    return done();
}
