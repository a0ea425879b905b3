/* The halo of a graph as an object of the host: exchanges of its rows, and the rows of this rank as one matrix.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"
#include "graft_halo.h"
#include "halo/halo.h"

struct graft_halo {
    struct gr_handle    handle;
    graft_context      *context;
    struct gr_pool      pool;  /* of the numbers of vertices, neighbours and starts */
    graft_graph        *graph; /* referenced */
    graft_halo         *next;  /* of this graph */
    struct gr_halo_rows rows;
    int64_t            *vertex; /* [n_halo] of the whole graph */
    int32_t             n_neighbours;
    int32_t            *neighbour;                  /* [n_neighbours] */
    int64_t            *receive_start, *send_start; /* [n_neighbours + 1] */
    struct gr_csr       matrix;                     /* made when it is asked for */
    int64_t             passes;                     /* completed */
    int64_t             call;                       /* the number of the pass that has begun, and: */
    int32_t             threads;
    struct gr_outcome   outcome;
};

/** Collective. \return As graft_halo_api.create(). */
int32_t gr_graph_halo_create(graft_graph *graph, graft_halo **halo, graft_error *error);
void    gr_graph_halo_destroy(graft_halo *halo);

/** Not collective. `info` is complete. */
void gr_graph_halo_info(const graft_halo *halo, graft_halo_info *info);

/** The rows of this rank: first the columns of owned vertices, then the columns of the halo. Not collective. \return
 *  OK; ERR_UNSUPPORTED (more columns than an int32_t can number); ERR_NOMEM. */
int32_t gr_graph_halo_matrix(graft_halo *halo, const graft_csr **matrix, graft_error *error);

/** Copy the values of the graph, which have changed, to that matrix, if it exists. Cannot fail. */
void gr_graph_halo_take_values(graft_halo *halo);

/** Whether a pass has begun and not ended. */
static inline int gr_graph_halo_has_begun(const graft_halo *halo)
{
    return halo->rows.begun || halo->outcome.is_open;
}

/** One exchange; `args` is complete and checked, and so are args->owned and args->halo, if rc, the status of their
 *  checks on this rank, is OK. Collective. \return as graft_halo_api. */
int32_t gr_graph_halo_begin(graft_halo *halo, int32_t rc, const graft_halo_args *args, graft_error *error);
int32_t gr_graph_halo_end(graft_halo *halo, graft_error *error);
