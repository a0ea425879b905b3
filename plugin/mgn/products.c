/* Dense products of blocks, each on one thread: with a state of the module for each thread, or one after the other if
 * it has one state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/inside.h"

static int is_concurrent(const struct gr_mgn *g)
{
    return (g->dense->table->dense->flags & GRAFT_DENSE_CONCURRENT) != 0 && !gr_dense_verifies(g->context);
}

int32_t gr_mgn_products_init(struct gr_mgn *g, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    atomic_flag_clear(&g->lock);
    GR_TRY(gr_dense_choose_for(g->context, g->dtype, &g->dense, error));
    for (int t = 0; t < g->n_threads; t++) {
        g->thread[t].state = g->dense->state;
        if (t == 0 || !is_concurrent(g)) continue;
        rc = g->dense->table->dense->init(&g->context->module_host, &g->thread[t].state, error);
        GR_TRY(gr_module_status(g->dense, "init", rc, error));
        g->n_states = t;
    }
done:
    return rc;
}

void gr_mgn_products_fini(struct gr_mgn *g)
{
    for (int t = 1; t <= g->n_states; t++) g->dense->table->dense->fini(g->thread[t].state);
    g->n_states = 0;
}

static int32_t run_alone(struct gr_mgn *g, const graft_gemm *gemm, graft_error *error)
{
    int32_t rc;

    while (atomic_flag_test_and_set_explicit(&g->lock, memory_order_acquire)) {
    }
    rc = gr_dense_run(g->context, g->dense, gemm, error);
    atomic_flag_clear_explicit(&g->lock, memory_order_release);
    return rc;
}

static void run_product(struct gr_mgn *g, int thread, graft_gemm *gemm)
{
    struct gr_mgn_thread *t = &g->thread[thread];

    if (t->rc < 0 || gemm->m == 0 || gemm->n == 0) return;
    gemm->size = sizeof *gemm;
    gemm->threads = 1;
    gemm->alpha = 1;
    gemm->type = g->dtype;
    if (is_concurrent(g)) {
        t->rc = g->dense->table->dense->gemm(t->state, gemm, &t->error);
        if (t->rc != GRAFT_OK) t->rc = gr_module_status(g->dense, "gemm", t->rc, &t->error);
    } else {
        t->rc = run_alone(g, gemm, &t->error);
    }
}

void gr_mgn_multiply(struct gr_mgn *g, int thread, struct gr_mgn_matrix w, int64_t n, const void *x, int adds, void *y)
{
    graft_gemm gemm = { .transpose_b = 1, .m = n, .n = w.out, .k = w.in, .beta = (float)(adds != 0) };

    gemm.a = x;
    gemm.lda = w.in;
    gemm.b = w.at;
    gemm.ldb = w.stride;
    gemm.c = y;
    gemm.ldc = w.out;
    run_product(g, thread, &gemm);
}

void gr_mgn_multiply_back(struct gr_mgn *g, int thread, struct gr_mgn_matrix w, int64_t n, const void *y, int adds,
                          void *x)
{
    graft_gemm gemm = { .m = n, .n = w.in, .k = w.out, .beta = (float)(adds != 0) };

    gemm.a = y;
    gemm.lda = w.out;
    gemm.b = w.at;
    gemm.ldb = w.stride;
    gemm.c = x;
    gemm.ldc = w.in;
    run_product(g, thread, &gemm);
}

void gr_mgn_multiply_weights(struct gr_mgn *g, int thread, struct gr_mgn_matrix w, int64_t n, const void *x,
                             const void *y)
{
    graft_gemm gemm = { .transpose_a = 1, .m = w.out, .n = w.in, .k = n, .beta = 1 };

    gemm.a = y;
    gemm.lda = w.out;
    gemm.b = x;
    gemm.ldb = w.in;
    gemm.c = (float *)(uintptr_t)w.at;
    gemm.ldc = w.stride;
    run_product(g, thread, &gemm);
}

int32_t gr_mgn_products_status(struct gr_mgn *g, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int t = 0; t < g->n_threads; t++) {
        if (g->thread[t].rc < 0 && rc == GRAFT_OK) {
            rc = g->thread[t].rc;
            *error = g->thread[t].error;
        }
        g->thread[t].rc = GRAFT_OK;
    }
    return rc;
}
