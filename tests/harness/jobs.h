/* The work of hosts over ranks, as small jobs that use only the public functions. Together they make every collective
 * call of the library. The results of a job depend only on the number of ranks, so a run with a fault either has the
 * digest of a run without faults on every rank, or has failed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef JOBS_H
#define JOBS_H

#include "harness/hosts.h"
#include "harness/mesh_parts.h"
#include "oracle/sample.h"

/** The constant input of all jobs, for all ranks of a process. */
struct job_input {
    struct sample_dataset set;
    struct test_mesh      mesh;
    char                  folder[256]; /* a small data set; jobs write here too */
    const char           *partitioner; /* a program, or NULL: the job that needs it is left out */
};

/** With `creates` the folder is filled; only one process may do this. */
void job_input_init(struct job_input *in, const char *folder, int creates);
void job_input_fini(struct job_input *in);

struct job;

/** One job of one rank. */
struct job_run {
    const struct job       *job;
    struct host             host; /* with api, transport, rank and n_ranks; has the error of the job */
    const struct job_input *in;
    const char             *tag; /* equal on all ranks, and different from other runs at this time */
    graft_group            *group;
    uint64_t                digest; /* of all results so far */
    /* Called on each rank at the end, with its status: returns 1 if another rank has failed, so that this rank must
     * learn of it in one more call. NULL: no rank has failed. */
    int (*others_failed)(void *arg, int32_t rc);
    void *arg;
};

struct job {
    const char *name;
    const char *settings; /* "key=value key=value" */
    int32_t (*play)(struct job_run *run);
};
extern const struct job jobs[];
extern const int        n_jobs;

/** Whether the job can be played here. */
int job_is_possible(const struct job *job, const struct job_input *in);

/** Set the options of a job, before it is played. */
void job_configure(const struct job *job, struct job_run *run);

/** Play, and free all objects. Returns the status; its message is in run->host.error. */
int32_t job_play(const struct job *job, struct job_run *run);

#endif
