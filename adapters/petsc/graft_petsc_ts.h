/* Graft in programs of PETSc: meshes for networks (graft_network.h), inference on vectors, and training while a TS
 * runs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_PETSC_TS_H
#define GRAFT_PETSC_TS_H

#include "draft/graft_stream.h"
#include "graft_petsc.h"

#include <petscts.h>

/** A mesh whose nodes are the rows of a matrix. On each rank the rows of the mesh are its rows of the matrix, followed
 * by the other rows to which they refer (ghosts). */
typedef struct graft_petsc_mesh {
    graft_petsc             *graft;
    const graft_network_api *networks;
    const graft_stream_api  *streams;
    const graft_mesh_api    *meshes;
    graft_mesh              *mesh;
    PetscInt                 n_nodes, n_rows; /* numbers of nodes of this rank, and of nodes with ghosts */
} graft_petsc_mesh;

/** Free the mesh, after its networks. *m becomes NULL. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mesh_destroy(graft_petsc_mesh **m)
{
    PetscFunctionBegin;
    if (*m != NULL) {
        (*m)->meshes->destroy((*m)->mesh);
        PetscCall(graft_petsc_close(&(*m)->graft));
        PetscCall(PetscFree(*m));
    }
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Get the functions for meshes, networks and streams, which older libraries do not have. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mesh_tables(graft_petsc_mesh *m)
{
    const graft_api *api = m->graft->api;

    PetscFunctionBegin;
    m->meshes = (const graft_mesh_api *)graft_interface(api, GRAFT_MESH_ID, GRAFT_HAS(graft_mesh_api, destroy));
    m->networks =
        (const graft_network_api *)graft_interface(api, GRAFT_NETWORK_ID, GRAFT_HAS(graft_network_api, destroy));
    m->streams = (const graft_stream_api *)graft_interface(api, GRAFT_STREAM_ID, GRAFT_HAS(graft_stream_api, destroy));
    PetscCheck(m->meshes != NULL && m->networks != NULL && m->streams != NULL, m->graft->comm, PETSC_ERR_SUP,
               "the library is older than this program: it has no %s, %s or %s", GRAFT_MESH_ID, GRAFT_NETWORK_ID,
               GRAFT_STREAM_ID);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* The part of a mesh that a rank has, made from the rows of a matrix. */
