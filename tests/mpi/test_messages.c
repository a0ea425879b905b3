/* A message with a fault, in every job of harness/jobs.h over ranks of MPI: either all ranks return the same error in
 * time, or all have the results that they have without the fault.
 *
 *     mpiexec -n RANKS env LD_PRELOAD=SHIM test_messages TRIES SLOW [JOB [FAULT [RANK]]]
 *
 * For each job and each fault TRIES of the messages of one rank have it, spread evenly over all of them, and SLOW of
 * them the fault that is waited for (dropped). JOB, FAULT and RANK name a single job by its number, a single fault and
 * the rank. Each message of a rank has a fault, by hand, with
 *
 *     for job in $(seq 0 11); do mpiexec -n 3 env LD_PRELOAD=$PWD/build/tests/mpi/shim_mpich.so \
 *         GRAFT_LIBRARY=build/libgraft.so build/tests/mpi/test_messages_mpich 1800 1800 $job flip 1; done
 *
 * No more than 1900 tries are made, because MPICH has no more than 2048 communicators in a process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_files.h"
#include "graft_load.h"
#include "harness/jobs.h"
#include "harness/tap.h"
#include "mpi/shim.h"

#include <dlfcn.h>
#include <mpi.h>

enum { MOST_TRIES = 1900, RANKS_MOST = 8 };
static const double      TIMEOUT = 1; /* deadline of the ranks in seconds */
static const char *const names[] = SHIM_NAMES;

static int              rank, n_ranks, tries;
static shim_setter      shim;
static struct job_input input;

/* The end of a try on one rank. */
struct end {
    int32_t  rc, rank;
    uint64_t digest;
    double   seconds;
    long     calls;
    char     message[448];
};

/* The end of a try on all ranks, as rank 0 knows it. */
struct attempt {
    const struct job *job;
    enum shim_fault   fault;
    int               bad_rank;
    long              at;
    double            began;
    double            seconds;
    struct end        end[RANKS_MOST];
};

/* Ask the other ranks over the host's own communicator, whose messages have no faults. */
static int learn(void *arg, int32_t rc)
{
    struct attempt *a = arg;
    int             failed = rc < 0, any = 0;

    a->seconds = MPI_Wtime() - a->began;
    PMPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

static void attempt_job(struct attempt *a)
{
    const MPI_Comm     world = MPI_COMM_WORLD;
    graft_communicator c = GRAFT_INIT(graft_communicator);
    struct job_run     run = { .in = &input, .tag = "mpi", .others_failed = learn, .arg = a };
    struct host       *h = &run.host;
    struct end         mine = { 0 };
    char               timeout[32];

    h->error = GRAFT_INIT(graft_error);
    h->transport = GRAFT_INIT(graft_transport);
    c.handle = &world;
    c.bytes = sizeof world;
    snprintf(timeout, sizeof timeout, "halo.timeout=%g", a->fault == SHIM_NONE ? 60 : TIMEOUT);
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &h->api, &h->error) < 0) exit(2);
    host_set(h->api, timeout);
    mine.rc = ((const graft_transport_api *)graft_interface(h->api, GRAFT_TRANSPORT_ID, 0))
                  ->open(h->api->context, "auto", &c, &h->transport, &h->error);
    if (mine.rc < 0) exit(2);
    h->rank = rank;
    h->n_ranks = n_ranks;
    job_configure(a->job, &run);
    shim(rank == a->bad_rank ? a->fault : SHIM_NONE, a->at);
    PMPI_Barrier(MPI_COMM_WORLD);
    a->began = MPI_Wtime();
    mine.rc = job_play(a->job, &run);
    mine.calls = shim(SHIM_NONE, -1);
    mine.seconds = a->seconds;
    mine.digest = run.digest;
    mine.rank = h->error.rank;
    if (mine.rc < 0) snprintf(mine.message, sizeof mine.message, "%s", h->error.message);
    /* A later communicator must not receive the duplicate of a message. */
    if (a->fault != SHIM_NONE) h->transport.abandon(h->transport.self);
    h->transport.close(h->transport.self);
    h->api->close(h->api->context);
    PMPI_Allgather(&mine, sizeof mine, MPI_BYTE, a->end, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    tries++;
}

/* The longest time that a try may take. It is longer on a busy machine. */
static double bound(void)
{
    double load = 0;

    return 3.5 * TIMEOUT + (getloadavg(&load, 1) == 1 ? 2 + 4 * load : 60);
}

/* Compare a try with the run without a fault. The result is NULL or an error in words. */
static const char *judge_attempt(const struct attempt *a, const struct attempt *well)
{
    for (int i = 0; i < n_ranks; i++) {
        const struct end *end = &a->end[i];

        if (end->seconds > bound()) return "it took too long";
        if (end->rc == GRAFT_OK && a->end[0].rc != GRAFT_OK) return "only some ranks fail";
        if (end->rc != GRAFT_OK && a->end[0].rc == GRAFT_OK) return "only some ranks fail";
        if (end->rc == GRAFT_OK && end->digest != well->end[i].digest) return "other results, and no error";
        if (end->rc != a->end[0].rc || end->rank != a->end[0].rank || strcmp(end->message, a->end[0].message) != 0)
            return "ranks say different things";
        if (end->rc != GRAFT_OK && end->rc != GRAFT_ERR_PEER) return "another status";
    }
    return NULL;
}

