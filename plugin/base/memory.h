/* Memory: zeroed, aligned to 64 bytes, checked for overflow, from the host's allocator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MEMORY_H
#define GR_MEMORY_H

#include "base/context.h"

/** Allocate `count` zeroed elements for a pointer: GR_TRY(GR_NEW(context, ptr, count, error)). The message of a failure
 *  names the pointer and the bytes. A count of 0 gives a pointer that can be freed; a negative one is out of memory. */
#define GR_NEW(context, ptr, count, error)                                                                             \
    (((ptr) = gr_new((context), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM)

void *gr_new(const graft_context *context, int64_t count, uint64_t element_bytes, const char *name, graft_error *error);
void  gr_free(const graft_context *context, void *memory);

/** Copy of a text in memory of the host. */
int32_t gr_text_copy(const graft_context *context, char **copy, const char *text, graft_error *error);

#endif
