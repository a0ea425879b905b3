/* Checks graft_mesh.h in one process: edges, their order and their offsets must be those of a sorted list of all pairs,
 * and bad meshes must be refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_mesh.h"
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/meshes.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>

enum { SETTINGS = 64, SIDE = 4, GAPS = 2 };

static const graft_api      *api;
static const graft_mesh_api *meshes;
static graft_error           error = { .size = sizeof error };

/* The arrays of a host. The bits of `setting` choose their types. */
struct mesh_host {
    graft_mesh_args args;
    graft_field     x;
    int32_t        *row_of; /* row of each node, in random order */
    double         *doubles;
    float          *floats;
    void           *ids, *indices, *targets;
    uint8_t        *types;
};

static void put_index(const struct mesh_host *h, void *array, int64_t at, int32_t node)
{
    sample_put(array, h->args.index_type, at, h->row_of[node] + h->args.index_base);
}

static void fill_coordinates(struct mesh_host *h, const struct test_mesh *mesh, int by_columns, int is_float)
{
    const int64_t n = mesh->n_nodes, dim = mesh->dim;

    h->x = GRAFT_INIT(graft_field);
    h->x.dtype = is_float ? GRAFT_F32 : GRAFT_F64;
    h->x.n_rows = n;
    h->x.n_columns = dim;
    h->x.row_stride = by_columns ? 1 : dim + GAPS;
    h->x.column_stride = by_columns ? n + GAPS : 1;
    h->x.data = is_float ? (void *)h->floats : h->doubles;
    for (int64_t v = 0; v < n; v++)
        for (int64_t c = 0; c < dim; c++) {
            const int64_t at = h->row_of[v] * h->x.row_stride + c * h->x.column_stride;

            if (is_float) h->floats[at] = (float)mesh->x[v * dim + c];
            else h->doubles[at] = mesh->x[v * dim + c];
        }
    h->args.coordinates = &h->x;
}

static void fill_cells(struct mesh_host *h, const struct test_mesh *mesh)
{
    int64_t at = 0;

    h->args.n_cells = mesh->n_cells;
    h->args.cell_nodes = h->indices;
    for (int64_t c = 0; c < mesh->n_cells; c++) {
        h->types[c] = mesh->cell[c].type;
        for (int k = 0; k < mesh->cell[c].count; k++) put_index(h, h->indices, at++, mesh->cell[c].node[k]);
    }
    h->args.cell_type = mesh->cell[0].type;
    if (mesh->shape == SHAPE_MIXED) h->args.cell_types = h->types;
}

/* List every edge twice, the second time in reverse order. */
static void fill_mesh_edges(struct mesh_host *h, const struct test_mesh *mesh)
{
    h->args.n_edges = 2 * mesh->n_edges;
    h->args.edge_sources = h->indices;
    h->args.edge_targets = h->targets;
    for (int64_t e = 0; e < h->args.n_edges; e++) {
        const struct mesh_edge *edge = &mesh->edge[e < mesh->n_edges ? e : h->args.n_edges - 1 - e];

        put_index(h, h->indices, e, edge->source);
        put_index(h, h->targets, e, edge->target);
    }
}

