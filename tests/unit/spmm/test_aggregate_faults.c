/* Checks distributed products when something fails: ranks disagree, a rank has no memory, or the transport has faults.
 * All ranks must return the same error, and no memory may leak.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/halo.h"
#include "harness/fault_runs.h"
#include "harness/spread.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 12, WIDTH = 3, WIDE = 40, RANKS = 3, EACH = N / RANKS };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* The graph of all tests, and the right results. */
static struct sample_csr graph, transposed;
static float             x[N * WIDE], want[2][N * WIDE];

static struct spread spread_of_all(void)
{
    return (struct spread){ .graph = &graph.csr,
                            .dtype = GRAFT_F32,
                            .x = (const char *)x,
                            .x_width = WIDE,
                            .scale = (const char *)x,
                            .partition = "given",
                            .cover = "hybrid",
                            .threads = "1" };
}

/* The input of one rank, which a test changes on some ranks. */
struct input {
    int32_t              rank;
    graft_slice          slice;
    graft_csr            rows;
    int64_t              row_ptr[N + 1];
    int32_t              owner[N];
    const char          *partition, *cover, *file;
    const char          *async;
    graft_plan_args      plan;
    graft_aggregate_args args;
    int64_t              width;
    int                  stays_away; /* whether the rank omits the pass */
    int                  leaves;     /* whether the rank destroys its plan during the pass */
};

struct dispute {
    const char *name;
    void (*change)(struct input *in);
    int32_t     status;
    const char *words[2];
};

static void input_init(struct input *in, int32_t rank)
{
    const int64_t first = rank * EACH;

    *in = (struct input){ .rank = rank, .partition = "given", .cover = "hybrid", .file = "", .width = WIDTH };
    in->async = "0";
    in->slice = GRAFT_INIT(graft_slice);
    in->plan = GRAFT_INIT(graft_plan_args);
    in->args = GRAFT_INIT(graft_aggregate_args);
    in->rows = graph.csr;
    in->rows.n_rows = EACH;
    for (int i = 0; i <= EACH; i++) in->row_ptr[i] = graph.row_ptr[first + i] - graph.row_ptr[first];
    in->rows.row_ptr = in->row_ptr;
    in->rows.col_idx = (const int32_t *)graph.col_idx + graph.row_ptr[first];
    in->rows.values = (const float *)graph.values + graph.row_ptr[first];
    in->slice.n_vertices = N;
    in->slice.first_row = first;
    in->slice.rows = &in->rows;
    in->args.semiring = GRAFT_PLUS_TIMES;
    in->args.epoch = 17;
    in->plan.flags = GRAFT_PLAN_TRANSPOSED;
}

/* Begin a pass and destroy the plan. All later calls must fail on all ranks. */
static int32_t leave(struct rank *r, graft_graph *made, graft_plan **plan, struct input *in)
{
    float             out[N * WIDE];
    const graft_dense dense_x = { sizeof dense_x, GRAFT_F32, EACH, in->width, WIDE, x + r->rank * EACH * WIDE };
    const graft_dense dense_out = { sizeof dense_out, GRAFT_F32, EACH, in->width, WIDE, out };
    int32_t           rc;

    in->args.x = &dense_x;
    in->args.out = &dense_out;
    TRY(gr_interface_aggregate.begin(*plan, &in->args, &r->error));
    gr_interface_aggregate.destroy(*plan);
    *plan = NULL;
    rc = gr_comm_barrier(made->comm, &r->error);
done:
    return rc;
}

