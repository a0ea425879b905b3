/* "graft.train/1": full-graph training of graph neural networks.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_TRAIN_H
#define GRAFT_TRAIN_H

#include "graft_data.h"
#include "graft_model.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_TRAIN_ID "graft.train/1"

/* Models are described in graft_model.h. Loss: mean over the training vertices of softmax or sigmoid cross-entropy
 * (sigmoid: summed over classes). Arithmetic is in float; with dense.type bf16 the factors of dense products are
 * rounded to bfloat16, and sums are in float.
 *
 * Options. A trainer reads those options of the context at create() that are not `live`; graft_api.option_info has
 * types, defaults and a line of help for each. Weight decay applies to the W and to E (option
 * label_rate). Option strict is live: create() and products read it when they choose a module. Each epoch() reads
 * epochs, eval_every, lr, weight_decay, momentum and these, with e completed epochs:
 *
 *     schedule      constant: lr; cosine: lr/2 (1 + cos(pi e / epochs)) (Loshchilov and Hutter 2017, eq. 5); step:
 *                   lr schedule_factor^floor(e / schedule_every)
 *
 * The others are read by create():
 *
 *     order         the trainer keeps copies of graph, features and labels in this order (see matrix_order); the host's
 *                   numbering does not change
 *     row_masks     a step computes only the rows on which the training vertices depend, layer by layer; gradients are
 *                   the same up to rounding
 *     reuse_input   the aggregate of features without dropout is computed once, and again after update()
 *     recompute     a layer keeps little more than its output, and the backward pass recomputes the rest (Mostafa 2021,
 *                   SAR): less memory, a longer step, the same bits
 *     sparse_input  sparse features may stay sparse: the first layer computes A (X W) and the gradient X^T G by sparse
 *                   products; or they are made dense, the same up to rounding. With "auto" they stay sparse if that is
 *                   less work (a multiply-add of a sparse product counts as eight of a dense one), or if dense ones
 *                   exceed memory.limit. explain() says which
 *     label_rate    r > 0: labels of training vertices are also input (label propagation: Shi et al. 2021, UniMP). H_0
 *                   is X + L E: X are the features (with dropout), E [classes x features] is the weight
 *                   "label_embedding" of the first layer, and row v of L has a 1 for each class of v if v is drawn,
 *                   else 0. In a step each training vertex is drawn with probability r, from seed, epoch and vertex;
 *                   the loss is the mean over the others, and 0 if there are none. Evaluations and predictions use the
 *                   labels of all training vertices, so only validation and test accuracy are meaningful. With
 *                   reuse_input a pass aggregates L only, A (X + L E) = A X + (A L) E. mlp learns nothing from labels,
 *                   because it sees no neighbours
 *
 * Over ranks (dataset.over, see graft_graph.h) each rank has the rows of its owned vertices, and all have the same
 * weights, bit for bit: gradients and losses are summed in the order of ranks. Results equal those of one process up to
 * rounding, with the same draws of dropout and labels. Sums over neighbours are distributed products with plans of
 * graft_aggregate.h; gat exchanges the raw rows of its halo. create(), epoch(), evaluate(), predict() and update() are
 * collective and return the same status on all ranks; see graft_graph_api. Options of the model are the same on all
 * ranks; memory.limit is per rank. symmetrize also adds edges between ranks; an order applies to the vertices of each
 * rank; with row_masks a step sends fewer rows than an evaluation, and a layer with fewer rows has a plan of its
 * own. */

/** A model in training: weights, state of the optimiser, activations. */
typedef struct graft_trainer graft_trainer;