/* Make one try with the fault, and report an error. The result is whether all ranks failed. */
static int try_once(struct attempt *a, const struct attempt *well)
{
    const char *wrong;

    attempt_job(a);
    wrong = judge_attempt(a, well);
    if (wrong == NULL || rank > 0) return a->end[0].rc < 0;
    ok(0, "%s: message %ld of rank %d, %s: %s", a->job->name, a->at, a->bad_rank, names[a->fault], wrong);
    for (int q = 0; q < n_ranks; q++)
        diag("rank %d: %d after %.2f s, rank %d, %016llx: %s", q, a->end[q].rc, a->end[q].seconds, a->end[q].rank,
             (unsigned long long)a->end[q].digest, a->end[q].message);
    return a->end[0].rc < 0;
}

/* Make all tries with one fault in one job. The result is the number of tries in which ranks failed; *went_on receives
 * the number of the others. */
static int series(int number, enum shim_fault fault, int bad, long wanted, const struct attempt *well, int *went_on)
{
    const long both = well->end[bad].calls, calls = fault == SHIM_RECEIVE ? both & 0xffffffff : both >> 32;
    const long count = wanted > calls ? calls : wanted, part = (7 * number + 5 * (int)fault) % 11;
    int        noticed = 0;

    *went_on = 0;
    for (long i = 0; i < count && tries < MOST_TRIES; i++) {
        struct attempt a = {
            .job = &jobs[number], .fault = fault, .bad_rank = bad, .at = (11 * i + part) * calls / (11 * count)
        };

        if (try_once(&a, well)) noticed++;
        else ++*went_on;
    }
    return noticed;
}

/* The arguments of the command line. */
struct wish {
    long        tries, slow;
    int         job, bad_rank; /* number of a single job, or -1 for all; and the rank, or -1 to choose it by the
                                * fault */
    const char *fault;         /* name of a single fault, or NULL for all */
};

static void test_job(int number, const struct wish *wish)
{
    const struct job *job = &jobs[number];
    struct attempt    well = { .job = job };
    char              line[512] = "";
    int               good = 1;

    attempt_job(&well);
    for (int i = 0; i < n_ranks; i++) good = good && well.end[i].rc == GRAFT_OK;
    if (rank == 0)
        ok(good, "%s: without a fault, rank 0 sends %ld messages %s", job->name, well.end[0].calls >> 32,
           well.end[0].message);
    for (int fault = 1; fault < SHIM_FAULTS && good; fault++) {
        const int bad = wish->bad_rank >= 0 ? wish->bad_rank : (number + fault) % n_ranks;
        int       went_on, noticed, is_found;

        if (wish->fault != NULL && strcmp(wish->fault, names[fault]) != 0) continue;
        noticed = series(number, fault, bad, fault == SHIM_DROPPED ? wish->slow : wish->tries, &well, &went_on);
        snprintf(line + strlen(line), sizeof line - strlen(line), " %s %d+%d", names[fault], noticed, went_on);
        /* Many bytes are zero anyway, and rows in flight are discarded unread when data change, so these faults often
         * have no effect. */
        is_found = fault > SHIM_RANDOM || fault == SHIM_ZEROED || noticed >= went_on;
        if (!is_found && rank == 0) ok(0, "%s: few notice this fault: %s", job->name, names[fault]);
    }
    if (rank == 0) ok(good && tries < MOST_TRIES, "%s: errors + the same results:%s", job->name, line);
}

static int wait_for_all(MPI_Request request)
{
    int done = 0;

    for (double end = MPI_Wtime() + 20; !done && MPI_Wtime() < end;) PMPI_Test(&request, &done, MPI_STATUS_IGNORE);
    return done;
}

int main(int count, char **words)
{
    struct data_folder folder = { "" };
    struct wish        wish = { 0, 0, -1, -1, NULL };
    MPI_Request        all;
    int                level, code = 0;

    if (count < 3) return 2;
    wish.tries = atol(words[1]);
    wish.slow = atol(words[2]);
    if (count > 3) wish.job = atoi(words[3]);
    if (count > 4) wish.fault = words[4];
    if (count > 5) wish.bad_rank = atoi(words[5]);
    MPI_Init_thread(&count, &words, MPI_THREAD_FUNNELED, &level);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    shim = (shim_setter)dlsym(RTLD_DEFAULT, "shim_set");
    if (shim == NULL || n_ranks > RANKS_MOST) return 2;
    folders_in_memory();
    if (rank == 0) folder_create(&folder);
    PMPI_Bcast(folder.path, sizeof folder.path, MPI_CHAR, 0, MPI_COMM_WORLD);
    job_input_init(&input, folder.path, rank == 0);
    PMPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < n_jobs; i++)
        if (job_is_possible(&jobs[i], &input) && (wish.job < 0 || wish.job == i)) test_job(i, &wish);
    if (rank == 0) folder_destroy(&folder);
    job_input_fini(&input);
    if (rank == 0) code = done();
    fflush(stdout);
    PMPI_Ibarrier(MPI_COMM_WORLD, &all);
    wait_for_all(all);
    MPI_Finalize();
    return code;
}