static int32_t aggregate_faults_pass(struct rank *r, graft_plan *plan, struct input *in, graft_error *error)
{
    float             out[N * WIDE];
    const graft_dense dense_x = { sizeof dense_x, GRAFT_F32, EACH, in->width, WIDE, x + r->rank * EACH * WIDE };
    const graft_dense dense_out = { sizeof dense_out, GRAFT_F32, EACH, in->width, WIDE, out };
    const int         is_transposed = (in->args.flags & GRAFT_AGGREGATE_TRANSPOSE) != 0;
    int32_t           rc;

    in->args.x = &dense_x;
    in->args.out = &dense_out;
    TRY(gr_interface_aggregate.begin(plan, &in->args, error));
    TRY(gr_interface_aggregate.end(plan, error));
    for (int64_t i = 0; i < EACH; i++)
        if (memcmp(out + i * WIDE, want[is_transposed] + (r->rank * EACH + i) * WIDE,
                   (size_t)in->width * sizeof(float)) != 0)
            rank_blame(r, "row %lld is wrong", (long long)i);
done:
    return rc;
}

static int32_t dispute_body(struct rank *r)
{
    const struct dispute *dispute = r->all->arg;
    struct spread         s = spread_of_all();
    graft_graph          *made = NULL;
    graft_plan           *plan = NULL;
    graft_error           second = GRAFT_INIT(graft_error);
    struct input          in, good;
    int32_t               rc;

    input_init(&in, r->rank);
    input_init(&good, r->rank);
    dispute->change(&in);
    s.partition = in.partition;
    s.cover = in.cover;
    s.settings = (const char *const[]){ "partition.file", in.file, "halo.staleness", in.async, NULL };
    TRY(spread_setup(r, &s));
    TRY(gr_interface_graph.create(r->context, &r->transport, &in.slice, &made, &r->error));
    rc = gr_interface_aggregate.create(made, &in.plan, &plan, &r->error);
    if (rc < 0) { /* the graph can have another plan */
        gr_option_set(r->context, "halo.cover", "hybrid", &second);
        gr_option_set(r->context, "halo.staleness", "0", &second);
        if (gr_interface_aggregate.create(made, NULL, &plan, &second) < 0) rank_blame(r, "again: %s", second.message);
        else if (aggregate_faults_pass(r, plan, &good, &second) < 0)
            rank_blame(r, "the pass behind it: %s", second.message);
        goto done;
    }
    if (in.leaves) TRY(leave(r, made, &plan, &in));
    if (!in.stays_away) TRY(aggregate_faults_pass(r, plan, &in, &r->error));
    rc = gr_comm_barrier(made->comm, &r->error);
done:
    gr_interface_aggregate.destroy(plan);
    gr_interface_graph.destroy(made);
    return rc;
}

static void gone(struct input *in);

static void check_dispute(const struct dispute *dispute)
{
    static struct ranks ranks;
    const char         *message = ranks.at[0].error.message, *fault;
    int                 good = 1;

    ranks_init(&ranks, RANKS, 1, dispute_body, (void *)(uintptr_t)dispute);
    ranks_run(&ranks);
    for (int32_t i = 0; i < RANKS; i++)
        good = good && ranks.at[i].rc == dispute->status &&
               (strcmp(ranks.at[i].error.message, message) == 0 || (dispute->change == gone && i == 1));
    for (int i = 0; i < 2; i++) good = good && strstr(message, dispute->words[i]) != NULL;
    fault = ranks_fini(&ranks);
    if (ok(good && fault == NULL, "%s: %s", dispute->name, message)) return;
    diag("%s", fault != NULL ? fault : "");
    for (int32_t i = 0; i < RANKS; i++)
        diag("rank %d: %d, expected %d: %s", i, ranks.at[i].rc, dispute->status, ranks.at[i].error.message);
}

/* Define a function that changes the input of rank `number`. */
#define CHANGE(name, number, what)                                                                                     \
    static void name(struct input *in)                                                                                 \
    {                                                                                                                  \
        if (in->rank == (number)) what;                                                                                \
    }
