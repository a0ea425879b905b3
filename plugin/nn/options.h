/* The options that all networks share, of graphs and of meshes.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

#define GR_NORM_LIST(X) X(GR_NORM_NONE, "none") X(GR_NORM_LAYER, "layer") X(GR_NORM_BATCH, "batch")
enum gr_norm { GR_NORM_LIST(GR_CHOICE_CONSTANT) };

#define GR_ACTIVATION_LIST(X) X(GR_RELU, "relu") X(GR_ELU, "elu")
enum gr_activation { GR_ACTIVATION_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_SCHEDULE_LIST(X)                                                                                            \
    X(GR_SCHEDULE_CONSTANT, "constant")                                                                                \
    X(GR_SCHEDULE_COSINE, "cosine")                                                                                    \
    X(GR_SCHEDULE_STEP, "step:1..=30:[0..1]=0.1")
/* clang-format on */
enum gr_schedule { GR_SCHEDULE_LIST(GR_CHOICE_CONSTANT) };

#define GR_OPTIMIZER_LIST(X) X(GR_ADAM, "adam:[0..1)=0.9:[0..1)=0.999") X(GR_SGD, "sgd:[0..1)=0")
enum gr_optimizer { GR_OPTIMIZER_LIST(GR_CHOICE_CONSTANT) };

#define GR_ON_NONFINITE_LIST(X) X(GR_NONFINITE_STOP, "stop") X(GR_NONFINITE_RESTORE, "restore")
enum gr_on_nonfinite { GR_ON_NONFINITE_LIST(GR_CHOICE_CONSTANT) };

/** The type of the rows that sums over neighbours read (F32, BF16), or of all numbers of a network on a mesh (F32,
 *  F64). */
#define GR_MODEL_TYPE_LIST(X) X(GR_MODEL_F32, "f32") X(GR_MODEL_BF16, "bf16") X(GR_MODEL_F64, "f64")
enum gr_model_type { GR_MODEL_TYPE_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_SHAPE_OPTIONS(X)                                                                                            \
    X(INTEGER("1..64"), layers, "layers", "3", SAME, GR_USUAL, "",                                                     \
      "number of layers; networks on meshes: 15 unless it is set")                                                     \
    X(WIDTHS("1..65536"), hidden, "hidden", "128", SAME, GR_USUAL, "layers!=1",                                        \
      "width of the hidden layers: one number, or one per layer")                                                      \
    X(CHOICE(gr_norm, GR_NORM_LIST), norm, "norm", "layer", SAME, GR_USUAL, "layers!=1",                               \
      "normalisation: of each row (layer), or of each column over all vertices; on meshes of each MLP but the last")   \
    X(CHOICE(gr_activation, GR_ACTIVATION_LIST), activation, "activation", "relu", SAME, GR_USUAL, "layers!=1",        \
      "function after each hidden layer; on meshes between the linear layers of each MLP")                             \
    X(SWITCH(), adds_input, "residual", "no", SAME, GR_USUAL, "layers!=1|2",                                           \
      "add the input of hidden layers to their output, if their widths are equal; on meshes inputs to outputs")        \
    X(CHOICE(gr_model_type, GR_MODEL_TYPE_LIST), model_type, "model.type", "f32", SAME, GR_USUAL,                      \
      "model!=mlp|gat and (model!=sage or aggregator!=max|min)",                                                       \
      "f32, bf16: type of the rows that sums over neighbours read; f32, f64: of all numbers of a network on a mesh")
/* clang-format on */

struct gr_shape_options {
    GR_SHAPE_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_shape_option_table;

static inline const struct gr_shape_options *gr_shape_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_shape_option_table);
}

/* clang-format off */
#define GR_TRAINING_OPTIONS(X)                                                                                         \
    X(INTEGER("0.."), epochs, "epochs", "100", SAME, GR_USUAL | GR_LIVE, "",                                           \
      "epochs to train, each one step on the whole graph")                                                             \
    X(NUMBER("0.."), lr, "lr", "0.01", SAME, GR_USUAL | GR_LIVE, "epochs!=0",                                          \
      "learning rate; networks on meshes: 0.001 unless it is set")                                                     \
    X(FORM(GR_SCHEDULE_LIST), schedule, "schedule", "constant", SAME, GR_USUAL | GR_LIVE, "epochs!=0",                 \
      "decrease of the learning rate: none, to 0 after the last epoch, or step:EPOCHS:FACTOR")                         \
    X(FORM(GR_OPTIMIZER_LIST), optimizer, "optimizer", "adam", SAME, GR_USUAL, "epochs!=0",                            \
      "adam:BETA1:BETA2 or sgd:MOMENTUM; on meshes adam has a decoupled weight decay (AdamW)")                         \
    X(FORMS("[0..):first?"), weight_decay, "weight_decay", "0", SAME, GR_USUAL | GR_LIVE, "epochs!=0",                 \
      "L2 penalty on the weight matrices, or with :first on that of the first layer, added to gradients; AdamW: "      \
      "decay of all weights")                                                                                          \
    X(NUMBER("0.."), clip_norm, "clip_norm", "0", SAME, GR_USUAL | GR_LIVE, "epochs!=0",                               \
      "length to which a longer gradient of all weights together is scaled down; 0: none")                             \
    X(CHOICE(gr_on_nonfinite, GR_ON_NONFINITE_LIST), on_nonfinite, "on_nonfinite", "stop", SAME, GR_USUAL | GR_LIVE,   \
      "epochs!=0",                                                                                                     \
      "when loss or weights are not finite: end with an error, or go back and halve the learning rate")                \
    X(INTEGER("0.."), eval_every, "eval_every", "1", SAME, GR_USUAL | GR_LIVE, "",                                     \
      "epochs between evaluations; 0: only after the last")                                                            \
    X(INTEGER("0.."), patience, "patience", "0", SAME, GR_USUAL | GR_LIVE, "epochs!=0 and eval_every!=0",              \
      "epochs, of streams validations, without a better validation before training stops; 0: never")
/* clang-format on */

struct gr_training_options {
    GR_TRAINING_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_training_option_table;

static inline const struct gr_training_options *gr_training_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_training_option_table);
}
