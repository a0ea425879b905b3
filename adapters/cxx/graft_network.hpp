// Meshes of simulations, networks on them, and online training. See graft.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef GRAFT_NETWORK_HPP
#define GRAFT_NETWORK_HPP

#include "graft_context.hpp"

namespace graft
{

/// The part of a mesh that a rank has: see graft_mesh_args. Containers are borrowed until the mesh is made.
class mesh_args
{
  public:
    explicit mesh_args(graft_mesh_kind kind) : raw_(GRAFT_INIT(graft_mesh_args)), coordinates_(GRAFT_INIT(graft_field))
    {
        raw_.kind = kind;
        raw_.id_type = raw_.index_type = GRAFT_I32;
    }
    mesh_args &coordinates(const input &positions)
    {
        coordinates_ = *positions.get();
        raw_.n_rows = coordinates_.n_rows;
        raw_.dim = static_cast<std::int32_t>(coordinates_.n_columns);
        return *this;
    }
    template <class Container> mesh_args &ids(const Container &values)
    {
        raw_.ids = sized(values, raw_.n_rows, "ids");
        raw_.id_type = type_of(values);
        return *this;
    }
    mesh_args &owners(const std::vector<std::int32_t> &values)
    {
        raw_.owners = static_cast<const std::int32_t *>(sized(values, raw_.n_rows, "owners"));
        return *this;
    }
    /// Add cells of one type, GRAFT_CELL_..., one after the other.
    template <class Container> mesh_args &cells(std::int32_t type, const Container &nodes)
    {
        const int n = corners_of(type);

        raw_.n_cells = detail::rows_of(values_of(nodes), n > 0 ? n : 1);
        raw_.cell_type = type;
        raw_.cell_nodes = nodes.data();
        raw_.index_type = type_of(nodes);
        return *this;
    }
    /// Add cells of several types.
    template <class Container> mesh_args &cells(const std::vector<std::uint8_t> &types, const Container &nodes)
    {
        std::int64_t expected = 0;

        for (const std::uint8_t type : types) {
            if (corners_of(type) == 0)
                throw error(GRAFT_ERR_FORMAT, "cell type " + std::to_string(type) + " is none of GRAFT_CELL_...");
            expected += corners_of(type);
        }
        sized(nodes, expected, "nodes of cells");
        raw_.n_cells = static_cast<std::int64_t>(types.size());
        raw_.cell_types = types.data();
        raw_.cell_nodes = nodes.data();
        raw_.index_type = type_of(nodes);
        return *this;
    }
    template <class Container> mesh_args &edges(const Container &sources, const Container &targets)
    {
        raw_.n_edges = static_cast<std::int64_t>(sources.size());
        raw_.edge_sources = sources.data();
        raw_.edge_targets = sized(targets, raw_.n_edges, "targets of edges");
        raw_.index_type = type_of(sources);
        return *this;
    }
    mesh_args &index_base(std::int32_t first)
    {
        raw_.index_base = first;
        return *this;
    }
    mesh_args &period(int axis, double length)
    {
        if (axis < 0 || axis > 2) throw error(GRAFT_ERR_ARG, "axis " + std::to_string(axis) + " is not 0, 1 or 2");
        raw_.period[axis] = length;
        return *this;
    }
    graft_mesh_args get() const
    {
        graft_mesh_args args = raw_;

        args.coordinates = &coordinates_;
        return args;
    }

