/* Widths and weights of rows for adaptive quantization. SPDX-License-Identifier: Apache-2.0 */
#include "halo/row_bits.h"

#include "base/assert.h"
#include "base/memory.h"
#include "halo/encode.h"

#include <string.h>

/* The bits of all elements until widths are assigned. */
enum { FIRST_BITS = 8 };

int32_t gr_halo_row_bits_init(const graft_context *context, const int64_t rows[GR_SIDES], int32_t n_ranks,
                              struct gr_row_bits *b, graft_error *error)
{
    GR_TRY(GR_POOL_NEW(context, &b->pool, b->flow, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &b->pool, b->widths.spread, rows[GR_SEND], error));
    GR_TRY(GR_POOL_NEW(context, &b->pool, b->widths.squares, rows[GR_SEND], error));
    GR_TRY(GR_POOL_NEW(context, &b->pool, b->spread, rows[GR_SEND], error));
    GR_TRY(GR_POOL_NEW(context, &b->pool, b->squares, rows[GR_SEND], error));
    for (int side = 0; side < GR_SIDES; side++) {
        GR_TRY(GR_POOL_NEW(context, &b->pool, b->widths.bits[side], rows[side], error));
        GR_TRY(GR_POOL_NEW(context, &b->pool, b->widths.at[side], rows[side] + 1, error));
        GR_TRY(GR_POOL_NEW(context, &b->pool, b->next[side], rows[side], error));
        GR_TRY(GR_POOL_NEW(context, &b->pool, b->weight[side], rows[side], error));
    }
    gr_halo_row_bits_reset(b, rows, n_ranks);
    return GRAFT_OK;
}

static void clear_epoch(struct gr_row_bits *b, int64_t rows_sent)
{
    for (int64_t row = 0; row < rows_sent; row++) b->widths.spread[row] = b->widths.squares[row] = 0;
}

static void clear_sums(struct gr_row_bits *b, int64_t rows_sent)
{
    clear_epoch(b, rows_sent);
    for (int64_t row = 0; row < rows_sent; row++) b->spread[row] = b->squares[row] = 0;
}

/* Add the sums of the last epoch to the sums of all earlier epochs. */
static void add_epoch(struct gr_row_bits *b, int64_t rows_sent)
{
    for (int64_t row = 0; row < rows_sent; row++) {
        b->spread[row] += b->widths.spread[row];
        b->squares[row] += b->widths.squares[row];
    }
    clear_epoch(b, rows_sent);
}

void gr_halo_row_bits_undo_epoch(struct gr_row_bits *b, const int64_t rows[GR_SIDES])
{
    if (!b->is_counting) return;
    clear_epoch(b, rows[GR_SEND]);
    b->counted_epoch = -1;
}

void gr_halo_row_bits_reset(struct gr_row_bits *b, const int64_t rows[GR_SIDES], int32_t n_ranks)
{
    clear_sums(b, rows[GR_SEND]);
    for (int side = 0; side < GR_SIDES; side++) {
        for (int64_t row = 0; row < rows[side]; row++) {
            b->widths.bits[side][row] = FIRST_BITS;
            b->weight[side][row] = 0;
        }
    }
    for (int32_t q = 0; q < n_ranks; q++) b->flow[q] = (struct gr_row_bits_flow){ 0 };
    b->width = -1;
    b->has_next = b->is_weighed = b->is_shared = b->is_counting = b->is_assigned = 0;
    b->expected_error = 0;
}

void gr_halo_row_bits_begin(struct gr_row_bits *b, const int64_t rows[GR_SIDES], int64_t width, int64_t epoch)
{
    for (int side = 0; side < GR_SIDES && b->has_next; side++) {
        uint8_t *const used = b->widths.bits[side];

        b->widths.bits[side] = b->next[side];
        b->next[side] = used;
    }
    if (b->has_next || b->width != width) gr_halo_row_widths_lay_out(&b->widths, rows, width);
    b->has_next = 0;
    b->width = width;
    if (!b->is_counting) clear_sums(b, rows[GR_SEND]);
    else if (b->counted_epoch != epoch) add_epoch(b, rows[GR_SEND]);
    if (!b->is_counting || b->counted_epoch != epoch) b->exchanges = 0;
    b->is_counting = 1;
    b->counted_epoch = epoch;
    b->exchanges++;
}

static double number_at(const void *numbers, graft_dtype dtype, int64_t i)
{
    if (numbers == NULL) return 1;
    return dtype == GRAFT_F64 ? ((const double *)numbers)[i] : (double)((const float *)numbers)[i];
}

void gr_halo_row_bits_weigh(struct gr_row_bits *b, const graft_csr *matrix, int has_values, graft_dtype dtype,
                            const void *row_scale)
{
    const void *const values = has_values ? matrix->values : NULL;

    if (b->is_weighed) return;
    for (int64_t row = 0; row < matrix->n_rows; row++) {
        const double scale = number_at(row_scale, dtype, row);

        for (int64_t e = matrix->row_ptr[row]; e < matrix->row_ptr[row + 1]; e++) {
            const double factor = scale * number_at(values, matrix->value_type, e);

            b->weight[GR_RECEIVE][gr_csr_column(matrix, e)] += (float)(factor * factor);
        }
    }
    b->is_weighed = 1;
}

void gr_halo_row_bits_weigh_mean(struct gr_row_bits *b, const struct gr_part *part, const int64_t rows[GR_SIDES])
{
    float *const weight = b->weight[GR_RECEIVE];

    GR_ASSERT(part == NULL || part->remote.n_cols == rows[GR_RECEIVE]);
    for (int64_t i = 0; i < rows[GR_RECEIVE] && part == NULL; i++) weight[i] = 1;
    for (int64_t row = 0; part != NULL && row < part->remote.n_rows; row++) {
        const int64_t begin = part->remote.row_ptr[row], end = part->remote.row_ptr[row + 1];
        const float   degree = (float)(end - begin + part->local.row_ptr[row + 1] - part->local.row_ptr[row]);

        for (int64_t e = begin; e < end; e++) weight[gr_csr_column(&part->remote, e)] += 1 / (degree * degree);
    }
    b->is_weighed = 1;
}
