/* Graft inside a simulation over MPI: see README.md.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_stream.h"
#include "graft_aggregate.h"
#include "graft_load.h"
#include "graft_mpi.h"
#include "solver.h"
#include "vtu.h"

#include <math.h>

enum { RUN = 40, TRAININGS = 5, SHORT = 50, EVERY = 10 };

static const char usage[] = "usage: heat LIBRARY [FOLDER [SIDE [STEPS [AFTER]]]]\n"
                            "SIDE x SIDE nodes (24); trains during STEPS steps of the solver (800), and then steps "
                            "AFTER times without it (100).\nFiles for ParaView go to FOLDER, if it is not empty.\n";

struct run {
    struct solver              solver;
    const char                *folder;
    int                        steps, after;
    graft_transport            ranks;
    const graft_api           *graft;
    const graft_mesh_api      *meshes;
    const graft_network_api   *networks;
    const graft_stream_api    *streams;
    const graft_graph_api     *graphs;
    const graft_aggregate_api *aggregate;
    graft_mesh                *mesh;
    graft_graph               *graph;
    graft_plan                *smoother;
    graft_network             *network;
    graft_stream              *stream;
    double                    *u, *start, *surrogate, *constant; /* [n_nodes] arrays, and `constant` [n_nodes x 3] */
    double                    *smooth;                           /* [own nodes] result of the filter */
    graft_error                error;
};

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

static graft_field field_of(const struct run *r, double *values, int64_t columns)
{
    return (graft_field){ sizeof(graft_field), GRAFT_F64, r->solver.n_nodes, columns, 0, 0, values };
}

static int32_t load(struct run *r, const char *library)
{
    static const char *const settings[][2] = { { "hidden", "32" },        { "layers", "3" },
                                               { "mgn.linear", "2" },     { "lr", "0.002" },
                                               { "mgn.noise", "0.0003" }, { "stream.holdout", "20" },
                                               { "mgn.schedule", NULL } };
    char                     last[32];
    int32_t                  rc = graft_load(library, NULL, &r->graft, &r->error);

    if (rc < 0) return rc;
    r->meshes = graft_interface(r->graft, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    r->networks = graft_interface(r->graft, GRAFT_NETWORK_ID, GRAFT_HAS(graft_network_api, destroy));
    r->streams = graft_interface(r->graft, GRAFT_STREAM_ID, GRAFT_HAS(graft_stream_api, destroy));
    r->graphs = graft_interface(r->graft, GRAFT_GRAPH_ID, GRAFT_HAS(graft_graph_api, destroy));
    r->aggregate = graft_interface(r->graft, GRAFT_AGGREGATE_ID, GRAFT_HAS(graft_aggregate_api, destroy));
    if (!r->meshes || !r->networks || !r->streams || !r->graphs || !r->aggregate) {
        snprintf(r->error.message, sizeof r->error.message, "the library is too old");
        return GRAFT_ERR_VERSION;
    }
    snprintf(last, sizeof last, "cosine:%d", TRAININGS * r->steps);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && rc == GRAFT_OK; i++)
        rc =
            r->graft->set(r->graft->context, settings[i][0], settings[i][1] != NULL ? settings[i][1] : last, &r->error);
    return rc;
}

/* Make the mesh of the solver, whose arrays are read in place. */
static int32_t make_mesh(struct run *r)
{
    const struct solver *s = &r->solver;
    graft_field          x = field_of(r, s->x, 2);
    graft_mesh_args      args = GRAFT_INIT(graft_mesh_args);

    args.kind = GRAFT_MESH_GHOSTS;
    args.dim = 2;
    args.n_rows = s->n_nodes;
    args.coordinates = &x;
    args.ids = s->id;
    args.id_type = GRAFT_I64;
    args.owners = s->owner;
    args.index_type = GRAFT_I32;
    args.n_cells = s->n_cells;
    args.cell_type = GRAFT_CELL_TRIANGLE;
    args.cell_nodes = s->cell;
    return r->meshes->create(r->graft->context, &r->ranks, &args, &r->mesh, &r->error);
}

/* The id of a source of the mesh. The nodes of a rank have consecutive ids. */
static int64_t id_of(const struct run *r, const graft_mesh_view *view, int32_t source)
{
    const int64_t k = source - view->n_nodes;
    int           q = 0;

    if (k < 0) return view->id[source];
    while (k >= view->halo_start[q + 1]) q++;
    return (int64_t)(r->solver.side * q / r->solver.n_ranks) * r->solver.side + view->halo_node[k];
}

/* Make a filter, by which a node keeps 90 % of its value and gets 10 % of the mean of its neighbours. Its rows are made
 * from the mesh, and graft.aggregate/1 computes its products. On the boundary it is the identity. */
