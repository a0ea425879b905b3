/* Begins and ends a public call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/call.h"

#include "base/context.h"
#include "base/pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

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
    rc = gr_handle_enter(object, kind, where, &call->held, &call->error);
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

        if (call->error.code != rc) gr_fail(&call->error, rc, "%s", gr_error_status_text(rc));
        snprintf(call->error.where, sizeof call->error.where, "%s", call->where);
        call->error.size = size;
        memcpy(out, &call->error, size < sizeof call->error ? size : sizeof call->error);
        /* Terminate the text in which a smaller error struct of the host ends. */
        if (size < sizeof call->error && size > offsetof(graft_error, where)) ((char *)out)[size - 1] = '\0';
    }
    if (call->held != NULL) gr_handle_leave(call->held);
    gr_affinity_restore(&call->affinity);
    gr_pool_leave(&call->saved_fp);
    gr_fp_set(call->saved_fp);
    errno = call->saved_errno;
    return rc;
}
