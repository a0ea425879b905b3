/* The options of models, of their training, and of the data that they are trained on.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"
#include "graph/order.h"

/** The kinds of models: X(constant, word). Each has a table gr_kind_WORD, see model/kind.h. */
#define GR_KIND_MAP(X) X(SAGE, sage) X(GCN, gcn) X(GAT, gat) X(GIN, gin) X(MLP, mlp) X(SGC, sgc) X(APPNP, appnp)
#define GR_KIND_ENUM(constant, word) GR_KIND_##constant,
#define GR_KIND_WORD(constant, word) "|" #word
#define GR_KIND_WORDS (&(GR_KIND_MAP(GR_KIND_WORD))[1])
enum gr_kind { GR_KIND_MAP(GR_KIND_ENUM) GR_KINDS };

/* clang-format off */
#define GR_AGGREGATOR_LIST(X)                                                                                          \
    X(GR_AGGREGATOR_MEAN, "mean")                                                                                      \
    X(GR_AGGREGATOR_SUM, "sum")                                                                                        \
    X(GR_AGGREGATOR_MAX, "max")                                                                                        \
    X(GR_AGGREGATOR_MIN, "min")
/* clang-format on */
enum gr_aggregator { GR_AGGREGATOR_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_EDGE_FEATURES_LIST(X)                                                                                       \
    X(GR_EDGE_FEATURES_NONE, "none")                                                                                   \
    X(GR_EDGE_FEATURES_VALUES, "values")                                                                               \
    X(GR_EDGE_FEATURES_ARRAY, "array")
/* clang-format on */
enum gr_edge_features { GR_EDGE_FEATURES_LIST(GR_CHOICE_CONSTANT) };

#define GR_ATTENTION_INPUT_LIST(X) X(GR_ATTENTION_LINEAR, "linear") X(GR_ATTENTION_RELU, "relu")
enum gr_attention_input { GR_ATTENTION_INPUT_LIST(GR_CHOICE_CONSTANT) };

#define GR_NORM_ORDER_LIST(X) X(GR_NORM_FIRST, "before_dropout") X(GR_NORM_LAST, "after_dropout")
enum gr_norm_order { GR_NORM_ORDER_LIST(GR_CHOICE_CONSTANT) };

#define GR_JUMPING_LIST(X) X(GR_JUMPING_NONE, "none") X(GR_JUMPING_CAT, "cat") X(GR_JUMPING_MAX, "max")
enum gr_jumping { GR_JUMPING_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_LOSS_LIST(X)                                                                                                \
    X(GR_LOSS_AUTO, "auto")                                                                                            \
    X(GR_LOSS_SOFTMAX, "softmax:balanced?:[0..1)=0")                                                                   \
    X(GR_LOSS_SIGMOID, "sigmoid")                                                                                      \
    X(GR_LOSS_MSE, "mse")                                                                                              \
    X(GR_LOSS_MAE, "mae")                                                                                              \
    X(GR_LOSS_HUBER, "huber:(0..)=1")
/* clang-format on */
enum gr_loss { GR_LOSS_LIST(GR_CHOICE_CONSTANT) };

/** SPARSE: the threads for sums. All have the number of stages, which is the last. */
/* clang-format off */
#define GR_WORKERS_LIST(X)                                                                                             \
    X(GR_WORKERS_NO, "no")                                                                                             \
    X(GR_WORKERS_AUTO, "auto:0..32=0")                                                                                 \
    X(GR_WORKERS_SPARSE, "sparse:1..4095:0..32=0")
/* clang-format on */
enum gr_workers_use { GR_WORKERS_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_MODEL_OPTIONS(X)                                                                                            \
    X(WORDS(gr_kind, GR_KIND_WORDS), kind, "model", "sage", SAME, GR_USUAL, "",                                        \
      "kind of layers; mlp ignores the graph")                                                                         \
    X(CHOICE(gr_aggregator, GR_AGGREGATOR_LIST), aggregator, "aggregator", "mean", SAME, GR_USUAL, "model=sage",       \
      "aggregation of neighbours in sage")                                                                             \
    X(INTEGER("1..63"), propagation, "propagation", "10", SAME, GR_USUAL, "model=sgc|appnp",                           \
      "steps in which sgc and appnp propagate predictions")                                                            \
    X(NUMBER("0..1"), teleport, "teleport", "0.1", SAME, GR_USUAL, "model=appnp",                                      \
      "share of a vertex's own prediction in each step of propagation")                                                \
    X(INTEGER("1..64"), heads, "heads", "4", SAME, GR_USUAL, "model=gat",                                              \
      "attention heads; they divide the hidden widths")                                                                \
    X(CHOICE(gr_edge_features, GR_EDGE_FEATURES_LIST), edge_features, "edge_features", "none", SAME, GR_USUAL,         \
      "model=gat",                                                                                                     \
      "edge features in the attention scores of gat: none, the edge value, or a row of the data set")                  \
    X(CHOICE(gr_attention_input, GR_ATTENTION_INPUT_LIST), attention_input, "attention_input", "linear",               \
      SAME, GR_USUAL, "model=gat",                                                                                     \
      "rows in the attention of gat: H W, or ReLU(H W + b)")                                                           \
    X(NUMBER("[0..1)"), dropout, "dropout", "0.5", SAME, GR_USUAL | GR_TRAINS, "layers!=1",                            \
      "share of hidden values dropped in training")                                                                    \
    X(NUMBER("[0..1)"), input_dropout, "input_dropout", "0", SAME, GR_USUAL | GR_TRAINS, "",                           \
      "share of input features dropped in training")                                                                   \
    X(NUMBER("[0..1)"), attention_dropout, "attention_dropout", "0", SAME, GR_USUAL | GR_TRAINS, "model=gat",          \
      "share of the attention of gat dropped in training")                                                             \
    X(CHOICE(gr_norm_order, GR_NORM_ORDER_LIST), norm_order, "norm_order", "before_dropout", SAME, GR_TRAINS,          \
      "layers!=1 and dropout!=0 and (norm!=none or activation!=relu)",                                                 \
      "whether normalisation and activation are before dropout, or after it")                                          \
    X(CHOICE(gr_jumping, GR_JUMPING_LIST), jumping, "jumping", "none", SAME, GR_USUAL, "layers!=1|2",                  \
      "input of the last layer: the last hidden layer, all hidden layers side by side, or their maxima")
/* clang-format on */

struct gr_model_options {
    GR_MODEL_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_model_option_table;

static inline const struct gr_model_options *gr_model_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_model_option_table);
}

/* clang-format off */
#define GR_LOSS_OPTIONS(X)                                                                                             \
    X(FORM(GR_LOSS_LIST), loss, "loss", "auto", SAME, GR_USUAL | GR_PREDICTS, "",                                      \
      "auto: mse of float targets, sigmoid if vertices have several classes at once, else softmax; "                   \
      "softmax:balanced:SMOOTHING: all classes weigh the same; share of the target that is spread over classes")    \
    X(NUMBER("[0..1)"), label_rate, "label_rate", "0", SAME, GR_PREDICTS, "",                                          \
      "share of training vertices whose labels are input in an epoch, and not in its loss")
/* clang-format on */

struct gr_loss_options {
    GR_LOSS_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_loss_option_table;

static inline const struct gr_loss_options *gr_loss_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_loss_option_table);
}

/* clang-format off */
#define GR_DATA_OPTIONS(X)                                                                                             \
    X(SWITCH(), symmetrize, "symmetrize", "no", SAME, GR_USUAL, "model!=mlp",                                          \
      "store every edge in both directions")                                                                           \
    X(CHOICE(gr_choice, GR_CHOICE_LIST), self_loops, "self_loops", "auto", SAME, GR_USUAL, "model!=mlp",               \
      "give each vertex an edge to itself; auto: if the model is gcn, gat, sgc or appnp")                              \
    X(SWITCH(), normalize_features, "normalize_features", "no", SAME, GR_USUAL, "",                                    \
      "divide each row of features by its sum")
/* clang-format on */

struct gr_data_options {
    GR_DATA_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_data_option_table;

static inline const struct gr_data_options *gr_data_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_data_option_table);
}

