/* Conversion between float and bfloat16.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/bfloat.h"
#include "base/parallel.h"
#include "kernel/kernel.h"

enum { CONVERT_ROWS = 256 };

struct convert {
    const graft_dense *from, *to;
};

static void narrow_rows(void *arg, int64_t begin, int64_t end)
{
    const struct convert *c = arg;

    for (int64_t row = begin; row < end; row++) {
        const float *from = (const float *)c->from->data + row * c->from->stride;
        uint16_t    *to = (uint16_t *)c->to->data + row * c->to->stride;

        for (int64_t j = 0; j < c->from->n_cols; j++) {
            const uint32_t bits = gr_float_bits(from[j]);

            to[j] = gr_bfloat_narrow(bits, gr_bfloat_half(bits));
        }
    }
}

static void widen_rows(void *arg, int64_t begin, int64_t end)
{
    const struct convert *c = arg;

    for (int64_t row = begin; row < end; row++) {
        const uint16_t *from = (const uint16_t *)c->from->data + row * c->from->stride;
        float          *to = (float *)c->to->data + row * c->to->stride;

        for (int64_t j = 0; j < c->from->n_cols; j++) to[j] = gr_bfloat_widen(from[j]);
    }
}

int32_t gr_kernel_dense_convert(const graft_dense *from, const graft_dense *to, struct gr_team team, graft_error *error)
{
    const int      narrows = from->dtype == GRAFT_F32 && to->dtype == GRAFT_BF16;
    struct convert convert = { from, to };

    if (!narrows && !(from->dtype == GRAFT_BF16 && to->dtype == GRAFT_F32)) {
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "from has dtype %d and to has dtype %d, expected GRAFT_F32 (1) and GRAFT_BF16 (6) or the reverse",
            from->dtype, to->dtype);
    }
    if (from->n_rows != to->n_rows || from->n_cols != to->n_cols) {
        return gr_fail(error, GRAFT_ERR_ARG, "from is %lld x %lld, but to is %lld x %lld", (long long)from->n_rows,
                       (long long)from->n_cols, (long long)to->n_rows, (long long)to->n_cols);
    }
    if (gr_kernel_dense_overlaps(from, to)) return gr_fail(error, GRAFT_ERR_ARG, "from overlaps to in memory");
    gr_parallel_rows(team, from->n_rows * from->n_cols, from->n_rows, CONVERT_ROWS, narrows ? narrow_rows : widen_rows,
                     &convert);
    return GRAFT_OK;
}
