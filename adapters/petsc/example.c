/* A program of PETSc that solves a system with products by Graft:
 *
 *     mpicc example.c -o example $(pkg-config --cflags --libs petsc graft) -ldl
 *     mpiexec -n 4 ./example -log_view
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_petsc.h"

#include <petscksp.h>

int main(int argc, char **argv)
{
    const PetscInt n = 1000;
    graft_petsc   *graft;
    PetscInt       first, end, steps;
    Mat            matrix, shell;
    Vec            x, b;
    KSP            solver;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 1, NULL, &matrix));
    PetscCall(MatGetOwnershipRange(matrix, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        if (i > 0) PetscCall(MatSetValue(matrix, i, i - 1, -1, INSERT_VALUES));
        PetscCall(MatSetValue(matrix, i, i, 2.01, INSERT_VALUES));
        if (i < n - 1) PetscCall(MatSetValue(matrix, i, i + 1, -1, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(matrix, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(matrix, MAT_FINAL_ASSEMBLY));

    PetscCall(graft_petsc_open(PETSC_COMM_WORLD, NULL, NULL, &graft)); /* finds libgraft.so.1 */
    PetscCall(graft_petsc_mat_create(graft, matrix, &shell));
    PetscCall(graft_petsc_close(&graft)); /* the shell keeps what it needs */

    PetscCall(MatCreateVecs(matrix, &x, &b));
    PetscCall(VecSet(b, 1));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, shell, matrix)); /* products by Graft, preconditioner from the matrix */
    PetscCall(KSPSetFromOptions(solver));
    PetscCall(KSPSolve(solver, b, x));
    PetscCall(KSPGetIterationNumber(solver, &steps));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%" PetscInt_FMT " iterations\n", steps));

    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&b));
    PetscCall(MatDestroy(&shell));
    PetscCall(MatDestroy(&matrix));
    PetscCall(PetscFinalize());
    return 0;
}
