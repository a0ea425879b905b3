/* Finds the nodes of this rank that other ranks also have. Every rank knows the boxes around the nodes of all ranks;
 * two ranks whose boxes intersect exchange the nodes in the intersection.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/route.h"
#include "mesh/build.h"

#include <string.h>

/* Coordinates of a node may differ between ranks by the sum of these fractions of the largest extent and of the largest
 * coordinate, which is a little more than the rounding of floats. */
#define EXTENT_SHARE 1e-6
#define ROUNDING 2.4e-7

/* What all ranks know of each rank: its arguments, and the box around its nodes. */
struct rank_record {
    int32_t kind, dim;
    int32_t has_rows, has_owners;             /* has_owners is not compared on a rank without rows */
    int32_t has_cells, has_edges, has_arrays; /* has_arrays: the host gave cells or edges, maybe empty */
    double  period[3];
    double  low[3], high[3]; /* corners of its box */
};

static struct rank_record own_record(const struct gr_local_mesh *local)
{
    const graft_mesh_args *a = local->args;
    struct rank_record     r = { .kind = a->kind, .dim = a->dim };

    r.has_rows = a->n_rows > 0;
    r.has_owners = a->owners != NULL;
    r.has_cells = a->n_cells > 0;
    r.has_edges = a->n_edges > 0;
    r.has_arrays = a->cell_nodes != NULL || a->edge_sources != NULL || a->edge_targets != NULL;
    memcpy(r.period, a->period, sizeof r.period);
    for (int c = 0; c < a->dim; c++) {
        r.low[c] = INFINITY;
        r.high[c] = -INFINITY;
    }
    for (int64_t i = 0; i < a->n_rows; i++)
        for (int c = 0; c < a->dim; c++) {
            const double x = gr_mesh_field_at(&local->x, i, c);

            if (x < r.low[c]) r.low[c] = x;
            if (x > r.high[c]) r.high[c] = x;
        }
    return r;
}

static int32_t disagree(const char *what, int32_t q, double of_q, int32_t p, double of_p, graft_error *error)
{
    gr_fail(error, GRAFT_ERR_ARG, "the ranks disagree: %s is %.17g on rank %d, %.17g on rank %d", what, of_q, q, of_p,
            p);
    error->rank = p;
    return error->code;
}

/* Check that the arguments of all ranks agree. All ranks check the same records, so all find the same fault. */
static int32_t check_records_agree(const struct rank_record *r, int32_t n_ranks, graft_error *error)
{
    int32_t with_rows = -1, with_cells = -1, with_edges = -1, with_arrays = -1;

    for (int32_t p = 0; p < n_ranks; p++) {
        if (r[p].kind != r[0].kind) return disagree("kind", 0, r[0].kind, p, r[p].kind, error);
        if (r[p].dim != r[0].dim) return disagree("dim", 0, r[0].dim, p, r[p].dim, error);
        for (int c = 0; c < 3; c++)
            if (r[p].period[c] != r[0].period[c])
                return disagree(c == 0   ? "period[0]"
                                : c == 1 ? "period[1]"
                                         : "period[2]",
                                0, r[0].period[c], p, r[p].period[c], error);
        if (with_rows < 0 && r[p].has_rows) with_rows = p;
        if (with_cells < 0 && r[p].has_cells) with_cells = p;
        if (with_edges < 0 && r[p].has_edges) with_edges = p;
        if (with_arrays < 0 && r[p].has_arrays) with_arrays = p;
        if (r[p].has_rows && r[p].has_owners != r[with_rows].has_owners)
            return disagree("whether owners are given", with_rows, r[with_rows].has_owners, p, r[p].has_owners, error);
        if (with_cells >= 0 && with_edges >= 0) {
            gr_fail(error, GRAFT_ERR_ARG, "the ranks disagree: rank %d has cells, and rank %d has edges", with_cells,
                    with_edges);
            error->rank = p;
            return error->code;
        }
    }
    if (with_rows >= 0 && with_arrays < 0)
        return gr_fail(error, GRAFT_ERR_ARG, "neither cells nor edges are given on any rank, expected one of them");
    return GRAFT_OK;
}

/* The distance from `from` up to `x`; in a periodic direction, to the first image of x that is not below `from`. */
static double distance_up(double from, double x, double period)
{
    const double d = x - from;

    return period > 0 ? d - period * floor(d / period) : d;
}

struct meet {
    const struct gr_local_mesh *local;
    struct rank_record         *record; /* [n_ranks] */
    double                      tolerance;
    uint8_t                    *meets; /* [n_ranks] whether the box of each rank intersects the box of this rank */
    struct gr_route             route;
    int32_t                    *in_node; /* [received] the same node on this rank, or -1 */
};

