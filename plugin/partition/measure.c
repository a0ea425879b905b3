/* Measures a partition, and predicts the time of an epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/partition.h"

#include "base/assert.h"
#include "base/memory.h"

#include <math.h>
#include <string.h>

/* The rows of the slice sorted by owner; for each column the last part, and for each part the last row, that counted
 * it. */
struct cut_counter {
    int64_t *begin;  /* [parts + 2] offsets of the rows of each part in `row` */
    int64_t *row;    /* [n_rows] rows, sorted by owner */
    int64_t *source; /* [n_cols] 1 + the part that counted this column last */
    int64_t *sender; /* [parts] 1 + the row that counted this part last */

    struct gr_pool pool; /* owns the arrays */
};

static int32_t cut_counter_init(const graft_context *context, struct cut_counter *count, const struct gr_slice *slice,
                                int32_t parts, const int32_t *owner, graft_error *error)
{
    const int64_t  n_rows = slice->rows->n_rows;
    const int32_t *mine = owner + slice->first;

    memset(count, 0, sizeof *count);
    GR_TRY(GR_POOL_NEW(context, &count->pool, count->begin, (int64_t)parts + 2, error));
    GR_TRY(GR_POOL_NEW(context, &count->pool, count->row, n_rows, error));
    GR_TRY(GR_POOL_NEW(context, &count->pool, count->source, slice->rows->n_cols, error));
    GR_TRY(GR_POOL_NEW(context, &count->pool, count->sender, parts, error));
    for (int64_t row = 0; row < n_rows; row++) count->begin[mine[row] + 2]++;
    for (int32_t part = 0; part < parts; part++) count->begin[part + 2] += count->begin[part + 1];
    for (int64_t row = 0; row < n_rows; row++) count->row[count->begin[mine[row] + 1]++] = row;
    return GRAFT_OK;
}

/* Count a row. The rows of a part are counted together, so the last part that counted a column shows whether the column
 * is new. */
static void count_row(struct gr_partition_measure *measure, struct cut_counter *count, const struct gr_slice *slice,
                      int64_t row, const int32_t *owner)
{
    const int32_t           part = owner[slice->first + row];
    struct gr_part_measure *mine = &measure->part[part];
    int64_t                 weight[GR_SHARES];

    GR_ASSERT(part >= 0 && part < measure->parts);
    gr_partition_slice_weigh(slice, row, weight);
    for (int k = 0; k < GR_SHARES; k++) mine->has[k] += weight[k];
    for (int64_t e = slice->rows->row_ptr[row]; e < slice->rows->row_ptr[row + 1]; e++) {
        const int64_t column = gr_csr_column(slice->rows, e);
        const int64_t pair = (int64_t)part * measure->parts + owner[column];

        if (owner[column] == part) continue;
        mine->cut++;
        if (count->source[column] != 1 + part) measure->post_rows[pair]++;
        if (count->sender[owner[column]] != 1 + row) measure->pre_rows[pair]++;
        count->source[column] = 1 + part;
        count->sender[owner[column]] = 1 + row;
    }
}

static void sum_pairs(struct gr_partition_measure *measure)
{
    for (int32_t receiver = 0; receiver < measure->parts; receiver++) {
        measure->cut += measure->part[receiver].cut;
        for (int32_t sender = 0; sender < measure->parts; sender++) {
            const int64_t pair = (int64_t)receiver * measure->parts + sender;
            const int64_t post = measure->post_rows[pair], pre = measure->pre_rows[pair];
            const int64_t rows[] = {
                [GR_ROWS_LEAST] = post < pre ? post : pre, [GR_ROWS_POST] = post, [GR_ROWS_PRE] = pre
            };

            for (int kind = 0; kind < GR_ROWS_KINDS; kind++) {
                measure->rows[kind] += rows[kind];
                measure->part[receiver].received[kind] += rows[kind];
                measure->part[sender].sent[kind] += rows[kind];
            }
        }
    }
}

static double imbalance_of(const struct gr_partition_measure *measure, int share)
{
    int64_t most = 0, total = 0;

    for (int32_t part = 0; part < measure->parts; part++) {
        const int64_t has = measure->part[part].has[share];

        most = has > most ? has : most;
        total += has;
    }
    return total > 0 ? (double)most * measure->parts / (double)total : 1;
}

int32_t gr_partition_measure_init(const graft_context *context, struct gr_partition_measure *measure,
                                  const struct gr_slice *slice, int32_t parts, const int32_t *owner, graft_error *error)
{
    struct gr_partition_measure made = { .parts = parts };
    struct cut_counter          count = { 0 };
    int32_t                     rc;

    GR_TRY_DONE(GR_NEW(context, made.part, parts, error));
    GR_TRY_DONE(GR_NEW(context, made.post_rows, (int64_t)parts * parts, error));
    GR_TRY_DONE(GR_NEW(context, made.pre_rows, (int64_t)parts * parts, error));
    GR_TRY_DONE(cut_counter_init(context, &count, slice, parts, owner, error));
    for (int64_t i = 0; i < slice->rows->n_rows; i++) count_row(&made, &count, slice, count.row[i], owner);
    sum_pairs(&made);
    for (int k = 0; k < GR_SHARES; k++) made.imbalance[k] = imbalance_of(&made, k);
    *measure = made;
    memset(&made, 0, sizeof made);
done:
    gr_pool_fini(context, &count.pool);
    gr_partition_measure_fini(context, &made);
    return rc;
}

void gr_partition_measure_fini(const graft_context *context, struct gr_partition_measure *measure)
{
    gr_free(context, measure->part);
    gr_free(context, measure->post_rows);
    gr_free(context, measure->pre_rows);
    memset(measure, 0, sizeof *measure);
}

double gr_partition_seconds(const struct gr_partition_measure *measure, const struct gr_partition_cost *cost)
{
    double slowest = 0;

    for (int32_t i = 0; i < measure->parts; i++) {
        const struct gr_part_measure *part = &measure->part[i];
        const int64_t out = part->sent[cost->rows], in = part->received[cost->rows], rows = out > in ? out : in;

        slowest = fmax(slowest, (double)part->has[GR_SHARE_ENTRIES] * cost->entry +
                                    (double)part->has[GR_SHARE_VERTICES] * cost->vertex + (double)rows * cost->row);
    }
    return slowest;
}
