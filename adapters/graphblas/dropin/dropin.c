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

_Thread_local const struct grb_calls *grb_calls;

const struct grb_version grb_version_unknown = { 0, NULL, NULL, NULL };

/* A context serves one caller at a time, so each thread has its own. */
struct mine {
    graft_grb grb;
    int       usable;
};

static pthread_key_t  key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_thread(void *memory)
{
    struct mine *mine = memory;

    if (mine->usable) mine->grb.api->close(mine->grb.api->context);
    free(mine);
}

static void make_key(void)
{
    pthread_key_create(&key, end_thread);
}

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

static struct mine *new_mine(void)
{
    const graft_api *api = NULL;
    struct mine     *mine = calloc(1, sizeof *mine);

    if (mine == NULL || pthread_setspecific(key, mine) != 0) {
        free(mine);
        return NULL;
    }
    if (load(&api) != GRAFT_OK) return mine;
    if (graft_grb_begin(&mine->grb, api) != GrB_SUCCESS) {
        api->close(api->context);
        return mine;
    }
    mine->usable = 1;
    mine->grb.exact = grb_wishes()->exact;
    if (grb_wishes()->work >= 0) mine->grb.least_work = grb_wishes()->work;
    return mine;
}

/* \return what this thread needs to call Graft, or NULL */
static graft_grb *mine(void)
{
    struct mine *found;

    pthread_once(&once, make_key);
    found = pthread_getspecific(key);
    if (found == NULL) found = new_mine();
    return found != NULL && found->usable ? &found->grb : NULL;
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
    const struct grb_version *version = binding->version;
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
    graft_grb                *grb = NULL;
    void                     *copy = NULL;
    double                    begin;
    GrB_Info                  info;

    if (binding == NULL) return GrB_PANIC; /* GraphBLAS is not in this process */
    if (!grb_wishes()->off && binding->complete && binding->version != NULL && binding->version->major != 0)
        grb = mine();
    if (grb == NULL) {
        info = pass_on(&binding->calls, k, k->c);
        if (!grb_wishes()->off) grb_note_call(&kind, "Graft cannot be used", 0);
        errno = saved_errno;
        return info;
    }
    if (grb_compare_first(&kind) && k->c != NULL) copy = copy_output(&binding->calls, k);
    begin = grb_seconds();
    info = compute(binding, grb, k);
    begin = grb_seconds() - begin;
    grb_note_call(&kind, grb->why, begin);
    if (copy != NULL) compare(&binding->calls, k, &kind, copy, grb->taken ? begin : 0);
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
