/* "graft.aggregate/1": the product of the matrix of a graph over ranks with one row for each vertex, in which every
 * rank gives the rows of the vertices it owns, and gets those.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_AGGREGATE_H
#define GRAFT_AGGREGATE_H

#include "graft_graph.h"
#include "graft_mxm.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_AGGREGATE_ID "graft.aggregate/1"

/** Which rows go from rank to rank, and the matrices that make them and take them. */
typedef struct graft_plan graft_plan;

enum {
    GRAFT_PLAN_TRANSPOSED = 1u /**< have what passes with GRAFT_AGGREGATE_TRANSPOSE need, too: as much memory again */
};

/** How a plan is made. All fields are the same on all ranks. */
typedef struct graft_plan_args {
    uint32_t    size;
    uint32_t    flags;  /**< GRAFT_PLAN_... */
    int64_t     width;  /**< columns of the widest pass that is to allocate nothing. 0: buffers are made at first use */
    graft_dtype dtype;  /**< of its elements, GRAFT_F32 or GRAFT_F64; 0: as the values of the graph, else GRAFT_F32 */
    int32_t     layers; /**< with halo.async or adaptive halo.bits, passes have `layer` below it; 0: 1. Of each layer
                             rows and messages of both directions are kept, of the width of its passes. */
} graft_plan_args;

enum {
    GRAFT_AGGREGATE_TRANSPOSE = 1u,  /**< with the transpose of A: the backward pass */
    GRAFT_AGGREGATE_ACCUMULATE = 2u, /**< out (+)= what comes, with the first operation of the semiring */
    GRAFT_AGGREGATE_EXACT = 4u,      /**< rows travel as they are, whatever option "halo.bits" says, and APART */
    GRAFT_AGGREGATE_APART = 8u, /**< no step of its layer: it uses its own rows, whatever option "halo.async" says, and
                                     all of them in as many bits; steps do not notice it */
    GRAFT_AGGREGATE_WAIT = 16u  /**< a step that uses its own rows, whatever option "halo.async" says */
};

/** One pass; see begin(). What stands above `threads` is the same on all ranks: messages tell it, and one that tells
 *  something else ends in ERR_PEER. */
typedef struct graft_aggregate_args {
    uint32_t           size;
    graft_semiring     semiring;
    uint32_t           flags; /**< GRAFT_AGGREGATE_... */
    int32_t            layer; /**< of the caller's counting; in the frames of messages with `epoch`, where it finds out
                                   that ranks have lost one another */
    int64_t            epoch;
    int32_t            threads; /**< at most so many; 0: as the option "threads" says */
    uint32_t           reserved;
    const graft_dense *x;         /**< [n_owned x w]; the struct for the call, the elements until end() */
    const graft_dense *out;       /**< [n_owned x w] of the type of x; likewise. Must not overlap x. */
    const void        *row_scale; /**< [n_owned] of that type, or NULL; borrowed until end(). Sums only. */
    double            *times;     /**< [threads x 3] as in graft_mxm_args, or NULL; borrowed until end() */
} graft_aggregate_args;

/** What a plan does, on one rank or on all. Rows are those of one pass in one direction; they are the same in the
 *  other. A pass of w columns of b bytes sends b * w * halo_rows + 64 * messages bytes, where option "halo.bits" is 32;
 *  else rows have as many as graft_codec.row_bytes() says, and `bytes_sent` has what it came to. */
