/* Graft in programs of PETSc, 3.17 or later: the assembled matrix of a program as a shell matrix, whose products Graft
 * computes and communicates. graft_petsc_ts.h has meshes, and training while a TS runs. For C and C++, 32- and 64-bit
 * PetscInt, and real scalars in single or double precision.
 *
 * Each function returns a PetscErrorCode, and the sentence of Graft is in the message of PETSc. A program that checks
 * codes itself goes on after a failure: the matrix, network or stream is as before. Collective means: on all ranks of
 * the communicator of graft_petsc_open().
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_PETSC_H
#define GRAFT_PETSC_H

#include "graft.h"
#include "graft_load.h"
#include "graft_mpi.h"

#include <petscmat.h>

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

/* What -log_view shows. */
enum {
    GRAFT_PETSC_BUILD,
    GRAFT_PETSC_MULT,
    GRAFT_PETSC_MULT_TRANSPOSE,
    GRAFT_PETSC_OFFER,
    GRAFT_PETSC_TRAIN,
    GRAFT_PETSC_INFER,
    GRAFT_PETSC_EVENTS
};

/** A context of Graft, and a transport over a communicator. Objects made with it share it; it is freed with the last of
 *  them. */
typedef struct graft_petsc {
    const graft_api       *api;
    const graft_graphs    *graphs;
    const graft_aggregate *aggregate;
    graft_transport        transport;
    MPI_Comm               comm; /* of the program, counted by PETSc */
    PetscInt               references;
    PetscLogEvent          event[GRAFT_PETSC_EVENTS];
} graft_petsc;

/** The error of PETSc that is nearest to a status of Graft. */
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

/** In a function of PETSc: return with the sentence of Graft if `status` is a failure. */
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

/* Every option KEY of Graft is an option -graft_KEY of PETSc. */
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
    g->graphs = (const graft_graphs *)graft_interface(g->api, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graphs, destroy));
    g->aggregate =
        (const graft_aggregate *)graft_interface(g->api, GRAFT_AGGREGATE_ID, GRAFT_HAS(graft_aggregate, destroy));
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

/* What a shell matrix has; duplicates of it share it until one is updated. */
typedef struct graft_petsc_mat {
    PetscInt references;
    PetscErrorCode (*duplicate)(Mat, MatDuplicateOption, Mat *); /* of PETSc, which copies the pointer to this struct */
    graft_petsc *graft;
    graft_graph *graph;
    graft_plan  *plan;
    Vec          diagonal;
    PetscInt     n_rows, n_entries; /* of this rank */
} graft_petsc_mat;

GRAFT_PETSC_INLINE void graft_petsc_mat_free(graft_petsc_mat *m)
{
    m->graft->aggregate->destroy(m->plan);
    m->graft->graphs->destroy(m->graph);
    m->plan = NULL;
    m->graph = NULL;
}

