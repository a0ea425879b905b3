/* Dense products of blocks, each on one thread: with a state of the module for each thread, or one after the other if
 * it has one state.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "comm/collective.h"
#include "mgn/inside.h"

#include <sched.h>
#include <string.h>

/* Whether each thread has a state of its own. */
static int is_concurrent(const struct gr_mgn *g)
{
    return g->n_states == g->n_threads - 1 && !gr_dense_verifies(g->context);
}

void gr_mgn_products_fini(struct gr_mgn *g)
{
    for (int t = 1; t <= g->n_states; t++) g->dense->table->dense->fini(g->thread[t].state);
    g->n_states = 0;
}

/* Use a module for the products, with a state for each thread if it allows several. */
static int32_t use_module(struct gr_mgn *g, const struct gr_module *module, graft_error *error)
{
    const graft_dense_ops *ops = module->table->dense;
    int32_t                rc = GRAFT_OK;

    g->dense = module;
    for (int t = 0; t < g->n_threads; t++) {
        g->thread[t].error.size = sizeof g->thread[t].error;
        g->thread[t].state = module->state;
        if (t == 0 || (ops->flags & GRAFT_DENSE_CONCURRENT) == 0) continue;
        GR_TRY(
            gr_module_status(module, "init", ops->init(&g->context->module_host, &g->thread[t].state, error), error));
        g->n_states = t;
    }
done:
    return rc;
}

/* Copies of shared nodes are rows of different blocks on different ranks, and must have the same bits. */
struct trial {
    int      alike;
    uint32_t crc;
};

/* Equal rows of x, followed by different rows of weights. */
static void fill_trial(const struct gr_mgn *g, int64_t in, int64_t count, void *x)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t  row = i / in, number = row < GR_MGN_ROWS ? i % in : i;
        const uint32_t bits = (uint32_t)number * 2654435761u + 12345;
        const double   value = 1 + (double)bits / 4294967296.0 / 3;

        if (g->dtype == GRAFT_F64) ((double *)x)[i] = value;
        else ((float *)x)[i] = (float)value;
    }
}

int32_t gr_mgn_products_init(struct gr_mgn *g, graft_error *error)
{
    const struct gr_module *chosen;
    int32_t                 rc = gr_dense_choose_for(g->context, g->dtype, &chosen, error);

    GR_TRY(rc);
    atomic_flag_clear(&g->lock);
    rc = use_module(g, chosen, error);
done:
    return rc;
}

/* Multiplies each number of equal rows of x: whether the rows of y are equal too, and their CRC. `adds`: to an existing
 * y. */
static int32_t try_rows(struct gr_mgn *g, int64_t in, int64_t out, int adds, struct trial *trial, graft_error *error)
{
    static const int64_t counts[] = { 1, 2, 3, GR_MGN_ROWS / 2 + 1, GR_MGN_ROWS };
    const uint64_t       bytes = (uint64_t)(out * g->element);
    char                *x = NULL, *y = NULL;
    struct gr_mgn_matrix w = { .stride = in, .out = out, .in = in };
    int32_t              rc = GRAFT_OK;

    GR_TRY(GR_NEW(g->context, x, (GR_MGN_ROWS + out) * in * g->element, error));
    GR_TRY(GR_NEW(g->context, y, (GR_MGN_ROWS + 1) * out * g->element, error));
    w.at = x + GR_MGN_ROWS * in * g->element;
    fill_trial(g, in, (GR_MGN_ROWS + out) * in, x);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memset(y + bytes, 0, GR_MGN_ROWS * bytes);
        for (int k = 0; k <= adds; k++) gr_mgn_multiply(g, 0, w, counts[i], x, k, y + bytes);
        if (i == 0) memcpy(y, y + bytes, bytes);
        for (int64_t row = 1; row <= counts[i]; row++) trial->alike &= memcmp(y, y + row * (int64_t)bytes, bytes) == 0;
    }
    trial->crc = gr_crc(trial->crc, y, bytes);
    rc = gr_mgn_products_status(g, error);
done:
    gr_free(g->context, x);
    gr_free(g->context, y);
    return rc;
}

static int32_t try_module(struct gr_mgn *g, struct trial *trial, graft_error *error)
{
    const int64_t width = gr_mgn_width(g);
    int32_t       rc = GRAFT_OK;

    GR_TRY(try_rows(g, g->shape->n_node_in, width, 0, trial, error));
    GR_TRY(try_rows(g, width, width, 1, trial, error));
    rc = try_rows(g, width, g->shape->n_out, 0, trial, error);
done:
    return rc;
}

int32_t gr_mgn_products_agree(struct gr_mgn *g, graft_error *error)
{
    struct gr_comm *comm = g->mesh->comm;
    struct trial    trial = { .alike = 1 };
    int64_t         least[2], most[2];
    int32_t         rc = GRAFT_OK;

    if (!g->pads) return GRAFT_OK;
    GR_TRY(gr_comm_agree(comm, try_module(g, &trial, error), error));
    least[0] = most[0] = trial.alike;
    least[1] = most[1] = trial.crc;
    GR_TRY(gr_comm_min(comm, least, 2, error));
    GR_TRY(gr_comm_max(comm, most, 2, error));
    if (least[0] != 0 && least[1] == most[1]) return GRAFT_OK;
    if (comm->rank == 0)
        gr_log(g->context, GRAFT_LOG_WARNING,
               "plain loops do the products of this network: with dense module %s copies of a shared node would differ "
               "in their last bits%s",
               g->dense->name, least[0] != 0 ? ", because the processors or modules of ranks differ" : "");
    gr_mgn_products_fini(g);
    rc = use_module(g, gr_module_find(g->context, "dense", gr_dense_reference.name), error);
    rc = gr_comm_agree(comm, rc, error);
done:
    return rc;
}

static int32_t run_alone(struct gr_mgn *g, const graft_gemm *gemm, graft_error *error)
{
    int32_t rc;

    while (atomic_flag_test_and_set_explicit(&g->lock, memory_order_acquire)) sched_yield();
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

/* Whether there is space for a whole block, which only buffers of the thread have. */
static int has_block(const struct gr_mgn *g, int thread, const void *rows)
{
    const uintptr_t block = (uintptr_t)g->thread[thread].block, at = (uintptr_t)rows;

    return at >= block && at < block + (uint64_t)(2 * GR_MGN_ROWS * g->row_elements * g->element);
}

/* Libraries choose their loops, and so the bits, by the number of rows, so this number is always the same. */
static void run_whole_block(struct gr_mgn *g, int thread, graft_gemm *gemm)
{
    struct gr_mgn_thread *t = &g->thread[thread];
    const uint64_t        bytes_in = (uint64_t)(gemm->m * gemm->k * g->element);
    const uint64_t        bytes_out = (uint64_t)(gemm->m * gemm->n * g->element);
    void *const           out = gemm->c;

    if (!has_block(g, thread, gemm->a)) gemm->a = memcpy(t->padded[0], gemm->a, bytes_in);
    if (!has_block(g, thread, out)) gemm->c = memcpy(t->padded[1], out, gemm->beta != 0 ? bytes_out : 0);
    gemm->m = GR_MGN_ROWS;
    run_product(g, thread, gemm);
    if (gemm->c != out) memcpy(out, gemm->c, bytes_out);
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
    if (g->pads && n < GR_MGN_ROWS) run_whole_block(g, thread, &gemm);
    else run_product(g, thread, &gemm);
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
