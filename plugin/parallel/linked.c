/* Finds the rows of a rank that have neighbours, and creates the part of the graph with only these rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/linked.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

/* The name of linked rows in errors of the memory budget. */
static const char LINKED_NAME[] = "graph (rows that have neighbours)";

static void mark_linked(const struct gr_part *part, const struct gr_links *links, int32_t n_ranks, uint8_t *is_linked)
{
    for (int64_t row = 0; row < part->local.n_rows; row++) {
        if (part->remote.row_ptr[row] < part->remote.row_ptr[row + 1]) is_linked[row] = 1;
        for (int64_t e = part->local.row_ptr[row]; e < part->local.row_ptr[row + 1]; e++) {
            const int64_t column = gr_csr_column(&part->local, e);

            if (column != row) is_linked[row] = is_linked[column] = 1;
        }
    }
    for (int64_t i = 0; i < links->send_start[n_ranks]; i++) is_linked[links->place[i]] = 1;
}

static int32_t list_rows(const graft_context *context, const uint8_t *is_linked, struct gr_linked_rows *rows,
                         graft_error *error)
{
    int64_t linked = 0, lone = 0;

    GR_TRY(GR_NEW(context, rows->row, rows->n, error));
    GR_TRY(GR_NEW(context, rows->lone, rows->n_lone, error));
    for (int64_t row = 0; row < rows->n + rows->n_lone; row++) {
        if (is_linked[row]) rows->row[linked++] = (int32_t)row;
        else rows->lone[lone++] = (int32_t)row;
    }
    return GRAFT_OK;
}

int32_t gr_parallel_linked_rows_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_part *part,
                                     struct gr_linked_rows *rows, graft_error *error)
{
    const graft_context *context = budget->context;
    const int64_t        n = part->local.n_rows;
    struct gr_links      links = { 0 };
    uint8_t             *is_linked = NULL;
    int64_t              lone = 0;
    const double         bytes = 5.0 * (double)n + 4.0 * (double)part->halo.count;
    int32_t              rc = gr_budget_check(budget, bytes, LINKED_NAME, error);

    *rows = (struct gr_linked_rows){ .n = n };
    if (rc == GRAFT_OK) rc = GR_NEW(context, is_linked, n, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gr_halo_links_init(context, comm, &part->halo, &links, error));
    mark_linked(part, &links, comm->n_ranks, is_linked);
    for (int64_t row = 0; row < n; row++) lone += !is_linked[row];
    rows->n_lone = lone;
    rows->n = n - lone;
    GR_TRY_DONE(gr_comm_sum_i64(comm, &lone, 1, error));
    if (lone > 0) rc = gr_comm_agree(comm, list_rows(context, is_linked, rows, error), error);
done:
    gr_halo_links_fini(comm, &links);
    gr_free(context, is_linked);
    return rc;
}

void gr_parallel_linked_rows_fini(const graft_context *context, struct gr_linked_rows *rows)
{
    gr_free(context, rows->row);
    gr_free(context, rows->lone);
    *rows = (struct gr_linked_rows){ 0 };
}

int64_t gr_parallel_linked_rows_bytes(const struct gr_linked_rows *rows)
{
    return gr_memory_bytes(rows->row) + gr_memory_bytes(rows->lone);
}

int64_t gr_parallel_linked_rows_among(const struct gr_linked_rows *rows, int64_t n_rows)
{
    int64_t begin = 0, end = rows->n;

    if (rows->row == NULL) return n_rows;
    while (begin < end) {
        const int64_t middle = begin + (end - begin) / 2;

        if (rows->row[middle] < n_rows) begin = middle + 1;
        else end = middle;
    }
    return begin;
}

/* Copy the linked rows of a matrix. If columns are rows of this rank, number[column] is the new column; else `number`
 * is NULL. In a remote matrix lone rows are empty. */
