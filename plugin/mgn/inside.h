/* Declarations that the files of this room share.
 *
 *     shape.c     offsets of weights         create.c   memory          cut.c      edges in tasks
 *     products.c  dense products             mlp.c      an MLP over a block of rows
 *     forward.c   encoder, layers, decoder   exchange.c rows of other ranks
 *     backward.c  gradients                  loops.c    passes over rows
 *     times.c     measured times
 *
 * A pass goes over nodes in blocks of GR_MGN_ROWS, and over edges in tasks: the edges to some consecutive nodes, at
 * most GR_MGN_ROWS of them unless it is one node. Blocks stay in the caches of a processor from the first product of an
 * MLP to its last. No two tasks add to the same target, so bits do not depend on the number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MGN_INSIDE_H
#define GR_MGN_INSIDE_H

#include "base/memory.h"
#include "dense/dense.h"
#include "halo/halo.h"
#include "mgn/loops.h"

#include <stdatomic.h>

enum { GR_MGN_PARTIALS = 32 }; /* largest number of partial sums over blocks */

/** The data of one thread. */
struct gr_mgn_thread {
    void       *state;                   /* of the dense module */
    char       *block, *kept_block;      /* buffer: GR_MGN_ROWS rows of each of two, or of all, linear layers */
    char       *rows[GR_MLP_LINEAR_MAX]; /* outputs of the linear layers of an MLP; see gr_mlp_use_rows() */
    char       *padded[2];               /* a padded block of x and of y, if g->pads */
    char       *back[2];                 /* gradients of two of them */
    char       *rstd;                    /* [GR_MGN_ROWS] */
    int32_t     rc;                      /* status of the first failed product of a pass */
    graft_error error;
};

/** Edges in tasks: task i has the edges to nodes target[i] to target[i + 1] - 1. */
struct gr_mgn_tasks {
    int64_t  count;
    int64_t *target;  /* [count + 1] */
    int32_t *order;   /* [count] ghosts: tasks without a source in the halo first; shared: tasks with a shared target
                         first */
    int64_t  n_first; /* number of tasks that are first */
};

struct gr_mgn {
    graft_context             *context;
    graft_mesh                *mesh;
    const struct gr_mgn_shape *shape;
    const struct gr_mgn_loops *loops;
    const struct gr_module    *dense;
    graft_dtype                dtype;
    int64_t                    element; /* bytes */
    struct gr_mgn_tasks        tasks;
    struct gr_mgn_thread      *thread;
    int                        n_threads, n_states;
    int                        pads; /* copies of shared nodes on other ranks need the same bits: see products.c */
    atomic_flag                lock; /* of the dense module, if it has one state only */
    struct gr_pool             memory, backward_memory;

    /* Rows of `width` elements. */
    char *h;       /* [n_sources] nodes, and rows of the halo with ghosts */
    char *e;       /* [n_edges] */
    char *m;       /* [n_nodes] sums */
    char *sources; /* [n_sources] contributions of nodes to the first product of their edges, as sources */
    char *targets; /* [n_nodes] and as targets */
    char *copies;  /* [halo.count] sums of other ranks at shared nodes */

    /* For backward passes, which store h, e and m of each layer; layer l > 0 begins here at l - 1. */
    char   *kept_h, *kept_e, *kept_m;
    char   *products; /* [layers x linear x n_edges] products of MLP_e, if they are stored */
    char   *gradient_h, *gradient_e, *gradient_m;
    char   *gradient_z; /* [n_edges] of the first product of each edge */
    char   *gradient_sources, *gradient_targets, *gradient_output;
    char   *kept_output; /* [n_nodes x n_out], as gradient_output */
    char   *partial;     /* [n_partials x partial_elements] gradients of the weights of an MLP, from some blocks */
    int64_t n_partials, partial_elements;

    int64_t row_elements; /* of a row of a thread */

    /* The pass that has begun: */
    const char *weights, *nodes, *edges;
    int         exact, keeps;
    char       *output;

