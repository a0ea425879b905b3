/* Computes the widths of rows from their ranges, over all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/adapt.h"
#include "adaptive/network.h"
#include "base/assert.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/sort.h"
#include "comm/route.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The largest number of groups of rows of a pair of ranks in a layer; and of all pairs in all layers, unless there are
 * more pairs. */
enum { GROUPS_MOST = 64, GROUPS_IN_ALL = 1 << 16 };

/* -- groups of rows of about the same variance --------------------------------------------------------------------- */

/* Replace a value that is not finite by a very large value, so that sums stay finite. */
static double bounded(double x)
{
    return x >= 0 && x < 1e200 ? x : 1e200;
}

/* The weighted sum of squares, over all elements and traced exchanges, of errors as large as the range of the row. */
static double row_variance(const struct gr_halo_layer *layer, int64_t row)
{
    const struct gr_row_bits *const bits = &layer->bits;

    return bounded((double)bits->weight[GR_SEND][row] * (bits->spread[row] + bits->widths.spread[row]));
}

/* The sum of weight |x|^2 of the rows sent, over the traced exchanges. */
static double layer_signal(const struct gr_halo_layer *layer)
{
    const struct gr_row_bits *const bits = &layer->bits;
    double                          sum = 0;

    for (int64_t row = 0; row < layer->rows[GR_SEND]; row++)
        sum += bounded((double)bits->weight[GR_SEND][row] * (bits->squares[row] + bits->widths.squares[row]));
    return sum;
}

/* The number of groups of `rows` rows. */
static int64_t parts_of(int64_t rows, int64_t most)
{
    return rows < most ? rows : most;
}

/* The number of groups of the rows that a layer sends, at most `most` for each receiver. */
static int64_t count_layer_groups(const struct gr_halo_layer *layer, int32_t n_ranks, int64_t most)
{
    int64_t count = 0;

    for (int32_t q = 0; q < n_ranks; q++)
        count += parts_of(layer->start[GR_SEND][q + 1] - layer->start[GR_SEND][q], most);
    return count;
}

/* A sort key that decreases with the variance of a row, and has the row in its lower half. As integers, the bits of
 * nonnegative floats have the order of the floats. */
static int64_t key_of(const struct gr_halo_layer *layer, int64_t row, int64_t first)
{
    const float wide = (float)fmin(row_variance(layer, row), (double)FLT_MAX);
    uint32_t    bits;

    memcpy(&bits, &wide, sizeof bits);
    return (int64_t)(INT32_MAX - bits) << 32 | (row - first);
}

/* Make the groups of the rows that are sent to rank q. */
static int32_t make_channel(const graft_context *context, const struct gr_halo_layer *layer, int32_t q, int64_t parts,
                            int64_t *key, struct gr_assign_group *groups, uint8_t *number, graft_error *error)
{
    const int64_t first = layer->start[GR_SEND][q];
    int64_t       rows = layer->start[GR_SEND][q + 1] - first, part = 0;

    for (int64_t i = 0; i < rows; i++) key[i] = key_of(layer, first + i, first);
    GR_TRY(gr_sort_unique(context, key, INT64_MAX, &rows, error));
    for (int64_t g = 0; g < parts; g++) groups[g] = (struct gr_assign_group){ .channel = q };
    for (int64_t i = 0; i < rows; i++) {
        const int64_t row = first + (key[i] & INT32_MAX);

        while (i >= rows * (part + 1) / parts) part++;
        GR_ASSERT(part < parts && part <= UINT8_MAX);
        number[row] = (uint8_t)part;
        groups[part].rows++;
        groups[part].variance += row_variance(layer, row);
    }
    return GRAFT_OK;
}

/* Divide rows into groups with about equal numbers of rows, by descending variance. `channel` of a group is the
 * receiver, and number[rows sent] receives the group of each row, counted for each receiver. */
