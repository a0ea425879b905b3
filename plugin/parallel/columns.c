/* Sums and extrema of slices of columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"

#include "base/assert.h"
#include "model/gather.h"

/* The rows that a sum reads (or, with `of_result`, makes), as a prefix of the grid. */
static struct gr_transposed transposed_of(const struct gr_partition *p, const struct gr_run *run,
                                          const struct gr_sum *sum, int of_result)
{
    const int sources = (sum->direction == GR_FORWARD) == !of_result, reads_sources = sum->direction == GR_FORWARD;

    return (struct gr_transposed){ .prefix = gr_partition_prefix(p, sum->block->of_strategy, run->layer, sources),
                                   .given = gr_partition_prefix(p, sum->block->of_strategy, run->layer, reads_sources),
                                   .local = &p->part->local,
                                   .of_extrema = p->extremum != 0,
                                   .width = sum->width,
                                   .of_result = !sources,
                                   .stateless = gr_partition_is_stateless(p, run, sum),
                                   .synchronous = p->synchronous,
                                   .args = { .layer = run->layer,
                                             .direction = sum->direction,
                                             .exact = gr_partition_is_exact(p, run, sum),
                                             .epoch = run->epoch } };
}

/* The parts of a phase that a transpose takes after its sending, from `begin` to now. */
static void received_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    gr_profile_part(&run->profile, "wait", begin, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, gr_seconds(), 0);
}

/* The parts of a whole transpose. */
static void transposed_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    gr_partition_sent_parts(run, pass, begin);
    received_parts(run, pass, pass->sent_at);
}

/* The layer for which a plan was made. */
static int32_t slot_of(const struct gr_partition *p, const graft_plan *plan)
{
    for (int32_t l = 0; l < p->n_layers; l++)
        if (p->masked[l].plan == plan) return l;
    return GR_ALL_ROWS;
}

/* The blocks of a sum: all edges, or the edges of the rows of a step. */
static const struct gr_edge_set *blocks_of(const struct gr_partition *p, const struct gr_sum *sum)
{
    const struct gr_edge_sets *sets = &p->shared->blocks.sets;
    const int32_t              slot = slot_of(p, sum->block->of_strategy);

    return sum->direction == GR_FORWARD || slot == GR_ALL_ROWS ? &sets->whole[sum->direction] : &sets->back[slot];
}

static int32_t begin_blocks(struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum,
                            graft_error *error)
{
    const int                 is_step = run->pass != GRAFT_PASS_EVALUATION && sum->kind != GR_SUM_CONSTANT;
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
                                         .semiring = p->extremum != 0 ? p->extremum : GRAFT_PLUS_TIMES,
                                         .winner = is_step ? p->shared->winner[run->layer] : NULL,
                                         .threads = run->threads,
                                         .times = run->profile.times };

    return gr_blocks_begin(&p->shared->blocks, &blocks, error);
}

/* Execute the tasks recorded for workers while slices travel. The phase continues afterwards. */
static void do_recorded(struct gr_partition *p, struct gr_run *run)
{
    const struct gr_exchange *pass = &p->shared->transpose.exchange;

    gr_partition_sent_parts(run, pass, p->begin);
    gr_profile_end(&run->profile, "aggregate", p->begin, 0, 0);
    p->moving = pass->messages;
    gr_workers_sync(run);
    p->moving = NULL;
    p->begin = gr_profile_begin(&run->profile);
}

