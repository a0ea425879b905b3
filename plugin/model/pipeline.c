/* The pipeline of sparse and dense workers: the execution of recorded tasks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/workers.h"

#include "dense/dense.h"

#include <sched.h>
#include <string.h>

/* The epilogue of a block of rows. The kernel and the dense module count its rows from 0. */
struct shifted {
    const struct gr_epilogue *epilogue;
    int64_t                   begin;
};

static void dense_block_done(void *arg, int64_t begin, int64_t end)
{
    const struct shifted *s = arg;

    s->epilogue->some(s->epilogue->arg, s->begin + begin, s->begin + end);
}

static void sparse_block_done(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    (void)thread;
    dense_block_done(arg, begin, end);
}

static int32_t run_gemm_task(struct gr_run *run, const struct gr_work *work, const struct gr_work_task *t, int threads,
                             graft_error *error)
{
    const int                knows = run->dense->table->dense->gemm_size >= sizeof work->gemm; /* the newer fields */
    const struct gr_workers *w = run->workers;
    struct gr_module         module = *run->dense;
    struct shifted           done = { &work->epilogue, t->begin };
    graft_gemm               g = work->gemm;
    int32_t                  rc;

    g.size = sizeof g;
    g.threads = threads;
    g.alpha = 1;
    g.m = t->end - t->begin;
    g.a += g.transpose_a ? t->begin : t->begin * g.lda;
    g.c += t->begin * g.ldc;
    if (knows) g.type = run->dense_type;
    if (knows && work->epilogue.some != NULL) {
        g.rows_done = dense_block_done;
        g.rows_arg = &done;
    }
    if (w->modules.n_states > 0) module.state = w->modules.state[omp_get_thread_num()];
    rc = gr_dense_run(run->context, &module, &g, error);
    if (rc == GRAFT_OK && !knows && work->epilogue.some != NULL) dense_block_done(&done, 0, g.m);
    return rc;
}

static int32_t run_sum_task(struct gr_run *run, const struct gr_work *work, const struct gr_work_task *t,
                            graft_error *error)
{
    struct gr_sparse_product p = work->sum;
    struct shifted           done = { &work->epilogue, t->begin };
    struct gr_epilogue       epilogue = work->epilogue;
    struct gr_sparse_call    call;

    p.epilogue = epilogue.some != NULL ? &epilogue : NULL; /* the caller's may no longer exist */
    gr_sparse_call_init(&call, &p, t->a, t->begin, t->end);
    if (epilogue.some != NULL) {
        call.args.rows_done = sparse_block_done;
        call.args.rows_arg = &done;
    }
    return gr_mxm_run(run->context, &call.args, error);
}

static int32_t run_task(struct gr_run *run, struct gr_work_task *t, int threads, graft_error *error)
{
    struct gr_work         *work = &run->workers->work[t->work];
    struct gr_rows_scaling *scaling = &work->arg.scaling;
    const int64_t           width = scaling->width;

    switch (work->kind) {
    case GR_WORK_GEMM: return run_gemm_task(run, work, t, threads, error);
    case GR_WORK_SUM: return run_sum_task(run, work, t, error);
    case GR_WORK_MIX: gr_mix_part(&work->mix, t->begin, t->end); return GRAFT_OK;
    case GR_WORK_BACKWARD:
        if (t->begin < t->end) gr_nn_rows_backward_rest(&work->arg.backward, t->begin, t->end);
        else gr_nn_rows_backward_sums(&work->arg.backward);
        return GRAFT_OK;
    case GR_WORK_SCALE:
        if (scaling->x != NULL) gr_nn_rows_scale_part(scaling, t->begin, t->end);
        else memset(scaling->out + t->begin * width, 0, (uint64_t)((t->end - t->begin) * width) * sizeof(float));
        return GRAFT_OK;
    }
    return GRAFT_OK;
}

static void lock(struct gr_workers *w)
{
    while (atomic_flag_test_and_set_explicit(&w->lock, memory_order_acquire)) sched_yield();
}

static void unlock(struct gr_workers *w)
{
    atomic_flag_clear_explicit(&w->lock, memory_order_release);
}

/* Whether the calling thread may call the module of the task now: some modules serve one thread at a time. */
static int is_free(const struct gr_run *run, const struct gr_work_task *t)
{
    const struct gr_workers *w = run->workers;

    if (w->work[t->work].kind == GR_WORK_GEMM)
        return w->modules.n_states > 0 ? omp_get_thread_num() < w->modules.n_states : w->modules.calls_dense == 0;
    return w->work[t->work].kind != GR_WORK_SUM || w->modules.concurrent || w->modules.calls == 0;
}

static int is_ready(const struct gr_run *run, const struct gr_work_task *t)
{
    const struct gr_workers *w = run->workers;
    uint64_t                 waits = 0;

    if (t->state != GR_TASK_WAITS || !is_free(run, t)) return 0;
    for (int i = 0; i < GR_WORK_TASKS / 64; i++) waits |= t->before[i] & ~w->done[i];
    return waits == 0;
}

/* Find the first ready task of the thread's own kind; if there is none, of the other kind; else the first filler. */
static struct gr_work_task *find_task(const struct gr_run *run, enum gr_worker own)
{
    struct gr_workers   *w = run->workers;
    struct gr_work_task *other = NULL, *filler = NULL;

