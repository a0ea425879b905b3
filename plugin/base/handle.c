/* The list of handles, and the callers of a context.
 *
 * A list is consistent at any time, because its links are written last. A thread that holds the lock of a list may take
 * the lock of a context's callers, but not the other way round. So a context that was found in a list, directly or
 * through one of its objects, exists until that list is unlocked.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/handle.h"

#include "base/assert.h"
#include "base/context.h"
#include "base/fp.h"
#include "base/lock.h"
#include "base/options.h"
#include "base/table.h"
#include "base/text.h"

#include <errno.h>
#include <unistd.h>

#define HANDLE_MAGIC UINT64_C(0x47726166744f626a)

enum { LIST_BITS = 12 };

/* All handles of the process: one list for each hash of an address. */
static struct {
    _Atomic pid_t     lock;
    struct gr_handle *first;
} gr_handles[1 << LIST_BITS];

static const char *kind_name(enum gr_handle_kind kind)
{
#define HANDLE_NAME(constant, word) "graft_" #word,
    static const char *const names[] = { GR_HANDLE_MAP(HANDLE_NAME) };
#undef HANDLE_NAME
    return names[kind];
}

const char *gr_handle_word(enum gr_handle_kind kind)
{
    return kind_name(kind) + sizeof "graft_" - 1;
}

static uint32_t list_of(const void *object)
{
    return (uint32_t)(((uint64_t)(uintptr_t)object * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - LIST_BITS));
}

/* Find the link that points to an object in its list, which is locked; NULL: it is not listed. */
static struct gr_handle **find(const void *object)
{
    struct gr_handle **link = &gr_handles[list_of(object)].first;

    while (*link != NULL && (const void *)*link != object) link = &(*link)->next;
    return *link != NULL ? link : NULL;
}

/* The state of an object as an argument; all but GOOD are refused. Read while the list of the object is locked. */
enum verdict { GOOD, UNKNOWN, OTHER_KIND, OVERWRITTEN, OTHER_CONTEXT };

static enum verdict judge(struct gr_handle *const *link, enum gr_handle_kind kind)
{
    if (link == NULL) return UNKNOWN;
    if ((*link)->magic != HANDLE_MAGIC) return OVERWRITTEN;
    return (*link)->kind == kind ? GOOD : OTHER_KIND;
}

static int32_t refuse_handle(enum verdict verdict, const void *object, enum gr_handle_kind kind,
                             enum gr_handle_kind found, const char *name, graft_error *error)
{
    if (verdict == OTHER_KIND)
        return gr_fail(error, GRAFT_ERR_STATE, "%s is a %s, expected a %s", name, kind_name(found), kind_name(kind));
    if (verdict == OVERWRITTEN)
        return gr_fail(error, GRAFT_ERR_STATE, "%s, %p, was overwritten: it no longer begins as a %s", name, object,
                       kind_name(kind));
    return gr_fail(error, GRAFT_ERR_STATE, "%s, %p, is no %s: it was destroyed before, or never created", name, object,
                   kind_name(kind));
}

void gr_handle_init(void *object, enum gr_handle_kind kind, graft_context *context)
{
    struct gr_handle  *handle = object;
    struct gr_callers *callers = &context->callers;
    const uint32_t     list = list_of(handle);
    const pid_t        self = getpid();

    handle->magic = HANDLE_MAGIC;
    handle->kind = kind;
    handle->context = context;
    gr_lock_word(&gr_handles[list].lock, self);
    GR_ASSERT(find(handle) == NULL);
    handle->next = gr_handles[list].first;
    gr_handles[list].first = handle;
    gr_lock_word(&callers->lock, self);
    callers->live[kind]++;
    gr_unlock_word(&callers->lock);
    gr_unlock_word(&gr_handles[list].lock);
}

int64_t gr_handle_count(graft_context *context, enum gr_handle_kind kind)
{
    struct gr_callers *callers = &context->callers;
    int64_t            count;

    gr_lock_word(&callers->lock, getpid());
    count = callers->live[kind];
    gr_unlock_word(&callers->lock);
    return count;
}

int gr_handle_is(const void *object, enum gr_handle_kind kind)
{
    const uint32_t list = list_of(object);
    int            good;

    gr_lock_word(&gr_handles[list].lock, getpid());
    good = judge(find(object), kind) == GOOD;
    gr_unlock_word(&gr_handles[list].lock);
    return good;
}

