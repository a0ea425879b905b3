/* A small kernel module. Macros make it wrong in one way each. Every test module is this file, compiled with some of
 * the macros below; see meson.build.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_module.h"

#include <stdio.h>
#include <string.h>

#ifndef MODULE_PREFERENCE
#define MODULE_PREFERENCE 1000
#endif
#ifndef MODULE_KIND
#define MODULE_KIND "kernel"
#endif
#ifndef MODULE_ABI_MIN /* the versions of the contract with which it can be used */
#define MODULE_ABI_MIN 1u
#define MODULE_ABI_MAX 1u
#endif
#ifndef MODULE_ABI /* the version that it claims to have accepted */
#define MODULE_ABI GRAFT_ABI_VERSION
#endif
#ifndef MODULE_TABLE
#define MODULE_TABLE &table
#endif
#ifndef MODULE_TABLE_SIZE
#define MODULE_TABLE_SIZE sizeof table
#endif
#ifndef MODULE_KERNEL_SIZE
#define MODULE_KERNEL_SIZE sizeof kernel
#endif
#ifndef MODULE_ARGS_SIZE
#define MODULE_ARGS_SIZE sizeof(graft_mxm_args)
#endif
#ifndef MODULE_GEMM_SIZE
#define MODULE_GEMM_SIZE sizeof(graft_gemm)
#endif
#ifndef MODULE_KERNEL
#define MODULE_KERNEL &kernel
#endif
#ifndef MODULE_DENSE
#define MODULE_DENSE NULL
#endif
#ifndef MODULE_DESCRIPTION
#define MODULE_DESCRIPTION "sums of neighbours, for tests"
#endif
#ifndef MODULE_RUN
#define MODULE_RUN run
#endif
#ifndef MODULE_ENTRY_STATUS
#define MODULE_ENTRY_STATUS GRAFT_OK
#endif
#ifndef MODULE_INIT_STATUS
#define MODULE_INIT_STATUS GRAFT_OK
#endif
#ifndef MODULE_PREPARE_STATUS
#define MODULE_PREPARE_STATUS GRAFT_OK
#endif
#ifndef MODULE_RUN_STATUS
#define MODULE_RUN_STATUS GRAFT_OK
#endif

#ifndef MODULE_TELL /* how run() reports finished rows */
#define MODULE_TELL(args)
#endif

#ifdef MODULE_NOTE /* the statement that defines its note */
MODULE_NOTE;
#endif

/* Not every variant uses everything below. */
#define SPARE __attribute__((unused))

/* The state of the kernel, which is allocated from the host's memory. */
struct state {
    graft_host host;
};

#ifndef MODULE_WITHOUT_ENTRY

static int32_t fail(graft_error *error, int32_t code, const char *sentence)
{
    error->code = code;
    snprintf(error->message, sizeof error->message, "%s", sentence);
    return code;
}

static int32_t init(const graft_host *host, void **state, graft_error *error)
{
    struct state *made;

    if (MODULE_INIT_STATUS != 0) return fail(error, MODULE_INIT_STATUS, "the sample library is not licensed here");
    made = host->allocate(host->self, sizeof *made, 64);
    if (made == NULL) return fail(error, GRAFT_ERR_NOMEM, "no memory for the state of a sample");
    made->host = *host;
    *state = made;
    return GRAFT_OK;
}

static void fini(void *state)
{
    const graft_host host = ((struct state *)state)->host;

    host.deallocate(host.self, state, sizeof(struct state), 64);
}

/* This kernel supports sums over neighbours without values, in float, that write all of C. */
static int32_t supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state;
    if (a->values == NULL && a->index_type == GRAFT_I32 && args->semiring == GRAFT_PLUS_SECOND && args->flags == 0 &&
        args->mask == NULL && args->row_scale == NULL && args->c->dtype == GRAFT_F32)
        return GRAFT_OK;
    snprintf(why, capacity, "it does nothing but sums of float");
    return GRAFT_ERR_UNSUPPORTED;
}

static int32_t prepare(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error)
{
    const graft_host *host = &((struct state *)state)->host;

    (void)a;
    if (MODULE_PREPARE_STATUS != 0) return fail(error, MODULE_PREPARE_STATUS, "the sample cannot prepare");
    *prepared = host->allocate(host->self, 256, 64);
    if (*prepared == NULL) return fail(error, GRAFT_ERR_NOMEM, "no memory to prepare a sample");
    *bytes += 256;
    return GRAFT_OK;
}

