/* "graft.train/1": training of graph neural networks, on the whole graph or by minibatch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_TRAIN_H
#define GRAFT_TRAIN_H

#include "graft_data.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_TRAIN_ID "graft.train/1"

/* Models and losses are described in graft_model.h. Arithmetic is in float; losses, measures, BatchNorm and |g|
 * are summed in double. dense.type=bf16 rounds factors of dense products, model.type=bf16 summed rows (not of gat).
 *
 * Options. create() reads the options of the context that are not `live`; graft_api.option_info has types, defaults and
 * a line of help for each. Weight decay applies to the W and to E (option label_rate). Option strict is live: create()
 * and products read it when they choose a module. Each epoch() reads epochs, eval_every, lr, weight_decay and
 * the following options, after e completed epochs:
 *
 *     schedule      constant: lr; cosine: lr/2 (1 + cos(pi e / epochs)) (Loshchilov and Hutter 2017, eq. 5); step:
 *                   lr FACTOR^floor(e / EPOCHS), of schedule=step:EPOCHS:FACTOR
 *     on_nonfinite  a loss, gradient, weight or moment, or the loss of training or validation vertices in an
 *                   evaluation, is infinite or NaN. stop: epoch() returns ERR_NONFINITE, and restores weights and
 *                   moments of the last epoch with finite losses. restore: the learning rate is halved permanently, and
 *                   epochs repeated from there until this one is completed, at most 128 times, or 8 if the restored
 *                   weights fail too. graft_epoch describes this epoch only; best weights stay. Not with batch_size
 *     clip_norm     0: none. Else the gradients g of all weights are scaled by min(1, clip_norm / |g|_2) before weight
 *                   decay (Pascanu et al. 2013, algorithm 1)
 *     patience      early stopping (Prechelt 1998), 0: none. An evaluation this many epochs after the best one sets
 *                   graft_epoch.should_stop. Resumed training continues the count; update() restarts it
 *
 * and, over ranks, the `live` options of messages, such as halo.codec and halo.staleness. If halo.codec,
 * halo.staleness, halo.rounding or halo.nonfinite has changed, message buffers are replaced, the epoch is synchronous,
 * and adaptive bits are assigned anew. If a rank has no memory for old and new buffers, epoch() returns ERR_NOMEM on
 * all ranks, and nothing has changed: the host can restore the options and continue.
 *
 * create() reads the other options; graft_model.h describes options of the model:
 *
 *     order         the trainer has copies of graph, features and labels in this order (matrix_order)
 *     row_masks     a step computes only the rows on which training vertices depend; gradients are the same
 *     reuse_input   the aggregate of features without dropout is computed once, and again after update()
 *     recompute     layers keep little but outputs, and recompute the rest (Mostafa 2021, SAR), bitwise alike
 *     batch_size    not 0: an epoch has a step for each batch, drawn by option fanout and others (graft_sample.h), and
 *                   evaluations use all neighbours. Over ranks batches consist of owned vertices; the halo has
 *                   features, and rows of earlier batches (graft_cache_item) or, with hec.miss=fetch, of this batch,
 *                   with gradients. If an epoch() of one process is cancelled or lacks memory, the next one continues
 *     eval.blocks   evaluations with batch_size in blocks of rows; see graft_report.h. It is live
 *     workers       sparse:THREADS: these make sums over neighbours, in a pipeline with the others (MixGCN); results
 *                   are bitwise identical
 *     sparse_input  whether sparse features are made dense (see graft_model.h)
 *
 * Over ranks (dataset.over, see graft_graph.h) each rank has the rows of its owned vertices, and all have the same
 * weights, bit for bit: gradients and losses are summed in a fixed order. Results equal the results of one process up
 * to rounding, with the same draws of dropout and labels. Sums over neighbours are distributed products with plans of
 * graft_aggregate.h; gat, max and min exchange raw rows. create(), epoch(), evaluate(), predict() and update() are
 * collective and return the same status on all ranks, see graft_graph_api. Options of the model are the same on all
 * ranks; memory.limit is per rank. symmetrize also adds edges between ranks; an order applies to the vertices of each
 * rank. */

/** A model in training: weights, state of the optimiser, activations. */
typedef struct graft_trainer graft_trainer;

