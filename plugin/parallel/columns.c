/* Sums and maxima of slices of columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"

#include "base/assert.h"

/* The rows that a sum reads (or, with `of_result`, makes), as a prefix of the grid. */
static struct gr_transposed transposed_of(const struct gr_partition *p, const struct gr_run *run,
                                          const struct gr_sum *sum, int of_result)
{
    const int sources = (sum->direction == GR_FORWARD) == !of_result, reads_sources = sum->direction == GR_FORWARD;

    return (struct gr_transposed){ .prefix = gr_partition_prefix(p, sum->block->of_strategy, run->layer, sources),
                                   .given = gr_partition_prefix(p, sum->block->of_strategy, run->layer, reads_sources),
                                   .local = &p->part.local,
                                   .is_largest = p->takes_largest,
                                   .width = sum->width,
                                   .of_result = !sources,
                                   .stateless = gr_partition_is_stateless(p, run, sum),
                                   .synchronous = p->synchronous,
                                   .args = { .layer = run->layer,
                                             .direction = sum->direction,
                                             .exact = gr_partition_is_exact(p, run, sum),
                                             .epoch = run->epoch } };
}

/* The parts of a phase that a transpose takes, up to now. */
static void transposed_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    gr_partition_sent_parts(run, pass, begin);
    gr_profile_part(&run->profile, "wait", pass->sent_at, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, gr_seconds(), 0);
}

/* The layer that a plan was made for. */
static int32_t slot_of(const struct gr_partition *p, const graft_plan *plan)
{
    for (int32_t l = 0; l < p->n_layers; l++)
        if (p->masked[l].plan == plan) return l;
    return GR_ALL_ROWS;
}

/* The blocks of a sum: all edges, or those of the rows of a step. */
static const struct gr_edge_set *blocks_of(const struct gr_partition *p, const struct gr_sum *sum)
{
    const struct gr_edge_sets *sets = &p->shared->blocks.sets;
    const int32_t              slot = slot_of(p, sum->block->of_strategy);

    return sum->direction == GR_FORWARD || slot == GR_ALL_ROWS ? &sets->whole[sum->direction] : &sets->back[slot];
}

static int32_t begin_blocks(struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum,
                            graft_error *error)
{
    const struct gr_block_sum blocks = { .set = blocks_of(p, sum),
                                         .slot = slot_of(p, sum->block->of_strategy),
                                         .rows = transposed_of(p, run, sum, 1).prefix,
                                         .columns = transposed_of(p, run, sum, 0).prefix,
                                         .width = sum->width,
                                         .layer = run->layer,
                                         .direction = sum->direction,
                                         .epoch = run->epoch,
                                         .alone = p->shared->transpose.exchange.is_repeat,
                                         .x = p->shared->transpose.slice[0],
                                         .threads = run->threads,
                                         .times = run->profile.times };

    return gr_blocks_begin(&p->shared->blocks, &blocks, error);
}

int32_t gr_columns_begin(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, struct gr_sum *slice,
                         graft_error *error)
{
    struct gr_transpose       *t = &p->shared->transpose;
    const struct gr_transposed what = transposed_of(p, run, sum, 0);
    int32_t                    rc = GRAFT_OK;

    GR_TRY(gr_transpose_to_columns(t, &what, sum, gr_run_team(run), error));
    gr_traffic_count_transpose(p, run, &what, 0);
    transposed_parts(run, &t->exchange, p->begin);
    if (gr_partition_has_blocks(p)) return begin_blocks(p, run, sum, error);
    *slice = *sum;
    slice->x = t->slice[0];
    slice->x_type = GRAFT_F32;
    slice->out = t->slice[1];
    slice->stride = slice->width = gr_partition_slice(p, sum->width);
    slice->scale = NULL;
    slice->add = 0;
done:
    return rc;
}

/* While blocks are multiplied. */
static void poll_transpose(void *transpose)
{
    gr_messages_poll(((struct gr_transpose *)transpose)->exchange.messages);
}

int32_t gr_columns_end(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_transpose *t = &p->shared->transpose;
    struct gr_blocks    *blocks = &p->shared->blocks;
    struct gr_transposed what = transposed_of(p, run, sum, 1);
    double               begin = gr_seconds();
    int32_t              rc = GRAFT_OK;

    if (gr_partition_has_blocks(p)) {
        what.make = gr_blocks_multiply;
        what.make_arg = blocks;
        blocks->poll = poll_transpose;
        blocks->poll_arg = t;
    }
    GR_TRY(gr_transpose_to_rows(t, &what, sum, gr_run_team(run), error));
    gr_traffic_count_transpose(p, run, &what, 1);
    if (gr_partition_has_blocks(p)) {
        gr_traffic_count_blocks(p, run);
        gr_profile_part(&run->profile, "local", begin, begin + blocks->seconds, 0);
        begin += blocks->seconds;
    }
    transposed_parts(run, &t->exchange, begin);
done:
    return rc;
}

struct gr_amount gr_columns_amount(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum)
{
    const int32_t    prefix = transposed_of(p, run, sum, 1).prefix;
    struct gr_amount amount = { .rows = (double)gr_grid_rows(&p->shared->grid, prefix) };

    for (int32_t q = 0; q < p->comm->n_ranks; q++)
        amount.edges += (double)gr_edge_entries(blocks_of(p, sum), &p->shared->grid, q, prefix);
    return amount;
}

/* Maxima of the columns that this rank has, or their gradients, from slice to slice. */
static int32_t largest_of_columns(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum,
                                  graft_error *error)
{
    graft_matrix *const     a = ((graft_plan *)sum->block->of_strategy)->matrices[GR_FORWARD].local;
    float *const           *slice = p->shared->transpose.slice;
    const int64_t           columns = gr_partition_slice(p, sum->width);
    int32_t *const          winner = p->shared->winner[run->layer];
    const int               is_step = run->pass != GRAFT_PASS_EVALUATION && sum->kind != GR_SUM_CONSTANT;
    const struct gr_winners from = { winner, GRAFT_I32, a->csr.n_rows, a->csr.n_cols, a->csr.n_cols, columns };

    GR_ASSERT(a->csr.index_type == GRAFT_I32);
    if (columns == 0) return GRAFT_OK;
    if (sum->direction == GR_FORWARD)
        return gr_product_largest(run, a, gr_dense_operand(slice[0], columns, a->csr.n_cols), columns,
                                  is_step ? winner : NULL, slice[1], error);
    GR_ASSERT(winner != NULL);
    gr_scatter_largest(run, &from, slice[0], slice[1], NULL);
    return GRAFT_OK;
}

int32_t gr_columns_largest(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_transpose       *t = &p->shared->transpose;
    const struct gr_transposed what = transposed_of(p, run, sum, 0);
    double                     begin = gr_profile_begin(&run->profile);
    int32_t                    rc = GRAFT_OK;

    GR_TRY(gr_transpose_to_columns(t, &what, sum, gr_run_team(run), error));
    gr_traffic_count_transpose(p, run, &what, 0);
    transposed_parts(run, &t->exchange, begin);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
    GR_TRY(largest_of_columns(p, run, sum, error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(gr_columns_end(p, run, sum, error));
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
done:
    return rc;
}
