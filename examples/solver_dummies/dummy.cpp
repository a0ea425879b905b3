// A solver dummy in C++: heat in a rod. Graft learns while the solver runs, and then takes its place.
//     c++ dummy.cpp -o dummy $(pkg-config --cflags --libs graft) && ./dummy [LIBRARY]
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <graft.hpp>

namespace
{
const int n = 42; // number of points of the rod, including its ends

void solve(std::vector<double> &u)
{
    double before = u[0];
    for (int i = 1; i < n - 1; i++) {
        const double now = u[i];
        u[i] = now + 0.4 * (before - 2 * now + u[i + 1]);
        before = now;
    }
}
} // namespace

int main(int argc, char **argv)
try {
    std::vector<double>       x(n), u(n);
    std::vector<std::int32_t> cells;
    std::vector<std::uint8_t> is_free(n, 1);
    for (int i = 0; i < n; i++) x[i] = i / (n - 1.0), u[i] = 4 * x[i] * (1 - x[i]);
    for (int i = 0; i < n - 1; i++) cells.insert(cells.end(), { i, i + 1 });
    is_free.front() = is_free.back() = 0;

    graft::context context(argc > 1 ? argv[1] : "");
    context.set({ { "hidden", "16" }, { "layers", "2" }, { "lr", "0.003" } });
    const auto  rod = graft::mesh_args(GRAFT_MESH_GHOSTS).coordinates(graft::rows(x, 1)).cells(GRAFT_CELL_LINE, cells);
    graft::mesh mesh(context, graft::ranks(), rod); // over ranks: graft::over(MPI_COMM_WORLD), and ids
    graft::network network(mesh, graft::network_args(1, 1).is_free(is_free));
    graft::stream  stream(network);
    for (int step = 1; step <= 300; step++, solve(u)) {
        stream.offer(graft::rows(u, 1), step);
        stream.step(1000, 1); // trains for at most a second, and at most one step
    }
    std::vector<double> exact(u);
    for (int step = 1; step <= 10; step++, solve(exact)) {
        network.begin(graft::rows(u, 1)); // the solver may compute between these two
        network.end(graft::rows(u, 1));
    }
    double sum = 0, apart = 0;
    for (int i = 0; i < n; i++) sum += u[i], apart += (u[i] - exact[i]) * (u[i] - exact[i]);
    std::printf("loss %.6e error %.6e sum %.17g\n", stream.status().loss, apart, sum);
    return 0;
} catch (const graft::error &failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
}
