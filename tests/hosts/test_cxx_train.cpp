// Checks graft.hpp: products with masks, data sets and training. test_cxx.py runs it: test_cxx_train LIBRARY DATASET
// SCRATCH.
#include "graft.hpp"

#include "harness/tap.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
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
    }
    return false;
}

/* A matrix of 7 rows and 5 columns with small whole numbers, so that sums are exact. Row 3 is empty. */
struct sample {
    enum { n_rows = 7, n_columns = 5, width = 3 };
    std::vector<std::int64_t> row_ptr{ 0 };
    std::vector<std::int32_t> columns;
    std::vector<double>       values, b;

    sample()
    {
        for (int i = 0; i < n_rows; i++) {
            for (int j = 0; j < n_columns; j++)
                if (i != 3 && (i + 2 * j) % 3 != 0) {
                    columns.push_back(j);
                    values.push_back((3 * i + 5 * j) % 7 - 3);
                }
            row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
        }
        for (int k = 0; k < n_columns * width; k++) b.push_back((5 * k) % 11 - 5);
    }
    /* Element (i, j) of the product, by its definition. */
    double product(graft_semiring semiring, int i, int j) const
    {
        const bool is_second = semiring % 2 == 0;
        double     z = 0;

        for (auto e = row_ptr[static_cast<std::size_t>(i)]; e < row_ptr[static_cast<std::size_t>(i) + 1]; e++) {
            const auto   at = static_cast<std::size_t>(e);
            const double right = b[static_cast<std::size_t>(columns[at] * width + j)];
            const double x = is_second ? right : values[at] * right;
            const bool   is_first = e == row_ptr[static_cast<std::size_t>(i)];

            if (semiring <= GRAFT_PLUS_SECOND) z += x;
            else if (is_first) z = x;
            else z = semiring <= GRAFT_MAX_SECOND ? std::max(z, x) : std::min(z, x);
        }
        return z;
    }
    graft_csr csr() const
    {
        return graft::csr(row_ptr, columns, n_columns, values);
    }
};

void test_semirings(const graft::context &context, const sample &of)
{
    const graft::matrix a(context, of.csr());
    bool                good = a.n_rows() == 7 && a.n_columns() == 5 && a.n_entries() == 20;

    for (graft_semiring semiring = GRAFT_PLUS_TIMES; semiring <= GRAFT_MIN_SECOND; semiring++) {
        std::vector<double> c(21, 99), more(21, 1);

        a.run(graft::rows(of.b, 3), graft::rows(c, 3), semiring);
        a.run(graft::rows(of.b, 3), graft::rows(more, 3), semiring, GRAFT_MXM_ACCUMULATE);
        for (int k = 0; k < 21; k++) {
            const double z = of.product(semiring, k / 3, k % 3), one = k / 3 == 3 ? 1 : z;
            const double both = semiring <= GRAFT_PLUS_SECOND  ? 1 + z
                                : semiring <= GRAFT_MAX_SECOND ? std::max(1.0, one)
                                                               : std::min(1.0, one);

            good = good && c[static_cast<std::size_t>(k)] == z && more[static_cast<std::size_t>(k)] == both;
        }
    }
    ok(good, "products are right with all semirings, also where they accumulate");
    ok(a.explain().find(" ran") != std::string::npos && a.bytes() >= 0, "and explained");
}

/* Check which elements of a product were written; the others still have their initial value -7. */
template <class IsAllowed>
bool written(const sample &of, const std::vector<double> &c, double forbidden, IsAllowed is_allowed)
{
    for (int k = 0; k < 21; k++) {
        const double expected = is_allowed(k / 3, k % 3) ? of.product(GRAFT_PLUS_TIMES, k / 3, k % 3) : forbidden;

        if (c[static_cast<std::size_t>(k)] != expected) return false;
    }
    return true;
}

