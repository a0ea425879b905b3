/* Graft modules: the interface of a kernel, dense or transport module. A module is a shared library named
 * graft_KIND_NAME.so that exports one function, graft_module(). Hosts do not need this header.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MODULE_H
#define GRAFT_MODULE_H

#include "graft_mxm.h"
#include "graft_transport.h"

GRAFT_EXTERN_C_BEGIN

/* Modules follow the rules of the library: they print nothing, set no global state of the process, free all memory in
 * fini(), and are linked with -z nodelete. They are called by one thread at a time for each state. `host` is complete:
 * all its functions may be called. Handlers of the host's signals may run in each of its threads, on the normal stack.
 * A module with code that keeps data below the stack pointer, as generated code may, blocks signals during its calls,
 * but for signals of faults, and not while it calls the host.
 *
 * A library that a process can start only once, such as GraphBLAS, belongs to the host. A module starts it when it is
 * first used by name, and never if the library was in the process before the module, or with the flag
 * GRAFT_HOST_STARTS_LIBRARIES; such a module has a preference below 0.
 *
 * Preferences. With "auto" the modules of a kind are tried by falling preference, equal ones by name, whether they are
 * loaded or not and whatever ran before. The first that supports the case runs.
 *
 * Sparse and dense products come from different modules, so they may run on two accelerators. With option
 * `workers` a trainer calls the kernel and the dense module from different threads at the same time, with blocks
 * of rows and `threads` 1. The bits of a row of C must not depend on the number of rows, for multiples of 512 of them.
 *
 *     above 200   faster than every kernel of the library in every supported case
 *     101 - 103   the library's own vectorised kernels
 *     2 - 99      for cases that built-in modules cannot do, or do with plain loops: cblas has 10, onednn has 20
 *     1           the preference of a module without a note, unless the host loads it with load_module()
 *     0           `reference`, which can do everything
 *     below 0     only if chosen by name: graphblas has -1 */

/** A module reads an option of its context by host->extension(host->self, GRAFT_MODULE_OPTION "graphblas.path"), which
 *  returns its text, or NULL if the option is not for modules or the library is older. */
#define GRAFT_MODULE_OPTION "graft.option/"

/** The note of a module: properties that the library needs before it loads the module. GRAFT_MODULE_NOTE puts it into
 *  the file. The library reads it without running code of the module, and skips a module whose processor, versions or
 *  level do not fit. A module without a note is loaded when its turn comes. */
typedef struct graft_module_note {
    uint32_t size;
    uint32_t abi_min, abi_max; /**< versions of the contract that graft_module() knows */
    int32_t  preference;       /**< the preference in the table of the module */
    uint32_t cpu_level;        /**< N of x86-64-vN, the least processor that can run it; 0: any of its architecture */
    uint32_t reserved;
    char     kind[16], name[32]; /**< kind and name, as in the table and the file name of the module */
} graft_module_note;

#define GRAFT_MODULE_NOTE_OWNER "Graft" /**< owner and type of the ELF note that holds the struct */
#define GRAFT_MODULE_NOTE_TYPE 1u

/* The processor level that the compiler flags require. A module that selects code at run time defines it as 0. */
#ifndef GRAFT_MODULE_CPU_LEVEL
#if defined(__AVX512F__)
#define GRAFT_MODULE_CPU_LEVEL 4u
#elif defined(__AVX__)
#define GRAFT_MODULE_CPU_LEVEL 3u
#elif defined(__SSE3__)
#define GRAFT_MODULE_CPU_LEVEL 2u
#else
#define GRAFT_MODULE_CPU_LEVEL 0u
#endif
#endif

/** Write the note: GRAFT_MODULE_NOTE("kernel", "mine", 210); once in one file of a module, outside of functions. */
#define GRAFT_MODULE_NOTE(kind, name, preference)                                                                      \
    GRAFT_MODULE_NOTE_OF(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, kind, name, preference, GRAFT_MODULE_CPU_LEVEL)
#define GRAFT_MODULE_NOTE_OF(abi_min, abi_max, kind, name, preference, cpu_level)                                      \
    static const struct {                                                                                              \
        uint32_t          owner_bytes, note_bytes, type;                                                               \
        char              owner[8];                                                                                    \
        graft_module_note note;                                                                                        \
    } graft_module_note_                                                                                               \
        __attribute__((used, aligned(4), section(".note.graft"))) = { sizeof GRAFT_MODULE_NOTE_OWNER,                  \
                                                                      sizeof(graft_module_note),                       \
                                                                      GRAFT_MODULE_NOTE_TYPE,                          \
                                                                      GRAFT_MODULE_NOTE_OWNER,                         \
                                                                      { sizeof(graft_module_note), abi_min, abi_max,   \
                                                                        preference, cpu_level, 0, kind, name } }

/** An implementation of graft.mxm/1 run().
 *
 *  The library has checked the arguments. It passes the matrix twice: once to prepare(), which may create arrays of its
 *  own, and to each run() with the result of prepare(). Kernels ignore `args->a`; `args->threads` is at least 1. */
