/* What a trainer of graft_train.h can be asked about its own work: where the time went, what memory is for, what ranks
 * send one another.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_ACCOUNT_H
#define GRAFT_ACCOUNT_H

#include "graft_base.h"

GRAFT_EXTERN_C_BEGIN

/** Which pass a span belongs to; predict() is an evaluation too. */
enum { GRAFT_PASS_FORWARD = 0, GRAFT_PASS_BACKWARD = 1, GRAFT_PASS_EVALUATION = 2 };

/** A stretch of time: a phase, as the thread of the caller saw it, from before its team began to after all had ended;
 *  or, in those that follow it, first its parts, if it exchanges rows with other ranks, and then the share that one
 *  thread of the team had in it. Phases follow one another, and so do the parts of one, which are all of it: of
 *  what "attention" gathers the first two are in one phase, and "local" and what follows in the next. A thread that had
 *  no share has no span, nor have those of modules that do not say when their threads work ("graphblas"). */
typedef struct graft_span {
    uint32_t    size;
    int32_t     layer;  /**< -1: of none */
    int32_t     pass;   /**< GRAFT_PASS_... */
    int32_t     thread; /**< 0: the phase, or a part; from 1 on: the share of this thread, of which 1 is the caller's */
    const char *phase;  /**< "aggregate"; "update": products with weights, and the pass over rows where it follows one;
                            "rows": that pass (bias, norm, ReLU, dropout) by itself; "attention"; "loss"; "optimizer";
                            "labels": the choice of those that are input (label_rate), with the sum of their number;
                            over ranks "reduce": the sums of losses and gradients, and "adapt": the choice of adaptive
                            bits. Of a part: "pack": rows for others are made, sealed and sent; "local": what needs no
                            others; "wait"; "unpack": rows of others are checked and added. Static */
    int64_t     epoch;  /**< epochs behind when it was recorded */
    double      begin, end; /**< seconds since create() */
    double      bytes;      /**< that were asked for, each time they were; 0 where it was not counted */
    double      flops;      /**< likewise; both 0 in a part and in the share of a thread */
    double      waited;     /**< seconds between begin and end in which the thread waited: in a share for anything, in a
                                 phase and in its parts for the rows of other ranks */
    int32_t     threads;    /**< that the trainer could use */
    int32_t     part;       /**< 1: a part of the phase before it, whose time is counted there */
} graft_span;

/** One thing that a trainer uses memory for. */
typedef struct graft_ledger_item {
    uint32_t    size;
    uint32_t    reserved;
    const char *name;  /**< "features", "graph", "weights", "optimiser", "activations", "masks", "gradients",
                            "messages"; static */
    const char *help;  /**< what that is, a line; static */
    int64_t     bytes; /**< beside the arrays of the data set */
} graft_ledger_item;

/** What messages of a trainer over ranks bring to one rank, or to all together. Rows are those of one sum over
 *  neighbours in one direction, for all vertices; a step may do with fewer (row_masks), and its bytes are those. */
typedef struct graft_traffic {
    uint32_t size;
    int32_t  rank;                 /**< -1: all */
    int64_t  cut_edges;            /**< entries whose column has another owner than their row, after symmetrize */
    int64_t  halo_rows;            /**< that come to the rank; 0 for mlp */
    int64_t  halo_rows_if_post;    /**< the same with halo.cover = post */
    int64_t  halo_bytes_per_epoch; /**< of rows in all layers and both directions of the last step; what is
                                        aggregated once (reuse_input) counts in the step that does it */
    int64_t  halo_bytes_if_post;
    double   wait_seconds;     /**< in which this rank did nothing but wait for rows, since create() */
    double   exchange_seconds; /**< from the first send to the last arrival, likewise */
    double   overlap_fraction; /**< 1 - wait_seconds / exchange_seconds; 0 before there was an exchange */
    int64_t  stale_epochs_max; /**< of the oldest rows that a step used since create(), how many epochs before; the same
                                    on all ranks. 0 without halo.async */
    int64_t  epochs_waited;    /**< steps since create() that used rows of their own, with halo.async; likewise */
} graft_traffic;

/** What one layer exchanged in the last step, in one direction. */
typedef struct graft_traffic_item {
    uint32_t size;
    int32_t  rank; /**< -1: all, where what comes and what goes is the same */
    int32_t  layer;
    int32_t  pass;      /**< GRAFT_PASS_FORWARD: rows go to those that gather them; _BACKWARD: gradients go back */
    int64_t  exchanges; /**< in the step: 0, 1, or with recompute 2 */
    int64_t  rows;      /**< that came to the rank, in all of these */
    int64_t  rows_sent; /**< that went from it */
    int64_t  bytes;     /**< of the rows that came. Each message has 64 bytes more, its frame */
    int64_t  bytes_sent;
    int64_t  messages; /**< in which they came */
    int64_t  messages_sent;
    int64_t  looked_at; /**< rows that the asking rank sent in few bits since create() and that option "halo.error"
                             looked at. This and what follows: of the asking rank, else 0. */
    double   nmse;      /**< sum over these of |x - x'|^2 / |x|^2, for what came of each */
    double   expected;  /**< of these by the theory of the code; see graft_codec_error */
    int64_t  rows_by_bits[6];  /**< rows_sent by the bits of their elements: [i] in 2^i, [5] as they are */
    int32_t  code;             /**< GRAFT_CODEC_... of rows in 8 bits or fewer, of the last step that sent such; or 0 */
    int32_t  rounding;         /**< GRAFT_ROUND_... of these: it says what is expected */
    int64_t  stale_epochs;     /**< of the rows that the last step used, how many epochs before they are of: 0 without
                                   halo.async */
    int64_t  stale_epochs_max; /**< likewise, of the steps since create() */
    double   expected_share;   /**< what adaptive bits, as they are now, are expected to lose in a step: the share of
                                    weight |x|^2 of the rows of all ranks that halo.error_limit limits; else 0 */
} graft_traffic_item;

/** What one layer sent from the asking rank to another in one direction. */
typedef struct graft_traffic_pair {
    uint32_t size;
    int32_t  peer; /**< that it went to */
    int32_t  layer;
    int32_t  pass;      /**< as graft_traffic_item */
    int64_t  rows;      /**< in the last step */
    int64_t  bytes;     /**< of these, with their parameters, without the 64 of a frame */
    int64_t  rows_raw;  /**< of these, those that went as they are besides, since one in the message fit no code (see
                             halo.nonfinite); these bytes are in bytes_raw, and in no other count */
    int64_t  looked_at; /**< this and what follows: since create(), of rows in few bits; see graft_traffic_item */
    double   nmse;
    double   expected;
    int64_t  bytes_raw; /**< in the last step */
} graft_traffic_pair;

GRAFT_EXTERN_C_END
#endif
