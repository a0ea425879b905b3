/* A simulation over ranks: heat flows through a square plate, whose cells are distributed over three threads. Each rank
 * computes its own cells, from those and from the halo: the cells of other ranks that its own ones touch.
 *
 *     cc halo.c -o halo $(pkg-config --cflags --libs graft) -lpthread
 *     ./halo $(pkg-config --variable=library graft)
 *
 * With MPI the only difference is where the transport comes from; see adapters/mpi/graft_mpi.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_halo.h"
#include "graft_load.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { RANKS = 3, SIDE = 12, N = SIDE * SIDE, STEPS = 50 };

/* The data of one rank: its transport, the final temperatures of its cells, and its status. */
struct rank {
    const char     *library;
    graft_transport transport;
    double          heat[N];
    int64_t         n_owned, n_halo;
    graft_error     error;
    int32_t         rc;
};

/* The rows of this rank: each cell touches up to four others. */
static int32_t make_plate(struct rank *r, const graft_api *api, const graft_graph_api *graphs, graft_graph **graph)
{
    const int   first = N * r->transport.rank / RANKS, end = N * (r->transport.rank + 1) / RANKS;
    int64_t     row_ptr[N + 1] = { 0 };
    int32_t     col_idx[4 * N], n = 0;
    graft_csr   rows = GRAFT_INIT(graft_csr);
    graft_slice slice = GRAFT_INIT(graft_slice);

    for (int v = first; v < end; v++) {
        if (v >= SIDE) col_idx[n++] = v - SIDE;
        if (v % SIDE > 0) col_idx[n++] = v - 1;
        if (v % SIDE < SIDE - 1) col_idx[n++] = v + 1;
        if (v < N - SIDE) col_idx[n++] = v + SIDE;
        row_ptr[v - first + 1] = n;
    }
    rows.index_type = GRAFT_I32;
    rows.n_rows = end - first;
    rows.n_cols = N;
    rows.row_ptr = row_ptr;
    rows.col_idx = col_idx;
    slice.n_vertices = N;
    slice.first_row = first;
    slice.rows = &rows;
    return graphs->create(api->context, &r->transport, &slice, graph, &r->error); /* collective */
}

/* One array has the owned cells followed by the cells of the halo, in the order of the columns of the matrix. */
static int32_t simulate(struct rank *r, const graft_halo_api *halos, graft_halo *halo, const int64_t *owned)
{
    double          u[2 * N] = { 0 }, next[N];
    graft_halo_info info = GRAFT_INIT(graft_halo_info);
    graft_csr       matrix = GRAFT_INIT(graft_csr);
    graft_dense     own = GRAFT_INIT(graft_dense), outer;
    graft_halo_args args = GRAFT_INIT(graft_halo_args);
    int32_t         rc = halos->info(halo, &info, &r->error);

    if (rc >= 0) rc = halos->matrix(halo, &matrix, &r->error);
    own.dtype = GRAFT_F64;
    own.n_rows = r->n_owned = info.n_owned;
    own.n_cols = own.stride = 1;
    own.data = u;
    outer = own;
    outer.n_rows = r->n_halo = info.n_halo;
    outer.data = u + info.n_owned;
    args.owned = &own;
    args.halo = &outer;
    for (int64_t i = 0; i < info.n_owned; i++) u[i] = owned[i] == 0 ? 100 : 0; /* one corner is hot */
    for (int step = 0; step < STEPS && rc >= 0; step++) {
        rc = halos->begin(halo, &args, &r->error);
        /* ... cells that touch no other rank could be computed here, while messages travel ... */
        if (rc >= 0) rc = halos->end(halo, &r->error);
        for (int64_t i = 0; i < info.n_owned && rc >= 0; i++) {
            next[i] = u[i];
            for (int64_t e = matrix.row_ptr[i]; e < matrix.row_ptr[i + 1]; e++)
                next[i] += 0.2 * (u[((const int32_t *)matrix.col_idx)[e]] - u[i]);
        }
        memcpy(u, next, (size_t)info.n_owned * sizeof *u);
    }
    memcpy(r->heat, u, (size_t)info.n_owned * sizeof *u);
    return rc;
}

static void *run_rank(void *arg)
{
    struct rank           *r = arg;
    const graft_api       *api = NULL;
    const graft_graph_api *graphs;
    const graft_halo_api  *halos;
    graft_graph           *graph = NULL;
    graft_halo            *halo = NULL;

    r->rc = graft_load(r->library, NULL, &api, &r->error);
    if (r->rc < 0) return NULL;
    graphs = graft_interface(api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    halos = graft_interface(api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
    r->rc = graphs != NULL && halos != NULL ? GRAFT_OK : GRAFT_ERR_NOT_FOUND;
    if (r->rc >= 0) r->rc = make_plate(r, api, graphs, &graph);
    if (r->rc >= 0) r->rc = halos->create(graph, &halo, &r->error);
    if (r->rc >= 0) r->rc = simulate(r, halos, halo, graphs->owned(graph));
    if (halos != NULL) halos->destroy(halo);
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
        if (pthread_create(&thread[i], NULL, run_rank, &rank[i]) != 0) return 1;
    }
    for (int i = 0; i < RANKS; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < RANKS; i++) {
        double sum = 0;

        if (rank[i].rc < 0 && failed++ == 0) fprintf(stderr, "halo: %s\n", rank[i].error.message);
        for (int64_t j = 0; j < rank[i].n_owned; j++) sum += rank[i].heat[j];
        printf("rank %d: %lld cells and a halo of %lld, heat %.6f\n", i, (long long)rank[i].n_owned,
               (long long)rank[i].n_halo, sum);
        transports[i].close(transports[i].self);
    }
    api->close(api->context);
    return failed > 0;
fail:
    fprintf(stderr, "halo: %s\n", error.message);
    if (api != NULL) api->close(api->context);
    return 1;
}
