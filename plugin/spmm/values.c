/* New edge values in a plan. The rows that are sent and the vertex covers stay as they are.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "spmm/plan.h"

/* Allocate new values for a matrix, and fill them with the values of `original`, transposed, if given. A NULL matrix
 * needs none. */
static int32_t new_values(const graft_plan *plan, const graft_matrix *matrix, const graft_csr *original, void **values,
                          graft_error *error)
{
    char   *made = NULL;
    int32_t rc = GRAFT_OK;

    if (matrix == NULL) return GRAFT_OK;
    rc = GR_NEW(plan->context, made, gr_csr_entries(&matrix->csr) * gr_dtype_bytes(plan->value_type), error);
    *values = made;
    if (rc < 0 || original == NULL) return rc;
    return gr_csr_transpose_values(plan->context, original, &matrix->csr, made, error);
}

/* Compute the values of the backward matrices, which are transposes of the forward matrices. */
static int32_t turn_plan_values(const graft_plan *plan, const struct gr_part *part, struct gr_plan_values *v,
                                graft_error *error)
{
    const struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD], *backward = &plan->matrices[GR_BACKWARD];
    graft_csr                      local = plan->part->local, sent = forward->sent->csr;
    graft_csr                      received = forward->received->csr;
    int32_t                        rc = GRAFT_OK;

    local.values = part->local.values;
    sent.values = v->sent;
    received.values = v->received;
    GR_TRY(new_values(plan, backward->local, &local, &v->back_local, error));
    GR_TRY(new_values(plan, backward->sent, &received, &v->back_sent, error));
    rc = new_values(plan, backward->received, &sent, &v->back_received, error);
done:
    return rc;
}

int32_t gr_plan_values_begin(graft_plan *plan, const struct gr_part *part, struct gr_plan_values *v, graft_error *error)
{
    const struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD];
    struct gr_part                 revalued = *plan->part;
    struct gr_cuts                 cuts = { 0 };
    int32_t                        rc;

    GR_ASSERT(plan->source_in != NULL);
    revalued.remote.values = part->remote.values;
    rc = gr_cuts_init(plan->context, &revalued, plan->comm->n_ranks, &cuts, error);
    if (rc == GRAFT_OK) rc = new_values(plan, forward->sent, NULL, &v->sent, error);
    if (rc == GRAFT_OK) rc = new_values(plan, forward->received, NULL, &v->received, error);
    GR_TRY(gr_comm_agree(plan->comm, rc, error));
    gr_cuts_restore(&cuts, plan->source_in);
    GR_TRY(gr_lists_values(plan, &cuts, v->sent, v->received, error));
    rc = gr_comm_agree(plan->comm, turn_plan_values(plan, part, v, error), error);
done:
    gr_cuts_fini(plan->context, &cuts);
    return rc;
}

void gr_plan_values_end(graft_plan *plan, struct gr_plan_values *v)
{
    struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD], *backward = &plan->matrices[GR_BACKWARD];

    gr_matrix_set_values(forward->local, plan->part->local.values);
    gr_matrix_swap_values(forward->sent, &v->sent);
    gr_matrix_swap_values(forward->received, &v->received);
    if (backward->local == NULL) return;
    gr_matrix_swap_values(backward->local, &v->back_local);
    gr_matrix_swap_values(backward->sent, &v->back_sent);
    gr_matrix_swap_values(backward->received, &v->back_received);
}

void gr_plan_values_fini(const graft_plan *plan, struct gr_plan_values *v)
{
    void *const blocks[] = { v->sent, v->received, v->back_local, v->back_sent, v->back_received };

    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) gr_free(plan->context, blocks[i]);
    *v = (struct gr_plan_values){ 0 };
}
