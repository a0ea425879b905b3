/* The choice of parallel=auto: predicts the time of an epoch in which groups of ranks share the columns of sums. Runs
 * on rank 0, which has the whole graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/memory.h"
#include "base/options.h"
#include "cover/cover.h"
#include "dgraph/options.h"
#include "dgraph/owner.h"
#include "halo/format.h"
#include "halo/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

int32_t gr_graph_grids_init(graft_graph *g, graft_error *error)
{
    g->division.n_choices = 0;
    for (int32_t c = 1; c <= g->comm->n_ranks; c++) g->division.n_choices += g->comm->n_ranks % c == 0;
    return GR_POOL_NEW(g->context, &g->pool, g->division.choices, g->division.n_choices, error);
}

int32_t gr_graph_grids_share(graft_graph *g, graft_error *error)
{
    GR_TRY(gr_comm_broadcast(g->comm, 0, g->division.choices,
                             (uint64_t)g->division.n_choices * sizeof *g->division.choices, error));
    GR_TRY(gr_comm_broadcast(g->comm, 0, &g->division.n_linked, sizeof g->division.n_linked, error));
    return gr_comm_broadcast(g->comm, 0, &g->columns, sizeof g->columns, error);
}

/* -- numbers of rows between parts: minimum vertex covers --------------------------------------------------------- */

/* The cut edges into one part, sorted by the part that owns their sources. */
struct cut_edges {
    struct gr_pool pool;
    int64_t       *begin;   /* [parts + 2] first edge from each part */
    int64_t       *target;  /* [most cut edges] rows, ascending for each sending part */
    int64_t       *source;  /* [most cut edges] columns */
    int64_t       *row_ptr; /* [most cut edges + 1] row pointers of the current cut */
    int32_t       *compact; /* [most cut edges] indices of the sources of the current cut, from 0 */
    int32_t       *number;  /* [n] 1 + index of a source in the current cut; 0: none yet */
    uint8_t       *in[2];   /* [most cut edges] sources and targets in the cover */
};

static int32_t cut_edges_init(const graft_context *context, const struct gr_slice *whole, int32_t parts,
                              const int32_t *owner, struct cut_edges *cut, graft_error *error)
{
    int64_t *count = NULL, most = 0;
    int32_t  rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, count, parts, error));
    for (int64_t v = 0; v < whole->rows->n_rows; v++)
        for (int64_t e = whole->rows->row_ptr[v]; e < whole->rows->row_ptr[v + 1]; e++)
            count[owner[v]] += owner[v] != owner[gr_csr_column(whole->rows, e)];
    for (int32_t p = 0; p < parts; p++) most = count[p] > most ? count[p] : most;
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->begin, (int64_t)parts + 2, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->target, most, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->source, most, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->row_ptr, most + 1, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->compact, most, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->number, whole->rows->n_rows, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut->pool, cut->in[0], most, error));
    rc = GR_POOL_NEW(context, &cut->pool, cut->in[1], most, error);
done:
    gr_free(context, count);
    return rc;
}

/* Sort the cut edges into a part by sending part. `row` lists the rows of the part. */
static void sort_cut_edges(const struct gr_slice *whole, int32_t parts, const int32_t *owner, const int64_t *row,
                           int64_t n_rows, struct cut_edges *cut)
{
    const graft_csr *rows = whole->rows;

    memset(cut->begin, 0, ((size_t)parts + 2) * sizeof *cut->begin);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; i < n_rows; i++) {
            for (int64_t e = rows->row_ptr[row[i]]; e < rows->row_ptr[row[i] + 1]; e++) {
                const int64_t column = gr_csr_column(rows, e);
                int64_t       at;

                if (owner[column] == owner[row[i]]) continue;
                if (pass == 0) {
                    cut->begin[owner[column] + 2]++;
                    continue;
                }
                at = cut->begin[owner[column] + 1]++;
                cut->target[at] = row[i];
                cut->source[at] = column;
            }
        }
        for (int32_t p = 0; p < parts && pass == 0; p++) cut->begin[p + 2] += cut->begin[p + 1];
    }
}

