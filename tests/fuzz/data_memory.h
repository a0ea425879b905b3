/* The counting allocator of the tests of the readers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATA_MEMORY_H
#define DATA_MEMORY_H

#include "data_files.h"

#include <stdatomic.h>

/** An allocator that counts, refuses allocations that are too large, and does something at its n-th call: it fails, or
 * it truncates a file. */
struct memory {
    _Atomic int64_t live_bytes, most_bytes, calls, act_at;
    uint64_t        too_large;
    const char     *cut_path; /* path of the file that it truncates at that call; NULL if the call fails instead */
};
#define UNUSED __attribute__((unused))
#define MEMORY_INIT { .act_at = -1, .too_large = (uint64_t)1 << 30 }

static void *data_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    struct memory *m = self;
    int64_t        live;
    void          *block = NULL;

    if (m->calls++ == m->act_at) {
        if (m->cut_path == NULL) return NULL;
        files_check(truncate(m->cut_path, 100) == 0, m->cut_path);
    }
    /* The block has exactly this number of bytes, so that a sanitizer finds accesses beyond its end. */
    if (bytes >= m->too_large || posix_memalign(&block, alignment < 8 ? 8 : alignment, bytes) != 0) return NULL;
    live = (m->live_bytes += (int64_t)bytes);
    if (live > m->most_bytes) m->most_bytes = live;
    return block;
}

static void data_deallocate(void *self, void *block, uint64_t bytes, uint64_t alignment)
{
    (void)alignment;
    ((struct memory *)self)->live_bytes -= (int64_t)bytes;
    free(block);
}

#endif
