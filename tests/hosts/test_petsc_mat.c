/* Checks the shell matrices of graft_petsc.h: types of matrices, the questions that solvers ask about a matrix, changes
 * of values, and what is refused. test_petsc.py runs it on ranks of MPI: test_petsc_mat LIBRARY. Rank 0 prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "petsc_scene.h"

/* The shell of a matrix of any type must have the same products as the shell of a MATAIJ with the same entries. */
static PetscErrorCode petsc_types(graft_petsc *g)
{
    static const char *const type[] = { MATBAIJ, MATSBAIJ, MATSBAIJ, MATSELL, MATDENSE, MATIS, MATNEST };
    Mat                      a, other, shell;
    double                   forward, transpose, diagonal;
    char                     text[200];

    PetscFunctionBegin;
    for (int i = 0; i < 7; i++) {
        const int upper = i == 2; /* for this type MatGetRow() returns only the upper triangle, without an error */

        PetscCall(petsc_square(12, strcmp(type[i], MATSBAIJ) == 0 ? 0 : 0.7, &a));
        if (strcmp(type[i], MATSBAIJ) == 0) PetscCall(MatSetOption(a, MAT_SYMMETRIC, PETSC_TRUE));
        if (strcmp(type[i], MATNEST) == 0) PetscCall(MatCreateNest(PETSC_COMM_WORLD, 1, NULL, 1, NULL, &a, &other));
        else PetscCall(MatConvert(a, type[i], MAT_INITIAL_MATRIX, &other));
        if (upper) PetscCall(MatSetOption(other, MAT_GETROW_UPPERTRIANGULAR, PETSC_TRUE));
        PetscCall(graft_petsc_mat_create(g, other, &shell));
        PetscCall(petsc_distance(a, shell, "product", &forward));
        PetscCall(petsc_distance(a, shell, "transpose", &transpose));
        PetscCall(petsc_distance(a, shell, "diagonal", &diagonal));
        snprintf(text, sizeof text, "%s%s: products (%.1e), transposed ones (%.1e) and diagonal (%.1e)", type[i],
                 upper ? " with MAT_GETROW_UPPERTRIANGULAR" : "", forward, transpose, diagonal);
        petsc_ok(forward <= 1e-12 && transpose <= 1e-12 && diagonal <= 1e-12, text);
        PetscCall(MatDestroy(&shell));
        PetscCall(MatDestroy(&other));
        PetscCall(MatDestroy(&a));
    }
    PetscFunctionReturn(0);
}

