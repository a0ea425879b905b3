/* Reports of a trainer of graft_train.h about its own work: time, memory, and messages between ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_REPORT_H
#define GRAFT_REPORT_H

#include "graft_train.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_REPORT_ID "graft.report/1"

/** The pass that a span belongs to; predict() counts as an evaluation. */
enum { GRAFT_PASS_FORWARD = 0, GRAFT_PASS_BACKWARD = 1, GRAFT_PASS_EVALUATION = 2 };

/** An interval of time. There are three kinds:
 *
 *      a phase    (thread 0, part 0): the calling thread, from before a thread team starts until all of it has ended
 *      a part     (thread 0, part 1): follows its phase if that exchanges rows with other ranks
 *      a share    (thread > 0): follows the parts; the work of one thread of the team in the phase
 *
 *  Phases do not overlap. The parts of a phase cover all of it, except for "attention", whose gather has its first two
 *  parts in one phase and "local" and the rest in the next one. A thread without work has no share, and neither have
 *  threads of modules that do not report times ("graphblas"). */
typedef struct graft_span {
    uint32_t    size;
    int32_t     layer;      /**< -1: of no layer */
    int32_t     pass;       /**< GRAFT_PASS_... */
    int32_t     thread;     /**< 0: a phase or a part; n > 0: the share of thread n, of which 1 is the calling thread */
    const char *phase;      /**< static. A phase is "aggregate"; "update": products with weights, and the row operations
                            fused with them; "rows": row operations alone (bias, norm, ReLU, dropout); "attention";
                            "loss"; "optimizer"; "labels": the draw of labels that are input (label_rate) and the sum
                            of their number; over ranks "reduce": sums of losses and gradients, and "adapt": the
                            choice of adaptive bits. A part is "pack": rows are aggregated, encoded and sent; "local":
                            work that needs no other rank; "wait"; "unpack": received rows are checked and added */
    int64_t     epoch;      /**< epochs completed when the span was recorded */
    double      begin, end; /**< seconds since create() */
    double      bytes;      /**< bytes requested from memory, each access counted; 0 where not counted */
    double      flops;      /**< floating-point operations; both are 0 in a part and in a share */
    double      waited;     /**< seconds of waiting between begin and end: in a share for anything, in a phase and its
                                 parts for rows of other ranks */
    int32_t     threads;    /**< the number of threads that the trainer could use */
    int32_t     part;       /**< 1: a part of the phase before it, whose time includes it */
} graft_span;

/** The memory of a trainer for one purpose. */
typedef struct graft_memory_item {
    uint32_t    size;
    uint32_t    reserved;
    const char *name;  /**< "features", "graph", "weights", "optimiser", "activations", "masks", "gradients" or
                            "messages"; static */
    const char *help;  /**< one line of description; static */
    int64_t     bytes; /**< in addition to the arrays of the data set */
} graft_memory_item;

/** Messages of a trainer over ranks, received by one rank or by all. Rows are those of one aggregation in one direction
 *  over all vertices; a step may exchange fewer (row_masks), and its bytes count those. */
typedef struct graft_traffic {
    uint32_t size;
    int32_t  rank;                 /**< -1: all ranks */
    int64_t  cut_edges;            /**< edges whose vertices have different owners, after symmetrize */
    int64_t  halo_rows;            /**< rows that the rank receives; 0 for mlp */
    int64_t  halo_rows_if_post;    /**< the same with halo.cover = post */
    int64_t  halo_bytes_per_epoch; /**< bytes of rows in all layers and both directions of the last step; a constant
                                        aggregate (reuse_input) counts in the step that computes it */
    int64_t  halo_bytes_if_post;   /**< the same with raw rows only */
    double   wait_seconds;         /**< seconds since create() in which this rank only waited for rows */
    double   exchange_seconds;     /**< seconds since create() from the first send to the last receive of exchanges */
    double   overlap_fraction;     /**< 1 - wait_seconds / exchange_seconds; 0 before the first exchange */
    int64_t  staleness_max; /**< the largest staleness of rows used by a step since create(), in epochs; the same on
                                    all ranks; 0 without halo.staleness */
    int64_t  epochs_synchronous; /**< synchronous steps since create() with halo.staleness; the same on all ranks */
} graft_traffic;

