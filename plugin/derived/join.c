/* Joins the edges of the rows of this rank to one matrix, in a block with a halo, for attention and extrema over ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "derived/derived.h"
#include "edge/edge.h"
#include "model/kind.h"

#include <string.h>

void gr_derived_join_values(const struct gr_part *part, void *values)
{
    const graft_csr *parts[] = { &part->local, &part->remote };
    const int64_t    bytes = gr_dtype_bytes(part->local.value_type);
    char            *to = values;

    for (int64_t row = 0; row < part->local.n_rows; row++) {
        for (int i = 0; i < 2; i++) {
            const int64_t begin = parts[i]->row_ptr[row], count = parts[i]->row_ptr[row + 1] - begin;

            if (count == 0) continue;
            memcpy(to, (const char *)parts[i]->values + begin * bytes, (uint64_t)(count * bytes));
            to += count * bytes;
        }
    }
}

int32_t gr_derived_join(const struct gr_derived *d, int with_values, struct gr_csr *joined, graft_error *error)
{
    const struct gr_part *part = &d->graph.part;
    const graft_csr      *parts[] = { &part->local, &part->remote };
    const graft_csr       like = { .size = sizeof like,
                                   .index_type = GRAFT_I32,
                                   .value_type = part->local.value_type,
                                   .values = with_values ? part->local.values : NULL };
    const graft_semiring  extremum = d->config->extremum;
    const int64_t         seen = d->n + part->halo.count;
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);
    int64_t               at = 0;

    if (seen > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "%lld vertices and %lld of other ranks are too many for option '%s' = %s", (long long)d->n,
                       (long long)part->halo.count, extremum != 0 ? "aggregator" : "model",
                       extremum != 0 ? gr_extremum_word(extremum) : d->config->kind->name);
    GR_TRY(gr_csr_init(d->context, joined, &like, d->n, seen, entries, error));
    for (int64_t row = 0; row < d->n; row++) {
        for (int i = 0; i < 2; i++) {
            for (int64_t e = parts[i]->row_ptr[row]; e < parts[i]->row_ptr[row + 1]; e++)
                ((int32_t *)joined->col_idx)[at++] = (int32_t)(gr_csr_column(parts[i], e) + (i > 0 ? d->n : 0));
        }
        joined->row_ptr[row + 1] = at;
    }
    if (joined->values != NULL) gr_derived_join_values(part, joined->values);
    GR_ASSERT(gr_csr_is_valid(&joined->view));
    return GRAFT_OK;
}

/* Make the joined matrix. If values are numbers of entries, *numbers receives them, and the matrix has no values. */
static int32_t make_joined(struct gr_derived *d, int64_t **numbers, graft_error *error)
{
    const graft_csr          *remote = &d->graph.part.remote;
    const int64_t             n = d->n;
    struct gr_csr             joined = { 0 };
    uint8_t                  *kind;
    const struct gr_edge_map *map;
    int32_t                   rc = GRAFT_OK;

    GR_TRY_DONE(gr_derived_join(d, d->wish.uses_values || d->config->attention.edge_array, &joined, error));
    GR_TRY_DONE(GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, kind, d->whole.n_seen, error));
    memset(kind + n, GR_ROW_HALO, (uint64_t)(d->whole.n_seen - n));
    for (int64_t row = 0; row < n; row++)
        if (remote->row_ptr[row] < remote->row_ptr[row + 1]) kind[row] = GR_ROW_BOUNDARY;
    d->whole.kind = kind;
    if (d->config->attention.edge_array) {
        *numbers = joined.values;
        joined.values = NULL;
        joined.view.values = NULL;
    }
    GR_TRY_DONE(gr_derived_matrix(d->context, &joined, &d->whole.a, error));
    if (!d->wish.predicts && d->config->kind->attends)
        GR_TRY_DONE(gr_edge_map(d->whole.a, &map, error)); /* made here, so that epochs allocate nothing */
    gr_budget_charge(d->budget, GR_USE_GRAPH, gr_matrix_own_bytes(d->whole.a));
done:
    gr_csr_fini(d->context, &joined);
    return rc;
}

/* Request the global indices of the vertices of the halo. Dropout of attention needs them, because its draws depend on
 * both ends of an edge. */
static int32_t ask_vertices(struct gr_derived *d, graft_error *error)
{
    struct gr_comm *comm = d->data->over->comm;
    struct gr_links links = { 0 };
    int64_t        *seen = NULL, *packed = NULL, bytes = 0;
    int32_t         rc = GRAFT_OK;

    GR_TRY_DONE(gr_halo_links_init(d->context, comm, &d->graph.part.halo, &links, error));
    bytes = links.send_start[comm->n_ranks] * (int64_t)sizeof *packed + gr_halo_links_bytes(&links);
    rc = gr_budget_borrow(d->budget, bytes, "graph (vertices of other ranks)", error);
    if (rc == GRAFT_OK) rc = GR_NEW(d->context, packed, links.send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = GR_BUDGET_NEW(d->budget, GR_USE_GRAPH, seen, d->whole.n_seen, error);
    GR_TRY_DONE(gr_dataset_agree(d->data, rc, error));
    for (int64_t v = 0; v < d->n; v++) seen[v] = d->whole.vertex[v];
    GR_TRY_DONE(gr_halo_links_ask(&links, comm, d->whole.vertex, packed, seen + d->n, sizeof *seen, error));
    d->whole.vertex = seen;
    gr_budget_return(d->budget, bytes);
done:
    gr_halo_links_fini(comm, &links);
    gr_free(d->context, packed);
    return rc;
}

int32_t gr_derived_read_halo(struct gr_derived *d, int64_t **numbers, graft_error *error)
{
    d->whole.n_seen = d->n + d->graph.part.halo.count;
    GR_TRY(gr_dataset_agree(d->data, make_joined(d, numbers, error), error));
    if (d->config->attention.dropout > 0 && !d->wish.predicts) return ask_vertices(d, error);
    return GRAFT_OK;
}