static void release(void *state, void *prepared)
{
    const graft_host *host = &((struct state *)state)->host;

    host->deallocate(host->self, prepared, 256, 64);
}

SPARE static int32_t run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args,
                         graft_error *error)
{
    (void)state, (void)prepared;
    if (MODULE_RUN_STATUS != 0) return fail(error, MODULE_RUN_STATUS, "the sample library gave up");
#ifdef _OPENMP /* its threads continue to exist when the product has ended */
#pragma omp parallel for num_threads(2)
#endif
    for (int64_t i = 0; i < a->n_rows; i++) {
        float *c = (float *)args->c->data + i * args->c->stride;

        memset(c, 0, (size_t)args->c->n_cols * sizeof *c);
        for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++) {
            const float *b = (const float *)args->b->data + ((const int32_t *)a->col_idx)[e] * args->b->stride;

            for (int64_t j = 0; j < args->c->n_cols; j++) c[j] += b[j];
        }
    }
    MODULE_TELL(args);
    return GRAFT_OK;
}

SPARE static int32_t gemm(void *state, const graft_gemm *g, graft_error *error)
{
    (void)state;
    if (MODULE_GEMM_SIZE < sizeof *g && g->times != NULL)
        return fail(error, GRAFT_ERR_MODULE, "something unknown is asked for");
    return fail(error, GRAFT_ERR_MODULE, "the sample library cannot multiply");
}

SPARE static int32_t multiplies(void *state, graft_dtype type, char *why, uint64_t capacity)
{
    (void)state, (void)type;
    snprintf(why, capacity, "it cannot multiply");
    return GRAFT_ERR_UNSUPPORTED;
}

SPARE static const graft_kernel_ops kernel = {
    .size = MODULE_KERNEL_SIZE,
    .preference = MODULE_PREFERENCE,
    .args_size = MODULE_ARGS_SIZE,
    .description = MODULE_DESCRIPTION,
    .init = init,
    .fini = fini,
    .supports = supports,
    .prepare = prepare,
    .release = release,
    .run = MODULE_RUN,
};
SPARE static const graft_dense_ops dense = {
    .size = sizeof dense,
    .preference = -1, /* auto never chooses it, so it is used only if asked for by name */
    .description = MODULE_DESCRIPTION,
    .init = init,
    .fini = fini,
    .gemm = gemm,
    .supports = multiplies,
    .gemm_size = MODULE_GEMM_SIZE,
};
SPARE static const graft_module_table table = {
    .size = MODULE_TABLE_SIZE,
    .abi = MODULE_ABI,
    .kind = MODULE_KIND,
    .name = MODULE_NAME,
    .kernel = MODULE_KERNEL,
    .dense = MODULE_DENSE,
};

#ifdef MODULE_LONG
/* Tables of a later header, with fields that the library does not know. */
static struct {
    graft_module_table known;
    unsigned char      tail[64];
} long_table;
static struct {
    graft_kernel_ops known;
    unsigned char    tail[64];
} long_kernel;

static const graft_module_table *lengthen(void)
{
    memset(&long_table, 0x5A, sizeof long_table);
    memset(&long_kernel, 0x5A, sizeof long_kernel);
    long_kernel.known = kernel;
    long_kernel.known.size = sizeof long_kernel;
    long_kernel.known.args_size = sizeof(graft_mxm_args) + 64;
    long_table.known = table;
    long_table.known.size = sizeof long_table;
    long_table.known.kernel = &long_kernel.known;
    return &long_table.known;
}
#endif

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    if (MODULE_ABI_MIN > abi_max || MODULE_ABI_MAX < abi_min) {
        char sentence[128];

        snprintf(sentence, sizeof sentence, "the library drives versions %u to %u, this sample knows %u to %u", abi_min,
                 abi_max, MODULE_ABI_MIN, MODULE_ABI_MAX);
        return fail(error, GRAFT_ERR_VERSION, sentence);
    }
    *out = MODULE_TABLE;
    return MODULE_ENTRY_STATUS;
}

#elif defined MODULE_ANCHOR

/* This file then has no graft_module(), but is linked with a library that has one. */
int graft_decoy_anchor(void);
int graft_sample_anchor(void);
int graft_sample_anchor(void)
{
    return graft_decoy_anchor();
}

#endif
