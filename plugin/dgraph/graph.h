/* A graph over ranks: who owns which vertex, what each rank has of it, and moving what belongs to vertices between the
 * order in which the host has them and that of their owners.
 *
 * graph.c   create: slices, owners, rows to their owners     directory.c  where the vertices of columns live
 * owner.h   which rank owns which vertex                     columns.c    from global to local columns
 * move.c    rows of bytes from slices to owners and back     explain.c    what there is, in a few lines
 * part.h    what can be made of it                           links.c      who has which vertex in its halo
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_DGRAPH_GRAPH_H
#define GR_DGRAPH_GRAPH_H

#include "base/dense_view.h"
#include "comm/route.h"
#include "graft_graph.h"
#include "graph/csr.h"
#include "graph/part.h"

/** What a rank has, as all ranks know. */
struct gr_share {
    int64_t n_slice, n_owned, n_entries, n_cut, n_halo;
};

struct graft_graph {
    graft_context   *context;
    struct gr_comm  *comm;
    struct gr_comm  *own_comm;   /* the same, if it goes with the graph; else NULL */
    int32_t          references; /* the host's, and one of each plan */
    int64_t          n_vertices;
    int64_t          n_slice, n_owned; /* of this rank */
    graft_dtype      value_type;       /* 0: no values */
    int32_t          is_given;         /* 1: the host says who owns what */
    char             partition[512];   /* how owners were found, and why */
    int64_t         *first;            /* [n_ranks + 1] the first vertex of each slice */
    int32_t         *owner;            /* [n_slice] */
    int64_t         *vertex;           /* [n_owned] rising */
    struct gr_route  rows;             /* from the slices to the owners, who receive them in the order of vertices */
    int64_t         *packed;           /* [n_slice] the place of each row of the slice among the packed ones */
    struct gr_part   part;             /* views of: */
    struct gr_csr    local, remote;
    struct gr_share *share; /* [n_ranks] */
};

/** Distribute a graph. Collective.
 * \param[in] comm   Must outlive the graph.
 * \param[in] slice  Complete and, but for what other ranks have, checked; see gr_slice_check(). Read during the call.
 * \return OK; ERR_ARG (slices that are not one graph, ranks that disagree, an owner that is no rank); ERR_UNSUPPORTED
 *         (a rank would own, or gather from, more than INT32_MAX vertices); ERR_NOMEM: the same on all ranks, and the
 *         comm lives on; ERR_PEER. */
int32_t gr_graph_create(graft_context *context, struct gr_comm *comm, const graft_slice *slice, graft_graph **graph,
                        graft_error *error);

/** Not collective. The graph goes with its last plan. NULL is legal. */
void gr_graph_destroy(graft_graph *graph);

/** What can be said of a slice without the others. `rows` may be NULL. */
int32_t gr_slice_check(const graft_context *context, const graft_slice *slice, graft_error *error);

/** Find graph->owner, the owners of the rows of this slice: by the slice itself, by the file of option
 *  "partition.file", or by option "partition"; see owner.h. Collective.
 * \return OK; ERR_ARG (an owner that is no rank), and what a file or METIS can fail with: the same on all ranks;
 *         ERR_PEER. */
int32_t gr_owner_find(graft_graph *graph, const graft_slice *slice, graft_error *error);

/** How the columns of the owned rows are called here: those of this rank by place, those of others by their place in
 *  the halo. */
struct gr_names {
    int64_t  first;  /* columns first to end - 1 are owned, and are places first to ... less `first`; */
    int64_t  end;    /* the others are in: */
    int64_t  count;  /* rising */
    int64_t *vertex; /* [count] */
    int32_t *name;   /* [count] a place, or the complement (~) of a place in the halo */
};

/** Ask the ranks that had the vertices in their slices who owns the columns of the owned rows, each once. Collective.
 *  The halo is filled in. On failure both may be in parts: the caller frees them with gr_names_fini() and the graph.
 * \param[in]  columns  [entries] global
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED: the same on all ranks; ERR_PEER. */
int32_t gr_names_find(graft_graph *graph, const int64_t *columns, int64_t entries, struct gr_names *names,
                      graft_error *error);
void    gr_names_fini(const graft_context *context, struct gr_names *names);

/** Make graph->local and graph->remote of the owned rows. Not collective.
 * \param[in] row_ptr  [n_owned + 1]
 * \param[in] values   Of the entries, as value_type says, or NULL.
 * \return OK; ERR_NOMEM. */
int32_t gr_graph_split(graft_graph *graph, const int64_t *row_ptr, const int64_t *columns, const void *values,
                       const struct gr_names *names, graft_error *error);

/** The route of the edges of the rows of this slice to the owners of the rows. Collective. \return OK; ERR_PEER.
 * \param[in,out] edges  From gr_route_init(). */
int32_t gr_graph_route_edges(const graft_graph *graph, const int64_t *row_ptr, struct gr_route *edges,
                             graft_error *error);

/** Send `bytes` for each edge of the slice along this route. Collective. \return OK; ERR_PEER.
 * \param[in]  elements  [edges of the slice] in the order of the slice
 * \param      packed    [edges of the slice] buffer
 * \param[out] received  [edges of the owned rows] in the order of vertices */
int32_t gr_graph_send_edges(const graft_graph *graph, const int64_t *row_ptr, struct gr_route *edges,
                            const void *elements, int64_t bytes, void *packed, void *received, graft_error *error);

/** Move rows of bytes; see graft_graphs.move(). `move` is complete. Collective.
 * \return OK; ERR_ARG, ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_move(graft_graph *graph, const graft_move *move, graft_error *error);

/** Tell all ranks what each has in `part`, which is of this graph, or was made from it. Collective.
 * \param[out] share  [n_ranks]
 * \return OK; ERR_PEER. */
int32_t gr_graph_share(const graft_graph *graph, const struct gr_part *part, struct gr_share *share,
                       graft_error *error);

/** `share` is graph->share, or of a part that was made from it. rank -1: all. \return OK; ERR_ARG. */
int32_t gr_graph_info(const graft_graph *graph, const struct gr_share *share, int32_t rank, graft_graph_info *info,
                      graft_error *error);
void    gr_graph_explain(const graft_graph *graph, const struct gr_share *share, char *text, uint64_t capacity);

#endif
