/* Checks of the arguments of one rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mesh/build.h"

#include <math.h>

static int32_t check_mesh_sizes(const graft_mesh_args *a, graft_error *error)
{
    if (a->kind != GRAFT_MESH_GHOSTS && a->kind != GRAFT_MESH_SHARED)
        return gr_fail(error, GRAFT_ERR_ARG, "kind is %d, expected GRAFT_MESH_GHOSTS (1) or GRAFT_MESH_SHARED (2)",
                       a->kind);
    if (a->dim < 1 || a->dim > 3) return gr_fail(error, GRAFT_ERR_ARG, "dim is %d, expected 1 to 3", a->dim);
    if (a->index_base != 0 && a->index_base != 1)
        return gr_fail(error, GRAFT_ERR_ARG, "index_base is %d, expected 0 or 1", a->index_base);
    if (a->n_rows < 0 || a->n_cells < 0 || a->n_edges < 0)
        return gr_fail(error, GRAFT_ERR_ARG, "n_rows is %lld, n_cells %lld and n_edges %lld, expected at least 0",
                       (long long)a->n_rows, (long long)a->n_cells, (long long)a->n_edges);
    if (a->n_rows >= INT32_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "n_rows is %lld, expected less than %d", (long long)a->n_rows,
                       INT32_MAX);
    for (int c = 0; c < 3; c++) {
        if (!(a->period[c] >= 0) || !isfinite(a->period[c]))
            return gr_fail(error, GRAFT_ERR_ARG, "period[%d] is %g, expected 0 or a positive number", c, a->period[c]);
        if (c >= a->dim && a->period[c] != 0)
            return gr_fail(error, GRAFT_ERR_ARG, "period[%d] is %g, expected 0: dim is %d", c, a->period[c], a->dim);
    }
    return GRAFT_OK;
}

static int32_t check_type(graft_dtype type, const char *name, graft_error *error)
{
    if (type == GRAFT_I32 || type == GRAFT_I64) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "%s is %d, expected GRAFT_I32 (%d) or GRAFT_I64 (%d)", name, type, GRAFT_I32,
                   GRAFT_I64);
}

static int32_t check_mesh_arrays(const graft_mesh_args *a, int32_t n_ranks, graft_error *error)
{
    const int has_cells = a->cell_nodes != NULL || a->n_cells > 0;
    const int has_edges = a->edge_sources != NULL || a->edge_targets != NULL || a->n_edges > 0;

    if (has_cells && has_edges) return gr_fail(error, GRAFT_ERR_ARG, "both cells and edges are given, expected one");
    if (a->n_cells > 0 && a->cell_nodes == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "cell_nodes is null, and n_cells is %lld", (long long)a->n_cells);
    if (a->n_edges > 0 && (a->edge_sources == NULL || a->edge_targets == NULL))
        return gr_fail(error, GRAFT_ERR_ARG, "%s is null, and n_edges is %lld",
                       a->edge_sources == NULL ? "edge_sources" : "edge_targets", (long long)a->n_edges);
    if (a->n_cells > 0 || a->n_edges > 0) GR_TRY(check_type(a->index_type, "index_type", error));
    if (a->ids != NULL) GR_TRY(check_type(a->id_type, "id_type", error));
    if (a->ids == NULL && a->n_rows > 0 && n_ranks > 1)
        return gr_fail(error, GRAFT_ERR_ARG, "ids is null; with %d ranks nodes need global ids", n_ranks);
    if (a->owners != NULL && a->kind == GRAFT_MESH_SHARED)
        return gr_fail(error, GRAFT_ERR_ARG, "owners is given; nodes of GRAFT_MESH_SHARED have no owner");
    return GRAFT_OK;
}

static int32_t check_mesh_rows(const graft_mesh_args *a, int32_t n_ranks, const graft_field *x, graft_error *error)
{
    for (int64_t i = 0; i < a->n_rows; i++) {
        const int64_t row = i + a->index_base;

        if (a->ids != NULL && gr_index_at(a->ids, a->id_type, i) < 0)
            return gr_fail(error, GRAFT_ERR_FORMAT, "row %lld: its id is %lld, expected at least 0", (long long)row,
                           (long long)gr_index_at(a->ids, a->id_type, i));
        if (a->owners != NULL && (a->owners[i] < 0 || a->owners[i] >= n_ranks))
            return gr_fail(error, GRAFT_ERR_FORMAT, "row %lld: its owner is %d, expected a rank, 0 to %d%s",
                           (long long)row, a->owners[i], n_ranks - 1, n_ranks > 1 ? "" : "; is there a transport?");
        for (int c = 0; c < a->dim; c++)
            if (!isfinite(gr_mesh_field_at(x, i, c)))
                return gr_fail(error, GRAFT_ERR_FORMAT, "row %lld: coordinate %d is %g, expected a finite number",
                               (long long)row, c, gr_mesh_field_at(x, i, c));
    }
    return GRAFT_OK;
}

int32_t gr_mesh_check(const graft_mesh_args *args, int32_t n_ranks, graft_field *x, graft_error *error)
{
    GR_TRY(check_mesh_sizes(args, error));
    GR_TRY(check_mesh_arrays(args, n_ranks, error));
    if (args->coordinates != NULL || args->n_rows > 0)
        GR_TRY(gr_mesh_field_read(args->coordinates, "coordinates", args->n_rows, args->dim, x, error));
    return check_mesh_rows(args, n_ranks, x, error);
}
