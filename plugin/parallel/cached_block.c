/* The blocks of a batch: adds edges from cached and fetched rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/cached.h"

#include "model/kind.h"

#include <string.h>

/* Create the matrix of the edges whose columns are begin to end - 1. */
static int32_t part_of_edges(struct gr_budget *budget, const graft_csr *all, int64_t begin, int64_t end,
                             graft_csr *part, graft_error *error)
{
    const int32_t *col = all->col_idx;
    const float   *from = all->values;
    int64_t       *row_ptr, at = 0;
    int32_t       *to_col;
    float         *to = NULL;

    for (int64_t e = 0; e < all->row_ptr[all->n_rows]; e++) at += col[e] >= begin && col[e] < end;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRAPH, row_ptr, all->n_rows + 1, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRAPH, to_col, at, error));
    if (from != NULL) GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRAPH, to, at, error));
    at = 0;
    for (int64_t i = 0; i < all->n_rows; i++) {
        for (int64_t e = all->row_ptr[i]; e < all->row_ptr[i + 1]; e++) {
            if (col[e] < begin || col[e] >= end) continue;
            if (to != NULL) to[at] = from[e];
            to_col[at++] = (int32_t)(col[e] - begin);
        }
        row_ptr[i + 1] = at;
    }
    *part = *all;
    part->n_cols = end - begin;
    part->row_ptr = row_ptr;
    part->col_idx = to_col;
    part->values = to;
    return GRAFT_OK;
}

int32_t gr_parallel_transpose_block(graft_context *context, const struct gr_budget *budget, const graft_csr *csr,
                                    graft_matrix **transpose, graft_error *error)
{
    struct gr_csr turned = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY_DONE(
        gr_budget_check(budget, (double)gr_csr_copy_bytes(csr, csr->n_cols, gr_csr_entries(csr)), "graph", error));
    GR_TRY_DONE(gr_csr_transpose(context, csr, &turned, error));
    GR_TRY_DONE(gr_matrix_create(context, &turned.view, transpose, error));
    gr_matrix_adopt(*transpose);
    turned = (struct gr_csr){ 0 };
done:
    gr_csr_fini(context, &turned);
    return rc;
}

/* Split the edges for sums, which read cached and fetched rows from a separate array, so edges from them are a separate
 * matrix. In one process all layers share this array. */
static int32_t split_edges(struct gr_cached *c, struct gr_cached_layer *layer, const struct gr_batch_layer *b,
                           graft_csr *csr, graft_error *error)
{
    struct gr_budget *budget = c->wish.batch;
    const int64_t     width = c->comm != NULL ? layer->width : c->widest;
    graft_csr         part, all = *csr;

    GR_TRY(part_of_edges(budget, &all, b->n_src, b->n_seen, &part, error));
    GR_TRY(part_of_edges(budget, &all, 0, b->n_src, csr, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, layer->rows, (b->n_seen - b->n_src) * width, error));
    GR_TRY(gr_matrix_create(c->context, &part, &layer->halo, error));
    if (layer->fetch.count == 0) return GRAFT_OK;
    GR_TRY(part_of_edges(budget, &all, b->n_src + layer->n_rows, b->n_seen, &part, error));
    return gr_parallel_transpose_block(c->context, budget, &part, &layer->halo_transpose, error);
}

/* Complete a block for attention and extrema, which read cached and fetched rows after the rows of this rank. */
static int32_t mark_rows(struct gr_cached *c, const struct gr_cached_layer *layer, const struct gr_batch_layer *b,
                         struct gr_block *block, graft_error *error)
{
    const int64_t *halo = c->wish.halo;
    int64_t       *names;
    uint8_t       *kind;

    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, kind, b->n_seen, error));
    memset(kind + b->n_src, GR_ROW_HALO, (uint64_t)(b->n_seen - b->n_src));
    for (int64_t i = 0; b->n_seen > b->n_src && i < b->n_dst; i++)
        for (int64_t e = b->row_ptr[i]; e < b->row_ptr[i + 1]; e++)
            if (b->col[e] >= b->n_src) kind[i] = GR_ROW_BOUNDARY;
    block->kind = kind;
    block->n_seen = b->n_seen;
    if (halo == NULL || gr_run_config(c->wish.run)->attention.dropout == 0) return GRAFT_OK; /* no names needed */
    GR_TRY(GR_BUDGET_NEW(c->wish.batch, GR_USE_GRAPH, names, b->n_seen, error));
    memcpy(names, block->vertex, (uint64_t)b->n_src * sizeof *names);
    for (int64_t i = 0; i < layer->n_rows; i++) names[b->n_src + i] = halo[layer->cache.vertex[layer->row[i]]];
    for (int64_t i = 0; i < layer->fetch.count; i++) names[b->n_src + layer->n_rows + i] = halo[layer->fetch.vertex[i]];
    block->vertex = names;
    return GRAFT_OK;
}

int32_t gr_parallel_cached_block(struct gr_batch_strategy *strategy, int32_t l, const struct gr_batch_layer *b,
                                 graft_csr *csr, struct gr_block *block, graft_error *error)
{
    struct gr_cached       *c = gr_cached_of(strategy);
    struct gr_cached_layer *layer = &c->layer[l];
    const struct gr_config *config = gr_run_config(c->wish.run);

    if (l < c->first) return GRAFT_OK;
    block->of_strategy = layer;
    layer->n_rows = b->n_seen - b->n_src - layer->fetch.count;
    if (b->is_shared) {
        layer->halo = layer[-1].halo;
        layer->rows = layer[-1].rows;
        return GRAFT_OK;
    }
    if (config->kind->attends || config->extremum != 0) return mark_rows(c, layer, b, block, error);
    return b->n_seen > b->n_src ? split_edges(c, layer, b, csr, error) : GRAFT_OK;
}

void gr_parallel_cached_end(struct gr_batch_strategy *strategy)
{
    struct gr_cached *c = gr_cached_of(strategy);

    for (int32_t l = c->n_layers - 1; l >= c->first; l--) {
        struct gr_cached_layer *layer = &c->layer[l];

        if (l == c->first || layer->halo != layer[-1].halo) gr_matrix_destroy(layer->halo);
        gr_matrix_destroy(layer->halo_transpose);
        layer->halo = layer->halo_transpose = NULL;
    }
}
