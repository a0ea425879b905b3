/* The options of minibatches.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

/** The kinds of samplers: X(constant, word, numbers of gr_form). Each is a row gr_sample_WORD of a file of sample/. */
/* clang-format off */
#define GR_SAMPLER_MAP(X)                                                                                              \
    X(NEIGHBOUR, neighbour, "")                                                                                        \
    X(CLUSTER, cluster, ":0..1000000000=0")                                                                            \
    X(SAINT, saint, ":1..1000=2:1..10000=20")                                                                          \
    X(LADIES, ladies, "")
/* clang-format on */
#define GR_SAMPLER_ENUM(constant, word, numbers) GR_SAMPLER_##constant,
#define GR_SAMPLER_WORD(constant, word, numbers) "|" #word numbers
#define GR_SAMPLER_WORDS (&(GR_SAMPLER_MAP(GR_SAMPLER_WORD))[1])
enum gr_sampler { GR_SAMPLER_MAP(GR_SAMPLER_ENUM) GR_SAMPLERS };

/* clang-format off */
#define GR_SAMPLE_WEIGHTS_LIST(X)                                                                                      \
    X(GR_SAMPLE_UNIFORM, "uniform")                                                                                    \
    X(GR_SAMPLE_BY_EDGE, "edge")                                                                                       \
    X(GR_SAMPLE_BY_DEGREE, "degree")
/* clang-format on */
enum gr_sample_weights { GR_SAMPLE_WEIGHTS_LIST(GR_CHOICE_CONSTANT) };

#define GR_HISTORY_LIST(X) X(GR_HISTORY_NO, "no") X(GR_HISTORY_FULL, "full")
enum gr_history_use { GR_HISTORY_LIST(GR_CHOICE_CONSTANT) };

/** The treatment of a halo row missing from a cache: it is left out of sums; the same, and sums are rescaled; an older
 *  row is used, if there is one; its owner computes it; the same, and it is used again for hec.life batches. */
/* clang-format off */
#define GR_CACHE_MISS_LIST(X)                                                                                          \
    X(GR_MISS_DROP, "drop")                                                                                            \
    X(GR_MISS_DROP_RESCALED, "drop_rescaled")                                                                          \
    X(GR_MISS_LAST, "last")                                                                                            \
    X(GR_MISS_FETCH, "fetch")                                                                                          \
    X(GR_MISS_FETCH_KEEP, "fetch_keep")
/* clang-format on */
enum gr_cache_miss { GR_CACHE_MISS_LIST(GR_CHOICE_CONSTANT) };

#define GR_CACHE_CODEC_LIST(X) X(GR_CACHE_F32, "f32") X(GR_CACHE_BF16, "bf16") X(GR_CACHE_Q8, "q8") X(GR_CACHE_Q4, "q4")
enum gr_cache_codec { GR_CACHE_CODEC_LIST(GR_CHOICE_CONSTANT) };

#define GR_NEEDS_DRAWN "batch_size!=0 and sampler=neighbour"
#define GR_NEEDS_LAYERS "batch_size!=0 and sampler=neighbour|ladies"
#define GR_NEEDS_CACHED GR_NEEDS_RANKS " and model!=mlp and batch_size!=0"

/* clang-format off */
#define GR_SAMPLE_OPTIONS(X)                                                                                           \
    X(INTEGER("0.."), batch_size, "batch_size", "0", SAME, GR_USUAL, "",                                               \
      "training vertices, or other seeds, of a minibatch; 0: all")                                                     \
    X(FORMS(GR_SAMPLER_WORDS), sampler, "sampler", "neighbour", SAME, GR_USUAL, "batch_size!=0 and model!=mlp",        \
      "neighbours drawn for each vertex or each layer (ladies), or subgraphs: cluster:PARTS (0: ten for each batch), " \
      "saint:WALK:COVERAGE (epochs that estimate weights)")                                                            \
    X(WIDTHS("-1..1000000"), fanout, "fanout", "10", SAME, GR_USUAL, GR_NEEDS_LAYERS,                                  \
      "neighbours drawn for a vertex, or for a layer (ladies): one number, or one per layer from the first; -1: all")  \
    X(CHOICE(gr_sample_weights, GR_SAMPLE_WEIGHTS_LIST), weights, "sample.weights", "uniform", SAME, GR_USUAL,         \
      GR_NEEDS_DRAWN,                                                                                                  \
      "probabilities of neighbours: equal, or in proportion to the value of the edge or to their degree")              \
    X(SWITCH(), replace, "sample.replace", "no", SAME, GR_EXPERT, GR_NEEDS_DRAWN,                                      \
      "whether an edge may be drawn more than once")                                                                   \
    X(INTEGER("0..4096"), ahead, "sample.ahead", "0", EACH, GR_EXPERT, "batch_size!=0",                                \
      "batches made at once, one on each thread; 0: one for each thread")                                              \
    X(SWITCH(), drop_last, "drop_last", "no", SAME, GR_USUAL, GR_NEEDS_LAYERS,                                         \
      "leave out a smaller batch at the end of an epoch")                                                              \
    X(CHOICE(gr_history_use, GR_HISTORY_LIST), history, "history", "no", SAME, GR_USUAL,                               \
      "model!=mlp and batch_size!=0",                                                                                  \
      "full: batches cover all vertices, and read rows of earlier batches for other neighbours; fanout is -1 "         \
      "unless it is set")                                                                                              \
    X(INTEGER("1..2147483647"), cache_rows, "hec.rows", "1000000", SAME, GR_USUAL, GR_NEEDS_CACHED,                    \
      "rows of other ranks that a layer keeps; with hec.codec, more rows in the same bytes")                           \
    X(INTEGER("1..1000000000"), cache_life, "hec.life", "10", SAME, GR_USUAL, GR_NEEDS_CACHED,                         \
      "batches for which a row is used")                                                                               \
    X(CHOICE(gr_cache_miss, GR_CACHE_MISS_LIST), cache_miss, "hec.miss", "drop", SAME, GR_USUAL, GR_NEEDS_CACHED,      \
      "for a missing row: 0 in sums; no term, with sums rescaled; an older row; a row computed by its owner, once or " \
      "for hec.life batches (then without a gradient)")                                                                \
    X(CHOICE(gr_cache_codec, GR_CACHE_CODEC_LIST), cache_codec, "hec.codec", "f32", SAME, GR_EXPERT,                   \
      "(processes>1 or history=full) and model!=mlp and batch_size!=0",                                                \
      "format of stored rows")                                                                                         \
    X(INTEGER("-1..2147483647"), push_rows, "aep.rows", "-1", SAME, GR_USUAL, GR_NEEDS_CACHED,                         \
      "most rows of a layer that a batch sends to each rank, drawn by degree; -1: batch_size")                         \
    X(CHOICE(gr_cache_codec, GR_CACHE_CODEC_LIST), push_codec, "aep.codec", "q8", SAME, GR_USUAL, GR_NEEDS_CACHED,     \
      "format of sent rows")                                                                                           \
    X(INTEGER("1..64"), push_delay, "aep.delay", "1", SAME, GR_EXPERT, GR_NEEDS_CACHED,                                \
      "batches after which sent rows are stored; at the end of an epoch all are stored")
/* clang-format on */

struct gr_sample_options {
    GR_SAMPLE_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_sample_option_table;

static inline const struct gr_sample_options *gr_sample_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_sample_option_table);
}
