/* The oracle: the results that Graft must have, computed by definition in double precision. It uses the contract in
 * abi/, but no code, header or algorithm of plugin/. It is deliberately slow, and assumes that there is enough memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_H
#define ORACLE_H

#include "graft_data.h"
#include "graft_edge.h"
#include "graft_mxm.h"

/** Allocate zeroed memory, which the caller frees. If there is none, the test program ends. */
void *oracle_new(int64_t count, size_t element_bytes);

/* -- random bits ------------------------------------------------------------------------------------------------- */

/** The random number generator Philox 4x32-10 as Salmon et al. define it (SC 2011). */
void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** The factors of dropout with probability p for a matrix [n x width]: 0 for dropped elements, 1 / (1 - p) for others.
 *  `layer` is 0 for the features and l+1 for the output of hidden layer l. Epochs count from 0. */
void oracle_dropout(double p, uint64_t seed, int64_t epoch, int64_t layer, int64_t n, int64_t width, double *factor);

/** The factor of dropout with probability p for the attention of head k on edge (v, u). It uses draw 64 u + k of vertex
 *  v, of purpose 7. */
double oracle_attention_factor(double p, uint64_t seed, int64_t epoch, int64_t layer, int64_t v, int64_t u, int64_t k);

/** Whether the label of vertex v is an input of the first layer in an epoch, which has probability `rate`. It is if the
 * first word of block (v, 0) of purpose 6 is below rate * 2^32. */
int oracle_gives_label(double rate, uint64_t seed, int64_t epoch, int64_t v);

/* -- the masked product ------------------------------------------------------------------------------------------ */

/** Compute the result of graft.mxm/1 run() for matrix `a` instead of args->a. The arrays C and winner of args are only
 * read. The results are stored in c [m x n], winner [m x n] (NULL if args has none) and bound [m x n]. An element of
 * bound is the sum of the magnitudes of its terms, from which bounds of rounding errors follow. */
void oracle_mxm(const graft_csr *a, const graft_mxm_args *args, double *c, int64_t *winner, double *bound);

/* -- edge operators ---------------------------------------------------------------------------------------------- */

/** Element (row, column) of a dense matrix of any type. */
double oracle_element(const graft_dense *dense, int64_t row, int64_t column);

/* Compute the operators of graft.edge/1 by definition, for matrix `a` instead of the graft_matrix. Results are stored
 * in arrays without gaps between rows. oracle_index_add() adds to the contents of `out`, and y may be NULL where the
 * interface allows it. */
void oracle_gather_rows(const graft_dense *x, const graft_index *index, double *out);
void oracle_index_add(const graft_dense *x, const graft_index *index, const graft_dense *out, double *sum);
void oracle_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, int64_t heads, double *out);
void oracle_edge_softmax(const graft_csr *a, const graft_dense *s, double *p);
void oracle_edge_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp, double *ds);
void oracle_edge_mxm(const graft_csr *a, int transposed, const graft_dense *w, const graft_dense *y, int64_t width,
                     double *out);

/* -- vertex covers of bipartite graphs ---------------------------------------------------------------------------- */

/** A bipartite graph: each target has a row with the sources of its edges, which may repeat. */
struct oracle_bipartite {
    int64_t        n_targets, n_sources;
    const int64_t *row_ptr; /* [n_targets + 1] */
    const int32_t *source;  /* [row_ptr[n_targets]] source of each edge */
};

/** The size of a maximum matching of the graph without source `absent`; -1 keeps all sources. */
int64_t oracle_matching_size(const struct oracle_bipartite *graph, int64_t absent);

/** Compute the minimum vertex cover with the most sources. The result is its size. A source belongs to some minimum
 * cover if and only if the maximum matching is smaller without it. The computed cover has all these sources, and the
 * targets that are then still required. */
int64_t oracle_cover(const struct oracle_bipartite *graph, uint8_t *source_in, uint8_t *target_in);

/** Compute the same cover by trying all sets of sources, of which there may be at most 62. The last argument receives
 * whether several minimum covers have the most sources. */
