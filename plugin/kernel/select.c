/* Which kernel does a product: the chosen one, then the others by preference, each asked whether it can.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"
#include "kernel/kernel.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* Rows that a thread tells of at a time where the kernel did not. */
enum { ROWS_AT_ONCE = 64 };

/* Why kernels were passed over, collected for explain and for the message when none is left. */
struct reasons {
    char text[320];
};

__attribute__((format(printf, 2, 3))) static void add_reason(struct reasons *reasons, const char *format, ...)
{
    const size_t used = strlen(reasons->text);
    va_list      list;

    va_start(list, format);
    vsnprintf(reasons->text + used, sizeof reasons->text - used, format, list);
    va_end(list);
}

/* Whether anything is set in the arguments that a module which knows `size` bytes of them would not see. */
static int asks_beyond(const graft_mxm_args *args, uint32_t size)
{
    for (uint32_t i = size; i < sizeof *args; i++) {
        if (((const unsigned char *)args)[i] != 0) return 1;
    }
    return 0;
}

/* Times, polls and calls for rows are wishes: a kernel that was built before them does without. */
static void drop_wishes(graft_mxm_args *args, uint32_t size)
{
    if (size < offsetof(graft_mxm_args, times) + sizeof args->times) args->times = NULL;
    if (size < offsetof(graft_mxm_args, poll_arg) + sizeof args->poll_arg) {
        args->poll = NULL;
        args->poll_arg = NULL;
    }
    if (size < offsetof(graft_mxm_args, rows_arg) + sizeof args->rows_arg) {
        args->rows_done = NULL;
        args->rows_arg = NULL;
    }
}

/* Make kernel `index` ready for the product. ERR_UNSUPPORTED, with the reason added, if it is not for it. */
static int32_t make_ready(graft_context *context, int32_t index, graft_mxm_args *args, void **prepared,
                          struct reasons *reasons, graft_error *error)
{
    struct gr_module *module = &context->modules.at[index];
    char              why[200] = "";
    int32_t           rc;

    if (module->status == 0 && gr_module_use(context, module, error) == GRAFT_ERR_NOMEM) return GRAFT_ERR_NOMEM;
    if (module->status != 1) {
        add_reason(reasons, "%s is not usable: %s\n", module->name, module->detail);
        return GRAFT_ERR_UNSUPPORTED;
    }
    drop_wishes(args, module->table->kernel->args_size);
    if (asks_beyond(args, module->table->kernel->args_size)) {
        add_reason(reasons, "%s cannot: it was built before something that is asked for was thought of\n",
                   module->name);
        return GRAFT_ERR_UNSUPPORTED;
    }
    rc = module->table->kernel->supports(module->state, &args->a->csr, args, why, sizeof why);
    if (rc < 0) {
        add_reason(reasons, "%s cannot: %s\n", module->name, why);
        return GRAFT_ERR_UNSUPPORTED;
    }
    rc = gr_matrix_prepare(args->a, index, prepared, error);
    if (rc == GRAFT_ERR_UNSUPPORTED) add_reason(reasons, "%s cannot: %s\n", module->name, error->message);
    return rc;
}

static void remember(graft_context *context, const struct gr_module *module, const char *chosen,
                     const struct reasons *reasons)
{
    const int fell = strcmp(chosen, "auto") != 0 && strcmp(chosen, module->name) != 0;

    snprintf(context->last_run, sizeof context->last_run, "%s ran: %s%s%s\n%s", module->name, module->detail,
             fell ? "; it stood in for " : "", fell ? chosen : "", reasons->text);
}

/* Rows that a kernel says are done. It may have been compiled with a header that has this and know nothing of it, and
 * what depends on it is sent to others: so the rows are counted. */
struct telling {
    const graft_mxm_args *args;
    _Atomic int64_t       rows;
    _Atomic int           wrong;
};

