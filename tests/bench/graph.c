/* Generates random graphs, and reads the graphs of data sets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph.h"

#include "bench.h"
#include "graft_data.h"
#include "graft_mxm.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SEED = 20 };

/** The generated edges. Each edge is stored once, in one direction. */
struct pairs {
    int64_t  n, count;
    int32_t *u, *v;
};

/** Draw edge `index` of the recursive model (R-MAT). At each level 32 random bits choose one of the four quadrants. */
static void draw_rmat(int64_t index, int scale, int32_t *u, int32_t *v)
{
    const uint32_t quarter[3] = { (uint32_t)(0.57 * 0x1p32), (uint32_t)(0.76 * 0x1p32), (uint32_t)(0.95 * 0x1p32) };
    uint64_t       state = bench_mix(SEED) + (uint64_t)index * 64, bits = 0;

    *u = *v = 0;
    for (int level = 0; level < scale; level++, bits >>= 32) {
        if (level % 2 == 0) bits = bench_mix(state++);
        const uint32_t draw = (uint32_t)bits;
        const int      down = draw >= quarter[1], right = draw >= quarter[2] || (draw >= quarter[0] && !down);
        *u = *u << 1 | down;
        *v = *v << 1 | right;
    }
}

static void draw_uniform(int64_t index, int64_t n, int32_t *u, int32_t *v)
{
    const uint64_t bits = bench_mix(bench_mix(SEED) + (uint64_t)index);

    *u = (int32_t)((bits >> 32) * (uint64_t)n >> 32);
    *v = (int32_t)((bits & UINT32_MAX) * (uint64_t)n >> 32);
}

/** Renumber the vertices by a random permutation (Fisher-Yates shuffle). */
static void shuffle_names(struct pairs *pairs, int threads)
{
    int32_t *name = bench_new((size_t)pairs->n, sizeof *name, threads);

    for (int64_t i = 0; i < pairs->n; i++) {
        const uint64_t bits = bench_mix(bench_mix(SEED + 1) + (uint64_t)i) >> 32;
        const int64_t  j = (int64_t)(bits * (uint64_t)(i + 1) >> 32);
        name[i] = name[j];
        name[j] = (int32_t)i;
    }
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < pairs->count; i++) {
        pairs->u[i] = name[pairs->u[i]];
        pairs->v[i] = name[pairs->v[i]];
    }
    free(name);
}

/** Store both directions of all edges as rows. The rows are unsorted and contain duplicates. */
static void count_and_place(struct bench_graph *graph, const struct pairs *pairs, int64_t *end, int32_t *placed)
{
    for (int64_t i = 0; i < pairs->count; i++) {
        if (pairs->u[i] == pairs->v[i]) continue;
        graph->row_ptr[pairs->u[i] + 1]++;
        graph->row_ptr[pairs->v[i] + 1]++;
    }
    for (int64_t row = 0; row < graph->n; row++) {
        end[row] = graph->row_ptr[row];
        graph->row_ptr[row + 1] += graph->row_ptr[row];
    }
    for (int64_t i = 0; i < pairs->count; i++) {
        if (pairs->u[i] == pairs->v[i]) continue;
        placed[end[pairs->u[i]]++] = pairs->v[i];
        placed[end[pairs->v[i]]++] = pairs->u[i];
    }
}

/** Sort all rows by transposing the matrix, which visits the entries column by column. The matrix is symmetric, so that
 *  its transpose has the same rows. */
static void sort_rows(struct bench_graph *graph, const int32_t *placed, int64_t *end)
{
    memcpy(end, graph->row_ptr, (size_t)graph->n * sizeof *end);
    for (int64_t column = 0; column < graph->n; column++) {
        for (int64_t e = graph->row_ptr[column]; e < graph->row_ptr[column + 1]; e++)
            graph->col_idx[end[placed[e]]++] = (int32_t)column;
    }
}

