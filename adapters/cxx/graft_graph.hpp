// Distributed graphs, their products and halos. See graft.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_GRAPH_HPP
#define GRAFT_GRAPH_HPP

#include "graft_context.hpp"

namespace graft
{

/// A sparse matrix whose arrays are containers. Row i gathers from columns[row_ptr[i]] to columns[row_ptr[i + 1] - 1].
template <class Columns>
graft_csr csr(const std::vector<std::int64_t> &row_ptr, const Columns &columns, std::int64_t n_columns)
{
    auto raw = GRAFT_INIT(graft_csr);

    raw.index_type = detail::dtype_of<typename std::remove_const<detail::element<const Columns>>::type>::value;
    raw.n_rows = static_cast<std::int64_t>(row_ptr.size()) - 1;
    raw.n_cols = n_columns;
    raw.row_ptr = row_ptr.data();
    raw.col_idx = columns.data();
    return raw;
}
template <class Columns, class Values>
graft_csr csr(const std::vector<std::int64_t> &row_ptr, const Columns &columns, std::int64_t n_columns,
              const Values &values)
{
    graft_csr raw = csr(row_ptr, columns, n_columns);

    if (values.size() != columns.size())
        throw error(GRAFT_ERR_ARG,
                    std::to_string(values.size()) + " values for " + std::to_string(columns.size()) + " columns");
    raw.value_type = detail::dtype_of<typename std::remove_const<detail::element<const Values>>::type>::value;
    raw.values = values.data();
    return raw;
}

/// A distributed graph (graft.graph/1).
class graph : public detail::object<graft_graph_api, graft_graph>
{
  public:
    /// Create the graph. This rank contributes the rows from first_row on. Collective.
    graph(const context &in, const ranks &over, const graft_csr &rows, std::int64_t first_row = 0) : object(in, over)
    {
        auto slice = GRAFT_INIT(graft_slice);

        slice.n_vertices = rows.n_cols;
        slice.first_row = first_row;
        slice.rows = &rows;
        create(slice);
    }
    graph(const context &in, const ranks &over, const graft_slice &slice) : object(in, over)
    {
        create(slice);
    }
    graft_graph_info info(std::int32_t rank = -1) const
    {
        auto result = GRAFT_INIT(graft_graph_info);

        detail::call(table_->info, raw_, rank, &result);
        return result;
    }
    /// The vertices that this rank owns, in the order of the rows of its arrays.
    std::vector<std::int64_t> owned() const
    {
        const std::int64_t *first = table_->owned(raw_);

        return std::vector<std::int64_t>(first, first + info(ranks_.rank()).n_owned);
    }
    /// Replace the values of the edges that this rank contributed, in their original order. Plans and halos of the
    /// graph use the new values from then on. Collective.
    template <class Values> void update_values(const Values &values)
    {
        using type = typename std::remove_const<detail::element<const Values>>::type;
        const graft_dense raw =
            graft_dense_in(detail::dtype_of<type>::value, static_cast<std::int64_t>(values.size()), 1, values.data());

        if (table_->size < GRAFT_HAS(graft_graph_api, update_values))
            throw error(GRAFT_ERR_VERSION, "the library is older than update_values()");
        detail::call(table_->update_values, raw_, &raw);
    }

  private:
    void create(const graft_slice &slice)
    {
        detail::call(table_->create, context_.get(), ranks_.get(), &slice, &raw_);
    }
};

namespace detail
{

inline graft_dense dense_of(const input &view)
{
    const graft_field &field = *view.get();
    graft_dense        raw = graft_dense_in(field.dtype, field.n_rows, field.n_columns, field.data);

    if (field.column_stride > 1 && field.n_columns > 1)
        throw error(GRAFT_ERR_ARG, "products and halos need rows whose elements follow each other (graft::rows)");
    if (field.row_stride > 0) raw.stride = field.row_stride;
    return raw;
}

// A begin() and its end(). The arguments of begin() are read first, because other ranks would wait if this rank threw
// an exception before the library has the arguments.
class pass
{
  public:
    // Call read(). If it throws, call refuse(), which is a begin() that the library refuses. All ranks then fail in
    // end(), which throws here what read() has thrown; with one rank the exception is thrown at once. Returns whether
    // read() has succeeded. An ERR_PEER of refuse() or end() has another reason, and is thrown instead.
    template <class Read, class Refuse> bool begins(Read read, Refuse refuse)
    {
        std::exception_ptr thrown;

        try {
            read();
            return true;
        } catch (...) {
            thrown = std::current_exception();
        }
        call_refused(refuse, thrown);
        thrown_ = thrown;
        return false;
    }
    template <class End> void ends(End end)
    {
        std::exception_ptr thrown;

        std::swap(thrown, thrown_);
        call_refused(end, thrown);
        if (thrown != nullptr) std::rethrow_exception(thrown);
    }

