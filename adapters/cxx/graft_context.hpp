// The parts on which the other headers for C++ are built: errors, contexts, ranks, objects, and views of containers.
// See graft.hpp.
#ifndef GRAFT_CONTEXT_HPP
#define GRAFT_CONTEXT_HPP

#include "draft/graft_stream.h"
#include "graft.h"
#include "graft_load.h"

#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <locale>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace graft
{

/// The exception of a failed call: what() is the message, code() the status, and rank() the rank that failed.
class error : public std::runtime_error
{
  public:
    explicit error(const graft_error &raw) : std::runtime_error(raw.message), raw_(raw)
    {
    }
    error(std::int32_t code, const std::string &sentence) : std::runtime_error(sentence), raw_(GRAFT_INIT(graft_error))
    {
        raw_.code = code;
        snprintf(raw_.message, sizeof raw_.message, "%s", sentence.c_str());
    }
    std::int32_t code() const noexcept
    {
        return raw_.code;
    }
    std::int32_t rank() const noexcept
    {
        return raw_.rank;
    }
    const char *where() const noexcept
    {
        return raw_.where;
    }
    const graft_error &get() const noexcept
    {
        return raw_;
    }

  private:
    graft_error raw_;
};

namespace detail
{

// Call a function whose last parameter is the error.
template <class Function, class... Arguments> void call(Function function, Arguments... arguments)
{
    auto               failure = GRAFT_INIT(graft_error);
    const std::int32_t rc = function(arguments..., &failure);

    if (rc < 0) {
        failure.code = rc;
        throw error(failure);
    }
}

template <class T> struct dtype_of;
template <> struct dtype_of<float> : std::integral_constant<graft_dtype, GRAFT_F32> {
};
template <> struct dtype_of<double> : std::integral_constant<graft_dtype, GRAFT_F64> {
};
template <> struct dtype_of<std::int32_t> : std::integral_constant<graft_dtype, GRAFT_I32> {
};
template <> struct dtype_of<std::int64_t> : std::integral_constant<graft_dtype, GRAFT_I64> {
};

// The element type of a container that has data() and size().
template <class Container>
using element = typename std::remove_reference<decltype(*std::declval<Container &>().data())>::type;

// The interface id of a table of functions, and the size of the table that this header needs.
template <class Table> struct interface_of;
#define GRAFT_HPP_INTERFACE(table, name, last)                                                                         \
    template <> struct interface_of<table> {                                                                           \
        static const char *id()                                                                                        \
        {                                                                                                              \
            return name;                                                                                               \
        }                                                                                                              \
        static std::uint64_t size()                                                                                    \
        {                                                                                                              \
            return GRAFT_HAS(table, last);                                                                             \
        }                                                                                                              \
    };
GRAFT_HPP_INTERFACE(graft_aggregate_api, GRAFT_AGGREGATE_ID, progress)
GRAFT_HPP_INTERFACE(graft_data_api, GRAFT_DATA_ID, open_slice)
GRAFT_HPP_INTERFACE(graft_graph_api, GRAFT_GRAPH_ID, destroy)
GRAFT_HPP_INTERFACE(graft_halo_api, GRAFT_HALO_ID, destroy)
GRAFT_HPP_INTERFACE(graft_mesh_api, GRAFT_MESH_ID, destroy)
GRAFT_HPP_INTERFACE(graft_model_api, GRAFT_MODEL_ID, apply)
GRAFT_HPP_INTERFACE(graft_mxm_api, GRAFT_MXM_ID, matrix_update_values)
GRAFT_HPP_INTERFACE(graft_network_api, GRAFT_NETWORK_ID, times)
GRAFT_HPP_INTERFACE(graft_stream_api, GRAFT_STREAM_ID, destroy)
GRAFT_HPP_INTERFACE(graft_train_api, GRAFT_TRAIN_ID, update)
GRAFT_HPP_INTERFACE(graft_report_api, GRAFT_REPORT_ID, cache_item)
GRAFT_HPP_INTERFACE(graft_transport_api, GRAFT_TRANSPORT_ID, open)
#undef GRAFT_HPP_INTERFACE

} // namespace detail

/// An instance of the library.
class context
{
  public:
    using logger = std::function<void(graft_log_level level, const char *line)>;

    /// Load the library from a file; if the path is empty, by its soname. Exceptions of `log` are dropped.
    explicit context(const std::string &path = std::string(), logger log = logger())
        : opened_(std::make_shared<opened>(std::move(log)))
    {
        detail::call(graft_load, path.empty() ? nullptr : path.c_str(), &opened_->host, &opened_->api);
    }
    /// The same with a C string; NULL is the same as an empty path.
    explicit context(const char *path, logger log = logger())
        : context(std::string(path != nullptr ? path : ""), std::move(log))
    {
    }
    /// Use graft_open() of a program that is linked with the library.
    explicit context(graft_open_fn open, logger log = logger()) : opened_(std::make_shared<opened>(std::move(log)))
    {
        detail::call(open, GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &opened_->host, &opened_->api);
    }

    /// Set an option. Numbers are written with a point, whatever the locale.
    context &set(const std::string &key, const std::string &value)
    {
        detail::call(opened_->api->set, get(), key.c_str(), value.c_str());
        return *this;
    }
    template <class Number>
    typename std::enable_if<std::is_arithmetic<Number>::value, context &>::type set(const std::string &key,
                                                                                    Number             value)
    {
        std::ostringstream text;
        text.imbue(std::locale::classic());
        text.precision(17);
        text << value;
        return set(key, text.str());
    }
    context &set(std::initializer_list<std::pair<std::string, std::string>> options)
    {
        for (const auto &option : options) set(option.first, option.second);
        return *this;
    }

    /// The table of functions of an interface, such as table<graft_train_api>().
    template <class Table> const Table &table() const
    {
        const void *found =
            graft_interface(opened_->api, detail::interface_of<Table>::id(), detail::interface_of<Table>::size());
        if (found == nullptr)
            throw error(GRAFT_ERR_VERSION, std::string("the library has no ") + detail::interface_of<Table>::id() +
                                               ", or an older one than this program");
        return *static_cast<const Table *>(found);
    }
    const graft_api &api() const noexcept
    {
        return *opened_->api;
    }
    graft_context *get() const noexcept
    {
        return opened_->api->context;
    }

  private:
    struct opened {
        explicit opened(logger function) : log(std::move(function)), host(GRAFT_INIT(graft_host))
        {
            host.self = this;
            if (log) host.log = pass_on;
        }
        opened(const opened &) = delete;
        opened &operator=(const opened &) = delete;
        ~opened()
        {
            if (api != nullptr) api->close(api->context);
        }
        static void pass_on(void *self, graft_log_level level, const char *line)
        {
            try {
                static_cast<opened *>(self)->log(level, line);
            } catch (...) { // A logger has no caller that could catch the exception.
            }
        }
        logger           log;
        graft_host       host;
        const graft_api *api = nullptr;
    };
    std::shared_ptr<opened> opened_;
};

/// The ranks of a distributed object. They communicate by a transport, such as one of graft_mpi.hpp; by default there
/// is one rank.
class ranks
{
  public:
    ranks() = default;
    /// Take over a transport. It is closed with the last object that uses it.
    explicit ranks(const graft_transport &transport) : transport_(new graft_transport(transport), close)
    {
    }

    std::int32_t rank() const noexcept
    {
        return transport_ ? transport_->rank : 0;
    }
    std::int32_t size() const noexcept
    {
        return transport_ ? transport_->n_ranks : 1;
    }
    const graft_transport *get() const noexcept
    {
        return transport_.get();
    }

  private:
    static void close(graft_transport *transport)
    {
        if (transport->close != nullptr) transport->close(transport->self);
        delete transport;
    }
    std::shared_ptr<graft_transport> transport_;
};

namespace detail
{

// Free an object.
template <class Table, class Raw> void release(const Table &table, Raw *raw)
{
    table.destroy(raw);
}
inline void release(const graft_mxm_api &table, graft_matrix *raw)
{
    table.matrix_destroy(raw);
}
inline void release(const graft_data_api &table, graft_data *raw)
{
    table.close(raw);
}

// An object of the library, together with the objects that must live as long as it does.
template <class Table, class Raw> class object
{
  public:
    object(object &&other) noexcept
        : context_(std::move(other.context_)), ranks_(std::move(other.ranks_)), table_(other.table_), raw_(other.raw_),
          keeps_(std::move(other.keeps_))
    {
        other.raw_ = nullptr;
    }
    object &operator=(object &&other) noexcept
    {
        object mine(std::move(other));

        std::swap(context_, mine.context_);
        std::swap(ranks_, mine.ranks_);
        std::swap(table_, mine.table_);
        std::swap(raw_, mine.raw_);
        std::swap(keeps_, mine.keeps_);
        return *this;
    }
    ~object()
    {
        if (raw_ != nullptr) release(*table_, raw_);
    }
    /// The C object, for the functions of table(). NULL after the object was moved from.
    Raw *get() const noexcept
    {
        return raw_;
    }
    const Table &table() const noexcept
    {
        return *table_;
    }
    const context &of_context() const noexcept
    {
        return context_;
    }
    const ranks &of_ranks() const noexcept
    {
        return ranks_;
    }
    /// A description of the object in several lines.
    std::string explain() const
    {
        std::vector<char> text(1 << 16);
        call(table_->explain, raw_, text.data(), std::uint64_t(text.size()));
        return text.data();
    }

  protected:
    object(const context &in, const ranks &over)
        : context_(in), ranks_(over), table_(&in.template table<Table>()), raw_(nullptr)
    {
    }
    template <class Other>
    explicit object(const Other &of)
        : context_(of.of_context()), ranks_(of.of_ranks()), table_(&context_.template table<Table>()), raw_(nullptr)
    {
    }
    context      context_;
    ranks        ranks_;
    const Table *table_;
    Raw         *raw_;

    std::shared_ptr<const void> keeps_; // objects that are freed after this one
};

} // namespace detail

/// A view of values that a call reads: n_rows x n_columns elements of float or double, which are borrowed.
class input
{
  public:
    explicit input(const graft_field &raw) : raw_(raw)
    {
    }
    const graft_field *get() const noexcept
    {
        return &raw_;
    }

  private:
    graft_field raw_;
};

/// A view of values that a call writes.
class output : public input
{
  public:
    using input::input;
};

/// Make a view with strides, which are counted in elements. It is an output, or an input if the elements are constant.
template <class T>
typename std::conditional<std::is_const<T>::value, input, output>::type
strided(T *data, std::int64_t n_rows, std::int64_t n_columns, std::int64_t row_stride, std::int64_t column_stride)
{
    auto raw = GRAFT_INIT(graft_field);

    raw.dtype = detail::dtype_of<typename std::remove_const<T>::type>::value;
    raw.n_rows = n_rows;
    raw.n_columns = n_columns;
    raw.row_stride = row_stride;
    raw.column_stride = column_stride;
    raw.data = const_cast<typename std::remove_const<T>::type *>(data);
    return typename std::conditional<std::is_const<T>::value, input, output>::type(raw);
}

namespace detail
{

inline std::int64_t rows_of(std::size_t size, std::int64_t n_columns)
{
    if (n_columns < 1 || size % static_cast<std::size_t>(n_columns) != 0)
        throw error(GRAFT_ERR_ARG,
                    "an array of " + std::to_string(size) + " elements has no rows of " + std::to_string(n_columns));
    return static_cast<std::int64_t>(size) / n_columns;
}

} // namespace detail

/// View a container as rows of n_columns elements that follow each other (node-major).
template <class Container>
auto rows(Container &values, std::int64_t n_columns) -> decltype(strided(values.data(), 1, 1, 1, 1))
{
    return strided(values.data(), detail::rows_of(values.size(), n_columns), n_columns, n_columns, 1);
}

/// A container as columns, one after the other (component-major).
template <class Container>
auto columns(Container &values, std::int64_t n_columns) -> decltype(strided(values.data(), 1, 1, 1, 1))
{
    const std::int64_t n_rows = detail::rows_of(values.size(), n_columns);

    return strided(values.data(), n_rows, n_columns, 1, n_rows > 0 ? n_rows : 1);
}

} // namespace graft
#endif
