/* A derived graph: its matrices, their transposes for the backward pass, the scales for means over neighbours or for
 * the normalisation of Kipf and Welling; and the blocks of the layers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "derived/derived.h"
#include "edge/edge.h"
#include "model/kind.h"

#include <math.h>
#include <string.h>

/* The degree of a row: the sum of its values, or without values the number of its entries. */
static double degree(const graft_csr *csr, int64_t row)
{
    double sum = 0;

    if (csr->values == NULL) return (double)(csr->row_ptr[row + 1] - csr->row_ptr[row]);
    for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) sum += ((const float *)csr->values)[e];
    return sum;
}

void gr_derived_scale(struct gr_derived *d)
{
    const int             symmetric = d->config->normalization == GR_NORMALIZE_SYMMETRIC;
    const struct gr_part *part = &d->graph.part;

    for (int64_t v = 0; v < d->n && d->left != NULL; v++) {
        const double of_row = degree(&part->local, v) + (d->data->over != NULL ? degree(&part->remote, v) : 0);

        d->left[v] = of_row > 0 ? (float)(symmetric ? 1 / sqrt(of_row) : 1 / of_row) : 0;
    }
}

static int32_t make_scales(struct gr_derived *d, graft_error *error)
{
    if (d->config->normalization == GR_NORMALIZE_NONE) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, d->left, d->n, error));
    gr_derived_scale(d);
    d->whole.left = d->left;
    if (d->config->normalization == GR_NORMALIZE_SYMMETRIC) d->whole.right = d->left;
    return GRAFT_OK;
}

int32_t gr_derived_matrix(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error)
{
    GR_TRY(gr_matrix_create(context, &csr->view, matrix, error));
    gr_matrix_adopt(*matrix);
    memset(csr, 0, sizeof *csr);
    return GRAFT_OK;
}

static int32_t make_transpose(struct gr_derived *d, const graft_csr *csr, graft_matrix **matrix, graft_error *error)
{
    struct gr_budget *budget = d->budget;
    struct gr_csr     turned = { 0 };
    int64_t           bytes;
    int32_t           rc = GRAFT_OK;

    GR_TRY_DONE(gr_derived_transpose(budget, csr, &turned, error));
    bytes = gr_csr_bytes(&turned);
    GR_TRY_DONE(gr_derived_matrix(d->context, &turned, matrix, error));
    gr_budget_return(budget, bytes);
    gr_budget_charge(budget, GR_USE_GRAPH, gr_matrix_own_bytes(*matrix));
done:
    gr_csr_fini(d->context, &turned);
    return rc;
}

static int32_t find_symmetry(struct gr_derived *d, graft_error *error)
{
    const int64_t bytes = gr_memory_block_bytes(d->n, sizeof *d->graph.part.local.row_ptr);
    int32_t       rc;

    GR_TRY(gr_budget_borrow(d->budget, bytes, "graph (whether it is symmetric)", error));
    rc = gr_csr_is_symmetric(d->context, &d->graph.part.local, &d->symmetric, error);
    gr_budget_return(d->budget, bytes);
    return rc;
}

/* Make the map that gat uses instead of a transpose, here, so that epochs allocate nothing. */
static int32_t make_map(struct gr_derived *d, graft_error *error)
{
    const int64_t             bytes = gr_edge_map_bytes(&d->whole.a->csr);
    const struct gr_edge_map *map;

    GR_TRY(gr_budget_check(d->budget, (double)bytes, "graph (the map of its transpose)", error));
    GR_TRY(gr_edge_map(d->whole.a, &map, error));
    gr_budget_charge(d->budget, GR_USE_GRAPH, bytes);
    return GRAFT_OK;
}

/* Make the matrix of all rows in one process. It uses the host's arrays if nothing was derived. */
static int32_t make_matrix(struct gr_derived *d, graft_error *error)
{
    if (!d->wish.predicts) GR_TRY(find_symmetry(d, error));
    if (d->graph.made.local.row_ptr == NULL)
        return gr_matrix_create(d->context, &d->graph.part.local, &d->whole.a, error);
    GR_TRY(gr_derived_matrix(d->context, &d->graph.made.local, &d->whole.a, error));
    gr_derived_charge(&d->graph);
    gr_budget_charge(d->budget, GR_USE_GRAPH, gr_matrix_own_bytes(d->whole.a));
    return GRAFT_OK;
}

/* Make what gradients need to go back along all edges: a transpose, or for attention a map. */
static int32_t make_backward(struct gr_derived *d, graft_error *error)
{
    if (d->wish.predicts || d->wish.has_batches) return GRAFT_OK;
    if (d->config->kind->attends) return make_map(d, error);
    if (!d->symmetric) return make_transpose(d, &d->whole.a->csr, &d->whole.a_transpose, error);
    d->whole.a_transpose = d->whole.a;
    return GRAFT_OK;
}

