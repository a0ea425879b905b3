/* "graft.sample/1": minibatches of sampled neighbours, as blocks for any host.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_SAMPLE_H
#define GRAFT_SAMPLE_H

#include "graft_mxm.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_SAMPLE_ID "graft.sample/1"

/* A batch has seeds, vertices whose outputs a model of L layers is to make, and a block for each layer. The
 * destinations of block L-1 are the seeds, and its sources also include sampled in-neighbours of the seeds; the sources
 * of block l are the destinations of block l-1 (Hamilton, Ying and Leskovec 2017, algorithm 2). The vertices of a batch
 * are numbered in the order in which they are found, so the destinations of each block are the first of its sources:
 *
 *     vertex[0 .. n_dst-1] of block l are its destinations, vertex[0 .. n_src-1] its sources; n_src of block l is n_dst
 *     of block l-1; the seeds are vertex[0 .. n_dst-1] of block L-1
 *
 * Options, read by create() unless stated otherwise:
 *
 *     batch_size      seeds of a batch; 0: all seeds in one batch
 *     sampler         neighbour: as above, with fanout, sample.weights and drop_last: fanout different entries of the
 *                     row, or all if it has no more. Weighted entries are drawn one after the other among the remaining
 *                     ones (Efraimidis and Spirakis 2006). neighbour:replace: fanout draws of entries, which may be the
 *                     same, if the row has any entry to draw. ladies: the sources of a block are drawn for the whole
 *                     block, with fanout and drop_last. cluster, saint: a batch is a subgraph
 *     layers, fanout  in-neighbours that a destination gets in each layer, the first number for the first layer, which
 *                     reads the features; one number is for all layers. -1: all in-neighbours. With sampler=ladies:
 *                     vertices that are drawn for a layer
 *     sample.weights  which neighbours are drawn. uniform: each entry of a row is as likely as the others. edge: in
 *                     proportion to its value, which must not be negative; an entry of value 0 is never drawn. degree:
 *                     in proportion to the number of entries in the row of the neighbour
 *     sample.ahead    batches that next() makes at once, one on each thread; 0: as many as threads. 1: all threads work
 *                     on one batch
 *     drop_last       a batch of fewer than batch_size seeds at the end of an epoch is left out
 *     history         graft.train/1 only. full: batches consist of all vertices, not only training vertices, and gather
 *                     from all in-neighbours, or from `fanout` in-neighbours if it is set. For vertices of other
 *                     batches, layers after the first layer that gathers read the rows last computed for them, as
 *                     constants (Fey et al. 2021, GNNAutoScale). The loss covers the training vertices of the batch; a
 *                     batch without training vertices makes no step. Tables with a row of each vertex and layer,
 *                     encoded by option hec.codec, are filled by an exact forward pass without dropout: before the
 *                     first batch, after update() and steps that are undone, and after state_set() unless it replaces
 *                     all tables. Tables are part of the state, see below. If a row has no code, epoch() returns
 *                     ERR_NONFINITE. With sampler=cluster a batch consists of parts, so that fewer of their neighbours
 *                     are in other batches. ERR_OPTION with drop_last, sampler=saint or ladies, or a list in
 *                     fanout; ERR_UNSUPPORTED over ranks
 *     seed            of draws and of the order of the seeds
 *
 * With batch_size the state of a trainer has four more items, of which this one (I64) identifies its batches:
 *
 *     progress.batches   [4] batches of an epoch, batch_size, ranks, and a checksum of the seeds in their order
 *
 * A state in the middle of an epoch ("progress.batch" is not 0) of other batches can be set, also in a trainer without
 * batches: the next epoch() begins the epoch again, and logs a warning. In a state of an older build, which does not
 * have this item, the batches count as the batches of the trainer.
 *
 * With option history the state of a trainer has three more kinds of arrays (I64), once the tables are filled. L is a
 * layer with a table, and n the number of vertices:
 *
 *     history.layout     [1] a checksum of graph, option order and codec
 *     history.L.batches  [n] the number of the batch that computed each row, counted from the beginning of the training
 *     history.L.rows     the n encoded rows without gaps, and zeros up to a multiple of 8 bytes
 *
 * If all these arrays are set between two epochs, the next epoch uses them, and training continues bitwise.
 * Otherwise the tables are filled again. state_set() returns ERR_FORMAT for another layout, and ERR_NOT_FOUND in a
 * trainer without tables; hosts may leave these arrays out. graft_model_api.apply() does not copy tables of another
 * layout, and logs a warning.
 *
 * Over ranks the state of a trainer with caches (graft_cache_item) has such arrays after each epoch; they differ
 * between ranks, and n is the number of rows of the cache:
 *
 *     caches.layout, caches.L.batches, caches.L.rows    as above
 *     caches.L.places    3 n numbers of 32 bits: vertex of each row, as an index in the halo of the rank (-1: none),
 *                        next older and next newer row
 *     caches.L.sent      [m] the batch that last sent a row (-1: none), for the m pairs of an owned vertex and a rank
 *                        that has the vertex in its halo, in the order of the vertices
 *
 * After an epoch that was cancelled, the state has no caches. Each rank reads and sets its own arrays, or saves and
 * loads a model of its own. If a rank does not set all of them, all ranks continue with empty caches. A file that rank
 * 0 loads for all ranks has the arrays of rank 0 only.
 *
 * With sampler=ladies (Zou et al. 2019) block l has all edges from its sources, which are its destinations and `fanout`
 * of their other in-neighbours. Vertex u is drawn by its importance q, the sum of 1 / degree(v)^2 over the edges from u
 * to destinations v: the fanout vertices with the smallest x / q are drawn, where x is uniform in (0, 1] (Duffield,
 * Lund and Thorup 2007). If t is the next value of x / q, the edges of u have weight 1 / min(1, q t); other edges have
 * 1. A sum over a row with these weights is an unbiased estimate of the sum over all edges of v. A trainer divides each
 * row by the sum of its weights, as the paper does, and then multiplies sums that are no means by the number of edges
 * of v.
 *
 * A subgraph has all edges of the graph between its vertices. Every block has all these edges, except for the last
 * block, which has the edges of the seeds only. Seeds are the first vertices. The vertices of a subgraph are:
 *
 *     cluster  several parts of a partition (Chiang et al. 2019) with `sampler=cluster:PARTS` parts (0: ten a batch) by
 *              METIS, or by streaming if METIS is missing or fails; explain() names the method. To continue an epoch in
 *              another process, the parts must be the same. Parts with seeds are shuffled and dealt evenly to
 *              ceil(n_seeds / batch_size) batches, at most one batch for each such part, so batch_size is the mean
 *              number of seeds
 *     saint    the vertices of random walks along in-edges (Zeng et al. 2020). With `sampler=saint:WALK:COVERAGE` they
 *              have WALK (2) steps. Each seed is a root once in an epoch; roots are dealt evenly to ceil(n_seeds /
 *              batch_size) batches. All seeds that walks find are seeds of the batch. create() samples the N batches of
 *              COVERAGE (20) epochs to estimate the normalisation: C_v batches contain vertex v, and C_e contain edge e
 *              to v. Then 1 / p_v = (N + 1) / (C_v + 1) and 1 / alpha_e = (C_v + 1) / (C_e + 1). A sum over a row with
 *              weights 1 / alpha_e is an unbiased estimate of the sum over all edges of v, and a sum over the seeds of
 *              a batch with weights 1 / p_v is an unbiased estimate of the sum over all seeds. Edges that no walk of
 *              this length can reach have no estimate
 *
 * The draws for a destination are a function of (seed, epoch, batch, layer, vertex), so batches are bitwise identical
 * for any number of threads, and in any order of calls. A vertex without in-neighbours is a destination without edges.
 */

