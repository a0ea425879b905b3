/* libgraft-grb.so: replaces GrB_mxm, GrB_mxv and GrB_vxm in programs that do not use Graft. It precedes GraphBLAS, by
 * LD_PRELOAD or in the order of linking. Graft computes a call if graft_grb.h supports it; otherwise the call is passed
 * on to GraphBLAS unchanged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bind.h"
#include "products.h"
#include "report.h"

#include "graphblas/graft_grb_state.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef GrB_Info (*compute_fn)(const struct grb_calls *, int, struct graft_grb *, const struct grb_call *);

#define EXPORT __attribute__((visibility("default")))

/* A context serves one caller at a time. Unused contexts are kept in a list, so that threads may start and end. */
struct server {
    graft_grb      grb;
    compute_fn     compute; /* the function grb_compute() */
    struct server *next;
};

static struct {
    pthread_mutex_t lock;
    struct server  *first;
    int             unusable; /* whether the library cannot be opened */
    graft_error     error;    /* the reason why it cannot be opened */
    int             forked;   /* whether this process is a child of the process in which the drop-in was first used */
} idle = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Take the locks before fork(), so that no lock is held in the child by a thread that does not exist there. */
static void before_fork(void)
{
    grb_report_lock();
    pthread_mutex_lock(&idle.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&idle.lock);
    grb_report_unlock();
}

/* A child opens its own contexts; the contexts of its parent would refuse every call. */
static void after_fork_in_child(void)
{
    idle.first = NULL;
    idle.forked = 1;
    after_fork();
}

static __attribute__((constructor)) void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

