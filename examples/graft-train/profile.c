/* Stores the time spans of a trainer, writes them as a trace, and sums them by phase.
 * SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"
#include "output_file.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const PASS[] = { "forward", "backward", "evaluation" };

static int32_t keep(struct profile *profile, const graft_span *span, graft_error *error)
{
    if (profile->count == profile->capacity) {
        const int64_t capacity = profile->capacity == 0 ? 1024 : 2 * profile->capacity;
        graft_span   *larger = realloc(profile->spans, (size_t)capacity * sizeof *larger);

        if (larger == NULL) return problem_memory(error, "the profile");
        profile->spans = larger;
        profile->capacity = capacity;
    }
    profile->spans[profile->count++] = *span;
    return GRAFT_OK;
}

int32_t profile_take(struct profile *profile, const struct library *library, graft_trainer *trainer, graft_error *error)
{
    graft_span span = GRAFT_INIT(graft_span);
    int32_t    rc = GRAFT_OK;

    for (int64_t i = 0; library->report->span(trainer, i, &span, NULL) == GRAFT_OK; i++)
        TRY(keep(profile, &span, error));
done:
    return rc;
}

/** Returns a complete event ("ph": "X") of the trace, or NULL when out of memory. */
static json_t *event_of(const graft_span *span)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f, s:{s:I, s:i, s:i, s:f, s:f, s:f}}", "name", span->phase,
                     "cat", PASS[span->pass], "ph", "X", "pid", 1, "tid", 1 + (int)span->thread, "ts",
                     1e6 * span->begin, "dur", 1e6 * (span->end - span->begin), "args", "epoch",
                     (json_int_t)span->epoch, "layer", (int)span->layer, "part", (int)span->part, "bytes", span->bytes,
                     "flops", span->flops, "waited", 1e6 * span->waited);
}

/** Returns the event ("ph": "M") with the name of a row of the trace, or NULL when out of memory. Row 0 has the
 * phases. */
static json_t *name_of_row(int row)
{
    char name[32] = "phases";

    if (row > 0) snprintf(name, sizeof name, "thread %d", row);
    return json_pack("{s:s, s:s, s:i, s:i, s:{s:s}}", "name", "thread_name", "ph", "M", "pid", 1, "tid", 1 + row,
                     "args", "name", name);
}

static int row_count(const struct profile *profile)
{
    int rows = 1;

    for (int64_t i = 0; i < profile->count; i++) {
        if (profile->spans[i].thread >= rows) rows = profile->spans[i].thread + 1;
    }
    return rows;
}

int32_t profile_write(const struct profile *profile, const char *path, graft_error *error)
{
    struct output_file file = { 0 };
    json_t            *events = json_array();
    int32_t            rc = GRAFT_OK;
    int                bad = events == NULL;

    for (int row = 0; row < row_count(profile) && !bad; row++)
        bad = json_array_append_new(events, name_of_row(row)) != 0;
    for (int64_t i = 0; i < profile->count && !bad; i++)
        bad = json_array_append_new(events, event_of(&profile->spans[i])) != 0;
    TRY(!bad ? GRAFT_OK : problem_memory(error, "the profile"));
    TRY(output_begin(&file, path, error));
    if (json_dumpf(events, file.stream, JSON_COMPACT | JSON_REAL_PRECISION(12)) != 0 && !ferror(file.stream)) {
        rc = problem_memory(error, "the profile");
        goto done;
    }
    rc = output_end(&file, error);
done:
    output_abort(&file);
    json_decref(events);
    return rc;
}

struct sum {
    const char *phase;
    int32_t     pass;
    int         of; /* number of the phase that contains this part; for a phase, its own number */
    int         number;
    double      of_seconds;
    double      seconds, bytes, flops;
    double      busy,
        all; /* seconds of work of all threads; number of threads times the duration of the phase; 0 if unknown */
};

/** Compare two sums, to order phases by descending seconds. Each phase is followed by its parts. */
static int by_seconds(const void *left, const void *right)
{
    const struct sum *a = left, *b = right;

    if (a->of_seconds != b->of_seconds) return a->of_seconds < b->of_seconds ? 1 : -1;
    if (a->of != b->of) return a->of - b->of;
    if ((a->of == a->number) != (b->of == b->number)) return a->of == a->number ? -1 : 1;
    return a->number - b->number;
}

