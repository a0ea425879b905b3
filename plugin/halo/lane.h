/* What one layer sends in one direction, pass after pass: in how many bits each row goes, where these are adaptive;
 * and, where passes are asynchronous, rows of the pass before, which are of use while those of this one travel.
 *
 * A pass that is apart from that, of an evaluation say, goes over the wire that all lanes share, and so do all passes
 * where neither is asked for. Source: Sylvie, section 4 (asynchronous passes, and those in between that wait); PipeGCN,
 * section 3.4 (smoothing); AdaQP (adaptive bits).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_LANE_H
#define GR_HALO_LANE_H

#include "halo/wire.h"

/** Bytes that adaptive rows come to on one rank. */
struct gr_lane_flow {
    int64_t bytes_in, bytes_out;
    int64_t rows_out[3]; /* of 2, 4, 8 bits */
};

struct gr_lane {
    int32_t        layer, direction;
    int32_t        is_adaptive, is_async;
    const int64_t *start[2]; /* [n_ranks + 1] rows by rank: that go, and come */
    int64_t        rows[2];  /* of all of them */

    /* Adaptive (adapt.h): */
    struct gr_wire_widths widths;
    int64_t               width;     /* that widths.at is for; -1: none yet */
    uint8_t              *next[2];   /* [rows] bits of passes to come, if it has_next */
    float                *weight[2]; /* [rows] what an error of each is multiplied with, squared, and added up */
    int                   has_next;
    int                   is_weighed, is_told; /* the weights of rows that come are known, and of those that go */
    int                   counts;              /* passes since bits were decided on */
    int64_t               counted_epoch;       /* of the last one, and: */
    int64_t               exchanges;           /* how many passes of that epoch had messages */
    int                   is_adapted;          /* bits were decided on, and: */
    struct gr_lane_flow  *flow;                /* [n_ranks] of a pass */
    double                expected_share;      /* of weight |x|^2 of the rows of all ranks: what they lose, expected */

    /* Asynchronous: */
    struct gr_wire wire;
    void          *kept; /* [rows that come x kept_width] those in use */
    int64_t        kept_bytes, kept_width;
    graft_dtype    kept_dtype;
    graft_semiring kept_semiring;                      /* that they are rows of */
    int64_t        kept_epoch, sent_epoch, used_epoch; /* of these, of what was sent last, of the last pass */
    int            has_kept, travels, was_used;
    double        *partial;  /* [chunks x 2] of `drift` */
    double         drift[2]; /* of rows since gr_lane_drift(): |new - old|^2, |new|^2 */
    int64_t        age;      /* epochs, of the rows that the last pass used, and: */
    int64_t        oldest;   /* of those of all passes */
};

/** What decides on adaptive bits: at most so many bytes in an epoch, or so much loss, or, where both are 0, the balance
 *  of loss and time. */
struct gr_lane_limits {
    int64_t bytes;
    double  error, lambda;
};

/** The lanes of a plan. */
struct gr_lanes {
    const graft_context *context;
    struct gr_comm      *comm;
    int32_t              n_layers;
    int32_t              adaptive[2], is_async;
    double               smoothing;

    struct gr_lane_limits limits;
    struct gr_lane       *lane; /* [n_layers x 2], or NULL where no option asks for them */
};

/** A pass on its way. */
struct gr_lane_pass {
    struct gr_lane     *lane; /* NULL: apart */
    struct gr_wire     *wire;
    double              smoothing;
    struct gr_wire_rows in;
    int64_t             epoch;
    int                 waits;   /* for what this pass sends, whatever option halo.async says */
    int                 again;   /* the epoch has these rows: nothing is sent */
    double              arrived; /* when rows of the pass before were there, which it waited for first; 0: it did not */
    double              packed;  /* all that go were sent */
    double              came;    /* the end had the rows to use */
};

/** Collective in so far as all ranks come by, whatever failed before on one of them. gr_lanes_fini() is due always.
 *  Neither says anything about memory for rows. \return OK; ERR_NOMEM. */
int32_t gr_lanes_init(const graft_context *context, struct gr_comm *comm, int32_t n_layers, struct gr_lanes *lanes,
                      graft_error *error);
/** Make both lanes of a layer; likewise. \param[in] start  [n_ranks + 1] of rows that go forward, and that come: they
 *  outlive the lanes. */
int32_t gr_lanes_add(struct gr_lanes *lanes, int32_t layer, const int64_t *const start[2], graft_error *error);
/** Waits for what travels, so what gr_wire_receive() was told of must be there. */
void    gr_lanes_fini(struct gr_lanes *lanes);

/** Whether the options are the same on all ranks, and go together. Collective. \return OK; ERR_ARG, ERR_OPTION: the
 *  same on all ranks; ERR_PEER. */
int32_t gr_lanes_compare(const graft_context *context, struct gr_comm *comm, graft_error *error);

/** Have memory for passes of a lane that are so wide. Where the last one was not, its rows are dropped. NULL is legal.
 *  Not collective. \return OK; ERR_NOMEM. */
int32_t gr_lane_reserve(const struct gr_lanes *lanes, struct gr_lane *lane, int64_t width, graft_dtype dtype,
                        graft_error *error);
/** The same for both lanes of a layer; for no layer it does nothing. */
int32_t gr_lanes_reserve(struct gr_lanes *lanes, int32_t layer, int64_t width, graft_dtype dtype, graft_error *error);

/** Let the next pass of each lane be as the first one. What travels is waited for. All ranks come by. */
void gr_lanes_forget(struct gr_lanes *lanes);

/** Bytes that they hold, and that those of a layer hold more when so wide passes were reserved. */
int64_t gr_lanes_bytes(const struct gr_lanes *lanes);
int64_t gr_lanes_room(const struct gr_lanes *lanes, int32_t layer, int64_t width, graft_dtype dtype);

/** The lane of a layer in one direction, NULL if it has none. */
struct gr_lane *gr_lanes_find(const struct gr_lanes *lanes, int32_t layer, int32_t direction);

/** Begin a pass of a lane, or of none, over the wire that all share, as gr_wire_receive(); in.rows may be written
 *  before the end. `smoothing` and `waits` of `pass` are set. Allocates nothing. */
int32_t gr_lane_receive(struct gr_lane_pass *pass, struct gr_lane *lane, struct gr_wire *shared,
                        struct gr_wire_pass *on_wire, struct gr_wire_rows in, struct gr_team team, graft_error *error);

/** As gr_wire_send(); what goes is made before, unless it goes `again`, for pass->wire and encoded by it. */
int32_t gr_lane_send(struct gr_lane_pass *pass, struct gr_team team, graft_error *error);

/** As gr_wire_end(); *rows are those to use, which may be others than in.rows. */
int32_t gr_lane_end(struct gr_lane_pass *pass, struct gr_team team, const void **rows, graft_error *error);

/** Add how far rows that came have drifted since it was asked last: |new - old|^2 and |new|^2. */
void gr_lane_drift(struct gr_lane *lane, double drift[2]);

/** Add the seconds of their exchanges. */
void gr_lanes_seconds(const struct gr_lanes *lanes, double *wait, double *exchange);

#endif
