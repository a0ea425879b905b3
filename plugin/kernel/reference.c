/* Kernel "reference": the definition of graft.mxm/1 run() as plain loops. It supports every case, and is the oracle
 * that faster kernels are compared with.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/kernel.h"

#include "base/assert.h"
#include "base/bfloat.h"
#include "base/dropout.h"
#include "base/limits.h"
#include "base/parallel.h"
#include "kernel/mask.h"

enum { STRIP = 64 };

static int64_t column(const graft_csr *a, int64_t e)
{
    return a->index_type == GRAFT_I32 ? ((const int32_t *)a->col_idx)[e] : ((const int64_t *)a->col_idx)[e];
}

static void put_winner(const graft_csr *a, const graft_mxm_args *args, int64_t row, int64_t j, int64_t winner)
{
    const int64_t at = row * args->winner_stride + j;

    if (args->winner == NULL) return;
    if (a->index_type == GRAFT_I32) ((int32_t *)args->winner)[at] = (int32_t)winner;
    else ((int64_t *)args->winner)[at] = winner;
}

static void put_bit(const graft_epilogue *epilogue, int64_t row, int64_t j, int bit)
{
    uint8_t *byte;

    if (epilogue->bits == NULL) return;
    byte = epilogue->bits + row * epilogue->bits_stride + j / 8;
    if ((j & 7) == 0) *byte = 0; /* Columns come in order, so this also clears the unused bits of the last byte. */
    *byte |= (uint8_t)(bit << (j & 7));
}

/* One element of B, which may be bfloat16 where C is float. */
static float f32_element(const graft_dense *b, int64_t at)
{
    return b->dtype == GRAFT_F32 ? ((const float *)b->data)[at] : gr_bfloat_widen(((const uint16_t *)b->data)[at]);
}

static double f64_element(const graft_dense *b, int64_t at)
{
    return ((const double *)b->data)[at];
}

/* Whether v replaces the best value so far: it is better, or it is a NaN and the best is a number. */
static int f32_wins(float v, float best, float sign)
{
    return best == best && !(sign * v <= sign * best);
}

static int f64_wins(double v, double best, double sign)
{
    return best == best && !(sign * v <= sign * best);
}

#define REAL float
#define NAME(noun) f32_##noun
#include "kernel/reference_row.h"
#undef REAL
#undef NAME

#define REAL double
#define NAME(noun) f64_##noun
#include "kernel/reference_row.h"
#undef REAL
#undef NAME

static int32_t reference_init(const graft_host *host, void **state, graft_error *error)
{
    (void)host, (void)error;
    *state = NULL;
    return GRAFT_OK;
}

static void reference_fini(void *state)
{
    (void)state;
}

static int32_t reference_supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why,
                                  uint64_t capacity)
{
    (void)state, (void)a, (void)args, (void)why, (void)capacity;
    return GRAFT_OK;
}

static int32_t reference_prepare(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error)
{
    (void)state, (void)a, (void)bytes, (void)error;
    *prepared = NULL;
    return GRAFT_OK;
}

static void reference_release(void *state, void *prepared)
{
    (void)state, (void)prepared;
}

struct reference_product {
    const graft_csr      *a;
    const graft_mxm_args *args;
};

static void reference_rows(void *arg, int64_t begin, int64_t end)
{
    const struct reference_product *job = arg;
    const graft_mxm_args           *args = job->args;

    for (int64_t row = begin; row < end; row++) {
        if (args->c->dtype == GRAFT_F32) f32_row(job->a, args, row);
        else f64_row(job->a, args, row);
    }
    if (args->rows_done != NULL) args->rows_done(args->rows_arg, omp_get_thread_num(), begin, end);
}

static int32_t reference_run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args,
                             graft_error *error)
{
    const struct gr_team team = {
        .threads = args->threads, .times = args->times, .poll = args->poll, .poll_arg = args->poll_arg
    };
    struct reference_product job = { a, args };

    GR_ASSERT(args->threads > 0 && args->b->n_rows == a->n_cols && args->c->n_rows == a->n_rows);
    (void)state, (void)prepared, (void)error;
    gr_parallel_rows(team, (a->row_ptr[a->n_rows] + a->n_rows) * args->c->n_cols, a->n_rows, GR_ROWS_AT_ONCE,
                     reference_rows, &job);
    return GRAFT_OK;
}

static const graft_kernel_ops reference_kernel = {
    .size = sizeof reference_kernel,
    .args_size = sizeof(graft_mxm_args),
    .preference = 0,
    .description = "plain loops, every case",
    .init = reference_init,
    .fini = reference_fini,
    .supports = reference_supports,
    .prepare = reference_prepare,
    .release = reference_release,
    .run = reference_run,
};

const graft_module_table gr_kernel_reference = {
    .size = sizeof gr_kernel_reference,
    .abi = GRAFT_ABI_VERSION,
    .kind = "kernel",
    .name = "reference",
    .kernel = &reference_kernel,
};
