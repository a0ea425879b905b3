/* The sizes of a graph, rank by rank.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "dgraph/graph.h"
#include "partition/choose.h"

#include <stdio.h>

/* A number divided by its mean over ranks; 1 if the total is 0. */
static double imbalance(int64_t number, int64_t total, int32_t n_ranks)
{
    return total > 0 ? (double)number * n_ranks / (double)total : 1;
}

static graft_graph_info info_of_all(const graft_graph *g, const struct gr_share *share)
{
    graft_graph_info all = { .size = sizeof all, .rank = -1, .n_vertices = g->n_vertices };
    int64_t          most_owned = 0, most_edges = 0;

    for (int32_t p = 0; p < g->comm->n_ranks; p++) {
        const struct gr_share *s = &share[p];

        all.n_slice += s->n_slice;
        all.n_owned += s->n_owned;
        all.n_edges += s->n_edges;
        all.n_cut += s->n_cut;
        all.n_halo += s->n_halo;
        if (s->n_owned > most_owned) most_owned = s->n_owned;
        if (s->n_edges > most_edges) most_edges = s->n_edges;
    }
    all.vertex_imbalance = imbalance(most_owned, all.n_owned, g->comm->n_ranks);
    all.edge_imbalance = imbalance(most_edges, all.n_edges, g->comm->n_ranks);
    return all;
}

int32_t gr_graph_info(const graft_graph *g, const struct gr_share *share, int32_t rank, graft_graph_info *info,
                      graft_error *error)
{
    const graft_graph_info all = info_of_all(g, share);
    const struct gr_share *s;

    if (rank < -1 || rank >= g->comm->n_ranks)
        return gr_fail(error, GRAFT_ERR_ARG, "rank is %d, expected -1 (all) to %d", rank, g->comm->n_ranks - 1);
    *info = all;
    if (rank < 0) return GRAFT_OK;
    s = &share[rank];
    info->rank = rank;
    info->n_slice = s->n_slice;
    info->n_owned = s->n_owned;
    info->n_edges = s->n_edges;
    info->n_cut = s->n_cut;
    info->n_halo = s->n_halo;
    info->vertex_imbalance = imbalance(s->n_owned, all.n_owned, g->comm->n_ranks);
    info->edge_imbalance = imbalance(s->n_edges, all.n_edges, g->comm->n_ranks);
    return GRAFT_OK;
}

static void add_line(struct gr_text *text, const char *name, const graft_graph_info *i)
{
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

/* The comparison of parallel=auto. In each of the two transposes of a sum, the row of a vertex with neighbours is sent
 * to the other ranks of its group, except for the own columns: in total nearly 2 rows a vertex. */
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

void gr_graph_explain(const graft_graph *g, const struct gr_share *share, char *text, uint64_t capacity)
{
    struct gr_text   t = { text, capacity };
    graft_error      none = { .size = sizeof none };
    graft_graph_info info = { .size = sizeof info };
    char             name[16];

    gr_text_add(&t, "%lld vertices over %d ranks, %s\n", (long long)g->n_vertices, g->comm->n_ranks,
                g->value_type != 0 ? "weighted" : "unweighted");
    gr_text_add(&t, "partition: %s\n", g->division.partition);
    explain_grids(g, &t);
    gr_text_add(&t, "%-6s %12s %14s %14s %12s %8s %8s\n", "rank", "vertices", "edges", "cut edges", "halo", "v/mean",
                "e/mean");
    for (int32_t p = 0; p < g->comm->n_ranks; p++) {
        gr_graph_info(g, share, p, &info, &none);
        snprintf(name, sizeof name, "%d", p);
        add_line(&t, name, &info);
    }
    gr_graph_info(g, share, -1, &info, &none);
    add_line(&t, "all", &info);
}
