/* The measured forms of the product, their inputs and outputs, and the comparison of results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_INPUTS_H
#define BENCH_INPUTS_H

#include "graph.h"

/* The forms in the order of the printed table. README.md describes each form. */
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

/** The inputs of a product. The values of B deliberately have few significant bits. Their sums are therefore exact in
 *  any order, so that even the results of long rows can be compared strictly. bfloat16 represents the same values. */
struct bench_inputs {
    const struct bench_graph *graph;
    int64_t                   width;
    int                       threads;
    int64_t                   stride;          /* row stride of b and of b_bf16 */
    float                    *b;               /* [n x stride] values k/64 with -64 <= k < 64 */
    uint16_t                 *b_bf16;          /* [n x stride] values of b in bfloat16 */
    float                    *weights;         /* [nnz] values k/8 with 1 <= k <= 8 */
    float                    *one_over_degree; /* [n] */
    uint8_t                  *bits;            /* [n x bits_stride] mask of elements, of which half are set */
    int64_t                   bits_stride;
    uint8_t                  *rows; /* [n bits] mask of rows, of which a tenth are set */
};

void bench_inputs_init(struct bench_inputs *inputs, const struct bench_graph *graph, int64_t width, int64_t stride,
                       int threads);
void bench_inputs_fini(struct bench_inputs *inputs);

/** The outputs of a product. */
struct bench_output {
    float   *c;      /* [n x width] */
    int32_t *winner; /* [n x width] vertices of the maxima, for form max_winner */
};

void bench_output_init(struct bench_output *output, const struct bench_inputs *inputs);
void bench_output_fini(struct bench_output *output);

/** Initialise the output before a checked run: every value becomes 7, and every winner -7. */
void bench_output_reset(struct bench_output *output, const struct bench_inputs *inputs);

/** Compare a result with the expected one. Maxima and winners must be equal. Sums must agree within 2 ulp or, where
 *  additions round, within 2 ulp per addition. Returns 1 if the result is correct. Otherwise it returns 0, and note
 *  names the first row that differs. */
int bench_output_compare(const struct bench_inputs *inputs, enum bench_form form, const struct bench_output *got,
                         const struct bench_output *expected, char *note, size_t capacity);

#endif
