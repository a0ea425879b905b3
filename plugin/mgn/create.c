/* The memory of a network on a mesh.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "comm/collective.h"
#include "mgn/inside.h"

#include <string.h>

#if defined(__x86_64__)
#define LOOPS_OF_WIDE                                                                                                  \
    (isa >= GR_ISA_AVX512 ? &gr_mgn_loops_avx512 : isa >= GR_ISA_AVX2 ? &gr_mgn_loops_avx2 : &gr_mgn_loops_generic)
#elif defined(GR_HAS_SVE)
#define LOOPS_OF_WIDE                                                                                                  \
    (isa == GR_ISA_SVE512 ? &gr_mgn_loops_sve512 : isa == GR_ISA_SVE256 ? &gr_mgn_loops_sve256 : &gr_mgn_loops_generic)
#else
#define LOOPS_OF_WIDE ((void)isa, &gr_mgn_loops_generic)
#endif

const struct gr_mgn_loops *gr_mgn_loops_for(graft_dtype dtype)
{
    const enum gr_isa                   isa = gr_processor_isa();
    const struct gr_mgn_loops_of_types *loops = LOOPS_OF_WIDE;

    return dtype == GRAFT_F64 ? &loops->f64 : &loops->f32;
}

static int64_t greater_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Allocate n rows of `elements` elements. */
static int32_t new_row_array(struct gr_mgn *g, struct gr_pool *pool, char **rows, int64_t n, int64_t elements,
                             const char *name, graft_error *error)
{
    int64_t count;

    if (__builtin_mul_overflow(n, elements, &count)) count = INT64_MAX;
    *rows = gr_pool_new(g->context, pool, count, (uint64_t)g->element, name, error);
    return *rows != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
}

static int64_t widest_input(const struct gr_mgn *g)
{
    return greater_of(g->row_elements, greater_of(g->shape->n_node_in, g->shape->n_edge_in));
}

static int32_t new_threads(struct gr_mgn *g, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    g->n_threads = gr_threads(g->context, 0);
    g->row_elements = greater_of(gr_mgn_width(g), g->shape->n_out);
    GR_TRY(GR_POOL_NEW(g->context, &g->memory, g->thread, g->n_threads, error));
    for (int t = 0; t < g->n_threads; t++)
        GR_TRY(new_row_array(g, &g->memory, &g->thread[t].block, 2 * GR_MGN_ROWS, g->row_elements, "rows of a block",
                             error));
    for (int t = 0; t < g->n_threads; t++) gr_mlp_use_rows(g, t, 0);
    for (int i = 0; i < 2 * g->n_threads && g->pads; i++)
        GR_TRY(new_row_array(g, &g->memory, &g->thread[i / 2].padded[i % 2], GR_MGN_ROWS, widest_input(g),
                             "rows of a block", error));
done:
    return rc;
}

