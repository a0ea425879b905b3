/* Common functions of the benchmark: memory as in a host, a clock, random bits, and errors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

/** Print the message to stderr and exit with 2. (1 means wrong results.) */
__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *format, ...);

/** Allocate zeroed memory for free(), never NULL. From 2 MiB on it is aligned to huge pages and requests them, as the
 *  host of a large graph would; it is first touched here, by `threads` threads in equal parts. */
void *bench_new(size_t count, size_t bytes, int threads);

/** Bytes of this process in huge pages, and all resident bytes; -1 if the system does not report them. */
struct bench_pages {
    int64_t huge, all;
};
struct bench_pages bench_pages(void);

/** Seconds of a monotonic clock. */
double bench_seconds(void);

/** Median of `count` numbers, which are sorted in place; the mean of the middle two of an even number. */
double bench_median(double *numbers, int count);

/** 64 random bits that are a function of x (the output function of splitmix64, Steele et al., OOPSLA 2014). */
static inline uint64_t bench_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#endif
