/* A graph over ranks: the owners of vertices, the part of the graph on each rank, and the redistribution of vertex data
 * between the slices of the host and the owners.
 *
 * graph.c   creates graphs from slices                       columns.c       turns global into local columns
 * owner.h   the owners of vertices                           redistribute.c  moves rows between slices and owners
 * part.h    parts derived from the part of a graph           explain.c       prints a table of the parts
 * values.c  replaces the values of the edges
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
    int64_t halo_rows;  /* rows sent between all groups in one direction of one sum */
    int64_t streamed;   /* bytes of edges sent by all ranks in one sum; 0: each rank stores the edges of its group */
    double  seconds;    /* predicted time of an epoch */
};

/** The work of the ranks in an epoch, from which its time is predicted. */
struct gr_workload {
    const char      *shares_rows; /* the reason why parallel=auto must divide rows; NULL: it compares all ways */
    int32_t          layers;
    struct gr_widths hidden;     /* one width of all hidden layers, or a list */
    int32_t          gathers;    /* 1: layers sum over neighbours */
    int32_t          reads_rows; /* 1: layers read single rows of neighbours, not only their sums */
};

/** How the vertices were divided among ranks, and why. */
struct gr_division {
    struct gr_workload     workload;
    int32_t                is_given;         /* 1: the host has passed the owners */
    char                   partition[512];   /* text: the method by which owners were found, and why */
    int32_t                compares;         /* 1: parallel=auto compares ways to share columns; decided by rank 0 */
    char                   shares_rows[128]; /* why parallel=auto compares no other ways; empty if it does */
    int32_t                n_choices;        /* choices that parallel=auto compared, or 0 */
    struct gr_grid_choice *choices;          /* [n_choices] in ascending order of `columns` */
    int64_t                n_linked;         /* vertices with neighbours, which are the rows of transposes */
};

/** The slice of a rank, whose rows are sent to their owners. Owners receive rows in the order of vertices. */
struct gr_graph_slice {
    int32_t        *owner;   /* [n_slice] owner of each row */
    struct gr_route route;   /* numbers of rows sent and received */
    int64_t        *packed;  /* [n_slice] index of each row among the packed rows, which are sorted by owner */
    int64_t        *row_ptr; /* [n_slice + 1] row pointers, if new values of edges must be sent to owners */
    uint32_t        digest;  /* digest of row pointers and columns, if edges have values */
    uint8_t        *is_cut;  /* [a bit for each edge of the owned rows, in the host's order] 1: in part->remote */
};

/** Lists of the host's objects that use the values of a graph, the latest first. */
struct gr_graph_users {
    struct graft_plan *plans;
    struct graft_halo *halos;
    int64_t            plans_made; /* number of plans made so far */
};

struct graft_graph {
    struct gr_handle      handle;
    graft_context        *context;
    struct gr_pool        pool; /* owner of all arrays except slice.row_ptr, matrices and route */
    struct gr_comm       *comm;
    struct gr_comm       *own_comm;   /* equals comm if the graph destroys it; else NULL */
    int32_t               references; /* references of the host, plans, halos and trainers */
    int64_t               n_vertices;
    int64_t               n_slice, n_owned; /* rows of this rank's slice, and vertices that it owns */
    graft_dtype           value_type;       /* 0: no values */
    int32_t               columns; /* number of ranks that share the columns of a part; 1: each rank has a part */
    struct gr_division    division;
    int64_t              *first; /* [n_ranks + 1] the first vertex of each slice */
    struct gr_graph_slice slice;
    int64_t              *vertex; /* [n_owned] global indices of the owned vertices, ascending */
    struct gr_part        part;   /* this rank's part of the graph: views of `local` and `remote` */
    struct gr_csr         local, remote;
    struct gr_share      *share; /* [n_ranks] sizes of the part of each rank */
    struct gr_graph_users users;
};

/** Distribute a graph over ranks. Collective.
 * \param[in] comm   Must outlive the graph.
 * \param[in] slice  A complete struct that has passed gr_graph_slice_check(); not needed after the call.
 * \return OK; ERR_ARG (the slices do not make up one graph, ranks disagree, an owner is not a rank); ERR_UNSUPPORTED (a
 * rank would own, or gather from, more than INT32_MAX vertices); ERR_NOMEM: the same on all ranks, and the comm stays
 * usable; ERR_PEER. */
