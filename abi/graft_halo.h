/* "graft.halo/1": the halo of a distributed graph, for hosts that compute with rows of neighbours themselves. A halo
 * has one row for each vertex of another rank from which the rank's own vertices gather.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_HALO_H
#define GRAFT_HALO_H

#include "graft_graph.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_HALO_ID "graft.halo/1"

typedef struct graft_halo graft_halo;

/** The halo of one rank. All arrays are owned by the halo. Rows of the halo are sorted by the owner of their vertex,
 *  and then by vertex. */
typedef struct graft_halo_info {
    uint32_t       size;
    int32_t        n_neighbours; /**< ranks to which it sends rows, or from which it receives rows */
    int64_t        n_owned;      /**< vertices that it owns */
    int64_t        n_halo;       /**< rows of its halo */
    int64_t        n_sent;       /**< rows that it sends for the halos of other ranks */
    const int64_t *vertex;       /**< [n_halo] the vertex of each row of the halo */
    const int32_t *neighbour;    /**< [n_neighbours] these ranks, ascending */
    const int64_t
        *receive_start;        /**< [n_neighbours + 1] rows receive_start[i] to receive_start[i + 1] - 1 of the halo are
                                       owned by neighbour[i] */
    const int64_t *send_start; /**< [n_neighbours + 1] sent rows send_start[i] to [i + 1] - 1 go to neighbour[i] */
    const int32_t *send_row;   /**< [n_sent] the index of each sent row among the owned vertices */
    int64_t        bytes;      /**< memory of the halo, without the graph */
    int64_t        passes;     /**< completed passes */
} graft_halo_info;

enum {
    GRAFT_HALO_SUM = 1u,  /**< send rows of the halo to their owners, which add them */
    GRAFT_HALO_EXACT = 2u /**< send rows unquantized whatever option "halo.codec" says */
};

/** One pass; see begin(). Flags, type and width are the same on all ranks: frames carry them, and a difference ends in
 *  ERR_PEER. The structs are borrowed for the call, and the elements that a pass writes until end(). */
typedef struct graft_halo_args {
    uint32_t           size;
    uint32_t           flags;   /**< GRAFT_HALO_... */
    int32_t            threads; /**< at most this many; 0: option "threads" */
    uint32_t           reserved;
    const graft_dense *owned; /**< [n_owned x width] GRAFT_F32 or GRAFT_F64, with any stride */
    const graft_dense *halo;  /**< [n_halo x width] of the same type; must not overlap `owned`. Both may be parts of one
                                   array, in which the rows of the halo follow the owned ones */
} graft_halo_args;

