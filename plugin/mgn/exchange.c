/* Exchange of rows with other ranks: h of ghosts, or sums m at shared nodes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dense_view.h"
#include "base/parallel.h"
#include "comm/collective.h"
#include "dense/options.h"
#include "halo/options.h"
#include "mgn/inside.h"

static int is_alone(const struct gr_mgn *g)
{
    return g->mesh->comm->n_ranks == 1;
}

uint32_t gr_mgn_option_bits(const graft_context *context)
{
    return gr_options_bit(context, &gr_dense_option_table) | gr_options_bit(context, &gr_halo_option_table);
}

int gr_mgn_refuses_nonfinite(const graft_context *context)
{
    const struct gr_halo_options *halo = gr_halo_options(context);

    return halo->nonfinite == GR_HALO_NONFINITE_REFUSE && gr_halo_codec_of(halo, GR_FORWARD).bits < 16;
}

/* Check options halo.*: networks on meshes have no adaptive codecs and no stale rows. */
static int32_t check_halo_options(const struct gr_mgn *g, graft_error *error)
{
    const struct gr_halo_options *halo = gr_halo_options(g->context);

    if (gr_halo_codec_of(halo, GR_FORWARD).adaptive || gr_halo_codec_of(halo, GR_BACKWARD).adaptive)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "option 'halo.codec' is adaptive, but networks on meshes have rows of one width; expected q8, for "
            "example");
    if (halo->staleness.word == GR_HALO_STALE)
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option 'halo.staleness' is 1, but networks on meshes have no stale rows; expected 0");
    if (g->mesh->kind == GRAFT_MESH_SHARED && gr_halo_codec_of(halo, GR_FORWARD).bits < 32 && g->mesh->comm->rank == 0)
        gr_log(g->context, GRAFT_LOG_WARNING,
               "option 'halo.codec' has no effect on a mesh of shared nodes: partial sums are sent unquantized");
    return GRAFT_OK;
}

int32_t gr_mgn_exchange_init(struct gr_mgn *g, graft_error *error)
{
    struct gr_comm *comm = g->mesh->comm;
    int32_t         rc;

    if (is_alone(g)) return GRAFT_OK;
    GR_TRY(gr_comm_agree(comm, check_halo_options(g, error), error));
    GR_TRY(gr_halo_rows_init(g->context, comm, &g->mesh->halo, NULL, 0, &g->messages.rows, error));
    rc = gr_halo_rows_reserve(&g->messages.rows, gr_mgn_width(g), g->blocks.dtype, 1, error);
    if (rc == GRAFT_OK)
        rc = gr_comm_outcome_init(&g->messages.outcome, comm, g->messages.rows.messages.framed.channel + 1,
                                  "an inference of a network", error);
    g->messages.rows.messages.framed.outcome = &g->messages.outcome;
    return gr_comm_agree(comm, rc, error);
}

void gr_mgn_exchange_fini(struct gr_mgn *g)
{
    if (g->messages.rows.begun) gr_comm_abandon(g->mesh->comm, "a network was destroyed between begin and end");
    if (g->messages.rows.halo != NULL) gr_halo_rows_fini(g->mesh->comm, &g->messages.rows);
    gr_comm_outcome_fini(&g->messages.outcome);
}

/* Find the rank whose copy row `row` of the halo is. */
static int32_t rank_of_copy(const struct gr_mgn *g, int64_t row)
{
    int32_t q = 0;

    while (g->mesh->halo.start[q + 1] <= row) q++;
    return q;
}

