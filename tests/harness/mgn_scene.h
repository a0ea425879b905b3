/* A network of kind mgn on a small mesh of one rank that is made by hand, with random weights and features.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef MGN_SCENE_H
#define MGN_SCENE_H

#include "comm/comm.h"
#include "harness/lcg.h"
#include "mgn/mgn.h"
#include "oracle/oracle_mgn.h"

#include <stdlib.h>
#include <string.h>

struct mgn_scene {
    struct oracle_mgn   what;
    graft_mesh          mesh;
    /* Weight of each edge: 1 over the number of ranks that have it; NULL if all weights are 1. */
    double             *edge_weight;
    struct gr_mgn_shape shape;
    /* weights of the network, features of nodes and features of edges, as doubles */
    double             *weights, *nodes, *edges;
    void          *own_weights, *own_nodes, *own_edges; /* the same three arrays in the element type of the network */
    graft_dtype    dtype;
    struct gr_mgn *mgn;
};

static inline double mgn_scene_number(uint32_t *state)
{
    return (double)lcg_next(state) / 8388608.0 - 1;
}

static inline double *mgn_scene_numbers(int64_t n, double scale, uint32_t *state)
{
    double *made = malloc((size_t)(n + 1) * sizeof *made);

    for (int64_t i = 0; i < n; i++) made[i] = scale * mgn_scene_number(state);
    return made;
}

/* Convert an array of doubles to the element type of the network. */
static inline void *mgn_scene_convert(const double *x, int64_t n, graft_dtype dtype)
{
    double *made = malloc((size_t)(n + 1) * sizeof *made);

    for (int64_t i = 0; i < n; i++) {
        if (dtype == GRAFT_F64) made[i] = x[i];
        else ((float *)(void *)made)[i] = (float)x[i];
    }
    return made;
}

