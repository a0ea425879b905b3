/* A graph over ranks: the owners of vertices, the part of the graph on each rank, and the redistribution of vertex data
 * between the slices of the host and the owners.
 *
 * graph.c   create: check slices, find owners, send rows     columns.c       from global to local columns
 * owner.h   the owners of vertices                           redistribute.c  rows between slices and owners
 * part.h    parts derived from the part of a graph           explain.c       a table of the parts
 * values.c  new values of the edges
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/route.h"
#include "graft_graph.h"
#include "graph/csr.h"
#include "graph/part.h"

/** The sizes of the part of one rank, known to all ranks. */
struct gr_share {
    int64_t n_slice, n_owned, n_edges, n_cut, n_halo;
    int64_t n_moved; /* rows of the slice that another rank owns */
};

/** The prediction of parallel=auto for groups of ranks that share columns. */
struct gr_grid_choice {
    int32_t columns;    /* ranks of a group */
    int32_t method;     /* enum gr_partition_method of the parts */
    int32_t is_limited; /* the edges of a group need more memory than memory.limit allows */
    int64_t halo_rows;  /* sent between all groups in one direction of one sum */
    int64_t streamed;   /* bytes of edges that all ranks send in one sum; 0: ranks hold the edges of their group */
    double  seconds;    /* of an epoch */
};

/** What the ranks compute in an epoch, for predictions of its cost. */
struct gr_workload {
    const char      *shares_rows; /* the reason why parallel=auto can only share rows; NULL: it compares all ways */
    int32_t          layers;
    struct gr_widths hidden;     /* one width of all hidden layers, or a list */
    int32_t          gathers;    /* 1: layers sum over neighbours */
    int32_t          reads_rows; /* 1: layers read single rows of neighbours, not only their sums */
};

/** How the vertices were divided among ranks, and why. */
struct gr_division {
    struct gr_workload     workload;
    int32_t                is_given;         /* 1: the host passes the owners */
    char                   partition[512];   /* the method by which owners were found, and why */
    int32_t                compares;         /* parallel=auto compares ways to share columns; decided by rank 0 */
    char                   shares_rows[128]; /* why parallel=auto compares no other ways; empty if it does */
    int32_t                n_choices;        /* of parallel=auto; 0: nothing was compared */
    struct gr_grid_choice *choices;          /* [n_choices] by columns, ascending */
    int64_t                n_linked;         /* vertices with neighbours, which are the rows of transposes */
};

/** The slice of a rank, from which rows travel to their owners, which receive them in the order of vertices. */
struct gr_graph_slice {
    int32_t        *owner; /* [n_slice] */
    struct gr_route route;
    int64_t        *packed;  /* [n_slice] the place of each row among the packed rows */
    int64_t        *row_ptr; /* [n_slice + 1] if the graph has values that travel to their owners */
    uint32_t        digest;  /* of the entries, if they have values */
    uint8_t        *is_cut;  /* a bit for each edge of the owned rows, in the order of the host */
};

/** Objects of the host that have the values of a graph, the latest first. */
struct gr_graph_users {
    struct graft_plan *plans;
    struct graft_halo *halos;
    int64_t            plans_made; /* so far */
};

struct graft_graph {
    struct gr_handle      handle;
    graft_context        *context;
    struct gr_pool        pool; /* all arrays but slice.row_ptr, and those of the matrices and the route */
    struct gr_comm       *comm;
    struct gr_comm       *own_comm;   /* the same, if the graph destroys it; else NULL */
    int32_t               references; /* of the host, and of each plan */
    int64_t               n_vertices;
    int64_t               n_slice, n_owned; /* of this rank */
    graft_dtype           value_type;       /* 0: no values */
    int32_t               columns;          /* ranks that share the columns of a part; 1: each rank has its own part */
    struct gr_division    division;
    int64_t              *first; /* [n_ranks + 1] the first vertex of each slice */
    struct gr_graph_slice slice;
    int64_t              *vertex; /* [n_owned] ascending */
    struct gr_part        part;   /* views of: */
    struct gr_csr         local, remote;
    struct gr_share      *share; /* [n_ranks] */
    struct gr_graph_users users;
};

/** Distribute a graph over ranks. Collective.
 * \param[in] comm   Must outlive the graph.
 * \param[in] slice  A complete struct that has passed gr_graph_slice_check(). Read during the call.
 * \return OK; ERR_ARG (the slices do not make up one graph, ranks disagree, an owner is not a rank); ERR_UNSUPPORTED (a
 *         rank would own, or gather from, more than INT32_MAX vertices); ERR_NOMEM: the same on all ranks, and the comm
 *         stays alive; ERR_PEER. */