int32_t gr_handle_check(const graft_context *context, const void *object, enum gr_handle_kind kind, const char *name,
                        graft_error *error)
{
    const struct gr_handle *handle = object;
    const graft_context    *other;
    enum gr_handle_kind     found = kind;
    enum verdict            verdict = GOOD;

    if (object == NULL) return gr_fail(error, GRAFT_ERR_ARG, "%s is null", name);
    if (gr_base_options(context)->check == GR_CHECK_NO) other = handle->context;
    else {
        const uint32_t     list = list_of(object);
        struct gr_handle **link;

        gr_lock_word(&gr_handles[list].lock, context->owner);
        link = find(object);
        verdict = judge(link, kind);
        if (link != NULL) found = (*link)->kind;
        other = link != NULL ? (*link)->context : NULL;
        gr_unlock_word(&gr_handles[list].lock);
    }
    if (verdict != GOOD) return refuse_handle(verdict, object, kind, found, name, error);
    if (other == context) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_STATE, "%s, a %s, belongs to another context, %p; this call is made in %p", name,
                   kind_name(kind), (const void *)other, (const void *)context);
}

/* Record `where` as the running call, unless another call runs. The lock of the callers is held. \return NULL, or the
 * name of the call that runs */
static const char *occupy(struct gr_callers *callers, const char *where, int *same_thread)
{
    if (callers->running != NULL) {
        *same_thread = pthread_equal(callers->thread, pthread_self());
        return callers->running;
    }
    callers->running = where;
    callers->thread = pthread_self();
    return NULL;
}

static int32_t refuse_second(const char *where, const char *running, int same_thread, graft_error *error)
{
    if (same_thread)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "%s was called from a callback of %s, which is running; a context serves one call at a time",
                       where, running);
    return gr_fail(error, GRAFT_ERR_STATE,
                   "%s was called while %s is running in another thread; a context serves one call at a time", where,
                   running);
}

static int32_t refuse_forked(pid_t self, pid_t owner, graft_error *error)
{
    return gr_fail(
        error, GRAFT_ERR_FORKED,
        "this is process %ld, forked from process %ld, which opened the context; open a context in this process",
        (long)self, (long)owner);
}

int32_t gr_handle_enter(const void *object, enum gr_handle_kind kind, const char *where, graft_context **held,
                        graft_error *error)
{
    const pid_t         self = getpid();
    const uint32_t      list = list_of(object);
    const char         *running = NULL;
    enum gr_handle_kind found = kind;
    struct gr_handle  **link;
    enum verdict        verdict;
    pid_t               owner = self;
    int                 is_closed = 0, same_thread = 0;

    if (held != NULL) *held = NULL;
    if (object == NULL) return gr_fail(error, GRAFT_ERR_ARG, "the %s is null", gr_handle_word(kind));
    gr_lock_word(&gr_handles[list].lock, self);
    link = find(object);
    verdict = judge(link, kind);
    if (verdict == GOOD) {
        graft_context     *context = (*link)->context;
        struct gr_callers *callers = &context->callers;

        owner = context->owner;
        if (owner == self) {
            gr_lock_word(&callers->lock, self);
            is_closed = callers->closing != GR_OPEN;
            if (!is_closed && held != NULL &&
                atomic_load_explicit(&callers->check, memory_order_relaxed) != GR_CHECK_NO) {
                running = occupy(callers, where, &same_thread);
                if (running == NULL) *held = context;
            }
            gr_unlock_word(&callers->lock);
        }
    } else if (link != NULL) found = (*link)->kind;
    gr_unlock_word(&gr_handles[list].lock);

    if (verdict != GOOD) return refuse_handle(verdict, object, kind, found, gr_handle_word(kind), error);
    if (owner != self) return refuse_forked(self, owner, error);
    if (is_closed) return gr_fail(error, GRAFT_ERR_STATE, "the context was closed; its objects can only be destroyed");
    return running == NULL ? GRAFT_OK : refuse_second(where, running, same_thread, error);
}

static int64_t count_live(const struct gr_callers *callers)
{
    int64_t count = 0;

    for (int kind = GR_HANDLE_CONTEXT + 1; kind < GR_HANDLE_KINDS; kind++) count += callers->live[kind];
    return count;
}

static void tell_left(const graft_context *context)
{
    char           line[256] = "";
    struct gr_text text = { line, sizeof line };

    for (int kind = GR_HANDLE_CONTEXT + 1; kind < GR_HANDLE_KINDS; kind++) {
        const int64_t count = context->callers.live[kind];

        if (count > 0) gr_text_add(&text, "%s%lld %s", text.at == line ? "" : ", ", (long long)count, kind_name(kind));
    }
    if (line[0] == '\0') return;
    gr_log(context, GRAFT_LOG_ERROR,
           "graft close: objects were not destroyed: %s; the context is freed with the last of them", line);
}

