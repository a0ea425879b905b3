/* "graft.report/1": reports of a trainer about its own work: time, memory, and messages between ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_REPORT_H
#define GRAFT_REPORT_H

#include "graft_train.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_REPORT_ID "graft.report/1"

/* Memory of evaluations and predictions. In one process, evaluations of trainers with option batch_size and predictions
 * of models (graft_model.h) may go in blocks of rows, layer by layer, without label_rate:
 *
 *     eval.blocks  no: all rows at once. yes: memory for the outputs of two layers for all rows (with jumping all
 *                  hidden layers, with appnp three), and about 0.2 GB for blocks; results are bitwise identical, if the
 *                  bits of the dense module do not depend on the number of rows in a product. auto: yes if all rows
 *                  at once need more than 1 GB or the available memory. A value with a '/', such as ./out or ./, is a
 *                  folder: yes, and until the call ends, outputs of layers are in an unnamed, memory-mapped file in it;
 *                  ERR_IO if the file cannot be created or written. create() and epoch() of a trainer with batch_size
 *                  first create such a file and remove it */

/** The pass that a span belongs to; predict() counts as an evaluation. */
enum { GRAFT_PASS_FORWARD = 0, GRAFT_PASS_BACKWARD = 1, GRAFT_PASS_EVALUATION = 2 };

/** An interval of time. There are three kinds:
 *
 *      a phase    (thread 0, part 0): the calling thread, from before a thread team starts until all of it has ended
 *      a part     (thread 0, part 1): follows its phase if that exchanges rows with other ranks
 *      a share    (thread > 0): follows the parts; the work of one thread of the team in the phase
 *
 *  Phases do not overlap. The parts of a phase cover all of it, except for "attention", whose gather has its first two
 *  parts in one phase and "local" and the rest in the next one. A thread without work has no share. Threads of modules
 *  that do not report times ("graphblas") have none either. */
typedef struct graft_span {
    uint32_t    size;
    int32_t     layer;      /**< -1: of no layer */
    int32_t     pass;       /**< GRAFT_PASS_... */
    int32_t     thread;     /**< 0: a phase or a part; n > 0: the share of thread n, of which 1 is the calling thread */
    const char *phase;      /**< static. A phase is "aggregate"; "update": products with weights, and the row operations
                            fused with them; "rows": row operations alone (bias, norm, ReLU, dropout); "attention";
                            "loss"; "optimizer"; "workers": a pipeline of the first three (option workers), in which
                            the last threads are the sparse workers; "labels": the draw of labels that are input
                            (label_rate) and the sum of their number; over ranks "reduce": sums of losses and
                            gradients, and "adapt": the choice of adaptive bits. A part is "pack": rows are
                            aggregated, encoded and sent; "local": work that needs no other rank; "wait"; "unpack":
                            received rows are checked and added. In training by minibatch also "sample", and
                            "gather": features, labels and blocks of a batch; over ranks "receive", "push" and "cache":
                            rows that are stored, sent and read */
    int64_t     epoch;      /**< epochs completed when the span was recorded */
    double      begin, end; /**< seconds since create() */
    double      bytes;      /**< bytes requested from memory, each access counted; 0 where not counted */
    double      flops;      /**< floating-point operations; both are 0 in a part and in a share */
    double      waited;     /**< seconds of waiting between begin and end: a share counts every wait, a phase and its
                                 parts only waits for rows of other ranks */
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
    int64_t     bytes; /**< bytes, in addition to the arrays of the data set */
} graft_memory_item;

/** Messages of a trainer over ranks, received by one rank or by all. Counts of rows are for one aggregation in one
 *  direction over all vertices. With row_masks a step may exchange fewer rows; bytes count exchanged rows only. */
typedef struct graft_traffic {
    uint32_t size;
    int32_t  rank;                 /**< -1: all ranks */
    int64_t  cut_edges;            /**< edges whose vertices have different owners, after symmetrize */
    int64_t  halo_rows;            /**< rows that the rank receives; 0 for mlp */
    int64_t  halo_rows_if_post;    /**< halo_rows with halo.cover = post */
    int64_t  halo_bytes_per_epoch; /**< bytes of rows in all layers and both directions of the last step; a constant
                                        aggregate (reuse_input) counts in the step that computes it */
    int64_t  halo_bytes_if_post;   /**< halo_bytes_per_epoch with raw rows only */
    double   wait_seconds;         /**< seconds since create() in which this rank only waited for rows */
    double   exchange_seconds;     /**< seconds of all exchanges since create(), each from first send to last receive */
    double   overlap_fraction;     /**< 1 - wait_seconds / exchange_seconds; 0 before the first exchange */
    int64_t  staleness_max; /**< the largest staleness of rows used by a step since create(), in epochs; the same on
                                    all ranks; 0 without halo.staleness */
    int64_t  epochs_synchronous;   /**< synchronous steps since create() with halo.staleness; the same on all ranks */
    int64_t  edge_bytes_per_epoch; /**< the part of halo_bytes_per_epoch that is edges (feature.graph=stream) */
} graft_traffic;

