/* The arithmetic of the network of model mgn, whose formulas are in graft_network.h: forward and backward passes over a
 * mesh, in float or double. Statistics, noise, losses, the optimiser and files are in room network/.
 *
 * All weights are one array, and all gradients another, in the type of the network. struct gr_mgn_shape has the
 * offsets. SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"
#include "base/team.h"
#include "mesh/mesh.h"
#include "nn/mlp.h"

#define GR_MGN_SUM_LIST(X) X(GR_MGN_SUM_UPDATE, "update") X(GR_MGN_SUM_NEW, "new") X(GR_MGN_SUM_OLD, "old")
enum gr_mgn_sum { GR_MGN_SUM_LIST(GR_CHOICE_CONSTANT) };
#define GR_MGN_EDGES_LIST(X) X(GR_MGN_EDGES_CARRIED, "carried") X(GR_MGN_EDGES_ENCODED, "encoded")
enum gr_mgn_edges { GR_MGN_EDGES_LIST(GR_CHOICE_CONSTANT) };

struct gr_mgn_options {
    int64_t           width, layers, linear; /* linear: number of linear layers of each MLP, at least 1 */
    int32_t           is_elu, has_norm;
    enum gr_mgn_sum   sum;
    enum gr_mgn_edges edges;
};

/** The MLPs of a network, in the order of their weights. The columns of the first matrix of an edge MLP belong to
 *  source, target and edge, in this order. */
struct gr_mgn_shape {
    struct gr_mgn_options options;
    int64_t               n_node_in, n_edge_in, n_out;
    struct gr_mlp         node_encoder, edge_encoder;
    struct gr_mlp        *edge, *node; /* [layers] MLP_e and MLP_n of each layer */
    struct gr_mlp         decoder;
    int64_t               n_weights;
};

/** Set the MLPs of a network and the offsets of their weights. \return OK; ERR_NOMEM. */
int32_t gr_mgn_shape_init(const graft_context *context, const struct gr_mgn_options *options, int64_t n_node_in,
                          int64_t n_edge_in, int64_t n_out, struct gr_mgn_shape *shape, graft_error *error);
void    gr_mgn_shape_fini(const graft_context *context, struct gr_mgn_shape *shape);

/** Count the parameters of a network, and append them to a list that has space for them. */
int32_t gr_mgn_count_parameters(const struct gr_mgn_shape *shape);
void    gr_mgn_add_parameters(const struct gr_mgn_shape *shape, struct gr_parameters *all);

/** The number of multiply-adds of one forward pass. */
double gr_mgn_work(const struct gr_mgn_shape *shape, int64_t n_nodes, int64_t n_edges);

/** The parts of the time of a layer, of encoders and decoder, or of a whole pass, in seconds of the calling thread. */
enum gr_mgn_part {
    GR_MGN_EDGES,  /* passes over edges */
    GR_MGN_NODES,  /* passes over nodes */
    GR_MGN_PACK,   /* gathering, encoding and sending of rows */
    GR_MGN_WAIT,   /* waiting for rows of other ranks, in the last layer also for the outcome of the pass */
    GR_MGN_UNPACK, /* checking, decoding and adding of received rows */
    GR_MGN_ALL,    /* everything, measured from begin to end */
    GR_MGN_PARTS
};
struct gr_mgn_times {
    double  seconds[GR_MGN_PARTS];
    int64_t bytes_sent; /* bytes of sent rows, without frames */
};

/** The tables of options that this room reads, one bit for each. */
uint32_t gr_mgn_option_bits(const graft_context *context);
/** Whether the options require that rows of ghosts which halo.codec cannot encode are refused. */
int      gr_mgn_refuses_nonfinite(const graft_context *context);

/** The arithmetic of one network on one mesh. */
struct gr_mgn;

/** Create a network, with all memory of a forward pass. Collective. `shape` must outlive the network. \return OK;
 *  ERR_NOMEM; ERR_UNSUPPORTED (a dense module chosen by name); ERR_PEER: the same on all ranks. */
int32_t gr_mgn_create(graft_mesh *mesh, const struct gr_mgn_shape *shape, graft_dtype dtype, struct gr_mgn **mgn,
                      graft_error *error);