static int32_t make_layer_groups(const graft_context *context, const struct gr_halo_layer *layer, int32_t n_ranks,
                                 int64_t most, struct gr_assign_group *groups, uint8_t *number, graft_error *error)
{
    const int64_t *start = layer->start[GR_SEND];
    int64_t        longest = 0, *key = NULL;
    int32_t        rc = GRAFT_OK;

    for (int32_t q = 0; q < n_ranks; q++)
        if (start[q + 1] - start[q] > longest) longest = start[q + 1] - start[q];
    GR_TRY_DONE(GR_NEW(context, key, longest, error));
    for (int32_t q = 0; q < n_ranks; q++) {
        const int64_t parts = parts_of(start[q + 1] - start[q], most);

        GR_TRY_DONE(make_channel(context, layer, q, parts, key, groups, number, error));
        groups += parts;
    }
done:
    gr_free(context, key);
    return rc;
}

/* Set layer->bits.next of the rows sent to the bits of their groups. */
static void spread_layer_groups(struct gr_halo_layer *layer, int32_t n_ranks, int64_t most,
                                const struct gr_assign_group *groups, const uint8_t *number)
{
    const int64_t *start = layer->start[GR_SEND];

    for (int32_t q = 0; q < n_ranks; q++) {
        for (int64_t row = start[q]; row < start[q + 1]; row++)
            layer->bits.next[GR_SEND][row] = (uint8_t)groups[number[row]].bits;
        groups += parts_of(start[q + 1] - start[q], most);
    }
}

/* -- all layers --------------------------------------------------------------------------------------------------- */

struct adapting {
    const graft_context   *context;
    struct gr_comm        *comm;
    struct gr_row_format   format;
    struct gr_form         budget;
    int64_t                besides; /* bytes of other rows, which count towards budget */
    struct gr_halo_layer **layer;   /* [n] layers that had exchanges */
    int32_t                n;
    int64_t                most; /* largest number of groups of a pair of ranks */
    double  *sums;   /* [n + 1] sum of weight |x|^2 over all ranks for each layer; then the number of pairs with rows */
    int64_t *counts; /* [n_ranks x n] groups of each rank by layer */
    int64_t *first;  /* [n + 1] offset of the rows sent of each layer */
    uint8_t *number; /* [rows sent] group of each row, see make_layer_groups() */
    struct gr_assign_group   *groups; /* groups of this rank, layer by layer */
    struct gr_assign_group   *all;    /* on rank 0: groups of all ranks, layer by layer, and in a layer rank by rank */
    struct gr_assign_channel *channels; /* on rank 0: channels of all ranks */
    struct gr_route           route;    /* sends the groups of a layer to rank 0 */
    struct gr_pool            pool;     /* owner of these arrays */
};

/* -- weights ------------------------------------------------------------------------------------------------------ */

/* Send the weights of rows, which receivers know, to the senders, which know the ranges. */
static int32_t share_weights(struct adapting *a, graft_error *error)
{
    for (int32_t l = 0; l < a->n; l++) {
        struct gr_halo_layer *layer = a->layer[l];

        if (layer->bits.is_shared) continue;
        GR_TRY(gr_comm_alltoallv(a->comm, layer->bits.weight[GR_RECEIVE], layer->start[GR_RECEIVE],
                                 layer->bits.weight[GR_SEND], layer->start[GR_SEND],
                                 sizeof *layer->bits.weight[GR_RECEIVE], error));
        layer->bits.is_shared = 1;
    }
    return GRAFT_OK;
}

/* -- the layers to adapt ------------------------------------------------------------------------------------------ */

static int32_t adapting_init(struct adapting *a, const struct gr_halo_layers *of, struct gr_halo_layer *const *layers,
                             int32_t n_layers, graft_error *error)
{
    *a = (struct adapting){ .context = of->context, .comm = of->comm, .format = of->format, .budget = of->budget };
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->layer, n_layers, error));
    for (int32_t i = 0; i < n_layers; i++) {
        struct gr_halo_layer *layer = layers != NULL ? layers[i] : &of->layer[i];

        if (layer != NULL && layer->is_adaptive && layer->bits.exchanges > 0) a->layer[a->n++] = layer;
    }
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->sums, a->n + 1, error));
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->counts, (int64_t)of->comm->n_ranks * a->n, error));
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->first, a->n + 1, error));
    for (int32_t l = 0; l < a->n; l++) a->first[l + 1] = a->first[l] + a->layer[l]->rows[GR_SEND];
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->number, a->first[a->n], error));
    return gr_comm_route_init(&a->route, a->comm, error);
}