typedef struct graft_plan_info {
    uint32_t size;
    int32_t  rank;              /**< -1: all ranks */
    int64_t  n_cut;             /**< entries that are served by messages to the rank */
    int64_t  halo_rows;         /**< rows that come to the rank */
    int64_t  halo_rows_sent;    /**< rows that it sends; all: halo_rows */
    int64_t  halo_rows_raw;     /**< of halo_rows, rows of vertices as they are; the others are partial results */
    int64_t  halo_rows_if_post; /**< halo_rows, if none were partial results; with halo.cover = post */
    int64_t  halo_rows_if_pre;  /**< if all were; with halo.cover = pre */
    int64_t  messages;          /**< ranks from which rows come; all: the sum */
    int64_t  bytes;  /**< that the plan holds beside the graph, without what kernels prepared; of others as made */
    int64_t  passes; /**< that have ended. This and what follows: of the asking rank, else 0. */
    double   wait_seconds;     /**< in which end() did nothing but wait, in all passes */
    double   exchange_seconds; /**< from the first send in begin() until all messages were there, in all passes */
    double   overlap_fraction; /**< 1 - wait_seconds / exchange_seconds: the share of the exchange that other work
                                     hid; 0 before there was one */
    int64_t  bytes_sent;       /**< of rows in all passes, with parameters, without the 64 of a message */
    int64_t  bytes_raw; /**< beside these, of rows that went once more as they are, since one in their message fit no
                              code (see "halo.nonfinite") */
    int64_t  looked_at; /**< rows that went in few bits and that option "halo.error" looked at */
    double   nmse;      /**< sum over these of |x - x'|^2 / |x|^2 */
    double   expected;  /**< of these by the theory of the code; see graft_codec_error */
    double   expected_share;   /**< of all layers and directions the largest share of weight |x|^2 of the rows of all
                                    ranks that adaptive bits, as they are now, are expected to lose; else 0 */
    int64_t  stale_epochs_max; /**< of the oldest rows that a pass used, how many epochs before; see "halo.async" */
} graft_plan_info;

