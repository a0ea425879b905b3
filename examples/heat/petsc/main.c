/* The program of ../main.c with PETSc, on the same mesh. A TS makes the time steps with products by Graft, and trains
 * in its post-step function. See ../README.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../solver.h"
#include "../vtu.h"
#include "graft_petsc_ts.h"

#include <petscksp.h>

enum { RUN = 40, TRAININGS = 5, MIDDLE = 50, EVERY = 10 };

static const char usage[] = "usage: heat LIBRARY [FOLDER [SIDE [STEPS [AFTER]]]] [options of PETSc], see README.md\n";

struct run {
    struct solver     solver; /* provides mesh, initial states and files; its time steps are not used */
    const char       *folder;
    int               steps, after;
    graft_petsc      *graft;
    graft_petsc_mesh *mesh;
    graft_network    *network;
    graft_stream     *stream;
    Mat               rate;   /* du/dt = rate u */
    Mat               excess; /* operator that subtracts the mean of its neighbours from each node; 0 on the boundary */
    KSP               filter;
    TS                ts;
    Vec               u, surrogate, zero;
    double           *local[2], *start; /* u, the state of the surrogate, and the initial state of a run, on the nodes
                                         * and ghosts of this rank */
};

static PetscErrorCode configure(struct run *r)
{
    static const char *const settings[][2] = {
        { "hidden", "32" }, { "layers", "3" },         { "mgn.linear", "2" },
        { "lr", "0.002" },  { "mgn.noise", "0.0003" }, { "stream.holdout", "20" }
    };
    char last[32];

    PetscFunctionBegin;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        PetscCall(graft_petsc_set(r->graft, settings[i][0], settings[i][1]));
    snprintf(last, sizeof last, "cosine:%d", TRAININGS * r->steps);
    PetscCall(graft_petsc_set(r->graft, "mgn.schedule", last));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode make_matrix(const struct run *r, Mat *matrix)
{
    const PetscInt n = (r->solver.end - r->solver.first) * r->solver.side;

    PetscFunctionBegin;
    PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, n, n, PETSC_DETERMINE, PETSC_DETERMINE, 9, NULL, 4, NULL, matrix));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Assemble the finite elements of the cells of this rank, for its own rows. */