static void adapting_fini(struct adapting *a)
{
    gr_comm_route_fini(&a->route);
    gr_pool_fini(a->context, &a->pool);
}

/* -- groups ------------------------------------------------------------------------------------------------------- */

/* Compute the largest number of groups of a pair, and the number of groups of each rank. */
static int32_t count_groups(struct adapting *a, graft_error *error)
{
    const int32_t n_ranks = a->comm->n_ranks;
    int64_t      *mine = a->counts + (int64_t)a->comm->rank * a->n;

    for (int32_t l = 0; l < a->n; l++) {
        const int64_t *start = a->layer[l]->start[GR_SEND];

        a->sums[l] = layer_signal(a->layer[l]);
        for (int32_t q = 0; q < n_ranks; q++) a->sums[a->n] += start[q] < start[q + 1];
    }
    GR_TRY(gr_comm_sum_f64(a->comm, a->sums, a->n + 1, error));
    a->most = a->sums[a->n] > 0 ? (int64_t)(GROUPS_IN_ALL / a->sums[a->n]) : GROUPS_MOST;
    if (a->most < 1) a->most = 1;
    if (a->most > GROUPS_MOST) a->most = GROUPS_MOST;
    for (int32_t l = 0; l < a->n; l++) mine[l] = count_layer_groups(a->layer[l], n_ranks, a->most);
    return gr_comm_allgather(a->comm, mine, (uint64_t)a->n * sizeof *mine, a->counts, error);
}

/* groups_of() counts the groups of layer l, groups_before() those of all layers before it: of one rank, or (-1) all. */
static int64_t groups_of(const struct adapting *a, int32_t rank, int32_t l)
{
    int64_t count = 0;

    for (int32_t p = 0; p < a->comm->n_ranks; p++)
        if (rank < 0 || rank == p) count += a->counts[(int64_t)p * a->n + l];
    return count;
}

static int64_t groups_before(const struct adapting *a, int32_t rank, int32_t l)
{
    int64_t count = 0;

    for (int32_t k = 0; k < l; k++) count += groups_of(a, rank, k);
    return count;
}

static int32_t make_groups(struct adapting *a, graft_error *error)
{
    const int32_t rank = a->comm->rank, n_ranks = a->comm->n_ranks;
    const int64_t in_all = rank == 0 ? groups_before(a, -1, a->n) : 0;

    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->groups, groups_before(a, rank, a->n), error));
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->all, in_all, error));
    GR_TRY(GR_POOL_NEW(a->context, &a->pool, a->channels, in_all, error));
    for (int32_t l = 0; l < a->n; l++) {
        struct gr_halo_layer   *layer = a->layer[l];
        struct gr_assign_group *groups = a->groups + groups_before(a, rank, l);
        const int32_t           rounding = gr_halo_row_format_rounding(&a->format, layer->direction, 8);

        GR_TRY(make_layer_groups(a->context, layer, n_ranks, a->most, groups, a->number + a->first[l], error));
        for (int64_t g = 0; g < groups_of(a, rank, l); g++)
            groups[g].variance /= rounding == GRAFT_ROUND_STOCHASTIC ? 6 : 12;
    }
    return GRAFT_OK;
}

/* Send the groups to rank 0, or return them with their bits. */
static int32_t send_groups(struct adapting *a, int back, graft_error *error)
{
    const int32_t rank = a->comm->rank;

    for (int32_t l = 0; l < a->n; l++) {
        struct gr_assign_group *mine = a->groups + groups_before(a, rank, l);
        struct gr_assign_group *all = rank == 0 ? a->all + groups_before(a, -1, l) : NULL;

        for (int32_t q = 0; q < a->comm->n_ranks; q++) {
            a->route.out[q + 1] = groups_of(a, rank, l);
            a->route.in[q + 1] = rank == 0 ? a->route.in[q] + groups_of(a, q, l) : 0;
        }
        if (back) GR_TRY(gr_comm_route_return(&a->route, all, mine, sizeof *mine, error));
        else GR_TRY(gr_comm_route_send(&a->route, mine, all, sizeof *mine, error));
    }
    return GRAFT_OK;
}

/* -- assignment, on rank 0 ---------------------------------------------------------------------------------------- */

