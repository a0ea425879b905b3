/* Checks the floating-point mode of the host: its rounding, and whether it flushes denormals to zero. In every mode
 * results must be bitwise identical with 1, 2 and 4 threads, although the team of threads was started in another mode.
 * The mode must have an effect, and threads of the host must keep their modes, flags and traps.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_edge.h"
#include "graft_load.h"
#include "harness/effort.h"
#include "harness/networks.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "harness/traps.h"
#include "oracle/oracle.h"

#include <fenv.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

enum { N = 1500, WIDTH = 24, CLASSES = 5, HEADS = 4, TEAM = 4, TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW };
enum { RESULT = 1 << 18 };

struct mode {
    const char *name;
    int         rounding;
    unsigned    flush; /* bits of the register MXCSR */
};

static const struct mode modes[] = {
    { "to nearest", FE_TONEAREST, 0 },
    { "upward", FE_UPWARD, 0 },
    { "downward", FE_DOWNWARD, 0 },
    { "toward zero", FE_TOWARDZERO, 0 },
#ifdef __x86_64__
    { "flush to zero", FE_TONEAREST, 0x8000 },
    { "denormals are zero", FE_TONEAREST, 0x0040 },
#endif
};
enum { MODES = sizeof modes / sizeof *modes };

static void set_mode(const struct mode *mode)
{
    fesetround(mode->rounding);
#ifdef __x86_64__
    _mm_setcsr((_mm_getcsr() & ~0x8040u) | mode->flush);
#endif
}

/* A computation and the bytes of its result, for run_in_mode(). */
struct job {
    const char *name, *settings;
    int32_t (*run)(const struct job *job, int32_t threads, char *result);
    int tiny;      /* whether its numbers are so small that flushing shows */
    int pipelines; /* whether it uses option workers with several threads */
};

static int                   can_trap; /* whether the processor can trap exceptions, which not every ARM can */
static const graft_api      *api;
static graft_error           error = GRAFT_INIT(graft_error);
static struct sample_csr     a;
static graft_matrix         *matrix;
static struct sample_dataset set;
/* [N x WIDTH] matrix in which every other number is near the smallest normal one. */
static float                *b;
static float                *entries; /* [entries of a x WIDTH] */

static graft_dense fp_dense(void *data, int64_t rows, int64_t columns)
{
    return (graft_dense){ sizeof(graft_dense), GRAFT_F32, rows, columns, columns, data };
}

static int32_t run_mxm(const struct job *job, int32_t threads, char *result)
{
    const graft_mxm_api *mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    const graft_dense    x = fp_dense(b, N, WIDTH), out = fp_dense(result, N, WIDTH);
    graft_mxm_args       args = GRAFT_INIT(graft_mxm_args);

    (void)job;
    args.semiring = GRAFT_PLUS_TIMES;
    args.threads = threads;
    args.a = matrix;
    args.b = &x;
    args.c = &out;
    args.row_scale = b;
    return mxm->run(api->context, &args, &error);
}

static int32_t run_softmax(const struct job *job, int32_t threads, char *result)
{
    const graft_edge_api *edge = graft_interface(api, GRAFT_EDGE_ID, sizeof *edge);
    const int64_t         count = a.row_ptr[N];
    const graft_dense     s = fp_dense(entries, count, HEADS), out = fp_dense(result, count, HEADS);

    (void)job;
    return edge->softmax(api->context, matrix, &s, &out, threads, &error);
}

static int32_t run_index_add(const struct job *job, int32_t threads, char *result)
{
    const graft_edge_api *edge = graft_interface(api, GRAFT_EDGE_ID, sizeof *edge);
    const int64_t         count = a.row_ptr[N];
    const graft_dense     x = fp_dense(entries, count, WIDTH), out = fp_dense(result, N, WIDTH);
    graft_index           index = GRAFT_INIT(graft_index);

    (void)job;
    index.index_type = GRAFT_I32;
    index.count = count;
    index.data = a.col_idx;
    return edge->index_add(api->context, &x, &index, &out, threads, &error);
}

