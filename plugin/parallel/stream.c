/* Multiplies block by block, while the next blocks are exchanged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/stream.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/dense_view.h"
#include "base/memory.h"

/* -- memory ------------------------------------------------------------------------------------------------------- */

void gr_parallel_blocks_init(graft_context *context, struct gr_comm *comm, const struct gr_grid *grid, int64_t beyond,
                             struct gr_blocks *b)
{
    *b = (struct gr_blocks){ .context = context, .comm = comm, .grid = grid, .beyond = beyond };
    b->channel = gr_comm_channel(comm);
}

void gr_parallel_blocks_fini(struct gr_blocks *b)
{
    if (b->context == NULL) return;
    for (int i = 0; i < GR_DIRECTIONS * GR_ROW_SLOTS; i++) {
        const struct gr_held_blocks *held = &b->held[i / GR_ROW_SLOTS][i % GR_ROW_SLOTS];

        for (int32_t k = 0; k < b->grid->columns && held->a != NULL; k++) gr_matrix_destroy(held->a[k]);
    }
    gr_matrix_destroy(b->a);
    gr_pool_fini(b->context, &b->pool);
    gr_parallel_edge_sets_fini(b->context, &b->sets);
    *b = (struct gr_blocks){ 0 };
}

static int has_values(const struct gr_blocks *b)
{
    return b->sets.whole[GR_FORWARD].values != NULL;
}

/* Find the largest numbers of rows and of entries of a block of the group. */
static void find_largest_block(const struct gr_blocks *b, int64_t *rows, int64_t *entries)
{
    const struct gr_grid *grid = b->grid;

    *rows = *entries = 0;
    for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
        const int64_t here = gr_parallel_grid_rows_of(grid, q, grid->n_levels);

        if (here > *rows) *rows = here;
        for (int d = 0; d < GR_DIRECTIONS; d++) {
            const struct gr_edge_set *set = &b->sets.whole[d];

            if (set->ends != NULL && gr_parallel_edge_entries(set, grid, q, grid->n_levels) > *entries)
                *entries = gr_parallel_edge_entries(set, grid, q, grid->n_levels);
        }
    }
}

/* Return the bytes of memory for two received blocks. */
static int64_t buffer_bytes(const struct gr_blocks *b, int64_t rows, int64_t entries)
{
    return 2 * (int64_t)sizeof(int32_t) * (rows + entries * (has_values(b) ? 2 : 1));
}

int64_t gr_parallel_blocks_bytes(const struct gr_blocks *b)
{
    return b->context != NULL ? b->pool.bytes + gr_parallel_edge_sets_bytes(&b->sets, b->grid) : 0;
}

/* Return the bytes of the blocks of one matrix that a rank stores. */
static int64_t need_of_set(const struct gr_blocks *b, const struct gr_edge_set *set, int streams)
{
    const int32_t first = streams ? b->comm->rank : b->grid->first, end = first + (streams ? 1 : b->grid->columns);
    int64_t       bytes = (int64_t)b->comm->n_ranks * (b->grid->n_levels + 1) * (int64_t)sizeof *set->ends;

    if (set->ends == NULL) return 0;
    for (int32_t q = first; q < end; q++) {
        bytes += gr_parallel_edge_block_bytes(set, b->grid, q, set->levels);
        if (!streams) bytes += (gr_parallel_grid_rows_of(b->grid, q, set->levels) + 1) * (int64_t)sizeof *b->row_ptr;
    }
    return bytes;
}

int64_t gr_parallel_blocks_need(const struct gr_blocks *b, int streams)
{
    int64_t rows, entries, bytes = 0;

    find_largest_block(b, &rows, &entries);
    if (streams) bytes = buffer_bytes(b, rows, entries) + (rows + 1) * (int64_t)sizeof *b->row_ptr;
    for (int d = 0; d < GR_DIRECTIONS; d++) bytes += need_of_set(b, &b->sets.whole[d], streams);
    for (int32_t l = 0; l < GR_LAYERS_MAX; l++) bytes += need_of_set(b, &b->sets.back[l], streams);
    return bytes;
}