/* Make a channel of groups begin .. end-1, which are all groups of a pair of ranks in a layer. A layer with several
 * exchanges in an epoch sends its rows, and waits, in each exchange, with the same error each time. */
static void add_channel(struct adapting *a, struct gr_assign *assign, int32_t l, int32_t sender, int64_t begin,
                        int64_t end)
{
    const struct gr_halo_layer *layer = a->layer[l];
    struct gr_assign_channel   *channel = &a->channels[assign->n_channels];
    const double                signal = a->sums[l] > 0 ? a->sums[l] : 1;

    GR_ASSERT(begin < end);
    *channel = (struct gr_assign_channel){ .width = layer->bits.width, .exchange = l };
    if (a->comm->network != NULL) {
        const struct gr_network *network =
            &a->comm->network[(int64_t)sender * a->comm->n_ranks + a->all[begin].channel];

        channel->gamma = network->gamma * (double)layer->bits.exchanges;
        channel->theta = network->theta;
    }
    for (int64_t g = begin; g < end; g++) {
        a->all[g].channel = assign->n_channels;
        a->all[g].rows *= layer->bits.exchanges;
        a->all[g].variance /= signal;
    }
    assign->n_channels++;
}

static struct gr_assign make_problem(struct adapting *a)
{
    struct gr_assign assign = { .groups = a->all, .channels = a->channels, .besides = a->besides, .n_exchanges = a->n };
    int64_t          begin = 0;

    for (int32_t l = 0; l < a->n; l++) {
        for (int32_t p = 0; p < a->comm->n_ranks; p++) {
            const int64_t last = begin + groups_of(a, p, l);

            while (begin < last) {
                int64_t end = begin + 1;

                while (end < last && a->all[end].channel == a->all[begin].channel) end++;
                add_channel(a, &assign, l, p, begin, end);
                begin = end;
            }
        }
    }
    assign.n_groups = begin;
    return assign;
}

/* Add the option and the layer to the message of a solver. */
static int32_t explain_limit(int32_t rc, const struct gr_halo_layer *layer, graft_error *error)
{
    const graft_error found = *error;
    char              where[48] = "";

    if (rc != GRAFT_ERR_OPTION) return rc;
    if (layer != NULL)
        snprintf(where, sizeof where, " in layer %d, %s", layer->number,
                 layer->direction == GR_FORWARD ? "forward" : "backward");
    return gr_fail(error, GRAFT_ERR_OPTION, "option 'halo.budget' cannot be met%s: %.300s", where, found.message);
}

/* Get the assignment problem of one layer. */
static struct gr_assign part_of(const struct adapting *a, const struct gr_assign *assign, int32_t l)
{
    struct gr_assign part = *assign;

    part.groups += groups_before(a, -1, l);
    part.n_groups = groups_of(a, -1, l);
    return part;
}

/* Solve each layer separately, so that the limit also holds for their sum. Ranges change during training; if a layer
 * cannot meet the limit any more, training continues. */
static int32_t limit_error(const struct adapting *a, const struct gr_assign *assign, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t l = 0; l < a->n && rc == GRAFT_OK; l++) {
        const struct gr_assign one = part_of(a, assign, l);

        rc = gr_adaptive_assign_within_variance(a->context, &one, a->budget.number[0], error);
        rc = explain_limit(rc, a->layer[l], error);
        if (rc != GRAFT_ERR_OPTION || !a->layer[l]->bits.is_assigned) continue;
        gr_log(a->context, GRAFT_LOG_WARNING, "%s; its rows have 8 bits", error->message);
        for (int64_t g = 0; g < one.n_groups; g++) one.groups[g].bits = 8;
        rc = GRAFT_OK;
    }
    return rc;
}

static int32_t choose_bits(const struct adapting *a, const struct gr_assign *assign, graft_error *error)
{
    if (a->budget.word == GR_HALO_BUDGET_ERROR) return limit_error(a, assign, error);
    if (a->budget.word == GR_HALO_BUDGET_BALANCE)
        return gr_adaptive_assign_balance(a->context, assign, a->budget.number[0], error);
    return explain_limit(gr_adaptive_assign_within_bytes(a->context, assign, (int64_t)a->budget.number[0], error), NULL,
                         error);
}

