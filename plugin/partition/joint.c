/* Partitions the slices of all ranks jointly.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/joint.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/team.h"

#include <string.h>

/* The largest number of blocks. With many blocks a rank knows nearly all assignments of the others, as if one process
 * had all slices. Blocks with few rows are not worth a message. */
enum { BLOCKS = 64 };

/* Collect the columns that are vertices of other slices, each once, ascending. */
static int32_t collect_halo(struct gr_joint *j, const struct gr_slice *in, graft_error *error)
{
    const int64_t entries = gr_csr_entries(in->rows), end = in->first + in->rows->n_rows;
    int64_t       count = 0, *leaving = NULL;
    int32_t       rc = GRAFT_OK;

    for (int64_t e = 0; e < entries; e++)
        count += gr_csr_column(in->rows, e) < in->first || gr_csr_column(in->rows, e) >= end;
    GR_TRY_DONE(GR_NEW(j->context, leaving, count, error));
    for (int64_t e = 0, put = 0; e < entries; e++) {
        const int64_t column = gr_csr_column(in->rows, e);

        if (column < in->first || column >= end) leaving[put++] = column;
    }
    GR_TRY_DONE(gr_sort_unique(j->context, leaving, j->first[j->comm->n_ranks], &count, error));
    GR_TRY_DONE(GR_POOL_NEW(j->context, &j->pool, j->vertex, count, error));
    memcpy(j->vertex, leaving, (size_t)count * sizeof *leaving);
    j->n_halo = count;
    if (in->rows->n_rows + count > INT32_MAX)
        rc = gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                     "the slice of a rank has %lld vertices and %lld neighbours in other slices, expected at most %d "
                     "together",
                     (long long)in->rows->n_rows, (long long)count, INT32_MAX);
done:
    gr_free(j->context, leaving);
    return rc;
}

/* Make j->rows, whose columns are indices among the vertices of the slice and its halo. */
static int32_t localize(struct gr_joint *j, const struct gr_slice *in, graft_error *error)
{
    const int64_t n = in->rows->n_rows, entries = gr_csr_entries(in->rows);
    const int     threads = gr_threads_worth(gr_context_threads(j->context, 0), entries);
    int32_t      *columns;

    GR_TRY(GR_POOL_NEW(j->context, &j->pool, columns, entries, error));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) {
        const int64_t column = gr_csr_column(in->rows, e);
        const int     own = column >= in->first && column < in->first + n;

        columns[e] = (int32_t)(own ? column - in->first : n + gr_sorted_index(j->vertex, j->n_halo, column));
    }
    j->rows = (graft_csr){ .size = sizeof j->rows,
                           .index_type = GRAFT_I32,
                           .n_rows = n,
                           .n_cols = n + j->n_halo,
                           .row_ptr = in->rows->row_ptr,
                           .col_idx = columns };
    j->slice = (struct gr_slice){ &j->rows, 0, in->train_mask };
    return GRAFT_OK;
}

/* Do the part of the initialisation that needs no messages. */
static int32_t prepare_joint(struct gr_joint *j, const struct gr_partition_input *input, graft_error *error)
{
    const struct gr_slice *in = input->slice;

    if (j->comm == NULL) {
        GR_ASSERT(in->first == 0 && in->rows->n_rows == in->rows->n_cols);
        j->slice = *in;
    } else {
        const int32_t n_ranks = j->comm->n_ranks;

        GR_TRY(collect_halo(j, in, error));
        GR_TRY(localize(j, in, error));
        GR_TRY(gr_comm_route_init(&j->route, j->comm, error));
        GR_TRY(GR_POOL_NEW(j->context, &j->pool, j->out_at, n_ranks, error));
        GR_TRY(GR_POOL_NEW(j->context, &j->pool, j->in_at, n_ranks, error));
        GR_TRY(GR_POOL_NEW(j->context, &j->pool, j->out_start, n_ranks + 1, error));
        GR_TRY(GR_POOL_NEW(j->context, &j->pool, j->in_start, n_ranks + 1, error));
        GR_TRY(gr_comm_reserve(j->comm, (uint64_t)input->parts * GR_SHARES * sizeof *j->loads.has, error));
        for (int64_t i = 0, p = 0; i < j->n_halo; i++) {
            while (j->vertex[i] >= j->first[p + 1]) p++;
            j->route.out[p + 1]++;
        }
    }
    GR_TRY(GR_POOL_NEW(j->context, &j->pool, j->owner, j->slice.rows->n_rows + j->n_halo, error));
    memset(j->owner, -1, (size_t)(j->slice.rows->n_rows + j->n_halo) * sizeof *j->owner);
    return GRAFT_OK;
}