/** The result of an epoch. Accuracies are in 0..1. Measures are NaN if there is nothing to measure. */
typedef struct graft_epoch {
    uint32_t size;
    int32_t  done;    /**< 1 after the last of `epochs` epochs */
    int64_t  epoch;   /**< completed epochs, including this one */
    int64_t  epochs;  /**< the total from option "epochs" */
    double   loss;    /**< loss of the training vertices (see label_rate), before the step, with dropout */
    double   seconds; /**< duration of the epoch: the step and, if due, the evaluation */
    double   seconds_step;
    int32_t evaluated; /**< 1 if the accuracies below were measured in this epoch (option eval_every), after the step */
    int32_t best;      /**< 1 if this is the best validation so far; its weights are stored */
    double  train_accuracy, validation_accuracy, test_accuracy;
    double  validation_loss;
    double  drift; /**< with halo.staleness, the relative change |new - old| / |new| of the rows received in this step,
                        of all layers and ranks; 0 without earlier rows; the same on all */
    int32_t synchronous; /**< with halo.staleness, 1 if the step was synchronous; the same on all ranks */
    int32_t reserved;
    double  learning_rate; /**< learning rate of the step, as option schedule gives it */
    double  train_rmse, validation_rmse, test_rmse, train_r2, validation_r2,
        test_r2;         /**< measures as in graft_metrics */
    int32_t should_stop; /**< 1 if option patience says so; the same on all ranks */
    int32_t reserved_tail;
    double  gradient_norm; /**< with option clip_norm, the length of the gradient before it was clipped; else NaN */
} graft_epoch;

/** Accuracy: the fraction of labelled vertices of the split whose largest logit belongs to their label; with several
 *  classes per vertex (targets), the micro-averaged F1 of logits > 0. For float targets, with known elements y of the
 *  split and outputs x: RMSE = sqrt(mean (y - x)^2) over all columns; R^2 = mean over columns of 1 - sum (y - x)^2 /
 *  sum (y - mean y)^2, without columns whose y are all the same. Measures that do not apply are NaN. */
typedef struct graft_metrics {
    uint32_t size;
    uint32_t reserved;
    int64_t  epoch; /**< the epoch of the measured weights */
    double   train_accuracy, validation_accuracy, test_accuracy;
    double   train_loss, validation_loss, test_loss;
    double   train_rmse, validation_rmse, test_rmse, train_r2, validation_r2, test_r2;
} graft_metrics;

/** The weights to use, of the last epoch or of the epoch with the best validation accuracy (ties: the lower validation
 *  loss, then the earlier epoch), for float targets with the lowest validation loss; BEST means LAST without a
 *  validation split or before the first evaluation. */
enum { GRAFT_WEIGHTS_LAST = 0, GRAFT_WEIGHTS_BEST = 1 };

/** The arrays that update() replaces; TARGETS: targets or float_targets, whichever the trainer has. */
enum {
    GRAFT_UPDATE_FEATURES = 1u,
    GRAFT_UPDATE_LABELS = 2u,
    GRAFT_UPDATE_TARGETS = 4u,
    GRAFT_UPDATE_SPLIT = 8u,
    GRAFT_UPDATE_EDGE_VALUES = 16u,
    GRAFT_UPDATE_EDGE_FEATURES = 32u
};

