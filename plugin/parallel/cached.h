/* Strategy `cached`: a step on a batch that reads rows of earlier batches.
 *
 * Over ranks (Md Vasimuddin et al. 2022, "DistGNN-MB", algorithm 2) a rank samples among the vertices that it owns, the
 * solid vertices, and the vertices of its halo. It has the features of the halo, so the first layer that gathers is
 * exact; a later layer reads the rows of the halo from a cache of rows that their owners computed in earlier batches.
 * Cached rows are constants: no gradient goes back to their owners.
 *
 * In each batch a rank sends the rows of solid vertices that others have in their halo, at most option aep.rows to each
 * rank and layer; they are stored DELAY batches later (option aep.rows=ROWS:DELAY), or at the end of the epoch. A row
 * is sent to the same rank again when half of its life has passed. A vertex has three indices: in the whole graph; on
 * its rank, where owned vertices precede the halo; and in a batch.
 *
 * With hec.miss=fetch a row missing from the cache is computed by its owner in the same batch, and its gradient is sent
 * to the owner. If caches are empty, a batch over ranks then equals one batch of all their seeds in one process. With
 * hec.miss=fetch_keep the cache has the row from the next batch on.
 *
 * In one process (Fey et al. 2021, "GNNAutoScale") the caches have rows of all vertices. Each batch stores the rows of
 * its own vertices, and reads the rows of their other neighbours. There is no comm, and no message.
 *
 * cached.c         a step                                  push.c           rows in transit between batches
 * cached_memory.c  from creation to destruction            fetch.c          rows that owners compute
 * cached_batch.c   vertices and edges of a batch           cached_block.c   blocks of a batch
 * cached_history.c batches in one process                  cached_report.c  counts of all ranks
 * cached_state.c   rows of earlier batches in the state
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/sort.h"
#include "comm/route.h"
#include "graft_report.h"
#include "halo/links.h"
#include "halo/messages.h"
#include "model/product.h"
#include "parallel/batches.h"
#include "sample/cache.h"

/** The rows of a layer that one batch sends and receives. */
struct gr_push {
    struct gr_messages messages;
    int64_t            batch; /* number of the batch that sends these rows */
    int                is_sent, in_flight;
    int64_t           *start[GR_SIDES]; /* [n_ranks + 1] first row to, or from, each rank */
    int32_t           *row;             /* [rows sent] index of each row among the sources of the block */
    int32_t           *vertex;          /* [rows received] index of each vertex in the halo */
};

/** Rows and bytes that this rank has sent since the trainer was created. */
struct gr_push_counts {
    int64_t candidates, rows, bytes; /* candidates: rows that could have been sent */
};

/** With hec.miss=fetch, the rows of a layer that the owners of halo vertices compute for the current batch. */
struct gr_fetch {
    int64_t         count;  /* number of vertices whose rows this rank fetches */
    int64_t        *vertex; /* [count] their indices in the halo, ascending */
    int32_t        *place;  /* [count] their indices among the vertices of their owners */
    struct gr_route route;  /* route of `place` to the owners, which return rows */
    int32_t        *row;    /* [requests received] index of each row among the sources of the block */
};

/** With hec.miss=fetch_keep, the rows that the last batch has fetched. The next batch stores them in the cache, so that
 *  a repeated batch finds the same rows. */
struct gr_fetched {
    int64_t  batch, count, capacity;
    int32_t *vertex; /* [capacity] index of each vertex in the halo */
    float   *rows;   /* [capacity x width] their rows */
};

struct gr_cached_layer {
    int32_t               index;
    int64_t               width; /* columns of cached rows */
    struct gr_cache       cache;
    struct gr_push       *push; /* [delay] batch b uses element b % delay */
    struct gr_push_counts sent;
    int64_t              *last_sent; /* [links] the batch that sent each row to a rank, in the order of to_rank */

    /* Fields of the current batch: */
    int64_t        n_rows; /* number of cached rows that the block reads */
    const int32_t *row;    /* [n_rows] their indices in the cache */
    graft_matrix  *halo;   /* [n_dst x (n_rows + fetched rows)] edges from these rows, for sums; or NULL */
    float         *rows;   /* [(n_rows + fetched rows) x width] copies of these rows, for sums */

    /* Fields of hec.miss=fetch: */
    struct gr_fetch   fetch;
    struct gr_fetched fetched;
    graft_matrix     *halo_transpose; /* [fetched rows x n_dst] edges from fetched rows, for sums; or NULL */
    int64_t           fetched_rows, fetched_bytes; /* sums since create(); bytes include gradients */
};

