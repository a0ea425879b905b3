/* Checks meshes, inference and training with graft_petsc_ts.h, for heat conduction in a square that a TS simulates.
 * test_petsc.py runs it on ranks of MPI: test_petsc_ts LIBRARY. Rank 0 prints.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_petsc_ts.h"

#include <math.h>

enum { SIDE = 12 }; /* number of points of the square in each direction */

static int post_steps; /* number of calls of the program's own post-step function */

static void ts_ok(int condition, const char *what)
{
    static int count;
    int        all = 0, rank;

    MPI_Allreduce(&condition, &all, 1, MPI_INT, MPI_MIN, PETSC_COMM_WORLD);
    MPI_Comm_rank(PETSC_COMM_WORLD, &rank);
    if (rank == 0) printf("%sok %d - %s\n", all ? "" : "not ", ++count, what);
    fflush(stdout);
}

/* Keep the first message of a failure, instead of printing a trace to standard error. */
static char ts_said[4096];

static PetscErrorCode ts_keep(MPI_Comm comm, int line, const char *function, const char *file, PetscErrorCode code,
                              PetscErrorType type, const char *message, void *arg)
{
    (void)comm, (void)line, (void)function, (void)file, (void)arg;
    if (type == PETSC_ERROR_INITIAL) snprintf(ts_said, sizeof ts_said, "%s", message);
    return code;
}

/* Make the diffusion operator of the square: du/dt = A u. Rows of the border are zero, so that the border keeps its
 * values. */