CHANGE(overlap, 1, in->slice.first_row = 3)
CHANGE(hole, 2, (in->slice.first_row = 9, in->rows.n_rows = 3))
CHANGE(short_end, 2, in->rows.n_rows = 3)
CHANGE(other_size, 1, (in->slice.n_vertices = 13, in->rows.n_cols = 13))
CHANGE(other_partition, 2, in->partition = "hash")
CHANGE(other_file, 1, in->file = "/tmp/no-such-folder/owners")
CHANGE(other_values, 1, in->rows.values = NULL)
CHANGE(own_owners, 1, in->slice.owner = in->owner)
CHANGE(bad_column, 1, in->rows.n_cols = in->slice.n_vertices = 2)
CHANGE(null_slice, 2, in->slice.size = 0)
CHANGE(other_cover, 1, in->cover = "pre")
CHANGE(other_flags, 2, in->plan.flags = 0)
CHANGE(other_reserve, 1, in->plan.width = 9)
CHANGE(bad_flags, 1, in->plan.flags = 8)
CHANGE(other_layers, 2, in->plan.layers = 3)
CHANGE(other_async, 1, in->async = "1")
CHANGE(other_smoothing, 2, in->async = "1:0:0.5")
CHANGE(other_every, 1, in->async = "1:4")
CHANGE(other_wait, 1, in->args.flags = GRAFT_AGGREGATE_SYNCHRONOUS)
CHANGE(other_width, 1, in->width = WIDTH - 1)
CHANGE(other_epoch, 1, in->args.epoch = 16)
CHANGE(other_layer, 2, in->args.layer = 2)
CHANGE(other_direction, 1, in->args.flags = GRAFT_AGGREGATE_TRANSPOSE)
CHANGE(other_semiring, 1, in->args.semiring = GRAFT_MAX_TIMES)
CHANGE(other_accumulate, 2, in->args.flags = GRAFT_AGGREGATE_ACCUMULATE)
CHANGE(other_exact, 1, in->args.flags = GRAFT_AGGREGATE_EXACT)
CHANGE(no_pass, 1, in->stays_away = 1)
CHANGE(gone, 1, in->leaves = 1)

static void bad_owner(struct input *in)
{
    in->slice.owner = in->owner;
    if (in->rank == 1) in->owner[2] = RANKS;
}

