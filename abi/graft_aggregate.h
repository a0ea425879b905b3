/* "graft.aggregate/1": the product of the adjacency matrix of a distributed graph with one row per vertex. Every rank
 * passes the rows of the vertices that it owns, and receives the results of these vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_AGGREGATE_H
#define GRAFT_AGGREGATE_H

#include "graft_graph.h"
#include "graft_mxm.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_AGGREGATE_ID "graft.aggregate/1"

/** The rows that ranks send to each other, and the matrices that aggregate sent and received rows. */
typedef struct graft_plan graft_plan;

enum {
    GRAFT_PLAN_TRANSPOSED = 1u /**< also prepare for passes with GRAFT_AGGREGATE_TRANSPOSE: twice the memory */
};

/** Parameters of a plan. All fields are the same on all ranks. */
typedef struct graft_plan_args {
    uint32_t    size;
    uint32_t    flags;  /**< GRAFT_PLAN_... */
    int64_t     width;  /**< columns of the widest pass for which buffers are allocated now; 0: at first use */
    graft_dtype dtype;  /**< type of the elements, GRAFT_F32 or GRAFT_F64; 0: the type of the graph's values, or F32 */
    int32_t     layers; /**< with halo.staleness or adaptive bits the number of layers, 0 meaning 1: the `layer` of a
                             pass must be less. Received rows and messages are stored for each layer and direction */
} graft_plan_args;

enum {
    GRAFT_AGGREGATE_TRANSPOSE = 1u,  /**< use the transpose of A, for the backward pass */
    GRAFT_AGGREGATE_ACCUMULATE = 2u, /**< out (+)= result, with the first operation of the semiring */
    GRAFT_AGGREGATE_EXACT = 4u,      /**< send rows unquantized whatever option "halo.codec" says; implies STATELESS */
    GRAFT_AGGREGATE_STATELESS =
        8u, /**< not a training step of its layer: it uses current rows, all with the same number of
                                     bits, and neither reads nor changes stored rows */
    GRAFT_AGGREGATE_SYNCHRONOUS =
        16u,                      /**< a training step that uses current rows whatever option "halo.staleness" says */
    GRAFT_AGGREGATE_REPLACE = 32u /**< elements that the mask forbids become 0; else they keep their value */
};

/** One pass; see begin(). The fields before `threads` are the same on all ranks: frames carry them, and a difference
 *  ends in ERR_PEER. */
typedef struct graft_aggregate_args {
    uint32_t           size;
    graft_semiring     semiring;
    uint32_t           flags; /**< GRAFT_AGGREGATE_... */
    int32_t            layer; /**< numbered by the caller; frames carry it and `epoch` to detect ranks that are out of
                                   step */
    int64_t            epoch;
    int32_t            threads; /**< at most this many; 0: option "threads" */
    uint32_t           reserved;
    const graft_dense *x;   /**< [n_owned x w]; the struct is borrowed for the call, the elements until end() */
    const graft_dense *out; /**< [n_owned x w] of the type of x; float if x is GRAFT_BF16. Borrowed as x, no overlap */
    const void        *row_scale; /**< [n_owned] factors of the type of out, or NULL; borrowed until end(). Sums only */
    double            *times;     /**< [threads x 3] as in graft_mxm_args, or NULL; borrowed until end() */
    const graft_mask  *mask;      /**< over [n_owned x w], or NULL; its arrays are borrowed until end() */
    const graft_epilogue *epilogue; /**< operations on rows, or NULL; its arrays are borrowed until end() */
} graft_aggregate_args;

/** Counts of a plan, for one rank or for all. Counts of rows are for one pass in one direction, and equal in both
 *  directions. A pass of w columns of b bytes sends b * w * halo_rows + 64 * messages bytes with halo.codec=f32;
 *  otherwise a row has graft_codec_api.row_bytes() bytes, and `bytes_sent` is the sum. Each rank also sends 512 bytes
 *  in each of log2(ranks) rounds, rounded up, in which ranks agree on the status. */
