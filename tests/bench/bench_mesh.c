/* Measures the creation of a mesh (graft_mesh.h): the wall time of create(), the processor time of all ranks together,
 * and the memory, as a multiple of the size of the arrays that the ranks pass to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "draft/graft_mesh.h"
#include "graft_load.h"
#include "harness/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: bench_mesh [SHAPE [SIDE [RANKS [REPEATS]]]]\n"
    "A grid of quads, hexes or tets (SHAPE), SIDE nodes in each direction: 1000 for quads, 100 for hexes and tets.\n"
    "4 RANKS (1 to 8), which are threads of this process; under mpiexec its processes are the ranks. Medians of 5\n"
    "REPEATS.";

enum { DIMS = 3 };

enum cut { BLOCKS, SCATTERED, CUTS };
static const char *const cut_name[CUTS] = { "blocks", "scattered" };
enum kind { LOWEST, OWNERS, SHARED, KINDS };
static const char *const kind_name[KINDS] = { "ghosts", "ghosts, owners given", "shared" };

struct bench {
    const char *shape;
    int64_t     side;
    int         dim, repeats;
    enum cut    cut;
    enum kind   kind;
};

/* The part of the mesh that one rank passes to create(). */
struct part {
    graft_mesh_args args;
    graft_field     x;
    double         *coordinates;
    int64_t        *ids;
    int32_t        *owners, *cell_nodes;
};

static int64_t cells_of_box(const struct bench *b)
{
    return strcmp(b->shape, "tets") == 0 ? 6 : 1;
}

/* Returns the rank that owns a box of the grid. The blocks of the ranks are made by halving the grid along each
 * direction in turn. */
static int32_t rank_of_box(const struct bench *b, const int64_t *at, int32_t n_ranks)
{
    int64_t low[DIMS] = { 0 }, high[DIMS] = { b->side - 1, b->side - 1, b->side - 1 };
    int32_t first = 0, count = n_ranks;

    if (b->cut == SCATTERED)
        return (int32_t)(bench_mix((uint64_t)((at[2] * b->side + at[1]) * b->side + at[0])) % (uint64_t)n_ranks);
    for (int c = 0; count > 1; c = (c + 1) % b->dim) {
        const int32_t half = count / 2;
        const int64_t middle = low[c] + (high[c] - low[c]) * half / count;

        if (at[c] < middle) {
            high[c] = middle;
            count = half;
        } else {
            low[c] = middle;
            first += half;
            count -= half;
        }
    }
    return first;
}

static int64_t grid_node_at(const struct bench *b, const int64_t *at)
{
    return (at[2] * b->side + at[1]) * b->side + at[0];
}

static void put_box(const struct bench *b, const int64_t *at, const int32_t *row_of, struct part *p, int64_t *put)
{
    static const int step[8][DIMS] = { { 0, 0, 0 }, { 1, 0, 0 }, { 1, 1, 0 }, { 0, 1, 0 },
                                       { 0, 0, 1 }, { 1, 0, 1 }, { 1, 1, 1 }, { 0, 1, 1 } };
    static const int tet[24] = { 0, 1, 2, 6, 0, 2, 3, 6, 0, 3, 7, 6, 0, 7, 4, 6, 0, 4, 5, 6, 0, 5, 1, 6 };
    int32_t          corner[8];

    for (int k = 0; k < 1 << b->dim; k++) {
        const int64_t node[DIMS] = { at[0] + step[k][0], at[1] + step[k][1], at[2] + step[k][2] };

        corner[k] = row_of[grid_node_at(b, node)];
    }
    if (cells_of_box(b) == 6)
        for (int k = 0; k < 24; k++) p->cell_nodes[(*put)++] = corner[tet[k]];
    else
        for (int k = 0; k < 1 << b->dim; k++) p->cell_nodes[(*put)++] = corner[k];
}

/* Number the nodes of the boxes of this rank, and store the row of each node in row_of[]. Returns the number of boxes
 * of this rank. */
