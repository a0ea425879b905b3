/* The plan of a distributed product: the rows that ranks exchange, and the matrices that compute and use them.
 *
 *      forward     rows sent = S x        out = A_local x,   then  out (+)= R rows received
 *      backward    rows sent = R^T x      out = A_local^T x, then  out  += S^T rows received
 *
 * S has a row for each row to send: the entry 1 of its vertex for a raw row, or the summed cut edges for a
 * pre-aggregated row. R has a column for each row to receive: the cut edges that a raw row serves, or the entry 1 of
 * the target of a pre-aggregated row. The backward (transposed) product sends the same rows the other way.
 *
 * plan.c   create, from cuts and lists      cuts.c   the cut edges pair by pair, and their covers
 * lists.c  S and R                          spmm.c   begin and end a product
 * values.c new values of the edges
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cover/cover.h"
#include "dgraph/graph.h"
#include "graft_aggregate.h"
#include "halo/exchange.h"
#include "halo/links.h"
#include "kernel/kernel.h"

/** The cut edges of a rank, grouped by the rank q that owns their sources. Targets are the rows with an edge from q,
 *  counted for each q; sources are the vertices of the halo. The arrays are in the order of the edges of part->remote,
 *  so that a walk through the edges needs one cursor for each q; see gr_spmm_cuts_step(). */
struct gr_cuts {
    const struct gr_part *part;
    int32_t               n_ranks;
    int64_t               n_sources;    /* vertices of the halo with an edge */
    int32_t              *owner;        /* [halo] q of each vertex of the halo */
    int64_t              *edge_start;   /* [n_ranks + 1] */
    int64_t              *target_start; /* [n_ranks + 1] */
    int64_t              *row_ptr;      /* [targets + n_ranks] of q from target_start[q] + q on, from 0 */
    int32_t              *source;       /* [edges] among the halo of q */
    uint8_t              *source_in;    /* [halo] in the cover */
    uint8_t              *target_in;    /* [targets] */
    int64_t              *last_row;     /* [n_ranks] state of the walk: the last row with an edge from q, and: */
    int64_t              *target;       /* [n_ranks] its number among all targets */
    struct gr_pool        pool;         /* owner of these arrays but row_ptr and source */
};

/** The position of a walk: entry `entry` of part->remote. */
struct gr_cut_edge {
    int64_t row, entry;
    int64_t source; /* in the halo */
    int64_t target; /* among all targets */
    int32_t rank;   /* q */
    int     is_new; /* the first edge of its target */
};

/** Begin a walk through all cut edges by rows. */
void gr_spmm_cuts_walk(struct gr_cuts *cuts);

/** The cut edge that is entry `entry` of row `row`; to be called for each, in order. */
struct gr_cut_edge gr_spmm_cuts_step(struct gr_cuts *cuts, int64_t row, int64_t entry);

/** Group the cut edges, without covers yet. Not collective. gr_pool_fini() of cuts->pool is always required. \return
 *  OK; ERR_NOMEM. */
int32_t gr_spmm_cuts_init(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                          struct gr_cuts *cuts, graft_error *error);

/** The kind of cover in option halo.cover. */
enum gr_cover_kind gr_spmm_cover_choice(const graft_context *context);

/** Find the cover of each pair of ranks. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_spmm_cuts_find(const graft_context *context, enum gr_cover_kind kind, struct gr_cuts *cuts,
                          graft_error *error);

/** Rows sent or received in the forward product, by rank. */
struct gr_plan_rows {
    int64_t *start;    /* [n_ranks + 1] */
    void    *buffer;   /* [rows x width] of the product, without gaps */
    int64_t  capacity; /* bytes of it */
};

/** The matrices of one direction; see above. */
struct gr_plan_matrices {
    graft_matrix *local;    /* A_local, or its transpose */
    graft_matrix *sent;     /* S, or R^T */
    graft_matrix *received; /* R, or S^T */
};

/** The product that has begun. */
struct gr_spmm {
    int                  begun;
    graft_aggregate_args args;
    graft_dense          x, out;
    graft_mask           mask; /* if args has one; likewise: */
    graft_epilogue       epilogue;
    graft_dense          residual;
    enum gr_direction    direction;
    int                  is_refused; /* rows of zeros are sent */
    struct gr_exchange   exchange;
    double               computed_at; /* when the local part of the product was done */
};

/** Where the values of S and R come from: each is an entry of part->remote, or -1 for the value 1. */
struct gr_plan_sources {
    int64_t       *asked_start; /* [n_ranks + 1] the entries of S that this rank asks of each rank: */
    int64_t       *asked;       /* [entries asked] */
    int64_t       *received;    /* [entries of R] */
    struct gr_pool pool;        /* owner of these arrays */
};
void gr_plan_sources_fini(const graft_context *context, struct gr_plan_sources *sources);

/** New values of the matrices of a plan, not yet in use. Zeroed, it is empty. */
struct gr_plan_values {
    void *sent, *received;                        /* of the forward product */
    void *back_local, *back_sent, *back_received; /* of the transposed one */
};

/** A plan that the host has. */
struct gr_plan_host {
    graft_plan       *next;    /* of the graph */
    int64_t           serial;  /* among the plans of the graph */
    struct gr_outcome outcome; /* of passes */
    int64_t           passes;
};