/* Make `whole` with the edges of all rows as one matrix, unless ranks only exchange sums over edges. */
static int32_t make_whole(struct gr_derived *d, graft_error *error)
{
    int64_t *numbers = NULL;
    int32_t  rc = GRAFT_OK;

    if (d->data->over != NULL && !d->wish.reads_halo) return GRAFT_OK;
    if (d->config->attention.edge_array && d->data->over == NULL) numbers = gr_derived_take_numbers(&d->graph);
    GR_TRY_DONE(d->data->over != NULL ? gr_derived_read_halo(d, &numbers, error) : make_matrix(d, error));
    if (d->config->attention.edge_array && d->data->over != NULL)
        gr_free(d->context, gr_derived_take_numbers(&d->graph));
    if (d->config->attention.edge_array) GR_TRY_DONE(gr_derived_edge_features(d, &d->whole.a->csr, numbers, error));
    if (d->data->over == NULL) rc = make_backward(d, error);
done:
    gr_free(d->context, numbers);
    return rc;
}

int32_t gr_derived_init(struct gr_derived *d, graft_error *error)
{
    graft_graph *const over = d->data->over;
    const int64_t      n = d->n = d->data->n;

    d->whole = (struct gr_block){ .n_dst = n, .n_src = n, .n_seen = n, .vertex = over != NULL ? over->vertex : NULL };
    d->graph = (struct gr_graph_copy){ .budget = d->budget };
    if (over != NULL) d->graph.part = over->part;
    else d->graph.part.local = d->data->graph;
    if (over != NULL) d->share = over->share;
    if (!d->config->kind->gathers) return gr_derived_order(d, NULL, NULL, error);
    if (d->config->attention.edge_array) GR_TRY(gr_derived_number(d, &d->graph, &d->data->edge_features, error));
    GR_TRY(gr_derived_derive(d, &d->graph, 1, error));
    GR_TRY(gr_dataset_agree(d->data, make_scales(d, error), error));
    return make_whole(d, error);
}

void gr_derived_fini(struct gr_derived *d)
{
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++) {
        gr_matrix_destroy(d->masked[l].a);
        gr_matrix_destroy(d->masked[l].transpose);
    }
    if (d->whole.a_transpose != d->whole.a) gr_matrix_destroy(d->whole.a_transpose);
    gr_matrix_destroy(d->whole.a);
    if (d->context != NULL) gr_graph_made_part_fini(d->context, &d->graph.made);
}

int64_t gr_derived_entries(const struct gr_derived *d, int64_t rows)
{
    const struct gr_part *part = &d->graph.part;

    return part->local.row_ptr[rows] + (d->data->over != NULL ? part->remote.row_ptr[rows] : 0);
}

/* Make the matrices of layer l in a step: the first rows, whose columns are among the first vertices too. */
static int32_t mask_layer(struct gr_derived *d, int32_t l, graft_error *error)
{
    graft_csr part = d->whole.a->csr;

    GR_ASSERT(d->reach[l + 1] <= d->reach[l] && d->reach[l] <= d->n);
    part.n_rows = d->reach[l + 1];
    part.n_cols = d->reach[l];
    GR_TRY(gr_matrix_create(d->context, &part, &d->masked[l].a, error));
    if (!d->wish.predicts) return make_transpose(d, &part, &d->masked[l].transpose, error);
    return GRAFT_OK;
}

void gr_derived_blocks(struct gr_derived *d)
{
    for (int32_t l = 0; l < d->config->n_layers; l++) {
        struct gr_block *step = &d->step[l];

        *step = d->whole;
        step->n_dst = d->reach[l + 1];
        step->n_src = d->reach[l];
        if (!d->wish.reads_halo) step->n_seen = step->n_src;
        if (d->masked[l].a != NULL) {
            step->a = d->masked[l].a;
            step->a_transpose = d->masked[l].transpose;
        }
        d->whole_of[l] = &d->whole;
        d->step_of[l] = step;
        GR_ASSERT(gr_model_block_is_valid(step));
    }
}

int32_t gr_derived_mask(struct gr_derived *d, int32_t first_masked, graft_error *error)
{
    const struct gr_config *config = d->config;

    for (int32_t l = first_masked; l < config->n_layers && d->data->over == NULL && d->whole.a != NULL; l++)
        if (l >= config->gathers_from && d->reach[l + 1] < d->n) GR_TRY(mask_layer(d, l, error));
    gr_derived_blocks(d);
    return GRAFT_OK;
}
