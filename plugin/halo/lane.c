/* Lanes: adaptive bits, and rows of the pass before.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/lane.h"

#include "base/memory.h"
#include "base/parallel.h"

#include <string.h>

/* Rows that a thread does at a time. */
enum { CHUNK = 64 };

enum { OUT, IN };

/* Not collective: options that make no sense together. */
static int32_t check_limits(const graft_context *context, graft_error *error)
{
    const struct gr_wire_format f = gr_wire_format(context);
    const int                   bytes = gr_option_integer(context, GR_OPTION_HALO_BYTES_LIMIT) > 0;
    const int                   loss = gr_option_number(context, GR_OPTION_HALO_ERROR_LIMIT) > 0;

    if (bytes && loss)
        return gr_fail(
            error, GRAFT_ERR_OPTION,
            "options 'halo.bytes_limit' and 'halo.error_limit' are both set; one of them can decide on bits");
    if ((bytes || loss) && !f.adaptive[GR_FORWARD] && !f.adaptive[GR_BACKWARD])
        return gr_fail(error, GRAFT_ERR_OPTION,
                       "option '%s' is set, which decides on adaptive bits, and neither 'halo.bits' nor "
                       "'halo.bits_backward' is adaptive",
                       bytes ? "halo.bytes_limit" : "halo.error_limit");
    return GRAFT_OK;
}

/* Of an option that may be written in several ways: the same if it comes to the same. */
static uint64_t number_bits(const graft_context *context, enum gr_option_id option)
{
    const double number = gr_option_number(context, option);
    uint64_t     bits;

    memcpy(&bits, &number, sizeof bits);
    return bits;
}

int32_t gr_lanes_compare(const graft_context *context, struct gr_comm *comm, graft_error *error)
{
    static const struct {
        const char       *name;
        enum gr_option_id id;
    } options[] = {
        { "option halo.async", GR_OPTION_HALO_ASYNC },
        { "option halo.smoothing", GR_OPTION_HALO_SMOOTHING },
        { "option halo.sync_every", GR_OPTION_HALO_SYNC_EVERY },
        { "option halo.drift_limit", GR_OPTION_HALO_DRIFT_LIMIT },
        { "option halo.adapt_every", GR_OPTION_HALO_ADAPT_EVERY },
        { "option halo.adapt_lambda", GR_OPTION_HALO_ADAPT_LAMBDA },
        { "option halo.bytes_limit", GR_OPTION_HALO_BYTES_LIMIT },
        { "option halo.error_limit", GR_OPTION_HALO_ERROR_LIMIT },
    };
    enum { COUNT = sizeof options / sizeof *options };
    const char *names[COUNT], *texts[COUNT];
    uint64_t    values[COUNT];
    int32_t     rc = GRAFT_OK;

    for (int i = 0; i < COUNT; i++) {
        names[i] = options[i].name;
        texts[i] = gr_option_text(context, options[i].id);
        values[i] = number_bits(context, options[i].id);
    }
    values[0] = (uint64_t)gr_option_is(context, GR_OPTION_HALO_ASYNC, "yes");
    GR_TRY(gr_comm_compare_texts(comm, names, values, texts, COUNT, error));
    rc = check_limits(context, error);
done:
    return rc;
}

int32_t gr_lanes_init(const graft_context *context, struct gr_comm *comm, int32_t n_layers, struct gr_lanes *lanes,
                      graft_error *error)
{
    const struct gr_wire_format format = gr_wire_format(context);

    *lanes = (struct gr_lanes){ .context = context, .comm = comm, .n_layers = n_layers };
    lanes->is_async = gr_option_is(context, GR_OPTION_HALO_ASYNC, "yes");
    lanes->smoothing = gr_option_number(context, GR_OPTION_HALO_SMOOTHING);
    lanes->limits = (struct gr_lane_limits){ .bytes = gr_option_integer(context, GR_OPTION_HALO_BYTES_LIMIT),
                                             .error = gr_option_number(context, GR_OPTION_HALO_ERROR_LIMIT),
                                             .lambda = gr_option_number(context, GR_OPTION_HALO_ADAPT_LAMBDA) };
    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) lanes->adaptive[d] = format.adaptive[d];
    if (!lanes->is_async && !lanes->adaptive[GR_FORWARD] && !lanes->adaptive[GR_BACKWARD]) return GRAFT_OK;
    return GR_NEW(context, lanes->lane, 2 * (int64_t)n_layers, error);
}