static int32_t make_buffers(const struct gr_budget *budget, struct gr_blocks *b, graft_error *error)
{
    const int64_t bytes = buffer_bytes(b, b->most_rows, b->most_entries);

    GR_TRY(gr_budget_check(budget, (double)bytes, "graph (blocks of rows of other ranks)", error));
    for (int i = 0; i < 2; i++) {
        GR_TRY(GR_POOL_NEW(b->context, &b->pool, b->received[i].count, b->most_rows, error));
        GR_TRY(GR_POOL_NEW(b->context, &b->pool, b->received[i].column, b->most_entries, error));
        if (has_values(b)) GR_TRY(GR_POOL_NEW(b->context, &b->pool, b->received[i].values, b->most_entries, error));
    }
    return GRAFT_OK;
}

/* Set `a` to the matrix of a block. */
static void set_block(const struct gr_edge_block *block, int64_t n_cols, const int64_t *row_ptr, graft_matrix *a)
{
    gr_matrix_unprepare(a);
    a->csr = (graft_csr){ .size = sizeof a->csr,
                          .index_type = GRAFT_I32,
                          .value_type = GRAFT_F32,
                          .n_rows = block->rows,
                          .n_cols = n_cols,
                          .row_ptr = row_ptr,
                          .col_idx = block->column,
                          .values = block->values };
}

static void fill_row_ptr(const struct gr_edge_block *block, int64_t *row_ptr)
{
    row_ptr[0] = 0;
    for (int64_t row = 0; row < block->rows; row++) row_ptr[row + 1] = row_ptr[row] + block->count[row];
    GR_ASSERT(row_ptr[block->rows] == block->entries);
}

/* Create the matrices of the stored blocks of a set, with the first `rows` and `columns` levels. They use the row
 * pointers of `all`, the matrices of all rows, unless it is NULL. */
static int32_t hold_blocks(struct gr_blocks *b, const struct gr_edge_set *set, int32_t rows, int32_t columns,
                           const struct gr_held_blocks *all, struct gr_held_blocks *held, graft_error *error)
{
    const int32_t   n = b->grid->columns;
    const graft_csr empty = { .size = sizeof empty };
    int64_t        *row_ptr = all != NULL ? all->row_ptr : NULL;

    held->set = set;
    held->rows = rows;
    GR_TRY(GR_POOL_NEW(b->context, &b->pool, held->a, n, error));
    if (all == NULL) {
        GR_TRY(
            GR_POOL_NEW(b->context, &b->pool, held->row_ptr, gr_parallel_grid_rows(b->grid, set->levels) + n, error));
        row_ptr = held->row_ptr;
    }
    for (int32_t k = 0; k < n; k++) {
        const struct gr_edge_block block = gr_parallel_edge_block_of(set, b->grid, b->grid->first + k, rows);

        GR_TRY(gr_matrix_create(b->context, &empty, &held->a[k], error));
        if (all == NULL) fill_row_ptr(&block, row_ptr);
        set_block(&block, gr_parallel_grid_rows(b->grid, columns) + b->beyond, row_ptr, held->a[k]);
        row_ptr += gr_parallel_grid_rows_of(b->grid, b->grid->first + k, set->levels) + 1;
    }
    return GRAFT_OK;
}

int32_t gr_parallel_blocks_mask(struct gr_blocks *b, int32_t layer, int32_t prefix, graft_error *error)
{
    struct gr_held_blocks *held = b->held[GR_FORWARD];

    if (b->streams) return GRAFT_OK;
    GR_TRY(hold_blocks(b, &b->sets.whole[GR_FORWARD], prefix, prefix + 1, &held[GR_ALL_ROWS], &held[layer], error));
    if (b->sets.back[layer].ends != NULL)
        return hold_blocks(b, &b->sets.back[layer], prefix + 1, prefix, NULL, &b->held[GR_BACKWARD][layer], error);
    return GRAFT_OK;
}

void gr_parallel_blocks_swap(struct gr_blocks *b, struct gr_edge_sets *sets)
{
    const struct gr_edge_sets before = b->sets;

    b->sets = *sets;
    *sets = before;
    for (int i = 0; i < GR_DIRECTIONS * GR_ROW_SLOTS; i++) {
        const struct gr_held_blocks *held = &b->held[i / GR_ROW_SLOTS][i % GR_ROW_SLOTS];

        for (int32_t k = 0; k < b->grid->columns && held->a != NULL; k++) {
            const struct gr_edge_block block =
                gr_parallel_edge_block_of(held->set, b->grid, b->grid->first + k, held->rows);

            set_block(&block, held->a[k]->csr.n_cols, held->a[k]->csr.row_ptr, held->a[k]);
        }
    }
}

