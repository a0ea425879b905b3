/* Hosts of ranks: threads of the test that use the public functions of the plugin only. Each has a context, a
 * transport, memory that is counted and can run out, and a slice of a data set.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_H
#define HOSTS_H

#include "graft_train.h"

#include <stdatomic.h>

enum { HOSTS_MOST = 8, HOST_SETTINGS = 40 };

struct hosts;

/** One rank, for its thread. */
struct host {
    struct hosts       *all;
    int32_t             rank, n_ranks;
    const graft_api    *api;
    const graft_graphs *graphs;
    const graft_train  *train;
    graft_transport     transport;
    graft_error         error;
    int32_t             rc;             /* of the body */
    double              seconds;        /* that the body took */
    _Atomic int64_t     live_bytes;     /* of its memory */
    _Atomic int64_t     peak_bytes;     /* the most live bytes since the test set it to 0 */
    _Atomic int64_t     fail_at;        /* the allocation that fails, counted down; negative: none */
    int32_t             ran_out;        /* 1: it has failed */
    char                warnings[2048]; /* lines of the log, each with its end */
};

struct hosts {
    int32_t n_ranks;
    int32_t (*body)(struct host *host);
    void       *arg;
    struct host at[HOSTS_MOST];
    graft_error error;  /* an error before or after the bodies */
    atomic_int  n_here; /* in all meetings, see hosts_meet() */
};

/** Give every rank a context with these options, "key=value" up to NULL, and a transport; run the bodies, each on a
 *  thread; close all. Returns 0 after a failure outside of the bodies, or if memory is left: see error. */
int hosts_run(struct hosts *hosts, int32_t n_ranks, const char *const *settings, int32_t (*body)(struct host *host),
              void *arg);

/** Wait for the bodies of the other threads without a call of the library, at most 5 s. Whether all have come. */
int hosts_meet(struct host *host);

/** Whether a launcher of MPI has started this process. */
int hosts_are_launched(void);

/** The same in a process that a launcher has started: it is one rank, whose host is the first of `hosts`. */
int hosts_run_launched(struct hosts *hosts, const char *const *settings, int32_t (*body)(struct host *host), void *arg);

/** Set "key=value". Bails out if it cannot be. */
void host_set(const graft_api *api, const char *setting);

/** Set all of "key=value key=value". */
void host_set_all(const graft_api *api, const char *settings);

/** Find the first two values of an option that set() accepts, and leave the second set. Returns 0 if there are none. */
int host_option_values(const graft_api *api, const graft_option *option, char values[2][32]);

enum slices { SLICES_EVEN, SLICES_FIRST, SLICES_LAST, SLICES_ODD, SLICES };
extern const char *const slices_name[SLICES];

/** The slice of a data set on a rank; it uses the arrays of the whole data set, except for the ends of rows. */
struct host_slice {
    int64_t       first, end;
    graft_csr     rows, sparse;
    graft_dense   features, float_targets, edge_features;
    int64_t      *row_ends, *sparse_ends;
    graft_slice   slice;
    graft_dataset dataset; /* without `over` */
};

void host_slice_init(struct host_slice *slice, const graft_dataset *whole, enum slices way, int32_t rank,
                     int32_t n_ranks);
void host_slice_fini(struct host_slice *slice);

/** A trainer for the slice of a rank. */
struct host_trainer {
    struct host_slice slice;
    graft_graph      *graph;
    graft_trainer    *trainer;
};

/** Returns the status of the call that failed, if one did; destroy it in any case. Collective. */
int32_t host_trainer_create(struct host *host, const graft_dataset *whole, enum slices way, struct host_trainer *t);
void    host_trainer_destroy(const struct host *host, struct host_trainer *t);

/** Copy the state of a trainer to another trainer. */
int32_t host_copy_state(struct host *host, graft_trainer *from, graft_trainer *to);

/** Whether the states of two trainers have the same bits. */
int host_same_state(const graft_train *train, graft_trainer *a, graft_trainer *b);

/** The first error of a rank or of the run, in words; NULL if there is none. */
const char *hosts_fault(const struct hosts *hosts);

#endif