/** A sampler: a graph, seeds, and batches made ahead. */
typedef struct graft_sampler graft_sampler;

/** A bipartite graph in CSR format. Valid until the next call of next(), sample(), begin() or destroy(). */
typedef struct graft_sample_block {
    uint32_t       size;
    uint32_t       reserved;
    int64_t        n_dst, n_src, n_edges;
    const int64_t *row_ptr; /**< [n_dst + 1] from 0 to n_edges */
    const int32_t *col_idx; /**< [n_edges] each in 0 .. n_src-1 */
    const int64_t *entry;   /**< [n_edges] the entry of the graph to which the edge belongs */
    const float   *weight;  /**< [n_edges] weights of sampler=ladies; 1 / alpha of saint and next(); else NULL */
} graft_sample_block;

/** A batch, valid as long as its blocks. */
typedef struct graft_sample_batch {
    uint32_t       size;
    int32_t        n_layers;
    int64_t        epoch, index; /**< the epoch, and the batch in it; index is -1 for sample() */
    int64_t        n_seeds;
    int64_t        n_vertices; /**< n_src of block 0 */
    int64_t        n_edges;    /**< edges of all blocks */
    const int64_t *vertex;     /**< [n_vertices] rows of the graph */
    const float   *weight;     /**< [n_vertices] 1 / p of sampler=saint and next(); else NULL. */
} graft_sample_batch;

/** Flag of sample(): all in-neighbours, instead of option `fanout`. */
enum { GRAFT_SAMPLE_ALL = 1u };

