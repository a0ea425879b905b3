/* Covers of least price, which are minimum cuts: as much as can flows along the edges, out of each source and into each
 * target no more than its price (Dinic, Soviet Math. Dokl. 1970: phases of shortest augmenting paths). Between sources
 * nothing limits a flow, so what separates the two sides are sources and targets that are full, and those are a cover.
 * SPDX-License-Identifier: Apache-2.0 */
#include "cover/flow.h"

#include "cover/matching.h"

#include <string.h>

/* A path goes from a source that is not full to any of its targets, from there back to a source whose flow into this
 * target it can take over, and so on to a target that is not full. */
struct flow {
    const struct gr_cut *cut;
    int32_t             *source_spare, *target_spare; /* the prices, less what flows; in their place */
    int64_t             *begin;                       /* [n_sources + 1] the cut by source; targets rise: */
    int32_t             *target;
    int32_t             *amount;       /* [begin[n_sources]] that flows; of entries that repeat the first has it */
    int32_t             *source_level; /* [n_sources] of no search so far up to `base`, else by the way from a root */
    int32_t             *target_level; /* [n_targets] that of the source it was reached from */
    int32_t             *source_next, *target_next; /* the next entry of each that this phase has not tried */
    int32_t             *queue;   /* [n_sources] as they are reached; then the roots, and behind them the path */
    int64_t              n_roots; /* sources that are not full */
    int32_t              base, top, last; /* levels: below this search, its highest, where a target has room; or 0 */
};

