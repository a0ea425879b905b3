/* Draws neighbours of one vertex.
 *
 * Without weights and replacement, R. W. Floyd's algorithm (Bentley and Floyd 1987, "A sample of brilliance") needs k
 * draws for k of d entries. With weights, each entry gets the key -log(u) / w, and the k smallest are taken (Efraimidis
 * and Spirakis 2006), which is equivalent to drawing one after the other without replacement.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/draw.h"

#include "base/random.h"

#include <math.h>

/* With more draws than this, repeated draws are found by a hash table, not by a scan. */
enum { SCANNED = GR_DRAWN_TOGETHER };

gr_draw_rows_fn gr_sample_draw_rows_for(enum gr_isa isa)
{
    return GR_FOR_ISA(gr_sample_draw_rows, isa);
}

/* The random words of one vertex. */
struct words {
    uint64_t key, vertex, block;
    uint32_t word[4];
    int      left;
};

static uint32_t next_word(struct words *words)
{
    if (words->left == 0) {
        gr_random_block(words->key, words->vertex, words->block++, words->word);
        words->left = 4;
    }
    return words->word[--words->left];
}

/* Draw uniformly from 0 .. range-1, without bias (Lemire 2019, "Fast random integer generation in an interval"). */
static uint32_t draw_below(struct words *words, uint32_t range)
{
    uint64_t product = (uint64_t)next_word(words) * range;

    if ((uint32_t)product < range) {
        const uint32_t least = -range % range;
        while ((uint32_t)product < least) product = (uint64_t)next_word(words) * range;
    }
    return (uint32_t)(product >> 32);
}

/* Draw uniformly from (0, 1]. */
static double draw_unit(struct words *words)
{
    const uint64_t high = next_word(words), low = next_word(words);

    return (double)((high << 21 | low >> 11) + 1) * 0x1p-53;
}

double gr_sample_draw_unit(uint64_t key, uint64_t name)
{
    struct words words = { .key = key, .vertex = name };

    return draw_unit(&words);
}

/* The degree of v; 0 for vertices of other ranks, which are columns without rows. */
static int64_t degree_of(const graft_csr *graph, int64_t v)
{
    return v < graph->n_rows ? graph->row_ptr[v + 1] - graph->row_ptr[v] : 0;
}

static int64_t weight_by_degree(const struct gr_draw_rule *rule, int64_t v)
{
    const graft_csr *graph = rule->graph;

    return v >= graph->n_rows && rule->degree != NULL ? rule->degree[v - graph->n_rows] : degree_of(graph, v);
}

static double weight_of(const struct gr_draw_rule *rule, int64_t entry)
{
    const graft_csr *graph = rule->graph;

    entry = gr_sample_draw_shifted(rule, entry);
    if (rule->weights == GR_SAMPLE_BY_DEGREE) return (double)weight_by_degree(rule, gr_csr_column(graph, entry));
    return graph->value_type == GRAFT_F32 ? (double)((const float *)graph->values)[entry]
                                          : ((const double *)graph->values)[entry];
}

/* The number of entries of row v that can be drawn, up to `most`. */
static int64_t count_drawable(const struct gr_draw_rule *rule, int64_t v, int64_t most)
{
    const int64_t degree = degree_of(rule->graph, v);
    int64_t       begin, count = 0;

    if (rule->weights == GR_SAMPLE_UNIFORM || degree == 0) return degree < most ? degree : most;
    begin = rule->graph->row_ptr[v];
    for (int64_t e = begin; e < begin + degree && count < most; e++) count += weight_of(rule, e) > 0;
    return count;
}

int64_t gr_sample_draw_count(const struct gr_draw_rule *rule, int64_t fanout, int64_t v)
{
    if (fanout == GR_ALL_NEIGHBOURS) return degree_of(rule->graph, v);
    if (rule->replace) return count_drawable(rule, v, 1) > 0 ? fanout : 0;
    return count_drawable(rule, v, fanout);
}

int64_t gr_sample_draw_needs(const struct gr_draw_rule *rule, int64_t fanout, int64_t v)
{
    if (fanout == GR_ALL_NEIGHBOURS) return 0;
    if (rule->weights != GR_SAMPLE_UNIFORM) return rule->replace ? degree_of(rule->graph, v) : fanout;
    return !rule->replace && fanout > SCANNED ? 4 * fanout : 0;
}

static void take_all(int64_t begin, int64_t count, int64_t *entries)
{
    for (int64_t i = 0; i < count; i++) entries[i] = begin + i;
}

static int was_drawn(const int64_t *entries, int64_t count, int64_t entry)
{
    for (int64_t i = 0; i < count; i++)
        if (entries[i] == entry) return 1;
    return 0;
}

