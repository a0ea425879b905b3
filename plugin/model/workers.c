/* The pipeline of sparse and dense workers: the recording of tasks and their dependencies.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/workers.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "graph/csr.h"
#include "model/kind.h"
#include "model/options.h"

#include <math.h>
#include <string.h>

/* A dense module may divide a product by its rows or by its depth. From depth DEEP on, the choice depends on the number
 * of rows, and so does the rounding. Modules in files divide rows into blocks of 512, see
 * adapters/common/gemm_blocks.h. */
enum { DEEP = 8192, MODULE_ROWS = 512 };

int32_t gr_model_workers_check(const struct gr_run *run, graft_error *error)
{
    const struct gr_form *workers = &gr_resource_options(run->context)->workers;
    const int             sparse = (int)workers->number[0];

    if (workers->word != GR_WORKERS_SPARSE || sparse < run->threads) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_OPTION,
                   "option 'workers' is sparse:%d, and threads are %d, of which one at least has to be left for dense "
                   "products; expected fewer, or threads=%d or more",
                   sparse, run->threads, sparse + 1);
}

int gr_model_workers_wanted(const struct gr_run *run, const struct gr_capacity *capacity)
{
    return gr_resource_options(run->context)->workers.word != GR_WORKERS_NO && !capacity->predicts &&
           run->strategy->ops->records;
}

/* The number of backward passes over rows: one after each layer, and one inside each layer of gin. */
static int32_t count_row_passes(const struct gr_run *run)
{
    return gr_run_config(run)->n_layers * (run->model->layers[0].outer != NULL ? 2 : 1);
}

double gr_model_workers_bytes(const struct gr_run *run, int64_t chunks, int64_t partial)
{
    const double pass = (double)chunks * sizeof(int64_t) + (double)partial * sizeof(double);

    return (double)sizeof *run->workers + count_row_passes(run) * pass;
}

int32_t gr_model_workers_init(struct gr_run *run, struct gr_budget *budget, int64_t chunks, int64_t partial,
                              graft_error *error)
{
    const struct gr_form *wanted = &gr_resource_options(run->context)->workers;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->workers, 1, error));
    for (int32_t i = 0; i < count_row_passes(run); i++) {
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->workers->left[i], chunks, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->workers->partial[i], partial, error));
    }
    atomic_flag_clear(&run->workers->lock);
    run->workers->trial.is_auto = wanted->word == GR_WORKERS_AUTO;
    run->workers->trial.is_off = run->workers->trial.is_auto; /* the first steps are without workers */
    run->workers->sparse = run->workers->trial.is_auto ? 1 : (int)wanted->number[0];
    run->workers->trial.plain = run->workers->trial.piped = INFINITY;
    run->workers->stages = (int)wanted->number[run->workers->trial.is_auto ? 0 : 1];
    return GRAFT_OK;
}

/* -- recording ---------------------------------------------------------------------------------------------------- */

const char *gr_model_workers_refusal(const struct gr_run *run)
{
    const struct gr_config *config = gr_run_config(run);

    if (run->threads < 2) return "there is one thread";
    if (config->kind->attends) return "attention has no products that could be recorded";
    if (config->extremum != 0) return "maxima and minima are no products";
    if (config->hidden.norm == GR_NORM_BATCH) return "norm=batch needs all rows of a layer at once";
    if (config->recompute) return "recompute=yes overwrites arrays of recorded products";
    if (config->hidden.jumping != GR_JUMPING_NONE) return "option jumping is set";
    if (gr_propagates(run)) return "label_rate is set";
    if (run->space.rounded != NULL || run->dense_type != GRAFT_F32) return "products are of bfloat16";
    if (gr_dense_verifies(run->context) || gr_mxm_verifies(run->context)) return "products are verified";
    return run->strategy->ops->records ? NULL : "sums read rows of earlier batches";
}

