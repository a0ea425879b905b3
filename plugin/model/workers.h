/* Sparse and dense workers: sums over neighbours and dense products of successive layers in a pipeline over blocks of
 * rows (MixGCN 3.2). The products of a pass are recorded as tasks. They are executed when their results are needed:
 * some threads prefer sparse tasks, others dense tasks, and a task starts when its dependencies are done. Results are
 * bitwise identical to those without workers.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/product.h"
#include "model/rows.h"

#include <stdatomic.h>

enum gr_worker { GR_WORKER_DENSE, GR_WORKER_SPARSE, GR_WORKER_KINDS };

enum {
    GR_WORK_STATES = 64,
    GR_WORK_TASKS = 512,
    GR_WORK_OPERATIONS = 64,
    GR_WORK_READS = 2,
    GR_WORK_WRITES = 2,
    GR_STAGES_MOST = 32
};

/** A range of addresses that a task reads or writes. */
struct gr_extent {
    const char *begin, *end;
};

/** A recorded operation; each task computes a block of its rows. It has copies of the structs of its caller, which are
 *  on the caller's stack. */
struct gr_work {
    enum gr_work_kind { GR_WORK_GEMM, GR_WORK_SUM, GR_WORK_SCALE, GR_WORK_MIX, GR_WORK_BACKWARD } kind;
    union {
        graft_gemm               gemm;
        struct gr_sparse_product sum;
        struct gr_mix            mix;
    };
    struct gr_epilogue epilogue; /* epilogue of a product; epilogue.some NULL: none */
    union {
        struct gr_rows_scaling  scaling; /* x NULL: `out` is cleared */
        struct gr_rows          rows;
        struct gr_rows_backward backward;
    } arg; /* argument of the epilogue, or of GR_WORK_SCALE or GR_WORK_BACKWARD */
};

enum gr_task_state { GR_TASK_WAITS, GR_TASK_RUNS, GR_TASK_DONE };

struct gr_work_task {
    enum gr_worker     worker;
    int                work;      /* index of its operation */
    int                is_filler; /* no other task of the pass needs its results, for example a weight gradient */
    int                is_needed; /* the current call of sync() or sync_for() waits for it */
    int64_t            begin, end;
    graft_matrix      *a; /* rows begin to end - 1 of the matrix of a sum */
    struct gr_extent   read[GR_WORK_READS], write[GR_WORK_WRITES];
    uint64_t           before[GR_WORK_TASKS / 64]; /* tasks that must be done before it */
    enum gr_task_state state;
};

/** The comparison of steps with option workers=auto. */
struct gr_worker_trial {
    int    is_auto, is_off;          /* whether workers=auto; whether steps run without workers */
    int    trials;                   /* number of compared steps */
    double step;                     /* seconds of this step until now */
    double plain, piped;             /* seconds of the fastest step without workers, and with them */
    double began;                    /* time when this pass began */
    double of_kind[GR_WORKER_KINDS]; /* seconds of the tasks of each kind in this step */
};

/** Which threads may call the kernel and the dense module at the same time. */
struct gr_worker_modules {
    int                     concurrent;  /* several threads may call the kernel at the same time */
    int                     calls;       /* number of threads that are in the kernel now */
    int                     calls_dense; /* number of threads that are in the dense module now */
    int                     n_states; /* threads with a state of the dense module; 0: one thread calls it at a time */
    void                   *state[GR_WORK_STATES]; /* state of each thread; the first belongs to the context */
    const struct gr_module *dense;                 /* the module of the states */
};

/** Sums over all passes, for reports. */
struct gr_worker_report {
    double  busy[GR_WORKER_KINDS], idle[GR_WORKER_KINDS]; /* seconds of the threads of each kind */
    double  helped[GR_WORKER_KINDS];                      /* seconds of `busy` spent on tasks of the other kind */
    int64_t tasks_done;
    double  bandwidth; /* bandwidth of the matrix, as a share of its rows; 0: not used */
};

struct gr_workers {
    int                      sparse;      /* threads that prefer sparse tasks; the others prefer dense ones */
    int                      stages;      /* number of blocks of a product; 0: chosen from the bandwidth of the graph */
    int64_t                  stages_used; /* the chosen number; 0: not chosen yet */
    struct gr_worker_trial   trial;
    struct gr_worker_modules modules;
    struct gr_worker_report  report;

