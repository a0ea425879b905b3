/* New edge values of a graph over ranks, which are sent from the slices to the owners of the rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "base/memory.h"
#include "dgraph/part.h"

#include <string.h>

uint32_t gr_slice_digest(const graft_csr *rows)
{
    int64_t  columns[512], count = 0; /* 64 bits each, whatever the host's index type */
    uint32_t crc = 0;

    if (rows == NULL || rows->n_rows == 0) return crc;
    crc = gr_crc(crc, rows->row_ptr, (uint64_t)(rows->n_rows + 1) * sizeof *rows->row_ptr);
    for (int64_t e = 0; e < gr_csr_entries(rows); e++) {
        columns[count++] = gr_csr_column(rows, e);
        if (count < 512 && e + 1 < gr_csr_entries(rows)) continue;
        crc = gr_crc(crc, columns, (uint64_t)count * sizeof *columns);
        count = 0;
    }
    return crc;
}

/* The route of the edges to the owners of their rows, and its two message buffers. */
struct value_parcel {
    struct gr_route edges;
    char           *packed, *received;
};

static int32_t value_parcel_init(const graft_graph *g, const graft_csr *rows, struct value_parcel *p,
                                 struct gr_made_part *made, graft_error *error)
{
    const int64_t bytes = gr_dtype_bytes(g->value_type);
    const int64_t local = gr_csr_entries(&g->part.local), remote = gr_csr_entries(&g->part.remote);
    char         *values = NULL;
    int32_t       rc = GRAFT_OK;

    GR_TRY(gr_route_init(&p->edges, g->comm, error));
    GR_TRY(GR_NEW(g->context, p->packed, rows != NULL ? gr_csr_entries(rows) * bytes : 0, error));
    GR_TRY(GR_NEW(g->context, p->received, (local + remote) * bytes, error));
    GR_TRY(GR_NEW(g->context, values, local * bytes, error));
    made->local.values = values;
    GR_TRY(GR_NEW(g->context, values, remote * bytes, error));
    made->remote.values = values;
done:
    return rc;
}

static void split_values(const graft_graph *g, const char *received, struct gr_made_part *made)
{
    const int64_t bytes = gr_dtype_bytes(g->value_type);
    char         *to[] = { made->local.values, made->remote.values };
    const int64_t entries = gr_csr_entries(&g->part.local) + gr_csr_entries(&g->part.remote);

    for (int64_t e = 0; e < entries; e++) {
        const int is_cut = g->is_cut[e / 8] >> e % 8 & 1;

        memcpy(to[is_cut], received + e * bytes, (uint64_t)bytes);
        to[is_cut] += bytes;
    }
    made->part = g->part;
    made->part.local.values = made->local.values;
    made->part.remote.values = made->remote.values;
}

int32_t gr_graph_send_values(const graft_graph *g, const graft_csr *rows, struct gr_made_part *made, graft_error *error)
{
    const int64_t      *row_ptr = rows != NULL ? rows->row_ptr : NULL;
    struct value_parcel p = { 0 };
    int32_t             rc = value_parcel_init(g, rows, &p, made, error);

    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_graph_route_edges(g, row_ptr, &p.edges, error));
    if (gr_route_n_in(&p.edges) != gr_csr_entries(&g->part.local) + gr_csr_entries(&g->part.remote))
        rc = gr_fail(error, GRAFT_ERR_ARG, "the entries of the rows differ from the entries of the graph");
    GR_TRY(gr_comm_agree(g->comm, rc, error));
    GR_TRY(gr_graph_send_edges(g, row_ptr, &p.edges, rows != NULL ? rows->values : NULL, gr_dtype_bytes(g->value_type),
                               p.packed, p.received, error));
    split_values(g, p.received, made);
done:
    gr_route_fini(&p.edges);
    gr_free(g->context, p.packed);
    gr_free(g->context, p.received);
    return rc;
}
