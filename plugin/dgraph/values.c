/* Sends new edge values of a graph over ranks from the slices to the owners of the rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "base/finite.h"
#include "base/fp.h"
#include "base/memory.h"
#include "dgraph/halo.h"
#include "dgraph/part.h"

#include <string.h>

uint32_t gr_graph_slice_digest(const graft_csr *rows)
{
    int64_t  columns[512], count = 0; /* 64-bit columns: the digest does not depend on the host's index type */
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

static int64_t owned_entries(const graft_graph *g)
{
    return gr_csr_entries(&g->part.local) + gr_csr_entries(&g->part.remote);
}

/* Return the index of the first value that is not finite, or the number of values. */
static int64_t first_not_finite(const graft_dense *values, int threads)
{
    enum { CHUNK = 1 << 16 };
    const int64_t      chunks = (values->n_rows + CHUNK - 1) / CHUNK;
    const struct gr_fp fp = gr_fp_get();
    int64_t            first = values->n_rows;

    threads = gr_threads_worth(threads, values->n_rows);
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : first) if (threads > 1)
    for (int64_t c = 0; c < chunks; c++) {
        const struct gr_fp own = gr_fp_swap(fp);
        const int64_t      begin = c * CHUNK, count = c + 1 < chunks ? CHUNK : values->n_rows - begin;
        const int64_t      found = values->dtype == GRAFT_F32
                                       ? gr_first_not_finite((const float *)values->data + begin, count)
                                       : gr_first_not_finite_double((const double *)values->data + begin, count);

        gr_fp_set(own);
        if (found < count && begin + found < first) first = begin + found;
    }
    return first;
}

int32_t gr_graph_check_values(const graft_graph *g, const graft_dense *values, graft_error *error)
{
    const int64_t entries = g->slice.row_ptr != NULL ? g->slice.row_ptr[g->n_slice] : owned_entries(g);
    int64_t       wrong;

    if (g->value_type == 0)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this graph was created without values, or without edges: there are none to replace");
    if (values->n_rows != entries || values->n_cols != 1)
        return gr_fail(error, GRAFT_ERR_ARG,
                       "there are %lld x %lld values, expected %lld x 1: the slice of this rank has %lld edges",
                       (long long)values->n_rows, (long long)values->n_cols, (long long)entries, (long long)entries);
    if (entries == 0) return GRAFT_OK;
    if (values->dtype != g->value_type)
        return gr_fail(error, GRAFT_ERR_ARG, "the values have dtype %d, those of the graph have %d", values->dtype,
                       g->value_type);
    if (values->data == NULL || (values->stride != 1 && entries > 1))
        return gr_fail(error, GRAFT_ERR_ARG, "the values %s, expected an array without gaps",
                       values->data == NULL ? "are null" : "have a stride of more than 1");
    wrong = first_not_finite(values, gr_context_threads(g->context, 0));
    if (wrong == entries) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "the value of edge %lld of the slice is not finite", (long long)wrong);
}

static int32_t made_values_init(const graft_graph *g, struct gr_made_part *made, graft_error *error)
{
    const int64_t bytes = gr_dtype_bytes(g->value_type);
    char         *values = NULL;

    GR_TRY(GR_NEW(g->context, values, gr_csr_entries(&g->part.local) * bytes, error));
    made->local.values = values;
    GR_TRY(GR_NEW(g->context, values, gr_csr_entries(&g->part.remote) * bytes, error));
    made->remote.values = values;
    made->part = g->part;
    made->part.local.values = made->local.values;
    made->part.remote.values = made->remote.values;
    return GRAFT_OK;
}

/* Divide the edges of a row, which are in the order of the host, between both matrices. */
static inline void split_row(const graft_graph *g, int64_t row, const char *received, uint64_t bytes,
                             const struct gr_made_part *made)
{
    const int64_t *local = g->part.local.row_ptr, *remote = g->part.remote.row_ptr;
    char          *to[] = { (char *)made->local.values + (uint64_t)local[row] * bytes,
                            (char *)made->remote.values + (uint64_t)remote[row] * bytes };

    if (remote[row] == remote[row + 1]) {
        memcpy(to[0], received + (uint64_t)local[row] * bytes + (uint64_t)remote[row] * bytes,
               (uint64_t)(local[row + 1] - local[row]) * bytes);
        return;
    }
    for (int64_t e = local[row] + remote[row]; e < local[row + 1] + remote[row + 1]; e++) {
        const int is_cut = g->slice.is_cut[e / 8] >> e % 8 & 1;

        memcpy(to[is_cut], received + (uint64_t)e * bytes, bytes);
        to[is_cut] += bytes;
    }
}

static void split_values(const graft_graph *g, const char *received, const struct gr_made_part *made)
{
    const int threads = gr_threads_worth(gr_context_threads(g->context, 0), owned_entries(g));

#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < g->n_owned; row++) {
        if (g->value_type == GRAFT_F32) split_row(g, row, received, sizeof(float), made);
        else split_row(g, row, received, sizeof(double), made);
    }
}

int32_t gr_graph_send_values(const graft_graph *g, const void *values, struct gr_made_part *made, graft_error *error)
{
    const int64_t   bytes = gr_dtype_bytes(g->value_type), *row_ptr = g->slice.row_ptr;
    struct gr_route edges = { 0 };
    char           *packed = NULL, *received = NULL;
    int32_t         rc = made_values_init(g, made, error);

    if (rc == GRAFT_OK && row_ptr != NULL) rc = gr_comm_route_init(&edges, g->comm, error);
    if (rc == GRAFT_OK && row_ptr != NULL) rc = GR_NEW(g->context, packed, row_ptr[g->n_slice] * bytes, error);
    if (rc == GRAFT_OK && row_ptr != NULL) rc = GR_NEW(g->context, received, owned_entries(g) * bytes, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    if (row_ptr != NULL) {
        GR_TRY_DONE(gr_graph_route_edges(g, row_ptr, &edges, error));
        GR_TRY_DONE(gr_graph_send_edges(g, row_ptr, &edges, values, bytes, packed, received, error));
    }
    split_values(g, row_ptr != NULL ? received : values, made);
done:
    gr_comm_route_fini(&edges);
    gr_free(g->context, packed);
    gr_free(g->context, received);
    return rc;
}

void gr_graph_part_take_values(struct gr_csr *own, graft_csr *view, struct gr_csr *made)
{
    void *const before = own->values;

    own->values = made->values;
    own->view.values = view->values = own->values;
    made->values = before;
}

void gr_graph_take_values(graft_graph *g, struct gr_made_part *made)
{
    gr_graph_part_take_values(&g->local, &g->part.local, &made->local);
    gr_graph_part_take_values(&g->remote, &g->part.remote, &made->remote);
    for (graft_halo *halo = g->users.halos; halo != NULL; halo = halo->next) gr_graph_halo_take_values(halo);
}
