/* Option mxm.verify: the reference kernel repeats sampled rows of every product, and the results are compared.
 *
 * A sampled row is a separate product, whose A has one row. The elements of C that the product reads and overwrites are
 * saved before it runs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/bfloat.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "base/options.h"
#include "base/random.h"
#include "kernel/kernel.h"
#include "kernel/options.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FULL_SAMPLES = 8 }; /* sampled rows with check=full */

/* One sampled row as a product. */
struct single {
    graft_csr      a;
    int64_t        row_ptr[2];
    graft_dense    c, residual;
    graft_mask     mask;
    uint8_t        row_bit;
    graft_epilogue epilogue;
    int64_t        vertex;
    graft_mxm_args args;
};

struct gr_verify {
    graft_context        *context;
    const graft_mxm_args *args;
    int64_t               n_samples;
    int64_t              *rows;
    char                 *c; /* [n_samples x width] rows of C: the values before the product, then the expected ones */
    char                 *winner;   /* [n_samples x width] winners, saved and expected as in c */
    char                 *residual; /* [n_samples x width] rows of the residual, which may be C itself; or NULL */
};

static int64_t element_bytes(const graft_mxm_args *args)
{
    return gr_dtype_bytes(args->c->dtype);
}

static int64_t column_bytes(const graft_mxm_args *args)
{
    return gr_dtype_bytes(args->a->csr.index_type);
}

static const char *dense_row(const graft_dense *dense, int64_t row, int64_t element)
{
    return (const char *)dense->data + row * dense->stride * element;
}

static void save_row(const struct gr_verify *v, int64_t sample)
{
    const graft_mxm_args *args = v->args;
    const int64_t         width = args->c->n_cols, e = element_bytes(args), row = v->rows[sample];

    memcpy(v->c + sample * width * e, dense_row(args->c, row, e), (uint64_t)(width * e));
    if (args->winner != NULL) {
        const int64_t i = column_bytes(args);
        memcpy(v->winner + sample * width * i, (const char *)args->winner + row * args->winner_stride * i,
               (uint64_t)(width * i));
    }
    if (v->residual != NULL) {
        memcpy(v->residual + sample * width * e, dense_row(args->epilogue->residual, row, e), (uint64_t)(width * e));
    }
}

static int64_t samples_of(const graft_context *context)
{
    const int64_t chosen = gr_kernel_options(context)->verify;

    return chosen == 0 && gr_base_options(context)->check == GR_CHECK_FULL ? FULL_SAMPLES : chosen;
}

int gr_mxm_verifies(const graft_context *context)
{
    return samples_of(context) > 0;
}

int32_t gr_mxm_verify_begin(graft_context *context, const graft_mxm_args *args, struct gr_verify **verify,
                            graft_error *error)
{
    const int64_t     asked = samples_of(context);
    const int64_t     m = args->c->n_rows;
    const int64_t     width = args->c->n_cols;
    struct gr_verify *v = NULL;
    int32_t           rc = GRAFT_OK;

    *verify = NULL;
    if (asked == 0 || m == 0 || width == 0) return GRAFT_OK;
    GR_TRY_DONE(GR_NEW(context, v, 1, error));
    v->context = context;
    v->args = args;
    v->n_samples = asked < m ? asked : m;
    GR_TRY_DONE(GR_NEW(context, v->rows, v->n_samples, error));
    GR_TRY_DONE(GR_NEW(context, v->c, v->n_samples * width * element_bytes(args), error));
    if (args->winner != NULL) GR_TRY_DONE(GR_NEW(context, v->winner, v->n_samples * width * column_bytes(args), error));
    if (args->epilogue != NULL && args->epilogue->residual != NULL) {
        GR_TRY_DONE(GR_NEW(context, v->residual, v->n_samples * width * element_bytes(args), error));
    }
    for (int64_t s = 0; s < v->n_samples; s++) {
        uint32_t bits[4];

        gr_random_block(context->verified++, (uint64_t)s, 0, bits);
        v->rows[s] = asked < m ? (int64_t)(((uint64_t)bits[0] << 31 ^ bits[1]) % (uint64_t)m) : s;
        save_row(v, s);
    }
    *verify = v;
    v = NULL;
done:
    gr_mxm_verify_end(v);
    return rc;
}

