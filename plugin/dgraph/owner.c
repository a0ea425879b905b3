/* The owners of vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/owner.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/option_row.h"
#include "dgraph/options.h"
#include "partition/options.h"
#include "partition/refine.h"

#include <stdio.h>
#include <string.h>

static int32_t take_given(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    for (int64_t i = 0; i < graph->n_slice; i++) {
        if (slice->owner[i] >= 0 && slice->owner[i] < graph->comm->n_ranks) continue;
        return gr_fail(error, GRAFT_ERR_ARG, "slice: owner of vertex %lld is %d, expected 0 to %d",
                       (long long)(slice->first_row + i), slice->owner[i], graph->comm->n_ranks - 1);
    }
    memcpy(graph->slice.owner, slice->owner, (uint64_t)graph->n_slice * sizeof *slice->owner);
    return GRAFT_OK;
}

/* Options of models and messages may differ between ranks until a trainer is created, so rank 0 decides whether
 * parallel=auto compares. */
static int32_t find_comparison(graft_graph *graph, graft_error *error)
{
    const char *why = graph->division.workload.shares_rows;

    if (gr_dgraph_options(graph->context)->parallel.word != GR_PARALLEL_AUTO || graph->comm->n_ranks == 1)
        return GRAFT_OK;
    if (why != NULL) snprintf(graph->division.shares_rows, sizeof graph->division.shares_rows, "%s", why);
    GR_TRY(gr_comm_broadcast(graph->comm, 0, graph->division.shares_rows, sizeof graph->division.shares_rows, error));
    graph->division.compares = graph->division.shares_rows[0] == '\0';
    return GRAFT_OK;
}

/* Option `parallel`. With parallel=auto one column, before the comparison. */
static int32_t find_columns(graft_graph *graph, graft_error *error)
{
    const struct gr_form option = gr_dgraph_options(graph->context)->parallel;
    const char          *file = gr_partition_options(graph->context)->file;
    const int32_t        n_ranks = graph->comm->n_ranks;
    const int64_t        columns = (int64_t)option.number[0];
    const int32_t        rc = find_comparison(graph, error);

    if (rc < 0) return rc;
    graph->columns = option.word == GR_PARALLEL_FEATURE ? n_ranks : 1;
    if (graph->division.compares && file[0] != '\0' && !graph->division.is_given)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'partition.file' is '%s', but a file is for one number of parts, and parallel=auto "
                       "compares several; expected another value of parallel",
                       file);
    if (option.word != GR_PARALLEL_GRID) return GRAFT_OK;
    for (int32_t c = 1; c * c <= n_ranks; c++)
        if (n_ranks % c == 0) graph->columns = c;
    if (columns == 0) return GRAFT_OK;
    if (columns > n_ranks || n_ranks % columns != 0)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'parallel' is grid:%lld, expected a divisor of the %d ranks, such as %d",
                       (long long)columns, n_ranks, graph->columns);
    graph->columns = (int32_t)columns;
    return GRAFT_OK;
}

/* Whether the owners are parts until deal_parts(). */
static int is_dealt(const graft_graph *graph)
{
    return graph->columns > 1 && gr_partition_options(graph->context)->method != GR_PARTITION_GIVEN;
}

int32_t gr_graph_owner_parts(const graft_graph *graph)
{
    return is_dealt(graph) ? graph->comm->n_ranks / graph->columns : graph->comm->n_ranks;
}

/* Owners are parts so far. The ranks of a part get its vertices in turn, training vertices separately from other
 * vertices, so that each rank has equal numbers of both. */
static int32_t deal_parts(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    const struct gr_slice rows = gr_graph_owner_rows(graph, slice);
    const int32_t         c = graph->columns;
    int64_t              *next = NULL; /* [parts x 2] */
    int32_t               rc = GR_NEW(graph->context, next, 2 * (int64_t)gr_graph_owner_parts(graph), error);

    for (int64_t i = 0; i < graph->n_slice && next != NULL; i++) {
        int64_t *at = &next[2 * graph->slice.owner[i] + (rows.train_mask != NULL && rows.train_mask[i] != 0)];

        graph->slice.owner[i] = graph->slice.owner[i] * c + (int32_t)((graph->comm->rank + (*at)++) % c);
    }
    gr_free(graph->context, next);
    return gr_comm_agree(graph->comm, rc, error);
}

/* The totals of the slices before this rank's slice, and of all slices. */
static void sum_shares(const graft_graph *graph, int64_t before[GR_SHARES], int64_t total[GR_SHARES])
{
    for (int32_t p = 0; p < graph->comm->n_ranks; p++) {
        int64_t *const to[] = { total, before };

        for (int i = 0; i < 1 + (p < graph->comm->rank); i++) {
            to[i][GR_SHARE_VERTICES] += graph->share[p].n_slice;
            to[i][GR_SHARE_ENTRIES] += graph->share[p].n_edges;
        }
    }
}

struct gr_slice gr_graph_owner_rows(const graft_graph *graph, const graft_slice *slice)
{
    static const int64_t   no_rows[1];
    static const graft_csr nothing = { .size = sizeof nothing, .index_type = GRAFT_I32, .row_ptr = no_rows };

    if (graph->n_slice == 0) return (struct gr_slice){ .rows = &nothing };
    GR_ASSERT(slice->rows->n_rows == graph->n_slice);
    return (struct gr_slice){ .rows = slice->rows, .first = slice->first_row, .train_mask = slice->train_mask };
}