static void mesh_host_init(struct mesh_host *h, const struct test_mesh *mesh, struct sample *sample, int setting)
{
    const int64_t n = mesh->n_nodes;

    *h = (struct mesh_host){ .args = GRAFT_INIT(graft_mesh_args) };
    h->row_of = oracle_new(n, sizeof *h->row_of);
    h->doubles = oracle_new((n + GAPS) * (mesh->dim + GAPS), sizeof *h->doubles);
    h->floats = oracle_new((n + GAPS) * (mesh->dim + GAPS), sizeof *h->floats);
    h->ids = oracle_new(n, sizeof(int64_t));
    h->indices = oracle_new(MESH_CORNERS * mesh->n_cells + 2 * mesh->n_edges, sizeof(int64_t));
    h->targets = oracle_new(2 * mesh->n_edges, sizeof(int64_t));
    h->types = oracle_new(mesh->n_cells, 1);
    for (int64_t v = 0; v < n; v++) h->row_of[v] = (int32_t)v;
    for (int64_t v = n - 1; v > 0 && (setting & 1); v--) {
        const int64_t other = sample_below(sample, v + 1);
        const int32_t row = h->row_of[v];

        h->row_of[v] = h->row_of[other];
        h->row_of[other] = row;
    }
    h->args.kind = setting & 2 ? GRAFT_MESH_SHARED : GRAFT_MESH_GHOSTS;
    h->args.dim = mesh->dim;
    h->args.index_base = setting >> 2 & 1;
    h->args.n_rows = n;
    h->args.id_type = mesh->id[0] > INT32_MAX ? GRAFT_I64 : GRAFT_I32;
    h->args.index_type = setting & 8 ? GRAFT_I64 : GRAFT_I32;
    memcpy(h->args.period, mesh->period, sizeof h->args.period);
    for (int64_t v = 0; v < n; v++) {
        if (h->args.id_type == GRAFT_I64) ((int64_t *)h->ids)[h->row_of[v]] = mesh->id[v];
        else ((int32_t *)h->ids)[h->row_of[v]] = (int32_t)mesh->id[v];
    }
    h->args.ids = h->ids;
    fill_coordinates(h, mesh, setting & 1, setting >> 1 & setting >> 3 & 1);
    if (setting & 16) fill_mesh_edges(h, mesh);
    else fill_cells(h, mesh);
}

static void mesh_host_fini(struct mesh_host *h)
{
    free(h->row_of);
    free(h->doubles);
    free(h->floats);
    free(h->ids);
    free(h->indices);
    free(h->targets);
    free(h->types);
}

static char mesh_fault[256];