typedef struct graft_aggregate {
    uint32_t size;
    uint32_t reserved;

    /** Make a plan. An entry of the matrix whose column belongs to rank q and whose row to rank p is served by the row
     *  of its column, which q sends as it is and p aggregates ("post"), or by a partial result for its row, which q
     *  aggregates ("pre"). Option "halo.cover": `hybrid` makes the rows from q to p a minimum vertex cover of these
     *  entries, as many as a maximum matching has pairs (Koenig 1931), below which no choice can go; of these covers
     *  it is the one with the most raw rows. `pre` and `post` are for comparison.
     *
     * \param[in]  graph  Lives on as long as its plans, destroyed or not.
     * \param[in]  args   Or NULL: as one that is zero but for its size.
     * \param[out] plan   Untouched on failure.
     * \return OK; ERR_ARG (null, unknown flags, dtype or width; values of another type than dtype; ranks that
     *         disagree); ERR_OPTION (halo.bytes_limit and halo.error_limit, or one of them without adaptive bits);
     *         ERR_UNSUPPORTED (more than 2147483647 rows would come to a rank); ERR_NOMEM; ERR_PEER. See graft_graphs
     *         for what ranks agree on.
     * [one-caller] [starts-openmp]. Collective. Memory: see info(); what stays and what is needed while it works are
     * together at most 64 bytes for each cut entry of the rank and 24 for each vertex it owns, without values, buffers
     * and what transposed passes need. Source: SuperGCN, Algorithm 2. Since 1. */
    int32_t (*create)(graft_graph *graph, const graft_plan_args *args, graft_plan **plan, graft_error *error);

    /** Begin a pass, which computes for the rows of all ranks together
     *
     *      out = diag(row_scale) (A (+.x) x)        with GRAFT_AGGREGATE_TRANSPOSE: diag(row_scale) (A^T (+.x) x)
     *
     *  where A has entry (v, u) for each u that v gathers from; rows without entries become 0. As graft_mxm.run(): with
     *  GRAFT_AGGREGATE_ACCUMULATE what is computed is added to out, or out is kept where that is the maximum or
     *  minimum.
     *
     *  With option "halo.async" rows of other ranks are used late, and end() seldom waits. A pass is the step of its
     *  layer and direction in its epoch. If the last one was of the epoch before, of the same width and semiring, then
     *  the rows that it sent are used in this one, and those that this one sends in the next; else, or with
     *  GRAFT_AGGREGATE_WAIT, this one uses its own. With option "halo.smoothing" = s late rows are s times those that
     *  the last pass used and 1 - s times those that it sent, unless it used its own; s is 0.8 unless it is set, for
     *  training, and with 0 late rows are what was sent. A second pass of an epoch sends nothing, and uses what the
     *  first one used. All of it depends on the arguments of passes alone, and not on when messages come. Passes that
     *  are no steps, as in an evaluation, are GRAFT_AGGREGATE_APART. A row that no code of "halo.bits" fits ends in
     *  ERR_PEER then, whatever option "halo.nonfinite" says. "halo.sync_every" and "halo.drift_limit" are for trainers.
     *
     *  Rows for others are made and sent; then the part of the product that needs no others is done, and messages move
     *  meanwhile. Between begin() and end() the host may do other work, and other passes of other plans.
     *
     * \return OK; ERR_ARG (null, shapes, types, strides, overlap, unknown semiring or flags, row_scale with a maximum
     *         or minimum, times for no number of threads; a layer that the plan has not, with halo.async or adaptive
     *         halo.bits); ERR_STATE (a pass has begun and not ended; a transposed pass of a plan without
     *         GRAFT_PLAN_TRANSPOSED); ERR_UNSUPPORTED (a transposed maximum or minimum; with halo.async, one that is
     *         not APART): on this rank alone, nothing is sent and the plan is as before; others that begin a pass wait
     *         for this one. ERR_PEER: the same on all ranks, also when memory fails or a kernel; with one rank, what it
     *         was.
     * [one-caller] [starts-openmp]. Collective, in the same order on all ranks for each plan. Memory: none if w columns
     * were reserved, or were there before; kernels prepare theirs at their first runs. `out` is undefined until end()
     * succeeds. Since 1. */
    int32_t (*begin)(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);

    /** End it: wait for messages, check each by its frame and its CRC32C, and aggregate what came.
     *
     *  Numerics: the same bits for the same ranks, cover and kernel, whatever the number of threads. Sums are formed
     *  of the entries of the rank itself in their order, then of rows of others in the order of ranks.
     *
     * \return OK; ERR_STATE (no pass has begun); ERR_PEER (the sentence names rank and cause).
     * [one-caller] [starts-openmp]. Collective. Memory: as begin(). Since 1. */
    int32_t (*end)(graft_plan *plan, graft_error *error);

    /** Count what rank `rank` gets and sends, or with -1 all of them together.
     * \return OK; ERR_ARG (null, no such rank). [one-caller] Not collective. Since 1. */
    int32_t (*info)(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error);

    /** Print a table of all ranks into text[capacity], cut if it is too short.
     * \return OK; ERR_ARG. [one-caller] Not collective. Since 1. */
    int32_t (*explain)(const graft_plan *plan, char *text, uint64_t capacity, graft_error *error);

    /** Free it. NULL is legal. Sends nothing; between begin() and end() it makes the transport useless to all
     *  ranks. With option "halo.async" it waits for rows that are on their way, as long as end() would.
     *  [one-caller] Not collective. Since 1. */
    void (*destroy)(graft_plan *plan);

    /** Decide anew in how many bits each row goes that has adaptive ones (options "halo.bits", "halo.bits_backward"),
     *  2, 4 or 8, by the ranges of rows in the last pass of each layer and direction; until the first call it is 8.
     *  Rows are weighed by what the first pass of a layer and direction multiplied them with. Passes that begin later
     *  have the new bits; rows that are on their way (option "halo.async") keep theirs. Before there was a pass it
     *  does nothing.
     *
     *  With option "halo.bytes_limit" as little as possible is lost in so many bytes, those of all exchanges that the
     *  last epoch had; with "halo.error_limit" as few bytes as possible are sent, and no layer and direction loses
     *  more than this share of the weight |x|^2 of its rows, expected for elements anywhere between two levels; and
     *  else it is the balance of both by "halo.adapt_lambda" and the pace of messages between each two ranks, which
     *  the first call measures.
     * \return OK; ERR_ARG (null); ERR_STATE (a pass has begun and not ended; a plan without adaptive bits); ERR_OPTION
     *         (a limit that cannot be met; "halo.error_limit" only when bits are decided on for the first time, later
     *         such rows have 8 bits); ERR_NOMEM: the same on all ranks, and bits stay as they were; ERR_PEER.
     * [one-caller] Collective. Memory while it runs: 17 bytes for each row that goes, and on rank 0 16 MB at most,
     * unless more than 65536 pairs of ranks, layers and directions have rows; what was measured stays, 16 bytes for
     * each rank, on rank 0 for each pair. Source: AdaQP, section 4. Since 1. */
    int32_t (*adapt)(graft_plan *plan, graft_error *error);
} graft_aggregate;

GRAFT_EXTERN_C_END
#endif