static int32_t new_arrays(struct gr_mgn *g, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g), n_copies = mesh->kind == GRAFT_MESH_SHARED ? mesh->halo.count : 0;
    int32_t           rc = GRAFT_OK;

    GR_TRY(new_row_array(g, &g->memory, &g->h, mesh->n_sources, width, "states of nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->e, mesh->n_edges, width, "states of edges", error));
    GR_TRY(new_row_array(g, &g->memory, &g->m, mesh->n_nodes, width, "sums at nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->sources, mesh->n_sources, width, "products of nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->targets, mesh->n_nodes, width, "products of nodes", error));
    GR_TRY(new_row_array(g, &g->memory, &g->copies, n_copies, width, "sums of other ranks", error));
done:
    return rc;
}

/* The local part of create(). */
static int32_t init_alone(struct gr_mgn *g, graft_error *error)
{
    int32_t rc = new_threads(g, error);

    GR_TRY(rc);
    GR_TRY(gr_mgn_products_init(g, error));
    GR_TRY(gr_mgn_cut(g, error));
    GR_TRY(gr_mgn_times_init(g, error));
    rc = new_arrays(g, error);
done:
    return rc;
}

int32_t gr_mgn_create(graft_mesh *mesh, const struct gr_mgn_shape *shape, graft_dtype dtype, struct gr_mgn **mgn,
                      graft_error *error)
{
    struct gr_mgn *g = gr_new(mesh->context, 1, sizeof *g, "network on a mesh", error);
    int32_t        rc = gr_comm_agree(mesh->comm, g != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM, error);

    if (g != NULL) g->context = mesh->context;
    GR_TRY(rc);
    g->mesh = mesh;
    g->shape = shape;
    g->dtype = dtype;
    g->element = dtype == GRAFT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    g->loops = gr_mgn_loops_for(dtype);
    g->pads = mesh->kind == GRAFT_MESH_SHARED && mesh->comm->n_ranks > 1;
    GR_TRY(gr_comm_agree(mesh->comm, init_alone(g, error), error));
    GR_TRY(gr_mgn_products_agree(g, error));
    GR_TRY(gr_mgn_exchange_init(g, error));
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
    gr_mgn_products_fini(g);
    gr_pool_fini(g->context, &g->backward_memory);
    gr_pool_fini(g->context, &g->memory);
    gr_free(g->context, g);
}

static int32_t new_kept_blocks(struct gr_mgn *g, struct gr_pool *pool, graft_error *error)
{
    const int64_t linear = g->shape->options.linear;
    int32_t       rc = GRAFT_OK;

    for (int t = 0; t < g->n_threads; t++) {
        struct gr_mgn_thread *thread = &g->thread[t];

        GR_TRY(new_row_array(g, pool, &thread->kept_block, (linear + 2) * GR_MGN_ROWS, g->row_elements,
                             "rows of a block", error));
        GR_TRY(new_row_array(g, pool, &thread->rstd, GR_MGN_ROWS, 1, "deviations of a block", error));
        for (int i = 0; i < 2; i++)
            thread->back[i] = gr_mgn_at(g, thread->kept_block, (linear + i) * GR_MGN_ROWS * g->row_elements);
    }
done:
    return rc;
}

/* States before each layer and after the last, and sums. */
static int32_t new_kept_arrays(struct gr_mgn *g, struct gr_pool *pool, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g), layers = g->shape->options.layers, later = layers > 1 ? layers - 1 : 0;
    const int64_t     carried = g->shape->options.edges == GR_MGN_EDGES_CARRIED ? later : 0;
    int32_t           rc = GRAFT_OK;

    GR_TRY(new_row_array(g, pool, &g->kept_h, layers * mesh->n_sources, width, "states of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->kept_e, carried * mesh->n_edges, width, "states of edges", error));
    GR_TRY(new_row_array(g, pool, &g->kept_m, later * mesh->n_nodes, width, "sums at nodes", error));
    GR_TRY(new_row_array(g, pool, &g->kept_output, mesh->n_nodes, g->shape->n_out, "output", error));
done:
    return rc;
}

static int32_t new_gradients(struct gr_mgn *g, struct gr_pool *pool, graft_error *error)
{
    const graft_mesh *mesh = g->mesh;
    const int64_t     width = gr_mgn_width(g), n_out = g->shape->n_out;
    int32_t           rc = GRAFT_OK;

    GR_TRY(new_row_array(g, pool, &g->gradient_h, mesh->n_sources, width, "gradients of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->gradient_e, mesh->n_edges, width, "gradients of edges", error));
    GR_TRY(new_row_array(g, pool, &g->gradient_z, mesh->n_edges, width, "gradients of edges", error));
    GR_TRY(new_row_array(g, pool, &g->gradient_m, mesh->n_nodes, width, "gradients of sums", error));
    GR_TRY(new_row_array(g, pool, &g->gradient_sources, mesh->n_sources, width, "gradients of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->gradient_targets, mesh->n_nodes, width, "gradients of nodes", error));
    GR_TRY(new_row_array(g, pool, &g->gradient_output, mesh->n_nodes, n_out, "gradients of the output", error));
    GR_TRY(new_row_array(g, pool, &g->partial, g->n_partials, g->partial_elements, "gradients of weights", error));
done:
    return rc;
}

int32_t gr_mgn_reserve_backward(struct gr_mgn *g, graft_error *error)
{
    const struct gr_mgn_shape *shape = g->shape;
    int32_t                    rc = GRAFT_OK;

    if (g->partial != NULL) return GRAFT_OK;
    g->n_partials = GR_MGN_PARTIALS;
    g->partial_elements = greater_of(gr_nn_mlp_elements(&shape->decoder), gr_nn_mlp_elements(&shape->node_encoder));
    g->partial_elements = greater_of(g->partial_elements, gr_nn_mlp_elements(&shape->edge_encoder));
    if (shape->options.layers > 0)
        g->partial_elements = greater_of(g->partial_elements, gr_nn_mlp_elements(&shape->edge[0]));
    GR_TRY(new_kept_blocks(g, &g->backward_memory, error));
    GR_TRY(new_kept_arrays(g, &g->backward_memory, error));
    rc = new_gradients(g, &g->backward_memory, error);
done:
    if (rc < 0) gr_mgn_release_backward(g);
    return rc;
}

void gr_mgn_release_backward(struct gr_mgn *g)
{
    gr_pool_fini(g->context, &g->backward_memory);
    g->partial = NULL;
    g->products = NULL;
}

double gr_mgn_products_bytes(const struct gr_mgn *g)
{
    const struct gr_mgn_options *o = &g->shape->options;

    return (double)o->layers * (double)o->linear * (double)g->mesh->n_edges * (double)(o->width * g->element);
}

int32_t gr_mgn_reserve_products(struct gr_mgn *g, graft_error *error)
{
    const struct gr_mgn_options *o = &g->shape->options;

    GR_ASSERT(g->partial != NULL);
    if (g->products != NULL) return GRAFT_OK;
    return new_row_array(g, &g->backward_memory, &g->products, o->layers * o->linear * g->mesh->n_edges, o->width,
                         "products of edges", error);
}

int64_t gr_mgn_bytes(const struct gr_mgn *g)
{
    return gr_bytes(g) + g->memory.bytes + g->backward_memory.bytes +
           (g->rows.halo != NULL ? gr_halo_rows_bytes(&g->rows, g->mesh->comm->n_ranks) : 0) +
           gr_outcome_bytes(&g->outcome);
}
