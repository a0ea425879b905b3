/* Samplers whose batches are induced subgraphs: every layer has the same edges.
 *
 * subgraph.c  the edges of a batch, and the table of samplers     cluster.c  parts of a partition
 * saint.c     the vertices of random walks
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_SAMPLE_SUBGRAPH_H
#define GR_SAMPLE_SUBGRAPH_H

#include "base/text.h"
#include "sample/sample.h"

/** The arguments of the creation of a sampler; all except `seeds` must live as long as the sampler. */
struct gr_subgraph_source {
    graft_context   *context;
    const graft_csr *graph; /* square */
    const int64_t   *seeds; /* different vertices */
    int64_t          n_seeds;
    uint64_t         seed;
    int64_t          n_batches; /* by option batch_size and the number of seeds; at least 1 */

    const struct gr_subgraphs *like; /* of the same graph, whose partition may be copied; or NULL */
};

/** The vertices of a batch that is being made. */
struct gr_subgraph {
    const graft_context           *context;
    const struct gr_batch_request *request;
    struct gr_batch               *batch; /* its first vertices are request->seeds */
    struct gr_sample_work         *work;
};

/** A sampler of this kind. To add one, add its file and a row to `kinds` in subgraph.c. */
struct gr_subgraph_kind {
    /* Make the state of the sampler; destroy() accepts NULL. */
    int32_t (*create)(const struct gr_subgraph_source *source, const struct gr_subgraphs *subgraphs, void **state,
                      graft_error *error);
    void (*destroy)(const graft_context *context, void *state);
    int64_t (*bytes)(const void *state);
    /* Batches of an epoch; NULL: n_batches of the source. */
    int64_t (*batches)(const void *state);
    /* Put the seeds into the order of an epoch; batch b has seeds first[b] to first[b + 1] - 1. NULL: they are shuffled
     * and dealt evenly. */
    void (*order)(const void *state, uint64_t seed, int64_t epoch, int64_t *seeds, int64_t *first);
    /* Add vertices after the seeds of the request. Other seeds come first, and count as seeds of the batch. */
    int32_t (*gather)(const void *state, const struct gr_subgraph *subgraph, graft_error *error);
    /* Fill the weights of vertices and edges; NULL: no weights. */
    void (*weigh)(const void *state, struct gr_batch *batch);
    void (*explain)(const void *state, struct gr_text *text);
};

extern const struct gr_subgraph_kind gr_cluster_kind, gr_saint_kind;

/** A sampler of subgraphs, and its state. */
struct gr_subgraphs {
    const struct gr_subgraph_kind *kind;
    void                          *state;
    uint8_t                       *is_seed; /* a bit for each vertex */
    int64_t                        n_batches;
};

/** Whether v is one of the seeds of the sampler. */
static inline int gr_subgraphs_has_seed(const struct gr_subgraphs *subgraphs, int64_t v)
{
    return subgraphs->is_seed[v / 8] >> v % 8 & 1;
}

/** Create the sampler of option sampler, other than neighbour.
 *  \return OK; ERR_NOMEM; ERR_CANCELLED; errors of the partitioner. */
int32_t gr_subgraphs_create(const struct gr_subgraph_source *source, struct gr_subgraphs **subgraphs,
                            graft_error *error);
void    gr_subgraphs_destroy(const graft_context *context, struct gr_subgraphs *subgraphs);
int64_t gr_subgraphs_bytes(const struct gr_subgraphs *subgraphs);
/** The seeds of an epoch, and the first seed of each batch, [n_batches + 1]. */
void    gr_subgraphs_order(const struct gr_subgraphs *subgraphs, uint64_t seed, int64_t epoch, int64_t *seeds,
                           int64_t n_seeds, int64_t *first);

/** Reserve places for `most` more vertices; and add a vertex, unless it is there already. */
int32_t gr_subgraph_reserve(const struct gr_subgraph *subgraph, int64_t most, graft_error *error);
void    gr_subgraph_add(const struct gr_subgraph *subgraph, int64_t v);

/** The vertices, edges and weights of a batch that has its seeds. \return OK; ERR_NOMEM. */
int32_t gr_subgraph_make(const struct gr_subgraph *subgraph, graft_error *error);

#endif
