/* Checks misuse of handles and threads. Whatever a host passes, the call must return ERR_STATE, its message must name
 * the expected and the passed object, and it must not crash. Each group runs in a child process, so that a crash is one
 * failed check.
 * SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include "graft_load.h"
#include "harness/child.h"
#include "harness/tap.h"

#include <unistd.h>

enum { GARBAGE = 512, KINDS = MISUSE_KINDS, ORDERS = 200 };

static const char *const types[KINDS] = {
    [MATRIX] = "graft_matrix", [TRAINER] = "graft_trainer", [GRAPH] = "graft_graph",
    [PLAN] = "graft_plan",     [DATA] = "graft_data",       [HALO] = "graft_halo",
    [MODEL] = "graft_model",   [SAMPLER] = "graft_sampler", [CONTEXT] = "graft_context",
};

/* Check that a call refuses a wrong handle while its other arguments are right. */
static const char *check_refused(struct misuse *m, void *handle, enum misuse_kind kind, const char *first,
                                 const char *second)
{
    for (int i = 0; i < misuse_n_calls; i++) {
        const struct misuse_call *call = &misuse_calls[i];
        int32_t                   rc;

        if (call->kind != kind) continue;
        m->error.message[0] = '\0';
        rc = call->make(m, handle);
        if (rc != GRAFT_ERR_STATE)
            return misuse_fault("%s returned %d: %s", call->name, rc, rc < 0 ? m->error.message : "");
        if (strstr(m->error.message, first) == NULL || strstr(m->error.message, second) == NULL)
            return misuse_fault("%s: '%s' has no '%s' or no '%s'", call->name, m->error.message, first, second);
    }
    return NULL;
}

/* Check that calls without a status accept any handle. */
static const char *check_silent(struct misuse *m, void *handle, enum misuse_kind kind)
{
    if (kind == MATRIX && m->mxm->matrix_bytes(handle) != 0) return misuse_fault("a matrix that is none has bytes");
    if (kind == GRAPH && m->graphs->owned(handle) != NULL) return misuse_fault("a graph that is none owns vertices");
    if (kind == DATA && m->data->view(handle) != NULL) return misuse_fault("data that are none have a view");
    misuse_destroy(m, handle, kind);
    return NULL;
}

static const char *check_garbage(const void *arg)
{
    static uint64_t garbage[GARBAGE];
    struct misuse   m;
    const char     *fault = misuse_open(&m);

    (void)arg;
    for (int i = 0; i < GARBAGE; i++) garbage[i] = 0x4141414141414141u;
    for (int kind = 0; kind < KINDS && fault == NULL; kind++) {
        void *const bad[] = { garbage, (char *)garbage + 3, (void *)(uintptr_t)8, (void *)UINTPTR_MAX, &m.strict };

        for (size_t i = 0; i < sizeof bad / sizeof *bad && fault == NULL; i++) {
            fault = check_refused(&m, bad[i], kind, types[kind], "is no");
            if (fault == NULL) fault = check_silent(&m, bad[i], kind);
        }
    }
    return fault != NULL ? fault : misuse_close(&m);
}

static const char *check_kinds(const void *arg)
{
    struct misuse m;
    const char   *fault = misuse_open(&m);

    (void)arg;
    for (int kind = 0; kind < KINDS && fault == NULL; kind++) {
        for (int other = 0; other < KINDS && fault == NULL; other++) {
            if (other == kind) continue;
            fault = check_refused(&m, misuse_handle(&m, other), kind, types[kind], types[other]);
            if (fault == NULL && other != CONTEXT) fault = check_silent(&m, misuse_handle(&m, other), kind);
        }
    }
    for (int kind = 0; kind < KINDS && fault == NULL; kind++) fault = misuse_works(&m, kind);
    return fault != NULL ? fault : misuse_close(&m);
}

static const char *check_destroyed(const void *arg)
{
    struct misuse m;
    const char   *fault = misuse_open(&m);

    (void)arg;
    for (int kind = 0; kind < CONTEXT && fault == NULL; kind++) {
        void *handle = misuse_handle(&m, kind);

        misuse_destroy(&m, handle, kind);
        fault = check_refused(&m, handle, kind, types[kind], "was destroyed");
        if (fault == NULL) fault = check_silent(&m, handle, kind);
    }
    memset(m.handle, 0, sizeof m.handle);
    if (fault == NULL) fault = misuse_close(&m);
    return fault != NULL ? fault : check_refused(&m, m.context, CONTEXT, types[CONTEXT], "was destroyed");
}