typedef struct graft_petsc_part {
    PetscInt  first, n_nodes, n_ghosts, n_entries;
    int64_t   n_edges, *row_ptr;
    PetscInt *columns, *sources, *targets; /* [n_entries] */
    PetscInt *ids;                         /* [n_nodes + n_ghosts] number of the matrix row of each node and ghost */
    int32_t  *owners;                      /* [n_nodes + n_ghosts] rank that owns each node and ghost */
} graft_petsc_part;

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_part_free(graft_petsc_part *p)
{
    PetscFunctionBegin;
    PetscCall(PetscFree(p->row_ptr));
    PetscCall(PetscFree3(p->columns, p->sources, p->targets));
    PetscCall(PetscFree2(p->ids, p->owners));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* List nodes and ghosts, and the rank that owns each. Ghosts are columns that other ranks own, in ascending order. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_part_nodes(graft_petsc_part *p, Mat matrix)
{
    const PetscInt end = p->first + p->n_nodes;
    PetscInt       found = 0;
    PetscLayout    rows;

    PetscFunctionBegin;
    PetscCall(MatGetLayouts(matrix, &rows, NULL));
    PetscCall(PetscMalloc2(p->n_nodes + p->n_entries, &p->ids, p->n_nodes + p->n_entries, &p->owners));
    for (PetscInt k = 0; k < p->n_entries; k++)
        if (p->columns[k] < p->first || p->columns[k] >= end) p->ids[p->n_nodes + found++] = p->columns[k];
    PetscCall(PetscSortRemoveDupsInt(&found, p->ids + p->n_nodes));
    p->n_ghosts = found;
    for (PetscInt i = 0; i < p->n_nodes; i++) p->ids[i] = p->first + i;
    for (PetscInt i = 0; i < p->n_nodes + found; i++) {
        PetscMPIInt owner;

        PetscCall(PetscLayoutFindOwner(rows, p->ids[i], &owner));
        p->owners[i] = owner;
    }
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* List the edges to the rows of this rank, without loops. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_part_edges(graft_petsc_part *p)
{
    PetscFunctionBegin;
    p->n_edges = 0;
    for (PetscInt i = 0; i < p->n_nodes; i++)
        for (int64_t k = p->row_ptr[i]; k < p->row_ptr[i + 1]; k++) {
            PetscInt source = p->columns[k] - p->first, at;

            if (source == i) continue;
            if (source < 0 || source >= p->n_nodes) {
                PetscCall(PetscFindInt(p->columns[k], p->n_ghosts, p->ids + p->n_nodes, &at));
                source = p->n_nodes + at;
            }
            p->sources[p->n_edges] = source;
            p->targets[p->n_edges++] = i;
        }
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_part_of(Mat matrix, graft_petsc_part *p)
{
    Mat      rows;
    PetscInt end;

    PetscFunctionBegin;
    PetscCall(graft_petsc_readable(matrix, &rows));
    PetscCall(MatGetOwnershipRange(rows, &p->first, &end));
    p->n_nodes = end - p->first;
    PetscCall(PetscMalloc1(p->n_nodes + 1, &p->row_ptr));
    PetscCall(graft_petsc_rows(rows, p->row_ptr, NULL, NULL));
    p->n_entries = (PetscInt)p->row_ptr[p->n_nodes];
    PetscCall(PetscMalloc3(p->n_entries, &p->columns, p->n_entries, &p->sources, p->n_entries, &p->targets));
    PetscCall(graft_petsc_rows(rows, p->row_ptr, p->columns, NULL));
    PetscCall(MatDestroy(&rows));
    PetscCall(graft_petsc_part_nodes(p, matrix));
    PetscCall(graft_petsc_part_edges(p));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Gather the coordinates of nodes and ghosts in a vector of this rank. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_positions(const graft_petsc_part *p, Vec coordinates, PetscInt dim,
                                                        Vec *out)
{
    const PetscInt n = p->n_nodes + p->n_ghosts;
    PetscInt      *wanted;
    IS             from;
    VecScatter     scatter;

    PetscFunctionBegin;
    PetscCall(PetscMalloc1(n * dim, &wanted));
    for (PetscInt i = 0; i < n * dim; i++) wanted[i] = p->ids[i / dim] * dim + i % dim;
    PetscCall(ISCreateGeneral(PETSC_COMM_SELF, n * dim, wanted, PETSC_OWN_POINTER, &from));
    PetscCall(VecCreateSeq(PETSC_COMM_SELF, n * dim, out));
    PetscCall(VecScatterCreate(coordinates, from, *out, NULL, &scatter));
    PetscCall(VecScatterBegin(scatter, coordinates, *out, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterEnd(scatter, coordinates, *out, INSERT_VALUES, SCATTER_FORWARD));
    PetscCall(VecScatterDestroy(&scatter));
    PetscCall(ISDestroy(&from));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* View the array of a vector as rows of nodes and ghosts. The array has no rows for ghosts, but these are not
 * accessed. */
GRAFT_PETSC_INLINE graft_field graft_petsc_field(PetscInt n_rows, PetscInt n_columns, const PetscScalar *values)
{
    graft_field field = GRAFT_INIT(graft_field);

    field.dtype = GRAFT_PETSC_DTYPE;
    field.n_rows = n_rows;
    field.n_columns = n_columns;
    field.data = (void *)(uintptr_t)values;
    return field;
}

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mesh_build(graft_petsc_mesh *m, Mat matrix, Vec coordinates, PetscInt dim)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_mesh_args    args = GRAFT_INIT(graft_mesh_args);
    graft_petsc_part   p;
    graft_field        field;
    const PetscScalar *position;
    int32_t            rc;
    Vec                positions;

    PetscFunctionBegin;
    PetscCall(graft_petsc_part_of(matrix, &p));
    PetscCall(graft_petsc_positions(&p, coordinates, dim, &positions));
    PetscCall(VecGetArrayRead(positions, &position));
    m->n_nodes = p.n_nodes;
    m->n_rows = p.n_nodes + p.n_ghosts;
    field = graft_petsc_field(m->n_rows, dim, position);
    args.kind = GRAFT_MESH_GHOSTS;
    args.dim = (int32_t)dim;
    args.n_rows = m->n_rows;
    args.coordinates = &field;
    args.ids = p.ids;
    args.owners = p.owners;
    args.id_type = args.index_type = GRAFT_PETSC_INDEX;
    args.n_edges = p.n_edges;
    args.edge_sources = p.sources;
    args.edge_targets = p.targets;
    rc = m->meshes->create(m->graft->api->context, &m->graft->transport, &args, &m->mesh, &error);
    PetscCall(VecRestoreArrayRead(positions, &position));
    PetscCall(VecDestroy(&positions));
    PetscCall(graft_petsc_part_free(&p));
    graft_petsc_check(m->graft->comm, rc, error);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* Check on all ranks that a vector has n_columns values for each row of this rank. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_fits(const graft_petsc *g, PetscInt n_nodes, Vec x, PetscInt n_columns)
{
    PetscInt size;
    int      fits;

    PetscFunctionBegin;
    PetscCall(VecGetLocalSize(x, &size));
    fits = n_columns > 0 && size == n_nodes * n_columns;
    PetscCallMPI(MPI_Allreduce(MPI_IN_PLACE, &fits, 1, MPI_INT, MPI_MIN, g->comm));
    PetscCheck(fits, g->comm, PETSC_ERR_ARG_SIZ,
               "a vector has %" PetscInt_FMT " values on this rank, expected %" PetscInt_FMT
               " for each of %" PetscInt_FMT " nodes",
               size, n_columns, n_nodes);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Create a mesh: nodes are the rows of an assembled matrix, and its entries off the diagonal are edges, from the
 *  column to the row. Values are not used.
 * \param[in]  coordinates  dim values for each row, one row after the other, with the layout of the matrix.
 * \param[out] out          Unchanged on failure. For graft_petsc_mesh_destroy(). Networks are made of (*out)->mesh with
 *                          (*out)->networks, streams with (*out)->streams.
 * Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_mesh_create(graft_petsc *g, Mat matrix, Vec coordinates, PetscInt dim,
                                                          graft_petsc_mesh **out)
{
    graft_petsc_mesh *m;
    PetscInt          n_nodes;
    PetscErrorCode    code;

    PetscFunctionBegin;
    PetscCall(graft_petsc_accepts(g, matrix, -1));
    PetscCall(MatGetLocalSize(matrix, &n_nodes, NULL));
    PetscCall(graft_petsc_fits(g, n_nodes, coordinates, dim));
    PetscCall(PetscNew(&m));
    m->graft = g;
    code = graft_petsc_mesh_tables(m);
    if (code != GRAFT_PETSC_SUCCESS) PetscCall(PetscFree(m));
    PetscCall(code);
    PetscCall(PetscLogEventBegin(g->event[GRAFT_PETSC_BUILD], matrix, coordinates, 0, 0));
    code = graft_petsc_mesh_build(m, matrix, coordinates, dim);
    PetscCall(PetscLogEventEnd(g->event[GRAFT_PETSC_BUILD], matrix, coordinates, 0, 0));
    if (code != GRAFT_PETSC_SUCCESS) PetscCall(PetscFree(m));
    PetscCall(code);
    g->references++;
    *out = m;
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Infer: y = network(x). x has n_in values for each node, y n_out; they may be the same vector if n_in = n_out.
 *  Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_infer(graft_petsc_mesh *m, graft_network *network, PetscInt n_in, Vec x,
                                                    PetscInt n_out, Vec y)
{
    graft_petsc       *g = m->graft;
    graft_error        error = GRAFT_INIT(graft_error);
    graft_field        in, out;
    const PetscScalar *from;
    PetscScalar       *to;
    int32_t            rc;

    PetscFunctionBegin;
    PetscCall(graft_petsc_fits(g, m->n_nodes, x, n_in));
    PetscCall(graft_petsc_fits(g, m->n_nodes, y, n_out));
    PetscCall(PetscLogEventBegin(g->event[GRAFT_PETSC_INFER], x, y, 0, 0));
    PetscCall(VecGetArrayRead(x, &from));
    in = graft_petsc_field(m->n_rows, n_in, from);
    rc = m->networks->begin(network, &in, &error);
    PetscCall(VecRestoreArrayRead(x, &from));
    PetscCall(VecGetArray(y, &to));
    out = graft_petsc_field(m->n_rows, n_out, to);
    if (rc >= 0) rc = m->networks->end(network, &out, &error);
    PetscCall(VecRestoreArray(y, &to));
    PetscCall(PetscLogEventEnd(g->event[GRAFT_PETSC_INFER], x, y, 0, 0));
    graft_petsc_check(g->comm, rc, error);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/* The data with which a TS trains. They belong to the TS. */
typedef struct graft_petsc_trainer {
    graft_petsc_mesh   *mesh;
    graft_stream       *stream;
    PetscInt            n_columns, max_steps, last_step;
    PetscReal           budget;
    graft_stream_status status;
} graft_petsc_trainer;

GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_trainer_of(TS ts, graft_petsc_trainer **out)
{
    PetscContainer container = NULL;

    PetscFunctionBegin;
    PetscCall(PetscObjectQuery((PetscObject)ts, "graft_petsc_trainer", (PetscObject *)&container));
    PetscCheck(container != NULL, PetscObjectComm((PetscObject)ts), PETSC_ERR_ORDER,
               "graft_petsc_ts_train() was not called for this TS");
    PetscCall(PetscContainerGetPointer(container, (void **)out));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** The post-step function, which offers the state and trains within the time budget. A program that has its own
 * post-step function sets that one after graft_petsc_ts_train(), and calls this one from it. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_ts_step(TS ts)
{
    graft_error          error = GRAFT_INIT(graft_error);
    graft_sample_state   sample = GRAFT_INIT(graft_sample_state);
    graft_petsc_trainer *t;
    graft_petsc         *g;
    graft_field          field;
    const PetscScalar   *values;
    PetscReal            time;
    PetscInt             step;
    int32_t              rc;
    Vec                  state;

    PetscFunctionBegin;
    PetscCall(graft_petsc_trainer_of(ts, &t));
    g = t->mesh->graft;
    PetscCall(TSGetSolution(ts, &state));
    PetscCall(TSGetTime(ts, &time));
    PetscCall(TSGetStepNumber(ts, &step));
    PetscCall(graft_petsc_fits(g, t->mesh->n_nodes, state, t->n_columns));
    PetscCall(PetscLogEventBegin(g->event[GRAFT_PETSC_OFFER], ts, state, 0, 0));
    PetscCall(VecGetArrayRead(state, &values));
    field = graft_petsc_field(t->mesh->n_rows, t->n_columns, values);
    sample.input = &field;
    sample.time = (double)time;
    sample.flags = step <= t->last_step ? GRAFT_STREAM_FIRST : 0;
    rc = t->mesh->streams->offer(t->stream, &sample, &error);
    PetscCall(VecRestoreArrayRead(state, &values));
    PetscCall(PetscLogEventEnd(g->event[GRAFT_PETSC_OFFER], ts, state, 0, 0));
    graft_petsc_check(g->comm, rc, error);
    t->last_step = step;
    PetscCall(PetscLogEventBegin(g->event[GRAFT_PETSC_TRAIN], ts, 0, 0, 0));
    rc = t->mesh->streams->step(t->stream, (double)t->budget, (int32_t)t->max_steps, &t->status, &error);
    PetscCall(PetscLogEventEnd(g->event[GRAFT_PETSC_TRAIN], ts, 0, 0, 0));
    graft_petsc_check(g->comm, rc, error);
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Let a TS train: after each step its solution is offered to `stream`, and the network trains for about `budget`
 *  milliseconds, with at most `max_steps` training steps (0: no limit). Options of group "mesh models" have the rest. A
 *  state that is not finite is an error of the step, or with option stream.nonfinite=drop is left out.
 * \param[in] m          The mesh of the network; borrowed, as `stream`, until the TS is destroyed.
 * \param[in] n_columns  Values for each node in the solution: n_in of the network.
 * Events GraftOffer and GraftTrain of -log_view have the time. Collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_ts_train(TS ts, graft_petsc_mesh *m, graft_stream *stream,
                                                       PetscInt n_columns, PetscReal budget, PetscInt max_steps)
{
    PetscContainer       container;
    graft_petsc_trainer *t;

    PetscFunctionBegin;
    PetscCall(PetscNew(&t));
    t->mesh = m;
    t->stream = stream;
    t->n_columns = n_columns;
    t->budget = budget;
    t->max_steps = max_steps;
    t->last_step = PETSC_MAX_INT;
    t->status = GRAFT_INIT(graft_stream_status);
    PetscCall(PetscContainerCreate(PetscObjectComm((PetscObject)ts), &container));
    PetscCall(PetscContainerSetPointer(container, t));
    PetscCall(PetscContainerSetUserDestroy(container, PetscContainerUserDestroyDefault));
    PetscCall(PetscObjectCompose((PetscObject)ts, "graft_petsc_trainer", (PetscObject)container));
    PetscCall(PetscContainerDestroy(&container));
    PetscCall(TSSetPostStep(ts, graft_petsc_ts_step));
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

/** Get the report of the last training step. Not collective. */
GRAFT_PETSC_INLINE PetscErrorCode graft_petsc_ts_status(TS ts, graft_stream_status *status)
{
    graft_petsc_trainer *t;

    PetscFunctionBegin;
    PetscCall(graft_petsc_trainer_of(ts, &t));
    *status = t->status;
    PetscFunctionReturn(GRAFT_PETSC_SUCCESS);
}

#endif