typedef struct graft_halo_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a halo: each rank tells the others which of their rows it needs. A graph may have several halos, whose
     *  passes may overlap in time.
     *
     * \param[in]  graph  Stays allocated as long as its halos, even if it is destroyed before them.
     * \param[out] halo   Unchanged on failure.
     * \return OK; ERR_ARG (null; ranks that disagree on options of messages); ERR_NOMEM; ERR_PEER. See graft_graph_api
     *         for the agreement of ranks.
     * [one-caller] Collective. Memory: 8 bytes for each row of the halo, 4 for each sent row, about 700 for each rank,
     * and 1 kB log2(ranks), rounded up; during the call 12 for each sent row more. Since 0.1. */
    int32_t (*create)(graft_graph *graph, graft_halo **halo, graft_error *error);

    /** Report sizes and orders; they do not change while the halo exists, except for `bytes` and `passes`.
     * \return OK; ERR_ARG (null). [one-caller] Not collective. Memory: none. Since 0.1. */
    int32_t (*info)(const graft_halo *halo, graft_halo_info *info, graft_error *error);

    /** Return the rows of this rank as one matrix, [n_owned x n_owned + n_halo]: column j < n_owned is owned vertex j,
     *  and column n_owned + k is row k of the halo. A row has its entries in owned columns first, and then its entries
     *  in columns of the halo, each in the order of the slice. index_type is GRAFT_I32; values are the values of the
     *  graph, if it has any; graft_graph_api.update_values() writes new ones to the same array. For
     *  graft_mxm_api.matrix_create(), whose matrix must be destroyed before the halo.
     *
     * \param[out] matrix  A struct with its size set; its arrays are owned by the halo. Unchanged on failure.
     * \return OK; ERR_ARG (null); ERR_UNSUPPORTED (n_owned + n_halo exceeds 2147483647); ERR_NOMEM.
     * [one-caller] Not collective. Memory: at the first call, 8 bytes for each owned vertex, and 4 and a value for each
     * edge. Since 0.1. */
    int32_t (*matrix)(graft_halo *halo, graft_csr *matrix, graft_error *error);

    /** Begin a pass:
     *
     *      flags 0          halo[k]  = owned[v] of the rank that owns the vertex v of row k
     *      GRAFT_HALO_SUM   owned[v] = owned[v] + the sum of halo[k] of all ranks that have v in their halo
     *
     *  begin() reads and sends rows, which may change afterwards; end() writes the received rows. Between the two calls
     *  the host may do other work, and passes of other halos and plans. Options "halo.codec", "halo.rounding" and
     *  "halo.nonfinite" apply as they were at create() (SUM: "halo.codec" of the backward pass); adaptive rows have 8
     *  bits. Option "halo.staleness" does not apply.
     *
     *  A pass that one rank refuses is refused on all. With several ranks the begin() of this rank returns OK, so that
     *  no rank waits for another before end(), and the end() of all ranks returns the status, with the sentence and the
     *  rank of the lowest rank that has refused it. No row is written. The halo stays usable, and a refused pass
     *  changes nothing.
     *
     * \return OK; with several ranks returned by end(): ERR_ARG (null, unknown flags, shapes, types, strides,
     *         overlap), ERR_NONFINITE (with halo.nonfinite=refuse, a row that cannot be encoded); ERR_STATE (a pass
     *         has begun and not ended), of this rank; it counts as a pass, and if other ranks make one pass less, the
     *         next is ERR_PEER. ERR_PEER is the same on all ranks, also if memory fails (with one rank: ERR_NOMEM).
     * [one-caller] [starts-openmp]. Collective, in the same order on all ranks for each halo. Memory: buffers for the
     * rows of both sides, kept for the next pass; none if they are large enough. Since 0.1. */
    int32_t (*begin)(graft_halo *halo, const graft_halo_args *args, graft_error *error);

    /** Let messages of the pass progress, without waiting. Nothing depends on this call; it helps transports that do
     *  nothing on their own while the host works. A host that only waits calls end(), which has a deadline.
     * \param[out] arrived  1: end() will not wait, unless the pass is refused; 0: messages are missing.
     * \return OK; ERR_ARG (null); ERR_STATE (no pass has begun); ERR_PEER, which end() then returns too.
     * [one-caller] Not collective. Memory: none. Cost: a test of each message that is missing. Since 0.1. */
    int32_t (*progress)(graft_halo *halo, int32_t *arrived, graft_error *error);

    /** End the pass: wait for messages, check the frame and CRC32C of each, and write the rows.
     *
     *  Numerics: without quantization received rows are bitwise identical to the sent ones. Sums add to each owned row
     *  the rows of other ranks in the order of ranks: bitwise identical in every run and for any number of threads.
     *
     * \return OK; why a rank has refused the pass in begin(), the same on all ranks; ERR_STATE (no pass has
     *         begun), of this rank; ERR_PEER (the message names rank and cause; also if a rank has skipped a pass).
     *         After a failure nothing was written.
     * [one-caller] [starts-openmp]. Collective: it returns when all ranks have begun. Memory: none. Since 0.1. */
    int32_t (*end)(graft_halo *halo, graft_error *error);

    /** Free the halo. NULL is legal. Sends nothing. Between begin() and end() it makes the transport unusable on all
     *  ranks. [one-caller] Not collective. Since 0.1. */
    void (*destroy)(graft_halo *halo);
} graft_halo_api;

GRAFT_EXTERN_C_END
#endif
