/* Measures model mgn on one rank: a forward pass and a training step (forward and backward). For comparison it measures
 * dense products of large square matrices with the same dense module and the same number of threads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "comm/comm.h"
#include "dense/dense.h"
#include "entry/entry.h"
#include "mgn/mgn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: bench_mgn [--nodes X Y] [--width W] [--layers L] [--linear N] [--type f32|f64] [--threads T] [--rounds R]\n"
    "                 [--activation relu|elu] [--products kept|again] [--module FILE] [--set KEY=VALUE]\n"
    "                 [--serve FOLDER]\n"
    "A mesh of X times Y nodes (29 65) in triangles; 128, 15, 3, f32, 2, 7, relu. With --serve inputs, weights and\n"
    "output are written to FOLDER, and lines of stdin (gemm, forward, step) are answered with seconds.";

enum { NODE_INPUTS = 11, EDGE_INPUTS = 3, OUTPUTS = 2, SQUARE = 1024 };

struct bench {
    int64_t                 x, y;
    int                     threads, rounds, keeps;
    graft_dtype             dtype;
    int64_t                 element;
    struct gr_mgn_options   options;
    const char             *folder;
    const graft_api        *api;
    const struct gr_module *dense;
    graft_mesh              mesh;
    struct gr_mgn_shape     shape;
    struct gr_mgn          *mgn;
    char                   *weights, *nodes, *edges, *output, *gradient;
    float                  *square[3];
};

/* -- the mesh ------------------------------------------------------------------------------------------------------ */

/* The offsets of the neighbours of node (i, j) in a grid whose cells are split along one diagonal. */
static const int steps[6][2] = { { -1, -1 }, { -1, 0 }, { 0, -1 }, { 0, 1 }, { 1, 0 }, { 1, 1 } };

static void make_triangles(struct bench *b)
{
    graft_mesh *m = &b->mesh;
    int32_t    *place;

    m->kind = GRAFT_MESH_GHOSTS;
    m->context = b->api->context;
    m->n_nodes = m->n_rows = m->n_sources = b->x * b->y;
    m->edges.row_ptr = bench_new((size_t)m->n_nodes + 1, sizeof *m->edges.row_ptr, 1);
    m->edges.source = bench_new((size_t)(6 * m->n_nodes), sizeof *m->edges.source, 1);
    m->edges.target = bench_new((size_t)(6 * m->n_nodes), sizeof *m->edges.target, 1);
    m->edges.out_ptr = bench_new((size_t)m->n_nodes + 2, sizeof *m->edges.out_ptr, 1);
    m->edges.out_edge = bench_new((size_t)(6 * m->n_nodes), sizeof *m->edges.out_edge, 1);
    for (int64_t v = 0; v < m->n_nodes; v++) {
        for (int s = 0; s < 6; s++) {
            const int64_t i = v / b->x + steps[s][0], j = v % b->x + steps[s][1];

            if (i < 0 || j < 0 || i >= b->y || j >= b->x) continue;
            m->edges.source[m->n_edges] = (int32_t)(i * b->x + j);
            m->edges.target[m->n_edges++] = (int32_t)v;
        }
        m->edges.row_ptr[v + 1] = m->n_edges;
    }
    for (int64_t k = 0; k < m->n_edges; k++) m->edges.out_ptr[m->edges.source[k] + 1]++;
    for (int64_t v = 0; v < m->n_nodes; v++) m->edges.out_ptr[v + 1] += m->edges.out_ptr[v];
    place = bench_new((size_t)m->n_nodes + 1, sizeof *place, 1);
    memcpy(place, m->edges.out_ptr, (size_t)m->n_nodes * sizeof *place);
    for (int64_t k = 0; k < m->n_edges; k++) m->edges.out_edge[place[m->edges.source[k]]++] = (int32_t)k;
    free(place);
}

