/* Minibatches: blocks of sampled neighbours (Hamilton, Ying and Leskovec 2017, algorithm 2). The common declarations of
 * this folder.
 *
 * sampler.c  the batches of an epoch, some of them made ahead     draw.c       neighbours of one vertex
 * batch.c    the blocks of one batch                              draw_rows.c  neighbours of several vertices, in lanes
 * numbering.c  numbers of vertices in a batch                      subgraph.h   batches that are subgraphs
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_SAMPLE_SAMPLE_H
#define GR_SAMPLE_SAMPLE_H

#include "base/memory.h"
#include "base/option.h"
#include "base/processor.h"
#include "base/team.h"
#include "base/text.h"
#include "graft_sample.h"
#include "graph/csr.h"

#include <stdatomic.h>

enum { GR_SAMPLE_LAYERS_MAX = 64, GR_ALL_NEIGHBOURS = -1 };

struct gr_draw_rows;
/** Draw the entries of rows begin .. end-1, the same as gr_draw_entries(). */
typedef void (*gr_draw_rows_fn)(const struct gr_draw_rows *rows, int64_t begin, int64_t end);

/** How neighbours are drawn. */
struct gr_draw_rule {
    const graft_csr       *graph;
    enum gr_sample_weights weights;
    int                    replace;
    gr_draw_rows_fn        draw_rows; /* for all rows of a small fanout, or NULL */
    const int64_t         *degree;    /* of the columns without a row here; NULL: 0 */
    const int64_t         *name;      /* global vertex of each row, which keys its random draws; NULL: the row */
    /* What to add to each entry, for the entries of each row in another order, in which they are drawn; or NULL. */
    const int32_t         *shift;
};

static inline int64_t gr_draw_shifted(const struct gr_draw_rule *rule, int64_t entry)
{
    return rule->shift != NULL ? entry + rule->shift[entry] : entry;
}

static inline uint64_t gr_draw_name(const struct gr_draw_rule *rule, int64_t v)
{
    return (uint64_t)(rule->name != NULL ? rule->name[v] : v);
}

/** Space of a thread for the draws of one vertex: keys or sums of weights, and drawn entries. */
struct gr_draw_space {
    double  *weight;
    int64_t *entry;
    int64_t  capacity; /* of both */
};

/** The number of neighbours of v that are drawn; weights, if any, are all positive. */
int64_t           gr_draw_count(const struct gr_draw_rule *rule, int64_t fanout, int64_t v);
/** Elements of `space` that the draws of v need; and whether this number depends on v. */
int64_t           gr_draw_needs(const struct gr_draw_rule *rule, int64_t fanout, int64_t v);
static inline int gr_draw_needs_degrees(const struct gr_draw_rule *rule)
{
    return rule->weights != GR_SAMPLE_UNIFORM && rule->replace;
}
/** Entries of row v, gr_draw_count() of them, which the caller shifts. */
void gr_draw_entries(const struct gr_draw_rule *rule, struct gr_draw_space *space, uint64_t key, int64_t fanout,
                     int64_t v, int64_t *entries);

/** Rows whose entries are drawn at once, by a rule without weights and replacement. */
struct gr_draw_rows {
    const struct gr_draw_rule *rule;
    uint64_t                   key;
    int64_t                    fanout; /* 0 .. GR_DRAWN_TOGETHER */
    const int64_t             *vertex; /* of each row */
    const int64_t             *row_ptr;
    int64_t                   *entry; /* entries of row i from row_ptr[i] on */
};
enum { GR_DRAWN_TOGETHER = 48 };