static inline double mgn_scene_element(const void *x, int64_t i, graft_dtype dtype)
{
    return dtype == GRAFT_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* Make the incoming edges of each node. Some nodes have none, and one node has `most`. The sources of each node are in
 * ascending order. */
static inline void mgn_scene_make_mesh(graft_mesh *mesh, int64_t n, int64_t most, int has_ranks, uint32_t *state)
{
    int32_t *place;

    mesh->kind = GRAFT_MESH_GHOSTS;
    mesh->n_nodes = mesh->n_rows = mesh->n_sources = n;
    mesh->edges.row_ptr = calloc((size_t)n + 1, sizeof *mesh->edges.row_ptr);
    for (int64_t i = 0; i < n; i++)
        mesh->edges.row_ptr[i + 1] = mesh->edges.row_ptr[i] + (i == n / 3   ? most
                                                               : i % 5 == 4 ? 0
                                                                            : lcg_next(state) % 9);
    mesh->n_edges = mesh->edges.row_ptr[n];
    mesh->edges.source = calloc((size_t)mesh->n_edges + 1, sizeof *mesh->edges.source);
    mesh->edges.target = calloc((size_t)mesh->n_edges + 1, sizeof *mesh->edges.target);
    mesh->edges.ranks = has_ranks ? calloc((size_t)mesh->n_edges + 1, sizeof *mesh->edges.ranks) : NULL;
    for (int64_t i = 0; i < n; i++) {
        const int64_t degree = mesh->edges.row_ptr[i + 1] - mesh->edges.row_ptr[i];

        for (int64_t k = 0; k < degree; k++) {
            mesh->edges.source[mesh->edges.row_ptr[i] + k] = (int32_t)((k * n + lcg_next(state) % n) / degree % n);
            mesh->edges.target[mesh->edges.row_ptr[i] + k] = (int32_t)i;
        }
    }
    for (int64_t k = 0; k < mesh->n_edges && has_ranks; k++) mesh->edges.ranks[k] = (int32_t)(1 + lcg_next(state) % 3);
    mesh->edges.out_ptr = calloc((size_t)n + 2, sizeof *mesh->edges.out_ptr);
    mesh->edges.out_edge = calloc((size_t)mesh->n_edges + 1, sizeof *mesh->edges.out_edge);
    for (int64_t k = 0; k < mesh->n_edges; k++) mesh->edges.out_ptr[mesh->edges.source[k] + 1]++;
    for (int64_t i = 0; i < n; i++) mesh->edges.out_ptr[i + 1] += mesh->edges.out_ptr[i];
    place = malloc((size_t)(n + 1) * sizeof *place);
    memcpy(place, mesh->edges.out_ptr, (size_t)(n + 1) * sizeof *place);
    for (int64_t k = 0; k < mesh->n_edges; k++) mesh->edges.out_edge[place[mesh->edges.source[k]]++] = (int32_t)k;
    free(place);
}

/** Make the network. `what` has the description of the network, and its mesh exists. On failure rc is the status of
 *  gr_mgn_create(). */
static inline int32_t mgn_scene_init(struct mgn_scene *s, graft_context *context, const struct oracle_mgn *what,
                                     int64_t n, int64_t most, int has_ranks, graft_dtype dtype, graft_error *error)
{
    const struct gr_mgn_options options = { what->width,
                                            what->layers,
                                            what->linear,
                                            what->is_elu,
                                            what->has_norm,
                                            (enum gr_mgn_sum)what->sum,
                                            (enum gr_mgn_edges)what->is_encoded };
    uint32_t                    state = 12345;
    int32_t                     rc;

    memset(s, 0, sizeof *s);
    s->what = *what;
    s->dtype = dtype;
    s->mesh.context = context;
    mgn_scene_make_mesh(&s->mesh, n, most, has_ranks, &state);
    s->what.n_nodes = n;
    s->what.n_edges = s->mesh.n_edges;
    s->what.source = s->mesh.edges.source;
    s->what.target = s->mesh.edges.target;
    s->edge_weight = has_ranks ? malloc((size_t)(s->mesh.n_edges + 1) * sizeof(double)) : NULL;
    for (int64_t k = 0; k < s->mesh.n_edges && has_ranks; k++) s->edge_weight[k] = 1.0 / s->mesh.edges.ranks[k];
    s->what.edge_weight = s->edge_weight;
    s->weights = mgn_scene_numbers(oracle_mgn_weights(&s->what), 0.3, &state);
    s->nodes = mgn_scene_numbers(n * what->n_node_in, 1.5, &state);
    s->edges = mgn_scene_numbers(s->mesh.n_edges * what->n_edge_in, 1.5, &state);
    s->own_weights = mgn_scene_convert(s->weights, oracle_mgn_weights(&s->what), dtype);
    s->own_nodes = mgn_scene_convert(s->nodes, n * what->n_node_in, dtype);
    s->own_edges = mgn_scene_convert(s->edges, s->mesh.n_edges * what->n_edge_in, dtype);
    rc = gr_comm_create(context, NULL, 10, &s->mesh.comm, error);
    if (rc == GRAFT_OK)
        rc = gr_mgn_shape_init(context, &options, what->n_node_in, what->n_edge_in, what->n_out, &s->shape, error);
    if (rc == GRAFT_OK) rc = gr_mgn_create(&s->mesh, &s->shape, dtype, &s->mgn, error);
    return rc;
}

static inline void mgn_scene_fini(struct mgn_scene *s)
{
    gr_mgn_destroy(s->mgn);
    gr_mgn_shape_fini(s->mesh.context, &s->shape);
    gr_comm_destroy(s->mesh.comm);
    free(s->mesh.edges.row_ptr);
    free(s->mesh.edges.source);
    free(s->mesh.edges.target);
    free(s->mesh.edges.ranks);
    free(s->edge_weight);
    free(s->mesh.edges.out_ptr);
    free(s->mesh.edges.out_edge);
    free(s->weights);
    free(s->nodes);
    free(s->edges);
    free(s->own_weights);
    free(s->own_nodes);
    free(s->own_edges);
}

static inline int32_t mgn_scene_forward(struct mgn_scene *s, int threads, void *output, graft_error *error)
{
    const struct gr_team team = { .threads = threads };
    int32_t rc = gr_mgn_forward_begin(s->mgn, GRAFT_OK, s->own_weights, s->own_nodes, s->own_edges, 0, team, error);

    return rc < 0 ? rc : gr_mgn_forward_end(s->mgn, GRAFT_OK, output, team, error);
}

/* The loss of these tests is the sum of factor * output + output^2 / 2 over all outputs; its gradient is known in
 * closed form. */
struct mgn_scene_loss {
    const struct mgn_scene *scene;
    double                  value;
};

static inline double mgn_scene_factor(int64_t i)
{
    return 0.3 + (double)(i * 7919 % 101) / 101;
}

static inline int32_t mgn_scene_take_loss(void *arg, const void *output, void *gradient, graft_error *error)
{
    struct mgn_scene_loss *loss = arg;
    const graft_dtype      dtype = loss->scene->dtype;
    const int64_t          n = loss->scene->what.n_nodes * loss->scene->what.n_out;

    (void)error;
    loss->value = 0;
    for (int64_t i = 0; i < n; i++) {
        const double y = mgn_scene_element(output, i, dtype), slope = mgn_scene_factor(i) + y;

        loss->value += mgn_scene_factor(i) * y + y * y / 2;
        if (dtype == GRAFT_F64) ((double *)gradient)[i] = slope;
        else ((float *)gradient)[i] = (float)slope;
    }
    return GRAFT_OK;
}

#endif