struct graft_plan {
    struct gr_handle        handle;
    graft_context          *context;
    graft_graph            *graph; /* referenced, or NULL */
    struct gr_plan_host     host;
    struct gr_pool          pool; /* flow, remote_only, and the starts of rows */
    struct gr_comm         *comm;
    const struct gr_part   *part;
    graft_dtype             value_type;
    enum gr_cover_kind      cover;
    struct gr_messages      messages; /* messages of products whose layer has none of its own */
    struct gr_halo_layers   layers;
    struct gr_plan_rows     rows[GR_SIDES];
    struct gr_plan_matrices matrices[GR_DIRECTIONS];
    int64_t                 n_remote_only; /* rows without local entries that have cut edges */
    int32_t                *remote_only;   /* [n_remote_only] */
    struct gr_flow         *flow;          /* [n_ranks] */
    struct gr_plan_sources  sources;       /* empty if values do not change */
    struct gr_plan_values   new_values;    /* while gr_spmm_update_values() runs */
    struct gr_spmm          product;
    struct gr_send_stats    sent; /* in all products, by this rank */
};

/** The parameters of a plan. */
struct gr_plan_wish {
    int         transposed;
    int64_t     width;
    graft_dtype dtype;       /* F32 or F64 */
    int32_t     layers;      /* layers of the caller's model, at least 1 */
    int         has_layers;  /* all layers are added now; else see gr_plan_add_layer() */
    int         is_revalued; /* values of the edges may change; see gr_plan_values_begin() */
};

/** Make a plan. Collective.
 * \param[in] graph  Referenced by the plan; or NULL: then `comm` and `part`, with its arrays, outlive the plan.
 * \return As graft_aggregate_api.create(). */
int32_t gr_plan_create(graft_context *context, struct gr_comm *comm, const struct gr_part *part, graft_graph *graph,
                       const struct gr_plan_wish *wish, graft_plan **plan, graft_error *error);
void    gr_plan_destroy(graft_plan *plan);

/** Whether rows by rank rise from 0, this rank has none of them, and all matrices have the shapes above. Returns 1 or
 *  0. O(ranks), no messages. */
int gr_plan_is_valid(const graft_plan *plan);

/** Make S, R and the rows of both sides from the covers, and the sources of their values. Collective. \return as
 *  create(). */
int32_t gr_plan_lists_make(graft_plan *plan, struct gr_cuts *cuts, graft_error *error);

/** The values of S and R, `sent` and `received`, for new values of part->remote. Collective. \return OK; ERR_NOMEM: the
 *  same on all ranks; ERR_PEER. */
int32_t gr_plan_lists_values(graft_plan *plan, const void *remote, void *sent, void *received, graft_error *error);

/** Compute the values of all matrices except the local one from a part with new values, whose entries (or first rows)
 *  equal plan->part. Collective. fini() is always required. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_plan_values_begin(graft_plan *plan, const struct gr_part *part, struct gr_plan_values *values,
                             graft_error *error);
/** Use the new values, after plan->part has its new values. Cannot fail. */
void    gr_plan_values_end(graft_plan *plan, struct gr_plan_values *values);
void    gr_plan_values_fini(const graft_plan *plan, struct gr_plan_values *values);

/** Replace the values of a graph of the host, of its plans, and of the matrices of its halos. Collective.
 * \param[in] values  As read from the host, not yet checked.
 * \return As graft_graph_api.update_values(). */
int32_t gr_spmm_update_values(graft_graph *graph, const graft_dense *values, graft_error *error);

/** A new matrix that owns its arrays. \return OK; ERR_NOMEM. */
int32_t gr_spmm_transpose_matrix(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                 graft_error *error);

/** Let exchanges of a layer store stale rows and adaptive widths, if options need them. Not collective, but all ranks
 *  call it in the same order, also after a failure of a rank. \return OK; ERR_NOMEM. */
int32_t gr_plan_add_layer(graft_plan *plan, int32_t layer, graft_error *error);

/** Allocate buffers for products of this many columns, and for the stored data of a layer; -1: no layer. Not
 *  collective.
 * \return OK; ERR_NOMEM. */
int32_t gr_plan_reserve(graft_plan *plan, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error);

/** The same for the rows alone; messages and layers are allocated by gr_halo_exchange_open(). */
int32_t gr_plan_reserve_rows(graft_plan *plan, int64_t width, graft_dtype dtype, graft_error *error);

/** Bytes of the plan now, without the graph and data prepared by kernels. */
int64_t gr_plan_bytes(const graft_plan *plan);

/** Whether a pass of the host has begun and not ended. */
static inline int gr_plan_has_begun(const graft_plan *plan)
{
    return plan->product.begun || plan->host.outcome.is_open;
}

/** A pass of the host; see graft_aggregate_api. rc: the status of this rank, on which all ranks agree. `args` is
 *  complete if it is OK, and so are args->x and args->out; else it has the host's flags, or none. Collective. \return
 *  as graft_aggregate_api. */
int32_t gr_plan_begin(graft_plan *plan, int32_t rc, const graft_aggregate_args *args, graft_error *error);
int32_t gr_plan_end(graft_plan *plan, graft_error *error);

/** A product whose arguments are right on all ranks. Collective. \return OK; ERR_PEER, with one rank the error. */
int32_t gr_spmm_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);
int32_t gr_spmm_end(graft_plan *plan, graft_error *error);

/** The same without the local products, out (+)= A_local x and out += R rows, which the caller computes: after send(),
 *  and with the rows from receive(), which stay until the next product. */
int32_t gr_spmm_send(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);
int32_t gr_spmm_receive(graft_plan *plan, const void **rows, graft_error *error);

/** Counts of one rank, or with -1 of all ranks. \return OK; ERR_ARG. */
int32_t gr_plan_info(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error);
void    gr_plan_explain(const graft_plan *plan, struct gr_text *text);