typedef struct graft_plan_info {
    uint32_t size;
    int32_t  rank;              /**< -1: all ranks */
    int64_t  n_cut;             /**< cut edges whose row the rank owns */
    int64_t  halo_rows;         /**< rows that the rank receives */
    int64_t  halo_rows_sent;    /**< rows that it sends; all ranks: halo_rows */
    int64_t  halo_rows_post;    /**< raw (post-aggregated) rows among halo_rows; the others are partial sums */
    int64_t  halo_rows_if_post; /**< halo_rows with halo.cover = post: raw rows only */
    int64_t  halo_rows_if_pre;  /**< halo_rows with halo.cover = pre: partial sums only */
    int64_t  messages;          /**< ranks from which it receives rows; all ranks: the sum */
    int64_t  bytes;             /**< memory of the plan, without the graph and arrays prepared by kernels; for other
                                     ranks as of create() */
    int64_t  passes;            /**< completed passes. This and the following fields are 0 for other ranks */
    double   wait_seconds;      /**< seconds in which end() only waited, in all passes */
    double   exchange_seconds;  /**< seconds from the first send in begin() to the last arrival, in all passes */
    double   overlap_fraction;  /**< 1 - wait_seconds / exchange_seconds: the share of communication hidden behind other
                                     work; 0 before the first exchange */
    int64_t  bytes_sent;        /**< bytes of rows sent in all passes, with parameters, without frames */
    int64_t  bytes_unquantized; /**< further bytes, of rows that were also sent unquantized because a row of their
                                     message cannot be encoded (see "halo.nonfinite") */
    int64_t  sampled_rows;      /**< quantized rows that option "halo.error_statistics" sampled */
    double   nmse;              /**< sum over the sampled rows of |x - x'|^2 / |x|^2 */
    double   expected;          /**< the theoretical expectation of nmse; see graft_codec_error */
    double   expected_error;    /**< the largest expected relative error of all layers and directions with the current
                                     adaptive bits, as halo.budget=error limits it; else 0 */
    int64_t  staleness_max;     /**< the largest staleness of rows that a pass used, in epochs */
} graft_plan_info;

