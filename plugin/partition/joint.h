/* The slices of all ranks, partitioned jointly. Each rank assigns the vertices of its slice, block by block. After each
 * block the ranks exchange the loads, and the owners of the vertices that others have as neighbours.
 *
 * Within a block a rank does not know what the others assign. It assumes that they add to every part at its own rate,
 * in proportion to the sizes of the slices, so that all ranks together do not overfill a part.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/route.h"
#include "partition/loads.h"

struct gr_joint {
    const graft_context *context;
    struct gr_pool       pool;  /* which has the arrays below */
    struct gr_comm      *comm;  /* NULL: this process has the rows of all vertices */
    const int64_t       *first; /* [n_ranks + 1] the first vertex of each slice */
    struct gr_slice      slice; /* columns below n_rows are vertices of this slice, other columns are vertices of the
                                   halo */
    graft_csr            rows;
    struct gr_loads      loads;                /* of the vertices of all slices */
    int32_t             *owner;                /* [n_rows + n_halo]; -1: none yet */
    int64_t              n_halo;               /* vertices of other slices that are columns here */
    int64_t             *vertex;               /* [n_halo] ascending */
    struct gr_route      route;                /* from this rank to the ranks that have the vertices of the halo */
    int32_t             *asked;                /* [received items] rows in halos of other ranks */
    int32_t             *out, *in;             /* owners sent, and received */
    int64_t             *out_at, *in_at;       /* [n_ranks] the next items to send and to receive in this pass */
    int64_t             *out_start, *in_start; /* [n_ranks + 1] of the owners of one block */
    int64_t              scale;                /* of the changes of loads by this rank within a block */
    int32_t              blocks;               /* of a pass */
};

/** Make the structure from a method's input. No vertex has an owner, and parts are empty. Collective over input->comm.
 *  \return OK; ERR_NOMEM; ERR_UNSUPPORTED (more than INT32_MAX vertices in a slice and its halo): the same on all
 *          ranks; ERR_PEER. The caller frees it with gr_partition_joint_fini() in any case. */
int32_t gr_partition_joint_init(struct gr_joint *joint, const struct gr_partition_input *input, graft_error *error);
void    gr_partition_joint_fini(struct gr_joint *joint);

/** One pass: visit() assigns each vertex of the slice, by updating the owner and the loads. Collective. Ranks agree on
 *  a request to cancel. \return OK; ERR_CANCELLED; ERR_PEER. */
int32_t gr_partition_joint_pass(struct gr_joint *joint, void (*visit)(struct gr_joint *joint, int64_t row),
                                graft_error     *error);

/** As gr_partition_loads_relieve(), over the slices of all ranks, which take turns. Collective. \return OK;
 *  ERR_CANCELLED; ERR_PEER. */
int32_t gr_partition_joint_relieve(struct gr_joint *joint, graft_error *error);

/** Begin with these owners of the slice, [n_rows] from 0 to parts - 1. Collective. \return OK; ERR_PEER. */
int32_t gr_partition_joint_assign(struct gr_joint *joint, const int32_t *mine, graft_error *error);

/** Count the entries of all slices whose row and column have different owners. Collective. \return OK; ERR_PEER. */
int32_t gr_partition_joint_cut(const struct gr_joint *joint, int64_t *cut, graft_error *error);

/** gr_comm_agree(), if there are ranks. */
int32_t gr_partition_joint_agree(const struct gr_joint *joint, int32_t rc, graft_error *error);