/* Make the Laplacian on a ring, whose null space consists of the constant vectors. */
static PetscErrorCode petsc_ring(PetscInt n, Mat *out)
{
    PetscInt first, end;

    PetscFunctionBegin;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, 3, NULL, 3, NULL, out));
    PetscCall(MatGetOwnershipRange(*out, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        PetscCall(MatSetValue(*out, i, (i + n - 1) % n, -1, INSERT_VALUES));
        PetscCall(MatSetValue(*out, i, i, 2, INSERT_VALUES));
        PetscCall(MatSetValue(*out, i, (i + 1) % n, -1, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*out, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*out, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* The mean of the solution of a system, relative to its largest element. */
static PetscErrorCode petsc_mean(Mat a, double *out)
{
    Vec         x;
    PetscScalar sum;
    PetscReal   size;
    PetscInt    steps, n;

    PetscFunctionBegin;
    PetscCall(MatCreateVecs(a, &x, NULL));
    PetscCall(petsc_solve(a, "cg", "none", &steps, x));
    PetscCall(VecSum(x, &sum));
    PetscCall(VecNorm(x, NORM_INFINITY, &size));
    PetscCall(VecGetSize(x, &n));
    *out = fabs((double)(sum / (PetscScalar)n / size));
    PetscCall(VecDestroy(&x));
    PetscFunctionReturn(0);
}

static PetscErrorCode petsc_has(Mat shell, MatNullSpace constant, MatNullSpace near, const char *what)
{
    MatNullSpace space[3];
    PetscBool    set[2], is[2];
    PetscInt     block;

    PetscFunctionBegin;
    PetscCall(MatGetNullSpace(shell, &space[0]));
    PetscCall(MatGetTransposeNullSpace(shell, &space[1]));
    PetscCall(MatGetNearNullSpace(shell, &space[2]));
    PetscCall(MatIsSymmetricKnown(shell, &set[0], &is[0]));
    PetscCall(MatIsSPDKnown(shell, &set[1], &is[1]));
    PetscCall(MatGetBlockSize(shell, &block));
    petsc_ok(space[0] == constant && space[1] == constant && space[2] == near && set[0] && is[0] && set[1] && is[1] &&
                 block == 2,
             what);
    PetscFunctionReturn(0);
}

/* The properties of a matrix that solvers use besides its entries. */
static PetscErrorCode petsc_properties(graft_petsc *g)
{
    MatNullSpace constant, near, space[3];
    Mat          a, bare, shell, twin;
    double       mean, expected;
    PetscBool    set, is;
    char         text[200];

    PetscFunctionBegin;
    PetscCall(petsc_ring(60, &bare));
    PetscCall(MatDuplicate(bare, MAT_COPY_VALUES, &a));
    PetscCall(MatSetBlockSize(a, 2));
    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &constant));
    PetscCall(MatNullSpaceCreate(PETSC_COMM_WORLD, PETSC_TRUE, 0, NULL, &near));
    PetscCall(MatSetOption(a, MAT_SYMMETRIC, PETSC_TRUE));
    PetscCall(MatSetOption(a, MAT_SPD, PETSC_TRUE));
    PetscCall(MatSetNullSpace(a, constant));
    PetscCall(MatSetTransposeNullSpace(a, constant));
    PetscCall(MatSetNearNullSpace(a, near));
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    PetscCall(petsc_has(shell, constant, near, "a shell has null spaces, flags of symmetry and block size"));
    PetscCall(MatDuplicate(shell, MAT_DO_NOT_COPY_VALUES, &twin));
    PetscCall(petsc_has(twin, constant, near, "so has a duplicate of it"));
    PetscCall(MatDestroy(&twin));
    PetscCall(petsc_mean(a, &expected));
    PetscCall(petsc_mean(shell, &mean));
    snprintf(text, sizeof text, "the mean of a solution is 0: %.1e, with the matrix %.1e", mean, expected);
    petsc_ok(mean < 1e-12 && expected < 1e-12, text);
    PetscCall(MatDestroy(&shell));
    PetscCall(graft_petsc_mat_create(g, bare, &shell));
    PetscCall(MatIsSymmetricKnown(shell, &set, &is));
    petsc_ok(!set, "of a matrix without flags nothing is known");
    PetscCall(MatSetBlockSize(shell, 2));
    PetscCall(graft_petsc_mat_update(shell, a));
    PetscCall(petsc_has(shell, constant, near, "after an update it has what the matrix has"));
    PetscCall(graft_petsc_mat_update(shell, bare));
    PetscCall(MatGetNullSpace(shell, &space[0]));
    PetscCall(MatGetTransposeNullSpace(shell, &space[1]));
    PetscCall(MatGetNearNullSpace(shell, &space[2]));
    petsc_ok(space[0] == NULL && space[1] == NULL && space[2] == NULL, "and none after one by a matrix without any");
    PetscCall(MatDestroy(&shell));
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&bare));
    PetscCall(MatNullSpaceDestroy(&constant));
    PetscCall(MatNullSpaceDestroy(&near));
    PetscFunctionReturn(0);
}

/* Make one change of a matrix as programs do, and the same change of a shell. */
static PetscErrorCode petsc_change(Mat a, int which, Vec left, Vec right)
{
    PetscFunctionBegin;
    if (which == 0) PetscCall(MatScale(a, -2));
    if (which == 1) PetscCall(MatShift(a, 0.7));
    if (which == 2) PetscCall(MatDiagonalScale(a, left, right));
    if (which == 3) PetscCall(MatDiagonalSet(a, left, ADD_VALUES));
    PetscFunctionReturn(0);
}

