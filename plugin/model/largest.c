/* Maxima over neighbours: max pooling of Hamilton et al. 2017 (section 3.3), without a layer of its own before it. A
 * gradient goes to the neighbour that gave the maximum, of equal ones to the first of the row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "model/run.h"

#include <string.h>

/* As for sums, those of features that do not change are of all rows, and are kept. */
int32_t gr_layer_gather_largest(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error)
{
    const int              constant = a->index == 0 && run->input.is_constant;
    const struct gr_block *block = constant ? run->input.whole : a->block;
    void *const            winner = run->pass != GRAFT_PASS_EVALUATION ? a->winner : NULL;
    int32_t                rc = GRAFT_OK;

    GR_ASSERT(x.sparse == NULL && x.labels == GR_LABELS_NONE);
    if (constant && a->gathered_of == x.data) return GRAFT_OK;
    a->gathered_of = NULL;
    GR_TRY(gr_product_largest(run, block->a, gr_dense_operand(x.data, x.stride, block->n_src), a->layer->in, winner,
                              a->gathered, error));
    if (constant) a->gathered_of = x.data;
done:
    return rc;
}

struct scatter {
    const struct gr_activations *a;
    const float                 *g;
    float                       *dx;
};

/* Columns begin to end - 1 of all rows: each element has one thread, and its terms one order. */
static void scatter_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct scatter  *s = arg;
    const struct gr_block *block = s->a->block;
    const int64_t          width = s->a->layer->in;
    const int              is_long = block->a->csr.index_type == GRAFT_I64;

    (void)chunk;
    for (int64_t u = 0; u < block->n_src; u++)
        memset(s->dx + u * width + begin, 0, (uint64_t)(end - begin) * sizeof *s->dx);
    for (int64_t at = 0; at < block->n_dst * width; at += width) {
        for (int64_t j = at + begin; j < at + end; j++) {
            const int64_t u = is_long ? ((const int64_t *)(const void *)s->a->winner)[j] : s->a->winner[j];

            if (u >= 0) s->dx[u * width + j - at] += s->g[j];
        }
    }
}

void gr_layer_scatter_largest(struct gr_run *run, const struct gr_activations *a, const float *g, float *dx)
{
    const double   begin = gr_profile_begin(&run->profile);
    const int64_t  width = a->layer->in;
    const double   elements = (double)(a->block->n_dst + a->block->n_src) * (double)width;
    struct scatter scatter = { a, g, dx };

    GR_ASSERT(a->winner != NULL);
    gr_parallel_chunks(gr_run_team(run), a->block->n_dst * width, width, GR_CHUNK_COLUMNS, scatter_chunk, &scatter);
    gr_profile_end(&run->profile, "aggregate", begin, 12 * elements, elements);
}
