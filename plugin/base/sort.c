/* Sorts integers with a radix sort.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/sort.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

/* One stable pass, which sorts by the digit at `shift`. */
static void sort_by_digit(const int64_t *from, int64_t *to, int64_t count, int shift)
{
    int64_t place[DIGITS + 1] = { 0 };

    for (int64_t i = 0; i < count; i++) place[((from[i] >> shift) & (DIGITS - 1)) + 1]++;
    for (int d = 0; d < DIGITS; d++) place[d + 1] += place[d];
    for (int64_t i = 0; i < count; i++) to[place[(from[i] >> shift) & (DIGITS - 1)]++] = from[i];
}

int32_t gr_sort_unique(const graft_context *context, int64_t *keys, int64_t most, int64_t *count, graft_error *error)
{
    const int64_t n = *count;
    int64_t      *scratch = NULL, *from = keys, *to, kept = 0;
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(n == 0 || (n > 0 && most >= 0));
    GR_TRY_DONE(GR_NEW(context, scratch, n, error));
    to = scratch;
    for (int shift = 0; shift < 63 && most >> shift > 0; shift += DIGIT_BITS) {
        int64_t *const swap = from;

        sort_by_digit(from, to, n, shift);
        from = to;
        to = swap;
    }
    for (int64_t i = 0; i < n; i++)
        if (i == 0 || from[i] != from[i - 1]) to[kept++] = from[i];
    if (to != keys) memcpy(keys, to, (uint64_t)kept * sizeof *keys);
    *count = kept;
done:
    gr_free(context, scratch);
    return rc;
}
