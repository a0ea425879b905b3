/* Loops over rows in chunks of fixed size, divided among threads. Chunks do not depend on the number of threads, so a
 * sum over chunks in order is bitwise identical for any number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/assert.h"
#include "base/team.h"

typedef void (*gr_chunk_fn)(void *arg, int64_t chunk, int64_t begin, int64_t end);

static inline int64_t gr_chunk_count(int64_t n, int64_t chunk_rows)
{
    return (n + chunk_rows - 1) / chunk_rows;
}

/** Call body(arg, chunk, begin, end) for all chunks of n rows, with as many threads as `operations` justify. */
static inline void gr_parallel_chunks(struct gr_team team, int64_t operations, int64_t n, int64_t chunk_rows,
                                      gr_chunk_fn body, void *arg)
{
    const int64_t      count = gr_chunk_count(n, chunk_rows);
    const int          threads = gr_threads_worth(team.threads, operations);
    const struct gr_fp fp = gr_fp_get();

    GR_ASSERT(n >= 0 && chunk_rows > 0 && team.threads > 0);
#pragma omp parallel num_threads(threads) if (threads > 1 && count > 1)
    {
        const struct gr_fp own = gr_fp_swap(fp);

        gr_team_begin(team.times);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t chunk = 0; chunk < count; chunk++) {
            const int64_t begin = chunk * chunk_rows;
            body(arg, chunk, begin, begin + chunk_rows < n ? begin + chunk_rows : n);
            gr_team_poll(team);
        }
        gr_team_end(team.times);
        gr_fp_set(own);
    }
}

typedef void (*gr_rows_fn)(void *arg, int64_t begin, int64_t end);

struct gr_rows_body {
    gr_rows_fn body;
    void      *arg;
};

static inline void gr_rows_of_chunk(void *rows, int64_t chunk, int64_t begin, int64_t end)
{
    const struct gr_rows_body *of = rows;

    (void)chunk;
    of->body(of->arg, begin, end);
}

/** As gr_parallel_chunks(), for a body that does not use the index of its chunk. */
static inline void gr_parallel_rows(struct gr_team team, int64_t operations, int64_t n, int64_t chunk_rows,
                                    gr_rows_fn body, void *arg)
{
    struct gr_rows_body rows = { body, arg };

    gr_parallel_chunks(team, operations, n, chunk_rows, gr_rows_of_chunk, &rows);
}
