/* Inference: begin and end, rollouts, ensembles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/crc.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "network/fields.h"
#include "network/network.h"

#include <math.h>
#include <string.h>

int32_t gr_network_check_idle(const graft_network *n, graft_error *error)
{
    if (!n->use.begun) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "an inference of this network has begun and not ended; call end() first");
}

/* Standardise `count` values of column j, of nodes from `first` on, and write them to the inputs of the network. */
static void standardise(graft_network *n, const double *values, int64_t first, int64_t count, int64_t j)
{
    const struct gr_statistics *s = &n->statistics[GR_STATISTICS_NODE];
    const double                mean = s->mean[j], scale = 1 / s->deviation[j];
    const int64_t               width = n->columns.node_in, at = first * width + j;

    if (n->parameters.dtype == GRAFT_F64) {
        double *nodes = (double *)n->arrays.nodes + at;

        for (int64_t i = 0; i < count; i++) nodes[i * width] = (values[i] - mean) * scale;
    } else {
        float *nodes = (float *)n->arrays.nodes + at;

        for (int64_t i = 0; i < count; i++) nodes[i * width] = (float)((values[i] - mean) * scale);
    }
}

static void take_input(graft_network *n, const graft_field *input)
{
    const int64_t n_nodes = n->mesh->n_nodes;
    double        column[GR_FIELD_ROWS];

    for (int64_t first = 0; first < n_nodes; first += GR_FIELD_ROWS) {
        const int64_t count = n_nodes - first < GR_FIELD_ROWS ? n_nodes - first : GR_FIELD_ROWS;

        for (int64_t j = 0; j < n->columns.in; j++) {
            gr_network_field_read_column(input, n->mesh->row_of + first, count, j, column);
            standardise(n, column, first, count, j);
            for (int64_t i = 0; j < n->columns.out && i < count; i++)
                n->arrays.values[(first + i) * n->columns.out + j] = column[i];
        }
    }
}

int32_t gr_network_check_finite(const graft_network *n, const graft_field *field, const char *name, int only_free,
                                graft_error *error)
{
    double column[GR_FIELD_ROWS];

    for (int64_t first = 0; first < n->mesh->n_nodes; first += GR_FIELD_ROWS) {
        const int64_t left = n->mesh->n_nodes - first, count = left < GR_FIELD_ROWS ? left : GR_FIELD_ROWS;

        for (int64_t j = 0; j < field->n_columns; j++) {
            gr_network_field_read_column(field, n->mesh->row_of + first, count, j, column);
            for (int64_t i = 0; i < count; i++) {
                const double x = n->parameters.dtype == GRAFT_F64 ? column[i] : (double)(float)column[i];

                if (isfinite(x) || (only_free && !n->of_node.is_free[first + i])) continue;
                return gr_fail(error, GRAFT_ERR_NONFINITE, "%s has %g in row %lld, column %lld; expected finite values",
                               name, column[i], gr_network_row(n, first + i), (long long)j);
            }
        }
    }
    return GRAFT_OK;
}

int32_t gr_network_check_input(const graft_network *n, const graft_field *input, graft_error *error)
{
    return n->checks.refuses_nonfinite ? gr_network_check_finite(n, input, "the input", 0, error) : GRAFT_OK;
}

/* Convert outputs of the network to values in units of the data, which replace the inputs. */
static void finish_values(graft_network *n)
{
    const struct gr_statistics *s = &n->statistics[GR_STATISTICS_OUTPUT];
    const int                   changes = n->predicts == GRAFT_PREDICTS_CHANGE;

    for (int64_t i = 0; i < n->mesh->n_nodes; i++) {
        double *values = n->arrays.values + i * n->columns.out;

        if (changes && !n->of_node.is_free[i]) continue;
        for (int64_t j = 0; j < n->columns.out; j++) {
            double y = gr_network_at(n, n->arrays.output, i * n->columns.out + j);

            if (n->columns.adds_input) y += gr_network_at(n, n->arrays.nodes, i * n->columns.node_in + j);
            y = s->mean[j] + y * s->deviation[j];
            values[j] = changes ? values[j] + y : y;
        }
    }
}

