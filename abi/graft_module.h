/* Graft modules: what a kernel, dense or transport module offers to the library. A module is a shared library named
 * graft_KIND_NAME.so that exports one function, graft_module(). Hosts do not need this header.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MODULE_H
#define GRAFT_MODULE_H

#include "graft_mxm.h"
#include "graft_transport.h"

GRAFT_EXTERN_C_BEGIN

/* Modules keep the manners of the library: they print nothing, set no global state of the process, free all they
 * allocate in fini(), and are linked with -z nodelete. They are called by one thread at a time per state. `host` is
 * complete here: every function of it may be called. */

/** A way to do graft.mxm/1 run().
 *
 *  The library has checked the arguments and gives the graph twice: to prepare() once, which may make its own arrays,
 *  and to run() with what prepare() made. `args->a` is not for kernels; `args->threads` is at least 1. */
typedef struct graft_kernel {
    uint32_t    size;
    int32_t     preference; /**< "auto" takes the highest that supports a case. The plain loops have 0. */
    const char *description;

    /** Make the state for one context. \return OK; ERR_NOMEM; ERR_MODULE; ERR_UNSUPPORTED (with the reason in error).
     *  */
    int32_t (*init)(const graft_host *host, void **state, graft_error *error);
    void (*fini)(void *state);

    /** Whether the kernel can do these arguments: OK, or ERR_UNSUPPORTED with a clause in why[capacity] that completes
     *  "KERNEL cannot: ...". Looks at types and shapes, not at elements. */
    int32_t (*supports)(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity);

    /** Make what run() needs for this matrix and add its bytes to *bytes. May answer ERR_UNSUPPORTED, with the reason
     *  in error, for a matrix it cannot take. Everything in `a` stays until release(). */
    int32_t (*prepare)(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error);
    void (*release)(void *state, void *prepared);

    /** Do it. May answer ERR_UNSUPPORTED, with the reason in error, before it has written anything. If it calls
     *  args->rows_done, then for every row, or the product is ERR_MODULE; if it never does, the library does. */
    int32_t (*run)(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error);

    uint32_t args_size; /**< sizeof(graft_mxm_args) as the module knows it: it is not asked for what lies beyond */
    uint32_t reserved;
} graft_kernel;

/** C = alpha op(A) op(B) + beta C by rows, float; op(A) [m x k], op(B) [k x n]. With beta 0, C is not read. */
typedef struct graft_gemm {
    uint32_t     size;
    int32_t      threads;                  /**< at most so many, at least 1 */
    int32_t      transpose_a, transpose_b; /**< 0 or 1 */
    int64_t      m, n, k;
    float        alpha, beta;
    const float *a;
    int64_t      lda; /**< elements from one stored row of A to the next */
    const float *b;
    int64_t      ldb;
    float       *c;
    int64_t      ldc;
    /** NULL, or called by the thread that has finished rows begin to end - 1 of C while they are in its caches: every
     *  row once, from several threads at once. It may overwrite them. */
    void (*rows_done)(void *arg, int64_t begin, int64_t end);
    void       *rows_arg;
    double     *times; /**< [threads x 3] or NULL, as in graft_mxm_args */
    graft_dtype type;  /**< GRAFT_F32; GRAFT_BF16: elements of A and B are rounded to bfloat16, to the nearest, ties to
                           even, before they are multiplied, and added in float. Subnormals may become 0. */
    uint32_t    reserved;
} graft_gemm;

/** A way to do dense products. The bits of C must not depend on gemm->threads. */
typedef struct graft_dense_ops {
    uint32_t    size;
    int32_t     preference;
    const char *description;
    int32_t (*init)(const graft_host *host, void **state, graft_error *error);
    void (*fini)(void *state);
    /** Do it. \return OK; ERR_NOMEM; ERR_MODULE; ERR_UNSUPPORTED (rows longer than it can say; of bfloat16, an alpha
     *  other than 1 or a beta other than 0 and 1), and C is as it was then. */
    int32_t (*gemm)(void *state, const graft_gemm *gemm, graft_error *error);

    /** Whether gemm() can multiply elements of this type on this machine: OK, or ERR_UNSUPPORTED with a clause in
     *  why[capacity] that completes "MODULE cannot: ...". GRAFT_F32 is not asked for. */
    int32_t (*supports)(void *state, graft_dtype type, char *why, uint64_t capacity);

    uint32_t gemm_size; /**< sizeof(graft_gemm) as the module knows it: nothing is asked of it that lies beyond */
    uint32_t reserved;
} graft_dense_ops;

/** A way to move bytes between ranks. */
typedef struct graft_transport_ops {
    uint32_t    size;
    uint32_t    reserved;
    const char *description;

    /** Do what graft_transports.open() promises. `communicator` is complete; *transport is zero but for its size. The
     *  functions of `host` stay valid until close(). */
    int32_t (*open)(const graft_host *host, const graft_communicator *communicator, graft_transport *transport,
                    graft_error *error);
} graft_transport_ops;

/** What a module is. Exactly one of the tables is not NULL. Static storage of the module. */
typedef struct graft_module_table {
    uint32_t                   size;
    uint32_t                   abi;  /**< the version of the contract it will be driven by */
    const char                *kind; /**< "kernel", "dense" or "transport", as in the file name */
    const char                *name; /**< as in the file name */
    const graft_kernel        *kernel;
    const graft_dense_ops     *dense;
    const graft_transport_ops *transport;
} graft_module_table;

/** The type of graft_module(), the only function a module exports. The library gives the range of versions it can
 *  drive; the module takes the largest it knows, or answers ERR_VERSION with both ranges in the message. */
typedef int32_t (*graft_module_fn)(uint32_t abi_min, uint32_t abi_max, const graft_module_table **table,
                                   graft_error *error);
GRAFT_API int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **table,
                               graft_error *error);

GRAFT_EXTERN_C_END
#endif
