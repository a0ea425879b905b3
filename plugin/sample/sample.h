/* Minibatches: blocks of sampled neighbours (Hamilton, Ying and Leskovec 2017, algorithm 2), or subgraphs. These are
 * the declarations for other rooms; kind.h has the kinds of samplers.
 *
 * sampler.c  the batches of an epoch, some of them made ahead     cache.h      historical embeddings
 * batch.c    one batch and its memory                             numbering.c  numbers of vertices in a batch
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/text.h"
#include "graft_sample.h"
#include "graph/csr.h"
#include "sample/numbering.h"
#include "sample/options.h"

enum { GR_SAMPLE_LAYERS_MAX = 64, GR_ALL_NEIGHBOURS = -1 };

struct gr_making;

/** Adds destinations to the layer below, which other ranks need; see gr_sample_making_add(). It is collective: each
 *  rank calls it once for each layer above the first, with its status, an earlier error or GRAFT_OK. */
struct gr_extension {
    int32_t (*extend)(void *arg, const struct gr_making *making, int32_t layer, int32_t rc, graft_error *error);
    void   *arg;
    int32_t first; /* layers above this one are extended */
};

struct gr_sampled_layer {
    int64_t  n_dst, n_src, n_edges;
    int64_t *row_ptr;
    int32_t *col;
    int64_t *entry;
    float   *weight;               /* weights of the edges; see gr_batch */
    int64_t  rows, edges, weights; /* capacities of the arrays */
};

/** The blocks of a batch, in memory that grows to the size of the largest batch. */
struct gr_batch {
    int64_t                 epoch, index;
    int32_t                 n_layers;
    int64_t                 n_seeds, n_vertices, capacity;
    int64_t                *vertex;
    struct gr_sampled_layer layers[GR_SAMPLE_LAYERS_MAX];

    int     is_subgraph;  /* layers[0] has the edges of all layers */
    int     weighs_edges; /* a sum of a row with the weights of its edges estimates the sum over all its neighbours */
    int     normalizes;   /* that sum is to be scaled as if the weights added up to the number of neighbours */
    int     weighs_seeds; /* a sum over seeds with their weights estimates the sum over all seeds of the sampler */
    float  *weight;       /* [n_vertices] weights of seeds */
    int64_t weights;      /* capacity of `weight` */
};

/** Layer l of a batch, without weights if the batch has none. The last layer of a subgraph has the rows of the seeds,
 *  which are its first rows. */
static inline struct gr_sampled_layer gr_sample_batch_layer(const struct gr_batch *batch, int32_t l)
{
    struct gr_sampled_layer layer = batch->layers[batch->is_subgraph ? 0 : l];

    if (!batch->weighs_edges) layer.weight = NULL;
    if (batch->is_subgraph && l == batch->n_layers - 1) {
        layer.n_dst = batch->n_seeds;
        layer.n_edges = layer.row_ptr[layer.n_dst];
    }
    return layer;
}

void    gr_sample_batch_fini(const graft_context *context, struct gr_batch *batch);
int64_t gr_sample_batch_bytes(const struct gr_batch *batch);
/** The number of edges of all blocks. */
int64_t gr_sample_batch_edges(const struct gr_batch *batch);

/** The work space for making a batch, besides the memory of the batch. */
struct gr_sample_work {
    struct gr_numbering   numbering;
    struct gr_draw_space *space; /* [threads] space of each thread */
    int                   threads;
    int64_t              *first; /* [chunks] new vertices in each chunk of edges */
    int64_t               chunks;
};

int32_t gr_sample_work_init(const graft_context *context, struct gr_sample_work *work, int64_t n, int threads,
                            graft_error *error);
void    gr_sample_work_fini(const graft_context *context, struct gr_sample_work *work);
int64_t gr_sample_work_bytes(const struct gr_sample_work *work);

/** Make a batch of one layer: the seeds, and all their in-neighbours. \return As gr_sample_batch_make(). */
int32_t gr_sample_all(const graft_context *context, struct gr_batch *batch, struct gr_sample_work *work,
                      const graft_csr *graph, const int64_t *seeds, int64_t n_seeds, graft_error *error);