void test_masks(const graft::context &context, const sample &of)
{
    const graft::matrix             a(context, of.csr());
    const std::vector<std::uint8_t> row_bits{ 0x25 }, bits{ 1, 2, 3, 4, 5, 6, 7 }, few(6, 1);
    std::vector<std::uint8_t>       present(21, 1), values(21, 0);
    const auto                      run = [&](const graft::mask &mask, std::uint32_t flags) {
        std::vector<double> c(21, -7);

        a.run(graft::rows(of.b, 3), graft::rows(c, 3), mask, GRAFT_PLUS_TIMES, flags);
        return c;
    };

    present[4] = values[5] = values[9] = 0;
    values[5] = values[8] = values[4] = 1;
    const auto in_row = [&](int i, int) { return (row_bits[0] >> i & 1) != 0; };
    const auto in_bits = [&](int i, int j) { return (bits[static_cast<std::size_t>(i)] >> j & 1) != 0; };
    ok(written(of, run(graft::mask::rows(row_bits), 0), -7, in_row) &&
           written(of, run(graft::mask::rows(row_bits, GRAFT_MASK_COMPLEMENT), GRAFT_MXM_REPLACE), 0,
                   [&](int i, int j) { return !in_row(i, j); }),
       "masks of rows, and their complement");
    ok(written(of, run(graft::mask::bits(bits, 1), GRAFT_MXM_REPLACE), 0, in_bits), "masks of bits");
    ok(written(of, run(graft::mask::bytes(present, 3), 0), -7, [](int i, int j) { return 3 * i + j != 4; }) &&
           written(of, run(graft::mask::bytes(present, 3).values(values), 0), -7,
                   [](int i, int j) { return 3 * i + j == 5 || 3 * i + j == 8; }) &&
           written(of, run(graft::mask::bytes(present, 3, GRAFT_MASK_STRUCTURE).values(values), 0), -7,
                   [](int i, int j) { return 3 * i + j != 4; }),
       "masks of bytes, with values and without");
    ok(throws(GRAFT_ERR_ARG, "6 bytes, and needs 7", [&] { run(graft::mask::bits(few, 1), 0); }) &&
           throws(GRAFT_ERR_ARG, "7 values", [&] { graft::mask::bytes(present, 3).values(bits); }),
       "arrays that are too short are refused");
}

void test_matrices(const graft::context &context, const sample &of)
{
    std::vector<double> values = of.values, x(7, 1), once(5), twice(5);
    graft::matrix       a(context, of.csr()), t = a.transpose();

    t.run(graft::rows(x, 1), graft::rows(once, 1));
    for (double &value : values) value *= 2;
    a.update_values(values);
    t.update_values(a);
    t.run(graft::rows(x, 1), graft::rows(twice, 1));
    bool good = std::any_of(once.begin(), once.end(), [](double value) { return value != 0; });
    for (std::size_t j = 0; j < 5; j++) {
        double expected = 0;
        for (std::size_t e = 0; e < values.size(); e++)
            if (of.columns[e] == static_cast<std::int32_t>(j)) expected += values[e];
        good = good && twice[j] == expected && 2 * once[j] == expected;
    }
    ok(good && t.n_rows() == 5, "transposes have the values of their matrix, also new ones");

    const std::vector<std::int64_t> ring_ptr{ 0, 1, 2, 3 };
    const std::vector<std::int32_t> next{ 1, 2, 0 };
    const std::vector<double>       y{ 5, 6, 7 };
    std::vector<double>             z(3);
    graft::matrix                   ring(context, graft::csr(ring_ptr, next, 3));
    std::vector<std::int64_t>       order = ring.order("degree");
    std::sort(order.begin(), order.end());
    graft::matrix moved = ring.permute({ 2, 0, 1 });
    moved.run(graft::rows(y, 1), graft::rows(z, 1));
    ok(order == std::vector<std::int64_t>{ 0, 1, 2 } && z == std::vector<double>{ 6, 7, 5 }, "vertices are reordered");
    moved = std::move(ring);
    moved.run(graft::rows(y, 1), graft::rows(z, 1));
    ok(z == std::vector<double>{ 6, 7, 5 } && ring.get() == nullptr, "and matrices moved");
    ok(throws(GRAFT_ERR_ARG, "19 values", [&] { a.update_values(std::vector<double>(19)); }) &&
           throws(GRAFT_ERR_ARG, "another type", [&] { a.update_values(std::vector<float>(20)); }) &&
           throws(GRAFT_ERR_FORMAT, "column", [&] { graft::matrix(context, graft::csr(ring_ptr, next, 2)); }),
       "wrong values and columns are refused");
}

/* A ring of vertices, of which a rank has `n`, beginning with vertex `first`. A feature of each vertex tells its
 * class. */
struct ring_data {
    std::vector<std::int64_t> row_ptr{ 0 };
    std::vector<std::int32_t> columns, labels;
    std::vector<float>        x, y;
    std::vector<std::uint8_t> split;
    std::int64_t              n, first, n_all;

