/* The measured forms, their inputs and outputs, and the comparison of their results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_INPUTS_H
#define BENCH_INPUTS_H

#include "graph.h"

/* The forms, in the order of the table; README.md has a line for each. */
#define BENCH_FORM_MAP(X)                                                                                              \
    X(PLAIN, "plain")                                                                                                  \
    X(MASK_BITS, "mask_bits_50")                                                                                       \
    X(MASK_ROWS, "mask_rows_10")                                                                                       \
    X(MEAN, "mean")                                                                                                    \
    X(MAX, "max")                                                                                                      \
    X(MAX_WINNER, "max_winner")                                                                                        \
    X(BF16, "bf16")                                                                                                    \
    X(WEIGHTED, "weighted")

#define BENCH_FORM_ENUM(name, text) BENCH_##name,
enum bench_form { BENCH_FORM_MAP(BENCH_FORM_ENUM) BENCH_FORMS };
#undef BENCH_FORM_ENUM

extern const char *const bench_form_name[BENCH_FORMS];

/** The inputs. B has few significant bits on purpose: sums of them are exact in whatever order they are formed, so
 *  that results can be compared strictly, even those of long rows; and bfloat16 holds the same numbers. */
struct bench_inputs {
    const struct bench_graph *graph;
    int64_t                   width;
    int                       threads;
    int64_t                   stride;          /* of b and b_bf16 */
    float                    *b;               /* [n x stride] k/64 with -64 <= k < 64 */
    uint16_t                 *b_bf16;          /* [n x stride] the same */
    float                    *weights;         /* [nnz] k/8 with 1 <= k <= 8 */
    float                    *one_over_degree; /* [n] */
    uint8_t                  *bits;            /* [n x bits_stride] half of them set */
    int64_t                   bits_stride;
    uint8_t                  *rows; /* [n bits] one in ten set */
};

void bench_inputs_init(struct bench_inputs *inputs, const struct bench_graph *graph, int64_t width, int64_t stride,
                       int threads);
void bench_inputs_fini(struct bench_inputs *inputs);

/** The outputs. */
struct bench_output {
    float   *c;      /* [n x width] */
    int32_t *winner; /* [n x width] of the form max_winner */
};

void bench_output_init(struct bench_output *output, const struct bench_inputs *inputs);
void bench_output_fini(struct bench_output *output);

/** Initialise the output for a checked run: 7 and -7 everywhere. */
void bench_output_reset(struct bench_output *output, const struct bench_inputs *inputs);

/** Compare a result with the expected one: maxima and winners must be equal, sums within 2 ulp, and where additions
 *  round within 2 ulp for each. Returns 1 if it is right; else 0, with the first row that differs in note. */
int bench_output_compare(const struct bench_inputs *inputs, enum bench_form form, const struct bench_output *got,
                         const struct bench_output *expected, char *note, size_t capacity);

#endif
