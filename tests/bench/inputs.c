/* Generates inputs by hashing a counter, and compares results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"

#include "bench.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORM_TEXT(name, text) text,
const char *const bench_form_name[BENCH_FORMS] = { BENCH_FORM_MAP(FORM_TEXT) };
#undef FORM_TEXT

/* The purposes of random bits. Each purpose has an independent sequence of bits. */
enum { USE_B = 1, USE_WEIGHTS, USE_BITS, USE_ROWS };

static uint64_t random_bits(int use, int64_t index)
{
    return bench_mix(bench_mix((uint64_t)use << 32) + (uint64_t)index);
}

static void fill_features(struct bench_inputs *inputs)
{
    const int64_t count = inputs->graph->n * inputs->stride;

#pragma omp parallel for num_threads(inputs->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) inputs->b[i] = ((float)(random_bits(USE_B, i) & 127) - 64) / 64;
#pragma omp parallel for num_threads(inputs->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        uint32_t word;
        memcpy(&word, &inputs->b[i], sizeof word);
        inputs->b_bf16[i] = (uint16_t)(word >> 16);
    }
}

static void fill_masks(struct bench_inputs *inputs)
{
    const int64_t bytes = inputs->graph->n * inputs->bits_stride;

#pragma omp parallel for num_threads(inputs->threads) schedule(static)
    for (int64_t i = 0; i < bytes; i++) inputs->bits[i] = (uint8_t)random_bits(USE_BITS, i);
    for (int64_t row = 0; row < inputs->graph->n; row++) {
        if (random_bits(USE_ROWS, row) % 10 == 0) inputs->rows[row / 8] |= (uint8_t)(1 << row % 8);
    }
}

void bench_inputs_init(struct bench_inputs *inputs, const struct bench_graph *graph, int64_t width, int64_t stride,
                       int threads)
{
    const size_t n = (size_t)graph->n, columns = (size_t)stride;

    *inputs = (struct bench_inputs){
        .graph = graph, .width = width, .stride = stride, .threads = threads, .bits_stride = (width + 7) / 8
    };
    inputs->b = bench_new(n, columns * sizeof *inputs->b, threads);
    inputs->weights = bench_new((size_t)graph->nnz, sizeof *inputs->weights, threads);
    inputs->one_over_degree = bench_new(n, sizeof *inputs->one_over_degree, threads);
    inputs->bits = bench_new(n, (size_t)inputs->bits_stride, threads);
    inputs->rows = bench_new(n / 8 + 1, 1, threads);
    inputs->b_bf16 = bench_new(n, columns * sizeof *inputs->b_bf16, threads);
    fill_features(inputs);
    fill_masks(inputs);
    for (int64_t e = 0; e < graph->nnz; e++) inputs->weights[e] = (float)(1 + (random_bits(USE_WEIGHTS, e) & 7)) / 8;
    for (int64_t row = 0; row < graph->n; row++) {
        const int64_t degree = graph->row_ptr[row + 1] - graph->row_ptr[row];
        inputs->one_over_degree[row] = degree > 0 ? 1 / (float)degree : 0;
    }
}

void bench_inputs_fini(struct bench_inputs *inputs)
{
    free(inputs->b);
    free(inputs->b_bf16);
    free(inputs->weights);
    free(inputs->one_over_degree);
    free(inputs->bits);
    free(inputs->rows);
}

void bench_output_init(struct bench_output *output, const struct bench_inputs *inputs)
{
    const size_t n = (size_t)inputs->graph->n, columns = (size_t)inputs->width;

    output->c = bench_new(n, columns * sizeof *output->c, inputs->threads);
    output->winner = bench_new(n, columns * sizeof *output->winner, inputs->threads);
}

void bench_output_fini(struct bench_output *output)
{
    free(output->c);
    free(output->winner);
}

void bench_output_reset(struct bench_output *output, const struct bench_inputs *inputs)
{
    const int64_t count = inputs->graph->n * inputs->width;

#pragma omp parallel for num_threads(inputs->threads) schedule(static)
    for (int64_t i = 0; i < count; i++) {
        output->c[i] = 7;
        output->winner[i] = -7;
    }
}

/** Returns the largest allowed error of an element in a row of `degree` entries. */
static float tolerance(enum bench_form form, int64_t degree, float expected)
{
    /* The terms are at most 1, and multiples of 1/64 or, with weights, of 1/512. Sums of at most this many are
     * exact. */
    const int64_t exact = form == BENCH_WEIGHTED ? 1 << 15 : 1 << 18;

    if (form == BENCH_MAX || form == BENCH_MAX_WINNER) return 0;
    if (form == BENCH_MEAN) return 2 * FLT_EPSILON * (float)degree; /* 1/degree may be applied before the sum */
    if (degree <= exact) return 2 * FLT_EPSILON * fabsf(expected);
    return 2 * FLT_EPSILON * (float)degree * (float)degree;
}

/** Returns the first column in which a row differs from the expected row, or the width if no column differs. */
static int64_t first_difference(const struct bench_inputs *inputs, enum bench_form form, int64_t row,
                                const struct bench_output *got, const struct bench_output *expected)
{
    const int64_t degree = inputs->graph->row_ptr[row + 1] - inputs->graph->row_ptr[row];

    for (int64_t j = 0; j < inputs->width; j++) {
        const int64_t at = row * inputs->width + j;
        const float   distance = fabsf(got->c[at] - expected->c[at]);

        if (!(distance <= tolerance(form, degree, expected->c[at])))
            return j; /* this form of the test also detects a NaN */
        if (form == BENCH_MAX_WINNER && got->winner[at] != expected->winner[at]) return j;
    }
    return inputs->width;
}

int bench_output_compare(const struct bench_inputs *inputs, enum bench_form form, const struct bench_output *got,
                         const struct bench_output *expected, char *note, size_t capacity)
{
    int64_t first = inputs->graph->n, wrong = 0, at;

#pragma omp parallel for num_threads(inputs->threads) reduction(min : first) reduction(+ : wrong)
    for (int64_t row = 0; row < inputs->graph->n; row++) {
        if (first_difference(inputs, form, row, got, expected) == inputs->width) continue;
        wrong++;
        if (row < first) first = row;
    }
    if (wrong == 0) return 1;
    at = first * inputs->width + first_difference(inputs, form, first, got, expected);
    snprintf(note, capacity,
             "rows that differ from reference: %" PRId64 "; the first is %" PRId64 ", in column %" PRId64
             " with %.9g, expected %.9g%s",
             wrong, first, at % inputs->width, (double)got->c[at], (double)expected->c[at],
             form == BENCH_MAX_WINNER && got->c[at] == expected->c[at] ? ", but the winner is another" : "");
    return 0;
}
