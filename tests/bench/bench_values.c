/* Measures a host whose edge values change in each time step. It compares update_values() with creating a new graph and
 * a new plan, and measures the passes that follow. All of them alternate in one run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"
#include "harness/spread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: bench_values rmat:SCALE:EDGES|uniform:N:EDGES|DATASET RANKS WIDTH THREADS [STEPS "
                            "[PARTITION]]\n"
                            "1 to 8 RANKS are threads of this process, each with option threads = THREADS. Edges have\n"
                            "float values; by default (given) rows stay where they are.";

enum { STEPS_MOST = 100 };
enum { NEW_GRAPH, NEW_PLAN, NEW_PASS, UPDATE, FIRST_PASS, PASS, CALLS };
static const char *const call_name[CALLS] = {
    "a new graph", "a new plan", "its first pass", "update_values()", "the first pass after it", "the next pass"
};

struct bench {
    struct spread spread;
    float        *values;
    int64_t       width;
    uint32_t      plan_flags;
    int32_t       steps;
    double        seconds[CALLS][STEPS_MOST]; /* measured on rank 0 between barriers of all ranks */
};

/* The objects of a rank, and the time at which its last call began. */
struct owned {
    graft_graph *graph;
    graft_plan  *plan;
    float       *x, *out;
    double       begin;
};

static int32_t bench_values_pass(struct rank *r, const struct bench *b, struct owned *o)
{
    const int64_t        n = o->graph->n_owned;
    const graft_dense    x = { sizeof x, GRAFT_F32, n, b->width, b->width, o->x };
    const graft_dense    out = { sizeof out, GRAFT_F32, n, b->width, b->width, o->out };
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    int32_t              rc;

    args.semiring = GRAFT_PLUS_TIMES;
    args.x = &x;
    args.out = &out;
    rc = gr_interface_aggregate.begin(o->plan, &args, &r->error);
    return rc < 0 ? rc : gr_interface_aggregate.end(o->plan, &r->error);
}

static int32_t bench_values_make(struct rank *r, struct bench *b, struct owned *o, int what)
{
    graft_plan_args args = GRAFT_INIT(graft_plan_args);

    args.flags = b->plan_flags;
    args.width = b->width;
    if (what == NEW_GRAPH) return spread_graph(r, &b->spread, &o->graph);
    return gr_interface_aggregate.create(o->graph, &args, &o->plan, &r->error);
}

static int32_t bench_values_update(struct rank *r, const struct bench *b, struct owned *o)
{
    int64_t     first, end;
    graft_dense values = { sizeof values, GRAFT_F32, 0, 1, 1, b->values };

    spread_slice(b->spread.slicing, b->spread.graph->n_rows, r->n_ranks, r->rank, &first, &end);
    values.n_rows = b->spread.graph->row_ptr[end] - b->spread.graph->row_ptr[first];
    values.data = b->values + b->spread.graph->row_ptr[first];
    return gr_interface_graph.update_values(o->graph, &values, &r->error);
}

static int32_t bench_values_call(struct rank *r, struct bench *b, struct owned *kept, struct owned *made, int what)
{
    if (what <= NEW_PLAN) return bench_values_make(r, b, made, what);
    if (what == UPDATE) return bench_values_update(r, b, kept);
    return bench_values_pass(r, b, what == NEW_PASS ? made : kept);
}

static int32_t values_body(struct rank *r)
{
    struct bench *b = r->all->arg;
    struct owned  kept = { 0 }, made;
    int32_t       rc = spread_setup(r, &b->spread);

    for (int what = NEW_GRAPH; what <= NEW_PLAN && rc == GRAFT_OK; what++) rc = bench_values_make(r, b, &kept, what);
    if (rc < 0) return rc;
    kept.x = bench_new((size_t)(kept.graph->n_owned * b->width) + 1, sizeof(float), 1);
    kept.out = bench_new((size_t)(kept.graph->n_owned * b->width) + 1, sizeof(float), 1);
    for (int step = 0; step < b->steps && rc == GRAFT_OK; step++) {
        made = kept;
        for (int what = 0; what < CALLS && rc == GRAFT_OK; what++) {
            rc = gr_comm_barrier(kept.graph->comm, &r->error);
            kept.begin = bench_seconds();
            if (rc == GRAFT_OK) rc = bench_values_call(r, b, &kept, &made, what);
            if (rc == GRAFT_OK) rc = gr_comm_barrier(kept.graph->comm, &r->error);
            if (r->rank == 0) b->seconds[what][step] = bench_seconds() - kept.begin;
        }
        if (made.plan != kept.plan) gr_interface_aggregate.destroy(made.plan);
        if (made.graph != kept.graph) gr_interface_graph.destroy(made.graph);
    }
    gr_interface_aggregate.destroy(kept.plan);
    gr_interface_graph.destroy(kept.graph);
    free(kept.x);
    free(kept.out);
    return rc;
}

static void bench_values_run(struct bench *b, int32_t n_ranks, uint32_t flags)
{
    static struct ranks ranks;
    const char         *fault;

    b->plan_flags = flags;
    ranks_init(&ranks, n_ranks, 600, values_body, b);
    ranks_run(&ranks);
    fault = ranks_fini_well(&ranks);
    if (fault != NULL) bench_die("%s", fault);
    printf("%s\n", flags != 0 ? "plan for both directions:" : "plan for forward passes:");
    for (int what = 0; what < CALLS; what++)
        printf("    %-24s %8.2f ms\n", call_name[what], 1e3 * bench_median(b->seconds[what], b->steps));
}

int main(int argc, char **argv)
{
    const int          n_ranks = argc > 2 ? atoi(argv[2]) : 0;
    struct bench_graph graph;
    struct bench       b = { .spread = { .cover = "hybrid", .partition = "given" }, .steps = 9 };
    const graft_api   *api;
    graft_csr          rows = GRAFT_INIT(graft_csr);
    graft_error        error = GRAFT_INIT(graft_error);

    if (argc < 5 || n_ranks < 1 || n_ranks > RANKS_MOST) bench_die("%s", usage);
    b.width = atoi(argv[3]);
    b.spread.threads = argv[4];
    if (argc > 5) b.steps = atoi(argv[5]);
    if (argc > 6) b.spread.partition = argv[6];
    if (b.width < 1 || b.steps < 1 || b.steps > STEPS_MOST) bench_die("%s", usage);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) bench_die("%s", error.message);
    bench_graph_init(&graph, argv[1], api, 1);
    b.values = bench_new((size_t)graph.row_ptr[graph.n] + 1, sizeof *b.values, 1);
    for (int64_t e = 0; e < graph.row_ptr[graph.n]; e++) b.values[e] = (float)(bench_mix((uint64_t)e) % 1000) / 1000;
    rows.index_type = GRAFT_I32;
    rows.value_type = b.spread.dtype = GRAFT_F32;
    rows.n_rows = rows.n_cols = graph.n;
    rows.row_ptr = graph.row_ptr;
    rows.col_idx = graph.col_idx;
    rows.values = b.values;
    b.spread.graph = &rows;
    printf("%lld vertices, %lld edges, %d ranks, width %lld\n", (long long)graph.n, (long long)graph.row_ptr[graph.n],
           n_ranks, (long long)b.width);
    bench_values_run(&b, n_ranks, 0);
    bench_values_run(&b, n_ranks, GRAFT_PLAN_TRANSPOSED);
    free(b.values);
    bench_graph_fini(&graph);
    api->close(api->context);
    return 0;
}