gr_draw_rows_fn gr_draw_rows_for(enum gr_isa isa);
void            gr_draw_rows_generic(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_draw_rows_avx2(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_draw_rows_avx512(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_draw_rows_sve256(const struct gr_draw_rows *rows, int64_t begin, int64_t end);
void            gr_draw_rows_sve512(const struct gr_draw_rows *rows, int64_t begin, int64_t end);

/** Numbers of vertices, by an array over all vertices or, if an array would be larger, by a hash table with linear
 *  probing. slot() finds the place of a vertex, and may be called by several threads. A place holds the number of its
 *  vertex, at least 0, or a negative value before it is numbered. */
struct gr_numbering {
    int64_t          n;     /* vertices of the graph */
    int64_t          slots; /* a power of two if there are keys */
    _Atomic int32_t *key;   /* [slots] the vertex, or -1; NULL: slot v belongs to vertex v */
    _Atomic int32_t *number;
};
enum { GR_NO_NUMBER = INT32_MIN };

/** Make places for `most` vertices, and keep present numbers. \return OK; ERR_NOMEM: nothing has changed. */
int32_t gr_numbering_reserve(const graft_context *context, struct gr_numbering *numbering, int64_t most,
                             graft_error *error);
/** Forget the numbers of these vertices, which must be all vertices that have been looked up. */
void    gr_numbering_clear(struct gr_numbering *numbering, const int64_t *vertex, int64_t count);
void    gr_numbering_fini(const graft_context *context, struct gr_numbering *numbering);
int64_t gr_numbering_bytes(const struct gr_numbering *numbering);

static inline int64_t gr_numbering_home(const struct gr_numbering *numbering, int32_t v)
{
    return (int64_t)(((uint64_t)(uint32_t)v * 0x9E3779B97F4A7C15u) >> 20) & (numbering->slots - 1);
}

static inline int64_t gr_numbering_slot(struct gr_numbering *numbering, int32_t v)
{
    int64_t at;

    if (numbering->key == NULL) return v;
    for (at = gr_numbering_home(numbering, v);; at = (at + 1) & (numbering->slots - 1)) {
        int32_t there = atomic_load_explicit(&numbering->key[at], memory_order_relaxed);

        if (there == v) return at;
        if (there == -1 && atomic_compare_exchange_strong_explicit(&numbering->key[at], &there, v, memory_order_relaxed,
                                                                   memory_order_relaxed))
            return at;
        if (there == v) return at; /* another thread was first */
    }
}

/** As gr_numbering_slot(), for a table that no other thread accesses. */
static inline int64_t gr_numbering_slot_alone(struct gr_numbering *numbering, int32_t v)
{
    for (int64_t at = gr_numbering_home(numbering, v);; at = (at + 1) & (numbering->slots - 1)) {
        const int32_t there = atomic_load_explicit(&numbering->key[at], memory_order_relaxed);

        if (there == -1) atomic_store_explicit(&numbering->key[at], v, memory_order_relaxed);
        if (there == -1 || there == v) return at;
    }
}

/** The number of a vertex, or GR_NO_NUMBER. Absent vertices get no place. */
static inline int32_t gr_numbering_find(const struct gr_numbering *numbering, int32_t v)
{
    int64_t at = v;

    if (numbering->key == NULL) return atomic_load_explicit(&numbering->number[at], memory_order_relaxed);
    for (at = gr_numbering_home(numbering, v);; at = (at + 1) & (numbering->slots - 1)) {
        const int32_t there = atomic_load_explicit(&numbering->key[at], memory_order_relaxed);

        if (there == v) return atomic_load_explicit(&numbering->number[at], memory_order_relaxed);
        if (there == -1) return GR_NO_NUMBER;
    }
}

struct gr_subgraphs;
struct gr_subgraph;

/** Adds destinations to the layer below, which other ranks need; see gr_subgraph_add(). It is collective: each rank
 *  calls it once for each layer above the first, with its status, an earlier error or GRAFT_OK. */
struct gr_extension {
    int32_t (*extend)(void *arg, const struct gr_subgraph *made, int32_t layer, int32_t rc, graft_error *error);
    void   *arg;
    int32_t first; /* layers above this one are extended */
};

/** The definition of a batch. */
struct gr_batch_request {
    const struct gr_draw_rule *rule;
    int32_t                    n_layers;
    int64_t                    fanout[GR_SAMPLE_LAYERS_MAX];
    uint64_t                   seed;
    int64_t                    epoch, index;
    const int64_t             *seeds;
    int64_t                    n_seeds;
    const struct gr_subgraphs *subgraphs; /* NULL: neighbours are drawn */
    int                        weighs;    /* a batch of subgraphs has weights, if the sampler defines them */
    const struct gr_extension *extension; /* NULL: none */
};

struct gr_sampled_layer {
    int64_t  n_dst, n_src, n_edges;
    int64_t *row_ptr;
    int32_t *col;
    int64_t *entry;
    int64_t  rows, edges; /* capacities */
};

/** The blocks of a batch, in memory that grows to the size of the largest batch. */
struct gr_batch {
    int64_t                 epoch, index;
    int32_t                 n_layers;
    int64_t                 n_seeds, n_vertices, capacity;
    int64_t                *vertex;
    struct gr_sampled_layer layers[GR_SAMPLE_LAYERS_MAX];

    int     is_subgraph, is_weighted; /* layers[0] has the edges of all layers; the batch has weights: */
    float  *weight;                   /* [n_vertices] */
    float  *edge_weight;              /* [edges of layers[0]] */
    int64_t weights, edge_weights;    /* capacities */
};

/** Layer l of a batch. The last layer of a subgraph has the rows of the seeds, which are its first rows. */
static inline struct gr_sampled_layer gr_batch_layer(const struct gr_batch *batch, int32_t l)
{
    struct gr_sampled_layer layer = batch->layers[batch->is_subgraph ? 0 : l];

    if (batch->is_subgraph && l == batch->n_layers - 1) {
        layer.n_dst = batch->n_seeds;
        layer.n_edges = layer.row_ptr[layer.n_dst];
    }
    return layer;
}

/** Allocate memory for vertices, and keep the present vertices; for the rows and the edges of a layer; for the weights
 *  of all vertices and edges of a subgraph. \return OK; ERR_NOMEM. */
int32_t gr_batch_reserve(const graft_context *context, struct gr_batch *batch, int64_t vertices, graft_error *error);
int32_t gr_batch_reserve_rows(const graft_context *context, struct gr_sampled_layer *layer, int64_t rows,
                              graft_error *error);
int32_t gr_batch_reserve_edges(const graft_context *context, struct gr_sampled_layer *layer, graft_error *error);
int32_t gr_batch_reserve_weights(const graft_context *context, struct gr_batch *batch, graft_error *error);

/** Fisher and Yates' shuffle; 64 bits for each, so that its bias is below n / 2^64. */
void gr_sample_shuffle(int64_t *values, int64_t n, uint64_t key);

/** The work space for making a batch, beside the memory of the batch. */
struct gr_sample_work {
    struct gr_numbering   numbering;
    struct gr_draw_space *space; /* [threads] */
    int                   threads;
    int64_t              *first; /* [chunks] new vertices in each chunk of edges */
    int64_t               chunks;
};

int32_t gr_sample_work_init(const graft_context *context, struct gr_sample_work *work, int64_t n, int threads,
                            graft_error *error);
void    gr_sample_work_fini(const graft_context *context, struct gr_sample_work *work);
int64_t gr_sample_work_bytes(const struct gr_sample_work *work);

/** Make a batch with up to work->threads threads. \return OK; ERR_ARG (a seed out of range or given twice); ERR_NOMEM:
 *  then the batch is empty. */
int32_t gr_batch_make(const graft_context *context, struct gr_batch *batch, struct gr_sample_work *work,
                      const struct gr_batch_request *request, graft_error *error);
void    gr_batch_fini(const graft_context *context, struct gr_batch *batch);
int64_t gr_batch_bytes(const struct gr_batch *batch);
/** Edges of all blocks. */
int64_t gr_batch_edges(const struct gr_batch *batch);

/** The arguments of the creation of `sampler`. */
struct gr_sampler_source {
    const graft_csr *graph; /* in a trainer it may have more columns than rows: vertices without in-neighbours */
    const int64_t   *seeds;
    int64_t          n_seeds;
    int32_t          n_layers;  /* 0: from options layers and fanout */
    const int64_t   *fanout;    /* [n_layers] */
    int64_t          n_batches; /* number of batches, with sizes that differ by at most one; 0: option batch_size */
    int32_t          rank;      /* ranks shuffle their seeds differently */
    const int64_t   *degree;    /* as in gr_draw_rule: */
    const int64_t   *name;
    const int32_t   *shift;
    int              neighbours; /* batches have drawn neighbours, whatever option sampler is, and: */
    int              by_parts;   /* their seeds are the seeds of parts, as with sampler=cluster */

    const graft_sampler       *like;      /* of the same graph and options, whose partition may be copied; or NULL */
    const struct gr_extension *extension; /* NULL: none. With it next() is collective, and makes one batch */
};
/** As graft_samples.create() and the other functions; `graph` stays the caller's. */
int32_t gr_sampler_create(graft_context *context, const struct gr_sampler_source *source, graft_sampler **sampler,
                          graft_error *error);
int32_t gr_sampler_begin(graft_sampler *sampler, int64_t epoch, int64_t first, graft_error *error);
int64_t gr_sampler_batches(const graft_sampler *sampler);
/** The seeds of the epoch in their order, and the place of the first seed of a batch; for the batch after the last, the
 *  number of seeds. */
const int64_t *gr_sampler_seeds(const graft_sampler *sampler);
int64_t        gr_sampler_first_seed(const graft_sampler *sampler, int64_t batch);
int64_t        gr_sampler_bytes(graft_sampler *sampler);
int32_t        gr_sampler_next(graft_sampler *sampler, graft_error *error);
/** Allocate the memory that next() needs to begin. \return OK; ERR_NOMEM. */
int32_t        gr_sampler_prepare(graft_sampler *sampler, graft_error *error);
int32_t        gr_sampler_sample(graft_sampler *sampler, const int64_t *seeds, int64_t n, int all, graft_error *error);
int32_t        gr_sampler_prefetch(graft_sampler *sampler, int32_t *made, graft_error *error);
/** The last batch of next() or sample(), or NULL. */
const struct gr_batch *gr_sampler_batch(const graft_sampler *sampler);
void                   gr_sampler_explain(graft_sampler *sampler, char *text, uint64_t capacity);
void                   gr_sampler_destroy(graft_sampler *sampler);
/** Whether its draws depend on values of the graph. */
int                    gr_sampler_reads_values(const graft_sampler *sampler);
/** Whether these are its seeds. */
int                    gr_sampler_has_seeds(const graft_sampler *sampler, const int64_t *seeds, int64_t n_seeds);
/** The same graph with arrays at other addresses. No batch is being made. */
void                   gr_sampler_set_graph(graft_sampler *sampler, const graft_csr *graph);
/** A line on the parts or walks of batches, if any. */
void                   gr_sampler_explain_kind(const graft_sampler *sampler, struct gr_text *text);
/** Whether the arrays of `graph` that the sampler reads are the arrays of create(). */
int                    gr_sampler_reads(const graft_sampler *sampler, const graft_csr *graph);
/** The matrix of the host. */
graft_matrix         **gr_sampler_graph(graft_sampler *sampler);

#endif
