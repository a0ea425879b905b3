/* A host whose allocator checks the library: only allocated memory is freed, nothing is written outside of a block, and
 * all blocks are freed in the end. New memory is filled with 0xA5, and any allocation can be made to fail.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef STRICT_HOST_H
#define STRICT_HOST_H

#include "graft_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STRICT_GUARD = 64 };

struct strict_host {
    graft_host  table;
    int64_t     live_bytes, live_blocks, calls;
    int64_t     most_bytes; /* largest number of live bytes so far */
    int64_t     fail_at;    /* number of the allocation that fails; -1 for none */
    int         fail_on;    /* whether all allocations after that one fail too */
    int64_t     failed;
    int64_t     log_lines;
    const char *fault; /* sentence about the first misuse of the allocator or of the log */
};

/* Header in front of each block. */
struct strict_block {
    uint64_t bytes, alignment, magic;
    void    *memory;
};

#define STRICT_MAGIC 0x6772616674486F73u

static void *strict_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    struct strict_host *host = self;
    const int64_t       call = __atomic_fetch_add(&host->calls, 1, __ATOMIC_RELAXED);
    uint64_t            front;
    int64_t             live, most;
    struct strict_block block = { bytes, alignment, STRICT_MAGIC, NULL };
    char               *at;

    if (bytes == 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) host->fault = "allocate: odd numbers";
    if (host->fail_at >= 0 && (call == host->fail_at || (host->fail_on && call > host->fail_at))) {
        __atomic_fetch_add(&host->failed, 1, __ATOMIC_RELAXED);
        return NULL;
    }
    if (bytes > (uint64_t)1 << 32) return NULL;
    front = alignment > sizeof block ? alignment : sizeof block;
    block.memory = aligned_alloc(front, (front + bytes + STRICT_GUARD + front - 1) / front * front);
    if (block.memory == NULL) return NULL;
    at = (char *)block.memory + front;
    memcpy(at - sizeof block, &block, sizeof block);
    memset(at, 0xA5, bytes);
    memset(at + bytes, 0xC3, STRICT_GUARD);
    live = __atomic_add_fetch(&host->live_bytes, (int64_t)bytes, __ATOMIC_RELAXED);
    most = __atomic_load_n(&host->most_bytes, __ATOMIC_RELAXED);
    while (live > most &&
           !__atomic_compare_exchange_n(&host->most_bytes, &most, live, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
    __atomic_fetch_add(&host->live_blocks, 1, __ATOMIC_RELAXED);
    return at;
}

static void strict_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    struct strict_host *host = self;
    struct strict_block block;

    if (memory == NULL) {
        host->fault = "deallocate: null";
        return;
    }
    memcpy(&block, (char *)memory - sizeof block, sizeof block);
    if (block.magic != STRICT_MAGIC) {
        host->fault = "deallocate: no block of this host, or a second time";
        return;
    }
    if (block.bytes != bytes || block.alignment != alignment) host->fault = "deallocate: other numbers than allocate";
    for (int i = 0; i < STRICT_GUARD; i++) {
        if (((unsigned char *)memory)[block.bytes + (uint64_t)i] != 0xC3)
            host->fault = "written behind the end of a block";
    }
    block.magic = 0;
    memcpy((char *)memory - sizeof block, &block, sizeof block);
    memset(memory, 0x5A, block.bytes);
    __atomic_fetch_sub(&host->live_bytes, (int64_t)block.bytes, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&host->live_blocks, 1, __ATOMIC_RELAXED);
    free(block.memory);
}

static void strict_log(void *self, graft_log_level level, const char *message)
{
    struct strict_host *host = self;

    host->log_lines++;
    if (level < GRAFT_LOG_DEBUG || level > GRAFT_LOG_ERROR || message[0] == '\0')
        host->fault = "log: empty or of no level";
    if (strchr(message, '\n') != NULL && strchr(message, '\n')[1] == '\0') host->fault = "log: a line with a line end";
}

__attribute__((unused)) static void strict_host_init(struct strict_host *host)
{
    *host = (struct strict_host){ .table = GRAFT_INIT(graft_host), .fail_at = -1 };
    host->table.self = host;
    host->table.log = strict_log;
    host->table.allocate = strict_allocate;
    host->table.deallocate = strict_deallocate;
}

/** Make the k-th allocation from now on fail; with `on` all later ones fail too. A negative k ends this. */
__attribute__((unused)) static void strict_host_fail(struct strict_host *host, int64_t k, int on)
{
    host->fail_at = k < 0 ? -1 : __atomic_load_n(&host->calls, __ATOMIC_RELAXED) + k;
    host->fail_on = on;
    host->failed = 0;
}

#endif
