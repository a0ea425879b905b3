/* Sums over neighbours, and exchanges of boundary rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/sums.h"

#include "base/assert.h"
#include "base/dense_view.h"
#include "model/workers.h"

int32_t gr_parallel_is_exact(const struct gr_run *run, const struct gr_sum *sum)
{
    return sum->kind == GR_SUM_CONSTANT || run->pass == GRAFT_PASS_EVALUATION;
}

int gr_parallel_is_stateless(const struct gr_run *run, const struct gr_sum *sum)
{
    return gr_parallel_is_exact(run, sum) || sum->kind == GR_SUM_LABELS;
}

void gr_parallel_sent_parts(struct gr_run *run, const struct gr_exchange *pass, double begin)
{
    if (pass->settled_at > 0) gr_profile_part(&run->profile, "wait", begin, pass->settled_at, 1);
    gr_profile_part(&run->profile, "pack", pass->settled_at > 0 ? pass->settled_at : begin, pass->sent_at, 0);
}

void gr_parallel_received_parts(struct gr_run *run, const struct gr_exchange *pass, double local, double computed,
                                double end)
{
    gr_profile_part(&run->profile, "local", local, computed, 0);
    gr_profile_part(&run->profile, "wait", computed, pass->received_at, 1);
    gr_profile_part(&run->profile, "unpack", pass->received_at, end, 0);
}

int32_t gr_parallel_begin_sum(struct gr_ranks *r, struct gr_run *run, const struct gr_sum *sum, int records,
                              graft_error *error)
{
    graft_plan *const          plan = sum->block->of_strategy;
    const int                  back = sum->direction == GR_BACKWARD;
    const int32_t              exact = gr_parallel_is_exact(run, sum);
    const int                  stateless = gr_parallel_is_stateless(run, sum);
    const graft_csr           *local = &plan->part->local;
    const int64_t              n_in = back ? local->n_rows : local->n_cols;
    const graft_dense          x = gr_dense_view(sum->x, sum->x_type, n_in, sum->width, sum->stride);
    const int64_t              n_out = back ? local->n_cols : local->n_rows;
    const graft_dense          out = gr_dense_view(sum->out, GRAFT_F32, n_out, sum->width, sum->width);
    const graft_aggregate_args args = { .size = sizeof args,
                                        .semiring = GRAFT_PLUS_TIMES,
                                        .flags = (back ? GRAFT_AGGREGATE_TRANSPOSE : 0) |
                                                 (sum->add ? GRAFT_AGGREGATE_ACCUMULATE : 0) |
                                                 (exact ? GRAFT_AGGREGATE_EXACT : 0) |
                                                 (stateless ? GRAFT_AGGREGATE_STATELESS : 0) |
                                                 (r->stale.synchronous ? GRAFT_AGGREGATE_SYNCHRONOUS : 0),
                                        .layer = run->layer,
                                        .epoch = run->epoch,
                                        .threads = run->threads,
                                        .x = &x,
                                        .out = &out,
                                        .row_scale = sum->scale,
                                        .times = run->profile.times };

    GR_ASSERT(sum->width <= sum->stride);
    return records ? gr_spmm_send(plan, &args, error) : gr_spmm_begin(plan, &args, error);
}

static struct gr_extent extent_at(const void *begin, int64_t bytes)
{
    return (struct gr_extent){ begin, (const char *)begin + (begin != NULL ? bytes : 0) };
}

int32_t gr_parallel_sync(struct gr_run *run, const struct gr_sum *sum, graft_error *error)
{
    const struct gr_block     *block = sum->block;
    const graft_plan *const    plan = block->of_strategy;
    const int64_t              n = sum->direction == GR_BACKWARD ? block->n_dst : block->n_src;
    const struct gr_plan_rows *rows = &plan->rows[gr_side_of(sum->direction, GR_RECEIVE)];

    if (!gr_model_workers_are_recording(run)) return GRAFT_OK;
    return gr_model_workers_sync_for(run, extent_at(sum->x, n * sum->stride * gr_dtype_bytes(sum->x_type)),
                                     extent_at(rows->buffer, rows->capacity), error);
}

void gr_parallel_end_phase(const struct gr_ranks *r, struct gr_run *run, int64_t columns, double edges, double rows)
{
    gr_profile_end(&run->profile, "aggregate", r->begin, 4 * ((edges + rows) * (double)columns + edges),
                   edges * (double)columns);
}