int64_t oracle_cover_by_trial(const struct oracle_bipartite *graph, uint8_t *source_in, uint8_t *target_in,
                              int *several);

/* -- models ------------------------------------------------------------------------------------------------------ */

enum { ORACLE_LAYERS_MAX = 8, ORACLE_TENSORS_MAX = 48 };
enum oracle_kind { ORACLE_MLP, ORACLE_SAGE, ORACLE_GCN, ORACLE_GIN, ORACLE_GAT, ORACLE_SGC, ORACLE_APPNP };

enum oracle_norm { ORACLE_NO_NORM, ORACLE_LAYER_NORM, ORACLE_BATCH_NORM };
enum oracle_loss { ORACLE_SOFTMAX, ORACLE_SIGMOID, ORACLE_MSE, ORACLE_MAE, ORACLE_HUBER };

/** The options of a model and of its trainer, as far as they change results. */
struct oracle_options {
    enum oracle_kind kind;
    int32_t          layers;
    int64_t          hidden[ORACLE_LAYERS_MAX]; /* widths of hidden layers, of which the first layers-1 are used */
    enum oracle_norm norm;                      /* kind of normalisation between layers */
    enum oracle_loss loss;
    const char      *aggregator; /* for sage: "sum", "max" or "min"; NULL for the mean */
    double           dropout, input_dropout, attention_dropout, label_rate, huber_delta;
    int              elu, drops_first; /* whether activation=elu, and whether norm_order=after_dropout is set */
    int              residual;
    const char      *jumping;   /* jumping knowledge: "cat" or "max"; NULL for none */
    int              balanced;  /* whether loss=softmax:balanced, which needs softmax */
    double           smoothing; /* label smoothing of loss=softmax */
    int64_t          heads;     /* number of heads of gat, which divides the hidden widths */
    /* For gat: whether edge_features=values; then the graph has no repeated entries. */
    int              edge_features;
    /* For gat: whether edge_features=array; then the graph has no repeated entries. */
    int              edge_array;
    int              inner_relu;  /* for gat: whether attention_input=relu */
    int32_t          propagation; /* for sgc and appnp: number of propagation steps */
    double           teleport;    /* for appnp: probability of teleport */
    uint64_t         seed;
    int              symmetrize, self_loops, normalize_features;
};

/** A weight tensor [rows x cols] with its name. A vector has one row. */
struct oracle_tensor {
    char    name[48];
    int32_t layer; /* number of the layer; -1 for a weight of no layer */
    int64_t rows, cols;
    double *value;
};

struct oracle_model {
    struct oracle_options options;
    int64_t               n, classes;
    int                   several;                      /* whether a vertex may have several classes */
    int64_t               width[ORACLE_LAYERS_MAX + 1]; /* number of columns of H_0 to H_L */
    double               *adjacency;                    /* [n x n] sum of the values of all entries (v, u) */
    int64_t              *count;                        /* [n x n] number of entries (v, u) */
    /* Number of features of an edge in the attention scores of gat. */
    int64_t               edge_width;
    double               *edge; /* [n x n x edge_width] features of the entries (v, u) */
    /* [n] sum of row v, which is the number of its entries if they have no values. */
    double               *degree;
    double               *features; /* [n x width[0]] input features */
    /* [n x classes] targets 0 or 1, where a row without a 1 has no label; or float targets, where NaN is unknown. */
    double               *target;
    uint8_t              *labelled, *split; /* [n] whether the vertex has a label, and its part of the split */
    /* [width] running mean and variance of BatchNorm, which evaluations use; their initial values are 0 and 1. */
    double               *running[2][ORACLE_LAYERS_MAX];
    /* [width] mean and unbiased variance of BatchNorm in the last training pass. */
    double               *batch[2][ORACLE_LAYERS_MAX];
    /* [n] whether a row is included in these statistics; NULL if all are */
    uint8_t              *in_batch[ORACLE_LAYERS_MAX];
    uint8_t              *gives; /* [n] whether the label of a vertex is an input in training */
    /* Dropout factors for H_l, or for the Z of the layer before it. */
    double               *factor[ORACLE_LAYERS_MAX];
    double               *attention[ORACLE_LAYERS_MAX]; /* [n x n x heads] dropout factors for attention, or NULL */
    int32_t               n_tensors;
    struct oracle_tensor  tensor[ORACLE_TENSORS_MAX];
};