/* Turn rows to slices of columns. */
static int32_t turn_to_columns(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_transpose       *t = &p->shared->transpose;
    const struct gr_transposed what = transposed_of(p, run, sum, 0);
    const int                  records = gr_workers_are_recording(run);
    int32_t                    rc = gr_transpose_columns_begin(t, &what, sum, gr_run_team(run), error);

    GR_TRY(rc);
    if (records) do_recorded(p, run);
    GR_TRY(gr_transpose_columns_end(t, &what, sum, gr_run_team(run), error));
    gr_traffic_count_transpose(p, run, &what, 0);
    if (records) received_parts(run, &t->exchange, p->begin);
    else transposed_parts(run, &t->exchange, p->begin);
done:
    return rc;
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

/* Whether boundary rows of a sum come from other groups. */
static int has_halo(const struct gr_partition *p, const struct gr_sum *sum)
{
    return p->shared->grid.n_groups > 1 && gr_partition_slice(p, sum->width) > 0;
}

int32_t gr_columns_begin(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    float *const *slice = p->shared->transpose.slice;
    struct gr_sum part = *sum;
    int32_t       rc = turn_to_columns(p, run, sum, error);

    GR_TRY(rc);
    GR_TRY(begin_blocks(p, run, sum, error));
    if (!has_halo(p, sum)) return GRAFT_OK;
    part.x = slice[0];
    part.x_type = GRAFT_F32;
    part.out = slice[1];
    part.stride = part.width = gr_partition_slice(p, sum->width);
    part.scale = NULL;
    part.add = 0;
    GR_TRY(gr_partition_begin_sum(p, run, &part, error));
    gr_partition_sent_parts(run, &((graft_plan *)part.block->of_strategy)->product.exchange, 0);
done:
    return rc;
}

/* While blocks are multiplied. */
static void poll_transpose(void *transpose)
{
    gr_messages_poll(((struct gr_transpose *)transpose)->exchange.messages);
}

/* Computes the rows of the ranks one after the other. */
struct making {
    struct gr_partition        *p;
    struct gr_team              team;
    const struct gr_transposed *what;
    graft_plan                 *plan; /* of the edges from other groups; NULL: none */
    int                         ended;
    double                      waited, added; /* seconds for these edges: of waiting, and of adding */
};

/* Called after the product of the first block, during which the rows of other groups travelled. */
static int32_t end_halo(struct making *m, graft_error *error)
{
    const double begin = gr_seconds();
    int32_t      rc = m->ended ? GRAFT_OK : gr_spmm_end(m->plan, error);

    if (rc == GRAFT_OK && !m->ended) {
        m->waited = m->plan->product.exchange.received_at - begin;
        m->added = gr_seconds() - m->plan->product.exchange.received_at;
    }
    m->ended = 1;
    return rc;
}

static int32_t make_slice_rows(void *arg, int32_t rank, float *out, graft_error *error)
{
    struct making *m = arg;
    int32_t        rc = gr_blocks_multiply(&m->p->shared->blocks, rank, out, error);

    if (rc < 0 || m->plan == NULL) return rc;
    GR_TRY(end_halo(m, error));
    gr_transpose_add_result(&m->p->shared->transpose, m->what, rank, out, m->team);
done:
    return rc;
}

/* Turn slices that are computed block by block to rows. */
static int32_t turn_to_rows(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_plan *plan,
                            graft_error *error)
{
    struct gr_transpose *t = &p->shared->transpose;
    struct gr_blocks    *blocks = &p->shared->blocks;
    struct gr_transposed what = transposed_of(p, run, sum, 1);
    struct making        making = { .p = p, .team = gr_run_team(run), .what = &what, .plan = plan };
    double               begin = gr_seconds();
    int32_t              rc = GRAFT_OK;

    what.make = make_slice_rows;
    what.make_arg = &making;
    /* After the sums from other groups. */
    what.own = t->slice[1];
    if (plan != NULL) what.own += gr_grid_rows(t->grid, t->grid->n_levels) * gr_partition_slice(p, sum->width);
    blocks->poll = poll_transpose;
    blocks->poll_arg = t;
    GR_TRY(gr_transpose_to_rows(t, &what, sum, gr_run_team(run), error));
    gr_traffic_count_transpose(p, run, &what, 1);
    gr_traffic_count_blocks(p, run);
    gr_profile_part(&run->profile, "local", begin, begin + blocks->seconds, 0);
    begin += blocks->seconds;
    if (plan != NULL) {
        gr_profile_part(&run->profile, "wait", begin, begin + making.waited, 1);
        begin += making.waited;
        gr_profile_part(&run->profile, "unpack", begin, begin + making.added, 0);
        begin += making.added;
    }
    transposed_parts(run, &t->exchange, begin);
done:
    return rc;
}

int32_t gr_columns_end(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    gr_traffic_count_columns(p, run, sum, gr_partition_is_exact(p, run, sum));
    return turn_to_rows(p, run, sum, has_halo(p, sum) ? sum->block->of_strategy : NULL, error);
}

struct gr_amount gr_columns_amount(const struct gr_partition *p, const struct gr_run *run, const struct gr_sum *sum)
{
    const struct gr_grid   *grid = &p->shared->grid;
    const graft_plan *const plan = sum->block->of_strategy;
    const int32_t           prefix = transposed_of(p, run, sum, 1).prefix;
    struct gr_amount amount = { (double)gr_csr_entries(&plan->part->remote), (double)gr_grid_rows(grid, prefix) };

    for (int32_t q = grid->first; q < grid->first + grid->columns; q++)
        amount.edges += (double)gr_edge_entries(blocks_of(p, sum), grid, q, prefix);
    return amount;
}

/* -- extrema ------------------------------------------------------------------------------------------------------ */

/* Exchange rows of the halo of the group, which follow its own rows, in the columns of this rank. All ranks count the
 * sent rows. */
static int32_t exchange_group_halo(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, float *x,
                                   graft_error *error)
{
    struct gr_halo_rows *rows = &p->halo_rows;
    struct gr_halo_pass  pass = { .direction = sum->direction,
                                  .layer = run->layer,
                                  .exact = gr_partition_is_exact(p, run, sum),
                                  .stateless = gr_partition_is_stateless(p, run, sum),
                                  .synchronous = p->synchronous,
                                  .epoch = run->epoch };
    double               begin = gr_profile_begin(&run->profile), sent;
    int32_t              rc = GRAFT_OK;

    if (!has_halo(p, sum)) goto done;
    gr_halo_rows_place(rows, &pass, x, gr_grid_rows(&p->shared->grid, p->shared->grid.n_levels),
                       gr_partition_slice(p, sum->width));
    GR_TRY(gr_halo_rows_begin(rows, &pass, gr_run_team(run), error));
    gr_partition_sent_parts(run, &rows->exchange, begin);
    sent = gr_seconds();
    GR_TRY(gr_halo_rows_end(rows, gr_run_team(run), error));
    gr_partition_received_parts(run, &rows->exchange, 0, sent, 0);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
done:
    if (rc == GRAFT_OK) gr_traffic_count_columns(p, run, sum, pass.exact);
    return rc;
}

/* Add the gradients of extrema to the rows of the winners. Winners are stored block by block, gradients in the order of
 * the group. */
static void scatter_blocks(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum)
{
    const struct gr_grid *grid = &p->shared->grid;
    float *const         *slice = p->shared->transpose.slice;
    const int32_t         prefix = transposed_of(p, run, sum, 0).prefix;
    const int64_t         columns = gr_partition_slice(p, sum->width);
    const int64_t         seen = gr_grid_rows(grid, transposed_of(p, run, sum, 1).prefix) + p->shared->blocks.beyond;
    struct gr_winners     from = { p->shared->winner[run->layer], GRAFT_I32, 0, seen, seen, columns, .adds = 0 };

    for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
        for (int32_t level = 0; level < prefix; level++) {
            const int64_t place = grid->place[(int64_t)q * grid->n_levels + level];

            from.n_dst = gr_grid_rows_of(grid, q, level + 1) - gr_grid_rows_of(grid, q, level);
            gr_scatter_extrema(run, &from, slice[0] + place * columns, slice[1], NULL);
            from.winner = (const int32_t *)from.winner + from.n_dst * columns;
            from.adds = 1;
        }
    }
}

