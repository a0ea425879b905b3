/* "graft.model/1": formulas of models, and models without a trainer: weights in files, predictions.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MODEL_H
#define GRAFT_MODEL_H

#include "graft_train.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_MODEL_ID "graft.model/1"

/* Models. H_0 are the features, A is the graph (row v has the neighbours of v), W and b are weights, L is the number of
 * layers:
 *
 *     mlp    Z_l = H_l W + b                                   (a baseline without the graph)
 *     sage   Z_l = H_l W_self + D^-1 A H_l W_neigh + b         mean over neighbours, 0 if none; Hamilton et al. 2017
 *     gcn    Z_l = D^-1/2 A D^-1/2 H_l W + b                   with self loops; Kipf and Welling 2017, eq. 2
 *     gat    Z_l = (P_1 U_1 | ... | P_K U_K) + b               with self loops; Velickovic et al. 2018, eqs. 1 to 6
 *     gin    Z_l = ReLU((H_l + A H_l) W_1 + b_1) W_2 + b_2               Xu et al. 2019, eq. 4.1, eps = 0
 *
 * With aggregator=sum sage has A in the place of D^-1 A. With aggregator=max (min), element (v, j) of D^-1 A H_l is
 * replaced by the largest (smallest) H_l(u, j) of all neighbours u, and by 0 if v has none (pooling of Hamilton et al.
 * 2017, section 3.3, without a layer before it). Values of A are not used. A gradient goes to the neighbour that gave
 * the element; among equal neighbours to the first of the row, where over ranks owned vertices come first. Over ranks,
 * except with parallel=feature, max and min exchange rows of neighbours, as gat does, and row_masks has no effect. They
 * need dense features and no label_rate; sparse_input=auto makes features dense.
 *
 *     H_{l+1} = dropout(act(norm(Z_l)))  for l < L-1;  Z_{L-1} are the logits.
 *
 * act is option `activation`: ReLU, or ELU(x) = x if x > 0, else e^x - 1 (Clevert et al. 2016). gin has ReLU inside of
 * a layer in any case. The norm is LayerNorm, for each vertex over its row (Ba et al. 2016), with gain and shift; or
 * BatchNorm, see below. With norm_order=after_dropout it is H_{l+1} = act(norm(dropout(Z_l))), the order of SuperGCN
 * and AdaQP. With option residual a hidden layer l > 0 that is as wide as its input adds its input, H_{l+1} = ... + H_l
 * (Kipf and Welling 2017, eq. 14); create() returns ERR_OPTION if there is no such layer among three or more. With
 * option jumping layer L-1 > 1 reads all hidden layers (jumping knowledge, Xu et al. 2018): with cat (H_1 | ... |
 * H_{L-1}) for H_{L-1}, with max their element-wise maximum (ERR_OPTION unless equally wide).
 *
 * BatchNorm (Ioffe and Szegedy 2015, as PyTorch's BatchNorm1d) is z' = gain (z - m) / sqrt(s + 1e-5) + shift for each
 * column of Z_l. In a step m and s are its mean and biased variance over all vertices, so a step computes all rows of
 * the hidden layers; row_masks applies to later layers. Evaluations use "layers.L.norm.mean" and ".norm.variance" of
 * the state, initially 0 and 1; each step moves them a tenth of the way to its mean and unbiased variance.
 *
 * sgc and appnp predict as mlp does, P = Z_{L-1}, and then propagate in K = `propagation` steps, with self loops:
 *
 *     sgc    Y_0 = P,  Y_k = S Y_{k-1},  S = D^-1/2 A D^-1/2;  Y_K are the logits     Wu et al. 2019, eq. 8, for L = 1
 *     appnp  Y_k = (1 - t) S Y_{k-1} + t P, with t = `teleport`                       Gasteiger et al. 2019, eqs. 3, 4
 *
 * With label_rate r > 0 labels of training vertices are also input (label propagation: Shi et al. 2021, UniMP). H_0 is
 * X + L E: X are the features (with dropout), E [classes x features] is the weight "label_embedding" of the first
 * layer, and row v of L has a 1 for each class of v if v is drawn, else 0. In a step each training vertex is drawn with
 * probability r, from seed, epoch and vertex; the loss is the mean over undrawn vertices, or 0. Evaluations and
 * predictions use the labels of all training vertices, so only validation and test accuracy are meaningful. With
 * reuse_input a pass aggregates L only, A (X + L E) = A X + (A L) E. mlp learns nothing from labels.
 *
 * gat has K = `heads` heads: H_l W = (U_1 | ... | U_K) concatenated, each of 1/K of the output width; in the last layer
 * each head has the full output width, and the output is the mean of the heads. P_k is the softmax over each row of A
 * of the scores of its edges: the score of (v, u) is s = target_k . U_k(v) + source_k . U_k(u) if positive, else s/5. A
 * vertex without edges gathers 0. With attention_dropout p a step sets each element of P_k to 0 with probability p and
 * divides the others by 1 - p; draws depend on seed, epoch, layer, v, u and k only. With attention_input=relu ReLU(H_l
 * W + c) takes the place of H_l W, for a bias c, "inner_bias" (DistGNN-MB, eq. 2, which has no bias b).
 *
 * gat uses the values of A only with edge_features=values: then a (W_e,k . edge_k) is added to the sum above, for the
 * value a of (v, u) and weights W_e = (W_e,1 | ... | W_e,K), as in GATConv of PyTorch Geometric with edge_dim=1; with
 * edge_features=array, edge_dim=d, a is a row of graft_dataset.edge_features. A loop that self_loops adds has the mean
 * of its row, or 0; loops of the graph keep their values (in GATConv all get the mean). ERR_OPTION without such values.
 *
 * D has the row sums of A after symmetrize and self_loops: the numbers of neighbours if A has no values. A vertex with
 * a sum that is not positive gathers 0. gcn scales both sides with D, so A should be symmetric.
 *
 * Sparse features may stay sparse (option sparse_input): the first layer computes A (X W) and the gradient X^T G by
 * sparse products; or they are made dense, the same up to rounding. With "auto" they stay sparse if that is less work
 * (a multiply-add of a sparse product counts as eight of a dense one), or if dense ones exceed memory.limit.
 * graft_train_api.explain() says which.
 *
 * Loss: mean over the training vertices of softmax or sigmoid cross-entropy (sigmoid: summed over classes). For float
 * targets: mean over their known elements in training vertices, of all columns and ranks together (PyTorch's
 * reduction='mean'), of d^2 (option loss: mse), |d| (mae) or, with D of loss=huber:D, d^2/2 where |d| <= D, else
 * D (|d| - D/2) (huber), for d = output - target. With loss=softmax:SMOOTHING, for n classes, p = softmax(logits),
 * y the class of a vertex, e = SMOOTHING (Szegedy et al. 2016, section 7) and w_c the weight of class c, it is
 *
 *     l = -(1 - e) w_y log p_y - e/n sum over c of w_c log p_c,    sum of l / sum of w_y
 *
 * as PyTorch's cross_entropy has it. loss=softmax:balanced: w_c = N / (n N_c), where N_c of the N training vertices of
 * all ranks are in class c, and w_c = 0 if N_c = 0; else w_c = 1. Losses of evaluations have the same e and w_c.
 *
 * Initial weights are uniform within [-b, b]. In sage, mlp, sgc and appnp b is 1/sqrt(in) for weights and biases,
 * where in is the number of rows of the weight (the rule of PyTorch's Linear); in gin b is 1/sqrt(in) for weights; in
 * gcn, gat and the label embedding of option label_rate it is sqrt(6/(in + out)) for weights (Glorot and Bengio 2010,
 * eq. 16). All other biases are 0, norm gains 1 and shifts 0. The draws depend on seed, parameter, row and column only;
 * state_set() replaces the values. */