    ring_data(std::int64_t size, std::int64_t begin, std::int64_t all) : n(size), first(begin), n_all(all)
    {
        for (std::int64_t v = first; v < first + n; v++) {
            columns.insert(columns.end(), { std::int32_t((v + n_all - 1) % n_all), std::int32_t((v + 1) % n_all) });
            row_ptr.push_back(static_cast<std::int64_t>(columns.size()));
            labels.push_back(v % 10 < 5 ? 0 : 1);
            x.push_back(static_cast<float>(std::sin(v)));
            x.push_back(static_cast<float>(labels.back()));
            y.push_back(x[x.size() - 2] / 2);
            split.push_back(static_cast<std::uint8_t>(1 + v % 3));
        }
    }
    graft::dataset described() const
    {
        return graft::dataset(graft::csr(row_ptr, columns, n_all), first)
            .features(graft::rows(x, 2))
            .labels(labels, 2)
            .split(split);
    }
};

void set_model(graft::context &context)
{
    context.set({ { "model", "sage" }, { "layers", "2" }, { "hidden", "8" }, { "epochs", "12" }, { "lr", "0.05" } });
    context.set({ { "threads", "1" }, { "profile", "yes" } });
}

/* Return a trainer whose context and description have gone out of scope. */
graft::trainer trainer_of(const std::string &path, const ring_data &ring)
{
    graft::context context(path);

    set_model(context);
    return graft::trainer(context, ring.described());
}

bool same(const std::vector<graft::state_item> &a, const std::vector<graft::state_item> &b)
{
    bool good = a.size() == b.size() && a.size() > 10;

    for (std::size_t i = 0; i < a.size() && good; i++)
        good = a[i].name == b[i].name && a[i].shape == b[i].shape && a[i].bytes == b[i].bytes;
    return good;
}

void test_training(const std::string &path, const std::string &scratch)
{
    const ring_data   ring(40, 0, 40);
    const std::string file = scratch + "/model.safetensors";
    graft::trainer    trainer = trainer_of(path, ring), second = trainer_of(path, ring), third = trainer_of(path, ring);
    int               epochs = 0;

    const graft_epoch half = trainer.train([&](const graft_epoch &) { return ++epochs == 6; });
    const auto        state = trainer.state();
    trainer.save(file);
    const graft_epoch last = trainer.train();
    ok(half.epoch == 6 && last.epoch == 12 && last.done == 1 && last.loss < half.loss, "a model is trained");

    second.set_state(state);
    third.load(file);
    ok(same(second.state(), state) && second.train().loss == last.loss && third.train().loss == last.loss &&
           same(second.state(), trainer.state()) && same(third.state(), trainer.state()),
       "its state, in memory or a file, continues bitwise identically");
    ok(throws(GRAFT_ERR_NOT_FOUND, "/nowhere", [&] { third.load("/nowhere/model"); }) &&
           throws(GRAFT_ERR_STATE, "", [&] { trainer.epoch(); }),
       "a missing file is refused, and so is an epoch after the last");

    const auto labels = trainer.predict(GRAFT_WEIGHTS_LAST);
    const auto logits = trainer.outputs(GRAFT_WEIGHTS_LAST);
    bool       good = labels.size() == 40 && logits.size() == 80 && trainer.n_outputs() == 2;
    int        right = 0, tests = 0;
    for (std::size_t v = 0; v < 40; v++) {
        good = good && labels[v] == (logits[2 * v + 1] > logits[2 * v] ? 1 : 0);
        if (ring.split[v] != GRAFT_SPLIT_TEST) continue;
        tests++;
        right += labels[v] == ring.labels[v];
    }
    const double accuracy = trainer.evaluate(GRAFT_WEIGHTS_LAST).test_accuracy;
    ok(good && std::fabs(accuracy - double(right) / tests) < 1e-12 && accuracy > 0.6, "predictions are those measured");
    std::int64_t bytes = 0;
    for (const graft_memory_item &item : trainer.memory()) bytes += item.bytes;
    ok(bytes > 1000 && !trainer.spans().empty() && trainer.explain().find("sage") != std::string::npos &&
           throws(GRAFT_ERR_STATE, "", [&] { trainer.traffic(); }),
       "memory and times are reported");
}