static const char *check_other_context(const void *arg)
{
    struct misuse m, other;
    const char   *fault = misuse_open(&m);

    (void)arg;
    if (fault == NULL) fault = misuse_open(&other);
    if (fault != NULL) return fault;
    for (int kind = 0; kind < CONTEXT && fault == NULL; kind++)
        if (kind == MATRIX)
            fault = check_refused(&m, misuse_handle(&other, kind), kind, types[kind], "another context");
    if (fault == NULL && misuse_train_over(&m, misuse_handle(&other, GRAPH)) != GRAFT_ERR_STATE)
        fault = misuse_fault("a graph of another context is accepted");
    if (fault == NULL && strstr(m.error.message, "another context") == NULL)
        fault = misuse_fault("%s", m.error.message);
    for (int kind = 0; kind < CONTEXT && fault == NULL; kind++) fault = misuse_works(&other, kind);
    if (fault == NULL) fault = misuse_close(&other);
    return fault != NULL ? fault : misuse_close(&m);
}

/* Close the context first, and then destroy the objects in the order with number `arg`. */
static const char *check_close_first(const void *arg)
{
    int           left[CONTEXT], order = *(const int *)arg;
    struct misuse m;
    const char   *fault = misuse_open(&m);

    if (fault != NULL) return fault;
    for (int kind = 0; kind < CONTEXT; kind++) left[kind] = kind;
    m.api->close(m.context);
    if (strstr(m.log, "not destroyed") == NULL) return misuse_fault("the log has: %s", m.log);
    for (int kind = 0; kind < CONTEXT; kind++)
        if (strstr(m.log, types[kind]) == NULL) return misuse_fault("the log has no %s: %s", types[kind], m.log);
    m.log[0] = '\0';
    m.api->close(m.context);
    for (int n = CONTEXT; n > 0; n--) {
        const int at = order % n, kind = left[at];

        order /= n;
        fault = check_refused(&m, misuse_handle(&m, kind), kind, "closed", "destroyed");
        if (fault != NULL) return fault;
        misuse_destroy(&m, misuse_handle(&m, kind), kind);
        left[at] = left[n - 1];
    }
    if (m.strict.live_bytes != 0) return misuse_fault("%lld bytes are left", (long long)m.strict.live_bytes);
    if (m.log[0] != '\0') return misuse_fault("after close() the log received: %s", m.log);
    return m.strict.fault;
}

/* Resident memory of this process in kB. */
static long misuse_resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long  size, pages = 0;

    if (file == NULL || fscanf(file, "%ld %ld", &size, &pages) != 2) pages = 0;
    if (file != NULL) fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Close a context twice by its table, after its memory was overwritten. A context that was opened in between must stay
 * usable, and many contexts must leave no more memory allocated than few do. */
static const char *check_closed_twice(const void *arg)
{
    enum { CYCLES = 1500, WARM = 400 };
    struct strict_host strict;
    graft_error        error = GRAFT_INIT(graft_error);
    const graft_api   *closed = NULL, *next = NULL;
    long               kept = 0;

    (void)arg;
    strict_host_init(&strict);
    for (int i = 0; i < CYCLES; i++) {
        if (graft_load(getenv("GRAFT_LIBRARY"), &strict.table, &closed, &error) < 0)
            return misuse_fault("%s", error.message);
        closed->close(closed->context);
        if (graft_load(getenv("GRAFT_LIBRARY"), &strict.table, &next, &error) < 0)
            return misuse_fault("%s", error.message);
        closed->close(closed->context);
        closed->cancel(closed->context);
        if (closed->set(closed->context, "threads", "1", &error) != GRAFT_ERR_STATE)
            return misuse_fault("a closed context takes an option");
        if (next->set(next->context, "threads", "1", &error) < 0)
            return misuse_fault("the next one: %s", error.message);
        next->close(next->context);
        if (strict.live_bytes != 0 || strict.fault != NULL) return misuse_fault("memory of the host");
        if (i == WARM) kept = misuse_resident();
    }
#ifdef __SANITIZE_ADDRESS__ /* the sanitizer keeps freed memory, so that uses after free are found */
    kept = misuse_resident();
#endif
    return misuse_resident() < kept + 64 ? NULL : misuse_fault("%ld kB more", misuse_resident() - kept);
}

int main(void)
{
    static const struct {
        const char *name;
        const char *(*check)(const void *arg);
    } groups[] = {
        { "what is no handle at all", check_garbage },
        { "handles of another type", check_kinds },
        { "destroyed handles", check_destroyed },
        { "handles of another context", check_other_context },
        { "a context that is closed twice", check_closed_twice },
    };
    const char *fault = NULL;

    misuse_init();
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        ok_fault(groups[i].name, in_child(groups[i].check, NULL));
    for (int order = 0; order < ORDERS && fault == NULL; order++) {
        const int which = order * 7919 % 40320; /* number of one of the orders of 8 objects */

        fault = in_child(check_close_first, &which);
    }
    ok_fault("close() first, and destroy() in 200 orders", fault);
    misuse_fini();
    return done();
}