/** One named array of the state of a trainer. All items together, with the same options and data, determine the
 *  trainer: if the state of one is written to a new one, training continues bitwise identically. Over ranks with option
 *  "halo.staleness" the next epoch after state_set() is synchronous, so this holds only if it would have been
 *  synchronous anyway ("halo.staleness"=1:N). Names: "layers.0.weight_self", "layers.0.bias", "layers.0.norm.gain", ...
 *  are weights (gat: weight [in x K*d], attention_source and attention_target [K x d], bias, for K heads of d columns;
 *  with edge_features weight_edge [e x K*d], e of an edge, attention_edge [K x d]; inner_bias [K*d] with
 *  attention_input), "label_embedding" with label_rate; "layers.0.norm.mean", ".variance" of BatchNorm; "best.NAME"
 *  weights of the best epoch; "optimizer.m.NAME", "optimizer.v.NAME" moments of weights; "progress.epoch" and others
 *  counters; "history.NAME" and, on each rank its own, "caches.NAME" rows of earlier batches (graft_sample.h). */
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
     * \param[in]  dataset  Borrowed until destroy(), arrays included. Their contents must not change without update().
     *                      Checked in O(n + edges + features); see graft_dataset.features.
     * \param[out] trainer  Unchanged on failure.
     * \return OK; ERR_ARG (null, shapes that do not fit, no classes, no features); ERR_FORMAT (the graph, as
     *         matrix_create(); a label or split out of range; a feature, or sum of repeated sparse ones, that is not
     *         finite; no training vertex in the split); ERR_OPTION (options that contradict each other or the data set,
     *         such as label_rate without labels or split); the status with which a dense module chosen by name refuses;
     *         ERR_IO (eval.blocks=FOLDER); ERR_NOMEM, also if memory.limit would be exceeded: the message lists items.
     *         Over ranks also ERR_ARG (ranks that disagree), ERR_UNSUPPORTED (a symmetrized rank would gather from more
     *         than 2147483647 vertices of others) and ERR_PEER.
     * [one-caller] [starts-openmp]. Collective over the ranks of dataset->over, if given; a dataset that is null or has
     * no size, and an `over` that is no graph, are errors of this rank only, and other ranks wait. Memory: all memory,
     * except of kernels and, with batch_size, layers. Sparse features are copied, repeats summed. Since 0.1. */
    int32_t (*create)(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                      graft_error *error);

    /** Train for one epoch (one step; option batch_size: several) and, if due, evaluate and store the best weights.
     * \param[out] epoch  The result.
     * \return OK; ERR_ARG (null); ERR_STATE (all `epochs` are done, or no split); ERR_NONFINITE (option on_nonfinite:
     *         the trainer goes on from the last good epoch); the codes of graft_mxm_api.run(). After another failure
     *         the weights may be between two epochs: only destroy() and state_set() are useful. Over ranks, before any
     *         work, ERR_ARG if ranks differ in epochs, state or the options read by epoch(), and ERR_NOMEM if changed
     *         options need unavailable memory. Later failures except ERR_NONFINITE are ERR_PEER, after which only
     *         destroy() is useful.
     * [one-caller] [starts-openmp]. Collective, over ranks. Bitwise identical for any number of threads. Memory:
     * what kernels prepare at their first run. Since 0.1. */
    int32_t (*epoch)(graft_trainer *trainer, graft_epoch *epoch, graft_error *error);

    /** Measure loss and accuracy on all three splits, without dropout. \param[in] weights GRAFT_WEIGHTS_...
     * \return OK; ERR_ARG (null, unknown weights); ERR_STATE (no labels or no split); the codes of graft_mxm_api.run();
     *         over ranks as epoch(). [one-caller] [starts-openmp]. Collective, over ranks: the result covers all
     *         vertices, and is the same on all ranks. Since 0.1. */
    int32_t (*evaluate)(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error);

    /** Predict all vertices. \param[out] labels [n] the class of the largest logit, or NULL, as it must be for float
     * targets. \param[out] logits [n x n_classes] F32, the outputs of the model, or NULL. Over ranks n counts the
     * vertices of the rank's slice, and outputs may be NULL on some ranks. \return as evaluate(); ERR_ARG
     * (labels, shape). [one-caller] [starts-openmp]. Collective, over ranks. Since 0.1. */
    int32_t (*predict)(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                       graft_error *error);

    /** Read item number `index` of the state. \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last.
     * [one-caller] Not collective. Memory: none. Since 0.1. */
    int32_t (*state_item)(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error);

    /** Overwrite one item of the state; `item->data` is copied. "history.NAME" and "caches.NAME" may be left out.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND (no item of this name); ERR_FORMAT (another type or shape, or a value
     *         that this trainer cannot use: the message has both). [one-caller] Not collective; over ranks all set the
     *         same items, except caches, which the next collective call checks. Since 0.1. */
    int32_t (*state_set)(graft_trainer *trainer, const graft_state_item *item, graft_error *error);

    /** Describe the trainer in a few lines: model, widths, weights, graph, kernel and dense module, memory.
     * \param[out] text [capacity] terminated, truncated if too long. \return OK; ERR_ARG (null).
     * [one-caller] Not collective. Since 0.1. */
    int32_t (*explain)(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error);

    /** Free the trainer. NULL is legal. [one-caller] Not collective. Since 0.1. */
    void (*destroy)(graft_trainer *trainer);

    /** Replace arrays of the data set. Arrays that were changed in place count as replaced by themselves.
     * \param[in] what     One or more of GRAFT_UPDATE_...
     * \param[in] dataset  The new arrays, of the same shapes, borrowed as in create(). Other fields are not read.
     * \return OK; ERR_ARG (null, shapes, other entries of the graph, unknown or no bits); ERR_FORMAT (as create());
     *         ERR_STATE (an array that create() did not have; a training vertex whose row no step computes: see option
     *         row_masks); ERR_NOMEM; over ranks as create(). Failures except ERR_PEER leave the data unchanged. Sparse
     * features must have the entries of create(), with new values, or else ERR_ARG; features that were made dense may
     * have other entries. EDGE_VALUES reads dataset->graph, with row_ptr and col_idx as in create(); over ranks it has
     * the rows of the slice, is read during the call, and may be null for an empty slice. The distributed graph and its
     * other users keep the old values: the trainer allocates its own, within memory.limit. Adaptive bits are assigned
     * anew. mlp, maxima, minima, and gat without edge_features=values use none. Weights, moments, running statistics
     * and epochs stay, best weights are forgotten, and the next epoch with halo.staleness is synchronous. Cost: a check
     * of new values, and a copy where the trainer has copies; for edge values and features, the work of create() on the
     * graph, without owners, orders and covers. Memory besides memory.limit: copies of labels, targets, split and
     * graph, and the memory of redistribute().
     * [one-caller] [starts-openmp]. Collective, over ranks: the same `what` on all. Since 0.1. */
    int32_t (*update)(graft_trainer *trainer, uint32_t what, const graft_dataset *dataset, graft_error *error);
} graft_train_api;

GRAFT_EXTERN_C_END
#endif
