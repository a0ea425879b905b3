/* Partitions the slices of all ranks jointly. Each rank assigns the vertices of its slice, block by block. After each
 * block the ranks exchange the loads, and the owners of the vertices that others have as neighbours.
 *
 * Within a block a rank does not know what the others assign. It assumes that they add to every part as much as it does
 * itself, in proportion to the sizes of the slices, so that all ranks together do not overfill a part.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/route.h"
#include "partition/loads.h"

struct gr_joint {
    const graft_context *context;
    struct gr_pool       pool;  /* which has the arrays below */
    struct gr_comm      *comm;  /* the ranks; NULL: this process has the rows of all vertices */
    const int64_t       *first; /* [n_ranks + 1] the first vertex of each slice */
    struct gr_slice      slice; /* the slice of this rank, with local columns: below n_rows they are vertices of the
                                   slice, from n_rows on vertices of its halo */
    graft_csr            rows;
    struct gr_loads      loads;          /* loads of the parts by the vertices of all slices */
    int32_t             *owner;          /* [n_rows + n_halo] part of each vertex; -1: none yet */
    int64_t              n_halo;         /* number of vertices of other slices that are columns here */
    int64_t             *vertex;         /* [n_halo] vertices of the halo, ascending */
    struct gr_route      route;          /* route from this rank to the ranks that have the vertices of its halo */
    int32_t             *asked;          /* [received items] rows of this slice in halos of other ranks */
    int32_t             *out, *in;       /* owners sent, and received */
    int64_t             *out_at, *in_at; /* [n_ranks] the next items to send and to receive in this pass */
    int64_t             *out_start, *in_start; /* [n_ranks + 1] offsets of the owners of one block in out and in */
    int64_t              scale;                /* factor of the loads that this rank adds within a block */
    int32_t              blocks;               /* number of blocks of a pass */
};

/** Initialise from a method's input. No vertex has an owner, and parts are empty. Collective over input->comm.
 *  \return OK; ERR_NOMEM; ERR_UNSUPPORTED (more than INT32_MAX vertices in a slice and its halo): the same on all
 *          ranks; ERR_PEER. The caller frees it with gr_partition_joint_fini() in any case. */
int32_t gr_partition_joint_init(struct gr_joint *joint, const struct gr_partition_input *input, graft_error *error);
void    gr_partition_joint_fini(struct gr_joint *joint);

/** Do one pass: call visit() for each vertex of the slice, which updates its owner and the loads. Collective. Ranks
 *  agree on a request to cancel. \return OK; ERR_CANCELLED; ERR_PEER. */
int32_t gr_partition_joint_pass(struct gr_joint *joint, void (*visit)(struct gr_joint *joint, int64_t row),
                                graft_error     *error);

/** Move vertices as gr_partition_loads_relieve(), in the slices of all ranks, which take turns. Collective. \return OK;
 *  ERR_CANCELLED; ERR_PEER. */
int32_t gr_partition_joint_relieve(struct gr_joint *joint, graft_error *error);

/** Set the owners of the slice to mine[n_rows], from 0 to parts - 1, and the loads. Collective. \return OK;
 * ERR_PEER. */
int32_t gr_partition_joint_assign(struct gr_joint *joint, const int32_t *mine, graft_error *error);

/** Count the entries of all slices whose row and column have different owners. Collective. \return OK; ERR_PEER. */
int32_t gr_partition_joint_cut(const struct gr_joint *joint, int64_t *cut, graft_error *error);

/** Call gr_comm_agree() if there is a comm, else return rc. */
int32_t gr_partition_joint_agree(const struct gr_joint *joint, int32_t rc, graft_error *error);