static int32_t lane_init(const struct gr_lanes *lanes, struct gr_lane *lane, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    /* First of all: it takes a channel, on all ranks. */
    if (lane->is_async) GR_TRY(gr_wire_init(lanes->context, lanes->comm, 1, &lane->wire, error));
    if (!lane->is_adaptive) return GRAFT_OK;
    GR_TRY(GR_NEW(lanes->context, lane->flow, lanes->comm->n_ranks, error));
    GR_TRY(GR_NEW(lanes->context, lane->widths.range, lane->rows[OUT], error));
    GR_TRY(GR_NEW(lanes->context, lane->widths.squares, lane->rows[OUT], error));
    for (int side = OUT; side <= IN; side++) {
        GR_TRY(GR_NEW(lanes->context, lane->widths.bits[side], lane->rows[side], error));
        GR_TRY(GR_NEW(lanes->context, lane->next[side], lane->rows[side], error));
        GR_TRY(GR_NEW(lanes->context, lane->weight[side], lane->rows[side], error));
        GR_TRY(GR_NEW(lanes->context, lane->widths.at[side], lane->rows[side] + 1, error));
        if (lane->rows[side] > 0) memset(lane->widths.bits[side], 8, (uint64_t)lane->rows[side]);
    }
done:
    return rc;
}

int32_t gr_lanes_add(struct gr_lanes *lanes, int32_t layer, const int64_t *const start[2], graft_error *error)
{
    const int32_t n_ranks = lanes->comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    /* Where there was no memory for them, they take the channels that they have on the other ranks. */
    for (int i = 0; i < 2 && lanes->lane == NULL && lanes->is_async; i++) gr_comm_channel(lanes->comm);
    if (lanes->lane == NULL) return GRAFT_OK;
    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) {
        struct gr_lane *lane = &lanes->lane[2 * layer + d];
        const int64_t  *out = start[d == GR_FORWARD ? OUT : IN], *in = start[d == GR_FORWARD ? IN : OUT];
        int32_t         here;

        *lane = (struct gr_lane){ .layer = layer,
                                  .direction = d,
                                  .is_adaptive = lanes->adaptive[d],
                                  .is_async = lanes->is_async,
                                  .start = { out, in },
                                  .rows = { out[n_ranks], in[n_ranks] },
                                  .width = -1 };
        here = lane_init(lanes, lane, error);
        if (rc == GRAFT_OK) rc = here;
    }
    return rc;
}

/* The next pass is as the first one. */
static void forget(struct gr_lane *lane)
{
    if (lane->travels) gr_exchange_drain(&lane->wire.exchange);
    lane->travels = lane->has_kept = lane->was_used = 0;
    lane->drift[0] = lane->drift[1] = 0;
}

void gr_lanes_forget(struct gr_lanes *lanes)
{
    for (int32_t i = 0; lanes->lane != NULL && i < 2 * lanes->n_layers; i++) forget(&lanes->lane[i]);
}

