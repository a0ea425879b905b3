/* The distinct nodes of a rank, and their indices by id.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mesh/build.h"

int32_t gr_mesh_id_table_init(const graft_context *context, struct gr_id_table *table, const int64_t *id, int64_t most,
                              graft_error *error)
{
    int bits = 3;

    while (((int64_t)1 << bits) < 2 * most) bits++;
    *table = (struct gr_id_table){ .id = id, .mask = ((uint64_t)1 << bits) - 1, .shift = 64 - bits };
    return GR_NEW(context, table->slot, (int64_t)1 << bits, error);
}

void gr_mesh_id_table_fini(const graft_context *context, struct gr_id_table *table)
{
    gr_free(context, table->slot);
    *table = (struct gr_id_table){ 0 };
}

/* Find the slot of an id, or the free slot for it. The factor is 2^64 divided by the golden ratio (Knuth, The Art of
 * Computer Programming 3, section 6.4). The shift before it separates ids that differ only in their upper half. */
static uint64_t find_slot(const struct gr_id_table *table, int64_t id)
{
    uint64_t mixed = (uint64_t)id, at;

    mixed ^= mixed >> 32;
    at = mixed * 0x9e3779b97f4a7c15u >> table->shift;
    while (table->slot[at] != 0 && table->id[table->slot[at] - 1] != id) at = (at + 1) & table->mask;
    return at;
}

int32_t gr_mesh_id_table_find(const struct gr_id_table *table, int64_t id)
{
    return table->slot[find_slot(table, id)] - 1;
}

int32_t gr_mesh_id_table_add(struct gr_id_table *table, int32_t node)
{
    int32_t *slot = &table->slot[find_slot(table, table->id[node])];

    if (*slot == 0) *slot = node + 1;
    return *slot - 1;
}

static int64_t row_id(const graft_mesh_args *args, int64_t row)
{
    return args->ids == NULL ? row : gr_index_at(args->ids, args->id_type, row);
}

int32_t gr_mesh_local_find_nodes(struct gr_local_mesh *local, graft_error *error)
{
    const graft_mesh_args *args = local->args;
    const int64_t          n_rows = args->n_rows;

    GR_TRY(GR_NEW(local->context, local->node_of, n_rows, error));
    GR_TRY(GR_NEW(local->context, local->row_of, n_rows, error));
    GR_TRY(GR_NEW(local->context, local->id, n_rows, error));
    GR_TRY(gr_mesh_id_table_init(local->context, &local->table, local->id, n_rows, error));
    local->rises = 1;
    for (int64_t row = 0; row < n_rows; row++) {
        const int32_t next = (int32_t)local->n;
        int32_t       node;

        local->id[next] = row_id(args, row);
        node = gr_mesh_id_table_add(&local->table, next);
        local->node_of[row] = node;
        if (node != next) {
            if (args->kind == GRAFT_MESH_SHARED) continue;
            return gr_fail(error, GRAFT_ERR_FORMAT, "rows %d and %lld have the same id, %lld; expected each id once",
                           local->row_of[node] + args->index_base, (long long)row + args->index_base,
                           (long long)local->id[next]);
        }
        if (next > 0 && local->id[next] < local->id[next - 1]) local->rises = 0;
        local->row_of[next] = (int32_t)row;
        local->n++;
    }
    return GRAFT_OK;
}

void gr_mesh_local_fini(struct gr_local_mesh *local)
{
    gr_free(local->context, local->node_of);
    gr_free(local->context, local->row_of);
    gr_free(local->context, local->id);
    gr_mesh_id_table_fini(local->context, &local->table);
    gr_free(local->context, local->row_ptr);
    gr_free(local->context, local->source);
    local->node_of = local->row_of = local->source = NULL;
    local->id = local->row_ptr = NULL;
}