/* Create states of the dense module for all threads, if it allows several. Failures only reduce their number. */
static void make_states(struct gr_run *run)
{
    const graft_dense_ops *ops = run->dense->table->dense;
    struct gr_workers     *w = run->workers;
    graft_error            ignored = { .size = sizeof ignored };

    if (!(ops->flags & GRAFT_DENSE_CONCURRENT)) return;
    w->modules.dense = run->dense;
    w->modules.state[0] = run->dense->state;
    if (w->modules.n_states == 0) w->modules.n_states = 1;
    while (w->modules.n_states < run->threads && w->modules.n_states < GR_WORK_STATES) {
        if (ops->init(&run->context->module_host, &w->modules.state[w->modules.n_states], &ignored) != GRAFT_OK) break;
        w->modules.n_states++;
    }
}

void gr_model_workers_fini(struct gr_run *run)
{
    struct gr_workers *w = run->workers;

    for (int i = 1; w != NULL && i < w->modules.n_states; i++)
        w->modules.dense->table->dense->fini(w->modules.state[i]);
}

static void forget_tasks(struct gr_workers *w)
{
    w->n_work = w->n_tasks = 0;
    memset(w->done, 0, sizeof w->done);
}

void gr_model_workers_begin(struct gr_run *run)
{
    struct gr_workers *w = run->workers;

    if (w == NULL) return;
    w->recording = gr_model_workers_suit(run) && !w->trial.is_off;
    w->trial.began = gr_seconds();
    if (w->recording) make_states(run);
    if (run->pass == GRAFT_PASS_FORWARD) memset(w->trial.of_kind, 0, sizeof w->trial.of_kind);
    w->modules.concurrent = 1;
    w->status = GRAFT_OK;
    forget_tasks(w);
}

/* Choose the number of stages by MixGCN 3.2: with bandwidth b, a product of a row waits for b more rows. */
static int64_t stages_of(struct gr_workers *w, const graft_matrix *a)
{
    const graft_csr *csr = &a->csr;
    int64_t          bandwidth = 0, wanted;

    if (w->stages > 0) return w->stages;
    for (int64_t row = 0; row < csr->n_rows; row++) {
        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const int64_t column = gr_csr_column(csr, e);

            bandwidth = gr_larger(bandwidth, column > row ? column - row : row - column);
        }
    }
    w->report.bandwidth = csr->n_rows > 0 ? (double)bandwidth / (double)csr->n_rows : 0;
    if (bandwidth >= csr->n_rows) return GR_STAGES_MOST;
    wanted = (2 * csr->n_rows + csr->n_rows - bandwidth - 1) / (csr->n_rows - bandwidth);
    return gr_larger(4, wanted < GR_STAGES_MOST ? wanted : GR_STAGES_MOST);
}

/* Choose the number of stages over ranks, where all rows are computed before they are sent: the bandwidth does not
 * matter. */
static int64_t stages_of_ranks(const struct gr_run *run)
{
    if (run->workers->stages > 0) return run->workers->stages;
    return gr_larger(4, run->threads < GR_STAGES_MOST ? run->threads : GR_STAGES_MOST);
}

int64_t gr_model_workers_stages(const struct gr_run *run)
{
    struct gr_workers  *w = run->workers;
    const graft_matrix *a = run->input.whole->a;

    if (w->stages_used == 0) w->stages_used = a != NULL ? stages_of(w, a) : stages_of_ranks(run);
    return w->stages_used;
}

/* The number of rows of a block in a pass whose first layer reads n rows. It is the same for all products, so that
 * blocks of successive products match. */
static int64_t rows_of_stage(const struct gr_run *run, int64_t n)
{
    const int64_t align = run->dense->path == NULL ? GR_CHUNK_ROWS : gr_larger(GR_CHUNK_ROWS, MODULE_ROWS);
    const int64_t stages = gr_model_workers_stages(run), rows = gr_larger(1, (n + stages - 1) / stages);

    return (rows + align - 1) / align * align;
}

static int64_t block_rows(const struct gr_run *run)
{
    return rows_of_stage(run, run->layers[0].block->n_src);
}

