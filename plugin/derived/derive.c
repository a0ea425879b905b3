/* Derives the graph of the model from the host's graph: makes it symmetric, orders it, adds self-loops. Over ranks each
 * step works on the part of this rank; the exchanges with other ranks are in dgraph/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "derived/derived.h"
#include "graph/order.h"

#include <string.h>

void gr_derived_charge(struct gr_graph_copy *copy)
{
    const int64_t bytes = gr_graph_made_part_bytes(&copy->made);

    gr_budget_charge(copy->budget, GR_USE_GRAPH, bytes - copy->charged);
    copy->charged = bytes;
}

void gr_derived_copy_fini(struct gr_graph_copy *copy)
{
    gr_graph_made_part_fini(copy->budget->context, &copy->made);
    copy->made = (struct gr_made_part){ 0 };
    gr_derived_charge(copy);
}

/* Borrow the bytes of a matrix from the budget, before it is made. */
static int32_t borrow_copy(struct gr_budget *budget, const graft_csr *like, int64_t n_rows, int64_t entries,
                           graft_error *error)
{
    return gr_budget_borrow(budget, gr_csr_copy_bytes(like, n_rows, entries), "graph (a copy of it)", error);
}

int32_t gr_derived_transpose(struct gr_budget *budget, const graft_csr *csr, struct gr_csr *made, graft_error *error)
{
    GR_TRY(borrow_copy(budget, csr, csr->n_cols, gr_csr_entries(csr), error));
    return gr_csr_transpose(budget->context, csr, made, error);
}

/* Replace the matrix of the owned columns by `next`, whose bytes were borrowed. */
static void replace_local(struct gr_graph_copy *copy, struct gr_csr *next)
{
    const int64_t bytes = gr_csr_bytes(next);

    gr_csr_fini(copy->budget->context, &copy->made.local);
    copy->made.local = *next;
    copy->part.local = copy->made.part.local = next->view;
    memset(next, 0, sizeof *next);
    gr_budget_return(copy->budget, bytes);
    gr_derived_charge(copy);
}

/* Replace the part by `next`, for which `bytes` were borrowed. */
static void replace_part(const struct gr_derived *d, struct gr_graph_copy *copy, struct gr_made_part *next,
                         int64_t bytes)
{
    gr_graph_made_part_fini(d->context, &copy->made);
    copy->made = *next;
    copy->part = next->part;
    *next = (struct gr_made_part){ 0 };
    GR_ASSERT(gr_csr_part_is_valid(&copy->part, d->data->over->comm->n_ranks, d->data->over->comm->rank));
    gr_budget_return(copy->budget, bytes);
    gr_derived_charge(copy);
}

static void drop_borrowed(struct gr_budget *budget, struct gr_csr *csr)
{
    gr_budget_return(budget, gr_csr_bytes(csr));
    gr_csr_fini(budget->context, csr);
}

/* Make the graph have every entry in both directions, once. Entry (i, j) keeps its value; a new one has that of (j,
 * i). */
static int32_t make_symmetric(struct gr_graph_copy *copy, graft_error *error)
{
    struct gr_budget *budget = copy->budget;
    const graft_csr  *csr = &copy->part.local;
    struct gr_csr     back = { 0 }, there = { 0 }, both = { 0 };
    int64_t           entries;
    int32_t           rc = GRAFT_OK;

    GR_TRY_DONE(gr_derived_transpose(budget, csr, &back, error));
    GR_TRY_DONE(gr_derived_transpose(budget, &back.view, &there, error)); /* so that rows are sorted */
    entries = gr_csr_union_entries(&there.view, &back.view);
    GR_TRY_DONE(borrow_copy(budget, csr, csr->n_rows, entries, error));
    GR_TRY_DONE(gr_csr_union(budget->context, &there.view, &back.view, entries, &both, error));
    replace_local(copy, &both);
done:
    drop_borrowed(budget, &back);
    drop_borrowed(budget, &there);
    return rc;
}

static int32_t make_part_symmetric(const struct gr_derived *d, struct gr_graph_copy *copy, graft_error *error)
{
    const int64_t       bytes = gr_graph_part_symmetrize_bytes(&copy->part);
    struct gr_made_part made = { 0 };
    int32_t             rc = gr_budget_borrow(copy->budget, bytes, "graph (made symmetric)", error);

    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    GR_TRY_DONE(gr_graph_part_symmetrize(d->context, d->data->over->comm, &copy->part, &made, error));
    replace_part(d, copy, &made, bytes);
done:
    gr_graph_made_part_fini(d->context, &made);
    return rc;
}

/* Exchange the sizes of parts that differ from the parts of the graph over ranks. */
static int32_t share_part(struct gr_derived *d, const struct gr_part *part, graft_error *error)
{
    int32_t rc = GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, d->share, d->data->over->comm->n_ranks, error);

    GR_TRY(gr_dataset_agree(d->data, rc, error));
    return gr_graph_share(d->data->over, part, d->share, error);
}