/* Send the other ranks the indices, in their slices, of their rows in the halo of this rank. */
static int32_t ask_owners(struct gr_joint *j, graft_error *error)
{
    int32_t rc;

    GR_TRY(gr_comm_route_plan(&j->route, error));
    rc = GR_POOL_NEW(j->context, &j->pool, j->asked, gr_comm_route_n_in(&j->route), error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(j->context, &j->pool, j->out, gr_comm_route_n_in(&j->route), error);
    if (rc == GRAFT_OK) rc = GR_POOL_NEW(j->context, &j->pool, j->in, j->n_halo, error);
    GR_TRY(gr_comm_agree(j->comm, rc, error));
    for (int32_t p = 0; p < j->comm->n_ranks; p++)
        for (int64_t i = j->route.out[p]; i < j->route.out[p + 1]; i++)
            j->in[i] = (int32_t)(j->vertex[i] - j->first[p]);
    return gr_comm_route_send(&j->route, j->in, j->asked, sizeof *j->in, error);
}

/* Set the number of blocks, which depends on the largest slice, so that it is the same on all ranks. */
static void set_blocks(struct gr_joint *j)
{
    const int64_t rows = j->slice.rows->n_rows;
    int64_t       most = 0;

    j->scale = j->blocks = 1;
    if (j->comm == NULL) return;
    for (int32_t p = 0; p < j->comm->n_ranks; p++)
        if (j->first[p + 1] - j->first[p] > most) most = j->first[p + 1] - j->first[p];
    most /= GR_JOINT_ROWS_LEAST;
    j->blocks = most < 1 ? 1 : most < BLOCKS ? (int32_t)most : BLOCKS;
    if (rows > 0) j->scale = (j->first[j->comm->n_ranks] + rows - 1) / rows;
}

static int32_t joint_sum(const struct gr_joint *j, int64_t *values, int64_t count, graft_error *error)
{
    return j->comm != NULL ? gr_comm_sum_i64(j->comm, values, count, error) : GRAFT_OK;
}

int32_t gr_partition_joint_agree(const struct gr_joint *j, int32_t rc, graft_error *error)
{
    return j->comm != NULL ? gr_comm_agree(j->comm, rc, error) : rc;
}

int32_t gr_partition_joint_init(struct gr_joint *j, const struct gr_partition_input *input, graft_error *error)
{
    int64_t total[GR_SHARES];
    int32_t rc;

    *j = (struct gr_joint){ .context = input->context, .comm = input->comm, .first = input->first };
    GR_TRY(gr_partition_joint_agree(j, prepare_joint(j, input, error), error));
    if (j->comm != NULL) GR_TRY(ask_owners(j, error));
    set_blocks(j);
    gr_partition_slice_total(&j->slice, total);
    GR_TRY(joint_sum(j, total, GR_SHARES, error));
    rc = gr_partition_loads_init(j->context, &j->loads, total, input->parts, error);
    GR_TRY(gr_partition_joint_agree(j, rc, error));
    j->loads.scale = j->scale;
    return GRAFT_OK;
}

void gr_partition_joint_fini(struct gr_joint *j)
{
    gr_comm_route_fini(&j->route);
    gr_partition_loads_fini(j->context, &j->loads);
    gr_pool_fini(j->context, &j->pool);
    *j = (struct gr_joint){ 0 };
}

/* The first row after a block of a slice. */
static int64_t block_end(int64_t rows, int32_t block, int32_t blocks)
{
    return rows / blocks * (block + 1) + rows % blocks * (block + 1) / blocks;
}

static void begin_exchange(struct gr_joint *j)
{
    if (j->comm == NULL) return;
    memcpy(j->out_at, j->route.in, (size_t)j->comm->n_ranks * sizeof *j->out_at);
    memcpy(j->in_at, j->route.out, (size_t)j->comm->n_ranks * sizeof *j->in_at);
}

/* Exchange the owners of the rows of a block. Requested rows ascend for each pair of ranks, so both sides know which
 * of them are in the block. */
static int32_t exchange_owners(struct gr_joint *j, int32_t block, int32_t blocks, graft_error *error)
{
    const int32_t n_ranks = j->comm->n_ranks;
    const int64_t n = j->rows.n_rows, end = block_end(n, block, blocks);
    int64_t       n_out = 0, n_in = 0;
    int32_t       rc;

    for (int32_t p = 0; p < n_ranks; p++) {
        const int64_t to = j->first[p] + block_end(j->first[p + 1] - j->first[p], block, blocks);

        for (; j->out_at[p] < j->route.in[p + 1] && j->asked[j->out_at[p]] < end; j->out_at[p]++)
            j->out[n_out++] = j->owner[j->asked[j->out_at[p]]];
        for (int64_t i = j->in_at[p]; i < j->route.out[p + 1] && j->vertex[i] < to; i++) n_in++;
        j->out_start[p + 1] = n_out;
        j->in_start[p + 1] = n_in;
    }
    rc = gr_comm_alltoallv(j->comm, j->out, j->out_start, j->in, j->in_start, sizeof *j->in, error);
    for (int32_t p = 0; p < n_ranks && rc == GRAFT_OK; p++)
        for (int64_t i = j->in_start[p]; i < j->in_start[p + 1]; i++) j->owner[n + j->in_at[p]++] = j->in[i];
    return rc;
}

/* Replace the loads that this rank assumes by the loads that all ranks have added. */
static int32_t exchange_loads(struct gr_joint *j, graft_error *error)
{
    struct gr_loads *loads = &j->loads;
    const int64_t    count = (int64_t)loads->parts * GR_SHARES;
    int32_t          rc;

    for (int64_t i = 0; i < count; i++) loads->has[i] -= loads->scale * loads->own[i];
    rc = gr_comm_sum_i64(j->comm, loads->own, count, error);
    for (int64_t i = 0; i < count; i++) loads->has[i] += loads->own[i];
    gr_partition_loads_settle(loads);
    return rc;
}

int32_t gr_partition_joint_assign(struct gr_joint *j, const int32_t *mine, graft_error *error)
{
    const int64_t n = j->slice.rows->n_rows;
    int64_t       weight[GR_SHARES];

    gr_partition_loads_clear(&j->loads);
    memcpy(j->owner, mine, (size_t)n * sizeof *mine);
    for (int64_t row = 0; row < n; row++) {
        gr_partition_slice_weigh(&j->slice, row, weight);
        gr_partition_loads_add(&j->loads, mine[row], weight, 1);
    }
    if (j->comm == NULL) return GRAFT_OK;
    begin_exchange(j);
    GR_TRY(exchange_owners(j, 0, 1, error));
    return exchange_loads(j, error);
}

int32_t gr_partition_joint_cut(const struct gr_joint *j, int64_t *cut, graft_error *error)
{
    const graft_csr *rows = j->slice.rows;
    int64_t          count = 0;

    for (int64_t row = 0; row < rows->n_rows; row++)
        for (int64_t e = rows->row_ptr[row]; e < rows->row_ptr[row + 1]; e++)
            count += j->owner[gr_csr_column(rows, e)] != j->owner[row];
    *cut = count;
    return joint_sum(j, cut, 1, error);
}

int32_t gr_partition_joint_pass(struct gr_joint *j, void (*visit)(struct gr_joint *joint, int64_t row),
                                graft_error     *error)
{
    const int64_t n = j->slice.rows->n_rows;
    int64_t       row = 0;

    begin_exchange(j);
    for (int32_t block = 0; block < j->blocks; block++) {
        for (const int64_t end = block_end(n, block, j->blocks); row < end; row++) visit(j, row);
        if (j->comm == NULL) continue;
        GR_TRY(exchange_owners(j, block, j->blocks, error));
        GR_TRY(exchange_loads(j, error));
    }
    GR_ASSERT(row == n);
    return gr_partition_joint_agree(j, GRAFT_OK, error);
}

/* Let one rank after the other move vertices, and send the loads to all ranks. *moves becomes the sum over all
 * ranks. */
static int32_t relieve_in_turn(struct gr_joint *j, int64_t *moves, graft_error *error)
{
    const uint64_t bytes = (uint64_t)j->loads.parts * GR_SHARES * sizeof *j->loads.has;

    for (int32_t turn = 0; turn < j->comm->n_ranks; turn++) {
        if (turn == j->comm->rank) *moves = gr_partition_loads_relieve_pass(&j->loads, &j->slice, j->owner);
        GR_TRY(gr_comm_broadcast(j->comm, turn, j->loads.has, bytes, error));
        gr_partition_loads_settle(&j->loads);
    }
    GR_TRY(gr_comm_sum_i64(j->comm, moves, 1, error));
    begin_exchange(j);
    GR_TRY(exchange_owners(j, 0, 1, error));
    return gr_comm_agree(j->comm, GRAFT_OK, error);
}

int32_t gr_partition_joint_relieve(struct gr_joint *j, graft_error *error)
{
    int64_t moves = 1;

    if (j->comm == NULL) {
        gr_partition_loads_relieve(&j->loads, &j->slice, j->owner);
        return GRAFT_OK;
    }
    j->loads.scale = 1;
    for (int pass = 0; pass < GR_RELIEVE_PASSES && moves > 0 && gr_partition_loads_exceed(&j->loads); pass++)
        GR_TRY(relieve_in_turn(j, &moves, error));
    j->loads.scale = j->scale;
    return GRAFT_OK;
}