/* The ranks refine the partition, and report it. */
static int32_t refine_owners(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    const struct gr_slice           rows = gr_graph_owner_rows(graph, slice);
    const struct gr_partition_input input = { .context = graph->context,
                                              .slice = &rows,
                                              .parts = gr_graph_owner_parts(graph),
                                              .comm = graph->comm,
                                              .first = graph->first };
    const size_t                    used = strlen(graph->division.partition);
    struct gr_refinement            done;
    int32_t                         rc;

    rc = gr_partition_refine(&input, gr_partition_options(graph->context)->refine, graph->slice.owner, &done, error);
    if (rc < 0) return rc;
    snprintf(graph->division.partition + used, sizeof graph->division.partition - used,
             "; refined in %lld rounds, from %lld cut entries to %lld", (long long)done.rounds,
             (long long)done.cut_before, (long long)done.cut);
    if (graph->comm->rank == 0) gr_log(graph->context, GRAFT_LOG_INFO, "partition: %s", graph->division.partition);
    return GRAFT_OK;
}

/* The ranks partition their slices, with `stream` together. GIVEN without owners: each rank owns its slice. */
static int32_t own_slice(graft_graph *graph, const graft_slice *slice, enum gr_partition_method method,
                         graft_error *error)
{
    const struct gr_slice           rows = gr_graph_owner_rows(graph, slice);
    int64_t                         before[GR_SHARES] = { 0 }, total[GR_SHARES] = { 0 };
    const struct gr_partition_input input = { .context = graph->context,
                                              .slice = &rows,
                                              .parts = gr_graph_owner_parts(graph),
                                              .before = before,
                                              .total = total,
                                              .comm = graph->comm,
                                              .first = graph->first };

    sum_shares(graph, before, total);
    if (gr_graph_owner_parts(graph) > 1 && method < GR_PARTITION_METHODS)
        return gr_partition_run(method, &input, graph->slice.owner, error);
    for (int64_t i = 0; i < graph->n_slice && !graph->division.is_given; i++)
        graph->slice.owner[i] = is_dealt(graph) ? 0 : graph->comm->rank;
    return GRAFT_OK;
}

/* Find the owners by a method. If parallel=auto compares ways to share columns, given owners stay. */
static int32_t own_by_method(graft_graph *graph, const graft_slice *slice, enum gr_partition_method method,
                             graft_error *error)
{
    graft_error too_large = GRAFT_INIT(graft_error);
    int64_t     entries = 0;
    int32_t     rc = GRAFT_OK;

    if (method == GR_PARTITION_GIVEN || (graph->division.compares && !gr_partition_needs_whole(method)))
        GR_TRY(gr_comm_agree(graph->comm, own_slice(graph, slice, method, error), error));
    if (graph->division.compares || (gr_partition_needs_whole(method) && gr_graph_owner_parts(graph) > 1)) {
        for (int32_t p = 0; p < graph->comm->n_ranks; p++) entries += graph->share[p].n_edges;
        rc = gr_graph_owner_check_whole(graph, entries, method, &too_large);
        if (rc == GRAFT_OK) return gr_graph_owner_choose(graph, slice, method, error);
        if (method == GR_PARTITION_METIS || !gr_partition_goes_on(rc)) {
            *error = too_large;
            return rc;
        }
        if (method == GR_PARTITION_AUTO) method = GR_PARTITION_STREAM;
        snprintf(graph->division.partition, sizeof graph->division.partition, "auto: %s, because %.200s",
                 gr_partition_name(method), too_large.message);
        if (graph->comm->rank == 0) gr_log(graph->context, GRAFT_LOG_INFO, "partition: %s", graph->division.partition);
    }
    return gr_comm_agree(graph->comm, own_slice(graph, slice, method, error), error);
}

/* Describe the owners if all ranks share the columns of one part, and warn of options that do not change them. */
static void describe_one_part(graft_graph *graph)
{
    static const char *const unused[] = { "partition.file", "partition.refine" };
    static const char        shared[] = "all ranks share the columns of one part";

    if (is_dealt(graph))
        snprintf(graph->division.partition, sizeof graph->division.partition, "none, because " GR_OWNER_DEALT);
    if (graph->comm->rank != 0) return;
    gr_option_report_idle(graph->context, "partition", GR_OWNER_DEALT ", with every value except given");
    for (size_t i = 0; i < sizeof unused / sizeof *unused; i++)
        gr_option_report_idle(graph->context, unused[i], shared);
}

int32_t gr_graph_owner_find(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    const enum gr_partition_method method = gr_partition_options(graph->context)->method;
    const char                    *file = gr_partition_options(graph->context)->file;
    int64_t                        rounds = gr_partition_options(graph->context)->refine;
    struct gr_graph_identity       identity;
    int32_t                        found = 0, rc = GRAFT_OK;

    GR_TRY_DONE(find_columns(graph, error));
    snprintf(graph->division.partition, sizeof graph->division.partition, "%s",
             graph->division.is_given ? "given by the host" : gr_partition_name(method));
    if (graph->division.is_given) {
        if (graph->n_slice > 0) rc = take_given(graph, slice, error);
        GR_TRY_DONE(gr_comm_agree(graph->comm, rc, error));
        return graph->division.compares ? own_by_method(graph, slice, GR_PARTITION_GIVEN, error) : GRAFT_OK;
    }
    if (graph->columns > 1 && graph->columns == graph->comm->n_ranks) {
        describe_one_part(graph);
        file = "";
        rounds = 0;
    }
    if (file[0] != '\0') GR_TRY_DONE(gr_graph_owner_load(graph, slice, file, &identity, &found, error));
    if (!found) GR_TRY_DONE(own_by_method(graph, slice, method, error));
    if (rounds > 0 && gr_graph_owner_parts(graph) > 1) GR_TRY_DONE(refine_owners(graph, slice, error));
    if (file[0] != '\0' && !found) GR_TRY_DONE(gr_graph_owner_save(graph, file, &identity, error));
    if (is_dealt(graph)) rc = deal_parts(graph, slice, error);
done:
    return rc;
}