    struct gr_halo_rows rows;
    int64_t             epoch, bytes_sent, call; /* call: its number, see outcome.h */
    struct gr_outcome   outcome;                 /* of the forward pass */
    int32_t             refused;                 /* OK, or why this rank refuses rows of the pass, with: */
    graft_error         reason;
    int                 received_refused; /* another rank has sent such rows, and refuses them itself */

    struct gr_mgn_times *times;       /* [2 directions x (layers + 2)]; NULL: nothing is measured */
    int                  is_backward; /* what is computed now */
};

static inline int64_t gr_mgn_width(const struct gr_mgn *g)
{
    return g->shape->options.width;
}

/** Element i of an array. */
static inline void *gr_mgn_at(const struct gr_mgn *g, const void *array, int64_t i)
{
    return (char *)(uintptr_t)array + i * g->element;
}

/** Row i of an array of `width` elements. */
static inline void *gr_mgn_row(const struct gr_mgn *g, const void *array, int64_t i)
{
    return gr_mgn_at(g, array, i * gr_mgn_width(g));
}

/** h, e and m of layer l; l = layers: h of the output of the last layer. */
static inline char *gr_mgn_h(const struct gr_mgn *g, int64_t l)
{
    return g->keeps && l > 0 ? gr_mgn_row(g, g->kept_h, (l - 1) * g->mesh->n_sources) : g->h;
}
static inline char *gr_mgn_e(const struct gr_mgn *g, int64_t l)
{
    const int is_kept = g->keeps && l > 0 && g->shape->options.edges == GR_MGN_EDGES_CARRIED;

    return is_kept ? gr_mgn_row(g, g->kept_e, (l - 1) * g->mesh->n_edges) : g->e;
}
static inline char *gr_mgn_m(const struct gr_mgn *g, int64_t l)
{
    return g->keeps && l > 0 ? gr_mgn_row(g, g->kept_m, (l - 1) * g->mesh->n_nodes) : g->m;
}

/* -- products.c --------------------------------------------------------------------------------------------------- */

/** Choose the module, and make states for the threads. \return OK; ERR_NOMEM; ERR_UNSUPPORTED; of this rank alone. */
int32_t gr_mgn_products_init(struct gr_mgn *g, graft_error *error);
void    gr_mgn_products_fini(struct gr_mgn *g);
/** Ensure that copies of shared nodes have the same bits, or use plain loops for the products. Collective. \return OK;
 *  ERR_NOMEM, the error of the module: the same on all ranks; ERR_PEER. */
int32_t gr_mgn_products_agree(struct gr_mgn *g, graft_error *error);

/** Columns of a matrix of weights [out x stride] from element `at` on. */
struct gr_mgn_matrix {
    const void *at;
    int64_t     stride, out, in;
};

/** y[n x out] = x[n x in] W^T, added to y if `adds`. A failure is noted in the thread, whose products then do
 *  nothing. */
void gr_mgn_multiply(struct gr_mgn *g, int thread, struct gr_mgn_matrix w, int64_t n, const void *x, int adds, void *y);
/** Its adjoint: x[n x in] = y[n x out] W. */
void gr_mgn_multiply_back(struct gr_mgn *g, int thread, struct gr_mgn_matrix w, int64_t n, const void *y, int adds,
                          void *x);
/** Add to the gradient of the weights: W += y^T x. */
void gr_mgn_multiply_weights(struct gr_mgn *g, int thread, struct gr_mgn_matrix w, int64_t n, const void *x,
                             const void *y);

/** The first failure of a thread since the last call. \return OK; the error of the module. */
int32_t gr_mgn_products_status(struct gr_mgn *g, graft_error *error);

/* -- mlp.c -------------------------------------------------------------------------------------------------------- */

/** The matrix of linear layer i, whole. */
struct gr_mgn_matrix gr_mlp_matrix(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t i, const void *weights);
/** Rows of the first one, which are columns of its product. */
int64_t              gr_mlp_first_out(const struct gr_mlp *mlp);
/** `in` columns of the first one, from `column` on. */
struct gr_mgn_matrix gr_mlp_first(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t column, int64_t in,
                                  const void *weights);

/** Set the buffers of a thread: for the output of every linear layer of an MLP, for a backward pass; or of the last two
 *  layers only, to use less cache; or stored products of edges of layer l from `begin` on. */