int32_t gr_model_workers_cut(struct gr_run *run, struct gr_budget *budget, graft_matrix *a, int64_t rows,
                             graft_error *error)
{
    if (a == NULL || run->workers == NULL || !gr_model_workers_suit(run) || a->n_blocks > 0) return GRAFT_OK;
    GR_TRY(gr_budget_check(budget, 8 * (double)(a->csr.n_rows + GR_STAGES_MOST), "graph (row pointers of its blocks)",
                           error));
    GR_TRY(gr_matrix_cut(a, rows_of_stage(run, rows), error));
    gr_budget_charge(budget, GR_USE_GRAPH, gr_matrix_blocks_bytes(a));
    return GRAFT_OK;
}

/* The addresses of rows begin to end - 1 of an array of floats, which may be NULL. */
static struct gr_extent extent_of(const void *x, int64_t stride, int64_t width, int64_t begin, int64_t end)
{
    const char *at = x;

    if (at == NULL || begin >= end) return (struct gr_extent){ NULL, NULL };
    return (struct gr_extent){ at + 4 * begin * stride, at + 4 * ((end - 1) * stride + width) };
}

static int meet(struct gr_extent a, struct gr_extent b)
{
    return a.begin < b.end && b.begin < a.end;
}

static int depends(const struct gr_work_task *later, const struct gr_work_task *earlier)
{
    for (int i = 0; i < GR_WORK_WRITES; i++) {
        for (int j = 0; j < GR_WORK_READS; j++)
            if (meet(earlier->write[i], later->read[j]) || meet(earlier->read[j], later->write[i])) return 1;
        for (int j = 0; j < GR_WORK_WRITES; j++)
            if (meet(earlier->write[i], later->write[j])) return 1;
    }
    return 0;
}

static int waits_for(const struct gr_work_task *later, const struct gr_work_task *earlier)
{
    return earlier->state != GR_TASK_DONE && depends(later, earlier);
}

static void add_task(struct gr_workers *w, struct gr_work_task task)
{
    struct gr_work_task *t = &w->task[w->n_tasks];

    *t = task;
    t->work = w->n_work - 1;
    for (int i = 0; i < w->n_tasks; i++)
        if (waits_for(t, &w->task[i])) t->before[i / 64] |= (uint64_t)1 << i % 64;
    w->n_tasks++;
}

/* Mark the tasks that must be done before `later`; NULL: all tasks except fillers. Tasks that must precede marked tasks
 * are marked too; they were recorded earlier, so one loop from the last task to the first suffices. */
static void find_needed(struct gr_workers *w, const struct gr_work_task *later)
{
    uint64_t before[GR_WORK_TASKS / 64] = { 0 };

    w->n_needed = 0;
    for (int i = w->n_tasks - 1; i >= 0; i--) {
        struct gr_work_task *t = &w->task[i];
        const int            is_wanted = later != NULL ? waits_for(later, t) : !t->is_filler;

        t->is_needed = t->state == GR_TASK_WAITS && (is_wanted || before[i / 64] >> i % 64 & 1);
        if (!t->is_needed) continue;
        w->n_needed++;
        for (int k = 0; k < GR_WORK_TASKS / 64; k++) before[k] |= t->before[k];
    }
}

void gr_model_workers_sync(struct gr_run *run)
{
    struct gr_workers *w = run->workers;

    if (w == NULL || w->n_tasks == 0) return;
    find_needed(w, NULL);
    w->in_part = 0;
    gr_model_workers_execute(run);
    forget_tasks(w);
}

int32_t gr_model_workers_sync_for(struct gr_run *run, struct gr_extent read, struct gr_extent write, graft_error *error)
{
    const struct gr_work_task later = { .read[0] = read, .write[0] = write };
    struct gr_workers        *w = run->workers;

    find_needed(w, &later);
    w->in_part = 1;
    if (w->n_needed > 0) gr_model_workers_execute(run);
    return w->status == GRAFT_OK ? GRAFT_OK : gr_fail(error, w->status, "%s", w->error.message);
}

/* The array, or NULL, that the epilogue of a product writes besides the result of the product. */
static const float *beside_of(const struct gr_work *work)
{
    return work->epilogue.some == gr_nn_rows_forward_part ? work->arg.rows.h : NULL;
}

