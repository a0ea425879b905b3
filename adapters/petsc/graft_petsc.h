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

#include "graft_petsc_context.h"

#include <petscmat.h>

#define GRAFT_PETSC_SHELL "graft_petsc_mat_C" /* name of a function that only shells of Graft have */

/* The data of a shell matrix. Its duplicates share them until one of the matrices is updated. */
typedef struct graft_petsc_mat {
    PetscInt references;
    PetscErrorCode (*duplicate)(Mat, MatDuplicateOption, Mat *); /* PETSc's own function, which copies only the pointer
                                                                  * to this struct */
    graft_petsc *graft;
    graft_graph *graph;
    graft_plan  *plan;
    Vec          diagonal;
    PetscInt     n_rows, n_entries; /* numbers of rows and entries on this rank */
    uint64_t     places;            /* hash of the positions of the entries of this rank, without values */
} graft_petsc_mat;

GRAFT_PETSC_INLINE void graft_petsc_mat_free(graft_petsc_mat *m)
{
    m->graft->aggregate->destroy(m->plan);
    m->graft->graphs->destroy(m->graph);
    m->plan = NULL;
    m->graph = NULL;
}

/* Check that Graft supports the matrix: it is square, rows and columns have the same layout, it uses all ranks of `g`,
 * and this rank has the expected number of rows, unless that is negative. */
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

/* Return the matrix itself if MatGetRow() gives all entries of its rows; otherwise return a copy as MATAIJ. The caller
 * calls MatDestroy(). Symmetric formats give only the upper triangle, or nothing, and other types have no MatGetRow().
 * Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_readable(Mat matrix, Mat *out)
{
    static const char *const whole[] = { "seqaij", "mpiaij", "seqbaij", "mpibaij" }; /* these types, and types derived
                                                                                      * from them */
    MatType                  type;
    PetscBool                begins = PETSC_FALSE;

    PetscFunctionBegin;
    PetscCall(MatGetType(matrix, &type));
    for (size_t i = 0; i < sizeof whole / sizeof *whole && !begins; i++)
        PetscCall(PetscStrbeginswith(type, whole[i], &begins));
    if (begins) PetscCall(PetscObjectReference((PetscObject)matrix));
    *out = matrix;
    if (!begins) PetscCall(MatConvert(matrix, MATAIJ, MAT_INITIAL_MATRIX, out));
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

/* Make a graph and a plan of the rows of a matrix. Each rank keeps its own rows. */
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

