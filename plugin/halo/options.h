/* The options of the exchange of boundary rows.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "base/option_row.h"
#include "graft_codec.h"

/** The codecs of option halo.codec: X(word, members of struct gr_halo_codec). */
/* clang-format off */
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
/* clang-format on */
#define GR_CODEC_WORD(word, bits, adaptive, code) "|" word
#define GR_CODEC_WORDS (&(GR_CODEC_MAP(GR_CODEC_WORD))[1])

/** How the rows of one direction are encoded. */
struct gr_halo_codec {
    int32_t bits;     /* bits of an element, 32 to 1; of an adaptive codec the largest number */
    int32_t adaptive; /* 2, 4 or 8 bits, chosen for each row */
    int32_t code;     /* GRAFT_CODEC_..., or 0: chosen by the bits and the width of the rows */
};

/** The criterion of adaptive widths: the bytes of all ranks in an epoch, the relative squared error, or the weight of
 *  the error against the time. The last number is the epochs between two decisions. */
/* clang-format off */
#define GR_HALO_BUDGET_LIST(X)                                                                                         \
    X(GR_HALO_BUDGET_BYTES, "bytes:1..:0..=20")                                                                        \
    X(GR_HALO_BUDGET_ERROR, "error:(0..):0..=20")                                                                      \
    X(GR_HALO_BUDGET_BALANCE, "balance:[0..1]:0..=20")
/* clang-format on */
enum gr_halo_budget { GR_HALO_BUDGET_LIST(GR_CHOICE_CONSTANT) };

/** The age of boundary rows in epochs. For stale rows also the epochs from one wait for fresh rows to the next, and the
 *  smoothing. */
#define GR_HALO_STALENESS_LIST(X) X(GR_HALO_CURRENT, "0") X(GR_HALO_STALE, "1:0..=0:[0..1)=0.8")
enum gr_halo_staleness { GR_HALO_STALENESS_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_HALO_COVER_LIST(X)                                                                                          \
    X(GR_HALO_COVER_HYBRID, "hybrid")                                                                                  \
    X(GR_HALO_COVER_PRE, "pre")                                                                                        \
    X(GR_HALO_COVER_POST, "post")
/* clang-format on */
enum gr_halo_cover { GR_HALO_COVER_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_HALO_ROUNDING_LIST(X)                                                                                       \
    X(GR_HALO_ROUND_AUTO, "auto")                                                                                      \
    X(GR_HALO_ROUND_NEAREST, "nearest")                                                                                \
    X(GR_HALO_ROUND_STOCHASTIC, "stochastic")
/* clang-format on */
enum gr_halo_rounding { GR_HALO_ROUNDING_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_HALO_STATISTICS_LIST(X)                                                                                     \
    X(GR_STATISTICS_NO, "no")                                                                                          \
    X(GR_STATISTICS_SAMPLE, "sample")                                                                                  \
    X(GR_STATISTICS_EXACT, "exact")
/* clang-format on */
enum gr_halo_statistics { GR_HALO_STATISTICS_LIST(GR_CHOICE_CONSTANT) };

#define GR_HALO_NONFINITE_LIST(X) X(GR_HALO_NONFINITE_SEND, "send") X(GR_HALO_NONFINITE_REFUSE, "refuse")
enum gr_halo_nonfinite { GR_HALO_NONFINITE_LIST(GR_CHOICE_CONSTANT) };

#define GR_NEEDS_EXCHANGE GR_NEEDS_RANKS " and model!=mlp"
#define GR_NEEDS_ADAPTIVE GR_NEEDS_EXCHANGE " and halo.codec=adaptive"

/* clang-format off */
#define GR_HALO_OPTIONS(X)                                                                                             \
    X(PAIR(GR_CODEC_WORDS), codec, "halo.codec", "f32", SAME, GR_USUAL | GR_LIVE, GR_NEEDS_EXCHANGE,                   \
      "quantization of boundary rows in training; q2/q8: forward/backward; adaptive: q2, q4 or q8 row by row")         \
    X(FORM(GR_HALO_BUDGET_LIST), budget, "halo.budget", "balance:0.5", SAME, GR_USUAL | GR_LIVE, GR_NEEDS_ADAPTIVE,    \
      "criterion of adaptive widths, decided every :EPOCHS (0: once): bytes per epoch, relative squared error, or "    \
      "error against time (1: error only)")                                                                            \
    X(FORM(GR_HALO_STALENESS_LIST), staleness, "halo.staleness", "0", SAME, GR_USUAL | GR_LIVE, GR_NEEDS_EXCHANGE,     \
      "1:EPOCHS:SMOOTHING: use boundary rows of the previous epoch; epochs between waits for fresh rows (0: first "    \
      "only), weight of the rows used before")                                                                         \
    X(CHOICE(gr_halo_cover, GR_HALO_COVER_LIST), cover, "halo.cover", "hybrid", SAME, GR_EXPERT,                       \
      GR_NEEDS_RANKS " and model!=gat|mlp and (model!=sage or aggregator!=max|min) and parallel!=feature",             \
      "rows to send: partial sums (pre), raw rows (post), or the fewest of both")                                      \
    X(CHOICE(gr_halo_rounding, GR_HALO_ROUNDING_LIST), rounding, "halo.rounding", "auto", SAME, GR_LIVE,               \
      GR_NEEDS_EXCHANGE " and halo.codec!=f32|q1:rotated",                                                             \
      "auto: stochastic for gradients and 1 bit, else nearest")                                                        \
    X(CHOICE(gr_halo_nonfinite, GR_HALO_NONFINITE_LIST), nonfinite, "halo.nonfinite", "send", SAME, GR_LIVE,           \
      GR_NEEDS_EXCHANGE " and halo.codec!=f32|bf16",                                                                   \
      "rows with NaN, infinity or too wide a range: sent as f32, or an error")                                         \
    X(CHOICE(gr_halo_statistics, GR_HALO_STATISTICS_LIST), statistics, "halo.error_statistics", "sample",              \
      EACH, GR_EXPERT, GR_NEEDS_EXCHANGE " and halo.codec!=f32",                                                       \
      "rows whose quantization error is measured: none, one of 64, all")
/* clang-format on */

struct gr_halo_options {
    GR_HALO_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_halo_option_table;

static inline const struct gr_halo_options *gr_halo_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_halo_option_table);
}

/** The codec of option halo.codec in one direction. */
struct gr_halo_codec gr_halo_codec_of(const struct gr_halo_options *options, enum gr_direction direction);