static PetscErrorCode petsc_changes(graft_petsc *g)
{
    static const char *const name[] = { "MatScale", "MatShift", "MatDiagonalScale", "MatDiagonalSet" };
    Mat                      a, shell;
    Vec                      left, right;
    double                   forward, transpose, diagonal;
    char                     text[200];

    PetscFunctionBegin;
    PetscCall(petsc_square(11, 0.3, &a));
    PetscCall(MatCreateVecs(a, &right, &left));
    PetscCall(petsc_fill(left, 21));
    PetscCall(petsc_fill(right, 22));
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    for (int i = 0; i < 4; i++) {
        PetscCall(petsc_change(a, i, left, right));
        PetscCall(petsc_change(shell, i, left, right));
        PetscCall(petsc_distance(a, shell, "product", &forward));
        PetscCall(petsc_distance(a, shell, "transpose", &transpose));
        PetscCall(petsc_distance(a, shell, "diagonal", &diagonal));
        snprintf(text, sizeof text, "%s of a shell is that of the matrix (%.1e, %.1e, %.1e)", name[i], forward,
                 transpose, diagonal);
        petsc_ok(forward <= 1e-12 && transpose <= 1e-12 && diagonal <= 1e-12, text);
    }
    PetscCall(graft_petsc_mat_update(shell, a));
    PetscCall(petsc_distance(a, shell, "product", &forward));
    PetscCall(petsc_distance(a, shell, "diagonal", &diagonal));
    petsc_ok(forward <= 1e-12 && diagonal == 0, "after an update the shell has no factors and shifts of its own");
    PetscCall(MatDestroy(&shell));
    PetscCall(MatDestroy(&a));
    PetscCall(VecDestroy(&left));
    PetscCall(VecDestroy(&right));
    PetscFunctionReturn(0);
}

/* The plan of a shell. It stays the same if an update replaces only values. */
static graft_plan *petsc_plan_of(Mat shell)
{
    graft_petsc_mat *m = NULL;

    return MatShellGetContext(shell, &m) == 0 ? m->plan : NULL;
}

/* Updates of values at the same positions keep the plan. A solver that uses the shell takes its new diagonal. */
static PetscErrorCode petsc_updates(graft_petsc *g)
{
    Mat         a, b, shell, twin;
    KSP         solver;
    PC          pc;
    Vec         x, y, right;
    PetscInt    first, steps, expected;
    PetscReal   apart, size;
    graft_plan *plan;
    double      now, kept;

    PetscFunctionBegin;
    PetscCall(petsc_square(20, 0, &a));
    PetscCall(MatDuplicate(a, MAT_COPY_VALUES, &b));
    PetscCall(MatCreateVecs(a, &x, &y));
    PetscCall(VecDuplicate(x, &right));
    PetscCall(petsc_fill(right, 3));
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &solver));
    PetscCall(KSPSetOperators(solver, shell, shell));
    PetscCall(KSPSetType(solver, "cg"));
    PetscCall(KSPGetPC(solver, &pc));
    PetscCall(PCSetType(pc, "jacobi"));
    PetscCall(KSPSetTolerances(solver, 1e-8, PETSC_DEFAULT, PETSC_DEFAULT, 500));
    PetscCall(KSPSolve(solver, right, y));
    PetscCall(petsc_fill(x, 9));
    PetscCall(VecScale(x, 30));
    PetscCall(VecAbs(x));
    PetscCall(MatDiagonalSet(a, x, ADD_VALUES));
    plan = petsc_plan_of(shell);
    PetscCall(graft_petsc_mat_update(shell, a));
    PetscCall(petsc_distance(a, shell, "transpose", &now));
    petsc_ok(petsc_plan_of(shell) == plan && now <= 1e-12, "values in the same places: the plan stays");
    PetscCall(petsc_solve(a, "cg", "jacobi", &expected, x));
    PetscCall(KSPSolve(solver, right, y));
    PetscCall(KSPGetIterationNumber(solver, &steps));
    PetscCall(VecNorm(x, NORM_INFINITY, &size));
    PetscCall(VecAXPY(y, -1, x));
    PetscCall(VecNorm(y, NORM_INFINITY, &apart));
    petsc_ok(steps == expected && apart <= 1e-9 * size, "a solver that has the shell uses the new diagonal");
    PetscCall(MatDuplicate(shell, MAT_COPY_VALUES, &twin));
    PetscCall(graft_petsc_mat_update(shell, b));
    PetscCall(petsc_distance(b, shell, "product", &now));
    PetscCall(petsc_distance(a, twin, "product", &kept));
    petsc_ok(petsc_plan_of(twin) == plan && now <= 1e-12 && kept <= 1e-12, "a duplicate keeps the old values");
    PetscCall(MatCopy(shell, twin, SAME_NONZERO_PATTERN));
    PetscCall(petsc_distance(b, twin, "product", &now));
    PetscCall(MatDestroy(&twin));
    petsc_ok(now <= 1e-12, "MatCopy() of a shell to another copies the matrix");
    plan = petsc_plan_of(shell);
    PetscCall(MatSetOption(b, MAT_NEW_NONZERO_ALLOCATION_ERR, PETSC_FALSE));
    PetscCall(MatGetOwnershipRange(b, &first, NULL));
    if (first == 0) PetscCall(MatSetValue(b, 0, 399, 5, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(b, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(b, MAT_FINAL_ASSEMBLY));
    PetscCall(graft_petsc_mat_update(shell, b));
    PetscCall(petsc_distance(b, shell, "product", &now));
    petsc_ok(petsc_plan_of(shell) != plan && now <= 1e-12, "an entry that is new on one rank: another plan on all");
    PetscCall(KSPDestroy(&solver));
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&right));
    PetscCall(MatDestroy(&shell));
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&b));
    PetscFunctionReturn(0);
}

