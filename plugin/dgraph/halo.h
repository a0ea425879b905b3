/* The halo of a graph as an object of the host: exchanges of halo rows, and the edges of this rank as one matrix.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"
#include "graft_halo.h"
#include "halo/halo.h"

struct graft_halo {
    struct gr_handle    handle;
    graft_context      *context;
    struct gr_pool      pool;  /* owner of vertex, neighbour and both starts */
    graft_graph        *graph; /* the halo has a reference to it */
    graft_halo         *next;  /* next in the list of the graph's halos */
    struct gr_halo_rows rows;
    int64_t            *vertex;                     /* [n_halo] global index of each vertex */
    int32_t             n_neighbours;               /* number of ranks that share rows with this rank */
    int32_t            *neighbour;                  /* [n_neighbours] these ranks, ascending */
    int64_t            *receive_start, *send_start; /* [n_neighbours + 1] first row from, or to, each of them */
    struct gr_csr       matrix;                     /* created by gr_graph_halo_matrix() */
    int64_t             passes;                     /* number of completed passes */
    int64_t             call;                       /* number of the pass that has begun */
    int32_t             threads;                    /* threads of that pass */
    struct gr_outcome   outcome;                    /* agreement of ranks on a pass */
};

/** Create the halo object of a graph. Collective. \return As graft_halo_api.create(). */
int32_t gr_graph_halo_create(graft_graph *graph, graft_halo **halo, graft_error *error);
void    gr_graph_halo_destroy(graft_halo *halo);

/** Fill in `info`, a complete struct. Not collective. */
void gr_graph_halo_info(const graft_halo *halo, graft_halo_info *info);

/** Return the matrix of this rank's edges: its first columns are the owned vertices, the others the halo. Not
 *  collective. \return OK; ERR_UNSUPPORTED (more columns than an int32_t can number); ERR_NOMEM. */
int32_t gr_graph_halo_matrix(graft_halo *halo, const graft_csr **matrix, graft_error *error);

/** Copy the new values of the graph's edges into halo->matrix, if it exists. Cannot fail. */
void gr_graph_halo_take_values(graft_halo *halo);

/** Whether a pass has begun and not ended. */
static inline int gr_graph_halo_has_begun(const graft_halo *halo)
{
    return halo->rows.begun || halo->outcome.is_open;
}

/** Begin or end an exchange. rc is the status of this rank's checks of `args`, args->owned and args->halo; if it is OK,
 *  all three are complete. Collective. \return As graft_halo_api. */
int32_t gr_graph_halo_begin(graft_halo *halo, int32_t rc, const graft_halo_args *args, graft_error *error);
int32_t gr_graph_halo_end(graft_halo *halo, graft_error *error);