/* Choose the bits of all groups on rank 0. There sums[l] becomes the expected error of layer l; on other ranks 0. */
static int32_t assign_on_root(struct adapting *a, graft_error *error)
{
    struct gr_assign assign;

    if (a->comm->rank == 0) {
        assign = make_problem(a);
        GR_TRY(choose_bits(a, &assign, error));
    }
    for (int32_t l = 0; l < a->n; l++) {
        struct gr_assign_cost cost = { 0 };

        if (a->comm->rank == 0) {
            const struct gr_assign one = part_of(a, &assign, l);

            GR_TRY(gr_adaptive_assign_cost(a->context, &one, &cost, error));
        }
        a->sums[l] = cost.variance;
    }
    return GRAFT_OK;
}

/* -- widths ------------------------------------------------------------------------------------------------------- */

static int32_t share_bits(struct adapting *a, graft_error *error)
{
    for (int32_t l = 0; l < a->n; l++) {
        struct gr_halo_layer *layer = a->layer[l];

        spread_layer_groups(layer, a->comm->n_ranks, a->most, a->groups + groups_before(a, a->comm->rank, l),
                            a->number + a->first[l]);
        GR_TRY(gr_comm_alltoallv(a->comm, layer->bits.next[GR_SEND], layer->start[GR_SEND],
                                 layer->bits.next[GR_RECEIVE], layer->start[GR_RECEIVE],
                                 sizeof *layer->bits.next[GR_SEND], error));
    }
    return GRAFT_OK;
}

static struct gr_row_bits_flow next_flow(const struct gr_halo_layer *layer)
{
    struct gr_codec         codec = { .width = layer->bits.width };
    struct gr_row_bits_flow flow = { 0 };

    for (int side = GR_SEND; side <= GR_RECEIVE; side++) {
        for (int64_t row = 0; row < layer->rows[side]; row++) {
            codec.bits = layer->bits.next[side][row];
            *(side == GR_SEND ? &flow.bytes_out : &flow.bytes_in) += gr_codec_row_bytes(&codec);
            if (side == GR_SEND) flow.rows_out[codec.bits == 8 ? 2 : codec.bits == 4]++;
        }
    }
    return flow;
}

/* Share the sizes of messages with the new widths, which take effect with the next exchanges. */
static int32_t publish_widths(struct adapting *a, graft_error *error)
{
    GR_TRY(gr_comm_sum_f64(a->comm, a->sums, a->n, error));
    for (int32_t l = 0; l < a->n; l++) {
        struct gr_halo_layer         *layer = a->layer[l];
        const struct gr_row_bits_flow mine = next_flow(layer);

        GR_TRY(gr_comm_allgather(a->comm, &mine, sizeof mine, layer->bits.flow, error));
        layer->bits.expected_error = a->sums[l];
        layer->bits.has_next = layer->bits.is_assigned = 1;
        layer->bits.is_counting = 0;
    }
    return GRAFT_OK;
}

static int32_t adapt_layers(struct adapting *a, graft_error *error)
{
    if (a->budget.word == GR_HALO_BUDGET_BALANCE) GR_TRY(gr_adaptive_network_measure(a->comm, error));
    GR_TRY(share_weights(a, error));
    GR_TRY(count_groups(a, error));
    GR_TRY(gr_comm_agree(a->comm, make_groups(a, error), error));
    GR_TRY(send_groups(a, 0, error));
    GR_TRY(gr_comm_agree(a->comm, assign_on_root(a, error), error));
    GR_TRY(send_groups(a, 1, error));
    GR_TRY(share_bits(a, error));
    return publish_widths(a, error);
}

int32_t gr_adaptive_set_widths(const struct gr_halo_layers *of, struct gr_halo_layer *const *layers, int32_t n_layers,
                               int64_t besides, graft_error *error)
{
    struct adapting a;
    int32_t         rc = adapting_init(&a, of, layers, n_layers, error);

    a.besides = besides;
    GR_TRY_DONE(gr_comm_agree(of->comm, rc, error));
    if (a.n > 0) rc = adapt_layers(&a, error);
done:
    adapting_fini(&a);
    return rc;
}
