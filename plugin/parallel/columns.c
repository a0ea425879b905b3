/* Strategies `feature` and `grid`: sums and extrema of slices of columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/columns.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "model/gather.h"
#include "model/workers.h"
#include "parallel/explain.h"
#include "parallel/strategies.h"
#include "parallel/sums.h"
#include "parallel/traffic.h"

/* Describe the transpose of the rows that a sum reads or, with `of_result`, computes. */
static struct gr_transposed transposed_of(const struct gr_ranks *r, const struct gr_run *run, const struct gr_sum *sum,
                                          int of_result)
{
    const int sources = (sum->direction == GR_FORWARD) == !of_result, reads_sources = sum->direction == GR_FORWARD;

    return (struct gr_transposed){
        .prefix = gr_parallel_columns_prefix(r, sum->block->of_strategy, run->layer, sources),
        .given = gr_parallel_columns_prefix(r, sum->block->of_strategy, run->layer, reads_sources),
        .local = &r->graph.part->local,
        .of_extrema = gr_parallel_config(r)->extremum != 0,
        .width = sum->width,
        .of_result = !sources,
        .stateless = gr_parallel_is_stateless(run, sum),
        .synchronous = r->stale.synchronous,
        .args = { .layer = run->layer,
                  .direction = sum->direction,
                  .exact = gr_parallel_is_exact(run, sum),
                  .epoch = run->epoch }
    };
}

/* Profile the parts of a transpose after its sending, from `begin` to now. */
static void received_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    gr_profile_part(&run->profile, "wait", begin, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, gr_seconds(), 0);
}

/* Profile all parts of a transpose. */
static void transposed_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    gr_parallel_sent_parts(run, pass, begin);
    received_parts(run, pass, pass->sent_at);
}

/* Return the layer for which a plan was created, or GR_ALL_ROWS. */
static int32_t slot_of(const struct gr_ranks *r, const graft_plan *plan)
{
    for (int32_t l = 0; l < r->n_layers; l++)
        if (r->plans.masked[l].plan == plan) return l;
    return GR_ALL_ROWS;
}

/* Return the blocks of a sum: all edges, or backward those of the rows that a layer computes in a step. */
static const struct gr_edge_set *blocks_of(const struct gr_ranks *r, const struct gr_sum *sum)
{
    const struct gr_edge_sets *sets = &r->columns->blocks.sets;
    const int32_t              slot = slot_of(r, sum->block->of_strategy);

    return sum->direction == GR_FORWARD || slot == GR_ALL_ROWS ? &sets->whole[sum->direction] : &sets->back[slot];
}

static int32_t begin_blocks(struct gr_ranks *r, const struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    const graft_semiring      extremum = gr_parallel_config(r)->extremum;
    const int                 is_step = run->pass != GRAFT_PASS_EVALUATION && sum->kind != GR_SUM_CONSTANT;
    const struct gr_block_sum blocks = { .set = blocks_of(r, sum),
                                         .slot = slot_of(r, sum->block->of_strategy),
                                         .rows = transposed_of(r, run, sum, 1).prefix,
                                         .columns = transposed_of(r, run, sum, 0).prefix,
                                         .width = sum->width,
                                         .layer = run->layer,
                                         .direction = sum->direction,
                                         .epoch = run->epoch,
                                         .alone = r->columns->transpose.exchange.is_repeat,
                                         .x = r->columns->transpose.slice[0],
                                         .semiring = extremum != 0 ? extremum : GRAFT_PLUS_TIMES,
                                         .winner = is_step ? r->columns->winner[run->layer] : NULL,
                                         .threads = run->threads,
                                         .times = run->profile.times };

    return gr_parallel_blocks_begin(&r->columns->blocks, &blocks, error);
}

/* -- counts ------------------------------------------------------------------------------------------------------- */