/* The path of a file in the folder of this library, or only its name if the folder is not known. */
static const char *beside(const char *name, char *path, size_t size)
{
    Dl_info     self;
    const char *slash;

    if (dladdr((void *)(uintptr_t)beside, &self) == 0 || (slash = strrchr(self.dli_fname, '/')) == NULL) return name;
    snprintf(path, size, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
    return path;
}

/* Load libgraft.so.1 from the folder of this library, or as the dynamic linker finds it. The error is the first
 * error. */
static int32_t load(const graft_api **api, graft_error *error)
{
    static const char name[] = "libgraft.so.1";
    char              path[PATH_MAX];
    const char       *first = beside(name, path, sizeof path);

    if (graft_load(first, NULL, api, error) == GRAFT_OK) return GRAFT_OK;
    return first != name ? graft_load(name, NULL, api, NULL) : error->code;
}

/* Find grb_compute(). It must come from the library in this folder, because the structs of both must be of the same
 * release. NULL if there is none. */
static compute_fn load_compute(graft_error *error)
{
    char        path[PATH_MAX];
    void       *library = graft_load_file(beside("libgraft-grb-products.so", path, sizeof path));
    compute_fn  compute = NULL;
    const char *reason;

    if (library != NULL) *(void **)&compute = dlsym(library, GRB_COMPUTE);
    reason = compute == NULL ? dlerror() : NULL;
    if (compute == NULL)
        snprintf(error->message, sizeof error->message, "cannot compute products: %.300s%s",
                 reason != NULL ? reason : GRB_COMPUTE " is null", library != NULL ? ", of another release" : "");
    return compute;
}

/* Begin to use Graft. The smaller library is loaded first. If it is missing, Graft and OpenMP are not loaded into the
 * process. \return whether this succeeded; otherwise error->message has the reason */
static int begin_server(struct server *server, const graft_api **api, graft_error *error)
{
    server->compute = load_compute(error);
    if (server->compute == NULL || load(api, error) != GRAFT_OK) return 0;
    if (graft_grb_begin(&server->grb, *api) == GrB_SUCCESS) return 1;
    snprintf(error->message, sizeof error->message, "Graft has no " GRAFT_MXM_ID);
    return 0;
}

static struct server *new_server(graft_error *error)
{
    const graft_api *api = NULL;
    struct server   *server = calloc(1, sizeof *server);

    if (server == NULL) snprintf(error->message, sizeof error->message, "there is no memory for a context of Graft");
    if (server == NULL || !begin_server(server, &api, error)) {
        if (api != NULL) api->close(api->context);
        free(server);
        return NULL;
    }
    /* In a child process the threads of the parent's team do not exist, and OpenMP would wait for them. */
    if (idle.forked) server->grb.threads = 1;
    server->grb.exact = grb_wishes()->exact;
    if (grb_wishes()->work >= 0) server->grb.least_work = grb_wishes()->work;
    if (grb_wishes()->columns >= 0) server->grb.least_columns = grb_wishes()->columns;
    return server;
}

/* Take a context for a call of Graft. put_server() ends its use. \return NULL if there is none, and *why */
static struct server *take_server(const char **why)
{
    graft_error    error = GRAFT_INIT(graft_error);
    struct server *server;
    int            unusable;

    *why = idle.error.message;

    pthread_mutex_lock(&idle.lock);
    server = idle.first;
    if (server != NULL) idle.first = server->next;
    unusable = idle.unusable;
    pthread_mutex_unlock(&idle.lock);
    if (server != NULL || unusable) return server;
    server = new_server(&error);
    if (server == NULL) {
        pthread_mutex_lock(&idle.lock);
        if (!idle.unusable) idle.error = error;
        idle.unusable = 1;
        pthread_mutex_unlock(&idle.lock);
    }
    return server;
}

static void put_server(struct server *server)
{
    pthread_mutex_lock(&idle.lock);
    server->next = idle.first;
    idle.first = server;
    pthread_mutex_unlock(&idle.lock);
}

static GrB_Info pass_on(const struct grb_calls *to, const struct grb_call *k, void *c)
{
    switch (k->which) {
    case GRB_MXM: return to->GrB_mxm_(c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor);
    case GRB_MXV: return to->GrB_mxv_(c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor);
    default: return to->GrB_vxm_(c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor);
    }
}

static void *copy_output(const struct grb_calls *calls, const struct grb_call *k)
{
    GrB_Matrix matrix = NULL;
    GrB_Vector vector = NULL;

    if (k->which == GRB_MXM) return calls->GrB_Matrix_dup_(&matrix, k->c) == GrB_SUCCESS ? matrix : NULL;
    return calls->GrB_Vector_dup_(&vector, k->c) == GrB_SUCCESS ? vector : NULL;
}

/* Let GraphBLAS compute the product for which Graft took `graft` seconds, into a copy of the earlier output, and
 * compare the times. The copy is freed. */
static void compare(const struct grb_calls *calls, const struct grb_call *k, const struct grb_kind *kind, void *copy,
                    double graft)
{
    GrB_Matrix   matrix = k->which == GRB_MXM ? copy : NULL;
    GrB_Vector   vector = k->which == GRB_MXM ? NULL : copy;
    const double begin = grb_seconds();

    if (graft > 0 && pass_on(calls, k, copy) == GrB_SUCCESS) grb_note_comparison(kind, graft, grb_seconds() - begin);
    if (matrix != NULL) calls->GrB_Matrix_free_(&matrix);
    if (vector != NULL) calls->GrB_Vector_free_(&vector);
}

/* Whether this thread is computing a call. */
static _Thread_local int is_busy;

/* \return the reason why Graft cannot compute a call of this GraphBLAS, or NULL */
static const char *find_obstacle(const struct grb_binding *binding)
{
    const int major = atomic_load(&binding->major);

    if (is_busy) return "it comes from a kernel of Graft";
    if (major == 0) return "GraphBLAS has not been started";
    if (major < GRB_OLDEST || major > GRB_NEWEST) return "GraphBLAS has a version other than 7 to 10";
    return binding->complete ? NULL : "GraphBLAS lacks functions that are needed";
}

static GrB_Info serve(void *caller, const struct grb_call *k)
{
    static const char *const  names[] = { "GrB_mxm", "GrB_mxv", "GrB_vxm" };
    const int                 saved_errno = errno;
    const struct grb_kind     kind = { names[k->which], k->mask != NULL, k->accum != NULL };
    const struct grb_binding *binding = grb_bind(caller, k->semiring, k->c);
    struct server            *server = NULL;
    const char               *why = NULL;
    void                     *copy = NULL;
    double                    begin;
    GrB_Info                  info;

    if (binding == NULL) return GrB_PANIC; /* this process has no GraphBLAS */
    if (!grb_wishes()->off) why = find_obstacle(binding);
    if (!grb_wishes()->off && why == NULL) server = take_server(&why);
    if (server == NULL) {
        info = pass_on(&binding->calls, k, k->c);
        if (!grb_wishes()->off) grb_note_call(&kind, why, 0);
        errno = saved_errno;
        return info;
    }
    if (grb_compare_first(&kind) && k->c != NULL) copy = copy_output(&binding->calls, k);
    begin = grb_seconds();
    is_busy = 1;
    server->grb.allocate = grb_malloc_of(binding);
    info = server->compute(&binding->calls, atomic_load(&binding->major), &server->grb, k);
    is_busy = 0;
    begin = grb_seconds() - begin;
    grb_note_call(&kind, server->grb.why, begin);
    if (copy != NULL) compare(&binding->calls, k, &kind, copy, server->grb.taken ? begin : 0);
    put_server(server);
    errno = saved_errno;
    return info;
}

EXPORT GrB_Info GrB_mxm(GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Matrix, GrB_Descriptor);
EXPORT GrB_Info GrB_mxv(GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Vector, GrB_Descriptor);
EXPORT GrB_Info GrB_vxm(GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Vector, GrB_Matrix, GrB_Descriptor);

EXPORT GrB_Info GrB_mxm(GrB_Matrix c, GrB_Matrix mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Matrix a,
                        GrB_Matrix b, GrB_Descriptor desc)
{
    return serve(__builtin_return_address(0), &(struct grb_call){ GRB_MXM, c, mask, a, b, accum, semiring, desc });
}

EXPORT GrB_Info GrB_mxv(GrB_Vector w, GrB_Vector mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Matrix a,
                        GrB_Vector u, GrB_Descriptor desc)
{
    return serve(__builtin_return_address(0), &(struct grb_call){ GRB_MXV, w, mask, a, u, accum, semiring, desc });
}

EXPORT GrB_Info GrB_vxm(GrB_Vector w, GrB_Vector mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Vector u,
                        GrB_Matrix a, GrB_Descriptor desc)
{
    return serve(__builtin_return_address(0), &(struct grb_call){ GRB_VXM, w, mask, u, a, accum, semiring, desc });
}