static PetscErrorCode assemble(const struct run *r, Mat rate, Mat neighbours)
{
    const struct solver *s = &r->solver;

    PetscFunctionBegin;
    for (int64_t c = 0; c < s->n_cells; c++) {
        const int32_t *cell = s->cell + 3 * c;
        double         gradient[3][2];
        const double   area2 = solver_shape(s, cell, gradient);

        for (int k = 0; k < 3; k++) {
            const double  *flow = s->velocity + 2 * cell[k];
            const PetscInt row = (PetscInt)s->id[cell[k]];

            if (s->owner[cell[k]] != s->rank) continue;
            for (int j = 0; j < 3; j++) {
                const PetscInt column = (PetscInt)s->id[cell[j]];
                const double   loss =
                    area2 / 6 * (flow[0] * gradient[j][0] + flow[1] * gradient[j][1]) +
                    SOLVER_DIFFUSION * area2 / 2 * (gradient[k][0] * gradient[j][0] + gradient[k][1] * gradient[j][1]);

                PetscCall(MatSetValue(rate, row, column, -loss * s->is_free[cell[k]] / s->mass[cell[k]], ADD_VALUES));
                PetscCall(MatSetValue(neighbours, row, column, j != k, INSERT_VALUES));
            }
        }
    }
    PetscCall(MatAssemblyBegin(rate, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(rate, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyBegin(neighbours, MAT_FINAL_ASSEMBLY));
    PetscCall(MatAssemblyEnd(neighbours, MAT_FINAL_ASSEMBLY));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Copy the values of own nodes to a vector. */
static PetscErrorCode to_vector(const struct run *r, const double *from, Vec to)
{
    const struct solver *s = &r->solver;
    PetscScalar         *own;

    PetscFunctionBegin;
    PetscCall(VecGetArrayWrite(to, &own));
    PetscCall(PetscArraycpy(own, from + (int64_t)(s->first - s->low) * s->side, (size_t)(s->end - s->first) * s->side));
    PetscCall(VecRestoreArrayWrite(to, &own));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Copy a vector to nodes and ghosts. */
static PetscErrorCode from_vector(const struct run *r, Vec from, double *to)
{
    const struct solver *s = &r->solver;
    const PetscScalar   *own;

    PetscFunctionBegin;
    PetscCall(VecGetArrayRead(from, &own));
    PetscCall(PetscArraycpy(to + (int64_t)(s->first - s->low) * s->side, own, (size_t)(s->end - s->first) * s->side));
    PetscCall(VecRestoreArrayRead(from, &own));
    solver_exchange(s, to);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Assemble the operator `excess` from the neighbours of each node: excess = free (1 - neighbours / their number). */
static PetscErrorCode subtract_means(const struct run *r, Mat neighbours)
{
    const struct solver *s = &r->solver;
    double              *is_free = r->local[0];
    Vec                  degree, keep;

    PetscFunctionBegin;
    for (int64_t i = 0; i < s->n_nodes; i++) is_free[i] = s->is_free[i];
    PetscCall(MatCreateVecs(neighbours, &degree, &keep));
    PetscCall(to_vector(r, is_free, keep));
    PetscCall(MatGetRowSum(neighbours, degree));
    PetscCall(VecPointwiseDivide(degree, keep, degree));
    PetscCall(VecScale(degree, -1));
    PetscCall(MatDiagonalScale(neighbours, degree, NULL));
    PetscCall(MatDiagonalSet(neighbours, keep, INSERT_VALUES));
    PetscCall(VecDestroy(&degree));
    PetscCall(VecDestroy(&keep));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Make the mesh. Its nodes are the rows of the matrix, and its edges are the entries. */
static PetscErrorCode make_mesh(struct run *r, Mat matrix)
{
    const struct solver *s = &r->solver;
    const PetscInt       n = (s->end - s->first) * s->side;
    const double        *own = s->x + (int64_t)(s->first - s->low) * s->side * 2;
    Vec                  x;

    PetscFunctionBegin;
    PetscCall(VecCreateMPIWithArray(PETSC_COMM_WORLD, 2, 2 * n, PETSC_DETERMINE, own, &x));
    PetscCall(graft_petsc_mesh_create(r->graft, matrix, x, 2, &r->mesh));
    PetscCall(VecDestroy(&x));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Make the operators, which Graft copies, and the mesh. */
static PetscErrorCode make_operators(struct run *r)
{
    Mat rate, neighbours;

    PetscFunctionBegin;
    PetscCall(make_matrix(r, &rate));
    PetscCall(make_matrix(r, &neighbours));
    PetscCall(assemble(r, rate, neighbours));
    PetscCall(subtract_means(r, neighbours));
    PetscCall(graft_petsc_mat_create(r->graft, rate, &r->rate));
    PetscCall(graft_petsc_mat_create(r->graft, neighbours, &r->excess));
    PetscCall(make_mesh(r, neighbours));
    PetscCall(MatCreateVecs(rate, &r->u, &r->surrogate));
    PetscCall(VecDuplicate(r->u, &r->zero));
    PetscCall(MatDestroy(&rate));
    PetscCall(MatDestroy(&neighbours));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Make the filter. It is one step of Richardson's method for excess u = 0, which replaces u by u - 0.1 excess u. */
static PetscErrorCode make_filter(struct run *r)
{
    PC none;

    PetscFunctionBegin;
    PetscCall(KSPCreate(PETSC_COMM_WORLD, &r->filter));
    PetscCall(KSPSetOperators(r->filter, r->excess, r->excess));
    PetscCall(KSPSetType(r->filter, KSPRICHARDSON));
    PetscCall(KSPRichardsonSetScale(r->filter, 0.1));
    PetscCall(KSPGetPC(r->filter, &none));
    PetscCall(PCSetType(none, PCNONE));
    PetscCall(KSPSetNormType(r->filter, KSP_NORM_NONE));
    PetscCall(KSPSetInitialGuessNonzero(r->filter, PETSC_TRUE));
    PetscCall(KSPSetTolerances(r->filter, PETSC_DEFAULT, PETSC_DEFAULT, PETSC_DEFAULT, 1));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Make a TS with Heun's method. */
static PetscErrorCode make_steps(struct run *r)
{
    TSAdapt adapt;

    PetscFunctionBegin;
    PetscCall(TSCreate(PETSC_COMM_WORLD, &r->ts));
    PetscCall(TSSetProblemType(r->ts, TS_LINEAR));
    PetscCall(TSSetRHSFunction(r->ts, NULL, TSComputeRHSFunctionLinear, NULL));
    PetscCall(TSSetRHSJacobian(r->ts, r->rate, r->rate, TSComputeRHSJacobianConstant, NULL));
    PetscCall(TSSetType(r->ts, TSRK));
    PetscCall(TSRKSetType(r->ts, TSRK2A));
    PetscCall(TSGetAdapt(r->ts, &adapt));
    PetscCall(TSAdaptSetType(adapt, TSADAPTNONE));
    PetscCall(TSSetTimeStep(r->ts, SOLVER_STEP / solver_stages(&r->solver)));
    PetscCall(TSSetMaxTime(r->ts, PETSC_MAX_REAL));
    PetscCall(TSSetExactFinalTime(r->ts, TS_EXACTFINALTIME_STEPOVER));
    PetscCall(TSSetSolution(r->ts, r->u));
    PetscCall(TSSetApplicationContext(r->ts, r));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode make_network(struct run *r)
{
    const struct solver *s = &r->solver;
    const int64_t        own = (int64_t)(s->first - s->low) * s->side;
    graft_error          error = GRAFT_INIT(graft_error);
    graft_network_args   args = GRAFT_INIT(graft_network_args);
    graft_field          constant;
    PetscScalar         *values;
    uint8_t             *is_free;
    int32_t              rc;

    PetscFunctionBegin;
    PetscCall(PetscCalloc2(r->mesh->n_rows * 3, &values, r->mesh->n_rows, &is_free)); /* this array is not read for
                                                                                       * ghosts */
    for (PetscInt i = 0; i < r->mesh->n_nodes; i++) {
        values[3 * i] = s->velocity[2 * (own + i)];
        values[3 * i + 1] = s->velocity[2 * (own + i) + 1];
        values[3 * i + 2] = is_free[i] = s->is_free[own + i];
    }
    constant = graft_petsc_field(r->mesh->n_rows, 3, values);
    args.predicts = GRAFT_PREDICTS_CHANGE;
    args.n_in = args.n_out = 1;
    args.constant = &constant;
    args.is_free = is_free;
    rc = r->mesh->networks->create(r->mesh->mesh, &args, &r->network, &error);
    if (rc >= 0) rc = r->mesh->streams->create(r->network, &r->stream, &error);
    PetscCall(PetscFree2(values, is_free));
    graft_petsc_check(PETSC_COMM_WORLD, rc, error);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Whether a step of the TS is the last one within a step of ../solver.h; then the filter is applied. */
static PetscErrorCode end_step(TS ts, struct run **r, PetscBool *is_last)
{
    PetscInt step;

    PetscFunctionBegin;
    PetscCall(TSGetApplicationContext(ts, r));
    PetscCall(TSGetStepNumber(ts, &step));
    *is_last = step % solver_stages(&(*r)->solver) == 0 ? PETSC_TRUE : PETSC_FALSE;
    if (*is_last) PetscCall(KSPSolve((*r)->filter, (*r)->zero, (*r)->u));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode learn(TS ts)
{
    struct run *r;
    PetscBool   is_last;

    PetscFunctionBegin;
    PetscCall(end_step(ts, &r, &is_last));
    if (is_last) PetscCall(graft_petsc_ts_step(ts));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Run the TS with initial state number `number` for `steps` steps of the solver. */
static PetscErrorCode solve(struct run *r, int number, int steps, PetscErrorCode (*after_step)(TS), PetscBool trains)
{
    PetscFunctionBegin;
    solver_start(&r->solver, number, r->start);
    PetscCall(to_vector(r, r->start, r->u));
    PetscCall(TSSetStepNumber(r->ts, 0));
    PetscCall(TSSetPostStep(r->ts, after_step));
    if (trains) PetscCall(graft_petsc_ts_step(r->ts)); /* offers the initial state */
    if (steps == 0) PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
    PetscCall(TSSetMaxSteps(r->ts, (PetscInt)steps * solver_stages(&r->solver)));
    PetscCall(TSSolve(r->ts, NULL));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode train(struct run *r)
{
    graft_error         error = GRAFT_INIT(graft_error);
    graft_stream_status status;
    int32_t             rc;

    PetscFunctionBegin;
    PetscCall(graft_petsc_ts_train(r->ts, r->mesh, r->stream, 1, 1000, TRAININGS));
    for (int step = 0; step < r->steps; step += RUN)
        PetscCall(solve(r, step / RUN, PetscMin(RUN, r->steps - step) - 1, learn, PETSC_TRUE));
    PetscCall(graft_petsc_ts_status(r->ts, &status));
    if (status.held_out > 0) {
        rc = r->mesh->streams->validate(r->stream, &status, &error);
        graft_petsc_check(PETSC_COMM_WORLD, rc, error);
    }
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%lld training steps, loss %.3g", (long long)status.steps, status.loss));
    if (status.held_out > 0) PetscCall(PetscPrintf(PETSC_COMM_WORLD, ", of held-out pairs %.3g", status.validation));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "\n"));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode write_files(const struct run *r, int step)
{
    const struct solver *s = &r->solver;
    const struct vtu     v = { r->folder,
                               s->rank,
                               s->n_ranks,
                               s->n_nodes,
                               s->n_own_cells,
                               s->x,
                               s->cell,
                               { "solver", "surrogate" },
                               { r->local[0], r->local[1] } };

    PetscFunctionBegin;
    if (r->folder[0] == '\0') PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
    PetscCheck(vtu_write(&v, step) == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE, "cannot write to %s", r->folder);
    if (s->rank == 0)
        PetscCheck(vtu_write_times(r->folder, EVERY, step, SOLVER_STEP) == 0, PETSC_COMM_SELF, PETSC_ERR_FILE_WRITE,
                   "cannot write to %s", r->folder);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* After each step of the solver the surrogate makes a step too. Their distance is the error of the surrogate. */
static PetscErrorCode follow(TS ts)
{
    const struct solver *s;
    struct run          *r;
    PetscBool            is_last;
    PetscInt             step;
    double               error, change;

    PetscFunctionBegin;
    PetscCall(end_step(ts, &r, &is_last));
    if (!is_last) PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
    s = &r->solver;
    PetscCall(TSGetStepNumber(ts, &step));
    step /= solver_stages(s);
    PetscCall(graft_petsc_infer(r->mesh, r->network, 1, r->surrogate, 1, r->surrogate));
    PetscCall(from_vector(r, r->u, r->local[0]));
    PetscCall(from_vector(r, r->surrogate, r->local[1]));
    if (step % EVERY == 0) PetscCall(write_files(r, (int)step));
    if (step != 1 && step != MIDDLE && step != r->after) PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
    error = solver_distance(s, r->local[1], r->local[0]);
    change = solver_distance(s, r->start, r->local[0]);
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%8d %12.4e %12.4e\n", (int)step, error, change));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode compare(struct run *r)
{
    PetscFunctionBegin;
    for (int f = 0; f < 2; f++) solver_start(&r->solver, r->steps, r->local[f]);
    PetscCall(to_vector(r, r->local[1], r->surrogate));
    PetscCall(write_files(r, 0));
    PetscCall(PetscPrintf(PETSC_COMM_WORLD, "%8s %12s %12s\n", "steps", "surrogate", "no change"));
    PetscCall(solve(r, r->steps, r->after, follow, PETSC_FALSE));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode finish(struct run *r)
{
    PetscFunctionBegin;
    PetscCall(TSDestroy(&r->ts));
    PetscCall(KSPDestroy(&r->filter));
    PetscCall(MatDestroy(&r->rate));
    PetscCall(MatDestroy(&r->excess));
    PetscCall(VecDestroy(&r->u));
    PetscCall(VecDestroy(&r->surrogate));
    PetscCall(VecDestroy(&r->zero));
    r->mesh->streams->destroy(r->stream);
    r->mesh->networks->destroy(r->network);
    PetscCall(graft_petsc_mesh_destroy(&r->mesh));
    PetscCall(graft_petsc_close(&r->graft));
    PetscCall(PetscFree3(r->local[0], r->local[1], r->start));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

static PetscErrorCode run(struct run *r, const char *library)
{
    const size_t n = (size_t)r->solver.n_nodes;

    PetscFunctionBegin;
    PetscCall(PetscCalloc3(n, &r->local[0], n, &r->local[1], n, &r->start));
    PetscCall(graft_petsc_open(PETSC_COMM_WORLD, library, NULL, &r->graft));
    PetscCall(configure(r));
    PetscCall(make_operators(r));
    PetscCall(make_filter(r));
    PetscCall(make_steps(r));
    PetscCall(make_network(r));
    PetscCall(train(r));
    PetscCall(compare(r));
    PetscCall(finish(r));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

int main(int argc, char **argv)
{
    struct run r = { .folder = argc > 2 ? argv[2] : "" };
    const int  side = argc > 3 ? atoi(argv[3]) : 24;

    r.steps = argc > 4 ? atoi(argv[4]) : 800;
    r.after = argc > 5 ? atoi(argv[5]) : 100;
    PetscCall(PetscInitialize(&argc, &argv, NULL, usage));
    PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &r.solver.n_ranks));
    PetscCheck(argc >= 2 && side >= 3 && side >= r.solver.n_ranks && r.steps >= 2 && r.after >= 1, PETSC_COMM_WORLD,
               PETSC_ERR_ARG_OUTOFRANGE, "%s", usage);
    PetscCheck(solver_init(&r.solver, PETSC_COMM_WORLD, side) == 0, PETSC_COMM_SELF, PETSC_ERR_MEM, "out of memory");
    PetscCall(run(&r, argv[1]));
    solver_fini(&r.solver);
    PetscCall(PetscFinalize());
    return 0;
}
