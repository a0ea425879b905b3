/* Error messages, the begin and end of a public call, and the size rule for structs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/context.h"
#include "base/pool.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
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

const char *gr_status_text(int32_t code)
{
#define STATUS_TEXT(name, value, text)                                                                                 \
    case value: return text;
    switch (code) {
        GRAFT_STATUS_MAP(STATUS_TEXT)
    default: return "unknown status";
    }
#undef STATUS_TEXT
}

int32_t gr_call_begin_on(struct gr_call *call, const void *object, enum gr_handle_kind kind, const char *where,
                         graft_error *out)
{
    int32_t rc;

    memset(call, 0, offsetof(struct gr_call, affinity.processors));
    call->error.size = sizeof call->error;
    call->out = out;
    call->where = where;
    call->saved_errno = errno;
    call->saved_fp = gr_fp_hold();
    gr_pool_enter(&call->saved_fp);
    rc = gr_enter(object, kind, where, &call->held, &call->error);
    if (rc < 0) return rc;
    call->context = ((const struct gr_handle *)object)->context;
    if (call->context->binds_threads) gr_affinity_save(&call->affinity);
    return GRAFT_OK;
}

int32_t gr_call_begin(struct gr_call *call, const graft_context *context, const char *where, graft_error *out)
{
    return gr_call_begin_on(call, context, GR_HANDLE_CONTEXT, where, out);
}

int32_t gr_call_end(struct gr_call *call, int32_t rc)
{
    graft_error *out = call->out;

    if (rc == GRAFT_ERR_CANCELLED && call->context != NULL)
        atomic_store_explicit((_Atomic int32_t *)(uintptr_t)&call->context->cancel, 0, memory_order_relaxed);
    if (rc < 0 && out != NULL && out->size >= offsetof(graft_error, native_code)) {
        const uint32_t size = out->size;

        if (call->error.code != rc) gr_fail(&call->error, rc, "%s", gr_status_text(rc));
        snprintf(call->error.where, sizeof call->error.where, "%s", call->where);
        call->error.size = size;
        memcpy(out, &call->error, size < sizeof call->error ? size : sizeof call->error);
        /* A host with a shorter message field gets a terminated text too. */
        if (size < sizeof call->error && size > offsetof(graft_error, where)) ((char *)out)[size - 1] = '\0';
    }
    if (call->held != NULL) gr_leave(call->held);
    gr_affinity_restore(&call->affinity);
    gr_pool_leave(&call->saved_fp);
    gr_fp_set(call->saved_fp);
    errno = call->saved_errno;
    return rc;
}

int32_t gr_text_check(const char *text, uint64_t capacity, graft_error *error)
{
    if (text != NULL && capacity > 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_ARG, "text is null or capacity is 0");
}

/* No struct is larger; a larger size was never initialised. */
enum { STRUCT_MAX = 4096 };

static int32_t check_room(const void *theirs, const char *name, uint32_t *size, graft_error *error)
{
    if (theirs == NULL) return gr_fail(error, GRAFT_ERR_ARG, "%s is null", name);
    memcpy(size, theirs, sizeof *size);
    /* All structs have sizes that 8 divides. With another size a copy could end inside a pointer. */
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
