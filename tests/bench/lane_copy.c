/* The plain copy with which products are compared. Every thread copies its part of an array with memcpy().
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "lane.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS = 256, PART_BYTES = 1 << 20 };

struct bench_copy {
    int   threads;
    char *from, *to;
};

static double run(struct bench_lane *lane, struct bench_output *output, int check)
{
    const struct bench_copy *copy = lane->self;
    double                   seconds = -bench_seconds();

    (void)output, (void)check;
#pragma omp parallel for num_threads(copy->threads) schedule(static)
    for (size_t part = 0; part < PARTS; part++)
        memcpy(copy->to + part * PART_BYTES, copy->from + part * PART_BYTES, PART_BYTES);
    return seconds + bench_seconds();
}

struct bench_copy *bench_copy_create(int threads, struct bench_lanes *lanes)
{
    struct bench_copy *copy = bench_new(1, sizeof *copy, 1);

    copy->threads = threads;
    copy->from = bench_new(PARTS, PART_BYTES, threads);
    copy->to = bench_new(PARTS, PART_BYTES, threads);
    bench_lanes_add(lanes, &(struct bench_lane){ .kernel = "copy",
                                                 .label = "copy",
                                                 .form = BENCH_FORMS,
                                                 .self = copy,
                                                 .bytes = 2.0 * PARTS * PART_BYTES,
                                                 .run = run });
    return copy;
}

void bench_copy_destroy(struct bench_copy *copy)
{
    if (copy == NULL) return;
    free(copy->from);
    free(copy->to);
    free(copy);
}
