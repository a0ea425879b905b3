/* Dense products of blocks, each on one thread: at the same time if each thread has a state of the module, else one
 * after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/blocks.h"

#include <sched.h>
#include <string.h>

/* Whether each thread has a state of its own. */
static int is_concurrent(const struct gr_nn_blocks *b)
{
    return b->n_states == b->n_threads - 1 && !gr_dense_verifies(b->context);
}

void gr_nn_blocks_fini(struct gr_nn_blocks *b)
{
    for (int t = 1; t <= b->n_states; t++) b->dense->table->dense->fini(b->thread[t].state);
    b->n_states = 0;
}

int32_t gr_nn_use_module(struct gr_nn_blocks *b, const struct gr_module *module, graft_error *error)
{
    const graft_dense_ops *ops = module->table->dense;

    b->dense = module;
    for (int t = 0; t < b->n_threads; t++) {
        b->thread[t].error.size = sizeof b->thread[t].error;
        b->thread[t].state = module->state;
        if (t == 0 || (ops->flags & GRAFT_DENSE_CONCURRENT) == 0) continue;
        GR_TRY(
            gr_module_status(module, "init", ops->init(&b->context->module_host, &b->thread[t].state, error), error));
        b->n_states = t;
    }
    return GRAFT_OK;
}

int32_t gr_nn_choose_module(struct gr_nn_blocks *b, graft_error *error)
{
    const struct gr_module *chosen;

    GR_TRY(gr_dense_choose_for(b->context, b->dtype, &chosen, error));
    return gr_nn_use_module(b, chosen, error);
}

static int32_t run_alone(struct gr_nn_blocks *b, const graft_gemm *gemm, graft_error *error)
{
    int32_t rc;

    while (atomic_flag_test_and_set_explicit(&b->lock, memory_order_acquire)) sched_yield();
    rc = gr_dense_run(b->context, b->dense, gemm, error);
    atomic_flag_clear_explicit(&b->lock, memory_order_release);
    return rc;
}

static void run_product(struct gr_nn_blocks *b, int thread, graft_gemm *gemm)
{
    struct gr_nn_thread *t = &b->thread[thread];

    if (t->rc < 0 || gemm->m == 0 || gemm->n == 0) return;
    gemm->size = sizeof *gemm;
    gemm->threads = 1;
    gemm->alpha = 1;
    gemm->type = b->dtype;
    if (is_concurrent(b)) {
        t->rc = b->dense->table->dense->gemm(t->state, gemm, &t->error);
        if (t->rc != GRAFT_OK) t->rc = gr_module_status(b->dense, "gemm", t->rc, &t->error);
    } else {
        t->rc = run_alone(b, gemm, &t->error);
    }
}

/* Whether `rows` has space for a whole block: it is in the thread's buffer. */
static int has_block(const struct gr_nn_blocks *b, int thread, const void *rows)
{
    const uintptr_t block = (uintptr_t)b->thread[thread].block, at = (uintptr_t)rows;

    return at >= block && at < block + (uint64_t)(2 * GR_MGN_ROWS * b->form.widest * b->element);
}

/* Compute a product of fewer rows as one of GR_MGN_ROWS rows. Libraries choose their loops, and thereby the rounding,
 * by the number of rows, so this number is always the same. */
static void run_whole_block(struct gr_nn_blocks *b, int thread, graft_gemm *gemm)
{
    struct gr_nn_thread *t = &b->thread[thread];
    const uint64_t       bytes_in = (uint64_t)(gemm->m * gemm->k * b->element);
    const uint64_t       bytes_out = (uint64_t)(gemm->m * gemm->n * b->element);
    void *const          out = gemm->c;

    if (!has_block(b, thread, gemm->a)) gemm->a = memcpy(t->padded[0], gemm->a, bytes_in);
    if (!has_block(b, thread, out)) gemm->c = memcpy(t->padded[1], out, gemm->beta != 0 ? bytes_out : 0);
    gemm->m = GR_MGN_ROWS;
    run_product(b, thread, gemm);
    if (gemm->c != out) memcpy(out, gemm->c, bytes_out);
}

void gr_nn_multiply(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *x, int adds,
                    void *y)
{
    graft_gemm gemm = { .transpose_b = 1, .m = n, .n = w.out, .k = w.in, .beta = (float)(adds != 0) };

    gemm.a = x;
    gemm.lda = w.in;
    gemm.b = w.at;
    gemm.ldb = w.stride;
    gemm.c = y;
    gemm.ldc = w.out;
    if (b->form.is_whole && n < GR_MGN_ROWS) run_whole_block(b, thread, &gemm);
    else run_product(b, thread, &gemm);
}

void gr_nn_multiply_back(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *y, int adds,
                         void *x)
{
    graft_gemm gemm = { .m = n, .n = w.in, .k = w.out, .beta = (float)(adds != 0) };

    gemm.a = y;
    gemm.lda = w.out;
    gemm.b = w.at;
    gemm.ldb = w.stride;
    gemm.c = x;
    gemm.ldc = w.in;
    run_product(b, thread, &gemm);
}

void gr_nn_multiply_weights(struct gr_nn_blocks *b, int thread, struct gr_nn_matrix w, int64_t n, const void *x,
                            const void *y)
{
    graft_gemm gemm = { .transpose_a = 1, .m = w.out, .n = w.in, .k = n, .beta = 1 };

    gemm.a = y;
    gemm.lda = w.out;
    gemm.b = x;
    gemm.ldb = w.in;
    gemm.c = (float *)(uintptr_t)w.at;
    gemm.ldc = w.stride;
    run_product(b, thread, &gemm);
}

int32_t gr_nn_products_status(struct gr_nn_blocks *b, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int t = 0; t < b->n_threads; t++) {
        if (b->thread[t].rc < 0 && rc == GRAFT_OK) {
            rc = b->thread[t].rc;
            *error = b->thread[t].error;
        }
        b->thread[t].rc = GRAFT_OK;
    }
    return rc;
}