/** A model outside of a trainer: kind, options, weights, and maybe the whole state of its training. It knows no graph
 *  and no ranks, and belongs to its context. */
typedef struct graft_model graft_model;

/** The part of a trainer in a model: the weights after the last epoch, the weights of the best validation (see
 *  GRAFT_WEIGHTS_BEST), or the whole state. */
enum { GRAFT_MODEL_LAST = 0, GRAFT_MODEL_BEST = 1, GRAFT_MODEL_STATE = 2 };

typedef struct graft_model_info {
    uint32_t       size;
    int32_t        has_state;  /**< 1: the whole state, not the weights alone */
    int32_t        n_layers;   /**< including layers that only propagate */
    int32_t        n_metadata; /**< texts that metadata() has */
    const char    *kind;       /**< the value of option "model"; owned by the library */
    const int64_t *widths;     /**< [n_layers + 1] n_features, hidden widths, n_classes; owned by the model */
    int64_t        n_features, n_classes;
    int64_t        n_weights; /**< elements of all weights */
    int64_t        epoch;     /**< completed epochs of the weights */
} graft_model_info;

/* Files are in the safetensors format, which the Python package of that name reads: 8 bytes with the length of the
 * header, little-endian; the header, a JSON object; the tensors. The tensors are the items of
 * graft_train_api.state_item() under their names; in a model with weights only, best weights have the names of last
 * weights. "__metadata__" has the following texts, and keeps other texts of a loaded file:
 *
 *     format       "graft.model/1"
 *     content      "weights" or "state"
 *     release      of the library that made the model
 *     epoch        completed epochs of the weights
 *     n_vertices   vertices of the training graph
 *     n_features, n_classes    the shape of the data; with edge_features=array also n_edge_features
 *     model.KEY    the value of each option that is part of the model: of groups "model" and "data", loss and
 *                  label_rate. Unknown options are refused: they belong to a later release
 *     training.KEY the value of the other options of group "training"; only "epochs" is read, for a warning
 *     crc32c       8 hexadecimal digits, the CRC32C, for each block of 2^20 bytes of each tensor (the last one of a
 *                  tensor is shorter), the tensors in the order of their names (as bytes)
 *     crc32c.header  8 hexadecimal digits: the sum modulo 2^32 of the CRC32C of each other text and of each tensor;
 *                  for a text of its key and value, for a tensor of its name, type (F32) and shape ([3,4]), all without
 *                  escapes and each followed by a zero byte
 *
 * A file has at most 254 texts and the two texts of checksums. load() refuses a file with a wrong checksum, or with one
 * checksum text only. With checksums the header is compact JSON, followed by spaces up to a multiple of 8 bytes; only
 * quotes, backslashes and control characters are escaped, as \b \f \n \r \t or else \u001f in small letters. So
 * load() refuses a file of save() in which any byte was changed, removed or added. Texts and tensors may be in any
 * order, so a file rewritten by a package of the format can be loaded. A program that changes weights or texts must
 * remove both keys; load() then accepts any header of the format, and logs a warning.
 *
 * save() writes a file under another name in the same folder, flushes it to disk and renames it, so that a complete
 * file always exists. The earlier file stays as PATH.previous, if its header is undamaged and its length is right;
 * checksums of its weights are checked when it is loaded. It gets this name by a hard link, or is copied where the file
 * system has no hard links. If PATH is a symbolic link, its target is replaced. A killed process may leave a file whose
 * name begins with PATH and ends in .tmp; the next save removes it. */

