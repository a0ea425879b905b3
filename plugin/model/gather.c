/* Sums and extrema over neighbours, of the input of a layer before the product, or of the result of the product.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/gather.h"

#include "base/assert.h"
#include "base/dense_view.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "model/labels.h"
#include "model/product.h"
#include "model/rows.h"

#include <string.h>

/* Whether layer l computes (A H) W rather than A (H W): whichever order has fewer columns in products with A, forward
 * and backward. The first layer computes no gradient of its input. An input that is aggregated only once costs nothing,
 * and sparse features are never multiplied by A. Labels have separate columns if they are aggregated first. */
static int aggregates_first(const struct gr_run *run, int32_t l)
{
    const struct gr_layer *layer = &run->model->layers[l];
    const int64_t          more = l > 0 ? layer->in : gr_propagates(run) ? run->targets.n_classes : 0;

    if (gr_run_config(run)->extremum != 0) return 1;
    if (l == 0 && run->input.is_sparse) return 0;
    if (l == 0 && run->input.is_constant) return 1;
    return layer->in + more <= 2 * layer->out;
}

void gr_model_layer_count_gathered(const struct gr_run *run, struct gr_activations *a,
                                   const struct gr_capacity *capacity)
{
    a->aggregate_first = aggregates_first(run, a->index);
    if (a->aggregate_first) a->count[GR_ARRAY_GATHERED] = capacity->rows * a->layer->in;
}

struct gr_sum gr_model_sum_of(const struct gr_activations *a, enum gr_direction direction, const float *scale,
                              const float *x, int64_t width, int add, float *out)
{
    return (struct gr_sum){ .block = a->block,
                            .direction = direction,
                            .scale = scale,
                            .x = x,
                            .x_type = GRAFT_F32,
                            .stride = width,
                            .width = width,
                            .add = add,
                            .out = out };
}

/* Round the rows that a sum reads to bfloat16, except labels, which have few columns. */
static int32_t round_rows(struct gr_run *run, struct gr_sum *sum, graft_error *error)
{
    const int64_t     rows = sum->direction == GR_BACKWARD ? sum->block->n_dst : sum->block->n_src;
    const graft_dense from = gr_dense_view(sum->x, GRAFT_F32, rows, sum->width, sum->stride);
    const graft_dense to = gr_dense_view(run->space.rounded, GRAFT_BF16, rows, sum->width, sum->width);
    const double      begin = gr_profile_begin(&run->profile);
    int32_t           rc;

    if (run->space.rounded == NULL || sum->kind == GR_SUM_LABELS) return GRAFT_OK;
    rc = gr_kernel_dense_convert(&from, &to, gr_run_team(run), error);
    gr_profile_end(&run->profile, "rows", begin, 6 * (double)rows * (double)sum->width, 0);
    sum->x = run->space.rounded;
    sum->x_type = GRAFT_BF16;
    sum->stride = sum->width;
    return rc;
}

int32_t gr_model_aggregate(struct gr_run *run, const struct gr_sum *wanted, graft_error *error)
{
    const struct gr_strategy_ops *ops = run->strategy->ops;
    struct gr_sum                 sum = *wanted;

    GR_TRY(round_rows(run, &sum, error));
    GR_TRY(ops->aggregate_begin(run->strategy, run, &sum, error));
    if (ops->aggregate_end != NULL) GR_TRY(ops->aggregate_end(run->strategy, run, &sum, error));
    gr_model_epilogue_end(run, sum.epilogue);
    return GRAFT_OK;
}

int32_t gr_model_aggregate_scaled(struct gr_run *run, double own, struct gr_sum sum, graft_error *error)
{
    const struct gr_block *block = sum.block;

    if (own != 0) {
        gr_model_layer_scale(run, gr_dense_operand(sum.x, sum.stride, block->n_dst), NULL, (float)own, sum.out,
                             sum.width);
        sum.add = 1;
    }
    if (block->right != NULL) {
        gr_model_layer_scale(run, gr_dense_operand(sum.x, sum.stride, block->n_src), block->right, 0,
                             run->space.scratch, sum.width);
        sum.x = run->space.scratch;
        sum.stride = sum.width;
    }
    sum.scale = block->left;
    return gr_model_aggregate(run, &sum, error);
}