int32_t gr_parallel_blocks_choose(const struct gr_budget *budget, struct gr_blocks *b, int streams, graft_error *error)
{
    const graft_csr empty = { .size = sizeof empty };
    const int32_t   all = b->grid->n_levels;
    int32_t         rc = gr_matrix_create(b->context, &empty, &b->a, error);

    b->streams = streams;
    find_largest_block(b, &b->most_rows, &b->most_entries);
    if (rc == GRAFT_OK && streams) rc = GR_POOL_NEW(b->context, &b->pool, b->row_ptr, b->most_rows + 1, error);
    if (rc == GRAFT_OK && streams) rc = make_buffers(budget, b, error);
    GR_TRY(gr_comm_agree(b->comm, rc, error));
    if (streams) return GRAFT_OK;
    GR_TRY(gr_parallel_edge_sets_gather(budget, b->comm, b->grid, &b->sets, error));
    for (int d = 0; d < GR_DIRECTIONS && rc == GRAFT_OK; d++)
        if (b->sets.whole[d].ends != NULL)
            rc = hold_blocks(b, &b->sets.whole[d], all, all, NULL, &b->held[d][GR_ALL_ROWS], error);
    return gr_comm_agree(b->comm, rc, error);
}

/* -- messages ----------------------------------------------------------------------------------------------------- */

/* Return the rank of the group that is at distance `places` after this rank, in cyclic order. */
static int32_t rank_behind(const struct gr_blocks *b, int32_t places)
{
    return b->grid->first + (b->grid->column + places) % b->grid->columns;
}

/* Return the number of columns of a sum that a rank computes. */
static int64_t slice_columns(const struct gr_blocks *b, const struct gr_block_sum *sum, int32_t rank)
{
    return gr_parallel_grid_slice_width(b->grid, sum->width, rank % b->grid->columns);
}

/* Whether a rank receives the block of `owner`, another rank of its group. A rank without columns needs none. */
static int needs_block(const struct gr_blocks *b, const struct gr_block_sum *sum, int32_t rank, int32_t owner)
{
    return b->streams && !sum->alone && rank != owner && rank / b->grid->columns == owner / b->grid->columns &&
           slice_columns(b, sum, rank) > 0 && gr_parallel_grid_rows_of(b->grid, owner, sum->rows) > 0;
}

static struct gr_frame block_frame(const struct gr_blocks *b, int32_t owner)
{
    const struct gr_block_sum *sum = &b->sum;

    return (struct gr_frame){ .channel = (uint32_t)b->channel,
                              .from = owner,
                              .layer = sum->layer,
                              .direction = (int16_t)sum->direction,
                              .bits = has_values(b) ? 32 : 0,
                              .epoch = sum->epoch,
                              .rows = gr_parallel_grid_rows_of(b->grid, owner, sum->rows),
                              .width = gr_parallel_edge_entries(sum->set, b->grid, owner, sum->rows),
                              .bytes = (uint64_t)gr_parallel_edge_block_bytes(sum->set, b->grid, owner, sum->rows) };
}

/* Return the bytes of a part of a message. */
static uint64_t part_bytes(const struct gr_edge_block *block, int part)
{
    switch (part) {
    case GR_BLOCK_FRAME: return sizeof(struct gr_frame);
    case GR_BLOCK_COUNTS: return (uint64_t)block->rows * sizeof *block->count;
    case GR_BLOCK_COLUMNS: return (uint64_t)block->entries * sizeof *block->column;
    default: return block->values != NULL ? (uint64_t)block->entries * sizeof *block->values : 0;
    }
}

static uint32_t block_crc(const struct gr_edge_block *block)
{
    uint32_t crc = gr_crc(0, block->count, part_bytes(block, GR_BLOCK_COUNTS));

    crc = gr_crc(crc, block->column, part_bytes(block, GR_BLOCK_COLUMNS));
    return block->values != NULL ? gr_crc(crc, block->values, part_bytes(block, GR_BLOCK_VALUES)) : crc;
}

/* Return the buffer, one of two, in which the block of the rank at distance `places` is received. */
static struct gr_edge_block received_block(const struct gr_blocks *b, int32_t places, int place)
{
    const struct gr_frame        frame = block_frame(b, rank_behind(b, places));
    const struct gr_block_space *to = &b->received[place];

