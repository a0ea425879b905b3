/* The plan of a distributed product: which rows ranks exchange, and the matrices that compute and use these rows.
 *
 *      forward     rows sent = S x        out = A_local x,   then  out (+)= R rows received
 *      backward    rows sent = R^T x      out = A_local^T x, then  out  += S^T rows received
 *
 * S has a row for each row to send: for a raw row, the entry 1 in the column of its vertex; for a partial sum
 * (pre-aggregated row), the cut edges that it sums. R has a column for each row to receive: for a raw row, the cut
 * edges from its vertex; for a partial sum, the entry 1 in the row of its target. The backward (transposed) product
 * sends the same rows the other way.
 *
 * plan.c   creates plans                    cuts.c   groups the cut edges by pairs of ranks, and finds their covers
 * lists.c  computes S and R                 spmm.c   begins and ends a product
 * values.c replaces the values of edges
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cover/cover.h"
#include "dgraph/graph.h"
#include "graft_aggregate.h"
#include "halo/exchange.h"
#include "halo/links.h"
#include "kernel/kernel.h"

/** The cut edges of a rank, grouped by the rank q that owns their sources. Targets are the rows with an edge from q; a
 *  row with edges from several ranks is several targets. Sources are the vertices of the halo. For each q, edges and
 *  targets are in the order of the edges of part->remote, so that a walk through these edges needs one cursor for each
 *  q; see gr_spmm_cuts_step(). */
struct gr_cuts {
    const struct gr_part *part;
    int32_t               n_ranks;
    int64_t               n_sources;    /* vertices of the halo with an edge */
    int32_t              *owner;        /* [halo] owner q of each vertex of the halo */
    int64_t              *edge_start;   /* [n_ranks + 1] first edge from each q */
    int64_t              *target_start; /* [n_ranks + 1] first target of each q */
    int64_t              *row_ptr;      /* [targets + n_ranks] row pointers; of q from target_start[q] + q on */
    int32_t              *source;       /* [edges] index among the halo vertices of q */
    uint8_t              *source_in;    /* [halo] whether the source is in the cover */
    uint8_t              *target_in;    /* [targets] whether the target is in the cover */
    int64_t              *last_row;     /* [n_ranks] in a walk: the last visited row with an edge from q */
    int64_t              *target;       /* [n_ranks] in a walk: the target that this row is */
    struct gr_pool        pool;         /* owner of these arrays, except row_ptr and source */
};

/** The cut edge that a walk visits: entry `entry` of part->remote, in row `row`. */
struct gr_cut_edge {
    int64_t row, entry;
    int64_t source; /* index in the halo */
    int64_t target; /* index among all targets */
    int32_t rank;   /* owner q of the source */
    int     is_new; /* it is the first edge of its target */
};

/** Begin a walk through all cut edges by rows. */
void gr_spmm_cuts_walk(struct gr_cuts *cuts);

/** Return the cut edge that is entry `entry` of row `row`. Call it for all entries, in their order. */
struct gr_cut_edge gr_spmm_cuts_step(struct gr_cuts *cuts, int64_t row, int64_t entry);

/** Group the cut edges by rank. Covers are found later. Not collective. gr_pool_fini() of cuts->pool is always
 *  required. \return OK; ERR_NOMEM. */
int32_t gr_spmm_cuts_init(const graft_context *context, const struct gr_part *part, int32_t n_ranks,
                          struct gr_cuts *cuts, graft_error *error);

/** Find the vertex cover of the cut edges from each rank. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_spmm_cuts_find(const graft_context *context, enum gr_cover_kind kind, struct gr_cuts *cuts,
                          graft_error *error);

/** Rows sent or received in the forward product, by rank. */
struct gr_plan_rows {
    int64_t *start;    /* [n_ranks + 1] first row of each rank */
    void    *buffer;   /* [rows x width] rows of the current product, without gaps */
    int64_t  capacity; /* bytes of `buffer` */
};