void gr_mxm_verify_end(struct gr_verify *v)
{
    if (v == NULL) return;
    gr_free(v->context, v->rows);
    gr_free(v->context, v->c);
    gr_free(v->context, v->winner);
    gr_free(v->context, v->residual);
    gr_free(v->context, v);
}

static void single_mask(struct single *one, const graft_mask *mask, int64_t row)
{
    one->mask = *mask;
    if (mask->kind == GRAFT_MASK_ROWS) {
        one->row_bit = mask->present[row >> 3] >> (row & 7) & 1;
        one->mask.present = &one->row_bit;
    } else {
        if (mask->present != NULL) one->mask.present = mask->present + row * mask->stride;
        if (mask->values != NULL) one->mask.values = mask->values + row * mask->stride;
    }
    one->args.mask = &one->mask;
}

static void single_epilogue(struct single *one, const struct gr_verify *v, int64_t sample, int64_t row)
{
    one->epilogue = *v->args->epilogue;
    one->vertex = one->epilogue.vertex != NULL ? one->epilogue.vertex[row] : row;
    one->epilogue.vertex = &one->vertex;
    one->epilogue.bits = NULL;
    if (v->residual != NULL) {
        one->residual = one->c;
        one->residual.data = v->residual + sample * v->args->c->n_cols * element_bytes(v->args);
        one->epilogue.residual = &one->residual;
    }
    one->args.epilogue = &one->epilogue;
}

/* Set up the product of a sampled row. It writes its result over the saved row of C. */
static void set_up_single(struct single *one, const struct gr_verify *v, int64_t sample)
{
    const graft_mxm_args *args = v->args;
    const graft_csr      *a = &args->a->csr;
    const int64_t         row = v->rows[sample], e = element_bytes(args), width = args->c->n_cols;

    GR_ASSERT(row >= 0 && row < a->n_rows);
    memset(one, 0, sizeof *one);
    one->a = *a;
    one->a.n_rows = 1;
    one->a.row_ptr = one->row_ptr;
    one->row_ptr[1] = a->row_ptr[row + 1] - a->row_ptr[row];
    one->a.col_idx = (const char *)a->col_idx + a->row_ptr[row] * column_bytes(args);
    if (a->values != NULL) one->a.values = (const char *)a->values + a->row_ptr[row] * e;
    one->c = *args->c;
    one->c.n_rows = 1;
    one->c.data = v->c + sample * width * e;
    one->c.stride = width;
    one->args = *args;
    one->args.c = &one->c;
    one->args.threads = 1;
    one->args.times = NULL;
    one->args.poll = NULL;
    one->args.rows_done = NULL;
    if (args->mask != NULL) single_mask(one, args->mask, row);
    if (args->row_scale != NULL) one->args.row_scale = (const char *)args->row_scale + row * e;
    if (args->winner != NULL) one->args.winner = v->winner + sample * width * column_bytes(args);
    if (args->epilogue != NULL) single_epilogue(one, v, sample, row);
}

static double value_at(const void *data, graft_dtype dtype, int64_t at)
{
    if (dtype == GRAFT_F64) return ((const double *)data)[at];
    if (dtype == GRAFT_F32) return (double)((const float *)data)[at];
    return (double)gr_bfloat_widen(((const uint16_t *)data)[at]);
}

/* The sum of |a_ik b_kj| over the entries of the row. */
static double magnitude(const struct single *one, int64_t j)
{
    const graft_dense *b = one->args.b;
    const int          times = one->args.semiring == GRAFT_PLUS_TIMES && one->a.values != NULL;
    double             sum = 0;

    for (int64_t e = 0; e < one->row_ptr[1]; e++) {
        const int64_t k = one->a.index_type == GRAFT_I32 ? ((const int32_t *)one->a.col_idx)[e]
                                                         : ((const int64_t *)one->a.col_idx)[e];

        sum += fabs((times ? value_at(one->a.values, one->c.dtype, e) : 1) *
                    value_at(b->data, b->dtype, k * b->stride + j));
    }
    return sum;
}

