/* Runs networks on the parts of a mesh, see harness/networks.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/networks.h"

#include "graft_load.h"

#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double network_value(const struct test_mesh *mesh, int64_t v, int64_t j, double time)
{
    double phase = (double)j;

    for (int c = 0; c < mesh->dim; c++) phase += (1 + 0.3 * c) * mesh->x[v * mesh->dim + c];
    return 5 * (double)j + cos(phase - time) * exp(-0.1 * time);
}

int network_is_free(const struct network_case *what, int64_t v)
{
    return !what->has_boundary || what->cut.mesh->x[v * what->cut.mesh->dim] > 0.5;
}

graft_field network_field(const struct network_rank *n, int64_t columns)
{
    const struct network_case *what = n->what;
    graft_field                f = { .size = sizeof f, .dtype = what->dtype, .n_columns = columns };

    f.n_rows = n->part.args.n_rows;
    f.row_stride = what->by_columns ? 1 : columns + 1;
    f.column_stride = what->by_columns ? f.n_rows + 1 : 1;
    f.data = oracle_new((f.n_rows + 1) * (columns + 1), sizeof(double));
    output_clear(f.data, (size_t)((f.n_rows + 1) * (columns + 1)) * sizeof(double));
    return f;
}

double network_field_at(const graft_field *f, int64_t row, int64_t column)
{
    return sample_at(f->data, f->dtype, row * f->row_stride + column * f->column_stride);
}

void network_field_put(const graft_field *f, int64_t row, int64_t column, double value)
{
    sample_put(f->data, f->dtype, row * f->row_stride + column * f->column_stride, value);
}

int network_has_row(const struct network_rank *n, int32_t rank, int64_t row)
{
    const struct mesh_cut *cut = &n->what->cut;

    return cut->how & CUT_SHARED || cut->owner[n->part.node[row]] == rank;
}

static int is_ghost(const struct network_rank *n, int64_t row)
{
    graft_mesh_view view = GRAFT_INIT(graft_mesh_view);

    if (n->mesh == NULL || n->meshes->view(n->mesh, &view, NULL) < 0) return 0;
    return view.node_of[row] < 0;
}

int network_is_written(const struct network_rank *n, int64_t row)
{
    if (is_ghost(n, row)) return 0;
    return n->what->predicts == GRAFT_PREDICTS_CHANGE || !n->what->has_boundary || n->is_free[row];
}

graft_field network_state(const struct network_rank *n, int64_t columns, double time)
{
    graft_field f = network_field(n, columns);

    for (int64_t row = 0; row < f.n_rows; row++)
        for (int64_t j = 0; j < columns; j++)
            network_field_put(&f, row, j,
                              is_ghost(n, row) ? (double)NAN
                                               : network_value(n->what->cut.mesh, n->part.node[row], j, time));
    return f;
}

static void describe_rows(struct network_rank *n)
{
    const struct network_case *what = n->what;
    const int64_t              rows = n->part.args.n_rows;

    n->is_free = oracle_new(rows, 1);
    n->loss_weight = oracle_new(rows, sizeof *n->loss_weight);
    n->constant = network_field(n, NETWORK_CONSTANT);
    for (int64_t row = 0; row < rows; row++) {
        const int32_t v = n->part.node[row];

        n->is_free[row] = (uint8_t)network_is_free(what, v);
        n->loss_weight[row] = 1 + 0.5 * (v % 3);
        network_field_put(&n->constant, row, 0, network_is_free(what, v) ? 0.25 : -1);
    }
    n->args = GRAFT_INIT(graft_network_args);
    n->args.predicts = what->predicts;
    n->args.n_in = NETWORK_IN;
    n->args.n_out = NETWORK_OUT;
    n->args.constant = &n->constant;
    n->args.is_free = what->has_boundary ? n->is_free : NULL;
    n->args.loss_weight = what->has_boundary ? n->loss_weight : NULL;
}

int32_t network_rank_init(struct host *host, const struct network_case *what, struct network_rank *n)
{
    const graft_api *api = host->api;
    int32_t          rc;

    memset(n, 0, sizeof *n);
    n->what = what;
    n->meshes = graft_interface(api, GRAFT_MESH_ID, sizeof *n->meshes);
    n->networks = graft_interface(api, GRAFT_NETWORK_ID, sizeof *n->networks);
    mesh_part_init(&n->part, &what->cut, host->rank);
    describe_rows(n);
    rc = n->meshes->create(api->context, &host->transport, &n->part.args, &n->mesh, &host->error);
    if (rc == GRAFT_OK) rc = n->networks->create(n->mesh, &n->args, &n->network, &host->error);
    return rc;
}

void network_rank_fini(struct network_rank *n)
{
    n->networks->destroy(n->network);
    n->meshes->destroy(n->mesh);
    mesh_part_fini(&n->part);
    free(n->constant.data);
    free(n->is_free);
    free(n->loss_weight);
}

const char *network_run(struct network_case *what, const struct test_mesh *mesh, int32_t n_ranks, int how,
                        const char *settings, int32_t (*body)(struct host *host))
{
    static struct hosts hosts;
    struct sample       sample = { 3 };
    char                text[512];
    const char         *list[HOST_SETTINGS] = { "threads=1" };
    int                 count = 1;

    snprintf(text, sizeof text, "%s", settings);
    for (char *at = strtok(text, " "); at != NULL; at = strtok(NULL, " ")) list[count++] = at;
    mesh_cut_init(&what->cut, mesh, &sample, n_ranks, how);
    hosts_run(&hosts, n_ranks, list, body, what);
    mesh_cut_fini(&what->cut);
    /* Tests that ended early have left their networks allocated. */
    for (int32_t r = 0; r < n_ranks; r++)
        if (hosts.at[r].rc != GRAFT_OK && hosts.at[r].rc != GRAFT_ERR_PEER) return hosts.at[r].error.message;
    return hosts_fault(&hosts);
}