void    gr_mgn_destroy(struct gr_mgn *mgn);

/** Compare numbers[n_nodes], one for each node, with those of its copies on other ranks. Collective.
 *  \param[out] node  The first node of this rank with a different copy, or -1. \param[out] rank  The rank of this copy.
 *  \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_mgn_compare_copies(struct gr_mgn *mgn, const uint64_t *numbers, int64_t *node, int32_t *rank,
                              graft_error *error);

/** Allocate memory for backward passes. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_mgn_reserve_backward(struct gr_mgn *mgn, graft_error *error);
void    gr_mgn_release_backward(struct gr_mgn *mgn);

/** Compute the bytes for products of edges, and allocate them: then passes store products instead of computing them
 *  again in the backward pass. Results are bitwise identical. Memory for backward passes must be allocated before. A
 *  failure changes nothing. Not collective. \return OK; ERR_NOMEM. */
double  gr_mgn_products_bytes(const struct gr_mgn *mgn);
int32_t gr_mgn_reserve_products(struct gr_mgn *mgn, graft_error *error);

/** Begin and end a forward pass. nodes [n_nodes x n_node_in] and edges [n_edges x n_edge_in] have the type of the
 *  network and must not change before the end. Between the two calls messages of the first exchange travel. Nothing is
 *  allocated.
 *  \return OK; ERR_PEER. forward_end() also returns the outcome on which all ranks agree: the failure of the lowest
 *  rank that has passed one as `status` to one of the calls, with its reason in `error`, or that refuses rows which the
 *  codec cannot encode (ERR_NONFINITE).
 *  \param[in]  exact   Rows are sent unquantized, whatever option halo.codec says.
 *  \param[out] output  [n_nodes x n_out]; copies of shared nodes are bitwise identical. */
int32_t gr_mgn_forward_begin(struct gr_mgn *mgn, int32_t status, const void *weights, const void *nodes,
                             const void *edges, int exact, struct gr_team team, graft_error *error);
int32_t gr_mgn_forward_end(struct gr_mgn *mgn, int32_t status, void *output, struct gr_team team, graft_error *error);

/** Count a begin() that is refused because another pass has begun, or an end() without a begin(); see outcome.h. */
void gr_mgn_count_begin(struct gr_mgn *mgn);
void gr_mgn_count_end(struct gr_mgn *mgn);

/** Do a forward pass, which stores the inputs of the backward pass; call loss(arg, output, gradient_of_output), which
 *  computes gradient_of_output [n_nodes x n_out]; and do the backward pass, which writes this rank's share of the
 *  gradient to `gradient` [n_weights]. The sum of all shares is the gradient of the whole mesh. Results are bitwise
 *  identical for any number of threads.
 *  \param[in] exact  Rows are sent unquantized, whatever option halo.codec says.
 *  \param[in] epoch  Determines the random bits of quantized rows.
 *  \return OK; ERR_NONFINITE (rows that the codec cannot encode), the same on all ranks; ERR_PEER; with one rank the
 *  error of a dense module; the status of loss(), which must be the same on all ranks. */
int32_t gr_mgn_backward(struct gr_mgn *mgn, const void *weights, const void *nodes, const void *edges, int exact,
                        int64_t epoch,
                        int32_t (*loss)(void *arg, const void *output, void *gradient_of_output, graft_error *error),
                        void *arg, void *gradient, struct gr_team team, graft_error *error);

/** The bytes of memory of a network; and the bytes of rows sent in the last pass (forward, or forward and backward),
 *  without frames. */
int64_t gr_mgn_bytes(const struct gr_mgn *mgn);
int64_t gr_mgn_bytes_sent(const struct gr_mgn *mgn);

/** Whether times are measured: option profile was yes at creation. */
int                 gr_mgn_is_timed(const struct gr_mgn *mgn);
/** The times of layer l in the last pass, if gr_mgn_is_timed(); l = layers: encoders and decoder; layers + 1: the whole
 *  pass. Backward times of a forward pass are 0. */
struct gr_mgn_times gr_mgn_times_of(const struct gr_mgn *mgn, int is_backward, int64_t l);
