// Checks graft.hpp in one process: lifetimes, exceptions, views, products and halos. test_cxx.py runs it: test_cxx
// LIBRARY.
#include "graft.hpp"

#include "harness/tap.h"

#include <array>
#include <cmath>
#include <cstring>
#include <thread>

namespace
{

/* Whether a call throws graft::error with this code and words. */
template <class Call> bool throws(std::int32_t code, const char *words, Call call)
{
    try {
        call();
    } catch (const graft::error &failure) {
        if (failure.code() == code && std::strstr(failure.what(), words) != nullptr) return true;
        diag("%d: %s", failure.code(), failure.what());
        return false;
    }
    return false;
}

void test_context(const std::string &path)
{
    graft::context context(path);

    ok(throws(GRAFT_ERR_NOT_FOUND, "/nowhere/libgraft.so", [] { graft::context none("/nowhere/libgraft.so"); }),
       "a library that is not there is an exception with its path");
    const char *const none = nullptr;
    ok(graft::context(none).api().version == context.api().version, "a null path is the library that the linker finds");
    ok(throws(GRAFT_ERR_OPTION, "halo.timeout", [&] { context.set("halo.timeouts", 3); }), "so is an unknown option");
    context.set({ { "threads", "2" }, { "lr", "0.5" } }).set("seed", 7).set("lr", 0.25);
    auto option = GRAFT_INIT(graft_option);
    for (std::int32_t i = 0; context.api().option_info(context.get(), i, &option, nullptr) >= 0; i++)
        if (std::strcmp(option.key, "lr") == 0) break;
    ok(std::strcmp(option.value, "0.25") == 0, "options are set by text and by number");
}

/* Objects that are left when a context closes are reported in one line of the log. */
void test_logger(const std::string &path)
{
    int          lines = 0;
    graft_graph *left = nullptr;
    auto         slice = GRAFT_INIT(graft_slice);
    const auto   log = [&lines](graft_log_level, const char *) {
        lines++;
        throw std::runtime_error("of the logger");
    };
    std::unique_ptr<graft::context> context(new graft::context(path, log));
    const graft_graph_api          &graphs = context->table<graft_graph_api>();

    graft::detail::call(graphs.create, context->get(), nullptr, &slice, &left);
    context.reset();
    graphs.destroy(left);
    ok(lines > 0, "a logger that throws does no harm");
}

/* A ring of n vertices with values 1 and 2, and the expected products of the ring and of its transpose with x. */
struct ring {
    std::vector<std::int64_t> row_ptr{ 0 };
    std::vector<std::int32_t> columns;
    std::vector<double>       values, x, forward, backward;