    return (struct gr_edge_block){ to->count, to->column, to->values, frame.rows, frame.width };
}

/* Post the receive of the next block that this rank needs. */
static int32_t receive_next(struct gr_blocks *b, graft_error *error)
{
    const int32_t n = b->grid->columns;
    const int     place = b->transit.n_posted % 2;

    while (b->transit.next < n && !needs_block(b, &b->sum, b->comm->rank, rank_behind(b, b->transit.next)))
        b->transit.next++;
    if (b->transit.next >= n) return GRAFT_OK;
    struct gr_block_message *const message = &b->transit.in[place];
    const struct gr_edge_block     block = received_block(b, b->transit.next, place);
    const struct gr_block_space   *to = &b->received[place];
    void *const                    data[] = { &message->frame, to->count, to->column, to->values };

    for (int part = 0; part < GR_BLOCK_PARTS; part++)
        if (part_bytes(&block, part) > 0)
            GR_TRY(gr_comm_receive(b->comm, rank_behind(b, b->transit.next), b->channel, data[part],
                                   part_bytes(&block, part), &message->requests[part], error));
    b->transit.next++;
    b->transit.n_posted++;
    return GRAFT_OK;
}

/* Send the block of this rank to the `places` ranks before it in cyclic order, which multiply it first. */
static int32_t send_until(struct gr_blocks *b, int32_t places, graft_error *error)
{
    const int32_t n = b->grid->columns;

    for (; b->transit.n_sent < places && b->transit.n_sent < n - 1; b->transit.n_sent++) {
        const int32_t            to = rank_behind(b, n - 1 - b->transit.n_sent);
        struct gr_block_message *message = &b->transit.out[b->transit.n_sent % 2];
        struct gr_edge_block     block;

        if (!needs_block(b, &b->sum, to, b->comm->rank)) continue;
        block = gr_parallel_edge_block_of(b->sum.set, b->grid, b->comm->rank, b->sum.rows);
        const void *const data[] = { &message->frame, block.count, block.column, block.values };

        GR_TRY(gr_comm_wait(b->comm, message->requests, GR_BLOCK_PARTS, error));
        message->frame = block_frame(b, b->comm->rank);
        gr_comm_frame_seal_crc(&message->frame, b->transit.crc);
        for (int part = 0; part < GR_BLOCK_PARTS; part++)
            if (part_bytes(&block, part) > 0)
                GR_TRY(gr_comm_send(b->comm, to, b->channel, data[part], part_bytes(&block, part),
                                    &message->requests[part], error));
    }
    return GRAFT_OK;
}

/* Wait for the block of the rank at distance `places`, and check it. */
static int32_t await_block(struct gr_blocks *b, int32_t places, struct gr_edge_block *block, graft_error *error)
{
    const int                place = b->transit.n_received++ % 2;
    struct gr_block_message *message = &b->transit.in[place];
    const struct gr_frame    expected = block_frame(b, rank_behind(b, places));

    GR_TRY(gr_comm_wait(b->comm, message->requests, GR_BLOCK_PARTS, error));
    *block = received_block(b, places, place);
    if (gr_comm_frame_check(&message->frame, &expected, error) < 0 ||
        gr_comm_frame_check_crc(&message->frame, block_crc(block), error) < 0)
        return gr_comm_fail(b->comm, error);
    return GRAFT_OK;
}

/* -- one sum ------------------------------------------------------------------------------------------------------ */

int32_t gr_parallel_blocks_begin(struct gr_blocks *b, const struct gr_block_sum *sum, graft_error *error)
{
    const struct gr_edge_block own = gr_parallel_edge_block_of(sum->set, b->grid, b->comm->rank, sum->rows);

    b->sum = *sum;
    b->seconds = 0;
    b->transit.n_sent = b->transit.n_posted = b->transit.n_received = 0;
    b->transit.next = 1;
    if (!b->streams || sum->alone) return GRAFT_OK;
    b->transit.crc = block_crc(&own);
    GR_TRY(receive_next(b, error));
    return send_until(b, 1, error);
}

