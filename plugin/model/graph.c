/* The graph as the model wants it: made symmetric, with self loops, transposed for the backward pass, and the factors
 * that turn sums over neighbours into means or into Kipf and Welling's normalisation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/csr.h"
#include "graph/order.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* Sum of the values of a row; the number of its entries if there are none. */
static double degree(const graft_csr *csr, int64_t row)
{
    double sum = 0;

    if (csr->values == NULL) return (double)(csr->row_ptr[row + 1] - csr->row_ptr[row]);
    for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) sum += ((const float *)csr->values)[e];
    return sum;
}

int32_t gr_model_scales(graft_trainer *t, const graft_csr *local, const graft_csr *remote, graft_error *error)
{
    const int gcn = t->config.kind == GR_MODEL_GCN;
    int32_t   rc = GRAFT_OK;

    if (t->config.kind == GR_MODEL_GIN || t->config.kind == GR_MODEL_GAT) return GRAFT_OK;
    GR_TRY(GR_LEDGER_NEW(t, GR_USE_GRAPH, t->left, t->n, error));
    for (int64_t v = 0; v < t->n; v++) {
        const double d = degree(local, v) + (remote != NULL ? degree(remote, v) : 0);

        t->left[v] = d > 0 ? (float)(gcn ? 1 / sqrt(d) : 1 / d) : 0;
    }
    if (gcn) t->right = t->left;
done:
    return rc;
}

static int same_arrays(const graft_csr *a, const graft_csr *b)
{
    const uint64_t entries = (uint64_t)gr_csr_entries(a);

    return memcmp(a->row_ptr, b->row_ptr, (uint64_t)(a->n_rows + 1) * sizeof *a->row_ptr) == 0 &&
           memcmp(a->col_idx, b->col_idx, entries * (a->index_type == GRAFT_I32 ? 4 : 8)) == 0 &&
           (a->values == NULL || memcmp(a->values, b->values, entries * sizeof(float)) == 0);
}

int32_t gr_model_wrap(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error)
{
    const int32_t rc = gr_matrix_create(context, &csr->view, matrix, error);

    if (rc < 0) return rc;
    gr_matrix_adopt(*matrix);
    memset(csr, 0, sizeof *csr);
    return GRAFT_OK;
}

/* The graph in the order of the trainer, rows sorted as those that Graft makes are: a transpose comes sorted. */
static int32_t put_in_order(graft_trainer *t, const graft_csr *csr, struct gr_csr *ordered, graft_error *error)
{
    struct gr_csr permuted = { 0 }, transpose = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_order_apply(t->context, csr, t->vertex, &permuted, error));
    GR_TRY(gr_csr_transpose(t->context, &permuted.view, &transpose, error));
    gr_csr_fini(t->context, &permuted);
    rc = gr_csr_transpose(t->context, &transpose.view, ordered, error);
done:
    gr_csr_fini(t->context, &permuted);
    gr_csr_fini(t->context, &transpose);
    return rc;
}

/* The graph as a step of training sees it in one layer: the first rows, whose columns are among the first ones too. */
static int32_t mask_layer(graft_trainer *t, int32_t l, graft_error *error)
{
    struct gr_csr transpose = { 0 };
    graft_csr     part = t->a->csr;
    int32_t       rc = GRAFT_OK;

    part.n_rows = t->reach[l + 1];
    part.n_cols = t->reach[l];
    GR_TRY(gr_matrix_create(t->context, &part, &t->layers[l].masked_a, error));
    GR_TRY(gr_csr_transpose(t->context, &part, &transpose, error));
    rc = gr_model_wrap(t->context, &transpose, &t->layers[l].masked_transpose, error);
done:
    gr_csr_fini(t->context, &transpose);
    return rc;
}

int32_t gr_model_graph_mask(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    /* What is gathered once is gathered for all rows. */
    for (int32_t l = gr_gathers_once(t); l < t->config.n_layers && t->a_transpose != NULL; l++) {
        if (rc == GRAFT_OK && t->reach[l + 1] < t->n) rc = mask_layer(t, l, error);
    }
    return rc;
}

/* Bytes of the copies of the graph that may be there at once: made symmetric, in order (three until it is sorted), with
 * loops, and transposed. */
static double copies(const graft_trainer *t)
{
    const int    ordered = t->config.row_masks || strcmp(t->config.order, "given") != 0;
    const double count = 1 + (t->config.symmetrize ? 2 : 0) + (t->config.self_loops ? 1 : 0) + (ordered ? 3 : 0);
    const double entry = (t->graph.index_type == GRAFT_I32 ? 4 : 8) + (t->graph.values != NULL ? 4 : 0);
    const double entries = (double)gr_csr_entries(&t->graph) * (t->config.symmetrize ? 2 : 1);

    return count * (8 * (double)t->n + entry * entries);
}

int32_t gr_model_graph_init(graft_trainer *t, graft_error *error)
{
    struct gr_csr    ordered = { 0 }, symmetric = { 0 }, looped = { 0 }, transpose = { 0 };
    const graft_csr *csr = &t->graph;
    int32_t          rc = GRAFT_OK;

    t->n_seen = t->n;
    if (t->over != NULL) return gr_ranks_graph_init(t, error);
    if (t->config.kind == GR_MODEL_MLP) return gr_model_order_init(t, NULL, error);
    GR_TRY(gr_ledger_check(t, copies(t), "graph (its copies while they are made)", error));
    if (t->config.symmetrize) {
        GR_TRY(gr_csr_symmetrize(t->context, csr, &symmetric, error));
        csr = &symmetric.view;
    }
    GR_TRY(gr_model_order_init(t, csr, error));
    if (t->vertex != NULL) {
        GR_TRY(put_in_order(t, csr, &ordered, error));
        gr_csr_fini(t->context, &symmetric);
        csr = &ordered.view;
    }
    if (t->config.self_loops) {
        GR_TRY(gr_csr_add_self_loops(t->context, csr, &looped, error));
        csr = &looped.view;
    }
    GR_TRY(gr_csr_transpose(t->context, csr, &transpose, error));
    t->symmetric = same_arrays(csr, &transpose.view);
    if (csr == &looped.view) GR_TRY(gr_model_wrap(t->context, &looped, &t->a, error));
    else if (csr == &symmetric.view) GR_TRY(gr_model_wrap(t->context, &symmetric, &t->a, error));
    else if (csr == &ordered.view) GR_TRY(gr_model_wrap(t->context, &ordered, &t->a, error));
    else GR_TRY(gr_matrix_create(t->context, csr, &t->a, error));
    if (t->config.kind == GR_MODEL_GAT) t->a_transpose = NULL;
    else if (t->symmetric) t->a_transpose = t->a;
    else GR_TRY(gr_model_wrap(t->context, &transpose, &t->a_transpose, error));
    rc = gr_model_scales(t, &t->a->csr, NULL, error);
done:
    gr_csr_fini(t->context, &ordered);
    gr_csr_fini(t->context, &symmetric);
    gr_csr_fini(t->context, &looped);
    gr_csr_fini(t->context, &transpose);
    return rc;
}

void gr_model_graph_fini(graft_trainer *t)
{
    for (int32_t l = 0; l < t->config.n_layers; l++) {
        gr_matrix_destroy(t->layers[l].masked_a);
        gr_matrix_destroy(t->layers[l].masked_transpose);
    }
    if (t->a_transpose != t->a) gr_matrix_destroy(t->a_transpose);
    gr_matrix_destroy(t->a);
    t->a = t->a_transpose = NULL;
}
