// The program of ../main.c in C++, with the same solver: see ../README.md.
// SPDX-License-Identifier: Apache-2.0
#include "../solver.h"
#include "../vtu.h"
#include <graft_mpi.hpp>

#include <cstdlib>
#include <iostream>

namespace
{

const int run_length = 40, trainings = 5, middle = 50, every = 10;

/// The solver, which frees itself.
struct flow : solver {
    flow(MPI_Comm over, int nodes)
    {
        if (solver_init(this, over, nodes) != 0) throw std::bad_alloc();
    }
    ~flow()
    {
        solver_fini(this);
    }
    flow(const flow &) = delete;
    flow &operator=(const flow &) = delete;
};

graft::context load(const std::string &library, int steps)
{
    graft::context context(library);

    context.set("hidden", 32).set("layers", 3).set("mgn.linear", 2);
    context.set("lr", "0.002").set("mgn.schedule", "cosine:" + std::to_string(trainings * steps));
    context.set("mgn.noise", "0.0003").set("stream.holdout", 20);
    return context;
}

/// Make the mesh from the arrays of the solver.
graft::mesh make_mesh(const graft::context &context, const graft::ranks &ranks, const solver &s)
{
    const std::vector<std::int64_t> ids(s.id, s.id + s.n_nodes);
    const std::vector<std::int32_t> owners(s.owner, s.owner + s.n_nodes), cells(s.cell, s.cell + 3 * s.n_cells);

    return graft::mesh(context, ranks,
                       graft::mesh_args(GRAFT_MESH_GHOSTS)
                           .coordinates(graft::strided(s.x, s.n_nodes, 2, 2, 1))
                           .ids(ids)
                           .owners(owners)
                           .cells(GRAFT_CELL_TRIANGLE, cells));
}

/// The id of a source of the mesh. The nodes of a rank have consecutive ids.
std::int64_t id_of(const solver &s, const graft_mesh_view &view, std::int32_t source)
{
    const std::int64_t k = source - view.n_nodes;
    int                q = 0;

    if (k < 0) return view.id[source];
    while (k >= view.halo_start[q + 1]) q++;
    return static_cast<std::int64_t>(s.side * q / s.n_ranks) * s.side + view.halo_node[k];
}

/// Make a filter, by which a node keeps 90 % of its value and gets 10 % of the mean of its neighbours. On the boundary
/// it is the identity.
graft::plan make_filter(const graft::mesh &mesh, const solver &s)
{
    const graft_mesh_view     view = mesh.view();
    const std::int64_t        n_all = static_cast<std::int64_t>(s.side) * s.side;
    std::vector<std::int64_t> row_ptr{ 0 }, columns;
    std::vector<double>       values;
    std::vector<std::int32_t> owners(static_cast<std::size_t>(view.n_nodes), s.rank);
    auto                      slice = GRAFT_INIT(graft_slice);

    for (std::int64_t i = 0; i < view.n_nodes; i++) {
        const std::int64_t degree = view.row_ptr[i + 1] - view.row_ptr[i];
        const double       share = s.is_free[view.row_of[i]] ? 0.1 : 0;

        columns.push_back(view.id[i]);
        values.push_back(1 - share);
        for (std::int64_t e = view.row_ptr[i]; e < view.row_ptr[i + 1] && share > 0; e++) {
            columns.push_back(id_of(s, view, view.source[e]));
            values.push_back(share / static_cast<double>(degree));
        }
        row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
    }
    const graft_csr rows = graft::csr(row_ptr, columns, n_all, values);
    slice.n_vertices = n_all;
    slice.first_row = static_cast<std::int64_t>(s.first) * s.side;
    slice.rows = &rows;
    slice.owner = owners.data();
    return graft::plan(graft::graph(mesh.of_context(), mesh.of_ranks(), slice), 0, 1);
}

/// Make a network from u to its change in a step. Its constant inputs are the velocity and the boundary of the nodes.
graft::network make_network(const graft::mesh &mesh, const solver &s)
{
    const std::vector<std::uint8_t> is_free(s.is_free, s.is_free + s.n_nodes);
    std::vector<double>             constant;

    for (std::int64_t i = 0; i < s.n_nodes; i++)
        constant.insert(constant.end(),
                        { s.velocity[2 * i], s.velocity[2 * i + 1], static_cast<double>(s.is_free[i]) });
    return graft::network(mesh, graft::network_args(1, 1).constant(graft::rows(constant, 3)).is_free(is_free));
}

class host
{
  public:
    host(const std::string &library, const std::string &folder, MPI_Comm comm, int side, int steps)
        : folder_(folder), steps_(steps), flow_(comm, side),
          mesh_(make_mesh(load(library, steps), graft::over(comm), flow_)), filter_(make_filter(mesh_, flow_)),
          network_(make_network(mesh_, flow_)), stream_(network_), u_(static_cast<std::size_t>(flow_.n_nodes)),
          surrogate_(u_)
    {
    }