/* Whether results contain this row of the host. */
static int has_result(const graft_network *n, int64_t row)
{
    const int32_t node = n->mesh->node_of[row];

    return node >= 0 && (n->predicts == GRAFT_PREDICTS_CHANGE || n->of_node.is_free[node]);
}

/* Write values [n_nodes x n_out] to the host's rows that results contain. */
static void give_values(const graft_network *n, const double *values, const graft_field *output)
{
    for (int64_t row = 0; row < n->mesh->n_rows; row++) {
        if (!has_result(n, row)) continue;
        for (int64_t j = 0; j < n->columns.out; j++)
            gr_network_field_put(output, row, j, values[n->mesh->node_of[row] * n->columns.out + j]);
    }
}

/* End an inference, and write its results to n->arrays.values. */
static int32_t end_values(graft_network *n, int32_t status, graft_error *error)
{
    const double begin = gr_network_clock(n);
    int32_t      rc = status;

    GR_ASSERT(n->use.begun);
    n->use.begun = 0;
    if (status == GRAFT_OK || n->mesh->comm->n_ranks > 1)
        rc = gr_mgn_forward_end(n->mgn, status, n->arrays.output, gr_network_team(n), error);
    if (rc == GRAFT_OK) finish_values(n);
    gr_network_measure(n, GR_PHASE_END, begin);
    return rc;
}

int32_t gr_network_compare_field(graft_network *n, int32_t rc, const graft_field *field, const char *name,
                                 int is_target, graft_error *error)
{
    const int64_t          columns = is_target ? n->columns.out : n->columns.in;
    double                *values = NULL;
    struct gr_network_rows rows = { NULL, GRAFT_F64, columns, columns, is_target };

    if (rc == GRAFT_OK) rc = GR_NEW(n->context, values, n->mesh->n_nodes * columns, error);
    GR_TRY_DONE(gr_comm_agree_on(n->mesh->comm, rc, error));
    gr_network_copy_field(n, field, GRAFT_F64, values);
    rows.data = values;
    rc = gr_network_compare_copies(n, &rows, name, error);
done:
    gr_free(n->context, values);
    return rc;
}

/* A rank that refuses its input computes with the previous values up to the end, because other ranks wait for its
 * messages. end() returns the refusal on all ranks. */
int32_t gr_network_begin(graft_network *n, int32_t status, const graft_field *input, graft_error *error)
{
    const double begin = gr_network_clock(n);
    int32_t      rc = GRAFT_OK;

    if (n->checks.compares) GR_TRY_DONE(gr_network_compare_field(n, status, input, "the input", 0, error));
    if (status == GRAFT_OK) take_input(n, input);
    else if (n->mesh->comm->n_ranks == 1) return status;
    rc = gr_mgn_forward_begin(n->mgn, status, gr_nn_array(&n->parameters, GR_COPY_VALUE), n->arrays.nodes,
                              n->arrays.edges, 0, gr_network_team(n), error);
    n->use.begun = rc == GRAFT_OK;
    gr_network_measure(n, GR_PHASE_BEGIN, begin);
done:
    return rc;
}

int32_t gr_network_end(graft_network *n, int32_t status, const graft_field *output, graft_error *error)
{
    const int32_t rc = end_values(n, status, error);

    if (rc == GRAFT_OK && output != NULL) give_values(n, n->arrays.values, output);
    return rc;
}

/* Copy the initial state of a rollout to its state, at all rows except ghosts. */
static void copy_state(const graft_network *n, const graft_field *from, const graft_field *to)
{
    for (int64_t row = 0; row < n->mesh->n_rows && from->data != to->data; row++)
        for (int64_t j = 0; j < n->columns.in && n->mesh->node_of[row] >= 0; j++)
            gr_network_field_put(to, row, j, gr_mesh_field_at(from, row, j));
}

