/* Checks meshes over ranks: nodes, edges, weights, halo and copies of nodes must be those that follow from the whole
 * mesh by plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/mesh_parts.h"
#include "harness/ranks.h"
#include "harness/tap.h"
#include "mesh/mesh.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

static struct mesh_job {
    struct mesh_cut cut;
    graft_mesh     *made[RANKS_MOST];
} mesh_job;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        rank_blame(r, "line %d: not so: %s", __LINE__, #condition);                                                    \
        return 0;                                                                                                      \
    } while (0)

/* The id of the source of an edge, which is a node or a row of the halo. */
static int64_t source_id(const graft_mesh *mesh, int32_t source)
{
    int64_t k = source - mesh->n_nodes;
    int32_t q = 0;

    if (k < 0) return mesh->id[source];
    while (k >= mesh->halo.start[q + 1]) q++;
    return mesh_job.made[q]->id[mesh->halo.place[k]];
}

/* Each row of the host must have its node, and each node its first row. */
static int check_rows_of(struct rank *r, const graft_mesh *mesh, const struct mesh_part *part)
{
    const struct mesh_cut  *cut = &mesh_job.cut;
    const struct test_mesh *whole = cut->mesh;
    int64_t                 next = 0, expected = 0;

    CHECK(mesh->n_rows == part->args.n_rows);
    for (int64_t v = 0; v < whole->n_nodes; v++)
        expected += cut->how & CUT_SHARED ? cut->has_node[r->rank * whole->n_nodes + v] : cut->owner[v] == r->rank;
    CHECK(mesh->n_nodes == expected);
    for (int64_t row = 0; row < mesh->n_rows; row++) {
        const int32_t i = mesh->node_of[row], v = part->node[row];

        CHECK((i < 0) == (!(cut->how & CUT_SHARED) && cut->owner[v] != r->rank));
        if (i < 0) continue;
        CHECK(i <= next && i < mesh->n_nodes && mesh->id[i] == whole->id[v]);
        if (i == next) CHECK(mesh->row_of[next++] == row);
    }
    CHECK(next == mesh->n_nodes);
    return 1;
}

static int is_edge_of(const struct mesh_cut *cut, int32_t rank, int64_t e)
{
    const struct test_mesh *whole = cut->mesh;

    return cut->how & CUT_SHARED ? cut->has_edge[rank * whole->n_edges + e] : cut->owner[whole->edge[e].target] == rank;
}

/* The edges to node i must be those of the whole mesh that the rank should have, in their order. */
static int check_edges_to(struct rank *r, const graft_mesh *mesh, int32_t i, int64_t *used)
{
    const struct mesh_cut  *cut = &mesh_job.cut;
    const struct test_mesh *whole = cut->mesh;
    const int32_t           v = test_mesh_node(whole, mesh->id[i]);
    int64_t                 k = mesh->edges.row_ptr[i];

    for (int64_t e = 0; e < whole->n_edges; e++) {
        if (whole->edge[e].target != v || !is_edge_of(cut, r->rank, e)) continue;
        CHECK(k < mesh->edges.row_ptr[i + 1] && mesh->edges.target[k] == i && mesh->edges.source[k] >= 0);
        CHECK(mesh->edges.source[k] < mesh->n_sources &&
              source_id(mesh, mesh->edges.source[k]) == whole->id[whole->edge[e].source]);
        for (int c = 0; c < whole->dim; c++)
            CHECK(fabs(gr_mesh_offset(mesh, k, c) - test_mesh_offset(whole, &whole->edge[e], c)) < 1e-12);
        if (cut->how & CUT_SHARED && r->n_ranks > 1) CHECK(mesh->edges.ranks[k] == mesh_cut_edge_ranks(cut, e));
        else CHECK(mesh->edges.ranks == NULL);
        used[mesh->edges.source[k]]++;
        k++;
    }
    CHECK(k == mesh->edges.row_ptr[i + 1]);
    return 1;
}

