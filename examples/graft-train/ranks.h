/* Many ranks: this program under mpiexec, without any MPI code of its own. The library starts MPI, and has one
 * transport for its messages; another one carries what only this program has to tell.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKS_H
#define RANKS_H

#include "library.h"

/** Of one rank: seconds that it waited for rows; and what it sent, by layer, direction and peer, but for those to which
 *  it sent nothing. */
struct told {
    double              waited;
    int64_t             n_pairs;
    graft_traffic_pair *pairs;
};

struct ranks {
    int             n_ranks; /* 1: none of the following is there */
    int             rank;
    int             is_open;
    int             has_parted; /* a rank failed alone, and the others cannot be heard any more */
    graft_transport lent;       /* to the library */
    graft_transport ours;
    graft_graph    *graph;
    graft_dataset   dataset;  /* the slice of this rank, over that graph */
    double          patience; /* seconds that a rank waits for another */
    struct told    *told;     /* [n_ranks] what each alone knows; known to rank 0 in the end */
};

/** The number of this process among those that a launcher has started; 0 if it is alone. */
int ranks_number(void);

/** Whether a launcher has started this process and others. One that is alone needs no MPI. */
int ranks_are_many(void);

/** Whether a launcher has started this process, be it alone. Some give the first a terminal where nobody looks. */
int ranks_are_launched(void);

/** Open the transports, if there are many. Waits for the others without a deadline, so nothing that can fail on one
 *  rank should be done before. */
int32_t ranks_init(struct ranks *ranks, const struct library *library, graft_error *error);
void    ranks_fini(struct ranks *ranks, const struct library *library);

/** What the ranks need once options are set. To be agreed on. */
int32_t ranks_prepare(struct ranks *ranks, const struct library *library, graft_error *error);

/** Make the graph of the slices that all ranks have read, and of it and them ranks->dataset. */
int32_t ranks_spread(struct ranks *ranks, const struct library *library, const graft_dataset *slice,
                     graft_error *error);

/** All ranks give what came of something; all return the failure of the lowest rank that has one. */
int32_t ranks_agree(struct ranks *ranks, int32_t rc, graft_error *error);

/** The largest of the values of all ranks in *value. */
int32_t ranks_largest(struct ranks *ranks, int *value, graft_error *error);

/** Rank 0 gets what all ranks have of [n_vertices] labels, in the order of slices, in `all`; NULL on the others. */
int32_t ranks_collect(struct ranks *ranks, const struct library *library, const int32_t *mine, int32_t *all,
                      graft_error *error);

/** Let rank 0 know what the library tells each rank of itself alone. */
int32_t ranks_hear_all(struct ranks *ranks, const struct library *library, graft_trainer *trainer, graft_error *error);

#endif
