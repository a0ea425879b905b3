/* The memory of a network on a mesh.
 * SPDX-License-Identifier: Apache-2.0 */
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

/* Allocate n rows of so many elements. */
static int32_t new_row_array(struct gr_mgn *g, struct gr_pool *pool, char **rows, int64_t n, int64_t elements,
                             const char *name, graft_error *error)
{
    int64_t count;

    if (__builtin_mul_overflow(n, elements, &count)) count = INT64_MAX;
    *rows = gr_pool_new(g->context, pool, count, (uint64_t)g->element, name, error);
    return *rows != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;
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
    gr_mlp_use_rows(g, 0);
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

/* All that needs no other rank. */
static int32_t init_alone(struct gr_mgn *g, graft_error *error)
{
    int32_t rc = new_threads(g, error);

    GR_TRY(rc);
    GR_TRY(gr_mgn_products_init(g, error));
    GR_TRY(gr_mgn_cut(g, error));
    rc = new_arrays(g, error);
done:
    return rc;
}

int32_t gr_mgn_create(graft_mesh *mesh, const struct gr_mgn_shape *shape, graft_dtype dtype, struct gr_mgn **mgn,
                      graft_error *error)
{
    struct gr_mgn *g = gr_new(mesh->context, 1, sizeof *g, "network on a mesh", error);
    int32_t        rc = gr_comm_agree(mesh->comm, g != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM, error);

    GR_TRY(rc);
    g->context = mesh->context;
    g->mesh = mesh;
    g->shape = shape;
    g->dtype = dtype;
    g->element = dtype == GRAFT_F64 ? (int64_t)sizeof(double) : (int64_t)sizeof(float);
    g->loops = gr_mgn_loops_for(dtype);
    GR_TRY(gr_comm_agree(mesh->comm, init_alone(g, error), error));
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

int64_t gr_mgn_bytes(const struct gr_mgn *g)
{
    return gr_bytes(g) + g->memory.bytes + g->backward_memory.bytes +
           (g->rows.halo != NULL ? gr_halo_rows_bytes(&g->rows, g->mesh->comm->n_ranks) : 0);
}
