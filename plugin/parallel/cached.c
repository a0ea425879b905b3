/* The steps of strategy `cached`. SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/dense_view.h"
#include "parallel/strategies.h"

/* Store or send the rows x of this batch for later batches, and fill to[(n_rows + fetch.count) x width] with rows of
 * the halo: cached rows in the order of the columns of the block, then fetched rows. */
static int32_t have_rows(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer, const graft_dense *x,
                         float *to, graft_error *error)
{
    float *const fetched = layer->fetch.count > 0 ? to + layer->n_rows * x->n_cols : NULL;
    double       begin;

    if (c->comm == NULL) gr_parallel_history_store(c, run, layer, x);
    else GR_TRY(gr_parallel_cached_push(c, run, layer, x, error));
    begin = gr_profile_begin(&run->profile);
    if (layer->n_rows > 0) {
        gr_sample_cache_load(&layer->cache, layer->row, layer->n_rows, run->threads, to);
        gr_profile_end_alone(&run->profile, "cache", begin);
    }
    return c->fetching.is_on ? gr_parallel_fetch_rows(c, layer, x, fetched, error) : GRAFT_OK;
}

/* Compute the sum of the rows of the halo, and add the rows of this rank to it. */
static int32_t forward_sum(struct gr_cached *c, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_cached_layer *layer = sum->block->of_strategy;
    const graft_dense       x = gr_dense_view(sum->x, sum->x_type, sum->block->n_src, sum->width, sum->stride);
    struct gr_sum           own = *sum;

    GR_TRY(have_rows(c, run, layer, &x, layer->rows, error));
    if (layer->halo != NULL) {
        const struct gr_operand rows = gr_dense_operand(layer->rows, sum->width, layer->n_rows + layer->fetch.count);

        GR_TRY(gr_model_product_sparse(run,
                                       &(struct gr_sparse_product){ .phase = "aggregate",
                                                                    .a = layer->halo,
                                                                    .scale = sum->scale,
                                                                    .x = rows,
                                                                    .width = sum->width,
                                                                    .add = sum->add,
                                                                    .out = sum->out },
                                       error));
        own.add = 1;
    }
    return gr_serial_ops.aggregate_begin(&c->base.base, run, &own, error);
}

/* Send the gradients of fetched rows to their owners, compute the gradients of this rank, and add the received ones to
 * them. */
static int32_t return_gradients(struct gr_cached *c, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_cached_layer *layer = sum->block->of_strategy;
    struct gr_sum           own = *sum;

    if (layer->halo_transpose != NULL)
        GR_TRY(gr_model_product_sparse(
            run,
            &(struct gr_sparse_product){ .phase = "aggregate",
                                         .a = layer->halo_transpose,
                                         .x = gr_dense_operand(sum->x, sum->stride, sum->block->n_dst),
                                         .x_type = sum->x_type,
                                         .width = sum->width,
                                         .out = layer->rows },
            error));
    GR_ASSERT(sum->width == layer->width);
    GR_TRY(gr_parallel_fetch_return(c, layer, layer->rows, error));
    own.epilogue = NULL;
    GR_TRY(gr_serial_ops.aggregate_begin(&c->base.base, run, &own, error));
    gr_parallel_fetch_add(c, layer, sum->scale, sum->out);
    return GRAFT_OK;
}

static int32_t cached_aggregate(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);

    if (sum->block->of_strategy != NULL && sum->direction == GR_FORWARD) return forward_sum(c, run, sum, error);
    if (sum->block->of_strategy != NULL && c->fetching.is_on) return return_gradients(c, run, sum, error);
    return gr_serial_ops.aggregate_begin(strategy, run, sum, error);
}

/* Exchange the rows of the halo, or the gradients of fetched rows, at once. Gradients of cached rows are not sent. */
static int32_t cached_boundary_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *b,
                                     graft_error *error)
{
    struct gr_cached       *c = gr_cached_of(strategy);
    struct gr_cached_layer *layer = b->block->of_strategy;
    const graft_dense       x = gr_dense_view(b->x, GRAFT_F32, b->block->n_src, b->width, b->width);
    float *const            halo = b->x + b->block->n_src * b->width;

    GR_ASSERT(layer != NULL && b->block->n_seen == b->block->n_src + layer->n_rows + layer->fetch.count);
    c->fetching.pending = NULL;
    if (b->direction == GR_FORWARD) return have_rows(c, run, layer, &x, halo, error);
    if (!c->fetching.is_on) return GRAFT_OK;
    GR_ASSERT(b->width == layer->width);
    GR_TRY(gr_parallel_fetch_return(c, layer, halo + layer->n_rows * b->width, error));
    c->fetching.pending = layer;
    c->fetching.gradient = b->x;
    return GRAFT_OK;
}

static int32_t cached_boundary_end(struct gr_strategy *strategy, struct gr_run *run, double local, graft_error *error)
{
    struct gr_cached *c = gr_cached_of(strategy);

    (void)run;
    (void)local;
    (void)error;
    if (c->fetching.pending != NULL) gr_parallel_fetch_add(c, c->fetching.pending, NULL, c->fetching.gradient);
    c->fetching.pending = NULL;
    return GRAFT_OK;
}

static int32_t cached_end_step(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error)
{
    return gr_strategy_end_step(gr_cached_of(strategy)->ranks, epoch, loss, error);
}

static int32_t cached_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error)
{
    return gr_strategy_sum(gr_cached_of(strategy)->ranks, values, count, error);
}

static int32_t cached_sum_gradients(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error)
{
    return gr_strategy_sum_gradients(gr_cached_of(strategy)->ranks, values, count, error);
}

static int32_t cached_agree(struct gr_strategy *strategy, int32_t rc, graft_error *error)
{
    return gr_strategy_agree(gr_cached_of(strategy)->ranks, rc, error);
}

const struct gr_strategy_ops gr_cached_ops = { .name = "cached",
                                               .make = { .destroy = gr_parallel_cached_destroy },
                                               .report = { .cache_item = gr_parallel_cached_item },
                                               .end_step = cached_end_step,
                                               .forget = gr_parallel_cached_forget,
                                               .aggregate_begin = cached_aggregate,
                                               .boundary_begin = cached_boundary_begin,
                                               .boundary_end = cached_boundary_end,
                                               .sum = cached_sum,
                                               .sum_gradients = cached_sum_gradients,
                                               .agree = cached_agree,
                                               .poll = gr_parallel_cached_poll };

const struct gr_batch_ops gr_cached_batches = { .begin = gr_parallel_cached_begin,
                                                .number = gr_parallel_cached_number,
                                                .layer = gr_parallel_cached_layer,
                                                .block = gr_parallel_cached_block,
                                                .post = gr_parallel_cached_post,
                                                .end = gr_parallel_cached_end,
                                                .settle = gr_parallel_cached_settle,
                                                .check_table = gr_parallel_cached_check_table,
                                                .adopt = gr_parallel_cached_adopt };