/* The largest difference between two correct sums of column j: 2 ulp of the sum of magnitudes for each addition. Maxima
 * and minima are exact. */
static double tolerance(const struct single *one, int64_t j, double expected)
{
    const graft_epilogue *epilogue = one->args.epilogue;
    const graft_dtype     dtype = one->c.dtype;
    const double          eps = dtype == GRAFT_F32 ? (double)FLT_EPSILON : DBL_EPSILON;
    double                sum;

    if (!gr_semiring_is_sum(one->args.semiring)) return 0;
    sum = magnitude(one, j);
    if (one->args.row_scale != NULL) sum *= fabs(value_at(one->args.row_scale, dtype, 0));
    if (epilogue != NULL && epilogue->bias != NULL) sum += fabs(value_at(epilogue->bias, dtype, j));
    if (epilogue != NULL && epilogue->residual != NULL) sum += fabs(value_at(epilogue->residual->data, dtype, j));
    if (epilogue != NULL) sum /= 1 - epilogue->dropout;
    return 2 * eps * ((double)(one->row_ptr[1] + 4) * sum + fabs(expected));
}

static int64_t winner_at(const graft_mxm_args *args, const void *winner, int64_t at)
{
    return column_bytes(args) == 4 ? ((const int32_t *)winner)[at] : ((const int64_t *)winner)[at];
}

static int32_t compare_winners(const struct gr_verify *v, const struct single *one, int64_t row, const char *kernel,
                               graft_error *error)
{
    const graft_mxm_args *args = v->args;

    for (int64_t j = 0; j < args->c->n_cols && args->winner != NULL; j++) {
        const int64_t found = winner_at(args, args->winner, row * args->winner_stride + j);
        const int64_t expected = winner_at(args, one->args.winner, j);

        if (found == expected) continue;
        return gr_fail(error, GRAFT_ERR_MODULE, "winner(%lld,%lld) of kernel %s is %lld, but reference gives %lld",
                       (long long)row, (long long)j, kernel, (long long)found, (long long)expected);
    }
    return GRAFT_OK;
}

static int32_t compare_row(const struct gr_verify *v, const struct single *one, int64_t row, const char *kernel,
                           graft_error *error)
{
    const graft_mxm_args *args = v->args;
    int                   warned = 0;

    for (int64_t j = 0; j < args->c->n_cols; j++) {
        const double found = value_at(args->c->data, args->c->dtype, row * args->c->stride + j);
        const double expected = value_at(one->c.data, one->c.dtype, j);

        if (isnan(found) && isnan(expected)) {
            if (!warned++)
                gr_log(v->context, GRAFT_LOG_WARNING,
                       "C(%lld,%lld) of a verified product is NaN; the input values give this result", (long long)row,
                       (long long)j);
            continue;
        }
        if (found == expected) continue;
        if (isfinite(expected) && fabs(found - expected) <= tolerance(one, j, expected)) continue;
        return gr_fail(error, GRAFT_ERR_MODULE, "C(%lld,%lld) of kernel %s is %.9g, but reference gives %.9g",
                       (long long)row, (long long)j, kernel, found, expected);
    }
    return compare_winners(v, one, row, kernel, error);
}

int32_t gr_mxm_verify_compare(const struct gr_verify *v, const char *kernel, graft_error *error)
{
    const graft_kernel_ops *reference = gr_kernel_reference.kernel;
    struct single           one;
    int32_t                 rc = GRAFT_OK;

    for (int64_t s = 0; s < v->n_samples && rc == GRAFT_OK; s++) {
        set_up_single(&one, v, s);
        rc = reference->run(NULL, NULL, &one.a, &one.args, error);
        if (rc == GRAFT_OK) rc = compare_row(v, &one, v->rows[s], kernel, error);
    }
    return rc;
}