/* Compute A L. A (X + L E) is A X + (A L) E, so A X is not computed again. */
static int32_t gather_labels(struct gr_run *run, struct gr_activations *a, double own, graft_error *error)
{
    struct gr_sum sum =
        gr_model_sum_of(a, GR_FORWARD, NULL, run->space.scratch, run->targets.n_classes, 0, run->labels.gathered);

    if (run->labels.has_gathered) return GRAFT_OK;
    sum.kind = GR_SUM_LABELS;
    gr_model_labels_fill(run, a->block->n_src, run->space.scratch);
    GR_TRY(gr_model_aggregate_scaled(run, own, sum, error));
    run->labels.has_gathered = 1;
    return GRAFT_OK;
}

int32_t gr_model_layer_gather(struct gr_run *run, struct gr_activations *a, struct gr_operand x, double own,
                              graft_error *error)
{
    const int     constant = a->index == 0 && run->input.is_constant; /* not found by x.data, which may be NULL */
    struct gr_sum sum = gr_model_sum_of(a, GR_FORWARD, NULL, x.data, a->layer->in, 0, a->gathered);

    if (x.labels != GR_LABELS_NONE) GR_TRY(gather_labels(run, a, own, error));
    if (constant && a->gathered_of == x.data) return GRAFT_OK;
    a->gathered_of = NULL;
    sum.stride = x.stride;
    if (constant) {
        sum.kind = GR_SUM_CONSTANT;
        sum.block = run->input.whole; /* all rows, because evaluation reads the sum too */
    }
    GR_TRY(gr_model_aggregate_scaled(run, own, sum, error));
    if (constant) a->gathered_of = x.data;
    return GRAFT_OK;
}

struct gr_operand gr_model_layer_gathered(const struct gr_run *run, const struct gr_activations *a)
{
    struct gr_operand x = gr_dense_operand(a->gathered, a->layer->in, a->block->n_dst);

    x.labels = a->index == 0 && run->labels.gathered != NULL ? GR_LABELS_GATHERED : GR_LABELS_NONE;
    return x;
}

/* Extrema over neighbours: max pooling of Hamilton et al. 2017 (section 3.3), without the separate layer before the
 * pooling, and the analogous min pooling. A gradient goes to the neighbour with the extremum; in a tie, to the first in
 * the row: over ranks, local columns precede halo columns. Ranks receive halo rows in the forward pass, and send the
 * gradients of these rows back to the owners. */

/* Exchange the rows of the halo, which follow the rows of this rank in the scratch memory. Forward, they are received
 * from their owners; backward, they are added to the rows of their owners. */
static int32_t exchange_halo(struct gr_run *run, const struct gr_activations *a, const struct gr_block *block,
                             enum gr_direction direction, int is_constant, graft_error *error)
{
    const double             begin = gr_profile_begin(&run->profile);
    const struct gr_boundary rows = { block, direction, run->space.scratch, a->layer->in, begin, is_constant };

    GR_TRY(run->strategy->ops->boundary_begin(run->strategy, run, &rows, error));
    GR_TRY(run->strategy->ops->boundary_end(run->strategy, run, 0, error));
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
    return GRAFT_OK;
}

/* Let the strategy compute extrema, and store their winners. */
static int32_t extrema_of_strategy(struct gr_run *run, const struct gr_activations *a, const struct gr_block *block,
                                   struct gr_operand x, graft_error *error)
{
    struct gr_sum sum = gr_model_sum_of(a, GR_FORWARD, NULL, x.data, a->layer->in, 0, a->gathered);

    sum.block = block;
    sum.stride = x.stride;
    if (block != a->block) sum.kind = GR_SUM_CONSTANT;
    return run->strategy->ops->extrema(run->strategy, run, &sum, error);
}

