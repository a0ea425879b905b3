/* "graft.train/1": graph neural networks trained on the whole graph at once.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_TRAIN_H
#define GRAFT_TRAIN_H

#include "graft_account.h"
#include "graft_data.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_TRAIN_ID "graft.train/1"

/* Models. H_0 are the features, A the graph (row v: the neighbours of v), W and b weights, L the number of layers:
 *
 *     mlp    Z_l = H_l W + b                                   (the graph is not used: the baseline)
 *     sage   Z_l = H_l W_self + D^-1 A H_l W_neigh + b         mean over neighbours, 0 if none; Hamilton et al. 2017
 *     gcn    Z_l = D^-1/2 A D^-1/2 H_l W + b                   with self loops; Kipf and Welling 2017, eq. 2
 *     gat    Z_l = (P_1 U_1 | ... | P_K U_K) + b               with self loops; Velickovic et al. 2018, eqs. 1 to 6
 *     gin    Z_l = ReLU(((1+eps) H_l + A H_l) W_1 + b_1) W_2 + b_2       Xu et al. 2019, eq. 4.1, eps fixed
 *
 *     H_{l+1} = dropout(ReLU(norm(Z_l)))  for l < L-1;  Z_{L-1} are the logits.
 *
 * gat has K = `heads` heads: H_l W = (U_1 | ... | U_K) side by side, each as wide as the output over K; in the last
 * layer each as wide as the output, which is their mean instead. P_k is the softmax over each row of A of the scores of
 * its entries: that of (v, u) is s = target_k . U_k(v) + source_k . U_k(u) if positive, else s/5. A vertex without
 * entries gathers 0; the values of A have no part in it.
 *
 * D holds the sums of the rows of A after symmetrize and self_loops: the numbers of neighbours, if A has no values. A
 * vertex whose sum is not positive gathers 0. gcn has D on both sides, so A should be symmetric. Loss: mean over the
 * training vertices of softmax or sigmoid cross-entropy (sigmoid: summed over classes). Weights begin Glorot-uniform,
 * biases 0, norm gain 1 and shift 0. Arithmetic is in float; with dense.type bf16, dense products
 * round what they multiply to bfloat16, and add in float.
 *
 * The options of a trainer are those of the context at create() that are not `live`: model, layers, hidden, epochs, lr,
 * dropout, input_dropout, label_rate, norm, weight_decay, weight_decay_layers, optimizer, momentum, loss, seed,
 * eval_every, symmetrize, self_loops, normalize_features, order, row_masks, reuse_input, sparse_input, recompute,
 * heads, gin_eps, memory.limit, profile, dense.module and dense.type; graft_api.option_info gives types, defaults, a
 * line of help for each. The weight decay applies to the W, and to E below. Option strict is live: create() and the
 * products ask it when they choose.
 *
 * With an order (see matrix_order) the trainer keeps its own copies of graph, features and labels in it; the host's
 * numbering stays as it is. So it does with row_masks, where a step does the rows alone that the training vertices
 * depend on, layer by layer: the same gradients within rounding. With reuse_input, what the first layer makes of
 * features that dropout leaves alone is kept, so the features must stay as they are. With recompute, a layer keeps
 * little but its output, and the backward pass does again what is inside the layer (Mostafa 2021, SAR): less memory, a
 * longer step, the same bits.
 *
 * With label_rate r > 0 labels of training vertices are input too (label propagation: Shi et al. 2021, UniMP). H_0 is
 * X + L E: X the features (with dropout, if there is any), E [classes x features] a weight, "label_embedding", which is
 * the first layer's; row v of L has a 1 for each class of v, if v is one of those that give their label, and else is 0.
 * In a step each training vertex is one of these with probability r, drawn by seed, epoch and vertex; the loss is the
 * mean over the other training vertices, and 0 if there are none. An evaluation or prediction has the labels of all
 * training vertices as input, so that what it measures on these tells little, and what it does on validation and test
 * is right. What X becomes in the first layer does not depend on this: with reuse_input a pass aggregates L alone, A (X
 * + L E) = A X + (A L) E, and sparse features stay sparse. mlp sees no labels but of the vertex itself, so it learns
 * nothing from them.
 *
 * Sparse features may stay so, and then the first layer computes A (X W) and the gradient X^T G by sparse products; or
 * they are made dense: the same within rounding. With sparse_input "auto" they stay sparse if that is less work in a
 * step, a multiply-add of a sparse product counting for eight of a dense one, or if memory.limit leaves no room for
 * dense ones. explain() says which. */