void gr_lanes_fini(struct gr_lanes *lanes)
{
    gr_lanes_forget(lanes);
    for (int32_t i = 0; lanes->lane != NULL && i < 2 * lanes->n_layers; i++) {
        struct gr_lane *lane = &lanes->lane[i];

        gr_wire_fini(&lane->wire);
        for (int side = OUT; side <= IN; side++) {
            gr_free(lanes->context, lane->widths.bits[side]);
            gr_free(lanes->context, lane->widths.at[side]);
            gr_free(lanes->context, lane->next[side]);
            gr_free(lanes->context, lane->weight[side]);
        }
        gr_free(lanes->context, lane->widths.range);
        gr_free(lanes->context, lane->widths.squares);
        gr_free(lanes->context, lane->flow);
        gr_free(lanes->context, lane->kept);
        gr_free(lanes->context, lane->partial);
    }
    if (lanes->lane != NULL) gr_free(lanes->context, lanes->lane);
    *lanes = (struct gr_lanes){ 0 };
}

/* Bytes of the rows that come, as they are. */
static int64_t kept_bytes(int64_t rows, int64_t width, graft_dtype dtype)
{
    int64_t bytes;

    return __builtin_mul_overflow(rows * (dtype == GRAFT_F64 ? 8 : 4), width, &bytes) ? INT64_MAX : bytes;
}

int32_t gr_lane_reserve(const struct gr_lanes *lanes, struct gr_lane *lane, int64_t width, graft_dtype dtype,
                        graft_error *error)
{
    int64_t bytes;
    int32_t rc = GRAFT_OK;

    if (lane == NULL || !lane->is_async || (lane->kept_width == width && lane->kept_dtype == dtype)) return GRAFT_OK;
    forget(lane);
    lane->kept_dtype = 0; /* until there is memory for it */
    GR_TRY(gr_wire_reserve(&lane->wire, lane->rows, width, dtype, error));
    if (lane->partial == NULL)
        GR_TRY(GR_NEW(lanes->context, lane->partial, 2 * gr_chunk_count(lane->rows[IN], CHUNK), error));
    bytes = kept_bytes(lane->rows[IN], width, dtype);
    if (bytes > lane->kept_bytes) {
        gr_free(lanes->context, lane->kept);
        lane->kept_bytes = 0;
        lane->kept = gr_new(lanes->context, bytes, 1, "rows of the pass before", error);
        if (lane->kept == NULL) return GRAFT_ERR_NOMEM;
        lane->kept_bytes = bytes;
    }
    lane->kept_width = width;
    lane->kept_dtype = dtype;
done:
    return rc;
}

int32_t gr_lanes_reserve(struct gr_lanes *lanes, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++)
        GR_TRY(gr_lane_reserve(lanes, gr_lanes_find(lanes, layer, d), width, dtype, error));
done:
    return rc;
}

int64_t gr_lanes_room(const struct gr_lanes *lanes, int32_t layer, int64_t width, graft_dtype dtype)
{
    int64_t bytes = 0;

    for (int32_t d = GR_FORWARD; d <= GR_BACKWARD; d++) {
        const struct gr_lane *lane = gr_lanes_find(lanes, layer, d);

        if (lane != NULL && lane->is_async)
            bytes += kept_bytes(lane->rows[IN], width, dtype) + 16 * gr_chunk_count(lane->rows[IN], CHUNK) +
                     gr_wire_room(&lane->wire, lane->rows, width, dtype);
    }
    return bytes;
}

int64_t gr_lanes_bytes(const struct gr_lanes *lanes)
{
    int64_t bytes = 0;

    for (int32_t i = 0; lanes->lane != NULL && i < 2 * lanes->n_layers; i++) {
        const struct gr_lane *lane = &lanes->lane[i];
        const int64_t         rows = lane->rows[OUT] + lane->rows[IN];

        bytes += (int64_t)sizeof *lane + lane->kept_bytes;
        if (lane->is_async) bytes += gr_wire_bytes(&lane->wire);
        if (lane->partial != NULL) bytes += 16 * gr_chunk_count(lane->rows[IN], CHUNK);
        if (lane->is_adaptive)
            bytes += 14 * rows + 16 + 8 * lane->rows[OUT] + (int64_t)sizeof *lane->flow * lanes->comm->n_ranks;
    }
    return bytes;
}