typedef struct graft_aggregate_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a plan. A cut edge from a column of rank q to a row of rank p is served either by the raw row of its
     *  column, which p aggregates ("post"), or by a partial sum for its row, which q aggregates ("pre"). Option
     *  "halo.cover" chooses the rows from q to p: `hybrid` is a minimum vertex cover of the cut edges from q to p. Its
     *  number of rows equals the size of a maximum matching (Koenig 1931), a lower bound for any choice. Among minimum
     *  covers it has the most raw rows. `pre` and `post` are for comparison.
     *
     *  The plan keeps the values that the options of messages ("halo.codec" and so on) have at create().
     *
     * \param[in]  graph  Stays allocated as long as its plans, even if it is destroyed before them.
     * \param[in]  args   NULL is the same as a struct of zeros with its size set.
     * \param[out] plan   Unchanged on failure.
     * \return OK; ERR_ARG (null; unknown flags, dtype or width; values of another type than dtype; ranks that
     *         disagree); ERR_OPTION (halo.budget without adaptive bits); ERR_UNSUPPORTED (a rank would receive more
     *         than 2147483647 rows); ERR_NOMEM; ERR_PEER. See graft_graph_api for the agreement of ranks.
     * [one-caller] [starts-openmp]. Collective. Memory: see info(). Kept and temporary memory together are at most 64
     * bytes for each cut edge of the rank and 24 for each owned vertex, without values, buffers, and memory for
     * transposed passes; 8 more are kept for each cut edge and received row if the graph has values. Source: SuperGCN,
     * Algorithm 2. Since 0.1. */
    int32_t (*create)(graft_graph *graph, const graft_plan_args *args, graft_plan **plan, graft_error *error);

    /** Begin a pass, which computes for the rows of all ranks together
     *
     *      out = diag(row_scale) (A (+.x) x)        with GRAFT_AGGREGATE_TRANSPOSE: diag(row_scale) (A^T (+.x) x)
     *
     *  where A has entry (v, u) for each u that v gathers from. Rows without entries become 0. x may be GRAFT_BF16
     *  where out is float, on some ranks or all (since 0.2); messages, sums and row_scale are of the type of out. With
     *  GRAFT_AGGREGATE_ACCUMULATE the result is combined with `out` as in graft_mxm_api.run(). First the rows for other
     *  ranks are aggregated and sent; then the local part of the product is computed while messages travel. Between
     *  begin() and end() the host may do other work, and passes of other plans.
     *
     *  A mask works as in graft_mxm_api.run(): forbidden elements of `out` keep their value, or become 0 with
     *  GRAFT_AGGREGATE_REPLACE. Each rank has its own mask, which does not change the rows that are sent. Forbidden
     *  rows are not gathered. An epilogue is applied once, to the sum over all ranks; `vertex` of dropout is by default
     *  the vertex of the whole graph, so that draws do not depend on the ranks. An epilogue requires a sum without
     *  GRAFT_AGGREGATE_ACCUMULATE; `residual` is added to the sum.
     *
     *  With option "halo.staleness" = 1 received rows are used one epoch later, and end() seldom waits; begin() waits
     *  until all ranks have begun. A pass is the
     *  training step of its layer and direction in its epoch. If the previous step belongs to the previous epoch and
     *  has the same width and semiring, this step uses the rows that the previous step sent; otherwise, or with
     *  GRAFT_AGGREGATE_SYNCHRONOUS, it is synchronous and uses current rows. With option "halo.staleness" = 1:N:s stale
     *  rows are s times the rows used by the previous step plus 1 - s times the rows sent by it, unless the previous
     *  step was synchronous. A second pass of an epoch sends nothing, and uses the rows of the first. All of this
     *  depends only on the arguments of passes, not on when messages arrive. Passes that are not training steps, as in
     *  an evaluation, are GRAFT_AGGREGATE_STATELESS. A row that cannot be encoded ends in ERR_PEER whatever option
     *  "halo.nonfinite" says. The N of "halo.staleness" = 1:N applies to trainers only.
     *
     *  A pass that one rank refuses is refused on all. With several ranks the begin() of this rank returns OK, so that
     *  no rank waits for another before end(), and the end() of all ranks returns the status, with the sentence and the
     *  rank of the lowest rank that has refused it. A training step with stored rows (halo.staleness, adaptive bits) is
     *  refused by the begin() of all ranks, which waits for all, as does that of a rank whose `args` is null. The plan
     *  stays usable, and a refused pass changes nothing but `out`, and what info() counts of sent rows and of seconds.
     *
     * \return OK; with several ranks returned as described: ERR_ARG (null, shapes, types, strides, overlap, unknown
     *         semiring or flags, row_scale with a maximum or minimum, times without a number of threads; with
     *         halo.staleness or adaptive bits a layer beyond the plan's layers); ERR_STATE (a transposed pass of a plan
     *         without GRAFT_PLAN_TRANSPOSED); ERR_NONFINITE (with halo.nonfinite=refuse, a row that cannot be encoded;
     *         in a training step with stored rows ERR_PEER); ERR_UNSUPPORTED (a transposed maximum or minimum; with
     *         halo.staleness a maximum or minimum that is not STATELESS; an epilogue with a maximum or minimum, or with
     *         ACCUMULATE). ERR_STATE, of this rank: a pass has begun and not ended; it counts as a pass, and if other
     *         ranks make one pass less, the next is ERR_PEER. ERR_PEER is the same on all ranks, also if memory or a
     *         kernel fails; with one rank the original code is returned.
     * [one-caller] [starts-openmp]. Collective, in the same order on all ranks for each plan. Memory: none if buffers
     * of w columns exist; kernels allocate at their first runs. `out` is undefined until end() succeeds. Since 0.1. */
    int32_t (*begin)(graft_plan *plan, const graft_aggregate_args *args, graft_error *error);

    /** End the pass: wait for messages, check the frame and CRC32C of each, and aggregate the received rows.
     *
     *  Numerics: bitwise identical for the same ranks, cover and kernel, whatever the number of threads. Sums are
     *  formed first over local edges in their order, then over rows of other ranks in the order of ranks.
     *
     * \return OK; why a rank has refused the pass in begin(), the same on all ranks; ERR_STATE (no pass has
     *         begun), of this rank; ERR_PEER (the message names rank and cause; also if a rank has skipped a pass).
     * [one-caller] [starts-openmp]. Collective: it returns when all ranks have begun the pass. Memory: as begin().
     * Since 0.1. */
    int32_t (*end)(graft_plan *plan, graft_error *error);

    /** Report the counts of rank `rank`, or with -1 of all ranks together.
     * \return OK; ERR_ARG (null, no such rank). [one-caller] Not collective. Since 0.1. */
    int32_t (*info)(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error);

    /** Print a table of all ranks into text[capacity], truncated if it is too long.
     * \return OK; ERR_ARG (null). [one-caller] Not collective. Since 0.1. */
    int32_t (*explain)(const graft_plan *plan, char *text, uint64_t capacity, graft_error *error);

    /** Free the plan. NULL is legal. Sends nothing. Between begin() and end() it makes the transport unusable on all
     *  ranks. With option "halo.staleness" it waits for rows in flight, at most as long as end() would.
     *  [one-caller] Not collective. Since 0.1. */
    void (*destroy)(graft_plan *plan);

    /** Choose the number of bits of each row anew, 2, 4 or 8, where option "halo.codec" is adaptive, from the ranges of
     *  rows, their squares summed over all passes of each layer and direction since the last call that chose bits (as
     *  AdaQP traces them); before the first call all rows have 8 bits. Rows are weighted by the squares of the factors
     *  in the first pass of the layer and direction. Passes that begin later use the new bits; rows in flight (option
     *  "halo.staleness") keep theirs. Before the first pass the call does nothing.
     *
     *  Option "halo.budget" is the objective: bytes:N minimises the expected error within N bytes, counting all
     *  exchanges of the last epoch; error:X minimises the bytes such that no layer and direction has an expected error,
     *  relative to its weighted sum of |x|^2, above X; balance:L minimises a weighted sum of error and time, for which
     *  the first call measures latency and bandwidth between ranks.
     * \return OK; ERR_ARG (null); ERR_STATE (a pass has begun and not ended; a plan without adaptive bits); ERR_OPTION
     *         (a budget that cannot be met; error:X only in the first call that chooses bits, later its rows have 8
     *         bits); ERR_NOMEM; ERR_PEER. ERR_OPTION and ERR_NOMEM are the same on all ranks, and bits are unchanged.
     * [one-caller] Collective. Memory during the call: 17 bytes for each sent row, and on rank 0 at most 16 MB, unless
     * more than 65536 pairs of ranks, layers and directions have rows. Kept measurements take 16 bytes for each rank,
     * on rank 0 for each pair of ranks. Source: AdaQP, section 4. Since 0.1. */
    int32_t (*assign_bits)(graft_plan *plan, graft_error *error);

    /** Let messages of the pass progress, without waiting. Nothing depends on this call; it helps
     *  transports that do nothing on their own while the host works. A host that only waits calls end(), which has a
     *  deadline.
     * \param[out] arrived  1: end() will not wait, unless the pass is refused; 0: messages are missing.
     * \return OK; ERR_ARG (null); ERR_STATE (no pass has begun); ERR_PEER, which end() then returns too.
     * [one-caller] Not collective. Memory: none. Cost: a test of each message that is missing. Since 0.1. */
    int32_t (*progress)(graft_plan *plan, int32_t *arrived, graft_error *error);
} graft_aggregate_api;

GRAFT_EXTERN_C_END
#endif
