/* Checks the choice of owners for graphs that claim to be larger than they are: too large for METIS, for the machine of
 * rank 0, or for a rank that would have to store all vertices: test_owner_large PARTITIONER.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"
#include "harness/ranks.h"
#include "harness/tap.h"

#include "dgraph/owner.h"
#include "partition/metis.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

static const char    *partitioner;
static graft_context *context;

static void metis_behave(const char *timeout, const char *behaviour)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        partition[32];

    snprintf(partition, sizeof partition, "metis:0:%s", timeout);
    if (gr_option_set(context, "partition.program", partitioner, &error) < 0 ||
        gr_option_set(context, "partition", partition, &error) < 0)
        abort();
    setenv("GRAFT_TEST_BEHAVIOUR", behaviour, 1);
}

static void test_metis_too_large(void)
{
    const int64_t         row_ptr[2] = { 0, INT64_C(1) << 31 };
    void *const           zeros = mmap(NULL, (size_t)row_ptr[1] * 4, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const graft_csr       rows = { sizeof rows, GRAFT_I32, 0, 0, 1, 1, row_ptr, zeros, NULL, NULL };
    const struct gr_slice slice = { &rows, 0, NULL };
    const struct gr_partition_input input = { .context = context, .slice = &slice, .parts = 2 };
    graft_error                     error = GRAFT_INIT(graft_error);
    int32_t                         owner = 7, rc;

    metis_behave("60", "good");
    rc = gr_partition_metis_check_size(context, 1, row_ptr[1], NULL, &error);
    if (!ok(rc == GRAFT_ERR_UNSUPPORTED && strstr(error.message, "2147483648 entries: ") != NULL &&
                strstr(error.message, "'at most 2147483647 entries'") != NULL,
            "a partitioning program reports that 2^31 entries are too many before they are sent"))
        diag("%d %s", rc, error.message);
    metis_behave("60", "deaf");
    rc = zeros != MAP_FAILED ? gr_partition_metis(&input, &owner, &error) : -1;
    if (!ok(rc == GRAFT_ERR_MODULE && owner == 7 && strstr(error.message, "exit code 5") != NULL,
            "a partitioning program with too few indices is not asked again when entries are sent"))
        diag("%d %s", rc, error.message);
    if (zeros != MAP_FAILED) munmap(zeros, (size_t)row_ptr[1] * 4);
    metis_behave("1", "asleep");
    rc = gr_partition_metis_check_size(context, 1, row_ptr[1], NULL, &error);
    if (!ok(rc == GRAFT_ERR_MODULE && strstr(error.message, "not ended after 1 seconds") != NULL,
            "a partitioning program that does not answer is an error"))
        diag("%d %s", rc, error.message);
    metis_behave("60", "wide");
    rc = gr_partition_metis_check_size(context, 1, INT64_C(1) << 31, NULL, &error);
    ok(rc == GRAFT_OK, "a partitioning program with larger indices accepts the entries");
    rc = gr_partition_metis_check_size(context, INT32_MAX, 1, NULL, &error);
    ok(rc == GRAFT_ERR_UNSUPPORTED, "2^31-1 vertices are refused without running a program");
}

/* A host that has no file descriptor left for a child must get an error, and not silently another partition. */
static void test_metis_no_files(void)
{
    const struct gr_partition_cost cost = { 1e-9, 1e-6, 1e-5, GR_ROWS_LEAST };
    int32_t                        owner[400], rc;
    graft_error                    error = GRAFT_INIT(graft_error);
    struct rlimit                  was, none;
    struct graph                   graph;

    graph_init(&graph, 0);
    metis_behave("60", "good");
    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){ 3, was.rlim_max };
    setrlimit(RLIMIT_NOFILE, &none);
    rc = gr_partition_choose(context, &graph.slice, 8, GR_PARTITION_AUTO, &cost, NULL, owner, NULL, &error);
    setrlimit(RLIMIT_NOFILE, &was);
    if (!ok(rc == GRAFT_ERR_IO && strstr(error.message, "no socket or pipe") != NULL,
            "a choice among all fails where there are no files for a child"))
        diag("%d %s", rc, error.message);
    graph_fini(&graph);
}

/* A method, the behaviour of the program, the number of entries that the second rank claims to have, and the expected
 * result. */
struct large {
    const char *method, *behaviour;
    int64_t     entries;
    int32_t     status;
    const char *words;
    int         without_files; /* whether the host has no file descriptor for a program */
};

/* A graph that claims to be larger than METIS can take, on a rank that has little of it. */
static int32_t large_body(struct rank *r)
{
    const struct large *const large = r->all->arg;
    static const int64_t      row_ptr[] = { 0, 1, 2 };
    static const int32_t      columns[] = { 1, 0 };
    const graft_csr           rows = { sizeof rows, GRAFT_I32, 0, 0, 2, 4, row_ptr, columns, NULL, NULL };
    graft_slice               slice = GRAFT_INIT(graft_slice);
    struct gr_share           share[2] = { { 2, 0, 2, 0, 0, 0 }, { 2, 0, large->entries, 0, 0, 0 } };
    int64_t                   first[] = { 0, 2, 4 };
    int32_t                   owner[2] = { -1, -1 }, rc;
    graft_graph               g = { .context = r->context, .n_vertices = 4, .n_slice = 2 };

    slice.n_vertices = 4;
    slice.first_row = 2 * (int64_t)r->rank;
    slice.rows = &rows;
    g.share = share;
    g.first = first;
    g.slice.owner = owner;
    TRY(gr_option_set(r->context, "partition", large->method, &r->error));
    TRY(gr_option_set(r->context, "partition.program", partitioner, &r->error));
    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    g.comm = r->comm;
    TRY(gr_graph_owner_find(&g, &slice, &r->error));
    if (strstr(g.division.partition, "auto: stream, because rank 0: the graph has 4 vertices and ") == NULL ||
        strstr(g.division.partition, large->words) == NULL)
        rank_blame(r, "it says %s", g.division.partition);
    if (owner[0] < 0 || owner[0] > 1 || owner[1] < 0 || owner[1] > 1) rank_blame(r, "vertices without owners");
done:
    return rc;
}

