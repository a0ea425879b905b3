/* Declarations that the files of this room share.
 *
 *     shape.c     weights                    create.c   memory, edges in tasks, measured times
 *     forward.c   encoder, layers, decoder   exchange.c rows of other ranks
 *     backward.c  gradients                  loops.c    passes over rows
 *     products.c  test of bitwise identical products
 *
 * A pass goes over nodes in blocks of GR_MGN_ROWS, and over edges in tasks. A task has the edges to some consecutive
 * nodes: at most GR_MGN_ROWS edges, or more if it has only one node. Blocks stay in the caches of a processor from the
 * first product of an MLP to its last. No two tasks add to the same target, so results are bitwise identical for any
 * number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/halo.h"
#include "mgn/loops.h"
#include "nn/blocks.h"

enum { GR_MGN_PARTIALS = 32 }; /* largest number of partial sums over blocks */

/** The division of edges into tasks: task i has the edges to nodes target[i] to target[i + 1] - 1. */
struct gr_mgn_tasks {
    int64_t  count;
    int64_t *target;  /* [count + 1] boundaries of tasks */
    int32_t *order;   /* [count] order of execution: with ghosts, tasks without a source in the halo first; with shared
                         nodes, tasks with a shared target first */
    int64_t  n_first; /* number of these first tasks */
};

/** Arrays of the forward pass, with rows of `width` elements. */
struct gr_mgn_arrays {
    char *h;       /* [n_sources] states of nodes; with ghosts also of rows of the halo */
    char *e;       /* [n_edges] states of edges */
    char *m;       /* [n_nodes] sums over the edges to each node */
    char *sources; /* [n_sources] contribution of each node to the first products of the edges from it */
    char *targets; /* [n_nodes] contribution of each node to the first products of the edges to it */
    char *copies;  /* [halo.count] sums m of other ranks at shared nodes */
};

/** Arrays of each layer that are stored for the backward pass. */
struct gr_mgn_kept {
    char *h, *e, *m; /* states of layer l > 0 are at index l - 1; those of layer 0 are in gr_mgn_arrays */
    char *products;  /* [layers x linear x n_edges] products of MLP_e; NULL: they are computed again */
    char *output;    /* [n_nodes x n_out] output of the pass */
};

/** Gradients with respect to the arrays of these names. */
struct gr_mgn_gradients {
    char *h, *e, *m;
    char *z; /* [n_edges] gradient of the first product of each edge */
    char *sources, *targets;
    char *output; /* [n_nodes x n_out] */
};

/** Partial sums of the gradients of the weights of an MLP, each over some blocks. */
struct gr_mgn_partials {
    char   *at; /* [count x elements] */
    int64_t count, elements;
};

/** The arguments and the state of the pass that has begun. */
struct gr_mgn_pass_state {
    const char *nodes, *edges;
    char       *output;
    int         exact, keeps; /* whether rows are sent unquantized; whether states are stored for a backward pass */
    int         is_backward;  /* the backward part of the pass is running */
    int64_t     epoch;
};

/** The messages of the pass. */
struct gr_mgn_messages {
    struct gr_halo_rows rows;
    struct gr_outcome   outcome; /* outcome of the forward pass */
    int64_t             call;    /* index of the call, see outcome.h */
    int64_t             bytes_sent;
    int32_t             refused;          /* OK, or the status with which this rank refuses rows of the pass */
    graft_error         reason;           /* reason of the refusal */
    int                 received_refused; /* refused rows have been received from a rank that refuses them itself */
};

struct gr_mgn {
    graft_context             *context;
    graft_mesh                *mesh;
    const struct gr_mgn_shape *shape;
    const struct gr_mgn_loops *loops;
    struct gr_nn_blocks        blocks; /* padded if copies of shared nodes must be bitwise identical, see products.c */
    struct gr_mgn_tasks        tasks;
    struct gr_pool             memory, backward_memory;
    struct gr_mgn_arrays       arrays;
    struct gr_mgn_kept         kept;
    struct gr_mgn_gradients    gradients;
    struct gr_mgn_partials     partials;
    struct gr_mgn_pass_state   pass;
    struct gr_mgn_messages     messages;
    struct gr_mgn_times       *times; /* [2 directions x (layers + 2)] times of the pass; NULL: nothing is measured */
};

static inline int64_t gr_mgn_width(const struct gr_mgn *g)
{
    return g->shape->options.width;
}

/** The address of element i of an array. */
static inline void *gr_mgn_at(const struct gr_mgn *g, const void *array, int64_t i)
{
    return gr_nn_element(&g->blocks, array, i);
}

/** The address of row i of an array whose rows have `width` elements. */
static inline void *gr_mgn_row(const struct gr_mgn *g, const void *array, int64_t i)
{
    return gr_mgn_at(g, array, i * gr_mgn_width(g));
}

/** The bytes of n rows of `width` elements. */
static inline uint64_t gr_mgn_row_bytes(const struct gr_mgn *g, int64_t n)
{
    return (uint64_t)(n * gr_mgn_width(g) * g->blocks.element);
}

