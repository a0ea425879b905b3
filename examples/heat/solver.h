/* The solver: advection and diffusion on triangles of the unit square, whose rows of nodes are distributed over the
 * ranks of a communicator. It knows nothing of Graft.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOLVER_H
#define SOLVER_H

#include <mpi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The part of the mesh that a rank has: its own rows of nodes, and the adjacent row of each neighbour (ghosts). */
struct solver {
    MPI_Comm comm;
    int      rank, n_ranks;
    int      side;                          /* number of nodes in each direction */
    int      first, end;                    /* rows of nodes that the rank owns */
    int      low, high;                     /* rows of nodes that the rank has, with ghosts */
    int64_t  n_nodes, n_cells, n_own_cells; /* numbers of nodes and of cells; own cells come first */
    double  *x;                             /* [n_nodes x 2] */
    double  *velocity;                      /* [n_nodes x 2] */
    int32_t *cell;                          /* [n_cells x 3] */
    int64_t *id;                            /* [n_nodes] */
    int32_t *owner;                         /* [n_nodes] rank that owns each node */
    uint8_t *is_free;                       /* [n_nodes] 0 on the boundary, where u stays 0 */
    double  *mass, *rate, *stage;           /* [n_nodes] work arrays, valid for own nodes */
};

/** Create the solver. Returns 0, or -1 without memory. All ranks need at least one row: side >= n_ranks. */
int  solver_init(struct solver *s, MPI_Comm comm, int side);
void solver_fini(struct solver *s);

/** Set u to two Gaussians, whose positions and heights depend on the number of the run. */
void solver_start(const struct solver *s, int run, double *u);

/** Copy rows of nodes from their owners to the ghosts of their neighbours. */
void solver_exchange(const struct solver *s, double *u);

/** Advance u by SOLVER_STEP, in as many steps of Heun's method as the mesh needs. Ghosts must be up to date before, and
 * are so afterwards. */
#define SOLVER_STEP 0.032
#define SOLVER_DIFFUSION 2e-3
void solver_step(struct solver *s, double *u);

/** The number of steps of Heun's method in SOLVER_STEP. */
int solver_stages(const struct solver *s);

/** Compute twice the area of a cell, and the gradients of its shape functions. */
double solver_shape(const struct solver *s, const int32_t *cell, double gradient[3][2]);

/** The root mean square of u - v over the nodes of all ranks. */
double solver_distance(const struct solver *s, const double *u, const double *v);

#ifdef __cplusplus
}
#endif
#endif