/* Train two epochs and predict all vertices. */
static int32_t run_epochs(const struct job *job, int32_t threads, char *result)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    const graft_dense      logits = fp_dense(result, N, CLASSES);
    graft_epoch            epoch = output_epoch();
    graft_trainer         *trainer = NULL;
    char                   text[24];
    int32_t                rc;

    snprintf(text, sizeof text, "threads=%d", threads);
    host_set(api, text);
    host_set(api, job->pipelines && threads > 1 ? "workers=sparse:1" : "workers=no");
    rc = train->create(api->context, &set.dataset, &trainer, &error);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = train->epoch(trainer, &epoch, &error);
    if (rc == GRAFT_OK && !(epoch.loss > 0)) rc = GRAFT_ERR_STATE;
    output_clear_rows(&logits);
    if (rc == GRAFT_OK) rc = train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error);
    train->destroy(trainer);
    return rc;
}

/* -- bitwise identical --------------------------------------------------------------------------------------------- */

static int run_in_mode(const struct job *job, const struct mode *mode, int32_t threads, char *result)
{
    int32_t rc;

    memset(result, 0, RESULT);
    set_mode(mode);
    rc = job->run(job, threads, result);
    set_mode(&modes[0]);
    return rc == GRAFT_OK;
}

/* Compare teams of TEAM and fewer threads. Two threads of the first team stay for the next run, and were started in
 * another mode. */
static const char *compare_threads(const struct job *job, const struct mode *mode, char *result[3])
{
    for (int k = 0; k < 3; k++)
        if (!run_in_mode(job, mode, TEAM >> k, result[k])) return error.message;
    if (memcmp(result[0], result[2], RESULT) != 0) return "4 threads give other bits than one";
    if (memcmp(result[1], result[2], RESULT) != 0) return "2 threads give other bits than one";
    return NULL;
}

static void test_job_modes(const struct job *job)
{
    char       *usual[3], *result[3];
    const char *fault = NULL;

    for (int k = 0; k < 3; k++) {
        usual[k] = oracle_new(RESULT, 1);
        result[k] = oracle_new(RESULT, 1);
    }
    for (int m = 0; m < MODES && fault == NULL; m++) {
        const int shows = m > 0 && (modes[m].flush == 0 || job->tiny);

        fault = compare_threads(job, &modes[m], m == 0 ? usual : result);
        if (fault == NULL && shows && memcmp(usual[0], result[0], RESULT) == 0)
            fault = "the mode of the host has no effect";
        if (fault != NULL) diag("%s", modes[m].name);
    }
    ok_fault(job->name, fault);
    for (int k = 0; k < 3; k++) {
        free(usual[k]);
        free(result[k]);
    }
}

static int finds_module(const char *kind, const char *name)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    for (int32_t i = 0; api->module_info(api->context, i, &entry, NULL) == GRAFT_OK; i++)
        if (strcmp(entry.kind, kind) == 0 && strcmp(entry.name, name) == 0) return 1;
    return 0;
}

static const struct job jobs[] = {
    { "products", "mxm.kernel=auto", run_mxm, 1, 0 },
    { "products in plain loops", "mxm.kernel=reference", run_mxm, 1, 0 },
    { "products by GraphBLAS", "mxm.kernel=graphblas", run_mxm, 1, 0 },
    { "softmax", "mxm.kernel=auto", run_softmax, 0, 0 },
    { "index_add", "", run_index_add, 0, 0 },
    { "training of sage", "model=sage dense.module=auto normalize_features=yes batch_size=0", run_epochs, 0, 0 },
    { "training of sage with workers", "reuse_input=no", run_epochs, 0, 1 },
    { "training of sage with module reference", "reuse_input=yes dense.module=reference", run_epochs, 0, 0 },
    { "training of sage with module cblas", "dense.module=cblas", run_epochs, 0, 0 },
    { "training of sage with module onednn", "dense.module=onednn", run_epochs, 0, 0 },
    { "training of gat", "model=gat heads=2 dense.module=auto", run_epochs, 0, 0 },
    { "training of sage by batches", "model=sage heads=1 batch_size=200 fanout=3", run_epochs, 0, 0 },
};

static int job_is_possible(const struct job *job)
{
    if (strstr(job->settings, "graphblas") != NULL) return finds_module("kernel", "graphblas");
    if (strstr(job->settings, "cblas") != NULL) return finds_module("dense", "cblas");
    return strstr(job->settings, "onednn") == NULL || finds_module("dense", "onednn");
}