/** The result of an epoch. Accuracies are in 0..1; NaN if there is nothing to measure. */
typedef struct graft_epoch {
    uint32_t size;
    int32_t  done;    /**< 1 after the last of `epochs` epochs */
    int64_t  epoch;   /**< completed epochs, including this one */
    int64_t  epochs;  /**< the total from option "epochs" */
    double   loss;    /**< of the training vertices (see label_rate), before the step, with dropout */
    double   seconds; /**< of the epoch: step and, if due, evaluation */
    double   seconds_step;
    int32_t evaluated; /**< 1 if the accuracies below were measured in this epoch (option eval_every), after the step */
    int32_t best;      /**< 1 if this is the best validation so far; its weights are stored */
    double  train_accuracy, validation_accuracy, test_accuracy;
    double  validation_loss;
    double  drift; /**< with halo.staleness, the relative change |new - old| / |new| of the rows received during this
                           step, over all layers and ranks, which halo.drift_limit limits; 0 without earlier rows. The
                           same on all ranks */
    int32_t synchronous; /**< with halo.staleness, 1 if the step was synchronous; the same on all ranks */
    int32_t reserved;
    double  learning_rate; /**< of the step, after option schedule */
} graft_epoch;

/** Accuracy: the fraction of labelled vertices of the split whose largest logit is that of their label; with several
 *  classes per vertex (targets), the micro-averaged F1 of logits > 0. */
typedef struct graft_metrics {
    uint32_t size;
    uint32_t reserved;
    int64_t  epoch; /**< the epoch of the measured weights */
    double   train_accuracy, validation_accuracy, test_accuracy;
    double   train_loss, validation_loss, test_loss;
} graft_metrics;

/** The weights to use: those after the last epoch, or those of the best validation accuracy (ties: the lower validation
 *  loss, then the earlier epoch); BEST means LAST without a validation split or before the first evaluation. */
enum { GRAFT_WEIGHTS_LAST = 0, GRAFT_WEIGHTS_BEST = 1 };

/** What update() replaces. */
enum { GRAFT_UPDATE_FEATURES = 1u, GRAFT_UPDATE_LABELS = 2u, GRAFT_UPDATE_TARGETS = 4u, GRAFT_UPDATE_SPLIT = 8u };

/** One named array of the state of a trainer. All items together, with the same options and data, determine the
 *  trainer: state read from one and written to a new one continues with the same bits. Over ranks with option
 *  "halo.staleness" the next epoch after state_set() is synchronous; bits are the same if it would have been anyway
 *  ("halo.refresh"). Names: "layers.0.weight_self", "layers.0.bias", "layers.0.norm.gain", ... are weights (gat:
 *  weight [in x K*d], attention_source and attention_target [K x d], bias, for K heads of d columns each), and with
 *  label_rate "label_embedding"; "best.NAME" are the best weights; "optimizer.m.NAME" and "optimizer.v.NAME" moments;
 *  "progress.epoch" and others counters. */
typedef struct graft_state_item {
    uint32_t    size;
    graft_dtype dtype; /**< GRAFT_F32, GRAFT_F64 or GRAFT_I64 */
    const char *name;  /**< owned by the trainer */
    int32_t     n_dims;
    uint32_t    reserved;
    int64_t     shape[4]; /**< the first n_dims are used */
    const void *data;     /**< dense, row-major; owned by the trainer, valid until its next epoch or state_set */
} graft_state_item;