/* Count the rows that one part sends to another for the cut edges begin to end - 1. */
static int32_t count_cover_rows(const graft_context *context, struct cut_edges *cut, int64_t begin, int64_t end,
                                enum gr_cover_kind kind, int64_t *rows, graft_error *error)
{
    struct gr_cut made = { .row_ptr = cut->row_ptr, .source = cut->compact };
    int64_t       n_targets = 0;
    int32_t       rc, sources = 0;

    cut->row_ptr[0] = 0;
    for (int64_t e = begin; e < end; e++) {
        int32_t *number = &cut->number[cut->source[e]];

        if (*number == 0) *number = ++sources;
        cut->compact[e - begin] = *number - 1;
        if (e == begin || cut->target[e] != cut->target[e - 1]) n_targets++;
        cut->row_ptr[n_targets] = e - begin + 1;
    }
    made.n_targets = n_targets;
    made.n_sources = sources;
    rc = gr_cover_find(context, &made, kind, cut->in[0], cut->in[1], rows, error);
    for (int64_t e = begin; e < end; e++) cut->number[cut->source[e]] = 0;
    return rc;
}

/* Set the numbers of rows that all parts send and receive to those of the covers. */
static int32_t measure_covers(const graft_context *context, const struct gr_slice *whole, const int32_t *owner,
                              struct gr_partition_measure *measure, graft_error *error)
{
    static const enum gr_cover_kind kinds[] = { [GR_HALO_COVER_HYBRID] = GR_COVER_HYBRID,
                                                [GR_HALO_COVER_PRE] = GR_COVER_PRE,
                                                [GR_HALO_COVER_POST] = GR_COVER_POST };
    const enum gr_cover_kind        kind = kinds[gr_halo_options(context)->cover];
    struct cut_edges                cut = { 0 };
    int64_t                        *row = NULL, *begin = NULL;
    int32_t                         rc = cut_edges_init(context, whole, measure->parts, owner, &cut, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(GR_POOL_NEW(context, &cut.pool, row, whole->rows->n_rows, error));
    GR_TRY_DONE(GR_POOL_NEW(context, &cut.pool, begin, (int64_t)measure->parts + 2, error));
    for (int64_t v = 0; v < whole->rows->n_rows; v++) begin[owner[v] + 2]++;
    for (int32_t p = 0; p < measure->parts; p++) begin[p + 2] += begin[p + 1];
    for (int64_t v = 0; v < whole->rows->n_rows; v++) row[begin[owner[v] + 1]++] = v;
    measure->rows[GR_ROWS_LEAST] = 0;
    for (int32_t p = 0; p < measure->parts; p++)
        measure->part[p].sent[GR_ROWS_LEAST] = measure->part[p].received[GR_ROWS_LEAST] = 0;
    for (int32_t p = 0; p < measure->parts; p++) {
        sort_cut_edges(whole, measure->parts, owner, row + begin[p], begin[p + 1] - begin[p], &cut);
        for (int32_t q = 0; q < measure->parts; q++) {
            int64_t rows = 0;

            if (cut.begin[q] == cut.begin[q + 1]) continue;
            GR_TRY_DONE(count_cover_rows(context, &cut, cut.begin[q], cut.begin[q + 1], kind, &rows, error));
            measure->part[p].received[GR_ROWS_LEAST] += rows;
            measure->part[q].sent[GR_ROWS_LEAST] += rows;
            measure->rows[GR_ROWS_LEAST] += rows;
        }
    }
done:
    gr_pool_fini(context, &cut.pool);
    return rc;
}

/* -- costs -------------------------------------------------------------------------------------------------------- */

/* Return the bytes of the edges of the largest group: columns, values and row pointers of A and its transpose. */
static double group_bytes(const graft_graph *g, const struct gr_partition_measure *measure)
{
    double most = 0;

    for (int32_t p = 0; p < measure->parts; p++) {
        const double entries = (double)measure->part[p].has[GR_SHARE_ENTRIES];

        most = fmax(most, 2 * ((4 + (double)gr_dtype_bytes(g->value_type)) * entries +
                               8 * (double)measure->part[p].has[GR_SHARE_VERTICES]));
    }
    return most;
}

/* Return the bytes of edges that all ranks send in one sum; 0: each rank stores all edges of its group (option
 * feature.graph). Otherwise each rank sends columns, values and lengths of its rows to the others of its group. `held`:
 * the bytes of the edges of the largest group, in both directions. */
static int64_t streamed_bytes(const graft_graph *g, const struct gr_slice *whole, int64_t cut, int32_t columns,
                              double held)
{
    const enum gr_feature_graph option = gr_dgraph_options(g->context)->feature_graph;
    const double                limit = 1e6 * (double)gr_base_options(g->context)->memory_limit;
    const int64_t               of_entry = g->value_type != 0 ? 8 : 4;

    if (option == GR_FEATURE_GRAPH_REPLICATE) return 0;
    if (option == GR_FEATURE_GRAPH_AUTO && (limit <= 0 || held <= limit)) return 0;
    return (columns - 1) * (4 * g->division.n_linked + of_entry * (whole->rows->row_ptr[whole->rows->n_rows] - cut));
}

/* Predict the seconds of all transposes of an epoch. In each of the two transposes of a sum, a rank sends its rows
 * except for its own columns, in a message to each other rank of its group. costs->of_rank.row covers both directions
 * of all layers. */
static double transpose_seconds(const graft_graph *g, const struct gr_partition_measure *measure,
                                const struct gr_grid_costs *costs, const struct gr_grid_choice *choice)
{
    const int32_t columns = choice->columns;
    const double  share = g->n_vertices > 0 ? (double)g->division.n_linked / (double)g->n_vertices : 0;
    int64_t       vertices = 0;

    for (int32_t p = 0; p < measure->parts; p++) {
        const int64_t here = measure->part[p].has[GR_SHARE_VERTICES];

        vertices = here > vertices ? here : vertices;
    }
    return 2 * share * (double)vertices / columns * (columns - 1) / columns * costs->of_rank.row +
           4 * (double)g->division.workload.layers * (columns - 1) * costs->latency;
}

/* Return the cost for one rank of a group. The ranks of a group divide the edges and the halo by columns, and the
 * vertices by rows. */
static struct gr_partition_cost cost_of_group(const struct gr_grid_costs *costs, int32_t columns)
{
    struct gr_partition_cost cost = costs->of_rank;