    explicit ring(std::int32_t n) : forward(static_cast<std::size_t>(n)), backward(forward)
    {
        for (std::int32_t v = 0; v < n; v++) {
            const std::int32_t left = (v + n - 1) % n, right = (v + 1) % n;

            columns.insert(columns.end(), { left, right });
            values.insert(values.end(), { 1, 2 });
            row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
            x.push_back(std::sqrt(1.0 + v));
        }
        for (std::size_t v = 0; v < x.size(); v++)
            for (std::size_t k = 0; k < 2; k++) {
                const auto u = static_cast<std::size_t>(columns[2 * v + k]);

                forward[v] += values[2 * v + k] * x[u];
                backward[u] += values[2 * v + k] * x[v];
            }
    }
};

bool near(const std::vector<double> &a, const std::vector<double> &b)
{
    double apart = a.size() == b.size() ? 0 : 1;

    for (std::size_t i = 0; i < a.size() && i < b.size(); i++) apart = std::fmax(apart, std::fabs(a[i] - b[i]));
    return apart < 1e-14;
}

/* Replace the values of the edges. An existing plan must use the new values. */
void test_values(const std::string &path)
{
    ring                of(5);
    std::vector<double> result(5);
    graft::context      context(path);
    graft::graph        graph(context, graft::ranks(), graft::csr(of.row_ptr, of.columns, 5, of.values));
    graft::plan         plan(graph, 0, 1);

    for (double &value : of.values) value *= -4;
    for (double &sum : of.forward) sum *= -4;
    graph.update_values(of.values);
    plan.run(graft::rows(of.x, 1), graft::rows(result, 1));
    ok(near(result, of.forward), "a product has the new values of the graph");
    of.values.pop_back();
    ok(throws(GRAFT_ERR_ARG, "10 edges", [&] { graph.update_values(of.values); }), "9 values of 10 are refused");
    ok(throws(GRAFT_ERR_ARG, "dtype", [&] { graph.update_values(std::array<float, 10>()); }), "and another type");
}

/* Return a plan whose graph and context objects have gone out of scope. */
graft::plan plan_of(const std::string &path, const ring &of, std::int32_t n)
{
    graft::context context(path);
    graft::graph   graph(context, graft::ranks(), graft::csr(of.row_ptr, of.columns, n, of.values));

    ok(graph.owned() == (std::vector<std::int64_t>{ 0, 1, 2, 3, 4, 5, 6 }) && graph.info().n_edges == 14,
       "a graph has its vertices and edges");
    return graft::plan(graph, GRAFT_PLAN_TRANSPOSED, 1);
}

void test_plan(const std::string &path)
{
    const ring          of(7);
    std::vector<double> result(7);
    graft::plan         first = plan_of(path, of, 7), plan(std::move(first));

    ok(first.get() == nullptr && plan.get() != nullptr, "a plan is moved");
    plan.run(graft::rows(of.x, 1), graft::rows(result, 1));
    ok(near(result, of.forward), "a product is right, without the graph and the context that made the plan");
    plan.run(graft::rows(of.x, 1), graft::rows(result, 1), GRAFT_PLUS_TIMES, GRAFT_AGGREGATE_TRANSPOSE);
    ok(near(result, of.backward), "and the transposed one");
    ok(throws(GRAFT_ERR_STATE, "", [&] { plan.end(); }), "an end without a begin is an exception");
    std::array<double, 6> small{};
    ok(throws(GRAFT_ERR_ARG, "6", [&] { plan.run(graft::rows(of.x, 1), graft::rows(small, 1)); }),
       "so is an array of another size");
    ok(throws(GRAFT_ERR_ARG, "7 elements", [&] { graft::rows(result, 2); }), "and one that has no such rows");
    std::vector<double> wide(14);
    ok(throws(GRAFT_ERR_ARG, "follow each other", [&] { plan.run(graft::columns(wide, 2), graft::columns(wide, 2)); }),
       "products need node-major arrays");
    plan = plan_of(path, of, 7);
    plan.run(graft::rows(of.x, 1), graft::rows(result, 1));
    ok(near(result, of.forward) && plan.info().passes == 1 && plan.explain().find("rank") != std::string::npos,
       "a plan is replaced");
}

void test_views()
{
    float        a[6] = { 1, 2, 3, 4, 5, 6 };
    const double b[2] = { 1, 2 };

    const graft::output by_column = graft::strided(a, 3, 2, 1, 3);
    const graft_field  &field = *by_column.get();
    ok(field.dtype == GRAFT_F32 && field.n_rows == 3 && field.column_stride == 3 && field.data == a,
       "a view of columns has their stride");
    const graft::input only_read = graft::strided(b, 1, 2, 2, 1);
    ok(only_read.get()->dtype == GRAFT_F64 && only_read.get()->n_columns == 2, "constant elements make an input");
    static_assert(!std::is_convertible<graft::input, graft::output>::value, "an input is no output");
    static_assert(!std::is_copy_constructible<graft::plan>::value, "objects are not copied");
    static_assert(std::is_nothrow_move_constructible<graft::plan>::value, "they are moved");
}

/* If one of two ranks refuses its arguments before the library sees them, both ranks must throw at the end of the
 * call. */
bool both_refuse(const graft::ranks &ranks, const std::function<void()> &begin, const std::function<void()> &end)
{
    begin();
    return throws(GRAFT_ERR_ARG, ranks.rank() == 1 ? "follow each other" : "rank 1: args", end);
}

bool views_are_refused(graft::context &context, const graft::ranks &ranks, graft::graph &graph, graft::halo &halo)
{
    context.set("halo.staleness", 1);
    graft::plan steps(graph);
    context.set("halo.staleness", 0);
    graft::plan         plan(graph);
    std::vector<double> wide(16), own(8), out(8), few(4);
    const auto          x = ranks.rank() == 1 ? graft::columns(wide, 2) : graft::rows(own, 2);
    const auto          rows = ranks.rank() == 1 ? graft::columns(wide, 2) : graft::rows(few, 2);

    return both_refuse(
               ranks, [&] { plan.begin(x, graft::rows(out, 2)); }, [&] { plan.end(); }) &&
           both_refuse(
               ranks, [&] { steps.begin(x, graft::rows(out, 2), GRAFT_PLUS_TIMES, GRAFT_AGGREGATE_STATELESS); },
               [&] { steps.end(); }) &&
           both_refuse(
               ranks, [] {}, [&] { steps.begin(x, graft::rows(out, 2)); }) &&
           both_refuse(
               ranks, [&] { halo.begin(graft::rows(own, 2), rows); }, [&] { halo.end(); }) &&
           both_refuse(ranks, [&] { halo.begin_sum(graft::rows(own, 2), rows); }, [&] { halo.end(); });
}

/* One of two ranks, which are threads. It gets rows of the other rank in its halo, and sums return to their owners. */
void halo_rank(const std::string &path, const graft_transport &transport, bool *good)
{
    graft::context                  context(path);
    const graft::ranks              ranks(transport);
    const ring                      of(8);
    const std::int64_t              first = 4 * ranks.rank();
    const std::vector<std::int64_t> row_ptr{ 0, 2, 4, 6, 8 };
    const std::vector<std::int32_t> columns(of.columns.begin() + 2 * first, of.columns.begin() + 2 * first + 8);
    graft::graph                    graph(context, ranks, graft::csr(row_ptr, columns, 8), first);
    graft::halo                     halo(graph);
    std::vector<double>             owned(of.x.begin() + first, of.x.begin() + first + 4);
    std::vector<double>             received(static_cast<std::size_t>(halo.info().n_halo));

    *good = views_are_refused(context, ranks, graph, halo);
    halo.exchange(graft::rows(owned, 1), graft::rows(received, 1));
    *good = *good && received.size() == 2;
    for (std::size_t k = 0; k < received.size(); k++)
        *good = *good && received[k] == of.x[static_cast<std::size_t>(halo.info().vertex[k])];
    halo.begin_sum(graft::rows(owned, 1), graft::rows(received, 1));
    halo.end();
    *good = *good && owned[0] == 2 * of.x[static_cast<std::size_t>(first)] &&
            owned[1] == of.x[static_cast<std::size_t>(first) + 1];
}

/* Rank 0 makes no call. Rank 1 must throw because of this silence, and not because of its own wrong arguments. */
void silent_rank(const std::string &path, const graft_transport &transport, bool *good)
{
    graft::context                  context(path);
    const graft::ranks              ranks(transport);
    const std::vector<std::int64_t> row_ptr{ 0, 1 };
    const std::vector<std::int32_t> columns{ 1 - ranks.rank() };

    context.set("halo.timeout", 3);
    graft::graph        graph(context, ranks, graft::csr(row_ptr, columns, 2), ranks.rank());
    graft::halo         halo(graph);
    std::vector<double> wide(4), own(2);

    *good = ranks.rank() == 0;
    if (*good) return;
    halo.begin(graft::rows(own, 2), graft::columns(wide, 2));
    *good = throws(GRAFT_ERR_PEER, "rank 0", [&] { halo.end(); }) &&
            throws(GRAFT_ERR_PEER, "rank 0", [&] { halo.begin(graft::rows(own, 2), graft::columns(wide, 2)); });
}

/* Make the points of a rod on one of two ranks, with ghosts. */
graft::mesh rod_of(const graft::context &context, const graft::ranks &ranks)
{
    std::vector<double>       x;
    std::vector<std::int64_t> ids;
    std::vector<std::int32_t> owners, cells;

    for (std::int32_t i = 0; i < 6; i++) {
        ids.push_back(4 * ranks.rank() + i);
        owners.push_back(ids.back() < 5 ? 0 : 1);
        x.push_back(0.1 * static_cast<double>(ids.back()));
        if (i < 5) cells.insert(cells.end(), { i, i + 1 });
    }
    auto rod = graft::mesh_args(GRAFT_MESH_GHOSTS).coordinates(graft::rows(x, 1)).ids(ids).owners(owners);
    return graft::mesh(context, ranks, rod.cells(GRAFT_CELL_LINE, cells));
}

/* A state of two columns that shrinks from step to step, in both layouts. */
struct shrinking {
    std::vector<double> by_row, by_column;

