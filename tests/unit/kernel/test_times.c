/* Checks the times at which each thread worked: `times` of a product for every kernel, and the spans of a trainer made
 * from them. Spans that lie outside of their phase, overlap, or do not add up fail.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/kernels.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_mxm.h"
#include "graft_report.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

enum { THREADS = 2, TIMES = 3, ROWS = 200, INNER = 20000, WIDTH = 64, N = 2500, SPANS = 4096 };

static const graft_api        *api;
static const graft_mxm_api    *mxm;
static const graft_train_api  *train;
static const graft_report_api *report;
static graft_error             error = GRAFT_INIT(graft_error);

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int times_set(const char *key, const char *value)
{
    const int32_t rc = api->set(api->context, key, value, &error);

    return rc == GRAFT_OK || ok(0, "%s = %s: %s", key, value, error.message);
}

/* Whether thread i worked between the two moments. times[3 * i + 2] is the part of that time for which it waited. */
static int lies_between(const double *times, double before, double after)
{
    return before <= times[0] && times[0] <= times[1] && times[1] <= after && times[2] >= 0 &&
           times[2] <= times[1] - times[0];
}

static double busy(const double *times)
{
    return times[1] - times[0] - times[2];
}

static int is_zero(const double *times, int count)
{
    for (int i = 0; i < count; i++) {
        if (times[i] != 0) return 0;
    }
    return 1;
}

/* Run two products of one kernel; the second one adds to the times of the first. */
static void check_account(const char *kernel, graft_mxm_args *args)
{
    double       times[(THREADS + 1) * TIMES] = { 0 }, first[THREADS * TIMES] = { 0 }, moment[4];
    const double mark = times[THREADS * TIMES] = -77;
    int          good = 1;

    args->times = times;
    for (int i = 0; i < 4; i += 2) {
        moment[i] = now();
        good = good && mxm->run(api->context, args, &error) == GRAFT_OK;
        moment[i + 1] = now();
        if (i == 0) memcpy(first, times, sizeof first);
    }
    if (strcmp(kernel, "graphblas") == 0) {
        ok(good && is_zero(times, THREADS * TIMES), "kernel %s does not measure times, and leaves the array unchanged",
           kernel);
        return;
    }
    for (int i = 0; i < THREADS * TIMES; i += TIMES) {
        const double more = busy(times + i) - busy(first + i);

        good = good && lies_between(first + i, moment[0], moment[1]) && lies_between(times + i, moment[0], moment[3]);
        good = good && times[i] == first[i] && times[i + 1] > moment[2] && more > 0 && more <= moment[3] - moment[2];
    }
    ok(good && times[THREADS * TIMES] == mark,
       "%s: times are measured for both threads, and those of the next product are added", kernel);
    if (strncmp(kernel, "simd", 4) == 0)
        ok(first[2] > 0 && first[5] > 0 && first[2] + first[5] < moment[1] - moment[0],
           "%s: threads wait between the parts of its largest rows and the sum of the parts", kernel);
}

/* Counts the calls of the poll function, and the threads that made them. */
struct polls {
    pthread_t caller;
    int       count, strangers;
};

static void times_count_poll(void *arg)
{
    struct polls *polls = arg;

    polls->count++;
    polls->strangers += !pthread_equal(pthread_self(), polls->caller);
}

static void check_polls(const char *kernel, graft_mxm_args *args)
{
    struct polls  polls = { .caller = pthread_self() };
    const int32_t threads = args->threads;
    int           good = 1;

    args->times = NULL;
    args->poll = times_count_poll;
    args->poll_arg = &polls;
    for (args->threads = 1; args->threads <= THREADS; args->threads++)
        good = good && mxm->run(api->context, args, &error) == GRAFT_OK;
    if (strcmp(kernel, "graphblas") != 0) good = good && polls.count > 3;
    ok(good && polls.strangers == 0, "%s: %d calls of poll, all by the calling thread", kernel, polls.count);
    args->threads = threads;
    args->poll = NULL;
    args->poll_arg = NULL;
}