/* Count the records of a transpose, to rows or to columns, if it is part of a step. */
static void count_transpose(struct gr_ranks *r, const struct gr_run *run, const struct gr_transposed *what, int to_rows)
{
    const struct gr_exchange *pass = &r->columns->transpose.exchange;
    const struct gr_grid     *grid = &r->columns->grid;
    const struct gr_codec    *codec = &pass->messages->begun.codec;
    const int32_t             at = run->layer * GR_DIRECTIONS + (int32_t)what->args.direction, n = r->comm->n_ranks;
    const int32_t             c = r->columns->grid.columns;
    const int64_t             bytes = gr_halo_messages_row_bytes(pass->messages, &pass->args);

    if (pass->is_repeat || run->pass == GRAFT_PASS_EVALUATION) return;
    for (int32_t q = 0; q < n; q++) {
        struct gr_transpose_flow *flow = &r->traffic.turned[(int64_t)at * n + q];

        gr_halo_send_stats_add(&r->traffic.pairs[(int64_t)at * n + q], &pass->messages->sent[q]);
        for (int32_t peer = q / c * c; peer < (q / c + 1) * c; peer++) {
            const int64_t elements[GR_SIDES] = {
                gr_parallel_transpose_elements(grid, what, to_rows ? peer : q, to_rows ? q : peer),
                gr_parallel_transpose_elements(grid, what, to_rows ? q : peer, to_rows ? peer : q)
            };

            for (int side = 0; side < GR_SIDES && peer != q; side++) {
                const int64_t records = gr_chunk_count(elements[side], GR_RECORD);

                flow->rows[side] += records;
                flow->bytes[side] += gr_parallel_transpose_message_bytes(pass->messages, elements[side], bytes);
                flow->messages[side] += records > 0;
            }
        }
        flow->exchanges++;
        flow->bits = codec->bits;
    }
    if (codec->bits <= 8) r->traffic.sent[at].code = codec->code;
    if (codec->bits <= 8) r->traffic.sent[at].rounding = codec->rounding;
}

/* Count the blocks of edges that were received in the last sum, if it is part of a step. */
static void count_blocks(struct gr_ranks *r, const struct gr_run *run)
{
    const struct gr_blocks *b = &r->columns->blocks;
    const int32_t           at = run->layer * GR_DIRECTIONS + (int32_t)b->sum.direction, n = r->comm->n_ranks;

    if (run->pass == GRAFT_PASS_EVALUATION || !b->streams) return;
    for (int32_t q = 0; q < n; q++) {
        struct gr_transpose_flow *flow = &r->traffic.turned[(int64_t)at * n + q];

        for (int side = 0; side < GR_SIDES; side++)
            flow->bytes[side] += gr_parallel_blocks_traffic(b, &b->sum, q, side == GR_SEND);
        flow->edges += gr_parallel_blocks_traffic(b, &b->sum, q, 0);
    }
}

/* Count the rows exchanged between groups, if they are part of a step. The slices of ranks differ in width. */
static void count_columns(struct gr_ranks *r, const struct gr_run *run, const struct gr_sum *sum, int exact)
{
    const graft_plan         *plan = sum->block->of_strategy;
    const struct gr_exchange *pass = r->exchanges_rows ? &r->halo_rows.exchange : &plan->product.exchange;
    const struct gr_messages *messages = r->exchanges_rows ? &r->halo_rows.messages : &plan->messages;
    const int32_t             at = run->layer * GR_DIRECTIONS + (int32_t)sum->direction, n = r->comm->n_ranks;
    const int back = sum->direction == GR_BACKWARD, is_here = gr_parallel_columns_slice(r, sum->width) > 0;
    struct gr_exchange_args args = { .direction = sum->direction, .exact = exact, .dtype = GRAFT_F32 };

    if (run->pass == GRAFT_PASS_EVALUATION || r->columns->grid.n_groups == 1 ||
        r->columns->transpose.exchange.is_repeat)
        return;
    for (int32_t q = 0; q < n; q++) {
        const struct gr_flow     *flow = &(r->exchanges_rows ? r->halo_rows.flow : plan->flow)[q];
        struct gr_transpose_flow *to = &r->traffic.turned[(int64_t)at * n + q];
        const int64_t             rows[GR_SIDES] = { back ? flow->in : flow->out, back ? flow->out : flow->in };
        const int64_t             sent[GR_SIDES] = { back ? flow->messages_in : flow->messages_out,
                                         back ? flow->messages_out : flow->messages_in };

        args.width = gr_parallel_grid_slice_width(&r->columns->grid, sum->width, q % r->columns->grid.columns);
        if (args.width == 0) continue;
        if (is_here) gr_halo_send_stats_add(&r->traffic.pairs[(int64_t)at * n + q], &pass->messages->sent[q]);
        for (int side = 0; side < GR_SIDES; side++) {
            to->rows[side] += rows[side];
            to->bytes[side] += rows[side] * gr_halo_messages_row_bytes(messages, &args);
            to->messages[side] += sent[side];
        }
    }
}

