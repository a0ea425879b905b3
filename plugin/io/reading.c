/* Chooses the slices of vertices, and exchanges edges between ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/reading.h"

#include "base/memory.h"
#include "base/sort.h"

#include <string.h>

int32_t gr_io_reading_init(struct gr_reading *reading, struct gr_comm *comm, graft_error *error)
{
    const int64_t n = comm->n_ranks + 1;
    int32_t       rc;

    *reading = (struct gr_reading){ .context = comm->context, .comm = comm };
    GR_TRY_DONE(GR_NEW(comm->context, reading->first, n, error));
    GR_TRY_DONE(GR_NEW(comm->context, reading->scratch, n, error));
done:
    return gr_comm_agree(comm, rc, error);
}

void gr_io_reading_fini(struct gr_reading *reading)
{
    if (reading->comm == NULL) return;
    gr_free(reading->context, reading->first);
    gr_free(reading->context, reading->scratch);
}

int64_t gr_io_reading_share(const struct gr_reading *reading, int64_t count, int32_t p)
{
    const int64_t each = count / reading->comm->n_ranks, rest = count % reading->comm->n_ranks;

    return p * each + (p < rest ? p : rest);
}

int32_t gr_io_reading_before(const struct gr_reading *reading, int64_t mine, int64_t *before, int64_t *total,
                             graft_error *error)
{
    const struct gr_comm *comm = reading->comm;

    GR_TRY(gr_comm_allgather(reading->comm, &mine, sizeof mine, reading->scratch, error));
    *before = *total = 0;
    for (int32_t p = 0; p < comm->n_ranks; p++) {
        if (p < comm->rank) *before += reading->scratch[p];
        *total += reading->scratch[p];
    }
    return GRAFT_OK;
}

/* Slices begin and end at the boundaries of blocks of vertices. There are at most this many blocks for each rank. */
enum { BLOCKS_PER_RANK = 1024 };

/* Cut the slices: the share of rank p is part p of n_ranks equal parts of the sum of bytes, and a block belongs to the
 * share in which its middle lies. */
static void cut_slices(struct gr_reading *reading, const double *bytes, int64_t n_blocks, int shift, int64_t n)
{
    const int32_t n_ranks = reading->comm->n_ranks;
    double        total = 0, sum = 0;
    int64_t       block = 0;

    for (int64_t i = 0; i < n_blocks; i++) total += bytes[i];
    for (int32_t p = 0; p < n_ranks; p++) {
        while (block < n_blocks && sum + bytes[block] / 2 <= total / n_ranks * p) sum += bytes[block++];
        reading->first[p] = block << shift < n ? block << shift : n;
    }
    reading->first[0] = 0;
    reading->first[n_ranks] = n;
}

int32_t gr_io_reading_choose(struct gr_reading *reading, const struct gr_coo *coo, double vertex_bytes,
                             graft_error *error)
{
    struct gr_comm *comm = reading->comm;
    const int64_t   n = coo->n_rows, most = (int64_t)BLOCKS_PER_RANK * comm->n_ranks;
    const double    entry_bytes = coo->value != NULL ? 8 : 4;
    double         *bytes = NULL;
    int64_t         n_blocks;
    int             shift = 0;
    int32_t         rc;

    reading->first[1] = n;
    if (comm->n_ranks == 1) return GRAFT_OK;
    while (n >> shift >= most) shift++;
    n_blocks = (n + ((int64_t)1 << shift) - 1) >> shift;
    rc = GR_NEW(reading->context, bytes, n_blocks, error);
    if (rc == GRAFT_OK) rc = gr_comm_reserve(comm, (uint64_t)n_blocks * sizeof *bytes, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    for (int64_t i = 0; i < coo->count; i++) bytes[coo->row[i] >> shift] += entry_bytes;
    GR_TRY_DONE(gr_comm_sum_f64(comm, bytes, n_blocks, error));
    for (int64_t i = 0; i < n_blocks; i++) {
        const int64_t end = (i + 1) << shift < n ? (i + 1) << shift : n;

        bytes[i] += vertex_bytes * (double)(end - (i << shift));
    }
    cut_slices(reading, bytes, n_blocks, shift, n);
done:
    gr_free(comm->context, bytes);
    return rc;
}

/* Find the rank whose slice has a vertex. */
static int32_t rank_of_vertex(const struct gr_reading *reading, int64_t vertex)
{
    return (int32_t)gr_sorted_last(reading->first, reading->comm->n_ranks, vertex);
}

/* Send one array of the edges, whose elements have this many bytes, and replace it by the received elements. */
static int32_t send_array(const struct gr_reading *reading, const struct gr_coo *coo, struct gr_route *route,
                          void **array, int64_t bytes, graft_error *error)
{
    struct gr_comm *comm = reading->comm;
    char           *packed = NULL, *received = NULL;
    int32_t         rc;

    rc = GR_NEW(reading->context, packed, coo->count * bytes, error);
    if (rc == GRAFT_OK) rc = GR_NEW(reading->context, received, gr_comm_route_n_in(route) * bytes, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    for (int64_t i = 0; i < coo->count; i++)
        memcpy(packed + bytes * gr_comm_route_take(route, rank_of_vertex(reading, coo->row[i]), 1),
               (const char *)*array + bytes * i, (uint64_t)bytes);
    gr_comm_route_rewind(route);
    if (*array != coo->row) { /* rows determine the destinations of edges until all arrays are packed */
        gr_free(reading->context, *array);
        *array = NULL;
    }
    GR_TRY_DONE(gr_comm_route_send(route, packed, received, bytes, error));
    gr_free(reading->context, *array);
    *array = received;
    received = NULL;
done:
    gr_free(comm->context, packed);
    gr_free(comm->context, received);
    return rc;
}

int32_t gr_io_reading_send(struct gr_reading *reading, struct gr_coo *coo, graft_error *error)
{
    struct gr_comm *comm = reading->comm;
    const int64_t   first = reading->first[comm->rank];
    void           *row = coo->row, *col = coo->col, *value = coo->value, *number = coo->number;
    struct gr_route route = { 0 };
    int32_t         rc = GRAFT_OK;

    coo->first_row = first;
    coo->n_rows = reading->first[comm->rank + 1] - first;
    if (comm->n_ranks == 1) return GRAFT_OK;
    GR_TRY_DONE(gr_comm_agree(comm, gr_comm_route_init(&route, comm, error), error));
    for (int64_t i = 0; i < coo->count; i++) route.out[rank_of_vertex(reading, coo->row[i]) + 1]++;
    GR_TRY_DONE(gr_comm_route_plan(&route, error));
    if (value != NULL) GR_TRY_DONE(send_array(reading, coo, &route, &value, 4, error));
    if (number != NULL) GR_TRY_DONE(send_array(reading, coo, &route, &number, 8, error));
    GR_TRY_DONE(send_array(reading, coo, &route, &col, 4, error));
    GR_TRY_DONE(send_array(reading, coo, &route, &row, 4, error));
    coo->count = gr_comm_route_n_in(&route);
done:
    gr_comm_route_fini(&route);
    coo->row = row;
    coo->col = col;
    coo->value = value;
    coo->number = number;
    for (int64_t i = 0; rc == GRAFT_OK && i < coo->count; i++) coo->row[i] -= (int32_t)first;
    return rc;
}
