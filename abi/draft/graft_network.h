/* "graft.draft.network": message passing with edge MLPs on a mesh (model mgn): training steps, inference within a time
 * step of the solver, rollouts. A draft.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_NETWORK_H
#define GRAFT_NETWORK_H

#include "../graft_report.h"
#include "graft_mesh.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_NETWORK_ID "graft.draft.network/1"

/* The model. x are the inputs of nodes, r the edges: relative position and length. ~ marks standardised values; MLP has
 * `mgn.linear` linear layers with option activation between them, and LayerNorm at its end with option norm.
 *
 *     h_i  = MLP_node(x~_i)                      e_ij = MLP_edge(r~_ij)           encoder
 *     in each of `layers` layers, for each edge j -> i:
 *         u_ij = MLP_e([h_j, h_i, e_ij])
 *         e'_ij = e_ij + u_ij
 *         m_i  = sum over j of u_ij (mgn.sum=update, MeshGraphNets), e'_ij (new: PhysicsNeMo, nekRS-ML), e_ij (old)
 *         h'_i = h_i + MLP_n([h_i, m_i])
 *         the next layer has e' (mgn.edges=carried), or again the encoded edges (encoded: nekRS-ML)
 *     y~_i = MLP_out(h_i), without LayerNorm                                       decoder
 *
 * The first product of MLP_e is the sum of three, of which two are computed once for each node. Sources: MeshGraphNets
 * (arXiv 2010.03409, section 3.2); nekRS-ML for shared nodes. Defaults follow MeshGraphNets, except for noise; for
 * nekRS-ML set activation=elu, mgn.sum=new, mgn.edges=encoded, mgn.edge_scale=longest, residual=yes.
 *
 * A network reads the options of group "mesh models", and seed, model.type (f32 or f64), threads, memory.limit,
 * dense.module, clip_norm, halo.codec, halo.rounding, halo.nonfinite. It keeps their values from create() on, also for
 * messages; other live options may change later. With ghosts, rows of the halo are sent as halo.codec says, in
 * inferences too; partial sums at shared nodes, and gradient(), are never quantized. */

typedef struct graft_network graft_network;

/** The outputs of a network: the values of the target, or the change from the first n_out inputs to the target. */
typedef int32_t graft_predicts;
enum { GRAFT_PREDICTS_VALUE = 1, GRAFT_PREDICTS_CHANGE = 2 };

/** Description of a network. Equal on all ranks, except for arrays, which have the rows of the rank. All arrays are
 *  copied. */
typedef struct graft_network_args {
    uint32_t           size;
    graft_predicts     predicts;
    int32_t            n_in;     /**< columns of the state that is given in each call */
    int32_t            n_out;    /**< columns of the result. CHANGE and rollouts: the first inputs, so at most n_in */
    const graft_field *constant; /**< [n_rows x any] more inputs, such as a one-hot type of node; not standardised.
                                         NULL: none */
    const uint8_t     *is_free;  /**< [n_rows] 1: the node is predicted. 0: a boundary node: it has no loss and no
                                         noise, and keeps its value in results. NULL: all 1 */
    const double      *loss_weight; /**< [n_rows] weight of each node in the loss, at least 0; NULL: all 1 */
} graft_network_args;

typedef struct graft_network_info {
    uint32_t    size;
    graft_dtype dtype;         /**< type of weights and activations, GRAFT_F32 or GRAFT_F64 */
    int64_t     n_weights;     /**< elements of all weights */
    int64_t     n_steps;       /**< training steps so far */
    double      multiply_adds; /**< multiply-adds of one inference on this rank */
    int64_t     bytes;         /**< memory of this rank, without the mesh */
    int64_t     bytes_sent;    /**< bytes sent by this rank for the last inference or pair, without frames */
    double      learning_rate; /**< learning rate of the next step */
} graft_network_info;