  private:
    /// The number of nodes of a cell; 0 for an unknown type.
    static int corners_of(std::int32_t type)
    {
        static const int corners[] = { 0, 0, 0, 2, 0, 3, 0, 0, 0, 4, 4, 0, 8, 6, 5 };

        return type >= 0 && type < 15 ? corners[type] : 0;
    }
    template <class Container> static std::size_t values_of(const Container &values)
    {
        return values.size();
    }
    template <class Container> static graft_dtype type_of(const Container &)
    {
        return detail::dtype_of<typename std::remove_const<detail::element<const Container>>::type>::value;
    }
    template <class Container>
    static const void *sized(const Container &values, std::int64_t expected, const char *what)
    {
        if (static_cast<std::int64_t>(values.size()) != expected)
            throw error(GRAFT_ERR_ARG,
                        std::to_string(values.size()) + " " + what + ", expected " + std::to_string(expected));
        return values.data();
    }
    graft_mesh_args raw_;
    graft_field     coordinates_;
};

/// A mesh over ranks (graft.draft.mesh).
class mesh : public detail::object<graft_mesh_api, graft_mesh>
{
  public:
    /// Collective.
    mesh(const context &in, const ranks &over, const mesh_args &args) : object(in, over)
    {
        const graft_mesh_args raw = args.get();

        detail::call(table_->create, in.get(), over.get(), &raw, &raw_);
    }
    graft_mesh_info info(std::int32_t rank = -1) const
    {
        auto result = GRAFT_INIT(graft_mesh_info);

        detail::call(table_->info, raw_, rank, &result);
        return result;
    }
    /// The arrays of this rank. They belong to the mesh.
    graft_mesh_view view() const
    {
        auto result = GRAFT_INIT(graft_mesh_view);

        detail::call(table_->view, raw_, &result);
        return result;
    }
};

/// The description of a network apart from its options: see graft_network_args. Containers are borrowed until the
/// network is made.
class network_args
{
  public:
    network_args(std::int32_t n_in, std::int32_t n_out, graft_predicts predicts = GRAFT_PREDICTS_CHANGE)
        : raw_(GRAFT_INIT(graft_network_args)), constant_(GRAFT_INIT(graft_field))
    {
        raw_.n_in = n_in;
        raw_.n_out = n_out;
        raw_.predicts = predicts;
    }
    network_args &constant(const input &values)
    {
        constant_ = *values.get();
        has_constant_ = true;
        return *this;
    }
    network_args &is_free(const std::vector<std::uint8_t> &values)
    {
        raw_.is_free = values.data();
        n_free_ = values.size();
        return *this;
    }
    network_args &loss_weight(const std::vector<double> &values)
    {
        raw_.loss_weight = values.data();
        n_weights_ = values.size();
        return *this;
    }
    /// The C struct for a mesh of so many rows. The containers must have that size.
    graft_network_args get(std::int64_t n_rows) const
    {
        graft_network_args args = raw_;

        check(raw_.is_free != nullptr, n_free_, n_rows, "is_free");
        check(raw_.loss_weight != nullptr, n_weights_, n_rows, "loss_weight");

        args.constant = has_constant_ ? &constant_ : nullptr;
        return args;
    }

  private:
    static void check(bool is_given, std::size_t size, std::int64_t n_rows, const char *what)
    {
        if (is_given && static_cast<std::int64_t>(size) != n_rows)
            throw error(GRAFT_ERR_ARG, std::string(what) + " has " + std::to_string(size) +
                                           " elements, and the mesh has " + std::to_string(n_rows) + " rows");
    }
    graft_network_args raw_;
    std::size_t        n_free_ = 0, n_weights_ = 0;
    graft_field        constant_;
    bool               has_constant_ = false;
};

/// A network on a mesh (graft.draft.network).
class network : public detail::object<graft_network_api, graft_network>
{
  public:
    /// Collective.
    network(const mesh &on, const network_args &args) : object(on)
    {
        auto raw = GRAFT_INIT(graft_network_args);

        try {
            raw = args.get(on.view().n_rows);
        } catch (...) { // The library is called with an argument that it refuses on all ranks, because they would
                        // otherwise wait for this one.
            table_->create(on.get(), nullptr, nullptr, nullptr);
            throw;
        }
        detail::call(table_->create, on.get(), &raw, &raw_);
    }
    graft_network_info info() const
    {
        auto result = GRAFT_INIT(graft_network_info);

        detail::call(table_->info, raw_, &result);
        return result;
    }
    /// The times of the last pass, which need option profile=yes: of a layer; with -1 of the encoders and the decoder;
    /// with -2 of the whole pass.
    graft_network_times times(std::int32_t layer, std::int32_t pass = GRAFT_PASS_FORWARD) const
    {
        auto result = GRAFT_INIT(graft_network_times);

        detail::call(table_->times, raw_, layer, pass, &result);
        return result;
    }
    /// Begin an inference. The program may compute between begin() and end().
    void begin(const input &state)
    {
        detail::call(table_->begin, raw_, state.get());
    }
    void end(const output &result)
    {
        detail::call(table_->end, raw_, result.get());
    }
    /// End an inference without a result.
    void drop()
    {
        detail::call(table_->end, raw_, nullptr);
    }
    /// Call begin() and end(). If the result does not fit on a rank, the inference ends on all ranks.
    void infer(const input &state, const output &result)
    {
        begin(state);
        end(result);
    }
    /// Infer several steps. `after` is called with the number of each step and may change `state`. If it returns true,
    /// the rollout ends with ERR_CANCELLED. Exceptions of `after` are thrown here.
    void rollout(const input &initial, const output &state, std::int32_t steps,
                 const std::function<bool(std::int32_t step)> &after = nullptr)
    {
        auto      args = GRAFT_INIT(graft_rollout);
        each_step each{ &after, nullptr };

        args.steps = steps;
        args.initial = initial.get();
        args.state = state.get();
        args.after = after ? call_after : nullptr;
        args.arg = &each;
        try {
            detail::call(table_->rollout, raw_, &args);
        } catch (const error &) {
            if (each.thrown == nullptr) throw;
        }
        if (each.thrown != nullptr) std::rethrow_exception(each.thrown);
    }
    /// Train with one pair, which consists of an earlier and a later state.
    graft_network_step train(const input &state, const input &target)
    {
        const graft_pair pair = pair_of(state, target);

        return train(&pair, 1);
    }
    graft_network_step train(const graft_pair *pairs, std::int32_t count)
    {
        auto result = GRAFT_INIT(graft_network_step);

        detail::call(table_->train, raw_, pairs, count, &result);
        return result;
    }
    /// Compute the loss. The gradient is then among the state items.
    double gradient(const input &state, const input &target)
    {
        const graft_pair pair = pair_of(state, target);
        double           loss = 0;

        detail::call(table_->gradient, raw_, &pair, &loss);
        return loss;
    }
    void save(const std::string &path)
    {
        detail::call(table_->save, raw_, path.c_str());
    }
    void load(const std::string &path)
    {
        detail::call(table_->load, raw_, path.c_str());
    }
    static graft_pair pair_of(const input &state, const input &target)
    {
        auto pair = GRAFT_INIT(graft_pair);

        pair.input = state.get();
        pair.target = target.get();
        return pair;
    }

