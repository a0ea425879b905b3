/* A kernel module in 100 lines: sums over neighbours, in float, with masks. Other kernels compute all else.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

#include <stdio.h>

enum { PREFERENCE = 50 };                           /* lower than the library's own: see graft_module.h */
GRAFT_MODULE_NOTE("kernel", "example", PREFERENCE); /* the library reads this note before it loads the file */

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    (void)host, (void)error;
    *state = NULL; /* a real kernel stores `host`, to allocate memory and to write to the log */
    return GRAFT_OK;
}

static void fini(void *state)
{
    (void)state;
}

static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state;
    if (a->index_type == GRAFT_I32 && (a->values == NULL || a->value_type == GRAFT_F32) &&
        args->b->dtype == GRAFT_F32 && args->c->dtype == GRAFT_F32 && args->semiring <= GRAFT_PLUS_SECOND &&
        args->epilogue == NULL)
        return GRAFT_OK;
    snprintf(why, capacity, "it has sums of float with 32-bit columns, and no epilogues");
    return GRAFT_ERR_UNSUPPORTED;
}

static int32_t prepare(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error)
{
    (void)state, (void)a, (void)bytes, (void)error;
    *prepared = NULL; /* a real kernel splits the rows into tasks here */
    return GRAFT_OK;
}

static void release(void *state, void *prepared)
{
    (void)state, (void)prepared;
}

static int is_allowed(const graft_mask *mask, int64_t i, int64_t j)
{
    int present = 1, value = 1;

    if (mask == NULL) return 1;
    if (mask->kind == GRAFT_MASK_ROWS) present = mask->present[i / 8] >> i % 8 & 1;
    if (mask->kind == GRAFT_MASK_BITS) present = mask->present[i * mask->stride + j / 8] >> j % 8 & 1;
    if (mask->kind == GRAFT_MASK_BYTES && mask->present != NULL) present = mask->present[i * mask->stride + j] != 0;
    if (mask->kind == GRAFT_MASK_BYTES && mask->values != NULL && !(mask->flags & GRAFT_MASK_STRUCTURE))
        value = mask->values[i * mask->stride + j] != 0;
    return (present && value) != ((mask->flags & GRAFT_MASK_COMPLEMENT) != 0);
}

/* Compute the product on one thread, one element after the other. graft_mxm_api.run() defines the result. */
static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    const int32_t *columns = a->col_idx;
    const float   *values = args->semiring == GRAFT_PLUS_TIMES ? a->values : NULL, *scale = args->row_scale;

    (void)state, (void)prepared, (void)error;
    for (int64_t at = 0; at < args->c->n_rows * args->c->n_cols; at++) {
        const int64_t i = at / args->c->n_cols, j = at % args->c->n_cols, end = a->row_ptr[i + 1];
        float        *c = (float *)args->c->data + i * args->c->stride + j, z = 0;

        for (int64_t e = a->row_ptr[i]; e < end; e++)
            z += (values != NULL ? values[e] : 1) * ((const float *)args->b->data)[columns[e] * args->b->stride + j];
        if (scale != NULL && a->row_ptr[i] < end) z *= scale[i];
        if (!is_allowed(args->mask, i, j)) *c = args->flags & GRAFT_MXM_REPLACE ? 0 : *c;
        else if (args->flags & GRAFT_MXM_ACCUMULATE) *c += z;
        else *c = z;
    }
    return GRAFT_OK; /* without calls of args->rows_done, so the library makes them */
}

static const graft_kernel_ops   kernel = { .size = sizeof kernel,
                                           .preference = PREFERENCE,
                                           .description = "an example",
                                           .init = init,
                                           .fini = fini,
                                           .supports = supports,
                                           .prepare = prepare,
                                           .release = release,
                                           .run = run,
                                           .args_size = sizeof(graft_mxm_args) };
static const graft_module_table table = {
    .size = sizeof table, .abi = GRAFT_ABI_VERSION, .kind = "kernel", .name = "example", .kernel = &kernel
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **mine, graft_error *error)
{
    const int fits = abi_min <= GRAFT_ABI_VERSION && GRAFT_ABI_VERSION <= abi_max;

    if (fits) *mine = &table;
    else snprintf(error->message, sizeof error->message, "it has version 1, the library %u to %u", abi_min, abi_max);
    return fits ? GRAFT_OK : GRAFT_ERR_VERSION;
}
