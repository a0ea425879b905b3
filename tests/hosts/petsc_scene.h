/* Matrices, vectors and checks that the hosts of PETSc share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PETSC_SCENE_H
#define PETSC_SCENE_H

#include "graft_petsc.h"

#include <petscksp.h>

#include <math.h>
#include <stdatomic.h>

static _Atomic int64_t live_bytes; /* number of bytes that Graft has allocated through this program's allocator */
static char            said[4096]; /* the last error message of PETSc */

GRAFT_PETSC_INLINE void *petsc_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    live_bytes += (int64_t)bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

GRAFT_PETSC_INLINE void petsc_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    (void)alignment;
    live_bytes -= (int64_t)bytes;
    free(memory);
}

/* Keep the first message of a failure, instead of printing a trace to standard error. */
GRAFT_PETSC_INLINE PetscErrorCode petsc_keep(MPI_Comm comm, int line, const char *function, const char *file,
                                             PetscErrorCode code, PetscErrorType type, const char *message, void *arg)
{
    (void)comm, (void)line, (void)function, (void)file, (void)arg;
    if (type == PETSC_ERROR_INITIAL) snprintf(said, sizeof said, "%s", message);
    return code;
}

/* Print a check that passes if the condition holds on all ranks. */
GRAFT_PETSC_INLINE void petsc_ok(int condition, const char *what)
{
    static int count;
    int        all = 0, rank;

    MPI_Allreduce(&condition, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD);
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++count, what);
    if (!condition) printf("# rank %d: %s\n", rank, said);
    fflush(stdout);
}

GRAFT_PETSC_INLINE double petsc_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0 - 0.5;
}

/* Discretise convection and diffusion on a square of k x k points. Without wind the matrix is symmetric and positive
 * definite. */
GRAFT_PETSC_INLINE PetscErrorCode petsc_square(PetscInt k, double wind, Mat *out)
{
    PetscInt first, end;

    PetscFunctionBegin;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, k * k, k * k, 5, NULL, 5, NULL, out));
    PetscCall(MatGetOwnershipRange(*out, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        if (i >= k) PetscCall(MatSetValue(*out, i, i - k, -1 - wind, INSERT_VALUES));
        if (i % k > 0) PetscCall(MatSetValue(*out, i, i - 1, -1 - 0.3 * wind, INSERT_VALUES));
        PetscCall(MatSetValue(*out, i, i, 4.1 + 0.001 * (double)(i % 7), INSERT_VALUES));
        if (i % k < k - 1) PetscCall(MatSetValue(*out, i, i + 1, -1, INSERT_VALUES));
        if (i < k * (k - 1)) PetscCall(MatSetValue(*out, i, i + k, -1, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*out, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*out, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

GRAFT_PETSC_INLINE PetscErrorCode petsc_fill(Vec x, uint64_t seed)
{
    PetscInt     first, end;
    PetscScalar *a;

    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(x, &first, &end));
    PetscCall(VecGetArray(x, &a));
    for (PetscInt i = first; i < end; i++) {
        uint64_t state = seed + 1000003u * (uint64_t)i;

        petsc_random(&state);
        a[i - first] = petsc_random(&state);
    }
    PetscCall(VecRestoreArray(x, &a));
    PetscFunctionReturn(0);
}

/* Compute the relative distance of the products A x and B x, of those with the transposes, or of the diagonals. */
GRAFT_PETSC_INLINE PetscErrorCode petsc_distance(Mat a, Mat b, const char *what, double *out)
{
    Vec       x, y, z;
    PetscReal apart, size;

    PetscFunctionBegin;
    PetscCall(MatCreateVecs(a, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(petsc_fill(x, 5));
    if (strcmp(what, "diagonal") == 0) {
        PetscCall(MatGetDiagonal(a, y));
        PetscCall(MatGetDiagonal(b, z));
    } else if (strcmp(what, "transpose") == 0) {
        PetscCall(MatMultTranspose(a, x, y));
        PetscCall(MatMultTranspose(b, x, z));
    } else {
        PetscCall(MatMult(a, x, y));
        PetscCall(MatMult(b, x, z));
    }
    PetscCall(VecNorm(y, NORM_INFINITY, &size));
    PetscCall(VecAXPY(z, -1, y));
    PetscCall(VecNorm(z, NORM_INFINITY, &apart));
    *out = (double)(apart / size);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscFunctionReturn(0);
}

GRAFT_PETSC_INLINE PetscErrorCode petsc_solve(Mat a, const char *type, const char *preconditioner, PetscInt *steps,
                                              Vec x)
{
    KSP solver;
    PC  pc;
    Vec b;

    PetscFunctionBegin;
    PetscCall(VecDuplicate(x, &b));
    PetscCall(petsc_fill(b, 3));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, a, a));
    PetscCall(KSPSetType(solver, type));
    PetscCall(KSPGetPC(solver, &pc));
    PetscCall(PCSetType(pc, preconditioner));
    PetscCall(KSPSetTolerances(solver, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
    PetscCall(KSPSolve(solver, b, x));
    PetscCall(KSPGetIterationNumber(solver, steps));
    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&b));
    PetscFunctionReturn(0);
}

/* Check that a mistake returned this code and left a message with these words on all ranks. */
GRAFT_PETSC_INLINE void petsc_refused(PetscErrorCode code, PetscErrorCode expected, const char *words, const char *what)
{
    petsc_ok(code == expected && strstr(said, words) != NULL, what);
    said[0] = '\0';
}

#endif
