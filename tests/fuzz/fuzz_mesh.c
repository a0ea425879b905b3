/* Makes meshes of arbitrary arrays on one rank or two. The ranks must return the same status and the same message, or a
 * mesh whose arrays are in range. Arrays have the lengths that the interface requires of a host, and their contents
 * come from the input.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_mesh.h"
#include "target.h"

#include <pthread.h>

enum { RANKS_MOST = 2, NODES_MOST = 10, CELLS_MOST = 6, EDGES_MOST = 16 };

/* A rank: its arguments to create(), and the result. */
struct part {
    struct memory         memory;
    graft_context        *context;
    const graft_mesh_api *meshes;
    graft_transport       transport;
    graft_mesh_args       args;
    graft_field           x;
    void                 *ids, *nodes, *sources, *targets;
    int32_t              *owners;
    uint8_t              *types;
    double               *coordinates;
    graft_mesh           *mesh;
    graft_error           error;
    int32_t               rc;
};

static struct part                part[RANKS_MOST];
static const graft_api           *of_first;
static const graft_transport_api *transports;

void target_begin(void)
{
    for (int q = 0; q < RANKS_MOST; q++) {
        const graft_api *api;

        part[q].memory = (struct memory)MEMORY_INIT;
        api = target_load(&part[q].memory);
        files_check(api->set(api->context, "halo.timeout", "20", NULL) == GRAFT_OK, "halo.timeout");
        part[q].context = api->context;
        part[q].meshes = graft_interface(api, GRAFT_MESH_ID, sizeof(graft_mesh_api));
        if (q == 0) of_first = api;
    }
    transports = graft_interface(of_first, GRAFT_TRANSPORT_ID, sizeof(graft_transport_api));
}

void target_end(void)
{
    for (int q = RANKS_MOST - 1; q >= 0; q--) {
        of_first->close(part[q].context);
        ok(part[q].memory.live_bytes == 0, "no memory of rank %d is left after close", q);
    }
}

/* Return the right number, or sometimes any number. */
static int64_t usual_or_any(struct supply *s, int64_t usual)
{
    const uint8_t how = supply_byte(s);

    return how < 252 ? usual : how < 254 ? (int8_t)supply_byte(s) : supply_i64(s);
}

static void put_number(void *array, graft_dtype type, int64_t at, int64_t value)
{
    if (type == GRAFT_I64) ((int64_t *)array)[at] = value;
    else ((int32_t *)array)[at] = (int32_t)value;
}

static void *new_numbers(graft_dtype type, int64_t count)
{
    return malloc((size_t)count * (type == GRAFT_I64 ? 8 : 4) + (count == 0));
}

static int64_t any_row(struct supply *s, const graft_mesh_args *a, int64_t usual)
{
    return usual_or_any(s, (a->n_rows > 0 ? usual % a->n_rows : 0) + a->index_base);
}

/* Place nodes at the positions that their ids imply, but sometimes at any position. */
static void any_nodes(struct supply *s, struct part *p, int has_owners)
{
    graft_mesh_args *a = &p->args;

    a->n_rows = supply_byte(s) % (NODES_MOST + 1);
    p->coordinates = calloc((size_t)(a->n_rows * 3) + 1, sizeof(double));
    p->ids = new_numbers(a->id_type, a->n_rows);
    p->owners = has_owners ? new_numbers(GRAFT_I32, a->n_rows) : NULL;
    for (int64_t i = 0; i < a->n_rows; i++) {
        const int64_t id = usual_or_any(s, (i + supply_byte(s) % 3) % (2 * NODES_MOST));

        put_number(p->ids, a->id_type, i, id);
        if (has_owners) p->owners[i] = (int32_t)usual_or_any(s, (id ^ id >> 1) & 1);
        for (int c = 0; c < 3 && c < a->dim; c++)
            p->coordinates[i * a->dim + c] = (double)usual_or_any(s, (int64_t)((uint64_t)id * (3 + (uint64_t)c) % 7));
        if (a->dim > 0 && supply_byte(s) == 255) supply_bytes(s, &p->coordinates[i * a->dim], sizeof(double));
    }
    p->x = (graft_field)GRAFT_INIT(graft_field);
    p->x.dtype = GRAFT_F64;
    p->x.n_rows = usual_or_any(s, a->n_rows);
    if (p->x.n_rows > a->n_rows) p->x.n_rows = a->n_rows;
    p->x.n_columns = a->dim;
    p->x.data = p->coordinates;
    a->coordinates = &p->x;
    a->ids = p->ids;
    a->owners = p->owners;
}

/* Arrays end at a cell of an unknown type, because its number of nodes is not known. */
static void any_cells(struct supply *s, struct part *p)
{
    static const uint8_t corners[] = { 0, 0, 0, 2, 0, 3, 0, 0, 0, 4, 4, 0, 8, 6, 5 };
    static const uint8_t known[] = { 3, 5, 9, 10, 12, 13, 14, 5 };
    graft_mesh_args     *a = &p->args;
    int64_t              count = 0;

    a->n_cells = supply_byte(s) % (CELLS_MOST + 1);
    p->types = malloc((size_t)a->n_cells + 1);
    for (int64_t i = 0; i < a->n_cells; i++) p->types[i] = (uint8_t)usual_or_any(s, known[supply_byte(s) % 8]);
    for (int64_t i = 0; i < a->n_cells && p->types[i] < sizeof corners && corners[p->types[i]] > 0; i++)
        count += corners[p->types[i]];
    p->nodes = new_numbers(a->index_type, count);
    for (int64_t i = 0; i < count; i++) put_number(p->nodes, a->index_type, i, any_row(s, a, i + i / 8 % 3));
    a->cell_types = p->types;
    a->cell_nodes = p->nodes;
}

