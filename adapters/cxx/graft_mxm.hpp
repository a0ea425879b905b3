// Masked products of a sparse and a dense matrix in one process. See graft.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_MXM_HPP
#define GRAFT_MXM_HPP

#include "graft_graph.hpp"

namespace graft
{

/// A mask: the elements of a product that may be written, in borrowed arrays; see graft_mask. Flags are GRAFT_MASK_...
class mask
{
  public:
    /// A mask of whole rows: bit i % 8 of byte i / 8 belongs to row i.
    template <class Bytes> static mask rows(const Bytes &present, std::uint32_t flags = 0)
    {
        return mask(GRAFT_MASK_ROWS, present, 0, flags);
    }
    /// A mask of elements as bits: bit j % 8 of byte i * stride + j / 8 belongs to column j in row i.
    template <class Bytes> static mask bits(const Bytes &present, std::int64_t stride, std::uint32_t flags = 0)
    {
        return mask(GRAFT_MASK_BITS, present, stride, flags);
    }
    /// A mask of elements as bytes: byte i * stride + j belongs to column j in row i; 0 means not present.
    template <class Bytes> static mask bytes(const Bytes &present, std::int64_t stride, std::uint32_t flags = 0)
    {
        return mask(GRAFT_MASK_BYTES, present, stride, flags);
    }
    /// Add an array with the value of each element that is present.
    template <class Bytes> mask &values(const Bytes &of_elements)
    {
        if (of_elements.size() != size_)
            throw error(GRAFT_ERR_ARG, std::to_string(of_elements.size()) + " values for a mask of " +
                                           std::to_string(size_) + " bytes");
        raw_.values = of_elements.data();
        return *this;
    }
    /// The C struct for a product of this shape, for which the array must have enough bytes.
    const graft_mask &get(std::int64_t n_rows, std::int64_t n_columns) const
    {
        const std::int64_t width = raw_.kind == GRAFT_MASK_BITS ? (n_columns + 7) / 8 : n_columns;
        const std::int64_t needed = raw_.kind == GRAFT_MASK_ROWS ? (n_rows + 7) / 8
                                    : n_rows > 0                 ? (n_rows - 1) * raw_.stride + width
                                                                 : 0;

        if (static_cast<std::int64_t>(size_) < needed)
            throw error(GRAFT_ERR_ARG,
                        "the mask has " + std::to_string(size_) + " bytes, and needs " + std::to_string(needed));
        return raw_;
    }

