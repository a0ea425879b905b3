/* The solver: linear finite elements with a lumped mass matrix, and Heun's method.
 * SPDX-License-Identifier: Apache-2.0 */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COURANT 0.25

/* A pseudo-random number between -1 and 1 that depends only on the node, so that all ranks agree. */
static double shake(int64_t id)
{
    uint64_t bits = (uint64_t)id * 0x9e3779b97f4a7c15u;

    bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9u;
    return (double)(bits >> 11) / (double)(1ull << 52) - 1;
}

static int rank_of_row(const struct solver *s, int row)
{
    int rank = 0;

    while (row >= s->side * (rank + 1) / s->n_ranks) rank++;
    return rank;
}

static void make_nodes(struct solver *s)
{
    const double pi = acos(-1.0), h = 1.0 / (s->side - 1);

    for (int row = s->low; row < s->high; row++)
        for (int column = 0; column < s->side; column++) {
            const int64_t i = (int64_t)(row - s->low) * s->side + column, id = (int64_t)row * s->side + column;

            s->id[i] = id;
            s->owner[i] = rank_of_row(s, row);
            s->is_free[i] = row > 0 && row < s->side - 1 && column > 0 && column < s->side - 1;
            s->x[2 * i] = (column + 0.2 * s->is_free[i] * shake(2 * id)) * h;
            s->x[2 * i + 1] = (row + 0.2 * s->is_free[i] * shake(2 * id + 1)) * h;
            s->velocity[2 * i] =
                sin(pi * s->x[2 * i]) * cos(pi * s->x[2 * i + 1]); /* a vortex, no flow through walls */
            s->velocity[2 * i + 1] = -cos(pi * s->x[2 * i]) * sin(pi * s->x[2 * i + 1]);
        }
}

static void add_box(struct solver *s, int row, int column)
{
    const int32_t a = (int32_t)((row - s->low) * s->side + column), b = a + 1, c = a + s->side, d = c + 1;
    const int32_t cells[2][2][3] = { { { a, b, d }, { a, d, c } }, { { a, b, c }, { b, d, c } } };

    memcpy(s->cell + 3 * s->n_cells, cells[(row + column) % 2], sizeof cells[0]);
    s->n_cells += 2;
}

/* Make the cells. Own cells are those above own rows of nodes. */
static void make_cells(struct solver *s)
{
    for (int row = s->first; row < s->end && row < s->side - 1; row++)
        for (int column = 0; column < s->side - 1; column++) add_box(s, row, column);
    s->n_own_cells = s->n_cells;
    for (int column = 0; s->low < s->first && column < s->side - 1; column++) add_box(s, s->low, column);
}

double solver_shape(const struct solver *s, const int32_t *cell, double gradient[3][2])
{
    const double *a = s->x + 2 * cell[0], *b = s->x + 2 * cell[1], *c = s->x + 2 * cell[2];
    const double  area2 = (b[0] - a[0]) * (c[1] - a[1]) - (c[0] - a[0]) * (b[1] - a[1]);

    for (int k = 0; k < 3; k++) {
        const double *p = s->x + 2 * cell[(k + 1) % 3], *q = s->x + 2 * cell[(k + 2) % 3];

        gradient[k][0] = (p[1] - q[1]) / area2;
        gradient[k][1] = (q[0] - p[0]) / area2;
    }
    return area2;
}

int solver_init(struct solver *s, MPI_Comm comm, int side)
{
    double  gradient[3][2];
    int64_t n;

    *s = (struct solver){ .comm = comm, .side = side };
    MPI_Comm_rank(comm, &s->rank);
    MPI_Comm_size(comm, &s->n_ranks);
    s->first = side * s->rank / s->n_ranks;
    s->end = side * (s->rank + 1) / s->n_ranks;
    s->low = s->first > 0 ? s->first - 1 : 0;
    s->high = s->end < side ? s->end + 1 : side;
    n = s->n_nodes = (int64_t)(s->high - s->low) * side;
    s->x = calloc((size_t)n, 2 * sizeof *s->x);
    s->velocity = calloc((size_t)n, 2 * sizeof *s->velocity);
    s->cell = calloc((size_t)n, 6 * sizeof *s->cell);
    s->id = calloc((size_t)n, sizeof *s->id);
    s->owner = calloc((size_t)n, sizeof *s->owner);
    s->is_free = calloc((size_t)n, 1);
    s->mass = calloc((size_t)n, sizeof *s->mass);
    s->rate = calloc((size_t)n, sizeof *s->rate);
    s->stage = calloc((size_t)n, sizeof *s->stage);
    if (!s->x || !s->velocity || !s->cell || !s->id || !s->owner || !s->is_free || !s->mass || !s->rate || !s->stage)
        return -1;
    make_nodes(s);
    make_cells(s);
    for (int64_t c = 0; c < s->n_cells; c++)
        for (int k = 0; k < 3; k++) s->mass[s->cell[3 * c + k]] += solver_shape(s, s->cell + 3 * c, gradient) / 6;
    return 0;
}