#define EXPECT_MESH(condition)                                                                                         \
    do {                                                                                                               \
        if (condition) break;                                                                                          \
        snprintf(mesh_fault, sizeof mesh_fault, "line %d: not so: %s", __LINE__, #condition);                          \
        return mesh_fault;                                                                                             \
    } while (0)

/* The view must have the nodes in the order of rows, and for each node the edges of the oracle in their order. */
static const char *check_view(const struct test_mesh *mesh, const struct mesh_host *h, const graft_mesh_view *view)
{
    const double bound = h->x.dtype == GRAFT_F32 ? 1e-5 : 1e-14;

    EXPECT_MESH(view->n_rows == mesh->n_nodes && view->n_nodes == mesh->n_nodes && view->dim == mesh->dim);
    EXPECT_MESH(view->n_edges == mesh->n_edges && view->n_sources == mesh->n_nodes && view->n_halo == 0);
    EXPECT_MESH(view->node_weight == NULL && view->edge_ranks == NULL);
    EXPECT_MESH(view->halo_start[0] == 0 && view->halo_start[1] == 0 && view->row_ptr[0] == 0);
    for (int64_t v = 0, e = 0; v < mesh->n_nodes; v++) {
        const int32_t i = h->row_of[v];

        EXPECT_MESH(view->node_of[i] == i && view->row_of[i] == i && view->id[i] == mesh->id[v]);
        for (int64_t k = view->row_ptr[i]; k < view->row_ptr[i + 1]; k++, e++) {
            EXPECT_MESH(mesh->edge[e].target == v && h->row_of[mesh->edge[e].source] == view->source[k]);
        }
        for (int c = 0; c < mesh->dim; c++)
            EXPECT_MESH(fabs(view->position[i * mesh->dim + c] - mesh->x[v * mesh->dim + c]) < bound);
        EXPECT_MESH(v + 1 == mesh->n_nodes ? e == mesh->n_edges : mesh->edge[e].target == v + 1);
    }
    return NULL;
}

static double longest_offset(const struct test_mesh *mesh)
{
    double longest = 0;

    for (int64_t e = 0; e < mesh->n_edges; e++) {
        double square = 0;

        for (int c = 0; c < mesh->dim; c++) square += pow(test_mesh_offset(mesh, &mesh->edge[e], c), 2);
        longest = fmax(longest, sqrt(square));
    }
    return longest;
}

static const char *check_mesh_info(const struct test_mesh *mesh, graft_mesh *made)
{
    graft_mesh_info info = GRAFT_INIT(graft_mesh_info), all = GRAFT_INIT(graft_mesh_info);
    char            text[1024], word[32];

    EXPECT_MESH(meshes->info(made, 0, &info, &error) == GRAFT_OK && meshes->info(made, -1, &all, &error) == GRAFT_OK);
    EXPECT_MESH(memcmp(&info, &all, sizeof info) == 0);
    EXPECT_MESH(all.n_nodes == mesh->n_nodes && all.n_edges == mesh->n_edges && all.n_halo == 0);
    EXPECT_MESH(all.n_neighbours == 0 && fabs(all.longest - longest_offset(mesh)) < 1e-5 && all.bytes > 0);
    EXPECT_MESH(meshes->info(made, 1, &info, &error) == GRAFT_ERR_ARG && meshes->info(made, -2, &info, &error) < 0);
    EXPECT_MESH(meshes->explain(made, text, sizeof text, &error) == GRAFT_OK);
    snprintf(word, sizeof word, " %lld ", (long long)mesh->n_edges);
    EXPECT_MESH(strstr(text, word) != NULL);
    return NULL;
}

static const char *run_setting(struct sample *sample, enum mesh_shape shape, int setting)
{
    struct test_mesh mesh;
    struct mesh_host h;
    graft_mesh      *made = NULL;
    graft_mesh_view  view = GRAFT_INIT(graft_mesh_view);
    const char      *fault = NULL;

    test_mesh_init(&mesh, sample, shape, SIDE, setting >> 5 & 1, setting & 4 ? INT64_C(1) << 62 : INT32_MAX);
    mesh_host_init(&h, &mesh, sample, setting);
    if (meshes->create(api->context, NULL, &h.args, &made, &error) < 0) fault = error.message;
    mesh_host_fini(&(struct mesh_host){ .indices = h.indices, .ids = h.ids, .types = h.types, .targets = h.targets });
    h.indices = h.ids = h.types = h.targets = NULL; /* the arrays of the host may be freed now */
    if (fault == NULL && meshes->view(made, &view, &error) < 0) fault = error.message;
    if (fault == NULL) fault = check_view(&mesh, &h, &view);
    if (fault == NULL) fault = check_mesh_info(&mesh, made);
    meshes->destroy(made);
    mesh_host_fini(&h);
    test_mesh_fini(&mesh);
    return fault;
}

static void test_shape(enum mesh_shape shape)
{
    struct sample sample = { (uint64_t)shape };
    const char   *fault = NULL;
    int           setting = 0;

    while (setting < SETTINGS && (fault = run_setting(&sample, shape, setting)) == NULL) setting++;
    if (!ok(fault == NULL, "%s: edges equal those found by sorting all pairs, in %d settings", mesh_shape_name[shape],
            SETTINGS))
        diag("setting %d: %s", setting, fault);
}

/* A host over ranks forgot the transport, so that owners are ranks which do not exist; or it forgot the cells. Nodes
 * without cells are a legal mesh if an array of no cells is given. */
static void test_forgotten(void)
{
    double          x[] = { 0, 1 };
    int32_t         owners[] = { 0, 1 };
    graft_field     coordinates = { sizeof coordinates, GRAFT_F64, 2, 1, 0, 0, x };
    graft_mesh_args args = GRAFT_INIT(graft_mesh_args);
    graft_mesh     *made = NULL;

    args.kind = GRAFT_MESH_GHOSTS;
    args.dim = 1;
    args.n_rows = 2;
    args.coordinates = &coordinates;
    args.owners = owners;
    ok(meshes->create(api->context, NULL, &args, &made, &error) == GRAFT_ERR_FORMAT && made == NULL &&
           strcmp(error.message, "row 1: its owner is 1, expected a rank, 0 to 0; is there a transport?") == 0,
       "owners of another rank without a transport are refused: %s", error.message);
    args.owners = NULL;
    ok(meshes->create(api->context, NULL, &args, &made, &error) == GRAFT_ERR_ARG && made == NULL &&
           strncmp(error.message, "neither cells nor edges are given", 33) == 0,
       "a mesh without cells and edges is refused: %s", error.message);
    args.cell_nodes = owners;
    ok(meshes->create(api->context, NULL, &args, &made, &error) == GRAFT_OK,
       "a mesh with an array of no cells is created");
    meshes->destroy(made);
}

int main(void)
{
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        return 2;
    }
    meshes = graft_interface(api, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    if (!ok(meshes != NULL, "the library has the interface for meshes")) return done();
    for (enum mesh_shape shape = 0; shape < SHAPES; shape++) test_shape(shape);
    test_forgotten();
    api->close(api->context);
    return done();
}
