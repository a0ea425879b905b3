/* The choice of the dense module, and the reference module: plain loops.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dense/dense.h"

#include "base/assert.h"
#include "base/options.h"
#include "base/team.h"
#include "dense/options.h"

#include <stdio.h>
#include <string.h>

static int is_automatic(const graft_context *context)
{
    return strcmp(gr_dense_options(context)->module, "auto") == 0;
}

/* Whether a usable module multiplies elements of a type; if not, the reason goes to why[capacity]. */
static int multiplies(const struct gr_module *module, graft_dtype type, char *why, uint64_t capacity)
{
    const graft_dense_ops *ops = module->table->dense;

    if (type == GRAFT_F32) return 1;
    if (ops->gemm_size >= GRAFT_HAS(graft_gemm, type))
        return ops->supports(module->state, type, why, capacity) == GRAFT_OK;
    snprintf(why, capacity, "it was built before products had element types");
    return 0;
}

/* Find the first usable module, in this order, that multiplies *type; else the first usable one, and *type becomes
 * float. Returns NULL, with the reason in error, if no module is usable. */
static struct gr_module *first_usable(graft_context *context, const int32_t *order, int32_t count, graft_dtype *type,
                                      char *why, uint64_t capacity, graft_error *error)
{
    struct gr_module *usable = NULL;

    for (int32_t i = 0; i < count; i++) {
        struct gr_module *candidate = &context->modules.at[order[i]];
        char              reason[200] = "";
        const int32_t     rc = gr_module_use(context, candidate, error);

        if (rc == GRAFT_ERR_NOMEM) return NULL;
        if (rc < 0) continue;
        if (multiplies(candidate, *type, reason, sizeof reason)) return candidate;
        if (usable == NULL) {
            usable = candidate;
            snprintf(why, capacity, "%s cannot: %s", candidate->name, reason);
        }
    }
    *type = GRAFT_F32;
    return usable;
}

/* As first_usable(), of the modules of option dense.module. */
static int32_t find_module(graft_context *context, graft_dtype *type, char *why, uint64_t capacity,
                           const struct gr_module **module, graft_error *error)
{
    int32_t order[GR_MODULE_MAX], count = 0;

    GR_TRY(gr_modules_order(context, "dense", gr_dense_options(context)->module, order, &count, error));
    *module = first_usable(context, order, is_automatic(context) ? count : 1, type, why, capacity, error);
    if (*module == NULL) return error->code < 0 ? error->code : GRAFT_ERR_UNSUPPORTED;
    return GRAFT_OK;
}

/* Warn that plain loops are slower than a BLAS. \return OK; ERR_UNSUPPORTED (with option strict). */
static int32_t warn_of_plain_loops(const graft_context *context, const struct gr_module *module, graft_error *error)
{
    if (module->table != &gr_dense_reference || !is_automatic(context)) return GRAFT_OK;
    if (gr_base_options(context)->strict)
        return gr_fail(
            error, GRAFT_ERR_UNSUPPORTED,
            "no BLAS module is usable, and option 'strict' is yes; dense.module = reference selects plain loops");
    gr_log(context, GRAFT_LOG_WARNING,
           "no BLAS module is usable, so plain loops do the dense products, which is much slower");
    return GRAFT_OK;
}

int32_t gr_dense_choose(graft_context *context, graft_dtype *type, const struct gr_module **module, graft_error *error)
{
    const graft_dtype wanted = gr_dense_options(context)->type == GR_DENSE_BF16 ? GRAFT_BF16 : GRAFT_F32;
    char              why[240] = "";

    *type = wanted;
    GR_TRY(find_module(context, type, why, sizeof why, module, error));
    if (*type != wanted && gr_base_options(context)->strict)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "option 'dense.type' is bf16 and option 'strict' is yes, but %s",
                       why);
    if (*type != wanted) gr_log(context, GRAFT_LOG_WARNING, "dense products are done in float, because %s", why);
    return warn_of_plain_loops(context, *module, error);
}

int32_t gr_dense_choose_for(graft_context *context, graft_dtype type, const struct gr_module **module,
                            graft_error *error)
{
    graft_dtype found = type;
    char        why[240] = "";

    GR_TRY(find_module(context, &found, why, sizeof why, module, error));
    if (found != type)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "option 'dense.module' is %s, but products of %s are wanted, and %s",
                       gr_dense_options(context)->module, type == GRAFT_F64 ? "doubles" : "floats", why);
    return warn_of_plain_loops(context, *module, error);
}

static int32_t plain_init(const graft_host *host, void **state, graft_error *error)
{
    (void)host, (void)error;
    *state = NULL;
    return GRAFT_OK;
}

static void plain_fini(void *state)
{
    (void)state;
}

/* Compute row i of C: scale it, then add k multiples of rows of B, so that B is read along rows unless transposed. */
#define PLAIN_ROW(NAME, T)                                                                                             \
    static void NAME(const graft_gemm *g, int64_t i)                                                                   \
    {                                                                                                                  \
        const T *a = (const void *)g->a, *b = (const void *)g->b;                                                      \
        T       *c = (T *)(void *)g->c + i * g->ldc;                                                                   \
                                                                                                                       \
        for (int64_t j = 0; j < g->n; j++) c[j] = g->beta == 0 ? 0 : (T)g->beta * c[j];                                \
        for (int64_t p = 0; p < g->k; p++) {                                                                           \
            const T       factor = (T)g->alpha * (g->transpose_a ? a[p * g->lda + i] : a[i * g->lda + p]);             \
            const int64_t step = g->transpose_b ? g->ldb : 1;                                                          \
            const T      *row = g->transpose_b ? b + p : b + p * g->ldb;                                               \
                                                                                                                       \
            for (int64_t j = 0; j < g->n; j++) c[j] += factor * row[j * step];                                         \
        }                                                                                                              \
    }
PLAIN_ROW(plain_row_f32, float)
PLAIN_ROW(plain_row_f64, double)

static void plain_gemm_row(const graft_gemm *g, int64_t i)
{
    GR_ASSERT(i >= 0 && i < g->m);
    if (g->type == GRAFT_F64) plain_row_f64(g, i);
    else plain_row_f32(g, i);
    if (g->rows_done != NULL) g->rows_done(g->rows_arg, i, i + 1);
}

static int32_t plain_gemm(void *state, const graft_gemm *g, graft_error *error)
{
    const struct gr_fp fp = gr_fp_get();

    (void)state, (void)error;
#pragma omp parallel num_threads(g->threads)
    {
        const struct gr_fp own = gr_fp_swap(fp);

        gr_team_begin(g->times);
#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < g->m; i++) plain_gemm_row(g, i);
        gr_team_end(g->times);
        gr_fp_set(own);
    }
    return GRAFT_OK;
}

static int32_t plain_supports(void *state, graft_dtype type, char *why, uint64_t capacity)
{
    (void)state;
    if (type == GRAFT_F64) return GRAFT_OK;
    snprintf(why, capacity, "plain loops multiply floats and doubles, not %s",
             type == GRAFT_BF16 ? "bfloat16" : "this type");
    return GRAFT_ERR_UNSUPPORTED;
}

static const graft_dense_ops plain_ops = {
    .size = sizeof plain_ops,
    .preference = 0,
    .description = "plain loops",
    .init = plain_init,
    .fini = plain_fini,
    .gemm = plain_gemm,
    .supports = plain_supports,
    .gemm_size = sizeof(graft_gemm),
    .flags = GRAFT_DENSE_CONCURRENT,
};

const graft_module_table gr_dense_reference = {
    .size = sizeof gr_dense_reference,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "reference",
    .dense = &plain_ops,
};