static void test_owner_too_large(const struct large *large)
{
    static struct ranks ranks;
    struct rlimit       was, none;
    const char         *fault;
    int                 good = 1;

    setenv("GRAFT_TEST_BEHAVIOUR", large->behaviour, 1);
    ranks_init(&ranks, 2, 10, large_body, (void *)(uintptr_t)large);
    getrlimit(RLIMIT_NOFILE, &was);
    none = (struct rlimit){ 3, was.rlim_max };
    if (large->without_files) setrlimit(RLIMIT_NOFILE, &none);
    ranks_run(&ranks);
    setrlimit(RLIMIT_NOFILE, &was);
    for (int i = 0; i < 2; i++)
        good = good && ranks.at[i].rc == large->status &&
               (large->status == GRAFT_OK || strstr(ranks.at[i].error.message, large->words) != NULL);
    fault = ranks_fini(&ranks);
    if (!ok(good && fault == NULL, "%s of more entries than METIS accepts, with a program of behaviour '%s'%s",
            large->method, large->behaviour, large->without_files ? ", no files" : ""))
        diag("%d %s, %s", ranks.at[0].rc, ranks.at[0].error.message, fault != NULL ? fault : "");
}

static void test_owner_large(void)
{
    static const struct large cases[] = {
        { "metis", "good", INT32_MAX, GRAFT_ERR_UNSUPPORTED, "at most 2147483647", 0 },
        { "auto", "good", INT32_MAX, GRAFT_OK, "2147483649 entries: the program 'partitioner' failed", 0 },
        { "auto", "wide", INT64_C(1) << 50, GRAFT_OK, " GB are available to rank 0", 0 },
        { "metis", "good", INT32_MAX, GRAFT_ERR_IO, "no socket or pipe", 1 },
        { "auto", "good", INT32_MAX, GRAFT_ERR_IO, "no socket or pipe", 1 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) test_owner_too_large(&cases[i]);
}

/* A rank with two vertices at one end of a graph that has very many. */
static int32_t vast_body(struct rank *r)
{
    enum { VERTICES = 1 << 24 };
    static const int64_t row_ptr[] = { 0, 1, 2 };
    const int32_t        base = r->rank * (VERTICES - 2), columns[] = { base + 1, base };
    const graft_csr      rows = { sizeof rows, GRAFT_I32, 0, 0, 2, VERTICES, row_ptr, columns, NULL, NULL };
    graft_slice          slice = GRAFT_INIT(graft_slice);
    struct gr_share      share[2] = { { 2, 0, 2, 0, 0, 0 }, { 2, 0, 2, 0, 0, 0 } };
    int64_t              first[] = { 0, 2, 4 };
    int32_t              owner[2] = { -1, -1 }, rc;
    graft_graph          g = { .context = r->context, .n_vertices = VERTICES, .n_slice = 2 };

    slice.n_vertices = VERTICES;
    slice.first_row = base;
    slice.rows = &rows;
    g.share = share;
    g.first = first;
    g.slice.owner = owner;
    TRY(gr_option_set(r->context, "partition", "stream", &r->error));
    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    g.comm = r->comm;
    TRY(gr_graph_owner_find(&g, &slice, &r->error));
    if (owner[0] + owner[1] != 1 || owner[0] * owner[1] != 0) rank_blame(r, "owners %d, %d", owner[0], owner[1]);
done:
    return rc;
}

/* A rank that deals out its slice must not need memory for the vertices of others. */
static void test_vast(void)
{
    static struct ranks ranks;
    const char         *fault;
    int64_t             peak;

    ranks_init(&ranks, 2, 10, vast_body, NULL);
    ranks_run(&ranks);
    peak = atomic_load(&ranks.peak_bytes);
    fault = ranks_fini(&ranks);
    if (!ok(ranks.at[0].rc == GRAFT_OK && ranks.at[1].rc == GRAFT_OK && fault == NULL && peak > 0 && peak < 1 << 20,
            "stream over slices of 2 of 16,777,216 vertices takes %lld bytes", (long long)peak))
        diag("%s, %s", ranks.at[0].error.message, fault != NULL ? fault : "");
}

int main(int argc, char **argv)
{
    const graft_api *api;
    graft_error      error = GRAFT_INIT(graft_error);

    if (argc < 2 || graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    alarm(110);
    context = api->context;
    partitioner = argv[1];
    test_metis_too_large();
    test_metis_no_files();
    test_owner_large();
    test_vast();
    api->close(context);
    return done();
}