/* Add missing self-loops. If values are edge features, the value of a loop is the mean of its row. */
static int32_t add_loops(const struct gr_derived *d, struct gr_graph_copy *copy, graft_error *error)
{
    const struct gr_config    *config = d->config;
    const graft_csr           *local = &copy->part.local;
    const int64_t              missing = gr_csr_missing_loops(local);
    const struct gr_loop_value value = { .is_mean =
                                             config->attention.edge_features > 0 && !config->attention.edge_array,
                                         .rest = d->data->over != NULL ? &copy->part.remote : NULL };
    struct gr_csr              looped = { 0 };

    if (missing == 0) return GRAFT_OK;
    GR_TRY(borrow_copy(copy->budget, local, local->n_rows, gr_csr_entries(local) + missing, error));
    GR_TRY(gr_csr_add_self_loops(d->context, local, &value, &looped, error));
    replace_local(copy, &looped);
    return GRAFT_OK;
}

/* Put the graph into the order of d->row. Two transposes sort the rows, as in all graphs that Graft makes. */
static int32_t put_in_order(const struct gr_derived *d, struct gr_graph_copy *copy, graft_error *error)
{
    const int64_t places = gr_memory_block_bytes(d->n, sizeof *d->row);
    struct gr_csr next = { 0 };

    GR_TRY(borrow_copy(copy->budget, &copy->part.local, d->n, gr_csr_entries(&copy->part.local), error));
    GR_TRY(gr_budget_borrow(copy->budget, places, "graph (the places of its vertices)", error));
    GR_TRY(gr_csr_order_apply(d->context, &copy->part.local, d->row, &next, error));
    gr_budget_return(copy->budget, places);
    for (int times = 0; times < 2; times++) {
        replace_local(copy, &next);
        GR_TRY(gr_derived_transpose(copy->budget, &copy->part.local, &next, error));
    }
    replace_local(copy, &next);
    return GRAFT_OK;
}

static int32_t put_part_in_order(const struct gr_derived *d, struct gr_graph_copy *copy, struct gr_links *links,
                                 graft_error *error)
{
    const int64_t       bytes = gr_graph_part_reorder_bytes(&copy->part);
    struct gr_made_part made = { 0 };
    int32_t             rc = gr_budget_borrow(copy->budget, bytes, "graph (in another order)", error);

    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    GR_TRY_DONE(gr_graph_part_reorder(d->context, d->data->over->comm, &copy->part, links, d->row, &made, error));
    replace_part(d, copy, &made, bytes);
done:
    gr_graph_made_part_fini(d->context, &made);
    return rc;
}

static int32_t derive_alone(struct gr_derived *d, struct gr_graph_copy *copy, int first, graft_error *error)
{
    if (d->config->data.symmetrize) GR_TRY(make_symmetric(copy, error));
    if (first) GR_TRY(gr_derived_order(d, &copy->part, NULL, error));
    if (d->config->data.self_loops) GR_TRY(add_loops(d, copy, error));
    if (d->row != NULL) return put_in_order(d, copy, error);
    return GRAFT_OK;
}

static int32_t derive_over_ranks(struct gr_derived *d, struct gr_graph_copy *copy, int first, graft_error *error)
{
    struct gr_comm *comm = d->data->over->comm;
    const int       moves = first ? d->wish.masks_rows || d->config->data.order != GR_ORDER_GIVEN : d->row != NULL;
    struct gr_links links = { 0 };
    int64_t         bytes = 0;
    int32_t         rc = GRAFT_OK;

    if (d->config->data.symmetrize) GR_TRY_DONE(make_part_symmetric(d, copy, error));
    if (d->config->data.symmetrize && first) GR_TRY_DONE(share_part(d, &copy->part, error));
    if (moves) GR_TRY_DONE(gr_halo_links_init(d->context, comm, &copy->part.halo, &links, error));
    bytes = gr_halo_links_bytes(&links);
    gr_budget_charge(copy->budget, GR_USE_GRAPH, bytes);
    if (first) GR_TRY_DONE(gr_derived_order(d, &copy->part, &links, error));
    if (d->config->data.self_loops) rc = add_loops(d, copy, error);
    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    if (d->row != NULL) rc = put_part_in_order(d, copy, &links, error);
done:
    gr_halo_links_fini(comm, &links);
    gr_budget_charge(copy->budget, GR_USE_GRAPH, -bytes);
    return rc;
}

int32_t gr_derived_derive(struct gr_derived *d, struct gr_graph_copy *copy, int first, graft_error *error)
{
    return d->data->over != NULL ? derive_over_ranks(d, copy, first, error) : derive_alone(d, copy, first, error);
}