/* -- transposes --------------------------------------------------------------------------------------------------- */

/* Execute the tasks recorded for workers while slices are in flight. The phase continues afterwards. */
static void do_recorded(struct gr_ranks *r, struct gr_run *run)
{
    const struct gr_exchange *pass = &r->columns->transpose.exchange;

    gr_parallel_sent_parts(run, pass, r->begin);
    gr_profile_end(&run->profile, "aggregate", r->begin, 0, 0);
    r->moving = pass->messages;
    gr_model_workers_sync(run);
    r->moving = NULL;
    r->begin = gr_profile_begin(&run->profile);
}

/* Transpose rows to slices of columns. */
static int32_t turn_to_columns(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_transpose       *t = &r->columns->transpose;
    const struct gr_transposed what = transposed_of(r, run, sum, 0);
    const int                  records = gr_model_workers_are_recording(run);

    GR_TRY(gr_parallel_transpose_columns_begin(t, &what, sum, gr_run_team(run), error));
    if (records) do_recorded(r, run);
    GR_TRY(gr_parallel_transpose_columns_end(t, &what, sum, gr_run_team(run), error));
    count_transpose(r, run, &what, 0);
    if (records) received_parts(run, &t->exchange, r->begin);
    else transposed_parts(run, &t->exchange, r->begin);
    return GRAFT_OK;
}

/* -- sums --------------------------------------------------------------------------------------------------------- */

/* Whether this rank receives boundary rows of a sum from other groups. */
static int has_halo(const struct gr_ranks *r, const struct gr_sum *sum)
{
    return r->columns->grid.n_groups > 1 && gr_parallel_columns_slice(r, sum->width) > 0;
}

/* Begin a sum: transpose rows to slices of columns, and send boundary rows of the slices to other groups. A slice
 * without columns needs no sum, neither here nor on the ranks that have the same slice in other groups. */
static int32_t columns_aggregate_begin(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                       graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);
    float *const    *slice = r->columns->transpose.slice;
    struct gr_sum    part = *sum;

    GR_TRY(gr_parallel_sync(run, sum, error));
    r->begin = gr_profile_begin(&run->profile);
    GR_TRY(turn_to_columns(r, run, sum, error));
    GR_TRY(begin_blocks(r, run, sum, error));
    if (!has_halo(r, sum)) return GRAFT_OK;
    part.x = slice[0];
    part.x_type = GRAFT_F32;
    part.out = slice[1];
    part.stride = part.width = gr_parallel_columns_slice(r, sum->width);
    part.scale = NULL;
    part.add = 0;
    GR_TRY(gr_parallel_begin_sum(r, run, &part, 0, error));
    gr_parallel_sent_parts(run, &((graft_plan *)part.block->of_strategy)->product.exchange, 0);
    return GRAFT_OK;
}

/* Let messages of the transpose progress while blocks are multiplied. */
static void poll_transpose(void *transpose)
{
    gr_comm_framed_poll(&((struct gr_transpose *)transpose)->exchange.messages->framed);
}

/* The arguments of make_slice_rows(), which computes the rows of one rank after the other. */
struct making {
    struct gr_ranks            *r;
    struct gr_team              team;
    const struct gr_transposed *what;
    graft_plan                 *plan;          /* plan of the edges from other groups, or NULL */
    int                         ended;         /* the product of `plan` has ended */
    double                      waited, added; /* seconds of waiting for its rows, and of adding them */
};

/* End the product of the edges from other groups, after the product of the first block, during which their rows were in
 * flight. */