typedef struct graft_sample_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a sampler of a square matrix, whose row v has the in-neighbours of vertex v.
     *
     * \param[in]  graph    Borrowed until destroy(); it must not be destroyed before nor, with sample.weights=edge, be
     *                      given other values. At most 2^31 - 2 rows.
     * \param[in]  seeds    [n_seeds] different rows of the graph; copied. NULL with n_seeds 0: batches come from
     *                      sample() alone.
     * \param[out] sampler  Unchanged on failure.
     * \return OK; ERR_ARG (null; not square; more seeds than rows; a seed out of range or given twice, with its
     *         position); ERR_OPTION (a number of fan-outs other than 1 and `layers`; a batch larger than n_seeds, if
     *         there are seeds; sample.weights=edge of a graph without values, or with a negative one); ERR_STATE (graph
     *         is not a matrix of this context); ERR_UNSUPPORTED (more rows); ERR_IO (no file for METIS can be written);
     *         ERR_NOMEM; ERR_CANCELLED (graft_api.cancel(), while METIS runs or batches of saint are counted).
     * [one-caller] Not collective. Memory: 8 bytes a seed, and one bit a vertex during the call; with sampler=cluster
     * 12 a vertex and 8 a seed more, with saint 4 a vertex and 4 an entry of the graph. Each batch that exists at a
     * time takes 12 bytes an edge and 16 a vertex; each thread that makes a batch takes 4 bytes a vertex of the graph,
     * or, if that exceeds 16 MB, about 24 a vertex of the batch if this is less. Since 0.2. */
    int32_t (*create)(graft_context *context, graft_matrix *graph, const int64_t *seeds, int64_t n_seeds,
                      graft_sampler **sampler, graft_error *error);

    /** Begin an epoch: its seeds are in another order. create() begins epoch 0.
     *
     * \param[in]  epoch      At least 0.
     * \param[in]  first      The first batch that next() returns; a number above 0 continues an interrupted epoch.
     * \param[out] n_batches  The number of batches of the whole epoch; NULL is legal.
     * \return OK; ERR_ARG (a negative epoch; first is not in 0 .. n_batches); ERR_STATE (the graph was destroyed).
     * [one-caller] Not collective; it waits for calls of prefetch(). Memory: none. Since 0.2. */
    int32_t (*begin)(graft_sampler *sampler, int64_t epoch, int64_t first, int64_t *n_batches, graft_error *error);

    /** Return the next batch of the epoch, sampled by this call or by prefetch().
     * \return OK; ERR_NOT_FOUND (after the last); ERR_ARG (null); ERR_STATE (the graph was destroyed); ERR_NOMEM (the
     *         next call tries again).
     * [one-caller] [starts-openmp]. Not collective. Since 0.2. */
    int32_t (*next)(graft_sampler *sampler, graft_sample_batch *batch, graft_error *error);

    /** Sample one batch from given seed vertices, outside of the epoch: next() continues as if it had not been
     * called. With sampler=cluster the batch is the subgraph of the parts that have the seeds; with saint, of random
     * walks from the seeds. With GRAFT_SAMPLE_ALL option sampler has no effect.
     * \param[in] seeds  [n] different rows of the graph, n > 0. Draws use batch -1 of the current epoch.
     * \param[in] flags  0 or GRAFT_SAMPLE_ALL.
     * \return OK; ERR_ARG (null, more seeds than rows, out of range, given twice, unknown flags); ERR_STATE; ERR_NOMEM.
     * [one-caller] [starts-openmp]. Not collective. Since 0.2. */
    int32_t (*sample)(graft_sampler *sampler, const int64_t *seeds, int64_t n, uint32_t flags,
                      graft_sample_batch *batch, graft_error *error);

    /** Return block `layer` of the batch that next() or sample() returned last.
     * \return OK; ERR_ARG (null, no such layer); ERR_STATE (there is no batch). [one-caller] Not collective. Memory:
     *         none. Since 0.2. */
    int32_t (*block)(graft_sampler *sampler, int32_t layer, graft_sample_block *block, graft_error *error);

    /** Make one batch ahead of next(), on the calling thread only, for idle threads of the host. At most sample.ahead
     * batches exist, including the batch in use.
     *
     * \param[out] made  1 if a batch was made, 0 if there was none to make; the call may be repeated after next().
     * \return OK; ERR_ARG (null); ERR_STATE (the graph was destroyed); ERR_NOMEM (next() tries again).
     * [any-thread], several at a time, also during any other call but destroy(). Not collective. Since 0.2. */
    int32_t (*prefetch)(graft_sampler *sampler, int32_t *made, graft_error *error);

    /** Describe the sampler in a few lines: batches, fan-outs, memory.
     * \param[out] text [capacity] terminated, truncated if too long. \return OK; ERR_ARG (null).
     * [one-caller] Not collective. Since 0.2. */
    int32_t (*explain)(graft_sampler *sampler, char *text, uint64_t capacity, graft_error *error);

    /** Free the sampler. NULL is legal. No call of prefetch() may run or follow. [one-caller] Not collective. Since
     * 0.2. */
    void (*destroy)(graft_sampler *sampler);
} graft_sample_api;

GRAFT_EXTERN_C_END
#endif