/** What one layer exchanged in the last step, in one direction. */
typedef struct graft_traffic_item {
    uint32_t size;
    int32_t  rank; /**< -1: all ranks, for which received and sent counts are equal */
    int32_t  layer;
    int32_t  pass;      /**< GRAFT_PASS_FORWARD: rows go to the ranks that gather them; _BACKWARD: their gradients */
    int64_t  exchanges; /**< in the step: 0, 1, or 2 with recompute */
    int64_t  rows;      /**< received rows, in all of these exchanges */
    int64_t  rows_sent; /**< sent rows */
    int64_t  bytes;     /**< of the received rows with their parameters; each message has a frame of 64 bytes more */
    int64_t  bytes_sent;
    int64_t  messages; /**< received */
    int64_t  messages_sent;
    int64_t  sampled_rows;    /**< quantized rows that the calling rank sent since create() and that option
                             "halo.error_statistics" sampled. This and the following fields are 0 for other ranks */
    double   nmse;            /**< sum over the sampled rows x, decoded as x', of |x - x'|^2 / |x|^2 */
    double   expected;        /**< the theoretical expectation of nmse; see graft_codec_error */
    int64_t  rows_by_bits[6]; /**< rows_sent by bits of an element: [i] in 2^i bits, [5] in 32 */
    int32_t  code;            /**< GRAFT_CODEC_... of rows in 8 bits or fewer in the last step that sent such, or 0 */
    int32_t  rounding;        /**< GRAFT_ROUND_... of these rows */
    int64_t  staleness;       /**< staleness of the rows that the last step used, in epochs; 0 without
                                    halo.staleness */
    int64_t  staleness_max;   /**< the largest since create() */
    double   expected_error;  /**< the expected relative error of a step with the current adaptive bits, weighted, over
                                    the rows of all ranks, as halo.budget=error limits it; else 0 */
} graft_traffic_item;

/** What one layer sent from the calling rank to another in one direction. */
typedef struct graft_traffic_pair {
    uint32_t size;
    int32_t  peer; /**< the receiving rank */
    int32_t  layer;
    int32_t  pass;  /**< as in graft_traffic_item */
    int64_t  rows;  /**< in the last step */
    int64_t  bytes; /**< bytes of the rows and their quantization parameters; frames of messages do not count */
    /** Rows that were also sent unquantized, because a row of the same message has no code (see halo.nonfinite). Their
     *  unquantized bytes count only in bytes_unquantized. */
    int64_t  rows_unquantized;
    int64_t
           sampled_rows; /**< sampled quantized rows since create(); this, nmse and expected as in graft_traffic_item */
    double nmse;
    double expected;
    int64_t bytes_unquantized; /**< in the last step */
} graft_traffic_pair;

typedef struct graft_report_api {
    uint32_t size;
    uint32_t reserved;

    /** Read span number `index` of the last epoch(), evaluate() or predict() of a trainer with option `profile`.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last; ERR_STATE (no option `profile`).
     * [one-caller] Not collective. Memory: none. Since 1. */
    int32_t (*span)(graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error);

    /** Read item number `index` of the memory that create() allocated; option memory.limit bounds the sum. Memory that
     * kernels and dense modules prepare at their first run is not included: for a dense module of Graft at most 16 MB,
     * with bf16 about 2 MB more for each thread and the working memory of its library.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 1. */
    int32_t (*memory_item)(graft_trainer *trainer, int32_t index, graft_memory_item *item, graft_error *error);

    /** Report the messages that rank `rank` receives, or with -1 all ranks.
     * \return OK; ERR_ARG (null, no such rank); ERR_STATE (not over ranks). [one-caller] Not collective. Since 1. */
    int32_t (*traffic)(graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error);

    /** Report what rank `rank`, or with -1 all ranks, exchanged in the last step in layer index/2, forward if index is
     * even, backward if it is odd.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last layer; ERR_STATE (not over ranks).
     * [one-caller] Not collective. Since 1. */
    int32_t (*traffic_item)(graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                            graft_error *error);

    /** Report what this rank sent to rank `peer` in the last step, in the layer and direction of `index` as above, with
     * its quantization error. Only the sender knows these numbers.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last layer; ERR_STATE (not over ranks).
     * [one-caller] Not collective. Since 1. */
    int32_t (*traffic_pair)(graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                            graft_error *error);
} graft_report_api;

GRAFT_EXTERN_C_END
#endif