static int32_t make_smoother(struct run *r)
{
    graft_mesh_view view = GRAFT_INIT(graft_mesh_view);
    graft_slice     slice = GRAFT_INIT(graft_slice);
    graft_csr       rows = GRAFT_INIT(graft_csr);
    graft_plan_args args = GRAFT_INIT(graft_plan_args);
    int64_t        *row_ptr = NULL, *column = NULL, put = 0;
    int32_t        *owner = NULL;
    double         *value = NULL;
    int32_t         rc;

    TRY(r->meshes->view(r->mesh, &view, &r->error));
    row_ptr = calloc((size_t)view.n_nodes + 1, sizeof *row_ptr);
    column = calloc((size_t)(view.n_edges + view.n_nodes), sizeof *column);
    value = calloc((size_t)(view.n_edges + view.n_nodes), sizeof *value);
    owner = calloc((size_t)view.n_nodes, sizeof *owner);
    rc = row_ptr && column && value && owner ? GRAFT_OK : GRAFT_ERR_NOMEM;
    for (int64_t i = 0; i < view.n_nodes && rc == GRAFT_OK; i++) {
        const int64_t degree = view.row_ptr[i + 1] - view.row_ptr[i];
        const double  share = r->solver.is_free[view.row_of[i]] ? 0.1 : 0;

        owner[i] = r->solver.rank;
        column[put] = view.id[i];
        value[put++] = 1 - share;
        for (int64_t e = view.row_ptr[i]; e < view.row_ptr[i + 1] && share > 0; e++) {
            column[put] = id_of(r, &view, view.source[e]);
            value[put++] = share / (double)degree;
        }
        row_ptr[i + 1] = put;
    }
    if (rc < 0) goto done;
    rows.index_type = GRAFT_I64;
    rows.value_type = GRAFT_F64;
    rows.n_rows = view.n_nodes;
    rows.n_cols = slice.n_vertices = (int64_t)r->solver.side * r->solver.side;
    rows.row_ptr = row_ptr;
    rows.col_idx = column;
    rows.values = value;
    slice.first_row = (int64_t)r->solver.first * r->solver.side;
    slice.rows = &rows;
    slice.owner = owner;
    args.width = 1;
    args.dtype = GRAFT_F64;
    TRY(r->graphs->create(r->graft->context, &r->ranks, &slice, &r->graph, &r->error));
    TRY(r->aggregate->create(r->graph, &args, &r->smoother, &r->error));
done:
    free(row_ptr);
    free(column);
    free(value);
    free(owner);
    return rc;
}

/* Make a network from u to its change in a step. Its constant inputs are the velocity and the boundary of the nodes. */
static int32_t make_network(struct run *r)
{
    const struct solver *s = &r->solver;
    graft_network_args   args = GRAFT_INIT(graft_network_args);
    graft_field          constant = field_of(r, r->constant, 3);
    int32_t              rc;

    for (int64_t i = 0; i < s->n_nodes; i++) {
        r->constant[3 * i] = s->velocity[2 * i];
        r->constant[3 * i + 1] = s->velocity[2 * i + 1];
        r->constant[3 * i + 2] = s->is_free[i];
    }
    args.predicts = GRAFT_PREDICTS_CHANGE;
    args.n_in = args.n_out = 1;
    args.constant = &constant;
    args.is_free = s->is_free;
    TRY(r->networks->create(r->mesh, &args, &r->network, &r->error));
    rc = r->streams->create(r->network, &r->stream, &r->error);
done:
    return rc;
}

/* Make one step of the solver, and then apply the filter to own nodes. */
static int32_t advance(struct run *r)
{
    const struct solver *s = &r->solver;
    double              *own = r->u + (int64_t)(s->first - s->low) * s->side;
    const int64_t        n = (int64_t)(s->end - s->first) * s->side;
    const graft_dense    x = { sizeof x, GRAFT_F64, n, 1, 1, own }, out = { sizeof out, GRAFT_F64, n, 1, 1, r->smooth };
    graft_aggregate_args args = { .size = sizeof args, .semiring = GRAFT_PLUS_TIMES, .x = &x, .out = &out };
    int32_t              rc;

    args.flags = GRAFT_AGGREGATE_STATELESS;
    solver_step(&r->solver, r->u);
    TRY(r->aggregate->begin(r->smoother, &args, &r->error));
    TRY(r->aggregate->end(r->smoother, &r->error));
    memcpy(own, r->smooth, (size_t)n * sizeof *own);
    solver_exchange(s, r->u);
done:
    return rc;
}

/* Train while the solver runs several times, each time with another initial state. Each step is offered, and followed
 * by at most five training steps, or one second of training. */
static int32_t train(struct run *r)
{
    const graft_field   u = field_of(r, r->u, 1);
    graft_sample_state  state = { .size = sizeof state, .input = &u };
    graft_stream_status status = GRAFT_INIT(graft_stream_status);
    int32_t             rc = GRAFT_OK;

    for (int step = 0; step < r->steps; step++) {
        state.flags = step % RUN == 0 ? GRAFT_STREAM_FIRST : 0;
        if (step % RUN == 0) solver_start(&r->solver, step / RUN, r->u);
        TRY(r->streams->offer(r->stream, &state, &r->error));
        TRY(r->streams->step(r->stream, 1000, TRAININGS, &status, &r->error));
        TRY(advance(r));
        state.time += SOLVER_STEP;
    }
    if (status.held_out > 0) TRY(r->streams->validate(r->stream, &status, &r->error));
    if (r->solver.rank == 0) printf("%lld training steps, loss %.3g", (long long)status.steps, status.loss);
    if (r->solver.rank == 0 && status.held_out > 0) printf(", of held-out pairs %.3g", status.validation);
    if (r->solver.rank == 0) printf("\n");
done:
    return rc;
}