/* Insert an entry into the hash table; returns whether it was there already. */
static int note_drawn(int64_t *table, int64_t places, int64_t entry)
{
    int64_t at = (int64_t)((uint64_t)entry * 0x9E3779B97F4A7C15u % (uint64_t)places);

    for (; table[at] != -1; at = at + 1 == places ? 0 : at + 1)
        if (table[at] == entry) return 1;
    table[at] = entry;
    return 0;
}

/* Draw k of d entries; all subsets have equal probability. */
static void draw_subset(struct words *words, struct gr_draw_space *space, int64_t begin, int64_t d, int64_t k,
                        int64_t *entries)
{
    const int64_t places = 4 * k;
    int64_t      *table = k > SCANNED ? space->entry : NULL;

    for (int64_t i = 0; table != NULL && i < places; i++) table[i] = -1;
    for (int64_t i = 0; i < k; i++) {
        const int64_t last = begin + d - k + i;
        int64_t       entry = begin + draw_below(words, (uint32_t)(d - k + i + 1));

        if (table == NULL ? was_drawn(entries, i, entry) : note_drawn(table, places, entry)) {
            entry = last;
            if (table != NULL) note_drawn(table, places, entry);
        }
        entries[i] = entry;
    }
}

static void draw_repeatedly(struct words *words, int64_t begin, int64_t d, int64_t k, int64_t *entries)
{
    for (int64_t i = 0; i < k; i++) entries[i] = begin + draw_below(words, (uint32_t)d);
}

static void swap_down(double *key, int64_t *entry, int64_t at, int64_t count)
{
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        const double  k = key[at];
        const int64_t e = entry[at];

        if (child + 1 < count && key[child + 1] > key[child]) child++;
        if (key[child] <= k) return;
        key[at] = key[child];
        entry[at] = entry[child];
        key[child] = k;
        entry[child] = e;
    }
}

void gr_sample_draw_keep_smallest(double *key, int64_t *entry, int64_t *count, int64_t most, double offered, int64_t of)
{
    if (*count < most) {
        key[*count] = offered;
        entry[(*count)++] = of;
        for (int64_t at = most / 2 - 1; *count == most && at >= 0; at--) swap_down(key, entry, at, most);
    } else if (offered < key[0]) {
        key[0] = offered;
        entry[0] = of;
        swap_down(key, entry, 0, most);
    }
}

static void draw_weighted_subset(const struct gr_draw_rule *rule, struct words *words, struct gr_draw_space *space,
                                 int64_t begin, int64_t d, int64_t k, int64_t *entries)
{
    int64_t count = 0;

    for (int64_t e = begin; e < begin + d; e++) {
        const double weight = weight_of(rule, e);

        if (weight > 0)
            gr_sample_draw_keep_smallest(space->weight, entries, &count, k, -log(draw_unit(words)) / weight, e);
    }
}

static void draw_weighted_repeatedly(const struct gr_draw_rule *rule, struct words *words, struct gr_draw_space *space,
                                     int64_t begin, int64_t d, int64_t k, int64_t *entries)
{
    double *until = space->weight, sum = 0;

    for (int64_t i = 0; i < d; i++) {
        const double weight = weight_of(rule, begin + i);
        until[i] = sum += weight > 0 ? weight : 0;
    }
    for (int64_t i = 0; i < k; i++) {
        const double wanted = draw_unit(words) * sum; /* in (0, sum] */
        int64_t      low = 0, high = d - 1;           /* the first entry with until >= wanted */

        while (low < high) {
            const int64_t middle = (low + high) / 2;
            if (until[middle] < wanted) low = middle + 1;
            else high = middle;
        }
        entries[i] = begin + low;
    }
}

void gr_sample_draw_entries(const struct gr_draw_rule *rule, struct gr_draw_space *space, uint64_t key, int64_t fanout,
                            int64_t v, int64_t *entries)
{
    const int64_t d = degree_of(rule->graph, v), k = gr_sample_draw_count(rule, fanout, v);
    const int     weighted = rule->weights != GR_SAMPLE_UNIFORM;
    struct words  words = { .key = key };
    int64_t       begin;

    if (k == 0) return; /* then row v may not exist, and has no name */
    begin = rule->graph->row_ptr[v];
    words.vertex = gr_sample_draw_name(rule, v);
    if (fanout == GR_ALL_NEIGHBOURS || (!rule->replace && !weighted && k == d)) take_all(begin, d, entries);
    else if (weighted && rule->replace) draw_weighted_repeatedly(rule, &words, space, begin, d, k, entries);
    else if (weighted) draw_weighted_subset(rule, &words, space, begin, d, k, entries);
    else if (rule->replace) draw_repeatedly(&words, begin, d, k, entries);
    else draw_subset(&words, space, begin, d, k, entries);
}
