/* Small jobs of hosts over ranks that use only public functions. Together they make every collective call of the
 * library. Their results depend only on the number of ranks. A run with a fault must therefore have the same digest on
 * every rank as a run without one, or it must fail.
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
    char                  folder[256]; /* folder of a small data set; jobs also write files there */
    /* Path of a partitioning program. If it is NULL, the job that needs it is left out. */
    const char           *partitioner;
};

/** Prepare the input. With `creates` the folder is filled; only one process may do that. */
void job_input_init(struct job_input *in, const char *folder, int creates);
void job_input_fini(struct job_input *in);

struct job;

/** One job on one rank. */
struct job_run {
    const struct job       *job;
    /* Its api, transport, rank and n_ranks are set before the job; its error is set by the job. */
    struct host             host;
    const struct job_input *in;
    /* Text that is equal on all ranks of this run and differs from that of simultaneous runs. */
    const char             *tag;
    graft_group            *group;
    uint64_t                digest; /* hash of all results up to now */
    /* A function that each rank calls at its end with its status. It returns 1 if another rank has failed, so that this
     * rank must make one more call to learn of it. NULL if no rank can fail. */
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

/** Whether this machine has everything that the job needs. */
int job_is_possible(const struct job *job, const struct job_input *in);

/** Set the options of a job before it runs. */
void job_configure(const struct job *job, struct job_run *run);

/** Run the job and free all its objects. The result is its status, and run->host.error has the message. */
int32_t job_play(const struct job *job, struct job_run *run);

#endif