static int32_t extrema_backward(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum,
                                graft_error *error)
{
    struct gr_transpose       *t = &p->shared->transpose;
    const struct gr_transposed what = transposed_of(p, run, sum, 1);
    double                     begin;
    int32_t                    rc = GRAFT_OK;

    if (gr_partition_slice(p, sum->width) > 0) scatter_blocks(p, run, sum);
    GR_TRY(exchange_group_halo(p, run, sum, t->slice[1], error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(gr_transpose_to_rows(t, &what, sum, gr_run_team(run), error));
    gr_traffic_count_transpose(p, run, &what, 1);
    transposed_parts(run, &t->exchange, begin);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
done:
    return rc;
}

int32_t gr_columns_extrema(struct gr_partition *p, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    double  begin;
    int32_t rc = GRAFT_OK;

    p->begin = gr_profile_begin(&run->profile);
    GR_TRY(turn_to_columns(p, run, sum, error));
    gr_profile_end(&run->profile, "aggregate", p->begin, 0, 0);
    if (sum->direction == GR_BACKWARD) return extrema_backward(p, run, sum, error);
    GR_TRY(exchange_group_halo(p, run, sum, p->shared->transpose.slice[0], error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(begin_blocks(p, run, sum, error));
    GR_TRY(turn_to_rows(p, run, sum, NULL, error));
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
done:
    return rc;
}