/* Let all messages progress during products. */
static void poll_blocks(void *arg)
{
    struct gr_blocks *b = arg;
    graft_error       error = { .size = sizeof error };
    int64_t           left;

    if (b->poll != NULL) b->poll(b->poll_arg);
    if (!b->streams) return;
    for (int i = 0; i < 2; i++) { /* Failures are returned when these requests are waited for. */
        (void)gr_comm_poll(b->comm, b->transit.in[i].requests, GR_BLOCK_PARTS, &left, &error);
        (void)gr_comm_poll(b->comm, b->transit.out[i].requests, GR_BLOCK_PARTS, &left, &error);
    }
}

/* Return the winners of the rows of a rank, or NULL. */
static int32_t *winners_of(const struct gr_blocks *b, int32_t rank)
{
    int64_t rows = 0;

    if (b->sum.winner == NULL) return NULL;
    for (int32_t q = b->grid->first; q < rank; q++) rows += gr_parallel_grid_rows_of(b->grid, q, b->sum.rows);
    return b->sum.winner + rows * slice_columns(b, &b->sum, b->comm->rank);
}

/* Compute out = a times the slice of the input, where `a` has the rows of a rank. */
static int32_t multiply_block(struct gr_blocks *b, int32_t rank, graft_matrix *a, float *out, graft_error *error)
{
    const struct gr_block_sum *sum = &b->sum;
    const int64_t              columns = slice_columns(b, sum, b->comm->rank);
    const double               begin = gr_seconds();
    const graft_dense          x = gr_dense_view(sum->x, GRAFT_F32, a->csr.n_cols, columns, columns);
    const graft_dense          c = gr_dense_view(out, GRAFT_F32, a->csr.n_rows, columns, columns);
    const graft_mxm_args       args = { .size = sizeof args,
                                        .semiring = sum->semiring,
                                        .winner = winners_of(b, rank),
                                        .winner_stride = columns,
                                        .threads = sum->threads,
                                        .a = a,
                                        .b = &x,
                                        .c = &c,
                                        .times = sum->times,
                                        .poll = poll_blocks,
                                        .poll_arg = b };
    int32_t                    rc;

    if (a->csr.n_rows == 0 || columns == 0) return GRAFT_OK;
    rc = gr_mxm_run(b->context, &args, error);
    b->seconds += gr_seconds() - begin;
    return rc;
}

int32_t gr_parallel_blocks_multiply(void *arg, int32_t rank, float *out, graft_error *error)
{
    struct gr_blocks          *b = arg;
    const struct gr_block_sum *sum = &b->sum;
    const int32_t              n = b->grid->columns, places = (rank - b->comm->rank + n) % n;
    struct gr_edge_block       block;

    if (!b->streams)
        return multiply_block(b, rank, b->held[sum->direction][sum->slot].a[rank - b->grid->first], out, error);
    if (rank == b->comm->rank) {
        block = gr_parallel_edge_block_of(sum->set, b->grid, rank, sum->rows);
    } else {
        /* Before a rank waits for the block of the rank at distance `places`, it has sent its own block to as many
         * ranks, so ranks never wait for each other in a circle. */
        GR_TRY(send_until(b, places, error));
        GR_TRY(await_block(b, places, &block, error));
        GR_TRY(receive_next(b, error));
        GR_TRY(send_until(b, places + 1, error));
    }
    fill_row_ptr(&block, b->row_ptr);
    /* Kernel `simd` prepares this matrix in two passes over its rows. */
    set_block(&block, gr_parallel_grid_rows(b->grid, sum->columns) + b->beyond, b->row_ptr, b->a);
    GR_TRY(multiply_block(b, rank, b->a, out, error));
    if (rank != b->comm->rank) return GRAFT_OK;
    GR_TRY(send_until(b, n, error));
    for (int i = 0; i < 2; i++) GR_TRY(gr_comm_wait(b->comm, b->transit.out[i].requests, GR_BLOCK_PARTS, error));
    return GRAFT_OK;
}

int64_t gr_parallel_blocks_traffic(const struct gr_blocks *b, const struct gr_block_sum *sum, int32_t rank, int sends)
{
    int64_t bytes = 0;

    for (int32_t q = 0; q < b->comm->n_ranks; q++) {
        const int32_t owner = sends ? rank : q;

        if (needs_block(b, sum, sends ? q : rank, owner))
            bytes += gr_parallel_edge_block_bytes(sum->set, b->grid, owner, sum->rows);
    }
    return bytes;
}
