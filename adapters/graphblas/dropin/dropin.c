/* libgraft-grb.so: GrB_mxm, GrB_mxv and GrB_vxm for programs that know nothing of Graft. It stands before GraphBLAS, by
 * LD_PRELOAD or by being linked first; a call is computed by Graft where graft_grb.h can, else passed on unchanged.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bind.h"
#include "report.h"

#include "graphblas/graft_grb_state.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

const struct grb_version grb_version_unknown = { 0, NULL, NULL, NULL };

extern _Thread_local const struct grb_calls *grb_calls;
_Thread_local const struct grb_calls        *grb_calls;

/* A context serves one caller at a time. Those that no thread uses wait in a list, so threads may come and go. */
struct server {
    graft_grb      grb;
    struct server *next;
};

static struct {
    pthread_mutex_t lock;
    struct server  *first;
    int             unusable; /* the library cannot be opened */
} idle = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* libgraft.so.1 beside this library, or wherever the dynamic linker finds it. */
static int32_t load(const graft_api **api)
{
    static const char name[] = "libgraft.so.1";
    char              path[PATH_MAX] = "";
    Dl_info           self;
    const char       *slash;

    if (dladdr((void *)(uintptr_t)load, &self) != 0 && (slash = strrchr(self.dli_fname, '/')) != NULL)
        snprintf(path, sizeof path, "%.*s/%s", (int)(slash - self.dli_fname), self.dli_fname, name);
    if (path[0] != '\0' && graft_load(path, NULL, api, NULL) == GRAFT_OK) return GRAFT_OK;
    return graft_load(name, NULL, api, NULL);
}

static struct server *new_server(void)
{
    const graft_api *api = NULL;
    struct server   *server = calloc(1, sizeof *server);

    if (server == NULL || load(&api) != GRAFT_OK || graft_grb_begin(&server->grb, api) != GrB_SUCCESS) {
        if (api != NULL) api->close(api->context);
        free(server);
        return NULL;
    }
    server->grb.exact = grb_wishes()->exact;
    if (grb_wishes()->work >= 0) server->grb.least_work = grb_wishes()->work;
    if (grb_wishes()->columns >= 0) server->grb.least_columns = grb_wishes()->columns;
    return server;
}

/* \return what a call of Graft needs, until put_server(); or NULL */
static struct server *take_server(void)
{
    struct server *server;
    int            unusable;

