/* Creates and destroys a context.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/context.h"

#include "base/available.h"
#include "base/memory.h"
#include "base/options.h"

#include <stdatomic.h>
#include <unistd.h>

int32_t gr_context_check_cancel(const graft_context *context, graft_error *error)
{
    if (context->defers_cancel || !atomic_load_explicit(&context->cancel, memory_order_relaxed)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_CANCELLED, "the host asked to cancel the call");
}

static void destroy_context(void *context)
{
    gr_context_destroy(context);
}

int32_t gr_context_create(const graft_host *host, const struct gr_option_list *options, graft_context **context,
                          graft_error *error)
{
    int32_t        rc = GRAFT_OK;
    graft_host     complete;
    graft_context *made = NULL;

    GR_TRY_DONE(gr_context_complete_host(&complete, host, error));
    GR_TRY_DONE(GR_HOST_NEW(&complete, made, 1, error));
    made->host = complete;
    made->module_host = gr_context_module_host(made);
    made->owner = getpid();
    made->processors_quota = gr_processors_quota();
    GR_TRY_DONE(gr_options_init(made, options, error));
    made->callers.check = gr_base_options(made)->check;
    gr_handle_init(made, GR_HANDLE_CONTEXT, made);
    made->handle.destroy = destroy_context;
    *context = made;
    made = NULL;
done:
    gr_context_destroy(made);
    return rc;
}

void gr_context_destroy(graft_context *context)
{
    graft_host host;

    if (context == NULL) return;
    gr_handle_fini(context);
    gr_modules_fini(context);
    gr_options_fini(&context->options);
    host = context->host;
    gr_memory_host_free(&host, context);
}
