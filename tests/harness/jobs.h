/* Small jobs of hosts over ranks that use the public functions alone. Together the jobs make every collective call of
 * the library. Their results depend only on the number of ranks, so that a run with a fault either has the same digest
 * on every rank as a run without one, or has failed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JOBS_H
#define JOBS_H

#include "harness/hosts.h"
#include "harness/mesh_parts.h"
#include "oracle/sample.h"

/** The input of all jobs, which is the same for all ranks of a process. */
struct job_input {
    struct sample_dataset set;
    struct test_mesh      mesh;
    char                  folder[256]; /* folder with a small data set, in which jobs also write files */
    /* Path of a partitioning program; without it (NULL) the job that needs it is left out. */
    const char           *partitioner;
};

/** Prepare the input. With `creates` the folder is filled, which only one process may do. */
void job_input_init(struct job_input *in, const char *folder, int creates);
void job_input_fini(struct job_input *in);

struct job;

/** One job on one rank. */
struct job_run {
    const struct job       *job;
    /* Has api, transport, rank and n_ranks on entry, and the error of the job afterwards. */
    struct host             host;
    const struct job_input *in;
    /* Text that is equal on all ranks and differs from that of other runs at the same time. */
    const char             *tag;
    graft_group            *group;
    uint64_t                digest; /* hash of all results so far */
    /* Called at the end on each rank, with its status. It returns 1 if another rank has failed, so that this rank must
     * learn of it by one more call. NULL if no rank can fail. */
    int (*others_failed)(void *arg, int32_t rc);
    void *arg;
};

struct job {
    const char *name;
    const char *settings; /* options as "key=value key=value" */
    int32_t (*play)(struct job_run *run);
};
extern const struct job jobs[];
extern const int        n_jobs;

/** Whether this machine has what the job needs. */
int job_is_possible(const struct job *job, const struct job_input *in);

/** Set the options of a job before it is played. */
void job_configure(const struct job *job, struct job_run *run);

/** Do the job and free all objects. The result is its status, and run->host.error has the message. */
int32_t job_play(const struct job *job, struct job_run *run);

#endif
