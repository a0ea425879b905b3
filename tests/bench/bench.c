/* Memory allocation, a clock and error reports for the benchmarks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { HUGE_PAGE = 2 << 20, CACHE_LINE = 64 };

void bench_die(const char *format, ...)
{
    va_list list;

    fflush(stdout);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fprintf(stderr, "\n");
    exit(2);
}

void *bench_new(size_t count, size_t bytes, int threads)
{
    size_t total, alignment;
    char  *memory;

    if (__builtin_mul_overflow(count, bytes, &total) || total > SIZE_MAX / 2) bench_die("an array is too large");
    alignment = total >= HUGE_PAGE ? HUGE_PAGE : CACHE_LINE;
    total = (total / alignment + 1) * alignment;
    memory = aligned_alloc(alignment, total);
    if (memory == NULL) bench_die("no memory for an array of %zu MB", total >> 20);
    if (alignment == HUGE_PAGE) madvise(memory, total, MADV_HUGEPAGE); /* a failure leaves pages of 4 KiB */
#pragma omp parallel for num_threads(threads) schedule(static)
    for (size_t at = 0; at < total; at += alignment) memset(memory + at, 0, alignment);
    return memory;
}

struct bench_pages bench_pages(void)
{
    struct bench_pages pages = { -1, -1 };
    FILE              *file = fopen("/proc/self/smaps_rollup", "r");
    char               line[256];
    long long          kb;

    if (file == NULL) return pages;
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "Rss: %lld kB", &kb) == 1) pages.all = kb * 1024;
        if (sscanf(line, "AnonHugePages: %lld kB", &kb) == 1) pages.huge = kb * 1024;
    }
    fclose(file);
    return pages;
}

double bench_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int bench_compare(const void *left, const void *right)
{
    const double x = *(const double *)left, y = *(const double *)right;

    return (x > y) - (x < y);
}

double bench_median(double *numbers, int count)
{
    qsort(numbers, (size_t)count, sizeof *numbers, bench_compare);
    return (numbers[(count - 1) / 2] + numbers[count / 2]) / 2;
}
