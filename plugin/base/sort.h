/* Compares and sorts integers, and searches in sorted ones.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/assert.h"
#include "base/context.h"

static inline int64_t gr_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t gr_larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/** Sort keys from 0 to `most` and remove duplicates; *count becomes the number left. \return OK; ERR_NOMEM */
int32_t gr_sort_unique(const graft_context *context, int64_t *keys, int64_t most, int64_t *count, graft_error *error);

/** The last index of ascending keys at which the key is at most `key`. The first key must be at most `key`. */
static inline int64_t gr_sorted_last(const int64_t *keys, int64_t count, int64_t key)
{
    int64_t low = 0, high = count;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (keys[middle] <= key) low = middle;
        else high = middle;
    }
    return low;
}

/** The index of `key` in ascending keys, which contain it. */
static inline int64_t gr_sorted_index(const int64_t *keys, int64_t count, int64_t key)
{
    const int64_t at = gr_sorted_last(keys, count, key);

    GR_ASSERT(count > 0 && keys[at] == key);
    return at;
}

/** The index of `key` in ascending 32-bit keys, which contain it. */
static inline int64_t gr_sorted_index_32(const int32_t *keys, int64_t count, int64_t key)
{
    int64_t low = 0, high = count;

    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;

        if (keys[middle] <= key) low = middle;
        else high = middle;
    }
    GR_ASSERT(count > 0 && keys[low] == key);
    return low;
}
