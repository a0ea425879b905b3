/* Kinds of samplers: how a batch is made. To add one: a file with its row gr_sample_WORD, and its word in
 * GR_SAMPLER_MAP (sample/options.h).
 *
 * neighbour.c  in-neighbours drawn for each vertex     cluster.c  subgraphs of parts of a partition
 * ladies.c     vertices drawn for each layer           saint.c    subgraphs of random walks
 * draw.h       draws of entries of rows                batch.c    the edges of subgraphs
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "sample/draw.h"
#include "sample/options.h"
#include "sample/sample.h"

/** The definition of a batch. */
struct gr_batch_request {
    const struct gr_sampler_kind *kind;
    const void                   *state; /* state of the sampler, or NULL */
    const struct gr_draw_rule    *rule;
    int32_t                       n_layers;
    int64_t                       fanout[GR_SAMPLE_LAYERS_MAX];
    uint64_t                      seed;
    int64_t                       epoch, index; /* epoch < 0: a batch for estimates; index -1: seeds of the host */
    const int64_t                *seeds;
    int64_t                       n_seeds;
    const struct gr_extension    *extension; /* extends layers by what other ranks need; or NULL */
};

/** A batch that is being made. Its first vertices are the seeds of the request. */
struct gr_making {
    const graft_context           *context;
    const struct gr_batch_request *request;
    struct gr_batch               *batch;
    struct gr_sample_work         *work;
};

/** The arguments of the creation of the state of a sampler; all except `seeds` live as long as the sampler. */
struct gr_kind_source {
    graft_context   *context;
    struct gr_pool  *pool;  /* owns the state */
    const graft_csr *graph; /* a square matrix */
    const int64_t   *seeds; /* different vertices */
    int64_t          n_seeds;
    uint64_t         seed;
    int64_t          n_batches; /* what option batch_size and the number of seeds give; at least 1 */
    const void      *like;      /* a state of this kind for the same graph, whose partition may be copied; or NULL */
};

/** A kind of sampler. Functions that a kind does not need are NULL. */
struct gr_sampler_kind {
    const char *word;         /* value of option sampler */
    int         draws;        /* whether it reads option sample.weights */
    int         has_fanout;   /* whether it reads option fanout */
    int         deals_evenly; /* sizes of batches differ by at most one seed; else all but the last have batch_size
                               * seeds, and option drop_last may leave out the last */
    const char *one_process;  /* why it needs a graph in one process; NULL: ranks can sample in their parts */
    const char *no_history;   /* why option history cannot be set; NULL: it can */

    /* Make the state of the sampler, and lower *n_batches if there are fewer batches. */
    int32_t (*create)(const struct gr_kind_source *source, void **state, int64_t *n_batches, graft_error *error);
    /* Put the seeds into the order of an epoch; batch b has seeds first[b] to first[b + 1] - 1. NULL: they are
     * shuffled and dealt. */
    void (*order)(const void *state, uint64_t seed, int64_t epoch, int64_t *seeds, int64_t *first);
    /* Make the layers, from the last to the first. \return OK; ERR_NOMEM. */
    int32_t (*make)(const struct gr_making *making, graft_error *error);
    void (*explain)(const struct gr_batch_request *request, struct gr_text *text);
};

#define GR_SAMPLER_ROW(constant, word, numbers) extern const struct gr_sampler_kind gr_sample_##word;
GR_SAMPLER_MAP(GR_SAMPLER_ROW)
#undef GR_SAMPLER_ROW

/** Make a batch with up to work->threads threads. \return OK; ERR_ARG (a seed out of range or given twice); ERR_NOMEM:
 *  then the batch is empty. */
int32_t gr_sample_batch_make(const graft_context *context, struct gr_batch *batch, struct gr_sample_work *work,
                             const struct gr_batch_request *request, graft_error *error);

/** reserve() reserves memory for `most` more vertices; add() adds a vertex, unless the batch has it already. */
int32_t gr_sample_making_reserve(const struct gr_making *making, int64_t most, graft_error *error);
void    gr_sample_making_add(const struct gr_making *making, int64_t v);
/** Allocate memory for `rows` rows of a layer, for its n_edges edges, and for their weights. \return OK; ERR_NOMEM. */
int32_t gr_sample_making_reserve_rows(const struct gr_making *making, struct gr_sampled_layer *layer, int64_t rows,
                                      graft_error *error);
int32_t gr_sample_making_reserve_edges(const struct gr_making *making, struct gr_sampled_layer *layer,
                                       graft_error *error);
int32_t gr_sample_making_reserve_weights(const struct gr_making *making, struct gr_sampled_layer *layer,
                                         graft_error *error);
/** Grow an array to at least `wanted` elements of `bytes` bytes; the first `kept` elements stay. \return OK;
 *  ERR_NOMEM. */
int32_t gr_sample_grow(const graft_context *context, void **array, int64_t *capacity, int64_t wanted, int64_t kept,
                       uint64_t bytes, graft_error *error);
/** Grow the arrays of `space` to at least `count` elements. \return OK; ERR_NOMEM. */
int32_t gr_sample_grow_space(const graft_context *context, struct gr_draw_space *space, int64_t count,
                             graft_error *error);

/** The key of the random draws of a layer. */
uint64_t gr_sample_making_key(const struct gr_making *making, int32_t layer);
/** Make layer l, whose destinations are all vertices that the batch has, with `fanout` in-neighbours of each. */
int32_t  gr_sample_making_draw_layer(const struct gr_making *making, int32_t l, int64_t fanout, graft_error *error);
/** Make the only layer of a subgraph: all edges between the vertices that the batch has. */
int32_t  gr_sample_making_induce(const struct gr_making *making, graft_error *error);

/** Shuffle by Fisher and Yates, with 64 random bits for each value, so that the bias is below n / 2^64. */
void                  gr_sample_shuffle(int64_t *values, int64_t n, uint64_t key);
/** The first seed of batch b, if n seeds are dealt evenly. */
static inline int64_t gr_sample_deal(int64_t n, int64_t n_batches, int64_t b)
{
    return n_batches > 0 ? (int64_t)((__int128)n * b / n_batches) : 0;
}