  private:
    template <class Bytes>
    mask(graft_mask_kind kind, const Bytes &present, std::int64_t stride, std::uint32_t flags)
        : raw_(GRAFT_INIT(graft_mask)), size_(present.size())
    {
        raw_.kind = kind;
        raw_.flags = flags;
        raw_.stride = stride;
        raw_.present = present.data();
    }
    graft_mask  raw_;
    std::size_t size_;
};

/// A sparse matrix for products in one process (graft.mxm/1).
class matrix : public detail::object<graft_mxm_api, graft_matrix>
{
  public:
    /// Make a matrix. The arrays are borrowed as long as it exists, and values may be changed only by update_values().
    matrix(const context &in, const graft_csr &rows, bool is_checked = true)
        : object(in, ranks()), n_rows_(rows.n_rows), n_columns_(rows.n_cols), value_type_(rows.value_type)
    {
        detail::call(table_->matrix_create, in.get(), &rows, is_checked ? 0 : 1, &raw_);
        n_entries_ = rows.row_ptr_32 != nullptr ? rows.row_ptr_32[n_rows_] : rows.row_ptr[n_rows_];
    }
    std::int64_t n_rows() const noexcept
    {
        return n_rows_;
    }
    std::int64_t n_columns() const noexcept
    {
        return n_columns_;
    }
    std::int64_t n_entries() const noexcept
    {
        return n_entries_;
    }
    /// The number of bytes that kernels have allocated for this matrix.
    std::int64_t bytes() const
    {
        return table_->matrix_bytes(raw_);
    }
    /// The transpose, which owns its arrays.
    matrix transpose() const
    {
        matrix result(*this, n_columns_, n_rows_);

        detail::call(table_->matrix_transpose, context_.get(), raw_, &result.raw_);
        return result;
    }
    /// Compute an order of the vertices with better locality: "degree", "rcm" or "community".
    std::vector<std::int64_t> order(const std::string &method) const
    {
        std::vector<std::int64_t> result(static_cast<std::size_t>(n_rows_));

        detail::call(table_->matrix_order, context_.get(), raw_, method.c_str(), result.data());
        return result;
    }
    /// A matrix with rows and columns in another order. It owns its arrays.
    matrix permute(const std::vector<std::int64_t> &order) const
    {
        matrix result(*this, n_rows_, n_columns_);

        sized(order.size(), n_rows_, "vertices in the order");
        detail::call(table_->matrix_permute, context_.get(), raw_, order.data(), &result.raw_);
        return result;
    }
    /// Replace the values, in the order of the entries. They are borrowed, or copied if the matrix owns its arrays.
    template <class Values> void update_values(const Values &values)
    {
        typedef detail::dtype_of<typename std::remove_const<detail::element<const Values>>::type> type;

        sized(values.size(), n_entries_, "values");
        if (type::value != value_type_) throw error(GRAFT_ERR_ARG, "values of another type than those of the matrix");
        detail::call(table_->matrix_update_values, context_.get(), raw_, values.data(), nullptr);
    }
    /// Take the values of the matrix of which this is the transpose.
    void update_values(const matrix &original)
    {
        detail::call(table_->matrix_update_values, context_.get(), raw_, nullptr, original.get());
    }

    /// Compute c (+)= A (+.x) b. Flags are GRAFT_MXM_...
    void run(const input &b, const output &c, graft_semiring semiring = GRAFT_PLUS_TIMES, std::uint32_t flags = 0) const
    {
        run_masked(b, c, nullptr, semiring, flags);
    }
    /// Compute the same, but write only those elements that the mask allows.
    void run(const input &b, const output &c, const mask &allowed, graft_semiring semiring = GRAFT_PLUS_TIMES,
             std::uint32_t flags = 0) const
    {
        const graft_field &to = *c.get();

        run_masked(b, c, &allowed.get(to.n_rows, to.n_columns), semiring, flags);
    }
    /// Compute a product with all its options; `a` is replaced by this matrix.
    void run(graft_mxm_args args) const
    {
        args.a = raw_;
        detail::call(table_->run, context_.get(), &args);
    }
    /// The kernel that ran last, and why it was chosen.
    std::string explain() const
    {
        std::vector<char> text(1 << 14);

        detail::call(table_->explain, context_.get(), nullptr, text.data(), std::uint64_t(text.size()));
        return text.data();
    }

  private:
    matrix(const matrix &of, std::int64_t n_rows, std::int64_t n_columns)
        : object(of), n_rows_(n_rows), n_columns_(n_columns), n_entries_(of.n_entries_), value_type_(of.value_type_)
    {
    }
    static void sized(std::size_t size, std::int64_t expected, const char *what)
    {
        if (static_cast<std::int64_t>(size) != expected)
            throw error(GRAFT_ERR_ARG, std::to_string(size) + " " + what + ", expected " + std::to_string(expected));
    }
    void run_masked(const input &b, const output &c, const graft_mask *allowed, graft_semiring semiring,
                    std::uint32_t flags) const
    {
        const graft_dense from = detail::dense_of(b), to = detail::dense_of(c);
        auto              args = GRAFT_INIT(graft_mxm_args);

        args.semiring = semiring;
        args.flags = flags;
        args.b = &from;
        args.c = &to;
        args.mask = allowed;
        run(args);
    }
    std::int64_t n_rows_, n_columns_, n_entries_ = 0;
    graft_dtype  value_type_;
};

} // namespace graft
#endif
