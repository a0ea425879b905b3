/* Functions that the benchmarks share: memory allocation as in a host, a clock, random bits, and error reports.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

/** Print the message to stderr and exit with status 2. (Status 1 means wrong results.) */
__attribute__((format(printf, 1, 2), noreturn)) void bench_die(const char *format, ...);

/** Allocate zeroed memory, which the caller passes to free(). It is never NULL. From 2 MiB on the memory is aligned to
 *  huge pages and requests them, as the host of a large graph would. `threads` threads touch it first, in equal
 *  parts. */
void *bench_new(size_t count, size_t bytes, int threads);

/** The bytes of this process in huge pages, and its resident bytes. Both are -1 if the system does not report them. */
struct bench_pages {
    int64_t huge, all;
};
struct bench_pages bench_pages(void);

/** Returns the seconds of a monotonic clock. */
double bench_seconds(void);

/** Returns the median of `count` numbers, and sorts them in place. The median of an even count is the mean of the two
 *  middle numbers. */
double bench_median(double *numbers, int count);

/** Returns 64 pseudo-random bits for x (the output function of splitmix64, Steele et al., OOPSLA 2014). */
static inline uint64_t bench_mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

#endif
