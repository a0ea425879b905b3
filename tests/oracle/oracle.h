/* The oracle: the expected results of Graft, computed by definition in double. It uses the contract (abi/), but nothing
 * of the library: no code, header or algorithm of plugin/. It is deliberately slow, and assumes enough memory.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ORACLE_H
#define ORACLE_H

#include "graft_data.h"
#include "graft_edge.h"
#include "graft_mxm.h"

/** Zeroed memory for free(); ends the test program if there is none. */
void *oracle_new(int64_t count, size_t element_bytes);

/* -- random bits ------------------------------------------------------------------------------------------------- */

/** Philox 4x32-10 as Salmon et al. define it (SC 2011). */
void oracle_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/** The factors of dropout with probability p for a [n x width] matrix: 0, or 1 over the kept share. `layer` is 0 for
 *  the features and l+1 for the output of hidden layer l; epochs count from 0. */
void oracle_dropout(double p, uint64_t seed, int64_t epoch, int64_t layer, int64_t n, int64_t width, double *factor);

/** The factor of dropout with probability p for the attention of head k on edge (v, u), by the draw of column 64 u + k
 *  of vertex v, of purpose 7. */
double oracle_attention_factor(double p, uint64_t seed, int64_t epoch, int64_t layer, int64_t v, int64_t u, int64_t k);

/** Whether the label of vertex v is input of the first layer in an epoch, drawn with probability `rate`: the first word
 *  of the block (v, 0), of purpose 6, is below rate * 2^32. */
int oracle_gives_label(double rate, uint64_t seed, int64_t epoch, int64_t v);

/* -- the masked product ------------------------------------------------------------------------------------------ */

/** graft.mxm/1 run() with `a` instead of args->a. C and winner of args are read, not written: the results go to c [m x
 *  n], winner [m x n] (NULL if args has none) and bound [m x n], the sum of the magnitudes of the terms of each
 *  element, for bounds of rounding errors. */
void oracle_mxm(const graft_csr *a, const graft_mxm_args *args, double *c, int64_t *winner, double *bound);

/* -- edge operators ---------------------------------------------------------------------------------------------- */

/** Element (row, column) of a dense matrix. */
double oracle_element(const graft_dense *dense, int64_t row, int64_t column);

/* graft.edge/1 by definition, with `a` instead of the graft_matrix. Results go to an array without gaps; index_add adds
 * to the contents of `out`, and y may be NULL where the interface allows it. */
void oracle_gather_rows(const graft_dense *x, const graft_index *index, double *out);
void oracle_index_add(const graft_dense *x, const graft_index *index, const graft_dense *out, double *sum);
void oracle_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, int64_t heads, double *out);
void oracle_edge_softmax(const graft_csr *a, const graft_dense *s, double *p);
void oracle_edge_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp, double *ds);
void oracle_edge_mxm(const graft_csr *a, int transposed, const graft_dense *w, const graft_dense *y, int64_t width,
                     double *out);

/* -- vertex covers of bipartite graphs ---------------------------------------------------------------------------- */

/** The targets with the sources of their edges, which may repeat. */
struct oracle_bipartite {
    int64_t        n_targets, n_sources;
    const int64_t *row_ptr; /* [n_targets + 1] */
    const int32_t *source;  /* [row_ptr[n_targets]] */
};

/** Pairs in a maximum matching of the graph without source `absent`; -1: with all sources. */
int64_t oracle_matching_size(const struct oracle_bipartite *graph, int64_t absent);

/** The smallest vertex cover with the most sources; returns its size. A source is in some minimum cover if and only if
 *  the maximum matching is smaller without it; one cover has all these sources, and the targets that are then
 *  required. */
int64_t oracle_cover(const struct oracle_bipartite *graph, uint8_t *source_in, uint8_t *target_in);

/** The same as oracle_cover() by trying all sets of sources, fewer than 63. Also whether several minimum covers have
 *  the most sources. */
int64_t oracle_cover_by_trial(const struct oracle_bipartite *graph, uint8_t *source_in, uint8_t *target_in,
                              int *several);

/* -- models ------------------------------------------------------------------------------------------------------ */

enum { ORACLE_LAYERS_MAX = 8, ORACLE_TENSORS_MAX = 48 };
enum oracle_kind { ORACLE_MLP, ORACLE_SAGE, ORACLE_GCN, ORACLE_GIN, ORACLE_GAT, ORACLE_SGC, ORACLE_APPNP };

enum oracle_norm { ORACLE_NO_NORM, ORACLE_LAYER_NORM, ORACLE_BATCH_NORM };
enum oracle_loss { ORACLE_SOFTMAX, ORACLE_SIGMOID, ORACLE_MSE, ORACLE_MAE, ORACLE_HUBER };

/** The options of a trainer. */
struct oracle_options {
    enum oracle_kind kind;
    int32_t          layers;
    int64_t          hidden[ORACLE_LAYERS_MAX]; /* the first layers-1 are used */
    enum oracle_norm norm;                      /* between layers */
    enum oracle_loss loss;
    const char      *aggregator; /* of sage: NULL: a mean; "sum", "max" or "min" */
    double           dropout, input_dropout, attention_dropout, label_rate, gin_eps, huber_delta;
    int              elu, drops_first; /* activation=elu; norm_order=after_dropout */
    int              residual;
    const char      *jumping;       /* NULL: none; "cat" or "max" */
    int              balanced;      /* class_weights=balanced; of softmax, like the next option */
    double           smoothing;     /* label_smoothing */
    int64_t          heads;         /* of gat; divides the hidden widths */
    int              edge_features; /* of gat: edge_features=values; then entries of the graph do not repeat */
    int              edge_array;    /* of gat: edge_features=array; likewise */
    int              inner_relu;    /* of gat: attention_input=relu */
    int32_t          propagation;   /* of sgc and appnp: steps */
    double           teleport;      /* of appnp */
    uint64_t         seed;
    int              symmetrize, self_loops, normalize_features;
};

