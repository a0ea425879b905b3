/* Options: strings with a type, a default, a range and a line of help.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_OPTION_H
#define GR_BASE_OPTION_H

#include "graft_host.h"

/* X(name, key, live, type, initial, range, help). A type with '|' lists the choices. For "integer" and "number", range
 * is "low..high", "low.." or "[low..high)" with the upper end not included. */
#define GR_OPTION_MAP(X)                                                                                               \
    X(MODEL, "model", 0, "sage|gcn|gat|gin|mlp", "sage", "", "kind of layers; mlp ignores the graph")                  \
    X(LAYERS, "layers", 0, "integer", "3", "1..64", "number of layers")                                                \
    X(HIDDEN, "hidden", 0, "widths", "128", "1..65536", "width of the hidden layers: one number, or one per layer")    \
    X(EPOCHS, "epochs", 0, "integer", "100", "0..", "epochs to train, each one step on the whole graph")               \
    X(LR, "lr", 0, "number", "0.01", "0..", "learning rate")                                                           \
    X(DROPOUT, "dropout", 0, "number", "0.5", "[0..1)", "share of hidden values dropped in training")                  \
    X(INPUT_DROPOUT, "input_dropout", 0, "number", "0", "[0..1)", "share of input features dropped in training")       \
    X(LABEL_RATE, "label_rate", 0, "number", "0", "[0..1)",                                                            \
      "share of training vertices whose labels are input in an epoch, and not in its loss; 0: none")                   \
    X(NORM, "norm", 0, "layer|none", "layer", "", "normalisation between layers")                                      \
    X(OPTIMIZER, "optimizer", 0, "adam|sgd", "adam", "", "how weights follow gradients")                               \
    X(WEIGHT_DECAY, "weight_decay", 0, "number", "0", "0..", "L2 penalty on the weight matrices, added to gradients")  \
    X(WEIGHT_DECAY_LAYERS, "weight_decay_layers", 0, "all|first", "all", "", "layers the penalty applies to")          \
    X(MOMENTUM, "momentum", 0, "number", "0", "[0..1)", "momentum of sgd")                                             \
    X(LOSS, "loss", 0, "auto|softmax|sigmoid", "auto", "", "auto: sigmoid if vertices have several classes")           \
    X(SEED, "seed", 0, "integer", "0", "0..", "of initial weights, dropout, label sets")                               \
    X(EVAL_EVERY, "eval_every", 0, "integer", "1", "0..", "epochs between evaluations; 0: only after the last")        \
    X(SYMMETRIZE, "symmetrize", 0, "yes|no", "no", "", "store every edge in both directions")                          \
    X(SELF_LOOPS, "self_loops", 0, "auto|yes|no", "auto", "", "give each vertex an edge to itself; auto: gcn, gat")    \
    X(NORMALIZE_FEATURES, "normalize_features", 0, "yes|no", "no", "", "divide each row of features by its sum")       \
    X(ORDER, "order", 0, "given|degree|rcm|community", "given", "", "order of the vertices inside the trainer")        \
    X(ROW_MASKS, "row_masks", 0, "yes|no", "yes", "", "train on the rows that training vertices depend on, no others") \
    X(REUSE_INPUT, "reuse_input", 0, "yes|no", "yes", "", "aggregate constant features once, not in every pass")       \
    X(SPARSE_INPUT, "sparse_input", 0, "auto|yes|no", "auto", "",                                                      \
      "multiply sparse features as they are, not made dense; auto: if that is cheaper")                                \
    X(RECOMPUTE, "recompute", 0, "yes|no", "no", "", "redo what is inside layers in the backward pass: less memory")   \
    X(HEADS, "heads", 0, "integer", "4", "1..64", "attention heads of gat; they divide the hidden widths")             \
    X(GIN_EPS, "gin_eps", 0, "number", "0", "", "eps of gin")                                                          \
    X(THREADS, "threads", 1, "integer", "0", "0..4096", "threads to use; 0: what OpenMP would take")                   \
    X(MEMORY_LIMIT, "memory.limit", 0, "integer", "0", "0..1000000000",                                                \
      "MB a trainer may use; 0: what the system has")                                                                  \
    X(PROFILE, "profile", 0, "yes|no", "no", "", "record where the time of a trainer goes; see graft_train.span")      \
    X(MXM_KERNEL, "mxm.kernel", 1, "text", "auto", "", "kernel of the sparse products: auto, or a name")               \
    X(MXM_VERIFY, "mxm.verify", 1, "integer", "0", "0..1000000", "rows of every product to compare with reference")    \
    X(DENSE_MODULE, "dense.module", 0, "text", "auto", "", "module of the dense products: auto, or a name")            \
    X(DENSE_TYPE, "dense.type", 0, "f32|bf16", "f32", "", "what dense products multiply; they add in float")           \
    X(PARTITION, "partition", 0, "given|block|hash|stream|metis|auto", "given", "",                                    \
      "who owns the vertices of a graph over ranks: who has them in its slice, or by one of these methods")            \
    X(PARTITION_FILE, "partition.file", 0, "text", "", "", "file with the owners: read if it is there, else written")  \
    X(HALO_COVER, "halo.cover", 0, "hybrid|pre|post", "hybrid", "",                                                    \
      "rows that ranks send: pre-aggregated rows (pre), raw rows (post), or the fewest of both (hybrid)")              \
    X(HALO_BITS, "halo.bits", 0, "32|16|8|4|2|1|adaptive", "32", "",                                                   \
      "of a number that ranks send one another; 32: as it is, 16: bfloat16; adaptive: 2, 4 or 8, row by row")          \
    X(HALO_BITS_BACKWARD, "halo.bits_backward", 0, "same|32|16|8|4|2|1|adaptive", "same", "", "the same of gradients") \
    X(HALO_BITS_EVALUATION, "halo.bits_evaluation", 0, "32|same", "32", "", "the same in evaluation and prediction")   \
    X(HALO_CODE, "halo.code", 0, "auto|minmax|rotated", "auto", "",                                                    \
      "how 1 bit is used: by the ends of each row, or its signs after a random rotation; auto: this if it is wide")    \
    X(HALO_CODE_BACKWARD, "halo.code_backward", 0, "same|auto|minmax|rotated", "same", "", "the same of gradients")    \
    X(HALO_ROUNDING, "halo.rounding", 0, "auto|nearest|stochastic", "auto", "",                                        \
      "to which of two levels a number goes; auto: stochastic for gradients and 1 bit, else nearest")                  \
    X(HALO_ROUNDING_BACKWARD, "halo.rounding_backward", 0, "same|auto|nearest|stochastic", "same", "",                 \
      "the same of gradients")                                                                                         \
    X(HALO_NONFINITE, "halo.nonfinite", 0, "send|refuse", "send", "",                                                  \
      "messages with NaN, infinities or too wide a range: sent as they are, or an error")                              \
    X(HALO_ERROR, "halo.error", 0, "sample|exact|no", "sample", "", "rows of which is noted what few bits lost")       \
    X(HALO_ASYNC, "halo.async", 0, "yes|no", "no", "",                                                                 \
      "use the rows that came in the epoch before, while those of this one travel")                                    \
    X(HALO_SYNC_EVERY, "halo.sync_every", 0, "integer", "0", "0..",                                                    \
      "of asynchronous epochs, one of so many waits for its own rows; 0: the first alone")                             \
    X(HALO_SMOOTHING, "halo.smoothing", 0, "number", "0.8", "[0..1)",                                                  \
      "of asynchronous epochs, the share of what was used before in what is used now")                                 \
    X(HALO_DRIFT_LIMIT, "halo.drift_limit", 0, "number", "0", "0..",                                                   \
      "of asynchronous epochs, wait for own rows after one whose rows changed by more than this part; 0: none is")     \
    X(HALO_ADAPT_EVERY, "halo.adapt_every", 0, "integer", "20", "0..",                                                 \
      "of adaptive bits: epochs after which they are decided anew; 0: once, after the first epoch")                    \
    X(HALO_ADAPT_LAMBDA, "halo.adapt_lambda", 0, "number", "0.5", "0..1",                                              \
      "of adaptive bits without a limit: what loss weighs against time; 1: loss alone")                                \
    X(HALO_BYTES_LIMIT, "halo.bytes_limit", 0, "integer", "0", "0..",                                                  \
      "of adaptive bits: bytes of all their rows, of all ranks, in an epoch at most; 0: no limit")                     \
    X(HALO_ERROR_LIMIT, "halo.error_limit", 0, "number", "0", "0..",                                                   \
      "of adaptive bits: the share of the squares of rows that each layer may lose in a direction; 0: no limit")       \
    X(HALO_TIMEOUT, "halo.timeout", 0, "number", "600", "1..1000000000",                                               \
      "seconds that a rank waits for another before all give up")                                                      \
    X(METIS_PROGRAM, "metis.program", 1, "text", "auto", "", "program that METIS partitions with; auto: graft-metis")  \
    X(METIS_TIMEOUT, "metis.timeout", 1, "number", "600", "1..1000000000", "seconds that it may take")                 \
    X(STRICT, "strict", 1, "yes|no", "no", "", "fail where something else would stand in for what an option names")    \
    X(MODULE_PATH, "module.path", 1, "text", "", "", "folders, parted by ':', searched for modules first")             \
    X(LOG_LEVEL, "log.level", 1, "debug|info|warning|error", "info", "", "least important lines the log receives")