struct gr_lane *gr_lanes_find(const struct gr_lanes *lanes, int32_t layer, int32_t direction)
{
    struct gr_lane *lane;

    if (lanes->lane == NULL || layer < 0 || layer >= lanes->n_layers) return NULL;
    lane = &lanes->lane[2 * layer + direction];
    return lane->is_adaptive || lane->is_async ? lane : NULL;
}

/* -- one pass ----------------------------------------------------------------------------------------------------- */

/* Whether an epoch is the one behind another. */
static int is_next(int64_t epoch, int64_t before)
{
    return (uint64_t)epoch == (uint64_t)before + 1;
}

/* Rows that came, while threads go through them. */
struct keeping {
    struct gr_lane *lane;
    const char     *fresh;
    int64_t         width;
    int             is_double;
    double          smoothing; /* the share of what is there */
    int             measures;
};

static void keep_floats(const struct keeping *k, int64_t begin, int64_t end, double drift[2])
{
    const float *fresh = (const float *)k->fresh;
    float       *kept = k->lane->kept;
    const float  old = (float)k->smoothing;
    double       changes = 0, squares = 0; /* not in memory, which could be that of rows */

    for (int64_t i = begin * k->width; i < end * k->width; i++) {
        const double change = k->measures ? (double)fresh[i] - (double)kept[i] : 0;

        changes += change * change;
        squares += (double)fresh[i] * (double)fresh[i];
        kept[i] = old > 0 ? old * kept[i] + (1 - old) * fresh[i] : fresh[i];
    }
    drift[0] = changes;
    drift[1] = squares;
}

static void keep_doubles(const struct keeping *k, int64_t begin, int64_t end, double drift[2])
{
    const double *fresh = (const double *)k->fresh;
    double       *kept = k->lane->kept, changes = 0, squares = 0;

    for (int64_t i = begin * k->width; i < end * k->width; i++) {
        const double change = k->measures ? fresh[i] - kept[i] : 0;

        changes += change * change;
        squares += fresh[i] * fresh[i];
        kept[i] = k->smoothing > 0 ? k->smoothing * kept[i] + (1 - k->smoothing) * fresh[i] : fresh[i];
    }
    drift[0] = changes;
    drift[1] = squares;
}

static void keep_rows(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct keeping *k = arg;
    double               *drift = k->lane->partial + 2 * chunk;

    if (k->is_double) keep_doubles(k, begin, end, drift);
    else keep_floats(k, begin, end, drift);
}

/* Wait for what travels, and keep it: smoothed where it will be used late, and as it is where the pass waits for it. */
static int32_t settle(struct gr_lane_pass *p, void *fresh, double smoothing, struct gr_team team, graft_error *error)
{
    struct gr_lane *lane = p->lane;
    const int64_t   rows = lane->rows[IN], chunks = gr_chunk_count(rows, CHUNK);
    const int       follows = lane->has_kept && is_next(lane->sent_epoch, lane->kept_epoch);
    struct keeping  k = { .lane = lane, .fresh = fresh, .measures = follows };
    int32_t         rc = GRAFT_OK;

    team.poll = NULL; /* there is nothing to be asked for */
    lane->wire.rows[IN].rows = fresh;
    GR_TRY(gr_wire_end(&lane->wire, team, error));
    lane->travels = 0;
    k.width = lane->wire.codec.width;
    k.is_double = lane->wire.codec.dtype == GRAFT_F64;
    k.smoothing = follows ? smoothing : 0;
    gr_parallel_chunks(team, rows * k.width, rows, CHUNK, keep_rows, &k);
    for (int64_t c = 0; c < chunks && follows; c++)
        for (int i = 0; i < 2; i++) lane->drift[i] += lane->partial[2 * c + i];
    lane->has_kept = 1;
    lane->kept_epoch = lane->sent_epoch;
done:
    return rc;
}

