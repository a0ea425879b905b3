/* Checks that a library call leaves the state of the process unchanged. The state is compared before and after every
 * call, in hosts with different settings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comma_locale.h"
#include "harness/tap.h"
#include "scenario.h"

#include <fcntl.h>
#include <fenv.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <xmmintrin.h>

enum { SIGNALS = 64, FILES = 256, MXCSR_FLUSH = 0x8040, TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW };

/* The kernel's struct for a signal action; the struct of the C library lacks one field. */
struct action {
    void         *handler;
    unsigned long flags;
    void         *restorer;
    unsigned long mask;
};

/* The state that belongs to the process or the calling thread, and not to the library. */
struct snapshot {
    struct action    actions[SIGNALS];
    sigset_t         blocked;
    stack_t          stack;
    struct itimerval timers[3];
    unsigned         mxcsr;
    int              rounding, raised, traps;
    char             locale[256], decimal[16];
    locale_t         thread_locale;
    char             folder[512];
    mode_t           mask;
    cpu_set_t        cpus;
    int              priority;
    struct rlimit    limits[RLIM_NLIMITS];
    int              omp[5], omp_chunk;
    omp_sched_t      omp_schedule;
    char             files[FILES];
    uint64_t         environment;
};

static struct strict_host host;
static struct scene       scene;
static struct snapshot    before, after;

static void take_signals(struct snapshot *now)
{
    for (int i = 0; i < SIGNALS; i++) {
        /* The C library uses signals 32 and 33 for its threads. */
        if (i + 1 != 32 && i + 1 != 33) syscall(SYS_rt_sigaction, i + 1, NULL, &now->actions[i], 8);
    }
    pthread_sigmask(SIG_SETMASK, NULL, &now->blocked);
    sigaltstack(NULL, &now->stack);
    for (int i = 0; i < 3; i++) getitimer((__itimer_which_t)i, &now->timers[i]);
}

static void take_numbers(struct snapshot *now)
{
    now->mxcsr = _mm_getcsr();
    now->rounding = fegetround();
    now->raised = fetestexcept(FE_ALL_EXCEPT);
    now->traps = fegetexcept();
    snprintf(now->locale, sizeof now->locale, "%s", setlocale(LC_ALL, NULL));
    snprintf(now->decimal, sizeof now->decimal, "%s", localeconv()->decimal_point);
    now->thread_locale = uselocale((locale_t)0);
    now->omp[0] = omp_get_max_threads();
    now->omp[1] = omp_get_dynamic();
    now->omp[2] = omp_get_max_active_levels();
    now->omp[3] = omp_get_thread_limit();
    now->omp[4] = omp_get_default_device();
    omp_get_schedule(&now->omp_schedule, &now->omp_chunk);
}

static void take_process(struct snapshot *now)
{
    if (getcwd(now->folder, sizeof now->folder) == NULL) now->folder[0] = '\0';
    now->mask = umask(0);
    umask(now->mask);
    sched_getaffinity(0, sizeof now->cpus, &now->cpus);
    now->priority = getpriority(PRIO_PROCESS, 0);
    for (int i = 0; i < RLIM_NLIMITS; i++) getrlimit((__rlimit_resource_t)i, &now->limits[i]);
    for (int i = 0; i < FILES; i++) now->files[i] = fcntl(i, F_GETFD) >= 0;
    now->environment = (uint64_t)(uintptr_t)environ;
    for (char **variable = environ; *variable != NULL; variable++) {
        for (const char *c = *variable; *c != '\0'; c++)
            now->environment = (now->environment ^ (uint64_t)*c) * 1099511628211u;
    }
}

static void take(struct snapshot *now)
{
    memset(now, 0, sizeof *now);
    take_signals(now);
    take_numbers(now);
    take_process(now);
}

static void take_before(void)
{
    take(&before);
}

static void manners_compare(const char *call)
{
    take(&after);
#define SAME(what, field)                                                                                              \
    if (memcmp(&before.field, &after.field, sizeof before.field) != 0) watch_blame("%s changed %s", call, what)
    for (int i = 0; i < SIGNALS; i++) {
        if (memcmp(&before.actions[i], &after.actions[i], sizeof before.actions[i]) != 0) {
            watch_blame("%s changed the handler of signal %d", call, i + 1);
        }
    }
    SAME("the signal mask", blocked);
    SAME("the signal stack", stack);
    SAME("the timers", timers);
    SAME("MXCSR", mxcsr);
    SAME("the rounding", rounding);
    SAME("the exceptions that were raised", raised);
    SAME("the exceptions that trap", traps);
    SAME("the locale", locale);
    SAME("the decimal point", decimal);
    SAME("the locale of the thread", thread_locale);
    SAME("the current folder", folder);
    SAME("the umask", mask);
    SAME("the affinity", cpus);
    SAME("the priority", priority);
    SAME("the limits", limits);
    SAME("the OpenMP settings", omp);
    SAME("the OpenMP schedule", omp_schedule);
    SAME("the OpenMP chunk", omp_chunk);
    SAME("the open files", files);
    SAME("the environment", environment);
#undef SAME
}

/* A redirection of standard output and standard error into a file. */
struct capture {
    FILE *file;
    int   saved[2];
};

static void capture_begin(struct capture *capture)
{
    fflush(NULL);
    capture->file = tmpfile();
    files_check(capture->file != NULL, "tmpfile");
    for (int i = 0; i < 2; i++) {
        capture->saved[i] = dup(i + 1);
        dup2(fileno(capture->file), i + 1);
    }
}

/** End the redirection. The result is the number of bytes that were printed. */
static long capture_end(struct capture *capture)
{
    long bytes;

    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(capture->saved[i], i + 1);
        close(capture->saved[i]);
    }
    bytes = (long)lseek(fileno(capture->file), 0, SEEK_END);
    fclose(capture->file);
    return bytes;
}

