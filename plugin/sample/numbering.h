/* Maps vertices of the graph to their numbers in a batch, by an array over all vertices or by a hash table.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"
#include "base/memory.h"

#include <stdatomic.h>

/** The number of a vertex is its index in the batch. Numbers are in an array over all vertices or, if that would be
 *  larger, in a hash table with linear probing. slot() finds the slot of a vertex, and may be called by several
 *  threads. A slot has the number of its vertex, or a negative value as long as the vertex has none. */
struct gr_numbering {
    int64_t          n;     /* vertices of the graph */
    int64_t          slots; /* number of slots, a power of two if there are keys */
    _Atomic int32_t *key;   /* [slots] the vertex, or -1; NULL: slot v belongs to vertex v */
    _Atomic int32_t *number;
};
enum { GR_NO_NUMBER = INT32_MIN };

static inline int64_t gr_sample_numbering_home(const struct gr_numbering *numbering, int32_t v)
{
    return (int64_t)(((uint64_t)(uint32_t)v * 0x9E3779B97F4A7C15u) >> 20) & (numbering->slots - 1);
}

static inline int64_t gr_sample_numbering_slot(struct gr_numbering *numbering, int32_t v)
{
    int64_t at;

    if (numbering->key == NULL) return v;
    for (at = gr_sample_numbering_home(numbering, v);; at = (at + 1) & (numbering->slots - 1)) {
        int32_t there = atomic_load_explicit(&numbering->key[at], memory_order_relaxed);

        if (there == v) return at;
        if (there == -1 && atomic_compare_exchange_strong_explicit(&numbering->key[at], &there, v, memory_order_relaxed,
                                                                   memory_order_relaxed))
            return at;
        if (there == v) return at; /* another thread was first */
    }
}

/** As gr_sample_numbering_slot(), for a table that no other thread accesses. */
static inline int64_t gr_sample_numbering_slot_alone(struct gr_numbering *numbering, int32_t v)
{
    for (int64_t at = gr_sample_numbering_home(numbering, v);; at = (at + 1) & (numbering->slots - 1)) {
        const int32_t there = atomic_load_explicit(&numbering->key[at], memory_order_relaxed);

        if (there == -1) atomic_store_explicit(&numbering->key[at], v, memory_order_relaxed);
        if (there == -1 || there == v) return at;
    }
}

/** Get the number of a vertex, or GR_NO_NUMBER. A vertex that has no slot gets none. */
static inline int32_t gr_sample_numbering_find(const struct gr_numbering *numbering, int32_t v)
{
    int64_t at = v;

    if (numbering->key == NULL) return atomic_load_explicit(&numbering->number[at], memory_order_relaxed);
    for (at = gr_sample_numbering_home(numbering, v);; at = (at + 1) & (numbering->slots - 1)) {
        const int32_t there = atomic_load_explicit(&numbering->key[at], memory_order_relaxed);

        if (there == v) return atomic_load_explicit(&numbering->number[at], memory_order_relaxed);
        if (there == -1) return GR_NO_NUMBER;
    }
}
