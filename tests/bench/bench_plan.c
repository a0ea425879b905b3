/* Measures the time and the memory of creating a distributed graph and the plan of a product with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"
#include "harness/spread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static const char usage[] =
    "usage: bench_plan rmat:SCALE:EDGES|uniform:N:EDGES|DATASET RANKS [PARTITION [KEY=VALUE...]]\n"
    "2 to 8 RANKS are threads of this process, each with option threads = 1. PARTITION is hash (the default) or\n"
    "another value of that option; KEY=VALUE are other options.";

enum { SETTINGS_MOST = 16, ENTRY_BYTES = 64, VERTEX_BYTES = 24 };

/* The inputs, and the seconds of each step, from a barrier of all ranks to the next one. */
struct bench {
    struct spread spread;
    int32_t      *owner; /* [n] owner of each vertex of the first graph */
    double        graph_seconds, given_seconds, plan_seconds;
};

/* Create the graph again with the owners that the first creation has chosen. The difference of the two times is the
 * time of the partitioning. */
static int32_t make_with_owners(struct rank *r, struct bench *bench, graft_graph *graph)
{
    const int64_t *const vertex = gr_interface_graph.owned(graph);
    graft_graph         *again = NULL;
    double               begin;
    int32_t              rc;

    for (int64_t i = 0; i < graph->n_owned; i++) bench->owner[vertex[i]] = r->rank;
    rc = gr_comm_barrier(graph->comm, &r->error);
    if (rc < 0) return rc;
    begin = bench_seconds();
    rc = spread_graph(r, &(struct spread){ .graph = bench->spread.graph, .owner = bench->owner }, &again);
    if (rc == GRAFT_OK) rc = gr_comm_barrier(again->comm, &r->error);
    if (r->rank == 0) bench->given_seconds = bench_seconds() - begin;
    gr_interface_graph.destroy(again);
    return rc;
}

static int32_t plan_body(struct rank *r)
{
    struct bench   *bench = r->all->arg;
    graft_plan_args args = GRAFT_INIT(graft_plan_args);
    graft_graph    *graph = NULL;
    graft_plan     *plan = NULL;
    double          begin = bench_seconds(), made;
    int32_t         rc = spread_setup(r, &bench->spread);

    args.flags = GRAFT_PLAN_TRANSPOSED;
    args.dtype = GRAFT_F32;
    if (rc == GRAFT_OK) rc = spread_graph(r, &bench->spread, &graph);
    if (rc == GRAFT_OK) rc = gr_comm_barrier(graph->comm, &r->error);
    made = bench_seconds();
    if (rc == GRAFT_OK) rc = spread_plan(r, &bench->spread, graph, &args, &plan);
    if (rc == GRAFT_OK && r->rank == 0) {
        bench->graph_seconds = made - begin;
        bench->plan_seconds = bench_seconds() - made;
        bench->spread.graph_info[0] = GRAFT_INIT(graft_graph_info);
        bench->spread.plan_info[0] = GRAFT_INIT(graft_plan_info);
        gr_interface_graph.info(graph, -1, &bench->spread.graph_info[0], NULL);
        gr_interface_aggregate.info(plan, -1, &bench->spread.plan_info[0], NULL);
    }
    gr_interface_aggregate.destroy(plan);
    if (rc == GRAFT_OK) rc = make_with_owners(r, bench, graph);
    gr_interface_graph.destroy(graph);
    return rc;
}

static void take_settings(struct spread *spread, char **words, int count)
{
    static const char *settings[2 * SETTINGS_MOST + 1];

    if (count > SETTINGS_MOST) bench_die("%s", usage);
    for (int i = 0; i < count; i++) {
        char *value = strchr(words[i], '=');

        if (value == NULL) bench_die("%s", usage);
        *value = '\0';
        settings[2 * i] = words[i];
        settings[2 * i + 1] = value + 1;
    }
    spread->settings = settings;
}

/* Print the results. Returns whether the memory of the plan is within the documented bound per cut edge and vertex. */
static int bench_plan_print(const struct bench *bench, int64_t n, int32_t n_ranks)
{
    const struct spread    *s = &bench->spread;
    const graft_graph_info *graph = &s->graph_info[0];
    const graft_plan_info  *plan = &s->plan_info[0];
    const int64_t allowed = ENTRY_BYTES * plan->n_cut + VERTEX_BYTES * n + (int64_t)n_ranks * (n_ranks * 512 + 8192);
    struct rusage children;

    getrusage(RUSAGE_CHILDREN, &children);
    printf("%d ranks by %s: %" PRId64 " of %" PRId64 " entries cut; rows by cover %" PRId64 ", by post %" PRId64 "\n",
           n_ranks, s->partition, plan->n_cut, graph->n_edges, plan->halo_rows, plan->halo_rows_if_post);
    printf(
        "graph %.3f s, with given owners %.3f s, so the partition %.3f s; the largest process that partitioned it %ld "
        "KiB\n",
        bench->graph_seconds, bench->given_seconds, bench->graph_seconds - bench->given_seconds, children.ru_maxrss);
    printf("plan %.3f s; for each cut entry %.1f bytes at the peak, %.1f that stay\n", bench->plan_seconds,
           (double)s->plan_peak / (double)plan->n_cut, (double)s->plan_stays / (double)plan->n_cut);
    return s->plan_peak <= allowed;
}

int main(int argc, char **argv)
{
    const int           n_ranks = argc > 2 ? atoi(argv[2]) : 0;
    struct bench_graph  graph;
    struct bench        bench = { .spread = { .weighs = 1, .cover = "hybrid", .threads = "1" } };
    static struct ranks ranks;
    const graft_api    *api;
    graft_csr           rows = GRAFT_INIT(graft_csr);
    graft_error         error = GRAFT_INIT(graft_error);
    uint8_t            *trained;
    const char         *fault;

    if (n_ranks < 2 || n_ranks > RANKS_MOST) bench_die("%s", usage);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) bench_die("%s", error.message);
    bench_graph_init(&graph, argv[1], api, 1);
    trained = bench_graph_trained(&graph, argv[1], api);
    rows.index_type = GRAFT_I32;
    rows.n_rows = rows.n_cols = graph.n;
    rows.row_ptr = graph.row_ptr;
    rows.col_idx = graph.col_idx;
    bench.spread.graph = &rows;
    bench.spread.train_mask = trained;
    bench.spread.partition = argc > 3 ? argv[3] : "hash";
    bench.owner = calloc((size_t)graph.n + 1, sizeof *bench.owner);
    if (bench.owner == NULL) bench_die("out of memory");
    take_settings(&bench.spread, argv + 4, argc > 4 ? argc - 4 : 0);
    ranks_init(&ranks, n_ranks, 600, plan_body, &bench);
    ranks_run(&ranks);
    for (int32_t i = 0; i < n_ranks; i++)
        if (ranks.at[i].rc < 0) bench_die("%s", ranks.at[i].error.message);
    fault = ranks_fini(&ranks);
    if (fault != NULL) bench_die("%s", fault);
    bench_graph_fini(&graph);
    free(trained);
    free(bench.owner);
    api->close(api->context);
    return bench_plan_print(&bench, graph.n, n_ranks) ? 0 : 1;
}
