/* Checks that a rank which copies a large message does not block the other ranks, and that a message is not cancelled
 * while it is copied. The destination of the copy is a page that cannot be written until the test allows it, so that
 * the copy lasts as long as the test needs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "comm/threads.h"
#include "harness/tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 3, BYTES = 4096, TAG = 16 };

/* The message that rank 1 sends to rank 0. */
static graft_transport ranks[RANKS];
static char            sent[BYTES], *page;
static size_t          page_bytes;
static _Atomic int     copying, may_go_on, waited_in_vain, copied;

static void pause_for(long nanoseconds)
{
    nanosleep(&(struct timespec){ 0, nanoseconds }, NULL);
}

/* Signal handler for the write into the protected page: the copy has begun, and waits here until the test allows it. */
static void hold_copy(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;
    int         turns = 0;

    (void)context;
    if (at < page || at >= page + page_bytes) {
        signal(number, SIG_DFL);
        return;
    }
    atomic_store(&copying, 1);
    while (!atomic_load(&may_go_on) && turns++ < 5000) pause_for(1000000);
    if (turns > 5000) atomic_store(&waited_in_vain, 1);
    pause_for(50000000);
    atomic_store(&copied, 1);
    mprotect(page, page_bytes, PROT_READ | PROT_WRITE);
}

static int arrives(graft_transport *t, graft_request *request)
{
    graft_error  error = GRAFT_INIT(graft_error);
    const double begin = gr_seconds();
    int32_t      done = 0;

    while (!done && gr_seconds() - begin < 10)
        if (t->test(t->self, request, &done, &error) < 0) return 0;
    return done;
}

static void *send_it(void *arg)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_request *request;

    (void)arg;
    if (ranks[1].send(ranks[1].self, 0, TAG, sent, BYTES, &request, &error) < 0 || !arrives(&ranks[1], request))
        exit(2);
    return NULL;
}

/* Let rank 0 receive the message, and rank 1 begin to copy it. */
static graft_request *begin_copy(pthread_t *thread)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_request *request;

    memset(page, 0, page_bytes); /* otherwise an earlier message would pass for this one */
    mprotect(page, page_bytes, PROT_NONE);
    atomic_store(&copying, 0);
    atomic_store(&may_go_on, 0);
    atomic_store(&copied, 0);
    if (ranks[0].receive(ranks[0].self, 1, TAG, page, BYTES, &request, &error) < 0 ||
        pthread_create(thread, NULL, send_it, NULL) != 0)
        exit(2);
    while (!atomic_load(&copying)) pause_for(1000000);
    return request;
}

static void test_others(void)
{
    graft_error    error = GRAFT_INIT(graft_error);
    graft_request *large, *out, *in;
    pthread_t      thread;
    char           small = 7, came = 0;

    large = begin_copy(&thread);
    ranks[2].send(ranks[2].self, 0, TAG, &small, 1, &out, &error);
    ranks[0].receive(ranks[0].self, 2, TAG, &came, 1, &in, &error);
    ok(arrives(&ranks[2], out) && arrives(&ranks[0], in) && came == 7 && !atomic_load(&copied),
       "while rank 1 copies a message to rank 0, a message from rank 2 is received");
    atomic_store(&may_go_on, 1);
    ok(arrives(&ranks[0], large), "after its copy, the message of rank 1 is received");
    pthread_join(thread, NULL);
    ok(memcmp(page, sent, BYTES) == 0 && !atomic_load(&waited_in_vain),
       "the message of rank 1 is received as it was sent");
}

static void test_cancel(void)
{
    graft_request *request;
    pthread_t      thread;

    request = begin_copy(&thread);
    atomic_store(&may_go_on, 1);
    ok(ranks[0].cancel(ranks[0].self, request) == 1 && atomic_load(&copied) && memcmp(page, sent, BYTES) == 0,
       "a receive that is cancelled during the copy of its message waits for the end of the copy");
    pthread_join(thread, NULL);
}

static void *counted_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void counted_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    (void)bytes;
    (void)alignment;
    free(memory);
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = hold_copy, .sa_flags = SA_SIGINFO };
    graft_host       host = GRAFT_INIT(graft_host);
    graft_error      error = GRAFT_INIT(graft_error);

    alarm(60);
    host.allocate = counted_allocate;
    host.deallocate = counted_deallocate;
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    page = mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < BYTES; i++) sent[i] = (char)(i * 7);
    sigaction(SIGSEGV, &action, NULL);
    if (page == MAP_FAILED || gr_comm_threads_create(&host, RANKS, ranks, &error) < 0) exit(2);
    test_others();
    test_cancel();
    for (int i = 0; i < RANKS; i++) ranks[i].close(ranks[i].self);
    munmap(page, page_bytes);
    return done();
}