/** With hec.miss=fetch: rows that this rank computes for others, and their gradients. */
struct gr_fetching {
    int                 is_on, keeps; /* keeps: option hec.miss=fetch_keep */
    struct gr_extension extension;
    float              *asked; /* [most rows sent x width] rows of the current batch, or their gradients */
    struct gr_cached_layer
          *pending;  /* the layer whose gradients in `asked` the end of an exchange adds to `gradient`; or NULL */
    float *gradient; /* [sources x width] gradients of this rank's rows */
};

/** The vertices of the current batch. In one process "owned" are the seeds, and place[] is the vertex. */
struct gr_batch_vertices {
    int64_t        n_owned, n_halo; /* in one process: seeds, and other vertices */
    const int64_t *vertex;          /* [n_owned + n_halo] indices on this rank, owned vertices first */
    const int32_t *place;           /* [sampled vertices] index among the owned, or ~index among the halo vertices */
    int64_t        owned[GR_LAYERS_MAX]; /* number of owned sources of each layer */
    int64_t        halo[GR_LAYERS_MAX];  /* number of halo sources of each layer */
};

/** A row that may be sent to a rank that has its vertex in its halo. */
struct gr_candidate {
    double  key;   /* random key of a draw by degree */
    int64_t link;  /* index of the pair of vertex and rank */
    int32_t row;   /* index among the sources of the block */
    int32_t place; /* index of the vertex among the vertices of this rank in the halo of that rank */
};

/** Over ranks, the choice of the rows that batches send. */
struct gr_pushing {
    int64_t delay, rows_most; /* option aep.rows */
    int64_t renewed_after;    /* batches after which a row is sent again */
    int64_t most[GR_SIDES];   /* most rows of one push */

    /* Links: the ranks that have an owned vertex in their halo, and its index there among the vertices of this rank. */
    int64_t *to_start; /* [owned + 1] first link of each vertex */
    int32_t *to_rank, *to_place;

    struct gr_candidate *candidate;  /* [links] candidates of one layer, sorted by rank */
    int64_t             *at, *begin; /* [n_ranks + 1] first candidate of each rank; and scratch memory */
};

/** Over ranks, the announcement of sent rows to their receivers: for each layer the number of rows, and then the index
 *  of each in the halo of the receiver. */
struct gr_push_items {
    struct gr_route route;          /* numbers of items; none if a rank gets no rows */
    int32_t        *item[GR_SIDES]; /* items sorted by rank */
    int32_t        *place;          /* [layers with caches x most sent] gr_candidate.place of each sent row */
};

/** Counts for reports. */
struct gr_cached_counts {
    graft_cache_item *all;           /* [n_ranks x n_layers] counts at the end of the last epoch; `age` is a sum */
    graft_cache_item *mine;          /* [n_layers] counts of this rank */
    int64_t           features_read; /* number of halo features that batches have read */
};

struct gr_cached {
    struct gr_batch_strategy base;
    struct gr_batch_wish     wish;
    struct gr_strategy      *ranks; /* strategy of evaluations, which also sums and agrees over ranks */
    graft_context           *context;
    struct gr_comm          *comm; /* comm, links and graph are those of `wish` */
    const struct gr_links   *links;
    const graft_csr         *graph;
    struct gr_cache_life     life;
    int32_t                  first, n_layers; /* layers first .. n_layers-1 have caches */
    struct gr_cached_layer  *layer;           /* [n_layers] */
    int64_t                  batch;           /* number of the current batch */
    struct gr_batch_vertices now;             /* vertices of the current batch */
    struct gr_fetching       fetching;
    struct gr_pushing        push;
    struct gr_push_items     items;
    struct gr_cached_counts  counts;
    int64_t                  layout; /* checksum that identifies the tables of the state */
    float                   *buffer; /* [larger of both push.most x widest] sent or received rows */
    int64_t                  widest;
};

/** Return the number of rows of this rank in the halo of rank q; or of rank q in the halo of this rank. */
static inline int64_t gr_rows_sent(const struct gr_cached *cached, int32_t q)
{
    return cached->links->send_start[q + 1] - cached->links->send_start[q];
}

static inline int64_t gr_rows_of_halo(const struct gr_cached *cached, int32_t q)
{
    return cached->links->halo->start[q + 1] - cached->links->halo->start[q];
}

static inline struct gr_cached *gr_cached_of(void *strategy)
{
    return strategy;
}

/** Set the indices and widths of the layers, whose array exists. */
void gr_parallel_cached_set_widths(struct gr_cached *cached);
/** The functions gr_strategy_making.destroy() and gr_strategy_ops.forget(). forget() also discards rows in transit. */
void gr_parallel_cached_destroy(struct gr_strategy *strategy);
void gr_parallel_cached_forget(struct gr_strategy *strategy, int undoes);

/** Functions of gr_batch_ops over ranks. post() chooses the rows that the batch sends, announces them to the receivers,
 *  and posts the receives. */
