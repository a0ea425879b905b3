/* A kernel whose sums are too large by 1, which option mxm.verify must find.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

#define MODULE_NAME "wrong"
#define MODULE_DESCRIPTION "one too many, for tests"

static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state, (void)a, (void)why, (void)capacity;
    return args->c->dtype == GRAFT_F32 && args->mask == NULL && args->b->dtype == GRAFT_F32 ? GRAFT_OK
                                                                                            : GRAFT_ERR_UNSUPPORTED;
}

static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    (void)state, (void)prepared, (void)error;
    for (int64_t row = 0; row < a->n_rows; row++) {
        float *c = (float *)args->c->data + row * args->c->stride;

        for (int64_t j = 0; j < args->c->n_cols; j++) c[j] = 1;
        for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
            const float *b = (const float *)args->b->data + ((const int32_t *)a->col_idx)[e] * args->b->stride;

            for (int64_t j = 0; j < args->c->n_cols; j++) c[j] += b[j];
        }
    }
    return GRAFT_OK;
}

#include "plain_kernel.h"
