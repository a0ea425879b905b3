/* A library that is preloaded into a program and enables traps for floating-point exceptions before main(). Every new
 * thread inherits the traps from the thread that starts it, also inside libraries.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>

enum { TRAPS = FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW };

__attribute__((constructor)) static void trap(void)
{
    feenableexcept(TRAPS);
}

struct start {
    void *(*function)(void *);
    void *arg;
};

static void *run_trapping(void *arg)
{
    const struct start start = *(struct start *)arg;

    free(arg);
    trap();
    return start.function(start.arg);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *arg)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct start *start = malloc(sizeof *start);
    int           failed;

    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    if (start == NULL) abort();
    *start = (struct start){ function, arg };
    failed = create(thread, attributes, run_trapping, start);
    if (failed != 0) free(start);
    return failed;
}
