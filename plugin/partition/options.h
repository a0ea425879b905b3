/* The options of partitions.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/option_row.h"

/** The methods of partition, in the order in which AUTO tries them: X(constant, word, 1 if it needs the whole graph on
 *  one process). Each is a function gr_partition_WORD() in a file of partition/. */
#define GR_PARTITION_MAP(X) X(BLOCK, block, 0) X(HASH, hash, 0) X(STREAM, stream, 0) X(METIS, metis, 1)
#define GR_PARTITION_ENUM(constant, word, whole) GR_PARTITION_##constant,
#define GR_PARTITION_WORD(constant, word, whole) #word GR_PARTITION_NUMBERS "|"
/** Rounds of refinement, and the seconds that METIS may take, also for sampler=cluster. */
#define GR_PARTITION_NUMBERS ":0..1000=0:[1..1e9]=600"
/** AUTO: the method with the shortest predicted epoch. GIVEN: owners given by the host. */
enum gr_partition_method {
    GR_PARTITION_MAP(GR_PARTITION_ENUM) GR_PARTITION_METHODS,
    GR_PARTITION_AUTO = GR_PARTITION_METHODS,
    GR_PARTITION_GIVEN
};
#define GR_PARTITION_WORDS GR_PARTITION_MAP(GR_PARTITION_WORD) "auto" GR_PARTITION_NUMBERS "|given" GR_PARTITION_NUMBERS

#define GR_NEEDS_OWNED GR_NEEDS_RANKS " and parallel!=feature"

/* clang-format off */
#define GR_PARTITION_OPTIONS(X)                                                                                        \
    X(FORMS(GR_PARTITION_WORDS), method, "partition", "given", SAME, GR_USUAL,                                         \
      "(processes>1 or sampler=cluster)",                                                                              \
      "METHOD:ROUNDS:SECONDS: method of assigning vertices to ranks (given: by slices; all others, with "              \
      "parallel=feature: in turn), rounds in which all ranks improve it, and how long METIS may take")                 \
    X(TEXT(), file, "partition.file", "", SAME, GR_USUAL, GR_NEEDS_OWNED,                                              \
      "file of the owners: read if it exists, else written")                                                           \
    X(TEXT(), program, "partition.program", "auto", ROOT, GR_LIVE, GR_NEEDS_OWNED " and partition=metis|auto",         \
      "program that partitions with METIS; auto: graft-metis")
/* clang-format on */

struct gr_partition_options {
    GR_PARTITION_OPTIONS(GR_OPTION_FIELD)
};

extern const struct gr_option_table gr_partition_option_table;

static inline const struct gr_partition_options *gr_partition_options(const graft_context *context)
{
    return gr_options_of(&context->options, &gr_partition_option_table);
}