static double find_tolerance(const struct rank_record *r, int32_t n_ranks)
{
    double extent = 0, largest = 0;

    for (int c = 0; c < r[0].dim; c++) {
        double low = INFINITY, high = -INFINITY;

        for (int32_t p = 0; p < n_ranks; p++) {
            if (!r[p].has_rows) continue;
            low = fmin(low, r[p].low[c]);
            high = fmax(high, r[p].high[c]);
        }
        if (low > high) continue;
        extent = fmax(extent, high - low);
        largest = fmax(largest, fmax(fabs(low), fabs(high)));
    }
    return EXTENT_SHARE * extent + ROUNDING * largest;
}

/* Whether two boxes, enlarged by the tolerance, intersect. Both ranks pass the lower rank first, so that rounding gives
 * the same result. */
static int boxes_meet(const struct meet *m, const struct rank_record *a, const struct rank_record *b)
{
    if (!a->has_rows || !b->has_rows) return 0;
    for (int c = 0; c < a->dim; c++) {
        const double period = a->period[c];
        const double grown = 2 * m->tolerance;

        if (period == 0 && (a->low[c] > b->high[c] + grown || b->low[c] > a->high[c] + grown)) return 0;
        if (period > 0 && distance_up(a->low[c] - grown, b->low[c], period) > a->high[c] - a->low[c] + 2 * grown &&
            distance_up(b->low[c] - grown, a->low[c], period) > b->high[c] - b->low[c] + 2 * grown)
            return 0;
    }
    return 1;
}

/* Whether a row is in the box of a rank, enlarged by the tolerance. */
static int is_in_box(const struct meet *m, const struct rank_record *box, int64_t row)
{
    for (int c = 0; c < box->dim; c++) {
        const double up =
            distance_up(box->low[c] - 2 * m->tolerance, gr_mesh_field_at(&m->local->x, row, c), box->period[c]);

        if (!(up >= 0 && up <= box->high[c] - box->low[c] + 4 * m->tolerance)) return 0;
    }
    return 1;
}

/* A node in a message; `dim` coordinates follow. */
struct node_record {
    int64_t id;
    int32_t node, owner;
};

static int64_t node_bytes(const struct meet *m)
{
    return (int64_t)sizeof(struct node_record) + m->local->args->dim * (int64_t)sizeof(double);
}

/* The address of received node k. */
static const char *node_at(const struct meet *m, int64_t k)
{
    return (const char *)m->route.received + k * node_bytes(m);
}

static void pack_node(const struct meet *m, int32_t node, char *to)
{
    const struct gr_local_mesh *local = m->local;
    const int32_t               row = local->row_of[node];
    const struct node_record    record = { local->id[node], node,
                                        local->args->owners != NULL ? local->args->owners[row] : -1 };

    if (to == NULL) return;
    memcpy(to, &record, sizeof record);
    for (int c = 0; c < local->args->dim; c++) {
        const double x = gr_mesh_field_at(&local->x, row, c);

        memcpy(to + sizeof record + (uint64_t)c * sizeof x, &x, sizeof x);
    }
}

/* Pack the nodes in the box of each rank whose box intersects the box of this rank. */
static void pack_nodes(void *arg, struct gr_route *route)
{
    const struct meet *m = arg;

    for (int32_t q = 0; q < m->local->comm->n_ranks; q++) {
        if (!m->meets[q]) continue;
        for (int32_t node = 0; node < m->local->n; node++)
            if (is_in_box(m, &m->record[q], m->local->row_of[node])) pack_node(m, node, gr_comm_route_item(route, q));
    }
}

/* Check that rank q and this rank agree on owner and coordinates of a node. */
static int32_t compare_node(const struct meet *m, int32_t q, const char *record, int32_t node, graft_error *error)
{
    const struct gr_local_mesh *local = m->local;
    const graft_mesh_args      *a = local->args;
    const int32_t               row = local->row_of[node];
    struct node_record          theirs;

    memcpy(&theirs, record, sizeof theirs);
    if (a->owners != NULL && a->owners[row] != theirs.owner)
        return gr_fail(error, GRAFT_ERR_FORMAT, "row %lld, node %lld: its owner is %d, and on rank %d it is %d",
                       (long long)row + a->index_base, (long long)theirs.id, a->owners[row], q, theirs.owner);
    for (int c = 0; c < a->dim; c++) {
        const double mine = gr_mesh_field_at(&local->x, row, c);
        double       x;

        memcpy(&x, record + sizeof theirs + (uint64_t)c * sizeof x, sizeof x);
        if (!(fabs(gr_nearest_image(mine - x, a->period[c])) <= m->tolerance))
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "row %lld, node %lld: its coordinate %d is %.17g, and on rank %d it is %.17g",
                           (long long)row + a->index_base, (long long)theirs.id, c, mine, q, x);
    }
    return GRAFT_OK;
}

