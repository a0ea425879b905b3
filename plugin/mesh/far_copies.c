/* Finds nodes with the same id but different coordinates on ranks whose boxes do not intersect, which therefore
 * exchange no nodes. A hash of the id chooses a rank that compares the coordinates, for all ids with check=full, else
 * for a sample. A sample detects systematic mistakes, such as local indices instead of global ids.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"
#include "comm/route.h"
#include "mesh/build.h"

#include <string.h>

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

static void pack(const struct far *f, int64_t node, char *to)
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
            pack(f, node, gr_comm_route_item(route, (int32_t)((bits >> 32) % n_ranks)));
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

int32_t gr_mesh_local_compare_far(const struct gr_local_mesh *local, double tolerance, graft_error *error)
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