/* Run one job while all calls are checked. The result is NULL, or says what was wrong. */
static const char *play(const struct scenario *scenario)
{
    graft_error    error = GRAFT_INIT(graft_error);
    struct capture capture;
    int            draws[2];
    int32_t        rc;
    long           printed;

    watch_reset(&host);
    srand(42);
    draws[0] = rand();
    srand(42);
    capture_begin(&capture);
    rc = scenario_play(scenario, &scene, &error);
    printed = capture_end(&capture);
    draws[1] = rand();
    if (rc != GRAFT_OK) watch_blame("it failed: %s", error.message);
    if (printed != 0) watch_blame("%ld bytes were printed", printed);
    if (draws[0] != draws[1]) watch_blame("rand() of the host has moved");
    if (host.live_bytes != 0) watch_blame("%lld bytes are left", (long long)host.live_bytes);
    return watch.faults > 0 ? watch.fault : NULL;
}

static void test_each(void)
{
    for (int i = 0; i < n_scenarios; i++) {
        const int64_t calls = watch.calls;
        const char   *fault = play(&scenarios[i]);

        if (!ok(fault == NULL, "%s: %lld calls changed nothing", scenarios[i].name, (long long)(watch.calls - calls))) {
            diag("%s", fault);
        }
    }
}

/* Run all jobs. `losses` receives the losses of those jobs that train. */
static const char *play_all(double *losses)
{
    for (int i = 0; i < n_scenarios; i++) {
        const char *fault = play(&scenarios[i]);
        if (fault != NULL) return fault;
        losses[i] = scene.loss;
    }
    return NULL;
}

static void test_floating_point(double *losses)
{
    const unsigned mxcsr = _mm_getcsr();

    fesetround(FE_UPWARD);
    ok_fault("in a host that rounds up", play_all(losses));
    ok(fegetround() == FE_UPWARD, "which still does");
    fesetround(FE_TONEAREST);
    _mm_setcsr(mxcsr | MXCSR_FLUSH);
    ok_fault("in a host that flushes denormals", play_all(losses));
    ok((_mm_getcsr() & MXCSR_FLUSH) == MXCSR_FLUSH, "which still does");
    _mm_setcsr(mxcsr);
}

/* The attention of gat computes with infinities internally, which must not trigger the traps of the host. */
static void test_traps(const double *expected, double *losses)
{
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_UNDERFLOW);
    feenableexcept(TRAPS);
    ok_fault("in a host that traps floating-point exceptions, and has raised one that does not trap", play_all(losses));
    ok(fegetexcept() == TRAPS, "which still traps them");
    fedisableexcept(FE_ALL_EXCEPT);
    ok(memcmp(expected, losses, (size_t)n_scenarios * sizeof *losses) == 0, "and gets the same losses");
}

static void test_comma(const double *expected, double *losses)
{
    struct data_folder folder;

    folder_create(&folder);
    if (comma_locale_begin(&folder)) {
        ok_fault("in a host whose decimal point is a comma", play_all(losses));
        ok(memcmp(expected, losses, (size_t)n_scenarios * sizeof *losses) == 0, "which gets the same losses");
    } else {
        skip(2, "no locale with a comma can be made here");
    }
    comma_locale_end(&folder);
    folder_destroy(&folder);
}

static void *in_thread(void *losses)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    return (void *)(uintptr_t)play_all(losses);
}

static int count_threads(void)
{
    DIR *list = opendir("/proc/self/task");
    int  count = 0;

    files_check(list != NULL, "/proc/self/task");
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

static void test_thread(const double *expected, double *losses)
{
    const int threads = count_threads();
    pthread_t thread;
    void     *fault = NULL;

    files_check(pthread_create(&thread, NULL, in_thread, losses) == 0, "pthread_create");
    pthread_join(thread, &fault);
    /* OpenMP threads of the job end slightly later, and load the library for stack unwinding when they do. */
    for (int i = 0; i < 1000 && count_threads() > threads; i++) usleep(1000);
    ok_fault("in a thread other than the first", fault);
    ok(memcmp(expected, losses, (size_t)n_scenarios * sizeof *losses) == 0, "with the same losses");
}

/* Check a host with settings of its own, none of which may change. */
static void test_settings(double *losses)
{
    omp_sched_t schedule;
    int         chunk;

    omp_set_num_threads(2);
    omp_set_schedule(omp_sched_guided, 17);
    omp_set_dynamic(1);
    signal(SIGSEGV, SIG_IGN);
    umask(027);
    ok_fault("in a host with OpenMP settings, handlers and a umask of its own", play_all(losses));
    omp_get_schedule(&schedule, &chunk);
    ok(omp_get_max_threads() == 2 && omp_get_dynamic() && schedule == omp_sched_guided && chunk == 17,
       "which it still has");
    signal(SIGSEGV, SIG_DFL);
}

int main(void)
{
    double         expected[64], losses[64];
    struct subject subject;

    strict_host_init(&host);
    scene_init(&scene);
    take_before();
    if (!ok(subject_open(&subject, NULL) == GRAFT_OK, "the library opens")) return done();
    subject_close(&subject);
    watch.before = take_before;
    watch.after = manners_compare;
    manners_compare("dlopen");
    ok_fault("to load it changes nothing", watch.faults > 0 ? watch.fault : NULL);
    test_each();
    ok_fault("a second time", play_all(expected));
    test_floating_point(losses);
    test_traps(expected, losses);
    test_comma(expected, losses);
    test_thread(expected, losses);
    test_settings(losses);
    scene_fini(&scene);
    return done();
}