struct gr_sampler_kind;

/** The kind of option sampler. */
const struct gr_sampler_kind *gr_sample_kind(const graft_context *context);

/** Whether option sampler is neighbour:replace, with which an edge may be drawn more than once. */
int gr_sample_replaces(const graft_context *context);

/** The arguments of the creation of `sampler`. */
struct gr_sampler_source {
    const graft_csr *graph; /* in a trainer it may have more columns than rows: vertices without in-neighbours */
    const int64_t   *seeds;
    int64_t          n_seeds;
    int32_t          n_layers;
    const int64_t   *fanout;    /* [n_layers] fanout of each layer; NULL: that of option fanout, for a square graph */
    int64_t          n_batches; /* number of batches, with sizes that differ by at most one; 0: option batch_size */
    int32_t          rank;      /* ranks shuffle their seeds differently */
    const int64_t   *degree;    /* degree, name and shift as in gr_draw_rule */
    const int64_t   *name;
    const int32_t   *shift;
    int              neighbours; /* batches have drawn neighbours, whatever option sampler is */
    int              by_parts;   /* the kind of option sampler deals the seeds, also with `neighbours` */

    const graft_sampler       *like; /* a sampler of the same graph and options with a partition to copy; or NULL */
    const struct gr_extension *extension; /* NULL: none. Otherwise next() is collective, and makes single batches */
};
/** These functions do what those of graft_sample_api do. The caller keeps `graph`. */
int32_t gr_sampler_create(graft_context *context, const struct gr_sampler_source *source, graft_sampler **sampler,
                          graft_error *error);
int32_t gr_sampler_begin(graft_sampler *sampler, int64_t epoch, int64_t first, graft_error *error);
int64_t gr_sampler_batches(const graft_sampler *sampler);
/** The seeds of the epoch in their order, and the index of the first seed of a batch; for the batch after the last, the
 *  number of seeds. */
const int64_t *gr_sampler_seeds(const graft_sampler *sampler);
int64_t        gr_sampler_first_seed(const graft_sampler *sampler, int64_t batch);
int64_t        gr_sampler_bytes(graft_sampler *sampler);
int32_t        gr_sampler_next(graft_sampler *sampler, graft_error *error);
/** Allocate the work space of the team, for the current number of threads, so that next() can begin. \return OK;
 *  ERR_NOMEM. */
int32_t        gr_sampler_prepare(graft_sampler *sampler, graft_error *error);
int32_t        gr_sampler_sample(graft_sampler *sampler, const int64_t *seeds, int64_t n, int all, graft_error *error);
int32_t        gr_sampler_prefetch(graft_sampler *sampler, int32_t *made, graft_error *error);
/** The last batch of next() or sample(), or NULL. */
const struct gr_batch *gr_sampler_batch(const graft_sampler *sampler);
void                   gr_sampler_explain(graft_sampler *sampler, char *text, uint64_t capacity);
void                   gr_sampler_destroy(graft_sampler *sampler);
/** Whether the draws of the sampler depend on values of the graph. */
int                    gr_sampler_reads_values(const graft_sampler *sampler);
/** Whether `seeds` are the seeds of the sampler. */
int                    gr_sampler_has_seeds(const graft_sampler *sampler, const int64_t *seeds, int64_t n_seeds);
/** Replace the graph by the same graph with arrays at other addresses. No batch may be in the making. */
void                   gr_sampler_set_graph(graft_sampler *sampler, const graft_csr *graph);
/** Add a line on the parts or walks of batches, if there are any. */
void                   gr_sampler_explain_kind(const graft_sampler *sampler, struct gr_text *text);
/** Whether the arrays of `graph` that the sampler reads are the arrays of create(). */
int                    gr_sampler_reads(const graft_sampler *sampler, const graft_csr *graph);
/** A pointer to the field for the host's matrix, from which the sampler was created. */
graft_matrix         **gr_sampler_graph(graft_sampler *sampler);