void test_descriptions(const std::string &path)
{
    graft::context     context(path);
    ring_data          ring(40, 0, 40);
    std::vector<float> other = ring.x;

    set_model(context);
    const std::vector<std::int32_t> few(39);
    ok(throws(GRAFT_ERR_ARG, "39 labels, expected 40", [&] { ring.described().labels(few, 2); }) &&
           throws(GRAFT_ERR_ARG, "20 rows of features", [&] { ring.described().features(graft::rows(ring.x, 4)); }),
       "arrays that do not fit are refused");
    graft::trainer trainer(context, ring.described());
    trainer.train();
    const auto before = trainer.outputs(GRAFT_WEIGHTS_LAST);
    for (float &value : other) value = 1 - value;
    trainer.update(GRAFT_UPDATE_FEATURES, ring.described().features(graft::rows(other, 2)));
    const auto after = trainer.outputs(GRAFT_WEIGHTS_LAST);
    trainer.update(GRAFT_UPDATE_FEATURES, ring.described());
    ok(before != after && trainer.outputs(GRAFT_WEIGHTS_LAST) == before, "features are replaced");
    {
        graft::trainer many(context, ring.described());
        for (int k = 0; k < 200000; k++)
            many.update(k % 2 == 0 ? GRAFT_UPDATE_FEATURES : GRAFT_UPDATE_LABELS, ring.described());
        graft::trainer moved(std::move(many));
        moved.update(GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_SPLIT, ring.described());
        ok(moved.epoch().epoch == 1, "200000 times");
    } /* the destructors must free the rest without a recursion of 200000 calls */

    graft::context numbers(path);
    set_model(numbers);
    numbers.set("loss", "mse");
    graft::trainer regression(numbers, graft::dataset(graft::csr(ring.row_ptr, ring.columns, 40))
                                           .features(graft::rows(ring.x, 2))
                                           .float_targets(graft::rows(ring.y, 1))
                                           .split(ring.split));
    const double   first = regression.epoch().loss;
    ok(regression.train().loss < first && regression.outputs().size() == 40, "numbers are learned");
}

void test_files(const std::string &path, const std::string &folder)
{
    graft::context context(path);

    set_model(context);
    graft::data from(context, folder);
    ok(from.view().n_vertices == 300 && from.view().n_features == 8, "a data set is read");
    graft::trainer trainer(std::move(from));
    trainer.train();
    ok(trainer.evaluate().validation_accuracy > 0.6 && trainer.predict().size() == 300, "and learned");
    ok(throws(GRAFT_ERR_NOT_FOUND, "/nowhere", [&] { graft::data(context, "/nowhere"); }), "a missing one is refused");
}

/* One of two ranks, which are threads: arrays and files in slices. */
void rank_of_two(const std::string &path, const std::string &folder, const graft_transport &transport, bool *good)
{
    graft::context     context(path);
    const graft::ranks ranks(transport);
    const ring_data    ring(20, 20 * ranks.rank(), 40), whole(40, 0, 40);

    set_model(context);
    graft::trainer trainer(context, ranks, ring.described()), alone(context, whole.described());
    *good = std::fabs(trainer.train().loss - alone.train().loss) < 1e-3;
    const auto all = alone.outputs(GRAFT_WEIGHTS_LAST), mine = trainer.outputs(GRAFT_WEIGHTS_LAST);
    *good = *good && mine.size() == 40;
    for (std::size_t k = 0; k < mine.size() && *good; k++)
        *good = std::fabs(mine[k] - all[static_cast<std::size_t>(40 * ranks.rank()) + k]) < 1e-2f;
    *good = *good && trainer.traffic().halo_rows > 0 && trainer.traffic_items().size() == 4 &&
            trainer.traffic_items(ranks.rank())[2].rows > 0 && throws(GRAFT_ERR_STATE, "", [&] { trainer.caches(); });

    graft::data        data(context, ranks, folder);
    const std::int64_t n = data.view().n_slice;
    graft::trainer     of_files(std::move(data));
    of_files.train();
    *good = *good && of_files.evaluate().validation_accuracy > 0.6 &&
            of_files.predict().size() == static_cast<std::size_t>(n) && n < 300;
}

bool on_two_ranks(const std::string &path, const std::string &folder)
{
    graft::context  context(path);
    graft_transport transports[2] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport) };
    bool            good[2] = { false, false };

    graft::detail::call(context.table<graft_transport_api>().threads, context.get(), 2, transports);
    std::thread other(rank_of_two, path, folder, std::cref(transports[1]), &good[1]);
    rank_of_two(path, folder, transports[0], &good[0]);
    other.join();
    return good[0] && good[1];
}

} // namespace

int main(int, char **argv)
{
    const graft::context context(argv[1]);
    const sample         of;

    test_semirings(context, of);
    test_masks(context, of);
    test_matrices(context, of);
    test_training(argv[1], argv[3]);
    test_descriptions(argv[1]);
    test_files(argv[1], argv[2]);
    ok(on_two_ranks(argv[1], argv[2]), "two ranks learn arrays and files in slices, as one process does");
    return done();
}