/* Over ranks (dataset.over, see graft_graph.h) each rank has the rows of the vertices that it owns, and all have the
 * same weights, bit for bit: gradients and losses are added up in the order of ranks. The results are those of one
 * process but for rounding, with the same draws of dropout and labels. Sums over neighbours go by a plan of
 * graft_aggregate.h, with option halo.cover; gat needs all rows of its halo as they are. create(),
 * epoch(), evaluate() and predict() are collective: all ranks call them in the same order, and return the same status;
 * see graft_graphs. Options that make a model are the same on all ranks, memory.limit is of each rank. symmetrize adds
 * what is missing between ranks; an order is one of the vertices of each rank; with row_masks a step sends fewer rows
 * than an evaluation, and a layer that does fewer has a plan of its own. */

/** A model in training: weights, optimiser, activations. */
typedef struct graft_trainer graft_trainer;

/** What an epoch came to. Fractions are in 0..1; NaN where there is nothing to measure. */
typedef struct graft_epoch {
    uint32_t size;
    int32_t  done;    /**< 1 when `epochs` epochs are behind */
    int64_t  epoch;   /**< epochs behind, this one included */
    int64_t  epochs;  /**< how many there are to be */
    double   loss;    /**< of the training vertices (see label_rate), before the step, with dropout */
    double   seconds; /**< of the epoch: step and, if due, evaluation */
    double   seconds_step;
    int32_t evaluated; /**< 1 if the accuracies below were measured in this epoch (option eval_every), after the step */
    int32_t best;      /**< 1 if this was the best validation so far; its weights were kept */
    double  train_accuracy, validation_accuracy, test_accuracy;
    double  validation_loss;
    double  drift;  /**< with halo.async, how far rows that came during this step were from those that they replaced, of
                           all layers and ranks: |new - old| / |new|. It is what halo.drift_limit limits. 0 where there
                           were none to compare with. This and `waited`: the same on all ranks */
    int32_t waited; /**< 1 if the step used rows of its own, with halo.async; it did not if they were a step late */
    int32_t reserved;
} graft_epoch;

/** Accuracy: the share of labelled vertices of the split whose largest logit is that of their label; with several
 *  classes at once (targets), micro-averaged F1 of logits > 0. */
typedef struct graft_metrics {
    uint32_t size;
    uint32_t reserved;
    int64_t  epoch; /**< of the weights that were measured */
    double   train_accuracy, validation_accuracy, test_accuracy;
    double   train_loss, validation_loss, test_loss;
} graft_metrics;

/** Weights to use: as they are after the last epoch, or those of the best validation accuracy (of equal ones, the lower
 *  validation loss, then the earlier); LAST where there is no validation split or no evaluation has taken place. */
enum { GRAFT_WEIGHTS_LAST = 0, GRAFT_WEIGHTS_BEST = 1 };

/** One named array of the state of a trainer. All of them together, under the same options and on the same data, are
 *  the trainer: state that was read, and written into a fresh trainer, goes on with the same bits. Over ranks, with
 *  option "halo.async", the next epoch of a trainer that was given state waits for its own rows; bits are the same if
 *  that of the other one does so too (option "halo.sync_every").
 *  Names: "layers.0.weight_self", "layers.0.bias", "layers.0.norm.gain", ... are the weights (gat: weight [in x K*d],
 *  attention_source and attention_target [K x d], bias, for K heads of d columns each), and with label_rate
 *  "label_embedding"; "best.NAME" the best
 *  ones; "optimizer.m.NAME" and "optimizer.v.NAME" the moments; "progress.epoch" and the like the counters. */
typedef struct graft_state_item {
    uint32_t    size;
    graft_dtype dtype; /**< GRAFT_F32, GRAFT_F64 or GRAFT_I64 */
    const char *name;  /**< owned by the trainer */
    int32_t     n_dims;
    uint32_t    reserved;
    int64_t     shape[4]; /**< the first n_dims are used */
    const void *data;     /**< dense, by rows; owned by the trainer, current until its next epoch or state_set */
} graft_state_item;

