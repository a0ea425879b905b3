/* Checks ranks over MPI. mpiexec runs this program as "test_mpi header" with the transport compiled into it, or as
 * "test_mpi module" with a transport of the library. All calls of MPI pass through this file. It checks that the
 * communicators of the host are left unchanged and that no request or communicator leaks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/collective.h"
#include "entry/entry.h"
#include "fuzz/data_files.h"
#include "graft_load.h"
#include "graph/csr.h"
#include "harness/tap.h"
#include "io/data.h"
#include "mpi/graft_mpi.h"

#include <unistd.h>

enum { LARGE = 123457 };

static int dups, frees, inits, finalizes; /* number of calls of these MPI functions */
static int sends, receives;               /* number of messages that were passed to MPI */
static int on_foreign;                    /* number of messages on a communicator that is not a duplicate */
static int counting = 1;

static const graft_api *api;
static int              by_module;
static const char      *module_name = "auto";

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    dups += counting;
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    frees += counting;
    return PMPI_Comm_free(comm);
}

int MPI_Isend(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request)
{
    sends += counting;
    on_foreign += counting && comm == MPI_COMM_WORLD;
    return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Irecv(void *data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request)
{
    receives += counting;
    on_foreign += counting && comm == MPI_COMM_WORLD;
    return PMPI_Irecv(data, count, type, from, tag, comm, request);
}

int MPI_Init_thread(int *count, char ***arguments, int wanted, int *given)
{
    inits++;
    return PMPI_Init_thread(count, arguments, wanted, given);
}

int MPI_Finalize(void)
{
    finalizes++;
    return PMPI_Finalize();
}

static int world_rank(void)
{
    int rank = 0;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Make one check on all ranks, which the first rank prints. */
static int ok_all(int condition, const char *name, const graft_error *error)
{
    int all = 0;

    if (!condition) fprintf(stderr, "rank %d: %s: %s\n", world_rank(), name, error != NULL ? error->message : "");
    PMPI_Allreduce(&condition, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    return world_rank() == 0 ? ok(all, "%s", name) : all;
}

static int32_t open_transport(MPI_Comm comm, graft_transport *transport, graft_error *error)
{
    const graft_transport_api *transports;
    graft_communicator         communicator = GRAFT_INIT(graft_communicator);

    if (!by_module) return graft_mpi_transport(comm, transport, error);
    transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    communicator.handle = &comm;
    communicator.bytes = sizeof comm;
    return transports->open(api->context, module_name, &communicator, transport, error);
}

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) return rc;                                                                                         \
    } while (0)

/* Make collective sums, gathers and large messages whose results are known. */
static int32_t talk(struct gr_comm *comm, graft_error *error)
{
    static float   sum[LARGE];
    static int32_t out[LARGE], in[LARGE];
    int64_t        all[64], mine = 1000 + comm->rank, start[65];
    int32_t        rc, n = comm->n_ranks;

    for (int i = 0; i < LARGE; i++) sum[i] = (float)(i % 1000 * (comm->rank + 1));
    TRY(gr_comm_sum_f32(comm, sum, LARGE, error));
    for (int i = 0; i < LARGE; i++)
        if (sum[i] != (float)(i % 1000 * n * (n + 1) / 2)) return gr_fail(error, GRAFT_ERR_FORMAT, "a wrong sum");
    TRY(gr_comm_allgather(comm, &mine, sizeof mine, all, error));
    for (int32_t p = 0; p < n; p++) {
        if (all[p] != 1000 + p) return gr_fail(error, GRAFT_ERR_FORMAT, "a wrong item");
        start[p + 1] = (p + 1) * (int64_t)(LARGE / n);
    }
    start[0] = 0;
    for (int i = 0; i < LARGE; i++) out[i] = comm->rank * LARGE + i;
    TRY(gr_comm_alltoallv(comm, out, start, in, start, sizeof *out, error));
    for (int32_t p = 0; p < n; p++)
        for (int i = 0; i < LARGE / n; i++)
            if (in[p * (LARGE / n) + i] != p * LARGE + comm->rank * (LARGE / n) + i)
                return gr_fail(error, GRAFT_ERR_FORMAT, "a wrong element");
    rc = gr_comm_agree(comm, comm->rank == n - 1 ? gr_fail(error, GRAFT_ERR_IO, "no disk") : GRAFT_OK, error);
    if (rc != GRAFT_ERR_IO || (n > 1 && error->rank != n - 1)) return gr_fail(error, GRAFT_ERR_FORMAT, "no agreement");
    return gr_comm_barrier(comm, error);
}

/* Make the same calls over one communicator of MPI. */
static int32_t talk_over(MPI_Comm mpi, graft_context *context, graft_error *error)
{
    graft_transport transport = GRAFT_INIT(graft_transport);
    struct gr_comm *comm = NULL;
    int32_t         rc = open_transport(mpi, &transport, error);

    if (rc < 0) return rc;
    rc = gr_comm_create(context, &transport, 30, &comm, error);
    if (rc == GRAFT_OK) rc = talk(comm, error);
    gr_comm_destroy(comm);
    transport.close(transport.self);
    return rc;
}

static int32_t mpi_pass(graft_transport *t, uint64_t bytes, uint64_t expected, graft_error *error)
{
    static char    out[LARGE], in[LARGE];
    graft_request *request[2];
    int32_t        done[2] = { 0, 0 }, rc;

    for (uint64_t i = 0; i < bytes; i++) out[i] = (char)(i * 7 + (uint64_t)t->rank);
    TRY(t->receive(t->self, 1 - t->rank, 9, in, expected, &request[0], error));
    TRY(t->send(t->self, 1 - t->rank, 9, out, bytes, &request[1], error));
    while (!done[0] || !done[1]) {
        if (!done[1]) TRY(t->test(t->self, request[1], &done[1], error));
        if (done[0]) continue;
        rc = t->test(t->self, request[0], &done[0], error);
        if (rc == GRAFT_OK) continue;
        while (!done[1]) TRY(t->test(t->self, request[1], &done[1], error));
        t->cancel(t->self, request[0]);
        return error->code;
    }
    for (uint64_t i = 0; i < bytes; i++)
        if (in[i] != (char)(i * 7 + 1 - (uint64_t)t->rank)) return gr_fail(error, GRAFT_ERR_IO, "a wrong byte");
    return rc;
}

/* Send messages between two ranks whose lengths are near the chunk size. Some receives expect a wrong length. */
static void test_mpi_lengths(graft_error *error)
{
    static const uint64_t length[] = { 0, 1, 999, 1000, 1001, 1999, 2000, 5000, LARGE };
    graft_transport       t = GRAFT_INIT(graft_transport);
    MPI_Comm              pair;
    int                   good = 1, noticed = 1;

    PMPI_Comm_split(MPI_COMM_WORLD, world_rank() < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
    if (pair != MPI_COMM_NULL) {
        int32_t rc = open_transport(pair, &t, error);

        for (size_t i = 0; i < sizeof length / sizeof *length && rc == GRAFT_OK; i++)
            if (mpi_pass(&t, length[i], length[i], error) != GRAFT_OK) good = 0;
        if (rc == GRAFT_OK) t.close(t.self);
        for (size_t i = 1; i + 1 < sizeof length / sizeof *length && rc == GRAFT_OK; i++) {
            for (int shift = -1; shift <= 1; shift += 2) {
                /* The message of the wrong length stays in the old communicator. */
                rc = open_transport(pair, &t, error);
                if (rc == GRAFT_OK && mpi_pass(&t, length[i], length[i + (size_t)shift], error) != GRAFT_ERR_FORMAT)
                    noticed = 0;
                if (rc == GRAFT_OK) t.close(t.self);
            }
        }
        if (rc < 0) good = 0;
        PMPI_Comm_free(&pair);
    }
    ok_all(good, "messages of many lengths arrive", error);
    ok_all(noticed, "of another length than expected, they are refused", error);
}

enum { IN_ORDER = 4 };

/* Send several messages with the same tag. Their receives are tested in reverse order. A receive that is cancelled
 * before the messages are sent must take none of them. */
static int32_t mpi_order(graft_transport *t, graft_error *error)
{
    static const uint64_t length[IN_ORDER] = { 5, 2000, 0, 1999 };
    static char           out[IN_ORDER][2000], in[IN_ORDER][2000];
    graft_request        *request[IN_ORDER], *cancelled;
    int32_t               done, rc;

    for (int i = 0; i < IN_ORDER; i++) memset(out[i], 'a' + i, sizeof out[i]);
    if (t->rank == 1) TRY(t->receive(t->self, 0, 9, in[0], 7, &cancelled, error));
    if (t->rank == 1 && t->cancel(t->self, cancelled) != 1) return gr_fail(error, GRAFT_ERR_IO, "still in use");
    for (int i = 0; i < IN_ORDER; i++)
        TRY(t->rank == 0 ? t->send(t->self, 1, 9, out[i], length[i], &request[i], error)
                         : t->receive(t->self, 0, 9, in[i], length[i], &request[i], error));
    for (int i = IN_ORDER - 1; i >= 0; i--)
        for (done = 0; !done;) TRY(t->test(t->self, request[i], &done, error));
    for (int i = 0; i < IN_ORDER && t->rank == 1; i++)
        if (memcmp(in[i], out[i], length[i]) != 0) return gr_fail(error, GRAFT_ERR_IO, "messages in another order");
    return rc;
}

static void test_mpi_order(graft_error *error)
{
    graft_transport t = GRAFT_INIT(graft_transport);
    MPI_Comm        pair;
    int32_t         rc = GRAFT_OK;

    PMPI_Comm_split(MPI_COMM_WORLD, world_rank() < 2 ? 0 : MPI_UNDEFINED, 0, &pair);
    if (pair != MPI_COMM_NULL) {
        rc = open_transport(pair, &t, error);
        if (rc == GRAFT_OK) rc = mpi_order(&t, error);
        if (t.close != NULL) t.close(t.self);
        PMPI_Comm_free(&pair);
    }
    ok_all(rc == GRAFT_OK, "messages with one tag arrive in their order", error);
}

/* Check that the first rank sleeps longer than the deadline of the others. */
static void test_stop(graft_context *context, graft_error *error)
{
    graft_transport transport = GRAFT_INIT(graft_transport);
    struct gr_comm *comm = NULL;
    const double    begin = MPI_Wtime();
    int32_t         rc = open_transport(MPI_COMM_WORLD, &transport, error);
    char            first[448];

    if (rc == GRAFT_OK) rc = gr_comm_create(context, &transport, 1, &comm, error);
    if (world_rank() == 0) sleep(3);
    if (rc == GRAFT_OK) rc = gr_comm_barrier(comm, error);
    ok_all(rc == GRAFT_ERR_PEER && error->rank == 0 && MPI_Wtime() - begin < 6, "a rank that sleeps is blamed by all",
           error);
    memcpy(first, error->message, sizeof first);
    PMPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    ok_all(strcmp(first, error->message) == 0, "in the same words", error);
    gr_comm_destroy(comm);
    transport.close(transport.self);
}

static void test_communicators(graft_context *context, graft_error *error)
{
    MPI_Comm  part;
    const int rank = world_rank();
    int       n, balance[2], sum[2] = { 0, 0 };

    PMPI_Comm_size(MPI_COMM_WORLD, &n);
    ok_all(talk_over(MPI_COMM_WORLD, context, error) == GRAFT_OK, "ranks talk over MPI_COMM_WORLD", error);
    PMPI_Comm_split(MPI_COMM_WORLD, rank % 2, n - rank, &part);
    ok_all(talk_over(part, context, error) == GRAFT_OK, "over parts of it, in reverse order", error);
    PMPI_Comm_free(&part);
    ok_all(talk_over(MPI_COMM_SELF, context, error) == GRAFT_OK, "over MPI_COMM_SELF", error);
    balance[0] = sends;
    balance[1] = receives;
    PMPI_Allreduce(balance, sum, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ok_all(sum[0] == sum[1] && (n == 1 || sum[0] > 0), "every message that was sent was received", NULL);
    ok_all(dups == 3 && frees == 3, "copies of communicators are given back", NULL);
}

/* All ranks read a data set of 4 vertices and 5 edges, twice over one transport. */
static void test_slices(graft_context *context, graft_error *error)
{
    graft_transport    t = GRAFT_INIT(graft_transport);
    struct data_folder folder = { "" };
    int                mine[2] = { 0, 0 }, all[2];
    int32_t            rc;

    if (world_rank() == 0) {
        folder_create(&folder);
        write_sample(&folder, 1);
    }
    PMPI_Bcast(folder.path, sizeof folder.path, MPI_CHAR, 0, MPI_COMM_WORLD);
    rc = open_transport(MPI_COMM_WORLD, &t, error);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        graft_data *data = NULL;

        rc = gr_io_data_open_slice(context, &t, folder.path, 0, &data, error);
        if (rc < 0) break;
        mine[0] += (int)gr_io_data_view(data)->n_slice;
        mine[1] += (int)gr_csr_entries(gr_io_data_view(data)->graph);
        gr_io_data_close(context, data);
    }
    if (t.close != NULL) t.close(t.self);
    PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ok_all(rc == GRAFT_OK && all[0] == 2 * 4 && all[1] == 2 * 5, "the ranks read slices of a data set", error);
    if (world_rank() == 0) folder_destroy(&folder);
}

/* Exchange a ring with one vertex on each rank: rows of the halo, which progress() alone receives, and sums that return
 * to the owners. */
static int32_t exchange_halo(graft_halo *halo, int32_t rank, int32_t n_ranks, graft_error *error)
{
    double          own = 1000 + rank, rows[2] = { 0, 0 };
    graft_halo_info info = GRAFT_INIT(graft_halo_info);
    graft_halo_args args = GRAFT_INIT(graft_halo_args);
    graft_dense     owned = { sizeof owned, GRAFT_F64, 1, 1, 1, &own }, outer = owned;
    const double    begin = MPI_Wtime();
    int32_t         arrived = 0, rc;

    TRY(gr_interface_halo.info(halo, &info, error));
    outer.n_rows = info.n_halo, outer.data = rows;
    args.owned = &owned, args.halo = &outer;
    TRY(gr_interface_halo.begin(halo, &args, error));
    while (!arrived && MPI_Wtime() < begin + 20) TRY(gr_interface_halo.progress(halo, &arrived, error));
    TRY(gr_interface_halo.end(halo, error));
    if (!arrived || info.n_halo != (n_ranks < 3 ? n_ranks - 1 : 2)) return gr_fail(error, GRAFT_ERR_FORMAT, "no rows");
    for (int64_t k = 0; k < info.n_halo; k++)
        if (rows[k] != 1000 + (double)info.vertex[k]) return gr_fail(error, GRAFT_ERR_FORMAT, "a wrong row");
    args.flags = GRAFT_HALO_SUM;
    rows[0] = rows[1] = 0.5;
    TRY(gr_interface_halo.begin(halo, &args, error));
    TRY(gr_interface_halo.end(halo, error));
    return own == 1000 + rank + 0.5 * (double)info.n_sent ? GRAFT_OK : gr_fail(error, GRAFT_ERR_FORMAT, "a wrong sum");
}

static void test_mpi_halo(graft_context *context, graft_error *error)
{
    graft_transport t = GRAFT_INIT(graft_transport);
    graft_slice     slice = GRAFT_INIT(graft_slice);
    graft_csr       rows = GRAFT_INIT(graft_csr);
    graft_graph    *graph = NULL;
    graft_halo     *halo = NULL;
    int64_t         row_ptr[2] = { 0, 2 };
    int32_t         near[2], rc = open_transport(MPI_COMM_WORLD, &t, error);

    near[0] = (t.rank + 1) % t.n_ranks, near[1] = (t.rank + t.n_ranks - 1) % t.n_ranks;
    rows.index_type = GRAFT_I32;
    rows.n_rows = 1, rows.n_cols = slice.n_vertices = t.n_ranks;
    rows.row_ptr = row_ptr, rows.col_idx = near;
    slice.first_row = t.rank, slice.rows = &rows;
    if (rc == GRAFT_OK) rc = gr_interface_graph.create(context, &t, &slice, &graph, error);
    if (rc == GRAFT_OK) rc = gr_interface_halo.create(graph, &halo, error);
    if (rc == GRAFT_OK) rc = exchange_halo(halo, t.rank, t.n_ranks, error);
    ok_all(rc == GRAFT_OK, "rows of the halo arrive by progress(), and sums return", error);
    gr_interface_halo.destroy(halo);
    gr_interface_graph.destroy(graph);
    if (t.close != NULL) t.close(t.self);
}

/* Open a transport with a communicator of Fortran. */
static void test_mpi_fortran(graft_error *error)
{
    const graft_transport_api *transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    const MPI_Fint             world = MPI_Comm_c2f(MPI_COMM_WORLD);
    graft_transport            t = GRAFT_INIT(graft_transport);
    graft_communicator         c = GRAFT_INIT(graft_communicator);
    int32_t                    rc;
    int                        size;

    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    c.handle = &world;
    c.bytes = sizeof world;
    c.kind = GRAFT_MPI_FORTRAN;
    rc = transports->open(api->context, "auto", &c, &t, error);
    ok_all(rc == GRAFT_OK && t.n_ranks == size && t.rank == world_rank(), "an integer communicator of Fortran works",
           error);
    if (rc == GRAFT_OK) t.close(t.self);
    t = GRAFT_INIT(graft_transport);
    c.handle = (const void *)(intptr_t)MPI_Comm_c2f(MPI_COMM_SELF);
    ok_all(transports->open(api->context, "auto", &c, &t, error) == GRAFT_ERR_ARG &&
               strstr(error->message, "no address") != NULL,
           "passing it by value is an error with a message", error);
    c.handle = &world;
    c.kind = GRAFT_MPI_C;
    if (sizeof(MPI_Comm) == sizeof world) return;
    ok_all(transports->open(api->context, "auto", &c, &t, error) == GRAFT_ERR_ARG &&
               strstr(error->message, "GRAFT_MPI_FORTRAN") != NULL,
           "without its kind it differs from another MPI", error);
}

static void test_mpi_refusals(graft_error *error)
{
    graft_transport    t = GRAFT_INIT(graft_transport), copy = t;
    graft_communicator c = GRAFT_INIT(graft_communicator);
    MPI_Comm           none = MPI_COMM_NULL;

    ok_all(open_transport(none, &t, error) == GRAFT_ERR_ARG, "no communicator is refused", error);
    if (by_module) {
        const graft_transport_api *transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
        const char *const          other = sizeof none == 4 ? "openmpi" : "mpich";

        ok_all(transports->open(api->context, other, NULL, &t, error) == GRAFT_ERR_STATE &&
                   strstr(error->message, sizeof none == 4 ? "has MPICH" : "has Open MPI") != NULL,
               "the module of another MPI is refused", error);
        c.handle = &none;
        c.bytes = sizeof none;
        c.kind = 2;
        ok_all(transports->open(api->context, "auto", &c, &t, error) == GRAFT_ERR_ARG, "an unknown kind is refused",
               error);
        c.kind = GRAFT_MPI_C;
        c.handle = (const void *)(intptr_t)MPI_Comm_c2f(MPI_COMM_SELF); /* the handle of MPI_COMM_WORLD may be 0 */
        ok_all(transports->open(api->context, "auto", &c, &t, error) == GRAFT_ERR_ARG &&
                   strstr(error->message, "no address") != NULL && strstr(error->message, "Fortran") != NULL,
               "an integer of Fortran in place of an address is refused", error);
        c.handle = &none;
        c.bytes = 12 - sizeof none;
        ok_all(transports->open(api->context, "auto", &c, &t, error) == GRAFT_ERR_ARG &&
                   strstr(error->message, "sizeof(MPI_Comm)") != NULL,
               "a communicator of another size is refused", error);
    }
    ok_all(memcmp(&t, &copy, sizeof t) == 0, "and leaves the transport as it was", NULL);
}

/* Check that MPI can end while a transport is open and a receive is pending. */
static void test_end(graft_error *error)
{
    graft_transport t = GRAFT_INIT(graft_transport);
    graft_request  *request = NULL, *another = NULL;
    char            byte = 0;
    int32_t         rc = open_transport(MPI_COMM_WORLD, &t, error), later, done;
    const int       rank = world_rank();

    if (rc == GRAFT_OK && t.n_ranks > 1) rc = t.receive(t.self, (t.rank + 1) % t.n_ranks, 5, &byte, 1, &request, error);
    MPI_Finalize();
    later = t.send(t.self, (t.rank + 1) % t.n_ranks, 5, &byte, 1, &another, error);
    if (request != NULL && t.test(t.self, request, &done, error) != GRAFT_ERR_STATE) rc = -1;
    if (request != NULL && t.cancel(t.self, request) != 1) rc = -1;
    t.close(t.self);
    if (rank > 0) return;
    ok(rc == GRAFT_OK && later == GRAFT_ERR_STATE, "after MPI_Finalize() calls say that it has ended");
    ok(open_transport(MPI_COMM_NULL, &t, error) == GRAFT_ERR_STATE, "and no transport can be made: %s", error->message);
    ok(dups == frees && finalizes == 1 && inits == 1, "copies are given back then, too");
}

static int on_error_calls;

static void on_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    on_error_calls++;
}

int main(int count, char **arguments)
{
    graft_error     error = GRAFT_INIT(graft_error);
    graft_transport t = GRAFT_INIT(graft_transport);
    graft_context  *context = NULL;
    MPI_Errhandler  handler, found;
    MPI_Request     own;
    int             level, before, got = 0, given, wrong;

    alarm(100);
    by_module = count > 1 && strcmp(arguments[1], "module") == 0;
    if (by_module && graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) return 2;
    before = open_transport(MPI_COMM_WORLD, &t, &error);
    MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &level);
    ok_all(before == GRAFT_ERR_STATE, "before MPI_Init_thread() it says that MPI has not started", &error);
    if (gr_context_create(NULL, &gr_all_options, &context, &error) < 0) return 2;
    /* The host has its own error handler, and waits for a message from any rank. */
    PMPI_Comm_create_errhandler(on_error, &handler);
    PMPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    PMPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &own);
    test_communicators(context, &error);
    test_slices(context, &error);
    test_mpi_halo(context, &error);
    test_mpi_refusals(&error);
    if (by_module) test_mpi_fortran(&error);
    PMPI_Comm_size(MPI_COMM_WORLD, &wrong);
    if (wrong > 1) test_mpi_order(&error);
    if (wrong > 1) test_mpi_lengths(&error);
    if (wrong > 1) test_stop(context, &error);
    PMPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    given = 4711;
    PMPI_Send(&given, 1, MPI_INT, world_rank(), 3, MPI_COMM_WORLD);
    PMPI_Wait(&own, MPI_STATUS_IGNORE);
    ok_all(found == handler && got == given && on_foreign == 0, "the host's communicator is left alone", NULL);
    ok_all(on_error_calls == 0, "and its error handler is not called", NULL);
    PMPI_Errhandler_free(&found);
    PMPI_Errhandler_free(&handler);
    frees = dups = 0;
    gr_context_destroy(context);
    test_end(&error);
    if (api != NULL) api->close(api->context);
    return tap_count > 0 ? done() : 0;
}