/* -- model mgn ---------------------------------------------------------------------------------------------------- */

struct network_inputs {
    graft_field input, target, output;
    graft_pair  pair;
};

/* Make one training step and one inference. The result is a hash of the weights, and the outputs. */
static int32_t step_and_infer(struct host *host, struct network_rank *n, const struct mode *mode,
                              const struct network_inputs *in)
{
    int32_t rc;

    set_mode(mode);
    rc = n->networks->train(n->network, &in->pair, 1, NULL, &host->error);
    if (rc == GRAFT_OK) rc = n->networks->begin(n->network, &in->input, &host->error);
    if (rc == GRAFT_OK) rc = n->networks->end(n->network, &in->output, &host->error);
    set_mode(&modes[0]);
    return rc;
}

static int32_t run_network(struct host *host)
{
    struct network_case  *what = host->all->arg;
    struct network_inputs in = { .pair = GRAFT_INIT(graft_pair) };
    uint64_t              digest[MODES][3];

    for (int run = 0; run < 3 * MODES; run++) {
        struct network_rank n;
        char                text[24];

        snprintf(text, sizeof text, "threads=%d", TEAM >> run % 3);
        host_set(host->api, text);
        NETWORK_CHECK(network_rank_init(host, what, &n) == GRAFT_OK);
        in.input = network_state(&n, NETWORK_IN, 0.5);
        in.target = network_state(&n, NETWORK_OUT, 0.6);
        in.output = network_field(&n, NETWORK_OUT);
        in.pair.input = &in.input;
        in.pair.target = &in.target;
        NETWORK_CHECK(step_and_infer(host, &n, &modes[run / 3], &in) == GRAFT_OK);
        digest[run / 3][run % 3] = network_digest(&n);
        for (int64_t at = 0; at < in.output.n_rows * NETWORK_OUT; at++) {
            uint64_t     bits;
            const double y = network_field_at(&in.output, at / NETWORK_OUT, at % NETWORK_OUT);

            memcpy(&bits, &y, sizeof bits);
            digest[run / 3][run % 3] = digest[run / 3][run % 3] * UINT64_C(1099511628211) + bits;
        }
        free(in.input.data);
        free(in.target.data);
        free(in.output.data);
        network_rank_fini(&n);
    }
    for (int m = 0; m < MODES; m++) {
        if (digest[m][0] != digest[m][2] || digest[m][1] != digest[m][2])
            return network_blame(host, "%s: other bits with more threads", modes[m].name);
        if (m > 0 && modes[m].flush == 0 && digest[m][0] == digest[0][0])
            return network_blame(host, "%s has no effect", modes[m].name);
    }
    return GRAFT_OK;
}

static void test_network_modes(void)
{
    static struct test_mesh    mesh;
    static struct network_case scene = { .predicts = GRAFT_PREDICTS_CHANGE, .dtype = GRAFT_F64 };
    struct sample              sample = { 5 };

    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 24, 0, 5000);
    ok_fault("training and inference of a network",
             network_run(&scene, &mesh, 1, 0, "hidden=16 layers=3 mgn.linear=2", run_network));
    test_mesh_fini(&mesh);
}

/* -- the threads in loops of the host ----------------------------------------------------------------------------- */

/* Read the floating-point environment of each thread of a team of the host. */
static void read_team(fenv_t at[TEAM], int trapped[TEAM])
{
    memset(at, 0, TEAM * sizeof *at);
#pragma omp parallel num_threads(TEAM)
    {
        fegetenv(&at[omp_get_thread_num()]);
        trapped[omp_get_thread_num()] = traps_of_thread();
    }
}

/* Every thread of the host's team has its own mode, flag and traps. Calls of the library must not change them, and must
 * work in spite of them; one of the calls computes with numbers that are not finite. */