static void test_disputes(void)
{
    static const struct dispute disputes[] = {
        { "slices that overlap", overlap, GRAFT_ERR_ARG, { "rank 1 begins at row 3", "end at 4: they overlap" } },
        { "slices with a hole", hole, GRAFT_ERR_ARG, { "rank 2 begins at row 9", "end at 8: there is a gap" } },
        { "slices that end early", short_end, GRAFT_ERR_ARG, { "rank, 2, ends at row 11", "of 12" } },
        { "another graph", other_size, GRAFT_ERR_ARG, { "n_vertices is 12 on rank 0", "13 on rank 1" } },
        { "another partition", other_partition, GRAFT_ERR_ARG, { "given on rank 0", "hash on rank 2" } },
        { "another file", other_file, GRAFT_ERR_ARG, { "option partition.file is '' on rank 0", "on rank 1" } },
        { "no values on one", other_values, GRAFT_ERR_ARG, { "the type of values is 1 on rank 0", "0 on rank 1" } },
        { "owners by one", own_owners, GRAFT_ERR_ARG, { "whether owners are given", "1 on rank 1" } },
        { "an owner that is none",
          bad_owner,
          GRAFT_ERR_ARG,
          { "rank 1: slice: owner of vertex 6", "is 3, expected 0 to 2" } },
        { "a column out of range", bad_column, GRAFT_ERR_FORMAT, { "rank 1: ", "slice.rows" } },
        { "a slice that is none", null_slice, GRAFT_ERR_ARG, { "rank 2: ", "slice has size 0" } },
        { "another cover", other_cover, GRAFT_ERR_ARG, { "halo.cover is hybrid", "pre on rank 1" } },
        { "another kind of plan", other_flags, GRAFT_ERR_ARG, { "TRANSPOSED is 1", "on rank 2" } },
        { "another width of a plan", other_reserve, GRAFT_ERR_ARG, { "width of the plan is 0", "on rank 1" } },
        { "flags that there are not", bad_flags, GRAFT_ERR_ARG, { "rank 1: ", "0x8" } },
        { "other layers", other_layers, GRAFT_ERR_ARG, { "layers of the plan is 1 ", "on rank 2" } },
        { "asynchronous on one", other_async, GRAFT_ERR_ARG, { "halo.staleness is 0 on rank 0", "1 on rank 1" } },
        { "another smoothing", other_smoothing, GRAFT_ERR_ARG, { "halo.staleness is 0 on", "1:0:0.5 on rank 2" } },
        { "another bound", other_every, GRAFT_ERR_ARG, { "halo.staleness is 0 on", "1:4 on rank 1" } },
        { "one that waits", other_wait, GRAFT_ERR_PEER, { "flags", "expected" } },
        { "another width of a pass", other_width, GRAFT_ERR_PEER, { "width", "expected" } },
        { "another epoch", other_epoch, GRAFT_ERR_PEER, { "epoch 1", "expected 1" } },
        { "another layer", other_layer, GRAFT_ERR_PEER, { "layer", "expected" } },
        { "another direction", other_direction, GRAFT_ERR_PEER, { "rank", "expected" } },
        { "another semiring", other_semiring, GRAFT_ERR_PEER, { "semiring", "expected" } },
        { "one that accumulates", other_accumulate, GRAFT_ERR_PEER, { "flags", "expected" } },
        { "one that is exact", other_exact, GRAFT_ERR_PEER, { "flags", "expected" } },
        { "a rank that leaves in the middle", gone, GRAFT_ERR_PEER, { "rank 1", "" } },
        { "a rank that does not come", no_pass, GRAFT_ERR_PEER, { "waited", "rank 1" } },
    };

    for (size_t i = 0; i < sizeof disputes / sizeof *disputes; i++) check_dispute(&disputes[i]);
}

static const char *const asynchronous[] = { "halo.staleness", "1:0:0.5", NULL };

static void test_aggregate_faults_memory(int32_t n_ranks, int32_t rank, const char *partition, const char *cover,
                                         const char *const *settings)
{
    float   out[3][N * WIDE];
    char    fault[512] = "";
    int64_t k = 0;
    int     found = 1;

    for (; found > 0 && k < 2000; k++) {
        struct spread s = spread_of_all();

        s.partition = partition;
        s.cover = cover;
        s.settings = settings;
        s.starved = 1;
        s.fail_at = k;
        s.n_passes = 3;
        for (int i = 0; i < 3; i++)
            s.pass[i] =
                (struct spread_pass){ i < 2 ? GRAFT_PLUS_TIMES : GRAFT_MAX_TIMES, i < 2 ? i : GRAFT_AGGREGATE_STATELESS,
                                      WIDE >> i, 0, (char *)memset(out[i], 0, sizeof out[i]) };
        found = spread_starve(&s, n_ranks, rank, fault);
    }
    if (!ok(found == 0 && k > 50, "%d ranks, %s, %s%s: each of %lld allocations of rank %d fails in turn", n_ranks,
            partition, cover, settings == asynchronous ? ", asynchronous" : "", (long long)k - 1, rank))
        diag("allocation %lld: %s", (long long)k - 1, fault);
}

/* Make all calls with a graph, and check both results. */
static int32_t all_of_it(struct rank *r, graft_graph **made, graft_plan **plan)
{
    struct spread s = spread_of_all();
    struct input  in;
    int32_t       rc;

    input_init(&in, r->rank);
    TRY(spread_setup(r, &s));
    TRY(gr_interface_graph.create(r->context, &r->transport, &in.slice, made, &r->error));
    TRY(gr_interface_aggregate.create(*made, &in.plan, plan, &r->error));
    in.width = WIDE;
    TRY(aggregate_faults_pass(r, *plan, &in, &r->error));
    in.args.flags = GRAFT_AGGREGATE_TRANSPOSE;
    in.args.layer = 1;
    TRY(aggregate_faults_pass(r, *plan, &in, &r->error));
    TRY(gr_comm_agree((*made)->comm, GRAFT_OK, &r->error));
done:
    return rc;
}

