// A host in C++17: means over the neighbours of each vertex, with objects that free themselves and errors that are
// thrown.
//
//     c++ -std=c++17 means.cc -o means $(pkg-config --cflags --libs graft)
//     ./means $(pkg-config --variable=library graft)
//
// SPDX-License-Identifier: Apache-2.0
#include "graft.h"
#include "graft_load.h"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

namespace
{

void check(std::int32_t rc, const graft_error &error)
{
    if (rc < 0) throw std::runtime_error(error.message);
}

struct close_context {
    void operator()(const graft_api *api) const
    {
        api->close(api->context);
    }
};
using library = std::unique_ptr<const graft_api, close_context>;

library open_library(const char *path)
{
    auto             error = GRAFT_INIT(graft_error);
    const graft_api *api = nullptr;

    check(graft_load(path, nullptr, &api, &error), error);
    return library(api);
}

/* Get a table of functions, and check that it has the last call that this host uses. */
const graft_mxm_api &products_of(const graft_api &api)
{
    const void *table = graft_interface(&api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, run));

    if (table == nullptr) throw std::runtime_error("this library has no " GRAFT_MXM_ID);
    return *static_cast<const graft_mxm_api *>(table);
}

struct destroy_matrix {
    const graft_api     *api;
    const graft_mxm_api *mxm;

    void operator()(graft_matrix *matrix) const
    {
        mxm->matrix_destroy(matrix);
    }
};
using matrix = std::unique_ptr<graft_matrix, destroy_matrix>;

/* Make a matrix. The arrays of `graph` must live longer than it. */
matrix borrow(const graft_api &api, const graft_mxm_api &mxm, const graft_csr &graph)
{
    auto          error = GRAFT_INIT(graft_error);
    graft_matrix *made = nullptr;

    check(mxm.matrix_create(api.context, &graph, 0, &made, &error), error);
    return matrix(made, destroy_matrix{ &api, &mxm });
}

graft_dense view(std::vector<float> &rows, std::int64_t width)
{
    auto dense = GRAFT_INIT(graft_dense);

    dense.dtype = GRAFT_F32;
    dense.n_cols = dense.stride = width;
    dense.n_rows = static_cast<std::int64_t>(rows.size()) / width;
    dense.data = rows.data();
    return dense;
}

} // namespace

int main(int argc, char **argv)
try {
    const std::vector<std::int64_t> row_ptr{ 0, 2, 3, 4 };
    const std::vector<std::int32_t> col_idx{ 1, 2, 0, 0 };
    const std::vector<float>        one_over_degree{ 0.5f, 1, 1 };
    std::vector<float>              features{ 1, 10, 2, 20, 4, 40 }, means(features.size());

    const library        api = open_library(argc > 1 ? argv[1] : nullptr);
    const graft_mxm_api &mxm = products_of(*api);

    auto graph = GRAFT_INIT(graft_csr);
    graph.index_type = GRAFT_I32;
    graph.n_rows = graph.n_cols = static_cast<std::int64_t>(row_ptr.size()) - 1;
    graph.row_ptr = row_ptr.data();
    graph.col_idx = col_idx.data();
    const matrix a = borrow(*api, mxm, graph);

    const graft_dense b = view(features, 2), c = view(means, 2);
    auto              args = GRAFT_INIT(graft_mxm_args);
    auto              error = GRAFT_INIT(graft_error);
    args.semiring = GRAFT_PLUS_SECOND;
    args.a = a.get();
    args.b = &b;
    args.c = &c;
    args.row_scale = one_over_degree.data();
    check(mxm.run(api->context, &args, &error), error);
    for (std::size_t v = 0; v < means.size(); v += 2) std::printf("(%g, %g)\n", means[v], means[v + 1]);
    return 0;
} catch (const std::exception &fault) {
    std::fprintf(stderr, "means: %s\n", fault.what());
    return 1;
}
