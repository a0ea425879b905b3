/* Stores received rows, and the changes between epochs. SPDX-License-Identifier: Apache-2.0 */
#include "halo/history.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/parallel.h"

int32_t gr_halo_history_init(const graft_context *context, struct gr_comm *comm, const int64_t n_rows[GR_SIDES],
                             struct gr_history *h, graft_error *error)
{
    *h = (struct gr_history){ .n_rows = { n_rows[GR_SEND], n_rows[GR_RECEIVE] } };
    return gr_halo_messages_init(context, comm, 1, &h->messages, error);
}

void gr_halo_history_fini(struct gr_history *h)
{
    const graft_context *context = h->messages.context;

    if (context == NULL) return;
    gr_halo_history_forget(h);
    gr_halo_messages_fini(&h->messages);
    gr_free(context, h->rows);
    gr_free(context, h->chunk_drift);
    *h = (struct gr_history){ 0 };
}

static int64_t store_bytes(const struct gr_history *h, int64_t width, graft_dtype dtype)
{
    const int64_t element = gr_dtype_bytes(dtype);
    int64_t       bytes;

    return __builtin_mul_overflow(h->n_rows[GR_RECEIVE] * element, width, &bytes) ? INT64_MAX : bytes;
}

static int64_t drift_count(const struct gr_history *h)
{
    return 2 * gr_chunk_count(h->n_rows[GR_RECEIVE], GR_ROWS_AT_ONCE);
}

int32_t gr_halo_history_reserve(struct gr_history *h, int64_t width, graft_dtype dtype, graft_error *error)
{
    const graft_context *context = h->messages.context;
    const int64_t        bytes = store_bytes(h, width, dtype);

    if (h->width == width && h->dtype == dtype) return GRAFT_OK;
    gr_halo_history_forget(h);
    h->dtype = 0; /* until its memory is allocated */
    GR_TRY(gr_halo_messages_reserve(&h->messages, h->n_rows, width, dtype, error));
    if (h->chunk_drift == NULL) GR_TRY(GR_NEW(context, h->chunk_drift, drift_count(h), error));
    if (bytes > h->capacity) {
        gr_free(context, h->rows);
        h->capacity = 0;
        h->rows = gr_new(context, bytes, 1, "stale rows", error);
        if (h->rows == NULL) return GRAFT_ERR_NOMEM;
        h->capacity = bytes;
    }
    h->width = width;
    h->dtype = dtype;
    return GRAFT_OK;
}

int64_t gr_halo_history_need(const struct gr_history *h, int64_t width, graft_dtype dtype)
{
    return store_bytes(h, width, dtype) + drift_count(h) * (int64_t)sizeof *h->chunk_drift +
           gr_halo_messages_need(&h->messages, h->n_rows, width, dtype);
}

int64_t gr_halo_history_bytes(const struct gr_history *h)
{
    const int64_t drift = h->chunk_drift != NULL ? drift_count(h) * (int64_t)sizeof *h->chunk_drift : 0;

    return h->messages.context != NULL ? h->capacity + drift + gr_halo_messages_bytes(&h->messages) : 0;
}

void gr_halo_history_forget(struct gr_history *h)
{
    if (h->in_flight) gr_comm_framed_drain(&h->messages.framed);
    h->in_flight = h->has_rows = h->was_used = 0;
    gr_halo_history_clear_drift(h);
}

int gr_halo_history_begin(struct gr_history *h, graft_semiring semiring, int64_t epoch)
{
    if (h->semiring != semiring) gr_halo_history_forget(h);
    h->semiring = semiring;
    return h->was_used && h->used_epoch == epoch;
}

/* Whether `epoch` is the next one after `before`. */
static int is_next(int64_t epoch, int64_t before)
{
    return (uint64_t)epoch == (uint64_t)before + 1;
}

/* Arguments of the threads that store received rows. */
struct store {
    struct gr_history *h;
    const void        *fresh;
    int64_t            width; /* width of this exchange; may be less than the allocated width */
    double             smoothing;
    int                measures_drift;
};

static void store_floats(const struct store *s, int64_t begin, int64_t end, double drift[2])
{
    const float *fresh = s->fresh;
    float       *rows = s->h->rows;
    const float  old = (float)s->smoothing;
    double       changes = 0, squares = 0; /* not in `drift`, because the compiler must assume that `drift` overlaps the
                                              rows */

    for (int64_t i = begin * s->width; i < end * s->width; i++) {
        const double change = s->measures_drift ? (double)fresh[i] - (double)rows[i] : 0;

        changes += change * change;
        squares += (double)fresh[i] * (double)fresh[i];
        rows[i] = old > 0 ? old * rows[i] + (1 - old) * fresh[i] : fresh[i];
    }
    drift[0] = changes;
    drift[1] = squares;
}

static void store_doubles(const struct store *s, int64_t begin, int64_t end, double drift[2])
{
    const double *fresh = s->fresh;
    double       *rows = s->h->rows, changes = 0, squares = 0;

    for (int64_t i = begin * s->width; i < end * s->width; i++) {
        const double change = s->measures_drift ? fresh[i] - rows[i] : 0;

        changes += change * change;
        squares += fresh[i] * fresh[i];
        rows[i] = s->smoothing > 0 ? s->smoothing * rows[i] + (1 - s->smoothing) * fresh[i] : fresh[i];
    }
    drift[0] = changes;
    drift[1] = squares;
}

static void store_rows(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const struct store *s = arg;
    double             *drift = s->h->chunk_drift + 2 * chunk;

    if (s->h->messages.begun.codec.dtype == GRAFT_F64) store_doubles(s, begin, end, drift);
    else store_floats(s, begin, end, drift);
}

int32_t gr_halo_history_receive(struct gr_history *h, void *decoded, double smoothing, struct gr_team team,
                                graft_error *error)
{
    const int64_t rows = h->n_rows[GR_RECEIVE], chunks = gr_chunk_count(rows, GR_ROWS_AT_ONCE);
    const int     follows = h->has_rows && is_next(h->sent_epoch, h->epoch);
    struct store  store = { h, decoded, 0, follows ? smoothing : 0, follows };

    GR_ASSERT(h->in_flight);
    team.poll = NULL; /* nothing is in flight any more */
    GR_TRY(gr_comm_framed_wait(&h->messages.framed, team, error));
    GR_TRY(gr_halo_messages_decode(&h->messages, decoded, team, error));
    h->in_flight = 0;
    store.width = h->messages.begun.codec.width;
    gr_parallel_chunks(team, rows * store.width, rows, GR_ROWS_AT_ONCE, store_rows, &store);
    for (int64_t c = 0; c < chunks && follows; c++)
        for (int i = 0; i < 2; i++) h->drift[i] += h->chunk_drift[2 * c + i];
    h->has_rows = 1;
    h->epoch = h->sent_epoch;
    return GRAFT_OK;
}

void gr_halo_history_mark_sent(struct gr_history *h, int64_t epoch)
{
    GR_ASSERT(!h->in_flight);
    h->in_flight = 1;
    h->sent_epoch = epoch;
}

int gr_halo_history_is_too_old(const struct gr_history *h, int64_t epoch)
{
    return !h->has_rows || !is_next(epoch, h->epoch);
}

void gr_halo_history_use(struct gr_history *h, int64_t epoch)
{
    h->age = h->epoch != epoch;
    if (h->age > h->oldest) h->oldest = h->age;
    h->was_used = 1;
    h->used_epoch = epoch;
}

void gr_halo_history_clear_drift(struct gr_history *h)
{
    h->drift[0] = h->drift[1] = 0;
}