void solver_fini(struct solver *s)
{
    free(s->x);
    free(s->velocity);
    free(s->cell);
    free(s->id);
    free(s->owner);
    free(s->is_free);
    free(s->mass);
    free(s->rate);
    free(s->stage);
}

void solver_start(const struct solver *s, int run, double *u)
{
    for (int64_t i = 0; i < s->n_nodes; i++) {
        u[i] = 0;
        for (int k = 0; k < 2 && s->is_free[i]; k++) {
            const double *x = s->x + 2 * i;
            const int     draw = 6 * run + 3 * k;

            u[i] += (0.75 + 0.25 * shake(draw)) *
                    exp(-(pow(x[0] - 0.5 - 0.25 * shake(draw + 1), 2) + pow(x[1] - 0.5 - 0.25 * shake(draw + 2), 2)) /
                        0.015);
        }
    }
}

void solver_exchange(const struct solver *s, double *u)
{
    const int below = s->low < s->first ? s->rank - 1 : MPI_PROC_NULL;
    const int above = s->high > s->end ? s->rank + 1 : MPI_PROC_NULL;
    double   *own = u + (int64_t)(s->first - s->low) * s->side, *last = u + (int64_t)(s->end - 1 - s->low) * s->side;

    MPI_Sendrecv(own, s->side, MPI_DOUBLE, below, 0, last + s->side, s->side, MPI_DOUBLE, above, 0, s->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(last, s->side, MPI_DOUBLE, above, 1, u, s->side, MPI_DOUBLE, below, 1, s->comm, MPI_STATUS_IGNORE);
}

/* Compute du/dt of own nodes. */
static void find_rate(struct solver *s, const double *u)
{
    memset(s->rate, 0, (size_t)s->n_nodes * sizeof *s->rate);
    for (int64_t c = 0; c < s->n_cells; c++) {
        const int32_t *cell = s->cell + 3 * c;
        double         gradient[3][2], slope[2] = { 0, 0 };
        const double   area2 = solver_shape(s, cell, gradient);

        for (int k = 0; k < 3; k++)
            for (int d = 0; d < 2; d++) slope[d] += u[cell[k]] * gradient[k][d];
        for (int k = 0; k < 3; k++) {
            const double *flow = s->velocity + 2 * cell[k];

            s->rate[cell[k]] -= area2 / 6 * (flow[0] * slope[0] + flow[1] * slope[1]) +
                                SOLVER_DIFFUSION * area2 / 2 * (gradient[k][0] * slope[0] + gradient[k][1] * slope[1]);
        }
    }
    for (int64_t i = 0; i < s->n_nodes; i++) s->rate[i] *= s->is_free[i] / s->mass[i];
}

int solver_stages(const struct solver *s)
{
    return (int)ceil(SOLVER_STEP * (s->side - 1) / COURANT);
}

void solver_step(struct solver *s, double *u)
{
    const int    stages = solver_stages(s);
    const double time = SOLVER_STEP / stages;

    for (int k = 0; k < stages; k++) {
        find_rate(s, u);
        for (int64_t i = 0; i < s->n_nodes; i++) s->stage[i] = u[i] + time * s->rate[i];
        solver_exchange(s, s->stage);
        find_rate(s, s->stage);
        for (int64_t i = 0; i < s->n_nodes; i++) u[i] = (u[i] + s->stage[i] + time * s->rate[i]) / 2;
        solver_exchange(s, u);
    }
}

double solver_distance(const struct solver *s, const double *u, const double *v)
{
    double sum = 0, all = 0;

    for (int64_t i = 0; i < s->n_nodes; i++)
        if (s->owner[i] == s->rank) sum += (u[i] - v[i]) * (u[i] - v[i]);
    MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, s->comm);
    return sqrt(all / ((double)s->side * s->side));
}
