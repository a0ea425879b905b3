/* The plan of an aggregation over ranks: which rows go, and the products that make them and take them.
 *
 *      forward      rows sent = S x        out = A_local x,   then  out (+)= R rows received
 *      transposed   rows sent = R^T x      out = A_local^T x, then  out  += S^T rows received
 *
 * S has a row for each row that is sent: of a raw one the entry 1 of its vertex, of a partial result the entries it is
 * made of. R has a column for each row that comes: in it the entries that a raw row serves, or the entry 1 of the row
 * that a partial result belongs to. The transposed pass sends the same rows the other way.
 *
 * plan.c   create, from cuts and lists      cuts.c   the cut entries pair by pair, and their covers
 * lists.c  S and R                          pass.c   begin, end
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_SPMM_PLAN_H
#define GR_SPMM_PLAN_H

#include "cover/cover.h"
#include "dgraph/graph.h"
#include "graft_aggregate.h"
#include "halo/lane.h"
#include "halo/links.h"
#include "kernel/kernel.h"

/** The cut entries of a rank, parted by the rank q that has their columns. Targets are the rows that have such an
 *  entry, counted for each q, sources the vertices of the halo. All that is known is in the order in which the entries
 *  of part->remote come, so that one who goes through these again needs no more than a cursor for each q; see
 *  gr_cut_step(). */
struct gr_cuts {
    const struct gr_part *part;
    int32_t               n_ranks;
    int64_t               n_sources;    /* vertices of the halo that have an entry */
    int32_t              *owner;        /* [halo] q of each vertex of the halo */
    int64_t              *edge_start;   /* [n_ranks + 1] */
    int64_t              *target_start; /* [n_ranks + 1] */
    int64_t              *row_ptr;      /* [targets + n_ranks] of q from target_start[q] + q on, from 0 */
    int32_t              *source;       /* [edges] among the halo of q */
    uint8_t              *source_in;    /* [halo] in the cover */
    uint8_t              *target_in;    /* [targets] */
    int64_t              *last_row;     /* [n_ranks] of the walk: the last row that has an entry of q, and: */
    int64_t              *target;       /* [n_ranks] its number among all targets */
};

/** Where a walk has come to: entry `entry` of part->remote. */
struct gr_cut_edge {
    int64_t row, entry;
    int64_t source; /* in the halo */
    int64_t target; /* among all targets */
    int32_t rank;   /* q */
    int     is_new; /* the first of its target */
};

/** Begin a walk through all cut entries by rows. */
void gr_cut_walk(struct gr_cuts *cuts);

/** What entry `entry` of row `row` is; to be called for each, in order. */
struct gr_cut_edge gr_cut_step(struct gr_cuts *cuts, int64_t row, int64_t entry);

/** Part the cut entries: all but the covers. Not collective. \return OK; ERR_NOMEM. gr_cuts_fini() is due always. */
int32_t gr_cuts_init(const graft_context *context, const struct gr_part *part, int32_t n_ranks, struct gr_cuts *cuts,
                     graft_error *error);
void    gr_cuts_fini(const graft_context *context, struct gr_cuts *cuts);

/** As option halo.cover says. */
enum gr_cover_kind gr_cover_choice(const graft_context *context);

/** Find the covers. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_cuts_find(const graft_context *context, enum gr_cover_kind kind, struct gr_cuts *cuts, graft_error *error);

enum { GR_SIDE_OUT, GR_SIDE_IN, GR_SIDES };

/** Rows to or from others in the forward pass, by rank. */
struct gr_side {
    int64_t *start;  /* [n_ranks + 1] */
    void    *buffer; /* [rows x width] of the pass, without gaps */
};

/** The pass that has begun. */
struct gr_pass {
    int                  begun;
    graft_aggregate_args args;
    graft_dense          x, out;
    int32_t              sends, gets; /* GR_SIDE_... */
    struct gr_lane_pass  on_lane;
    int64_t              element;  /* bytes */
    double               computed; /* when the local part of the product was done */
};

struct graft_plan {
    graft_context        *context;
    graft_graph          *graph; /* held, or NULL */
    struct gr_comm       *comm;
    const struct gr_part *part;
    graft_dtype           value_type;
    enum gr_cover_kind    cover;
    struct gr_wire        wire; /* of passes that no lane has its own for */
    struct gr_lanes       lanes;
    struct gr_side        side[GR_SIDES];
    int64_t               buffer_bytes[GR_SIDES];
    graft_matrix         *local, *send, *receive; /* A_local, S, R */
    graft_matrix         *local_transpose, *send_transpose, *receive_transpose;
    int64_t               n_bare; /* rows whose only entries are those of others */
    int32_t              *bare;   /* [n_bare] */
    struct gr_flow       *flow;   /* [n_ranks] */
    struct gr_pass        pass;
    int64_t               passes;
    struct gr_wire_sent   sent; /* in all passes, by this rank */
};

/** What a plan is made for. */
struct gr_plan_wish {
    int         transposed;
    int64_t     width;
    graft_dtype dtype;     /* F32 or F64 */
    int32_t     layers;    /* of the caller's, 1 at least */
    int         has_lanes; /* all of these get them now; else see gr_plan_add_lanes() */
};

/** Make a plan. Collective.
 * \param[in] graph  To be held by the plan; or NULL: `comm` and `part`, with all it points to, outlive it.
 * \return As graft_aggregate.create(). */
int32_t gr_plan_create(graft_context *context, struct gr_comm *comm, const struct gr_part *part, graft_graph *graph,
                       const struct gr_plan_wish *wish, graft_plan **plan, graft_error *error);
void    gr_plan_destroy(graft_plan *plan);

/** Make plan->send, plan->receive and the rows of both sides from the covers. Collective. \return as create(). */
int32_t gr_lists_make(graft_plan *plan, struct gr_cuts *cuts, graft_error *error);

/** A new matrix that owns its arrays. \return OK; ERR_NOMEM. */
int32_t gr_transpose_matrix(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                            graft_error *error);

/** Lanes of one layer. Not collective, but all ranks come by, whatever failed. \return OK; ERR_NOMEM. */
int32_t gr_plan_add_lanes(graft_plan *plan, int32_t layer, graft_error *error);

/** Have buffers for passes of so many columns, and for those of a layer if it has lanes. Not collective.
 * \return OK; ERR_NOMEM. */
int32_t gr_plan_reserve(graft_plan *plan, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error);

/** Bytes that the plan holds now, beside the graph and what kernels prepared. */
int64_t gr_plan_bytes(const graft_plan *plan);

/** A pass; see graft_aggregate.begin(). `args` is complete, and so are args->x and args->out. */
int32_t gr_pass_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);
int32_t gr_pass_end(graft_plan *plan, graft_error *error);

/** See graft_aggregate.adapt(). Collective. */
int32_t gr_plan_adapt(graft_plan *plan, graft_error *error);

/** rank -1: all. \return OK; ERR_ARG. */
int32_t gr_plan_info(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error);
void    gr_plan_explain(const graft_plan *plan, char *text, uint64_t capacity);

#endif
