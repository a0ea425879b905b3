/* Option check=full: plain loops in double repeat sampled rows of every dense product, and the results are compared.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/bfloat.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"
#include "dense/dense.h"

#include <float.h>
#include <math.h>

enum { SAMPLES = 8 }; /* sampled rows */

/* The sampled rows of C, and their values before the product. */
struct samples {
    int64_t count, row[SAMPLES];
    double *before; /* [count x n] values; NULL if beta is 0 */
};

/* Element i of an array of the product. */
static double element_of(const graft_gemm *g, const float *array, int64_t i)
{
    return g->type == GRAFT_F64 ? ((const double *)(const void *)array)[i] : (double)array[i];
}

static int32_t take_samples(graft_context *context, const graft_gemm *g, struct samples *s, graft_error *error)
{
    *s = (struct samples){ .count = g->m < SAMPLES ? g->m : SAMPLES };
    for (int64_t i = 0; i < s->count; i++) {
        uint32_t bits[4];

        gr_random_block(context->verified++, (uint64_t)i, 0, bits);
        s->row[i] = g->m > SAMPLES ? (int64_t)(((uint64_t)bits[0] << 31 ^ bits[1]) % (uint64_t)g->m) : i;
    }
    if (g->beta == 0 || s->count * g->n == 0) return GRAFT_OK;
    GR_TRY(GR_NEW(context, s->before, s->count * g->n, error));
    for (int64_t at = 0; at < s->count * g->n; at++)
        s->before[at] = element_of(g, g->c, s->row[at / g->n] * g->ldc + at % g->n);
    return GRAFT_OK;
}

/* An element of A or B, rounded to the type in which it is multiplied. */
static double dense_factor(const graft_gemm *g, const float *array, int64_t i)
{
    const double   value = element_of(g, array, i);
    const uint32_t bits = gr_float_bits((float)value);

    return g->type == GRAFT_BF16 ? (double)gr_bfloat_widen(gr_bfloat_narrow(bits, gr_bfloat_half(bits))) : value;
}

/* The expected element of C, and the tolerance for the module's element. With k + 2 roundings in any order the error of
 * a sum is at most (k + 2) eps / 2 of the sum of magnitudes, to first order (Higham 2002, section 3.1), and twice as
 * much is allowed here. Subnormal factors may count as 0. For doubles the tolerance is doubled again, because the
 * expected sum has the same error. */
struct expected {
    double value, magnitude, tolerance;
};

static struct expected expect(const graft_gemm *g, int64_t i, int64_t j, double before)
{
    struct expected e = { 0, 0, 0 };
    const int       is_wide = g->type == GRAFT_F64;
    double          factors = 0;

    for (int64_t p = 0; p < g->k; p++) {
        const double a = dense_factor(g, g->a, g->transpose_a ? p * g->lda + i : i * g->lda + p);
        const double b = dense_factor(g, g->b, g->transpose_b ? j * g->ldb + p : p * g->ldb + j);

        e.value += a * b;
        e.magnitude += fabs(a * b);
        factors += fabs(a) + fabs(b) + 1;
    }
    e.value = (double)g->alpha * e.value + before;
    e.magnitude = fabs((double)g->alpha) * e.magnitude + fabs(before);
    e.tolerance = (double)(g->k + 2) * (is_wide ? 2 * DBL_EPSILON : (double)FLT_EPSILON) * e.magnitude +
                  fabs((double)g->alpha) * factors * (is_wide ? DBL_MIN : (double)FLT_MIN);
    return e;
}

static int32_t compare_samples(const graft_gemm *g, const struct samples *s, const char *module, graft_error *error)
{
    for (int64_t at = 0; at < s->count * g->n; at++) {
        const int64_t         i = s->row[at / g->n], j = at % g->n;
        const double          before = s->before != NULL ? (double)g->beta * s->before[at] : 0;
        const struct expected e = expect(g, i, j, before);
        const double          found = element_of(g, g->c, i * g->ldc + j);

        if (fabs(found - e.value) <= e.tolerance) continue;
        if (!(e.magnitude < (g->type == GRAFT_F64 ? DBL_MAX : (double)FLT_MAX) / 2))
            continue; /* the sum may overflow */
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "check=full: C(%lld,%lld) of dense module %s is %.9g, but plain loops give %.9g", (long long)i,
                       (long long)j, module, found, e.value);
    }
    return GRAFT_OK;
}

int gr_dense_verifies(const graft_context *context)
{
    return gr_base_options(context)->check == GR_CHECK_FULL;
}

static int32_t run_gemm(const struct gr_module *module, const graft_gemm *g, graft_error *error)
{
    return gr_module_status(module, "gemm", module->table->dense->gemm(module->state, g, error), error);
}

int32_t gr_dense_run(graft_context *context, const struct gr_module *module, const graft_gemm *g, graft_error *error)
{
    struct samples s;
    int32_t        rc;

    if (!gr_dense_verifies(context)) return run_gemm(module, g, error);
    GR_TRY_DONE(take_samples(context, g, &s, error));
    GR_TRY_DONE(run_gemm(module, g, error));
    rc = compare_samples(g, &s, module->name, error);
done:
    gr_free(context, s.before);
    return rc;
}
