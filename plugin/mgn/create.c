/* Creation of a network on a mesh, and its memory: arrays, edges in tasks, measured times.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/options.h"
#include "base/sort.h"
#include "comm/collective.h"
#include "mgn/inside.h"

#include <string.h>

/* Allocate n rows of `elements` elements. */
static int32_t new_row_array(struct gr_mgn *g, struct gr_pool *pool, char **rows, int64_t n, int64_t elements,
                             const char *name, graft_error *error)
{
    int64_t count;

    if (__builtin_mul_overflow(n, elements, &count)) count = INT64_MAX;
    *rows = gr_pool_new(g->context, pool, count, (uint64_t)g->blocks.element, name, error);
    return *rows != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
}

static int32_t new_blocks(struct gr_mgn *g, graft_dtype dtype, graft_error *error)
{
    const struct gr_mgn_shape *shape = g->shape;
    struct gr_nn_form          form = { .linear = (int32_t)shape->options.linear, .is_elu = shape->options.is_elu };

    form.widest = gr_larger(gr_mgn_width(g), shape->n_out);
    form.widest_in = gr_larger(form.widest, gr_larger(shape->n_node_in, shape->n_edge_in));
    form.is_whole = g->mesh->kind == GRAFT_MESH_SHARED && g->mesh->comm->n_ranks > 1;
    return gr_nn_blocks_init(&g->blocks, g->context, dtype, &form, &g->memory, error);
}

