/* The transport modules "openmpi" and "mpich" are this file, compiled with the mpi.h of each MPI library. Unlike the
 * header, a module may initialise and finalise MPI, for a host without MPI code that requests it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "common/module.h"

#include "mpi/graft_mpi.h"

#include <time.h>

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Finalise MPI when all ranks have reached this point. If a rank does not, MPI_Finalize() would wait forever. Then this
 * process exits without it, and the launcher notices that. After a failure the other ranks, which agreed on the
 * failure, reach this point soon. */
static void close_and_end(void *self)
{
    const struct timespec rest = { 0, 1000000 };
    graft_mpi            *m = self;
    const double          end = seconds() + (m->is_over ? 2 : 10);
    MPI_Request           together = MPI_REQUEST_NULL;
    int                   done = 0, ended = 1;

    if (m->has_ended) {
        graft_mpi_close(self);
        return;
    }
    if (MPI_Ibarrier(m->comm, &together) == MPI_SUCCESS) {
        while (MPI_Test(&together, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done && seconds() < end)
            nanosleep(&rest, NULL);
    }
    if (!done) m->is_spoiled = 1;
    done = !m->is_spoiled;
    graft_mpi_close(self);
    MPI_Finalized(&ended);
    if (done && !ended) MPI_Finalize();
}

static int32_t start_mpi(const graft_communicator *c, int *started_here, graft_error *error)
{
    int started = 0, level, rc;

    MPI_Initialized(&started);
    if (started || !c->start) return GRAFT_OK;
    if (c->handle != NULL)
        return graft_mpi_fail(error, GRAFT_ERR_ARG, MPI_SUCCESS,
                              "a communicator was passed, but MPI is not initialised");
    rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    if (rc != MPI_SUCCESS) return graft_mpi_fail(error, GRAFT_ERR_MODULE, rc, "MPI_Init_thread failed");
    *started_here = 1;
    return GRAFT_OK;
}

/* The caller has passed a communicator by value where its address is expected. Such values are the small numbers of
 * Open MPI in Fortran, and the numbers of MPICH's predefined communicators and their first duplicates, which are
 * negative in Fortran. */
static int is_number(const void *handle)
{
    const uint64_t n = (uint64_t)(uintptr_t)handle, above = n >> 32, first = n & 0xffffff00;

    return n < 65536 || ((above == 0 || above == 0xffffffff) && (first == 0x44000000 || first == 0x84000000));
}

static int32_t refuse(graft_error *error, const char *text)
{
    return graft_mpi_fail(error, GRAFT_ERR_ARG, MPI_SUCCESS, text);
}

/* Check a communicator as far as that is possible without calling MPI. */
static int32_t check_communicator(const graft_communicator *c, graft_error *error)
{
    const size_t expected = c->kind == GRAFT_MPI_FORTRAN ? sizeof(MPI_Fint) : sizeof(MPI_Comm);
    char         text[256];

    if (c->kind != GRAFT_MPI_C && c->kind != GRAFT_MPI_FORTRAN) {
        snprintf(text, sizeof text, "kind is %d, expected GRAFT_MPI_C (0) or GRAFT_MPI_FORTRAN (1)", c->kind);
        return refuse(error, text);
    }
    if (c->handle == NULL) return GRAFT_OK;
    if (is_number(c->handle)) {
        snprintf(text, sizeof text,
                 "handle is the number %d and no address: it looks like an integer communicator of Fortran; pass the "
                 "address of its variable, with kind GRAFT_MPI_FORTRAN",
                 (int)(uintptr_t)c->handle);
        return refuse(error, text);
    }
    if (c->bytes == expected) return GRAFT_OK;
    if (c->kind == GRAFT_MPI_C && c->bytes == sizeof(MPI_Fint))
        snprintf(text, sizeof text,
                 "sizeof(MPI_Comm) is %u, expected %zu: an integer communicator of Fortran, which needs kind "
                 "GRAFT_MPI_FORTRAN, or the communicator of another MPI",
                 c->bytes, expected);
    else
        snprintf(text, sizeof text, "%s is %u, expected %zu: the communicator belongs to another MPI",
                 c->kind == GRAFT_MPI_C ? "sizeof(MPI_Comm)" : "sizeof(MPI_Fint)", c->bytes, expected);
    return refuse(error, text);
}

static MPI_Comm communicator_of(const graft_communicator *c)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Fint number;

    if (c->handle == NULL) return comm;
    if (c->kind == GRAFT_MPI_C) {
        memcpy(&comm, c->handle, sizeof comm);
        return comm;
    }
    memcpy(&number, c->handle, sizeof number);
    return MPI_Comm_f2c(number);
}

static int32_t open_transport(const graft_host *host, const graft_communicator *c, graft_transport *transport,
                              graft_error *error)
{
    int     started_here = 0;
    int32_t rc = check_communicator(c, error);

    if (rc == GRAFT_OK) rc = start_mpi(c, &started_here, error);
    if (rc < 0) return rc;
    rc = graft_mpi_open(communicator_of(c), host, transport, error);
    if (started_here && rc < 0) MPI_Finalize();
    if (started_here && rc == GRAFT_OK) transport->close = close_and_end;
    return rc;
}

GRAFT_MODULE_NOTE("transport", GRAFT_MPI_NAME, 0);

static const graft_transport_ops ops = {
    .size = sizeof ops,
    .description = "MPI: " GRAFT_MPI_TITLE,
    .open = open_transport,
};

static const graft_module_table table = {
    .size = sizeof table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "transport",
    .name = GRAFT_MPI_NAME,
    .transport = &ops,
};

int32_t graft_module(uint32_t abi_min, uint32_t abi_max, const graft_module_table **out, graft_error *error)
{
    return module_give(&table, abi_min, abi_max, out, error);
}
