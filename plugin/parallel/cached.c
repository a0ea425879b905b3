/* Strategy `cached`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "base/assert.h"
#include "base/dense_view.h"
#include "parallel/serial.h"

static struct gr_cached *cached_of(struct gr_strategy *strategy)
{
    return (struct gr_cached *)strategy;
}

/* Rows that this batch has computed, for later ones. */
static int32_t keep_computed(struct gr_cached *c, struct gr_run *run, struct gr_cached_layer *layer,
                             const graft_dense *x, graft_error *error)
{
    if (c->comm != NULL) return gr_cached_push(c, run, layer, x, error);
    gr_cached_store(c, run, layer, x);
    return GRAFT_OK;
}

/* Cached rows, in the order of the columns of their edges. */
static void load_rows(struct gr_run *run, const struct gr_cached_layer *layer, float *to)
{
    const double begin = gr_profile_begin(&run->profile);

    gr_cache_load(&layer->cache, layer->row, layer->n_rows, run->threads, to);
    gr_profile_end_alone(&run->profile, "cache", begin);
}

/* Cached rows first, and the rows of this rank added to their sum. */
static int32_t cached_aggregate(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                graft_error *error)
{
    struct gr_cached_layer *layer = sum->block->of_strategy;
    struct gr_sum           own = *sum;
    graft_dense             x;
    int32_t                 rc = GRAFT_OK;

    if (sum->direction == GR_FORWARD && layer != NULL) {
        x = gr_dense_view(sum->x, sum->x_type, sum->block->n_src, sum->width, sum->stride);
        GR_TRY(keep_computed(cached_of(strategy), run, layer, &x, error));
        if (layer->n_rows > 0) {
            load_rows(run, layer, layer->rows);
            GR_TRY(gr_product_sparse(
                run,
                &(struct gr_sparse_product){ .phase = "aggregate",
                                             .a = layer->halo,
                                             .scale = sum->scale,
                                             .x = gr_dense_operand(layer->rows, sum->width, layer->n_rows),
                                             .width = sum->width,
                                             .add = sum->add,
                                             .out = sum->out },
                error));
            own.add = 1;
        }
    }
    rc = gr_serial_ops.aggregate_begin(strategy, run, &own, error);
done:
    return rc;
}

/* Rows of the halo are there at once; and gradients stay on this rank. */
static int32_t cached_boundary_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_boundary *b,
                                     graft_error *error)
{
    struct gr_cached_layer *layer = b->block->of_strategy;
    const graft_dense       x = gr_dense_view(b->x, GRAFT_F32, b->block->n_src, b->width, b->width);
    int32_t                 rc = GRAFT_OK;

    GR_ASSERT(layer != NULL && b->block->n_seen == b->block->n_src + layer->n_rows);
    if (b->direction == GR_BACKWARD) return GRAFT_OK;
    GR_TRY(keep_computed(cached_of(strategy), run, layer, &x, error));
    load_rows(run, layer, b->x + b->block->n_src * b->width);
done:
    return rc;
}

static int32_t cached_boundary_end(struct gr_strategy *strategy, struct gr_run *run, double local, graft_error *error)
{
    (void)strategy;
    (void)run;
    (void)local;
    (void)error;
    return GRAFT_OK;
}

static int32_t cached_end_step(struct gr_strategy *strategy, int64_t epoch, double *loss, graft_error *error)
{
    return gr_strategy_end_step(cached_of(strategy)->ranks, epoch, loss, error);
}

static int32_t cached_sum(struct gr_strategy *strategy, double *values, int64_t count, graft_error *error)
{
    return gr_strategy_sum(cached_of(strategy)->ranks, values, count, error);
}

static int32_t cached_sum_gradients(struct gr_strategy *strategy, float *values, int64_t count, graft_error *error)
{
    return gr_strategy_sum_gradients(cached_of(strategy)->ranks, values, count, error);
}

static int32_t cached_agree(struct gr_strategy *strategy, int32_t rc, graft_error *error)
{
    return gr_strategy_agree(cached_of(strategy)->ranks, rc, error);
}

const struct gr_strategy_ops gr_cached_ops = { .name = "cached",
                                               .end_step = cached_end_step,
                                               .aggregate_begin = cached_aggregate,
                                               .boundary_begin = cached_boundary_begin,
                                               .boundary_end = cached_boundary_end,
                                               .sum = cached_sum,
                                               .sum_gradients = cached_sum_gradients,
                                               .agree = cached_agree,
                                               .poll = gr_cached_poll };