int32_t gr_network_rollout(graft_network *n, int32_t rc, const graft_rollout *args, graft_error *error)
{
    static const char *const names[] = { "args.steps", "whether args.after is given" };
    const uint64_t           values[] = { (uint64_t)args->steps, args->after != NULL };
    graft_field              output;

    GR_TRY_DONE(gr_comm_agree_same(n->mesh->comm, rc, names, values, 2, error));
    output = *args->state;
    output.n_columns = n->columns.out;
    copy_state(n, args->initial, args->state);
    for (int32_t step = 1; step <= args->steps; step++) {
        GR_TRY_DONE(gr_network_begin(n, GRAFT_OK, args->state, error));
        GR_TRY_DONE(gr_network_end(n, GRAFT_OK, &output, error));
        if (args->after == NULL) continue;
        if (args->after(args->arg, step) != 0)
            rc = gr_fail(error, GRAFT_ERR_CANCELLED, "args.after asked to end the rollout after step %d of %d", step,
                         args->steps);
        GR_TRY_DONE(gr_comm_agree(n->mesh->comm, rc, error));
    }
done:
    return rc;
}

/* Add the k-th result, k being 1 or more, to a running mean and sum of squared deviations (Welford 1962). */
static void add_result(const graft_network *n, int32_t k, double *mean, double *squares)
{
    for (int64_t i = 0; i < n->mesh->n_nodes * n->columns.out; i++) {
        const double d = n->arrays.values[i] - mean[i];

        mean[i] += d / k;
        squares[i] += d * (n->arrays.values[i] - mean[i]);
    }
}

/* Check that all ranks have the same networks in the same order, with the same states. */
static int32_t agree_on_members(graft_network *const *networks, int32_t count, int32_t rc, graft_error *error)
{
    static const char *const names[] = { "count", "networks[] in their order (CRC32C)",
                                         "training steps, and items set by state_set(), of networks[] (CRC32C)" };
    uint32_t                 members = 0, states = 0;

    for (int32_t k = 0; rc == GRAFT_OK && k < count; k++) {
        members = gr_crc(members, &networks[k]->number, sizeof networks[k]->number);
        states = gr_crc(states, &networks[k]->progress.steps, sizeof networks[k]->progress.steps);
        states = gr_crc(states, &networks[k]->progress.digest, sizeof networks[k]->progress.digest);
    }
    return gr_comm_agree_same(networks[0]->mesh->comm, rc, names, (uint64_t[]){ (uint64_t)count, members, states }, 3,
                              error);
}

int32_t gr_network_ensemble(graft_network *const *networks, int32_t count, int32_t rc, const graft_field *input,
                            const graft_field *mean, const graft_field *deviation, graft_error *error)
{
    graft_network *n = networks[0];
    const int64_t  size = n->mesh->n_nodes * n->columns.out;
    double        *means = NULL, *squares = NULL;

    if (rc == GRAFT_OK) rc = GR_NEW(n->context, means, size, error);
    if (rc == GRAFT_OK) rc = GR_NEW(n->context, squares, size, error);
    GR_TRY_DONE(agree_on_members(networks, count, rc, error));
    for (int32_t k = 0; k < count; k++) {
        GR_TRY_DONE(gr_network_begin(networks[k], GRAFT_OK, input, error));
        GR_TRY_DONE(end_values(networks[k], GRAFT_OK, error));
        add_result(networks[k], k + 1, means, squares);
    }
    for (int64_t i = 0; i < size; i++) squares[i] = sqrt(squares[i] / count);
    if (mean != NULL) give_values(n, means, mean);
    if (deviation != NULL) give_values(n, squares, deviation);
done:
    gr_free(n->context, means);
    gr_free(n->context, squares);
    return rc;
}
