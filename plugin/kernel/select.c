/* The choice of a kernel: first the kernel of option mxm.kernel, then the others by preference, until one supports the
 * product.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/limits.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/text.h"
#include "kernel/kernel.h"
#include "kernel/options.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

/* The reasons why kernels were not chosen: for explain(), and for the error if no kernel is left. */
struct reasons {
    char           text[320];
    struct gr_text end;
};

/* Whether a field is set that lies beyond the `size` bytes of the arguments which a module knows. */
static int uses_unknown_fields(const graft_mxm_args *args, uint32_t size)
{
    for (uint32_t i = size; i < sizeof *args; i++) {
        if (((const unsigned char *)args)[i] != 0) return 1;
    }
    return 0;
}

/* times, poll and rows_done are optional: a kernel built before these fields runs without them. */
static void drop_optional_fields(graft_mxm_args *args, uint32_t size)
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

/* Load kernel `index` and prepare the matrix for it. \return OK; ERR_UNSUPPORTED with the reason added; another
 * error */
static int32_t prepare_kernel(graft_context *context, int32_t index, graft_mxm_args *args, void **prepared,
                              struct reasons *reasons, graft_error *error)
{
    struct gr_module *module = &context->modules.at[index];
    char              why[200] = "";
    int32_t           rc;

    if (module->status == 0 && gr_module_use(context, module, error) == GRAFT_ERR_NOMEM) return GRAFT_ERR_NOMEM;
    if (module->status != 1) {
        gr_text_add(&reasons->end, "%s is not usable: %s\n", module->name, module->detail);
        return GRAFT_ERR_UNSUPPORTED;
    }
    drop_optional_fields(args, module->table->kernel->args_size);
    if (uses_unknown_fields(args, module->table->kernel->args_size)) {
        gr_text_add(&reasons->end, "%s cannot: it was built before a field that this product uses\n", module->name);
        return GRAFT_ERR_UNSUPPORTED;
    }
    rc = module->table->kernel->supports(module->state, &args->a->csr, args, why, sizeof why);
    if (rc != GRAFT_OK) {
        gr_text_add(&reasons->end, "%s cannot: %s\n", module->name, why);
        return GRAFT_ERR_UNSUPPORTED;
    }
    rc = gr_matrix_prepare(args->a, index, prepared, error);
    if (rc == GRAFT_ERR_UNSUPPORTED) gr_text_add(&reasons->end, "%s cannot: %s\n", module->name, error->message);
    return rc;
}

static void record_last_run(graft_context *context, const struct gr_module *module, const char *chosen,
                            const struct reasons *reasons)
{
    const int fell = strcmp(chosen, "auto") != 0 && strcmp(chosen, module->name) != 0;

    snprintf(context->last_run, sizeof context->last_run, "%s ran: %s%s%s\n%s", module->name, module->detail,
             fell ? "; it replaced " : "", fell ? chosen : "", reasons->text);
}

/* Counts the rows that a kernel reports by rows_done. The count is checked because reported rows are sent to other
 * ranks, and a kernel may ignore the field although its header has it. */
struct row_count {
    const graft_mxm_args *args;
    _Atomic int64_t       rows;
    _Atomic int           wrong;
};

static void count_rows(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    struct row_count     *count = arg;
    const graft_mxm_args *args = count->args;

    if (thread < 0 || thread >= args->threads || begin < 0 || end < begin || end > args->c->n_rows) {
        atomic_store_explicit(&count->wrong, 1, memory_order_relaxed);
        return;
    }
    atomic_fetch_add_explicit(&count->rows, end - begin, memory_order_relaxed);
    args->rows_done(args->rows_arg, thread, begin, end);
}

static void report_chunk(void *arg, int64_t begin, int64_t end)
{
    const graft_mxm_args *args = arg;

    args->rows_done(args->rows_arg, omp_get_thread_num(), begin, end);
}

/* Check the count when the kernel is done. A kernel that reported no rows at all does not know rows_done, and all rows
 * are reported here; some rows but not all are an error. */
static int32_t check_row_count(const char *name, struct row_count *count, graft_error *error)
{
    graft_mxm_args args = *count->args;
    const int64_t  n = args.c->n_rows, reported = count->rows;

    if (count->wrong || (reported != 0 && reported != n))
        return gr_fail(
            error, GRAFT_ERR_MODULE, "kernel %s reports %lld of %lld rows by rows_done%s, expected all or none", name,
            (long long)reported, (long long)n, count->wrong ? ", and threads or rows that do not exist" : "");
    if (reported == 0)
        gr_parallel_rows((struct gr_team){ .threads = args.threads, .poll = args.poll, .poll_arg = args.poll_arg },
                         n * args.c->n_cols, n, GR_ROWS_AT_ONCE, report_chunk, &args);
    return GRAFT_OK;
}

