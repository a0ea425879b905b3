/* A context of Graft in programs of PETSc, with its options, events and errors. Included by graft_petsc.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_PETSC_CONTEXT_H
#define GRAFT_PETSC_CONTEXT_H

#include "graft.h"
#include "graft_load.h"
#include "graft_mpi.h"

#include <petscsys.h>

#if defined(PETSC_USE_COMPLEX)
#error "graft_petsc.h needs a PETSc with real scalars: Graft has no complex numbers"
#elif !defined(PETSC_USE_REAL_DOUBLE) && !defined(PETSC_USE_REAL_SINGLE)
#error "graft_petsc.h needs a PETSc in single or double precision: Graft has no other types"
#elif PETSC_VERSION_LT(3, 17, 0)
#error "graft_petsc.h needs PETSc 3.17 or later"
#endif

#if PETSC_VERSION_LT(3, 19, 0)
#define GRAFT_PETSC_SUCCESS 0
#else
#define GRAFT_PETSC_SUCCESS PETSC_SUCCESS
#endif

#define GRAFT_PETSC_INLINE static inline __attribute__((unused))
#define GRAFT_PETSC_DTYPE (sizeof(PetscScalar) == sizeof(double) ? GRAFT_F64 : GRAFT_F32)
#define GRAFT_PETSC_INDEX (sizeof(PetscInt) == sizeof(int64_t) ? GRAFT_I64 : GRAFT_I32)

/* The events that -log_view shows. */
enum {
    GRAFT_PETSC_BUILD,
    GRAFT_PETSC_MULT,
    GRAFT_PETSC_MULT_TRANSPOSE,
    GRAFT_PETSC_OFFER,
    GRAFT_PETSC_TRAIN,
    GRAFT_PETSC_INFER,
    GRAFT_PETSC_EVENTS
};

/** A context of Graft, and a transport over a communicator. Objects that are made with them share them. They are freed
 * with the last object. */
typedef struct graft_petsc {
    const graft_api           *api;
    const graft_graph_api     *graphs;
    const graft_aggregate_api *aggregate;
    graft_transport            transport;
    MPI_Comm                   comm; /* communicator of the program, whose references PETSc counts */
    PetscInt                   references;
    PetscLogEvent              event[GRAFT_PETSC_EVENTS];
} graft_petsc;