/** Add span i, which is a phase or a part, to its sum. A phase also adds the times of its threads. */
static void add(const struct profile *profile, int64_t i, struct sum *sum)
{
    const graft_span *phase = &profile->spans[i];
    const double      seconds = phase->end - phase->begin;

    sum->seconds += seconds;
    sum->bytes += phase->bytes;
    sum->flops += phase->flops;
    if (phase->part) return;
    while (i + 1 < profile->count && profile->spans[i + 1].part) i++;
    if (i + 1 < profile->count && profile->spans[i + 1].thread > 0) sum->all += seconds * phase->threads;
    for (i++; i < profile->count && profile->spans[i].thread > 0; i++) {
        const graft_span *share = &profile->spans[i];

        sum->busy += share->end - share->begin - share->waited;
    }
}

/** Find or append the sum of a span. With of = -1 the span is a phase, otherwise a part of phase `of`. Returns -1 if
 *  the array is full. */
static int find_sum(struct sum *sums, int *count, int capacity, const graft_span *span, int of)
{
    for (int at = 0; at < *count; at++) {
        const int same = of < 0 ? sums[at].of == at : sums[at].of == of && at != of;

        if (same && sums[at].pass == span->pass && strcmp(sums[at].phase, span->phase) == 0) return at;
    }
    if (*count == capacity) return -1;
    sums[*count] =
        (struct sum){ .phase = span->phase, .pass = span->pass, .of = of < 0 ? *count : of, .number = *count };
    return (*count)++;
}

/** Sum the spans by pass and by phase or part. Returns the number of sums, which is at most `capacity`. */
static int add_up(const struct profile *profile, struct sum *sums, int capacity)
{
    int count = 0, phase = -1;

    for (int64_t i = 0; i < profile->count; i++) {
        const graft_span *span = &profile->spans[i];
        int               at;

        if (span->thread > 0 || (span->part && phase < 0)) continue;
        at = find_sum(sums, &count, capacity, span, span->part ? phase : -1);
        if (!span->part) phase = at;
        if (at >= 0) add(profile, i, &sums[at]);
    }
    for (int i = 0; i < count; i++) sums[i].of_seconds = sums[sums[i].of].seconds;
    qsort(sums, (size_t)count, sizeof *sums, by_seconds);
    return count;
}

static int is_part(const struct sum *sum)
{
    return sum->of != sum->number;
}

void profile_print(const struct profile *profile, double seconds)
{
    struct sum sums[64];
    const int  count = add_up(profile, sums, 64);
    double     all = 0;

    for (int i = 0; i < count; i++) all += is_part(&sums[i]) ? 0 : sums[i].seconds;
    if (seconds < all) seconds = all;
    printf("\n%-10s  %-10s  %9s  %6s  %7s  %8s  %7s\n", "pass", "phase", "seconds", "share", "GB/s", "GFLOP/s",
           "balance");
    for (int i = 0; i < count; i++) {
        char balance[16] = "-", phase[16];

        snprintf(phase, sizeof phase, "%s%s", is_part(&sums[i]) ? "  " : "", sums[i].phase);
        if (sums[i].all > 0) snprintf(balance, sizeof balance, "%.1f%%", 100 * sums[i].busy / sums[i].all);
        printf("%-10s  %-10s  %9.4f  %5.1f%%  %7.1f  %8.1f  %7s\n", PASS[sums[i].pass], phase, sums[i].seconds,
               100 * sums[i].seconds / seconds, sums[i].bytes * 1e-9 / sums[i].seconds,
               sums[i].flops * 1e-9 / sums[i].seconds, balance);
    }
    printf("%-10s  %-10s  %9.4f  %5.1f%%\n", "", "no phase", seconds - all, 100 * (seconds - all) / seconds);
    printf("balance: the working time of threads / (threads x time of the phase)\n");
}

void profile_fini(struct profile *profile)
{
    free(profile->spans);
    *profile = (struct profile){ 0 };
}