    explicit shrinking(int step) : by_row(12), by_column(12)
    {
        for (std::size_t i = 0; i < 6; i++) {
            by_row[2 * i] = by_column[i] = std::pow(0.9, step) * static_cast<double>(i);
            by_row[2 * i + 1] = by_column[6 + i] = std::pow(0.9, step);
        }
    }
};

bool same_in_both_layouts(graft::network &network)
{
    shrinking now(3);
    bool      same = true;

    try {
        network.infer(graft::rows(now.by_row, 2), graft::rows(now.by_row, 3));
        same = false;
    } catch (const graft::error &refused) {
        same = refused.code() == GRAFT_ERR_ARG; /* after the exception no inference may be unfinished */
    }
    network.infer(graft::rows(now.by_row, 2), graft::rows(now.by_row, 2));
    network.infer(graft::columns(now.by_column, 2), graft::columns(now.by_column, 2));
    for (std::size_t i = 1; i < 5; i++)
        same = same && now.by_row[2 * i] == now.by_column[i] && std::isfinite(now.by_row[2 * i]);
    return same;
}

/* An exception of a callback must reach the caller unchanged. */
bool callbacks_throw(graft::network &network)
{
    shrinking  state(0);
    const auto stop = [](std::int32_t step) { return step == 2; };
    const auto fail = [](std::int32_t step) -> bool { return step == 3 ? throw std::out_of_range("three") : false; };
    const auto roll = [&](const std::function<bool(std::int32_t)> &after) {
        network.rollout(graft::rows(state.by_row, 2), graft::rows(state.by_row, 2), 5, after);
    };

    try {
        roll(fail);
        return false;
    } catch (const std::out_of_range &thrown) {
        return std::strcmp(thrown.what(), "three") == 0 && throws(GRAFT_ERR_CANCELLED, "", [&] { roll(stop); });
    }
}

/* If containers are too short on one of two ranks, both ranks must refuse them before the library reads them. */
bool arrays_are_sized(const graft::mesh &mesh)
{
    const bool                      wrong = mesh.of_ranks().rank() == 1;
    const std::vector<std::uint8_t> is_free(wrong ? 5 : 6, 1), types{ GRAFT_CELL_LINE, GRAFT_CELL_QUAD };
    const std::vector<double>       weight(wrong ? 7 : 6, 1.0);
    const std::vector<std::int32_t> nodes(5, 0);
    const char                     *other = "rank 1: args is null";

    return throws(GRAFT_ERR_ARG, wrong ? "is_free has 5" : other,
                  [&] { graft::network none(mesh, graft::network_args(2, 2).is_free(is_free)); }) &&
           throws(GRAFT_ERR_ARG, wrong ? "loss_weight has 7" : other,
                  [&] { graft::network none(mesh, graft::network_args(2, 2).loss_weight(weight)); }) &&
           throws(GRAFT_ERR_ARG, "5 nodes of cells, expected 6",
                  [&] { graft::mesh_args(GRAFT_MESH_GHOSTS).cells(types, nodes); });
}

void network_rank(const std::string &path, const graft_transport &transport, bool *good)
{
    graft::context     context(path);
    const graft::ranks ranks(transport);

    context.set({ { "hidden", "8" }, { "layers", "1" }, { "threads", "1" }, { "profile", "yes" } });
    graft::mesh    mesh = rod_of(context, ranks);
    graft::network network(mesh, graft::network_args(2, 2));
    *good = mesh.info().n_nodes == 10 && mesh.info().n_edges == 18 && mesh.view().n_nodes == 5;
    for (int step = 0; step < 6; step++) {
        const shrinking now(step), next(step + 1);

        if (step % 2 == 0) network.train(graft::rows(now.by_row, 2), graft::columns(next.by_column, 2));
        else network.train(graft::columns(now.by_column, 2), graft::rows(next.by_row, 2));
    }
    const shrinking first(0), second(1);
    const double    loss = network.gradient(graft::rows(first.by_row, 2), graft::rows(second.by_row, 2));
    *good = *good && network.info().n_steps == 6 && std::isfinite(loss) && same_in_both_layouts(network) &&
            callbacks_throw(network);
    *good = *good && arrays_are_sized(mesh) && network.times(0).bytes_sent > 0 && network.times(-2).seconds > 0 &&
            throws(GRAFT_ERR_ARG, "layer is 1", [&] { network.times(1); });
    *good = *good && throws(GRAFT_ERR_NOT_FOUND, "/nowhere", [&] { network.load("/nowhere/network"); });
}

void stream_rank(const std::string &path, const graft_transport &transport, bool *good)
{
    graft::context     context(path);
    const graft::ranks ranks(transport);

    context.set({ { "hidden", "8" }, { "layers", "1" }, { "threads", "1" } });
    graft::network network(rod_of(context, ranks), graft::network_args(2, 2));
    graft::stream  stream(network);
    for (int step = 0; step < 20; step++) {
        const shrinking now(step);

        if (step % 2 == 0) stream.offer(graft::rows(now.by_row, 2), step, step == 10);
        else stream.offer(graft::columns(now.by_column, 2), step);
        stream.step(1000, 1);
    }
    const graft_stream_status status = stream.status();
    *good = status.offered == 20 && status.pairs == 18 && status.steps > 10 && std::isfinite(status.loss);
    shrinking broken(0), whole(0);
    if (ranks.rank() == 0) broken.by_row[3] = std::nan("");
    *good = *good && throws(GRAFT_ERR_NONFINITE, "", [&] { stream.offer(graft::rows(broken.by_row, 2), 20); });
    *good = *good && throws(GRAFT_ERR_ARG, "", [&] { stream.offer(graft::rows(whole.by_row, 3), 20); });
    *good = *good && throws(GRAFT_ERR_STATE, "", [&] { graft::stream second(network); });
    stream.offer(graft::rows(whole.by_row, 2), graft::columns(whole.by_column, 2), 20);
    *good = *good && stream.status().pairs == 19;
}

template <class Body> bool on_two_ranks(const std::string &path, Body body)
{
    graft::context  context(path);
    graft_transport transports[2] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport) };
    bool            good[2];

    graft::detail::call(context.table<graft_transport_api>().threads, context.get(), 2, transports);
    std::thread other(body, path, std::cref(transports[1]), &good[1]);
    body(path, transports[0], &good[0]);
    other.join();
    return good[0] && good[1];
}

} // namespace

int main(int, char **argv)
{
    test_context(argv[1]);
    test_logger(argv[1]);
    test_views();
    test_plan(argv[1]);
    test_values(argv[1]);
    ok(on_two_ranks(argv[1], halo_rank), "two ranks exchange halos and sum them");
    ok(on_two_ranks(argv[1], silent_rank), "a rank that is left throws this");
    ok(on_two_ranks(argv[1], network_rank), "two ranks train and infer in both layouts; callbacks throw");
    ok(on_two_ranks(argv[1], stream_rank), "two ranks train online");
    return done();
}