typedef struct graft_kernel_ops {
    uint32_t    size;
    int32_t     preference; /**< see above; equal to the preference in the note */
    const char *description;

    /** Create the state for one context.
     *  \return OK; ERR_NOMEM; ERR_MODULE; ERR_UNSUPPORTED (with the reason in error). */
    int32_t (*init)(const graft_host *host, void **state, graft_error *error);
    void (*fini)(void *state);

    /** Return OK if the kernel supports these arguments, else ERR_UNSUPPORTED with a clause in why[capacity] that
     *  completes "KERNEL cannot: ...". Depends on types and shapes only, not on elements. */
    int32_t (*supports)(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity);

    /** Prepare what run() needs for this matrix and add its bytes to *bytes. May return ERR_UNSUPPORTED, with the
     *  reason in error, for a matrix that it cannot use. The arrays of `a` stay valid until release(). */
    int32_t (*prepare)(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error);
    void (*release)(void *state, void *prepared);

    /** Compute the product. May return ERR_UNSUPPORTED, with the reason in error, before it has written anything. It
     *  calls args->rows_done for all rows or for none, and then the library does; otherwise the product fails with
     *  ERR_MODULE. rows_done may overwrite these rows of C, so they are not read or written after it. */
    int32_t (*run)(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error);

    uint32_t args_size; /**< sizeof(graft_mxm_args) as compiled into the module; later fields are not used with it */
    uint32_t reserved;
} graft_kernel_ops;

/** C = alpha op(A) op(B) + beta C, row-major; op(A) [m x k], op(B) [k x n]. With beta 0, C is not read. */
typedef struct graft_gemm {
    uint32_t     size;
    int32_t      threads;                  /**< at most this many, at least 1 */
    int32_t      transpose_a, transpose_b; /**< 0 or 1 */
    int64_t      m, n, k;
    float        alpha, beta;
    const float *a;
    int64_t      lda; /**< elements from one stored row of A to the next */
    const float *b;
    int64_t      ldb;
    float       *c;
    int64_t      ldc;
    /** NULL, or called by the thread that has finished rows begin to end - 1 of C while they are in its caches: once
     *  for every row, from several threads at once. It may overwrite these rows. */
    void (*rows_done)(void *arg, int64_t begin, int64_t end);
    void       *rows_arg;
    double     *times; /**< [threads x 3] or NULL, as in graft_mxm_args */
    graft_dtype type;  /**< GRAFT_F32; GRAFT_BF16: elements of A and B are rounded to bfloat16 (to nearest, ties to
                           even) before they are multiplied, and sums are in float. Subnormals may become 0.
                           GRAFT_F64: a, b and c point to doubles, and lda, ldb and ldc count doubles */
    uint32_t    reserved;
} graft_gemm;

/** A context may create several states of the module, and call it with them from several threads at the same time. */
#define GRAFT_DENSE_CONCURRENT 1u

/** An implementation of dense products. The bits of C must not depend on gemm->threads. */
typedef struct graft_dense_ops {
    uint32_t    size;
    int32_t     preference;
    const char *description;
    int32_t (*init)(const graft_host *host, void **state, graft_error *error);
    void (*fini)(void *state);
    /** Compute the product. \return OK; ERR_NOMEM; ERR_MODULE; ERR_UNSUPPORTED, with C unchanged (rows that are too
     *  long for it; with bfloat16 an alpha other than 1 or a beta other than 0 and 1). */
    int32_t (*gemm)(void *state, const graft_gemm *gemm, graft_error *error);

    /** Return OK if gemm() can multiply elements of this type on this machine, else ERR_UNSUPPORTED with a clause in
     *  why[capacity] that completes "MODULE cannot: ...". Not called for GRAFT_F32. */
    int32_t (*supports)(void *state, graft_dtype type, char *why, uint64_t capacity);

    uint32_t gemm_size; /**< sizeof(graft_gemm) as compiled into the module; later fields are not used with it */
    uint32_t reserved;
    uint64_t flags; /**< GRAFT_DENSE_CONCURRENT or 0 */
} graft_dense_ops;

/** An implementation of transports. */
typedef struct graft_transport_ops {
    uint32_t    size;
    uint32_t    reserved;
    const char *description;

    /** Implement graft_transport_api.open(). `communicator` is complete; *transport is zero except for its size. The
     *  functions of `host` stay valid until close(). */
    int32_t (*open)(const graft_host *host, const graft_communicator *communicator, graft_transport *transport,
                    graft_error *error);
} graft_transport_ops;

/** Description of a module, in its static storage. Exactly one of the tables is not NULL. */
typedef struct graft_module_table {
    uint32_t                   size;
    uint32_t                   abi;  /**< the negotiated version of the contract */
    const char                *kind; /**< "kernel", "dense" or "transport", as in the file name */
    const char                *name; /**< as in the file name */
    const graft_kernel_ops    *kernel;
    const graft_dense_ops     *dense;
    const graft_transport_ops *transport;
} graft_module_table;

/** The type of graft_module(), the only function that a module exports. The library passes its range of versions; the
 *  module chooses the largest that it knows, or returns ERR_VERSION with both ranges in the message. */
typedef int32_t (*graft_module_fn)(uint32_t abi_min, uint32_t abi_max, const graft_module_table **table,
                                   graft_error *error);
GRAFT_API int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **table,
                               graft_error *error);

GRAFT_EXTERN_C_END
#endif
