/* Ranks without MPI: three threads, each of which owns a part of a ring of vertices, sum over neighbours.
 *
 *     cc aggregate.c -o aggregate $(pkg-config --cflags --libs graft) -lpthread
 *     ./aggregate $(pkg-config --variable=library graft)
 *
 * With MPI the only difference is where the transport comes from; see adapters/mpi/graft_mpi.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_aggregate.h"
#include "graft_load.h"

#include <pthread.h>
#include <stdio.h>

enum { RANKS = 3, EACH = 4, N = RANKS * EACH };

/* The data of one rank: its transport, the results for its vertices, and its status. */
struct rank {
    const char     *library;
    graft_transport transport;
    float           sum[EACH];
    graft_plan_info info;
    graft_error     error;
    int32_t         rc;
};

/* The rows of this rank: vertex v gathers from its two neighbours on the ring. A rank may contribute any slice. With
 * option partition=given, the default, the rank that contributes a row owns its vertex. */
static int32_t make_graph(struct rank *r, const graft_api *api, const graft_graph_api *graphs, graft_graph **graph)
{
    int64_t     row_ptr[EACH + 1] = { 0 };
    int32_t     col_idx[2 * EACH];
    graft_csr   rows = GRAFT_INIT(graft_csr);
    graft_slice slice = GRAFT_INIT(graft_slice);

    slice.n_vertices = N;
    slice.first_row = r->transport.rank * EACH;
    slice.rows = &rows;
    for (int i = 0; i < EACH; i++) {
        const int v = (int)slice.first_row + i;

        col_idx[2 * i] = (v + N - 1) % N;
        col_idx[2 * i + 1] = (v + 1) % N;
        row_ptr[i + 1] = 2 * (i + 1);
    }
    rows.index_type = GRAFT_I32;
    rows.n_rows = EACH;
    rows.n_cols = N;
    rows.row_ptr = row_ptr;
    rows.col_idx = col_idx;
    return graphs->create(api->context, &r->transport, &slice, graph, &r->error); /* collective */
}

/* One pass: begin() sends rows to other ranks, end() waits for rows and adds them. */
static int32_t sum_neighbours(struct rank *r, const graft_aggregate_api *aggregate, graft_plan *plan)
{
    float                x[EACH];
    graft_dense          in = GRAFT_INIT(graft_dense), out;
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    int32_t              rc;

    for (int i = 0; i < EACH; i++) x[i] = (float)(r->transport.rank * EACH + i);
    in.dtype = GRAFT_F32;
    in.n_rows = EACH;
    in.n_cols = in.stride = 1;
    in.data = x;
    out = in;
    out.data = r->sum;
    args.semiring = GRAFT_PLUS_SECOND;
    args.x = &in;
    args.out = &out;
    rc = aggregate->begin(plan, &args, &r->error);
    if (rc >= 0) rc = aggregate->end(plan, &r->error); /* the host may work between the two calls */
    return rc;
}

static void *run_rank(void *arg)
{
    struct rank               *r = arg;
    const graft_api           *api = NULL;
    const graft_graph_api     *graphs;
    const graft_aggregate_api *aggregate;
    graft_graph               *graph = NULL;
    graft_plan                *plan = NULL;

    r->rc = graft_load(r->library, NULL, &api, &r->error);
    if (r->rc < 0) return NULL;
    graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    aggregate = graft_interface(api, GRAFT_AGGREGATE_ID, GRAFT_HAS(graft_aggregate_api, destroy));
    r->rc = graphs != NULL && aggregate != NULL ? GRAFT_OK : GRAFT_ERR_NOT_FOUND;
    if (r->rc >= 0) r->rc = make_graph(r, api, graphs, &graph);
    if (r->rc >= 0) r->rc = aggregate->create(graph, NULL, &plan, &r->error);
    if (r->rc >= 0) r->rc = sum_neighbours(r, aggregate, plan);
    if (r->rc >= 0) r->rc = aggregate->info(plan, -1, &r->info, &r->error);
    if (aggregate != NULL) aggregate->destroy(plan);
    if (graphs != NULL) graphs->destroy(graph);
    api->close(api->context);
    return NULL;
}

int main(int argc, char **argv)
{
    static struct rank         rank[RANKS];
    graft_transport            transports[RANKS];
    pthread_t                  thread[RANKS];
    const graft_api           *api = NULL;
    const graft_transport_api *ranks;
    graft_error                error = GRAFT_INIT(graft_error);
    int                        failed = 0;

    if (graft_load(argc > 1 ? argv[1] : NULL, NULL, &api, &error) < 0) goto fail;
    ranks = graft_interface(api, GRAFT_TRANSPORT_ID, GRAFT_HAS(graft_transport_api, threads));
    for (int i = 0; i < RANKS; i++) transports[i] = GRAFT_INIT(graft_transport);
    if (ranks == NULL || ranks->threads(api->context, RANKS, transports, &error) < 0) goto fail;
    for (int i = 0; i < RANKS; i++) {
        rank[i] = (struct rank){ .library = argc > 1 ? argv[1] : NULL, .transport = transports[i] };
        rank[i].error = GRAFT_INIT(graft_error);
        rank[i].info = GRAFT_INIT(graft_plan_info);
        if (pthread_create(&thread[i], NULL, run_rank, &rank[i]) != 0) return 1;
    }
    for (int i = 0; i < RANKS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < RANKS; i++) {
        if (rank[i].rc < 0 && failed++ == 0) fprintf(stderr, "aggregate: %s\n", rank[i].error.message);
        for (int j = 0; j < EACH && rank[i].rc >= 0; j++) printf("%g ", rank[i].sum[j]);
        transports[i].close(transports[i].self);
    }
    if (!failed) printf("with %lld rows between %d ranks\n", (long long)rank[0].info.halo_rows, RANKS);
    api->close(api->context);
    return failed > 0;
fail:
    fprintf(stderr, "aggregate: %s\n", error.message);
    if (api != NULL) api->close(api->context);
    return 1;
}