static int check_edges(struct rank *r, const graft_mesh *mesh)
{
    int64_t *used = oracle_new(mesh->n_sources + 1, sizeof *used);
    int      good = 1;

    for (int32_t i = 0; i < mesh->n_nodes && good; i++) good = check_edges_to(r, mesh, i, used);
    for (int64_t s = 0; s < mesh->n_sources && good; s++) {
        const int64_t begin = mesh->edges.out_ptr[s], end = mesh->edges.out_ptr[s + 1];

        if (end - begin != used[s] || (s >= mesh->n_nodes && used[s] == 0))
            good = rank_blame(r, "source %lld has %lld edges", (long long)s, (long long)used[s]);
        for (int64_t k = begin; k < end && good; k++)
            if (mesh->edges.source[mesh->edges.out_edge[k]] != s ||
                (k > begin && mesh->edges.out_edge[k] <= mesh->edges.out_edge[k - 1]))
                good = rank_blame(r, "edge %d of source %lld", mesh->edges.out_edge[k], (long long)s);
    }
    free(used);
    return good;
}

/* Rows of the halo must be nodes of the ranks that they are received from. Which nodes they are is checked where edges
 * use them. */
static int check_halo(struct rank *r, const graft_mesh *mesh)
{
    CHECK(gr_csr_halo_is_valid(&mesh->halo, r->n_ranks, r->rank));
    for (int32_t q = 0; q < r->n_ranks; q++)
        for (int64_t k = mesh->halo.start[q]; k < mesh->halo.start[q + 1]; k++)
            CHECK(mesh->halo.place[k] < mesh_job.made[q]->n_nodes);
    return 1;
}

/* Node i must be shared with each rank that has it, in the order of ranks. `at` is the index of its next copy. */
static int check_copies_of(struct rank *r, const graft_mesh *mesh, int32_t i, int64_t *at)
{
    const struct mesh_cut       *cut = &mesh_job.cut;
    const struct gr_mesh_copies *copies = &mesh->copies;
    const int32_t                v = test_mesh_node(cut->mesh, mesh->id[i]);
    const int                    ranks = mesh_cut_node_ranks(cut, v);
    int64_t                      k;
    int32_t                      before = 0;

    CHECK(mesh->node_weight[i] == 1.0 / ranks);
    if (ranks == 1) return 1;
    CHECK(*at < copies->count && copies->node[*at] == i);
    k = copies->start[*at];
    for (int32_t q = 0; q < r->n_ranks; q++) {
        if (q == r->rank || !cut->has_node[q * cut->mesh->n_nodes + v]) continue;
        CHECK(k < copies->start[*at + 1]);
        CHECK(copies->copy[k] >= mesh->halo.start[q] && copies->copy[k] < mesh->halo.start[q + 1]);
        CHECK(mesh_job.made[q]->id[mesh->halo.place[copies->copy[k]]] == mesh->id[i]);
        before += q < r->rank;
        k++;
    }
    CHECK(k == copies->start[*at + 1] && copies->before[*at] == before);
    ++*at;
    return 1;
}

static int check_mesh_copies(struct rank *r, const graft_mesh *mesh)
{
    int64_t at = 0;

    if (!(mesh_job.cut.how & CUT_SHARED) || r->n_ranks == 1) {
        CHECK(mesh->copies.count == 0 && mesh->node_weight == NULL);
        return 1;
    }
    CHECK(mesh->copies.start[0] == 0);
    for (int32_t i = 0; i < mesh->n_nodes; i++)
        if (!check_copies_of(r, mesh, i, &at)) return 0;
    CHECK(at == mesh->copies.count && mesh->copies.start[at] == mesh->halo.count);
    return 1;
}

static int check_sizes_of_all(struct rank *r, const graft_mesh *mesh)
{
    const struct test_mesh *whole = mesh_job.cut.mesh;
    graft_mesh_info         all = { .size = sizeof all }, mine = { .size = sizeof mine };
    double                  longest = 0;
    int32_t                 neighbours = 0;
    int64_t                 halo = 0;

    for (int64_t e = 0; e < whole->n_edges; e++) {
        double square = 0;

        for (int c = 0; c < whole->dim; c++) square += pow(test_mesh_offset(whole, &whole->edge[e], c), 2);
        longest = fmax(longest, sqrt(square));
    }
    for (int32_t q = 0; q < r->n_ranks; q++) {
        const struct gr_halo *theirs = &mesh_job.made[q]->halo;

        halo += theirs->count;
        neighbours +=
            theirs->start[r->rank + 1] > theirs->start[r->rank] || mesh->halo.start[q + 1] > mesh->halo.start[q];
    }
    CHECK(gr_mesh_info(mesh, -1, &all, &r->error) == GRAFT_OK && gr_mesh_info(mesh, r->rank, &mine, &r->error) == 0);
    CHECK(all.n_nodes == whole->n_nodes && all.n_edges == whole->n_edges && all.n_halo == halo);
    CHECK(fabs(all.longest - longest) < 1e-12 && mine.longest == all.longest && mine.n_neighbours == neighbours);
    CHECK(mine.n_nodes == mesh->n_nodes && mine.n_edges == mesh->n_edges && mine.n_halo == mesh->halo.count);
    return 1;
}