static int64_t number_rows(const struct bench *b, const struct host *host, int32_t *row_of, int32_t *owner,
                           int64_t *n_rows)
{
    const int64_t boxes = b->side - 1, layers = b->dim == 3 ? boxes : 1, nodes = b->dim == 3 ? b->side : 1;
    int64_t       at[DIMS], count = 0;

    *n_rows = 0;
    for (at[2] = 0; at[2] < layers; at[2]++)
        for (at[1] = 0; at[1] < boxes; at[1]++)
            for (at[0] = 0; at[0] < boxes; at[0]++) {
                const int32_t q = rank_of_box(b, at, host->n_ranks);

                count += q == host->rank;
                for (int k = 0; k < 1 << b->dim; k++) {
                    const int64_t node[DIMS] = { at[0] + (k & 1), at[1] + (k >> 1 & 1), at[2] + (k >> 2) };
                    const int64_t v = grid_node_at(b, node);

                    if (owner[v] < 0 || q < owner[v]) owner[v] = q;
                    if (q == host->rank) row_of[v] = 0;
                }
            }
    for (int64_t v = 0; v < nodes * b->side * b->side; v++)
        if (row_of[v] == 0) row_of[v] = (int32_t)(*n_rows)++;
    return count;
}

static void make_part(const struct bench *b, const struct host *host, struct part *p)
{
    const int64_t boxes = b->side - 1, layers = b->dim == 3 ? boxes : 1;
    const int64_t nodes = b->side * b->side * (b->dim == 3 ? b->side : 1);
    int32_t      *row_of = bench_new((size_t)nodes, sizeof *row_of, 1), *owner = bench_new((size_t)nodes, 4, 1);
    int64_t       n_rows, n_boxes, put = 0, at[DIMS];

    memset(row_of, -1, (size_t)nodes * sizeof *row_of);
    memset(owner, -1, (size_t)nodes * sizeof *owner);
    n_boxes = number_rows(b, host, row_of, owner, &n_rows);
    p->args = GRAFT_INIT(graft_mesh_args);
    p->coordinates = bench_new((size_t)(n_rows * b->dim) + 1, sizeof *p->coordinates, 1);
    p->ids = bench_new((size_t)n_rows + 1, sizeof *p->ids, 1);
    p->owners = bench_new((size_t)n_rows + 1, sizeof *p->owners, 1);
    p->cell_nodes = bench_new((size_t)(n_boxes * cells_of_box(b) * 8) + 1, sizeof *p->cell_nodes, 1);
    for (int64_t v = 0; v < nodes; v++) {
        if (row_of[v] < 0) continue;
        p->ids[row_of[v]] = v;
        p->owners[row_of[v]] = owner[v];
        p->coordinates[row_of[v] * b->dim] = (double)(v % b->side);
        p->coordinates[row_of[v] * b->dim + 1] = (double)(v / b->side % b->side);
        if (b->dim == 3) p->coordinates[row_of[v] * b->dim + 2] = (double)(v / b->side / b->side);
    }
    for (at[2] = 0; at[2] < layers; at[2]++)
        for (at[1] = 0; at[1] < boxes; at[1]++)
            for (at[0] = 0; at[0] < boxes; at[0]++)
                if (rank_of_box(b, at, host->n_ranks) == host->rank) put_box(b, at, row_of, p, &put);
    p->x = (graft_field){ sizeof p->x, GRAFT_F64, n_rows, b->dim, 0, 0, p->coordinates };
    p->args.kind = b->kind == SHARED ? GRAFT_MESH_SHARED : GRAFT_MESH_GHOSTS;
    p->args.dim = b->dim;
    p->args.n_rows = n_rows;
    p->args.coordinates = &p->x;
    p->args.ids = p->ids;
    p->args.owners = b->kind == OWNERS ? p->owners : NULL;
    p->args.id_type = GRAFT_I64;
    p->args.index_type = GRAFT_I32;
    p->args.n_cells = n_boxes * cells_of_box(b);
    p->args.cell_type = cells_of_box(b) == 6 ? GRAFT_CELL_TETRA : b->dim == 3 ? GRAFT_CELL_HEXAHEDRON : GRAFT_CELL_QUAD;
    p->args.cell_nodes = p->cell_nodes;
    free(row_of);
    free(owner);
}

static int64_t bytes_given(const struct bench *b, const struct part *p)
{
    const int64_t corners = cells_of_box(b) == 6 ? 4 : 1 << b->dim;

    return p->args.n_rows * (8 * b->dim + 8 + (b->kind == OWNERS ? 4 : 0)) + 4 * corners * p->args.n_cells;
}

static double processor_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Print one line of the table. `bytes` are sums over all ranks: the arrays passed to create(), the memory that the mesh
 * keeps, and the additional peak of memory during create(). */