static int32_t end_halo(struct making *m, graft_error *error)
{
    const double begin = gr_seconds();

    if (m->ended) return GRAFT_OK;
    m->ended = 1;
    GR_TRY(gr_spmm_end(m->plan, error));
    m->waited = m->plan->product.exchange.received_at - begin;
    m->added = gr_seconds() - m->plan->product.exchange.received_at;
    return GRAFT_OK;
}

static int32_t make_slice_rows(void *arg, int32_t rank, float *out, graft_error *error)
{
    struct making *m = arg;

    GR_TRY(gr_parallel_blocks_multiply(&m->r->columns->blocks, rank, out, error));
    if (m->plan == NULL) return GRAFT_OK;
    GR_TRY(end_halo(m, error));
    gr_parallel_transpose_add_result(&m->r->columns->transpose, m->what, rank, out, m->team);
    return GRAFT_OK;
}

/* Compute slices block by block, and transpose them to rows. */
static int32_t turn_to_rows(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, graft_plan *plan,
                            graft_error *error)
{
    struct gr_transpose *t = &r->columns->transpose;
    struct gr_blocks    *blocks = &r->columns->blocks;
    struct gr_transposed what = transposed_of(r, run, sum, 1);
    struct making        making = { .r = r, .team = gr_run_team(run), .what = &what, .plan = plan };
    double               begin = gr_seconds();

    what.make = make_slice_rows;
    what.make_arg = &making;
    /* Own results follow the sums from other groups. */
    what.own = t->slice[1];
    if (plan != NULL)
        what.own += gr_parallel_grid_rows(t->grid, t->grid->n_levels) * gr_parallel_columns_slice(r, sum->width);
    blocks->poll = poll_transpose;
    blocks->poll_arg = t;
    GR_TRY(gr_parallel_transpose_to_rows(t, &what, sum, gr_run_team(run), error));
    count_transpose(r, run, &what, 1);
    count_blocks(r, run);
    gr_profile_part(&run->profile, "local", begin, begin + blocks->seconds, 0);
    begin += blocks->seconds;
    if (plan != NULL) {
        gr_profile_part(&run->profile, "wait", begin, begin + making.waited, 1);
        begin += making.waited;
        gr_profile_part(&run->profile, "unpack", begin, begin + making.added, 0);
        begin += making.added;
    }
    transposed_parts(run, &t->exchange, begin);
    return GRAFT_OK;
}

/* Return the number of edges of a sum whose result has a prefix of rows. */
static double count_edges(const struct gr_ranks *r, const struct gr_sum *sum, int32_t prefix)
{
    const struct gr_grid   *grid = &r->columns->grid;
    const graft_plan *const plan = sum->block->of_strategy;
    double                  edges = (double)gr_csr_entries(&plan->part->remote);

    for (int32_t q = grid->first; q < grid->first + grid->columns; q++)
        edges += (double)gr_parallel_edge_entries(blocks_of(r, sum), grid, q, prefix);
    return edges;
}

/* End a sum: compute the slice block by block, and transpose it to rows. */
static int32_t columns_aggregate_end(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                                     graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);
    const int32_t    prefix = transposed_of(r, run, sum, 1).prefix;

    count_columns(r, run, sum, gr_parallel_is_exact(run, sum));
    GR_TRY(turn_to_rows(r, run, sum, has_halo(r, sum) ? sum->block->of_strategy : NULL, error));
    gr_parallel_end_phase(r, run, gr_parallel_columns_slice(r, sum->width), count_edges(r, sum, prefix),
                          (double)gr_parallel_grid_rows(&r->columns->grid, prefix));
    return GRAFT_OK;
}

/* -- extrema ------------------------------------------------------------------------------------------------------ */

/* Exchange rows of the halo of the group, in the columns of this rank; they follow the rows of the group. All ranks
 * count the sent rows. */
