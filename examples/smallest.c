/* The smallest host: load Graft, multiply a small graph, swap the kernel between two calls, and print both results.
 *
 *     cc smallest.c -o smallest $(pkg-config --cflags --libs graft)
 *     ./smallest $(pkg-config --variable=library graft)
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_mxm.h"

#include <stdio.h>

enum { N = 5, WIDTH = 2 };

/* Five vertices: the path 0 - 1 - 2 - 3, and vertex 4 alone. Row v of the matrix has the vertices from which v gathers;
 * they are col_idx[row_ptr[v]] to col_idx[row_ptr[v + 1] - 1]. There are no values: every edge has weight 1. */
static const int64_t row_ptr[N + 1] = { 0, 1, 3, 5, 6, 6 };
static const int32_t col_idx[6] = { 1, 0, 2, 1, 3, 2 };

/* The mean over the neighbours is their sum times 1 / (their number). Vertex 4 has no neighbours, so its factor has no
 * effect. */
static const float one_over_degree[N] = { 1, 0.5f, 0.5f, 1, 0 };

static float features[N][WIDTH] = { { 1, 10 }, { 2, 20 }, { 3, 30 }, { 4, 40 }, { 5, 50 } };
static float mean[N][WIDTH];

/* Choose a kernel, run the product, and print the result. A call that fails returns a negative status and fills
 * `error`. */
static int32_t multiply_with(const char *kernel, const graft_api *api, const graft_mxm_api *mxm, graft_mxm_args *args,
                             graft_error *error)
{
    char    explained[256] = "";
    int32_t rc = api->set(api->context, "mxm.kernel", kernel, error);

    if (rc >= 0) rc = mxm->run(api->context, args, error);
    if (rc >= 0) rc = mxm->explain(api->context, NULL, explained, sizeof explained, error); /* describes the last run */
    if (rc < 0) return rc;
    printf("mxm.kernel = %s\n%s", kernel, explained);
    for (int v = 0; v < N; v++) printf("  vertex %d: mean of neighbours (%g, %g)\n", v, mean[v][0], mean[v][1]);
    return rc;
}

int main(int argc, char **argv)
{
    const graft_api     *api = NULL;
    const graft_mxm_api *mxm = NULL;
    graft_matrix        *matrix = NULL;
    graft_error          error = GRAFT_INIT(graft_error); /* GRAFT_INIT sets `size`, the version of the struct */

    /* 1. Load the library and open a context in it. Without a path the dynamic linker looks for it. */
    int32_t rc = graft_load(argc > 1 ? argv[1] : NULL, NULL, &api, &error);
    if (rc < 0) goto done;

    /* 2. Fetch an interface. NULL means that this library lacks it, or has an older and shorter table. */
    mxm = graft_interface(api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, explain));
    if (mxm == NULL) goto done;

    /* 3. Pass our arrays to the library. They are borrowed, not copied, and checked because trust is 0. */
    graft_csr graph = GRAFT_INIT(graft_csr);
    graph.index_type = GRAFT_I32;
    graph.n_rows = graph.n_cols = N;
    graph.row_ptr = row_ptr;
    graph.col_idx = col_idx;
    rc = mxm->matrix_create(api->context, &graph, 0, &matrix, &error);
    if (rc < 0) goto done;

    graft_dense b = GRAFT_INIT(graft_dense), c = GRAFT_INIT(graft_dense);
    b.dtype = c.dtype = GRAFT_F32;
    b.n_rows = c.n_rows = N;
    b.n_cols = c.n_cols = b.stride = c.stride = WIDTH;
    b.data = features;
    c.data = mean;

    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    args.semiring = GRAFT_PLUS_SECOND; /* sums of rows of B, because the graph has no values */
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    args.row_scale = one_over_degree;

    /* 4. Run the product with two kernels. The option is live, so it may change between two calls. */
    rc = multiply_with("reference", api, mxm, &args, &error);
    if (rc >= 0) rc = multiply_with("graphblas", api, mxm, &args, &error);

done:
    /* 5. Destroy everything in the opposite order; objects that were not created are NULL, which is legal. */
    if (rc < 0) fprintf(stderr, "smallest: %s\n", error.message);
    if (api != NULL && mxm == NULL) fprintf(stderr, "smallest: this library has no %s\n", GRAFT_MXM_ID);
    if (mxm != NULL) mxm->matrix_destroy(matrix);
    if (api != NULL) api->close(api->context);
    return rc < 0 || mxm == NULL;
}