static void drop_repeated(struct bench_graph *graph)
{
    int64_t to = 0, begin = 0;

    for (int64_t row = 0; row < graph->n; row++) {
        const int64_t end = graph->row_ptr[row + 1], first = to;
        for (int64_t e = begin; e < end; e++) {
            if (to == first || graph->col_idx[to - 1] != graph->col_idx[e]) graph->col_idx[to++] = graph->col_idx[e];
        }
        graph->row_ptr[row + 1] = to;
        begin = end;
    }
}

static void graph_build(struct bench_graph *graph, struct pairs *pairs, int threads)
{
    int64_t *end = bench_new((size_t)pairs->n + 1, sizeof *end, threads);
    int32_t *placed = bench_new(2 * (size_t)pairs->count, sizeof *placed, threads);

    graph->n = pairs->n;
    graph->row_ptr = bench_new((size_t)pairs->n + 1, sizeof *graph->row_ptr, threads);
    graph->col_idx = bench_new(2 * (size_t)pairs->count, sizeof *graph->col_idx, threads);
    count_and_place(graph, pairs, end, placed);
    sort_rows(graph, placed, end);
    drop_repeated(graph);
    free(placed);
    free(end);
}

static void generate(struct bench_graph *graph, int64_t n, int64_t edges, int scale, int threads)
{
    struct pairs pairs = { .n = n, .count = edges };

    pairs.u = bench_new((size_t)edges, sizeof *pairs.u, threads);
    pairs.v = bench_new((size_t)edges, sizeof *pairs.v, threads);
#pragma omp parallel for num_threads(threads)
    for (int64_t i = 0; i < edges; i++) {
        if (scale > 0) draw_rmat(i, scale, &pairs.u[i], &pairs.v[i]);
        else draw_uniform(i, n, &pairs.u[i], &pairs.v[i]);
    }
    if (scale > 0) shuffle_names(&pairs, threads);
    graph_build(graph, &pairs, threads);
    free(pairs.u);
    free(pairs.v);
}

static void copy_columns(struct bench_graph *graph, const graft_csr *csr)
{
    const int32_t *narrow = csr->col_idx;
    const int64_t *wide = csr->col_idx;

    for (int64_t e = 0; e < graph->nnz; e++)
        graph->col_idx[e] = csr->index_type == GRAFT_I32 ? narrow[e] : (int32_t)wide[e];
}

static void read_data(struct bench_graph *graph, const char *path, const graft_api *api, int threads)
{
    const graft_data_api *data = api == NULL ? NULL : api->get_interface(api->context, GRAFT_DATA_ID);
    graft_data           *set = NULL;
    graft_error           error = GRAFT_INIT(graft_error);
    const graft_csr      *csr;

    if (data == NULL) bench_die("'%s': there is no library, or it reads no data sets (%s)", path, GRAFT_DATA_ID);
    if (data->open(api->context, path, &set, &error) != GRAFT_OK) bench_die("%s", error.message);
    csr = data->view(set)->graph;
    if (csr->n_rows > INT32_MAX) bench_die("'%s' has %" PRId64 " vertices; columns here are int32", path, csr->n_rows);
    graph->n = csr->n_rows;
    graph->nnz = csr->row_ptr[csr->n_rows];
    graph->row_ptr = bench_new((size_t)graph->n + 1, sizeof *graph->row_ptr, threads);
    graph->col_idx = bench_new((size_t)graph->nnz, sizeof *graph->col_idx, threads);
    memcpy(graph->row_ptr, csr->row_ptr, ((size_t)graph->n + 1) * sizeof *graph->row_ptr);
    copy_columns(graph, csr);
    data->close(set);
}

/** Parse the two numbers of "KIND:FIRST:SECOND". Returns 0 if the kind differs. Exits if a number is out of range. */
static int read_numbers(const char *what, const char *kind, int64_t most, int64_t number[2])
{
    const int64_t limit[2] = { most, INT64_C(1) << 33 };
    const size_t  length = strlen(kind);
    const char   *at = what + length;
    char         *end = NULL;

    if (strncmp(what, kind, length) != 0 || *at != ':') return 0;
    for (int i = 0; i < 2; i++, at = end) {
        errno = 0;
        number[i] = *at == ':' ? strtoll(at + 1, &end, 10) : 0;
        if (errno != 0 || number[i] < 1 || number[i] > limit[i])
            bench_die("'%s' is no graph: expected %s:1..%" PRId64 ":1..2^33", what, kind, most);
    }
    if (*at != '\0') bench_die("'%s' is no graph: '%s' follows the last number", what, at);
    return 1;
}

