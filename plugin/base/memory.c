/* Memory from the host. A block begins with a header line that keeps its size, because the host's deallocate wants it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/memory.h"

#include <string.h>

enum { LINE = 64 };

void *gr_new(const graft_context *context, int64_t count, uint64_t element_bytes, const char *name, graft_error *error)
{
    uint64_t bytes;
    char    *block = NULL;

    if (count >= 0 && !__builtin_mul_overflow((uint64_t)count, element_bytes, &bytes) && bytes <= INT64_MAX - 2 * LINE) {
        bytes = (bytes + 2 * LINE - 1) / LINE * LINE;
        block = context->host.allocate(context->host.self, bytes, LINE);
    }
    if (block == NULL) {
        gr_fail(error, GRAFT_ERR_NOMEM, "no memory for '%s': %lld elements of %llu bytes", name, (long long)count,
                (unsigned long long)element_bytes);
        return NULL;
    }
    memset(block, 0, bytes);
    memcpy(block, &bytes, sizeof bytes);
    return block + LINE;
}

void gr_free(const graft_context *context, void *memory)
{
    uint64_t bytes;

    if (memory == NULL) return;
    memory = (char *)memory - LINE;
    memcpy(&bytes, memory, sizeof bytes);
    context->host.deallocate(context->host.self, memory, bytes, LINE);
}

int32_t gr_text_copy(const graft_context *context, char **copy, const char *text, graft_error *error)
{
    const uint64_t bytes = strlen(text) + 1;

    *copy = gr_new(context, (int64_t)bytes, 1, "text", error);
    if (*copy == NULL) return GRAFT_ERR_NOMEM;
    memcpy(*copy, text, bytes);
    return GRAFT_OK;
}