  private:
    // Make a call that must fail because of the exception `thrown`, unless that is null.
    template <class Call> static void call_refused(Call call, const std::exception_ptr &thrown)
    {
        try {
            call();
        } catch (const error &failure) {
            if (thrown == nullptr || failure.code() == GRAFT_ERR_PEER) throw;
            std::rethrow_exception(thrown);
        }
    }
    std::exception_ptr thrown_;
};

} // namespace detail

/// A plan (graft.aggregate/1), which computes products of the graph with rows of vertices.
class plan : public detail::object<graft_aggregate_api, graft_plan>
{
  public:
    /// Create a plan. Flags are GRAFT_PLAN_...; `width` is the number of columns for which buffers are allocated now.
    /// Collective.
    explicit plan(const graph &of, std::uint32_t flags = 0, std::int64_t width = 0) : object(of)
    {
        auto args = GRAFT_INIT(graft_plan_args);

        args.flags = flags;
        args.width = width;
        detail::call(table_->create, of.get(), &args, &raw_);
    }
    graft_plan_info info(std::int32_t rank = -1) const
    {
        auto result = GRAFT_INIT(graft_plan_info);

        detail::call(table_->info, raw_, rank, &result);
        return result;
    }
    /// Begin a product. The program may compute between begin() and end(); the arrays are borrowed until end().
    void begin(const input &x, const output &result, graft_semiring semiring = GRAFT_PLUS_TIMES,
               std::uint32_t flags = 0)
    {
        auto from = GRAFT_INIT(graft_dense), to = from;
        auto args = GRAFT_INIT(graft_aggregate_args);
        auto read = [&] {
            from = detail::dense_of(x);
            to = detail::dense_of(result);
            args.x = &from;
            args.out = &to;
        };

        args.semiring = semiring;
        args.flags = flags;
        if (pass_.begins(read, [&] { begin(args); }))
            begin(args); // the flags say whether begin() waits, also if it is
                         // refused
    }
    void begin(const graft_aggregate_args &args)
    {
        detail::call(table_->begin, raw_, &args);
    }
    void end()
    {
        pass_.ends([&] { detail::call(table_->end, raw_); });
    }
    void run(const input &x, const output &result, graft_semiring semiring = GRAFT_PLUS_TIMES, std::uint32_t flags = 0)
    {
        begin(x, result, semiring, flags);
        end();
    }

  private:
    detail::pass pass_;
};

/// Exchanges rows of boundary vertices (graft.halo/1).
class halo : public detail::object<graft_halo_api, graft_halo>
{
  public:
    /// Collective.
    explicit halo(const graph &of) : object(of)
    {
        detail::call(table_->create, of.get(), &raw_);
    }
    graft_halo_info info() const
    {
        auto result = GRAFT_INIT(graft_halo_info);

        detail::call(table_->info, raw_, &result);
        return result;
    }
    /// Begin to copy rows from their owners into the halo.
    void begin(const input &owned, const output &received)
    {
        begin(owned, received, 0);
    }
    /// Begin to add rows of the halo to the rows of their owners.
    void begin_sum(const output &owned, const input &given)
    {
        begin(owned, given, GRAFT_HALO_SUM);
    }
    void end()
    {
        pass_.ends([&] { detail::call(table_->end, raw_); });
    }
    void exchange(const input &owned, const output &received)
    {
        begin(owned, received);
        end();
    }

  private:
    void begin(const input &owned, const input &other, std::uint32_t flags)
    {
        auto ours = GRAFT_INIT(graft_dense), theirs = ours;
        auto args = GRAFT_INIT(graft_halo_args);
        auto read = [&] {
            ours = detail::dense_of(owned);
            theirs = detail::dense_of(other);
        };

        args.flags = flags;
        args.owned = &ours;
        args.halo = &theirs;
        if (pass_.begins(read, [&] { detail::call(table_->begin, raw_, static_cast<graft_halo_args *>(nullptr)); }))
            detail::call(table_->begin, raw_, &args);
    }
    detail::pass pass_;
};

} // namespace graft
#endif
