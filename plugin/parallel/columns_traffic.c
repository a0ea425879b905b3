/* Counts of the rows, records and bytes of slices of columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "parallel/columns.h"
#include "parallel/traffic.h"

void gr_parallel_traffic_count_transpose(struct gr_ranks *r, const struct gr_run *run, const struct gr_transposed *what,
                                         int to_rows)
{
    const struct gr_exchange *pass = &r->columns->transpose.exchange;
    const struct gr_grid     *grid = &r->columns->grid;
    const struct gr_codec    *codec = &pass->messages->begun.codec;
    const int32_t             at = run->layer * GR_DIRECTIONS + (int32_t)what->args.direction, n = r->comm->n_ranks;
    const int32_t             c = r->columns->grid.columns;
    const int64_t             bytes = gr_halo_messages_row_bytes(pass->messages, &pass->args);

    if (pass->is_repeat || run->pass == GRAFT_PASS_EVALUATION) return;
    for (int32_t q = 0; q < n; q++) {
        struct gr_transpose_flow *flow = &r->traffic.turned[(int64_t)at * n + q];

        gr_halo_send_stats_add(&r->traffic.pairs[(int64_t)at * n + q], &pass->messages->sent[q]);
        for (int32_t peer = q / c * c; peer < (q / c + 1) * c; peer++) {
            const int64_t elements[GR_SIDES] = {
                gr_parallel_transpose_elements(grid, what, to_rows ? peer : q, to_rows ? q : peer),
                gr_parallel_transpose_elements(grid, what, to_rows ? q : peer, to_rows ? peer : q)
            };

            for (int side = 0; side < GR_SIDES && peer != q; side++) {
                const int64_t records = gr_chunk_count(elements[side], GR_RECORD);

                flow->rows[side] += records;
                flow->bytes[side] += gr_parallel_transpose_message_bytes(pass->messages, elements[side], bytes);
                flow->messages[side] += records > 0;
            }
        }
        flow->exchanges++;
        flow->bits = codec->bits;
    }
    if (codec->bits <= 8) r->traffic.sent[at].code = codec->code;
    if (codec->bits <= 8) r->traffic.sent[at].rounding = codec->rounding;
}

void gr_parallel_traffic_count_blocks(struct gr_ranks *r, const struct gr_run *run)
{
    const struct gr_blocks *b = &r->columns->blocks;
    const int32_t           at = run->layer * GR_DIRECTIONS + (int32_t)b->sum.direction, n = r->comm->n_ranks;

    if (run->pass == GRAFT_PASS_EVALUATION || !b->streams) return;
    for (int32_t q = 0; q < n; q++) {
        struct gr_transpose_flow *flow = &r->traffic.turned[(int64_t)at * n + q];

        for (int side = 0; side < GR_SIDES; side++)
            flow->bytes[side] += gr_parallel_blocks_traffic(b, &b->sum, q, side == GR_SEND);
        flow->edges += gr_parallel_blocks_traffic(b, &b->sum, q, 0);
    }
}

void gr_parallel_traffic_count_columns(struct gr_ranks *r, const struct gr_run *run, const struct gr_sum *sum,
                                       int exact)
{
    const graft_plan         *plan = sum->block->of_strategy;
    const struct gr_exchange *pass = r->exchanges_rows ? &r->halo_rows.exchange : &plan->product.exchange;
    const struct gr_messages *messages = r->exchanges_rows ? &r->halo_rows.messages : &plan->messages;
    const int32_t             at = run->layer * GR_DIRECTIONS + (int32_t)sum->direction, n = r->comm->n_ranks;
    const int back = sum->direction == GR_BACKWARD, is_here = gr_parallel_columns_slice(r, sum->width) > 0;
    struct gr_exchange_args args = { .direction = sum->direction, .exact = exact, .dtype = GRAFT_F32 };

    if (run->pass == GRAFT_PASS_EVALUATION || r->columns->grid.n_groups == 1 ||
        r->columns->transpose.exchange.is_repeat)
        return;
    for (int32_t q = 0; q < n; q++) {
        const struct gr_flow     *flow = &(r->exchanges_rows ? r->halo_rows.flow : plan->flow)[q];
        struct gr_transpose_flow *to = &r->traffic.turned[(int64_t)at * n + q];
        const int64_t             rows[GR_SIDES] = { back ? flow->in : flow->out, back ? flow->out : flow->in };
        const int64_t             sent[GR_SIDES] = { back ? flow->messages_in : flow->messages_out,
                                         back ? flow->messages_out : flow->messages_in };

        args.width = gr_parallel_grid_slice_width(&r->columns->grid, sum->width, q % r->columns->grid.columns);
        if (args.width == 0) continue;
        if (is_here) gr_halo_send_stats_add(&r->traffic.pairs[(int64_t)at * n + q], &pass->messages->sent[q]);
        for (int side = 0; side < GR_SIDES; side++) {
            to->rows[side] += rows[side];
            to->bytes[side] += rows[side] * gr_halo_messages_row_bytes(messages, &args);
            to->messages[side] += sent[side];
        }
    }
}