    pthread_mutex_lock(&idle.lock);
    server = idle.first;
    if (server != NULL) idle.first = server->next;
    unusable = idle.unusable;
    pthread_mutex_unlock(&idle.lock);
    if (server != NULL || unusable) return server;
    server = new_server();
    if (server == NULL) {
        pthread_mutex_lock(&idle.lock);
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

enum { MXM, MXV, VXM };

/* The arguments of one call. Of a product with a vector, the vectors are that. */
struct call {
    int            which;
    void          *c, *mask, *a, *b;
    GrB_BinaryOp   accum;
    GrB_Semiring   semiring;
    GrB_Descriptor descriptor;
};

static GrB_Info pass_on(const struct grb_calls *to, const struct call *k, void *c)
{
    switch (k->which) {
    case MXM: return to->GrB_mxm_(c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor);
    case MXV: return to->GrB_mxv_(c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor);
    default: return to->GrB_vxm_(c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor);
    }
}

/* Compute by Graft where graft_grb.h can, else by GraphBLAS. */
static GrB_Info compute(const struct grb_binding *binding, graft_grb *grb, const struct call *k)
{
    const struct grb_version *version = atomic_load(&binding->version);
    const struct grb_calls   *before = grb_calls;
    GrB_Info                  info;

    grb_calls = &binding->calls;
    grb->allocate = atomic_load(&binding->allocate);
    switch (k->which) {
    case MXM: info = version->mxm(grb, k->c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor); break;
    case MXV: info = version->mxv(grb, k->c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor); break;
    default: info = version->vxm(grb, k->c, k->mask, k->accum, k->semiring, k->a, k->b, k->descriptor); break;
    }
    grb_calls = before;
    return info;
}

static void *copy_output(const struct grb_calls *calls, const struct call *k)
{
    GrB_Matrix matrix = NULL;
    GrB_Vector vector = NULL;

    if (k->which == MXM) return calls->GrB_Matrix_dup_(&matrix, k->c) == GrB_SUCCESS ? matrix : NULL;
    return calls->GrB_Vector_dup_(&vector, k->c) == GrB_SUCCESS ? vector : NULL;
}

/* Let GraphBLAS compute what Graft did in `graft` seconds, into a copy of the output before it; free the copy. */
static void compare(const struct grb_calls *calls, const struct call *k, const struct grb_kind *kind, void *copy,
                    double graft)
{
    GrB_Matrix   matrix = k->which == MXM ? copy : NULL;
    GrB_Vector   vector = k->which == MXM ? NULL : copy;
    const double begin = grb_seconds();

    if (graft > 0 && pass_on(calls, k, copy) == GrB_SUCCESS) grb_note_comparison(kind, graft, grb_seconds() - begin);
    if (matrix != NULL) calls->GrB_Matrix_free_(&matrix);
    if (vector != NULL) calls->GrB_Vector_free_(&vector);
}

static GrB_Info serve(void *caller, const struct call *k)
{
    static const char *const  names[] = { "GrB_mxm", "GrB_mxv", "GrB_vxm" };
    const int                 saved_errno = errno;
    const struct grb_kind     kind = { names[k->which], k->mask != NULL, k->accum != NULL };
    const struct grb_binding *binding = grb_bind(caller);
    struct server            *server = NULL;
    const struct grb_version *version;
    void                     *copy = NULL;
    double                    begin;
    GrB_Info                  info;

    if (binding == NULL) return GrB_PANIC; /* GraphBLAS is not in this process */
    version = atomic_load(&binding->version);
    /* grb_calls is set while a call of this thread is computed: then this one comes from a kernel of Graft. */
    if (!grb_wishes()->off && grb_calls == NULL && binding->complete && version != NULL && version->major != 0)
        server = take_server();
    if (server == NULL) {
        info = pass_on(&binding->calls, k, k->c);
        if (!grb_wishes()->off) grb_note_call(&kind, "Graft cannot be used", 0);
        errno = saved_errno;
        return info;
    }
    if (grb_compare_first(&kind) && k->c != NULL) copy = copy_output(&binding->calls, k);
    begin = grb_seconds();
    info = compute(binding, &server->grb, k);
    begin = grb_seconds() - begin;
    grb_note_call(&kind, server->grb.why, begin);
    if (copy != NULL) compare(&binding->calls, k, &kind, copy, server->grb.taken ? begin : 0);
    put_server(server);
    errno = saved_errno;
    return info;
}

EXPORT GrB_Info GrB_init(int mode);
EXPORT GrB_Info GxB_init(int mode, void *(*)(size_t), void *(*)(size_t, size_t), void *(*)(void *, size_t),
                         void (*)(void *));
EXPORT GrB_Info GrB_mxm(GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Matrix, GrB_Descriptor);
EXPORT GrB_Info GrB_mxv(GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Vector, GrB_Descriptor);
EXPORT GrB_Info GrB_vxm(GrB_Vector, GrB_Vector, GrB_BinaryOp, GrB_Semiring, GrB_Vector, GrB_Matrix, GrB_Descriptor);

EXPORT GrB_Info GrB_mxm(GrB_Matrix c, GrB_Matrix mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Matrix a,
                        GrB_Matrix b, GrB_Descriptor descriptor)
{
    return serve(__builtin_return_address(0), &(struct call){ MXM, c, mask, a, b, accum, semiring, descriptor });
}

EXPORT GrB_Info GrB_mxv(GrB_Vector w, GrB_Vector mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Matrix a,
                        GrB_Vector u, GrB_Descriptor descriptor)
{
    return serve(__builtin_return_address(0), &(struct call){ MXV, w, mask, a, u, accum, semiring, descriptor });
}

EXPORT GrB_Info GrB_vxm(GrB_Vector w, GrB_Vector mask, GrB_BinaryOp accum, GrB_Semiring semiring, GrB_Vector u,
                        GrB_Matrix a, GrB_Descriptor descriptor)
{
    return serve(__builtin_return_address(0), &(struct call){ VXM, w, mask, u, a, accum, semiring, descriptor });
}

/* The start of GraphBLAS is watched for its function malloc. */
EXPORT GrB_Info GrB_init(int mode)
{
    struct grb_binding *binding = grb_find(__builtin_return_address(0));
    GrB_Info            info = GrB_PANIC;

    if (binding != NULL && binding->calls.GrB_init_ != NULL) info = binding->calls.GrB_init_(mode);
    if (info == GrB_SUCCESS) atomic_store(&binding->allocate, malloc);
    return info;
}

EXPORT GrB_Info GxB_init(int mode, void *(*allocate)(size_t), void *(*callocate)(size_t, size_t),
                         void *(*reallocate)(void *, size_t), void (*release)(void *))
{
    struct grb_binding *binding = grb_find(__builtin_return_address(0));
    GrB_Info            info = GrB_PANIC;

    if (binding != NULL && binding->calls.GxB_init_ != NULL)
        info = binding->calls.GxB_init_(mode, allocate, callocate, reallocate, release);
    if (info == GrB_SUCCESS) atomic_store(&binding->allocate, allocate);
    return info;
}