/* Row 1 and the last one have all columns, which are so many that kernels split the rows. */
static void test_times_kernels(void)
{
    static float                  b[INNER][WIDTH], c[2][ROWS][WIDTH];
    struct sample                 sample = { 5 };
    struct sample_csr             a;
    const struct sample_csr_shape shape = { ROWS, INNER, GRAFT_I32, GRAFT_F32, 0, 1 };
    graft_matrix                 *matrix = NULL;
    graft_module_entry            entry = GRAFT_INIT(graft_module_entry);
    const char                   *lack;
    const graft_dense             dense_b = { sizeof dense_b, GRAFT_F32, INNER, WIDTH, WIDTH, b };
    graft_dense                   dense_c = { sizeof dense_c, GRAFT_F32, ROWS, WIDTH, WIDTH, c[0] };
    graft_mxm_args                args = GRAFT_INIT(graft_mxm_args);

    sample_csr_init_shape(&a, &sample, &shape);
    for (int64_t i = 0; i < (int64_t)INNER * WIDTH; i++) b[i / WIDTH][i % WIDTH] = (float)sample_exact(&sample, 8, 4);
    if (!ok(mxm->matrix_create(api->context, &a.csr, 0, &matrix, &error) == GRAFT_OK, "a matrix with two hubs is made"))
        return;
    args.semiring = GRAFT_PLUS_TIMES;
    args.threads = THREADS;
    args.a = matrix;
    args.b = &dense_b;
    args.c = &dense_c;
    for (int32_t i = 0; api->module_info(api->context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0) continue;
        lack = kernel_lack(api, i, &entry);
        if (lack != NULL) {
            skip(3, "kernel %s cannot be used: %s", entry.name, lack);
            continue;
        }
        args.times = NULL;
        dense_c.data = c[0];
        if (mxm->run(api->context, &args, &error) != GRAFT_OK) ok(0, "%s: %s", entry.name, error.message);
        dense_c.data = c[1];
        memset(c[1], 0, sizeof c[1]);
        check_account(entry.name, &args);
        check_polls(entry.name, &args);
        if (strcmp(entry.name, "graphblas") != 0) /* this kernel may sum in any order */
            ok(memcmp(c[0], c[1], sizeof c[0]) == 0, "%s: the product is the same with times", entry.name);
    }
    times_set("mxm.kernel", "auto");
    mxm->matrix_destroy(matrix);
    sample_csr_fini(&a);
}

/* All spans of the last call of a trainer. */
static struct spans {
    graft_span at[SPANS];
    int64_t    count;
} spans;

static void take_spans(graft_trainer *trainer)
{
    spans.count = 0;
    while (spans.count < SPANS) {
        spans.at[spans.count] = GRAFT_INIT(graft_span);
        if (report->span(trainer, spans.count, &spans.at[spans.count], NULL) != GRAFT_OK) return;
        spans.count++;
    }
}

/* Whether share i belongs to the phase and lies inside it. Seconds since create() are rounded. */
static int is_share(const graft_span *phase, const graft_span *share)
{
    return share->layer == phase->layer && share->pass == phase->pass && share->epoch == phase->epoch &&
           strcmp(share->phase, phase->phase) == 0 && share->thread <= phase->threads &&
           share->begin >= phase->begin - 1e-9 && share->end <= phase->end + 1e-9 && share->begin <= share->end &&
           share->waited >= 0 && share->waited <= share->end - share->begin + 1e-9 && share->flops == 0 &&
           share->bytes == 0;
}

/* Check the spans of an epoch with so many threads. The result is NULL or what is wrong. The threads of the phase
 * `unknown` are not known. */
static const char *fault_of_spans(int threads, const char *unknown)
{
    const graft_span *phase = NULL, *last = NULL;

    for (int64_t i = 0; i < spans.count; i++) {
        const graft_span *span = &spans.at[i];

        if (span->threads != threads) return "another number of threads";
        if (span->thread == 0) {
            if (phase != NULL && phase->end > span->begin) return "phases overlap";
            if (phase != NULL && last == phase && strcmp(phase->phase, unknown) != 0) return "a phase without threads";
            phase = span;
        } else if (phase == NULL || !is_share(phase, span)) {
            return "a share that is not in its phase";
        } else if (span->thread != last->thread + 1) {
            return "threads in no order";
        }
        last = span;
    }
    if (phase == NULL || phase->pass != GRAFT_PASS_EVALUATION || strcmp(phase->phase, "loss") != 0)
        return "the evaluation does not come last";
    return NULL;
}

/* The number of shares of this thread in phases of this name. */
static int shares(const char *name, int thread)
{
    int count = 0;

    for (int64_t i = 0; i < spans.count; i++)
        count += spans.at[i].thread == thread && strcmp(spans.at[i].phase, name) == 0;
    return count;
}