static void copy_epilogue(struct gr_work *work, struct gr_epilogue *epilogue)
{
    GR_ASSERT(epilogue->some == gr_nn_rows_scale_part || epilogue->some == gr_nn_rows_forward_part ||
              epilogue->some == gr_nn_rows_backward_part);
    if (epilogue->some == gr_nn_rows_scale_part) work->arg.scaling = *(const struct gr_rows_scaling *)epilogue->arg;
    else if (epilogue->some == gr_nn_rows_forward_part) work->arg.rows = *(const struct gr_rows *)epilogue->arg;
    else work->arg.backward = *(const struct gr_rows_backward *)epilogue->arg;
    work->epilogue = *epilogue;
    work->epilogue.arg = &work->arg;
    epilogue->is_done = 1;
}

/* Make the task for a block of rows of an operation, with the arrays that it reads and writes. Not for sums, whose
 * tasks are the blocks of their matrix. */
static struct gr_work_task task_of(const struct gr_work *work, int64_t begin, int64_t end)
{
    const graft_gemm              *g = &work->gemm;
    const struct gr_rows_scaling  *s = &work->arg.scaling;
    const struct gr_rows_backward *pass = &work->arg.backward;
    const int64_t                  width = pass->rows.width, of_chunk = GR_PARTIALS * width;
    const double                  *partial = pass->gradient.partial;
    struct gr_work_task            t = { .worker = GR_WORKER_DENSE, .begin = begin, .end = end };

    switch (work->kind) {
    case GR_WORK_GEMM:
        t.is_filler = g->transpose_a;
        t.read[0] = g->transpose_a ? extent_of(g->a, g->lda, g->m, 0, g->k) : extent_of(g->a, g->lda, g->k, begin, end);
        t.read[1] = g->transpose_b ? extent_of(g->b, g->ldb, g->k, 0, g->n) : extent_of(g->b, g->ldb, g->n, 0, g->k);
        t.write[0] = extent_of(g->c, g->ldc, g->n, begin, end);
        t.write[1] = extent_of(beside_of(work), g->n, g->n, begin, end);
        break;
    case GR_WORK_SCALE:
        t.read[0] = extent_of(s->x, s->x_stride, s->width, begin, end);
        t.write[0] = extent_of(s->out, s->width, s->width, begin, end);
        break;
    case GR_WORK_MIX:
        t.read[0] = extent_of(work->mix.x, 1, 1, begin, end);
        t.read[1] = t.write[0] = extent_of(work->mix.y, 1, 1, begin, end);
        break;
    case GR_WORK_BACKWARD:
        t.read[0] = t.write[0] = extent_of(pass->gradient.g, width, width, begin, end);
        t.write[1] = (struct gr_extent){ (const char *)(partial + begin / GR_CHUNK_ROWS * of_chunk),
                                         (const char *)(partial + gr_chunk_count(end, GR_CHUNK_ROWS) * of_chunk) };
        break;
    case GR_WORK_SUM: GR_ASSERT(0);
    }
    return t;
}

/* Copy an operation and its epilogue to the list, with space for this number of tasks and one more. Returns NULL if
 * nothing is recorded now, or if there are too many tasks. */
static struct gr_work *new_work(struct gr_run *run, const struct gr_work *like, struct gr_epilogue *epilogue,
                                int64_t tasks)
{
    struct gr_workers *w = run->workers;
    struct gr_work    *work;

    if (!gr_model_workers_are_recording(run)) return NULL;
    if (w->n_work == GR_WORK_OPERATIONS || w->n_tasks + tasks >= GR_WORK_TASKS) gr_model_workers_sync(run);
    if (tasks >= GR_WORK_TASKS) return NULL;
    work = &w->work[w->n_work++];
    *work = *like;
    if (epilogue != NULL) copy_epilogue(work, epilogue);
    return work;
}

