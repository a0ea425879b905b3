/* Loops over rows in chunks of fixed size, shared by threads. Chunks do not depend on the number of threads, so what is
 * summed per chunk, and then over chunks in order, has the same bits for any number.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARALLEL_H
#define GR_PARALLEL_H

#include <stdint.h>

/** Of `threads`, how many are worth waking for so many operations on elements: a team costs some microseconds. */
static inline int gr_threads_worth(int threads, int64_t operations)
{
    const int64_t worth = 1 + operations / 65536;

    return threads < worth ? threads : (int)worth;
}

typedef void (*gr_chunk_fn)(void *arg, int64_t chunk, int64_t begin, int64_t end);

static inline int64_t gr_chunk_count(int64_t n, int64_t chunk_rows)
{
    return (n + chunk_rows - 1) / chunk_rows;
}

static inline void gr_parallel_chunks(int threads, int64_t n, int64_t chunk_rows, gr_chunk_fn body, void *arg)
{
    const int64_t count = gr_chunk_count(n, chunk_rows);

#pragma omp parallel for num_threads(threads) schedule(dynamic, 1) if (threads > 1 && count > 1)
    for (int64_t chunk = 0; chunk < count; chunk++) {
        const int64_t begin = chunk * chunk_rows;
        body(arg, chunk, begin, begin + chunk_rows < n ? begin + chunk_rows : n);
    }
}

#endif