/* Train an epoch with an evaluation. The number of threads is set after the trainer was made. */
static int train_on(const struct sample_dataset *data, const char *threads)
{
    graft_trainer *trainer = NULL;
    graft_epoch    epoch = output_epoch();
    int32_t        rc = train->create(api->context, &data->dataset, &trainer, &error);

    if (rc == GRAFT_OK) rc = api->set(api->context, "threads", threads, &error);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = train->epoch(trainer, &epoch, &error);
    if (rc == GRAFT_OK) take_spans(trainer);
    train->destroy(trainer);
    if (rc != GRAFT_OK) diag("%s", error.message);
    return rc == GRAFT_OK;
}

static void times_check_spans(const struct sample_dataset *data, const char *model, const char *unknown,
                              const char *name)
{
    const char *sum = strcmp(model, "gat") == 0 ? "attention" : "aggregate", *fault;

    if (!times_set("model", model) || !ok(train_on(data, "2"), "%s, %s: the model trains", model, name)) return;
    fault = fault_of_spans(THREADS, unknown);
    ok(fault == NULL, "%s, %s: the profile has %lld spans, and each thread's share lies in its phase: %s", model, name,
       (long long)spans.count, fault != NULL ? fault : "as it should be");
    ok(shares("update", 2) > 3 && shares("rows", 2) > 1 &&
           (strcmp(model, "mlp") == 0 || strcmp(sum, unknown) == 0 || shares(sum, 2) > 2) && shares(unknown, 1) == 0,
       "%s, %s: the second thread has shares in the profile", model, name);
    ok(shares("optimizer", 1) == 1 && shares("optimizer", 2) == 0, "%s, %s: weights are updated by one thread", model,
       name);
}

static void test_trainers(const struct sample_dataset *data)
{
    static const char *const models[] = { "sage", "gcn", "gat", "gin", "mlp", "sgc", "appnp" };
    graft_module_entry       entry = GRAFT_INIT(graft_module_entry);

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        times_set("recompute", i % 2 ? "yes" : "no");
        times_check_spans(data, models[i], "", "all modules by themselves");
    }
    for (int32_t i = 0; api->module_info(api->context, i, &entry, NULL) == GRAFT_OK; i++) {
        const int   kernel = strcmp(entry.kind, "kernel") == 0;
        const char *key = kernel ? "mxm.kernel" : "dense.module", *lack = entry.state < 0 ? entry.detail : NULL;

        if (strcmp(entry.kind, "transport") == 0) continue;
        if (kernel) lack = kernel_lack(api, i, &entry);
        if (lack != NULL) {
            skip(4, "%s %s cannot be used: %s", entry.kind, entry.name, lack);
            times_set("mxm.kernel", "auto");
            continue;
        }
        times_set(key, entry.name);
        times_check_spans(data, "sage", kernel && strcmp(entry.name, "graphblas") == 0 ? "aggregate" : "", entry.name);
        times_set(key, "auto");
    }
}

/* The host may change the number of threads at any time. */
static void test_other_threads(const struct sample_dataset *data)
{
    times_set("model", "sage");
    times_set("threads", "1");
    ok(train_on(data, "3") && fault_of_spans(3, "") == NULL && shares("update", 3) > 3,
       "a trainer made with one thread has spans of three");
    ok(train_on(data, "1") && fault_of_spans(1, "") == NULL && shares("update", 2) == 0,
       "one made with three has spans of one");
    times_set("threads", "2");
}

/* With the largest number of layers all spans must be recorded, also those of recomputed work. */
static void test_many_layers(const struct sample_dataset *data)
{
    static const char *const models[] = { "sage", "gat", "gin" };

    times_set("layers", "64");
    times_set("hidden", "4");
    times_set("recompute", "yes");
    times_set("dropout", "0");
    for (int i = 0; i < 3; i++) {
        const int trained = times_set("model", models[i]) && train_on(data, "2");

        ok(trained && fault_of_spans(THREADS, "") == NULL, "%s of 64 layers has a complete profile of %lld spans",
           models[i], (long long)spans.count);
    }
}

int main(void)
{
    struct sample         sample = { 3 };
    struct sample_dataset data;

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    report = graft_interface(api, GRAFT_REPORT_ID, sizeof *report);
    if (!ok(mxm != NULL && train != NULL, "the library has interfaces for products and training")) return done();
    test_times_kernels();
    sample_dataset_init(&data, &sample, N, 60, 16, 0, 0);
    times_set("profile", "yes");
    times_set("threads", "2");
    times_set("hidden", "64");
    times_set("row_masks", "no");
    test_trainers(&data);
    test_other_threads(&data);
    test_many_layers(&data);
    sample_dataset_fini(&data);
    api->close(api->context);
    return done();
}