/** The matrices of one direction; see the top of this file. */
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
    graft_mask           mask; /* mask, epilogue and its residual: copies, if `args` has them */
    graft_epilogue       epilogue;
    graft_dense          residual;
    enum gr_direction    direction;
    int                  is_refused; /* this rank sends zeros */
    struct gr_exchange   exchange;
    double               computed_at; /* time when the local part of the product was computed */
};

/** The sources of the values of S and R: each is the index of an entry of part->remote, or -1 for the value 1. */
struct gr_plan_sources {
    int64_t       *asked_start; /* [n_ranks + 1] first element of `asked` of each rank */
    int64_t       *asked;       /* [entries asked] sources of the entries of the other ranks' S for this rank */
    int64_t       *received;    /* [entries of R] sources of the entries of R */
    struct gr_pool pool;        /* owner of these arrays */
};
void gr_plan_sources_fini(const graft_context *context, struct gr_plan_sources *sources);

/** New values of the matrices of a plan, not yet in use. All fields 0: none. */
struct gr_plan_values {
    void *sent, *received;                        /* values of S and R of the forward product */
    void *back_local, *back_sent, *back_received; /* values of all matrices of the transposed product */
};

/** Fields of plans that the host has created. */
struct gr_plan_host {
    graft_plan       *next;    /* next in the list of the graph's plans */
    int64_t           serial;  /* serial number among the graph's plans */
    struct gr_outcome outcome; /* agreement of ranks on a pass */
    int64_t           passes;
};

struct graft_plan {
    struct gr_handle        handle;
    graft_context          *context;
    graft_graph            *graph; /* the plan has a reference to it; or NULL */
    struct gr_plan_host     host;
    struct gr_pool          pool; /* owner of flow, remote_only and rows[].start */
    struct gr_comm         *comm;
    const struct gr_part   *part;
    graft_dtype             value_type;
    enum gr_cover_kind      cover;
    struct gr_messages      messages; /* messages of products whose layer has none of its own */
    struct gr_halo_layers   layers;
    struct gr_plan_rows     rows[GR_SIDES];
    struct gr_plan_matrices matrices[GR_DIRECTIONS];
    int64_t                 n_remote_only; /* number of rows that have cut edges but no local entries */
    int32_t                *remote_only;   /* [n_remote_only] these rows, ascending */
    struct gr_flow         *flow;          /* [n_ranks] rows, messages and bytes of each rank */
    struct gr_plan_sources  sources;       /* empty if values never change */
    struct gr_plan_values   new_values;    /* used by gr_spmm_update_values() */
    struct gr_spmm          product;
    struct gr_send_stats    sent; /* rows that this rank has sent in all products */
};

/** The parameters of a plan. */
struct gr_plan_wish {
    int         transposed;
    int64_t     width;
    graft_dtype dtype;       /* F32 or F64 */
    int32_t     layers;      /* layers of the caller's model, at least 1 */
    int         has_layers;  /* create() adds all layers; else the caller adds them by gr_plan_add_layer() */
    int         is_revalued; /* values of the edges may change; see gr_plan_values_begin() */
};

/** Create a plan. Collective.
 * \param[in] graph  The plan takes a reference to it. NULL: `comm` and `part`, with its arrays, must outlive the plan.
 * \return As graft_aggregate_api.create(). */
int32_t gr_plan_create(graft_context *context, struct gr_comm *comm, const struct gr_part *part, graft_graph *graph,
                       const struct gr_plan_wish *wish, graft_plan **plan, graft_error *error);
void    gr_plan_destroy(graft_plan *plan);

/** Check that `start` of both sides begins with 0 and never descends, that this rank has no rows for itself, and that
 *  all matrices have the shapes above. \return 1 or 0. O(ranks), no messages. */
int gr_plan_is_valid(const graft_plan *plan);

/** Compute S, R, the sources of their values, and the numbers of rows of both sides from the covers. Collective.
 *  \return As gr_plan_create(). */
