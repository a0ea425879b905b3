/* The options that every room may read.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

#define GR_CHECK_LIST(X) X(GR_CHECK_NO, "no") X(GR_CHECK_ARGS, "args") X(GR_CHECK_FULL, "full")
enum gr_check { GR_CHECK_LIST(GR_CHOICE_CONSTANT) };

/** The log levels, with the numbers of graft_log_level. */
/* clang-format off */
#define GR_LOG_LEVEL_LIST(X)                                                                                           \
    X(GR_LOG_DEBUG, "debug")                                                                                           \
    X(GR_LOG_INFO, "info")                                                                                             \
    X(GR_LOG_WARNING, "warning")                                                                                       \
    X(GR_LOG_ERROR, "error")
/* clang-format on */
enum gr_log_level { GR_LOG_LEVEL_LIST(GR_CHOICE_CONSTANT) };

/* clang-format off */
#define GR_BASE_OPTIONS(X)                                                                                             \
    X(INTEGER("0.."), seed, "seed", "0", SAME, GR_USUAL | GR_EVERYWHERE, "",                                           \
      "seed of initial weights, dropout, label sets and stochastic rounding")                                          \
    X(INTEGER("0..4096"), threads, "threads", "0", EACH, GR_USUAL | GR_LIVE, "",                                       \
      "threads to use; 0: as many as OpenMP and processors allow")                                                     \
    X(INTEGER("0..1000000000"), memory_limit, "memory.limit", "0", EACH, GR_USUAL, "",                                 \
      "MB that a trainer may use; 0: the available memory of the system")                                              \
    X(SWITCH(), profile, "profile", "no", EACH, GR_USUAL, "",                                                          \
      "record the times of phases of a trainer, or of a network on a mesh")                                            \
    X(SWITCH(), strict, "strict", "no", SAME, GR_LIVE, "",                                                             \
      "fail if another kernel would replace the named kernel, or plain loops a BLAS")                                  \
    X(CHOICE(gr_check, GR_CHECK_LIST), check, "check", "args", SAME, GR_USUAL | GR_LIVE, "",                           \
      "args: wrong handles and threads are errors; full: also changed arrays, wrong modules, copies that differ")      \
    X(CHOICE(gr_log_level, GR_LOG_LEVEL_LIST), log_level, "log.level", "info", EACH, GR_USUAL | GR_LIVE, "",           \
      "least important lines that the log receives")                                                                   \
    X(TEXT(), module_path, "module.path", "", EACH, GR_LIVE, "",                                                       \
      "folders, separated by ':', that are searched for modules first")
/* clang-format on */

struct gr_base_options {
    GR_BASE_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_base_option_table;

static inline const struct gr_base_options *gr_base_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_base_option_table);
}