static int32_t exchange_group_halo(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, float *x,
                                   graft_error *error)
{
    struct gr_halo_rows *rows = &r->halo_rows;
    struct gr_halo_pass  pass = { .direction = sum->direction,
                                  .layer = run->layer,
                                  .exact = gr_parallel_is_exact(run, sum),
                                  .stateless = gr_parallel_is_stateless(run, sum),
                                  .synchronous = r->stale.synchronous,
                                  .epoch = run->epoch };
    double               begin = gr_profile_begin(&run->profile), sent;
    int32_t              rc = GRAFT_OK;

    if (!has_halo(r, sum)) goto done;
    gr_halo_rows_place(rows, &pass, x, gr_parallel_grid_rows(&r->columns->grid, r->columns->grid.n_levels),
                       gr_parallel_columns_slice(r, sum->width));
    GR_TRY_DONE(gr_halo_rows_begin(rows, &pass, gr_run_team(run), error));
    gr_parallel_sent_parts(run, &rows->exchange, begin);
    sent = gr_seconds();
    GR_TRY_DONE(gr_halo_rows_end(rows, gr_run_team(run), error));
    gr_parallel_received_parts(run, &rows->exchange, 0, sent, 0);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
done:
    if (rc == GRAFT_OK) count_columns(r, run, sum, pass.exact);
    return rc;
}

/* Add the gradients of extrema to the rows of the winners. Winners are stored block by block, gradients in the order of
 * the group. */
static void scatter_blocks(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum)
{
    const struct gr_grid *grid = &r->columns->grid;
    float *const         *slice = r->columns->transpose.slice;
    const int32_t         prefix = transposed_of(r, run, sum, 0).prefix;
    const int64_t         columns = gr_parallel_columns_slice(r, sum->width);
    const int64_t seen = gr_parallel_grid_rows(grid, transposed_of(r, run, sum, 1).prefix) + r->columns->blocks.beyond;
    struct gr_winners from = { r->columns->winner[run->layer], GRAFT_I32, 0, seen, seen, columns, .adds = 0 };

    for (int32_t q = grid->first; q < grid->first + grid->columns; q++) {
        for (int32_t level = 0; level < prefix; level++) {
            const int64_t place = grid->place[(int64_t)q * grid->n_levels + level];

            from.n_dst = gr_parallel_grid_rows_of(grid, q, level + 1) - gr_parallel_grid_rows_of(grid, q, level);
            gr_model_scatter_extrema(run, &from, slice[0] + place * columns, slice[1], NULL);
            from.winner = (const int32_t *)from.winner + from.n_dst * columns;
            from.adds = 1;
        }
    }
}

static int32_t extrema_backward(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    struct gr_transpose       *t = &r->columns->transpose;
    const struct gr_transposed what = transposed_of(r, run, sum, 1);
    double                     begin;

    if (gr_parallel_columns_slice(r, sum->width) > 0) scatter_blocks(r, run, sum);
    GR_TRY(exchange_group_halo(r, run, sum, t->slice[1], error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(gr_parallel_transpose_to_rows(t, &what, sum, gr_run_team(run), error));
    count_transpose(r, run, &what, 1);
    transposed_parts(run, &t->exchange, begin);
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
    return GRAFT_OK;
}

static int32_t columns_extrema(struct gr_strategy *strategy, struct gr_run *run, const struct gr_sum *sum,
                               graft_error *error)
{
    struct gr_ranks *r = gr_parallel_of(strategy);
    double           begin;

    r->begin = gr_profile_begin(&run->profile);
    GR_TRY(turn_to_columns(r, run, sum, error));
    gr_profile_end(&run->profile, "aggregate", r->begin, 0, 0);
    if (sum->direction == GR_BACKWARD) return extrema_backward(r, run, sum, error);
    GR_TRY(exchange_group_halo(r, run, sum, r->columns->transpose.slice[0], error));
    begin = gr_profile_begin(&run->profile);
    GR_TRY(begin_blocks(r, run, sum, error));
    GR_TRY(turn_to_rows(r, run, sum, NULL, error));
    gr_profile_end(&run->profile, "aggregate", begin, 0, 0);
    return GRAFT_OK;
}

/* -- the tables --------------------------------------------------------------------------------------------------- */

/* Check the options: only sums and extrema can be computed from slices of columns, and a record of a transpose has
 * elements of several rows, so it has no adaptive width. */
static int32_t check_columns(const struct gr_ranks *r, graft_error *error)
{
    const struct gr_halo_options *halo = gr_halo_options(r->context);

    if (gr_parallel_config(r)->kind->attends)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'parallel' is %s, which splits columns of sums over neighbours, but attention reads "
                       "whole rows; expected parallel=partition",
                       r->base.ops->name);
    if (r->wish.trains && (gr_halo_codec_of(halo, GR_FORWARD).adaptive || gr_halo_codec_of(halo, GR_BACKWARD).adaptive))
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "option 'parallel' is %s, where a record has elements of several rows, whose ranges decide no width; "
            "expected another halo.codec than adaptive",
            r->base.ops->name);
    return GRAFT_OK;
}