    /* The arrays of gr_rows_backward for recorded passes: element l is for the pass after layer l, element n_layers + l
     * for the pass inside layer l. */
    _Atomic int64_t *left[2 * GR_LAYERS_MAX];
    double          *partial[2 * GR_LAYERS_MAX];

    int                 recording; /* a pass records its products now */
    int                 n_work, n_tasks;
    int                 n_needed; /* number of tasks that are needed and not done */
    int                 in_part;  /* only needed tasks are executed, the others remain recorded */
    int32_t             status;   /* status of the first failed task; the other tasks are dropped */
    graft_error         error;
    atomic_flag         lock;
    uint64_t            done[GR_WORK_TASKS / 64];
    struct gr_work      work[GR_WORK_OPERATIONS];
    struct gr_work_task task[GR_WORK_TASKS];
};

/** Whether options ask for workers in a run of this capacity. */
int     gr_model_workers_wanted(const struct gr_run *run, const struct gr_capacity *capacity);
/** Create the workers. \return OK; ERR_NOMEM. */
int32_t gr_model_workers_init(struct gr_run *run, struct gr_budget *budget, int64_t chunks, int64_t partial,
                              graft_error *error);
/** Cut the matrix of a sum, which may be NULL, into the blocks of rows of a pass whose first layer reads `rows` rows,
 *  and charge the budget for them. \return OK; ERR_NOMEM. */
int32_t gr_model_workers_cut(struct gr_run *run, struct gr_budget *budget, graft_matrix *a, int64_t rows,
                             graft_error *error);
/** Compute the bytes of the workers. `chunks` and `partial` are the elements of space.left[i] and space.partial. */
double  gr_model_workers_bytes(const struct gr_run *run, int64_t chunks, int64_t partial);
void    gr_model_workers_fini(struct gr_run *run);

/** Check that option workers=sparse leaves a thread for dense products. \return OK; ERR_OPTION. */
int32_t gr_model_workers_check(const struct gr_run *run, graft_error *error);

/** The reason why this model cannot run with workers. NULL: it can, because its arrays are accessed only by products
 *  and by functions that call gr_model_workers_sync(). */
const char *gr_model_workers_refusal(const struct gr_run *run);

static inline int gr_model_workers_suit(const struct gr_run *run)
{
    return gr_model_workers_refusal(run) == NULL;
}

/** The number of blocks of a product. */
int64_t gr_model_workers_stages(const struct gr_run *run);
/** Begin to record the products of a pass, if there are workers and the model suits them. */
void    gr_model_workers_begin(struct gr_run *run);
/** Execute the recorded tasks, if any. gr_model_workers_end() reports a failure. */
void    gr_model_workers_sync(struct gr_run *run);
/** Execute the tasks that must precede a read of `read` and a write of `write`; other tasks remain recorded. \return
 *  OK; the first failure of this pass. */
int32_t gr_model_workers_sync_for(struct gr_run *run, struct gr_extent read, struct gr_extent write,
                                  graft_error *error);
/** Execute the needed tasks and, unless in_part is set, then all other tasks. For workers.c. */
void    gr_model_workers_execute(struct gr_run *run);
/** End a pass with status `rc`: execute all tasks if it is OK, and stop recording. \return rc; the first failure. */
int32_t gr_model_workers_end(struct gr_run *run, int32_t rc, graft_error *error);

/** Whether a pass records its products now. */
static inline int gr_model_workers_are_recording(const struct gr_run *run)
{
    return run->workers != NULL && run->workers->recording;
}

/** Record an operation, and its epilogue unless it is NULL. \return 1; 0 if the caller has to execute it now. */
int gr_model_workers_gemm(struct gr_run *run, const graft_gemm *gemm, struct gr_epilogue *epilogue);
int gr_model_workers_sum(struct gr_run *run, const struct gr_sparse_product *sum);
int gr_model_workers_scale(struct gr_run *run, const struct gr_rows_scaling *scaling);
int gr_model_workers_mix(struct gr_run *run, int64_t count, const struct gr_mix *mix);
int gr_model_workers_backward(struct gr_run *run, const struct gr_rows_backward *pass);
int gr_model_workers_clear(struct gr_run *run, float *x, int64_t rows, int64_t width);

/** Set the arrays of a backward pass over rows to those that no other pass uses before the tasks are executed. */
void gr_model_workers_own_pass(const struct gr_run *run, int32_t layer, int is_inner, struct gr_rows_backward *pass);