    for (int i = 0; i < w->n_tasks; i++) {
        struct gr_work_task *t = &w->task[i];

        if ((w->in_part && !t->is_needed) || !is_ready(run, t)) continue;
        if (t->worker == own && !t->is_filler) return t;
        if (t->is_filler && filler == NULL) filler = t;
        if (!t->is_filler && other == NULL) other = t;
    }
    return other != NULL ? other : filler;
}

static void count_call(struct gr_workers *w, const struct gr_work_task *t, int by)
{
    if (w->work[t->work].kind == GR_WORK_GEMM) w->modules.calls_dense += by;
    if (w->work[t->work].kind == GR_WORK_SUM) w->modules.calls += by;
}

static void finish_task(struct gr_workers *w, struct gr_work_task *t, int32_t rc, const graft_error *error)
{
    const int64_t i = t - w->task;

    lock(w);
    count_call(w, t, -1);
    t->state = GR_TASK_DONE;
    w->done[i / 64] |= (uint64_t)1 << i % 64;
    w->n_needed -= t->is_needed;
    w->report.tasks_done++;
    if (rc < 0 && w->status == GRAFT_OK) {
        w->status = rc;
        w->error = *error;
    }
    unlock(w);
}

/* Let messages move between tasks, and in one process check whether the step was cancelled. */
static void look_around(struct gr_run *run)
{
    const int   is_alone = run->strategy->ops->agree == NULL;
    graft_error error = { .size = sizeof error };
    int32_t     rc = GRAFT_OK;

    gr_strategy_poll(run->strategy);
    if (is_alone && run->pass != GRAFT_PASS_EVALUATION) rc = gr_context_check_cancel(run->context, &error);
    if (rc == GRAFT_OK) return;
    lock(run->workers);
    if (run->workers->status == GRAFT_OK) {
        run->workers->status = rc;
        run->workers->error = error;
    }
    unlock(run->workers);
}

static void work_as(struct gr_run *run, enum gr_worker own, int is_host, double *times)
{
    struct gr_workers *w = run->workers;
    double             busy[GR_WORKER_KINDS] = { 0 }, idle, now = gr_seconds();
    const double       begin = now;

    for (;;) {
        graft_error          error = { .size = sizeof error };
        struct gr_work_task *t = NULL;
        double               since = now;
        int32_t              rc;
        int                  ends;

        if (is_host) look_around(run);
        lock(w);
        ends = w->n_needed == 0 || w->status != GRAFT_OK;
        if (!ends) t = find_task(run, own);
        if (t != NULL) {
            t->state = GR_TASK_RUNS;
            count_call(w, t, 1);
        }
        unlock(w);
        if (ends) break;
        if (t == NULL) {
            sched_yield();
            now = gr_seconds();
            continue;
        }
        rc = run_task(run, t, 1, &error);
        finish_task(w, t, rc, &error);
        now = gr_seconds();
        busy[t->worker] += now - since;
    }
#pragma omp barrier /* A thread without a task is idle until all threads have ended their tasks. */
    now = gr_seconds();
    idle = now - begin - busy[GR_WORKER_DENSE] - busy[GR_WORKER_SPARSE];
    lock(w);
    for (int kind = 0; kind < GR_WORKER_KINDS; kind++) {
        w->report.busy[own] += busy[kind];
        w->trial.of_kind[kind] += busy[kind];
    }
    w->report.helped[own] += busy[!own];
    w->report.idle[own] += idle;
    unlock(w);
    if (times == NULL) return;
    times[GR_TIME_BEGIN] = begin;
    times[GR_TIME_END] = now;
    times[GR_TIME_WAITED] = idle;
}

/* Run the remaining tasks, for which no other task waits, one after the other, each with all threads. */
static void run_fillers(struct gr_run *run)
{
    struct gr_workers *w = run->workers;
    const double       begin = gr_profile_begin(&run->profile);
    graft_error        error = { .size = sizeof error };
    int                ran = 0;

    for (int i = 0; i < w->n_tasks && w->status == GRAFT_OK; i++) {
        if (w->task[i].state != GR_TASK_WAITS) continue;
        ran = 1;
        count_call(w, &w->task[i], 1);
        finish_task(w, &w->task[i], run_task(run, &w->task[i], run->threads, &error), &error);
        gr_strategy_poll(run->strategy);
    }
    if (ran) gr_profile_end(&run->profile, "update", begin, 0, 0);
}

void gr_model_workers_execute(struct gr_run *run)
{
    struct gr_workers *w = run->workers;
    const double       begin = gr_profile_begin(&run->profile);
    const int          threads = w->status == GRAFT_OK ? gr_pool_team(run->threads) : 1;
    const struct gr_fp fp = gr_fp_get();

#pragma omp parallel num_threads(threads)
    {
        const struct gr_fp own = gr_fp_swap(fp);
        const int          thread = omp_get_thread_num(), first = omp_get_num_threads() - w->sparse;

        work_as(run, thread >= first && thread > 0 ? GR_WORKER_SPARSE : GR_WORKER_DENSE, thread == 0,
                run->profile.times != NULL ? run->profile.times + thread * GR_TIMES : NULL);
        gr_fp_set(own);
    }
    gr_profile_end(&run->profile, "workers", begin, 0, 0);
    if (!w->in_part) run_fillers(run);
}