/* Record an operation on n rows, in blocks of `rows` rows. Returns whether it is recorded. */
static int record(struct gr_run *run, const struct gr_work *like, struct gr_epilogue *epilogue, int64_t n, int64_t rows)
{
    const struct gr_work *work = new_work(run, like, epilogue, (n + rows - 1) / rows);

    if (work == NULL) return 0;
    for (int64_t row = 0; row < n; row += rows)
        add_task(run->workers, task_of(work, row, row + rows < n ? row + rows : n));
    return 1;
}

/* Whether a recorded task must be done before this task. */
static int must_wait(const struct gr_workers *w, struct gr_work_task task)
{
    for (int i = 0; i < w->n_tasks; i++)
        if (waits_for(&task, &w->task[i])) return 1;
    return 0;
}

int gr_model_workers_gemm(struct gr_run *run, const graft_gemm *g, struct gr_epilogue *epilogue)
{
    const int            sends = run->strategy->ops->agree != NULL; /* it is computed later, while messages travel */
    const struct gr_work work = { .kind = GR_WORK_GEMM, .gemm = *g };

    if (!gr_model_workers_are_recording(run) || g->m == 0 || g->n == 0 || (g->k >= DEEP && !g->transpose_a)) {
        gr_model_workers_sync(run);
        return 0;
    }
    if (!g->transpose_a) return record(run, &work, epilogue, g->m, block_rows(run));
    if (!sends && !must_wait(run->workers, task_of(&work, 0, g->m))) return 0; /* all threads compute it now */
    return record(run, &work, epilogue, g->m, g->m);
}

/* Cut the matrix of a sum, and prepare its blocks for the kernel. After a failure, 0, the caller computes the product
 * without workers, which reports it. */
static int prepare_blocks(struct gr_run *run, const struct gr_sparse_product *wanted, int64_t rows)
{
    struct gr_sparse_product p = *wanted;
    graft_error              ignored = { .size = sizeof ignored };

    p.epilogue = NULL;
    if (gr_matrix_cut(p.a, rows, &ignored) < 0) return 0;
    for (int64_t i = 0; i < p.a->n_blocks; i++) {
        const struct gr_row_block *b = &p.a->blocks[i];
        struct gr_sparse_call      call;

        gr_sparse_call_init(&call, &p, b->a, b->begin, b->end);
        if (gr_mxm_prepare(run->context, &call.args, &run->workers->modules.concurrent, &ignored) < 0) return 0;
    }
    return 1;
}

int gr_model_workers_sum(struct gr_run *run, const struct gr_sparse_product *p)
{
    const struct gr_work  like = { .kind = GR_WORK_SUM, .sum = *p };
    const struct gr_work *work = NULL;

    if (run->workers == NULL) return 0;
    if (run->workers->recording && p->in_blocks && p->width > 0 && p->a->csr.n_rows > 0 &&
        prepare_blocks(run, p, block_rows(run)))
        work = new_work(run, &like, p->epilogue, p->a->n_blocks);
    if (work == NULL) {
        gr_model_workers_sync(run);
        return 0;
    }
    for (int64_t i = 0; i < p->a->n_blocks; i++) {
        const struct gr_row_block *b = &p->a->blocks[i];
        struct gr_work_task        t = { .worker = GR_WORKER_SPARSE, .begin = b->begin, .end = b->end, .a = b->a };

        t.read[0] = extent_of(p->x.data, p->x.stride, p->width, b->first, b->last + 1);
        t.write[0] = extent_of(p->out, p->width, p->width, b->begin, b->end);
        t.write[1] = extent_of(beside_of(work), p->width, p->width, b->begin, b->end);
        add_task(run->workers, t);
    }
    return 1;
}

int gr_model_workers_scale(struct gr_run *run, const struct gr_rows_scaling *s)
{
    const struct gr_work work = { .kind = GR_WORK_SCALE, .arg.scaling = *s };

    return gr_model_workers_are_recording(run) && record(run, &work, NULL, s->n, block_rows(run));
}

int gr_model_workers_clear(struct gr_run *run, float *x, int64_t rows, int64_t width)
{
    const struct gr_work work = { .kind = GR_WORK_SCALE, .arg.scaling = { .n = rows, .width = width, .out = x } };

    return rows * width > 0 && record(run, &work, NULL, rows, rows);
}

