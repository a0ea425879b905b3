/* Checks the cost by which partition=auto compares partitions: it must follow the options of the model and the measured
 * network: test_owner_cost PARTITIONER.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"
#include "harness/spread.h"
#include "harness/tap.h"

#include "dgraph/owner.h"
#include "parallel/workload.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { LARGEST = 4096 };

static graft_context *context;
static const char    *partitioner;

static void owner_cost_set(const char *key, const char *value)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (gr_option_set(context, key, value, &error) < 0) abort();
}

static int32_t cost_at(double bytes_per_second, struct gr_partition_cost *cost, graft_error *error)
{
    const struct gr_owner_rates rates = gr_graph_rates_assumed(context, bytes_per_second);
    const struct gr_workload    workload = gr_parallel_workload_of(context);

    return gr_graph_owner_cost(context, &workload, &rates, cost, error);
}

/* Compare the costs of an epoch with different options: two layers of width 100, one thread. */
static void test_cost(void)
{
    static const struct {
        const char *key, *value, *standard;
        double      entry, vertex, row; /* seconds per entry, vertex and row */
        int         rows;
    } cases[] = { { "model", "sage", "sage", 1, 1, 1, GR_ROWS_LEAST },
                  { "model", "mlp", "sage", 0, 1, 0, GR_ROWS_LEAST },
                  { "model", "gat", "sage", 1, 1, 1, GR_ROWS_POST },
                  { "aggregator", "max", "mean", 1, 1, 1, GR_ROWS_POST },
                  { "aggregator", "min", "mean", 1, 1, 1, GR_ROWS_POST },
                  { "halo.cover", "post", "hybrid", 1, 1, 1, GR_ROWS_POST },
                  { "halo.cover", "pre", "hybrid", 1, 1, 1, GR_ROWS_PRE },
                  { "halo.codec", "q8", "f32", 1, 1, 0.25, GR_ROWS_LEAST },
                  { "halo.codec", "f32/bf16", "f32", 1, 1, 0.75, GR_ROWS_LEAST },
                  { "threads", "2", "1", 0.5, 0.5, 1, GR_ROWS_LEAST },
                  { "layers", "4", "2", 2, 2, 2, GR_ROWS_LEAST },
                  { "hidden", "200", "100", 2, 4, 2, GR_ROWS_LEAST } };
    struct gr_partition_cost one, cost;
    graft_error              error = GRAFT_INIT(graft_error);

    owner_cost_set("layers", "2");
    owner_cost_set("hidden", "100");
    owner_cost_set("threads", "1");
    if (cost_at(1e6, &one, &error) < 0) abort();
    ok(one.entry > 0 && one.vertex > 0 && fabs(one.row - 2 * 8 * 100 / 1e6) < 1e-12,
       "predicted times of two layers of 100 columns: %.3g s for an entry, %.3g s for a vertex, "
       "%.3g s for a row",
       one.entry, one.vertex, one.row);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        owner_cost_set(cases[i].key, cases[i].value);
        if (cost_at(1e6, &cost, &error) < 0) abort();
        owner_cost_set(cases[i].key, cases[i].standard);
        ok(fabs(cost.entry / one.entry - cases[i].entry) < 1e-9 &&
               fabs(cost.vertex / one.vertex - cases[i].vertex) < 1e-9 &&
               fabs(cost.row / one.row - cases[i].row) < 1e-9 && (int)cost.rows == cases[i].rows,
           "with %s=%s the predicted times are %g, %g and %g times as large, with rows of kind %d", cases[i].key,
           cases[i].value, cost.entry / one.entry, cost.vertex / one.vertex, cost.row / one.row, (int)cost.rows);
    }
}

/* A network on which a long message takes a twentieth of a second. */
static int32_t (*quick_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **, graft_error *);

static int32_t owner_cost_slow_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                                    graft_request **request, graft_error *error)
{
    if (bytes > 100000) usleep(50000);
    return quick_send(self, to, tag, data, bytes, request, error);
}

