/* Measures networks within a solver. The first part is the processor time that begin() and end() add to the arithmetic.
 * The second part trains online on a heat problem whose data distribution drifts. It compares a reservoir of training
 * pairs with a memory of the latest pairs.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "entry/entry.h"
#include "network/network.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: bench_network [CALLS [OFFERS [SEEDS]]]\n"
    "100000 CALLS of begin() and end() on 2 nodes; 3000 OFFERS of a simulation with each policy, for 3 SEEDS.\n";

enum { SIDE = 16, NODES = SIDE * SIDE, IN = 2 };

static const graft_api         *api;
static const graft_mesh_api    *meshes;
static const graft_network_api *networks;
static const graft_stream_api  *streams;
static graft_error              error = { .size = sizeof error };

static void must(int32_t rc)
{
    if (rc >= 0) return;
    fprintf(stderr, "bench_network: %s\n", error.message);
    exit(1);
}

static void set(const char *key, const char *value)
{
    must(api->set(api->context, key, value, &error));
}

static graft_field field_of(void *data, graft_dtype dtype, int64_t rows, int64_t columns, int by_columns)
{
    graft_field f = { sizeof f, dtype, rows, columns, columns, 1, data };

    if (by_columns) f.row_stride = 1, f.column_stride = rows;
    return f;
}

/* Create a mesh of n nodes. It is a grid of quads with `side` nodes in each direction or, for two nodes, a line. */
static graft_mesh *make_mesh(int64_t n, int side)
{
    static double   x[2 * NODES];
    static int32_t  node[4 * NODES];
    graft_mesh_args args = GRAFT_INIT(graft_mesh_args);
    graft_field     coordinates = field_of(x, GRAFT_F64, n, 2, 0);
    graft_mesh     *mesh = NULL;

    for (int64_t i = 0; i < n; i++) {
        x[2 * i] = (double)(i % side);
        x[2 * i + 1] = (double)(i / side);
    }
    args.kind = GRAFT_MESH_GHOSTS;
    args.dim = 2;
    args.n_rows = n;
    args.coordinates = &coordinates;
    args.index_type = GRAFT_I32;
    args.cell_nodes = node;
    args.cell_type = n == 2 ? GRAFT_CELL_LINE : GRAFT_CELL_QUAD;
    if (n == 2) node[1] = 1, args.n_cells = 1;
    for (int32_t c = 0; n > 2 && c < (side - 1) * (side - 1); c++) {
        const int32_t first = c / (side - 1) * side + c % (side - 1);
        const int32_t corners[4] = { first, first + 1, first + side + 1, first + side };

        memcpy(node + 4 * args.n_cells++, corners, sizeof corners);
    }
    must(meshes->create(api->context, NULL, &args, &mesh, &error));
    return mesh;
}

static graft_network *network_of(graft_mesh *mesh, const uint8_t *is_free)
{
    graft_network_args args = GRAFT_INIT(graft_network_args);
    graft_network     *network = NULL;

    args.predicts = GRAFT_PREDICTS_CHANGE;
    args.n_in = IN;
    args.n_out = 1;
    args.is_free = is_free;
    must(networks->create(mesh, &args, &network, &error));
    return network;
}

static double thread_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Measure the nanoseconds of a pair begin() and end() (`whole`), and by how much they exceed those of the functions of
 * mgn/ which the pair calls (`above`). Both are medians over pairs of measurements that alternate. */
static void time_calls(graft_network *network, int calls, graft_dtype dtype, int by_columns, double *whole,
                       double *above)
{
    double               data[2 * IN] = { 0 }, seconds[20], more[20];
    graft_field          input = field_of(data, dtype, 2, IN, by_columns);
    graft_field          output = field_of(data, dtype, 2, 1, by_columns);
    const struct gr_team team = gr_network_team(network);

    for (int part = -1; part < 20; part++) {
        const double begin = thread_seconds();
        double       middle, end;

        for (int k = 0; k < calls / 20; k++) {
            must(networks->begin(network, &input, &error));
            must(networks->end(network, &output, &error));
        }
        middle = thread_seconds();
        for (int k = 0; k < calls / 20; k++) {
            must(gr_mgn_forward_begin(network->mgn, GRAFT_OK, gr_nn_array(&network->parameters, GR_COPY_VALUE),
                                      network->arrays.nodes, network->arrays.edges, 0, team, &error));
            must(gr_mgn_forward_end(network->mgn, GRAFT_OK, network->arrays.output, team, &error));
        }
        end = thread_seconds();
        if (part < 0) continue;
        seconds[part] = 1e9 * (middle - begin) / (calls / 20);
        more[part] = 1e9 * (2 * middle - begin - end) / (calls / 20);
    }
    *whole = bench_median(seconds, 20);
    *above = bench_median(more, 20);
}

