/* Finds the owners of vertices.
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
    if (graph->n_slice > 0) memcpy(graph->slice.owner, slice->owner, (uint64_t)graph->n_slice * sizeof *slice->owner);
    return GRAFT_OK;
}

/* Decide on rank 0 whether parallel=auto compares ways to share columns: until a trainer is created, options of models
 * and messages may differ between ranks. */
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

/* Set graph->columns from option `parallel`; with parallel=auto to 1, until the comparison. */
static int32_t find_columns(graft_graph *graph, graft_error *error)
{
    const struct gr_form option = gr_dgraph_options(graph->context)->parallel;
    const char          *file = gr_partition_options(graph->context)->file;
    const int32_t        n_ranks = graph->comm->n_ranks;
    const int64_t        columns = (int64_t)option.number[0];

    GR_TRY(find_comparison(graph, error));
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

/* Whether graph->slice.owner contains parts of groups of ranks, until deal_parts() replaces them by ranks. */
static int is_dealt(const graft_graph *graph)
{
    return graph->columns > 1 && gr_partition_options(graph->context)->method.word != GR_PARTITION_GIVEN;
}

int32_t gr_graph_owner_parts(const graft_graph *graph)
{
    return is_dealt(graph) ? graph->comm->n_ranks / graph->columns : graph->comm->n_ranks;
}

/* Return the rows and the training mask of this slice; an empty matrix if it has no rows. */
static struct gr_slice rows_of(const graft_graph *graph, const graft_slice *slice)
{
    static const int64_t   no_rows[1];
    static const graft_csr nothing = { .size = sizeof nothing, .index_type = GRAFT_I32, .row_ptr = no_rows };

    if (graph->n_slice == 0) return (struct gr_slice){ .rows = &nothing };
    GR_ASSERT(slice->rows->n_rows == graph->n_slice);
    return (struct gr_slice){ .rows = slice->rows, .first = slice->first_row, .train_mask = slice->train_mask };
}

/* Replace parts by ranks in graph->slice.owner: deal the vertices of a part to its ranks in turn, training vertices
 * separately from other vertices, so that each rank has equal numbers of both. */
static int32_t deal_parts(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    const struct gr_slice rows = rows_of(graph, slice);
    const int32_t         c = graph->columns;
    int64_t              *next = NULL; /* [parts x 2] numbers of vertices dealt so far, without and with training */
    int32_t               rc = GR_NEW(graph->context, next, 2 * (int64_t)gr_graph_owner_parts(graph), error);

    for (int64_t i = 0; i < graph->n_slice && next != NULL; i++) {
        int64_t *at = &next[2 * graph->slice.owner[i] + (rows.train_mask != NULL && rows.train_mask[i] != 0)];

        graph->slice.owner[i] = graph->slice.owner[i] * c + (int32_t)((graph->comm->rank + (*at)++) % c);
    }
    gr_free(graph->context, next);
    return gr_comm_agree(graph->comm, rc, error);
}

/* Compute the totals of the slices before this rank's slice, and of all slices. */
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

/* Refine the partition jointly on all ranks, and report it. */
static int32_t refine_owners(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    const struct gr_slice           rows = rows_of(graph, slice);
    const struct gr_partition_input input = { .context = graph->context,
                                              .slice = &rows,
                                              .parts = gr_graph_owner_parts(graph),
                                              .comm = graph->comm,
                                              .first = graph->first };
    const size_t                    used = strlen(graph->division.partition);
    const int64_t                   rounds = (int64_t)gr_partition_options(graph->context)->method.number[0];
    struct gr_refinement            done;

    GR_TRY(gr_partition_refine(&input, rounds, graph->slice.owner, &done, error));
    snprintf(graph->division.partition + used, sizeof graph->division.partition - used,
             "; refined in %lld rounds, from %lld cut entries to %lld", (long long)done.rounds,
             (long long)done.cut_before, (long long)done.cut);
    if (graph->comm->rank == 0) gr_log(graph->context, GRAFT_LOG_INFO, "partition: %s", graph->division.partition);
    return GRAFT_OK;
}

/* Partition the slices by a method that does not need the whole graph. GIVEN: owners from the host do not change;
 * without them each rank owns its slice. */
static int32_t own_slice(graft_graph *graph, const graft_slice *slice, enum gr_partition_method method,
                         graft_error *error)
{
    const struct gr_slice           rows = rows_of(graph, slice);
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

/* Find the owners by a method. If parallel=auto compares ways to share columns, given owners do not change. */
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

/* If all ranks share the columns of one part, describe the owners, and warn that options of the partition have no
 * effect. */
static void describe_one_part(graft_graph *graph)
{
    if (is_dealt(graph))
        snprintf(graph->division.partition, sizeof graph->division.partition, "none, because " GR_OWNER_DEALT);
    if (graph->comm->rank != 0) return;
    gr_option_report_idle(graph->context, "partition", GR_OWNER_DEALT ", with every value except given");
    gr_option_report_idle(graph->context, "partition.file", "all ranks share the columns of one part");
}

/* -- routes to rank 0, and a file of owners, which rank 0 reads and writes ----------------------------------------- */

/* Plan the route of all rows, or all edges, of each slice to rank 0. */
static int32_t lay_root_route(const graft_graph *g, struct gr_route *route, int edges, graft_error *error)
{
    const int32_t rc = gr_comm_route_init(route, g->comm, error);

    for (int32_t p = 0; p < g->comm->n_ranks && rc == GRAFT_OK; p++) {
        const struct gr_share *s = &g->share[p], *mine = &g->share[g->comm->rank];

        route->out[p + 1] = edges ? mine->n_edges : mine->n_slice;
        if (g->comm->rank == 0) route->in[p + 1] = route->in[p] + (edges ? s->n_edges : s->n_slice);
    }
    return rc;
}

int32_t gr_graph_root_init(const graft_graph *g, struct gr_root *root, graft_error *error)
{
    GR_TRY(lay_root_route(g, &root->rows, 0, error));
    return lay_root_route(g, &root->edges, 1, error);
}

void gr_graph_root_fini(struct gr_root *root)
{
    gr_comm_route_fini(&root->rows);
    gr_comm_route_fini(&root->edges);
}

/* The owners of all vertices on rank 0, and the route to rank 0. */
struct all_owners {
    struct gr_pool pool;
    struct gr_root root;
    int32_t       *owner; /* [n_vertices] owners, on rank 0 */
    uint64_t      *print; /* [n_ranks] fingerprints of the slices */
};

static int32_t all_owners_init(const graft_graph *g, struct all_owners *all, graft_error *error)
{
    *all = (struct all_owners){ 0 };
    GR_TRY(gr_graph_root_init(g, &all->root, error));
    GR_TRY(GR_POOL_NEW(g->context, &all->pool, all->owner, gr_comm_route_n_in(&all->root.rows), error));
    return GR_POOL_NEW(g->context, &all->pool, all->print, g->comm->n_ranks, error);
}

static void all_owners_fini(const graft_graph *g, struct all_owners *all)
{
    gr_graph_root_fini(&all->root);
    gr_pool_fini(g->context, &all->pool);
}

static int32_t identify_graph(const graft_graph *g, const graft_slice *slice, uint64_t *print,
                              struct gr_graph_identity *identity, graft_error *error)
{
    const struct gr_slice rows = rows_of(g, slice);
    const uint64_t        mine = g->n_slice > 0 ? gr_partition_slice_fingerprint(&rows) : 0;
    int32_t               rc = gr_comm_allgather(g->comm, &mine, sizeof mine, print, error);

    *identity = (struct gr_graph_identity){ .n_vertices = g->n_vertices };
    for (int32_t p = 0; p < g->comm->n_ranks && rc == GRAFT_OK; p++) {
        identity->n_edges += g->share[p].n_edges;
        identity->fingerprint += print[p];
    }
    return rc;
}

/* On rank 0: read the file, or check that it can be written. */
static int32_t read_or_check(const graft_graph *g, const char *path, const struct gr_graph_identity *identity,
                             int32_t *owner, int32_t *found, graft_error *error)
{
    const int32_t rc = gr_partition_owners_read(g->context, path, identity, gr_graph_owner_parts(g), owner, error);

    *found = rc == GRAFT_OK;
    return rc == GRAFT_ERR_NOT_FOUND ? gr_partition_owners_check_place(path, identity, gr_graph_owner_parts(g), error)
                                     : rc;
}

/* Read the owners from a file on rank 0, if it exists. If not, check that it can be written, and set *found to 0.
 * Collective. */
static int32_t load_owners(graft_graph *g, const graft_slice *slice, const char *path,
                           struct gr_graph_identity *identity, int32_t *found, graft_error *error)
{
    struct all_owners all;
    int32_t           rc = all_owners_init(g, &all, error);

    GR_ASSERT(path[0] != '\0');
    *found = 0;
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(identify_graph(g, slice, all.print, identity, error));
    if (g->comm->rank == 0) rc = read_or_check(g, path, identity, all.owner, found, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(gr_comm_broadcast(g->comm, 0, found, sizeof *found, error));
    if (!*found) goto done;
    GR_TRY_DONE(gr_comm_route_return(&all.root.rows, all.owner, g->slice.owner, sizeof *g->slice.owner, error));
    snprintf(g->division.partition, sizeof g->division.partition, "from the file %.300s", path);
done:
    all_owners_fini(g, &all);
    return rc;
}

/* Write the owners into a file on rank 0. Collective. */
static int32_t save_owners(const graft_graph *g, const char *path, const struct gr_graph_identity *identity,
                           graft_error *error)
{
    struct all_owners all;
    int32_t           rc = all_owners_init(g, &all, error);

    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(gr_comm_route_send(&all.root.rows, g->slice.owner, all.owner, sizeof *g->slice.owner, error));
    if (g->comm->rank == 0) rc = gr_partition_owners_write(path, identity, gr_graph_owner_parts(g), all.owner, error);
    rc = gr_comm_agree(g->comm, rc, error);
done:
    all_owners_fini(g, &all);
    return rc;
}

/* -- all ways to find owners --------------------------------------------------------------------------------------- */

int32_t gr_graph_owner_find(graft_graph *graph, const graft_slice *slice, graft_error *error)
{
    const struct gr_form          *option = &gr_partition_options(graph->context)->method;
    const enum gr_partition_method method = (enum gr_partition_method)option->word;
    const char                    *file = gr_partition_options(graph->context)->file;
    int64_t                        rounds = (int64_t)option->number[0];
    struct gr_graph_identity       identity;
    int32_t                        found = 0;

    GR_TRY(find_columns(graph, error));
    snprintf(graph->division.partition, sizeof graph->division.partition, "%s",
             graph->division.is_given ? "given by the host" : gr_partition_name(method));
    if (graph->division.is_given) {
        GR_TRY(gr_comm_agree(graph->comm, take_given(graph, slice, error), error));
        return graph->division.compares ? own_by_method(graph, slice, GR_PARTITION_GIVEN, error) : GRAFT_OK;
    }
    if (graph->columns > 1 && graph->columns == graph->comm->n_ranks) {
        describe_one_part(graph);
        file = "";
        rounds = 0;
    }
    if (file[0] != '\0') GR_TRY(load_owners(graph, slice, file, &identity, &found, error));
    if (!found) GR_TRY(own_by_method(graph, slice, method, error));
    if (rounds > 0 && gr_graph_owner_parts(graph) > 1) GR_TRY(refine_owners(graph, slice, error));
    if (file[0] != '\0' && !found) GR_TRY(save_owners(graph, file, &identity, error));
    return is_dealt(graph) ? deal_parts(graph, slice, error) : GRAFT_OK;
}