/* Whether Graft can have the matrix: square, with the same layout of rows and columns, over all ranks of `g`, and with
 * as many rows on this rank as expected, if that is not negative. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_accepts(const graft_petsc *g, Mat matrix, PetscInt expected)
{
    const MPI_Comm comm = PetscObjectComm((PetscObject)matrix);
    PetscInt       rows[2], columns[2];
    int            fits[2], same = MPI_UNEQUAL;
    PetscBool      assembled;

    PetscFunctionBegin;
    PetscCallMPI(MPI_Comm_compare(comm, g->comm, &same));
    PetscCheck(same == MPI_IDENT || same == MPI_CONGRUENT, comm, PETSC_ERR_ARG_NOTSAMECOMM,
               "the matrix is not on the ranks of graft_petsc_open()");
    PetscCall(MatAssembled(matrix, &assembled));
    PetscCheck(assembled, comm, PETSC_ERR_ARG_WRONGSTATE, "the matrix is not assembled");
    PetscCall(MatGetOwnershipRange(matrix, &rows[0], &rows[1]));
    PetscCall(MatGetOwnershipRangeColumn(matrix, &columns[0], &columns[1]));
    fits[0] = rows[0] == columns[0] && rows[1] == columns[1];
    fits[1] = expected < 0 || rows[1] - rows[0] == expected;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, fits, 2, MPI_INT, MPI_MIN, comm));
    PetscCheck(fits[0], comm, PETSC_ERR_ARG_SIZ,
               "rows and columns of the matrix have different layouts (this rank: rows %" PetscInt_FMT
               " to %" PetscInt_FMT ", columns %" PetscInt_FMT " to %" PetscInt_FMT "); Graft needs the same",
               rows[0], rows[1], columns[0], columns[1]);
    PetscCheck(fits[1], comm, PETSC_ERR_ARG_SIZ,
               "the matrix has %" PetscInt_FMT " rows on this rank, the shell %" PetscInt_FMT, rows[1] - rows[0],
               expected);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Copy the rows of this rank: row_ptr[n_rows + 1], and columns and values unless they are NULL. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_rows(Mat matrix, int64_t *row_ptr, PetscInt *columns, PetscScalar *values)
{
    PetscInt first, end;

    PetscFunctionBegin;
    PetscCall(MatGetOwnershipRange(matrix, &first, &end));
    row_ptr[0] = 0;
    for (PetscInt i = first; i < end; i++) {
        const PetscInt     row = i - first;
        PetscInt           n = 0;
        const PetscInt    *from = NULL;
        const PetscScalar *value = NULL;

        PetscCall(MatGetRow(matrix, i, &n, columns != NULL ? &from : NULL, values != NULL ? &value : NULL));
        row_ptr[row + 1] = row_ptr[row] + n;
        if (columns != NULL) PetscCall(PetscArraycpy(columns + row_ptr[row], from, n));
        if (values != NULL) PetscCall(PetscArraycpy(values + row_ptr[row], value, n));
        PetscCall(MatRestoreRow(matrix, i, &n, columns != NULL ? &from : NULL, values != NULL ? &value : NULL));
    }
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* A graph and a plan of the rows, of which each rank keeps its own. */
GRAFT_PETSC_INLINE int32_t graft_petsc_plan(graft_petsc_mat *m, const graft_slice *slice, graft_error *error)
{
    graft_plan_args args = GRAFT_INIT(graft_plan_args);
    int32_t         rc;

    args.flags = GRAFT_PLAN_TRANSPOSED;
    args.width = 1;
    args.dtype = GRAFT_PETSC_DTYPE;
    rc = m->graft->graphs->create(m->graft->api->context, &m->graft->transport, slice, &m->graph, error);
    if (rc >= 0) rc = m->graft->aggregate->create(m->graph, &args, &m->plan, error);
    return rc;
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_build(graft_petsc_mat *m, Mat matrix)
{
    const MPI_Comm comm = PetscObjectComm((PetscObject)matrix);
    graft_error    error = GRAFT_INIT(graft_error);
    graft_csr      rows = GRAFT_INIT(graft_csr);
    graft_slice    slice = GRAFT_INIT(graft_slice);
    PetscInt       first, end, n_all, *columns;
    PetscScalar   *values;
    int64_t       *row_ptr;
    int32_t       *owner, rc;

    PetscFunctionBegin;
    PetscCall(MatGetOwnershipRange(matrix, &first, &end));
    PetscCall(MatGetSize(matrix, &n_all, NULL));
    m->n_rows = end - first;
    PetscCall(PetscMalloc2(m->n_rows + 1, &row_ptr, m->n_rows, &owner));
    for (PetscInt i = 0; i < m->n_rows; i++) owner[i] = m->graft->transport.rank;
    PetscCall(graft_petsc_rows(matrix, row_ptr, NULL, NULL));
    m->n_entries = (PetscInt)row_ptr[m->n_rows];
    PetscCall(PetscMalloc2(m->n_entries, &columns, m->n_entries, &values));
    PetscCall(graft_petsc_rows(matrix, row_ptr, columns, values));
    rows.index_type = GRAFT_PETSC_INDEX;
    rows.value_type = GRAFT_PETSC_DTYPE;
    rows.n_rows = m->n_rows;
    rows.n_cols = n_all;
    rows.row_ptr = row_ptr;
    rows.col_idx = columns;
    rows.values = values;
    slice.n_vertices = n_all;
    slice.first_row = first;
    slice.rows = &rows;
    slice.owner = owner;
    rc = graft_petsc_plan(m, &slice, &error);
    PetscCall(PetscFree2(columns, values));
    PetscCall(PetscFree2(row_ptr, owner));
    if (rc < 0) graft_petsc_mat_free(m);
    graft_petsc_check(comm, rc, error);
    PetscCall(MatCreateVecs(matrix, NULL, &m->diagonal));
    PetscCall(MatGetDiagonal(matrix, m->diagonal));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_product(Mat shell, Vec x, Vec y, uint32_t flags)
{
    const MPI_Comm       comm = PetscObjectComm((PetscObject)shell);
    graft_error          error = GRAFT_INIT(graft_error);
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    graft_dense          in, out;
    graft_petsc_mat     *m;
    const PetscScalar   *from;
    PetscScalar         *to;
    int32_t              rc;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(VecGetArrayRead(x, &from));
    PetscCall(VecGetArrayWrite(y, &to));
    in = graft_dense_in(GRAFT_PETSC_DTYPE, m->n_rows, 1, from);
    out = graft_dense_in(GRAFT_PETSC_DTYPE, m->n_rows, 1, to);
    args.semiring = GRAFT_PLUS_TIMES;
    args.flags = GRAFT_AGGREGATE_EXACT | flags;
    args.x = &in;
    args.out = &out;
    rc = m->graft->aggregate->begin(m->plan, &args, &error);
    if (rc >= 0) rc = m->graft->aggregate->end(m->plan, &error);
    PetscCall(VecRestoreArrayWrite(y, &to));
    PetscCall(VecRestoreArrayRead(x, &from));
    graft_petsc_check(comm, rc, error);
    PetscCall(PetscLogFlops(2.0 * (PetscLogDouble)m->n_entries));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mult(Mat shell, Vec x, Vec y)
{
    graft_petsc_mat *m;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(PetscLogEventBegin(m->graft->event[GRAFT_PETSC_MULT], shell, x, y, 0));
    PetscCall(graft_petsc_mat_product(shell, x, y, 0));
    PetscCall(PetscLogEventEnd(m->graft->event[GRAFT_PETSC_MULT], shell, x, y, 0));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mult_transpose(Mat shell, Vec x, Vec y)
{
    graft_petsc_mat *m;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(PetscLogEventBegin(m->graft->event[GRAFT_PETSC_MULT_TRANSPOSE], shell, x, y, 0));
    PetscCall(graft_petsc_mat_product(shell, x, y, GRAFT_AGGREGATE_TRANSPOSE));
    PetscCall(PetscLogEventEnd(m->graft->event[GRAFT_PETSC_MULT_TRANSPOSE], shell, x, y, 0));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_get_diagonal(Mat shell, Vec diagonal)
{
    graft_petsc_mat *m;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(VecCopy(m->diagonal, diagonal));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_release(graft_petsc_mat *m)
{
    PetscFunctionBegin;
    if (--m->references > 0) PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
    graft_petsc_mat_free(m);
    PetscCall(VecDestroy(&m->diagonal));
    PetscCall(graft_petsc_close(&m->graft));
    PetscCall(PetscFree(m));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_destroy(Mat shell)
{
    graft_petsc_mat *m;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(graft_petsc_mat_release(m));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* A duplicate has the values, also where PETSc does not ask for them. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_duplicate(Mat shell, MatDuplicateOption option, Mat *out)
{
    graft_petsc_mat *m;

    (void)option;
    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(m->duplicate(shell, MAT_COPY_VALUES, out));
    m->references++;
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Create a shell matrix with the rows of an assembled one, whose values are copied: y = A x by MatMult(), y = A^T x by
 *  MatMultTranspose(), and MatGetDiagonal(). What these suffice for works with it, such as KSP with PCJACOBI. Events
 *  GraftMult and GraftMultTransp of -log_view have its time.
 * \param[in]  matrix  Square, of any type that has MatGetRow(), such as MATAIJ; may be destroyed afterwards.
 * \param[out] shell   Unchanged on failure. For MatDestroy().
 * Memory: a graph and a plan with transposed passes, see graft_aggregate.h. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_create(graft_petsc *g, Mat matrix, Mat *shell)
{
    const MPI_Comm   comm = PetscObjectComm((PetscObject)matrix);
    graft_petsc_mat *m;
    PetscInt         n_all;
    PetscErrorCode   code;

    PetscFunctionBegin;
    PetscCall(graft_petsc_accepts(g, matrix, -1));
    PetscCall(PetscNew(&m));
    m->references = 1;
    m->graft = g;
    PetscCall(PetscLogEventBegin(g->event[GRAFT_PETSC_BUILD], matrix, 0, 0, 0));
    code = graft_petsc_build(m, matrix);
    PetscCall(PetscLogEventEnd(g->event[GRAFT_PETSC_BUILD], matrix, 0, 0, 0));
    if (code != GRAFT_PETSC_SUCCESS) PetscCall(PetscFree(m));
    PetscCall(code);
    g->references++;
    PetscCall(MatGetSize(matrix, &n_all, NULL));
    PetscCall(MatCreateShell(comm, m->n_rows, m->n_rows, n_all, n_all, m, shell));
    PetscCall(MatShellSetOperation(*shell, MATOP_MULT, (void (*)(void))graft_petsc_mult));
    PetscCall(MatShellSetOperation(*shell, MATOP_MULT_TRANSPOSE, (void (*)(void))graft_petsc_mult_transpose));
    PetscCall(MatShellSetOperation(*shell, MATOP_GET_DIAGONAL, (void (*)(void))graft_petsc_get_diagonal));
    PetscCall(MatShellSetOperation(*shell, MATOP_DESTROY, (void (*)(void))graft_petsc_mat_destroy));
    PetscCall(MatShellGetOperation(*shell, MATOP_DUPLICATE, (void (**)(void))&m->duplicate));
    PetscCall(MatShellSetOperation(*shell, MATOP_DUPLICATE, (void (*)(void))graft_petsc_mat_duplicate));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Give a shell matrix the rows and values that an assembled matrix of the same layout has now. If that fails the shell
 *  keeps its own. Its duplicates, of which a TS may have some, keep theirs. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_update(Mat shell, Mat matrix)
{
    graft_petsc_mat *m, *fresh;
    PetscErrorCode   code;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(graft_petsc_accepts(m->graft, matrix, m->n_rows));
    PetscCall(PetscNew(&fresh));
    fresh->references = 1;
    fresh->duplicate = m->duplicate;
    fresh->graft = m->graft;
    PetscCall(PetscLogEventBegin(m->graft->event[GRAFT_PETSC_BUILD], matrix, 0, 0, 0));
    code = graft_petsc_build(fresh, matrix);
    PetscCall(PetscLogEventEnd(m->graft->event[GRAFT_PETSC_BUILD], matrix, 0, 0, 0));
    if (code != GRAFT_PETSC_SUCCESS) PetscCall(PetscFree(fresh));
    PetscCall(code);
    fresh->graft->references++;
    PetscCall(graft_petsc_mat_release(m));
    PetscCall(MatShellSetContext(shell, fresh));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

#endif