static int32_t new_arrays(struct gr_mgn *g, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g), n_copies = mesh->kind == GRAFT_MESH_SHARED ? mesh->halo.count : 0;

    GR_TRY(new_row_array(g, &g->memory, &g->arrays.h, mesh->n_sources, width, "states of nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->arrays.e, mesh->n_edges, width, "states of edges", error));
    GR_TRY(new_row_array(g, &g->memory, &g->arrays.m, mesh->n_nodes, width, "sums at nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->arrays.sources, mesh->n_sources, width, "products of nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->arrays.targets, mesh->n_nodes, width, "products of nodes", error));
    return new_row_array(g, &g->memory, &g->arrays.copies, n_copies, width, "sums of other ranks", error);
}

/* Find the end of the task that begins at node `begin`. It has one node, or several with at most GR_MGN_ROWS edges. */
static int64_t end_of_task(const graft_mesh *mesh, int64_t begin)
{
    int64_t end = begin + 1;

    while (end < mesh->n_nodes && end - begin < GR_MGN_ROWS &&
           mesh->edges.row_ptr[end + 1] - mesh->edges.row_ptr[begin] <= GR_MGN_ROWS)
        end++;
    return end;
}

/* Whether the task with targets begin to end - 1 is one of the first, see struct gr_mgn_tasks. *copy is the first
 * shared node that is not before `begin`; tasks are passed in order. */
static int is_first_task(const graft_mesh *mesh, int64_t begin, int64_t end, int64_t *copy)
{
    if (mesh->kind == GRAFT_MESH_SHARED) {
        int64_t before = *copy;

        while (*copy < mesh->copies.count && mesh->copies.node[*copy] < end) ++*copy;
        return *copy > before;
    }
    for (int64_t k = mesh->edges.row_ptr[begin]; k < mesh->edges.row_ptr[end]; k++)
        if (mesh->edges.source[k] >= mesh->n_nodes) return 0;
    return 1;
}

static int32_t cut_edges(struct gr_mgn *g, graft_error *error)
{
    const graft_mesh    *mesh = g->mesh;
    struct gr_mgn_tasks *tasks = &g->tasks;
    int64_t              copy = 0, n_last = 0;

    for (int64_t begin = 0; begin < mesh->n_nodes; begin = end_of_task(mesh, begin)) tasks->count++;
    GR_TRY(GR_POOL_NEW(g->context, &g->memory, tasks->target, tasks->count + 1, error));
    GR_TRY(GR_POOL_NEW(g->context, &g->memory, tasks->order, tasks->count, error));
    for (int64_t i = 0; i < tasks->count; i++) {
        const int64_t begin = tasks->target[i], end = tasks->target[i + 1] = end_of_task(mesh, begin);

        if (is_first_task(mesh, begin, end, &copy)) tasks->order[tasks->n_first++] = (int32_t)i;
        else tasks->order[tasks->count - ++n_last] = (int32_t)i;
    }
    return GRAFT_OK;
}

static int32_t new_times(struct gr_mgn *g, graft_error *error)
{
    if (!gr_base_options(g->context)->profile) return GRAFT_OK;
    return GR_POOL_NEW(g->context, &g->memory, g->times, 2 * (g->shape->options.layers + 2), error);
}

/* Do the part of gr_mgn_create() that needs no other rank. */
static int32_t init_alone(struct gr_mgn *g, graft_dtype dtype, graft_error *error)
{
    GR_TRY(new_blocks(g, dtype, error));
    GR_TRY(gr_nn_choose_module(&g->blocks, error));
    GR_TRY(cut_edges(g, error));
    GR_TRY(new_times(g, error));
    return new_arrays(g, error);
}

int32_t gr_mgn_create(graft_mesh *mesh, const struct gr_mgn_shape *shape, graft_dtype dtype, struct gr_mgn **mgn,
                      graft_error *error)
{
    struct gr_mgn *g = gr_new(mesh->context, 1, sizeof *g, "network on a mesh", error);
    int32_t        rc = gr_comm_agree(mesh->comm, g != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM, error);

    if (g != NULL) g->context = mesh->context;
    GR_TRY_DONE(rc);
    g->mesh = mesh;
    g->shape = shape;
    g->loops = &GR_FOR_ISA(gr_mgn_loops, gr_processor_isa())[dtype == GRAFT_F64];
    GR_TRY_DONE(gr_comm_agree(mesh->comm, init_alone(g, dtype, error), error));
    GR_TRY_DONE(gr_mgn_products_agree(g, error));
    GR_TRY_DONE(gr_mgn_exchange_init(g, error));
    *mgn = g;
    g = NULL;
done:
    gr_mgn_destroy(g);
    return rc;
}

void gr_mgn_destroy(struct gr_mgn *g)
{
    if (g == NULL) return;
    gr_mgn_exchange_fini(g);
    gr_nn_blocks_fini(&g->blocks);
    gr_pool_fini(g->context, &g->backward_memory);
    gr_pool_fini(g->context, &g->memory);
    gr_free(g->context, g);
}

/* Allocate the states before each layer and after the last, and the sums. */
static int32_t new_kept_arrays(struct gr_mgn *g, struct gr_pool *pool, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g), layers = g->shape->options.layers, later = layers > 1 ? layers - 1 : 0;
    const int64_t     carried = g->shape->options.edges == GR_MGN_EDGES_CARRIED ? later : 0;

    GR_TRY(new_row_array(g, pool, &g->kept.h, layers * mesh->n_sources, width, "states of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->kept.e, carried * mesh->n_edges, width, "states of edges", error));
    GR_TRY(new_row_array(g, pool, &g->kept.m, later * mesh->n_nodes, width, "sums at nodes", error));
    return new_row_array(g, pool, &g->kept.output, mesh->n_nodes, g->shape->n_out, "output", error);
}

static int32_t new_gradients(struct gr_mgn *g, struct gr_pool *pool, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g), n_out = g->shape->n_out;

    GR_TRY(new_row_array(g, pool, &g->gradients.h, mesh->n_sources, width, "gradients of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->gradients.e, mesh->n_edges, width, "gradients of edges", error));
    GR_TRY(new_row_array(g, pool, &g->gradients.z, mesh->n_edges, width, "gradients of edges", error));
    GR_TRY(new_row_array(g, pool, &g->gradients.m, mesh->n_nodes, width, "gradients of sums", error));
    GR_TRY(new_row_array(g, pool, &g->gradients.sources, mesh->n_sources, width, "gradients of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->gradients.targets, mesh->n_nodes, width, "gradients of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->gradients.output, mesh->n_nodes, n_out, "gradients of the output", error));
    return new_row_array(g, pool, &g->partials.at, g->partials.count, g->partials.elements, "gradients of weights",
                         error);
}

int32_t gr_mgn_reserve_backward(struct gr_mgn *g, graft_error *error)
{
    const struct gr_mgn_shape *shape = g->shape;
    int32_t                    rc = GRAFT_OK;

    if (g->partials.at != NULL) return GRAFT_OK;
    g->partials.count = GR_MGN_PARTIALS;
    g->partials.elements = gr_larger(gr_nn_mlp_elements(&shape->decoder), gr_nn_mlp_elements(&shape->node_encoder));
    g->partials.elements = gr_larger(g->partials.elements, gr_nn_mlp_elements(&shape->edge_encoder));
    if (shape->options.layers > 0)
        g->partials.elements = gr_larger(g->partials.elements, gr_nn_mlp_elements(&shape->edge[0]));
    GR_TRY_DONE(gr_nn_blocks_reserve(&g->blocks, &g->backward_memory, error));
    GR_TRY_DONE(new_kept_arrays(g, &g->backward_memory, error));
    rc = new_gradients(g, &g->backward_memory, error);
done:
    if (rc < 0) gr_mgn_release_backward(g);
    return rc;
}

void gr_mgn_release_backward(struct gr_mgn *g)
{
    gr_pool_fini(g->context, &g->backward_memory);
    g->partials.at = NULL;
    g->kept.products = NULL;
}

double gr_mgn_products_bytes(const struct gr_mgn *g)
{
    const struct gr_mgn_options *o = &g->shape->options;

    return (double)o->layers * (double)o->linear * (double)g->mesh->n_edges * (double)(o->width * g->blocks.element);
}

int32_t gr_mgn_reserve_products(struct gr_mgn *g, graft_error *error)
{
    const struct gr_mgn_options *o = &g->shape->options;

    GR_ASSERT(g->partials.at != NULL);
    if (g->kept.products != NULL) return GRAFT_OK;
    return new_row_array(g, &g->backward_memory, &g->kept.products, o->layers * o->linear * g->mesh->n_edges, o->width,
                         "products of edges", error);
}

int64_t gr_mgn_bytes(const struct gr_mgn *g)
{
    return gr_memory_bytes(g) + g->memory.bytes + g->backward_memory.bytes +
           (g->messages.rows.halo != NULL ? gr_halo_rows_bytes(&g->messages.rows, g->mesh->comm->n_ranks) : 0) +
           gr_comm_outcome_bytes(&g->messages.outcome);
}

static void add_times(const struct gr_mgn_times *from, struct gr_mgn_times *sum)
{
    for (int part = 0; part < GR_MGN_ALL; part++) sum->seconds[part] += from->seconds[part];
    sum->bytes_sent += from->bytes_sent;
}

struct gr_mgn_times gr_mgn_times_of(const struct gr_mgn *g, int is_backward, int64_t l)
{
    const int64_t       layers = g->shape->options.layers;
    struct gr_mgn_times times = *gr_mgn_times_at(g, is_backward, l);

    if (l == layers) times.seconds[GR_MGN_ALL] = times.seconds[GR_MGN_EDGES] + times.seconds[GR_MGN_NODES];
    for (int64_t k = 0; k <= layers && l > layers; k++) add_times(gr_mgn_times_at(g, is_backward, k), &times);
    return times;
}
