/* A kernel that is as slow as a remote accelerator: after a product the calling thread sleeps. For
 * test_workers_modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"
#include "sleep.h"

#define MODULE_NAME "slow"
#define MODULE_DESCRIPTION "an accelerator that sleeps, for tests"

enum { ELEMENTS_A_SECOND = 20000000 };

static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state, (void)why, (void)capacity;
    if (args->semiring != GRAFT_PLUS_TIMES || args->mask != NULL || args->epilogue != NULL)
        return GRAFT_ERR_UNSUPPORTED;
    if (a->index_type != GRAFT_I32 || (a->values != NULL && a->value_type != GRAFT_F32)) return GRAFT_ERR_UNSUPPORTED;
    return args->b->dtype == GRAFT_F32 && args->c->dtype == GRAFT_F32 ? GRAFT_OK : GRAFT_ERR_UNSUPPORTED;
}

/* Sum the rows of B that the entries of a row of A name, in their order. */
static void add_row(const graft_csr *a, const graft_mxm_args *args, int64_t row)
{
    const float scale = args->row_scale != NULL ? ((const float *)args->row_scale)[row] : 1;
    float      *c = (float *)args->c->data + row * args->c->stride;

    for (int64_t j = 0; j < args->c->n_cols; j++) {
        float sum = 0;

        for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++)
            sum += (a->values != NULL ? ((const float *)a->values)[e] : 1) *
                   ((const float *)args->b->data)[((const int32_t *)a->col_idx)[e] * args->b->stride + j];
        c[j] = (args->flags & GRAFT_MXM_ACCUMULATE ? c[j] : 0) + scale * sum;
    }
}

static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    (void)state, (void)prepared, (void)error;
    for (int64_t row = 0; row < a->n_rows; row++) add_row(a, args, row);
    sleep_seconds((double)(a->row_ptr[a->n_rows] - a->row_ptr[0]) * (double)args->c->n_cols / ELEMENTS_A_SECOND);
    return GRAFT_OK;
}

#include "plain_kernel.h"