/* Like sums, extrema of constant features are computed once, for all rows. */
int32_t gr_model_layer_gather_extrema(struct gr_run *run, struct gr_activations *a, struct gr_operand x, void *winner,
                                      graft_error *error)
{
    const int              constant = a->index == 0 && run->input.is_constant;
    const struct gr_block *block = constant ? run->input.whole : a->block;
    struct gr_operand      seen;

    GR_ASSERT(x.sparse == NULL && x.labels == GR_LABELS_NONE);
    if (constant && a->gathered_of == x.data) return GRAFT_OK;
    a->gathered_of = NULL;
    if (run->strategy->ops->extrema != NULL) {
        GR_TRY(extrema_of_strategy(run, a, block, x, error));
        if (constant) a->gathered_of = x.data;
        return GRAFT_OK;
    }
    seen = gr_dense_operand(x.data, x.stride, block->n_src);
    if (gr_model_block_has_halo(block)) {
        gr_model_layer_scale(run, seen, NULL, 1, run->space.scratch, a->layer->in);
        GR_TRY(exchange_halo(run, a, block, GR_FORWARD, constant, error));
        seen = gr_dense_operand(run->space.scratch, a->layer->in, block->n_seen);
    }
    GR_TRY(gr_model_product_extrema(run, block->a, seen, a->layer->in, gr_is_training(run) ? winner : NULL, a->gathered,
                                    error));
    if (constant) a->gathered_of = x.data;
    return GRAFT_OK;
}

struct scatter {
    const struct gr_winners *from;
    const float             *g;
    float                   *dx, *halo; /* rows before n_src are in dx, rows from n_src on in `halo` */
};

/* Scatter columns begin to end - 1 of all rows. One thread sums each element, in a fixed order of terms. */
static void scatter_chunk(void *arg, int64_t begin, int64_t end)
{
    const struct scatter    *s = arg;
    const struct gr_winners *from = s->from;
    const int64_t            width = from->width, n_src = from->n_src;
    const int                is_long = from->type == GRAFT_I64;

    for (int64_t u = 0; u < from->n_seen && !from->adds; u++)
        memset((u < n_src ? s->dx : s->halo) + u * width + begin, 0, (uint64_t)(end - begin) * sizeof *s->dx);
    for (int64_t at = 0; at < from->n_dst * width; at += width) {
        for (int64_t j = at + begin; j < at + end; j++) {
            const int64_t u = is_long ? ((const int64_t *)from->winner)[j] : ((const int32_t *)from->winner)[j];

            if (u >= 0) (u < n_src ? s->dx : s->halo)[u * width + j - at] += s->g[j];
        }
    }
}

void gr_model_scatter_extrema(struct gr_run *run, const struct gr_winners *from, const float *g, float *dx, float *halo)
{
    const double   begin = gr_profile_begin(&run->profile);
    const double   rows = (double)from->n_dst + (from->adds ? 0 : (double)from->n_seen);
    const double   elements = rows * (double)from->width;
    struct scatter scatter = { from, g, dx, halo };

    gr_parallel_rows(gr_run_team(run), from->n_dst * from->width, from->width, GR_CHUNK_COLUMNS, scatter_chunk,
                     &scatter);
    gr_profile_end(&run->profile, "aggregate", begin, 12 * elements, elements);
}

int32_t gr_model_layer_scatter_extrema(struct gr_run *run, const struct gr_activations *a, const void *winner,
                                       float *dx, graft_error *error)
{
    const int64_t     width = a->layer->in, n_src = a->block->n_src;
    struct gr_winners from = { winner, 0, a->block->n_dst, n_src, a->block->n_seen, width, 0 };

    if (run->strategy->ops->extrema != NULL) {
        const struct gr_sum sum = gr_model_sum_of(a, GR_BACKWARD, NULL, run->space.scratch, width, 0, dx);

        return run->strategy->ops->extrema(run->strategy, run, &sum, error);
    }
    GR_ASSERT(winner != NULL || a->block->n_dst == 0);
    from.type = a->block->a->csr.index_type;
    gr_model_scatter_extrema(run, &from, run->space.scratch, dx, run->space.scratch);
    if (!gr_model_block_has_halo(a->block)) return GRAFT_OK;
    gr_model_layer_scale(run, gr_dense_operand(dx, width, n_src), NULL, 1, run->space.scratch, width);
    GR_TRY(exchange_halo(run, a, a->block, GR_BACKWARD, 0, error));
    gr_model_layer_scale(run, gr_dense_operand(run->space.scratch, width, n_src), NULL, 1, dx, width);
    return GRAFT_OK;
}