static void any_edges(struct supply *s, struct part *p)
{
    graft_mesh_args *a = &p->args;

    a->n_edges = supply_byte(s) % (EDGES_MOST + 1);
    p->sources = new_numbers(a->index_type, a->n_edges);
    p->targets = new_numbers(a->index_type, a->n_edges);
    for (int64_t i = 0; i < a->n_edges; i++) {
        const int64_t source = supply_byte(s), more = a->n_rows > 1 ? 1 + supply_byte(s) % (a->n_rows - 1) : 0;

        put_number(p->sources, a->index_type, i, any_row(s, a, source));
        put_number(p->targets, a->index_type, i, any_row(s, a, source + more));
    }
    a->edge_sources = p->sources;
    a->edge_targets = p->targets;
}

static void any_part(struct supply *s, struct part *p, uint8_t how)
{
    p->args = (graft_mesh_args)GRAFT_INIT(graft_mesh_args);
    p->args.kind = (graft_mesh_kind)usual_or_any(s, how & 2 ? GRAFT_MESH_SHARED : GRAFT_MESH_GHOSTS);
    p->args.dim = (int32_t)usual_or_any(s, 1 + how % 3);
    if (p->args.dim > 3) p->args.dim = 3;
    p->args.index_base = (int32_t)usual_or_any(s, how >> 2 & 1);
    p->args.id_type = how & 8 ? GRAFT_I64 : GRAFT_I32;
    p->args.index_type = how & 16 ? GRAFT_I64 : GRAFT_I32;
    if (how & 32) p->args.period[0] = (double)usual_or_any(s, 7);
    any_nodes(s, p, (how & 64) != 0 && !(how & 2));
    if (how & 128) any_edges(s, p);
    else any_cells(s, p);
}

static void free_part(struct part *p)
{
    free(p->coordinates), free(p->ids), free(p->owners), free(p->types);
    free(p->nodes), free(p->sources), free(p->targets);
    p->owners = NULL;
    p->types = NULL;
    p->nodes = p->sources = p->targets = NULL;
}

static void *create_part(void *arg)
{
    struct part *p = arg;

    p->mesh = NULL;
    p->error = (graft_error)GRAFT_INIT(graft_error);
    p->rc =
        p->meshes->create(p->context, p->transport.self != NULL ? &p->transport : NULL, &p->args, &p->mesh, &p->error);
    return NULL;
}

static void create_parts(int n)
{
    graft_transport over[RANKS_MOST] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport) };
    pthread_t       thread[RANKS_MOST];

    if (n > 1) files_check(transports->threads(of_first->context, n, over, NULL) == GRAFT_OK, "transports");
    for (int q = 0; q < n; q++) {
        part[q].transport = over[q];
        files_check(pthread_create(&thread[q], NULL, create_part, &part[q]) == 0, "pthread_create");
    }
    for (int q = 0; q < n; q++) pthread_join(thread[q], NULL);
}

/* Whether the arrays of a mesh are in range. */
static const char *view_fault(const struct part *p, int n_ranks)
{
    graft_mesh_view view = GRAFT_INIT(graft_mesh_view);
    char            text[512];

    if (p->meshes->view(p->mesh, &view, NULL) < 0 || p->meshes->explain(p->mesh, text, sizeof text, NULL) < 0)
        return "no view, or no text";
    if (view.n_rows != p->args.n_rows || view.row_ptr[0] != 0 || view.row_ptr[view.n_nodes] != view.n_edges)
        return "sizes that do not fit";
    for (int64_t row = 0; row < view.n_rows; row++)
        if (view.node_of[row] < -1 || view.node_of[row] >= view.n_nodes) return "a node is out of range";
    for (int64_t i = 0; i < view.n_nodes; i++) {
        if (view.row_of[i] < 0 || view.row_of[i] >= view.n_rows || view.row_ptr[i] > view.row_ptr[i + 1])
            return "a row is out of range";
        for (int64_t e = view.row_ptr[i]; e < view.row_ptr[i + 1]; e++)
            if (view.source[e] < 0 || view.source[e] >= view.n_sources || view.source[e] == i)
                return "a source is out of range, or a loop";
    }
    for (int64_t e = 0; e < view.n_edges && view.edge_ranks != NULL; e++)
        if (view.edge_ranks[e] < 1 || view.edge_ranks[e] > n_ranks) return "an edge of no rank, or of too many";
    return NULL;
}

static const char *parts_fault(int n)
{
    const char *fault = NULL;

    for (int q = 0; q < n && fault == NULL; q++) {
        if (part[q].rc != part[0].rc) fault = "ranks have another status";
        else if (strcmp(part[q].error.message, part[0].error.message) != 0) fault = "ranks have other sentences";
        else if (part[q].rc < 0 && part[q].mesh != NULL) fault = "an output was written";
        else if (part[q].rc < 0 && part[q].error.message[0] == '\0') fault = "no sentence";
        else if (part[q].rc == GRAFT_ERR_PEER) fault = "messages failed";
        else if (part[q].rc == GRAFT_OK) fault = view_fault(&part[q], n);
    }
    return fault;
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    struct supply s = { bytes, bytes + count };
    const int     n = 1 + supply_byte(&s) % RANKS_MOST;
    const uint8_t how = supply_byte(&s);
    const int64_t live = part[1].memory.live_bytes;
    const char   *fault;

    for (int q = 0; q < n; q++) any_part(&s, &part[q], how);
    create_parts(n);
    fault = parts_fault(n);
    for (int q = 0; q < n; q++) {
        part[q].meshes->destroy(part[q].mesh);
        if (n > 1) part[q].transport.close(part[q].transport.self);
        free_part(&part[q]);
    }
    return fault == NULL && part[1].memory.live_bytes != live ? "memory leaked" : fault;
}
