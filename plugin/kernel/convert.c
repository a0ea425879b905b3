/* Conversion between float and bfloat16.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/bfloat.h"
#include "base/parallel.h"
#include "kernel/kernel.h"

int32_t gr_dense_convert(const graft_dense *from, const graft_dense *to, int threads, graft_error *error)
{
    const int to_half = from->dtype == GRAFT_F32 && to->dtype == GRAFT_BF16;

    GR_ASSERT(threads > 0);
    if (!to_half && !(from->dtype == GRAFT_BF16 && to->dtype == GRAFT_F32)) {
        return gr_fail(
            error, GRAFT_ERR_ARG,
            "from has dtype %d and to has dtype %d, expected GRAFT_F32 (1) and GRAFT_BF16 (6) or the reverse",
            from->dtype, to->dtype);
    }
    if (from->n_rows != to->n_rows || from->n_cols != to->n_cols) {
        return gr_fail(error, GRAFT_ERR_ARG, "from is %lld x %lld, but to is %lld x %lld", (long long)from->n_rows,
                       (long long)from->n_cols, (long long)to->n_rows, (long long)to->n_cols);
    }
    if (gr_dense_overlap(from, to)) return gr_fail(error, GRAFT_ERR_ARG, "from overlaps to in memory");
    threads = gr_threads_worth(threads, from->n_rows * from->n_cols);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t row = 0; row < from->n_rows; row++) {
        const int64_t at = row * from->stride, put = row * to->stride;

        for (int64_t j = 0; j < from->n_cols && to_half; j++) {
            const uint32_t bits = gr_float_bits(((const float *)from->data)[at + j]);

            ((uint16_t *)to->data)[put + j] = gr_bfloat_narrow(bits, gr_bfloat_half(bits));
        }
        for (int64_t j = 0; j < from->n_cols && !to_half; j++) {
            ((float *)to->data)[put + j] = gr_bfloat_widen(((const uint16_t *)from->data)[at + j]);
        }
    }
    return GRAFT_OK;
}