/* Returns n numbers between -scale and scale, in the data type of the network. */
static char *make_numbers(const struct bench *b, int64_t n, double scale, uint64_t seed)
{
    char *made = bench_new((size_t)n + 1, (size_t)b->element, 1);

    for (int64_t i = 0; i < n; i++) {
        const double value = scale * ((double)(bench_mix(seed + (uint64_t)i) >> 11) * 0x1p-52 - 1);

        if (b->dtype == GRAFT_F64) ((double *)(void *)made)[i] = value;
        else ((float *)(void *)made)[i] = (float)value;
    }
    return made;
}

static void make_network(struct bench *b)
{
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc = gr_comm_create(b->api->context, NULL, 10, &b->mesh.comm, &error);

    if (rc == GRAFT_OK)
        rc = gr_mgn_shape_init(b->api->context, &b->options, NODE_INPUTS, EDGE_INPUTS, OUTPUTS, &b->shape, &error);
    if (rc == GRAFT_OK) rc = gr_mgn_create(&b->mesh, &b->shape, b->dtype, &b->mgn, &error);
    if (rc == GRAFT_OK) rc = gr_mgn_reserve_backward(b->mgn, &error);
    if (rc == GRAFT_OK && b->keeps) rc = gr_mgn_reserve_products(b->mgn, &error);
    if (rc == GRAFT_OK) rc = gr_dense_choose_for(b->api->context, b->dtype, &b->dense, &error);
    if (rc < 0) bench_die("%s", error.message);
    b->weights = make_numbers(b, b->shape.n_weights, 0.09, 1);
    b->nodes = make_numbers(b, b->mesh.n_nodes * NODE_INPUTS, 1.7, 2);
    b->edges = make_numbers(b, b->mesh.n_edges * EDGE_INPUTS, 1.7, 3);
    b->output = make_numbers(b, b->mesh.n_nodes * OUTPUTS, 0, 0);
    b->gradient = make_numbers(b, b->shape.n_weights, 0, 0);
    for (int i = 0; i < 3; i++) b->square[i] = (float *)(void *)make_numbers(b, (int64_t)SQUARE * SQUARE, 1, 4);
}

/* -- what is measured ---------------------------------------------------------------------------------------------- */

static void run_forward(struct bench *b)
{
    const struct gr_team team = { .threads = b->threads };
    graft_error          error = GRAFT_INIT(graft_error);

    if (gr_mgn_forward_begin(b->mgn, GRAFT_OK, b->weights, b->nodes, b->edges, 0, team, &error) < 0 ||
        gr_mgn_forward_end(b->mgn, GRAFT_OK, b->output, team, &error) < 0)
        bench_die("%s", error.message);
}

/* The loss function: half the sum of the squares of the output. */
static int32_t sum_squares(void *arg, const void *output, void *gradient, graft_error *error)
{
    const struct bench *b = arg;

    (void)error;
    memcpy(gradient, output, (size_t)(b->mesh.n_nodes * OUTPUTS * b->element));
    return GRAFT_OK;
}

static void run_training(struct bench *b)
{
    const struct gr_team team = { .threads = b->threads };
    graft_error          error = GRAFT_INIT(graft_error);

    if (gr_mgn_backward(b->mgn, b->weights, b->nodes, b->edges, 1, 0, sum_squares, b, b->gradient, team, &error) < 0)
        bench_die("%s", error.message);
}

static void run_square(struct bench *b)
{
    const graft_gemm g = { .size = sizeof g,
                           .threads = b->threads,
                           .m = SQUARE,
                           .n = SQUARE,
                           .k = SQUARE,
                           .alpha = 1,
                           .a = b->square[0],
                           .lda = SQUARE,
                           .b = b->square[1],
                           .ldb = SQUARE,
                           .c = b->square[2],
                           .ldc = SQUARE,
                           .type = b->dtype };
    graft_error      error = GRAFT_INIT(graft_error);

    if (gr_dense_run(b->api->context, b->dense, &g, &error) < 0) bench_die("%s", error.message);
}

/* The wall time, and the processor time of all threads of this process, which other programs disturb less. */
struct seconds {
    double passed, used;
};