static int32_t passes_body(struct rank *r)
{
    graft_graph *made = NULL;
    graft_plan  *plan = NULL;
    int32_t      rc = all_of_it(r, &made, &plan);

    if (run_goes_on(r, rc)) rc = gr_comm_barrier(made->comm, &r->error);
    gr_interface_aggregate.destroy(plan);
    gr_interface_graph.destroy(made);
    return rc;
}

/* Let kernels prepare the matrices of a plan, which they do in their first runs. */
static int32_t run_kernels(struct rank *r, const graft_plan *plan)
{
    const struct gr_plan_matrices *m = plan->matrices;
    graft_matrix *const matrices[] = { m[0].local, m[0].sent, m[0].received, m[1].local, m[1].sent, m[1].received };
    float              *rows = calloc(2 * N * WIDE, sizeof *rows);
    int32_t             rc = GRAFT_OK;

    for (size_t i = 0; i < sizeof matrices / sizeof *matrices; i++) {
        const graft_csr  *a = &matrices[i]->csr;
        const graft_dense b = { sizeof b, GRAFT_F32, a->n_cols, WIDE, WIDE, rows };
        const graft_dense c = { sizeof c, GRAFT_F32, a->n_rows, WIDE, WIDE, rows + N * WIDE };
        graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);

        args.semiring = GRAFT_PLUS_TIMES;
        args.a = matrices[i];
        args.b = &b;
        args.c = &c;
        TRY(gr_mxm_run(r->context, &args, &r->error));
    }
done:
    free(rows);
    return rc;
}

/* Passes must not allocate, except what kernels prepare. */
static int32_t frugal_body(struct rank *r)
{
    struct spread s = spread_of_all();
    graft_graph  *made = NULL;
    graft_plan   *plan = NULL;
    struct input  in;
    int64_t       before = 0;
    int32_t       rc;

    input_init(&in, r->rank);
    in.plan.width = in.width = WIDE;
    s.settings = r->all->arg;
    TRY(spread_setup(r, &s));
    TRY(gr_interface_graph.create(r->context, &r->transport, &in.slice, &made, &r->error));
    TRY(gr_interface_aggregate.create(made, &in.plan, &plan, &r->error));
    TRY(run_kernels(r, plan));
    TRY(gr_comm_barrier(made->comm, &r->error));
    before = atomic_load(&r->all->allocations);
    TRY(gr_comm_barrier(made->comm, &r->error));
    for (int round = 0; round < 6; round++) {
        in.args.flags = round % 2 ? GRAFT_AGGREGATE_TRANSPOSE : 0;
        in.args.epoch = round / 2;
        in.width = round < 2 ? WIDE : WIDTH + round;
        TRY(aggregate_faults_pass(r, plan, &in, &r->error));
        TRY(gr_comm_barrier(made->comm, &r->error));
    }
    if (atomic_load(&r->all->allocations) != before) rank_blame(r, "passes took memory");
    TRY(gr_comm_barrier(made->comm, &r->error));
done:
    gr_interface_aggregate.destroy(plan);
    gr_interface_graph.destroy(made);
    return rc;
}

static void test_frugal(const char *const *settings)
{
    static struct ranks ranks;
    const char         *fault;
    int                 good = 1;

    ranks_init(&ranks, RANKS, 20, frugal_body, (void *)(uintptr_t)settings);
    ranks_run(&ranks);
    for (int32_t i = 0; i < RANKS; i++) good = good && ranks.at[i].rc == GRAFT_OK;
    fault = ranks_fini(&ranks);
    if (!ok(good && fault == NULL, "no %spass allocates memory", settings != NULL ? "asynchronous " : ""))
        diag("%s", fault != NULL ? fault : "");
}