/** How near a forward pass is to points where its derivative jumps: the smallest magnitude of an argument of ReLU (or,
 * for ORACLE_MAE, of an error), and a hash of the signs of all these numbers. */
struct oracle_kinks {
    double   nearest;
    uint64_t signs;
};

/** Prepare graph and features by the options, with all weights 0. oracle_model_fini() frees the model. */
void oracle_model_init(struct oracle_model *model, const struct oracle_options *options, const graft_dataset *dataset);
void oracle_model_fini(struct oracle_model *model);

/** Apply LayerNorm to each row of z [n x width]. */
void oracle_layer_norm(int64_t n, int64_t width, const double *gain, const double *shift, double *z);

/** Apply BatchNorm1d of PyTorch after layer l. In training it uses the mean and the biased variance of each column over
 * the rows of the batch; otherwise it uses the running statistics. */
void oracle_batch_norm(const struct oracle_model *model, int32_t l, int training, const double *gain,
                       const double *shift, double *z);

/** The number of columns of the input of layer l: those of H_l, or in the last layer with jumping=cat those of H_1 to
 *  H_l together. */
int64_t oracle_model_in(const struct oracle_model *model, int32_t l);

/** The weight with this name, or NULL. */
struct oracle_tensor *oracle_model_find(struct oracle_model *model, const char *name);

/** Draw the dropout factors of an epoch and, with label_rate, the vertices whose labels are inputs. Epochs count from
 * 0. */
void oracle_model_drop(struct oracle_model *model, int64_t epoch);

/** Compute the logits [n x classes]. Dropout is applied if `training`. `kinks` may be NULL. */
void oracle_model_forward(const struct oracle_model *model, int training, double *logits, struct oracle_kinks *kinks);

/** The training loss: the mean over the training vertices whose label is not an input, or 0 if there are none. */
double oracle_model_training_loss(const struct oracle_model *model, const double *logits);

/** The mean loss over the labelled vertices of a part of the split, or over its known float targets. */
double oracle_model_loss(const struct oracle_model *model, const double *logits, uint8_t split);

/** The accuracy: the share of the labelled vertices of a part of the split whose label has the largest logit, NaN if
 *  there are none. With several classes it is the F1 score of logits > 0 over all vertices of the part and all
 *  classes. */
double oracle_model_accuracy(const struct oracle_model *model, const double *logits, uint8_t split);

/** The RMSE over the known float targets of a part of the split, and R^2 averaged over columns. */
double oracle_model_rmse(const struct oracle_model *model, const double *outputs, uint8_t split);
double oracle_model_r2(const struct oracle_model *model, const double *outputs, uint8_t split);

/** Compute the gradient of the training loss by central differences; gradient[t] has the shape of tensor t. The result
 * is 0, and the gradient is incomplete, if a difference would cross a point where the derivative jumps, or if such a
 * point is nearer than `margin`. */
int oracle_model_gradient(struct oracle_model *model, double step, double margin, double *const *gradient);

/* -- optimisers -------------------------------------------------------------------------------------------------- */

struct oracle_optimizer {
    int    adam; /* whether the optimiser is Adam; otherwise it is SGD with momentum */
    double lr, momentum, weight_decay;
    double clip_norm; /* option clip_norm; 0 for no clipping */
    int    decay_first_only;
};

/** Scale the gradients of all n tensors so that their common norm is at most clip_norm. The result is the norm before
 * scaling. */
double oracle_clip(const struct oracle_optimizer *optimizer, const struct oracle_tensor *tensor, int32_t n,
                   double *const *gradient);

/** Make one step of the optimiser for one tensor. Steps count from 1. The initial values of m and v are zeros; SGD uses
 * only m. */
void oracle_optimizer_step(const struct oracle_optimizer *optimizer, int64_t step, const struct oracle_tensor *tensor,
                           const double *gradient, double *m, double *v);

#endif
