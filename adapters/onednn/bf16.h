/* Products of bfloat16 with oneDNN. The operands are floats that are rounded piece by piece in the caches.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ONEDNN_BF16_H
#define ONEDNN_BF16_H

#include "graft_module.h"

#include <dnnl.h>
#include <omp.h>

enum { BF16_CODES_MAX = 64 };

/** A shape for which a primitive is compiled. */
struct bf16_shape {
    int64_t m, n, k, ldc;
    int64_t transpose_a, transpose_b, add;
};

/** A matmul primitive that is compiled for one shape. */
struct bf16_code {
    struct bf16_shape shape;
    dnnl_primitive_t  primitive;
};

/** The working memory of one thread. */
struct bf16_thread {
    dnnl_stream_t stream;
    char         *block; /* pieces in bfloat16, and the scratchpad of oneDNN */
    uint64_t      bytes;
};

struct bf16 {
    const graft_host   *host;
    dnnl_engine_t       engine; /* the engine of oneDNN; NULL before the first product */
    struct bf16_code    code[BF16_CODES_MAX];
    int                 n_codes;
    omp_lock_t          lock; /* protects code and n_codes */
    struct bf16_thread *threads;
    int                 n_threads;
};

/** Whether the processor has instructions for bfloat16. */
int     bf16_is_there(void);
void    bf16_fini(struct bf16 *bf16);
/** Prepare for a product; must be called outside of teams. Returns OK, ERR_NOMEM or ERR_MODULE, without a message. A
 * new struct bf16 is all zeros. */
int32_t bf16_reserve(struct bf16 *bf16, const graft_host *host, int threads);
/** Compute a product on one thread of the team. alpha must be 1, and beta 0 or 1. Returns OK, ERR_NOMEM or
 * ERR_MODULE. */
int32_t bf16_serial(struct bf16 *bf16, int thread, const graft_gemm *gemm);

#endif