typedef struct graft_train_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a trainer with the options of the context.
     *
     * \param[in]  dataset  Borrowed until destroy(), arrays included. Their contents must not change without update().
     *                      Checked in O(n + edges + features).
     * \param[out] trainer  Unchanged on failure.
     * \return OK; ERR_ARG (null, shapes that do not fit, no classes, no features); ERR_FORMAT (the graph, as
     *         matrix_create(); a label or split out of range; a feature, or sum of repeated sparse ones, that is not
     *         finite; no training vertex in the split); ERR_OPTION (options that contradict each other or the data set,
     *         such as label_rate without labels or split); the status with which a dense module chosen by name refuses;
     *         ERR_NOMEM, also if memory.limit would be exceeded: the message lists the items. Over ranks also ERR_ARG
     *         (ranks that disagree; a graph of another context), ERR_UNSUPPORTED (a symmetrized rank would gather from
     *         more than 2147483647 vertices of others) and ERR_PEER.
     * [one-caller] [starts-openmp]. Collective over the ranks of dataset->over, if given; null arguments and structs
     * without a size are errors of this rank only. Memory: all of it, except for what kernels prepare; see explain().
     * Sparse features are copied, with repeated entries summed. Since 1. */
    int32_t (*create)(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                      graft_error *error);

    /** Train for one epoch (one step on all training vertices) and, if due, evaluate and store the best weights.
     * \param[out] epoch  The result.
     * \return OK; ERR_ARG (null); ERR_STATE (all `epochs` are done, or no split); the codes of graft_mxm_api.run().
     *         After a failure the weights may be between two epochs: only destroy() and state_set() are useful. Over
     *         ranks ERR_ARG, before any work, if ranks differ in epochs, state or the options that it reads, and
     *         ERR_PEER for all later failures, after which only destroy() is useful.
     * [one-caller] [starts-openmp]. Collective, over ranks. Numerics: the same bits for any number of threads.
     * Memory: what kernels prepare at their first run. Since 1. */
    int32_t (*epoch)(graft_trainer *trainer, graft_epoch *epoch, graft_error *error);

    /** Measure loss and accuracy on all three splits, without dropout. \param[in] weights GRAFT_WEIGHTS_...
     * \return OK; ERR_ARG (null, unknown weights); ERR_STATE (no labels or no split); the codes of graft_mxm_api.run();
     *         over ranks as epoch(). [one-caller] [starts-openmp]. Collective, over ranks: the result is that of all
     *         vertices, the same on all ranks. Since 1. */
    int32_t (*evaluate)(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error);

    /** Predict all vertices. \param[out] labels [n] the class of the largest logit, or NULL. \param[out] logits [n x
     * n_classes] F32, or NULL. Over ranks n is that of the rank's slice, and outputs may be NULL on some ranks.
     * \return as evaluate(). [one-caller] [starts-openmp]. Collective, over ranks. Since 1. */
    int32_t (*predict)(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                       graft_error *error);

    /** Read item number `index` of the state. \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last.
     * [one-caller] Not collective. Memory: none. Since 1. */
    int32_t (*state_item)(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error);

    /** Overwrite one item of the state; `item->data` is copied.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND (no item of this name); ERR_FORMAT (another type or shape, or an
     *         illegal value: the message has both). [one-caller] Not collective; over ranks all ranks set the same
     *         items, which the next collective call checks. Since 1. */
    int32_t (*state_set)(graft_trainer *trainer, const graft_state_item *item, graft_error *error);

    /** Describe the trainer in a few lines: model, widths, weights, graph, kernel and dense module, memory.
     * \param[out] text [capacity] terminated, truncated if too long. \return OK; ERR_ARG (null).
     * [one-caller] Not collective. Since 1. */
    int32_t (*explain)(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error);

    /** Free the trainer. NULL is legal. [one-caller] Not collective. Since 1. */
    void (*destroy)(graft_trainer *trainer);

    /** Replace arrays of the data set. Arrays that were changed in place count as replaced by themselves.
     *
     * \param[in] what     One or more of GRAFT_UPDATE_...
     * \param[in] dataset  The new arrays, of the shapes that create() had, and borrowed as those. Only fields that
     *                     `what` names are read.
     * \return OK; ERR_ARG (null, shapes, unknown or no bits); ERR_FORMAT (as create()); ERR_STATE (an array that
     *         create() did not have; a training vertex whose row no step computes: see option row_masks);
     *         ERR_UNSUPPORTED (sparse features); ERR_NOMEM; over ranks as create(). After a failure other than ERR_PEER
     *         the data are as they were.
     * Weights, moments and the number of epochs stay. There is no best so far any more, and the next epoch with
     * halo.staleness is synchronous. Cost: a check of the new values, and a copy where the trainer has copies (option
     * order, row masks, normalize_features, ranks); sums of constant features are computed anew when they are needed.
     * Memory during the call, besides memory.limit: copies of labels, targets and split, and as redistribute().
     * [one-caller] [starts-openmp]. Collective, over ranks: the same `what` on all. Since 1. */
    int32_t (*update)(graft_trainer *trainer, uint32_t what, const graft_dataset *dataset, graft_error *error);
} graft_train_api;

GRAFT_EXTERN_C_END
#endif