static int32_t create_columns(const struct gr_strategy_ops *ops, const struct gr_strategy_wish *wish,
                              struct gr_strategy **strategy, graft_error *error)
{
    struct gr_ranks *r;

    GR_TRY(GR_NEW(wish->run->context, r, 1, error));
    *strategy = &r->base;
    GR_TRY(gr_parallel_init(r, ops, wish, error));
    GR_TRY(check_columns(r, error));
    return GR_NEW(r->context, r->columns, 1, error);
}

static int32_t feature_create(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error)
{
    return create_columns(&gr_feature_ops, wish, strategy, error);
}

/* Create strategy `grid`, where extrema also need the rows of the halo of the group from other groups. */
static int32_t grid_create(const struct gr_strategy_wish *wish, struct gr_strategy **strategy, graft_error *error)
{
    GR_TRY(create_columns(&gr_grid_ops, wish, strategy, error));
    gr_parallel_of(*strategy)->exchanges_rows = gr_run_config(wish->run)->extremum != 0;
    (*strategy)->all_rows = gr_parallel_of(*strategy)->exchanges_rows;
    return GRAFT_OK;
}

static int32_t columns_prepare_step(struct gr_strategy *strategy, struct gr_run *run, graft_error *error)
{
    GR_TRY(check_columns(gr_parallel_of(strategy), error));
    return gr_parallel_prepare_step(strategy, run, error);
}

static const char *const variants[] = { "feature.graph=replicate", "feature.graph=stream" };

/* Both strategies use the same functions; they differ in the number of groups. */
#define SHARED_COLUMNS(word, creates)                                                                                  \
    { .name = word,                                                                                                    \
      .records = 1,                                                                                                    \
      .variants = variants,                                                                                            \
      .refuses_batches = "parallel=feature or grid: a batch has only vertices of its rank",                            \
      .make = { .create = creates,                                                                                     \
                .destroy = gr_parallel_columns_destroy,                                                                \
                .graph = gr_parallel_columns_graph,                                                                    \
                .need = gr_parallel_columns_need,                                                                      \
                .hold = gr_parallel_columns_hold,                                                                      \
                .reserve = gr_parallel_columns_reserve,                                                                \
                .values_begin = gr_parallel_columns_values_begin,                                                      \
                .values_end = gr_parallel_columns_values_end },                                                        \
      .report = { .traffic = gr_parallel_traffic_of,                                                                   \
                  .traffic_item = gr_parallel_traffic_item,                                                            \
                  .traffic_pair = gr_parallel_traffic_pair,                                                            \
                  .explain = gr_parallel_columns_explain },                                                            \
      .prepare_step = columns_prepare_step,                                                                            \
      .begin_step = gr_parallel_begin_step,                                                                            \
      .end_step = gr_parallel_end_step,                                                                                \
      .forget = gr_parallel_forget,                                                                                    \
      .aggregate_begin = columns_aggregate_begin,                                                                      \
      .aggregate_end = columns_aggregate_end,                                                                          \
      .extrema = columns_extrema,                                                                                      \
      .sum = gr_parallel_sum,                                                                                          \
      .sum_gradients = gr_parallel_sum_gradients,                                                                      \
      .agree = gr_parallel_agree,                                                                                      \
      .poll = gr_parallel_poll }

const struct gr_strategy_ops gr_feature_ops = SHARED_COLUMNS("feature", feature_create);
const struct gr_strategy_ops gr_grid_ops = SHARED_COLUMNS("grid", grid_create);
