/* The options of streams.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

#define GR_STREAM_POLICY_LIST(X) X(GR_STREAM_RESERVOIR, "reservoir") X(GR_STREAM_FIFO, "fifo")
enum gr_stream_policy { GR_STREAM_POLICY_LIST(GR_CHOICE_CONSTANT) };

#define GR_STREAM_NONFINITE_LIST(X) X(GR_STREAM_REFUSES, "refuse") X(GR_STREAM_DROPS, "drop")
enum gr_stream_nonfinite { GR_STREAM_NONFINITE_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_STREAM_OPTIONS(X)                                                                                           \
    X(INTEGER("1..1000000000"), memory, "stream.memory", "256", EACH, GR_USUAL, "",                                    \
      "MB of states that a stream may keep on a rank")                                                                 \
    X(CHOICE(gr_stream_policy, GR_STREAM_POLICY_LIST), policy, "stream.policy", "reservoir", SAME, GR_USUAL, "",       \
      "stored pairs: each pair so far with equal probability (reservoir), or the latest")                              \
    X(FORMS("1..1000000:1..1000000000=1"), lag, "stream.lag", "1", SAME, GR_USUAL, "",                                 \
      "LAG:INTERVAL: states from the input of a pair to its target, and to the input of the next pair")                \
    X(INTEGER("1..1024"), batch, "stream.batch", "1", SAME, GR_USUAL, "",                                              \
      "pairs of a training step")                                                                                      \
    X(INTEGER("0..1000000000"), holdout, "stream.holdout", "10", SAME, GR_USUAL, "",                                   \
      "N: one of N pairs is for validation, and not for training; 0: none")                                            \
    X(CHOICE(gr_stream_nonfinite, GR_STREAM_NONFINITE_LIST), nonfinite, "stream.nonfinite", "refuse",                  \
      SAME, GR_USUAL | GR_LIVE, "",                                                                                    \
      "a state with NaN or infinity: an error, or dropped with its pairs and counted")
/* clang-format on */

struct gr_stream_options {
    GR_STREAM_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_stream_option_table;

static inline const struct gr_stream_options *gr_stream_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_stream_option_table);
}
