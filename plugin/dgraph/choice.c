/* Partitions a whole graph on rank 0, after a measurement of the network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/available.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "dgraph/owner.h"
#include "halo/format.h"
#include "halo/options.h"
#include "partition/metis.h"
#include "partition/options.h"

#include <math.h>

/* To measure the network, each rank sends PROBE_BYTES in total to all other ranks, PROBES times. */
enum { PROBE_BYTES = 1 << 20, PROBES = 4 };

/* The structure of the graph: a copy of the slice, because a message may outlive a call that fails, and on rank 0 the
 * whole graph. */
struct structure {
    struct gr_pool pool;
    struct gr_root root;
    int64_t       *end, *ends;           /* [n_slice] ends of rows; on rank 0 [n_vertices + 1] row pointers */
    int32_t       *column, *columns;     /* columns of the edges: of the slice; of all */
    uint8_t       *train_mask, *trains;  /* training masks: of the slice; of all */
    int32_t       *owner;                /* [n_vertices] owners, on rank 0 */
    int64_t        block;                /* bytes from one rank to another when the network is measured */
    char          *probe_out, *probe_in; /* [n_ranks * block] messages of the measurement */
};

static int32_t structure_init(const graft_graph *g, const graft_slice *slice, struct structure *s, graft_error *error)
{
    const int64_t entries = g->share[g->comm->rank].n_edges;

    GR_ASSERT(g->comm->n_ranks > 1);
    *s = (struct structure){ .block = PROBE_BYTES / (g->comm->n_ranks - 1) + 1 };
    GR_TRY(gr_graph_root_init(g, &s->root, error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->end, g->n_slice, error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->ends, gr_comm_route_n_in(&s->root.rows) + 1, error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->column, entries, error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->columns, gr_comm_route_n_in(&s->root.edges), error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->train_mask, g->n_slice, error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->trains, gr_comm_route_n_in(&s->root.rows), error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->owner, gr_comm_route_n_in(&s->root.rows), error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->probe_out, g->comm->n_ranks * s->block, error));
    GR_TRY(GR_POOL_NEW(g->context, &s->pool, s->probe_in, g->comm->n_ranks * s->block, error));
    for (int64_t i = 0; i < g->n_slice; i++) {
        s->end[i] = slice->rows->row_ptr[i + 1];
        s->train_mask[i] = slice->train_mask != NULL && slice->train_mask[i] != 0;
    }
    for (int64_t e = 0; e < entries; e++) s->column[e] = (int32_t)gr_csr_column(slice->rows, e);
    return GRAFT_OK;
}

static int32_t gather_structure(const graft_graph *g, struct structure *s, enum gr_partition_method method,
                                graft_error *error)
{
    int64_t before = 0;

    GR_TRY(gr_comm_route_send(&s->root.rows, s->end, s->ends + 1, sizeof *s->end, error));
    GR_TRY(gr_comm_route_send(&s->root.edges, s->column, s->columns, sizeof *s->column, error));
    GR_TRY(gr_comm_route_send(&s->root.rows, s->train_mask, s->trains, sizeof *s->train_mask, error));
    if (!gr_partition_needs_whole(method))
        GR_TRY(gr_comm_route_send(&s->root.rows, g->slice.owner, s->owner, sizeof *s->owner, error));
    for (int32_t p = 0; p < g->comm->n_ranks && g->comm->rank == 0; p++) {
        for (int64_t v = g->first[p]; v < g->first[p + 1]; v++) s->ends[v + 1] += before;
        before += g->share[p].n_edges;
    }
    return GRAFT_OK;
}

/* Measure the seconds in which all ranks send this many bytes to each other rank: the fastest of a few tries, because
 * other ranks may be late or busy. */
static int32_t probe_network(const graft_graph *g, const struct structure *s, int64_t bytes, double *fastest,
                             graft_error *error)
{
    *fastest = INFINITY;
    for (int i = 0; i < PROBES; i++) {
        double begin;

        GR_TRY(gr_comm_barrier(g->comm, error));
        begin = gr_seconds();
        GR_TRY(gr_comm_alltoall(g->comm, s->probe_out, (uint64_t)bytes, s->probe_in, error));
        *fastest = fmin(*fastest, gr_seconds() - begin);
    }
    return GRAFT_OK;
}

