/* Compares the shell matrix of graft_petsc.h with the assembled matrix of PETSc: products, solvers, memory and
 * mistakes. test_petsc.py runs it on ranks of MPI: test_petsc LIBRARY. Rank 0 prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "petsc_scene.h"

/* Make a matrix with random entries. The numbers of rows on the ranks differ widely (the second rank has none), and
 * some rows are empty. */
static PetscErrorCode petsc_scattered(Mat *out)
{
    int      rank;
    PetscInt n, first, end, all;
    uint64_t state;

    PetscFunctionBegin;
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    n = rank == 1 ? 0 : 101 + 31 * rank;
    state = 77u + (uint64_t)rank;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, n, n, PETSC_DETERMINE, PETSC_DETERMINE, 12, NULL, 12, NULL, out));
    PetscCall(MatGetOwnershipRange(*out, &first, &end));
    PetscCall(MatGetSize(*out, &all, NULL));
    for (PetscInt i = first; i < end; i++)
        for (PetscInt k = i % 11; k > 0; k--)
            PetscCall(MatSetValue(*out, i, (PetscInt)((petsc_random(&state) + 0.5) * (double)all), petsc_random(&state),
                                  ADD_VALUES));
    PetscCall(MatAssemblyBegin(*out, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*out, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* Compute <A x, y> - <x, A' y>, relative to the first product. */
static PetscErrorCode petsc_adjoint(Mat a, double *out)
{
    Vec         x, y, z;
    PetscScalar one, two;

    PetscFunctionBegin;
    PetscCall(MatCreateVecs(a, &x, &y));
    PetscCall(VecDuplicate(y, &z));
    PetscCall(petsc_fill(x, 11));
    PetscCall(petsc_fill(y, 12));
    PetscCall(MatMult(a, x, z));
    PetscCall(VecDot(z, y, &one));
    PetscCall(MatMultTranspose(a, y, z));
    PetscCall(VecDot(x, z, &two));
    *out = fabs(one - two) / fabs(one);
    PetscCall(VecDestroy(&x));
    PetscCall(VecDestroy(&y));
    PetscCall(VecDestroy(&z));
    PetscFunctionReturn(0);
}

static PetscErrorCode petsc_same(graft_petsc *g, Mat a, const char *name)
{
    Mat    shell, twin, other;
    double forward, transpose, diagonal, adjoint, kept;
    char   text[200];

    PetscFunctionBegin;
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    PetscCall(petsc_distance(a, shell, "product", &forward));
    PetscCall(petsc_distance(a, shell, "transpose", &transpose));
    PetscCall(petsc_distance(a, shell, "diagonal", &diagonal));
    PetscCall(petsc_adjoint(shell, &adjoint));
    snprintf(text, sizeof text, "%s: A x within 1e-12 (%.1e), A' x (%.1e), the same diagonal, <Ax,y> = <x,A'y> (%.1e)",
             name, forward, transpose, adjoint);
    petsc_ok(forward <= 1e-12 && transpose <= 1e-12 && diagonal == 0 && adjoint <= 1e-13, text);
    PetscCall(MatDuplicate(shell, MAT_COPY_VALUES, &twin));
    PetscCall(MatDuplicate(twin, MAT_DO_NOT_COPY_VALUES, &other));
    PetscCall(MatScale(a, 3));
    PetscCall(petsc_distance(a, shell, "product", &forward));
    petsc_ok(forward > 0.5, "the shell has copies of the values");
    PetscCall(graft_petsc_mat_update(shell, a));
    PetscCall(petsc_distance(a, shell, "product", &forward));
    PetscCall(petsc_distance(a, shell, "diagonal", &diagonal));
    petsc_ok(forward <= 1e-12 && diagonal == 0, "an update copies them again");
    PetscCall(MatDestroy(&shell));
    PetscCall(MatScale(a, 1.0 / 3));
    PetscCall(petsc_distance(a, twin, "product", &forward));
    PetscCall(MatDestroy(&twin));
    PetscCall(petsc_distance(a, other, "transpose", &kept));
    petsc_ok(forward <= 1e-12 && kept <= 1e-12, "duplicates of a shell keep its values, whatever becomes of it");
    PetscCall(MatDestroy(&other));
    PetscFunctionReturn(0);
}

static PetscErrorCode petsc_solvers(graft_petsc *g)
{
    static const char *const method[][3] = { { "cg", "jacobi", "0" },
                                             { "gmres", "none", "0.1" },
                                             { "bicg", "jacobi", "1" } };

    PetscFunctionBegin;
    for (int i = 0; i < 3; i++) {
        Mat       a, shell;
        Vec       x, y;
        PetscInt  steps, expected;
        PetscReal apart, size;
        char      text[200];

        PetscCall(petsc_square(30, atof(method[i][2]), &a));
        PetscCall(graft_petsc_mat_create(g, a, &shell));
        PetscCall(MatCreateVecs(a, &x, &y));
        PetscCall(petsc_solve(a, method[i][0], method[i][1], &expected, x));
        PetscCall(petsc_solve(shell, method[i][0], method[i][1], &steps, y));
        PetscCall(VecNorm(x, NORM_INFINITY, &size));
        PetscCall(VecAXPY(y, -1, x));
        PetscCall(VecNorm(y, NORM_INFINITY, &apart));
        snprintf(text, sizeof text, "%s with %s takes %d steps, as with the assembled matrix", method[i][0],
                 method[i][1], (int)steps);
        petsc_ok(steps == expected && steps > 5 && steps < 500 && apart <= 1e-9 * size, text);
        PetscCall(MatDestroy(&a));
        PetscCall(MatDestroy(&shell));
        PetscCall(VecDestroy(&x));
        PetscCall(VecDestroy(&y));
    }
    PetscFunctionReturn(0);
}

static PetscErrorCode petsc_mistakes(graft_petsc *g)
{
    graft_petsc *none = NULL;
    Mat          a, wide, alone, shell, other = NULL;
    PetscInt     first;
    double       apart;
    int          n_ranks;

    PetscFunctionBegin;
    MPI_Comm_size(PETSC_COMM_WORLD, &n_ranks);
    PetscCall(petsc_square(9, 1, &a));
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    PetscCall(PetscPushErrorHandler(petsc_keep, NULL));
    petsc_refused(graft_petsc_open(PETSC_COMM_WORLD, "/nowhere/libgraft.so", NULL, &none), PETSC_ERR_FILE_OPEN,
                  "/nowhere/libgraft.so", "a library that is not there is named");
    petsc_refused(graft_petsc_set(g, "halo.timeouts", "3"), PETSC_ERR_ARG_WRONG, "halo.timeout",
                  "the nearest option is named");
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, 20, 30, 1, NULL, 1, NULL, &wide));
    petsc_refused(graft_petsc_mat_create(g, wide, &other), PETSC_ERR_ARG_WRONGSTATE, "not assembled",
                  "a matrix that is not assembled is refused");
    PetscCall(MatAssemblyBegin(wide, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(wide, MAT_FINAL_ASSEMBLY));
    petsc_refused(graft_petsc_mat_create(g, wide, &other), PETSC_ERR_ARG_SIZ, "different layouts",
                  "a matrix that is not square is refused");
    PetscCall(MatCreateSeqAIJ(PETSC_COMM_SELF, 2, 2, 1, NULL, &alone));
    PetscCall(MatAssemblyBegin(alone, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(alone, MAT_FINAL_ASSEMBLY));
    if (n_ranks > 1)
        petsc_refused(graft_petsc_mat_create(g, alone, &other), PETSC_ERR_ARG_NOTSAMECOMM, "not on the ranks",
                      "a matrix of one rank is refused");
    PetscCall(MatGetOwnershipRange(a, &first, NULL));
    if (first == 0) PetscCall(MatSetValue(a, 1, 1, NAN, INSERT_VALUES));
    PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
    petsc_refused(graft_petsc_mat_create(g, a, &other), PETSC_ERR_ARG_CORRUPT, "not finite",
                  "a value that is not finite is refused on all ranks");
    petsc_refused(graft_petsc_mat_update(shell, a), PETSC_ERR_ARG_CORRUPT, "not finite", "so is an update with it");
    PetscCall(PetscPopErrorHandler());
    petsc_ok(other == NULL && none == NULL, "what was refused is not there");
    PetscCall(MatDestroy(&a));
    PetscCall(petsc_square(9, 1, &a));
    PetscCall(petsc_distance(a, shell, "product", &apart));
    petsc_ok(apart <= 1e-12, "and the shell still has its matrix");
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&wide));
    PetscCall(MatDestroy(&alone));
    PetscCall(MatDestroy(&shell));
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    graft_host   host = GRAFT_INIT(graft_host);
    graft_petsc *g;
    Mat          a, shell;
    char        *left;
    PetscInt     bytes = 0;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    host.allocate = petsc_allocate;
    host.deallocate = petsc_deallocate;
    PetscCall(graft_petsc_open(PETSC_COMM_WORLD, argv[1], &host, &g));
    PetscCall(petsc_square(40, 0.7, &a));
    PetscCall(petsc_same(g, a, "convection and diffusion"));
    PetscCall(MatDestroy(&a));
    PetscCall(petsc_scattered(&a));
    PetscCall(petsc_same(g, a, "random entries"));
    PetscCall(petsc_solvers(g));
    PetscCall(petsc_mistakes(g));
    PetscCall(graft_petsc_mat_create(g, a, &shell));
    PetscCall(graft_petsc_close(&g));
    petsc_ok(g == NULL && live_bytes > 0, "a matrix keeps the context");
    PetscCall(MatDestroy(&a));
    PetscCall(MatDestroy(&shell));
    petsc_ok(live_bytes == 0, "with the last matrix all memory of Graft is free");
    PetscCall(PetscOptionsGetInt(NULL, NULL, "-leave", &bytes, NULL));
    if (bytes > 0) PetscCall(PetscMalloc1(bytes, &left));
    PetscCall(PetscFinalize());
    return 0;
}
