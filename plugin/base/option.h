/* Options: a typed table. A value is parsed once, when it is set, into the structs below.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_OPTION_H
#define GR_BASE_OPTION_H

#include "graft_host.h"
#include "graft_matrix.h"

/* Choices. The words of an option have the order of its constants here (base/option_table.c). */

/** The kinds of models: X(constant, word). Each is a row gr_kind_WORD of model/kind.c. */
#define GR_KIND_MAP(X) X(SAGE, sage) X(GCN, gcn) X(GAT, gat) X(GIN, gin) X(MLP, mlp) X(SGC, sgc) X(APPNP, appnp)

#define GR_KIND_ENUM(constant, word) GR_KIND_##constant,
enum gr_kind { GR_KIND_MAP(GR_KIND_ENUM) GR_KINDS };
#undef GR_KIND_ENUM

/** The methods of partition, in the order in which AUTO tries them: X(constant, word, 1 if it needs the whole graph on
 *  one process). Each is a function gr_partition_WORD() in a file of partition/. */
#define GR_PARTITION_MAP(X) X(BLOCK, block, 0) X(HASH, hash, 0) X(STREAM, stream, 0) X(METIS, metis, 1)

#define GR_PARTITION_ENUM(constant, word, whole) GR_PARTITION_##constant,
/** AUTO: the method with the shortest predicted epoch. GIVEN: owners given by the host. */
enum gr_partition_method {
    GR_PARTITION_MAP(GR_PARTITION_ENUM) GR_PARTITION_METHODS,
    GR_PARTITION_AUTO = GR_PARTITION_METHODS,
    GR_PARTITION_GIVEN
};
#undef GR_PARTITION_ENUM

enum gr_aggregator { GR_AGGREGATOR_MEAN, GR_AGGREGATOR_SUM, GR_AGGREGATOR_MAX, GR_AGGREGATOR_MIN };
enum gr_jumping { GR_JUMPING_NONE, GR_JUMPING_CAT, GR_JUMPING_MAX };
enum gr_edge_features { GR_EDGE_FEATURES_NONE, GR_EDGE_FEATURES_VALUES, GR_EDGE_FEATURES_ARRAY };
enum gr_norm { GR_NORM_NONE, GR_NORM_LAYER, GR_NORM_BATCH };
enum gr_choice { GR_NO, GR_YES, GR_AUTO };
enum gr_optimizer { GR_ADAM, GR_SGD };
enum gr_loss { GR_LOSS_AUTO, GR_LOSS_SOFTMAX, GR_LOSS_SIGMOID, GR_LOSS_MSE, GR_LOSS_MAE, GR_LOSS_HUBER };
enum gr_order { GR_ORDER_GIVEN, GR_ORDER_DEGREE, GR_ORDER_RCM, GR_ORDER_COMMUNITY };
enum gr_halo_cover { GR_HALO_COVER_HYBRID, GR_HALO_COVER_PRE, GR_HALO_COVER_POST };
enum gr_halo_statistics { GR_STATISTICS_NO, GR_STATISTICS_SAMPLE, GR_STATISTICS_EXACT };
enum gr_halo_budget_kind { GR_HALO_BUDGET_BYTES, GR_HALO_BUDGET_ERROR, GR_HALO_BUDGET_BALANCE };

enum { GR_WIDTHS_MAX = 64 };

/** A list of widths, such as "128" or "256,64". */
struct gr_widths {
    int32_t count;
    int64_t width[GR_WIDTHS_MAX];
};

/** The codecs of option halo.codec: X(word, the members of gr_halo_codec). */
#define GR_CODEC_MAP(X)                                                                                                \
    X("f32", 32, 0, 0)                                                                                                 \
    X("bf16", 16, 0, 0)                                                                                                \
    X("q8", 8, 0, 0)                                                                                                   \
    X("q4", 4, 0, 0)                                                                                                   \
    X("q2", 2, 0, 0)                                                                                                   \
    X("q1", 1, 0, 0)                                                                                                   \
    X("q1:minmax", 1, 0, GRAFT_CODEC_MINMAX)                                                                           \
    X("q1:rotated", 1, 0, GRAFT_CODEC_ROTATED)                                                                         \
    X("adaptive", 8, 1, 0)

/** How the rows of one direction are encoded. */
struct gr_halo_codec {
    int32_t bits;     /* of an element, 32 to 1; the most of an adaptive codec */
    int32_t adaptive; /* 2, 4 or 8 bits, chosen for each row */
    int32_t code;     /* GRAFT_CODEC_..., or 0: chosen by the bits and the width of the rows */
};