/* Measure the bytes that a rank sends per second, and the latency of a message. */
static int32_t measure_network(const graft_graph *g, const struct structure *s, double *bytes_per_second,
                               double *latency, graft_error *error)
{
    double large = 0, small = 0;

    GR_TRY(probe_network(g, s, s->block, &large, error));
    if (g->division.compares) GR_TRY(probe_network(g, s, 8, &small, error));
    *bytes_per_second = (double)(s->block * (g->comm->n_ranks - 1)) / fmax(large, 1e-9);
    *latency = small / (g->comm->n_ranks - 1);
    return GRAFT_OK;
}

/* Return which rows are sent according to the cover. */
static enum gr_rows sent_rows_of(const graft_context *context, const struct gr_workload *workload)
{
    static const enum gr_rows rows[] = {
        [GR_HALO_COVER_HYBRID] = GR_ROWS_LEAST, [GR_HALO_COVER_PRE] = GR_ROWS_PRE, [GR_HALO_COVER_POST] = GR_ROWS_POST
    };

    return workload->reads_rows ? GR_ROWS_POST : rows[gr_halo_options(context)->cover];
}

int32_t gr_graph_owner_cost(const graft_context *context, const struct gr_workload *workload,
                            const struct gr_owner_rates *rates, struct gr_partition_cost *cost, graft_error *error)
{
    const struct gr_row_format format = gr_halo_row_format(context);
    const double               bytes = (format.bits[GR_FORWARD] + format.bits[GR_BACKWARD]) / 8.0;
    const int32_t              layers = workload->layers, hidden = layers > 1 ? layers - 1 : 1;
    int64_t                   *width = NULL;
    int32_t                    rc = GRAFT_OK;

    *cost = (struct gr_partition_cost){ .rows = sent_rows_of(context, workload) };
    GR_TRY_DONE(GR_NEW(context, width, hidden, error));
    GR_TRY_DONE(gr_option_spread_widths(&workload->hidden, hidden, "option 'hidden'", "hidden layers", width, error));
    for (int32_t i = 0; i < hidden; i++) {
        const double w = (double)width[i], times = (double)layers / hidden;

        cost->vertex += times * 6 * w * w / rates->operations_per_second;
        if (!workload->gathers) continue;
        cost->entry += times * 2 * w * rates->element_seconds;
        cost->row += times * bytes * w / rates->bytes_per_second;
    }
done:
    gr_free(context, width);
    return rc;
}

static int32_t send_choice_heartbeat(void *arg, graft_error *error)
{
    struct gr_heartbeat *heartbeat = arg;
    const int32_t        rc = gr_context_check_cancel(heartbeat->comm->context, error);

    return rc < 0 ? rc : gr_comm_heartbeat(heartbeat, error);
}

/* End the work of rank 0, for which the others wait, with the status rc. */
static int32_t end_waiting(struct gr_heartbeat *heartbeat, int32_t rc, graft_error *error)
{
    graft_error late = GRAFT_INIT(graft_error);

    if (heartbeat->is_cancelled) return GRAFT_OK; /* the cancelling rank reports this when the ranks agree */
    if (rc == GRAFT_ERR_PEER || gr_comm_heartbeat_end(heartbeat, &late) == GRAFT_OK) return rc;
    *error = late;
    return GRAFT_ERR_PEER;
}

/* Check that the machine or container of this rank has the memory for the whole graph. */
static int32_t check_machine(const graft_graph *g, int64_t entries, graft_error *error)
{
    const double needed = gr_partition_metis_bytes(g->n_vertices, entries);
    const double there = (double)gr_memory_available();

    if (there <= 0 || needed <= there) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                   "the graph has %lld vertices and %lld entries, for which %s needs more than %.3g GB, and "
                   "%.3g GB are available to rank 0",
                   (long long)g->n_vertices, (long long)entries, g->division.compares ? "parallel=auto" : "METIS",
                   needed * 1e-9, there * 1e-9);
}

int32_t gr_graph_owner_check_whole(const graft_graph *g, int64_t entries, enum gr_partition_method method,
                                   graft_error *error)
{
    struct gr_heartbeat       heartbeat = { .comm = g->comm };
    const struct gr_meanwhile meanwhile = { send_choice_heartbeat, &heartbeat };
    const int asks = gr_partition_needs_whole(method) && gr_partition_metis_is_asked(g->n_vertices, entries);
    int32_t   rc = GRAFT_OK;

    if (g->comm->rank == 0) {
        if (gr_partition_needs_whole(method))
            rc = gr_partition_metis_check_size(g->context, g->n_vertices, entries, &meanwhile, error);
        if (rc == GRAFT_OK && (method == GR_PARTITION_AUTO || g->division.compares))
            rc = check_machine(g, entries, error);
        if (asks) rc = end_waiting(&heartbeat, rc, error);
    } else if (asks) {
        rc = gr_comm_attend(g->comm, error);
    }
    return gr_comm_agree(g->comm, rc, error);
}

