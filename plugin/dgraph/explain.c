/* Prints the sizes of the parts of a graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "dgraph/graph.h"
#include "partition/choose.h"

#include <stdio.h>

/* Return a number divided by its mean over ranks; 1 if the total is 0. */
static double imbalance(int64_t number, int64_t total, int32_t n_ranks)
{
    return total > 0 ? (double)number * n_ranks / (double)total : 1;
}

int32_t gr_graph_info(const graft_graph *g, const struct gr_share *share, int32_t rank, graft_graph_info *info,
                      graft_error *error)
{
    const int32_t   n_ranks = g->comm->n_ranks;
    struct gr_share all = { 0 }, most = { 0 };

    if (rank < -1 || rank >= n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected -1 (all) to %d", rank, n_ranks - 1);
    *info = (graft_graph_info){ .size = sizeof *info, .rank = rank, .n_vertices = g->n_vertices };
    for (int32_t p = 0; p < n_ranks; p++) {
        const struct gr_share *s = &share[p];

        all.n_owned += s->n_owned;
        all.n_edges += s->n_edges;
        if (rank >= 0 && rank != p) continue;
        info->n_slice += s->n_slice;
        info->n_owned += s->n_owned;
        info->n_edges += s->n_edges;
        info->n_cut += s->n_cut;
        info->n_halo += s->n_halo;
        if (s->n_owned > most.n_owned) most.n_owned = s->n_owned;
        if (s->n_edges > most.n_edges) most.n_edges = s->n_edges;
    }
    info->vertex_imbalance = imbalance(most.n_owned, all.n_owned, n_ranks);
    info->edge_imbalance = imbalance(most.n_edges, all.n_edges, n_ranks);
    return GRAFT_OK;
}

/* Add the line of a rank, or with -1 of all ranks. */
static void add_line(const graft_graph *g, const struct gr_share *share, int32_t rank, struct gr_text *text)
{
    graft_error      none = { .size = sizeof none };
    graft_graph_info info = { .size = sizeof info }, *i = &info;
    char             name[16] = "all";

    gr_graph_info(g, share, rank, i, &none);
    if (rank >= 0) snprintf(name, sizeof name, "%d", rank);
    gr_text_add(text, "%-6s %12lld %14lld %14lld %12lld %8.3f %8.3f\n", name, (long long)i->n_owned,
                (long long)i->n_edges, (long long)i->n_cut, (long long)i->n_halo, i->vertex_imbalance,
                i->edge_imbalance);
}

/* Compare the rows sent by sharing columns and by sharing rows; MixGCN, section 3.1.2. */
static void explain_break_even(const graft_graph *g, struct gr_text *text)
{
    const int32_t n = g->comm->n_ranks;

    gr_text_add(text,
                "%lld of %lld vertices have neighbours: with columns shared by all ranks a sum sends %.0f rows "
                "(2 N (m - 1) / m), with rows shared %lld\n",
                (long long)g->division.n_linked, (long long)g->n_vertices,
                2.0 * (double)g->division.n_linked * (n - 1) / n, (long long)g->division.choices[0].halo_rows);
}

/* Describe the comparison of parallel=auto. In each of the two transposes of a sum, the row of a vertex with neighbours
 * is sent to the other ranks of its group, except for the columns of its own rank: nearly 2 rows for each vertex in
 * total. */
static void explain_grids(const graft_graph *g, struct gr_text *text)
{
    if (g->division.shares_rows[0] != '\0')
        gr_text_add(text, "parallel: auto shares rows, because %s\n", g->division.shares_rows);
    if (g->division.n_choices == 0) return;
    gr_text_add(text,
                "parallel: auto; groups of ranks share columns of sums; rows are the rows of all columns that "
                "all ranks send in one sum\n%-10s %-9s %12s %15s %12s\n",
                "group of", "partition", "halo rows", "transposed rows", "epoch (s)");
    for (int32_t i = 0; i < g->division.n_choices; i++) {
        const struct gr_grid_choice *c = &g->division.choices[i];
        const double                 transposed = 2.0 * (double)g->division.n_linked * (c->columns - 1) / c->columns;

        gr_text_add(text, "%-10d %-9s %12lld %15.0f %12.3g%s\n", c->columns,
                    c->columns == g->comm->n_ranks ? "-" : gr_partition_name((enum gr_partition_method)c->method),
                    (long long)c->halo_rows, transposed, c->seconds,
                    c->columns == g->columns ? "  chosen"
                    : c->is_limited          ? "  over memory.limit"
                                             : "");
    }
    explain_break_even(g, text);
    for (int32_t i = 0; i < g->division.n_choices; i++)
        if (g->division.choices[i].streamed > 0)
            gr_text_add(text,
                        "edges are sent in each sum where %d ranks share columns, %.4g MB by all ranks together\n",
                        g->division.choices[i].columns, (double)g->division.choices[i].streamed * 1e-6);
}

void gr_graph_explain(const graft_graph *g, const struct gr_share *share, struct gr_text *text)
{
    gr_text_add(text, "%lld vertices over %d ranks, %s\n", (long long)g->n_vertices, g->comm->n_ranks,
                g->value_type != 0 ? "weighted" : "unweighted");
    gr_text_add(text, "partition: %s\n", g->division.partition);
    explain_grids(g, text);
    gr_text_add(text, "%-6s %12s %14s %14s %12s %8s %8s\n", "rank", "vertices", "edges", "cut edges", "halo", "v/mean",
                "e/mean");
    for (int32_t p = 0; p < g->comm->n_ranks; p++) add_line(g, share, p, text);
    add_line(g, share, -1, text);
}