/** The arrays h, e and m before layer l; h for l = layers: after the last layer. */
static inline char *gr_mgn_h(const struct gr_mgn *g, int64_t l)
{
    return g->pass.keeps && l > 0 ? gr_mgn_row(g, g->kept.h, (l - 1) * g->mesh->n_sources) : g->arrays.h;
}
static inline char *gr_mgn_e(const struct gr_mgn *g, int64_t l)
{
    const int is_kept = g->pass.keeps && l > 0 && g->shape->options.edges == GR_MGN_EDGES_CARRIED;

    return is_kept ? gr_mgn_row(g, g->kept.e, (l - 1) * g->mesh->n_edges) : g->arrays.e;
}
static inline char *gr_mgn_m(const struct gr_mgn *g, int64_t l)
{
    return g->pass.keeps && l > 0 ? gr_mgn_row(g, g->kept.m, (l - 1) * g->mesh->n_nodes) : g->arrays.m;
}

/** Let a thread use the stored products of edges of layer l, from edge `begin` on, as outputs of linear layers. */
static inline void gr_mgn_use_products(struct gr_mgn *g, int thread, int64_t l, int64_t begin)
{
    const int64_t linear = g->shape->options.linear, n_edges = g->mesh->n_edges;

    gr_nn_use_arrays(&g->blocks, thread, gr_mgn_row(g, g->kept.products, l * linear * n_edges + begin),
                     n_edges * gr_mgn_width(g));
}

/* -- products.c --------------------------------------------------------------------------------------------------- */

/** Test whether products of equal rows are bitwise identical in all blocks and on all ranks, as copies of shared nodes
 *  require; if not, use plain loops for products. Collective. \return OK; ERR_NOMEM, the error of the module: the same
 *  on all ranks; ERR_PEER. */
int32_t gr_mgn_products_agree(struct gr_mgn *g, graft_error *error);

/* -- exchange.c --------------------------------------------------------------------------------------------------- */

/** Exchange rows of h (ghosts), or sums m of shared nodes, to which end() adds those of other ranks. On one rank these
 *  functions do nothing. Rows that this rank refuses are recorded in g->messages.refused, and sent all the same.
 *  \return OK; ERR_PEER; init() also ERR_NOMEM and ERR_OPTION, the same on all ranks. */
int32_t        gr_mgn_exchange_init(struct gr_mgn *g, graft_error *error);
void           gr_mgn_exchange_fini(struct gr_mgn *g);
int32_t        gr_mgn_exchange_begin(struct gr_mgn *g, int64_t layer, enum gr_direction direction, char *rows,
                                     struct gr_team team, graft_error *error);
int32_t        gr_mgn_exchange_end(struct gr_mgn *g, char *rows, struct gr_team team, graft_error *error);
/** Make a team that polls the messages of rows and of the outcome while it works. */
struct gr_team gr_mgn_polling(struct gr_mgn *g, struct gr_team team);

/* -- measured times ----------------------------------------------------------------------------------------------- */

/** The times of layer l; l = layers: encoders and decoder; layers + 1: the whole pass. */
static inline struct gr_mgn_times *gr_mgn_times_at(const struct gr_mgn *g, int is_backward, int64_t l)
{
    return &g->times[is_backward * (g->shape->options.layers + 2) + l];
}

/** The time now, or 0 if nothing is measured. */
static inline double gr_mgn_clock(const struct gr_mgn *g)
{
    return g->times != NULL ? gr_seconds() : 0;
}

/** Add the time since `begin` to a part of layer l. \return the time now. */
static inline double gr_mgn_measure(struct gr_mgn *g, int64_t l, enum gr_mgn_part part, double begin)
{
    const double now = gr_mgn_clock(g);

    if (g->times != NULL) gr_mgn_times_at(g, g->pass.is_backward, l)->seconds[part] += now - begin;
    return now;
}

/* -- forward.c ---------------------------------------------------------------------------------------------------- */

/** A parallel loop over n rows in blocks of GR_MGN_ROWS, or over n tasks in blocks of 1, `rows` being the size of a
 *  block: body(arg, thread, begin, end). Its time is added to `part` of layer l; l = layers: encoders and decoder. */
struct gr_mgn_pass {
    int64_t          l;
    enum gr_mgn_part part;
    int64_t          n, rows;
    void (*body)(void *arg, int thread, int64_t begin, int64_t end);
    void *arg;
};

/** Run such a loop. \return OK; the error of a product, which ends the comm if there are other ranks. */
int32_t gr_mgn_run(struct gr_mgn *g, struct gr_team team, const struct gr_mgn_pass *pass, graft_error *error);

/** Compute arrays.sources and arrays.targets of layer l from h of nodes begin to end - 1. */
void gr_mgn_products_of_nodes(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end);

/** Compute z, the first product of MLP_e for edges begin to end - 1 of layer l. */
void gr_mgn_first_of_edges(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end, void *z);
/** Compute z, the first product of MLP_n for nodes begin to end - 1 of layer l. */
void gr_mgn_first_of_nodes(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end, void *z);