/* The entry of a source that leads to a target; there is one. */
static int64_t entry_of(const struct flow *f, int32_t source, int32_t target)
{
    int64_t low = f->begin[source], high = f->begin[source + 1];

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (f->target[middle] < target) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void reach(struct flow *f, int64_t place, int32_t source, int32_t level)
{
    f->source_level[source] = f->top = level;
    f->source_next[source] = 0;
    f->queue[place] = source;
}

/* A target that is full leads on to the sources whose flow it has. */
static void reach_behind(struct flow *f, int32_t target, int32_t level, int64_t *reached)
{
    for (int64_t e = f->cut->row_ptr[target]; e < f->cut->row_ptr[target + 1]; e++) {
        const int32_t s = f->cut->source[e];

        if (f->source_level[s] <= f->base && f->amount[entry_of(f, s, target)] > 0) reach(f, (*reached)++, s, level);
    }
}

/* Levels only rise, so that none has to be taken back. */
static void begin_levels(struct flow *f)
{
    f->base = f->top;
    f->last = 0;
    if (f->base < INT32_MAX - f->cut->n_sources) return;
    memset(f->source_level, 0, (uint64_t)f->cut->n_sources * sizeof *f->source_level);
    memset(f->target_level, 0, (uint64_t)f->cut->n_targets * sizeof *f->target_level);
    f->base = f->top = 0;
}

/* Breadth first from all roots, to the end of the first level with a target that is not full. Returns whether there is
 * one; if not, what was reached is all that can be. */
static int find_levels(struct flow *f)
{
    const int64_t n_roots = f->n_roots;
    int64_t       reached = 0;

    begin_levels(f);
    for (int64_t i = 0; i < n_roots; i++)
        if (f->source_spare[f->queue[i]] > 0) reach(f, reached++, f->queue[i], f->base + 1);
    f->n_roots = reached;
    for (int64_t i = 0; i < reached; i++) {
        const int32_t s = f->queue[i], level = f->source_level[s];

        if (f->last > 0 && level > f->last) break;
        for (int64_t e = f->begin[s]; e < f->begin[s + 1]; e++) {
            const int32_t t = f->target[e];

            if (f->target_level[t] > f->base) continue;
            f->target_level[t] = level;
            f->target_next[t] = 0;
            if (f->target_spare[t] > 0) f->last = level;
            else if (f->last == 0) reach_behind(f, t, level + 1, &reached);
        }
    }
    return f->last > 0;
}

/* Source number `i` of the path, and the entry it is left by. */
static int32_t source_at(const struct flow *f, int32_t root, int64_t i)
{
    return i == 0 ? root : f->queue[f->n_roots + i - 1];
}

static int64_t entry_at(const struct flow *f, int32_t source)
{
    return f->begin[source] + f->source_next[source];
}

/* Send along a path of `length` sources as much as it takes. */
static void send(struct flow *f, int32_t root, int64_t length)
{
    const int32_t end = f->target[entry_at(f, source_at(f, root, length - 1))];
    int32_t       most = f->source_spare[root] < f->target_spare[end] ? f->source_spare[root] : f->target_spare[end];

    for (int64_t i = 1; i < length; i++) {
        const int32_t t = f->target[entry_at(f, source_at(f, root, i - 1))];
        const int32_t taken = f->amount[entry_of(f, source_at(f, root, i), t)];

        if (taken < most) most = taken;
    }
    f->source_spare[root] -= most;
    f->target_spare[end] -= most;
    for (int64_t i = 0; i < length; i++) {
        const int64_t e = entry_at(f, source_at(f, root, i));

        f->amount[e] += most;
        if (i + 1 < length) f->amount[entry_of(f, source_at(f, root, i + 1), f->target[e])] -= most;
    }
}

/* The source of the next level whose flow into a target can be taken over, or -1. */
static int32_t source_behind(struct flow *f, int32_t target, int32_t level)
{
    const int64_t begin = f->cut->row_ptr[target], count = f->cut->row_ptr[target + 1] - begin;

    for (; f->target_next[target] < count; f->target_next[target]++) {
        const int32_t s = f->cut->source[begin + f->target_next[target]];

        if (f->source_level[s] == level && f->amount[entry_of(f, s, target)] > 0) return s;
    }
    return -1;
}

/* Where a path goes on from a source: to a target with room (*source -1), or by way of one to the next source. Returns
 * 0 if it goes nowhere. What leads nowhere is not tried again in this phase. */
static int step(struct flow *f, int32_t from, int32_t *source)
{
    const int64_t begin = f->begin[from], count = f->begin[from + 1] - begin;
    const int32_t level = f->source_level[from];

    for (; f->source_next[from] < count; f->source_next[from]++) {
        const int64_t e = entry_at(f, from);
        const int32_t t = f->target[e];

        if (f->target_level[t] != level || (e > begin && f->target[e - 1] == t)) continue;
        *source = -1;
        if (f->target_spare[t] > 0) return 1;
        if (level < f->last) *source = source_behind(f, t, level + 1);
        if (*source >= 0) return 1;
    }
    return 0;
}

/* All paths from one root, depth first. */
static void augment(struct flow *f, int32_t root)
{
    int64_t length = 1;

    while (length > 0 && f->source_spare[root] > 0) {
        int32_t next;

        if (!step(f, source_at(f, root, length - 1), &next)) {
            length--;
            if (length > 0) f->target_next[f->target[entry_at(f, source_at(f, root, length - 1))]]++;
        } else if (next >= 0) {
            f->queue[f->n_roots + length++ - 1] = next;
        } else {
            send(f, root, length);
            length = 1;
        }
    }
}

static void find_roots(struct flow *f)
{
    for (int64_t s = 0; s < f->cut->n_sources; s++)
        if (f->begin[s] < f->begin[s + 1]) f->queue[f->n_roots++] = (int32_t)s;
}

/* What the last search reached is on the side of the roots in every minimum cut. So no cover of least price has fewer
 * targets, nor more sources. */
static int64_t read_cover(const struct flow *f, uint8_t *source_in, uint8_t *target_in)
{
    int64_t size = 0;

    for (int64_t s = 0; s < f->cut->n_sources; s++) {
        source_in[s] = f->source_level[s] <= f->base && f->begin[s] < f->begin[s + 1];
        size += source_in[s];
    }
    for (int64_t t = 0; t < f->cut->n_targets; t++) {
        target_in[t] = f->target_level[t] > f->base;
        size += target_in[t];
    }
    return size;
}

int32_t gr_flow_cover(const graft_context *context, const struct gr_cut *cut, uint8_t *source_in, uint8_t *target_in,
                      int64_t *size, graft_error *error)
{
    struct flow    f = { .cut = cut, .source_spare = cut->source_price, .target_spare = cut->target_price };
    struct gr_pool pool = { 0 };
    int32_t        rc = GRAFT_OK;

    GR_TRY(gr_cut_by_source(context, cut, &pool, &f.begin, &f.target, error));
    GR_TRY(GR_POOL_NEW(context, &pool, f.amount, cut->row_ptr[cut->n_targets], error));
    GR_TRY(GR_POOL_NEW(context, &pool, f.source_level, cut->n_sources, error));
    GR_TRY(GR_POOL_NEW(context, &pool, f.target_level, cut->n_targets, error));
    GR_TRY(GR_POOL_NEW(context, &pool, f.source_next, cut->n_sources, error));
    GR_TRY(GR_POOL_NEW(context, &pool, f.target_next, cut->n_targets, error));
    GR_TRY(GR_POOL_NEW(context, &pool, f.queue, cut->n_sources, error));
    find_roots(&f);
    while (find_levels(&f))
        for (int64_t i = 0; i < f.n_roots; i++) augment(&f, f.queue[i]);
    *size = read_cover(&f, source_in, target_in);
done:
    gr_pool_fini(context, &pool);
    return rc;
}
