/* The solver: advection and diffusion on triangles of the unit square, whose rows of nodes are spread over the ranks of
 * a communicator. It knows nothing of Graft.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SOLVER_H
#define SOLVER_H

#include <mpi.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What a rank has: its own rows of nodes, and the next row of each neighbour (ghosts). */
struct solver {
    MPI_Comm comm;
    int      rank, n_ranks;
    int      side;                          /* nodes in each direction */
    int      first, end;                    /* rows of nodes that the rank owns */
    int      low, high;                     /* rows that it has */
    int64_t  n_nodes, n_cells, n_own_cells; /* own cells come first */
    double  *x;                             /* [n_nodes x 2] */
    double  *velocity;                      /* [n_nodes x 2] */
    int32_t *cell;                          /* [n_cells x 3] */
    int64_t *id;                            /* [n_nodes] */
    int32_t *owner;                         /* [n_nodes] ranks */
    uint8_t *is_free;                       /* [n_nodes] 0: on the boundary, where u stays 0 */
    double  *mass, *rate, *stage;           /* [n_nodes] of which own ones are right */
};

/** Returns 0, or -1 without memory. All ranks have at least one row: side >= n_ranks. */
int  solver_init(struct solver *s, MPI_Comm comm, int side);
void solver_fini(struct solver *s);

/** Two Gaussians, whose places and heights depend on the number of the run. */
void solver_start(const struct solver *s, int run, double *u);

/** Copy rows of nodes from their owners to the ghosts of their neighbours. */
void solver_exchange(const struct solver *s, double *u);

/** Advance u by SOLVER_STEP, in as many steps of Heun's method as the mesh needs. Ghosts are right before and after. */
#define SOLVER_STEP 0.032
#define SOLVER_DIFFUSION 2e-3
void solver_step(struct solver *s, double *u);

/** How many steps of Heun's method that is. */
int solver_stages(const struct solver *s);

/** Twice the area of a cell, and the gradients of its shape functions. */
double solver_shape(const struct solver *s, const int32_t *cell, double gradient[3][2]);

/** The root of the mean square of u - v over the nodes of all ranks. */
double solver_distance(const struct solver *s, const double *u, const double *v);

#ifdef __cplusplus
}
#endif
#endif
