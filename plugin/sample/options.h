/* The options of minibatches.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

/** The kinds of samplers: X(constant, word, numbers of gr_form). Each has a table gr_sample_WORD in a file of
 * sample/. */
/* clang-format off */
#define GR_SAMPLER_MAP(X)                                                                                              \
    X(NEIGHBOUR, neighbour, ":replace?")                                                                               \
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
 *  row is used, if there is one; its owner computes it; the same, and it is used again for the life of hec.rows. */
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
      "neighbours drawn for each vertex (with :replace an edge may be drawn again) or each layer (ladies), or "        \
      "subgraphs: cluster:PARTS (0: ten for each batch), saint:WALK:COVERAGE (epochs that estimate weights)")          \
    X(WIDTHS("-1..1000000"), fanout, "fanout", "10", SAME, GR_USUAL, GR_NEEDS_LAYERS,                                  \
      "neighbours drawn for a vertex, or for a layer (ladies): one number, or one per layer from the first; -1: all")  \
    X(CHOICE(gr_sample_weights, GR_SAMPLE_WEIGHTS_LIST), weights, "sample.weights", "uniform", SAME, GR_USUAL,         \
      GR_NEEDS_DRAWN,                                                                                                  \
      "probabilities of neighbours: equal, or in proportion to the value of the edge or to their degree")              \
    X(INTEGER("0..4096"), ahead, "sample.ahead", "0", EACH, GR_EXPERT, "batch_size!=0",                                \
      "batches made at once, one on each thread; 0: one for each thread")                                              \
    X(SWITCH(), drop_last, "drop_last", "no", SAME, GR_USUAL, GR_NEEDS_LAYERS,                                         \
      "leave out a smaller batch at the end of an epoch")                                                              \
    X(CHOICE(gr_history_use, GR_HISTORY_LIST), history, "history", "no", SAME, GR_USUAL,                               \
      "model!=mlp and batch_size!=0",                                                                                  \
      "full: batches cover all vertices, and read rows of earlier batches for other neighbours; fanout is -1 "         \
      "unless it is set")                                                                                              \
    X(FORMS("1..2147483647:1..1000000000=10"), cache, "hec.rows", "1000000", SAME, GR_USUAL, GR_NEEDS_CACHED,          \
      "ROWS:LIFE: rows of other ranks that a layer keeps (with hec.codec, more rows in the same bytes), and batches "  \
      "for which a row is used")                                                                                       \
    X(CHOICE(gr_cache_miss, GR_CACHE_MISS_LIST), cache_miss, "hec.miss", "drop", SAME, GR_USUAL, GR_NEEDS_CACHED,      \
      "for a missing row: 0 in sums; no term, with sums rescaled; an older row; a row computed by its owner, once or " \
      "for its life in hec.rows (then without a gradient)")                                                            \
    X(CHOICE(gr_cache_codec, GR_CACHE_CODEC_LIST), cache_codec, "hec.codec", "f32", SAME, GR_EXPERT,                   \
      "(processes>1 or history=full) and model!=mlp and batch_size!=0",                                                \
      "format of stored rows")                                                                                         \
    X(FORMS("-1..2147483647:1..64=1"), push, "aep.rows", "-1", SAME, GR_USUAL, GR_NEEDS_CACHED,                        \
      "ROWS:DELAY: most rows of a layer that a batch sends to each rank, drawn by degree (-1: batch_size), and "       \
      "batches after which they are stored; at the end of an epoch all are stored")                                    \
    X(CHOICE(gr_cache_codec, GR_CACHE_CODEC_LIST), push_codec, "aep.codec", "q8", SAME, GR_USUAL, GR_NEEDS_CACHED,     \
      "format of sent rows")
/* clang-format on */

struct gr_sample_options {
    GR_SAMPLE_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_sample_option_table;

static inline const struct gr_sample_options *gr_sample_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_sample_option_table);
}