static void tell(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    struct telling       *telling = arg;
    const graft_mxm_args *args = telling->args;

    if (thread < 0 || thread >= args->threads || begin < 0 || end < begin || end > args->c->n_rows) {
        atomic_store_explicit(&telling->wrong, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&telling->rows, end - begin, memory_order_relaxed);
    args->rows_done(args->rows_arg, thread, begin, end);
}

static void tell_chunk(void *arg, int64_t chunk, int64_t begin, int64_t end)
{
    const graft_mxm_args *args = arg;

    (void)chunk;
    args->rows_done(args->rows_arg, omp_get_thread_num(), begin, end);
}

/* What is left of telling when the kernel is done: all, nothing, or to say that it told of some rows alone. */
static int32_t tell_rest(const char *name, struct telling *telling, graft_error *error)
{
    graft_mxm_args args = *telling->args;
    const int64_t  n = args.c->n_rows, told = telling->rows;

    if (telling->wrong || (told != 0 && told != n))
        return gr_fail(error, GRAFT_ERR_MODULE, "kernel %s calls rows_done %s%lld rows of %lld", name,
                       telling->wrong ? "by threads or for rows that there are not, and for " : "for ", (long long)told,
                       (long long)n);
    if (told == 0)
        gr_parallel_chunks((struct gr_team){ .threads = args.threads, .poll = args.poll, .poll_arg = args.poll_arg },
                           n * args.c->n_cols, n, ROWS_AT_ONCE, tell_chunk, &args);
    return GRAFT_OK;
}

static int32_t run(const struct gr_module *module, void *prepared, const graft_mxm_args *whole, graft_mxm_args *asked,
                   graft_error *error)
{
    struct telling telling = { .args = whole };
    int32_t        rc;

    if (asked->rows_done != NULL) {
        asked->rows_done = tell;
        asked->rows_arg = &telling;
    }
    rc = module->table->kernel->run(module->state, prepared, &whole->a->csr, asked, error);
    return rc == GRAFT_OK && whole->rows_done != NULL ? tell_rest(module->name, &telling, error) : rc;
}

/* Try the kernels in order until one has done it (or, with `dry`, would). */
static int32_t choose(graft_context *context, const graft_mxm_args *args, int dry, struct reasons *reasons,
                      int32_t *taken, graft_error *error)
{
    const char *chosen = context->options.kernel.mxm;
    int32_t     order[GR_MODULE_MAX], count = 0;
    int32_t     rc = gr_modules_order(context, "kernel", chosen, order, &count, error);

    if (rc < 0) return rc;
    if (strcmp(chosen, "auto") != 0 && context->options.kernel.strict) count = 1;
    for (int32_t i = 0; i < count; i++) {
        const struct gr_module *module = &context->modules.at[order[i]];
        graft_mxm_args          asked = *args;
        void                   *prepared = NULL;

        rc = make_ready(context, order[i], &asked, &prepared, reasons, error);
        if (rc == GRAFT_OK && !dry) {
            rc = run(module, prepared, args, &asked, error);
            if (rc == GRAFT_ERR_UNSUPPORTED) add_reason(reasons, "%s cannot: %s\n", module->name, error->message);
            if (rc == GRAFT_OK) remember(context, module, chosen, reasons);
        }
        if (rc != GRAFT_ERR_UNSUPPORTED) {
            *taken = order[i];
            return rc;
        }
    }
    return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "no kernel can do this product:\n%s", reasons->text);
}

static int threads_for(const graft_context *context, const graft_mxm_args *args)
{
    const int64_t entries = args->a->csr.row_ptr[args->a->csr.n_rows];

    return gr_threads_worth(gr_threads(context, args->threads), (entries + args->c->n_rows) * args->c->n_cols);
}

int32_t gr_mxm_run(graft_context *context, const graft_mxm_args *args, graft_error *error)
{
    graft_mxm_args    complete = *args;
    struct reasons    reasons = { "" };
    struct gr_verify *verify = NULL;
    int32_t           taken, rc = GRAFT_OK;

    complete.threads = threads_for(context, args);
    GR_TRY(gr_verify_begin(context, &complete, &verify, error));
    GR_TRY(choose(context, &complete, 0, &reasons, &taken, error));
    if (verify != NULL) rc = gr_verify_compare(verify, error);
done:
    gr_verify_end(verify);
    return rc;
}

int32_t gr_mxm_explain(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                       graft_error *error)
{
    const char    *chosen = context->options.kernel.mxm;
    struct reasons reasons = { "" };
    graft_mxm_args complete;
    int32_t        taken = 0, rc;

    if (args == NULL) {
        snprintf(text, capacity, "%s", context->last_run[0] != '\0' ? context->last_run : "no product has run yet\n");
        return GRAFT_OK;
    }
    complete = *args;
    complete.threads = threads_for(context, args);
    rc = choose(context, &complete, 1, &reasons, &taken, error);
    if (rc < 0) return rc;
    snprintf(text, capacity, "%s would run: %s, by option mxm.kernel = %s\n%s", context->modules.at[taken].name,
             context->modules.at[taken].detail, chosen, reasons.text);
    return GRAFT_OK;
}