static int32_t write_files(struct run *r, int step)
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
                               { r->u, r->surrogate } };

    if (r->folder[0] == '\0' ||
        (vtu_write(&v, step) == 0 && (s->rank > 0 || vtu_write_times(r->folder, EVERY, step, SOLVER_STEP) == 0)))
        return GRAFT_OK;
    snprintf(r->error.message, sizeof r->error.message, "cannot write to %.400s", r->folder);
    return GRAFT_ERR_IO;
}

/* Solver and surrogate start with the same state of a new run. Their distance is the error of the surrogate. */
static int32_t compare(struct run *r)
{
    const size_t      bytes = (size_t)r->solver.n_nodes * sizeof *r->u;
    const graft_field state = field_of(r, r->surrogate, 1);
    int32_t           rc = GRAFT_OK;

    solver_start(&r->solver, r->steps, r->u);
    memcpy(r->start, r->u, bytes);
    memcpy(r->surrogate, r->u, bytes);
    TRY(write_files(r, 0));
    if (r->solver.rank == 0) printf("%8s %12s %12s\n", "steps", "surrogate", "no change");
    for (int step = 1; step <= r->after; step++) {
        double error, change;

        TRY(r->networks->begin(r->network, &state, &r->error));
        TRY(advance(r)); /* computes while the first messages are in flight */
        TRY(r->networks->end(r->network, &state, &r->error));
        solver_exchange(&r->solver, r->surrogate);
        if (step % EVERY == 0) TRY(write_files(r, step));
        if (step != 1 && step != SHORT && step != r->after) continue;
        error = solver_distance(&r->solver, r->surrogate, r->u);
        change = solver_distance(&r->solver, r->start, r->u);
        if (r->solver.rank == 0) printf("%8d %12.4e %12.4e\n", step, error, change);
    }
done:
    return rc;
}

static int32_t run(struct run *r, const char *library)
{
    const size_t n = (size_t)r->solver.n_nodes;
    int32_t      rc;

    r->u = calloc(n, sizeof *r->u);
    r->start = calloc(n, sizeof *r->start);
    r->surrogate = calloc(n, sizeof *r->surrogate);
    r->constant = calloc(n, 3 * sizeof *r->constant);
    r->smooth = calloc(n, sizeof *r->smooth);
    if (!r->u || !r->start || !r->surrogate || !r->constant || !r->smooth) return GRAFT_ERR_NOMEM;
    TRY(load(r, library));
    r->ranks = (graft_transport)GRAFT_INIT(graft_transport);
    TRY(graft_mpi_open(r->solver.comm, NULL, &r->ranks, &r->error));
    TRY(make_mesh(r));
    TRY(make_smoother(r));
    TRY(make_network(r));
    TRY(train(r));
    TRY(compare(r));
done:
    return rc;
}

static void finish(struct run *r)
{
    if (r->streams != NULL) r->streams->destroy(r->stream);
    if (r->networks != NULL) r->networks->destroy(r->network);
    if (r->aggregate != NULL) r->aggregate->destroy(r->smoother);
    if (r->graphs != NULL) r->graphs->destroy(r->graph);
    if (r->meshes != NULL) r->meshes->destroy(r->mesh);
    if (r->ranks.close != NULL) r->ranks.close(r->ranks.self);
    if (r->graft != NULL) r->graft->close(r->graft->context);
    free(r->u);
    free(r->start);
    free(r->surrogate);
    free(r->constant);
    free(r->smooth);
    solver_fini(&r->solver);
}

int main(int argc, char **argv)
{
    struct run r = { .folder = argc > 2 ? argv[2] : "", .error = GRAFT_INIT(graft_error) };
    const int  side = argc > 3 ? atoi(argv[3]) : 24;
    int32_t    rc = GRAFT_ERR_NOMEM;
    MPI_Comm   comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &r.solver.n_ranks);
    r.steps = argc > 4 ? atoi(argv[4]) : 800;
    r.after = argc > 5 ? atoi(argv[5]) : 100;
    if (argc < 2 || argc > 6 || side < 3 || side < r.solver.n_ranks || r.steps < 2 || r.after < 1) {
        fputs(usage, stderr);
    } else {
        if (solver_init(&r.solver, comm, side) == 0) rc = run(&r, argv[1]);
        if (rc < 0) fprintf(stderr, "heat: %s\n", r.error.message[0] ? r.error.message : "out of memory");
        finish(&r);
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return rc < 0;
}