void bench_graph_init(struct bench_graph *graph, const char *what, const graft_api *api, int threads)
{
    int64_t number[2];

    *graph = (struct bench_graph){ 0 };
    if (read_numbers(what, "rmat", 30, number))
        generate(graph, INT64_C(1) << number[0], number[1], (int)number[0], threads);
    else if (read_numbers(what, "uniform", INT32_MAX, number)) generate(graph, number[0], number[1], 0, threads);
    else read_data(graph, what, api, threads);
    graph->nnz = graph->row_ptr[graph->n];
    for (int64_t row = 0; row < graph->n; row++) {
        const int64_t length = graph->row_ptr[row + 1] - graph->row_ptr[row];
        if (length > graph->largest) graph->largest = length;
    }
}

/** Renumber the graph so that vertex order[i] becomes vertex i. The order of the entries within a row is preserved. */
static void reorder(struct bench_graph *graph, const int64_t *order, int threads)
{
    int32_t *place = bench_new((size_t)graph->n, sizeof *place, threads);
    int32_t *columns = bench_new((size_t)graph->nnz, sizeof *columns, threads);
    int64_t *row_ptr = bench_new((size_t)graph->n + 1, sizeof *row_ptr, threads), to = 0;

    for (int64_t i = 0; i < graph->n; i++) place[order[i]] = (int32_t)i;
    for (int64_t i = 0; i < graph->n; i++) {
        for (int64_t e = graph->row_ptr[order[i]]; e < graph->row_ptr[order[i] + 1]; e++)
            columns[to++] = place[graph->col_idx[e]];
        row_ptr[i + 1] = to;
    }
    free(place);
    bench_graph_fini(graph);
    graph->row_ptr = row_ptr;
    graph->col_idx = columns;
}

void bench_graph_order(struct bench_graph *graph, const char *method, const graft_api *api, int threads)
{
    const graft_mxm_api *mxm = api->get_interface(api->context, GRAFT_MXM_ID);
    graft_csr            csr = GRAFT_INIT(graft_csr);
    graft_error          error = GRAFT_INIT(graft_error);
    graft_matrix        *matrix = NULL;
    int64_t             *order = bench_new((size_t)graph->n, sizeof *order, threads);

    if (mxm == NULL) bench_die("this library has no %s", GRAFT_MXM_ID);
    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = graph->n;
    csr.row_ptr = graph->row_ptr;
    csr.col_idx = graph->col_idx;
    if (mxm->matrix_create(api->context, &csr, 0, &matrix, &error) < 0 ||
        mxm->matrix_order(api->context, matrix, method, order, &error) < 0)
        bench_die("%s", error.message);
    mxm->matrix_destroy(matrix);
    reorder(graph, order, threads);
    free(order);
}

void bench_graph_fini(struct bench_graph *graph)
{
    free(graph->row_ptr);
    free(graph->col_idx);
}

uint8_t *bench_graph_trained(const struct bench_graph *graph, const char *what, const graft_api *api)
{
    const graft_data_api *data = api->get_interface(api->context, GRAFT_DATA_ID);
    graft_data           *set = NULL;
    const uint8_t        *split;
    uint8_t              *trained = NULL;

    if (data->open(api->context, what, &set, NULL) != GRAFT_OK) return NULL;
    split = data->view(set)->split;
    if (split != NULL) trained = bench_new((size_t)graph->n, 1, 1);
    for (int64_t v = 0; split != NULL && v < graph->n; v++) trained[v] = split[v] == GRAFT_SPLIT_TRAIN;
    data->close(set);
    return trained;
}
