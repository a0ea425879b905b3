/* Draws entries of rows.
 *
 * draw.c  entries of one row      draw_rows.c  entries of several rows, in the lanes of vector registers
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/processor.h"
#include "sample/options.h"
#include "sample/sample.h"

struct gr_draw_rows;
/** Draw the entries of rows begin .. end-1, the same as gr_sample_draw_entries(). */
typedef void (*gr_draw_rows_fn)(const struct gr_draw_rows *rows, int64_t begin, int64_t end);

/** How neighbours are drawn. */
struct gr_draw_rule {
    const graft_csr       *graph;
    enum gr_sample_weights weights;
    int                    replace;
    gr_draw_rows_fn        draw_rows; /* draws several rows at once if the fanout is small; or NULL */
    const int64_t         *degree;    /* degrees of the columns that have no row on this rank; NULL: all 0 */
    const int64_t         *name;      /* global vertex of each row, which keys its random draws; NULL: the row */
    /* [entries] or NULL. Draws see the entries of a row in another order: the entry at position e is e + shift[e]. */
    const int32_t         *shift;
};

static inline int64_t gr_sample_draw_shifted(const struct gr_draw_rule *rule, int64_t entry)
{
    return rule->shift != NULL ? entry + rule->shift[entry] : entry;
}

static inline uint64_t gr_sample_draw_name(const struct gr_draw_rule *rule, int64_t v)
{
    return (uint64_t)(rule->name != NULL ? rule->name[v] : v);
}

/** The space of a thread for the draws of one vertex: keys or sums of weights, and drawn entries. */
struct gr_draw_space {
    double  *weight;
    int64_t *entry;
    int64_t  capacity; /* elements of each array */
};

/** The number of neighbours of v that are drawn. Neighbours of weight 0 are not drawn, except with
 * GR_ALL_NEIGHBOURS. */
int64_t           gr_sample_draw_count(const struct gr_draw_rule *rule, int64_t fanout, int64_t v);
/** The number of elements of `space` that the draws of v need; and whether this number depends on v. */
int64_t           gr_sample_draw_needs(const struct gr_draw_rule *rule, int64_t fanout, int64_t v);
static inline int gr_sample_draw_needs_degrees(const struct gr_draw_rule *rule)
{
    return rule->weights != GR_SAMPLE_UNIFORM && rule->replace;
}
/** A uniform random number in (0, 1], which is a function of the key and the name of a vertex. */
double gr_sample_draw_unit(uint64_t key, uint64_t name);
/** Keep the `most` smallest keys that are offered, with their entries, in a heap whose first key is the largest. The
 *  first `most` keys must be offered before the heap is read. */
void   gr_sample_draw_keep_smallest(double *key, int64_t *entry, int64_t *count, int64_t most, double offered,
                                    int64_t of);
/** Draw gr_sample_draw_count() entries of row v. The caller applies gr_sample_draw_shifted() to them. */
void gr_sample_draw_entries(const struct gr_draw_rule *rule, struct gr_draw_space *space, uint64_t key, int64_t fanout,
                            int64_t v, int64_t *entries);

/** Rows whose entries are drawn at once, by a rule without weights and replacement. */
struct gr_draw_rows {
    const struct gr_draw_rule *rule;
    uint64_t                   key;
    int64_t                    fanout; /* 0 .. GR_DRAWN_TOGETHER */
    const int64_t             *vertex; /* vertex of each row */
    const int64_t             *row_ptr;
    int64_t                   *entry; /* drawn entries; those of row i begin at row_ptr[i] */
};
enum { GR_DRAWN_TOGETHER = 48 };

gr_draw_rows_fn gr_sample_draw_rows_for(enum gr_isa isa);
void            gr_sample_draw_rows_generic(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_sample_draw_rows_avx2(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_sample_draw_rows_avx512(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_sample_draw_rows_sve256(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_sample_draw_rows_sve512(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
