/* Extrema over neighbours: max pooling of Hamilton et al. 2017 (section 3.3), without the separate layer before the
 * pooling, and the analogous min pooling. A gradient goes to the neighbour with the extremum; in a tie, to the first in
 * the row: over ranks, local columns precede halo columns. Ranks receive halo rows in the forward pass, and send the
 * gradients of these rows back to the owners.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "model/gather.h"
#include "model/product.h"
#include "model/rows.h"

#include <string.h>

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