/* Check that rows of this rank with the same id have the same coordinates. */
static int32_t compare_rows(const struct meet *m, graft_error *error)
{
    const struct gr_local_mesh *local = m->local;
    const graft_mesh_args      *a = local->args;

    for (int64_t row = 0; row < a->n_rows; row++) {
        const int32_t first = local->row_of[local->node_of[row]];

        for (int c = 0; c < a->dim && first != row; c++) {
            const double one = gr_mesh_field_at(&local->x, first, c), other = gr_mesh_field_at(&local->x, row, c);

            if (fabs(gr_nearest_image(one - other, a->period[c])) <= m->tolerance) continue;
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "rows %lld and %lld have the same id, %lld, but coordinate %d is %.17g and %.17g",
                           (long long)first + a->index_base, (long long)row + a->index_base,
                           (long long)local->id[local->node_of[row]], c, one, other);
        }
    }
    return GRAFT_OK;
}

/* Find the received nodes that this rank has, and pair them. */
static int32_t match_nodes(struct meet *m, struct gr_meeting *meeting, graft_error *error)
{
    const struct gr_local_mesh *local = m->local;
    int64_t                     count = 0;

    GR_TRY(compare_rows(m, error));
    GR_TRY(GR_NEW(local->context, m->in_node, gr_comm_route_n_in(&m->route), error));
    for (int32_t q = 0; q < local->comm->n_ranks; q++) {
        for (int64_t k = m->route.in[q]; k < m->route.in[q + 1]; k++) {
            const char        *record = node_at(m, k);
            struct node_record theirs;

            memcpy(&theirs, record, sizeof theirs);
            m->in_node[k] = gr_mesh_id_table_find(&local->table, theirs.id);
            if (m->in_node[k] < 0) continue;
            GR_TRY(compare_node(m, q, record, m->in_node[k], error));
            count++;
        }
        meeting->start[q + 1] = count;
        meeting->is_peer[q] = count > meeting->start[q];
    }
    GR_TRY(GR_NEW(local->context, meeting->node, count, error));
    GR_TRY(GR_NEW(local->context, meeting->place, count, error));
    for (int64_t k = 0, put = 0; put < count; k++) {
        struct node_record theirs;

        if (m->in_node[k] < 0) continue;
        memcpy(&theirs, node_at(m, k), sizeof theirs);
        meeting->node[put] = m->in_node[k];
        meeting->place[put++] = theirs.node;
    }
    return GRAFT_OK;
}

static int32_t allocate_meeting(struct meet *m, struct gr_meeting *meeting, graft_error *error)
{
    const graft_context *context = m->local->context;
    const int64_t        n_ranks = m->local->comm->n_ranks;

    GR_TRY(GR_NEW(context, m->record, n_ranks, error));
    GR_TRY(GR_NEW(context, m->meets, n_ranks, error));
    GR_TRY(GR_NEW(context, meeting->start, n_ranks + 1, error));
    GR_TRY(GR_NEW(context, meeting->is_peer, n_ranks, error));
    return gr_comm_route_init(&m->route, m->local->comm, error);
}

int32_t gr_mesh_local_meet(const struct gr_local_mesh *local, struct gr_meeting *meeting, graft_error *error)
{
    const int32_t            rank = local->comm->rank, n_ranks = local->comm->n_ranks;
    const struct rank_record mine = own_record(local);
    struct meet              m = { .local = local };
    int32_t                  rc = allocate_meeting(&m, meeting, error);

    GR_TRY_DONE(gr_comm_agree(local->comm, rc, error));
    GR_TRY_DONE(gr_comm_allgather(local->comm, &mine, sizeof mine, m.record, error));
    GR_TRY_DONE(check_records_agree(m.record, n_ranks, error));
    m.tolerance = find_tolerance(m.record, n_ranks);
    for (int32_t q = 0; q < n_ranks; q++)
        m.meets[q] = q != rank && boxes_meet(&m, &m.record[q < rank ? q : rank], &m.record[q < rank ? rank : q]);
    m.route.is_peer = m.meets;
    GR_TRY_DONE(gr_comm_route_exchange(&m.route, pack_nodes, &m, node_bytes(&m), error));
    GR_TRY_DONE(gr_comm_agree(local->comm, match_nodes(&m, meeting, error), error));
    rc = gr_mesh_local_compare_far(local, m.tolerance, error);
done:
    gr_comm_route_fini(&m.route);
    gr_free(local->context, m.record);
    gr_free(local->context, m.meets);
    gr_free(local->context, m.in_node);
    return rc;
}

void gr_mesh_meeting_fini(const graft_context *context, struct gr_meeting *meeting)
{
    gr_free(context, meeting->start);
    gr_free(context, meeting->node);
    gr_free(context, meeting->place);
    gr_free(context, meeting->is_peer);
}
