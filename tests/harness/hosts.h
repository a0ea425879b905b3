/* Hosts of ranks. Each rank is a thread of the test and uses the public functions alone. It has a context, a transport,
 * a slice of the data set, and an allocator that counts bytes and can be made to fail.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_H
#define HOSTS_H

#include "graft_group.h"
#include "graft_report.h"

#include <stdatomic.h>

enum { HOSTS_MOST = 8, HOST_SETTINGS = 40 };

struct hosts;

/** One rank, for use by its thread. */
struct host {
    struct hosts           *all;
    int32_t                 rank, n_ranks;
    const graft_api        *api;
    const graft_graph_api  *graphs;
    const graft_train_api  *train;
    const graft_report_api *report;
    graft_transport         transport;
    graft_error             error;
    int32_t                 rc;             /* status that the body returned */
    double                  seconds;        /* duration of the body */
    _Atomic int64_t         live_bytes;     /* bytes of the context that are allocated now */
    _Atomic int64_t         peak_bytes;     /* largest number of live bytes since the test set this to 0 */
    _Atomic int64_t         fail_at;        /* allocations until one fails; negative if none does */
    int32_t                 ran_out;        /* whether that allocation has failed */
    char                    warnings[2048]; /* warnings of the log, one on each line */
};

struct hosts {
    int32_t n_ranks;
    int32_t (*body)(struct host *host);
    void       *arg;
    struct host at[HOSTS_MOST];
    graft_error error;  /* an error outside of the bodies */
    atomic_int  n_here; /* how many arrivals hosts_meet() has seen */
};

/** Give every rank a context with these options ("key=value", the last one NULL) and a transport, run the bodies, each
 *  on its own thread, and close everything. The result is 0 if something outside of the bodies failed, or if memory was
 *  not freed; hosts->error tells which. */
int hosts_run(struct hosts *hosts, int32_t n_ranks, const char *const *settings, int32_t (*body)(struct host *host),
              void *arg);

/** Wait until the threads of all ranks have arrived here, at most 5 s, without calling the library. The result is
 *  whether all arrived. */
int hosts_meet(struct host *host);

/** Whether mpiexec has started this process. */
int hosts_are_launched(void);

/** As hosts_run(), in a process that mpiexec has started: the process is one rank, and hosts->at[0] is its host. */
int hosts_run_launched(struct hosts *hosts, const char *const *settings, int32_t (*body)(struct host *host), void *arg);

/** Set an option given as "key=value". If the library refuses it the test program ends with "Bail out!". */
void host_set(const graft_api *api, const char *setting);

/** Set several options, separated by blanks. */
void host_set_all(const graft_api *api, const char *settings);

/** Find two values of an option that set() accepts, and leave the second one set. The result is 0 if there are none. */
int host_option_values(const graft_api *api, const graft_option *option, char values[2][32]);

enum slices { SLICES_EVEN, SLICES_FIRST, SLICES_LAST, SLICES_ODD, SLICES };
extern const char *const slices_name[SLICES];

/** The slice of a data set that belongs to one rank. It points into the arrays of the whole data set; only the row
 *  pointers are copies. */
struct host_slice {
    int64_t       first, end;
    graft_csr     rows, sparse;
    graft_dense   features, float_targets, edge_features;
    int64_t      *row_ends, *sparse_ends;
    graft_slice   slice;
    graft_dataset dataset; /* the data set without member `over` */
};

void host_slice_init(struct host_slice *slice, const graft_dataset *whole, enum slices way, int32_t rank,
                     int32_t n_ranks);
void host_slice_fini(struct host_slice *slice);

/** A trainer over ranks and the slice that it borrows. */
struct host_trainer {
    struct host_slice slice;
    graft_graph      *graph;
    graft_trainer    *trainer;
};

/** Make the graph and the trainer of a rank. The status is that of the call that failed, if one did; the caller
 *  destroys the struct in any case. Collective. */
int32_t host_trainer_create(struct host *host, const graft_dataset *whole, enum slices way, struct host_trainer *t);
void    host_trainer_destroy(const struct host *host, struct host_trainer *t);

/** Copy all state items of one trainer to another. */
int32_t host_copy_state(struct host *host, graft_trainer *from, graft_trainer *to);

/** Whether the states of two trainers are bitwise identical. The first item that differs is printed. */
int host_same_state(const graft_train_api *train, graft_trainer *a, graft_trainer *b);

/** The first error of a rank or of the run in words, or NULL if there was none. */
const char *hosts_fault(const struct hosts *hosts);

#endif