static void test_own_modes(void)
{
    static const int rounding[TEAM] = { FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    const float      kept[2] = { b[0], b[1] };
    fenv_t           before[TEAM], after[TEAM];
    int              trapped[2][TEAM];
    char            *result = oracle_new(RESULT, 1);

#pragma omp parallel num_threads(TEAM)
    {
        feclearexcept(FE_ALL_EXCEPT);
        fesetround(rounding[omp_get_thread_num()]);
        feenableexcept(TRAPS);
    }
    read_team(before, trapped[0]);
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        int32_t rc;

        if (!job_is_possible(&jobs[k])) continue;
        host_set_all(api, jobs[k].settings);
        b[0] = jobs[k].run == run_mxm ? INFINITY : kept[0];
        b[1] = jobs[k].run == run_mxm ? NAN : kept[1];
        rc = jobs[k].run(&jobs[k], TEAM, result);
        read_team(after, trapped[1]);
        if (!ok(rc == GRAFT_OK && memcmp(before, after, sizeof before) == 0 &&
                    (trapped[1][TEAM - 1] == TRAPS || !can_trap) &&
                    memcmp(trapped[0], trapped[1], sizeof trapped[0]) == 0,
                "%s: threads keep the environments that they have in loops of the host", jobs[k].name))
            diag("%s", rc == GRAFT_OK ? "one is another" : error.message);
    }
    b[0] = kept[0];
    b[1] = kept[1];
#pragma omp parallel num_threads(TEAM)
    fesetenv(FE_DFL_ENV);
    free(result);
}

/* Runs in a thread without a team, so that the library starts threads. */
static void *trap_in_new_thread(void *trapped)
{
    fenv_t at[TEAM];
    char  *result = oracle_new(RESULT, 1);
    int   *traps = trapped;

    feenableexcept(TRAPS);
    host_set_all(api, jobs[0].settings);
    if (run_mxm(&jobs[0], TEAM, result) == GRAFT_OK) read_team(at, traps);
    fesetenv(FE_DFL_ENV);
    free(result);
    return NULL;
}

static void test_new_team(void)
{
    pthread_t thread;
    int       trapped[TEAM] = { 0 };

    if (pthread_create(&thread, NULL, trap_in_new_thread, trapped) == 0) pthread_join(thread, NULL);
    ok(!can_trap || (trapped[0] == TRAPS && trapped[1] == TRAPS && trapped[TEAM - 1] == TRAPS),
       "threads that the library starts have the traps of the host in its loops: %x, %x, %x, %x", (unsigned)trapped[0],
       (unsigned)trapped[1], (unsigned)trapped[2], (unsigned)trapped[3]);
}

static int32_t open_jobs(void)
{
    struct sample        sample = { 11 };
    const graft_mxm_api *mxm;
    int32_t              rc = graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error);

    if (rc < 0) return rc;
    sample_csr_init(&a, &sample, N, N, GRAFT_I32, GRAFT_F32, 0);
    sample_dataset_init(&set, &sample, N, WIDTH, CLASSES, 0, 0);
    b = oracle_new(N * WIDTH, sizeof *b);
    entries = oracle_new(a.row_ptr[N] * WIDTH, sizeof *entries);
    for (int64_t i = 0; i < N * WIDTH; i++) b[i] = (float)sample_real(&sample, -1, 1) * (i % 2 == 0 ? 1 : 3e-38f);
    for (int64_t i = 0; i < a.row_ptr[N] * WIDTH; i++) entries[i] = (float)sample_real(&sample, -3, 3);
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    host_set_all(api, "hidden=16 layers=2 dropout=0.5 seed=3");
    return mxm->matrix_create(api->context, &a.csr, 0, &matrix, &error);
}

static void close_jobs(void)
{
    const graft_mxm_api *mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);

    mxm->matrix_destroy(matrix);
    api->close(api->context);
    sample_csr_fini(&a);
    sample_dataset_fini(&set);
    free(b);
    free(entries);
}

int main(void)
{
    if (!ok(open_jobs() == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    can_trap = feenableexcept(TRAPS) >= 0;
    fedisableexcept(TRAPS);
    for (size_t k = 0; k < sizeof jobs / sizeof *jobs; k++) {
        if (!job_is_possible(&jobs[k])) {
            skip(1, "%s: not installed", jobs[k].name);
            continue;
        }
        host_set_all(api, jobs[k].settings);
        test_job_modes(&jobs[k]);
    }
    test_network_modes();
    test_own_modes();
    test_new_team();
    close_jobs();
    return done();
}