typedef struct graft_train {
    uint32_t size;
    uint32_t reserved;

    /** Make a trainer with the options of the context.
     *
     * \param[in]  dataset  Borrowed until destroy(), arrays included. Checked: O(n + edges + features).
     * \param[out] trainer  Untouched on failure.
     * \return OK; ERR_ARG (null, a shape that does not fit, no classes, no features); ERR_FORMAT (the graph, as
     *         matrix_create(); a label out of range; a split of another value; a feature that is not finite, or
     *         the sum of sparse ones at one place; no training vertex in the split); ERR_OPTION (options that
     *         contradict each other, or the data set: label_rate without labels or split); what the dense module
     *         that was chosen by name refuses with; ERR_NOMEM, also before more than memory.limit would be
     *         used: the message is the ledger. Over ranks also ERR_ARG (ranks
     *         that disagree; a graph of another context), ERR_UNSUPPORTED (made symmetric, a rank would gather from
     *         more than 2147483647 vertices of others), and ERR_PEER.
     * [one-caller] [starts-openmp]. Collective over the ranks of dataset->over, if there is one, which the trainer
     * holds; null arguments and structs without a size are errors of this rank alone. Memory: all of it here, save what
     * kernels prepare; see explain(). Sparse features are copied, entries at one place added up, and stay sparse or are
     * made dense: sparse_input. Since 1. */
    int32_t (*create)(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                      graft_error *error);

    /** Train for one epoch (one step on all training vertices) and, when due, evaluate and keep the best weights.
     * \param[out] epoch  What it came to.
     * \return OK; ERR_ARG; ERR_STATE (`epochs` are behind, or no split); the codes of graft_mxm.run(). After a failure
     *         the weights may have been left between two epochs: only destroy() and state_set() are of use. Over ranks
     *         ERR_ARG, before anything is done, if they are not as many epochs on, or were given another state, and
     *         ERR_PEER for all that goes wrong later, after which only destroy() is of use.
     * [one-caller] [starts-openmp]. Collective, over ranks. Numerics: the same bits for any number of threads.
     * Since 1. */
    int32_t (*epoch)(graft_trainer *trainer, graft_epoch *epoch, graft_error *error);

    /** Measure loss and accuracy on all three splits, without dropout. \param[in] weights GRAFT_WEIGHTS_...
     * \return OK; ERR_ARG; ERR_STATE (no labels or no split); the codes of graft_mxm.run(); over ranks as epoch().
     * [one-caller] [starts-openmp]. Collective, over ranks: of all vertices, the same on all ranks. Since 1. */
    int32_t (*evaluate)(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error);

    /** Predict every vertex. \param[out] labels [n] the class of the largest logit, or NULL. \param[out] logits [n x
     * n_classes] F32, or NULL. Over ranks n is that of the slice of the rank, and outputs may be NULL on some of them.
     * \return as evaluate(). [one-caller] [starts-openmp]. Collective, over ranks. Since 1. */
    int32_t (*predict)(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                       graft_error *error);

    /** Item number `index` of the state. \return OK; ERR_ARG; ERR_NOT_FOUND past the last.
     * [one-caller] Not collective. Since 1. */
    int32_t (*state_item)(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error);

    /** Overwrite one item of the state; `item->data` is copied.
     * \return OK; ERR_ARG; ERR_NOT_FOUND (no item of this name); ERR_FORMAT (type or shape differ, a value that cannot
     *         be: the message names both). [one-caller] Not collective; over ranks all are given the same, and the next
     *         collective call finds out if they are not. Since 1. */
    int32_t (*state_set)(graft_trainer *trainer, const graft_state_item *item, graft_error *error);

    /** Say in a few lines what the trainer is: model, widths, weights, graph, kernel and dense module, memory.
     * \param[out] text [capacity] terminated, cut if too short. \return OK; ERR_ARG.
     * [one-caller] Not collective. Since 1. */
    int32_t (*explain)(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error);

    /** Free it. NULL is legal. [one-caller] Not collective. Since 1. */
    void (*destroy)(graft_trainer *trainer);

    /** Span number `index` of the last epoch(), evaluate() or predict() of a trainer made with option `profile`.
     * \return OK; ERR_ARG; ERR_NOT_FOUND past the last; ERR_STATE (made without `profile`).
     * [one-caller] Not collective. Since 1. */
    int32_t (*span)(graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error);

    /** Item number `index` of what create() took memory for; option memory.limit is held against their sum. What
     * kernels and dense modules prepare at their first run is not in it: of a dense module that comes with Graft at
     * most 16 MB, and with bf16 about 2 MB more for each thread and what its library works in.
     * \return OK; ERR_ARG; ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 1. */
    int32_t (*ledger_item)(graft_trainer *trainer, int32_t index, graft_ledger_item *item, graft_error *error);

    /** Count what goes to rank `rank` of a trainer over ranks, or with -1 to all of them.
     * \return OK; ERR_ARG (null, no such rank); ERR_STATE (not over ranks). [one-caller] Not collective. Since 1. */
    int32_t (*traffic)(graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error);

    /** Count what rank `rank`, or with -1 all, exchanged in the last step in layer index/2: forward, or if index is odd
     * backward.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last layer; ERR_STATE (not over ranks).
     * [one-caller] Not collective. Since 1. */
    int32_t (*traffic_item)(graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                            graft_error *error);

    /** Count what this rank sent to rank `peer` in the last step, in the layer and direction of `index` as above, and
     * what few bits lost of it. Others know of it by what this one tells them alone.
     * \return OK; ERR_ARG (null, no such rank); ERR_NOT_FOUND past the last layer; ERR_STATE (not over ranks).
     * [one-caller] Not collective. Since 1. */
    int32_t (*traffic_pair)(graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                            graft_error *error);
} graft_train;

GRAFT_EXTERN_C_END
#endif
