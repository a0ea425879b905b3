/* Writes error messages, and applies the size rule for structs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include "base/assert.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static void fill_error(graft_error *error, int32_t code, int32_t native, const char *format, va_list list)
{
    GR_ASSERT(error != NULL && code < 0);
    error->code = code;
    error->native_code = native;
    error->rank = 0;
    vsnprintf(error->message, sizeof error->message, format, list);
}

int32_t gr_fail(graft_error *error, int32_t code, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fill_error(error, code, 0, format, list);
    va_end(list);
    return code;
}

int32_t gr_fail_native(graft_error *error, int32_t code, int32_t native, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fill_error(error, code, native, format, list);
    va_end(list);
    return code;
}

const char *gr_error_status_text(int32_t code)
{
#define STATUS_TEXT(name, value, text)                                                                                 \
    case value: return text;
    switch (code) {
        GRAFT_STATUS_MAP(STATUS_TEXT)
    default: return "unknown status";
    }
#undef STATUS_TEXT
}

int32_t gr_text_check(const char *text, uint64_t capacity, graft_error *error)
{
    if (text != NULL && capacity > 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "text is null or capacity is 0");
}

/* Structs of the contract are smaller than this. A larger size is an uninitialised field. */
enum { STRUCT_MAX = 4096 };

static int32_t check_room(const void *theirs, const char *name, uint32_t *size, graft_error *error)
{
    if (theirs == NULL) return gr_fail(error, GRAFT_ERR_ARG, "%s is null", name);
    memcpy(size, theirs, sizeof *size);
    /* The sizes of all structs are multiples of 8. With another size a copy could end inside a pointer. */
    if (*size < 8 || *size > STRUCT_MAX || *size % 8 != 0) {
        return gr_fail(error, GRAFT_ERR_ARG, "%s has size %u; was it made with GRAFT_INIT?", name, *size);
    }
    return GRAFT_OK;
}

int32_t gr_struct_read(void *ours, uint32_t our_size, const void *theirs, const char *name, graft_error *error)
{
    uint32_t      size = 0;
    const int32_t rc = check_room(theirs, name, &size, error);

    if (rc < 0) return rc;
    for (uint32_t i = our_size; i < size; i++) {
        if (((const unsigned char *)theirs)[i] == 0) continue;
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "%s has size %u and byte %u is not 0, but this library supports only %u bytes of it", name, size,
                       i, our_size);
    }
    memset(ours, 0, our_size);
    memcpy(ours, theirs, size < our_size ? size : our_size);
    memcpy(ours, &our_size, sizeof our_size);
    return GRAFT_OK;
}

int32_t gr_struct_check_out(const void *theirs, const char *name, graft_error *error)
{
    uint32_t size;

    return check_room(theirs, name, &size, error);
}

int32_t gr_struct_write(void *theirs, const void *ours, uint32_t our_size, const char *name, graft_error *error)
{
    uint32_t      size = 0;
    const int32_t rc = check_room(theirs, name, &size, error);

    if (rc < 0) return rc;
    if (size > our_size) size = our_size;
    memcpy((char *)theirs + sizeof size, (const char *)ours + sizeof size, size - sizeof size);
    return GRAFT_OK;
}