int gr_model_workers_mix(struct gr_run *run, int64_t count, const struct gr_mix *mix)
{
    const struct gr_work work = { .kind = GR_WORK_MIX, .mix = *mix };

    if (!gr_model_workers_are_recording(run)) return 0;
    return record(run, &work, NULL, count, count / gr_larger(1, run->workers->stages_used) + 1);
}

void gr_model_workers_own_pass(const struct gr_run *run, int32_t layer, int is_inner, struct gr_rows_backward *pass)
{
    struct gr_workers *w = run->workers;
    const int32_t      i = layer + (is_inner ? gr_run_config(run)->n_layers : 0);

    if (w == NULL || !w->recording) return;
    pass->left = w->left[i];
    pass->gradient.partial = w->partial[i];
}

/* Record the chunks of the pass, and then its sums as one more task. */
int gr_model_workers_backward(struct gr_run *run, const struct gr_rows_backward *pass)
{
    const struct gr_work like = { .kind = GR_WORK_BACKWARD, .arg.backward = *pass };
    const int64_t        n = pass->rows.n;
    struct gr_work_task  sums;

    if (!gr_model_workers_are_recording(run) || !record(run, &like, NULL, n, block_rows(run))) return 0;
    sums = (struct gr_work_task){ .worker = GR_WORKER_DENSE, .is_filler = 1, .begin = n, .end = n };
    sums.read[0] = task_of(&like, 0, n).write[1];
    add_task(run->workers, sums);
    return 1;
}

/* The number of trial steps without workers, and of all trial steps. The first step of each kind is a warm-up. */
enum { PLAIN_STEPS = 3, STEPS = 7 };

/* Compare steps for workers=auto, decide, and divide the threads by the seconds of the tasks of each kind. */
static void judge_step(struct gr_run *run)
{
    struct gr_workers *w = run->workers;
    const double       both = w->trial.of_kind[GR_WORKER_DENSE] + w->trial.of_kind[GR_WORKER_SPARSE];
    double            *best = w->trial.is_off ? &w->trial.plain : &w->trial.piped;

    if (w->trial.trials < STEPS) {
        w->trial.trials++;
        if (w->trial.trials != 1 && w->trial.trials != PLAIN_STEPS + 1 && w->trial.step < *best) *best = w->trial.step;
        w->trial.is_off =
            w->trial.trials < PLAIN_STEPS || (w->trial.trials == STEPS && w->trial.plain < w->trial.piped);
    }
    if (both > 0) w->sparse = (int)(run->threads * w->trial.of_kind[GR_WORKER_SPARSE] / both + 0.5);
    if (w->sparse > run->threads - 1) w->sparse = run->threads - 1;
    if (w->sparse < 1) w->sparse = 1;
}

static void judge_pass(struct gr_run *run)
{
    struct gr_workers *w = run->workers;
    const double       seconds = gr_seconds() - w->trial.began;

    w->trial.step = run->pass == GRAFT_PASS_FORWARD ? seconds : w->trial.step + seconds;
    if (run->pass == GRAFT_PASS_BACKWARD) judge_step(run);
}

int32_t gr_model_workers_end(struct gr_run *run, int32_t rc, graft_error *error)
{
    struct gr_workers *w = run->workers;

    if (w == NULL) return rc;
    if (rc == GRAFT_OK) gr_model_workers_sync(run);
    if (w->trial.is_auto && rc == GRAFT_OK && w->status == GRAFT_OK && run->pass != GRAFT_PASS_EVALUATION)
        judge_pass(run);
    w->recording = 0;
    forget_tasks(w);
    if (rc == GRAFT_OK && w->status == GRAFT_OK) return GRAFT_OK;
    /* After a failure a recorded sum may not have been computed, so `gathered` is not valid. */
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) run->layers[l].gathered_of = NULL;
    if (rc < 0) return rc;
    return gr_fail(error, w->status, "%s", w->error.message);
}
