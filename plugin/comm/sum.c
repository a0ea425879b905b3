/* Sums over ranks that do not depend on the order of arrival.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "comm/calls.h"

/* The first element that rank `p` adds up. */
static int64_t segment(const struct gr_comm *comm, int64_t count, int32_t p)
{
    const int64_t each = count / comm->n_ranks, rest = count % comm->n_ranks;

    return p * each + (p < rest ? p : rest);
}

/* The place in the scratch of the elements that rank `p` sends for this rank's segment, of `length` elements. */
static int64_t slot(const struct gr_comm *comm, int32_t p, int64_t length)
{
    return (p < comm->rank ? p : p - 1) * length;
}

static void add_f32(const struct gr_comm *comm, void *mine, int64_t length)
{
    const float *others = comm->calls->scratch;
    float       *sum = mine;

    for (int64_t i = 0; i < length; i++) {
        double total = 0;

        for (int32_t p = 0; p < comm->n_ranks; p++)
            total += (double)(p == comm->rank ? sum[i] : others[slot(comm, p, length) + i]);
        sum[i] = (float)total;
    }
}

static void add_f64(const struct gr_comm *comm, void *mine, int64_t length)
{
    const double *others = comm->calls->scratch;
    double       *sum = mine;

    for (int64_t i = 0; i < length; i++) {
        double total = 0;

        for (int32_t p = 0; p < comm->n_ranks; p++)
            total += p == comm->rank ? sum[i] : others[slot(comm, p, length) + i];
        sum[i] = total;
    }
}

static void add_i64(const struct gr_comm *comm, void *mine, int64_t length)
{
    const uint64_t *others = comm->calls->scratch;
    uint64_t       *sum = mine;

    for (int64_t i = 0; i < length; i++)
        for (int32_t p = 0; p < comm->n_ranks; p++)
            if (p != comm->rank) sum[i] += others[slot(comm, p, length) + i];
}

/* Each rank adds up one segment of the elements, and sends the sums to all. */
static int32_t sum_elements(struct gr_comm *comm, char *values, int64_t count, uint64_t element,
                            void (*add)(const struct gr_comm *comm, void *mine, int64_t length), graft_error *error)
{
    struct gr_calls *c = comm->calls;
    const int64_t    first = segment(comm, count, comm->rank);
    const int64_t    length = segment(comm, count, comm->rank + 1) - first;
    int32_t          n_in = 0, n_out = 0, rc = GRAFT_OK;

    GR_ASSERT(count >= 0);
    GR_TRY(gr_calls_begin(comm, error));
    if (comm->n_ranks == 1) goto done;
    GR_TRY(gr_calls_scratch(comm, (uint64_t)count * element, error));
    for (int32_t p = 0; p < comm->n_ranks; p++) {
        const int64_t at = segment(comm, count, p), end = segment(comm, count, p + 1);

        if (p == comm->rank) continue;
        gr_calls_add(c->out, &n_out, p, values + (uint64_t)at * element, (uint64_t)(end - at) * element);
        gr_calls_add(c->in, &n_in, p, (char *)c->scratch + (uint64_t)slot(comm, p, length) * element,
                     (uint64_t)length * element);
    }
    GR_TRY(gr_calls_exchange(comm, GR_CALL_SUM, n_out, n_in, error));
    add(comm, values + (uint64_t)first * element, length);
    n_in = n_out = 0;
    for (int32_t p = 0; p < comm->n_ranks; p++) {
        const int64_t at = segment(comm, count, p), end = segment(comm, count, p + 1);

        if (p == comm->rank) continue;
        gr_calls_add(c->out, &n_out, p, values + (uint64_t)first * element, (uint64_t)length * element);
        gr_calls_add(c->in, &n_in, p, values + (uint64_t)at * element, (uint64_t)(end - at) * element);
    }
    rc = gr_calls_exchange(comm, GR_CALL_SUM, n_out, n_in, error);
done:
    return rc;
}

int32_t gr_comm_sum_f32(struct gr_comm *comm, float *values, int64_t count, graft_error *error)
{
    return sum_elements(comm, (char *)values, count, sizeof *values, add_f32, error);
}

int32_t gr_comm_sum_f64(struct gr_comm *comm, double *values, int64_t count, graft_error *error)
{
    return sum_elements(comm, (char *)values, count, sizeof *values, add_f64, error);
}

int32_t gr_comm_sum_i64(struct gr_comm *comm, int64_t *values, int64_t count, graft_error *error)
{
    return sum_elements(comm, (char *)values, count, sizeof *values, add_i64, error);
}