static void describe_owners(const graft_graph *g, const struct gr_partition_choice *choice, struct gr_text *text)
{
    const enum gr_partition_method method = (enum gr_partition_method)gr_partition_options(g->context)->method.word;

    if (g->division.is_given) gr_text_add(text, "given by the host, kept");
    else if (method == GR_PARTITION_GIVEN) gr_text_add(text, "given, kept");
    else if (g->columns == g->comm->n_ranks && g->columns > 1) gr_text_add(text, "none, because " GR_OWNER_DEALT);
    else gr_text_add(text, "%s, %s", gr_partition_name(method), choice->why);
}

/* Choose the owners on rank 0, while the others wait. */
static int32_t choose_owners(graft_graph *g, struct structure *s, enum gr_partition_method method,
                             const struct gr_owner_rates *rates, double latency, graft_error *error)
{
    const graft_csr rows = {
        sizeof rows, GRAFT_I32, 0, 0, g->n_vertices, g->n_vertices, s->ends, s->columns, NULL, NULL
    };
    const struct gr_slice         whole = { &rows, 0, s->trains };
    struct gr_partition_choice    choice = { .why = "" };
    struct gr_grid_costs          costs = { .latency = latency, .bytes_per_second = rates->bytes_per_second };
    struct gr_heartbeat           heartbeat = { .comm = g->comm };
    const struct gr_meanwhile     meanwhile = { send_choice_heartbeat, &heartbeat };
    const int32_t                *found = gr_partition_needs_whole(method) ? NULL : s->owner;
    const struct gr_grid_question question = { &whole, found, method, &costs, &meanwhile };
    int32_t rc = gr_graph_owner_cost(g->context, &g->division.workload, rates, &costs.of_rank, error);

    if (rc == GRAFT_OK)
        rc = g->division.compares ? gr_graph_grids_choose(g, &question, s->owner, &choice, error)
                                  : gr_partition_choose(g->context, &whole, gr_graph_owner_parts(g), method,
                                                        &costs.of_rank, &meanwhile, s->owner, &choice, error);
    if (rc == GRAFT_OK) {
        struct gr_text text = { g->division.partition, sizeof g->division.partition };

        describe_owners(g, &choice, &text);
        gr_text_add(&text, "; measured: %.3g MB/s between ranks", rates->bytes_per_second * 1e-6);
        if (g->division.compares)
            gr_text_add(&text, ", %.3g us a message; a rank sums %.3g G elements/s and multiplies at %.3g GFLOP/s",
                        latency * 1e6, 1e-9 / rates->element_seconds, rates->operations_per_second * 1e-9);
        gr_log(g->context, GRAFT_LOG_INFO, "partition: %s", g->division.partition);
    }
    return end_waiting(&heartbeat, rc, error);
}

int32_t gr_graph_owner_choose(graft_graph *g, const graft_slice *slice, enum gr_partition_method method,
                              graft_error *error)
{
    struct structure      s;
    struct gr_owner_rates rates;
    double                bytes_per_second = 0, latency = 0;
    int32_t               rc = structure_init(g, slice, &s, error);

    if (rc == GRAFT_OK && g->division.compares) rc = gr_graph_grids_init(g, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(measure_network(g, &s, &bytes_per_second, &latency, error));
    rates = gr_graph_rates_assumed(g->context, bytes_per_second);
    if (g->division.compares) GR_TRY_DONE(gr_graph_rates_measure(g, slice, &rates, error));
    GR_TRY_DONE(gather_structure(g, &s, method, error));
    rc = g->comm->rank == 0 ? choose_owners(g, &s, method, &rates, latency, error) : gr_comm_attend(g->comm, error);
    GR_TRY_DONE(gr_comm_agree(g->comm, rc, error));
    GR_TRY_DONE(gr_comm_broadcast(g->comm, 0, g->division.partition, sizeof g->division.partition, error));
    if (g->division.compares) GR_TRY_DONE(gr_graph_grids_share(g, error));
    if (method != GR_PARTITION_GIVEN)
        rc = gr_comm_route_return(&s.root.rows, s.owner, g->slice.owner, sizeof *g->slice.owner, error);
done:
    gr_pool_fini(g->context, &s.pool);
    gr_graph_root_fini(&s.root);
    return rc;
}