int32_t gr_graph_create(graft_context *context, struct gr_comm *comm, const struct gr_workload *workload,
                        const graft_slice *slice, graft_graph **graph, graft_error *error);

/** The tables of options (a bit for each) that the creation of a graph reads. */
uint32_t gr_graph_option_bits(const graft_context *context);

/** Not collective. The graph is freed together with its last plan. NULL is legal. */
void gr_graph_destroy(graft_graph *graph);

/** The local checks of a slice. `rows` may be NULL. \return OK; ERR_ARG and others of gr_csr_check(). */
int32_t gr_graph_slice_check(const graft_context *context, const graft_slice *slice, graft_error *error);

/** Find graph->slice.owner, the owners of the rows of this slice: from the slice itself, from the file of option
 *  "partition.file", or with the method of option "partition"; see owner.h. Collective.
 * \return OK; ERR_ARG (an owner is not a rank), and errors of gr_partition_owners_read() and METIS: the same on all
 *         ranks; ERR_PEER. */
int32_t gr_graph_owner_find(graft_graph *graph, const graft_slice *slice, graft_error *error);

/** Make graph->local, graph->remote and the halo of the owned rows: ask the ranks whose slices had their columns for
 *  the owners. Collective.
 * \param[in] row_ptr  [n_owned + 1]
 * \param[in] columns  Of the edges, global.
 * \param[in] values   Of the edges, of type value_type, if the graph has values.
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED: the same on all ranks; ERR_PEER. */
int32_t gr_graph_split(graft_graph *graph, const graft_slice *slice, const int64_t *row_ptr, const int64_t *columns,
                       const void *values, graft_error *error);

/** The route of the edges of the rows of this slice to the owners of the rows. Collective. \return OK; ERR_PEER.
 * \param[in,out] edges  From gr_comm_route_init(). */
int32_t gr_graph_route_edges(const graft_graph *graph, const int64_t *row_ptr, struct gr_route *edges,
                             graft_error *error);

/** Send `bytes` for each edge of the slice along this route. Collective. \return OK; ERR_PEER.
 * \param[in]  elements  [edges of the slice] in the order of the slice
 * \param      packed    [edges of the slice] buffer
 * \param[out] received  [edges of the owned rows] in the order of vertices */
int32_t gr_graph_send_edges(const graft_graph *graph, const int64_t *row_ptr, struct gr_route *edges,
                            const void *elements, int64_t bytes, void *packed, void *received, graft_error *error);

/** Whether each rank owns the rows of its slice. */
int gr_graph_is_in_place(const graft_graph *graph);

/** The local checks of new values of the edges of the slice. \return OK; ERR_STATE (the graph has none); ERR_ARG (their
 *  number or type); ERR_FORMAT (not finite). */
int32_t gr_graph_check_values(const graft_graph *graph, const graft_dense *values, graft_error *error);

/** A digest of the row pointers and columns of the rows of a slice; `rows` may be NULL. */
uint32_t gr_graph_slice_digest(const graft_csr *rows);

/** Bits of `own` below: the arrays that belong to the library. The transport may use these arrays directly, but not
 *  arrays of the host, because a transport that cannot cancel a message uses its memory after a failure. */
enum { GR_OWN_FROM = 1, GR_OWN_TO = 2 };

/** Redistribute rows of bytes; see graft_graph_api.redistribute(). `args` is a complete struct. Collective.
 * \return OK; ERR_ARG, ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_redistribute(graft_graph *graph, const graft_redistribution *args, int own, graft_error *error);

/** Gather the sizes of all parts on all ranks. `part` is the part of this graph, or derived from it. Collective.
 * \param[out] share  [n_ranks]
 * \return OK; ERR_PEER. */
int32_t gr_graph_share(const graft_graph *graph, const struct gr_part *part, struct gr_share *share,
                       graft_error *error);

/** `share` is graph->share, or from gr_graph_share(). rank -1: all ranks. \return OK; ERR_ARG (rank). */
int32_t gr_graph_info(const graft_graph *graph, const struct gr_share *share, int32_t rank, graft_graph_info *info,
                      graft_error *error);
void    gr_graph_explain(const graft_graph *graph, const struct gr_share *share, struct gr_text *text);