/* Operations that a shell does not support must return an error, and not a wrong result. */
static PetscErrorCode petsc_cannot(graft_petsc *g)
{
    Mat      a, shell, other;
    Vec      x, y;
    PC       pc;
    PetscInt n, first;
    double   apart;

    PetscFunctionBegin;
    PetscCall(petsc_square(9, 1, &a));
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    PetscCall(MatGetLocalSize(a, &n, NULL));
    PetscCall(MatCreateShell(PETSC_COMM_WORLD, n, n, 81, 81, NULL, &other));
    PetscCall(MatCreateVecs(a, &x, &y));
    PetscCall(petsc_fill(x, 2));
    PetscCall(PCCreate(PETSC_COMM_WORLD, &pc));
    PetscCall(PCSetOperators(pc, shell, shell));
    PetscCall(PCSetType(pc, PCSOR));
    PetscCall(MatGetOwnershipRange(a, &first, NULL));
    PetscCall(PetscPushErrorHandler(petsc_keep, NULL));
    petsc_refused(MatZeroEntries(shell), PETSC_ERR_SUP, "", "MatZeroEntries() of a shell is refused");
    petsc_refused(MatGetRow(shell, first, &n, NULL, NULL), PETSC_ERR_SUP, "but no rows", "and MatGetRow()");
    petsc_ok(PCApply(pc, x, y) != 0, "and a preconditioner that needs entries");
    PetscCall(PetscPopErrorHandler());
    PetscCall(MatCopy(shell, other, SAME_NONZERO_PATTERN));
    PetscCall(petsc_distance(shell, other, "product", &apart));
    petsc_ok(apart == 0, "MatCopy() to a shell of the program makes it one of Graft");
    PetscCall(PetscPushErrorHandler(petsc_keep, NULL));
    petsc_refused(MatSetValue(shell, first, first, 1, INSERT_VALUES), PETSC_ERR_SUP, "", "MatSetValue() is refused");
    PetscCall(PetscPopErrorHandler());
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(PCDestroy(&pc));
    PetscCall(MatDestroy(&other));
    PetscCall(MatDestroy(&shell));
    PetscCall(MatDestroy(&a));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    graft_host   host = GRAFT_INIT(graft_host);
    graft_petsc *g;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    host.allocate = petsc_allocate;
    host.deallocate = petsc_deallocate;
    PetscCall(graft_petsc_open(PETSC_COMM_WORLD, argv[1], &host, &g));
    PetscCall(petsc_types(g));
    PetscCall(petsc_properties(g));
    PetscCall(petsc_changes(g));
    PetscCall(petsc_updates(g));
    PetscCall(petsc_cannot(g));
    PetscCall(graft_petsc_close(&g));
    petsc_ok(live_bytes == 0, "all memory of Graft is free");
    PetscCall(PetscFinalize());
    return 0;
}