/** Arguments of predict_vertices(). Outputs that are NULL are not written. */
typedef struct graft_prediction {
    uint32_t             size;
    int32_t              weights;       /**< GRAFT_WEIGHTS_LAST or BEST, as in predict() */
    const graft_dataset *dataset;       /**< the data set, as in predict(); read during the call */
    const int64_t       *vertices;      /**< [n] vertices of the whole graph, in any order, possibly repeated; over
                                             ranks, of the rank's slice. NULL: all vertices, in their order */
    int64_t              n;             /**< rows of the outputs; with vertices NULL the vertices of the data set, over
                                             ranks of the slice. An empty list is not NULL */
    int32_t             *labels;        /**< [n] the class of the largest logit */
    const graft_dense   *logits;        /**< [n x n_classes] F32, the outputs of the model */
    const graft_dense   *probabilities; /**< [n x n_classes] F32: softmax of the logits x, exp(x_c) / sum exp(x); with
                                             loss sigmoid of each class, 1 / (1 + exp(-x_c)) */
} graft_prediction;

typedef struct graft_model_api {
    uint32_t size;
    uint32_t reserved;

    /** Copy a model out of a trainer.
     * \param[in]  what   GRAFT_MODEL_...
     * \param[out] model  Unchanged on failure. Stays valid after the trainer is destroyed.
     * \return OK; ERR_ARG (null, unknown `what`); ERR_NOMEM.
     * [one-caller] Not collective: models of ranks differ in caches only. Memory: the copy. Since 0.2. */
    int32_t (*create)(graft_trainer *trainer, int32_t what, graft_model **model, graft_error *error);

    /** Read a model from a file.
     * \param[in]  transport  Borrowed during the call; NULL: one rank. Rank 0 alone opens the file.
     * \param[in]  path       Not read on other ranks, where it may be NULL.
     * \param[out] model      Unchanged on failure.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND; ERR_IO; ERR_FORMAT (truncated, not of this format, overlapping
     *         tensors, missing or unknown ones, shapes that do not follow from the options, values that are not finite,
     *         a wrong checksum: the message has the byte of the file, and says whether PATH.previous is good);
     *         ERR_UNSUPPORTED (an option of a later release); ERR_NOMEM; over ranks ERR_VERSION and ERR_PEER, and the
     *         same status on all. [one-caller] Collective over the transport. Memory: no more than the size of the file
     *         and 256 kB. Since 0.2. */
    int32_t (*load)(graft_context *context, const graft_transport *transport, const char *path, graft_model **model,
                    graft_error *error);

    /** Write a model to a file, see above.
     * \return OK; ERR_ARG (null); ERR_IO (errno in native_code; also if `path` is a folder, device or pipe); ERR_NOMEM.
     *         After a failure the file that was there is as before.
     * [one-caller] Not collective: each rank that calls it has its own path. Memory: the header. Since 0.2. */
    int32_t (*save)(graft_model *model, const char *path, graft_error *error);

    /** Copy the weights, or the whole state, of the model into a trainer, which may have another graph, as state_set()
     *  of each item would. All items are checked before any is copied. Options are not copied: the trainer keeps its
     *  own, and options of group model that have an effect must be equal, except dropouts.
     * \return OK; ERR_ARG (null; another number of features or classes: the message has both); ERR_FORMAT (items of
     *         other names or shapes; another value of an option: the message has both). [one-caller] Not collective;
     *         over ranks all ranks do it, which the next collective call checks. Memory: none. Since 0.2. */
    int32_t (*apply)(graft_model *model, graft_trainer *trainer, graft_error *error);

    /** Report sizes and kind of the model. \return OK; ERR_ARG (null). [one-caller] Not collective. Since 0.2. */
    int32_t (*info)(graft_model *model, graft_model_info *info, graft_error *error);

    /** Read text number `index` of the metadata. \param[out] key, value  Owned by the model.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 0.2. */
    int32_t (*metadata)(graft_model *model, int32_t index, const char **key, const char **value, graft_error *error);

    /** Read item number `index`, as graft_train_api.state_item(); data are owned by the model.
     * \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 0.2. */
    int32_t (*item)(graft_model *model, int32_t index, graft_state_item *item, graft_error *error);

    /** Predict all vertices of a data set without a trainer: what the trainer predicts, up to rounding. Options that
     *  are part of the model come from the model; other options (threads, memory.limit, order, halo, ...) come from the
     *  context.
     *
     * \param[in]  weights  GRAFT_WEIGHTS_LAST or BEST; a model with weights only has one set
     * \param[in]  dataset  Read during the call. Graph and features as graft_train_api.create(). Classes come from the
     *                      model: n_classes may be 0, and is only read with targets. Labels, targets and split are read
     *                      if the model has label_rate > 0, and are required then.
     * \param[out] labels   [n] the class of the largest logit, or NULL, as it must be with loss mse, mae or huber
     * \param[out] logits   [n x n_classes] F32, or NULL
     * \return OK; ERR_ARG (null, unknown weights, shapes; another number of features: the message has both; ranks with
     *         different models); ERR_FORMAT (a label that the model does not know); the codes of
     *         graft_train_api.create() and predict().
     * [one-caller] [starts-openmp]. Collective over the ranks of dataset->over, if given. Memory: during the call what
     * a trainer takes for an evaluation, without optimiser, gradients and transposes. Since 0.2. */
    int32_t (*predict)(graft_model *model, int32_t weights, const graft_dataset *dataset, int32_t *labels,
                       const graft_dense *logits, graft_error *error);

    /** Free the model. NULL is legal. [one-caller] Not collective. Since 0.2. */
    void (*destroy)(graft_model *model);

    /** Predict all vertices of a data set, or a list of vertices, also with probabilities.
     *
     * Cost: the data set is checked and the graph created as for all vertices. In one process the layers then compute,
     * and need memory for, only the receptive field of the list, if option row_masks is yes, features are dense, and
     * the model is not gat and has no label_rate. Otherwise, and over ranks, they compute all vertices, and the rows of
     * the list are selected.
     *
     * \param[in] prediction  Over ranks each rank has its own list and outputs; classes, logits and probabilities may
     *                        be NULL on some ranks.
     * \return as predict(); ERR_ARG (null, n below 0, or without a list not the number of all vertices; a vertex that
     *         is not in the data set, or over ranks in the slice: the message has its place in the list and the range;
     *         labels or probabilities with loss mse, mae or huber). A prediction or dataset that is null or has no
     *         size, and an `over` that is no graph, are errors of this rank only; other ranks wait.
     * [one-caller] [starts-openmp]. Collective over the ranks of prediction->dataset->over, if given. Memory during the
     * call: as predict(), and 8 bytes for each vertex of the data set. Since 0.2. */
    int32_t (*predict_vertices)(graft_model *model, const graft_prediction *prediction, graft_error *error);
} graft_model_api;

GRAFT_EXTERN_C_END
#endif