static int32_t test_of_rank(struct host *host)
{
    const struct network_case *what = host->all->arg;
    struct network_rank        n;
    int32_t                    rc = network_rank_init(host, what, &n);

    if (rc == GRAFT_OK) rc = what->test(host, &n);
    network_rank_fini(&n);
    return rc;
}

void network_test(struct network_case *what, const struct test_mesh *mesh, int32_t n_ranks, int how, const char *name,
                  const char *settings, int32_t (*test)(struct host *host, struct network_rank *n))
{
    char        full[640];
    const char *fault;

    what->test = test;
    fault = network_run(what, mesh, n_ranks, how, settings, test_of_rank);
    snprintf(full, sizeof full, "%s, %d ranks: %s", name, n_ranks, settings);
    ok_fault(full, fault);
}

int32_t network_train(struct host *host, struct network_rank *n, double from, double to, graft_network_step *step)
{
    graft_field input = network_state(n, NETWORK_IN, from), target = network_state(n, NETWORK_OUT, to);
    graft_pair  pair = GRAFT_INIT(graft_pair);
    int32_t     rc;

    pair.input = &input;
    pair.target = &target;
    rc = n->networks->train(n->network, &pair, 1, step, &host->error);
    free(input.data);
    free(target.data);
    return rc;
}

int64_t network_pull(const struct network_rank *n, const char *name, double *to)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    int64_t          count;

    for (int32_t k = 0; n->networks->state_item(n->network, k, &item, NULL) == GRAFT_OK; k++) {
        if (strcmp(item.name, name) != 0) continue;
        count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);
        for (int64_t i = 0; i < count; i++)
            to[i] =
                item.dtype == GRAFT_I64 ? (double)((const int64_t *)item.data)[i] : sample_at(item.data, item.dtype, i);
        return count;
    }
    return 0;
}

int64_t network_pull_all(const struct network_rank *n, const char *prefix, double *to)
{
    static const char *const others[] = { "statistics.", "optimizer.", "progress.", "gradient." };
    graft_state_item         item = GRAFT_INIT(graft_state_item);
    int64_t                  total = 0;

    for (int32_t k = 0; n->networks->state_item(n->network, k, &item, NULL) == GRAFT_OK; k++) {
        int is_other = 0;

        for (int o = 0; o < 4; o++) is_other |= strncmp(item.name, others[o], strlen(others[o])) == 0;
        if (prefix[0] != '\0' ? strncmp(item.name, prefix, strlen(prefix)) != 0 : is_other) continue;
        total += network_pull(n, item.name, to + total);
    }
    return total;
}

uint64_t network_digest(const struct network_rank *n)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    uint64_t         sum = 1469598103934665603u;

    for (int32_t k = 0; n->networks->state_item(n->network, k, &item, NULL) == GRAFT_OK; k++) {
        const int64_t count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);
        const char   *bytes = item.data;

        if (strncmp(item.name, "gradient.", 9) == 0) continue;
        for (int64_t i = 0; i < count * (item.dtype == GRAFT_F32 ? 4 : 8); i++)
            sum = (sum ^ (unsigned char)bytes[i]) * 1099511628211u;
    }
    return sum;
}

int32_t network_blame(struct host *host, const char *format, ...)
{
    va_list list;

    host->error.code = GRAFT_ERR_FORMAT;
    va_start(list, format);
    vsnprintf(host->error.message, sizeof host->error.message, format, list);
    va_end(list);
    return GRAFT_ERR_FORMAT;
}