static void measure_calls(int calls)
{
    graft_mesh    *mesh;
    graft_network *network;
    double         whole, above;

    set("hidden", "1");
    set("layers", "1");
    set("mgn.linear", "1");
    mesh = make_mesh(2, 2);
    network = network_of(mesh, NULL);
    printf("begin() and end() on 2 nodes: ns of processor time, and above the arithmetic\n");
    for (int way = 0; way < 4; way++) {
        time_calls(network, calls, way & 1 ? GRAFT_F64 : GRAFT_F32, way & 2, &whole, &above);
        printf("  %-6s %-15s %7.0f %7.0f\n", way & 1 ? "double" : "float", way & 2 ? "component-major" : "node-major",
               whole, above);
    }
    networks->destroy(network);
    meshes->destroy(mesh);
}

/* A heat problem on the grid. Its source moves along a circle and its conductivity grows, so that the distribution of
 * its states drifts during a run. */
struct heat {
    double now[NODES], next[NODES], state[NODES * IN];
};

static void heat_step(struct heat *h, double progress)
{
    const double angle = 3 * progress, rate = 0.05 + 0.15 * progress;
    const double sx = 8 + 5 * cos(angle), sy = 8 + 5 * sin(angle);

    for (int i = 0; i < NODES; i++) {
        const int    a = i % SIDE, b = i / SIDE;
        const double source = exp(-((a - sx) * (a - sx) + (b - sy) * (b - sy)) / 4);

        h->state[IN * i] = h->now[i];
        h->state[IN * i + 1] = source;
        h->next[i] = h->now[i];
        if (a == 0 || b == 0 || a == SIDE - 1 || b == SIDE - 1) continue;
        h->next[i] += rate * (h->now[i - 1] + h->now[i + 1] + h->now[i - SIDE] + h->now[i + SIDE] - 4 * h->now[i]) +
                      0.05 * source;
    }
    memcpy(h->now, h->next, sizeof h->now);
}

/* Train online during one run of the problem. Returns the final validation loss. The validation pairs are the same for
 * both policies. */
static double run_stream(graft_mesh *mesh, const uint8_t *is_free, const char *policy, const char *seed, int offers,
                         graft_stream_status *status)
{
    static struct heat heat;
    graft_stream      *stream = NULL;
    graft_network     *network;
    graft_field        input = field_of(heat.state, GRAFT_F64, NODES, IN, 0);
    graft_sample_state state = GRAFT_INIT(graft_sample_state);

    set("stream.policy", policy);
    set("seed", seed);
    memset(&heat, 0, sizeof heat);
    network = network_of(mesh, is_free);
    must(streams->create(network, &stream, &error));
    state.input = &input;
    for (int k = 0; k < offers; k++) {
        heat_step(&heat, (double)k / offers);
        must(streams->offer(stream, &state, &error));
        must(streams->step(stream, 1e9, 1, status, &error));
    }
    must(streams->validate(stream, status, &error));
    streams->destroy(stream);
    networks->destroy(network);
    return status->validation;
}

/* Returns whether the mean loss of the reservoir was at most that of the latest pairs. */
static int measure_stream(int offers, int seeds)
{
    double              sum[2] = { 0 };
    graft_stream_status status = GRAFT_INIT(graft_stream_status);
    uint8_t             is_free[NODES];
    graft_mesh         *mesh = make_mesh(NODES, SIDE);

    for (int i = 0; i < NODES; i++)
        is_free[i] = i % SIDE > 0 && i / SIDE > 0 && i % SIDE < SIDE - 1 && i / SIDE < SIDE - 1;
    set("hidden", "16");
    set("layers", "2");
    set("mgn.linear", "2");
    set("lr", "0.002");
    set("stream.memory", "1");
    set("threads", "1");
    printf("\ntraining online, %d offers with a step each: standardised loss of pairs of the whole run\n", offers);
    for (int k = 0; k < seeds; k++) {
        char   seed[16];
        double loss[2];

        snprintf(seed, sizeof seed, "%d", k);
        loss[0] = run_stream(mesh, is_free, "reservoir", seed, offers, &status);
        loss[1] = run_stream(mesh, is_free, "fifo", seed, offers, &status);
        sum[0] += loss[0];
        sum[1] += loss[1];
        printf("  seed %d: reservoir %.5f, fifo %.5f, ratio %.3f (%lld of %lld pairs kept)\n", k, loss[0], loss[1],
               loss[0] / loss[1], (long long)status.kept, (long long)status.pairs);
    }
    meshes->destroy(mesh);
    return sum[0] <= sum[1];
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? atoi(argv[1]) : 100000, offers = argc > 2 ? atoi(argv[2]) : 3000;
    const int seeds = argc > 3 ? atoi(argv[3]) : 3;
    int       good;

    if (argc > 4 || calls < 10 || offers < 30 || seeds < 0) {
        fputs(usage, stderr);
        return 2;
    }
    must(graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error));
    meshes = &gr_interface_mesh;
    networks = &gr_interface_network;
    streams = &gr_interface_stream;
    measure_calls(calls);
    /* In a short run both policies keep all pairs, so that the comparison has no meaning. */
    good = measure_stream(offers, seeds) || offers < 1000;
    if (!good) fprintf(stderr, "bench_network: the latest pairs are better than a reservoir\n");
    api->close(api->context);
    return !good;
}
