/* The transpose of a matrix whose weights change from call to call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "edge/edge.h"

#include <string.h>

static void destroy_edge_map(graft_context *context, void *edge_map)
{
    struct gr_edge_map *map = edge_map;

    if (map == NULL) return;
    gr_csr_fini(context, &map->csr);
    gr_free(context, map->entry);
    gr_free(context, map);
}

/* Find the original entry of each entry of the transpose. The transpose keeps the order of the entries of a column, so
 * one pass finds their places; during it the row pointers have the next free place of each row. */
static void number_transposed_entries(const graft_csr *csr, struct gr_edge_map *map)
{
    int64_t      *next = map->csr.row_ptr;
    const int64_t entries = gr_csr_entries(csr);

    for (int64_t e = 0; e < entries; e++) map->entry[next[gr_csr_column(csr, e)]++] = e;
    memmove(next + 1, next, (uint64_t)csr->n_cols * sizeof *next);
    next[0] = 0;
}

int64_t gr_edge_map_bytes(const graft_csr *csr)
{
    const int64_t entries = gr_csr_entries(csr);
    graft_csr     pattern = *csr;

    pattern.values = NULL;
    return gr_memory_block_bytes(1, sizeof(struct gr_edge_map)) + gr_memory_block_bytes(entries, sizeof(int64_t)) +
           gr_csr_copy_bytes(&pattern, csr->n_cols, entries);
}

int32_t gr_edge_map(graft_matrix *a, const struct gr_edge_map **map, graft_error *error)
{
    graft_csr           pattern = a->csr;
    const int64_t       entries = gr_csr_entries(&a->csr);
    struct gr_edge_map *made = NULL;
    int32_t             rc = GRAFT_OK;

    if (a->attached.data == NULL) {
        pattern.values = NULL;
        GR_TRY_DONE(GR_NEW(a->context, made, 1, error));
        GR_TRY_DONE(GR_NEW(a->context, made->entry, entries, error));
        GR_TRY_DONE(gr_csr_transpose(a->context, &pattern, &made->csr, error));
        number_transposed_entries(&pattern, made);
        GR_ASSERT(gr_csr_is_valid(&made->csr.view));
        a->attached = (struct gr_attached){ .data = made, .destroy = destroy_edge_map };
        a->attached.bytes = (int64_t)sizeof *made->csr.row_ptr * (pattern.n_cols + 1) +
                            entries * ((int64_t)sizeof *made->entry + gr_dtype_bytes(pattern.index_type));
        made = NULL;
    }
    *map = a->attached.data;
done:
    destroy_edge_map(a->context, made);
    return rc;
}