/* clang-format off */
#define GR_RESOURCE_OPTIONS(X)                                                                                         \
    X(FORM(GR_WORKERS_LIST), workers, "workers", "no", EACH, GR_USUAL, "model=sage|gcn|gin|sgc|appnp",                 \
      "sparse:THREADS:STAGES: threads for sums over neighbours beside threads for dense products, and blocks of rows " \
      "of a product, which are their tasks (0: by the bandwidth of the graph); no: all do both in turn; auto:STAGES: " \
      "the faster")                                                                                                    \
    X(FOLDER("no|yes|auto"), eval_blocks, "eval.blocks", "auto", EACH, GR_USUAL | GR_LIVE,                             \
      "batch_size!=0 and processes=1",                                                                                 \
      "evaluate in blocks of rows: yes, no, auto (if all rows need 1 GB or do not fit), or the folder, with a '/', "   \
      "of a file for outputs of layers")                                                                               \
    X(SWITCH(), recompute, "recompute", "no", SAME, GR_USUAL, "",                                                      \
      "recompute values inside layers in the backward pass: less memory, more time")                                   \
    X(CHOICE(gr_order, GR_ORDER_LIST), order, "order", "given", SAME, GR_USUAL, "model!=mlp",                          \
      "order of the vertices inside the trainer")                                                                      \
    X(SWITCH(), row_masks, "row_masks", "yes", SAME, GR_EXPERT,                                                        \
      "model!=gat and (model!=sage or aggregator!=max|min or processes=1 or parallel=feature)",                        \
      "compute only rows in the receptive field of training vertices")                                                 \
    X(SWITCH(), reuse_input, "reuse_input", "yes", SAME, GR_EXPERT, "model=sage|gcn|gin and input_dropout=0",          \
      "aggregate constant features once, not in every pass")                                                           \
    X(CHOICE(gr_choice, GR_CHOICE_LIST), sparse_input, "sparse_input", "auto", SAME, GR_EXPERT, "",                    \
      "multiply sparse features without making them dense; auto: if cheaper")
/* clang-format on */

struct gr_resource_options {
    GR_RESOURCE_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_resource_option_table;

static inline const struct gr_resource_options *gr_resource_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_resource_option_table);
}
