// A program in C++: sums over the neighbours on a ring of vertices, of which each rank has four.
//
//     mpicxx example.cpp -o example $(pkg-config --cflags --libs graft)
//     mpiexec -n 3 ./example
//
// SPDX-License-Identifier: Apache-2.0
#include "graft_mpi.hpp"

#include <iostream>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    try {
        graft::context context; // finds libgraft.so.1
        context.set("threads", 1);
        const graft::ranks  ranks = graft::over(MPI_COMM_WORLD);
        const std::int64_t  each = 4, n = each * ranks.size(), first = each * ranks.rank();
        std::vector<double> x, sum(each);

        std::vector<std::int64_t> row_ptr{ 0 }, neighbours;
        for (std::int64_t v = first; v < first + each; v++) {
            neighbours.insert(neighbours.end(), { (v + n - 1) % n, (v + 1) % n });
            row_ptr.push_back(static_cast<std::int64_t>(neighbours.size()));
            x.push_back(static_cast<double>(v));
        }
        graft::graph graph(context, ranks, graft::csr(row_ptr, neighbours, n), first);
        graft::plan  plan(graph);
        plan.begin(graft::rows(x, 1), graft::rows(sum, 1), GRAFT_PLUS_SECOND);
        // The program may compute here while messages are in flight.
        plan.end();

        for (const double value : sum) std::cout << value << ' ';
        std::cout << std::endl;
    } catch (const graft::error &failure) {
        std::cerr << "rank " << failure.rank() << ": " << failure.what() << std::endl;
    }
    MPI_Finalize();
    return 0;
}