/** Result of a training step. */
typedef struct graft_network_step {
    uint32_t size;
    int32_t  is_gathering; /**< 1: the step only updated statistics (option mgn.statistics) */
    int64_t  step;         /**< training steps so far */
    double   loss;         /**< mean of (y~ - target~)^2 over columns and, by weight, free nodes; 0 if gathering */
    double   learning_rate;
    double   gradient_norm;
} graft_network_step;

/** Time of a layer, or of a whole pass, on this rank, in seconds of the calling thread. Messages that travel while
 *  edges are computed add no time. */
typedef struct graft_network_times {
    uint32_t size;
    uint32_t reserved;
    double   seconds;    /**< time from begin to end; the parts below are nearly all of it */
    double   edges;      /**< MLP_e and sums at nodes; the encoder of edges */
    double   nodes;      /**< MLP_n, products of nodes for MLP_e; the encoder of nodes, the decoder */
    double   pack;       /**< gathering, encoding (halo.codec) and sending rows of the halo */
    double   wait;       /**< waiting for rows of other ranks, and at the end for the status of all ranks */
    double   unpack;     /**< checking, decoding and adding received rows */
    int64_t  bytes_sent; /**< bytes of rows with their parameters, without the 64-byte frame of each message */
} graft_network_times;

/** A pair to train with. */
typedef struct graft_pair {
    uint32_t           size;
    uint32_t           reserved;
    const graft_field *input;  /**< [n_rows x n_in] state */
    const graft_field *target; /**< [n_rows x n_out] values at the later time, also with CHANGE */
} graft_pair;

/** A rollout: the first n_out columns of the state are replaced by the prediction in each step, on free nodes. */
typedef struct graft_rollout {
    uint32_t           size;
    int32_t            steps;
    const graft_field *initial;                /**< [n_rows x n_in] */
    const graft_field *state;                  /**< [n_rows x n_in] out: state after the last step. May be `initial` */
    int32_t (*after)(void *arg, int32_t step); /**< NULL, or called after each step, from 1 on, on all ranks. It may
                                                    read `state`, and change it: boundary values at the new time, for
                                                    example. Not 0: the rollout ends with ERR_CANCELLED. It must not
                                                    call Graft */
    void *arg;
} graft_rollout;

