/* A library that is preloaded before MPI and gives one message of a process a fault:
 *
 *     mpiexec -n 2 env LD_PRELOAD=build/tests/mpi/shim_mpich.so GRAFT_SHIM=longer:1:200 PROGRAM
 * makes the 201st message that rank 1 sends 16 bytes longer. shim.h lists all faults. The buffer of a changed message
 * is never freed, because its request may be pending until the process ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mpi/shim.h"

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MORE = 16 };

static enum shim_fault fault;
static long            fault_at = -1, sent, received;

/* A message that is held back until the next one was sent. */
static struct {
    void    *data;
    int      bytes, to, tag;
    MPI_Comm comm;
    double   since;
} held;

long shim_set(int kind, long at)
{
    const long count = sent << 32 | received;

    fault = (enum shim_fault)kind;
    fault_at = at;
    sent = received = 0;
    held.data = NULL;
    return count;
}

/* Read from the environment which fault is to be made. */
static void shim_begin(void)
{
    static const char *const names[] = SHIM_NAMES;
    static int               begun;
    const char              *text = begun ? NULL : getenv("GRAFT_SHIM");
    char                     name[32];
    int                      rank = -1, mine = 0;
    long                     at = -1;

    begun = 1;
    if (text == NULL || sscanf(text, "%31[a-z]:%d:%ld", name, &rank, &at) != 3) return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &mine);
    for (int i = 0; i < SHIM_FAULTS && mine == rank; i++)
        if (strcmp(names[i], name) == 0) shim_set(i, at);
}

static double shim_clock(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void release_held(void)
{
    MPI_Request request;

    if (held.data == NULL) return;
    PMPI_Isend(held.data, held.bytes, MPI_BYTE, held.to, held.tag, held.comm, &request);
    PMPI_Request_free(&request);
    held.data = NULL;
}

static void *copy_of(const void *data, int bytes)
{
    unsigned char *copy = calloc((size_t)bytes + MORE, 1);

    if (copy == NULL) abort();
    memcpy(copy, data, (size_t)bytes);
    for (int i = 0; i < bytes && fault == SHIM_ZEROED; i++) copy[i] = 0;
    for (int i = 0; i < bytes && fault == SHIM_RANDOM; i++) copy[i] = (unsigned char)rand();
    if (fault == SHIM_FLIP && bytes > 0) copy[bytes * 2 / 3] ^= 4;
    return copy;
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    const struct timespec nap = { 0, 50000000 };
    int                   rc, bytes = count;

    shim_begin();
    if (sent++ != fault_at || fault == SHIM_NONE || fault == SHIM_RECEIVE) {
        rc = PMPI_Isend(data, count, type, to, tag, comm, request);
        if (held.data != NULL && held.to == to) release_held();
        return rc;
    }
    if (fault == SHIM_SEND) return MPI_ERR_OTHER;
    if (fault == SHIM_DELAYED) nanosleep(&nap, NULL);
    data = copy_of(data, count);
    if (fault == SHIM_DROPPED || fault == SHIM_REORDERED) *request = MPI_REQUEST_NULL;
    if (fault == SHIM_DROPPED) return MPI_SUCCESS;
    if (fault == SHIM_REORDERED) {
        held.data = (void *)(uintptr_t)data;
        held.bytes = count, held.to = to, held.tag = tag, held.comm = comm;
        held.since = shim_clock();
        return MPI_SUCCESS;
    }
    if (fault == SHIM_CUT) bytes /= 2;
    if (fault == SHIM_LONGER) bytes += MORE;
    rc = PMPI_Isend(data, bytes, type, to, tag, comm, request);
    if (fault != SHIM_DOUBLED || rc != MPI_SUCCESS) return rc;
    PMPI_Request_free(request);
    return PMPI_Isend(data, bytes, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    shim_begin();
    if (received++ == fault_at && fault == SHIM_RECEIVE) return MPI_ERR_OTHER;
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Iprobe(int from, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    if (held.data != NULL && shim_clock() > held.since + 0.02) release_held();
    return PMPI_Iprobe(from, tag, comm, flag, status);
}
