/* Reads the environment variables of launchers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** The variables that a launcher sets for its processes. */
struct launcher {
    const char *size, *rank;
};

/** The variables of Open MPI, and of MPICH and MPI libraries that are derived from it. */
static const struct launcher LAUNCHERS[] = { { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
                                             { "PMI_SIZE", "PMI_RANK" } };
enum { N_LAUNCHERS = sizeof LAUNCHERS / sizeof *LAUNCHERS };

/** The variables of other launchers: of a Slurm step, which may be smaller than its allocation, of MVAPICH and of jsrun
 *  of IBM. */
static const struct launcher OTHERS[] = { { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" },
                                          { "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK" },
                                          { "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK" } };
enum { N_OTHERS = sizeof OTHERS / sizeof *OTHERS };

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL ? atoi(text) : 0;
}

static const struct launcher *known_launcher(void)
{
    for (int i = 0; i < N_LAUNCHERS; i++)
        if (number_of(LAUNCHERS[i].size) > 1) return &LAUNCHERS[i];
    return NULL;
}

int launch_size(void)
{
    const struct launcher *found = known_launcher();

    return found != NULL ? number_of(found->size) : 1;
}

int launch_rank(void)
{
    const struct launcher *found = known_launcher();

    return found != NULL ? number_of(found->rank) : 0;
}

int launch_is_known(void)
{
    for (int i = 0; i < N_LAUNCHERS; i++)
        if (getenv(LAUNCHERS[i].rank) != NULL) return 1;
    return 0;
}

/** Returns the contents of a file of a process in /proc, and their length. Returns NULL if the file cannot be read. The
 *  caller frees the contents. */
static char *read_process(long process, const char *file, size_t *length)
{
    enum { PIECE = 1 << 16 };
    char   path[64], *text = NULL;
    size_t used = 0, got = 0;
    FILE  *stream;

    snprintf(path, sizeof path, "/proc/%ld/%s", process, file);
    stream = fopen(path, "r");
    if (stream == NULL) return NULL;
    do {
        char *larger = realloc(text, used + PIECE + 1);

        if (larger == NULL) break;
        text = larger;
        got = fread(text + used, 1, PIECE, stream);
        used += got;
    } while (got > 0);
    fclose(stream);
    if (text != NULL) text[used] = '\0';
    *length = used;
    return text;
}

/** Returns whether a process has an environment variable. */
static int process_has(long process, const char *variable)
{
    size_t       length = 0;
    char        *text = read_process(process, "environ", &length);
    const size_t name = strlen(variable);
    int          found = 0;

    for (size_t at = 0; at < length && !found; at += strlen(text + at) + 1)
        found = strncmp(text + at, variable, name) == 0 && text[at + name] == '=';
    free(text);
    return found;
}

/** Returns whether a process has loaded an MPI library itself. Preloaded libraries do not count, because shells load
 *  them too. */
static int process_has_mpi(long process)
{
    size_t    length = 0;
    char     *text = read_process(process, "maps", &length);
    const int found = text != NULL && strstr(text, "/libmpi") != NULL && !process_has(process, "LD_PRELOAD");

    free(text);
    return found;
}

static long parent_of(long process)
{
    size_t      length = 0;
    char       *text = read_process(process, "status", &length);
    const char *found = text != NULL ? strstr(text, "\nPPid:") : NULL;
    const long  parent = found != NULL ? strtol(found + sizeof "\nPPid:" - 1, NULL, 10) : 0;

    free(text);
    return parent;
}

/** Returns an ancestor of this process that is an MPI process, from which this process has inherited the variable of
 *  the launcher, or 0. The launcher itself does not have the variable. */
static long find_mpi_ancestor(const char *variable)
{
    for (long process = getppid(); process > 1 && process_has(process, variable); process = parent_of(process))
        if (process_has_mpi(process)) return process;
    return 0;
}

static int32_t check_others(graft_error *error)
{
    const struct launcher *found = NULL;
    int                    is_sized = 0;

    for (int i = 0; i < N_OTHERS; i++) {
        is_sized |= getenv(OTHERS[i].size) != NULL;
        if (found == NULL && number_of(OTHERS[i].size) > 1) found = &OTHERS[i];
    }
    if (found != NULL)
        return problem(error, GRAFT_ERR_STATE,
                       "%s is %s: a launcher has started so many copies of this program, but not with the variables of "
                       "Open MPI (OMPI_COMM_WORLD_SIZE) or MPICH (PMI_SIZE), so each would train alone and write the "
                       "same files. Start ranks with mpiexec; for one process, unset %s",
                       found->size, getenv(found->size), found->size);
    if (!is_sized && getenv("PMIX_RANK") != NULL)
        return problem(error, GRAFT_ERR_STATE,
                       "PMIX_RANK is %s: a launcher may have started several copies of this program, but neither "
                       "OMPI_COMM_WORLD_SIZE nor PMI_SIZE says how many. Start ranks with mpiexec; for one process, "
                       "unset PMIX_RANK",
                       getenv("PMIX_RANK"));
    return GRAFT_OK;
}

int32_t launch_check(graft_error *error)
{
    const struct launcher *found = known_launcher();
    long                   ancestor;

    if (found == NULL) return launch_is_known() ? GRAFT_OK : check_others(error);
    ancestor = find_mpi_ancestor(found->rank);
    if (ancestor == 0) return GRAFT_OK;
    return problem(error, GRAFT_ERR_STATE,
                   "this process is a child of process %ld, which has MPI itself, and from which it has the variables "
                   "%s and %s; the launcher has not started it. To run it as one process, set %s=1, as with 'env %s=1 "
                   "graft-train'",
                   ancestor, found->size, found->rank, found->size, found->size);
}
