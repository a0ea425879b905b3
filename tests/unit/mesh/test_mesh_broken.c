/* Checks bad meshes over ranks: a mistake of one rank must be the same status and sentence on all ranks, and a good
 * mesh can be made afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/mesh_parts.h"
#include "harness/tap.h"

#include <math.h>
#include <string.h>

enum { SIDE = 8, BROKEN_RANKS = 3 };

/* For each mistake: how the mesh is cut, how many ranks it needs, the status, words of the message, and the statement
 * that damages the part of a rank. Row `r` exists on other ranks too, row `l` does not. */
#define DAMAGES(X)                                                                                                     \
    X(0, 1, ARG, "kind is 0", p->args.kind = 0)                                                                        \
    X(0, 1, ARG, "dim is 4", p->args.dim = 4)                                                                          \
    X(0, 1, ARG, "dim is 0", p->args.dim = 0)                                                                          \
    X(0, 1, ARG, "index_base is 2", p->args.index_base = 2)                                                            \
    X(0, 1, ARG, "n_rows is -1", p->args.n_rows = -1)                                                                  \
    X(0, 1, UNSUPPORTED, "n_rows is 2147483647", p->args.n_rows = INT32_MAX)                                           \
    X(0, 1, ARG, "coordinates", p->args.coordinates = NULL)                                                            \
    X(0, 1, ARG, "coordinates: dtype is 3", p->x.dtype = GRAFT_I32)                                                    \
    X(0, 1, ARG, "coordinates: is", p->x.n_rows--)                                                                     \
    X(0, 1, ARG, "coordinates: is", p->x.n_columns++)                                                                  \
    X(0, 1, ARG, "row_stride is 0", p->x.row_stride = 0)                                                               \
    X(0, 1, ARG, "column_stride is -1", p->x.column_stride = -1)                                                       \
    X(0, 1, ARG, "at one place", p->x.row_stride = 1)                                                                  \
    X(0, 1, ARG, "2^63 bytes", p->x.row_stride = INT64_MAX / 8)                                                        \
    X(0, 1, ARG, "data is null", p->x.data = NULL)                                                                     \
    X(0, 2, ARG, "ids is null", p->args.ids = NULL)                                                                    \
    X(0, 1, ARG, "id_type is 1", p->args.id_type = GRAFT_F32)                                                          \
    X(0, 1, FORMAT, "row 2: its id is -7", p->id[2] = -7)                                                              \
    X(0, 1, FORMAT, "rows 1 and 3 have the same id", p->id[3] = p->id[1])                                              \
    X(CUT_I64, 1, FORMAT, "rows 2 and 4 have the same id", p->id[3] = p->id[1])                                        \
    X(0, 1, FORMAT, "row 1: coordinate 1 is nan", p->coordinates[4] = (double)NAN)                                     \
    X(0, 1, FORMAT, "row 0: coordinate 0 is inf", p->coordinates[0] = INFINITY)                                        \
    X(0, 2, FORMAT, "its coordinate 0 is", p->coordinates[3 * r] += 0.25)                                              \
    X(CUT_SHARED, 2, FORMAT, "its coordinate 1 is", p->coordinates[3 * r + 1] -= 1e-3)                                 \
    X(CUT_SHARED, 1, FORMAT, "but coordinate 0 is", p->id[p->args.n_rows - 1] = p->id[0])                              \
    X(CUT_OWNERS, 1, FORMAT, "row 1: its owner is -1", p->owner[1] = -1)                                               \
    X(CUT_OWNERS, 1, FORMAT, "row 1: its owner is 99", p->owner[1] = 99)                                               \
    X(CUT_OWNERS, 2, FORMAT, "and on rank", p->owner[r] = (p->owner[r] + 1) % BROKEN_RANKS)                            \
    X(CUT_OWNERS, 2, FORMAT, "which does not have this node", p->owner[l] = 2)                                         \
    X(CUT_SHARED, 1, ARG, "owners is given", p->args.owners = p->owner)                                                \
    X(CUT_OWNERS, 2, ARG, "whether owners are given is 1 on rank 0, 0 on rank 1", p->args.owners = NULL)               \
    X(0, 1, ARG, "both cells and edges", p->args.edge_sources = p->sources)                                            \
    X(0, 1, ARG, "n_cells -1", p->args.n_cells = -1)                                                                   \
    X(0, 1, ARG, "cell_nodes is null", p->args.cell_nodes = NULL)                                                      \
    X(0, 1, ARG, "index_type is 2", p->args.index_type = GRAFT_F64)                                                    \
    X(0, 1, FORMAT, "node 1 of cell 0 is -1", ((int32_t *)p->cell_nodes)[1] = -1)                                      \
    X(0, 1, FORMAT, "node 0 of cell 1 is 12345, expected a row, 0 to", ((int32_t *)p->cell_nodes)[4] = 12345)          \
    X(CUT_I64, 1, FORMAT, "node 2 of cell 1 is 0, expected a row, 1 to", ((int64_t *)p->cell_nodes)[2] = 0)            \
    X(CUT_I64, 1, FORMAT, "node 2 of cell 1 is -9223372036854775808", ((int64_t *)p->cell_nodes)[2] = INT64_MIN)       \
    X(0, 1, FORMAT, "cell 1: its type is 11", p->type[1] = 11)                                                         \
    X(0, 1, FORMAT, "cell 0: its nodes 0 and 1 are the same",                                                          \
      ((int32_t *)p->cell_nodes)[1] = ((int32_t *)p->cell_nodes)[0])                                                   \
    X(CUT_EDGES, 1, FORMAT, "edge 3 is a loop", ((int32_t *)p->sources)[3] = ((int32_t *)p->targets)[3])               \
    X(CUT_EDGES, 1, FORMAT, "the source of edge 2 is 777777", ((int32_t *)p->sources)[2] = 777777)                     \
    X(CUT_EDGES, 1, FORMAT, "the target of edge 0 is -5", ((int32_t *)p->targets)[0] = -5)                             \
    X(CUT_EDGES, 1, ARG, "edge_targets is null", p->args.edge_targets = NULL)                                          \
    X(CUT_EDGES, 1, ARG, "n_edges -2", p->args.n_edges = -2)                                                           \
    X(0, 1, ARG, "period[0] is -1", p->args.period[0] = -1)                                                            \
    X(0, 1, ARG, "period[1] is nan", p->args.period[1] = (double)NAN)                                                  \
    X(0, 1, ARG, "period[2] is 3, expected 0", p->args.period[2] = 3)                                                  \
    X(0, 2, ARG, "period[0] is 0 on rank 0, 100 on rank 1", p->args.period[0] = 100)                                   \
    X(0, 2, ARG, "kind is 1 on rank 0, 2 on rank 1", p->args.kind = GRAFT_MESH_SHARED)                                 \
    X(0, 2, ARG, "dim is 2 on rank 0, 1 on rank 1", p->args.dim = p->x.n_columns = 1)                                  \
    X(0, 2, ARG, "rank 0 has cells, and rank 1 has edges", p->args.cell_nodes = NULL; p->args.n_cells = 0;             \
      p->args.n_edges = 1; p->args.edge_sources = p->cell_nodes; p->args.edge_targets = (int32_t *)p->cell_nodes + 1)  \
    X(0, 1, ARG, "args", p->args.size = 4)                                                                             \
    X(0, 1, UNSUPPORTED, "args", p->args.size += 8)