/** One named weight, [rows x cols]; a vector has one row. */
struct oracle_tensor {
    char    name[48];
    int32_t layer; /* -1: of no layer */
    int64_t rows, cols;
    double *value;
};

struct oracle_model {
    struct oracle_options options;
    int64_t               n, classes;
    int                   several;                      /* a vertex may have several classes */
    int64_t               width[ORACLE_LAYERS_MAX + 1]; /* of H_0 .. H_L */
    double               *adjacency;                    /* [n x n] sum of the entries (v, u) */
    int64_t              *count;                        /* [n x n] number of entries (v, u) */
    int64_t               edge_width;                   /* features of an edge in the scores of gat */
    double               *edge;                         /* [n x n x edge_width] of the entries (v, u) */
    double               *degree;           /* [n] sum of row v: the number of its entries, if they have no values */
    double               *features;         /* [n x width[0]] */
    double               *target;           /* [n x classes] 0 or 1; a row without a 1 if unlabelled; or float targets,
                                               NaN where they are not known */
    uint8_t              *labelled, *split; /* [n] */
    double               *running[2][ORACLE_LAYERS_MAX]; /* BatchNorm: [width] mean and variance of evaluations, at
                                                          * first 0 and 1; and of the last pass in training, */
    double               *batch[2][ORACLE_LAYERS_MAX];   /* with unbiased variance */
    uint8_t              *in_batch[ORACLE_LAYERS_MAX];   /* [n] rows of these statistics; NULL: all */
    uint8_t              *gives;                         /* [n] label propagation: its label is input in training */
    double               *factor[ORACLE_LAYERS_MAX];     /* of dropout on H_l, or on the Z of the layer before */
    double               *attention[ORACLE_LAYERS_MAX];  /* [n x n x heads] of dropout on attention, or NULL */
    int32_t               n_tensors;
    struct oracle_tensor  tensor[ORACLE_TENSORS_MAX];
};

/** The distance of the forward pass from a kink of ReLU, and with ORACLE_MAE of the loss from its kink: the smallest
 *  magnitude at a kink, and a hash of all signs. */
struct oracle_kinks {
    double   nearest;
    uint64_t signs;
};

/** Prepare graph and features by the options; all weights are zero. Freed by oracle_model_fini(). */
void oracle_model_init(struct oracle_model *model, const struct oracle_options *options, const graft_dataset *dataset);
void oracle_model_fini(struct oracle_model *model);

/** LayerNorm of each row of z [n x width]. */
void oracle_layer_norm(int64_t n, int64_t width, const double *gain, const double *shift, double *z);

/** BatchNorm1d of PyTorch after layer l: in training by mean and biased variance of each column over the rows of the
 *  batch, else by running statistics. */
void oracle_batch_norm(const struct oracle_model *model, int32_t l, int training, const double *gain,
                       const double *shift, double *z);

/** Columns of the input of layer l: H_l, or in the last layer with jumping=cat all of H_1 .. H_l. */
int64_t oracle_model_in(const struct oracle_model *model, int32_t l);

/** The weight of this name, or NULL. */
struct oracle_tensor *oracle_model_find(struct oracle_model *model, const char *name);

/** Draw the dropout factors of an epoch, counted from 0, and with label_rate its input labels. */
void oracle_model_drop(struct oracle_model *model, int64_t epoch);

/** Logits [n x classes], with the dropout factors if `training`. `kinks` may be NULL. */
void oracle_model_forward(const struct oracle_model *model, int training, double *logits, struct oracle_kinks *kinks);

/** The loss of training: its mean over the training vertices whose label is not input; 0 if there are none. */
double oracle_model_training_loss(const struct oracle_model *model, const double *logits);

/** Mean loss over the labelled vertices of a split, or over its known float targets. */
double oracle_model_loss(const struct oracle_model *model, const double *logits, uint8_t split);

/** Share of the labelled vertices of a split whose label has the largest logit, NaN if there are none; with several
 *  classes, F1 of logits > 0 over all vertices of the split and all classes. */
double oracle_model_accuracy(const struct oracle_model *model, const double *logits, uint8_t split);

/** RMSE over the known float targets of a split, and the mean over columns of R^2. */
double oracle_model_rmse(const struct oracle_model *model, const double *outputs, uint8_t split);
double oracle_model_r2(const struct oracle_model *model, const double *outputs, uint8_t split);

/** Gradient of the training loss by central differences, gradient[t] of the shape of tensor t. Returns 0, with an
 *  incomplete gradient, if a difference would cross a kink of ReLU, or if a kink is nearer than `margin`. */
int oracle_model_gradient(struct oracle_model *model, double step, double margin, double *const *gradient);

/* -- optimisers -------------------------------------------------------------------------------------------------- */

struct oracle_optimizer {
    int    adam; /* 1: Adam, 0: SGD with momentum */
    double lr, momentum, weight_decay;
    double clip_norm; /* 0: none */
    int    decay_first_only;
};

/** Scale the gradients of all n tensors so that, as one vector, their length is at most clip_norm. Returns the length
 *  before. */
double oracle_clip(const struct oracle_optimizer *optimizer, const struct oracle_tensor *tensor, int32_t n,
                   double *const *gradient);

/** Step number `step`, counted from 1, of one tensor. m and v (v for Adam only) begin as zeros. */
void oracle_optimizer_step(const struct oracle_optimizer *optimizer, int64_t step, const struct oracle_tensor *tensor,
                           const double *gradient, double *m, double *v);

#endif