static int32_t mesh_ranks_body(struct rank *r)
{
    struct mesh_part part;
    graft_mesh      *mesh = NULL;
    int32_t          rc;

    mesh_part_init(&part, &mesh_job.cut, r->rank);
    rc = gr_mesh_create(r->context, &r->transport, &part.args, &mesh, &r->error);
    mesh_job.made[r->rank] = mesh;
    if (rc == GRAFT_OK) rc = gr_comm_barrier(mesh->comm, &r->error);
    if (rc == GRAFT_OK)
        (void)(check_rows_of(r, mesh, &part) && check_halo(r, mesh) && check_edges(r, mesh) &&
               check_mesh_copies(r, mesh) && check_sizes_of_all(r, mesh));
    if (rc == GRAFT_OK) rc = gr_comm_barrier(mesh->comm, &r->error);
    gr_mesh_destroy(mesh);
    mesh_part_fini(&part);
    return rc;
}

static const char *run_mesh(const struct test_mesh *mesh, struct sample *sample, int32_t n_ranks, int how)
{
    static struct ranks ranks;

    mesh_cut_init(&mesh_job.cut, mesh, sample, n_ranks, how);
    ranks_init(&ranks, n_ranks, 60, mesh_ranks_body, NULL);
    for (int32_t q = 0; q < n_ranks; q++) {
        graft_error error = GRAFT_INIT(graft_error);

        if (gr_option_set(ranks.at[q].context, "threads", how & CUT_I64 ? "2" : "1", &error) < 0) abort();
    }
    ranks_run(&ranks);
    mesh_cut_fini(&mesh_job.cut);
    return ranks_fini_well(&ranks);
}

/* Whether this combination of cuts is legal and differs from others. */
static int is_way(int how)
{
    if (how & CUT_SHARED && how & CUT_OWNERS) return 0;
    if (how & CUT_REPEATS && !(how & CUT_SHARED)) return 0;
    if (how & CUT_EMPTY && how & CUT_I64) return 0;
    return 1;
}

static void test_shape_of(enum mesh_shape shape, int periodic)
{
    static const int32_t ranks[] = { 1, 2, 3, 4, 8 };
    struct sample        sample = { (uint64_t)shape };
    struct test_mesh     mesh;
    const char          *fault = NULL;
    /* The step is odd, so that both values of each bit occur. */
    const int            step = effort_fewer() > 1 ? 55 : 11;
    int                  runs = 0, how = 0;
    int32_t              n_ranks = 0;

    test_mesh_init(&mesh, &sample, shape,
                   shape < SHAPE_TRIANGLES ? 9
                   : shape < SHAPE_TETS    ? 4
                                           : 3,
                   periodic, shape % 2 ? INT64_C(1) << 62 : (INT64_C(1) << 40) + 99);
    for (int k = 0; k < 5 && fault == NULL; k++)
        for (how = (shape + k) % 11; how < 256 && fault == NULL; how += step) {
            if (!is_way(how)) continue;
            n_ranks = ranks[k];
            fault = run_mesh(&mesh, &sample, n_ranks, how);
            runs++;
        }
    if (!ok(fault == NULL, "%s%s: %d cuts into parts", periodic ? "periodic " : "", mesh_shape_name[shape], runs))
        diag("%d ranks, cut 0x%x: %s", n_ranks, how - step, fault);
    test_mesh_fini(&mesh);
}

int main(void)
{
    for (int periodic = 0; periodic < 2; periodic++)
        for (enum mesh_shape shape = 0; shape < SHAPES; shape++) test_shape_of(shape, periodic);
    return done();
}
