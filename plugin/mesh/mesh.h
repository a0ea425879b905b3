/* The mesh of a simulation over ranks: its nodes, its directed edges by target and by source, and the rows of other
 * ranks that an exchange receives.
 *
 * Exchanges of both kinds use halo/halo.h: halo row k receives row halo.place[k] of another rank.
 *
 *     ghosts   n_nodes are the nodes that the rank owns. Edges gather from them and, as source n_nodes + k, from row k
 *              of the halo. The backward pass sends gradients of these rows to their owners, which sum them.
 *     shared   n_nodes are all nodes that the rank has. Edges gather from these alone, so sums at a node that other
 *              ranks have too are partial. Row k of the halo receives the partial sum of another rank. All ranks add
 *              the partial sums of a node in the order of ranks, so its copies have the same bits. The adjoint of this
 *              sum is the same exchange of gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/comm.h"
#include "draft/graft_mesh.h"
#include "graph/part.h"

#include <math.h>

/** Nodes that several ranks have: shared node i is node[i], and its copies are rows copy[start[i]] to
 *  copy[start[i + 1] - 1] of the halo, in the order of their ranks; the first before[i] are of ranks below this one. */
struct gr_mesh_copies {
    int64_t  count;
    int32_t *node;   /* [count] */
    int64_t *start;  /* [count + 1] */
    int32_t *before; /* [count] */
    int32_t *copy;   /* [start[count]] */
};

/** Edges by target, then by the id of their source; and by source. */
struct gr_mesh_edges {
    int64_t *row_ptr;  /* [n_nodes + 1] */
    int32_t *source;   /* [n_edges] */
    int32_t *target;   /* [n_edges] ascending */
    int32_t *out_ptr;  /* [n_sources + 1] edges by source */
    int32_t *out_edge; /* [n_edges] indices of edges, ascending for each source */
    int32_t *ranks;    /* [n_edges] number of ranks that have each edge; NULL: one */
};

struct gr_mesh_space {
    int32_t dim;
    double *position; /* [n_sources x dim] coordinates; rows of the halo come from the owner */
    double  period[3];
};

struct graft_mesh {
    struct gr_handle handle;
    graft_context   *context;
    struct gr_comm  *comm; /* also with one rank */
    int32_t          uses; /* uses by the host, and by its networks */
    graft_mesh_kind  kind;
    int32_t          index_base; /* type of rows in messages */
    int64_t          networks;   /* networks made on it so far, the same on all ranks */

    int64_t  n_rows;      /* rows of the host's arrays */
    int32_t *node_of;     /* [n_rows] -1: a ghost */
    int64_t  n_nodes;     /* nodes whose values this rank computes */
    int32_t *row_of;      /* [n_nodes] the row that is read */
    int64_t *id;          /* [n_nodes] */
    double  *node_weight; /* [n_nodes] 1 / ranks that have it; NULL: all 1 */

    int64_t               n_sources; /* ghosts: n_nodes + halo.count; shared: n_nodes */
    int64_t               n_edges;
    struct gr_mesh_edges  edges;
    struct gr_mesh_space  space;
    struct gr_halo        halo;
    struct gr_mesh_copies copies; /* empty with ghosts */

    graft_mesh_info *info; /* [ranks + 1] of each rank, and of all */
};

/** Make a mesh. `args` is complete. Collective. \return as graft_mesh_api.create(). */
int32_t gr_mesh_create(graft_context *context, const graft_transport *transport, const graft_mesh_args *args,
                       graft_mesh **mesh, graft_error *error);

/** Add a use; each needs its gr_mesh_destroy(), and the last one frees the mesh. */
graft_mesh *gr_mesh_use(graft_mesh *mesh);
void        gr_mesh_destroy(graft_mesh *mesh);

/** As info(), view() and explain() of graft_mesh_api, of structs of this library's sizes. */
int32_t gr_mesh_info(const graft_mesh *mesh, int32_t rank, graft_mesh_info *info, graft_error *error);
void    gr_mesh_view(const graft_mesh *mesh, graft_mesh_view *view);
void    gr_mesh_explain(const graft_mesh *mesh, char *text, uint64_t capacity);

/** The component of a vector in a direction of this period, or of none (0), to the nearest image. */
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

/** Check a field of the host: complete, with n_rows rows and n_columns columns (negative: any number), F32 or F64.
 *  Strides that are 0 are set. \return OK; ERR_ARG. */
int32_t gr_mesh_field_read(const graft_field *theirs, const char *name, int64_t n_rows, int64_t n_columns,
                           graft_field *field, graft_error *error);

/** Element (i, j). */
static inline double gr_mesh_field_at(const graft_field *field, int64_t i, int64_t j)
{
    const int64_t at = i * field->row_stride + j * field->column_stride;

    return field->dtype == GRAFT_F32 ? (double)((const float *)field->data)[at] : ((const double *)field->data)[at];
}