/* Messages must be polled while the local part of a product is computed. */
static int32_t polling_body(struct rank *r)
{
    const struct faulty *transport = r->transport.self;
    struct spread        s = spread_of_all();
    graft_graph         *made = NULL;
    graft_plan          *plan = NULL;
    struct input         in;
    float                out[EACH * WIDTH];
    const graft_dense    dense_x = { sizeof dense_x, GRAFT_F32, EACH, WIDTH, WIDE, x + r->rank * EACH * WIDE };
    const graft_dense    dense_out = { sizeof dense_out, GRAFT_F32, EACH, WIDTH, WIDTH, out };
    int64_t              before;
    int32_t              rc;

    input_init(&in, r->rank);
    TRY(spread_setup(r, &s));
    TRY(gr_interface_graph.create(r->context, &r->transport, &in.slice, &made, &r->error));
    TRY(gr_interface_aggregate.create(made, &in.plan, &plan, &r->error));
    in.args.x = &dense_x;
    in.args.out = &dense_out;
    before = transport->tests;
    TRY(gr_interface_aggregate.begin(plan, &in.args, &r->error));
    if (transport->tests == before) rank_blame(r, "no message was asked for in begin()");
    TRY(gr_interface_aggregate.end(plan, &r->error));
    TRY(gr_comm_barrier(made->comm, &r->error));
done:
    gr_interface_aggregate.destroy(plan);
    gr_interface_graph.destroy(made);
    return rc;
}

static void test_polling(void)
{
    static struct ranks  ranks;
    static struct faulty faulty[RANKS];
    const char          *fault;
    int                  good = 1;

    ranks_init(&ranks, RANKS, 20, polling_body, NULL);
    for (int32_t i = 0; i < RANKS; i++) {
        faulty[i] = (struct faulty){ .inner = ranks.at[i].transport, .hold = 3 };
        ranks.at[i].transport = faulty_wrap(&faulty[i]);
    }
    ranks_run(&ranks);
    for (int32_t i = 0; i < RANKS; i++) good = good && ranks.at[i].rc == GRAFT_OK;
    fault = ranks_fini(&ranks);
    if (!ok(good && fault == NULL, "messages are sent and received while products are computed"))
        diag("%s", fault != NULL ? fault : "");
}

/* Make one exchange of halo rows in each direction, as gat does, and check it. `h` has the number of the vertex in each
 * owned row, and afterwards the sum of the rows that are returned to it. Stale rows equal fresh ones here. The last
 * epoch is synchronous, so that no message remains in transit. */
