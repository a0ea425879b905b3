/* Strategy `serial`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/serial.h"

#include "base/assert.h"
#include "model/product.h"

/* One product computes the sum, so the end has nothing to do. */
static int32_t serial_aggregate(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                graft_error *error)
{
    const struct gr_block *block = sum->block;
    const int              back = sum->direction == GR_BACKWARD;

    GR_ASSERT(block->a != NULL && (!back || block->a_transpose != NULL));
    (void)strategy;
    return gr_product_sparse(
        run,
        &(struct gr_sparse_product){ .phase = "aggregate",
                                     .a = back ? block->a_transpose : block->a,
                                     .scale = sum->scale,
                                     .x = gr_dense_operand(sum->x, sum->stride, back ? block->n_dst : block->n_src),
                                     .x_type = sum->x_type,
                                     .width = sum->width,
                                     .add = sum->add,
                                     .in_blocks = sum->kind != GR_SUM_LABELS,
                                     .out = sum->out,
                                     .epilogue = sum->epilogue },
        error);
}

const struct gr_strategy_ops gr_serial_ops = { .name = "serial", .records = 1, .aggregate_begin = serial_aggregate };