/** Rows and messages that one layer exchanged in one direction in the last step. */
typedef struct graft_traffic_item {
    uint32_t size;
    int32_t  rank; /**< -1: all ranks, for which received and sent counts are equal */
    int32_t  layer;
    int32_t  pass;      /**< GRAFT_PASS_FORWARD: rows go to the ranks that gather them; _BACKWARD: their gradients */
    int64_t  exchanges; /**< number of exchanges in the step: 0, 1, or 2 with recompute */
    int64_t  rows;      /**< received rows, in all exchanges of the step */
    int64_t  rows_sent; /**< sent rows */
    int64_t  bytes;     /**< bytes of received rows and their parameters, without the 64-byte frame of each message */
    int64_t  bytes_sent;
    int64_t  messages; /**< received messages */
    int64_t  messages_sent;
    int64_t  sampled_rows;    /**< quantized rows that the calling rank sent since create() and that option
                             "halo.error_statistics" sampled. This and the following fields are 0 for other ranks */
    double   nmse;            /**< sum over the sampled rows x, decoded as x', of |x - x'|^2 / |x|^2 */
    double   expected;        /**< the theoretical expectation of nmse; see graft_codec_error */
    int64_t  rows_by_bits[6]; /**< rows_sent by bits of an element: [i] counts rows with 2^i bits */
    int32_t  code;            /**< GRAFT_CODEC_... of the last step that sent rows in 8 bits or fewer, or 0 */
    int32_t  rounding;        /**< GRAFT_ROUND_... of the same rows */
    int64_t  staleness;       /**< staleness of the rows that the last step used, in epochs; 0 without
                                    halo.staleness */
    int64_t  staleness_max;   /**< the largest staleness since create() */
    double   expected_error;  /**< the expected relative error of a step with the current adaptive bits, weighted, over
                                    the rows of all ranks, as halo.budget=error limits it; else 0 */
} graft_traffic_item;

/** Rows that one layer sent from the calling rank to another rank in one direction. */
typedef struct graft_traffic_pair {
    uint32_t size;
    int32_t  peer; /**< the receiving rank */
    int32_t  layer;
    int32_t  pass;  /**< GRAFT_PASS_..., as in graft_traffic_item */
    int64_t  rows;  /**< rows sent in the last step */
    int64_t  bytes; /**< bytes of the rows and their quantization parameters; frames of messages do not count */
    /** Rows that were also sent unquantized, because a row of the same message cannot be encoded (see halo.nonfinite).
     *  Their unquantized bytes count only in bytes_unquantized. */
    int64_t  rows_unquantized;
    int64_t
           sampled_rows; /**< sampled quantized rows since create(); this, nmse and expected as in graft_traffic_item */
    double nmse;
    double expected;
    int64_t bytes_unquantized; /**< bytes of rows sent unquantized in the last step */
} graft_traffic_pair;

/** The cache of rows of other ranks that a layer has in training by minibatch over ranks (options hec.* and aep.*),
 *  since create(), as of the end of the last epoch. The share of found rows is found / searched. The first item
 *  describes the cache of the features, which create() fetches once. With option history=full, in one process, each
 *  layer after the first layer that gathers has a cache with a row of every vertex: `rank` is 0, `searched` counts rows
 *  of vertices of other batches, and nothing is sent. */
typedef struct graft_cache_item {
    uint32_t size;
    int32_t  rank; /**< -1: all ranks */
    int32_t  layer;
    int32_t  reserved;
    int64_t  width;          /**< columns of a row */
    int64_t  capacity, used; /**< rows that fit, and rows in use */
    int64_t  searched;       /**< rows of the halo that batches needed */
    int64_t  found;          /**< searched rows that were in the cache and used */
    int64_t  expired;        /**< searched rows that were in the cache but too old */
    double   age;            /**< mean age of found rows, in batches; 0 if there are none */
    int64_t  age_max;
    int64_t  stored, evicted; /**< received rows, and rows evicted for them */
    int64_t
        candidates;    /**< rows that batches computed, which other ranks have in their halo and were not sent lately */
    int64_t rows_sent; /**< candidates that were sent */
    int64_t bytes_sent;       /**< bytes of the sent rows with their parameters, without frames of messages */
    int64_t bytes_if_fetched; /**< bytes of all searched rows as floats */
    int64_t rows_fetched;     /**< with hec.miss=fetch, rows that their owners computed in the batch that needed them */
    int64_t bytes_fetched;    /**< bytes received for fetched rows and sent for their gradients, as floats */
} graft_cache_item;

typedef struct graft_report_api {
    uint32_t size;
    uint32_t reserved;

    /** Read span number `index` of the last epoch(), evaluate() or predict() of a trainer with option `profile`.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last; ERR_STATE (no option `profile`).
     * [one-caller] Not collective. Memory: none. Since 0.1. */
    int32_t (*span)(graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error);

    /** Read item number `index` of the memory that the trainer has; option memory.limit bounds the sum. Memory of the
     * first run of kernels and dense modules is not included: at most 16 MB, with bf16 2 MB more a thread.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 0.1. */
    int32_t (*memory_item)(graft_trainer *trainer, int32_t index, graft_memory_item *item, graft_error *error);

    /** Report the messages that rank `rank` receives, or with -1 all ranks.
     * \return OK; ERR_ARG (null, no such rank); ERR_STATE (not over ranks). [one-caller] Not collective. Since 0.1. */
    int32_t (*traffic)(graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error);

    /** Report the rows that rank `rank`, or with -1 all ranks, exchanged in the last step in layer index/2, forward if
     * index is even, else backward.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last layer; ERR_STATE (not over ranks).
     * [one-caller] Not collective. Since 0.1. */
    int32_t (*traffic_item)(graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                            graft_error *error);

    /** Report the rows that this rank sent to rank `peer` in the last step, in the layer and direction of `index`.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last layer; ERR_STATE (not over ranks).
     * [one-caller] Not collective. Since 0.1. */
    int32_t (*traffic_pair)(graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                            graft_error *error);

    /** Report cache number `index` of minibatches over ranks, or with option history, of rank `rank` or -1: all.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last; ERR_STATE (there are none).
     * [one-caller] Not collective. Since 0.2. */
    int32_t (*cache_item)(graft_trainer *trainer, int32_t rank, int32_t index, graft_cache_item *item,
                          graft_error *error);
} graft_report_api;

GRAFT_EXTERN_C_END
#endif
