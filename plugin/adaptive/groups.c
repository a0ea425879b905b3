/* Groups of rows of about the same variance.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/adapt.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* A value that is not finite counts as a very large value, so that sums stay finite. */
static double bounded(double x)
{
    return x >= 0 && x < 1e200 ? x : 1e200;
}

/* The weighted squares of errors as large as the range of a row, in all its elements and traced exchanges. */
static double row_variance(const struct gr_halo_layer *layer, int64_t row)
{
    const struct gr_row_bits *const bits = &layer->bits;

    return bounded((double)bits->weight[GR_SEND][row] * (bits->spread[row] + bits->widths.spread[row]));
}

double gr_adaptive_groups_signal(const struct gr_halo_layer *layer)
{
    const struct gr_row_bits *const bits = &layer->bits;
    double                          sum = 0;

    for (int64_t row = 0; row < layer->rows[GR_SEND]; row++)
        sum += bounded((double)bits->weight[GR_SEND][row] * (bits->squares[row] + bits->widths.squares[row]));
    return sum;
}

/* The number of groups of `rows` rows. */
static int64_t parts_of(int64_t rows, int64_t most)
{
    return rows < most ? rows : most;
}

int64_t gr_adaptive_groups_count(const struct gr_halo_layer *layer, int32_t n_ranks, int64_t most)
{
    int64_t count = 0;

    for (int32_t q = 0; q < n_ranks; q++)
        count += parts_of(layer->start[GR_SEND][q + 1] - layer->start[GR_SEND][q], most);
    return count;
}

/* A sort key that falls with the variance of a row, with the row in its lower half. The bits of nonnegative floats have
 * the order of the floats. */
static int64_t key_of(const struct gr_halo_layer *layer, int64_t row, int64_t first)
{
    const float wide = (float)fmin(row_variance(layer, row), (double)FLT_MAX);
    uint32_t    bits;

    memcpy(&bits, &wide, sizeof bits);
    return (int64_t)(INT32_MAX - bits) << 32 | (row - first);
}

/* The groups of the rows to one rank. */
static int32_t make_channel(const graft_context *context, const struct gr_halo_layer *layer, int32_t q, int64_t parts,
                            int64_t *key, struct gr_assign_group *groups, uint8_t *number, graft_error *error)
{
    const int64_t first = layer->start[GR_SEND][q];
    int64_t       rows = layer->start[GR_SEND][q + 1] - first, part = 0;

    for (int64_t i = 0; i < rows; i++) key[i] = key_of(layer, first + i, first);
    GR_TRY(gr_sort_unique(context, key, INT64_MAX, &rows, error));
    for (int64_t g = 0; g < parts; g++) groups[g] = (struct gr_assign_group){ .channel = q };
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = first + (key[i] & INT32_MAX);

        while (i >= rows * (part + 1) / parts) part++;
        GR_ASSERT(part < parts && part <= UINT8_MAX);
        number[row] = (uint8_t)part;
        groups[part].rows++;
        groups[part].variance += row_variance(layer, row);
    }
    return GRAFT_OK;
}

int32_t gr_adaptive_groups_make(const graft_context *context, const struct gr_halo_layer *layer, int32_t n_ranks,
                                int64_t most, struct gr_assign_group *groups, uint8_t *number, graft_error *error)
{
    const int64_t *start = layer->start[GR_SEND];
    int64_t        longest = 0, *key = NULL;
    int32_t        rc = GRAFT_OK;

    for (int32_t q = 0; q < n_ranks; q++)
        if (start[q + 1] - start[q] > longest) longest = start[q + 1] - start[q];
    GR_TRY_DONE(GR_NEW(context, key, longest, error));
    for (int32_t q = 0; q < n_ranks; q++) {
        const int64_t parts = parts_of(start[q + 1] - start[q], most);

        GR_TRY_DONE(make_channel(context, layer, q, parts, key, groups, number, error));
        groups += parts;
    }
done:
    gr_free(context, key);
    return rc;
}

void gr_adaptive_groups_spread(struct gr_halo_layer *layer, int32_t n_ranks, int64_t most,
                               const struct gr_assign_group *groups, const uint8_t *number)
{
    const int64_t *start = layer->start[GR_SEND];

    for (int32_t q = 0; q < n_ranks; q++) {
        for (int64_t row = start[q]; row < start[q + 1]; row++)
            layer->bits.next[GR_SEND][row] = (uint8_t)groups[number[row]].bits;
        groups += parts_of(start[q + 1] - start[q], most);
    }
}
