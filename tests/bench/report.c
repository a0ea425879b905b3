/* Prints the results as a table, and writes them to a JSON file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "bench.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/** Returns the rate of a lane in GB/s (1e9 bytes). Every form is credited with the bytes that the plain product moves
 *  without caches: a row of B and a column index for each edge, and C once. A form that reads fewer bytes therefore
 *  shows a higher rate. */
static double rate(const struct bench_lane *lane, const struct bench_inputs *inputs)
{
    const double nnz = (double)inputs->graph->nnz, n = (double)inputs->graph->n, width = (double)inputs->width;
    const double bytes = lane->bytes > 0 ? lane->bytes : 4 * nnz * width + 4 * n * width + 4 * nnz;

    return bytes / lane->median * 1e-9;
}

static const struct bench_lane *report_find(const struct bench_lanes *lanes, const char *kernel, const char *label)
{
    for (int i = 0; i < lanes->count; i++) {
        const struct bench_lane *lane = &lanes->at[i];
        if (lane->runs > 0 && strcmp(lane->kernel, kernel) == 0 && strcmp(lane->label, label) == 0) return lane;
    }
    return NULL;
}

/** Returns the faster of two GraphBLAS lanes with the same result, or NULL if neither has run. */
static const struct bench_lane *faster_graphblas(const struct bench_lanes *lanes, const char *one, const char *other)
{
    const struct bench_lane *a = report_find(lanes, BENCH_GRB_NAME, one);
    const struct bench_lane *b = report_find(lanes, BENCH_GRB_NAME, other);

    if (a == NULL || b == NULL) return a != NULL ? a : b;
    return a->median < b->median ? a : b;
}

/** Returns the faster unmasked lane of GrB_mxm. Without such a lane it returns that of kernel graphblas, or NULL. */
static const struct bench_lane *best_graphblas(const struct bench_lanes *lanes)
{
    const struct bench_lane *found = faster_graphblas(lanes, "plain_accum", "plain");

    return found != NULL ? found : report_find(lanes, "graphblas", "plain");
}

/** Print above / below with two digits, or a dash if either of them is missing. */
static void print_ratio(double above, double below)
{
    if (above > 0 && below > 0) printf("  %9.2f", above / below);
    else printf("  %9s", "-");
}

static double median_of(const struct bench_lane *lane)
{
    return lane != NULL ? lane->median : 0;
}

static void print_lane(const struct bench_lane *lane, const struct bench_lanes *lanes,
                       const struct bench_inputs *inputs)
{
    const struct bench_lane *copy = report_find(lanes, "copy", "copy");
    const struct bench_lane *masked =
        lane->form == BENCH_MASK_BITS ? faster_graphblas(lanes, "mask_bits_50", "mask_apart") : NULL;
    const int product = lane->form < BENCH_FORMS;

    printf("%-12s  %-12s", lane->kernel, lane->label);
    if (lane->runs == 0) {
        printf("  %s: %s\n", lane->state == BENCH_WRONG ? "WRONG" : "not measured", lane->note);
        return;
    }
    printf("  %4d  %9.4f  %7.2f", lane->runs, lane->median, rate(lane, inputs));
    print_ratio(rate(lane, inputs), copy != NULL ? rate(copy, inputs) : 0);
    print_ratio(product ? lane->median : 0, median_of(report_find(lanes, lane->kernel, "plain")));
    print_ratio(product ? median_of(best_graphblas(lanes)) : 0, lane->median);
    print_ratio(median_of(masked), lane->median);
    printf("\n");
}

void bench_report_print(const struct bench_lanes *lanes, const struct bench_inputs *inputs)
{
    printf("\n%-12s  %-12s  %4s  %9s  %7s  %9s  %9s  %9s  %9s\n", "kernel", "form", "runs", "seconds", "GB/s",
           "GB/s:copy", "s:plain", "GrB:s", "GrB<M>:s");
    for (int i = 0; i < lanes->count; i++) print_lane(&lanes->at[i], lanes, inputs);
}

void bench_report_json(const struct bench_lanes *lanes, const struct bench_inputs *inputs, const char *path)
{
    json_t *list = json_array();

    for (int i = 0; i < lanes->count; i++) {
        const struct bench_lane *lane = &lanes->at[i];
        if (lane->runs == 0) continue;
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I, s:i, s:f, s:f}", "kernel", lane->kernel, "form", lane->label,
                                        "width", (json_int_t)inputs->width, "threads", inputs->threads,
                                        "seconds_median", lane->median, "gb_per_s", rate(lane, inputs)));
    }
    if (json_dump_file(list, path, JSON_INDENT(1)) != 0) bench_die("cannot write '%s'", path);
    json_decref(list);
}
