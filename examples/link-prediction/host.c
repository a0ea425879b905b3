/* Errors and memory of the program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <stdarg.h>
#include <stdio.h>

int32_t host_fail(struct host *host, int32_t status, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(host->error.message, sizeof host->error.message, format, list);
    va_end(list);
    host->error.code = status;
    return status;
}

void *host_alloc(struct host *host, int64_t n, size_t each)
{
    void *memory = calloc(n > 0 ? (size_t)n : 1, each);

    if (memory == NULL)
        host_fail(host, GRAFT_ERR_NOMEM, "there is no memory for %lld elements of %zu bytes", (long long)n, each);
    return memory;
}