void gr_handle_fini(void *object)
{
    const uint32_t     list = list_of(object);
    struct gr_handle **link;

    gr_lock_word(&gr_handles[list].lock, getpid());
    link = find(object);
    if (link != NULL) *link = (*link)->next;
    gr_unlock_word(&gr_handles[list].lock);
}

static void destroy_waiting(graft_context *context, struct gr_handle *first)
{
    struct gr_callers *callers = &context->callers;

    while (first != NULL) {
        struct gr_handle         *next = first->next;
        const enum gr_handle_kind kind = first->kind;

        if (first->where != callers->running)
            gr_log(context, GRAFT_LOG_WARNING, "%s was called while %s was running; the %s was destroyed afterwards",
                   first->where, callers->running, kind_name(kind));
        first->destroy(first);
        gr_lock_word(&callers->lock, context->owner);
        callers->live[kind]--;
        gr_unlock_word(&callers->lock);
        first = next;
    }
}

void gr_handle_leave(graft_context *context)
{
    struct gr_callers *callers = &context->callers;
    const pid_t        self = context->owner;

    for (;;) {
        struct gr_handle *waiting;
        enum gr_closing   closing;

        gr_lock_word(&callers->lock, self);
        waiting = callers->waiting;
        closing = callers->closing;
        callers->waiting = NULL;
        if (waiting == NULL && closing == GR_CLOSE_ASKED) callers->closing = GR_CLOSED;
        if (waiting == NULL && (closing == GR_OPEN || (closing == GR_CLOSED && count_live(callers) > 0))) {
            callers->running = NULL;
            gr_unlock_word(&callers->lock);
            return;
        }
        gr_unlock_word(&callers->lock);
        if (waiting != NULL) destroy_waiting(context, waiting);
        else if (closing == GR_CLOSED) {
            context->handle.destroy(context);
            return;
        } else {
            tell_left(context);
            gr_log_end(context); /* the host's log() need not be callable after close() */
        }
    }
}

void gr_handle_close(graft_context *context, const char *where)
{
    const pid_t        self = getpid();
    const uint32_t     list = list_of(context);
    const char        *running = NULL;
    graft_api         *retires = NULL;
    struct gr_handle **link;
    int                closes = 0, same_thread;

    if (context == NULL) return;
    gr_lock_word(&gr_handles[list].lock, self);
    link = find(context);
    /* In a forked child the memory is a copy, and modules may hold locks of threads that do not exist there, so nothing
     * is freed. */
    if (judge(link, GR_HANDLE_CONTEXT) == GOOD && context->owner == self) {
        struct gr_callers *callers = &context->callers;

        gr_lock_word(&callers->lock, self);
        if (callers->closing == GR_OPEN) {
            callers->closing = GR_CLOSE_ASKED;
            retires = context->api;
            running = occupy(callers, where, &same_thread);
            closes = running == NULL;
        }
        gr_unlock_word(&callers->lock);
    }
    gr_unlock_word(&gr_handles[list].lock);
    gr_table_retire(retires);
    if (closes) gr_handle_leave(context);
}

void gr_handle_destroy(void *object, enum gr_handle_kind kind, const char *where, void (*destroy)(void *object))
{
    const int          saved_errno = errno;
    const pid_t        self = getpid();
    const uint32_t     list = list_of(object);
    graft_context     *own = NULL;
    struct gr_handle **link;
    struct gr_fp       saved_fp;
    int                leaves = 0, same_thread;

    if (object == NULL) return;
    saved_fp = gr_fp_hold();
    gr_lock_word(&gr_handles[list].lock, self);
    link = find(object);
    if (judge(link, kind) == GOOD && (*link)->context->owner == self) {
        struct gr_handle  *handle = *link;
        struct gr_callers *callers;

        own = handle->context;
        callers = &own->callers;
        *link = handle->next;
        handle->magic = 0;
        handle->destroy = destroy;
        handle->where = where;
        gr_lock_word(&callers->lock, self);
        handle->next = callers->waiting;
        callers->waiting = handle;
        leaves = occupy(callers, where, &same_thread) == NULL;
        gr_unlock_word(&callers->lock);
    }
    gr_unlock_word(&gr_handles[list].lock);
    if (leaves) gr_handle_leave(own);
    gr_fp_set(saved_fp);
    errno = saved_errno;
}