static const struct damage {
    int         how;
    int32_t     ranks; /* least number of ranks */
    int32_t     status;
    const char *words;
} damages[] = {
#define DAMAGE_ROW(how, ranks, status, words, ...) { how, ranks, GRAFT_ERR_##status, words },
    DAMAGES(DAMAGE_ROW)
};
enum { DAMAGE_COUNT = sizeof damages / sizeof *damages };

static int is_elsewhere(const struct mesh_cut *cut, int32_t rank, int32_t node)
{
    return mesh_cut_node_ranks(cut, node) - cut->has_node[rank * cut->mesh->n_nodes + node] > 0;
}

static void damage_part(struct mesh_part *p, const struct mesh_cut *cut, int32_t rank, int which)
{
    int64_t r = 0, l = 0;
    int     at = 0;

    while (cut->n_ranks > 1 && !is_elsewhere(cut, rank, p->node[r])) r++;
    while (l + 1 < p->args.n_rows && is_elsewhere(cut, rank, p->node[l])) l++;
#define DAMAGE_CASE(how, ranks, status, words, ...)                                                                    \
    if (at++ == which) {                                                                                               \
        __VA_ARGS__;                                                                                                   \
    }
    DAMAGES(DAMAGE_CASE)
}

static struct broken_job {
    struct test_mesh mesh;
    struct mesh_cut  cut;
    int              which;
    char             said[BROKEN_RANKS][512];
} broken;

