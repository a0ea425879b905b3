/* Finds the nodes of this rank that other ranks also have. Every rank knows the boxes around the nodes of all ranks;
 * two ranks whose boxes intersect exchange the nodes in the intersection.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"
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
    int32_t has_cells, has_edges, has_arrays; /* has_arrays: arrays of cells or edges are given, perhaps empty */
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
    struct gr_pool              pool;
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

/* Find the received nodes that this rank also has, compare them, and list the pairs in `meeting`. */
static int32_t match_nodes(struct meet *m, struct gr_meeting *meeting, graft_error *error)
{
    const struct gr_local_mesh *local = m->local;
    int64_t                     count = 0;

    GR_TRY(compare_rows(m, error));
    GR_TRY(GR_POOL_NEW(local->context, &m->pool, m->in_node, gr_comm_route_n_in(&m->route), error));
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
    GR_TRY(GR_POOL_NEW(local->context, &meeting->pool, meeting->node, count, error));
    GR_TRY(GR_POOL_NEW(local->context, &meeting->pool, meeting->place, count, error));
    for (int64_t k = 0, put = 0; put < count; k++) {
        struct node_record theirs;

        if (m->in_node[k] < 0) continue;
        memcpy(&theirs, node_at(m, k), sizeof theirs);
        meeting->node[put] = m->in_node[k];
        meeting->place[put++] = theirs.node;
    }
    return GRAFT_OK;
}

/* -- one id at distant positions ---------------------------------------------------------------------------------- */

/* Ranks whose boxes do not intersect exchange no nodes. A hash of the id chooses a rank that compares the coordinates,
 * for all ids with check=full, else for a sample. A sample detects systematic mistakes, such as local indices instead
 * of global ids. */
enum { ONE_IN = GR_LIMIT(16, 1) }; /* a sample has one of this many ids */

struct far {
    const struct gr_local_mesh *local;
    double                      tolerance;
    uint64_t                    one_in;
    struct gr_route             route;
    const char                 *in; /* received ids and coordinates of nodes */
    int64_t                    *id; /* [received] id of each received node */
    struct gr_id_table          table;
};

static int64_t far_bytes(const struct far *f)
{
    return (1 + f->local->args->dim) * (int64_t)sizeof(double);
}

/* Hash an id: the upper half of the bits chooses the rank, the lower half whether the id is in the sample. */
static uint64_t mix(int64_t id)
{
    uint64_t bits = (uint64_t)id * 0x9e3779b97f4a7c15u;

    bits = (bits ^ bits >> 32) * 0xd6e8feb86659fd93u;
    return bits ^ bits >> 32;
}

static void pack_far(const struct far *f, int64_t node, char *to)
{
    if (to == NULL) return;
    memcpy(to, &f->local->id[node], sizeof f->local->id[node]);
    for (int c = 0; c < f->local->args->dim; c++) {
        const double x = gr_mesh_field_at(&f->local->x, f->local->row_of[node], c);

        memcpy(to + (1 + c) * (int64_t)sizeof x, &x, sizeof x);
    }
}

static void pack_chosen(void *arg, struct gr_route *route)
{
    const struct far *f = arg;
    const uint64_t    n_ranks = (uint64_t)f->local->comm->n_ranks;

    for (int64_t node = 0; node < f->local->n; node++) {
        const uint64_t bits = mix(f->local->id[node]);

        if ((uint32_t)bits % f->one_in == 0)
            pack_far(f, node, gr_comm_route_item(route, (int32_t)((bits >> 32) % n_ranks)));
    }
}

static int32_t sender_of(const struct far *f, int64_t item)
{
    int32_t q = 0;

    while (item >= f->route.in[q + 1]) q++;
    return q;
}

static double received_at(const struct far *f, int64_t item, int c)
{
    double x;

    memcpy(&x, f->in + item * far_bytes(f) + (1 + c) * (int64_t)sizeof x, sizeof x);
    return x;
}

static int32_t compare_received(struct far *f, graft_error *error)
{
    const graft_mesh_args *args = f->local->args;
    const int64_t          n_in = gr_comm_route_n_in(&f->route);

    GR_TRY(GR_NEW(f->local->context, f->id, n_in, error));
    GR_TRY(gr_mesh_id_table_init(f->local->context, &f->table, f->id, n_in, error));
    for (int64_t k = 0; k < n_in; k++) {
        int32_t first;

        memcpy(&f->id[k], f->in + k * far_bytes(f), sizeof f->id[k]);
        first = gr_mesh_id_table_add(&f->table, (int32_t)k);
        for (int c = 0; c < args->dim; c++) {
            const double x = received_at(f, first, c), y = received_at(f, k, c);

            if (!(fabs(gr_nearest_image(x - y, args->period[c])) <= f->tolerance))
                return gr_fail(error, GRAFT_ERR_FORMAT,
                               "node %lld: its coordinate %d is %.17g on rank %d, and %.17g on rank %d",
                               (long long)f->id[k], c, x, sender_of(f, first), y, sender_of(f, k));
        }
    }
    return GRAFT_OK;
}

/* Compare coordinates of nodes with the same id on any two ranks. Collective. */
static int32_t compare_far(const struct gr_local_mesh *local, double tolerance, graft_error *error)
{
    const int  is_full = gr_base_options(local->context)->check == GR_CHECK_FULL;
    struct far f = { .local = local, .tolerance = tolerance, .one_in = is_full ? 1 : ONE_IN };
    int32_t    rc;

    if (local->comm->n_ranks == 1) return GRAFT_OK;
    GR_TRY_DONE(gr_comm_agree(local->comm, gr_comm_route_init(&f.route, local->comm, error), error));
    GR_TRY_DONE(gr_comm_route_exchange(&f.route, pack_chosen, &f, far_bytes(&f), error));
    f.in = f.route.received;
    rc = gr_comm_agree(local->comm, compare_received(&f, error), error);
done:
    gr_comm_route_fini(&f.route);
    gr_free(local->context, f.id);
    gr_mesh_id_table_fini(local->context, &f.table);
    return rc;
}

/* -- all steps ---------------------------------------------------------------------------------------------------- */

static int32_t allocate_meeting(struct meet *m, struct gr_meeting *meeting, graft_error *error)
{
    const graft_context *context = m->local->context;
    const int64_t        n_ranks = m->local->comm->n_ranks;

    GR_TRY(GR_POOL_NEW(context, &m->pool, m->record, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &m->pool, m->meets, n_ranks, error));
    GR_TRY(GR_POOL_NEW(context, &meeting->pool, meeting->start, n_ranks + 1, error));
    GR_TRY(GR_POOL_NEW(context, &meeting->pool, meeting->is_peer, n_ranks, error));
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
    rc = compare_far(local, m.tolerance, error);
done:
    gr_comm_route_fini(&m.route);
    gr_pool_fini(local->context, &m.pool);
    return rc;
}
