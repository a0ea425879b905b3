/* Sums over ranks, independent of the order in which messages arrive, by recursive halving and doubling. If the number
 * of ranks P is a power of 2, a rank sends 2 log2(P) messages and 2 (P-1) / P times the bytes of the elements.
 * Otherwise each rank beyond the first 2^k sends its elements to one of these, and receives the sums from it. Source:
 * Thakur, Rabenseifner and Gropp 2005, section 4.5.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "comm/calls.h"

/* A range of elements, begin .. end-1. */
struct part {
    int64_t begin, end;
};

struct summing {
    struct gr_comm *comm;
    char           *values;
    uint64_t        element; /* bytes of an element */
    void (*add)(void *sum, const void *other, int64_t n);
};

static void add_f32(void *sum, const void *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((float *)sum)[i] += ((const float *)other)[i];
}

static void add_f64(void *sum, const void *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((double *)sum)[i] += ((const double *)other)[i];
}

static void add_i64(void *sum, const void *other, int64_t n)
{
    for (int64_t i = 0; i < n; i++) ((uint64_t *)sum)[i] += ((const uint64_t *)other)[i];
}

/* Send part `out` of the values to a peer, and receive part `in` from it, which replaces the values, or with `adds` is
 * added to them. */
static int32_t exchange_parts(const struct summing *s, int32_t peer, struct part out, struct part in, int adds,
                              graft_error *error)
{
    struct gr_calls *c = s->comm->calls;
    char *const      values = s->values + (uint64_t)in.begin * s->element;
    int32_t          n_in = 0, n_out = 0, rc;

    gr_comm_calls_add(c->out, &n_out, peer, s->values + (uint64_t)out.begin * s->element,
                      (uint64_t)(out.end - out.begin) * s->element);
    gr_comm_calls_add(c->in, &n_in, peer, adds ? c->scratch : values, (uint64_t)(in.end - in.begin) * s->element);
    rc = gr_comm_calls_exchange(s->comm, GR_CALL_SUM, n_out, n_in, error);
    if (rc == GRAFT_OK && adds) s->add(values, c->scratch, in.end - in.begin);
    return rc;
}

/* Sum over the first `ranks` ranks, which include this rank and are a power of 2. */
static int32_t sum_halves(const struct summing *s, int64_t count, int32_t ranks, graft_error *error)
{
    const int32_t rank = s->comm->rank;
    struct part   whole[32], mine = { 0, count };
    int           depth = 0;

    for (int32_t step = ranks / 2; step > 0; step /= 2) {
        const int64_t     middle = mine.begin + (mine.end - mine.begin) / 2;
        const struct part low = { mine.begin, middle }, high = { middle, mine.end };

        whole[depth++] = mine;
        mine = rank & step ? high : low;
        GR_TRY(exchange_parts(s, rank ^ step, rank & step ? low : high, mine, 1, error));
    }
    for (int32_t step = 1; step < ranks; step *= 2) {
        const struct part all = whole[--depth];
        const struct part other =
            rank & step ? (struct part){ all.begin, mine.begin } : (struct part){ mine.end, all.end };

        GR_TRY(exchange_parts(s, rank ^ step, mine, other, 0, error));
        mine = all;
    }
    return GRAFT_OK;
}

static int32_t sum_elements(const struct summing *s, int64_t count, graft_error *error)
{
    const int32_t     rank = s->comm->rank, n_ranks = s->comm->n_ranks;
    const struct part all = { 0, count }, none = { 0, 0 };
    int32_t           ranks = 1, rc = GRAFT_OK;

    GR_ASSERT(count >= 0);
    GR_TRY_DONE(gr_comm_calls_begin(s->comm, error));
    if (n_ranks == 1) goto done;
    GR_TRY_DONE(gr_comm_calls_scratch(s->comm, (uint64_t)count * s->element, error));
    while (ranks <= n_ranks / 2) ranks *= 2;
    if (rank >= ranks) {
        GR_TRY_DONE(exchange_parts(s, rank - ranks, all, none, 0, error));
        rc = exchange_parts(s, rank - ranks, none, all, 0, error);
        goto done;
    }
    if (rank + ranks < n_ranks) GR_TRY_DONE(exchange_parts(s, rank + ranks, none, all, 1, error));
    GR_TRY_DONE(sum_halves(s, count, ranks, error));
    if (rank + ranks < n_ranks) rc = exchange_parts(s, rank + ranks, all, none, 0, error);
done:
    return rc;
}

int32_t gr_comm_sum_f32(struct gr_comm *comm, float *values, int64_t count, graft_error *error)
{
    return sum_elements(&(struct summing){ comm, (char *)values, sizeof *values, add_f32 }, count, error);
}

int32_t gr_comm_sum_f64(struct gr_comm *comm, double *values, int64_t count, graft_error *error)
{
    return sum_elements(&(struct summing){ comm, (char *)values, sizeof *values, add_f64 }, count, error);
}

int32_t gr_comm_sum_i64(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error)
{
    return sum_elements(&(struct summing){ comm, (char *)values, sizeof *values, add_i64 }, count, error);
}