void gr_mlp_use_rows(struct gr_mgn *g, int thread, int keeps_all);
void gr_mlp_use_products(struct gr_mgn *g, int thread, int64_t l, int64_t begin);

/** The MLP from after the first product, n rows of the thread, to before its end. \return the last product, without
 *  bias. */
void              *gr_mlp_forward(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n);
/** The end of an MLP for these rows. */
struct gr_mgn_norm gr_mlp_norm(const struct gr_mgn *g, const struct gr_mlp *mlp, int64_t n, void *z);

/** The backward pass for n rows whose first product, or with has_all every product, the thread has: from u, the
 *  gradient of the result, which it overwrites. Adds to the gradients of the weights after the first product in
 *  `gradient`, which begins with the first weight of the MLP. \return the gradient of the first product with its bias:
 *  first[n] or, if that is NULL, rows of the thread. */
void *gr_mlp_backward(struct gr_mgn *g, int thread, const struct gr_mlp *mlp, int64_t n, int has_all, void *u,
                      void *gradient, void *first);

/** The same MLP for an array that begins with its first weight. */
struct gr_mlp gr_mlp_alone(const struct gr_mlp *mlp);

/* -- cut.c -------------------------------------------------------------------------------------------------------- */

/** \return OK; ERR_NOMEM. */
int32_t gr_mgn_cut(struct gr_mgn *g, graft_error *error);

/* -- exchange.c --------------------------------------------------------------------------------------------------- */

/** Exchange rows of h (ghosts), or sums m of shared nodes; on one rank nothing is done. The end of shared nodes adds
 *  copies. Rows that this rank refuses are noted in g->refused, and sent. \return OK; ERR_PEER. */
int32_t        gr_mgn_exchange_init(struct gr_mgn *g, graft_error *error);
void           gr_mgn_exchange_fini(struct gr_mgn *g);
int32_t        gr_mgn_exchange_begin(struct gr_mgn *g, int64_t layer, enum gr_direction direction, char *rows,
                                     struct gr_team team, graft_error *error);
int32_t        gr_mgn_exchange_end(struct gr_mgn *g, char *rows, struct gr_team team, graft_error *error);
/** A team that polls messages, of rows and of the outcome. */
struct gr_team gr_mgn_polling(struct gr_mgn *g, struct gr_team team);

/* -- times.c ------------------------------------------------------------------------------------------------------ */

/** \return OK; ERR_NOMEM. */
int32_t gr_mgn_times_init(struct gr_mgn *g, graft_error *error);

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

/** Add the time since `begin` to a part. \return the time now. */
static inline double gr_mgn_measure(struct gr_mgn *g, int64_t l, enum gr_mgn_part part, double begin)
{
    const double now = gr_mgn_clock(g);

    if (g->times != NULL) gr_mgn_times_at(g, g->is_backward, l)->seconds[part] += now - begin;
    return now;
}

/* -- forward.c ---------------------------------------------------------------------------------------------------- */

/** Work on n rows in blocks of GR_MGN_ROWS, or on n tasks in blocks of 1: body(arg, thread, begin, end). Its time is
 *  added to `part` of layer l; l = layers: encoders and decoder. */
struct gr_mgn_pass {
    int64_t          l;
    enum gr_mgn_part part;
    int64_t          n, rows;
    void (*body)(void *arg, int thread, int64_t begin, int64_t end);
    void *arg;
};

/** In parallel. \return OK; the error of a product, which ends the comm if there are other ranks. */
int32_t gr_mgn_run(struct gr_mgn *g, struct gr_team team, const struct gr_mgn_pass *pass, graft_error *error);

/** Sources and targets of the edges of layer l, from h of nodes begin to end - 1. */
void gr_mgn_products_of_nodes(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end);

/** The first product of MLP_e for edges begin to end - 1 of layer l, into z. */
void gr_mgn_first_of_edges(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end, void *z);
/** The same for MLP_n of nodes. */
void gr_mgn_first_of_nodes(struct gr_mgn *g, int thread, int64_t l, int64_t begin, int64_t end, void *z);

#endif