/** The criterion of adaptive widths. */
struct gr_halo_budget {
    enum gr_halo_budget_kind kind;
    int64_t                  bytes; /* at most, of all ranks in an epoch */
    double share; /* ERROR: relative squared error at most; BALANCE: weight of the error against time */
};

struct gr_model_options {
    enum gr_kind          kind;
    enum gr_aggregator    aggregator;
    enum gr_jumping       jumping;
    enum gr_edge_features edge_features;
    enum gr_norm          norm;
    int32_t               is_elu, drops_first, adds_input, attends_to_relu;
    int64_t               layers, propagation, heads;
    struct gr_widths      hidden;
    double                gin_eps, teleport, dropout, input_dropout, attention_dropout;
};

enum gr_schedule { GR_SCHEDULE_CONSTANT, GR_SCHEDULE_COSINE, GR_SCHEDULE_STEP };

struct gr_train_options {
    int64_t           epochs, eval_every, seed, schedule_every, patience;
    double            lr, momentum, weight_decay, clip_norm, label_rate, schedule_factor, huber_delta, label_smoothing;
    enum gr_schedule  schedule;
    enum gr_optimizer optimizer;
    enum gr_loss      loss;
    int32_t           decays_first_only, restores, balances;
};

struct gr_data_options {
    int32_t        symmetrize, normalize_features;
    enum gr_choice self_loops;
};

enum gr_feature_graph { GR_FEATURE_GRAPH_AUTO, GR_FEATURE_GRAPH_REPLICATE, GR_FEATURE_GRAPH_STREAM };

/** The value "auto" of options that are counts. */
enum { GR_COUNT_AUTO = -1 };

struct gr_resource_options {
    enum gr_order  order;
    int32_t        row_masks, reuse_input, recompute, profile;
    enum gr_choice sparse_input;
    int64_t        threads, memory_limit; /* MB */
    enum gr_choice eval_blocks;
    const char    *eval_folder;

    enum gr_feature_graph feature_graph;
    int64_t               workers_sparse, workers_stages;
};

/** Type of the rows that sums over neighbours read (F32, BF16), and of all numbers of a network (F32, F64). */
enum gr_model_type { GR_MODEL_F32, GR_MODEL_BF16, GR_MODEL_F64 };

struct gr_kernel_options {
    const char *mxm, *dense; /* names of modules, or "auto" */
    int64_t     verify;
    int32_t     model_type; /* enum gr_model_type */
    int32_t     dense_is_bf16, strict;
};

enum gr_parallel { GR_PARALLEL_PARTITION, GR_PARALLEL_FEATURE, GR_PARALLEL_GRID, GR_PARALLEL_AUTO };

struct gr_partition_options {
    enum gr_partition_method method;
    enum gr_parallel         parallel;
    int64_t                  columns; /* of the grid; 0: chosen by the number of ranks */
    const char              *file, *program;
    double                   timeout;
    int64_t                  refine; /* rounds */
};

struct gr_halo_options {
    struct gr_halo_codec    codec[2]; /* forward, backward */
    struct gr_halo_budget   budget;
    enum gr_halo_cover      cover;
    int32_t                 rounding; /* GRAFT_ROUND_..., or 0: chosen by codec and direction */
    enum gr_halo_statistics statistics;
    int32_t                 evaluates_quantized, refuses_nonfinite;
    int64_t                 staleness, refresh, reassign_every;
    double                  smoothing, drift_limit, timeout;
};

/** The kinds of samplers: X(constant, word). Each is a row gr_sample_WORD of a file of sample/. */
#define GR_SAMPLER_MAP(X) X(NEIGHBOUR, neighbour) X(CLUSTER, cluster) X(SAINT, saint) X(LADIES, ladies)

#define GR_SAMPLER_ENUM(constant, word) GR_SAMPLER_##constant,
enum gr_sampler { GR_SAMPLER_MAP(GR_SAMPLER_ENUM) GR_SAMPLERS };
#undef GR_SAMPLER_ENUM

enum gr_sample_weights { GR_SAMPLE_UNIFORM, GR_SAMPLE_BY_EDGE, GR_SAMPLE_BY_DEGREE };

/** The treatment of a halo row missing from a cache: it is left out of sums; the same, and sums are rescaled; an older
 *  row is used, if there is one; or its owner computes it. */
