/* Checks the drop-in for GrB_mxm, GrB_mxv and GrB_vxm, which is linked before GraphBLAS. Random calls must have the
 * same results as the library itself, also in several threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "random_calls.h"

#include "harness/tap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static struct products       plain;
static const struct products tested = { GrB_mxm, GrB_mxv, GrB_vxm };

/* Find the functions of the library that the drop-in replaces. */
static int find_plain(void)
{
    Dl_info library, first;
    void   *handle;

    if (dladdr(dlsym(RTLD_DEFAULT, "GrB_Matrix_new"), &library) == 0) return 0;
    handle = dlopen(library.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL) return 0;
    *(void **)&plain.mxm = dlsym(handle, "GrB_mxm");
    *(void **)&plain.mxv = dlsym(handle, "GrB_mxv");
    *(void **)&plain.vxm = dlsym(handle, "GrB_vxm");
    return dladdr(dlsym(RTLD_DEFAULT, "GrB_mxm"), &first) != 0 && strstr(first.dli_fname, "graft-grb") != NULL;
}

struct range {
    int  begin, end, wrong, contradictions;
    char fault[300];
};

static void *run_range(void *arg)
{
    struct range *range = arg;
    char          fault[300];

    for (int number = range->begin; number < range->end; number++) {
        const int same = random_call((uint64_t)number, &tested, &plain, fault, sizeof fault);

        range->contradictions += same == LIBRARY_DIFFERS;
        if (same) continue;
        if (range->wrong++ == 0) snprintf(range->fault, sizeof range->fault, "call %d: %.250s", number, fault);
    }
    return NULL;
}

static void test_calls(int calls)
{
    struct range all = { 0, calls, 0, 0, "" };

    run_range(&all);
    ok_or(all.wrong == 0, all.fault, "%d random calls give what the library gives", calls);
    if (all.contradictions > 0)
        diag("%d of them only for operands of one type: else the library is wrong", all.contradictions);
}

static void test_calls_of_threads(int calls)
{
    enum { THREADS = 4 };
    struct range ranges[THREADS];
    pthread_t    threads[THREADS];
    int          wrong = 0;

    memset(ranges, 0, sizeof ranges);
    for (int i = 0; i < THREADS; i++) {
        ranges[i].begin = calls * i;
        ranges[i].end = calls * (i + 1);
        pthread_create(&threads[i], NULL, run_range, &ranges[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += ranges[i].wrong;
        if (ranges[i].wrong > 0) diag("%s", ranges[i].fault);
    }
    ok(wrong == 0, "so do %d in each of %d threads", calls, THREADS);
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 4000;

    setenv("GRAFT_GRB", "work=0,columns=0", 0);
    GrB_init(GrB_NONBLOCKING);
    if (ok(find_plain(), "the drop-in stands before the library")) {
        test_calls(calls);
        test_calls_of_threads(calls / 4);
    }
    GrB_finalize();
    return done();
}