typedef struct graft_network_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a network with weights from option `seed`, the same for any number of ranks.
     * \param[in]  mesh     Stays allocated as long as its networks.
     * \param[out] network  Unchanged on failure.
     * \return OK; ERR_ARG (null, shapes, ranks that disagree); ERR_FORMAT (a weight that is negative or not finite; no
     *         free node; copies of a shared node that are given differently); ERR_OPTION (halo.codec=adaptive,
     *         halo.staleness=1, model.type=bf16); ERR_UNSUPPORTED (a dense module chosen by name); ERR_NOMEM; ERR_PEER.
     *         The same on all ranks.
     * [one-caller] [starts-openmp]. Collective. Memory: all that inference needs; training needs more at the first
     * step. Since 0.2. */
    int32_t (*create)(graft_mesh *mesh, const graft_network_args *args, graft_network **network, graft_error *error);

    /** Report sizes and counts. \return OK; ERR_ARG (null). [one-caller] Not collective. Memory: none. Since 0.2. */
    int32_t (*info)(const graft_network *network, graft_network_info *info, graft_error *error);

    /** Begin an inference: copy `input`, which may change afterwards, encode it, and send the first rows of the halo.
     *  Until end() the host may compute, and call other objects.
     * \param[in]  input   [n_rows x n_in] the state.
     *
     *  An inference that one rank refuses is refused on all. With several ranks the begin() of this rank returns OK, so
     *  that no rank waits for another before end(), and the end() of all ranks returns the status, with the sentence
     *  and the rank of the lowest rank that has refused it. With option check=full, begin() compares the rows of shared
     *  nodes on all ranks, and its status is the same on all.
     * \return OK; with several ranks returned by end(), except with check=full: ERR_ARG (null, shapes, types),
     *         ERR_NONFINITE (the input, with ghosts, halo.nonfinite=refuse and rows in 8 bits or fewer); ERR_FORMAT
     *         (check=full: copies of a shared node differ); ERR_STATE (an inference has begun and not ended), of this
     *         rank; it counts as an inference, and if other ranks make one less, the next is ERR_PEER; ERR_PEER.
     * [one-caller] [starts-openmp]. Collective. Memory: none; with check=full a copy of the input. Since 0.2. */
    int32_t (*begin)(graft_network *network, const graft_field *input, graft_error *error);

    /** End an inference.
     * \param[out] output  [n_rows x n_out] the values predicted for rows of nodes of this rank. With CHANGE the change
     *                     is added to the input; boundary nodes have their input (CHANGE) or are not written (VALUE).
     *                     Rows of ghosts are not written. It may be the array of begin()'s input. NULL: the result is
     *                     dropped.
     * \return OK; the same on all ranks: ERR_ARG (shapes, types), why a rank has refused the inference in begin(),
     *         ERR_NONFINITE (halo.nonfinite=refuse, and rows of a layer are not finite), ERR_PEER; of this
     *         rank: ERR_STATE (none has begun). After a failure nothing was written, and the inference has ended.
     * [one-caller] [starts-openmp]. Collective: it returns when all ranks have begun the last layer. Memory: none.
     * Since 0.2. */
    int32_t (*end)(graft_network *network, const graft_field *output, graft_error *error);

    /** Infer several steps, each from the result of the previous one. \return OK; as begin() and end(), the same on all
     *  ranks; ERR_CANCELLED (requested by `after`).
     * [one-caller] [starts-openmp]. Collective. Memory: none. Since 0.2. */
    int32_t (*rollout)(graft_network *network, const graft_rollout *args, graft_error *error);

    /** Infer with several networks on one mesh, and return mean and standard deviation of their results.
     * \param[in]  networks  [count] with the same n_in, n_out and `predicts`, on all ranks in the same order.
     * \param[out] mean, deviation  [n_rows x n_out], as output of end(); either may be NULL.
     * \return as begin() and end(), but all ranks agree on errors; ERR_ARG (ranks that disagree). Only this rank
     *         returns ERR_ARG if count < 1 or networks[0] is not a network. [one-caller] [starts-openmp]. Collective.
     *         Memory during the call: 16 n_rows n_out bytes. Since 0.2. */
    int32_t (*ensemble)(graft_network *const *networks, int32_t count, const graft_field *input,
                        const graft_field *mean, const graft_field *deviation, graft_error *error);

    /** Compute the loss of a pair, without noise, and the gradient of all weights, which state_item() then has as
     *  "gradient.NAME". Neither weights nor statistics change. While statistics are empty, values are not standardised.
     * \param[out] loss  As in graft_network_step, bitwise identical on all ranks.
     * \return OK; ERR_ARG; ERR_NONFINITE (the pair, the loss, or rows that halo.nonfinite refuses); ERR_FORMAT
     *         (check=full: copies of a shared node differ); ERR_NOMEM; ERR_PEER. The same on all ranks.
     * [one-caller] [starts-openmp]. Collective. Since 0.2. */
    int32_t (*gradient)(graft_network *network, const graft_pair *pair, double *loss, graft_error *error);

    /** Train with `count` pairs in one step: statistics are updated (in the first steps, see option mgn.statistics;
     *  those of outputs cover free nodes), noise is added to inputs, and AdamW follows the mean gradient. The noise
     *  of a column has the deviation mgn.noise, in units of the data. It is added to the first n_out inputs of free
     *  nodes, depends on seed, step, pair, id and column alone, and is 0 by default: MeshGraphNets uses 0.02 for
     *  velocities of about 1.
     * \param[out] step  May be NULL.
     * \return OK; ERR_ARG; ERR_NONFINITE (a pair, the loss, a gradient, or rows that halo.nonfinite refuses: the
     *         network stays as before); ERR_FORMAT (check=full: copies of a shared node differ); ERR_NOMEM; ERR_PEER.
     *         The same on all ranks. [one-caller] [starts-openmp]. Collective. Memory: at the first step, see info().
     *         Since 0.2. */
    int32_t (*train)(graft_network *network, const graft_pair *pairs, int32_t count, graft_network_step *step,
                     graft_error *error);

    /** Read item number `index` of the state. Names are those of a PyTorch module: "node_encoder.0.weight" [out x in],
     *  "node_encoder.0.bias", ..., "edge_encoder.", "layers.L.edge.", "layers.L.node.", "decoder.", with the number of
     *  the linear layer, and "norm.weight", "norm.bias" for LayerNorm; then "statistics.node.", ".edge." and ".output."
     *  with "count", "sum", and "squares" of deviations from the mean; "optimizer.m.NAME", "optimizer.v.NAME", from the
     *  first step on; "progress.step"; after gradient() "gradient.NAME". Weights, moments and gradients have the type
     *  of info(), statistics GRAFT_F64, counters GRAFT_I64.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Memory: none. Since 0.2. */
    int32_t (*state_item)(graft_network *network, int32_t index, graft_state_item *item, graft_error *error);

    /** Overwrite one item; `item->data` is copied. All ranks set the same.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND (no item of this name); ERR_FORMAT (type, shape, not finite);
     *         ERR_STATE (an inference has begun); ERR_NOMEM (for the first item of the optimiser).
     * [one-caller] Not collective. Since 0.2. */
    int32_t (*state_set)(graft_network *network, const graft_state_item *item, graft_error *error);

    /** Write all items, and the options of the model with the version of its architecture, to a safetensors file, which
     *  appears complete or not at all. Rank 0 writes.
     * \return OK; ERR_ARG (null); ERR_IO; ERR_UNSUPPORTED (over 2048 items, as with 64 layers); ERR_NOMEM; ERR_PEER.
     *         The same on all ranks. [one-caller] Collective. Since 0.2. */
    int32_t (*save)(graft_network *network, const char *path, graft_error *error);

    /** Read a file of save(), or a file of PyTorch with weights only, which leaves statistics and optimiser unchanged.
     *  Rank 0 reads. On failure the network is as before.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND; ERR_IO; ERR_FORMAT (damaged; of another model or version of the
     *         architecture: the message has the first difference; not finite); ERR_NOMEM; ERR_PEER. The same on all
     *         ranks. [one-caller] Collective. Since 0.2. */
    int32_t (*load)(graft_network *network, const char *path, graft_error *error);

    /** Describe the network in a few lines: model, widths, weights, work, memory, messages. If option profile was yes
     *  at create(), also the time of the last begin(), end() and training step, and times() of each layer.
     * \return OK; ERR_ARG (null). [one-caller] Not collective. Since 0.2. */
    int32_t (*explain)(const graft_network *network, char *text, uint64_t capacity, graft_error *error);

    /** Free the network; if a stream trains it, it is freed with the stream. NULL is legal. [one-caller] Not
     *  collective. Since 0.2. */
    void (*destroy)(graft_network *network);

    /** Report the times of the last inference, or of the last pair of a training step, if option profile was yes at
     *  create(). explain() has a table of them.
     * \param[in] layer  0 to layers - 1; -1: encoders and decoder; -2: the whole pass, without conversion of host
     *                   values, losses, statistics and sums over ranks.
     * \param[in] pass   GRAFT_PASS_FORWARD; GRAFT_PASS_BACKWARD, all 0 after an inference.
     * \return OK; ERR_ARG (null, no such layer or pass); ERR_STATE (option profile was no).
     * [one-caller] Not collective. Memory: none. Since 0.2. */
    int32_t (*times)(const graft_network *network, int32_t layer, int32_t pass, graft_network_times *times,
                     graft_error *error);
} graft_network_api;

GRAFT_EXTERN_C_END
#endif
