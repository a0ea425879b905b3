/* The mesh of a simulation over ranks: its nodes, its directed edges by target and by source, and the rows of other
 * ranks that an exchange receives.
 *
 * Exchanges of both kinds use halo/halo.h: halo row k receives row halo.place[k] of another rank.
 *
 *     ghosts   n_nodes are the nodes that the rank owns. Edges gather from them and, as source n_nodes + k, from row k
 *              of the halo. The backward pass sends gradients of these rows to their owners, which sum them.
 *     shared   n_nodes are all nodes that the rank has. Edges gather from these alone, so sums at a node that other
 *              ranks have too are partial. Row k of the halo receives the partial sum of another rank. All ranks add
 *              the partial sums of a node in the order of ranks, so its copies are bitwise identical. The backward
 *              pass exchanges and sums gradients in the same way.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "comm/comm.h"
#include "draft/graft_mesh.h"
#include "graph/part.h"

#include <math.h>

/** The nodes that this rank shares with others, and their copies on other ranks, which are rows of the halo. */
struct gr_mesh_copies {
    int64_t  count;  /* number of shared nodes */
    int32_t *node;   /* [count] index of each shared node */
    int64_t *start;  /* [count + 1] offsets of the copies of each shared node in `copy` */
    int32_t *before; /* [count] number of copies on ranks below this one, which are the first */
    int32_t *copy;   /* [start[count]] rows of the halo, for each shared node in the order of ranks */
};

/** Edges, sorted by target and then by the id of their source; and their indices by source. */
struct gr_mesh_edges {
    int64_t *row_ptr;  /* [n_nodes + 1] offsets of the edges to each node */
    int32_t *source;   /* [n_edges] source of each edge */
    int32_t *target;   /* [n_edges] target of each edge, ascending */
    int32_t *out_ptr;  /* [n_sources + 1] offsets in out_edge of the edges from each source */
    int32_t *out_edge; /* [n_edges] indices of edges, ascending for each source */
    int32_t *ranks;    /* [n_edges] number of ranks that have each edge; NULL: 1 */
};

struct gr_mesh_space {
    int32_t dim;
    double *position; /* [n_sources x dim] coordinates; rows of the halo come from the owner */
    double  period[3];
};

/** The users of a mesh. */
struct gr_mesh_users {
    int32_t count;    /* number of uses by the host and by networks */
    int64_t networks; /* number of networks created on it so far, the same on all ranks */
};

struct graft_mesh {
    struct gr_handle     handle;
    graft_context       *context;
    struct gr_comm      *comm; /* not NULL, also with one rank */
    struct gr_pool       pool; /* owner of all arrays except edges.source */
    struct gr_mesh_users users;
    graft_mesh_kind      kind;
    int32_t              index_base; /* index of the host's first row, 0 or 1, for texts of errors */

    int64_t  n_rows;      /* number of rows of the host's arrays */
    int32_t *node_of;     /* [n_rows] node of each row; -1: a ghost */
    int64_t  n_nodes;     /* number of nodes whose values this rank computes */
    int32_t *row_of;      /* [n_nodes] row from which the values of each node are read */
    int64_t *id;          /* [n_nodes] id of each node */
    double  *node_weight; /* [n_nodes] 1 / number of ranks that have the node; NULL: all 1 */

    int64_t               n_sources; /* number of sources: with ghosts n_nodes + halo.count, else n_nodes */
    int64_t               n_edges;
    struct gr_mesh_edges  edges;
    struct gr_mesh_space  space;
    struct gr_halo        halo;
    struct gr_mesh_copies copies; /* empty with ghosts */

    graft_mesh_info *info; /* [ranks + 1] sizes of each rank, and of the whole mesh */
};

/** Create a mesh. `args` has all fields of this library's version. Collective. \return as graft_mesh_api.create(). */
int32_t gr_mesh_create(graft_context *context, const graft_transport *transport, const graft_mesh_args *args,
                       graft_mesh **mesh, graft_error *error);

/** Add a use; each needs its gr_mesh_destroy(), and the last one frees the mesh. */
graft_mesh *gr_mesh_use(graft_mesh *mesh);
void        gr_mesh_destroy(graft_mesh *mesh);

/** Do info(), view() and explain() of graft_mesh_api, for structs with all fields of this library's version. */
int32_t gr_mesh_info(const graft_mesh *mesh, int32_t rank, graft_mesh_info *info, graft_error *error);
void    gr_mesh_view(const graft_mesh *mesh, graft_mesh_view *view);
void    gr_mesh_explain(const graft_mesh *mesh, char *text, uint64_t capacity);

/** The component of the vector to the nearest image, in a direction with this period; 0: the direction is not
 * periodic. */
static inline double gr_nearest_image(double component, double period)
{
    return period > 0 && fabs(component) > 0.5 * period ? component - period * round(component / period) : component;
}

/** Component c of the relative position of an edge: source minus target. */
static inline double gr_mesh_offset(const graft_mesh *mesh, int64_t edge, int c)
{
    const int64_t source = mesh->edges.source[edge], target = mesh->edges.target[edge];

    return gr_nearest_image(mesh->space.position[source * mesh->space.dim + c] -
                                mesh->space.position[target * mesh->space.dim + c],
                            mesh->space.period[c]);
}

/** Check a field of the host: type F32 or F64, n_rows rows, and n_columns columns (negative: any number). Copy it to
 *  *field, with all fields of this library's version, and with strides instead of zeros. \return OK; ERR_ARG. */
int32_t gr_mesh_field_read(const graft_field *theirs, const char *name, int64_t n_rows, int64_t n_columns,
                           graft_field *field, graft_error *error);

/** Read element (i, j) of a field. */
static inline double gr_mesh_field_at(const graft_field *field, int64_t i, int64_t j)
{
    const int64_t at = i * field->row_stride + j * field->column_stride;

    return field->dtype == GRAFT_F32 ? (double)((const float *)field->data)[at] : ((const double *)field->data)[at];
}
