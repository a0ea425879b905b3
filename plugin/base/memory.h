/* Memory from the host's allocator: zeroed, aligned to 64 bytes, with checks for overflow.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

/** Allocate `count` zeroed elements for a pointer: GR_TRY(GR_NEW(context, ptr, count, error)). The error names the
 *  pointer and the size. A count of 0 gives a pointer that can be freed; a negative count fails. \return OK;
 *  ERR_NOMEM */
#define GR_NEW(context, ptr, count, error)                                                                             \
    (((ptr) = gr_new((context), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM)

void *gr_new(const graft_context *context, int64_t count, uint64_t element_bytes, const char *name, graft_error *error);
/** Free a block, or leak it if a library may still write to memory of the context: see gr_comm_endpoint_cancel(). */
void  gr_free(const graft_context *context, void *memory);

/** The bytes that the host allocates for a block of `count` elements. */
int64_t gr_memory_block_bytes(int64_t count, uint64_t element_bytes);
/** The bytes that the host has allocated for this block; 0 for NULL. */
int64_t gr_memory_bytes(const void *memory);

/** As GR_NEW and gr_free(), with a host instead of a context: for built-in modules and the context itself. */
#define GR_HOST_NEW(host, ptr, count, error)                                                                           \
    (((ptr) = gr_memory_host_new((host), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM)

void *gr_memory_host_new(const graft_host *host, int64_t count, uint64_t element_bytes, const char *name,
                         graft_error *error);
void  gr_memory_host_free(const graft_host *host, void *memory);

/** Blocks that are freed together. A zeroed pool is empty. */
struct gr_pool {
    void   *first;
    int64_t bytes;
};

/** As GR_NEW, but the pool owns the block. */
#define GR_POOL_NEW(context, pool, ptr, count, error)                                                                  \
    (((ptr) = gr_pool_new((context), (pool), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK                \
                                                                                             : GRAFT_ERR_NOMEM)

void *gr_pool_new(const graft_context *context, struct gr_pool *pool, int64_t count, uint64_t element_bytes,
                  const char *name, graft_error *error);
/** Make the pool the owner of a block of gr_new(). NULL changes nothing. */
void  gr_pool_adopt(struct gr_pool *pool, void *memory);
void  gr_pool_fini(const graft_context *context, struct gr_pool *pool);

/** Copy a text into memory of the host. \return OK; ERR_NOMEM */
int32_t gr_text_copy(const graft_context *context, char **copy, const char *text, graft_error *error);