int32_t gr_graph_create(graft_context *context, struct gr_comm *comm, const struct gr_workload *workload,
                        const graft_slice *slice, graft_graph **graph, graft_error *error);

/** Return the bits of the option tables that the creation of a graph reads. */
uint32_t gr_graph_option_bits(const graft_context *context);

/** Release a reference; the last one frees the graph. Not collective. NULL is legal. */
void gr_graph_destroy(graft_graph *graph);

/** Check the slice of this rank alone. `rows` may be NULL. \return OK; ERR_ARG and others of gr_csr_check(). */
int32_t gr_graph_slice_check(const graft_context *context, const graft_slice *slice, graft_error *error);

/** Find graph->slice.owner, the owners of the rows of this slice: from the slice itself, from the file of option
 *  "partition.file", or with the method of option "partition"; see owner.h. Collective.
 * \return OK; ERR_ARG (an owner is not a rank), and errors of gr_partition_owners_read() and METIS: the same on all
 *         ranks; ERR_PEER. */
int32_t gr_graph_owner_find(graft_graph *graph, const graft_slice *slice, graft_error *error);

/** Create graph->local, graph->remote and the halo of the owned rows. The owner of a column is requested from the rank
 *  whose slice has this vertex. Collective.
 * \param[in] row_ptr  [n_owned + 1] row pointers of the owned rows
 * \param[in] columns  Global columns of the edges.
 * \param[in] values  Values of the edges, of type value_type, if the graph has values.
 * \return OK; ERR_NOMEM, ERR_UNSUPPORTED: the same on all ranks; ERR_PEER. */
int32_t gr_graph_split(graft_graph *graph, const graft_slice *slice, const int64_t *row_ptr, const int64_t *columns,
                       const void *values, graft_error *error);

/** Plan the route of the edges of this slice to the owners of their rows. Collective. \return OK; ERR_PEER.
 * \param[in,out] edges  The route, from gr_comm_route_init(). */
int32_t gr_graph_route_edges(const graft_graph *graph, const int64_t *row_ptr, struct gr_route *edges,
                             graft_error *error);

/** Send `bytes` for each edge of the slice along this route. Collective. \return OK; ERR_PEER.
 * \param[in]  elements  [edges of the slice] in the order of the slice
 * \param      packed    [edges of the slice] buffer
 * \param[out] received  [edges of the owned rows] in the order of vertices */
int32_t gr_graph_send_edges(const graft_graph *graph, const int64_t *row_ptr, struct gr_route *edges,
                            const void *elements, int64_t bytes, void *packed, void *received, graft_error *error);

/** Whether every rank owns exactly the rows of its slice. */
int gr_graph_is_in_place(const graft_graph *graph);

/** Check the new values of the edges of this rank's slice. \return OK; ERR_STATE (the graph has no values); ERR_ARG
 *  (wrong number or type of values); ERR_FORMAT (a value is not finite). */
int32_t gr_graph_check_values(const graft_graph *graph, const graft_dense *values, graft_error *error);

/** Return a digest of the row pointers and columns of a slice; `rows` may be NULL. */
uint32_t gr_graph_slice_digest(const graft_csr *rows);

/** Bits of argument `own`: which arrays belong to the library. The transport uses these arrays directly, but not arrays
 *  of the host, because a transport that cannot cancel a message may use its memory even after a failure. */
enum { GR_OWN_FROM = 1, GR_OWN_TO = 2 };

/** Move rows of bytes between slices and owners; see graft_graph_api.redistribute(). `args` is a complete struct.
 *  Collective.
 * \return OK; ERR_ARG, ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_graph_redistribute(graft_graph *graph, const graft_redistribution *args, int own, graft_error *error);

/** Gather the sizes of all parts on all ranks. `part` is the part of this graph, or derived from it. Collective.
 * \param[out] share  [n_ranks]
 * \return OK; ERR_PEER. */
int32_t gr_graph_share(const graft_graph *graph, const struct gr_part *part, struct gr_share *share,
                       graft_error *error);

/** Return the sizes of the part of one rank; -1: of all ranks. `share` is graph->share, or from gr_graph_share().
 *  \return OK; ERR_ARG (rank). */
int32_t gr_graph_info(const graft_graph *graph, const struct gr_share *share, int32_t rank, graft_graph_info *info,
                      graft_error *error);
void    gr_graph_explain(const graft_graph *graph, const struct gr_share *share, struct gr_text *text);