#define GR_OPTION_ENUM(name, key, live, type, initial, range, help) GR_OPTION_##name,
enum gr_option_id { GR_OPTION_MAP(GR_OPTION_ENUM) GR_OPTION_COUNT };
#undef GR_OPTION_ENUM

struct gr_options {
    char *text[GR_OPTION_COUNT]; /* the value that was set, or NULL for the default; always valid */
};

/** Take values from GRAFT_... variables of the environment. */
int32_t gr_options_init(graft_context *context, graft_error *error);
void    gr_options_fini(graft_context *context);
int32_t gr_option_set(graft_context *context, const char *key, const char *value, graft_error *error);
int32_t gr_option_describe(const graft_context *context, int32_t index, graft_option *option, graft_error *error);

/* Values were checked when they were set, so reading cannot fail. */
const char *gr_option_text(const graft_context *context, enum gr_option_id id);
int64_t     gr_option_integer(const graft_context *context, enum gr_option_id id);
double      gr_option_number(const graft_context *context, enum gr_option_id id);
/** Whether it says what it says at first, be it set or not. */
int         gr_option_is_initial(const graft_context *context, enum gr_option_id id);
int         gr_option_is(const graft_context *context, enum gr_option_id id, const char *choice);

/** Widths of `count` hidden layers: one number for all, or a list. ERR_OPTION if the list has another length. */
int32_t gr_option_widths(const graft_context *context, enum gr_option_id id, int32_t count, int64_t *widths,
                         graft_error *error);

/** Of the texts that next(arg, i) gives until NULL, the one most like `text`; NULL if none is near. */
const char *gr_nearest(const char *text, const char *(*next)(const void *arg, int32_t index), const void *arg);

#endif