static int32_t halo_passes(struct rank *r, const graft_graph *g, struct gr_halo_rows *rows, int32_t epoch, int last,
                           float *h)
{
    const int64_t       n = g->n_owned, halo = g->part.halo.count;
    struct gr_team      team = { .threads = 2 };
    struct gr_halo_pass pass = { .synchronous = last, .epoch = epoch };
    int32_t             rc;

    for (int64_t i = 0; i < n * WIDE; i++) h[i] = (float)g->vertex[i / WIDE] + (float)(i % WIDE) / WIDE;
    gr_halo_rows_place(rows, &pass, h, n, WIDE);
    TRY(gr_halo_rows_begin(rows, &pass, team, &r->error));
    team.poll = gr_comm_framed_poll;
    team.poll_arg = &rows->exchange.messages->framed;
    team.poll(team.poll_arg);
    TRY(gr_halo_rows_end(rows, team, &r->error));
    for (int32_t q = 0; q < r->n_ranks; q++)
        for (int64_t i = g->part.halo.start[q]; i < g->part.halo.start[q + 1]; i++) {
            const float right = (float)(q * EACH + g->part.halo.place[i]) + (float)(WIDE - 1) / WIDE;

            if (h[(n + i) * WIDE + WIDE - 1] != right) rank_blame(r, "row %lld of the halo is wrong", (long long)i);
        }
    for (int64_t i = n * WIDE; i < (n + halo) * WIDE; i++) h[i] = (float)(1 << r->rank);
    pass.direction = GR_BACKWARD;
    team.poll = NULL;
    TRY(gr_halo_rows_begin(rows, &pass, team, &r->error));
    TRY(gr_halo_rows_end(rows, team, &r->error));
    for (int64_t i = 0; i < n; i++) {
        float right = (float)g->vertex[i];

        for (int32_t q = 0; q < r->n_ranks; q++)
            for (int64_t k = rows->links.send_start[q]; k < rows->links.send_start[q + 1]; k++)
                if (rows->links.place[k] == i) right += (float)(1 << q);
        if (h[i * WIDE] != right)
            rank_blame(r, "row %lld is %g, expected %g", (long long)i, (double)h[i * WIDE], (double)right);
    }
    TRY(gr_comm_agree(g->comm, GRAFT_OK, &r->error));
done:
    return rc;
}

static int32_t halo_epochs(struct rank *r, const char *const *settings, int epochs)
{
    struct spread       s = spread_of_all();
    struct gr_halo_rows rows = { 0 };
    graft_graph        *made = NULL;
    struct input        in;
    float              *h = calloc(N * WIDE, sizeof *h);
    int32_t             rc;

    input_init(&in, r->rank);
    s.settings = settings;
    TRY(spread_setup(r, &s));
    TRY(gr_interface_graph.create(r->context, &r->transport, &in.slice, &made, &r->error));
    TRY(gr_halo_rows_init(r->context, made->comm, &made->part.halo, (const int64_t[]){ WIDE }, 1, &rows, &r->error));
    for (int i = 0; i < epochs; i++) TRY(halo_passes(r, made, &rows, 17 + i, i == epochs - 1, h));
done:
    if (run_goes_on(r, rc)) rc = gr_comm_barrier(made->comm, &r->error);
    if (made != NULL) gr_halo_rows_fini(made->comm, &rows);
    gr_interface_graph.destroy(made);
    free(h);
    return rc;
}

static int32_t halo_body(struct rank *r)
{
    return halo_epochs(r, NULL, 1);
}

static int32_t async_halo_body(struct rank *r)
{
    return halo_epochs(r, asynchronous, 3);
}

int main(void)
{
    alarm(600); /* it is slow under a sanitizer */
    spread_make_sums(3, N, WIDE, &graph, &transposed, x, want[0]);
    test_disputes();
    test_aggregate_faults_memory(1, 0, "given", "hybrid", NULL);
    test_aggregate_faults_memory(2, 0, "given", "hybrid", NULL);
    test_aggregate_faults_memory(2, 1, "hash", "pre", NULL);
    test_aggregate_faults_memory(3, 2, "block", "post", NULL);
    test_aggregate_faults_memory(2, 0, "stream", "hybrid", NULL);
    test_aggregate_faults_memory(3, 1, "hash", "hybrid", asynchronous);
    test_aggregate_faults_memory(2, 0, "given", "post", asynchronous);
    test_frugal(NULL);
    test_frugal(asynchronous);
    test_polling();
    run_faults("passes", passes_body, RANKS, 1, (const int[]){ 3, 7 }, FAULTS);
    run_faults("halo rows", halo_body, RANKS, 1, (const int[]){ 3, 7 }, FAULTS);
    run_faults("asynchronous halo rows", async_halo_body, RANKS, 1, (const int[]){ 3, 7 }, FAULTS);
    sample_csr_fini(&graph);
    sample_csr_fini(&transposed);
    return done();
}
