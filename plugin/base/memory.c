/* Allocates memory from the host. A header before each block stores its size, which the host's deallocate() needs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include "base/assert.h"

#include <string.h>

enum { LINE = 64 };

/* The header of a block. `next` links the blocks of a pool. */
struct header {
    uint64_t bytes; /* of the whole allocation, including this header */
    void    *next;
};

static struct header *header_of(void *memory)
{
    return (struct header *)(void *)((char *)memory - LINE);
}

int64_t gr_memory_block_bytes(int64_t count, uint64_t element_bytes)
{
    return (int64_t)(((uint64_t)count * element_bytes + 2 * LINE - 1) / LINE * LINE);
}

void *gr_memory_host_new(const graft_host *host, int64_t count, uint64_t element_bytes, const char *name,
                         graft_error *error)
{
    uint64_t bytes;
    char    *block = NULL;

    if (count >= 0 && !__builtin_mul_overflow((uint64_t)count, element_bytes, &bytes) &&
        bytes <= INT64_MAX - 2 * LINE) {
        bytes = (uint64_t)gr_memory_block_bytes(count, element_bytes);
        block = host->allocate(host->self, bytes, LINE);
    }
    if (block == NULL) {
        gr_fail(error, GRAFT_ERR_NOMEM, "no memory for '%s': %lld elements of %llu bytes", name, (long long)count,
                (unsigned long long)element_bytes);
        return NULL;
    }
    memset(block, 0, bytes);
    header_of(block + LINE)->bytes = bytes;
    return block + LINE;
}

int64_t gr_memory_bytes(const void *memory)
{
    return memory == NULL ? 0 : (int64_t)((const struct header *)(const void *)((const char *)memory - LINE))->bytes;
}

void gr_memory_host_free(const graft_host *host, void *memory)
{
    if (memory == NULL) return;
    GR_ASSERT(header_of(memory)->bytes > 0 && header_of(memory)->bytes % LINE == 0);
    host->deallocate(host->self, header_of(memory), header_of(memory)->bytes, LINE);
}

void *gr_new(const graft_context *context, int64_t count, uint64_t element_bytes, const char *name, graft_error *error)
{
    return gr_memory_host_new(&context->host, count, element_bytes, name, error);
}

void gr_free(const graft_context *context, void *memory)
{
    if (context->keeps == 0) gr_memory_host_free(&context->host, memory);
}

void *gr_pool_new(const graft_context *context, struct gr_pool *pool, int64_t count, uint64_t element_bytes,
                  const char *name, graft_error *error)
{
    void *memory = gr_new(context, count, element_bytes, name, error);

    gr_pool_adopt(pool, memory);
    return memory;
}

void gr_pool_adopt(struct gr_pool *pool, void *memory)
{
    if (memory == NULL) return;
    header_of(memory)->next = pool->first;
    pool->first = memory;
    pool->bytes += (int64_t)header_of(memory)->bytes;
}

void gr_pool_fini(const graft_context *context, struct gr_pool *pool)
{
    while (pool->first != NULL) {
        void *memory = pool->first;

        pool->first = header_of(memory)->next;
        gr_free(context, memory);
    }
    pool->bytes = 0;
}

int32_t gr_text_copy(const graft_context *context, char **copy, const char *text, graft_error *error)
{
    const uint64_t bytes = strlen(text) + 1;

    *copy = gr_new(context, (int64_t)bytes, 1, "text", error);
    if (*copy == NULL) return GRAFT_ERR_NOMEM;
    memcpy(*copy, text, bytes);
    return GRAFT_OK;
}
