/* This program over ranks, under mpiexec. The program contains no MPI code. The library initialises MPI, and the copies
 * of this program exchange data with its collective calls.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RANKS_H
#define RANKS_H

#include "library.h"

/** Seconds that the start of MPI may take in addition to the wait for other ranks, and that the end of MPI may take. */
enum { RANKS_PATIENCE = 15 };

/** The report of one rank: the seconds in which it waited for rows, and its messages by layer, direction and peer. */
struct rank_report {
    double              waited;
    int64_t             n_pairs;
    graft_traffic_pair *pairs;
};

struct ranks {
    int                 n_ranks; /* with 1 rank the following fields are not used */
    int                 rank;
    int                 is_open;
    graft_transport     transport; /* borrowed by the library */
    graft_group        *group;     /* group of all ranks; NULL if they could not join */
    graft_graph        *graph;
    graft_dataset       dataset; /* the slice of this rank, over that graph */
    struct rank_report *reports; /* [n_ranks] complete on rank 0 after ranks_gather_reports() */
    graft_traffic_pair *pairs;   /* pairs of all reports */
    int64_t            *bytes;   /* [n_ranks] bytes that are gathered from each rank */

    const graft_transport_api *transports;
    const graft_group_api     *groups;
};

/** Open the transport over several ranks, and join them. The options must have been set, because halo.timeout is used.
 *  The process ends if MPI waits for a rank longer than halo.timeout and RANKS_PATIENCE seconds more. */
int32_t ranks_init(struct ranks *ranks, const struct library *library, graft_error *error);

/** Free all objects, and end MPI. If that takes longer than RANKS_PATIENCE because a rank does not answer, the process
 *  ends with `code`. */
void ranks_fini(struct ranks *ranks, const struct library *library, int code);

/** Allocate memory for reports. The ranks agree on the result afterwards. */
int32_t ranks_prepare(struct ranks *ranks, graft_error *error);

/** Create the distributed graph from the slices of all ranks, and ranks->dataset. */
int32_t ranks_distribute(struct ranks *ranks, const struct library *library, const graft_dataset *slice,
                         graft_error *error);

/** Agree on a status. Each rank passes its status. All ranks return the status of the lowest rank that failed, or
 * OK. */
int32_t ranks_agree(struct ranks *ranks, int32_t rc, graft_error *error);

/** A part of the command line, which is NULL if it is not given. */
struct ranks_word {
    const char *name, *text;
};

enum { RANKS_WORDS = 11 };

/** Compare words of the command line over ranks. \return OK; ERR_OPTION on all ranks, whose message has the first word
 *  that differs. */
int32_t ranks_compare(struct ranks *ranks, const struct ranks_word words[RANKS_WORDS], graft_error *error);

/** Replace *value by the maximum over ranks. */
int32_t ranks_largest(struct ranks *ranks, int *value, graft_error *error);

/** Broadcast the bytes in `data` of rank 0 to all ranks. With one rank the function does nothing. */
int32_t ranks_share(struct ranks *ranks, int64_t bytes, void *data, graft_error *error);

/** Get the number of vertices in the slice of each rank. */
int32_t ranks_slices(const struct ranks *ranks, const struct library *library, int64_t *rows, graft_error *error);

/** Gather rows[q] rows of `row_bytes` bytes from each rank q into `all` on rank 0, in the order of ranks. `all` is NULL
 *  on other ranks. */
int32_t ranks_collect(struct ranks *ranks, const int64_t *rows, const void *mine, uint64_t row_bytes, void *all,
                      graft_error *error);

/** Gather the reports of all ranks about their own messages on rank 0. */
int32_t ranks_gather_reports(struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                             graft_error *error);

#endif