static int32_t blame_broken(struct host *host, const char *what, const char *found)
{
    snprintf(host->error.message, sizeof host->error.message, "'%s' %s: %.200s", damages[broken.which].words, what,
             found);
    return host->error.code = GRAFT_ERR_STATE;
}

/* Make a mesh that one rank has damaged, and then a good one. */
static int32_t broken_body(struct host *host)
{
    const graft_mesh_api *meshes = graft_interface(host->api, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    const struct damage  *damage = &damages[broken.which];
    const int32_t         bad = host->n_ranks > 1 ? 1 : 0;
    graft_mesh           *mesh = NULL;
    graft_error           error = GRAFT_INIT(graft_error);
    struct mesh_part      part;
    int32_t               rc;

    mesh_part_init(&part, &broken.cut, host->rank);
    if (host->rank == bad) damage_part(&part, &broken.cut, bad, broken.which);
    rc = meshes->create(host->api->context, &host->transport, &part.args, &mesh, &error);
    mesh_part_fini(&part);
    snprintf(broken.said[host->rank], sizeof broken.said[0], "%s", error.message);
    if (rc != damage->status || mesh != NULL) return blame_broken(host, "has another status", error.message);
    if (strstr(error.message, damage->words) == NULL) return blame_broken(host, "is not said", error.message);
    mesh_part_init(&part, &broken.cut, host->rank);
    rc = meshes->create(host->api->context, &host->transport, &part.args, &mesh, &host->error);
    mesh_part_fini(&part);
    meshes->destroy(mesh);
    return rc;
}

static const char *run_damage(struct sample *sample, int32_t n_ranks)
{
    static const char *const settings[] = { "threads=1", NULL };
    static struct hosts      hosts;
    const char              *fault;

    mesh_cut_init(&broken.cut, &broken.mesh, sample, n_ranks, damages[broken.which].how);
    hosts_run(&hosts, n_ranks, settings, broken_body, NULL);
    fault = hosts_fault(&hosts);
    for (int32_t q = 1; q < n_ranks && fault == NULL; q++)
        if (strcmp(broken.said[q], broken.said[0]) != 0) fault = "ranks have different sentences";
    mesh_cut_fini(&broken.cut);
    return fault;
}

static void test_broken(int32_t n_ranks)
{
    struct sample sample = { 5 };
    const char   *fault = NULL;
    int           count = 0;

    for (broken.which = 0; broken.which < DAMAGE_COUNT && fault == NULL; broken.which++) {
        if (damages[broken.which].ranks > n_ranks) continue;
        fault = run_damage(&sample, n_ranks);
        count++;
    }
    ok_or(fault == NULL, fault,
          "%d ranks: %d broken meshes are refused with their sentences, and right ones are made after", n_ranks, count);
}

/* All ranks give a period of two cells, so that the nearest image of a neighbour is not defined. */
static int32_t half_period_body(struct host *host)
{
    const graft_mesh_api *meshes = graft_interface(host->api, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    graft_mesh           *mesh = NULL;
    struct mesh_part      part;
    int32_t               rc;

    mesh_part_init(&part, &broken.cut, host->rank);
    part.args.period[0] = 2;
    for (int64_t r = 0; r < part.args.n_rows; r++) part.coordinates[3 * r] = round(part.coordinates[3 * r]);
    rc = meshes->create(host->api->context, &host->transport, &part.args, &mesh, &host->error);
    mesh_part_fini(&part);
    meshes->destroy(mesh);
    if (rc == GRAFT_ERR_FORMAT && strstr(host->error.message, "needs three cells at least") != NULL) return GRAFT_OK;
    return host->error.code = GRAFT_ERR_STATE;
}

static void test_half_period(int how)
{
    static const char *const settings[] = { "threads=1", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 6 };
    const char              *fault;

    mesh_cut_init(&broken.cut, &broken.mesh, &sample, BROKEN_RANKS, how);
    hosts_run(&hosts, BROKEN_RANKS, settings, half_period_body, NULL);
    fault = hosts_fault(&hosts);
    mesh_cut_fini(&broken.cut);
    ok_or(fault == NULL, fault, "edges of half a period are refused, cut %d", how);
}

/* `far_ids` nodes of the last rank get ids of the first rank. The two ranks are not neighbours. */
static int far_ids;

static int is_of_rank_alone(const struct mesh_cut *cut, int32_t rank, int64_t node)
{
    return cut->has_node[rank * cut->mesh->n_nodes + node] && mesh_cut_node_ranks(cut, node) == 1;
}

static int32_t far_ids_body(struct host *host)
{
    const graft_mesh_api *meshes = graft_interface(host->api, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    graft_mesh           *mesh = NULL;
    struct mesh_part      part;
    int64_t               node = 0;
    int                   left = host->rank == BROKEN_RANKS - 1 ? far_ids : 0;
    int32_t               rc;

    mesh_part_init(&part, &broken.cut, host->rank);
    for (int64_t r = 0; r < part.args.n_rows && left > 0; r++) {
        if (!is_of_rank_alone(&broken.cut, host->rank, part.node[r])) continue;
        while (!is_of_rank_alone(&broken.cut, 0, node)) node++;
        part.id[r] = broken.cut.mesh->id[node++];
        left--;
    }
    rc = meshes->create(host->api->context, &host->transport, &part.args, &mesh, &host->error);
    mesh_part_fini(&part);
    meshes->destroy(mesh);
    if (rc == GRAFT_ERR_FORMAT && strstr(host->error.message, " on rank 0, and ") != NULL &&
        strstr(host->error.message, " on rank 2") != NULL)
        return GRAFT_OK;
    return host->error.code = GRAFT_ERR_STATE;
}

static void test_far_ids(int how, int count, const char *check)
{
    const char *const   settings[] = { "threads=1", check, NULL };
    static struct hosts hosts;
    struct sample       sample = { 7 };
    struct test_mesh    large;
    const char         *fault;

    far_ids = count;
    test_mesh_init(&large, &sample, SHAPE_QUADS, 24, 0, 1000000);
    mesh_cut_init(&broken.cut, &large, &sample, BROKEN_RANKS, how);
    hosts_run(&hosts, BROKEN_RANKS, settings, far_ids_body, NULL);
    fault = hosts_fault(&hosts);
    mesh_cut_fini(&broken.cut);
    test_mesh_fini(&large);
    ok_or(fault == NULL, fault, "%d ids at places that are far apart are refused with %s, cut %d", count, check, how);
}

int main(void)
{
    struct sample sample = { 4 };

    test_mesh_init(&broken.mesh, &sample, SHAPE_QUADS, SIDE, 0, 1000000);
    test_broken(1);
    test_broken(BROKEN_RANKS);
    test_half_period(0);
    test_half_period(CUT_SHARED);
    test_far_ids(0, 1, "check=full");
    test_far_ids(CUT_SHARED, 1, "check=full");
    test_far_ids(0, 150, "check=args");
    test_far_ids(CUT_SHARED, 150, "check=args");
    test_mesh_fini(&broken.mesh);
    return done();
}