    /// Train while the solver runs several times, each time with another initial state.
    void train()
    {
        auto status = GRAFT_INIT(graft_stream_status);

        for (int step = 0; step < steps_; step++) {
            const bool is_first = step % run_length == 0;

            if (is_first) solver_start(&flow_, step / run_length, u_.data());
            stream_.offer(graft::rows(u_, 1), step * SOLVER_STEP, is_first);
            status = stream_.step(1000, trainings);
            advance();
        }
        if (status.held_out > 0) status = stream_.validate();
        if (flow_.rank != 0) return;
        printf("%lld training steps, loss %.3g", static_cast<long long>(status.steps), status.loss);
        if (status.held_out > 0) printf(", of held-out pairs %.3g", status.validation);
        printf("\n");
    }

    /// Solver and surrogate start with the same state of a new run. Their distance is the error of the surrogate.
    void compare(int after)
    {
        solver_start(&flow_, steps_, u_.data());
        surrogate_ = u_;
        const std::vector<double> start = u_;

        write_files(0);
        if (flow_.rank == 0) printf("%8s %12s %12s\n", "steps", "surrogate", "no change");
        for (int step = 1; step <= after; step++) {
            network_.begin(graft::rows(surrogate_, 1));
            advance(); // computes while the first messages are in flight
            network_.end(graft::rows(surrogate_, 1));
            solver_exchange(&flow_, surrogate_.data());
            if (step % every == 0) write_files(step);
            if (step != 1 && step != middle && step != after) continue;
            const double error = solver_distance(&flow_, surrogate_.data(), u_.data());
            const double change = solver_distance(&flow_, start.data(), u_.data());
            if (flow_.rank == 0) printf("%8d %12.4e %12.4e\n", step, error, change);
        }
    }

  private:
    /// Make one step of the solver, and then apply the filter to own nodes.
    void advance()
    {
        const std::int64_t  n = static_cast<std::int64_t>(flow_.end - flow_.first) * flow_.side;
        double             *own = u_.data() + static_cast<std::int64_t>(flow_.first - flow_.low) * flow_.side;
        std::vector<double> smooth(static_cast<std::size_t>(n));

        solver_step(&flow_, u_.data());
        filter_.run(graft::strided(own, n, 1, 1, 1), graft::rows(smooth, 1), GRAFT_PLUS_TIMES,
                    GRAFT_AGGREGATE_STATELESS);
        std::copy(smooth.begin(), smooth.end(), own);
        solver_exchange(&flow_, u_.data());
    }

    void write_files(int step) const
    {
        const vtu files = { folder_.c_str(),
                            flow_.rank,
                            flow_.n_ranks,
                            flow_.n_nodes,
                            flow_.n_own_cells,
                            flow_.x,
                            flow_.cell,
                            { "solver", "surrogate" },
                            { u_.data(), surrogate_.data() } };

        if (folder_.empty()) return;
        if (vtu_write(&files, step) != 0 ||
            (flow_.rank == 0 && vtu_write_times(folder_.c_str(), every, step, SOLVER_STEP) != 0))
            throw std::runtime_error("cannot write to " + folder_);
    }

    const std::string   folder_;
    const int           steps_;
    flow                flow_;
    graft::mesh         mesh_;
    graft::plan         filter_;
    graft::network      network_;
    graft::stream       stream_;
    std::vector<double> u_, surrogate_;
};

} // namespace

int main(int argc, char **argv)
{
    const int side = argc > 3 ? std::atoi(argv[3]) : 24, steps = argc > 4 ? std::atoi(argv[4]) : 800,
              after = argc > 5 ? std::atoi(argv[5]) : 100;
    int      n_ranks, result = 0;
    MPI_Comm comm;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_size(comm, &n_ranks);
    try {
        if (argc < 2 || argc > 6 || side < 3 || side < n_ranks || steps < 2 || after < 1)
            throw std::invalid_argument("usage: heat LIBRARY [FOLDER [SIDE [STEPS [AFTER]]]], see README.md");
        host run(argv[1], argc > 2 ? argv[2] : "", comm, side, steps);
        run.train();
        run.compare(after);
    } catch (const std::exception &failure) {
        std::cerr << "heat: " << failure.what() << std::endl;
        result = 1;
    }
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return result;
}