  private:
    struct each_step {
        const std::function<bool(std::int32_t)> *after;
        std::exception_ptr                       thrown;
    };
    static std::int32_t call_after(void *arg, std::int32_t step)
    {
        each_step &each = *static_cast<each_step *>(arg);

        try {
            return (*each.after)(step) ? 1 : 0;
        } catch (...) {
            each.thrown = std::current_exception();
            return 1;
        }
    }
};

/// Online training of a network with the states of a simulation (graft.draft.stream).
class stream : public detail::object<graft_stream_api, graft_stream>
{
  public:
    /// Collective.
    explicit stream(const network &trained) : object(trained)
    {
        detail::call(table_->create, trained.get(), &raw_);
    }
    /// Offer a state to the stream; `is_first` says that it is the first one of a run.
    void offer(const input &state, double time, bool is_first = false)
    {
        offer_with(state, nullptr, time, is_first);
    }
    /// Offer a pair, which consists of a state and its target.
    void offer(const input &state, const input &target, double time)
    {
        offer_with(state, target.get(), time, false);
    }
    /// Train for about `milliseconds`, with at most `max_steps` training steps; 0 steps mean no limit.
    graft_stream_status step(double milliseconds, std::int32_t max_steps = 0)
    {
        auto result = GRAFT_INIT(graft_stream_status);

        detail::call(table_->step, raw_, milliseconds, max_steps, &result);
        return result;
    }
    graft_stream_status validate()
    {
        auto result = GRAFT_INIT(graft_stream_status);

        detail::call(table_->validate, raw_, &result);
        return result;
    }
    graft_stream_status status() const
    {
        auto result = GRAFT_INIT(graft_stream_status);

        detail::call(table_->status, raw_, &result);
        return result;
    }
    void save(const std::string &path)
    {
        detail::call(table_->save, raw_, path.c_str());
    }
    void load(const std::string &path)
    {
        detail::call(table_->load, raw_, path.c_str());
    }

  private:
    void offer_with(const input &state, const graft_field *target, double time, bool is_first)
    {
        auto raw = GRAFT_INIT(graft_sample_state);

        raw.flags = is_first ? GRAFT_STREAM_FIRST : 0;
        raw.input = state.get();
        raw.target = target;
        raw.time = time;
        detail::call(table_->offer, raw_, &raw);
    }
};

} // namespace graft
#endif