static int32_t keep_linked_rows(const graft_context *context, const struct gr_linked_rows *rows, const graft_csr *from,
                                const int32_t *number, struct gr_csr *csr, graft_error *error)
{
    int64_t entries = 0, to = 0;

    for (int64_t i = 0; i < rows->n; i++) entries += from->row_ptr[rows->row[i] + 1] - from->row_ptr[rows->row[i]];
    GR_TRY(gr_csr_init(context, csr, from, rows->n, number != NULL ? rows->n : from->n_cols, entries, error));
    for (int64_t i = 0; i < rows->n; i++) {
        for (int64_t e = from->row_ptr[rows->row[i]]; e < from->row_ptr[rows->row[i] + 1]; e++) {
            const int64_t column = gr_csr_column(from, e);

            gr_csr_put(csr, to++, number != NULL ? number[column] : column, from, e);
        }
        csr->row_ptr[i + 1] = to;
    }
    return GRAFT_OK;
}

static int32_t make_linked_part(const graft_context *context, int32_t n_ranks, const struct gr_linked_rows *rows,
                                const struct gr_part *part, const int32_t *number, struct gr_made_part *made,
                                graft_error *error)
{
    GR_TRY(gr_graph_made_part_new_halo(context, made, n_ranks, part->halo.count, error));
    GR_TRY(keep_linked_rows(context, rows, &part->local, number, &made->local, error));
    GR_TRY(keep_linked_rows(context, rows, &part->remote, NULL, &made->remote, error));
    memcpy(made->halo_start, part->halo.start, ((uint64_t)n_ranks + 1) * sizeof *made->halo_start);
    made->part.local = made->local.view;
    made->part.remote = made->remote.view;
    return GRAFT_OK;
}

/* Return the bytes of the part and of temporary arrays. */
static int64_t linked_part_bytes(const struct gr_linked_rows *rows, const struct gr_part *part)
{
    return gr_csr_copy_bytes(&part->local, rows->n, gr_csr_entries(&part->local)) +
           gr_csr_copy_bytes(&part->remote, rows->n, gr_csr_entries(&part->remote)) +
           (int64_t)sizeof *rows->row * (rows->n + rows->n_lone + 3 * part->halo.count);
}

int32_t gr_parallel_linked_part_init(struct gr_budget *budget, struct gr_comm *comm, const struct gr_linked_rows *rows,
                                     const struct gr_part *part, struct gr_linked_part *linked, graft_error *error)
{
    const graft_context *context = budget->context;
    const int64_t        bytes = linked_part_bytes(rows, part);
    struct gr_links      links = { 0 };
    int32_t             *number = NULL, *packed = NULL, rc = GRAFT_OK;

    *linked = (struct gr_linked_part){ .made.part = *part };
    if (rows->row == NULL) return GRAFT_OK;
    GR_TRY_DONE(gr_halo_links_init(context, comm, &part->halo, &links, error));
    rc = gr_budget_borrow(budget, bytes, LINKED_NAME, error);
    if (rc == GRAFT_OK) linked->borrowed = bytes;
    if (rc == GRAFT_OK) rc = GR_NEW(context, number, rows->n + rows->n_lone, error);
    for (int64_t i = 0; rc == GRAFT_OK && i < rows->n; i++) number[rows->row[i]] = (int32_t)i;
    if (rc == GRAFT_OK) rc = GR_NEW(context, packed, links.send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = make_linked_part(context, comm->n_ranks, rows, part, number, &linked->made, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gr_halo_links_ask(&links, comm, number, packed, linked->made.halo_place, sizeof *number, error));
    GR_ASSERT(gr_csr_part_is_valid(&linked->made.part, comm->n_ranks, comm->rank));
done:
    gr_halo_links_fini(comm, &links);
    gr_free(context, number);
    gr_free(comm->context, packed);
    return rc;
}

void gr_parallel_linked_part_fini(struct gr_budget *budget, struct gr_linked_part *linked)
{
    gr_budget_return(budget, linked->borrowed);
    gr_graph_made_part_fini(budget->context, &linked->made);
    linked->borrowed = 0;
}