    cost.entry /= columns;
    cost.vertex /= columns;
    cost.row /= columns;
    return cost;
}

/* Predict the seconds of one choice, whose parts are in `owner`. */
static int32_t measure_choice(const graft_graph *g, const struct gr_slice *whole, const struct gr_grid_costs *costs,
                              const int32_t *owner, struct gr_grid_choice *choice, graft_error *error)
{
    const int32_t               parts = g->comm->n_ranks / choice->columns;
    struct gr_partition_cost    cost = cost_of_group(costs, choice->columns);
    const double                limit = 1e6 * (double)gr_base_options(g->context)->memory_limit;
    struct gr_partition_measure measure = { 0 };
    double                      held;
    int32_t                     rc = gr_partition_measure_init(g->context, &measure, whole, parts, owner, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(measure_covers(g->context, whole, owner, &measure, error));
    cost.rows = GR_ROWS_LEAST;
    choice->halo_rows = measure.rows[GR_ROWS_LEAST];
    held = group_bytes(g, &measure);
    choice->streamed = streamed_bytes(g, whole, measure.cut, choice->columns, held);
    if (choice->streamed > 0) held *= 2.0 / choice->columns; /* the rank's own block, and two received blocks */
    choice->is_limited = limit > 0 && choice->columns > 1 && held > limit;
    choice->seconds =
        gr_partition_seconds(&measure, &cost) +
        2 * (double)g->division.workload.layers *
            ((parts - 1) * costs->latency + (double)choice->streamed / choice->columns / costs->bytes_per_second) +
        transpose_seconds(g, &measure, costs, choice);
done:
    gr_partition_measure_fini(g->context, &measure);
    return rc;
}

/* -- the choice --------------------------------------------------------------------------------------------------- */

/* Count the vertices that have an edge from or to another vertex. */
static int32_t count_linked(graft_graph *g, const struct gr_slice *whole, graft_error *error)
{
    uint8_t *is_linked = NULL;

    GR_TRY(GR_NEW(g->context, is_linked, g->n_vertices, error));
    for (int64_t v = 0; v < g->n_vertices; v++) {
        for (int64_t e = whole->rows->row_ptr[v]; e < whole->rows->row_ptr[v + 1]; e++) {
            const int64_t column = gr_csr_column(whole->rows, e);

            if (column != v) is_linked[v] = is_linked[column] = 1;
        }
    }
    g->division.n_linked = 0;
    for (int64_t v = 0; v < g->n_vertices; v++) g->division.n_linked += is_linked[v];
    gr_free(g->context, is_linked);
    return GRAFT_OK;
}

/* Partition the graph for groups of choice->columns ranks, by the method or from the given owners. */
static int32_t make_parts(graft_graph *g, const struct gr_grid_question *question, struct gr_grid_choice *choice,
                          int32_t *parts, struct gr_partition_choice *made, graft_error *error)
{
    const int32_t            count = g->comm->n_ranks / choice->columns;
    struct gr_partition_cost cost = cost_of_group(question->costs, choice->columns);

    choice->method = question->method;
    if (question->method == GR_PARTITION_GIVEN) {
        for (int64_t v = 0; v < g->n_vertices; v++) parts[v] = question->owner[v] / choice->columns;
        return GRAFT_OK;
    }
    memset(parts, 0, (size_t)g->n_vertices * sizeof *parts);
    if (count > 1) {
        const int32_t  rc = gr_partition_choose(g->context, question->whole, count, question->method, &cost,
                                                question->meanwhile, parts, made, error);
        struct gr_text why = { made->why, sizeof made->why };

        choice->method = made->method;
        /* measure_choice() predicts seconds, with another cost model. */
        if (question->method == GR_PARTITION_AUTO) gr_partition_list_predictions(made, 1, &why);
        else gr_text_add(&why, "found by rank 0");
        return rc;
    }
    return question->meanwhile->call(question->meanwhile->arg, error);
}

/* Find the parts of one choice, and predict its seconds. For one column, owners that the ranks have found jointly from
 * their slices are compared with the owners that rank 0 finds. */
static int32_t predict_choice(graft_graph *g, const struct gr_grid_question *question, struct gr_grid_choice *choice,
                              int32_t *parts, struct gr_partition_choice *made, graft_error *error)
{
    struct gr_grid_choice together;

    GR_TRY(make_parts(g, question, choice, parts, made, error));
    GR_TRY(measure_choice(g, question->whole, question->costs, parts, choice, error));
    if (choice->columns > 1 || question->owner == NULL || question->method == GR_PARTITION_GIVEN) return GRAFT_OK;
    together = *choice;
    GR_TRY(measure_choice(g, question->whole, question->costs, question->owner, &together, error));
    if (together.seconds > choice->seconds) return GRAFT_OK;
    *choice = together;
    memcpy(parts, question->owner, (size_t)g->n_vertices * sizeof *parts);
    snprintf(made->why, sizeof made->why, "found by slices");
    return GRAFT_OK;
}

int32_t gr_graph_grids_choose(graft_graph *g, const struct gr_grid_question *question, int32_t *owner,
                              struct gr_partition_choice *why, graft_error *error)
{
    struct gr_grid_choice     *best = NULL;
    struct gr_partition_choice made = { .why = "" };
    int32_t                   *parts = NULL;
    int32_t                    rc = GR_NEW(g->context, parts, g->n_vertices, error);

    GR_TRY_DONE(rc);
    GR_TRY_DONE(count_linked(g, question->whole, error));
    for (int32_t c = 1, i = 0; c <= g->comm->n_ranks; c++) {
        struct gr_grid_choice *choice = &g->division.choices[i];

        if (g->comm->n_ranks % c != 0) continue;
        GR_ASSERT(i < g->division.n_choices);
        i++;
        choice->columns = c;
        GR_TRY_DONE(predict_choice(g, question, choice, parts, &made, error));
        if (choice->is_limited || (best != NULL && choice->seconds >= best->seconds)) continue;
        best = choice;
        *why = made;
        if (question->method != GR_PARTITION_GIVEN) memcpy(owner, parts, (size_t)g->n_vertices * sizeof *owner);
    }
    GR_ASSERT(best != NULL);
    g->columns = best->columns;
done:
    gr_free(g->context, parts);
    return rc;
}