int32_t gr_mgn_compare_copies(struct gr_mgn *g, const uint64_t *numbers, int64_t *node, int32_t *rank,
                              graft_error *error)
{
    const struct gr_mesh_copies *copies = &g->mesh->copies;
    struct gr_comm              *comm = g->mesh->comm;
    uint64_t                    *packed = NULL, *others = NULL;
    int32_t                      rc = GRAFT_OK;

    *node = -1;
    if (!g->blocks.form.is_whole) return GRAFT_OK;
    rc = GR_NEW(g->context, packed, g->messages.rows.links.send_start[comm->n_ranks], error);
    if (rc == GRAFT_OK) rc = GR_NEW(g->context, others, g->mesh->halo.count, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(gr_halo_links_ask(&g->messages.rows.links, comm, numbers, packed, others, sizeof *others, error));
    for (int64_t i = 0; i < copies->count && *node < 0; i++)
        for (int64_t k = copies->start[i]; k < copies->start[i + 1] && *node < 0; k++) {
            if (others[copies->copy[k]] == numbers[copies->node[i]]) continue;
            *node = copies->node[i];
            *rank = rank_of_copy(g, copies->copy[k]);
        }
done:
    gr_free(g->context, packed);
    gr_free(g->context, others);
    return rc;
}

struct gr_team gr_mgn_polling(struct gr_mgn *g, struct gr_team team)
{
    if (!g->messages.rows.begun && gr_comm_outcome_is_known(&g->messages.outcome)) return team;
    team.poll = gr_comm_framed_poll;
    team.poll_arg = &g->messages.rows.exchange.messages->framed;
    return team;
}

int32_t gr_mgn_exchange_begin(struct gr_mgn *g, int64_t layer, enum gr_direction direction, char *rows,
                              struct gr_team team, graft_error *error)
{
    const graft_mesh   *mesh = g->mesh;
    const int           is_shared = mesh->kind == GRAFT_MESH_SHARED;
    const int64_t       width = gr_mgn_width(g);
    const void         *halo = is_shared ? g->arrays.copies : gr_mgn_row(g, rows, mesh->n_nodes);
    struct gr_halo_pass pass = { .direction = is_shared ? GR_FORWARD : direction,
                                 .layer = (int32_t)layer,
                                 .exact = g->pass.exact || is_shared,
                                 .stateless = 1,
                                 .epoch = g->pass.epoch,
                                 .call = g->messages.call,
                                 .sends_refused_rows = 1,
                                 .is_own = 1 };
    const double        begin = gr_mgn_clock(g);
    graft_error         found = { .size = sizeof found };
    int32_t             rc;

    if (is_alone(g)) return GRAFT_OK;
    pass.owned = gr_dense_view(rows, g->blocks.dtype, mesh->n_nodes, width, width);
    pass.halo = gr_dense_view(halo, g->blocks.dtype, mesh->halo.count, width, width);
    rc = gr_halo_rows_begin(&g->messages.rows, &pass, team, &found);
    if (rc == GRAFT_ERR_NONFINITE) {
        if (g->messages.refused == GRAFT_OK && !g->messages.received_refused) {
            g->messages.refused = rc;
            g->messages.reason = found;
        }
        rc = GRAFT_OK;
    }
    if (rc < 0) *error = found;
    gr_mgn_measure(g, layer, GR_MGN_PACK, begin);
    return rc;
}

/* The arguments of sums at shared nodes over all ranks. */
struct adding {
    struct gr_mgn *g;
    char          *rows;
};

static void add_some(void *arg, int64_t begin, int64_t end)
{
    const struct adding *a = arg;
    struct gr_mgn       *g = a->g;

    g->loops->add_copies(&g->mesh->copies, begin, end, gr_mgn_width(g), g->arrays.copies, a->rows);
}

/* Record the times of an exchange whose end began at `begin`. */
static void measure_end(struct gr_mgn *g, int64_t l, double begin, int64_t bytes)
{
    const double waited = g->messages.rows.exchange.received_at - begin;

    if (g->times == NULL) return;
    gr_mgn_measure(g, l, GR_MGN_UNPACK, begin + waited);
    gr_mgn_times_at(g, g->pass.is_backward, l)->seconds[GR_MGN_WAIT] += waited;
    gr_mgn_times_at(g, g->pass.is_backward, l)->bytes_sent += bytes;
}

int32_t gr_mgn_exchange_end(struct gr_mgn *g, char *rows, struct gr_team team, graft_error *error)
{
    const int64_t n_copies = g->mesh->copies.count;
    const double  begin = gr_mgn_clock(g);
    struct adding adding = { g, rows };
    int64_t       bytes = 0;

    if (is_alone(g)) return GRAFT_OK;
    GR_TRY(gr_halo_rows_end(&g->messages.rows, team, error));
    for (int32_t q = 0; q < g->mesh->comm->n_ranks; q++) {
        bytes += g->messages.rows.messages.sent[q].bytes;
        g->messages.received_refused |= g->messages.rows.messages.framed.side[GR_RECEIVE].is_substituted[q];
    }
    gr_parallel_rows(team, n_copies * gr_mgn_width(g) * 4, n_copies, GR_ROWS_AT_ONCE, add_some, &adding);
    g->messages.bytes_sent += bytes;
    measure_end(g, g->messages.rows.pass.layer, begin, bytes);
    return GRAFT_OK;
}