static double used_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static struct seconds time_of(struct bench *b, void (*run)(struct bench *b))
{
    const double begin = bench_seconds(), used = used_seconds();

    run(b);
    return (struct seconds){ bench_seconds() - begin, used_seconds() - used };
}

static void measure_rounds(struct bench *b)
{
    void (*const runs[])(struct bench *) = { run_square, run_forward, run_training };
    static const char *const names[] = { "products of squares", "forward", "forward, backward" };
    const double             forward = gr_mgn_work(&b->shape, b->mesh.n_nodes, b->mesh.n_edges);
    const double             work[] = { (double)SQUARE * SQUARE * SQUARE, forward, 3 * forward };
    double                  *passed[3], *used[3];
    struct seconds           median[3];

    for (int i = 0; i < 3; i++) {
        passed[i] = bench_new((size_t)b->rounds, sizeof(double), 1);
        used[i] = bench_new((size_t)b->rounds, sizeof(double), 1);
    }
    for (int round = -1; round < b->rounds; round++)
        for (int i = 0; i < 3; i++) {
            const struct seconds s = time_of(b, runs[i]);

            if (round < 0) continue;
            passed[i][round] = s.passed;
            used[i][round] = s.used;
        }
    for (int i = 0; i < 3; i++) {
        median[i] = (struct seconds){ bench_median(passed[i], b->rounds), bench_median(used[i], b->rounds) };
        free(passed[i]);
        free(used[i]);
    }
    printf("%lld nodes, %lld edges, %lld weights, module %s, %d threads\n", (long long)b->mesh.n_nodes,
           (long long)b->mesh.n_edges, (long long)b->shape.n_weights, b->dense->name, b->threads);
    printf("                          ms  ms of processors  GFLOP/s  of a processor\n");
    for (int i = 0; i < 3; i++)
        printf("  %-18s %9.1f %12.1f %12.1f %12.1f\n", names[i], 1e3 * median[i].passed, 1e3 * median[i].used,
               2e-9 * work[i] / median[i].passed, 2e-9 * work[i] / median[i].used);
    printf("  forward at %.0f %% of the rate of squares, by processor time %.0f %%\n",
           100 * work[1] / median[1].passed / (work[0] / median[0].passed),
           100 * work[1] / median[1].used / (work[0] / median[0].used));
}

static void write_array(const struct bench *b, const char *name, const void *data, int64_t bytes)
{
    char  path[4096];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", b->folder, name);
    file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, (size_t)bytes, file) != (size_t)bytes || fclose(file) != 0)
        bench_die("%s cannot be written", path);
}

static void serve(struct bench *b)
{
    char line[64];

    run_training(b);
    run_forward(b);
    write_array(b, "weights", b->weights, b->shape.n_weights * b->element);
    write_array(b, "nodes", b->nodes, b->mesh.n_nodes * NODE_INPUTS * b->element);
    write_array(b, "edges", b->edges, b->mesh.n_edges * EDGE_INPUTS * b->element);
    write_array(b, "output", b->output, b->mesh.n_nodes * OUTPUTS * b->element);
    write_array(b, "gradient", b->gradient, b->shape.n_weights * b->element);
    write_array(b, "source", b->mesh.edges.source, b->mesh.n_edges * (int64_t)sizeof *b->mesh.edges.source);
    write_array(b, "target", b->mesh.edges.target, b->mesh.n_edges * (int64_t)sizeof *b->mesh.edges.target);
    printf("%.0f %s\n", gr_mgn_work(&b->shape, b->mesh.n_nodes, b->mesh.n_edges), b->dense->name);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin) != NULL) {
        struct seconds s;

        if (strcmp(line, "gemm\n") == 0) s = time_of(b, run_square);
        else if (strcmp(line, "forward\n") == 0) s = time_of(b, run_forward);
        else if (strcmp(line, "step\n") == 0) s = time_of(b, run_training);
        else bench_die("'%s' is none of gemm, forward and step", line);
        printf("%.9f %.9f\n", s.passed, s.used);
        fflush(stdout);
    }
}