int32_t gr_plan_lists_make(graft_plan *plan, struct gr_cuts *cuts, graft_error *error);

/** Compute `sent` and `received`, the values of S and R, from `remote`, the new values of part->remote. Collective.
 *  \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_plan_lists_values(graft_plan *plan, const void *remote, void *sent, void *received, graft_error *error);

/** Compute the values of all matrices except the forward local one from a part with new values, which has the entries
 *  of plan->part (or more rows). Collective. gr_plan_values_fini() is always required. \return OK; ERR_NOMEM: the same
 *  on all ranks; ERR_PEER. */
int32_t gr_plan_values_begin(graft_plan *plan, const struct gr_part *part, struct gr_plan_values *values,
                             graft_error *error);
/** Put the new values into use, after plan->part has received its own. Cannot fail. */
void    gr_plan_values_end(graft_plan *plan, struct gr_plan_values *values);
void    gr_plan_values_fini(const graft_plan *plan, struct gr_plan_values *values);

/** Replace the values of a graph of the host, of its plans, and of the matrices of its halos. Collective.
 * \param[in] values  As the host passed them, not yet checked.
 * \return As graft_graph_api.update_values(). */
int32_t gr_spmm_update_values(graft_graph *graph, const graft_dense *values, graft_error *error);

/** Create the transpose of a matrix, which owns its arrays. \return OK; ERR_NOMEM. */
int32_t gr_spmm_transpose_matrix(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                 graft_error *error);

/** Let exchanges of a layer store stale rows and adaptive widths, if options need them. Not collective, but all ranks
 *  call it in the same order, even after one has failed. \return OK; ERR_NOMEM. */
int32_t gr_plan_add_layer(graft_plan *plan, int32_t layer, graft_error *error);

/** Allocate memory for products of `width` columns, and for the stored data of a layer; -1: of no layer. Not
 *  collective.
 * \return OK; ERR_NOMEM. */
int32_t gr_plan_reserve(graft_plan *plan, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error);

/** Allocate only the buffers of rows, for products whose messages and layers gr_halo_exchange_open() allocates. */
int32_t gr_plan_reserve_rows(graft_plan *plan, int64_t width, graft_dtype dtype, graft_error *error);

/** Return the current bytes of memory of the plan, without the graph and data prepared by kernels. */
int64_t gr_plan_bytes(const graft_plan *plan);

/** Whether a pass of the host has begun and not ended. */
static inline int gr_plan_has_begun(const graft_plan *plan)
{
    return plan->product.begun || plan->host.outcome.is_open;
}

/** Begin or end a pass of the host, as begin() and end() of graft_aggregate_api. All ranks agree on rc, the status of
 *  this rank. If it is OK, `args` with args->x and args->out is complete; else only args->flags is used: the host's
 *  flags, or 0. Collective. \return As graft_aggregate_api. */
int32_t gr_plan_begin(graft_plan *plan, int32_t rc, const graft_aggregate_args *args, graft_error *error);
int32_t gr_plan_end(graft_plan *plan, graft_error *error);

/** Begin or end a product whose arguments are correct on all ranks. Collective. \return OK; ERR_PEER, or with one rank
 *  its error. */
int32_t gr_spmm_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);
int32_t gr_spmm_end(graft_plan *plan, graft_error *error);

/** Begin or end a product without its local parts: the caller computes out (+)= A_local x after gr_spmm_send(), and out
 *  += R rows with the *rows from gr_spmm_receive(), which exist until the next product. Collective. \return As
 *  gr_spmm_begin(). */
int32_t gr_spmm_send(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);
int32_t gr_spmm_receive(graft_plan *plan, const void **rows, graft_error *error);

/** Return the counts of one rank, or with rank -1 of all ranks. \return OK; ERR_ARG. */
int32_t gr_plan_info(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error);
void    gr_plan_explain(const graft_plan *plan, struct gr_text *text);
