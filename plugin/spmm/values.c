/* Replaces the edge values of plans. The choice of rows to send and the vertex covers do not change.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/crc.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "dgraph/halo.h"
#include "dgraph/part.h"
#include "spmm/plan.h"

/* Allocate new values for a matrix; none if it is NULL. If `original` is given, fill them with its values,
 * transposed. */
static int32_t new_values(const graft_plan *plan, const graft_matrix *matrix, const graft_csr *original, void **values,
                          graft_error *error)
{
    char   *made = NULL;
    int32_t rc = GRAFT_OK;

    if (matrix == NULL) return GRAFT_OK;
    rc = GR_NEW(plan->context, made, gr_csr_entries(&matrix->csr) * gr_dtype_bytes(plan->value_type), error);
    *values = made;
    if (rc < 0 || original == NULL) return rc;
    return gr_csr_transpose_values(plan->context, original, &matrix->csr, 1, made, error);
}

/* Compute the values of the backward matrices, which are transposes of the forward matrices. */
static int32_t turn_plan_values(const graft_plan *plan, const struct gr_part *part, struct gr_plan_values *v,
                                graft_error *error)
{
    const struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD], *backward = &plan->matrices[GR_BACKWARD];
    graft_csr                      local = plan->part->local, sent = forward->sent->csr;
    graft_csr                      received = forward->received->csr;

    local.values = part->local.values;
    sent.values = v->sent;
    received.values = v->received;
    GR_TRY(new_values(plan, backward->local, &local, &v->back_local, error));
    GR_TRY(new_values(plan, backward->sent, &received, &v->back_sent, error));
    return new_values(plan, backward->received, &sent, &v->back_received, error);
}

int32_t gr_plan_values_begin(graft_plan *plan, const struct gr_part *part, struct gr_plan_values *v, graft_error *error)
{
    const struct gr_plan_matrices *forward = &plan->matrices[GR_FORWARD];
    int32_t                        rc;

    GR_ASSERT(plan->sources.asked != NULL);
    rc = new_values(plan, forward->sent, NULL, &v->sent, error);
    if (rc == GRAFT_OK) rc = new_values(plan, forward->received, NULL, &v->received, error);
    GR_TRY(gr_comm_agree(plan->comm, rc, error));
    GR_TRY(gr_plan_lists_values(plan, part->remote.values, v->sent, v->received, error));
    return gr_comm_agree(plan->comm, turn_plan_values(plan, part, v, error), error);
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

/* Check that no pass has begun, and that no trainer uses the graph. Besides the host, its plans and its halos, only
 * trainers and their plans refer to a graph. Trainers borrow its values, and have their own update(). */
static int32_t check_users(const graft_graph *g, graft_error *error)
{
    int32_t users = 1;

    for (const graft_plan *plan = g->users.plans; plan != NULL; plan = plan->host.next, users++)
        if (gr_plan_has_begun(plan))
            return gr_fail(error, GRAFT_ERR_STATE, "a pass of a plan of this graph has begun and not ended");
    for (const graft_halo *halo = g->users.halos; halo != NULL; halo = halo->next) users++;
    if (g->references == users) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE,
                   "a trainer uses this graph; it takes new values by update(GRAFT_UPDATE_EDGE_VALUES)");
}

/* Check that all ranks have the same plans, which an update needs: destroy() is not collective. */
static int32_t compare_plans(const graft_graph *g, graft_error *error)
{
    static const char *const names[] = { "the number of plans of the graph",
                                         "which plans of the graph are not destroyed" };
    uint64_t                 values[2] = { 0 };

    for (const graft_plan *plan = g->users.plans; plan != NULL; plan = plan->host.next) {
        values[0]++;
        values[1] = gr_crc((uint32_t)values[1], &plan->host.serial, sizeof plan->host.serial);
    }
    return gr_comm_compare(g->comm, names, values, 2, error);
}

int32_t gr_spmm_update_values(graft_graph *g, const graft_dense *values, graft_error *error)
{
    struct gr_made_part made = { 0 };
    int32_t             rc = check_users(g, error);

    if (rc == GRAFT_OK) rc = gr_graph_check_values(g, values, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(compare_plans(g, error));
    GR_TRY_DONE(gr_graph_send_values(g, values->data, &made, error));
    for (graft_plan *plan = g->users.plans; plan != NULL; plan = plan->host.next)
        GR_TRY_DONE(gr_plan_values_begin(plan, &made.part, &plan->new_values, error));
    gr_graph_take_values(g, &made);
    for (graft_plan *plan = g->users.plans; plan != NULL; plan = plan->host.next) {
        gr_plan_values_end(plan, &plan->new_values);
        gr_halo_layers_reset(&plan->layers);
    }
done:
    for (graft_plan *plan = g->users.plans; plan != NULL; plan = plan->host.next)
        gr_plan_values_fini(plan, &plan->new_values);
    gr_graph_made_part_fini(g->context, &made);
    return rc;
}
