/* The loads of parts, with a tournament tree that finds the least loaded part.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/loads.h"

#include "base/assert.h"

#include <math.h>
#include <string.h>

static int64_t allowed_of(int64_t total, int32_t parts, double limit)
{
    const int64_t mean_up = (total + parts - 1) / parts, most = (int64_t)(limit * (double)total / parts);
    const int64_t allowed = most > mean_up ? most : mean_up;

    return allowed > 0 ? allowed : 1;
}

static int is_less_full(const struct gr_loads *loads, int32_t a, int32_t b)
{
    return loads->level[a] < loads->level[b] || (loads->level[a] == loads->level[b] && a < b);
}

/* The less loaded of the parts of two sibling nodes; a node may be empty (-1). */
static int32_t less_full(const struct gr_loads *loads, int32_t a, int32_t b)
{
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return is_less_full(loads, a, b) ? a : b;
}

static double load_share(const struct gr_loads *loads, int share, int64_t has)
{
    return (double)has / (double)loads->allowed[share];
}

/* The load of a part: the maximum over all quantities. */
static double level_of(const struct gr_loads *loads, int32_t part)
{
    const int64_t *has = loads->has + (int64_t)part * GR_SHARES;
    double         level = 0;

    for (int k = 0; k < GR_SHARES; k++) level = fmax(level, load_share(loads, k, has[k]));
    return level;
}

void gr_partition_loads_settle(struct gr_loads *loads)
{
    const int64_t leaves = loads->leaves;

    memset(loads->own, 0, (size_t)loads->parts * GR_SHARES * sizeof *loads->own);
    for (int32_t part = 0; part < loads->parts; part++) loads->level[part] = level_of(loads, part);
    for (int64_t i = 0; i < leaves; i++) loads->winner[leaves + i] = i < loads->parts ? (int32_t)i : -1;
    for (int64_t i = leaves - 1; i > 0; i--)
        loads->winner[i] = less_full(loads, loads->winner[2 * i], loads->winner[2 * i + 1]);
}

void gr_partition_loads_clear(struct gr_loads *loads)
{
    memset(loads->has, 0, (size_t)loads->parts * GR_SHARES * sizeof *loads->has);
    gr_partition_loads_settle(loads);
}

void gr_partition_loads_limit(struct gr_loads *loads, double limit)
{
    for (int k = 0; k < GR_SHARES; k++) loads->allowed[k] = allowed_of(loads->total[k], loads->parts, limit);
    gr_partition_loads_settle(loads);
}

int gr_partition_loads_exceed(const struct gr_loads *loads)
{
    int exceed = 0;

    for (int32_t part = 0; part < loads->parts; part++) exceed = exceed || loads->level[part] > 1;
    return exceed;
}

int32_t gr_partition_loads_init(const graft_context *context, struct gr_loads *loads, const int64_t total[GR_SHARES],
                                int32_t parts, graft_error *error)
{
    int32_t rc;
    int64_t leaves = 1;

    GR_ASSERT(parts > 0);
    memset(loads, 0, sizeof *loads);
    while (leaves < parts) leaves *= 2;
    loads->parts = parts;
    loads->scale = 1;
    loads->leaves = (int32_t)leaves;
    GR_TRY_DONE(GR_POOL_NEW(context, &loads->pool, loads->has, (int64_t)parts * GR_SHARES, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &loads->pool, loads->own, (int64_t)parts * GR_SHARES, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &loads->pool, loads->level, parts, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &loads->pool, loads->winner, 2 * leaves, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &loads->pool, loads->count, parts, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &loads->pool, loads->touched, parts, error));
    memcpy(loads->total, total, sizeof loads->total);
    gr_partition_loads_limit(loads, GR_PARTITION_LIMIT);
done:
    if (rc < 0) gr_partition_loads_fini(context, loads);
    return rc;
}

void gr_partition_loads_fini(const graft_context *context, struct gr_loads *loads)
{
    gr_pool_fini(context, &loads->pool);
    memset(loads, 0, sizeof *loads);
}

double gr_partition_loads_with(const struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES])
{
    const int64_t *has = loads->has + (int64_t)part * GR_SHARES;
    double         level = 0;

    for (int k = 0; k < GR_SHARES; k++)
        if (weight[k] > 0) level = fmax(level, load_share(loads, k, has[k] + loads->scale * weight[k]));
    return level;
}

void gr_partition_loads_add(struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES], int sign)
{
    const int64_t at = (int64_t)part * GR_SHARES;

    GR_ASSERT(part >= 0 && part < loads->parts);
    for (int k = 0; k < GR_SHARES; k++) {
        loads->has[at + k] += sign * loads->scale * weight[k];
        loads->own[at + k] += sign * weight[k];
    }
    loads->level[part] = level_of(loads, part);
    for (int32_t i = (loads->leaves + part) / 2; i > 0; i /= 2)
        loads->winner[i] = less_full(loads, loads->winner[2 * i], loads->winner[2 * i + 1]);
}

void gr_partition_loads_move(struct gr_loads *loads, const int64_t weight[GR_SHARES], int32_t *owner, int32_t to)
{
    gr_partition_loads_add(loads, *owner, weight, -1);
    gr_partition_loads_add(loads, to, weight, 1);
    *owner = to;
}

int32_t gr_partition_loads_least(const struct gr_loads *loads, const int64_t weight[GR_SHARES])
{
    int32_t best = loads->winner[1];

    if (gr_partition_loads_with(loads, best, weight) <= 1) return best;
    for (int32_t part = 0; part < loads->parts; part++)
        if (gr_partition_loads_with(loads, part, weight) < gr_partition_loads_with(loads, best, weight)) best = part;
    return best;
}

int32_t gr_partition_loads_count(struct gr_loads *loads, const struct gr_slice *slice, int64_t row,
                                 const int32_t *owner)
{
    int32_t touched = 0;

    for (int64_t e = slice->rows->row_ptr[row]; e < slice->rows->row_ptr[row + 1]; e++) {
        const int64_t other = gr_csr_column(slice->rows, e) - slice->first;

        GR_ASSERT(other >= 0 && other < slice->rows->n_cols);
        if (other == row || owner[other] < 0) continue;
        if (loads->count[owner[other]]++ == 0) loads->touched[touched++] = owner[other];
    }
    return touched;
}

int32_t gr_partition_loads_nearest(struct gr_loads *loads, const struct gr_slice *slice, int64_t row,
                                   const int64_t weight[GR_SHARES], const int32_t *mine)
{
    const int32_t touched = gr_partition_loads_count(loads, slice, row, mine);
    int32_t       best = -1;
    double        best_score = 0;

    for (int32_t i = 0; i < touched; i++) {
        const int32_t part = loads->touched[i];
        const double  with = gr_partition_loads_with(loads, part, weight),
                     score = (double)loads->count[part] * (1 - with);

        loads->count[part] = 0;
        if (with > 1) continue;
        if (best < 0 || score > best_score || (score == best_score && is_less_full(loads, part, best))) {
            best = part;
            best_score = score;
        }
    }
    return best;
}