static void print_row(const struct host *host, const struct bench *b, const graft_mesh_info *all, double seconds,
                      double processor, const int64_t *bytes)
{
    if (b->cut == BLOCKS && b->kind == LOWEST)
        printf("%s, %lld nodes, %lld edges, %d ranks, transport %s\n%-10s %-22s %8s %10s %10s %10s %14s %10s\n",
               b->shape, (long long)all->n_nodes, (long long)all->n_edges, host->n_ranks, host->transport.name, "cells",
               "kind", "seconds", "processor", "halo rows", "given MB", "temporary: x", "kept: x");
    printf("%-10s %-22s %8.3f %10.3f %10lld %10.1f %14.2f %10.2f\n", cut_name[b->cut], kind_name[b->kind], seconds,
           processor, (long long)all->n_halo, (double)bytes[0] / 1e6, (double)bytes[2] / (double)bytes[0],
           (double)bytes[1] / (double)bytes[0]);
    fflush(stdout);
}

/* Create the mesh of the part of this rank several times, and measure each creation. */
static int32_t measure_mesh(struct host *host, const struct bench *b)
{
    const graft_mesh_api  *meshes = graft_interface(host->api, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    const graft_group_api *t = graft_interface(host->api, GRAFT_GROUP_ID, sizeof *t);
    graft_mesh_info        info = GRAFT_INIT(graft_mesh_info);
    graft_group           *group = NULL;
    double                *seconds = bench_new((size_t)b->repeats, sizeof *seconds, 1);
    double                 processor = 0, begin;
    int64_t                bytes[3] = { 0 };
    struct part            part;
    int32_t                rc = t->create(host->api->context, &host->transport, &group, &host->error);

    make_part(b, host, &part);
    bytes[0] = bytes_given(b, &part);
    for (int i = 0; i < b->repeats && rc == GRAFT_OK; i++) {
        graft_mesh   *mesh = NULL;
        const int64_t before = atomic_load(&host->live_bytes);

        rc = t->agree(group, GRAFT_OK, &host->error);
        atomic_store(&host->peak_bytes, 0);
        begin = bench_seconds();
        processor -= processor_seconds();
        if (rc == GRAFT_OK) rc = meshes->create(host->api->context, &host->transport, &part.args, &mesh, &host->error);
        processor += processor_seconds();
        if (rc == GRAFT_OK) rc = t->agree(group, GRAFT_OK, &host->error);
        seconds[i] = bench_seconds() - begin;
        bytes[1] = atomic_load(&host->live_bytes) - before;
        bytes[2] = atomic_load(&host->peak_bytes) - atomic_load(&host->live_bytes);
        if (rc == GRAFT_OK) rc = meshes->info(mesh, -1, &info, &host->error);
        meshes->destroy(mesh);
    }
    if (rc == GRAFT_OK) rc = t->sum(group, GRAFT_I64, 3, bytes, &host->error);
    if (rc == GRAFT_OK) rc = t->sum(group, GRAFT_F64, 1, &processor, &host->error);
    if (rc == GRAFT_OK && host->rank == 0)
        print_row(host, b, &info, bench_median(seconds, b->repeats), processor / b->repeats, bytes);
    t->destroy(group);
    free(part.coordinates);
    free(part.ids);
    free(part.owners);
    free(part.cell_nodes);
    free(seconds);
    return rc;
}

static int32_t measure_all(struct host *host)
{
    struct bench b = *(const struct bench *)host->all->arg;
    int32_t      rc = GRAFT_OK;

    for (b.cut = 0; b.cut < CUTS; b.cut++)
        for (b.kind = 0; b.kind < KINDS && rc == GRAFT_OK; b.kind++) rc = measure_mesh(host, &b);
    return rc;
}

int main(int argc, char **argv)
{
    static const char *const settings[] = { "threads=1", NULL };
    static struct hosts      hosts;
    const int32_t            n_ranks = argc > 3 ? atoi(argv[3]) : 4;
    struct bench             b = { .shape = argc > 1 ? argv[1] : "hexes", .repeats = argc > 4 ? atoi(argv[4]) : 5 };

    b.dim = strcmp(b.shape, "quads") == 0 ? 2 : 3;
    b.side = argc > 2 ? atoll(argv[2]) : b.dim == 2 ? 1000 : 100;
    if (argc > 5 || n_ranks < 1 || n_ranks > HOSTS_MOST || b.side < 2 || b.repeats < 1 ||
        (b.dim == 3 && strcmp(b.shape, "hexes") != 0 && strcmp(b.shape, "tets") != 0))
        bench_die("%s", usage);
    if (hosts_are_launched()) hosts_run_launched(&hosts, settings, measure_all, &b);
    else hosts_run(&hosts, n_ranks, settings, measure_all, &b);
    if (hosts_fault(&hosts) != NULL) bench_die("%s", hosts_fault(&hosts));
    return 0;
}