static PetscErrorCode ts_diffusion(Mat *out)
{
    PetscInt first, end;

    PetscFunctionBegin;
    PetscCall(
        MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, SIDE * SIDE, SIDE * SIDE, 5, NULL, 5, NULL, out));
    PetscCall(MatGetOwnershipRange(*out, &first, &end));
    for (PetscInt i = first; i < end; i++) {
        const PetscInt    x = i % SIDE, y = i / SIDE, near[] = { i - 1, i + 1, i - SIDE, i + SIDE };
        const int         is_there[] = { x > 0, x < SIDE - 1, y > 0, y < SIDE - 1 };
        const PetscScalar weight = x > 0 && x < SIDE - 1 && y > 0 && y < SIDE - 1;

        PetscCall(MatSetValue(*out, i, i, -4 * weight, INSERT_VALUES));
        for (int k = 0; k < 4; k++)
            if (is_there[k]) PetscCall(MatSetValue(*out, i, near[k], weight, INSERT_VALUES));
    }
    PetscCall(MatAssemblyBegin(*out, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(*out, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(0);
}

/* Make a vector with two coordinates for each row. */
static PetscErrorCode ts_coordinates(Mat a, Vec *out)
{
    PetscInt     first, end;
    PetscScalar *x;

    PetscFunctionBegin;
    PetscCall(MatGetOwnershipRange(a, &first, &end));
    PetscCall(VecCreateMPI(PETSC_COMM_WORLD, 2 * (end - first), PETSC_DETERMINE, out));
    PetscCall(VecGetArray(*out, &x));
    for (PetscInt i = first; i < end; i++) {
        x[2 * (i - first)] = (PetscScalar)(i % SIDE) / (SIDE - 1);
        x[2 * (i - first) + 1] = (PetscScalar)(i / SIDE) / (SIDE - 1);
    }
    PetscCall(VecRestoreArray(*out, &x));
    PetscFunctionReturn(0);
}

static PetscErrorCode ts_start(Vec u)
{
    PetscInt     first, end;
    PetscScalar *a;

    PetscFunctionBegin;
    PetscCall(VecGetOwnershipRange(u, &first, &end));
    PetscCall(VecGetArray(u, &a));
    for (PetscInt i = first; i < end; i++) {
        const double x = (double)(i % SIDE) / (SIDE - 1), y = (double)(i / SIDE) / (SIDE - 1);

        a[i - first] = 16 * x * (1 - x) * y * (1 - y) + 0.3 * sin(7 * x) * sin(5 * y);
    }
    PetscCall(VecRestoreArray(u, &a));
    PetscFunctionReturn(0);
}

/* Whether a node, or a row of the halo, has the position of a row of the matrix. */
static int ts_lies_at(const graft_mesh_view *view, int64_t node, PetscInt row)
{
    const PetscInt x = row % SIDE, y = row / SIDE;

    return fabs(view->position[2 * node] - (double)x / (SIDE - 1)) < 1e-14 &&
           fabs(view->position[2 * node + 1] - (double)y / (SIDE - 1)) < 1e-14;
}

/* Check the mesh: its nodes are the rows, its edges are the off-diagonal entries, and positions are right. */
static PetscErrorCode ts_mesh(const graft_petsc_mesh *m, Mat a)
{
    graft_mesh_view view = GRAFT_INIT(graft_mesh_view);
    graft_mesh_info info = GRAFT_INIT(graft_mesh_info);
    graft_error     error = GRAFT_INIT(graft_error);
    PetscInt        first, end;
    int             good;

    PetscFunctionBegin;
    PetscCall(MatGetOwnershipRange(a, &first, &end));
    good = m->meshes->view(m->mesh, &view, &error) >= 0 && m->meshes->info(m->mesh, -1, &info, &error) >= 0;
    good = good && info.n_nodes == SIDE * SIDE && info.n_edges == 4 * SIDE * (SIDE - 1) && view.n_nodes == end - first;
    for (PetscInt i = 0; good && i < end - first; i++) {
        const int32_t   node = view.node_of[i];
        PetscInt        n, others = 0;
        const PetscInt *columns;

        good = node >= 0 && view.id[node] == first + i;
        PetscCall(MatGetRow(a, first + i, &n, &columns, NULL));
        for (PetscInt k = 0; good && k < n; k++) {
            const int64_t at = view.row_ptr[node] + others;

            if (columns[k] == first + i) continue;
            good = at < view.row_ptr[node + 1] && ts_lies_at(&view, view.source[at], columns[k]) &&
                   ts_lies_at(&view, node, first + i);
            others++;
        }
        good = good && view.row_ptr[node + 1] - view.row_ptr[node] == others;
        PetscCall(MatRestoreRow(a, first + i, &n, &columns, NULL));
    }
    ts_ok(good, "a mesh has the rows and entries of the matrix, and their positions");
    PetscFunctionReturn(0);
}

static PetscErrorCode ts_own_post_step(TS ts)
{
    PetscFunctionBegin;
    post_steps++;
    PetscCall(graft_petsc_ts_step(ts));
    PetscFunctionReturn(0);
}

static PetscErrorCode ts_solver(Mat a, TS *ts)
{
    PetscFunctionBegin;
    PetscCall(TSCreate(PETSC_COMM_WORLD, ts));
    PetscCall(TSSetProblemType(*ts, TS_LINEAR));
    PetscCall(TSSetRHSFunction(*ts, NULL, TSComputeRHSFunctionLinear, NULL));
    PetscCall(TSSetRHSJacobian(*ts, a, a, TSComputeRHSJacobianConstant, NULL));
    PetscCall(TSSetType(*ts, TSRK));
    PetscCall(TSSetTimeStep(*ts, 0.1));
    PetscCall(TSSetMaxSteps(*ts, 60));
    PetscCall(TSSetMaxTime(*ts, 1000));
    PetscCall(TSSetExactFinalTime(*ts, TS_EXACTFINALTIME_STEPOVER));
    PetscFunctionReturn(0);
}

/* Train while the TS runs. Afterwards a step of the network must be nearer to the next state than the unchanged state
 * is. */
static PetscErrorCode ts_training(graft_petsc_mesh *m, Mat a, graft_network *network, graft_stream *stream)
{
    graft_stream_status status = GRAFT_INIT(graft_stream_status);
    TS                  ts;
    Vec                 u, v, before;
    PetscReal           apart, change;
    PetscErrorCode      code;
    char                text[200];

    PetscFunctionBegin;
    PetscCall(MatCreateVecs(a, &u, &v));
    PetscCall(ts_solver(a, &ts));
    PetscCall(PetscPushErrorHandler(ts_keep, NULL));
    code = graft_petsc_ts_status(ts, &status);
    ts_ok(code == PETSC_ERR_ORDER && strstr(ts_said, "graft_petsc_ts_train") != NULL,
          "a TS that does not train says so");
    PetscCall(PetscPopErrorHandler());
    PetscCall(graft_petsc_ts_train(ts, m, stream, 1, 1000, 3));
    PetscCall(TSSetPostStep(ts, ts_own_post_step));
    for (int run = 0; run < 2; run++) {
        PetscCall(ts_start(u));
        PetscCall(TSSetTime(ts, 0));
        PetscCall(TSSetStepNumber(ts, 0));
        PetscCall(TSSolve(ts, u));
    }
    PetscCall(graft_petsc_ts_status(ts, &status));
    snprintf(text, sizeof text, "%d steps are offered, in two runs, and the network trains %d times",
             (int)status.offered, (int)status.steps);
    ts_ok(post_steps == 120 && status.offered == 120 && status.pairs == 118 && status.steps > 100, text);

    PetscCall(ts_start(u));
    PetscCall(TSSetPostStep(ts, NULL));
    PetscCall(TSSetTime(ts, 0));
    PetscCall(TSSetStepNumber(ts, 0));
    PetscCall(TSSetMaxSteps(ts, 5));
    PetscCall(TSSolve(ts, u));
    PetscCall(graft_petsc_infer(m, network, 1, u, 1, v));
    PetscCall(VecDuplicate(u, &before));
    PetscCall(VecCopy(u, before));
    PetscCall(TSSetStepNumber(ts, 0));
    PetscCall(TSSetMaxSteps(ts, 1));
    PetscCall(TSSolve(ts, u));
    PetscCall(VecAXPY(v, -1, u));
    PetscCall(VecAXPY(before, -1, u));
    PetscCall(VecNorm(v, NORM_2, &apart));
    PetscCall(VecNorm(before, NORM_2, &change));
    snprintf(text, sizeof text, "its step is nearer to the next state than no change is (%.1e, %.1e)", (double)apart,
             (double)change);
    ts_ok(apart < 0.5 * change, text);
    PetscCall(VecDestroy(&u));
    PetscCall(VecDestroy(&v));
    PetscCall(VecDestroy(&before));
    PetscCall(TSDestroy(&ts));
    PetscFunctionReturn(0);
}

/* Arguments that do not fit must return an error with the same message on all ranks. */
static PetscErrorCode ts_mistakes(graft_petsc *g, graft_petsc_mesh *m, Mat a, graft_network *network,
                                  graft_stream *stream)
{
    graft_petsc_mesh   *none = NULL;
    graft_stream_status status = GRAFT_INIT(graft_stream_status);
    Vec                 u, wide;
    TS                  ts;
    PetscInt            n;
    PetscErrorCode      code;

    PetscFunctionBegin;
    PetscCall(MatCreateVecs(a, &u, NULL));
    PetscCall(ts_solver(a, &ts));
    PetscCall(graft_petsc_ts_train(ts, m, stream, 1, 1, 1));
    PetscCall(PetscPushErrorHandler(ts_keep, NULL));
    code = graft_petsc_mesh_create(g, a, u, 2, &none);
    ts_ok(code == PETSC_ERR_ARG_SIZ && none == NULL && strstr(ts_said, "expected 2") != NULL,
          "coordinates of another dimension are refused");
    code = graft_petsc_infer(m, network, 3, u, 1, u);
    ts_ok(code == PETSC_ERR_ARG_SIZ && strstr(ts_said, "expected 3") != NULL, "so is a state of another size");
    PetscCall(VecGetLocalSize(u, &n));
    PetscCall(VecCreateMPI(PetscObjectComm((PetscObject)u), 2 * n, PETSC_DETERMINE, &wide));
    code = graft_petsc_infer(m, network, 1, u, 2, wide);
    ts_ok(code != 0 && strstr(ts_said, "output: is") != NULL, "and a result, without an inference that is left begun");
    PetscCall(VecDestroy(&wide));
    PetscCall(VecSet(u, NAN));
    PetscCall(TSSetSolution(ts, u));
    code = graft_petsc_ts_step(ts);
    ts_ok(code == PETSC_ERR_FP && strstr(ts_said, "finite") != NULL,
          "a state that is not finite is an error of the step");
    PetscCall(PetscPopErrorHandler());
    PetscCall(ts_start(u));
    PetscCall(graft_petsc_infer(m, network, 1, u, 1, u));
    ts_ok(m->streams->status(stream, &status, NULL) >= 0 && status.offered == 120, "and the run goes on");
    PetscCall(VecDestroy(&u));
    PetscCall(TSDestroy(&ts));
    PetscFunctionReturn(0);
}

/* Make a network that predicts the change of one value on free nodes, which are all nodes except the border. */
static PetscErrorCode ts_network(graft_petsc_mesh *m, Mat a, graft_network **network, graft_stream **stream)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_network_args args = GRAFT_INIT(graft_network_args);
    uint8_t           *is_free;
    PetscInt           first;
    int32_t            rc;

    PetscFunctionBegin;
    PetscCall(MatGetOwnershipRange(a, &first, NULL));
    PetscCall(PetscCalloc1(m->n_rows, &is_free));
    for (PetscInt i = 0; i < m->n_nodes; i++) {
        const PetscInt x = (first + i) % SIDE, y = (first + i) / SIDE;

        is_free[i] = x > 0 && x < SIDE - 1 && y > 0 && y < SIDE - 1;
    }
    args.predicts = GRAFT_PREDICTS_CHANGE;
    args.n_in = args.n_out = 1;
    args.is_free = is_free;
    rc = m->networks->create(m->mesh, &args, network, &error);
    if (rc >= 0) rc = m->streams->create(*network, stream, &error);
    PetscCall(PetscFree(is_free));
    graft_petsc_check(PETSC_COMM_WORLD, rc, error);
    PetscFunctionReturn(0);
}

int main(int argc, char **argv)
{
    graft_petsc      *g;
    graft_petsc_mesh *m;
    graft_network    *network;
    graft_stream     *stream;
    Mat               a;
    Vec               coordinates;

    PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
    PetscCall(graft_petsc_open(PETSC_COMM_WORLD, argv[1], NULL, &g));
    PetscCall(ts_diffusion(&a));
    PetscCall(ts_coordinates(a, &coordinates));
    PetscCall(graft_petsc_mesh_create(g, a, coordinates, 2, &m));
    PetscCall(ts_mesh(m, a));
    PetscCall(ts_network(m, a, &network, &stream));
    PetscCall(ts_training(m, a, network, stream));
    PetscCall(ts_mistakes(g, m, a, network, stream));
    m->streams->destroy(stream);
    m->networks->destroy(network);
    PetscCall(graft_petsc_mesh_destroy(&m));
    PetscCall(graft_petsc_close(&g));
    PetscCall(VecDestroy(&coordinates));
    PetscCall(MatDestroy(&a));
    PetscCall(PetscFinalize());
    return 0;
}