enum gr_cache_miss { GR_MISS_DROP, GR_MISS_DROP_RESCALED, GR_MISS_LAST, GR_MISS_FETCH };
enum gr_cache_codec { GR_CACHE_F32, GR_CACHE_BF16, GR_CACHE_Q8, GR_CACHE_Q4 };

struct gr_sampling_options {
    int64_t                batch_size, ahead; /* 0: all seeds; as many as threads */
    struct gr_widths       fanout;
    enum gr_sample_weights weights;
    enum gr_sampler        sampler;
    int32_t                replace, drop_last;
    int64_t                cluster_parts, saint_walk, saint_coverage;
    int64_t                cache_rows, cache_life, push_rows, push_delay;
    enum gr_cache_miss     cache_miss;
    enum gr_cache_codec    cache_codec, push_codec;
    int32_t                keeps_fetched;
    int32_t                history; /* tables of rows of all vertices */
};

enum gr_stream_policy { GR_STREAM_RESERVOIR, GR_STREAM_FIFO };

/** Networks on meshes, and the streams that train them. The constants of `sum` and `edges` are in mgn/mgn.h. */
struct gr_mesh_options {
    int64_t width, layers, linear; /* linear layers of an MLP */
    int32_t is_elu, has_norm, sum, edges, scales_by_longest, adds_input;
    double  noise, noise_correction;
    int64_t gather, freeze; /* steps */
    double  lr, lr_end, beta1, beta2, weight_decay;
    int64_t warmup, steps;

    int64_t               memory; /* MB */
    enum gr_stream_policy policy;
    int64_t               lag, interval, batch, holdout, patience;
    int32_t               drops_nonfinite;
};

enum gr_check { GR_CHECK_NO, GR_CHECK_ARGS, GR_CHECK_FULL };

struct gr_library_options {
    const char     *module_path, *graphblas_path;
    graft_log_level log_level;
    int32_t         check;
};

enum gr_option_source { GR_SOURCE_DEFAULT, GR_SOURCE_ENVIRONMENT, GR_SOURCE_HOST };

struct gr_options {
    struct gr_model_options     model;
    struct gr_train_options     train;
    struct gr_data_options      data;
    struct gr_resource_options  resource;
    struct gr_kernel_options    kernel;
    struct gr_partition_options partition;
    struct gr_halo_options      halo;
    struct gr_sampling_options  sampling;
    struct gr_mesh_options      mesh;
    struct gr_library_options   library;

    char   **text;     /* [rows of the table] the set value, or NULL for the default */
    uint8_t *reported; /* [rows of the table] the log has reported that this value has no effect */
    uint8_t *source;   /* [rows of the table] enum gr_option_source */
    int64_t  changes;  /* the number of calls that set an option */
};

/** Take the defaults, and values from GRAFT_... variables of the environment.
 *  \return OK; ERR_OPTION: a variable holds a bad value; ERR_NOMEM. gr_options_fini() is always due. */
int32_t gr_options_init(graft_context *context, graft_error *error);
void    gr_options_fini(graft_context *context);

/** Set one option. \return OK; ERR_OPTION: no such option, or not a legal value; ERR_NOMEM. */
int32_t gr_option_set(graft_context *context, const char *key, const char *value, graft_error *error);

/** Whether the option of this name, which exists, has its default because it was not set. */
int gr_option_is_default(const graft_context *context, const char *key);

/** Describe row `index` of the table. \return OK; ERR_NOT_FOUND past the last. */
int32_t gr_option_describe(const graft_context *context, int32_t index, graft_option *option, graft_error *error);

/** The present options of groups model, training and data: "key", "value", ..., "", each terminated.
 *  \return OK; ERR_NOMEM. */
int32_t     gr_options_copy(const graft_context *context, char **copy, graft_error *error);
/** The value of a key in such a copy, or NULL. */
const char *gr_options_copied(const char *copy, const char *key);

/** Widths of `count` hidden layers: one number for all, or a list. \return OK; ERR_OPTION: a list of other length. */
int32_t gr_option_hidden(const struct gr_options *options, int32_t count, int64_t *widths, graft_error *error);

/** The semiring of aggregator=max or min in a model that has the option; 0: the model sums. */
graft_semiring gr_option_extremum(const struct gr_model_options *model);

/** Of the texts that next(arg, i) returns until NULL, the text nearest to `text`; NULL if none is near. */
const char *gr_nearest(const char *text, const char *(*next)(const void *arg, int32_t index), const void *arg);

#endif
