/* Strategy `serial`: all vertices are in one process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/strategies.h"

#include "base/assert.h"
#include "base/memory.h"
#include "model/product.h"

struct serial {
    struct gr_strategy base;
    graft_context     *context;
};

static int32_t serial_create(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error)
{
    struct serial *made;

    GR_TRY(GR_NEW(wish->run->context, made, 1, error));
    *made = (struct serial){ .base = { .ops = &gr_serial_ops }, .context = wish->run->context };
    *strategy = &made->base;
    return GRAFT_OK;
}

static void serial_destroy(struct gr_strategy *strategy)
{
    gr_free(((struct serial *)strategy)->context, strategy);
}

/* Compute a sum, which is one product. There is no function to end it. */
static int32_t serial_aggregate(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                graft_error *error)
{
    const struct gr_block *block = sum->block;
    const int              back = sum->direction == GR_BACKWARD;

    GR_ASSERT(block->a != NULL && (!back || block->a_transpose != NULL));
    (void)strategy;
    return gr_model_product_sparse(
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

const struct gr_strategy_ops gr_serial_ops = { .name = "serial",
                                               .records = 1,
                                               .make = { .create = serial_create, .destroy = serial_destroy },
                                               .aggregate_begin = serial_aggregate };
