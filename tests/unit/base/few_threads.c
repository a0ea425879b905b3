/* A library that is preloaded into a program and lets it start at most GRAFT_TEST_THREADS threads beside the first one.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef int (*create_fn)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

struct start {
    void *(*body)(void *arg);
    void *arg;
};

static _Atomic int running;

static void few_leave(void *unused)
{
    (void)unused;
    atomic_fetch_sub(&running, 1);
}

static void *few_start(void *arg)
{
    const struct start start = *(struct start *)arg;
    void              *result;

    free(arg);
    pthread_cleanup_push(few_leave, NULL);
    result = start.body(start.arg);
    pthread_cleanup_pop(1);
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *arg)
{
    struct start *start = malloc(sizeof *start);
    void         *symbol = dlsym(RTLD_NEXT, "pthread_create");
    create_fn     create;
    int           code = EAGAIN;

    memcpy(&create, &symbol, sizeof create);
    if (start == NULL) return EAGAIN;
    *start = (struct start){ body, arg };
    if (atomic_fetch_add(&running, 1) < atoi(getenv("GRAFT_TEST_THREADS")))
        code = create(thread, attributes, few_start, start);
    if (code == 0) return 0;
    atomic_fetch_sub(&running, 1);
    free(start);
    return code;
}
