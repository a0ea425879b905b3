/* Hosts of ranks. Each rank is a thread of the test and uses only public functions. It has a context, a transport, a
 * slice of the data set, and an allocator that counts bytes and can be made to fail.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef HOSTS_H
#define HOSTS_H

#include "graft_group.h"
#include "graft_report.h"

#include <stdatomic.h>

enum { HOSTS_MOST = 8, HOST_SETTINGS = 40 };

struct hosts;

/** One rank; only its own thread uses it. */
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
    _Atomic int64_t         live_bytes;     /* bytes of the context that are allocated at present */
    _Atomic int64_t         peak_bytes;     /* largest number of live bytes since the test set this to 0 */
    _Atomic int64_t         fail_at;        /* number of allocations until one fails; negative if none does */
    int32_t                 ran_out;        /* whether that allocation has failed */
    char                    warnings[2048]; /* warnings of the log, one on each line */
};

struct hosts {
    int32_t n_ranks;
    int32_t (*body)(struct host *host);
    void       *arg;
    struct host at[HOSTS_MOST];
    graft_error error;  /* an error outside of the bodies of the ranks */
    atomic_int  n_here; /* number of threads that have arrived in hosts_meet() */
};

/** Run a body on each rank. Every rank gets a context with these options ("key=value", the last one is NULL), a
 * transport and a thread of its own, and everything is closed at the end. The result is 0 if something outside of the
 * bodies failed, or if memory was not freed; then hosts->error has the reason. */
int hosts_run(struct hosts *hosts, int32_t n_ranks, const char *const *settings, int32_t (*body)(struct host *host),
              void *arg);

/** Wait, for at most 5 s and without a call of the library, until the threads of all ranks have arrived here. The
 * result is whether all arrived. */
int hosts_meet(struct host *host);

/** Whether mpiexec has started this process. */
int hosts_are_launched(void);

/** Like hosts_run(), but in a process that mpiexec has started. The process is one rank, whose host is hosts->at[0]. */
int hosts_run_launched(struct hosts *hosts, const char *const *settings, int32_t (*body)(struct host *host), void *arg);

/** Set an option given as "key=value". If the library refuses it, the test program ends with "Bail out!". */
void host_set(const graft_api *api, const char *setting);

/** Set several options, separated by blanks. */
void host_set_all(const graft_api *api, const char *settings);

/** Find two values that set() accepts for an option, and leave the second one set. The result is 0 if none are
 * found. */
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
    graft_dataset dataset; /* the data set without a graph, as its member `over` is NULL */
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

/** Make the graph and the trainer of a rank. The result is the status of the call that failed, if one did. The caller
 * destroys the struct in any case. Collective. */
int32_t host_trainer_create(struct host *host, const graft_dataset *whole, enum slices way, struct host_trainer *t);
void    host_trainer_destroy(const struct host *host, struct host_trainer *t);

/** Copy all state items of one trainer to another. */
int32_t host_copy_state(struct host *host, graft_trainer *from, graft_trainer *to);

/** Whether the states of two trainers are bitwise identical. The first item that differs is printed. */
int host_same_state(const graft_train_api *train, graft_trainer *a, graft_trainer *b);

/** The first error of any rank or of the run, in words, or NULL if there was none. */
const char *hosts_fault(const struct hosts *hosts);

#endif