int32_t gr_parallel_cached_begin(struct gr_batch_strategy *strategy, int64_t number, graft_error *error);
int32_t gr_parallel_cached_number(struct gr_batch_strategy *strategy, const struct gr_batch *batch,
                                  const int64_t **vertex, int64_t *n_owned, graft_error *error);
int32_t gr_parallel_cached_layer(struct gr_batch_strategy *strategy, const struct gr_batch *batch, int32_t l,
                                 struct gr_batch_layer *layer, graft_error *error);
int32_t gr_parallel_cached_post(struct gr_batch_strategy *strategy, graft_error *error);
int32_t gr_parallel_cached_settle(struct gr_batch_strategy *strategy, graft_error *error);

/** In one process: allocate the tables; and store the rows of the vertices of the current batch. */
int32_t gr_parallel_history_init(struct gr_cached *cached, graft_error *error);
void    gr_parallel_history_store(struct gr_cached *cached, struct gr_run *run, struct gr_cached_layer *layer,
                                  const graft_dense *x);

/** Functions of gr_batch_ops over ranks and in one process. */
int32_t gr_parallel_cached_block(struct gr_batch_strategy *strategy, int32_t l, const struct gr_batch_layer *layer,
                                 graft_csr *csr, struct gr_block *block, graft_error *error);
void    gr_parallel_cached_end(struct gr_batch_strategy *strategy);
int32_t gr_parallel_cached_check_table(const struct gr_batch_strategy *strategy, int32_t index, const int64_t *data,
                                       graft_error *error);
void    gr_parallel_cached_adopt(struct gr_batch_strategy *strategy, int64_t now);

/** List the tables of the state. \return OK; ERR_NOMEM. */
int32_t gr_parallel_cached_list_tables(struct gr_cached *cached, graft_error *error);

/** Send the rows of a layer. Only the first call in a batch sends. \return OK; ERR_PEER. */
int32_t gr_parallel_cached_push(struct gr_cached *cached, struct gr_run *run, struct gr_cached_layer *layer,
                                const graft_dense *x, graft_error *error);
/** Copy a row of floats or bfloat16 as floats. */
void    gr_parallel_cached_copy_row(const graft_dense *x, int64_t row, float *to);
/** Copy rows row[] of x to to[count x columns], and encode them for `messages`, unless it is NULL. */
void    gr_parallel_cached_copy_rows(const struct gr_run *run, const graft_dense *x, const int32_t *row, int64_t count,
                                     struct gr_messages *messages, float *to);

/** The extension of the sampler: request missing rows of layer l from their owners, and add requested vertices to the
 *  batch. Collective. */
int32_t gr_parallel_fetch_extend(void *cached, const struct gr_making *made, int32_t l, int32_t rc, graft_error *error);
/** Find the rows that this rank sends, after the vertices of a batch have indices, and allocate memory for them.
 *  \return OK; ERR_NOMEM. */
int32_t gr_parallel_fetch_number(struct gr_cached *cached, graft_error *error);
/** Store the rows that the last batch has fetched in the cache, unless that batch is now repeated. */
void    gr_parallel_fetch_store(struct gr_cached *cached, struct gr_cached_layer *layer, int threads);
void    gr_parallel_fetched_fini(struct gr_cached *cached, struct gr_fetched *fetched);
/** Send requested rows of x, the rows of this rank, and receive to[fetch.count x width] from the owners. Collective.
 *  \return OK; ERR_PEER. */
int32_t gr_parallel_fetch_rows(struct gr_cached *cached, struct gr_cached_layer *layer, const graft_dense *x, float *to,
                               graft_error *error);
/** return(): send gradients[fetch.count x width] to the owners. add(): add received gradients, times scale[row] or 1,
 *  to the rows of this rank, to[n_src x width]. return() is collective. \return OK; ERR_PEER. */
int32_t gr_parallel_fetch_return(struct gr_cached *cached, struct gr_cached_layer *layer, const float *gradients,
                                 graft_error *error);
void    gr_parallel_fetch_add(const struct gr_cached *cached, const struct gr_cached_layer *layer, const float *scale,
                              float *to);

/** Let messages progress. */
void gr_parallel_cached_poll(void *cached);

/** Gather the counts of all ranks. Collective. \return OK; ERR_PEER. */
int32_t gr_parallel_cached_gather(struct gr_batch_strategy *strategy, graft_error *error);
/** Return item `index` of the caches, of one rank or with -1 of all ranks. Over ranks the first item is the features.
 *  \return OK; ERR_ARG; ERR_NOT_FOUND. */
int32_t gr_parallel_cached_item(const struct gr_strategy *strategy, int32_t rank, int32_t index, graft_cache_item *item,
                                graft_error *error);

/** Bits of an element, indexed by enum gr_cache_codec. */
extern const int32_t gr_cache_bits[];

extern const struct gr_strategy_ops gr_cached_ops;
extern const struct gr_batch_ops    gr_cached_batches, gr_history_batches;