/** The error code of PETSc that corresponds best to a status of Graft. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_code(int32_t status)
{
    switch (status) {
    case GRAFT_ERR_ARG:
    case GRAFT_ERR_OPTION: return PETSC_ERR_ARG_WRONG;
    case GRAFT_ERR_NOMEM: return PETSC_ERR_MEM;
    case GRAFT_ERR_UNSUPPORTED: return PETSC_ERR_SUP;
    case GRAFT_ERR_NOT_FOUND: return PETSC_ERR_FILE_OPEN;
    case GRAFT_ERR_IO: return PETSC_ERR_FILE_READ;
    case GRAFT_ERR_FORMAT: return PETSC_ERR_ARG_CORRUPT;
    case GRAFT_ERR_STATE: return PETSC_ERR_ORDER;
    case GRAFT_ERR_NONFINITE: return PETSC_ERR_FP;
    default: return PETSC_ERR_LIB;
    }
}

/** Use in a function of PETSc: if `status` is a failure, return with Graft's message. */
#define graft_petsc_check(comm, status, error)                                                                         \
    PetscCheck((status) >= 0, comm, graft_petsc_code(status), "Graft: %s", (error).message)

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_events(graft_petsc *g)
{
    static const char *const name[GRAFT_PETSC_EVENTS] = { "GraftBuild", "GraftMult",  "GraftMultTransp",
                                                          "GraftOffer", "GraftTrain", "GraftInfer" };
    PetscClassId             graft = 0;

    PetscFunctionBegin;
    for (int i = 0; i < GRAFT_PETSC_EVENTS; i++) {
        g->event[i] = -1;
        PetscCall(PetscLogEventGetId(name[i], &g->event[i]));
        if (g->event[i] >= 0) continue;
        if (graft == 0) PetscCall(PetscClassIdRegister("Graft", &graft));
        PetscCall(PetscLogEventRegister(name[i], graft, &g->event[i]));
    }
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Set the options of Graft: every option KEY is an option -graft_KEY of PETSc. */
GRAFT_PETSC_INLINE int32_t graft_petsc_options(graft_petsc *g, graft_error *error)
{
    graft_option option = GRAFT_INIT(graft_option);
    int32_t      rc = GRAFT_OK;
    char         name[80], value[1024];
    PetscBool    is_set = PETSC_FALSE;

    for (int32_t i = 0; rc >= 0 && g->api->option_info(g->api->context, i, &option, NULL) >= 0; i++) {
        snprintf(name, sizeof name, "-graft_%s", option.key);
        if (PetscOptionsGetString(NULL, NULL, name, value, sizeof value, &is_set) == GRAFT_PETSC_SUCCESS && is_set)
            rc = g->api->set(g->api->context, option.key, value, error);
    }
    return rc;
}

GRAFT_PETSC_INLINE int32_t graft_petsc_load(graft_petsc *g, const char *path, const graft_host *host,
                                            graft_error *error)
{
    int32_t rc = graft_load(path, host, &g->api, error);

    if (rc < 0) return rc;
    g->graphs = (const graft_graph_api *)graft_interface(g->api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    g->aggregate = (const graft_aggregate_api *)graft_interface(g->api, GRAFT_AGGREGATE_ID,
                                                                GRAFT_HAS(graft_aggregate_api, destroy));
    if (g->graphs != NULL && g->aggregate != NULL) return graft_petsc_options(g, error);
    snprintf(error->message, sizeof error->message, "the library is older than this program: it has no %s or %s",
             GRAFT_GRAPH_ID, GRAFT_AGGREGATE_ID);
    return GRAFT_ERR_VERSION;
}

GRAFT_PETSC_INLINE void graft_petsc_free(graft_petsc *g)
{
    if (g->transport.close != NULL) g->transport.close(g->transport.self);
    if (g->api != NULL) g->api->close(g->api->context);
}

/** Release the context. *g becomes NULL. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_close(graft_petsc **g)
{
    PetscFunctionBegin;
    if (*g != NULL && --(*g)->references == 0) {
        graft_petsc_free(*g);
        PetscCall(PetscCommDestroy(&(*g)->comm));
        PetscCall(PetscFree(*g));
    }
    *g = NULL;
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Load Graft, and open a context and a transport.
 * \param[in]  comm  All ranks of it call this function. It is duplicated.
 * \param[in]  path  The library, or NULL for the soname.
 * \param[in]  host  As for graft_open(); NULL: memory comes from the C library.
 * \param[out] out   Unchanged on failure. For graft_petsc_close().
 * Every option KEY of Graft is an option -graft_KEY of PETSc, such as -graft_threads 2. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_open(MPI_Comm comm, const char *path, const graft_host *host,
                                                   graft_petsc **out)
{
    graft_error  error = GRAFT_INIT(graft_error);
    graft_petsc *g;
    int32_t      rc, worst = GRAFT_OK;

    PetscFunctionBegin;
    PetscCall(PetscNew(&g));
    g->references = 1;
    g->transport = GRAFT_INIT(graft_transport);
    PetscCall(graft_petsc_events(g));
    rc = graft_petsc_load(g, path, host, &error);
    PetscCallMPI(MPI_Allreduce(&rc, &worst, 1, MPI_INT32_T, MPI_MIN, comm));
    if (rc >= 0 && worst < 0) {
        rc = worst;
        snprintf(error.message, sizeof error.message, "another rank cannot use the library");
    }
    if (rc >= 0) rc = graft_mpi_open(comm, host, &g->transport, &error);
    if (rc < 0) {
        graft_petsc_free(g);
        PetscCall(PetscFree(g));
    }
    graft_petsc_check(comm, rc, error);
    PetscCall(PetscCommDuplicate(comm, &g->comm, NULL));
    *out = g;
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Set an option of Graft. Not collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_set(graft_petsc *g, const char *key, const char *value)
{
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc;

    PetscFunctionBegin;
    rc = g->api->set(g->api->context, key, value, &error);
    graft_petsc_check(PETSC_COMM_SELF, rc, error);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

#endif