/* The bits of an adaptive pass: new ones, if there are some, once nothing travels that has the old ones. */
static void lay_out(struct gr_lane *lane, const struct gr_wire_pass *on_wire)
{
    for (int side = OUT; side <= IN && lane->has_next; side++) {
        uint8_t *const used = lane->widths.bits[side];

        lane->widths.bits[side] = lane->next[side];
        lane->next[side] = used;
    }
    if (lane->has_next || lane->width != on_wire->width) gr_wire_lay_out(&lane->widths, lane->rows, on_wire->width);
    lane->has_next = 0;
    lane->width = on_wire->width;
    if (!lane->counts || lane->counted_epoch != on_wire->epoch) lane->exchanges = 0;
    lane->counts = 1;
    lane->counted_epoch = on_wire->epoch;
    lane->exchanges++;
}

int32_t gr_lane_receive(struct gr_lane_pass *p, struct gr_lane *lane, struct gr_wire *shared,
                        struct gr_wire_pass *on_wire, struct gr_wire_rows in, struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    p->lane = lane;
    p->wire = lane != NULL && lane->is_async ? &lane->wire : shared;
    p->in = in;
    p->epoch = on_wire->epoch;
    p->arrived = 0;
    if (lane != NULL && lane->kept_semiring != on_wire->semiring) forget(lane);
    if (lane != NULL) lane->kept_semiring = on_wire->semiring;
    p->again = lane != NULL && lane->is_async && lane->was_used && lane->used_epoch == on_wire->epoch;
    if (p->again) return GRAFT_OK;
    if (lane != NULL && lane->travels) {
        GR_TRY(settle(p, in.rows, p->smoothing, team, error));
        p->arrived = lane->wire.exchange.came;
    }
    if (lane != NULL && lane->is_adaptive) {
        lay_out(lane, on_wire);
        on_wire->widths = &lane->widths;
    }
    rc = gr_wire_receive(p->wire, on_wire, in, error);
done:
    return rc;
}

int32_t gr_lane_send(struct gr_lane_pass *p, struct gr_team team, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    p->packed = gr_seconds();
    if (p->again) return GRAFT_OK;
    GR_TRY(gr_wire_send(p->wire, team, error));
    p->packed = p->wire->exchange.packed;
    if (p->lane == NULL || !p->lane->is_async) return GRAFT_OK;
    p->lane->travels = 1;
    p->lane->sent_epoch = p->epoch;
done:
    return rc;
}

int32_t gr_lane_end(struct gr_lane_pass *p, struct gr_team team, const void **rows, graft_error *error)
{
    struct gr_lane *lane = p->lane;
    int32_t         rc = GRAFT_OK;

    if (lane == NULL || !lane->is_async) {
        *rows = p->in.rows;
        GR_TRY(gr_wire_end(p->wire, team, error));
        p->came = p->wire->exchange.came;
        return GRAFT_OK;
    }
    *rows = lane->kept;
    p->came = gr_seconds();
    if (p->again) return GRAFT_OK;
    if (p->waits || !lane->has_kept || !is_next(p->epoch, lane->kept_epoch)) {
        GR_TRY(settle(p, p->in.rows, 0, team, error));
        p->came = lane->wire.exchange.came;
    }
    lane->age = lane->kept_epoch != p->epoch;
    if (lane->age > lane->oldest) lane->oldest = lane->age;
    lane->was_used = 1;
    lane->used_epoch = p->epoch;
done:
    return rc;
}

void gr_lane_drift(struct gr_lane *lane, double drift[2])
{
    for (int i = 0; i < 2; i++) {
        drift[i] += lane->drift[i];
        lane->drift[i] = 0;
    }
}

void gr_lanes_seconds(const struct gr_lanes *lanes, double *wait, double *exchange)
{
    for (int32_t i = 0; lanes->lane != NULL && i < 2 * lanes->n_layers; i++)
        gr_wire_seconds(&lanes->lane[i].wire, wait, exchange);
}