/* The part of a matrix on this rank, as graft.graph/1 reads it. */
typedef struct graft_petsc_slice {
    PetscInt     first, n_rows, n_all, n_entries;
    int64_t     *row_ptr;
    PetscInt    *columns;
    PetscScalar *values;
    int32_t     *owner;
    uint64_t     places;
} graft_petsc_slice;

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_slice_free(graft_petsc_slice *s)
{
    PetscFunctionBegin;
    PetscCall(PetscFree2(s->columns, s->values));
    PetscCall(PetscFree2(s->row_ptr, s->owner));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_slice_of(const graft_petsc *g, Mat matrix, graft_petsc_slice *s)
{
    Mat      rows;
    PetscInt end;

    PetscFunctionBegin;
    PetscCall(graft_petsc_readable(matrix, &rows));
    PetscCall(MatGetOwnershipRange(rows, &s->first, &end));
    PetscCall(MatGetSize(rows, &s->n_all, NULL));
    s->n_rows = end - s->first;
    PetscCall(PetscMalloc2(s->n_rows + 1, &s->row_ptr, s->n_rows, &s->owner));
    for (PetscInt i = 0; i < s->n_rows; i++) s->owner[i] = g->transport.rank;
    PetscCall(graft_petsc_rows(rows, s->row_ptr, NULL, NULL));
    s->n_entries = (PetscInt)s->row_ptr[s->n_rows];
    PetscCall(PetscMalloc2(s->n_entries, &s->columns, s->n_entries, &s->values));
    PetscCall(graft_petsc_rows(rows, s->row_ptr, s->columns, s->values));
    PetscCall(MatDestroy(&rows));
    s->places = (uint64_t)s->n_all;
    for (PetscInt i = 0; i < s->n_rows; i++) {
        s->places = (s->places ^ (uint64_t)s->row_ptr[i + 1]) * 0x9E3779B97F4A7C15u;
        for (int64_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++) {
            s->places = (s->places ^ (uint64_t)s->columns[e]) * 0x9E3779B97F4A7C15u;
            s->places ^= s->places >> 29;
        }
    }
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Copy the diagonal of the rows of this rank. A missing element is 0. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_diagonal(graft_petsc_mat *m, const graft_petsc_slice *s)
{
    PetscScalar *diagonal;

    PetscFunctionBegin;
    PetscCall(VecSet(m->diagonal, 0));
    PetscCall(VecGetArray(m->diagonal, &diagonal));
    for (PetscInt i = 0; i < s->n_rows; i++)
        for (int64_t e = s->row_ptr[i]; e < s->row_ptr[i + 1]; e++)
            if (s->columns[e] == s->first + i) diagonal[i] = s->values[e];
    PetscCall(VecRestoreArray(m->diagonal, &diagonal));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_build(graft_petsc_mat *m, Mat matrix)
{
    const MPI_Comm    comm = PetscObjectComm((PetscObject)matrix);
    graft_error       error = GRAFT_INIT(graft_error);
    graft_csr         rows = GRAFT_INIT(graft_csr);
    graft_slice       slice = GRAFT_INIT(graft_slice);
    graft_petsc_slice s;
    int32_t           rc;

    PetscFunctionBegin;
    PetscCall(graft_petsc_slice_of(m->graft, matrix, &s));
    m->n_rows = s.n_rows;
    m->n_entries = s.n_entries;
    m->places = s.places;
    rows.index_type = GRAFT_PETSC_INDEX;
    rows.value_type = GRAFT_PETSC_DTYPE;
    rows.n_rows = s.n_rows;
    rows.n_cols = s.n_all;
    rows.row_ptr = s.row_ptr;
    rows.col_idx = s.columns;
    rows.values = s.values;
    slice.n_vertices = s.n_all;
    slice.first_row = s.first;
    slice.rows = &rows;
    slice.owner = s.owner;
    rc = graft_petsc_plan(m, &slice, &error);
    if (rc >= 0) PetscCall(MatCreateVecs(matrix, NULL, &m->diagonal));
    if (rc >= 0) PetscCall(graft_petsc_diagonal(m, &s));
    PetscCall(graft_petsc_slice_free(&s));
    if (rc < 0) graft_petsc_mat_free(m);
    graft_petsc_check(comm, rc, error);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Replace the values at the positions that the shell has. *done is PETSC_FALSE, and nothing has changed, if the matrix
 * has other positions, if a duplicate of the shell must keep the old values, or if the library is older than
 * update_values(). */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_revalue(graft_petsc_mat *m, Mat matrix, PetscBool *done)
{
    const MPI_Comm         comm = PetscObjectComm((PetscObject)matrix);
    const graft_graph_api *graphs = m->graft->graphs;
    graft_error            error = GRAFT_INIT(graft_error);
    graft_petsc_slice      s;
    graft_dense            values;
    int                    same;
    int32_t                rc = GRAFT_OK;

    PetscFunctionBegin;
    PetscCall(graft_petsc_slice_of(m->graft, matrix, &s));
    same = m->references == 1 && s.n_entries == m->n_entries && s.places == m->places &&
           graphs->size >= GRAFT_HAS(graft_graph_api, update_values);
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_INT, MPI_MIN, m->graft->comm));
    values = graft_dense_in(GRAFT_PETSC_DTYPE, s.n_entries, 1, s.values);
    if (same) rc = graphs->update_values(m->graph, &values, &error);
    if (rc == GRAFT_ERR_STATE) same = 0, rc = GRAFT_OK; /* a matrix without entries has no values to replace */
    if (same && rc >= 0) PetscCall(graft_petsc_diagonal(m, &s));
    PetscCall(graft_petsc_slice_free(&s));
    graft_petsc_check(comm, rc, error);
    *done = same ? PETSC_TRUE : PETSC_FALSE;
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Give a shell those properties of the matrix that solvers use besides its entries. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_carry(Mat matrix, Mat shell)
{
    MatNullSpace space = NULL;

    PetscFunctionBegin;
    PetscCall(MatPropagateSymmetryOptions(matrix, shell));
    PetscCall(MatGetNullSpace(matrix, &space));
    PetscCall(MatSetNullSpace(shell, space));
    PetscCall(MatGetTransposeNullSpace(matrix, &space));
    PetscCall(MatSetTransposeNullSpace(shell, space));
    PetscCall(MatGetNearNullSpace(matrix, &space));
    PetscCall(MatSetNearNullSpace(shell, space));
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

/* Duplicate a shell. The duplicate has the values, even if PETSc does not ask for them. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_duplicate(Mat shell, MatDuplicateOption option, Mat *out)
{
    graft_petsc_mat *m;

    (void)option;
    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(m->duplicate(shell, MAT_COPY_VALUES, out));
    m->references++;
    PetscCall(PetscObjectComposeFunction((PetscObject)*out, GRAFT_PETSC_SHELL, graft_petsc_mult));
    PetscCall(MatSetBlockSizesFromMats(*out, shell, shell));
    PetscCall(graft_petsc_carry(shell, *out));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Copy a shell. MatCopy() of PETSc copies the operations, factors and shifts of a shell, and this function copies its
 * matrix. The other shell may have been made by the program; then its context still belongs to the program. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_copy(Mat from, Mat to, MatStructure structure)
{
    graft_petsc_mat *source, *target;
    void (*ours)(void) = NULL;
    PetscInt n_rows;
    int      fits;

    (void)structure;
    PetscFunctionBegin;
    PetscCall(MatShellGetContext(from, &source));
    PetscCall(MatShellGetContext(to, &target));
    if (source == target) PetscFunctionReturn(GRAFT_PETSC_SUCCESS); /* this also happens while a duplicate is made */
    PetscCall(PetscObjectQueryFunction((PetscObject)to, GRAFT_PETSC_SHELL, &ours));
    PetscCall(MatGetLocalSize(to, &n_rows, NULL));
    fits = source->n_rows == n_rows;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, source->graft->comm));
    PetscCheck(fits, PetscObjectComm((PetscObject)to), PETSC_ERR_ARG_SIZ, "the shells have other rows on some rank");
    source->references++;
    if (ours != NULL) PetscCall(graft_petsc_mat_release(target));
    PetscCall(MatShellSetContext(to, source));
    PetscCall(PetscObjectComposeFunction((PetscObject)to, GRAFT_PETSC_SHELL, graft_petsc_mult));
    PetscCall(MatPropagateSymmetryOptions(from, to));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* This replaces MatGetRow() of PETSc, which would call a NULL pointer. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_get_row(Mat shell, PetscInt row, PetscInt *n, PetscInt **columns,
                                                      PetscScalar **values)
{
    (void)row, (void)n, (void)columns, (void)values;
    PetscFunctionBegin;
    SETERRQ(PetscObjectComm((PetscObject)shell), PETSC_ERR_SUP,
            "a shell of Graft has products and a diagonal, but no rows: take the matrix of which it was made");
}

/** Create a shell matrix with the rows of an assembled one, whose values are copied: y = A x by MatMult(), y = A^T x by
 *  MatMultTranspose(), and MatGetDiagonal(). What these suffice for works with it, such as KSP with PCJACOBI. It has
 *  the block size, the flags of symmetry and the null spaces (also the transposed and the near one) that the matrix has
 *  now. Events GraftMult and GraftMultTransp of -log_view have its time.
 * \param[in]  matrix  Square. Rows of AIJ and BAIJ formats are read where they are; matrices of other types (SBAIJ,
 *                     dense, nest, is, ...) are converted to MATAIJ for the call. May be destroyed afterwards.
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
    PetscCall(MatShellSetOperation(*shell, MATOP_GET_ROW, (void (*)(void))graft_petsc_get_row));
    PetscCall(MatShellSetOperation(*shell, MATOP_COPY, (void (*)(void))graft_petsc_mat_copy));
    PetscCall(MatShellGetOperation(*shell, MATOP_DUPLICATE, (void (**)(void))&m->duplicate));
    PetscCall(MatShellSetOperation(*shell, MATOP_DUPLICATE, (void (*)(void))graft_petsc_mat_duplicate));
    PetscCall(PetscObjectComposeFunction((PetscObject)*shell, GRAFT_PETSC_SHELL, graft_petsc_mult));
    PetscCall(MatSetBlockSizesFromMats(*shell, matrix, matrix));
    PetscCall(graft_petsc_carry(matrix, *shell));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_rebuild(Mat shell, graft_petsc_mat *m, Mat matrix)
{
    graft_petsc_mat *fresh;
    PetscErrorCode   code;

    PetscFunctionBegin;
    PetscCall(PetscNew(&fresh));
    fresh->references = 1;
    fresh->duplicate = m->duplicate;
    fresh->graft = m->graft;
    code = graft_petsc_build(fresh, matrix);
    if (code != GRAFT_PETSC_SUCCESS) PetscCall(PetscFree(fresh));
    PetscCall(code);
    fresh->graft->references++;
    PetscCall(graft_petsc_mat_release(m));
    PetscCall(MatShellSetContext(shell, fresh));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Give a shell matrix the rows and values that an assembled matrix of the same layout has now, its flags of symmetry
 *  and its null spaces, also if it has none. Factors and shifts of the shell, as of MatScale() and MatShift(), are
 *  gone, and preconditioners that use the shell are set up again. If the entries are in the same places and the shell
 *  has no duplicates, only values are replaced, which takes the time of a few products; else graph and plan are made
 *  anew. If it fails, the shell keeps its own. Its duplicates, of which a TS may have some, keep theirs. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mat_update(Mat shell, Mat matrix)
{
    graft_petsc_mat *m;
    PetscBool        done = PETSC_FALSE;
    PetscErrorCode   code;

    PetscFunctionBegin;
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(graft_petsc_accepts(m->graft, matrix, m->n_rows));
    PetscCall(PetscLogEventBegin(m->graft->event[GRAFT_PETSC_BUILD], matrix, 0, 0, 0));
    code = graft_petsc_revalue(m, matrix, &done);
    if (code == GRAFT_PETSC_SUCCESS && !done) code = graft_petsc_rebuild(shell, m, matrix);
    PetscCall(MatShellGetContext(shell, &m));
    PetscCall(PetscLogEventEnd(m->graft->event[GRAFT_PETSC_BUILD], matrix, 0, 0, 0));
    PetscCall(code);
    PetscCall(MatAssemblyBegin(shell, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(shell, MAT_FINAL_ASSEMBLY));
    PetscCall(graft_petsc_carry(matrix, shell));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

#endif