static int32_t run_kernel(const struct gr_module *module, void *prepared, const graft_mxm_args *whole,
                          graft_mxm_args *asked, graft_error *error)
{
    struct row_count count = { .args = whole };
    int32_t          rc;

    if (asked->rows_done != NULL) {
        asked->rows_done = count_rows;
        asked->rows_arg = &count;
    }
    rc = module->table->kernel->run(module->state, prepared, &whole->a->csr, asked, error);
    rc = gr_module_status(module, "run", rc, error);
    if (rc == GRAFT_ERR_UNSUPPORTED && (count.rows > 0 || count.wrong)) /* rows_done may have changed the rows */
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "kernel %s refuses a product of which it has reported rows by rows_done", module->name);
    return rc == GRAFT_OK && whole->rows_done != NULL ? check_row_count(module->name, &count, error) : rc;
}

/* Try the kernels in order until one has run the product, or, with `dry`, would run it. */
static int32_t try_kernels(graft_context *context, const graft_mxm_args *args, int dry, struct reasons *reasons,
                           int32_t *taken, graft_error *error)
{
    const char *chosen = gr_kernel_options(context)->mxm;
    int32_t     order[GR_MODULE_MAX], count = 0;

    GR_TRY(gr_modules_order(context, "kernel", chosen, order, &count, error));
    if (strcmp(chosen, "auto") != 0 && gr_base_options(context)->strict) count = 1;
    for (int32_t i = 0; i < count; i++) {
        const struct gr_module *module = &context->modules.at[order[i]];
        graft_mxm_args          asked = *args;
        void                   *prepared = NULL;
        int32_t                 rc = prepare_kernel(context, order[i], &asked, &prepared, reasons, error);

        if (rc == GRAFT_OK && !dry) {
            rc = run_kernel(module, prepared, args, &asked, error);
            if (rc == GRAFT_ERR_UNSUPPORTED)
                gr_text_add(&reasons->end, "%s cannot: %s\n", module->name, error->message);
            if (rc == GRAFT_OK && omp_get_level() == 0) record_last_run(context, module, chosen, reasons);
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
    const int64_t operations = (entries + args->c->n_rows) * args->c->n_cols;

    return gr_threads_worth(gr_context_threads_for(context, args->threads, operations), operations);
}

int32_t gr_mxm_run(graft_context *context, const graft_mxm_args *args, graft_error *error)
{
    graft_mxm_args    complete = *args, inside;
    struct gr_guard  *guard = NULL;
    struct reasons    reasons = { .end = { reasons.text, sizeof reasons.text } };
    struct gr_verify *verify = NULL;
    int32_t           taken, rc = GRAFT_OK;

    GR_ASSERT(gr_mxm_check(args, error) == GRAFT_OK);
    complete.threads = threads_for(context, args);
    GR_TRY_DONE(gr_mxm_guard_begin(context, &complete, &inside, &guard, error));
    GR_TRY_DONE(gr_mxm_verify_begin(context, &inside, &verify, error));
    GR_TRY_DONE(try_kernels(context, &inside, 0, &reasons, &taken, error));
    if (guard != NULL) GR_TRY_DONE(gr_mxm_guard_check(guard, context->modules.at[taken].name, error));
    if (verify != NULL) GR_TRY_DONE(gr_mxm_verify_compare(verify, context->modules.at[taken].name, error));
    if (guard != NULL) gr_mxm_guard_finish(guard);
done:
    gr_mxm_verify_end(verify);
    gr_mxm_guard_end(guard);
    return rc;
}

int32_t gr_mxm_prepare(graft_context *context, const graft_mxm_args *args, int *concurrent, graft_error *error)
{
    struct reasons reasons = { .end = { reasons.text, sizeof reasons.text } };
    int32_t        taken = 0;

    GR_TRY(try_kernels(context, args, 1, &reasons, &taken, error));
    if (context->modules.at[taken].path != NULL) *concurrent = 0; /* the states of built-in kernels do not change */
    record_last_run(context, &context->modules.at[taken], gr_kernel_options(context)->mxm, &reasons);
    return GRAFT_OK;
}

int32_t gr_mxm_explain(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                       graft_error *error)
{
    const char    *chosen = gr_kernel_options(context)->mxm;
    struct reasons reasons = { .end = { reasons.text, sizeof reasons.text } };
    graft_mxm_args complete;
    int32_t        taken = 0;

    if (args == NULL) {
        snprintf(text, capacity, "%s", context->last_run[0] != '\0' ? context->last_run : "no product has run yet\n");
        return GRAFT_OK;
    }
    complete = *args;
    complete.threads = threads_for(context, args);
    GR_TRY(try_kernels(context, &complete, 1, &reasons, &taken, error));
    snprintf(text, capacity, "%s would run: %s, by option mxm.kernel = %s\n%s", context->modules.at[taken].name,
             context->modules.at[taken].detail, chosen, reasons.text);
    return GRAFT_OK;
}