/* -- the command --------------------------------------------------------------------------------------------------- */

static void set_pair(const struct bench *b, const char *pair)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        key[128];
    const char *value = strchr(pair, '=');

    if (value == NULL) bench_die("%s", usage);
    snprintf(key, sizeof key, "%.*s", (int)(value - pair), pair);
    if (b->api->set(b->api->context, key, value + 1, &error) < 0) bench_die("%s", error.message);
}

static void load(const struct bench *b, const char *file)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (b->api->load_module(b->api->context, file, &error) < 0) bench_die("%s", error.message);
}

/* Parse one option of the command line. Returns the number of arguments that it occupies. */
static int take_argument(struct bench *b, int left, char **argument)
{
    const char *name = argument[0], *value = left > 1 ? argument[1] : NULL;

    if (value == NULL) bench_die("%s", usage);
    if (strcmp(name, "--nodes") == 0 && left > 2) {
        b->x = atoll(value);
        b->y = atoll(argument[2]);
        return 3;
    }
    if (strcmp(name, "--width") == 0) b->options.width = atoll(value);
    else if (strcmp(name, "--layers") == 0) b->options.layers = atoll(value);
    else if (strcmp(name, "--linear") == 0) b->options.linear = atoll(value);
    else if (strcmp(name, "--type") == 0) b->dtype = strcmp(value, "f64") == 0 ? GRAFT_F64 : GRAFT_F32;
    else if (strcmp(name, "--activation") == 0) b->options.is_elu = strcmp(value, "elu") == 0;
    else if (strcmp(name, "--threads") == 0) b->threads = atoi(value);
    else if (strcmp(name, "--rounds") == 0) b->rounds = atoi(value);
    else if (strcmp(name, "--products") == 0) b->keeps = strcmp(value, "kept") == 0;
    else if (strcmp(name, "--set") == 0) set_pair(b, value);
    else if (strcmp(name, "--module") == 0) load(b, value);
    else if (strcmp(name, "--serve") == 0) b->folder = value;
    else bench_die("%s", usage);
    return 2;
}

static void fini(struct bench *b)
{
    gr_mgn_destroy(b->mgn);
    gr_mgn_shape_fini(b->api->context, &b->shape);
    gr_comm_destroy(b->mesh.comm);
    free(b->mesh.edges.row_ptr);
    free(b->mesh.edges.source);
    free(b->mesh.edges.target);
    free(b->mesh.edges.out_ptr);
    free(b->mesh.edges.out_edge);
    free(b->weights);
    free(b->nodes);
    free(b->edges);
    free(b->output);
    free(b->gradient);
    for (int i = 0; i < 3; i++) free(b->square[i]);
    b->api->close(b->api->context);
}

int main(int argc, char **argv)
{
    static struct bench b = { .x = 29,
                              .y = 65,
                              .threads = 2,
                              .rounds = 7,
                              .keeps = 1,
                              .dtype = GRAFT_F32,
                              .options = { .width = 128, .layers = 15, .linear = 3, .has_norm = 1 } };
    graft_error         error = GRAFT_INIT(graft_error);
    char                threads[16];

    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &b.api, &error) < 0) bench_die("%s", error.message);
    for (int i = 1; i < argc;) i += take_argument(&b, argc - i, argv + i);
    if (b.x < 1 || b.y < 1 || b.threads < 1 || b.rounds < 1 || b.options.width < 1 || b.options.linear < 1 ||
        b.options.linear > GR_MLP_LINEAR_MAX || b.options.layers < 0)
        bench_die("%s", usage);
    snprintf(threads, sizeof threads, "%d", b.threads);
    if (b.api->set(b.api->context, "threads", threads, &error) < 0) bench_die("%s", error.message);
    b.element = b.dtype == GRAFT_F64 ? 8 : 4;
    make_triangles(&b);
    make_network(&b);
    if (b.folder != NULL) serve(&b);
    else measure_rounds(&b);
    fini(&b);
    return 0;
}
