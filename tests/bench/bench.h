/* What every part of the benchmark needs: memory as a host would have it, a clock, random bits, and a way out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

/** Print the sentence to stderr and exit with 2. (1 is kept for wrong results.) */
__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *format, ...);

/** Zeroed memory for free(), never NULL. From 2 MiB on it is aligned to huge pages, which the system is asked for, as a
 *  host of a large graph would do; it is touched here, by `threads` threads in equal parts. */
void *bench_new(size_t count, size_t bytes, int threads);

/** Bytes of this process that lie in huge pages, and all that are in memory; -1 where the system does not say. */
struct bench_pages {
    int64_t huge, all;
};
struct bench_pages bench_pages(void);

/** Seconds since some moment. */
double bench_seconds(void);

/** Median of `count` numbers, which are sorted; the mean of the middle two if they are even in number. */
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