static int32_t cost_body(struct rank *r)
{
    struct spread *s = r->all->arg;
    graft_graph   *graph = NULL;
    int32_t        rc;

    if (quick_send != NULL) r->transport.send = owner_cost_slow_send;
    rc = spread_setup(r, s);
    if (rc == GRAFT_OK) rc = spread_graph(r, s, &graph);
    if (rc == GRAFT_OK && r->rank == 0)
        rc = gr_interface_graph.explain(graph, s->explained, sizeof s->explained, &r->error);
    gr_interface_graph.destroy(graph);
    return rc;
}

/* Read the description of a partition of graph number `which`. The result is NULL or an error in words. */
static const char *explain(int which, const char *partition, const char *const *settings, int is_slow,
                           char explained[4096])
{
    static struct ranks  ranks;
    static struct spread s;
    static char          fault[700];
    struct graph         graph;
    const char          *left;

    graph_init(&graph, which);
    s = (struct spread){
        .graph = &graph.rows, .settings = settings, .partition = partition, .cover = "hybrid", .threads = "1"
    };
    ranks_init(&ranks, 2, 30, cost_body, &s);
    quick_send = is_slow ? ranks.at[0].transport.send : NULL;
    ranks_run(&ranks);
    left = ranks_fini(&ranks);
    memcpy(explained, s.explained, 4096);
    graph_fini(&graph);
    snprintf(fault, sizeof fault, "%s %s", ranks.at[0].error.message, left != NULL ? left : "");
    return ranks.at[0].rc == GRAFT_OK && ranks.at[1].rc == GRAFT_OK && left == NULL ? NULL : fault;
}

/* The number in front of some words. */
static double number_before(const char *text, const char *words)
{
    const char *at = strstr(text, words);

    while (at != NULL && at > text && at[-1] != ' ') at--;
    return at != NULL ? strtod(at, NULL) : -1;
}

/* On a slow network the predicted time must follow from its measured latency and bandwidth. */
static void test_network(void)
{
    const char *const          settings[] = { "partition.program", partitioner, "layers", "2", "hidden", "100", NULL };
    static int32_t             owner[LARGEST];
    static char                explained[4096];
    const char                *fault = explain(5, "metis", settings, 1, explained);
    const double               pace = number_before(explained, " MB/s between ranks");
    const double               told = number_before(explained, " s; measured: ");
    struct graph               graph;
    struct gr_partition_choice choice;
    struct gr_partition_cost   cost;
    graft_error                error = GRAFT_INIT(graft_error);

    graph_init(&graph, 5);
    owner_cost_set("partition.program", partitioner);
    if (cost_at(pace * 1e6, &cost, &error) < 0 ||
        gr_partition_choose(context, &graph.slice, 2, GR_PARTITION_METIS, &cost, NULL, owner, &choice, &error) < 0)
        abort();
    if (!ok(fault == NULL && pace > 1 && pace < 21.1 && fabs(told / choice.seconds[GR_PARTITION_METIS] - 1) < 0.02,
            "a slow network is measured as %g MB/s, and %g s are predicted with it", pace, told))
        diag("%s; %g; %s", fault != NULL ? fault : "", choice.seconds[GR_PARTITION_METIS], explained);
    graph_fini(&graph);
}

/* One graph, for which the choice differs where no rows are sent: cliques under shuffled names have the smallest cut by
 * stream, while ranges are the most even. */
static void test_model(void)
{
    const char *const sage[] = { "partition.program", "/no/such/program", NULL };
    const char *const mlp[] = { "partition.program", "/no/such/program", "model", "mlp", NULL };
    static char       one[4096], other[4096];
    const char       *fault = explain(5, "auto", sage, 0, one);

    if (fault == NULL) fault = explain(5, "auto", mlp, 0, other);
    if (!ok(fault == NULL && strstr(one, "; chosen: stream") != NULL && strstr(other, "; chosen: block") != NULL,
            "partition=auto chooses stream for sage, and blocks for mlp, which sends nothing"))
        diag("%s; %s; %s", fault != NULL ? fault : "", one, other);
}

int main(int argc, char **argv)
{
    const graft_api *api;
    graft_error      error = GRAFT_INIT(graft_error);

    if (argc < 2) return 2;
    alarm(50);
    partitioner = argv[1];
    setenv("GRAFT_TEST_BEHAVIOUR", "good", 1);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    context = api->context;
    test_cost();
    test_network();
    test_model();
    api->close(context);
    return done();
}
