/* Measures messages of three sizes between all pairs of ranks, and fits a line to their times.
 * SPDX-License-Identifier: Apache-2.0 */
#include "adaptive/network.h"

#include "base/assert.h"
#include "base/clock.h"
#include "base/memory.h"
#include "comm/collective.h"

#include <math.h>

/* The number of message sizes, the tries of each, and the bytes of an answer. The fastest try counts, because others
 * may have waited for a late or busy rank. */
enum { SIZES = 3, TRIES = 3, ANSWER = 8, NO_RANK = -1 };
static const int64_t size_of[SIZES] = { 1 << 10, 1 << 15, 1 << 18 };

struct probe {
    struct gr_comm    *comm;
    char              *out, *in;       /* buffers for the largest message */
    int64_t           *out_at, *in_at; /* [n_ranks + 1] offsets in bytes of the messages to and from each rank */
    struct gr_network *mine;           /* [n_ranks] results for messages of this rank, by receiver */
    struct gr_pool     pool;           /* owner of these arrays */
};

static int32_t probe_init(struct probe *p, struct gr_comm *comm, graft_error *error)
{
    const graft_context *context = comm->context;
    const int64_t        n = comm->n_ranks;

    *p = (struct probe){ .comm = comm };
    GR_TRY(GR_POOL_NEW(context, &p->pool, p->out, size_of[SIZES - 1], error));
    GR_TRY(GR_POOL_NEW(context, &p->pool, p->in, size_of[SIZES - 1], error));
    GR_TRY(GR_POOL_NEW(context, &p->pool, p->out_at, n + 1, error));
    GR_TRY(GR_POOL_NEW(context, &p->pool, p->in_at, n + 1, error));
    GR_TRY(GR_POOL_NEW(context, &p->pool, p->mine, n, error));
    return GR_NEW(context, comm->network, comm->rank == 0 ? n * n : n, error);
}

/* Find the partner of this rank in a round of a round-robin tournament: in n - 1 rounds, or n if n is odd, each rank
 * meets each other rank once, and no two pairs of a round share a rank. */
static int32_t partner_in(const struct gr_comm *comm, int32_t round)
{
    const int32_t even = comm->n_ranks + comm->n_ranks % 2, last = even - 1, rank = comm->rank;
    int32_t       partner = rank == last ? (int32_t)((int64_t)round * (even / 2) % last) : (round - rank + last) % last;

    if (partner == rank) partner = last;
    GR_ASSERT(partner >= 0 && partner != rank);
    return partner < comm->n_ranks ? partner : NO_RANK;
}

/* Send a message to rank `to`, and receive one from rank `from`; NO_RANK: no message. */
static int32_t probe_exchange(struct probe *p, int32_t to, int64_t bytes_out, int32_t from, int64_t bytes_in,
                              graft_error *error)
{
    for (int32_t q = 0; q < p->comm->n_ranks; q++) {
        p->out_at[q + 1] = p->out_at[q] + (q == to ? bytes_out : 0);
        p->in_at[q + 1] = p->in_at[q] + (q == from ? bytes_in : 0);
    }
    return gr_comm_alltoallv(p->comm, p->out, p->out_at, p->in, p->in_at, 1, error);
}

/* Measure the time of a message and its answer, as seen by the sender. */
static int32_t time_round_trip(struct probe *p, int32_t partner, int sends, int64_t bytes, double *fastest,
                               graft_error *error)
{
    const int32_t to = sends ? partner : NO_RANK, from = sends ? NO_RANK : partner;

    *fastest = INFINITY;
    for (int i = 0; i < TRIES; i++) {
        const double begin = gr_seconds();

        GR_TRY(probe_exchange(p, to, bytes, from, bytes, error));
        GR_TRY(probe_exchange(p, from, ANSWER, to, ANSWER, error));
        *fastest = fmin(*fastest, gr_seconds() - begin);
    }
    return GRAFT_OK;
}

/* Fit a line by least squares. The answer to a message also takes gamma, so gamma is half of the intercept. */
static struct gr_network fit_line(const double seconds[SIZES])
{
    double mean_bytes = 0, mean_seconds = 0, products = 0, squares = 0, theta;

    for (int i = 0; i < SIZES; i++) {
        mean_bytes += (double)size_of[i] / SIZES;
        mean_seconds += seconds[i] / SIZES;
    }
    for (int i = 0; i < SIZES; i++) {
        const double bytes = (double)size_of[i] - mean_bytes;

        products += bytes * (seconds[i] - mean_seconds);
        squares += bytes * bytes;
    }
    theta = fmax(products / squares, 0);
    return (struct gr_network){ .gamma = fmax(mean_seconds - theta * mean_bytes, 0) / 2, .theta = theta };
}

/* Measure all pairs of ranks; the lower rank of each pair sends first. */
static int32_t probe_all(struct probe *p, graft_error *error)
{
    const struct gr_comm *comm = p->comm;

    for (int32_t round = 0; round < comm->n_ranks - 1 + comm->n_ranks % 2; round++) {
        const int32_t partner = partner_in(comm, round);

        for (int turn = 0; turn < 2; turn++) {
            const int sends = (comm->rank < partner) == (turn == 0);
            double    seconds[SIZES];

            for (int i = 0; i < SIZES; i++) GR_TRY(time_round_trip(p, partner, sends, size_of[i], &seconds[i], error));
            if (sends && partner != NO_RANK) p->mine[partner] = fit_line(seconds);
        }
    }
    return GRAFT_OK;
}

/* Store the results of this rank, and on rank 0 the results of all ranks. */
static int32_t gather_results(struct probe *p, graft_error *error)
{
    struct gr_comm *comm = p->comm;
    const int64_t   bytes = comm->n_ranks * (int64_t)sizeof *p->mine;

    for (int32_t q = 0; q < comm->n_ranks; q++) {
        if (comm->rank != 0) comm->network[q] = p->mine[q];
        p->out_at[q + 1] = bytes;
        p->in_at[q + 1] = comm->rank == 0 ? p->in_at[q] + bytes : 0;
    }
    return gr_comm_alltoallv(comm, p->mine, p->out_at, comm->network, p->in_at, 1, error);
}

int32_t gr_adaptive_network_measure(struct gr_comm *comm, graft_error *error)
{
    struct probe p;
    int32_t      rc;

    if (comm->network != NULL) return GRAFT_OK;
    rc = probe_init(&p, comm, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(probe_all(&p, error));
    rc = gather_results(&p, error);
done:
    gr_pool_fini(comm->context, &p.pool);
    if (rc < 0) {
        gr_free(comm->context, comm->network);
        comm->network = NULL;
    }
    return rc;
}
