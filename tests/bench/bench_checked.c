/* Measures how much option check = args slows down a small product, compared with check = no. Blocks of calls with each
 * setting alternate in one process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "graft_mxm.h"
#include "graph.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char usage[] = "usage: bench_checked [WIDTH [BLOCKS [GRAPH]]]\n"
                            "Columns of B and C (default: 32), blocks of calls (200), and the graph (rmat:10:8000).";

enum { CALLS_OF_BLOCK = 50, BLOCKS_MOST = 100000 };

struct bench {
    const graft_api     *api;
    const graft_mxm_api *mxm;
    graft_mxm_args       args;
    double              *seconds[2]; /* seconds of a call in each block, for check = no and for check = args */
};

static double bench_block(struct bench *b, const char *check)
{
    graft_error error = GRAFT_INIT(graft_error);
    double      begin;

    if (b->api->set(b->api->context, "check", check, &error) < 0) bench_die("%s", error.message);
    begin = bench_seconds();
    for (int i = 0; i < CALLS_OF_BLOCK; i++)
        if (b->mxm->run(b->api->context, &b->args, &error) < 0) bench_die("%s", error.message);
    return (bench_seconds() - begin) / CALLS_OF_BLOCK;
}

/* Each block measures both settings. The order of the two alternates from block to block. */
static void measure_blocks(struct bench *b, int blocks)
{
    static const char *const check[] = { "no", "args" };
    double                   ratio;

    bench_block(b, "no");
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < 2; i++) {
            const int which = (block + i) % 2;

            b->seconds[which][block] = bench_block(b, check[which]);
        }
    for (int i = 0; i < 2; i++) printf("check=%-5s %9.3f us\n", check[i], 1e6 * bench_median(b->seconds[i], blocks));
    ratio = bench_median(b->seconds[1], blocks) / bench_median(b->seconds[0], blocks);
    printf("args costs %.2f %%\n", 100 * (ratio - 1));
}

int main(int argc, char **argv)
{
    const int64_t      width = argc > 1 ? atoll(argv[1]) : 32;
    const int          blocks = argc > 2 ? atoi(argv[2]) : 200;
    struct bench       b = { 0 };
    struct bench_graph graph;
    graft_csr          csr = GRAFT_INIT(graft_csr);
    graft_dense        in = GRAFT_INIT(graft_dense), out;
    graft_matrix      *a = NULL;
    graft_error        error = GRAFT_INIT(graft_error);

    if (width < 1 || width > 4096 || blocks < 1 || blocks > BLOCKS_MOST || argc > 4) bench_die("%s", usage);
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &b.api, &error) < 0) bench_die("%s", error.message);
    b.mxm = b.api->get_interface(b.api->context, GRAFT_MXM_ID);
    bench_graph_init(&graph, argc > 3 ? argv[3] : "rmat:10:8000", b.api, 1);
    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = graph.n;
    csr.row_ptr = graph.row_ptr;
    csr.col_idx = graph.col_idx;
    if (b.mxm->matrix_create(b.api->context, &csr, 0, &a, &error) < 0) bench_die("%s", error.message);
    in.dtype = GRAFT_F32;
    in.n_rows = graph.n;
    in.n_cols = in.stride = width;
    out = in;
    in.data = bench_new((size_t)(graph.n * width), sizeof(float), 1);
    out.data = bench_new((size_t)(graph.n * width), sizeof(float), 1);
    for (int i = 0; i < 2; i++) b.seconds[i] = bench_new((size_t)blocks, sizeof(double), 1);
    b.args = (graft_mxm_args)GRAFT_INIT(graft_mxm_args);
    b.args.semiring = GRAFT_PLUS_SECOND;
    b.args.threads = 1;
    b.args.a = a;
    b.args.b = &in;
    b.args.c = &out;
    printf("%" PRId64 " vertices, %" PRId64 " entries, width %" PRId64 ", 1 thread\n", graph.n, graph.nnz, width);
    measure_blocks(&b, blocks);
    b.mxm->matrix_destroy(a);
    bench_graph_fini(&graph);
    b.api->close(b.api->context);
    for (int i = 0; i < 2; i++) free(b.seconds[i]);
    free(in.data);
    free(out.data);
    return 0;
}
