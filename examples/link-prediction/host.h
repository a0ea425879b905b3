/* The parts that all files of this example use: the interfaces of the library, and random numbers that are drawn by
 * counters.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOST_H
#define HOST_H

#include "graft_data.h"
#include "graft_edge.h"
#include "graft_load.h"
#include "graft_mxm.h"
#include "graft_train.h"

#include <stdlib.h>

struct host {
    const graft_api       *api;
    const graft_data_api  *data;
    const graft_edge_api  *edge;
    const graft_mxm_api   *mxm;
    const graft_train_api *train;
    uint64_t               seed;
    graft_error            error;
};

/** Record an error of this program in host->error, where messages of the library are stored too. */
int32_t host_fail(struct host *host, int32_t status, const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Allocate zeroed memory for n elements, or return NULL with a message. */
void *host_alloc(struct host *host, int64_t n, size_t each);

/** Draw a 64-bit number by three counters (finaliser of splitmix64). It is the same for any number of threads, and for
 * any order of calls. */
static inline uint64_t draw(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x = seed;

    for (int i = 0; i < 3; i++) {
        x += 0x9e3779b97f4a7c15u + (i == 0 ? 0 : i == 1 ? a : b);
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
    }
    return x;
}

/** Draw a vertex, 0 .. n-1. */
static inline int32_t draw_vertex(uint64_t seed, uint64_t a, uint64_t b, int64_t n)
{
    return (int32_t)((draw(seed, a, b) >> 32) * (uint64_t)n >> 32);
}

#endif
